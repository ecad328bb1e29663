//! `binlogz rows`: the history of rows, change by change.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;

use binlogz_encryption::Keyring;
use binlogz_flow::events::RunSummary;
use binlogz_row_changes::{Life, LifeFormat, RowSelection, StatementsAhead};
use binlogz_schema::{SchemaFile, TableHistory};
use clap::{Args, ValueEnum};

use super::choose::{ChooseArgs, table};
use super::inputs::{InputArgs, LogPass, OpenedLog, PassFindings, RecoverLog, follow_one_another};
use super::neighbours::name_likely_tables;
use super::schema::SchemaArg;
use super::{OTHER_STATEMENTS, PROGRAM_NAME};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, warn};
use crate::keyring::KeyringArg;
use crate::server_args::ServerArgs;
use crate::units;

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

/// People read no more changes than this: see `--all`.
const SHOWN_MAX: u64 = 100;

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

impl RowsCommand {
    pub(in crate::cmd) fn run(self) -> Result<Exit> {
        let mut selection = self.choose.selection()?;
        selection.tables.push(self.of.clone());
        let log_server = self.input.server(&self.server)?;
        if log_server.is_none() && self.server.names_a_place() && !self.schema.is_server() {
            return Err(CommandFailure::Line(
                "a server is given, but neither --server nor --schema needs one".to_owned(),
            ));
        }
        let options = || self.server.connect_options(PROGRAM_NAME);
        let schema = self.schema.read(&selection.tables, &options, (None, log_server.as_ref()))?;
        let logs = self.input.logs(log_server.as_ref(), (&self.choose, &selection), false)?;
        let keyring = self.keyring.open()?;
        follow_one_another(&logs, keyring.as_ref())?;
        let of = (schema.as_ref(), &*selection.tables);
        let below = self.schema.carrying_keys(of, None, &options, (None, log_server.as_ref()))?;
        let keys_now = below.as_ref().ok().and_then(Option::as_ref);
        // A table that was dropped isn't in a server's schema, and lost its foreign keys in the logs.
        let without_table = SchemaFile::default();
        let all_history = match schema.as_ref().or(keys_now.map(|_| &without_table)) {
            Some(schema) if logs.iter().all(|log| !log.is_pipe()) => {
                self.history(&logs, schema, &selection, keyring.as_ref())?
            }
            _ => None,
        };
        let touching = all_history.as_ref().filter(|(_, touches_chosen)| *touches_chosen && schema.is_some());
        let history = touching.map(|(history, _)| history);
        let format = match self.format {
            FormatArg::Text => LifeFormat::Text,
            FormatArg::Json => LifeFormat::Json,
            FormatArg::Csv => LifeFormat::Csv,
        };
        let writing = |error: io::Error| CommandFailure::writing(&"standard output", &error);
        let mut out = Output { out: BufWriter::new(io::stdout().lock()), failed: None };
        let keys_then =
            keys_now.zip(all_history.as_ref()).and_then(|(keys, (history, _))| keys.through(history));
        let keys_below = keys_then.as_ref().or(keys_now);
        let mut life = Life::new(&selection, schema.as_ref(), history, format, &mut out)
            .map_err(writing)?
            .with_keys_below(keys_below);
        if !self.all {
            life = life.with_shown_max(SHOWN_MAX);
        }
        let can_be_read_again = logs.iter().all(|log| !log.is_pipe());
        if can_be_read_again {
            life = life.looking_back();
        }
        let mut pass = LogPass {
            logs: &logs,
            choose: &self.choose,
            selection: &selection,
            keys_below,
            // The names of now tell nothing of what is in an archive, if they were others.
            schema: schema.as_ref().filter(|_| history.is_none()),
            keyring: keyring.as_ref(),
            statements: schema.is_some(),
            later: false,
            earlier: false,
            told: 0,
        };
        let mut read = self.read(&mut life, &pass);
        let (all_logs, earlier_history, defaults);
        if let Ok((_, told)) = &read
            && life.needs_images()
        {
            let of_server = log_server.as_ref().filter(|_| self.input.files.is_empty());
            all_logs = match of_server {
                Some(server) => self.input.logs(Some(server), (&self.choose, &selection), true)?,
                None => Vec::new(),
            };
            if all_logs.len() > logs.len() {
                pass.logs = &all_logs;
            }
            earlier_history = match (&history, pass.logs.len() > logs.len(), &schema) {
                // A history counts the logs, so it is made of all of them.
                (Some(_), true, Some(schema)) => {
                    self.history(pass.logs, schema, &selection, keyring.as_ref())?
                }
                _ => None,
            };
            let history = earlier_history.as_ref().map(|(history, _)| history).or(history);
            // Of a server that may have later logs, the defaults of now may be others.
            let is_of_the_end = match self.schema.is_given() {
                true => !self.schema.is_server(),
                false => of_server.is_some(),
            };
            let now = schema.as_ref().filter(|_| is_of_the_end);
            let statements = self.statements(pass.logs, keyring.as_ref())?;
            defaults = statements.and_then(|statements| statements.defaults(now));
            life = life.with_images(history, defaults.as_ref(), None);
            pass.told = pass.logs.len().saturating_sub(logs.len()) + told;
            (pass.statements, pass.earlier) = (true, true);
            let mut exit = read.as_ref().map_or(Exit::Done, |(first, _)| first.exit);
            // The rows of now are those of the logs' end, if the logs are all that the server has.
            if let Some(server) = of_server.filter(|_| !self.schema.is_given()) {
                life = life.looking_ahead();
                exit = exit.max(self.read(&mut life, &pass)?.0.exit);
                pass.told = usize::MAX;
                let live =
                    life.live_rows(server).map_err(|error| CommandFailure::of(&"temporary file", error))?;
                life = life.with_images(history, defaults.as_ref(), live);
            }
            read = self
                .read(&mut life, &pass)
                .map(|(last, told)| (PassFindings { exit: exit.max(last.exit), ..last }, told));
        }
        let PassFindings { unmet, exit } = match read {
            Ok((passed, _)) => passed,
            Err(failure) => {
                drop(life);
                return Err(out.failed.map_or(failure, |kind| writing(kind.into())));
            }
        };
        let is_of_its_history = life.is_of_its_history();
        let mut notes = life.name_notes();
        notes.extend(life.keys_below_notes());
        notes.extend(life.incomplete_notes());
        notes.extend(below.as_ref().err().cloned());
        let written = life.finish().map_err(writing)?;
        if !is_of_its_history {
            return Err(CommandFailure::Line(OTHER_STATEMENTS.to_owned()));
        }
        if !unmet.is_empty() {
            unmet.iter().for_each(|unmet| complain(&unmet.line));
            return Ok(Exit::Negative);
        }
        notes.iter().for_each(|note| complain(note));
        if written == 0 {
            warn("no such row was changed in these logs");
            name_likely_tables(&selection, &logs);
            return Ok(Exit::Negative);
        }
        Ok(if notes.is_empty() { exit } else { exit.max(Exit::Negative) })
    }
}

impl RowsCommand {
    /// Reads the logs, up to a row that needs earlier images; how many were read to their end.
    fn read(&self, life: &mut Life<'_>, pass: &LogPass<'_>) -> Result<(PassFindings, usize)> {
        let mut whole = 0;
        let findings = pass.run(&mut |OpenedLog { log, input, name, range, progress, .. }| {
            if life.needs_images() {
                return Ok((RunSummary::default(), false));
            }
            let read = life.read(input, &name, range, workers(self.jobs), &mut |bytes| progress.at(bytes));
            whole += usize::from(!life.needs_images());
            read.map_err(|error| log.failure(error))
        })?;
        Ok((findings, whole))
    }

    /// What the tables were, by the statements in all logs, and whether these are about chosen ones; `None`: that isn't known.
    fn history(
        &self,
        logs: &[RecoverLog],
        schema: &SchemaFile,
        selection: &RowSelection,
        keyring: Option<&Keyring>,
    ) -> Result<Option<(TableHistory, bool)>> {
        let statements = self.statements(logs, keyring)?;
        Ok(statements.map(|statements| statements.finish(schema, selection)))
    }

    /// The statements in all logs; `None`: some can't be read.
    fn statements(&self, logs: &[RecoverLog], keyring: Option<&Keyring>) -> Result<Option<StatementsAhead>> {
        let mut statements = StatementsAhead::default();
        for (number, log) in logs.iter().enumerate() {
            let input = log.open_part(keyring, &mut |run| run.may_have_statements())?;
            let progress = log.progress((number + 1, logs.len()))?;
            let input = progress.watch(input);
            let read =
                statements.read(input, &log.name(), workers(self.jobs), &mut |bytes| progress.at(bytes));
            // It may be a statement.
            if read.map_err(|error| log.failure(error))?.unread.iter().next().is_some() {
                return Ok(None);
            }
        }
        Ok(Some(statements))
    }
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
