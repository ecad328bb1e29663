//! The definitions of tables that dump has besides their table maps: from `--schema`, and from the statements of the logs.
//!
//! Logs that are files are read ahead for statements, so that rows of each place get the columns of that place. Of a pipe, a
//! server's stream and a log that grows only the statements so far are known.

use std::ffi::OsStr;
use std::path::Path;

use binlogz_archive::input as archived;
use binlogz_encryption::Keyring;
use binlogz_flow::events::RunSummary;
use binlogz_flow::passes::statements::record_statements;
use binlogz_row_changes::is_server;
use binlogz_schema::{HistoryPlace, SchemaFile, TableHistory, TablesOfLogs};

use super::options::DumpSettings;
use super::remote::PROGRAM_NAME;
use super::tell_line;
use crate::cmd::row_changes::{follow_one_another, read_schema};
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;

/// Reads the definitions of tables before the logs are printed.
pub(super) fn tables_of(options: &DumpSettings, keyring: Option<&Keyring>) -> Result<TablesOfLogs> {
    let logs: Vec<_> = options.logs.iter().map(|log| path_of(log.as_os_str())).collect();
    let is_pipe = |log: &LogPath| !matches!(log.size(), Ok(Some(_)));
    let is_read_once = options.is_remote() || options.follow || logs.iter().any(is_pipe);
    match options.schema.as_deref() {
        Some(place) if !is_read_once => read_all_ahead(options, place, &logs, keyring),
        place => {
            let tables = TablesOfLogs::forward(place.map(|place| schema_of(options, place)).transpose()?);
            // The transactions before those of an offsets file are all that were there.
            let has_gaps =
                options.excludes_at_source() && options.exclude_gtids.is_some() && options.offsets.is_none();
            let tables = if has_gaps { tables.with_gaps() } else { tables };
            let is_endless = options.follow || options.stop_never;
            Ok(if is_endless { tables.telling(|line| tell_line("ERROR", line)) } else { tables })
        }
    }
}

fn schema_of(options: &DumpSettings, place: &str) -> Result<SchemaFile> {
    let connect = || options.connect(PROGRAM_NAME).map_err(|error| CommandFailure::Line(error.to_string()));
    read_schema(place, &connect)
}

/// How often tables may change while the logs are read.
const ATTEMPTS: usize = 5;

/// Reads the statements of logs ahead. The schema has to be that of the end of what is read: a server may write on, so it is asked again.
fn read_all_ahead(
    options: &DumpSettings,
    place: &str,
    logs: &[LogPath],
    keyring: Option<&Keyring>,
) -> Result<TablesOfLogs> {
    for _ in 0..ATTEMPTS {
        let before = sizes(logs);
        let schema = schema_of(options, place)?;
        let tables = read_ahead(schema.clone(), logs, keyring, workers(options.jobs))?;
        if !is_server(place) || sizes(logs) == before || schema_of(options, place)? == schema {
            return Ok(tables);
        }
    }
    let line =
        format!("--schema={place}: statements change tables faster than the logs can be read: try again");
    Err(CommandFailure::Line(line))
}

fn sizes(logs: &[LogPath]) -> Vec<Option<u64>> {
    logs.iter().map(|log| log.size().ok().flatten()).collect()
}

/// The tables of logs by their statements, which are read ahead, and by a schema, which is that of their end.
pub(in crate::cmd) fn read_ahead(
    schema: SchemaFile,
    logs: &[LogPath],
    keyring: Option<&Keyring>,
    workers: usize,
) -> Result<TablesOfLogs> {
    let mut history = TableHistory::default();
    let mut end = HistoryPlace::default();
    for (number, log) in (1..).zip(logs) {
        let input = log.open_part(keyring, &mut |run| run.may_have_statements())?;
        let read = record_statements(input, workers, number, &mut history);
        // Events that can't be read are named where they are printed.
        let RunSummary { read, .. } = read.map_err(|error| CommandFailure::reading(log, &error))?;
        end = HistoryPlace { log: number, offset: read.cut.map_or(read.bytes_read, |cut| cut.offset) };
    }
    // Statements tell what tables were if all of them are there, in their order. Without any, tables may still have been changed by those
    // of logs in between.
    let gap = match follow_one_another(logs, keyring) {
        Ok(()) => None,
        Err(failure) if history.statements_before(HistoryPlace::END) > 0 => return Err(failure),
        Err(CommandFailure::Line(line)) => Some(line),
        Err(failure @ CommandFailure::ClosedPipe) => return Err(failure),
    };
    history.settle(schema.clone());
    let names = logs.iter().map(ToString::to_string).collect();
    let tables = TablesOfLogs::of_history(history, schema, names);
    // Of an archived log only parts are read, and nothing is added to it.
    let is_archived = |path: &Path| !matches!(archived::find(path), Ok(None));
    let tables = match logs.last() {
        Some(LogPath::File(path)) if !is_archived(path) => tables.read_ahead_to(end),
        Some(LogPath::File(_) | LogPath::Stdin) | None => tables,
    };
    Ok(match gap {
        Some(why) => tables.with_gap(why),
        None => tables,
    })
}

fn path_of(log: &OsStr) -> LogPath {
    LogPath::from(log.to_owned())
}
