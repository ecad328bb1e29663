//! What dump knows of tables besides their maps: `--schema`, and the statements of the logs.
//!
//! Logs that are files are read ahead for statements, so that rows of each place get the columns of that place. Of a pipe, a
//! server's stream and a log that grows only the statements so far are known.

use std::ffi::OsStr;

use binlogz_encryption::Keyring;
use binlogz_flow::passes::statements::record_statements;
use binlogz_schema::{HistoryPlace, SchemaFile, TableHistory, TablesOfLogs};

use super::options::DumpSettings;
use super::remote::PROGRAM_NAME;
use super::tell_line;
use crate::cmd::row_changes::{follow_one_another, read_schema};
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;

/// What is known of tables before the logs are printed.
pub(super) fn tables_of(options: &DumpSettings, keyring: Option<&Keyring>) -> Result<TablesOfLogs> {
    let schema = options
        .schema
        .as_deref()
        .map(|place| {
            let connect =
                || options.connect(PROGRAM_NAME).map_err(|error| CommandFailure::Line(error.to_string()));
            read_schema(place, &connect)
        })
        .transpose()?;
    let logs: Vec<_> = options.logs.iter().map(|log| path_of(log.as_os_str())).collect();
    let is_pipe = |log: &LogPath| !matches!(log.size(), Ok(Some(_)));
    let is_read_once = options.is_remote() || options.follow || logs.iter().any(is_pipe);
    match schema {
        Some(schema) if !is_read_once => read_ahead(options, schema, &logs, keyring),
        schema => {
            let tables = TablesOfLogs::forward(schema);
            // The transactions before those of an offsets file are all that were there.
            let has_gaps =
                options.excludes_at_source() && options.exclude_gtids.is_some() && options.offsets.is_none();
            let tables = if has_gaps { tables.with_gaps() } else { tables };
            let is_endless = options.follow || options.stop_never;
            Ok(if is_endless { tables.telling(|line| tell_line("ERROR", line)) } else { tables })
        }
    }
}

fn read_ahead(
    options: &DumpSettings,
    schema: SchemaFile,
    logs: &[LogPath],
    keyring: Option<&Keyring>,
) -> Result<TablesOfLogs> {
    let mut history = TableHistory::default();
    for (number, log) in (1..).zip(logs) {
        let input = log.open_part(keyring, &mut |run| run.may_have_statements())?;
        let read = record_statements(input, workers(options.jobs), number, &mut history);
        // Events that can't be read are named where they are printed.
        drop(read.map_err(|error| CommandFailure::reading(log, &error))?);
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
    Ok(match gap {
        Some(why) => tables.with_gap(why),
        None => tables,
    })
}

fn path_of(log: &OsStr) -> LogPath {
    LogPath::from(log.to_owned())
}
