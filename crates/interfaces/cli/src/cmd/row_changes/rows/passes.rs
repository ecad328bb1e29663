//! The passes of `rows` over the logs: one ahead for the statements that tell what tables were, one that shows the rows, and others where a
//! row's images lack columns that earlier changes, defaults or the live row tell.

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;

use binlogz_encryption::Keyring;
use binlogz_exits::MaskedLogs;
use binlogz_flow::events::RunSummary;
use binlogz_row_changes::{CarryingKeys, Life, RowSelection};
use binlogz_schema::{SchemaFile, TableHistory};
use binlogz_source::ConnectOptions;

use super::super::inputs::{LogPass, OpenedLog, PassFindings, RecoverLog};
use super::super::statements_ahead::statements_ahead;
use super::{FormatArg, RowsCommand, writing};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result};

/// People read no more changes than this: see `--all`.
const SHOWN_MAX: u64 = 100;

/// All that the options of `rows` name.
pub(super) struct RowSources {
    pub(super) selection: RowSelection,
    pub(super) log_server: Option<ConnectOptions>,
    /// The tables as a schema describes them.
    pub(super) described: Option<SchemaFile>,
    /// All tables of the server that has the logs, where the chosen ones aren't among them.
    pub(super) now: Option<SchemaFile>,
    pub(super) logs: Vec<RecoverLog>,
    pub(super) keyring: Option<Keyring>,
    /// The foreign keys of which it is said what they changed below the log, or why they aren't known.
    pub(super) below: std::result::Result<Option<CarryingKeys<'static>>, String>,
    /// The gate of the logs, if they leave by a policy.
    pub(super) masked: Option<Arc<MaskedLogs>>,
}

/// The tables at each place of the logs, by the statements there.
pub(super) struct TablesThen {
    pub(super) history: TableHistory,
    /// Whether statements are about chosen tables.
    touches_chosen: bool,
}

/// The changes that were shown, and the notes about them.
pub(super) struct ShownLife {
    /// How many changes.
    pub(super) written: io::Result<u64>,
    pub(super) findings: PassFindings,
    /// What the output lacks, or may have wrong.
    pub(super) notes: Vec<String>,
    /// How the names of columns are got that are shown without one.
    pub(super) unnamed: Option<String>,
    /// Whether the statements were still the same.
    pub(super) is_of_its_history: bool,
}

/// Sources of the columns that row images lack.
struct EarlierChanges {
    /// All logs of the server, if those that were read aren't all.
    all_logs: Option<Vec<RecoverLog>>,
    /// A history counts the logs, so it is made of all of them.
    tables_then: Option<TablesThen>,
    defaults: Option<TableHistory>,
}

/// The passes over the logs.
pub(super) struct RowPasses<'p> {
    args: &'p RowsCommand,
    sources: &'p RowSources,
    history: Option<&'p TableHistory>,
    keys_below: Option<&'p CarryingKeys<'p>>,
}

impl RowSources {
    /// The foreign keys under the names that their tables have now.
    pub(super) fn keys_now(&self) -> Option<&CarryingKeys<'static>> {
        self.below.as_ref().ok().and_then(Option::as_ref)
    }

    fn can_be_read_again(&self) -> bool {
        self.logs.iter().all(|log| !log.is_pipe())
    }

    /// The tables at each place of the logs; `None`: not needed, or not known.
    pub(super) fn tables_then(&self, jobs: Option<NonZeroUsize>) -> Result<Option<TablesThen>> {
        if !self.can_be_read_again() {
            return Ok(None);
        }
        // A table that was dropped isn't in a server's schema, and lost its foreign keys in the logs.
        let without_table = SchemaFile::default();
        let schema = self.described.as_ref().or(self.now.as_ref());
        let schema = schema.or(self.keys_now().map(|_| &without_table));
        schema.map_or(Ok(None), |schema| self.tables_of(&self.logs, schema, jobs))
    }

    fn tables_of(
        &self,
        logs: &[RecoverLog],
        schema: &SchemaFile,
        jobs: Option<NonZeroUsize>,
    ) -> Result<Option<TablesThen>> {
        let statements = statements_ahead(logs, self.keyring.as_ref(), jobs)?;
        Ok(statements.map(|statements| {
            let (history, touches_chosen) = statements.finish(schema, &self.selection);
            TablesThen { history, touches_chosen }
        }))
    }
}

impl<'p> RowPasses<'p> {
    /// `keys_then`: the foreign keys under the names that their tables had, if those were others.
    pub(super) fn new(
        args: &'p RowsCommand,
        sources: &'p RowSources,
        tables_then: Option<&'p TablesThen>,
        keys_then: Option<&'p CarryingKeys<'p>>,
    ) -> Self {
        let is_known = sources.described.is_some() || sources.now.is_some();
        let touching = tables_then.filter(|then| then.touches_chosen && is_known);
        RowPasses {
            args,
            sources,
            history: touching.map(|then| &then.history),
            keys_below: keys_then.or(sources.keys_now()),
        }
    }

    /// Shows the rows.
    pub(super) fn show(&self, out: &mut dyn Write) -> Result<ShownLife> {
        let (learned, earlier);
        let mut history = self.history;
        let mut life = self.life(out)?;
        let (mut findings, mut whole) = self.read(&mut life, &self.pass())?;
        if life.needs_tables() {
            learned = self.sources.tables_of(&self.sources.logs, &SchemaFile::default(), self.args.jobs)?;
            history = learned.as_ref().filter(|then| then.touches_chosen).map(|then| &then.history);
            life = life.with_tables(history);
            let pass = LogPass { told: whole, statements: history.is_some(), ..self.pass() };
            let (again, whole_again) = self.read(&mut life, &pass)?;
            findings = PassFindings { exit: findings.exit.max(again.exit), ..again };
            whole = whole.max(whole_again);
        }
        if life.needs_images() {
            earlier = self.earlier_changes(history)?;
            let first = (history, findings.exit, whole);
            (life, findings) = self.read_again(life, &earlier, first)?;
        }
        // Programs that read the other formats know what they ask for.
        let unnamed = life.unnamed_note().filter(|_| self.args.format == FormatArg::Text);
        let mut notes = life.name_notes();
        notes.extend(life.keys_below_notes());
        notes.extend(life.incomplete_notes());
        notes.extend(self.sources.below.as_ref().err().cloned());
        let is_of_its_history = life.is_of_its_history();
        Ok(ShownLife { written: life.finish(), findings, notes, unnamed, is_of_its_history })
    }

    /// Nothing read yet.
    fn life<'o>(&'o self, out: &'o mut dyn Write) -> Result<Life<'o>> {
        let sources = self.sources;
        let schema = sources.described.as_ref();
        let mut life = Life::new(&sources.selection, schema, self.history, self.args.format.format(), out)
            .map_err(writing)?
            .with_keys_below(self.keys_below);
        if !self.args.all {
            life = life.with_shown_max(SHOWN_MAX);
        }
        if !sources.can_be_read_again() {
            return Ok(life);
        }
        let is_known = sources.described.is_some() || sources.now.is_some();
        let life = life.looking_back();
        Ok(if is_known || sources.masked.is_some() { life } else { life.learning_tables() })
    }

    /// The first pass.
    fn pass(&self) -> LogPass<'_> {
        let sources = self.sources;
        LogPass {
            logs: &sources.logs,
            choose: &self.args.choose,
            selection: &sources.selection,
            keys_below: self.keys_below,
            // The names of now tell nothing of what is in an archive, if they were others.
            schema: sources.described.as_ref().filter(|_| self.history.is_none()),
            keyring: sources.keyring.as_ref(),
            statements: sources.described.is_some() || self.history.is_some(),
            later: false,
            earlier: false,
            told: 0,
        }
    }

    /// Reads the logs, up to a row that needs earlier images; how many were read to their end.
    fn read(&self, life: &mut Life<'_>, pass: &LogPass<'_>) -> Result<(PassFindings, usize)> {
        let mut whole = 0;
        let findings = pass.run(&mut |OpenedLog { log, input, name, range, progress, .. }| {
            if life.is_interrupted() {
                return Ok((RunSummary::default(), false));
            }
            let jobs = workers(self.args.jobs);
            let read = life.read(input, &name, range, jobs, &mut |bytes| progress.at(bytes));
            whole += usize::from(!life.is_interrupted());
            read.map_err(|error| log.failure(error))
        })?;
        Ok((findings, whole))
    }

    /// The server that has the logs, if all of its logs are meant.
    fn whole_server(&self) -> Option<&ConnectOptions> {
        self.sources.log_server.as_ref().filter(|_| self.args.input.files.is_empty())
    }

    fn earlier_changes(&self, history: Option<&TableHistory>) -> Result<EarlierChanges> {
        let sources = self.sources;
        let all_logs = match self.whole_server() {
            Some(server) => {
                let choice = (&self.args.choose, &sources.selection);
                let all = self.args.input.logs(Some(server), choice, true)?;
                Some(all).filter(|all| all.len() > sources.logs.len())
            }
            None => None,
        };
        let unknown = SchemaFile::default();
        let now = sources.described.as_ref().or(sources.now.as_ref()).unwrap_or(&unknown);
        let tables_then = match (history, &all_logs) {
            (Some(_), Some(logs)) => sources.tables_of(logs, now, self.args.jobs)?,
            _ => None,
        };
        // Of a server that may have later logs, the defaults of now may be others.
        let is_of_the_end = match self.args.schema.is_given() {
            true => !self.args.schema.is_server(),
            false => self.whole_server().is_some(),
        };
        let now = sources.described.as_ref().filter(|_| is_of_the_end);
        let logs = all_logs.as_ref().unwrap_or(&sources.logs);
        let statements = statements_ahead(logs, sources.keyring.as_ref(), self.args.jobs)?;
        let defaults = statements.and_then(|statements| statements.defaults(now));
        Ok(EarlierChanges { all_logs, tables_then, defaults })
    }

    /// Reads all logs from their beginning, and shows the rows that the first pass did not: with the history and the exit code of the first
    /// pass, which read this many logs to their end.
    fn read_again<'o>(
        &'o self,
        life: Life<'o>,
        earlier: &'o EarlierChanges,
        (first_history, first_exit, whole): (Option<&'o TableHistory>, Exit, usize),
    ) -> Result<(Life<'o>, PassFindings)> {
        let history = earlier.tables_then.as_ref().map(|then| &then.history).or(first_history);
        let defaults = earlier.defaults.as_ref();
        let logs = earlier.all_logs.as_ref().unwrap_or(&self.sources.logs);
        let told = logs.len().saturating_sub(self.sources.logs.len()) + whole;
        let mut pass = LogPass { logs, told, statements: true, earlier: true, ..self.pass() };
        let mut life = life.with_images(history, defaults, None);
        let mut exit = first_exit;
        // The rows of now are those of the logs' end, if the logs are all that the server has.
        if let Some(server) = self.whole_server().filter(|_| !self.args.schema.is_given()) {
            life = life.looking_ahead();
            exit = exit.max(self.read(&mut life, &pass)?.0.exit);
            pass.told = usize::MAX;
            let live =
                life.live_rows(server).map_err(|error| CommandFailure::of(&"temporary file", error))?;
            life = life.with_images(history, defaults, live);
        }
        let (last, _) = self.read(&mut life, &pass)?;
        Ok((life, PassFindings { exit: exit.max(last.exit), ..last }))
    }
}
