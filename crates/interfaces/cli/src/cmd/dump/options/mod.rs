//! The options of `dump`: mysqlbinlog's by their own names, and a few of our own.
//!
//! ```text
//! option files, then arguments     arguments.rs
//!   │ one option after the other   getopt.rs        MySQL's rules of writing options
//!   │   its definition             definitions.rs   the one table of options
//! Options                          check.rs         what does not go together
//! ```
//!
//! Nothing is opened or connected here, except that option files are read: [`parse`] returns plain data, or
//! the text to print and the exit code. Texts and exit codes of bad usage are those of mysqlbinlog 9.7.4.

mod arguments;
mod check;
mod choice;
mod clap;
mod connection;
mod definition;
mod definitions;
mod getopt;
mod help;
mod number;

use std::ffi::OsString;
use std::path::PathBuf;

use binlogz_binlog::gtid::{Gtid, GtidSet};

use binlogz_change_formats::{BigintUnsigned, ChangeFormat, Decimals};
use binlogz_flow::BoundaryMoment;
use binlogz_print::mysqlbinlog::Base64Output;

pub(crate) use self::clap::DumpCommand;
pub(crate) use arguments::{ArgumentsOutcome, ParsedArguments, parse};
pub(crate) use help::summary;

/// Where the first event of every log stands: the least position.
pub(crate) const POSITION_MIN: u64 = 4;

/// The name that stands for the source where no other is given.
const TOPIC_PREFIX: &str = "binlogz";

/// Marks of lines for stderr.
const WARNING: &str = "[Warning]";
const ERROR: &str = "[ERROR]";

/// The options of `dump`. Each field has the name of its option, or says which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DumpSettings {
    /// The program has mysqlbinlog's name: then its exit codes are mysqlbinlog's too.
    pub(crate) called_mysqlbinlog: bool,
    /// The logs; `-` is stdin.
    pub(crate) logs: Vec<PathBuf>,
    pub(crate) format: DumpFormat,

    // Which events.
    pub(crate) database: Option<Vec<u8>>,
    pub(crate) rewrite_db: Vec<RewriteDb>,
    pub(crate) tables: Vec<TableOption>,
    pub(crate) offset: u64,
    /// 0: of all servers.
    pub(crate) server_id: u64,
    pub(crate) server_id_bits: u64,
    /// Where to start in the first log.
    pub(crate) start_position: u64,
    /// Where to stop in the last log.
    pub(crate) stop_position: Option<u64>,
    /// In seconds since 1970.
    pub(crate) start_datetime: Option<BoundaryMoment>,
    /// In seconds since 1970.
    pub(crate) stop_datetime: Option<BoundaryMoment>,
    pub(crate) include_gtids: Option<GtidSet>,
    pub(crate) exclude_gtids: Option<GtidSet>,
    pub(crate) stop_before_gtid: Option<Gtid>,

    // What is shown of them.
    pub(crate) base64_output: Base64Output,
    /// How often `-v` was said.
    pub(crate) verbose: u32,
    pub(crate) short_form: bool,
    pub(crate) hexdump: bool,
    pub(crate) print_table_metadata: bool,
    pub(crate) skip_gtids: bool,
    pub(crate) disable_log_bin: bool,
    pub(crate) idempotent: bool,
    pub(crate) require_row_format: bool,
    pub(crate) set_charset: Option<Vec<u8>>,
    pub(crate) binlog_row_event_max_size: u64,
    pub(crate) local_load: Option<PathBuf>,

    // How the logs are read.
    pub(crate) force_if_open: bool,
    pub(crate) force_read: bool,
    pub(crate) verify_binlog_checksum: bool,
    pub(crate) keyring: Option<PathBuf>,
    pub(crate) jobs: Option<std::num::NonZeroUsize>,

    // Logs of a server.
    pub(crate) read_from_remote_server: bool,
    pub(crate) remote_source: Option<RemoteSource>,
    pub(crate) to_last_log: bool,
    pub(crate) stop_never: bool,
    /// -1: not given.
    pub(crate) stop_never_slave_server_id: i64,
    /// -1: not given.
    pub(crate) connection_server_id: i64,
    pub(crate) raw: bool,
    pub(crate) follow: bool,
    pub(crate) offsets: Option<PathBuf>,
    /// In seconds.
    pub(crate) offsets_delay: u64,

    // Row changes in the formats of other programs.
    pub(crate) schema: Option<String>,
    pub(crate) exits: Option<PathBuf>,
    pub(crate) topic_prefix: String,
    pub(crate) decimal_handling_mode: Decimals,
    pub(crate) bigint_unsigned_handling_mode: BigintUnsigned,
    pub(crate) provide_transaction_metadata: bool,
    pub(crate) with_key: bool,

    /// The file to write, or, with `--raw`, the prefix of the file names.
    pub(crate) result_file: Option<PathBuf>,
    /// Options of the connection, by their names, in order: see [`DumpSettings::connect`].
    connection: Vec<(&'static str, Option<OsString>)>,

    // Said for mysqlbinlog's sake; nothing depends on them here.
    open_files_limit: u64,
    port: i64,
    compress: bool,
    zstd_compression_level: u64,
    get_server_public_key: bool,
    ssl_session_data_continue: bool,

    /// The texts that options were given, by name: for the table after the help.
    given: Vec<(&'static str, OsString)>,
}

impl Default for DumpSettings {
    fn default() -> Self {
        DumpSettings {
            called_mysqlbinlog: false,
            logs: Vec::new(),
            format: DumpFormat::default(),
            database: None,
            rewrite_db: Vec::new(),
            tables: Vec::new(),
            offset: 0,
            server_id: 0,
            server_id_bits: 32,
            start_position: POSITION_MIN,
            stop_position: None,
            start_datetime: None,
            stop_datetime: None,
            include_gtids: None,
            exclude_gtids: None,
            stop_before_gtid: None,
            base64_output: Base64Output::default(),
            verbose: 0,
            short_form: false,
            hexdump: false,
            print_table_metadata: false,
            skip_gtids: false,
            disable_log_bin: false,
            idempotent: false,
            require_row_format: false,
            set_charset: None,
            // As mysqlbinlog has it: the largest multiple of 256 in 32 bits.
            binlog_row_event_max_size: 4_294_967_040,
            local_load: None,
            force_if_open: true,
            force_read: false,
            verify_binlog_checksum: false,
            keyring: None,
            jobs: None,
            read_from_remote_server: false,
            remote_source: None,
            to_last_log: false,
            stop_never: false,
            stop_never_slave_server_id: -1,
            connection_server_id: -1,
            raw: false,
            follow: false,
            offsets: None,
            offsets_delay: 0,
            schema: None,
            exits: None,
            topic_prefix: TOPIC_PREFIX.into(),
            decimal_handling_mode: Decimals::default(),
            bigint_unsigned_handling_mode: BigintUnsigned::default(),
            provide_transaction_metadata: false,
            with_key: false,
            result_file: None,
            connection: Vec::new(),
            open_files_limit: 64,
            port: 0,
            compress: false,
            zstd_compression_level: 3,
            get_server_public_key: false,
            ssl_session_data_continue: false,
            given: Vec::new(),
        }
    }
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DumpFormat {
    /// mysqlbinlog's own.
    #[default]
    Sql,
    /// One JSON object a line.
    Jsonl,
    /// Debezium's change events.
    Debezium,
    /// Maxwell's lines.
    Maxwell,
    /// canal's flat messages.
    Canal,
}

impl DumpFormat {
    /// The format's name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            DumpFormat::Sql => "sql",
            DumpFormat::Jsonl => "jsonl",
            DumpFormat::Debezium => "debezium",
            DumpFormat::Maxwell => "maxwell",
            DumpFormat::Canal => "canal",
        }
    }

    /// The format of row changes, if it is one.
    pub(crate) fn of_changes(self) -> Option<ChangeFormat> {
        match self {
            DumpFormat::Sql | DumpFormat::Jsonl => None,
            DumpFormat::Debezium => Some(ChangeFormat::Debezium),
            DumpFormat::Maxwell => Some(ChangeFormat::Maxwell),
            DumpFormat::Canal => Some(ChangeFormat::Canal),
        }
    }
}

/// `--rewrite-db=from->to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RewriteDb {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
}

/// `--table=DB.TABLE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableOption {
    pub(crate) database: Vec<u8>,
    pub(crate) table: Vec<u8>,
}

/// How a server's log is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteSource {
    /// By file and position.
    NonGtids,
    /// By file and position, without the transactions of `--exclude-gtids`.
    Gtids,
}
