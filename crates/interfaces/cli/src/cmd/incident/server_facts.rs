//! Facts that the server has beyond its logs: how many rows the tables have, what goes with deleted ones, and who was connected.

use std::collections::{BTreeSet, HashMap};

use binlogz_source::{AnswerFields, ConnectOptions, Connection};
use binlogz_stats::TableName;
use binlogz_triage::{CascadeEstimates, CascadingKey, RankedChange};

use super::sessions;
use super::sql_text::hexadecimal;
use crate::failure::warn;

/// Tables that are asked for: those of the changes that are shown.
const TABLES_MAX: usize = 500;
/// Since 8.0 a server has figures of up to a day ago, unless it is told otherwise. MariaDB passes over such a comment.
const FRESH: &str = "SET @binlogz = 0 /*!80000 , SESSION information_schema_stats_expiry = 0 */";

/// Since 9.6.
const NATIVE_FOREIGN_KEYS: &str = "SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'";
/// Parents, children, and what becomes of these.
const CASCADING_KEYS: &str = "SELECT unique_constraint_schema, referenced_table_name, constraint_schema, table_name, delete_rule FROM \
    information_schema.referential_constraints WHERE delete_rule IN ('CASCADE', 'SET NULL')";

/// Adds what the server knows. What the log tells stays.
pub(super) fn add(connect: &ConnectOptions, changes: &mut [RankedChange]) {
    let server = connect.server();
    if let Err(error) = add_all(connect, changes) {
        warn(&format!(
            "{server}: who was connected, and how many rows the tables have, can't be told: {error}"
        ));
    }
}

fn add_all(connect: &ConnectOptions, changes: &mut [RankedChange]) -> binlogz_source::Result<()> {
    let mut connection = Connection::open(connect)?;
    add_table_rows(connect, &mut connection, changes)?;
    sessions::add_accounts(connect, &mut connection, changes)
}

/// What goes with deleted rows by foreign keys, and is in no log of this server.
pub(super) fn cascades(connect: &ConnectOptions) -> CascadeEstimates {
    asked_cascades(connect).unwrap_or_else(|error| {
        let server = connect.server();
        warn(&format!(
            "{server}: which rows foreign keys took along with deleted ones can't be told: {error}"
        ));
        CascadeEstimates::default()
    })
}

fn asked_cascades(connect: &ConnectOptions) -> binlogz_source::Result<CascadeEstimates> {
    let server = connect.server();
    let mut connection = Connection::open(connect)?;
    // Since 9.6 what they do is in the log, unless this is on. Earlier servers and MariaDB lack it, and log nothing of it.
    for row in connection.query(NATIVE_FOREIGN_KEYS)? {
        if AnswerFields::first_of(&server, NATIVE_FOREIGN_KEYS, vec![row])?.text(1)? == "OFF" {
            return Ok(CascadeEstimates::default());
        }
    }
    let mut keys = Vec::new();
    let mut tables = BTreeSet::new();
    for row in connection.query(CASCADING_KEYS)? {
        let key = AnswerFields::first_of(&server, CASCADING_KEYS, vec![row])?;
        let [parent, child] = [(key.text(0)?, key.text(1)?), (key.text(2)?, key.text(3)?)]
            .map(|(database, table)| (database.to_owned(), table.to_owned()));
        keys.push(CascadingKey {
            parent: table_name(&parent),
            child: table_name(&child),
            deletes: key.text(4)? == "CASCADE",
        });
        tables.extend([parent, child]);
    }
    if tables.len() > TABLES_MAX {
        warn(&format!(
            "{server}: of {} tables with foreign keys, what goes with the rows of {TABLES_MAX} is told",
            tables.len()
        ));
    }
    let known = table_rows(&server, &mut connection, &tables)?;
    let known = known.iter().map(|(table, rows)| (table_name(table), *rows)).collect();
    Ok(CascadeEstimates::new(&keys, &known))
}

fn table_name((database, table): &(String, String)) -> TableName {
    TableName { database: database.as_bytes().into(), table: table.as_bytes().into() }
}

/// Adds how many rows the tables have, by information_schema's estimate.
fn add_table_rows(
    connect: &ConnectOptions,
    connection: &mut Connection,
    changes: &mut [RankedChange],
) -> binlogz_source::Result<()> {
    let tables = changes.iter().flat_map(RankedChange::tables).collect();
    let known = table_rows(&connect.server(), connection, &tables)?;
    for table in changes.iter_mut().flat_map(|change| &mut change.transaction.tables) {
        let [database, name] =
            [&table.name.database, &table.name.table].map(|text| String::from_utf8_lossy(text).into_owned());
        table.rows_now = known.get(&(database, name)).copied();
    }
    Ok(())
}

/// How many rows tables have, by information_schema's estimate.
fn table_rows(
    server: &str,
    connection: &mut Connection,
    tables: &BTreeSet<(String, String)>,
) -> binlogz_source::Result<HashMap<(String, String), u64>> {
    let mut known = HashMap::new();
    if tables.is_empty() {
        return Ok(known);
    }
    connection.query(FRESH)?;
    let in_sql =
        |(database, table): &(String, String)| format!("({}, {})", hexadecimal(database), hexadecimal(table));
    let names = tables.iter().take(TABLES_MAX).map(in_sql).collect::<Vec<_>>().join(", ");
    let statement = format!(
        "SELECT table_schema, table_name, table_rows FROM information_schema.tables WHERE (table_schema, table_name) IN ({names}) AND \
         table_rows IS NOT NULL"
    );
    for row in connection.query(&statement)? {
        let table = AnswerFields::first_of(server, &statement, vec![row])?;
        let rows: u64 = table.parsed(2, "a number of rows")?;
        known.insert((table.text(0)?.to_owned(), table.text(1)?.to_owned()), rows);
    }
    Ok(known)
}
