//! Facts that the server has beyond its logs: how many rows the tables have, and who was connected.

use std::collections::{BTreeSet, HashMap};

use binlogz_source::{AnswerFields, ConnectOptions, Connection};
use binlogz_triage::RankedChange;

use super::sessions;
use super::sql_text::hexadecimal;
use crate::failure::warn;

/// Tables that are asked for: those of the changes that are shown.
const TABLES_MAX: usize = 500;
/// Since 8.0 a server has figures of up to a day ago, unless it is told otherwise. MariaDB passes over such a comment.
const FRESH: &str = "SET @binlogz = 0 /*!80000 , SESSION information_schema_stats_expiry = 0 */";

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

/// Adds how many rows the tables have, by information_schema's estimate.
fn add_table_rows(
    connect: &ConnectOptions,
    connection: &mut Connection,
    changes: &mut [RankedChange],
) -> binlogz_source::Result<()> {
    let server = connect.server();
    let tables: BTreeSet<_> = changes.iter().flat_map(RankedChange::tables).take(TABLES_MAX).collect();
    if tables.is_empty() {
        return Ok(());
    }
    connection.query(FRESH)?;
    let in_sql =
        |(database, table): &(String, String)| format!("({}, {})", hexadecimal(database), hexadecimal(table));
    let names = tables.iter().map(in_sql).collect::<Vec<_>>().join(", ");
    let statement = format!(
        "SELECT table_schema, table_name, table_rows FROM information_schema.tables WHERE (table_schema, table_name) IN ({names}) AND \
         table_rows IS NOT NULL"
    );
    let mut known = HashMap::new();
    for row in connection.query(&statement)? {
        let table = AnswerFields::first_of(&server, &statement, vec![row])?;
        let rows: u64 = table.parsed(2, "a number of rows")?;
        known.insert((table.text(0)?.to_owned(), table.text(1)?.to_owned()), rows);
    }
    for table in changes.iter_mut().flat_map(|change| &mut change.transaction.tables) {
        let [database, name] =
            [&table.name.database, &table.name.table].map(|text| String::from_utf8_lossy(text).into_owned());
        table.rows_now = known.get(&(database, name)).copied();
    }
    Ok(())
}
