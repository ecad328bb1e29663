//! `binlogz rows`: the history of rows, change by change. Here are its options and its answer; [`passes`] reads the logs.

mod passes;

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;

use binlogz_cli_common::exits;
use binlogz_encryption::Keyring;
use binlogz_exits::MaskedLogs;
use binlogz_row_changes::{LifeFormat, RowSelection};
use binlogz_schema::{SchemaFile, TablesOfLogs};
use clap::{Args, ValueEnum};

use super::choose::{ChooseArgs, table};
use super::inputs::{InputArgs, PassFindings, RecoverLog, follow_one_another};
use super::neighbours::name_likely_tables;
use super::schema::{SchemaArg, all_tables_of};
use super::unlogged::ServerLogging;
use super::{OTHER_STATEMENTS, PROGRAM_NAME};
use crate::Exit;
use crate::cmd::exits::{ExitsArg, tables_for_masks};
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, warn};
use crate::keyring::KeyringArg;
use crate::server_args::ServerArgs;
use crate::units;
use passes::{RowPasses, RowSources, ShownLife};

/// Show the life of rows: each change, when, by which transaction and thread, before and after
///
/// Reads binary logs and shows the changes of the rows that were chosen, in the order of the logs: as text the first 100, then how
/// many each transaction has. Of an archive only the blocks are read that can have such rows. Changes logged as statements have
/// no rows and are not shown.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct RowsCommand {
    #[command(flatten)]
    choose: ChooseArgs,
    #[command(flatten)]
    schema: SchemaArg,
    #[command(flatten)]
    exits: ExitsArg,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Show every change as text, not only the first 100; JSON and CSV always have all of them
    #[arg(long)]
    all: bool,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    keyring: KeyringArg,
    /// The table; --table names further ones
    #[arg(value_name = "DB.TABLE", value_parser = table)]
    of: (String, String),
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

const EXAMPLES: &str = "Examples:
  binlogz rows shop.orders --where 'id = 42' binlog.0000*
  binlogz rows shop.orders --where 'id = 42' --operation delete /backup/db1
  binlogz rows shop.orders --where 'id = 42' --start-datetime '2026-11-22 23:10' --server db1:3306
  binlogz rows shop.orders --where 'before.status != after.status' --format json binlog.000042 | jq -r .gtid

Exit codes: 0 there are such changes, 1 there are none, 2 trouble.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// A paragraph for each change
    #[value(alias = "table")]
    Text,
    /// One object a line for each change; its fields are stable
    Json,
    /// A line for each column of each change
    Csv,
}

impl FormatArg {
    fn format(self) -> LifeFormat {
        match self {
            FormatArg::Text => LifeFormat::Text,
            FormatArg::Json => LifeFormat::Json,
            FormatArg::Csv => LifeFormat::Csv,
        }
    }
}

impl RowsCommand {
    pub(in crate::cmd) fn run(self) -> Result<Exit> {
        let sources = self.sources()?;
        let tables_then = sources.tables_then(self.jobs)?;
        let keys_then =
            tables_then.as_ref().zip(sources.keys_now()).and_then(|(then, keys)| keys.through(&then.history));
        let unlogged = match &sources.log_server {
            Some(connect) => ServerLogging::of(connect)?.name_unlogged(&sources.selection.tables),
            None => Exit::Done,
        };
        let passes = RowPasses::new(&self, &sources, tables_then.as_ref(), keys_then.as_ref());
        let mut out = Output { out: BufWriter::new(io::stdout().lock()), failed: None };
        match passes.show(&mut out) {
            Ok(shown) => {
                let exit = answer(shown, &sources)?.max(unlogged);
                let masked = sources.masked.as_ref();
                Ok(masked.map_or(exit, |masked| exit.max(exits::report(&masked.counts()))))
            }
            Err(failure) => Err(out.failed.map_or(failure, |kind| writing(kind.into()))),
        }
    }

    /// Opens what the options name.
    fn sources(&self) -> Result<RowSources> {
        let mut selection = self.choose.selection()?;
        let (database, name) = &self.of;
        if name == RowSelection::ALL_TABLES {
            return Err(CommandFailure::of(
                &format_args!("{database}.{name}"),
                "expected one table, as shop.orders",
            ));
        }
        selection.tables.push(self.of.clone());
        let log_server = self.input.server(&self.server)?;
        if log_server.is_none() && self.server.names_a_place() && !self.schema.is_server() {
            return Err(CommandFailure::Line(
                "a server is given, but neither --server nor --schema needs one".to_owned(),
            ));
        }
        let options = || self.server.connect_options(PROGRAM_NAME);
        let servers = (None, log_server.as_ref());
        // All tables of the logs are masked, whether they are shown or not.
        let meant = if self.exits.is_given() { &[][..] } else { &*selection.tables };
        let mut described = self.schema.read(meant, &options, servers)?;
        let now = match &log_server {
            Some(connect) if described.is_none() && !self.schema.is_given() => all_tables_of(connect)?,
            _ => None,
        };
        let logs = self.input.logs(log_server.as_ref(), (&self.choose, &selection), false)?;
        let keyring = self.keyring.open()?;
        follow_one_another(&logs, keyring.as_ref())?;
        if let Some(policy) = self.exits.policy()? {
            if self.choose.has_position() || self.choose.transaction_at().is_some() {
                return Err(CommandFailure::Line(
                    "positions can't be used with --exits: masked logs have others".to_owned(),
                ));
            }
            let tables = self.tables_for_masks(described, &logs, keyring.as_ref())?;
            let masked = Arc::new(MaskedLogs::completing(policy, tables));
            let logs = RecoverLog::masked(logs, &masked);
            // The masked logs tell all that may be known: neither the server's rows nor its foreign keys do.
            let (log_server, described, now, below) = (None, None, None, Ok(None));
            return Ok(RowSources {
                selection,
                log_server,
                described,
                now,
                logs,
                keyring,
                below,
                masked: Some(masked),
            });
        }
        let of = (&mut described, &*selection.tables);
        let below = self.schema.carrying_keys(of, None, &options, servers)?;
        Ok(RowSources { selection, log_server, described, now, logs, keyring, below, masked: None })
    }

    /// The columns of the tables, by the schema and by the statements of the logs.
    fn tables_for_masks(
        &self,
        schema: Option<SchemaFile>,
        logs: &[RecoverLog],
        keyring: Option<&Keyring>,
    ) -> Result<TablesOfLogs> {
        let paths: Option<Vec<_>> = logs.iter().map(|log| log.path().cloned()).collect();
        match paths {
            Some(paths) => tables_for_masks(schema, &paths, keyring, workers(self.jobs)),
            None => Ok(TablesOfLogs::forward(schema)),
        }
    }
}

/// The exit code of what was shown, and what is to be said of it.
fn answer(shown: ShownLife, sources: &RowSources) -> Result<Exit> {
    let written = shown.written.map_err(writing)?;
    if !shown.is_of_its_history {
        return Err(CommandFailure::Line(OTHER_STATEMENTS.to_owned()));
    }
    let PassFindings { unmet, exit } = shown.findings;
    if !unmet.is_empty() {
        unmet.iter().for_each(|unmet| complain(&unmet.line));
        return Ok(Exit::Negative);
    }
    shown.notes.iter().for_each(|note| complain(note));
    shown.unnamed.iter().for_each(|note| warn(note));
    if written == 0 {
        warn("no such row was changed in these logs");
        name_likely_tables(&sources.selection, &sources.logs);
        return Ok(Exit::Negative);
    }
    Ok(if shown.notes.is_empty() { exit } else { exit.max(Exit::Negative) })
}

fn writing(error: io::Error) -> CommandFailure {
    CommandFailure::writing(&"standard output", &error)
}

/// Standard output, which tells its own failures from those of temporary files.
struct Output<W> {
    out: W,
    failed: Option<io::ErrorKind>,
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).inspect_err(|error| self.failed = Some(error.kind()))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().inspect_err(|error| self.failed = Some(error.kind()))
    }
}
