//! The table of all options of `dump`, with the parsers of their values. Parsing, help, completions and man
//! page use this table; mysqlbinlog's options are in its order.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;

use binlogz_change_formats::{BigintUnsigned, Decimals};
use binlogz_flow::BoundaryMoment;
use binlogz_print::mysqlbinlog::Base64Output;
use binlogz_source::SslMode;

use super::choice::choose;
use super::definition::{OptionDefinition, OptionKind};
use super::number::UnsignedLimits;
use super::{DumpFormat, DumpSettings, POSITION_MIN, RemoteSource, RewriteDb, TableOption};
use crate::time::{GivenTime, NoTime};

/// The groups of option files that concern this program.
pub(super) const GROUPS: [&str; 2] = ["mysqlbinlog", "client"];

/// The range of `--server-id` and the like.
const SERVER_ID_OR_NONE: RangeInclusive<i64> = -1..=u32::MAX as i64;

const BASE64_OUTPUTS: [(&str, Base64Output); 4] = [
    ("NEVER", Base64Output::Never),
    ("AUTO", Base64Output::Auto),
    ("UNSPEC", Base64Output::Auto),
    ("DECODE-ROWS", Base64Output::DecodeRows),
];
const REMOTE_SOURCES: [(&str, RemoteSource); 2] =
    [("BINLOG-DUMP-NON-GTIDS", RemoteSource::NonGtids), ("BINLOG-DUMP-GTIDS", RemoteSource::Gtids)];
const PROTOCOLS: [(&str, &str); 4] =
    [("TCP", "TCP"), ("SOCKET", "SOCKET"), ("PIPE", "PIPE"), ("MEMORY", "MEMORY")];
const SSL_MODES: [(&str, SslMode); 5] = [
    ("DISABLED", SslMode::Disabled),
    ("PREFERRED", SslMode::Preferred),
    ("REQUIRED", SslMode::Required),
    ("VERIFY_CA", SslMode::VerifyCa),
    ("VERIFY_IDENTITY", SslMode::VerifyIdentity),
];
const FIPS_MODES: [(&str, &str); 3] = [("OFF", "OFF"), ("ON", "ON"), ("STRICT", "STRICT")];
const FORMATS: [(&str, DumpFormat); 6] = [
    ("sql", DumpFormat::Sql),
    ("jsonl", DumpFormat::Jsonl),
    ("debezium", DumpFormat::Debezium),
    ("maxwell", DumpFormat::Maxwell),
    ("canal", DumpFormat::Canal),
    ("text", DumpFormat::Sql),
];
const DECIMALS: [(&str, Decimals); 3] =
    [("precise", Decimals::Precise), ("string", Decimals::String), ("double", Decimals::Double)];
const BIGINTS_UNSIGNED: [(&str, BigintUnsigned); 2] =
    [("long", BigintUnsigned::Long), ("precise", BigintUnsigned::Precise)];
/// A day: more than any reader takes.
const OFFSETS_DELAY: RangeInclusive<u64> = 0..=86_400;

/// The options.
pub(super) const OPTIONS: &[OptionDefinition] = &[
    OptionDefinition::new("help", OptionKind::Help, "Show this help").short('?'),
    OptionDefinition::text(
        "base64-output",
        "WHEN",
        |options, name, value| {
            options.base64_output = choose(name, &value.to_string_lossy(), &BASE64_OUTPUTS)?;
            Ok(())
        },
        "When events are printed as BINLOG statements: auto, where SQL can't say them; never; decode-rows, not \
         for rows, which -v shows as comments",
    ),
    OptionDefinition::connection("bind-address", "ADDRESS", "Connect from this address of this machine"),
    OptionDefinition::ignored("character-sets-dir", "DIR", "Taken and not needed: character sets are built in"),
    OptionDefinition::text(
        "database",
        "DB",
        |options, _, value| {
            options.database = Some(value.as_bytes().to_vec());
            Ok(())
        },
        "Only what concerns this database (not from a server)",
    )
    .short('d'),
    OptionDefinition::text(
        "rewrite-db",
        "FROM->TO",
        |options, _, value| {
            options.rewrite_db.push(rewrite_db(value)?);
            Ok(())
        },
        "Print what concerns one database as if it concerned another; may be repeated",
    ),
    OptionDefinition::new("debug", OptionKind::Disabled, "Not in this build").short('#'),
    OptionDefinition::new("debug-check", OptionKind::Disabled, "Not in this build"),
    OptionDefinition::new("debug-info", OptionKind::Disabled, "Not in this build"),
    OptionDefinition::connection("default-auth", "PLUGIN", "The authentication to begin with"),
    OptionDefinition::switch(
        "disable-log-bin",
        |options| &mut options.disable_log_bin,
        "Switch binary logging off in the output, so that replaying it is not logged again",
    )
    .short('D'),
    OptionDefinition::switch(
        "force-if-open",
        |options| &mut options.force_if_open,
        "Read logs that are in use, or were when the server crashed; on unless --skip-force-if-open",
    )
    .short('F'),
    OptionDefinition::switch(
        "force-read",
        |options| &mut options.force_read,
        "Go on after events that can't be read",
    )
    .short('f'),
    OptionDefinition::switch("hexdump", |options| &mut options.hexdump, "Show the bytes of each event").short('H'),
    OptionDefinition::connection("host", "HOST", "The server to read from").short('h'),
    OptionDefinition::switch(
        "idempotent",
        |options| &mut options.idempotent,
        "Have the server that replays the output ignore missing and duplicate rows",
    )
    .short('i'),
    OptionDefinition::text(
        "local-load",
        "DIR",
        |options, _, value| {
            options.local_load = Some(value.into());
            Ok(())
        },
        "Where the files of LOAD DATA INFILE statements are put",
    )
    .short('l'),
    OptionDefinition::unsigned("offset", |options| &mut options.offset, 0..=u64::MAX, "Skip the first N events")
        .short('o'),
    OptionDefinition::new("password", OptionKind::Password, "The password; without a value it is asked for").short('p'),
    OptionDefinition::ignored("plugin-dir", "DIR", "Taken and not needed: authentication is built in"),
    OptionDefinition::signed(
        "port",
        |options| &mut options.port,
        0..=i32::MAX as i64,
        "The server's port; 0: MYSQL_TCP_PORT, or 3306",
    )
    .short('P')
    .then(|options| {
        let port = options.port;
        options.connection.push(("port", (port != 0).then(|| port.to_string().into())));
    }),
    OptionDefinition::text(
        "protocol",
        "PROTOCOL",
        |options, name, value| {
            let protocol = choose(name, &value.to_string_lossy(), &PROTOCOLS)?;
            options.connection.push((name, Some(protocol.into())));
            Ok(())
        },
        "How to connect: TCP or SOCKET",
    ),
    OptionDefinition::switch(
        "read-from-remote-server",
        |options| &mut options.read_from_remote_server,
        "Read the logs from a server, by file and position",
    )
    .short('R')
    .then(|options| {
        options.remote_source.get_or_insert(RemoteSource::NonGtids);
    }),
    OptionDefinition::text(
        "read-from-remote-master",
        "HOW",
        set_remote_source,
        "The older name of --read-from-remote-source",
    )
    .deprecated("--read-from-remote-source"),
    OptionDefinition::text(
        "read-from-remote-source",
        "HOW",
        set_remote_source,
        "Read the logs from a server: BINLOG-DUMP-NON-GTIDS by file and position, BINLOG-DUMP-GTIDS also without \
         the transactions of --exclude-gtids",
    ),
    OptionDefinition::switch(
        "raw",
        |options| &mut options.raw,
        "Write the logs of a server to files of the same names, as they are",
    ),
    OptionDefinition::text(
        "result-file",
        "FILE",
        |options, _, value| {
            options.result_file = Some(value.into());
            Ok(())
        },
        "Print to this file; with --raw: a prefix for the file names",
    )
    .short('r'),
    OptionDefinition::unsigned(
        "server-id",
        |options| &mut options.server_id,
        0..=u64::MAX,
        "Only events that the server with this id wrote first",
    ),
    OptionDefinition::unsigned(
        "server-id-bits",
        |options| &mut options.server_id_bits,
        7..=32,
        "How many bits of a server id count",
    ),
    OptionDefinition::text(
        "set-charset",
        "CHARSET",
        |options, _, value| {
            options.set_charset = Some(value.as_bytes().to_vec());
            Ok(())
        },
        "Begin the output with SET NAMES",
    ),
    OptionDefinition::switch(
        "short-form",
        |options| &mut options.short_form,
        "Statements alone, without rows and comments",
    )
    .short('s')
    .deprecated(""),
    OptionDefinition::connection("socket", "PATH", "The server's socket").short('S'),
    OptionDefinition::connection("server-public-key-path", "FILE", "The server's public key, to send a password with"),
    OptionDefinition::switch(
        "get-server-public-key",
        |options| &mut options.get_server_public_key,
        "Ask the server for its public key",
    ),
    OptionDefinition::text(
        "ssl-mode",
        "MODE",
        |options, name, value| {
            let text = value.to_string_lossy();
            choose(name, &text, &SSL_MODES)?;
            let full = SSL_MODES.map(|(name, _)| (name, name));
            options.connection.push((name, Some(choose(name, &text, &full)?.into())));
            Ok(())
        },
        "How much TLS: DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
    ),
    OptionDefinition::connection("ssl-ca", "FILE", "Certificates of the authorities to trust"),
    OptionDefinition::connection("ssl-capath", "DIR", "Directory of such certificates"),
    OptionDefinition::connection("ssl-cert", "FILE", "Our certificate"),
    OptionDefinition::connection("ssl-cipher", "CIPHERS", "Ciphers up to TLS 1.2"),
    OptionDefinition::connection("ssl-key", "FILE", "The key of our certificate"),
    OptionDefinition::connection("ssl-crl", "FILE", "Revoked certificates"),
    OptionDefinition::connection("ssl-crlpath", "DIR", "Directory of files with revoked certificates"),
    OptionDefinition::connection("tls-version", "VERSIONS", "TLSv1.2, TLSv1.3 or both"),
    OptionDefinition::text(
        "ssl-fips-mode",
        "MODE",
        |options, name, value| {
            let mode = choose(name, &value.to_string_lossy(), &FIPS_MODES)?;
            options.connection.push((name, Some(mode.into())));
            Ok(())
        },
        "OFF; there is no FIPS mode here",
    ),
    OptionDefinition::connection("tls-ciphersuites", "SUITES", "Ciphers of TLS 1.3"),
    OptionDefinition::ignored("ssl-session-data", "FILE", "Taken and not needed: each connection has a session of its own"),
    OptionDefinition::switch(
        "ssl-session-data-continue-on-failed-reuse",
        |options| &mut options.ssl_session_data_continue,
        "Taken and not needed",
    ),
    OptionDefinition::connection("tls-sni-servername", "NAME", "The name of the server to ask for"),
    OptionDefinition::text(
        "start-datetime",
        "TIME",
        |options, _, value| {
            options.start_datetime = Some(datetime(value)?);
            Ok(())
        },
        "Begin with the first event of this time or later: '2026-11-22 23:10', 23:10, 'yesterday 23:10', -1h … With a fraction: with the first \
         transaction committed then, where MySQL logs microseconds, else by whole seconds",
    ),
    OptionDefinition::unsigned(
        "start-position",
        |options| &mut options.start_position,
        POSITION_MIN..=u64::MAX,
        "Begin at this offset of the first log",
    )
    .short('j'),
    OptionDefinition::text(
        "stop-datetime",
        "TIME",
        |options, _, value| {
            options.stop_datetime = Some(datetime(value)?);
            Ok(())
        },
        "Stop before the first event of this time or later",
    ),
    OptionDefinition::switch(
        "stop-never",
        |options| &mut options.stop_never,
        "Do not end with the server's last log, wait for more",
    )
    .then(|options| options.to_last_log |= options.stop_never),
    OptionDefinition::signed(
        "stop-never-slave-server-id",
        |options| &mut options.stop_never_slave_server_id,
        SERVER_ID_OR_NONE,
        "The older name of --connection-server-id",
    )
    .deprecated("--connection-server-id"),
    OptionDefinition::signed(
        "connection-server-id",
        |options| &mut options.connection_server_id,
        SERVER_ID_OR_NONE,
        "The server id to tell the server",
    ),
    OptionDefinition::unsigned(
        "stop-position",
        |options| options.stop_position.get_or_insert(u64::MAX),
        POSITION_MIN..=u64::MAX,
        "Stop before the first event at or after this offset of the last log",
    ),
    OptionDefinition::switch(
        "to-last-log",
        |options| &mut options.to_last_log,
        "Go on with the server's next logs, to the last",
    )
    .short('t'),
    OptionDefinition::connection("user", "USER", "Whom to log in as").short('u'),
    OptionDefinition::new(
        "verbose",
        OptionKind::Count(|options| &mut options.verbose),
        "Show rows as commented statements; twice: with the types of columns, and the statements that made them",
    )
    .short('v'),
    OptionDefinition::new("version", OptionKind::Version, "Show the version").short('V'),
    OptionDefinition::unsigned(
        "open-files-limit",
        |options| &mut options.open_files_limit,
        8..=u32::MAX as u64,
        "Taken and not needed",
    )
    .told_as("open_files_limit"),
    OptionDefinition::switch(
        "verify-binlog-checksum",
        |options| &mut options.verify_binlog_checksum,
        "Compare the checksum of each event",
    )
    .short('c'),
    OptionDefinition::new(
        "binlog-row-event-max-size",
        OptionKind::Unsigned(
            |options| &mut options.binlog_row_event_max_size,
            UnsignedLimits { range: 256..=u64::MAX, block: 256 },
        ),
        "Taken; events are printed as they stand in the log, as by mysqlbinlog",
    )
    .value("N"),
    OptionDefinition::switch(
        "skip-gtids",
        |options| &mut options.skip_gtids,
        "Without GTIDs: replayed transactions get new ones",
    ),
    OptionDefinition::text("include-gtids", "SET", set_gtids, "Only the transactions of this GTID set"),
    OptionDefinition::text("exclude-gtids", "SET", set_gtids, "All but the transactions of this GTID set"),
    OptionDefinition::switch(
        "print-table-metadata",
        |options| &mut options.print_table_metadata,
        "Show the columns of tables as far as the log tells them",
    ),
    OptionDefinition::switch("compress", |options| &mut options.compress, "Compress the connection with zlib, if the server can")
        .short('C')
        .deprecated("--compression-algorithms"),
    OptionDefinition::connection(
        "compression-algorithms",
        "LIST",
        "How the connection may be compressed: some of zlib, zstd and uncompressed",
    ),
    OptionDefinition::unsigned(
        "zstd-compression-level",
        |options| &mut options.zstd_compression_level,
        1..=22,
        "Level of --compression-algorithms=zstd",
    ),
    OptionDefinition::switch(
        "require-row-format",
        |options| &mut options.require_row_format,
        "End with an error at the first event that is not allowed in row-based replication",
    ),
    // What mysqlbinlog does not have.
    OptionDefinition::text(
        "keyring",
        "FILE",
        |options, _, value| {
            options.keyring = Some(value.into());
            Ok(())
        },
        "Read encrypted logs with the keys of this keyring file",
    ),
    OptionDefinition::text(
        "jobs",
        "N",
        |options, name, value| {
            let text = value.to_string_lossy();
            let jobs = text.parse().map_err(|_| format!("ERROR: --{name} is '{text}', expected a number above 0"))?;
            options.jobs = Some(jobs);
            Ok(())
        },
        "Threads to work with; by default one for each core",
    ),
    OptionDefinition::text(
        "table",
        "DB.TABLE",
        |options, name, value| {
            options.tables.push(table(name, value)?);
            Ok(())
        },
        "Only the rows of this table; may be repeated",
    ),
    OptionDefinition::text(
        "stop-before-gtid",
        "GTID",
        |options, name, value| {
            let text = value.to_string_lossy();
            let gtid = text.parse().map_err(|error| format!("ERROR: --{name} is '{text}': {error}"))?;
            options.stop_before_gtid = Some(gtid);
            Ok(())
        },
        "Stop before this transaction",
    ),
    OptionDefinition::text(
        "format",
        "FORMAT",
        |options, name, value| {
            options.format = choose(name, &value.to_string_lossy(), &FORMATS)?;
            Ok(())
        },
        "sql, jsonl, debezium, maxwell, canal or text; sql and text: as mysqlbinlog prints; jsonl: one JSON object a line; the others: row changes as these programs write them",
    ),
    OptionDefinition::text(
        "schema",
        "FILE.sql|SERVER",
        |options, _, value| {
            options.schema = Some(value.to_string_lossy().into_owned());
            Ok(())
        },
        "For lines: names of columns and members, and keys, where the log lacks them, from CREATE TABLE statements or a server",
    ),
    OptionDefinition::text(
        "exits",
        "FILE.toml",
        |options, _, value| {
            options.exits = Some(value.into());
            Ok(())
        },
        "Leave out and mask the tables and columns that this policy names",
    ),
    OptionDefinition::switch(
        "with-key",
        |options| &mut options.with_key,
        "For debezium and maxwell: each line begins with the message's key and a tab; deletes are followed by tombstones",
    ),
    OptionDefinition::text(
        "topic-prefix",
        "NAME",
        |options, _, value| {
            options.topic_prefix = value.to_string_lossy().into_owned();
            Ok(())
        },
        "For debezium: the name of the source, binlogz by default",
    ),
    OptionDefinition::text(
        "decimal-handling-mode",
        "MODE",
        |options, name, value| {
            options.decimal_handling_mode = choose(name, &value.to_string_lossy(), &DECIMALS)?;
            Ok(())
        },
        "For debezium: DECIMAL as precise bytes in base64, as string or as double",
    ),
    OptionDefinition::text(
        "bigint-unsigned-handling-mode",
        "MODE",
        |options, name, value| {
            options.bigint_unsigned_handling_mode = choose(name, &value.to_string_lossy(), &BIGINTS_UNSIGNED)?;
            Ok(())
        },
        "For debezium: BIGINT UNSIGNED as long, which is negative from 2^63 on, or as precise bytes in base64",
    ),
    OptionDefinition::switch(
        "provide-transaction-metadata",
        |options| &mut options.provide_transaction_metadata,
        "For debezium: each row's number in its transaction, and messages where a transaction begins and ends",
    ),
    OptionDefinition::switch(
        "follow",
        |options| &mut options.follow,
        "For lines: do not end, wait for what a server writes next, also into files that it writes",
    )
    .then(|options| {
        options.stop_never |= options.follow;
        options.to_last_log |= options.follow;
    }),
    OptionDefinition::text(
        "offsets",
        "FILE",
        |options, _, value| {
            options.offsets = Some(value.into());
            Ok(())
        },
        "For row changes: keep in this file which transactions were handed over, and begin after them",
    ),
    OptionDefinition::unsigned(
        "offsets-delay",
        |options| &mut options.offsets_delay,
        OFFSETS_DELAY,
        "Seconds before a transaction is noted in the offsets file, for readers that keep lines in memory",
    ),
];

fn set_remote_source(options: &mut DumpSettings, name: &'static str, value: &OsStr) -> Result<(), String> {
    options.remote_source = Some(choose(name, &value.to_string_lossy(), &REMOTE_SOURCES)?);
    Ok(())
}

/// The set itself is read when all options are known, as mysqlbinlog reads it: see `check.rs`.
fn set_gtids(_: &mut DumpSettings, _: &'static str, _: &OsStr) -> Result<(), String> {
    Ok(())
}

fn datetime(value: &OsStr) -> Result<BoundaryMoment, String> {
    let text = value.to_string_lossy();
    let given = GivenTime::of_mysqlbinlog(&text);
    let moment = given.map(|time| BoundaryMoment::of_microseconds(time.microseconds()));
    moment.map_err(|no_time| match no_time {
        // mysqlbinlog's words.
        NoTime::Text => format!("ERROR: Incorrect date and time argument: {text}"),
        no_time => format!("ERROR: Incorrect date and time argument: {text}: {no_time}"),
    })
}

fn rewrite_db(value: &OsStr) -> Result<RewriteDb, String> {
    let bad = |problem: &str| format!("ERROR: Bad syntax in mysqlbinlog-rewrite-db - {problem}!\n");
    let bytes = value.as_bytes();
    let arrow = bytes.windows(2).position(|window| window == b"->").ok_or_else(|| bad("missing '->'"))?;
    let (from, to) = bytes.split_at(arrow);
    let from = from.trim_ascii();
    let to = to.strip_prefix(b"->").unwrap_or_default().trim_ascii();
    if from.is_empty() {
        return Err(bad("empty FROM db"));
    }
    if to.is_empty() {
        return Err(bad("empty TO db"));
    }
    Ok(RewriteDb { from: from.to_vec(), to: to.to_vec() })
}

/// The first dot divides.
fn table(name: &str, value: &OsStr) -> Result<TableOption, String> {
    let bytes = value.as_bytes();
    let dot = bytes.iter().position(|&byte| byte == b'.').unwrap_or(0);
    let (database, table) = bytes.split_at(dot);
    let table = table.strip_prefix(b".").unwrap_or_default();
    if database.is_empty() || table.is_empty() {
        return Err(format!("ERROR: --{name} is '{}', expected DB.TABLE", value.to_string_lossy()));
    }
    Ok(TableOption { database: database.to_vec(), table: table.to_vec() })
}
