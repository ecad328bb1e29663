//! The passes of `undo` and `redo` over the logs: one that chooses rows, and another one where the first shows that more has to be known
//! of them, as what their tables were then.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeSet;

use binlogz_encryption::Keyring;
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_print::met::UnmetRequest;
use binlogz_row_changes::{
    CarryingKeys, ConditionError, Direction, Error, ReadHistory, RowSelection, Script, ScriptForm,
};
use binlogz_schema::{SchemaFile, TableHistory};
use binlogz_source::ConnectOptions;

use super::inputs::{LogPass, OpenedLog, PassFindings, RecoverLog};
use super::later::{self, Sought};
use super::rewind::ChangesSince;
use super::statements_ahead::statements_ahead;
use super::{OTHER_STATEMENTS, ScriptArgs};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, name_unread};

/// All that the options of a script name.
pub(super) struct ScriptSources {
    pub(super) selection: RowSelection,
    pub(super) apply_to: Option<ConnectOptions>,
    pub(super) log_server: Option<ConnectOptions>,
    /// The tables as a schema describes them.
    pub(super) described: Option<SchemaFile>,
    /// The tables with foreign keys whose changes are taken back too, and where they were read.
    pub(super) families: Option<(SchemaFile, String)>,
    pub(super) logs: Vec<RecoverLog>,
    pub(super) keyring: Option<Keyring>,
    /// The foreign keys of which it is said what they changed below the log, or why they aren't known.
    pub(super) below: std::result::Result<Option<CarryingKeys<'static>>, String>,
    /// The servers whose later logs matter.
    pub(super) later_logs: Vec<(ConnectOptions, Sought)>,
    /// Where everything since a moment goes back: what came of folding it, which is the only log.
    pub(super) since: Option<ChangesSince>,
}

/// The passes over the logs of a script.
pub(super) struct ScriptPasses<'s> {
    args: &'s ScriptArgs,
    sources: &'s ScriptSources,
    direction: Direction,
    form: ScriptForm,
    can_be_read_again: bool,
    can_have_images: bool,
    /// Whether a pass ends where a condition needs names of columns that the log lacks.
    may_learn: Cell<bool>,
    /// Whether one did.
    needs_tables: Cell<bool>,
}

/// The result of the first pass.
pub(super) struct FirstPass<'t> {
    pub(super) script: Script<'t>,
    /// All logs of the server, if the first of those asked for don't have all images.
    pub(super) all_logs: Option<Vec<RecoverLog>>,
    /// Requests that nothing met: the rest doesn't count.
    pub(super) unmet: Vec<UnmetRequest>,
    /// Of the rows of children.
    pub(super) ahead: Exit,
    pub(super) exit: Exit,
}

/// Facts about rows that a second pass has from the first.
pub(super) struct SecondPassNeeds<'t> {
    keys: Option<&'t CarryingKeys<'t>>,
    history: Option<&'t TableHistory>,
    defaults: Option<&'t TableHistory>,
    /// The tables with rows whose images lack columns.
    lacking: Option<BTreeSet<(String, String)>>,
}

impl SecondPassNeeds<'_> {
    /// Whether a second pass tells more.
    pub(super) fn is_any(&self) -> bool {
        self.history.is_some() || self.lacking.is_some() || self.keys.is_some()
    }
}

impl<'s> ScriptPasses<'s> {
    pub(super) fn new(args: &'s ScriptArgs, sources: &'s ScriptSources, direction: Direction) -> Self {
        let form = if sources.apply_to.is_some() { ScriptForm::Apply } else { args.format.form() };
        let can_be_read_again = sources.logs.iter().all(|log| !log.is_pipe());
        // A row from before a DDL statement isn't certain to be of the table's present key.
        // Net changes don't reach back to earlier images.
        let can_have_images = can_be_read_again && !args.across_ddl && sources.since.is_none();
        let is_described = sources.described.is_some() || sources.families.is_some();
        ScriptPasses {
            args,
            sources,
            direction,
            form,
            can_be_read_again,
            can_have_images,
            may_learn: Cell::new(can_be_read_again && !is_described && form != ScriptForm::Apply),
            needs_tables: Cell::new(false),
        }
    }

    /// Reads the logs, and those of the server before them if images lack columns. If a condition needs names of columns that statements in
    /// the logs may tell, these are learned first.
    pub(super) fn first<'t>(&self, learned: &'t OnceCell<TableHistory>) -> Result<FirstPass<'t>>
    where
        's: 't,
    {
        let logs = &self.sources.logs;
        let (mut script, ahead) = self.with_cascades(self.new_script(), logs)?;
        let PassFindings { mut unmet, mut exit } = self.read(&mut script, &self.pass(logs))?;
        if self.needs_tables.take() {
            self.may_learn.set(false);
            script = self.new_script();
            if let Some(history) = self.learn()? {
                script = script.with_history(learned.get_or_init(|| history));
            }
            PassFindings { unmet, exit } = self.read(&mut script, &self.pass(logs))?;
        }
        let mut all_logs = None;
        if unmet.is_empty()
            && self.can_have_images
            && !script.lacking_tables().is_empty()
            && let Some(server) = &self.sources.log_server
        {
            let choice = (&self.args.choose, &self.sources.selection);
            let all = self.args.input.logs(Some(server), choice, true)?;
            if all.len() > logs.len() {
                // A history counts the logs, so it is made of all of them.
                script = self.new_script();
                let pass = LogPass { told: usize::MAX, ..self.pass(&all) };
                exit = exit.max(self.read(&mut script, &pass)?.exit);
                all_logs = Some(all);
            }
        }
        Ok(FirstPass { script, all_logs, unmet, ahead, exit })
    }

    /// The tables as far as the statements in the logs tell them.
    fn learn(&self) -> Result<Option<TableHistory>> {
        let sources = self.sources;
        let statements = statements_ahead(&sources.logs, sources.keyring.as_ref(), self.args.jobs)?;
        let unknown = SchemaFile::default();
        Ok(statements.map(|statements| statements.finish(&unknown, &sources.selection).0))
    }

    /// The foreign keys under the names that their tables had then, if those were others.
    pub(super) fn keys_then<'t>(&self, history: &'t TableHistory) -> Option<CarryingKeys<'t>> {
        if !self.can_be_read_again {
            return None;
        }
        match self.keys_now() {
            Some(keys) => keys.through(history),
            // Neither a schema nor a server tells them; the statements in the logs may.
            None if self.sources.below.is_ok() && self.direction == Direction::Undo => {
                let tables = self.sources.selection.tables_of_keys();
                let keys = CarryingKeys::new(&history.told_at_end(), tables, Some(self.direction));
                (!keys.is_empty()).then(|| keys.through(history).unwrap_or(keys))
            }
            None => None,
        }
    }

    /// Collects what a second pass needs from the first.
    pub(super) fn needs<'t>(
        &self,
        script: &Script<'_>,
        read: &'t ReadHistory,
        keys: Option<&'t CarryingKeys<'t>>,
        learned: Option<&'t TableHistory>,
        exit: Exit,
    ) -> SecondPassNeeds<'t> {
        // Unread events may be statements.
        let history = Some(&read.history).filter(|_| exit == Exit::Done);
        let lacking = Some(script.lacking_tables().clone());
        let lacking = lacking.filter(|tables| self.can_have_images && !tables.is_empty());
        let needs_names = lacking.is_some() || keys.is_some();
        SecondPassNeeds {
            keys,
            history: history
                .filter(|_| read.tells_tables && self.can_be_read_again)
                .or(learned.filter(|_| needs_names)),
            defaults: history.filter(|_| read.is_whole),
            lacking,
        }
    }

    /// Reads the logs once more.
    pub(super) fn second<'t>(
        &self,
        logs: &[RecoverLog],
        needs: SecondPassNeeds<'t>,
    ) -> Result<(Script<'t>, Exit)>
    where
        's: 't,
    {
        let mut pass = LogPass { told: usize::MAX, ..self.pass(logs) };
        let mut script = self.new_script();
        if needs.keys.is_some() {
            script = script.with_keys_below(needs.keys);
            pass.keys_below = needs.keys;
        }
        if let Some(history) = needs.history {
            script = script.with_history(history);
            // The names of now tell nothing of what is in an archive.
            pass.schema = None;
        }
        (script, _) = self.with_cascades(script, logs)?;
        if let Some(lacking) = needs.lacking {
            script = script.with_images(lacking, needs.defaults);
            pass.earlier = true;
        }
        let exit = self.read(&mut script, &pass)?.exit;
        match script.is_of_its_history() {
            true => Ok((script, exit)),
            false => Err(CommandFailure::Line(OTHER_STATEMENTS.to_owned())),
        }
    }

    fn keys_now(&self) -> Option<&'s CarryingKeys<'static>> {
        self.sources.below.as_ref().ok().and_then(Option::as_ref)
    }

    fn schema(&self) -> Option<&'s SchemaFile> {
        let ScriptSources { described, families, .. } = self.sources;
        described.as_ref().or(families.as_ref().map(|(schema, _)| schema))
    }

    fn new_script<'t>(&self) -> Script<'t>
    where
        's: 't,
    {
        let aim = (self.direction, self.form);
        let script = Script::new(&self.sources.selection, self.schema(), aim, self.args.across_ddl)
            .with_keys_below(self.keys_now())
            .deferring_conditions(self.can_have_images);
        let choose = &self.args.choose;
        match choose.has_position() || choose.transaction_at().is_some() {
            true => script,
            false => script.of_whole_logs(),
        }
    }

    fn pass<'p>(&self, logs: &'p [RecoverLog]) -> LogPass<'p>
    where
        's: 'p,
    {
        let is_undo_script = self.direction == Direction::Undo && self.form == ScriptForm::Sql;
        LogPass {
            logs,
            choose: &self.args.choose,
            selection: &self.sources.selection,
            keys_below: self.keys_now(),
            schema: self.schema(),
            keyring: self.sources.keyring.as_ref(),
            statements: true,
            later: is_undo_script || self.form == ScriptForm::Apply,
            earlier: false,
            told: 0,
        }
    }

    /// Reads the logs, and the server's logs after them.
    fn read(&self, script: &mut Script<'_>, pass: &LogPass<'_>) -> Result<PassFindings> {
        let findings = pass.run(&mut |opened| {
            let OpenedLog { log, input, name, range, archived_gtids, looked_for, progress } = opened;
            if let Some(gtids) = archived_gtids {
                script.pass_over(&gtids);
            }
            if let Some(since) = &self.sources.since {
                script.pass_over(&since.summary.up_to_end);
            }
            if looked_for.has_passed_chosen {
                script.pass_chosen(&looked_for.passed_tables);
            }
            let read =
                script.read(input, &name, range, workers(self.args.jobs), &mut |bytes| progress.at(bytes));
            let is_unnamed = matches!(read, Err(Error::Condition(ConditionError::NoNames { .. })));
            if self.needs_tables.get() || is_unnamed && self.may_learn.get() {
                self.needs_tables.set(true);
                return Ok((RunSummary::default(), false));
            }
            read.map_err(|error| log.failure(error))
        })?;
        if self.needs_tables.get() {
            return Ok(findings);
        }
        if let Some(since) = &self.sources.since
            && let Some((name, end)) = &since.last
        {
            script.stands_for((name, *end), &since.summary.up_to_end);
        }
        for (connect, sought) in self.sources.later_logs.iter().filter(|_| findings.unmet.is_empty()) {
            later::look(script, connect, *sought, workers(self.args.jobs))?;
        }
        Ok(findings)
    }

    /// Follows the rows of children up to the changes of their parents, where that was asked for.
    fn with_cascades<'t>(&self, script: Script<'t>, logs: &[RecoverLog]) -> Result<(Script<'t>, Exit)>
    where
        's: 't,
    {
        let Some((families, place)) = &self.sources.families else { return Ok((script, Exit::Done)) };
        let mut with = script.with_cascades(families).map_err(|error| CommandFailure::of(place, error))?;
        let exit = self.read_ahead(&mut with, logs)?;
        Ok((with, exit))
    }

    fn read_ahead(&self, script: &mut Script<'_>, logs: &[RecoverLog]) -> Result<Exit> {
        let mut exit = Exit::Done;
        for (number, log) in logs.iter().enumerate() {
            let input = log.open(self.sources.keyring.as_ref())?;
            if matches!(input, Input::Pipe(_)) {
                return Err(CommandFailure::of(
                    log,
                    "is a pipe, expected a file or an archive: --cascades reads it twice",
                ));
            }
            let progress = log.progress((number + 1, logs.len()))?;
            let input = progress.watch(input);
            let name = log.name();
            let read =
                script.read_ahead(input, &name, workers(self.args.jobs), &mut |bytes| progress.at(bytes));
            let mut unread = read.map_err(|error| log.failure(error))?;
            // The others are told by the pass over what was chosen.
            unread.retain(|unread| unread.table.is_some());
            exit = exit.max(name_unread(log, &unread, "children may have changed there"));
        }
        Ok(exit)
    }
}
