//! The options of `stats` that choose transactions and tables.

use binlogz_binlog::gtid::GtidSet;
use binlogz_stats::{StatsFilter, TableName};
use clap::Args;

use crate::cmd::row_changes::table;
use crate::time::GivenTime;

/// What is counted; everything by default.
#[derive(Debug, Args)]
pub(super) struct StatsFilterArgs {
    /// Count only the rows of this table, and only transactions that have some; may be repeated
    #[arg(long, value_name = "DB.TABLE", value_parser = table)]
    table: Vec<(String, String)>,
    /// Count only transactions committed at this time or later: '2026-11-22 23:10', 23:10, 'yesterday 23:10', -1h …
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start_datetime: Option<GivenTime>,
    /// Count only transactions committed before this time
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, alias = "until-datetime")]
    stop_datetime: Option<GivenTime>,
    /// Count only the transactions of this GTID set
    #[arg(long, value_name = "SET", alias = "gtids")]
    include_gtids: Option<GtidSet>,
}

impl StatsFilterArgs {
    pub(super) fn filter(&self) -> StatsFilter {
        let bytes = |name: &String| name.as_bytes().into();
        let tables = self
            .table
            .iter()
            .map(|(database, table)| TableName { database: bytes(database), table: bytes(table) });
        StatsFilter {
            tables: tables.collect(),
            start_time: self.start_datetime.map(GivenTime::microseconds),
            stop_time: self.stop_datetime.map(GivenTime::microseconds),
            gtids: self.include_gtids.clone(),
        }
    }
}
