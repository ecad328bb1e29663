//! What changes the text, and which events are shown: mysqlbinlog's options, resolved.

use std::path::PathBuf;

use binlogz_binlog::gtid::{Gtid, GtidSet};

/// `--base64-output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base64Output {
    /// Format descriptions and row events stand in `BINLOG` statements.
    #[default]
    Auto,
    /// Nothing does; a row event is an error.
    Never,
    /// Nothing does; row events are shown by `--verbose` alone.
    DecodeRows,
}

/// What a run prints.
#[derive(Debug, Clone)]
pub struct PrintOptions {
    /// `--base64-output`.
    pub base64_output: Base64Output,
    /// How often `--verbose` was given.
    pub verbose: u32,
    /// `--short-form`: no comments, no row events.
    pub short_form: bool,
    /// `--hexdump`.
    pub hexdump: bool,
    /// `--print-table-metadata`.
    pub print_table_metadata: bool,
    /// `--require-row-format`.
    pub require_row_format: bool,
    /// `--idempotent`.
    pub idempotent: bool,
    /// `--disable-log-bin`.
    pub disable_log_bin: bool,
    /// `--set-charset`.
    pub set_charset: Option<Vec<u8>>,
    /// `--skip-gtids`.
    pub skip_gtids: bool,
    /// `--force-if-open`: a log in use is no error.
    pub force_if_open: bool,
    /// Where the files of `LOAD DATA` are put.
    pub local_load: PathBuf,
    /// `--rewrite-db`: old and new names.
    pub rewrite_db: Vec<(Vec<u8>, Vec<u8>)>,
    /// Which events.
    pub selection: Selection,
}

impl Default for PrintOptions {
    fn default() -> Self {
        PrintOptions {
            base64_output: Base64Output::Auto,
            verbose: 0,
            short_form: false,
            hexdump: false,
            print_table_metadata: false,
            require_row_format: false,
            idempotent: false,
            disable_log_bin: false,
            set_charset: None,
            skip_gtids: false,
            force_if_open: true,
            local_load: std::env::temp_dir(),
            rewrite_db: Vec::new(),
            selection: Selection::default(),
        }
    }
}

/// Which events are shown.
#[derive(Debug, Clone)]
pub struct Selection {
    /// `--offset`: so many entries are skipped first.
    pub offset: u64,
    /// `--start-datetime`, in seconds since 1970: up to the first event of that time.
    pub start_time: Option<i64>,
    /// `--stop-datetime`.
    pub stop_time: Option<i64>,
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

impl Default for Selection {
    fn default() -> Self {
        Selection {
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

/// Of one log, where to begin and to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    /// `--start-position`.
    pub start: u64,
    /// `--stop-position`.
    pub stop: u64,
    /// Of a server's log, where the server was asked to begin, if not at the begin of the file: what it sends is
    /// counted from there, behind the format description, and mysqlbinlog counts each later file from there too.
    pub sent_from: Option<u64>,
}

impl Default for Positions {
    fn default() -> Self {
        Positions { start: 4, stop: u64::MAX, sent_from: None }
    }
}
