//! Which sessions and applier threads hold which value of the compression switch: each keeps the value it began with.

use binlogz_source::Error;

use super::{COMPRESSION, LEVEL};
use crate::ask::{Fact, ServerAsker, TextRow};

/// Threads of one account with one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) kind: HolderKind,
    pub(crate) user: String,
    /// Which variable.
    pub(crate) variable: String,
    pub(crate) value: String,
    pub(crate) count: u64,
}

/// A thread's purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HolderKind {
    Session,
    Applier,
}

pub(super) fn gather(asker: &mut ServerAsker<'_>) -> Result<Fact<Vec<Holder>>, Error> {
    let statement = format!(
        "SELECT t.NAME, t.PROCESSLIST_USER, v.VARIABLE_NAME, v.VARIABLE_VALUE, COUNT(*) \
         FROM performance_schema.variables_by_thread v JOIN performance_schema.threads t USING (THREAD_ID) \
         WHERE v.VARIABLE_NAME IN ('{COMPRESSION}', '{LEVEL}') AND t.PROCESSLIST_ID <> CONNECTION_ID() \
         AND t.PROCESSLIST_COMMAND NOT LIKE 'Binlog Dump%' AND t.PROCESSLIST_COMMAND <> 'Daemon' \
         GROUP BY t.NAME, t.PROCESSLIST_USER, v.VARIABLE_NAME, v.VARIABLE_VALUE \
         ORDER BY t.PROCESSLIST_USER, t.NAME, v.VARIABLE_NAME, v.VARIABLE_VALUE"
    );
    let rows = asker.rows(&statement, "SELECT ON performance_schema.*")?;
    Ok(rows.map(|rows| rows.iter().filter_map(holder).collect()))
}

fn holder(row: &TextRow) -> Option<Holder> {
    let kind = match row.get(0)?.strip_prefix("thread/sql/")? {
        "one_connection" => HolderKind::Session,
        // Their names before 8.0.26.
        "replica_sql" | "replica_worker" | "slave_sql" | "slave_worker" => HolderKind::Applier,
        _ => return None,
    };
    let count = row.number(4)?;
    Some(Holder { kind, user: row.text(1), variable: row.text(2), value: row.text(3), count })
}
