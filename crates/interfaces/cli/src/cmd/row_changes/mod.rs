//! `binlogz undo` and `redo`: chosen row changes as statements that take them back, or make them again; [`rows`] shows them,
//! [`table_at`] shows a table as it was before them.

mod apply;
mod choose;
mod fold;
mod folding;
mod heads;
mod inputs;
mod later;
mod looked_for;
mod moment;
mod neighbours;
mod output;
mod passes;
mod range_to_recover;
mod rewind;
mod rows;
mod schema;
mod statements_ahead;
mod table_at;
mod temporary_log;
mod unlogged;

pub(in crate::cmd) use binlogz_row_changes::is_server as is_schema_server;
pub(in crate::cmd) use choose::{LogOffset, table};
pub(in crate::cmd) use fold::{TRANSACTION_ROWS, what_became};
pub(in crate::cmd) use heads::{follow_one_another, list};
pub(in crate::cmd) use inputs::{InputArgs, RecoverLog};
pub(in crate::cmd) use looked_for::RecoverSearch;
pub(in crate::cmd) use range_to_recover::RangeToRecover;
pub(in crate::cmd) use schema::read_schema;
pub(in crate::cmd) use unlogged::ServerLogging;

use std::cell::OnceCell;
use std::fmt::Display;
use std::num::NonZeroUsize;

use binlogz_figures::counted;
use binlogz_print::met::UnmetRequest;
use binlogz_row_changes::{
    CarryingKeys, Direction, Error, Range, RowSelection, Script, ScriptForm, ScriptSummary,
};
use binlogz_schema::SchemaFile;
use binlogz_source::ConnectOptions;
use clap::{Args, ValueEnum};

use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain, warn};
use crate::keyring::KeyringArg;
use crate::log_path::LogPath;
use crate::server_args::{ServerArgs, with_place};
use crate::units;
use apply::ApplyArgs;
use choose::ChooseArgs;
pub(crate) use fold::FoldCommand;
use folding::SchemaOfAll;
use later::Sought;
use moment::GivenMoment;
use neighbours::name_likely_tables;
use output::OutputArgs;
use passes::{FirstPass, ScriptPasses, ScriptSources};
use rewind::{ChangesSince, RewindArgs, RewindSources};
pub(crate) use rows::RowsCommand;
use schema::{CascadesArg, SchemaArg, as_seen_at};
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
    rewind: RewindArgs,
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
  binlogz undo --all --until '2026-11-22 23:10' --server db1:3306 --apply db1:3306 --execute
  binlogz undo --start-datetime '2026-11-22 23:10' --where 'before.status = \"paid\" AND id < 100' binlog.0000*

Column names come from the log (FULL metadata or DDL) or from --schema: mysqldump --no-data --databases shop > shop.sql
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
        self.args.run(Direction::Undo, Some(&self.cascades), self.rewind.moment())
    }
}

impl Redo {
    pub(super) fn run(self) -> Result<Exit> {
        self.args.run(Direction::Redo, None, None)
    }
}

impl ScriptArgs {
    fn run(
        self,
        direction: Direction,
        cascades: Option<&CascadesArg>,
        since: Option<&GivenMoment>,
    ) -> Result<Exit> {
        let output = self.output.check(self.format, &self.input.files)?;
        let Some(sources) = self.sources(direction, cascades, since)? else { return Ok(Exit::Negative) };
        let passes = ScriptPasses::new(&self, &sources, direction);
        let learned = OnceCell::new();
        let FirstPass { mut script, all_logs, unmet, ahead, mut exit } = passes.first(&learned)?;
        if !unmet.is_empty() {
            unmet.iter().for_each(|unmet| complain(&unmet.line));
            return Ok(Exit::Negative);
        }
        let read = script.take_history();
        let keys_then = passes.keys_then(&read.history);
        let needs = passes.needs(&script, &read, keys_then.as_ref(), learned.get(), exit);
        if needs.is_any() {
            let (again, found) = passes.second(all_logs.as_deref().unwrap_or(&sources.logs), needs)?;
            script = again;
            exit = exit.max(found);
        }
        let selection = &sources.selection;
        let tables = selection.tables.iter().map(|(database, table)| (database.as_bytes(), table.as_bytes()));
        let without_rows = UnmetRequest::tables(tables, |place| script.has_met_table(place));
        let hint = match &sources.since {
            Some(_) => "undo with --cascades, without --all, takes them back",
            None => "--cascades takes them back",
        };
        let mut doubtful = name_doubts(&script, sources.below.as_ref().err(), hint);
        if let Some(since) = &sources.since {
            let described = sources.described.as_ref();
            let unknown = since.name_unknown(selection, described, &|place| script.has_met_table(place));
            doubtful = doubtful.max(since.name_doubts()).max(unknown);
        }
        if let Some(connect) = &sources.apply_to {
            without_rows.iter().for_each(|unmet| warn(&unmet.line));
            let asked = (selection, sources.since.as_ref());
            let applied = self.apply.run(script, connect, asked, direction)?;
            return Ok(applied.max(exit).max(ahead).max(doubtful));
        }
        let summary = output.write(script)?;
        if summary.statements > 0 {
            without_rows.iter().for_each(|unmet| warn(&unmet.line));
        }
        let told = tell(&summary, (selection, sources.since.as_ref()), direction);
        if !without_rows.is_empty() {
            name_likely_tables(selection, &sources.logs);
        }
        Ok(told.max(exit).max(ahead).max(doubtful))
    }

    /// Finds all that the options name.
    fn sources(
        &self,
        direction: Direction,
        cascades: Option<&CascadesArg>,
        since: Option<&GivenMoment>,
    ) -> Result<Option<ScriptSources>> {
        let selection = match since {
            Some(_) => self.choose.selection_of_databases()?,
            None => self.choose.selection()?,
        };
        let apply_to = self.connect_to_apply(cascades)?;
        let log_server = self.input.server(&self.server)?;
        let options = || self.server.connect_options(PROGRAM_NAME);
        let servers = (apply_to.as_ref(), log_server.as_ref());
        let keyring = self.keyring.open()?;
        let (mut changes, mut described) = match since {
            Some(since) => {
                let known = SchemaOfAll::read(&self.schema, &options, servers)?;
                let rewind = RewindSources {
                    input: &self.input,
                    log_server: log_server.as_ref(),
                    server: log_server.as_ref().or(apply_to.as_ref()),
                    keyring: keyring.as_ref(),
                    known: &known,
                    selection: &selection,
                    workers: workers(self.jobs),
                };
                let Some(changes) = rewind.changes_since(since)? else { return Ok(None) };
                (Some(changes), known.described)
            }
            None => (None, self.schema.read(&selection.tables, &options, servers)?),
        };
        let families = cascades.map(|cascades| cascades.read(&options)).transpose()?.flatten();
        let logs = match &mut changes {
            Some(changes) => changes.take_log().into_iter().collect(),
            None => {
                let chosen = (&self.choose, &selection);
                self.input.logs(log_server.as_ref(), chosen, families.is_some())?
            }
        };
        let tables = selection.tables_of_keys();
        let of = (&mut described, tables);
        let below = match &families {
            Some((families, _)) => {
                let keys = CarryingKeys::new(families, tables, Some(direction)).of_dropped_alone();
                let server = cascades.map(|cascades| cascades.server(&options)).transpose()?.flatten();
                Ok(Some(as_seen_at(keys, server.as_ref())?))
            }
            None => self.keys_below(direction, of, &options, servers)?,
        };
        let is_applied = apply_to.is_some();
        let is_given = self.schema.is_given();
        let mut later_logs = Vec::new();
        if let Some(connect) = self.schema.server(&options, servers)? {
            later_logs.push((connect, Sought { names: true, repeated: is_applied && !is_given }));
        }
        if let Some(connect) = apply_to.as_ref().filter(|_| is_given) {
            later_logs.push((connect.clone(), Sought { names: false, repeated: true }));
        }
        Ok(Some(ScriptSources {
            selection,
            apply_to,
            log_server,
            described,
            families,
            logs,
            keyring,
            below,
            later_logs,
            since: changes,
        }))
    }

    /// The foreign keys of which it is said what they changed below the log, or why they aren't known.
    fn keys_below(
        &self,
        direction: Direction,
        (described, tables): (&mut Option<SchemaFile>, &[(String, String)]),
        options: &impl Fn() -> Result<ConnectOptions>,
        servers: (Option<&ConnectOptions>, Option<&ConnectOptions>),
    ) -> Result<std::result::Result<Option<CarryingKeys<'static>>, String>> {
        if direction == Direction::Undo {
            return self.schema.carrying_keys((described, tables), Some(direction), options, servers);
        }
        // A table that was dropped isn't in a server's schema, and lost its foreign keys in the logs.
        let without_table = SchemaFile::default();
        let fallback = servers.1.map(|_| &without_table);
        let schema = described.as_ref().or(fallback);
        Ok(Ok(schema.map(|schema| CarryingKeys::new(schema, tables, Some(direction)))))
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

/// Says what may be missing in a script, or other than it was meant, `unknown` among it: why it isn't known what foreign keys changed.
/// Negative, if there is anything. The hint says how to take back what foreign keys changed.
fn name_doubts(script: &Script<'_>, unknown: Option<&String>, hint: &str) -> Exit {
    let condition = script.condition_notes();
    condition.iter().for_each(|note| complain(note));
    let elsewhere = script.statements_elsewhere_note();
    elsewhere.iter().for_each(|note| warn(note));
    let mut below = script.keys_below_notes();
    below.extend(unknown.cloned());
    below.iter().for_each(|note| complain(&format!("{note}; {hint}")));
    let lost = script.lost_keys_notes();
    lost.iter().for_each(|note| complain(note));
    let unseen = script.unseen_keys_note();
    unseen.iter().for_each(|note| complain(note));
    let together = script.changed_together_note();
    together.iter().for_each(|note| complain(&format!("{note}; without --table they are chosen too")));
    let cascades = script.cascade_notes();
    cascades.iter().for_each(|note| complain(note));
    script.trigger_notes().iter().for_each(|note| warn(note));
    let is_certain = condition.is_empty()
        && elsewhere.is_none()
        && below.is_empty()
        && lost.is_empty()
        && unseen.is_none()
        && together.is_none()
        && cascades.is_empty();
    if is_certain { Exit::Done } else { Exit::Negative }
}

/// The message that logs in use have grown by statements that matter.
const OTHER_STATEMENTS: &str = "the logs have other statements that change tables than when they were read before, expected the same: run it again";

/// The program's name for itself at servers.
const PROGRAM_NAME: &str = "binlogz";

/// Reports the changes that were left out.
fn tell(
    summary: &ScriptSummary,
    (selection, since): (&RowSelection, Option<&ChangesSince>),
    direction: Direction,
) -> Exit {
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
    if summary.statements == 0 && since.is_some() {
        warn("nothing is undone: each row is as it was then");
        return Exit::Done;
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
pub(in crate::cmd) const WHOLE_LOG: Range = Range { start: 0, stop: u64::MAX };
