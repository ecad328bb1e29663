//! `binlogz undo` and `redo`: chosen row changes as statements that take them back, or make them again; [`rows`] shows them,
//! [`table_at`] shows a table as it was before them.

mod apply;
mod choose;
mod heads;
mod inputs;
mod later;
mod looked_for;
mod neighbours;
mod output;
mod rows;
mod schema;
mod table_at;

pub(in crate::cmd) use binlogz_row_changes::is_server as is_schema_server;
pub(in crate::cmd) use choose::table;
pub(in crate::cmd) use heads::{follow_one_another, list};
pub(in crate::cmd) use inputs::{InputArgs, RecoverLog};
pub(in crate::cmd) use schema::read_schema;

use std::fmt::Display;
use std::num::NonZeroUsize;

use binlogz_encryption::Keyring;
use binlogz_figures::counted;
use binlogz_flow::Input;
use binlogz_print::met::UnmetRequest;
use binlogz_row_changes::{
    Direction, Error, Range, ReadHistory, RowSelection, Script, ScriptForm, ScriptSummary,
};
use binlogz_source::ConnectOptions;
use clap::{Args, ValueEnum};

use super::workers;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, name_unread, warn};
use crate::keyring::KeyringArg;
use crate::log_path::LogPath;
use crate::server_args::{ServerArgs, with_place};
use crate::units;
use apply::ApplyArgs;
use choose::ChooseArgs;
use inputs::{LogPass, OpenedLog, PassFindings};
use later::Sought;
use neighbours::name_likely_tables;
use output::OutputArgs;
pub(crate) use rows::RowsCommand;
use schema::{CascadesArg, SchemaArg};
pub(crate) use table_at::TableAt;

/// Write the SQL that takes row changes back
///
/// Reads binary logs, finds the rows that were changed, and writes for each the statement that restores it, the last change
/// first. The output is for you to read, and then for the mysql client; with --apply it goes to a server. What can't be
/// undone (DDL, rows of which the log lacks columns) is named in the output, and the exit code is 1.
#[derive(Debug, Args)]
#[command(after_help = UNDO_EXAMPLES, disable_help_flag = true)]
pub(crate) struct Undo {
    #[command(flatten)]
    cascades: CascadesArg,
    #[command(flatten)]
    args: ScriptArgs,
}

/// Write the SQL that makes row changes again
///
/// As undo, but the statements make the chosen changes once more, in their order.
#[derive(Debug, Args)]
#[command(after_help = REDO_EXAMPLES, disable_help_flag = true)]
pub(crate) struct Redo {
    #[command(flatten)]
    args: ScriptArgs,
}

const UNDO_EXAMPLES: &str = "Examples:
  binlogz undo --table shop.orders --operation delete --schema shop.sql binlog.000042 > undo.sql
  binlogz undo --gtids 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 binlog.000042 | less
  binlogz undo --table shop.orders --start-datetime '2026-11-22 23:10' --server db1:3306 > undo.sql
  binlogz undo --table shop.orders --apply db1:3306 --execute --journal undo.journal binlog.000042
  binlogz undo --table shop.orders --cascades db1:3306 -u root binlog.0000* > undo.sql
  binlogz undo --start-datetime '2026-11-22 23:10' --where 'before.status = \"paid\" AND id < 100' binlog.0000*

Column names come from the log (binlog_row_metadata=FULL) or from --schema: mysqldump --no-data --databases shop > shop.sql
Exit codes: 0 all that was chosen is undone, 1 something is left or nothing was chosen, 2 trouble.";

const REDO_EXAMPLES: &str = "Examples:
  binlogz redo --table shop.orders --schema shop.sql binlog.000042 > redo.sql
  binlogz redo --thread-id 87 --start-datetime '2026-11-22 23:10' binlog.000042 | mysql

Exit codes: 0 all that was chosen is redone, 1 something is left or nothing was chosen, 2 trouble.";

#[derive(Debug, Args)]
struct ScriptArgs {
    #[command(flatten)]
    choose: ChooseArgs,
    #[command(flatten)]
    schema: SchemaArg,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Sql)]
    format: FormatArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    apply: ApplyArgs,
    /// Write rows too that are older than a DDL statement on their table; they may not fit it any more
    #[arg(long, hide_short_help = true)]
    across_ddl: bool,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero, hide_short_help = true)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// Statements for the mysql client
    Sql,
    /// A binary log of row events, for mysqlbinlog and replicas; --output says where
    Binlog,
}

impl FormatArg {
    fn form(self) -> ScriptForm {
        match self {
            FormatArg::Sql => ScriptForm::Sql,
            FormatArg::Binlog => ScriptForm::Log,
        }
    }
}

impl Undo {
    pub(super) fn run(self) -> Result<Exit> {
        self.args.run(Direction::Undo, Some(&self.cascades))
    }
}

impl Redo {
    pub(super) fn run(self) -> Result<Exit> {
        self.args.run(Direction::Redo, None)
    }
}

impl ScriptArgs {
    fn run(self, direction: Direction, cascades: Option<&CascadesArg>) -> Result<Exit> {
        let output = self.output.check(self.format, &self.input.files)?;
        let selection = self.choose.selection()?;
        let apply_to = self.connect_to_apply(cascades)?;
        let log_server = self.input.server(&self.server)?;
        let options = || self.server.connect_options(PROGRAM_NAME);
        let form = if apply_to.is_some() { ScriptForm::Apply } else { self.format.form() };
        let schema =
            self.schema.read(&selection.tables, &options, (apply_to.as_ref(), log_server.as_ref()))?;
        let cascades = cascades.map(|cascades| cascades.read(&options)).transpose()?.flatten();
        let logs = self.input.logs(log_server.as_ref(), (&self.choose, &selection), cascades.is_some())?;
        let keyring = self.keyring.open()?;
        let schema = schema.as_ref().or(cascades.as_ref().map(|(schema, _)| schema));
        let mut ahead = Exit::Done;
        let servers = (apply_to.as_ref(), log_server.as_ref());
        let below = match direction == Direction::Undo && cascades.is_none() {
            true => {
                let of = (schema, &*selection.tables);
                self.schema.carrying_keys(of, Some(direction), &options, servers)?
            }
            false => Ok(None),
        };
        let keys_now = below.as_ref().ok().and_then(Option::as_ref);
        let can_be_read_again = logs.iter().all(|log| !log.is_pipe());
        // A row from before a DDL statement isn't certain to be of the table's present key.
        let can_have_images = can_be_read_again && !self.across_ddl;
        let new_script = || {
            Script::new(&selection, schema, (direction, form), self.across_ddl)
                .with_keys_below(keys_now)
                .deferring_conditions(can_have_images)
        };
        let mut script = new_script();
        if let Some((families, place)) = &cascades {
            let with = script.with_cascades(families);
            script = with.map_err(|error| CommandFailure::of(place, error))?;
            ahead = self.read_ahead(&mut script, &logs, keyring.as_ref())?;
        }
        let is_applied = apply_to.is_some();
        let mut later_logs = Vec::new();
        if let Some(connect) = self.schema.server(&options, (apply_to.as_ref(), log_server.as_ref()))? {
            later_logs
                .push((connect, Sought { names: true, repeated: is_applied && !self.schema.is_given() }));
        }
        if let Some(connect) = apply_to.as_ref().filter(|_| self.schema.is_given()) {
            later_logs.push((connect.clone(), Sought { names: false, repeated: true }));
        }
        let mut pass = LogPass {
            logs: &logs,
            choose: &self.choose,
            selection: &selection,
            keys_below: keys_now,
            schema,
            keyring: keyring.as_ref(),
            statements: true,
            later: direction == Direction::Undo && form == ScriptForm::Sql || form == ScriptForm::Apply,
            earlier: false,
            told: 0,
        };
        let PassFindings { unmet, mut exit } = self.read(&mut script, &pass, &later_logs)?;
        if !unmet.is_empty() {
            unmet.iter().for_each(|unmet| complain(&unmet.line));
            return Ok(Exit::Negative);
        }
        let all_logs;
        if can_have_images && !script.lacking_tables().is_empty() && log_server.is_some() {
            all_logs = self.input.logs(log_server.as_ref(), (&self.choose, &selection), true)?;
            if all_logs.len() > logs.len() {
                // A history counts the logs, so it is made of all of them.
                (pass.logs, pass.told) = (&all_logs, usize::MAX);
                script = new_script();
                exit = exit.max(self.read(&mut script, &pass, &later_logs)?.exit);
            }
        }
        let ReadHistory { history, tells_tables, is_whole } = script.take_history();
        // Unread events may be statements.
        let is_certain = exit == Exit::Done;
        let keys_then = keys_now.filter(|_| can_be_read_again).and_then(|keys| keys.through(&history));
        let defaults = Some(&history).filter(|_| is_whole && is_certain);
        let history = Some(&history).filter(|_| tells_tables && can_be_read_again && is_certain);
        let lacking =
            Some(script.lacking_tables().clone()).filter(|tables| can_have_images && !tables.is_empty());
        if history.is_some() || lacking.is_some() || keys_then.is_some() {
            script = new_script();
            pass.told = usize::MAX;
            if keys_then.is_some() {
                script = script.with_keys_below(keys_then.as_ref());
                pass.keys_below = keys_then.as_ref();
            }
            if let Some(history) = history {
                script = script.with_history(history);
                // The names of now tell nothing of what is in an archive.
                pass.schema = None;
            }
            if let Some((families, place)) = &cascades {
                let with = script.with_cascades(families);
                script = with.map_err(|error| CommandFailure::of(place, error))?;
                self.read_ahead(&mut script, pass.logs, keyring.as_ref())?;
            }
            if let Some(lacking) = lacking {
                script = script.with_images(lacking, defaults);
                pass.earlier = true;
            }
            exit = exit.max(self.read(&mut script, &pass, &later_logs)?.exit);
            if !script.is_of_its_history() {
                return Err(CommandFailure::Line(OTHER_STATEMENTS.to_owned()));
            }
        }
        let tables = selection.tables.iter().map(|(database, table)| (database.as_bytes(), table.as_bytes()));
        let without_rows = UnmetRequest::tables(tables, |place| script.has_met_table(place));
        let condition_notes = script.condition_notes();
        condition_notes.iter().for_each(|note| complain(note));
        let elsewhere = script.statements_elsewhere_note();
        elsewhere.iter().for_each(|note| warn(note));
        let mut below_notes = script.keys_below_notes();
        below_notes.extend(below.as_ref().err().cloned());
        let remedy = "--cascades takes them back";
        below_notes.iter().for_each(|note| complain(&format!("{note}; {remedy}")));
        let together = script.changed_together_note();
        together.iter().for_each(|note| complain(&format!("{note}; without --table they are chosen too")));
        let cascade_notes = script.cascade_notes();
        cascade_notes.iter().for_each(|note| complain(note));
        let is_certain = condition_notes.is_empty()
            && elsewhere.is_none()
            && below_notes.is_empty()
            && together.is_none()
            && cascade_notes.is_empty();
        let doubtful = if is_certain { Exit::Done } else { Exit::Negative };
        script.trigger_notes().iter().for_each(|note| warn(note));
        if let Some(connect) = apply_to {
            without_rows.iter().for_each(|unmet| warn(&unmet.line));
            return Ok(self
                .apply
                .run(script, &connect, &selection, direction)?
                .max(exit)
                .max(ahead)
                .max(doubtful));
        }
        let summary = output.write(script)?;
        if summary.statements > 0 {
            without_rows.iter().for_each(|unmet| warn(&unmet.line));
        }
        let told = tell(&summary, &selection, direction);
        if !without_rows.is_empty() {
            name_likely_tables(&selection, &logs);
        }
        Ok(told.max(exit).max(ahead).max(doubtful))
    }

    /// Reads the logs, and the server's logs after them.
    fn read(
        &self,
        script: &mut Script<'_>,
        pass: &LogPass<'_>,
        later_logs: &[(ConnectOptions, Sought)],
    ) -> Result<PassFindings> {
        let findings = pass.run(&mut |opened| {
            let OpenedLog { log, input, name, range, archived_gtids, looked_for, progress } = opened;
            if let Some(gtids) = archived_gtids {
                script.pass_over(&gtids);
            }
            if looked_for.has_passed_chosen {
                script.pass_chosen(&looked_for.passed_tables);
            }
            let read = script.read(input, &name, range, workers(self.jobs), &mut |bytes| progress.at(bytes));
            read.map_err(|error| log.failure(error))
        })?;
        for (connect, sought) in later_logs.iter().filter(|_| findings.unmet.is_empty()) {
            later::look(script, connect, *sought, workers(self.jobs))?;
        }
        Ok(findings)
    }

    /// Follows the rows of children up to the changes of their parents.
    fn read_ahead(
        &self,
        script: &mut Script<'_>,
        logs: &[RecoverLog],
        keyring: Option<&Keyring>,
    ) -> Result<Exit> {
        let mut exit = Exit::Done;
        for (number, log) in logs.iter().enumerate() {
            let input = log.open(keyring)?;
            if matches!(input, Input::Pipe(_)) {
                return Err(CommandFailure::of(
                    log,
                    "is a pipe, expected a file or an archive: --cascades reads it twice",
                ));
            }
            let progress = log.progress((number + 1, logs.len()))?;
            let (input, name) = (progress.watch(input), log.name());
            let read = script.read_ahead(input, &name, workers(self.jobs), &mut |bytes| progress.at(bytes));
            let mut unread = read.map_err(|error| log.failure(error))?;
            // The others are told by the pass over what was chosen.
            unread.retain(|unread| unread.table.is_some());
            exit = exit.max(name_unread(log, &unread, "children may have changed there"));
        }
        Ok(exit)
    }

    /// The server to which changes are applied, if they are.
    fn connect_to_apply(&self, cascades: Option<&CascadesArg>) -> Result<Option<ConnectOptions>> {
        let Some(server) = &self.apply.apply else {
            let is_asked = self.schema.is_server()
                || cascades.is_some_and(CascadesArg::is_server)
                || self.input.is_server(&self.server);
            if self.server.names_a_place() && !is_asked {
                return Err(CommandFailure::Line(
                    "a server is given, but neither --server nor --apply nor --schema needs one".to_owned(),
                ));
            }
            return Ok(None);
        };
        let options = self.server.connect_options(PROGRAM_NAME)?;
        with_place(&options, server).map(Some).map_err(CommandFailure::Line)
    }
}

/// The verb for rows, in messages.
fn verb(direction: Direction) -> &'static str {
    if direction == Direction::Undo { "undone" } else { "redone" }
}

/// The message that logs in use have grown by statements that matter.
const OTHER_STATEMENTS: &str = "the logs have other statements that change tables than when they were read before, expected the same: run it again";

/// The program's name for itself at servers.
const PROGRAM_NAME: &str = "binlogz";

/// Reports the changes that were left out.
fn tell(summary: &ScriptSummary, selection: &RowSelection, direction: Direction) -> Exit {
    let verb = verb(direction);
    let ScriptSummary { rows_left, statements_left, .. } = *summary;
    if rows_left + statements_left > 0 {
        warn(&format!(
            "{} and {} not {verb}; the output names each",
            counted(rows_left, "rows"),
            counted(statements_left, "statements")
        ));
        return Exit::Negative;
    }
    if summary.changed_later > 0 {
        warn(&format!(
            "{} of rows that are {verb} came later and were not chosen: they would be lost; the output names them",
            counted(summary.changed_later, "changes")
        ));
    }
    if summary.replaced_checked > 0 {
        warn(&format!(
            "{} that a REPLACE may have replaced delete what refers to them; the output names each",
            counted(summary.replaced_checked, "rows")
        ));
    }
    if summary.statements == 0 {
        let what = match (&selection.gtids, summary.has_chosen) {
            (Some(_), false) => "none of these transactions is in the logs",
            (None, false) => "no transaction in the logs is one of those chosen",
            (_, true) => "no row in the transactions chosen is one of those chosen",
        };
        warn(&format!("nothing is {verb}: {what}"));
        return Exit::Negative;
    }
    if summary.changed_later + summary.replaced_checked > 0 { Exit::Negative } else { Exit::Done }
}

/// A log's name in comments, without its folder.
fn file_name(log: &LogPath) -> String {
    match log {
        LogPath::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        LogPath::Stdin => "-".to_owned(),
    }
}

fn failure(log: &dyn Display, error: Error) -> CommandFailure {
    match error {
        Error::Log(error) => CommandFailure::reading(log, &error),
        Error::Condition(error) => CommandFailure::Line(error.to_string()),
        Error::Refused(line) => CommandFailure::Line(line),
        error => CommandFailure::of(&"temporary file", error),
    }
}

/// The offsets of a log where no option says otherwise.
const WHOLE_LOG: Range = Range { start: 0, stop: u64::MAX };
