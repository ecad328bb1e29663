//! Whether the account may run the statements that take a transaction back.
//!
//! The server itself is asked, whatever gave the account its rights: EXPLAIN needs those of the statement, and BINLOG without an event
//! changes nothing.

use binlogz_source::{ConnectOptions, Connection};
use binlogz_triage::TriagedTransaction;

/// The server's errors of a right that is missing: on a table, and in general.
const TABLE_ACCESS_DENIED: u16 = 1142;
const SPECIFIC_ACCESS_DENIED: u16 = 1227;

/// A right on a table, and a statement that needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NeededRight {
    right: String,
    statement: String,
}

impl NeededRight {
    /// The rights for taking the rows of a transaction back, row by row.
    pub(super) fn of(transaction: &TriagedTransaction) -> Vec<NeededRight> {
        let mut needed = Vec::new();
        for table in &transaction.tables {
            let [database, name] =
                [&table.name.database, &table.name.table].map(|text| String::from_utf8_lossy(text));
            let quoted = format!("`{}`.`{}`", database.replace('`', "``"), name.replace('`', "``"));
            let rows = table.rows;
            // The error for a column that isn't there comes after that for the right.
            for (count, right, statement) in [
                (rows.deletes, "INSERT", format!("EXPLAIN INSERT INTO {quoted} VALUES ()")),
                (rows.updates, "UPDATE", format!("EXPLAIN UPDATE {quoted} SET `no such column` = 1")),
                (rows.inserts, "DELETE", format!("EXPLAIN DELETE FROM {quoted}")),
            ] {
                if count > 0 {
                    let right = format!("{right} on {database}.{name}");
                    needed.push(NeededRight { right, statement });
                }
            }
        }
        needed
    }

    /// The rights that the mysql client needs to apply rows of a binary log.
    pub(super) fn of_log() -> Vec<NeededRight> {
        vec![NeededRight { right: "BINLOG_ADMIN, or SUPER".to_owned(), statement: "BINLOG ''".to_owned() }]
    }

    /// The first of these that the account lacks.
    pub(super) fn missing(
        needed: &[NeededRight],
        connect: &ConnectOptions,
    ) -> binlogz_source::Result<Option<String>> {
        let mut connection = Connection::open(connect)?;
        for NeededRight { right, statement } in needed {
            let Err(error) = connection.query(statement) else { continue };
            match error.server_error().map(|refusal| refusal.code) {
                Some(TABLE_ACCESS_DENIED | SPECIFIC_ACCESS_DENIED) => return Ok(Some(right.clone())),
                Some(_) => {}
                None => return Err(error),
            }
        }
        Ok(None)
    }
}
