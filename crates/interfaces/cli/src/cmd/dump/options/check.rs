//! Checks made when all options are known: conflicts between options, and GTID sets.

use binlogz_binlog::gtid::GtidSet;

use super::getopt::{Getopt, ParseStop};
use super::{DumpFormat, DumpSettings, POSITION_MIN, RemoteSource};
use crate::time::{self, GivenTime, NoTime};

/// The largest position that a dump by position can ask for.
const REMOTE_POSITION_MAX: u64 = u32::MAX as u64;

/// Checks the options; warnings are added to `told`, in mysqlbinlog's words.
pub(super) fn check(getopt: &mut Getopt<'_>) -> Result<(), ParseStop> {
    let Getopt { options, told, .. } = getopt;
    let refused = check_options(options, told);
    refused.map_err(|problem| {
        told.push_str(&format!("ERROR: {problem}\n"));
        ParseStop::Code(1)
    })
}

fn check_options(options: &mut DumpSettings, told: &mut String) -> Result<(), String> {
    if options.read_from_remote_server && options.remote_source == Some(RemoteSource::Gtids) {
        return Err(
            "The option read-from-remote-server cannot be used when read-from-remote-source is defined \
                    and is not equal to BINLOG-DUMP-NON-GTIDS"
                .into(),
        );
    }
    if options.remote_source.is_some() && options.start_position > REMOTE_POSITION_MAX {
        // The number in brackets is mysqlbinlog's.
        return Err(
            "The option --start-position cannot be used with values greater than 4 GiB (4294967854), \
                    when one of read-from-remote-server or read-from-remote-source is used."
                .into(),
        );
    }
    if options.raw {
        check_raw(options, told)?;
    }
    check_changes(options)?;
    warn_of_local_times(options, told);
    options.include_gtids = gtid_set(options, "include-gtids")?;
    options.exclude_gtids = gtid_set(options, "exclude-gtids")?;
    // Told, but no reason to end.
    if options.stop_never && options.connection_server_id == 0 {
        told.push_str("ERROR: Cannot set --server-id=0 when --stop-never is specified.\n");
    }
    let ids = (options.connection_server_id, options.stop_never_slave_server_id);
    if ids.0 != -1 && ids.1 != -1 {
        told.push_str(&format!(
            "ERROR: Cannot set --connection-server-id= {} and--stop-never-slave-server-id= {}. \n",
            ids.0, ids.1
        ));
    }
    if let [log] = options.logs.as_slice()
        && log.as_os_str() == "-"
        && options.remote_source.is_none()
        && options.stop_position.is_some()
    {
        return Err("stop_position not allowed when input is STDIN".into());
    }
    Ok(())
}

/// Options that only lines, or only row changes, have.
fn check_changes(options: &DumpSettings) -> Result<(), String> {
    if options.format.of_changes().is_none() {
        let given = ["topic-prefix", "decimal-handling-mode", "bigint-unsigned-handling-mode", "offsets"];
        let mut given = given.into_iter().filter(|name| options.given(name).is_some());
        if let Some(name) = given.next().or(options.with_key.then_some("with-key")) {
            return Err(format!("--{name} needs --format=debezium, maxwell or canal"));
        }
    }
    if options.exits.is_some() {
        check_exits(options)?;
    }
    if options.format == DumpFormat::Sql && options.schema.is_some() && options.exits.is_none() {
        return Err("--schema needs --format=jsonl, debezium, maxwell or canal".into());
    }
    if options.provide_transaction_metadata && options.format != DumpFormat::Debezium {
        return Err("--provide-transaction-metadata needs --format=debezium".into());
    }
    if options.follow && (options.format == DumpFormat::Sql || options.raw) {
        return Err(
            "--follow needs --format=jsonl, debezium, maxwell or canal; with -R there is --stop-never".into(),
        );
    }
    if options.follow && options.remote_source.is_none() && options.keyring.is_some() {
        return Err("--follow can't read encrypted logs; -R can".into());
    }
    if options.offsets.is_none() && options.offsets_delay > 0 {
        return Err("--offsets-delay needs --offsets".into());
    }
    Ok(())
}

/// Options that speak of the log as it is, where it leaves masked, or that have no end at which to say what was left out.
fn check_exits(options: &DumpSettings) -> Result<(), String> {
    let refused = [
        ("raw", options.raw),
        ("start-position", options.start_position != POSITION_MIN),
        ("stop-position", options.stop_position.is_some()),
        ("offset", options.offset > 0),
        ("offsets", options.offsets.is_some()),
        ("follow", options.follow),
        ("stop-never", options.stop_never),
    ];
    match refused.into_iter().find(|(_, is_given)| *is_given) {
        Some((name, _)) => Err(format!("--{name} can't be used with --exits")),
        None => Ok(()),
    }
}

fn check_raw(options: &DumpSettings, told: &mut String) -> Result<(), String> {
    let mut warn = |warning: &str| told.push_str(&format!("WARNING: {warning}\n"));
    if options.database.is_some() {
        warn("The --database option is ignored with --raw mode");
    }
    let Some(source) = options.remote_source else {
        return Err(
            "The --raw flag requires one of --read-from-remote-source or --read-from-remote-server".into()
        );
    };
    if options.stop_before_gtid.is_some() || !options.tables.is_empty() {
        let option = if options.tables.is_empty() { "--stop-before-gtid" } else { "--table" };
        return Err(format!("You cannot use {option} and --raw together."));
    }
    if options.format != DumpFormat::Sql {
        return Err("You cannot use --format and --raw together.".into());
    }
    if options.given("include-gtids").is_some() {
        return Err("You cannot use --include-gtids and --raw together.".into());
    }
    if source == RemoteSource::NonGtids && options.given("exclude-gtids").is_some() {
        return Err("You cannot use both of --exclude-gtids and --raw together with one of \
                    --read-from-remote-server or --read-from-remote-source=BINLOG-DUMP-NON-GTID."
            .into());
    }
    if options.stop_position.is_some_and(|position| position != u64::MAX) {
        warn("The --stop-position option is ignored in raw mode");
    }
    if options.stop_datetime.is_some() {
        warn("The --stop-datetime option is ignored in raw mode");
    }
    // mysqlbinlog ignores these without a word.
    for (option, is_given) in [
        ("--start-datetime", options.start_datetime.is_some()),
        ("--offset", options.offset > 0),
        ("--server-id", options.server_id != 0),
    ] {
        if is_given {
            warn(&format!("The {option} option is ignored in raw mode"));
        }
    }
    Ok(())
}

/// Microseconds in a second.
const MICROSECONDS: i64 = 1_000_000;

/// Names local times that clocks show twice or never, and the moments that mysqlbinlog takes them for.
fn warn_of_local_times(options: &DumpSettings, told: &mut String) {
    let times = [("start-datetime", options.start_datetime), ("stop-datetime", options.stop_datetime)];
    for (name, moment) in times {
        let Some((text, moment)) = options.given(name).zip(moment) else { continue };
        let text = text.to_string_lossy();
        if let Err(no_time @ (NoTime::Twice(..) | NoTime::Never(_))) = text.parse::<GivenTime>() {
            let taken = time::shown(u32::try_from(moment.microseconds() / MICROSECONDS).unwrap_or(u32::MAX));
            told.push_str(&format!(
                "WARNING: --{name}={text}: {no_time}; taken, as by mysqlbinlog: {taken}\n"
            ));
        }
    }
}

fn gtid_set(options: &DumpSettings, name: &str) -> Result<Option<GtidSet>, String> {
    let Some(text) = options.given(name) else { return Ok(None) };
    let text = text.to_string_lossy();
    let set = text.parse().map_err(|error| format!("Could not configure --{name} '{text}': {error}"))?;
    Ok(Some(set))
}
