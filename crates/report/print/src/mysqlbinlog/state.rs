//! State that must see all events in order: which events were selected so far, which settings were printed last, what is
//! open. Everything else can be done on any core.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use binlogz_binlog::EventHeader;
use binlogz_binlog::event::TableId;

use super::kept::{KEEP_FROM, KeptStatement};
use crate::met::MetRequests;

/// The state between two events. Cheap to clone: each batch begins with a copy.
#[derive(Debug, Clone, Default)]
pub struct MysqlbinlogState {
    /// Events seen, whether or not they were shown.
    pub(super) entries: u64,
    /// An event was late enough, and far enough from the first: from now on all are.
    pub(super) started: bool,
    /// When the open transaction was committed first, in microseconds since 1970, if times are chosen.
    pub(super) committed: Option<u64>,
    /// Transactions that are not to be shown, by their GTID.
    pub(super) filtered_by_gtid: bool,
    pub(super) session: PrintedSettings,
    /// A log was begun: the next format description ends it.
    pub(super) begun: bool,
    pub(super) in_transaction: bool,
    /// A GTID was shown, and nothing of its transaction yet.
    pub(super) seen_gtid: bool,
    /// The payload whose events go by is not shown.
    pub(super) payload_hidden: bool,
    /// Part of the transaction was not shown.
    pub(super) skipped_in_transaction: bool,
    pub(super) printed_format_description: bool,
    /// Row events were shown whose statement has not ended.
    pub(super) rows_open: bool,
    /// The `BINLOG` statement of the shown rows has to be closed.
    pub(super) body_open: bool,
    /// Part of the open statement waits for its end.
    pub(super) rows_waiting: bool,
    /// Bytes of the events that wait.
    pub(super) open_size: u64,
    /// The waiting events that are kept.
    pub(super) kept: KeptStatement,
    /// From the last GTID: whether table maps mark generated invisible primary keys.
    pub(super) immediate_server_version: u32,
    /// Tables whose table map was shown in the open statement.
    pub(super) known_tables: Vec<TableId>,
    /// Tables whose rows are not shown.
    pub(super) ignored_tables: Vec<TableId>,
    /// Events that are printed with the next statement.
    pub(super) buffered: Vec<BufferedEvent>,
    /// The files of LOAD DATA, by number.
    pub(super) load_files: BTreeMap<u32, PathBuf>,
    /// Names of files made ahead of the text that mentions them.
    pub(super) made_files: VecDeque<PathBuf>,
    /// Why nothing more is shown.
    pub(super) stopped: Option<PrintStop>,
    /// Warnings for stderr, each given once.
    pub(super) warnings: Vec<String>,
    pub(super) warned_of_database: bool,
    /// Which log of the input, where it begins in the input, and how far it goes.
    pub(super) log_number: u64,
    pub(super) log_begin: u64,
    pub(super) log_end: u64,
    /// Shown instead of a position, for the format description before `--start-position`.
    pub(super) skipped_to: Option<u64>,
    pub(super) skipped_end: u64,
    /// The end of the format description that a server sent before the requested events.
    pub(super) description_end: u64,
    /// The requests met so far.
    pub(super) met: MetRequests,
    /// A format description was held back until the first event to be shown is found.
    pub(super) held_format_description: bool,
}

/// Why nothing more is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PrintStop {
    /// Everything asked for was shown.
    Asked,
    /// Something can't be shown; in mysqlbinlog's words.
    Error(String),
}

/// An event that is printed with the next statement.
#[derive(Debug, Clone)]
pub(super) struct BufferedEvent {
    pub(super) header: EventHeader,
    /// The `end_log_pos` to show.
    pub(super) end_log_pos: u32,
    pub(super) position: u64,
    pub(super) bytes: std::sync::Arc<[u8]>,
    pub(super) checksum: Option<u32>,
    pub(super) checksum_size: usize,
}

/// The settings printed last.
#[derive(Debug, Clone, Default)]
pub(super) struct PrintedSettings {
    pub(super) database: Vec<u8>,
    pub(super) thread_id: Option<u32>,
    pub(super) flags2: Option<u32>,
    pub(super) sql_mode: Option<u64>,
    pub(super) auto_increment: (u16, u16),
    pub(super) charset: Option<[u16; 3]>,
    pub(super) time_zone: Vec<u8>,
    pub(super) lc_time_names: Option<u16>,
    pub(super) collation_database: Option<u16>,
    pub(super) default_collation: Option<u16>,
    pub(super) cascade_triggers: u8,
    /// The settings of the last statement as they are in its event, and whether all of them are shown only
    /// when they change.
    pub(super) settings: Vec<u8>,
    pub(super) settings_alone: bool,
}

impl MysqlbinlogState {
    /// The state before the first log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prepares for the next input.
    pub fn begin_log(&mut self) {
        (self.log_number, self.log_begin, self.log_end) = (0, 0, 0);
        (self.skipped_to, self.skipped_end) = (None, 0);
    }

    /// Begins a transaction, after its GTID.
    pub(super) fn begin_transaction(&mut self) {
        self.in_transaction = true;
        self.seen_gtid = false;
    }

    /// Ends the transaction.
    pub(super) fn end_transaction(&mut self) {
        self.in_transaction = false;
        self.skipped_in_transaction = false;
        self.seen_gtid = false;
    }

    /// Ends a statement in rows.
    pub(super) fn end_rows(&mut self) {
        self.known_tables.clear();
        self.rows_open = false;
        self.body_open = false;
        self.rows_waiting = false;
        if self.open_size > KEEP_FROM {
            self.kept = KeptStatement::default();
        }
        self.open_size = 0;
    }

    /// Why nothing more is shown, if that is so.
    pub fn stopped(&self) -> Option<&PrintStop> {
        self.stopped.as_ref()
    }

    /// The requests met so far.
    pub fn met(&self) -> MetRequests {
        MetRequests { entries: self.entries, ..self.met }
    }

    /// Takes the warnings for stderr.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }
}
