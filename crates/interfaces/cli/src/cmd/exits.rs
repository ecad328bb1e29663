//! What may leave: the policy of `--exits`, and what is said of what was masked and left out.

use std::path::{Path, PathBuf};

use binlogz_encryption::Keyring;
use binlogz_exits::{ExitCounts, ExitPolicy, LeftOut, MaskedLogs};
use binlogz_figures::{counted, grouped};
use binlogz_schema::TablesOfLogs;
use clap::Args;

use super::dump::tables::read_ahead;
use super::row_changes::{is_schema_server, read_schema};
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, say, warn, warn_cut};
use crate::log_path::LogPath;

/// The options that say what may leave.
#[derive(Debug, Args)]
pub(super) struct ExitsArgs {
    /// Leave out and mask the tables and columns that this policy names
    #[arg(long, value_name = "FILE.toml", conflicts_with = "salvage", hide_short_help = true)]
    exits: Option<PathBuf>,
    /// Take the names of columns, where the log lacks them, from a file of CREATE TABLE statements
    #[arg(long, value_name = "FILE.sql", requires = "exits", hide_short_help = true)]
    schema: Option<String>,
}

impl ExitsArgs {
    /// The gate through which these logs leave, if there is a policy.
    pub(super) fn masked_logs(
        &self,
        logs: &[LogPath],
        keyring: Option<&Keyring>,
        workers: usize,
    ) -> Result<Option<MaskedLogs>> {
        let Some(path) = &self.exits else { return Ok(None) };
        let policy = policy(path)?;
        let tables = match &self.schema {
            None => TablesOfLogs::forward(None),
            Some(place) if is_schema_server(place) => {
                return Err(CommandFailure::Line(format!(
                    "--schema is {place}, expected a file of CREATE TABLE statements"
                )));
            }
            Some(place) => {
                let no_server = || Err(CommandFailure::Line("--schema needs a file".to_owned()));
                let schema = read_schema(place, &no_server)?;
                match logs.iter().all(|log| matches!(log.size(), Ok(Some(_)))) {
                    true => read_ahead(schema, logs, keyring, workers)?,
                    false => TablesOfLogs::forward(Some(schema)),
                }
            }
        };
        Ok(Some(MaskedLogs::new(policy, tables)))
    }
}

/// Reads a policy.
pub(super) fn policy(path: &Path) -> Result<ExitPolicy> {
    ExitPolicy::read(path).map_err(|error| CommandFailure::Line(error.to_string()))
}

/// Says what was masked and left out.
pub(super) fn report(counts: &ExitCounts) -> Exit {
    for (log, cut) in &counts.cuts {
        warn_cut(log, *cut, "; they are left out");
    }
    say(&summary(counts));
    for (why, count) in &counts.unmasked {
        let count = if *count == 0 { String::new() } else { format!(": {}", grouped(*count)) };
        complain(&format!("left out, {why}{count}"));
    }
    for key in &counts.weak_keys {
        warn(&format!("{key}: rows may get the same unique key, since masks make different values of its columns equal"));
    }
    if !counts.unmet_tables.is_empty() {
        say(&format!("no rows of tables that the policy names: {}", counts.unmet_tables.join(", ")));
    }
    match counts.unmasked.is_empty() {
        true => Exit::Done,
        false => Exit::Negative,
    }
}

fn summary(counts: &ExitCounts) -> String {
    let masked = format!(
        "{}, {} masked",
        counted(counts.transactions, "transactions"),
        counted(counts.masked_rows, "rows")
    );
    let rows = (counts.left_out_rows > 0).then(|| counted(counts.left_out_rows, "rows"));
    let others = counts
        .left_out
        .iter()
        .map(|(what, count): (&LeftOut, &u64)| format!("{} {}", grouped(*count), what.shown()));
    let left_out: Vec<_> = rows.into_iter().chain(others).collect();
    match left_out.is_empty() {
        true => masked,
        false => format!("{masked}; left out by the policy: {}", left_out.join(", ")),
    }
}
