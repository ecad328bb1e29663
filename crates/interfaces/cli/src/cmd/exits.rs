//! `--exits` of the commands: the options, and the tables by which columns are known that are to be masked.

use std::path::PathBuf;

use binlogz_cli_common::exits::policy;
use binlogz_encryption::Keyring;
use binlogz_exits::{ExitPolicy, MaskedLogs};
use binlogz_schema::{SchemaFile, TablesOfLogs};
use clap::Args;

use super::dump::tables::read_ahead;
use super::row_changes::{is_schema_server, read_schema};
use crate::failure::{CommandFailure, Result};
use crate::log_path::LogPath;

/// The option that names a policy.
#[derive(Debug, Args)]
pub(super) struct ExitsArg {
    /// Leave out and mask the tables and columns that this policy names
    #[arg(long, value_name = "FILE.toml", hide_short_help = true)]
    exits: Option<PathBuf>,
}

impl ExitsArg {
    /// Whether one is named.
    pub(super) fn is_given(&self) -> bool {
        self.exits.is_some()
    }

    /// The policy, if one is named.
    pub(super) fn policy(&self) -> Result<Option<ExitPolicy>> {
        self.exits.as_deref().map(policy).transpose()
    }
}

/// The options that say what may leave a log that is written.
#[derive(Debug, Args)]
pub(super) struct ExitsArgs {
    #[command(flatten)]
    policy: ExitsArg,
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
        let Some(policy) = self.policy.policy()? else { return Ok(None) };
        let schema = match &self.schema {
            None => None,
            Some(place) if is_schema_server(place) => {
                return Err(CommandFailure::Line(format!(
                    "--schema is {place}, expected a file of CREATE TABLE statements"
                )));
            }
            Some(place) => {
                let no_server = || Err(CommandFailure::Line("--schema needs a file".to_owned()));
                Some(read_schema(place, &no_server)?)
            }
        };
        Ok(Some(MaskedLogs::new(policy, tables_for_masks(schema, logs, keyring, workers)?)))
    }
}

/// The tables of logs by a schema, and by the statements of those that are files, which are read ahead.
pub(super) fn tables_for_masks(
    schema: Option<SchemaFile>,
    logs: &[LogPath],
    keyring: Option<&Keyring>,
    workers: usize,
) -> Result<TablesOfLogs> {
    match schema {
        Some(schema) if logs.iter().all(|log| matches!(log.size(), Ok(Some(_)))) => {
            read_ahead(schema, logs, keyring, workers)
        }
        schema => Ok(TablesOfLogs::forward(schema)),
    }
}
