//! Which events are shown: mysqlbinlog's options, resolved. Its text and JSON lines both use them.

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_flow::BoundaryMoment;

/// Which events are shown.
#[derive(Debug, Clone)]
pub struct EventSelection {
    /// `--offset`: the number of entries to skip first.
    pub offset: u64,
    /// `--start-datetime`: events are skipped up to the first one of that time.
    pub start_time: Option<BoundaryMoment>,
    /// `--stop-datetime`.
    pub stop_time: Option<BoundaryMoment>,
    /// `--server-id`.
    pub server_id: Option<u32>,
    /// Which bits of a server id count (`--server-id-bits`).
    pub server_id_mask: u32,
    /// `--database`.
    pub database: Option<Vec<u8>>,
    /// `--table`: only these, by database and table; all if empty.
    pub tables: Vec<(Vec<u8>, Vec<u8>)>,
    /// `--include-gtids`.
    pub include_gtids: Option<GtidSet>,
    /// `--exclude-gtids`.
    pub exclude_gtids: Option<GtidSet>,
    /// `--stop-before-gtid`.
    pub stop_before_gtid: Option<Gtid>,
}

impl EventSelection {
    /// Whether only rows of some tables are shown.
    pub fn chooses_tables(&self) -> bool {
        self.database.is_some() || !self.tables.is_empty()
    }

    /// Whether the rows of a table are shown.
    pub fn has_table(&self, database: &[u8], table: &[u8]) -> bool {
        self.database.as_deref().is_none_or(|name| name == database)
            && (self.tables.is_empty() || self.place_of(database, table).is_some())
    }

    /// The place of a table in `--table`.
    pub fn place_of(&self, database: &[u8], table: &[u8]) -> Option<usize> {
        self.tables.iter().position(|(a, b)| (&a[..], &b[..]) == (database, table))
    }
}

impl Default for EventSelection {
    fn default() -> Self {
        EventSelection {
            offset: 0,
            start_time: None,
            stop_time: None,
            server_id: None,
            server_id_mask: u32::MAX,
            database: None,
            tables: Vec::new(),
            include_gtids: None,
            exclude_gtids: None,
            stop_before_gtid: None,
        }
    }
}

/// Where to begin and to end in one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// `--start-position`.
    pub start: u64,
    /// `--stop-position`.
    pub stop: u64,
    /// For a server's log: where we asked the server to begin, if not at the start of the file. The bytes it sends are
    /// counted from there, after the format description, and mysqlbinlog counts each later file from there too.
    pub sent_from: Option<u64>,
}

impl Default for LogBounds {
    fn default() -> Self {
        LogBounds { start: 4, stop: u64::MAX, sent_from: None }
    }
}
