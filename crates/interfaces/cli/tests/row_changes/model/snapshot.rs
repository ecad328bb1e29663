//! A server's content as a test reads it: the columns of its tables, and every row in a form that tells all values apart.

use std::collections::BTreeMap;

use binlogz_testkit::Result;

use super::session::ModelSession;

/// A column, as information_schema has it.
pub(super) struct LiveColumn {
    pub(super) name: String,
    data_type: String,
    /// With its length and its members.
    column_type: String,
    pub(super) is_generated: bool,
}

/// The base tables of a database, by name.
pub(super) type LiveTables = BTreeMap<String, Vec<LiveColumn>>;

/// The rows of a table, sorted; a value for each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableRows {
    pub(super) columns: Vec<String>,
    /// As `data_type` has them.
    pub(super) types: Vec<String>,
    /// Types within which equal values have equal texts.
    comparable: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl TableRows {
    /// Leaves a column out of comparisons.
    pub(super) fn forget(&mut self, column: &str) {
        if let Some(place) = self.columns.iter().position(|own| own == column) {
            self.columns.remove(place);
            self.types.remove(place);
            self.comparable.remove(place);
            self.rows.iter_mut().for_each(|row| drop(row.remove(place)));
        }
    }
}

/// The columns, by table and name, whose values follow the key of a table by ON UPDATE CASCADE.
pub(super) fn following_columns(
    server: &ModelSession<'_>,
    database: &str,
    table: &str,
) -> Result<Vec<(String, String)>> {
    let text = server.sql(&format!(
        "SELECT k.table_name, k.column_name FROM information_schema.key_column_usage k JOIN information_schema.referential_constraints r \
         USING (constraint_schema, constraint_name, table_name) WHERE constraint_schema = '{database}' AND r.referenced_table_name = '{table}' \
         AND r.update_rule = 'CASCADE'"
    ))?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(table, column)| (table.into(), column.into()))
        .collect())
}

pub(super) fn live_tables(server: &ModelSession<'_>, database: &str) -> Result<LiveTables> {
    let text = server.sql(&format!(
        "SELECT table_name, column_name, data_type, column_type, extra LIKE '%GENERATED' AND extra NOT LIKE 'DEFAULT%' FROM information_schema.columns \
         JOIN information_schema.tables USING (table_schema, table_name) WHERE table_schema = '{database}' AND \
         table_type = 'BASE TABLE' ORDER BY table_name, ordinal_position"
    ))?;
    let mut tables = LiveTables::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let column = LiveColumn {
            name: fields[1].into(),
            data_type: fields[2].into(),
            column_type: fields[3].into(),
            is_generated: fields[4] == "1",
        };
        tables.entry(fields[0].into()).or_default().push(column);
    }
    Ok(tables)
}

/// An expression whose text tells all values of a type apart.
fn canonical(column: &LiveColumn) -> String {
    let name = &column.name;
    match &*column.data_type {
        // Text is the same in another character set.
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" => {
            format!("HEX(CONVERT(`{name}` USING utf8mb4))")
        }
        "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => format!("HEX(`{name}`)"),
        "json" => format!("HEX(CONCAT(JSON_TYPE(`{name}`), `{name}`))"),
        "bit" | "year" => format!("`{name}` + 0"),
        "float" => format!("CAST(`{name}` AS DOUBLE)"),
        "geometry" | "point" => format!("HEX(CONCAT(ST_SRID(`{name}`), ' ', ST_AsText(`{name}`)))"),
        _ => format!("`{name}`"),
    }
}

/// Every row of every table.
pub(super) fn rows(server: &ModelSession<'_>, database: &str) -> Result<BTreeMap<String, TableRows>> {
    let live = live_tables(server, database)?;
    let mut queries = "SET time_zone = '+00:00';\n".to_owned();
    for (table, columns) in &live {
        let values: Vec<String> = columns.iter().map(canonical).collect();
        queries += &format!("SELECT '={table}'; SELECT {} FROM `{database}`.`{table}`;\n", values.join(", "));
    }
    let mut tables: BTreeMap<String, TableRows> = BTreeMap::new();
    for (table, columns) in &live {
        let types = columns.iter().map(|column| column.data_type.clone()).collect();
        let comparable = columns.iter().map(|column| match &*column.data_type {
            // Members keep their names when they change places.
            "enum" | "set" => column.data_type.clone(),
            _ => column.column_type.clone(),
        });
        let comparable = comparable.collect();
        let columns = columns.iter().map(|column| column.name.clone()).collect();
        tables.insert(table.clone(), TableRows { columns, types, comparable, rows: Vec::new() });
    }
    let mut table = "";
    let text = server.sql(&queries)?;
    for line in text.lines() {
        match line.strip_prefix('=') {
            Some(name) => table = name,
            None => {
                let row = line.split('\t').map(str::to_owned).collect();
                tables.get_mut(table).expect("a table of the query").rows.push(row);
            }
        }
    }
    for table in tables.values_mut() {
        table.rows.sort();
    }
    Ok(tables)
}

/// What differs between two states of a table in the columns that both have, of one type; `None` if nothing does.
pub(super) fn difference(expected: &TableRows, found: &TableRows) -> Option<String> {
    let typed = |state: &TableRows, name: &String| -> Option<String> {
        let place = state.columns.iter().position(|column| column == name)?;
        Some(state.comparable[place].clone())
    };
    let shared: Vec<&String> =
        expected.columns.iter().filter(|name| typed(found, name) == typed(expected, name)).collect();
    let [mut left, mut right] = [expected, found].map(|state| projected(state, &shared));
    for row in std::mem::take(&mut left) {
        match right.iter().position(|other| *other == row) {
            Some(place) => {
                right.remove(place);
            }
            None => left.push(row),
        }
    }
    (!left.is_empty() || !right.is_empty())
        .then(|| format!("columns {shared:?}\n  lacks {left:?}\n  has   {right:?}"))
}

fn projected(state: &TableRows, columns: &[&String]) -> Vec<Vec<String>> {
    let places: Vec<usize> =
        columns.iter().filter_map(|name| state.columns.iter().position(|column| column == *name)).collect();
    state.rows.iter().map(|row| places.iter().map(|place| row[*place].clone()).collect()).collect()
}
