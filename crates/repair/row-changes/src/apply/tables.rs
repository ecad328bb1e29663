//! Checks that the server's tables take changes exactly as they were logged: their engine has transactions, and they have
//! no triggers, which would change more.

use super::session::{AnswerRow, ApplySession};
use super::{ApplyError, NOTHING_YET};
use crate::sql::text::push_quoted;

/// Checks tables, by database and name.
pub(crate) fn check(session: &mut ApplySession, tables: &[(&str, &str)]) -> Result<(), ApplyError> {
    for (database, table) in tables {
        let mut names = Vec::new();
        push_quoted(&mut names, database.as_bytes());
        names.extend_from_slice(b", ");
        push_quoted(&mut names, table.as_bytes());
        let names = String::from_utf8_lossy(&names).into_owned();
        let mut ask = |statement: String| {
            let rows = session.rows(&statement);
            rows.map_err(|error| {
                ApplyError::server(format!("looking at {database}.{table}"), error, NOTHING_YET)
            })
        };
        let rows = ask(format!(
            "SELECT t.engine, e.transactions FROM information_schema.tables t LEFT JOIN information_schema.engines e \
             ON e.engine = t.engine WHERE (t.table_schema, t.table_name) = ({names})"
        ))?;
        let Some(row) = rows.first() else {
            return Err(ApplyError::Unfit(format!("{database}.{table} is not on the server")));
        };
        if column(row, 1) != "YES" {
            let engine = column(row, 0);
            return Err(ApplyError::Unfit(format!(
                "{database}.{table} has the engine {engine}, which has no transactions; --format sql writes statements"
            )));
        }
        let rows = ask(format!(
            "SELECT trigger_name FROM information_schema.triggers WHERE (event_object_schema, event_object_table) = \
             ({names})"
        ))?;
        if !rows.is_empty() {
            let triggers: Vec<_> = rows.iter().map(|row| column(row, 0)).collect();
            return Err(ApplyError::Unfit(format!(
                "{database}.{table} has triggers, which would run for each row: {}; --format binlog runs none",
                triggers.join(", ")
            )));
        }
    }
    Ok(())
}

fn column(row: &AnswerRow, index: usize) -> String {
    let bytes = row.get(index).and_then(Option::as_deref).unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}
