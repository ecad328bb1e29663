//! The options that change the text: mysqlbinlog's, resolved.

use std::path::PathBuf;

use crate::selection::EventSelection;

/// `--base64-output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Base64Output {
    /// Format descriptions and row events are in `BINLOG` statements.
    #[default]
    Auto,
    /// There are no `BINLOG` statements; a row event is an error.
    Never,
    /// There are no `BINLOG` statements; row events are shown by `--verbose` alone.
    DecodeRows,
}

/// The options of a run.
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
    /// Which events are shown.
    pub selection: EventSelection,
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
            selection: EventSelection::default(),
        }
    }
}
