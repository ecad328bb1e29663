//! The rows of the system tables.

use std::fmt::Write;

use binlogz_query::Names;
use binlogz_query_server::{Blame, StatementRefusal};
use datafusion::arrow::datatypes::{DataType, SchemaRef};

use super::SystemValue;
use super::columns::ColumnTypeText;
use super::definitions::{DATABASES, INFORMATION, SystemTable, TABLES};
use crate::session::MysqlSession;
use crate::variables::FrontVariables;

const CATALOG: &str = "def";
const CHARACTER_SET: &str = "utf8mb4";
const COLLATION: &str = "utf8mb4_general_ci";
/// The longest value, in bytes.
const LENGTH_MAX: &str = "4294967295";

/// The columns of tables of the logs, by database and name.
#[derive(Debug, Default)]
pub(crate) struct TableColumns(Vec<(String, String, SchemaRef)>);

/// The facts that system tables are made of.
pub(crate) struct SystemFacts<'f> {
    pub(crate) session: &'f MysqlSession,
    pub(crate) variables: &'f FrontVariables,
    pub(crate) tables: &'f TableColumns,
}

impl TableColumns {
    /// The columns of all tables, or no tables where none of the system tables asks for them.
    pub(crate) fn of(names: &Names) -> Result<Self, StatementRefusal> {
        let mut all = Vec::new();
        for (schema, table) in names.tables()? {
            if let Some(columns) = names.columns(&schema, &table)? {
                all.push((schema, table, columns));
            }
        }
        Ok(TableColumns(all))
    }

    /// Whether a system table tells of tables of the logs.
    pub(crate) fn are_told_by(name: &(String, String)) -> bool {
        ["schemata", "tables", "columns", "binlogz_create_table"].contains(&name.1.as_str())
    }
}

#[cfg(test)]
impl<'f> SystemFacts<'f> {
    /// Those of a session that tests share.
    pub(super) fn for_tests(tables: &'f TableColumns) -> Self {
        use std::sync::LazyLock;
        static SESSION: LazyLock<MysqlSession> = LazyLock::new(crate::session::for_tests);
        static VARIABLES: LazyLock<FrontVariables> = LazyLock::new(FrontVariables::default);
        SystemFacts { session: &SESSION, variables: &VARIABLES, tables }
    }
}

type Rows = Vec<Vec<SystemValue>>;

fn some(text: impl Into<String>) -> SystemValue {
    Some(text.into())
}

fn texts<const N: usize>(values: [&str; N]) -> Vec<SystemValue> {
    values.into_iter().map(some).collect()
}

/// The rows of a table.
pub(super) fn rows(table: &SystemTable, facts: &SystemFacts<'_>) -> Result<Rows, StatementRefusal> {
    Ok(match table.name {
        "schemata" => schemata(facts),
        "tables" => tables(facts),
        "columns" => columns(facts),
        "binlogz_create_table" => create_tables(facts),
        "processlist" => vec![process(facts.session)],
        "engines" => vec![texts(["InnoDB", "DEFAULT", "Binary logs, only to be read", "NO", "NO", "NO"])],
        "character_sets" => vec![texts([CHARACTER_SET, COLLATION, "UTF-8 Unicode", "4"])],
        "collations" => vec![texts([COLLATION, CHARACTER_SET, "45", "Yes", "Yes", "1", "PAD SPACE"])],
        "collation_character_set_applicability" => vec![texts([COLLATION, CHARACTER_SET])],
        "user_privileges" => {
            vec![texts([&format!("'{}'@'%'", facts.session.user), CATALOG, "SELECT", "NO"])]
        }
        "global_variables" => variables(&FrontVariables::default()),
        "session_variables" => variables(facts.variables),
        "global_status" | "session_status" => status(facts.session),
        // Logs tell none of these.
        "statistics"
        | "key_column_usage"
        | "table_constraints"
        | "referential_constraints"
        | "check_constraints"
        | "views"
        | "routines"
        | "parameters"
        | "triggers"
        | "events"
        | "partitions"
        | "schema_privileges"
        | "table_privileges"
        | "column_privileges"
        | "plugins"
        | "files"
        | "keywords" => Rows::new(),
        other => {
            let line = format!("the system table {other} has no contents here");
            return Err(StatementRefusal::new(Blame::Program, line));
        }
    })
}

fn schemata(facts: &SystemFacts<'_>) -> Rows {
    let mut databases: Vec<&str> = facts.tables.0.iter().map(|(database, ..)| database.as_str()).collect();
    databases.extend(DATABASES);
    databases.sort_unstable();
    databases.dedup();
    let row = |database: &str| {
        let mut row = texts([CATALOG, database, CHARACTER_SET, COLLATION]);
        row.extend([None, some("NO")]);
        row
    };
    databases.into_iter().map(row).collect()
}

fn tables(facts: &SystemFacts<'_>) -> Rows {
    let of_logs = facts.tables.0.iter().map(|(database, table, _)| table_row(database, table, "BASE TABLE"));
    let system = TABLES.iter().filter(|table| !table.name.starts_with("binlogz_")).map(|table| {
        let name =
            if table.database == INFORMATION { table.name.to_uppercase() } else { table.name.to_owned() };
        table_row(table.database, &name, "SYSTEM VIEW")
    });
    of_logs.chain(system).collect()
}

fn table_row(database: &str, table: &str, kind: &str) -> Vec<SystemValue> {
    let mut row = texts([CATALOG, database, table, kind, "InnoDB", "10", "Dynamic"]);
    // Rows and bytes of a table are not known without reading the logs.
    row.extend(std::iter::repeat_n(None, 10));
    row.extend([some(COLLATION), None, some(""), some("")]);
    row
}

fn columns(facts: &SystemFacts<'_>) -> Rows {
    let mut rows = Rows::new();
    for (database, table, columns) in &facts.tables.0 {
        for (place, column) in columns.fields().iter().enumerate() {
            rows.push(column_row((database, table, column.name()), place, column.data_type()));
        }
    }
    for table in TABLES.iter().filter(|table| !table.name.starts_with("binlogz_")) {
        let shown =
            if table.database == INFORMATION { table.name.to_uppercase() } else { table.name.to_owned() };
        for (place, column) in table.columns().enumerate() {
            let kind = if column.is_number { DataType::Int64 } else { DataType::Utf8 };
            rows.push(column_row((table.database, &shown, &column.name.to_uppercase()), place, &kind));
        }
    }
    rows
}

fn column_row(
    (database, table, column): (&str, &str, &str),
    place: usize,
    kind: &DataType,
) -> Vec<SystemValue> {
    let ColumnTypeText { name, full, precision, scale, second_digits, is_text } = ColumnTypeText::of(kind);
    let of_text = |value: &str| is_text.then(|| value.to_owned());
    let mut row = texts([CATALOG, database, table, column]);
    row.extend([
        some((place + 1).to_string()),
        None,
        some("YES"),
        some(name),
        of_text(LENGTH_MAX),
        of_text(LENGTH_MAX),
        precision.map(|digits| digits.to_string()),
        scale.map(|digits| digits.to_string()),
        second_digits.map(|digits| digits.to_string()),
        of_text(CHARACTER_SET),
        of_text(COLLATION),
        some(full),
        some(""),
        some(""),
        some("select"),
        some(""),
        some(""),
        None,
    ]);
    row
}

/// The statements that would make tables with these columns.
fn create_tables(facts: &SystemFacts<'_>) -> Rows {
    let quoted = |name: &str| format!("`{}`", name.replace('`', "``"));
    let row = |(database, table, columns): &(String, String, SchemaRef)| {
        let mut statement = format!("CREATE TABLE {} (\n", quoted(table));
        for (place, column) in columns.fields().iter().enumerate() {
            let end = if place + 1 == columns.fields().len() { "\n" } else { ",\n" };
            let kind = ColumnTypeText::of(column.data_type()).full;
            let _ = write!(statement, "  {} {kind} DEFAULT NULL{end}", quoted(column.name()));
        }
        statement.push_str(") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4");
        vec![some(database), some(table), Some(statement)]
    };
    facts.tables.0.iter().map(row).collect()
}

/// A client sees its own connection.
fn process(session: &MysqlSession) -> Vec<SystemValue> {
    vec![
        some(session.connection.to_string()),
        some(&session.user),
        some(&session.address),
        Some(session.database.clone()).filter(|database| !database.is_empty()),
        some("Query"),
        some("0"),
        some("executing"),
        None,
    ]
}

fn variables(variables: &FrontVariables) -> Rows {
    variables.all().map(|(name, value)| texts([name, value.shown()])).collect()
}

fn status(session: &MysqlSession) -> Rows {
    let (cipher, version) = if session.is_encrypted { ("TLS", "TLS") } else { ("", "") };
    vec![
        texts(["Compression", "OFF"]),
        texts(["Ssl_cipher", cipher]),
        texts(["Ssl_version", version]),
        texts(["Threads_connected", "1"]),
    ]
}
