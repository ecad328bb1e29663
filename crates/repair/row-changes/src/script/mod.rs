//! The statements of chosen changes as a script for the mysql client.
//!
//! ```text
//! pass → Collector: statements, forward, into a spool → Writer: the spool backwards (or forward, to make changes again)
//! ```
//!
//! A row's fate is known only at the end: a later DDL statement or XA ROLLBACK decides over it. So nothing is written
//! before all logs are read, and the rows are kept in a spool: memory is bounded however many there are.

mod apply;
mod change;
mod children;
mod collect;
mod commit_times;
mod group;
mod later;
mod later_below;
mod log;
mod one_row;
mod orphans;
mod repeated;
mod replaced;
mod replay;
mod session;
mod unfit;
mod write;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::row::{Cell, CellContent, Row};
use binlogz_figures::counted;
use binlogz_flow::Input;
use binlogz_flow::events::{ReadSummary, RunSummary, UnreadChanges};
use binlogz_schema::{SchemaFile, TableHistory};

use crate::apply::ApplyError;
use crate::cascade::{Cascades, EffectFinder, FamilyError};
use crate::choose::{Direction, Range, RowSelection};
use crate::digest::Digests;
use crate::images::ImageRebuilder;
use crate::log::images::push_images;
use crate::pass::{
    CarryingKeys, Error, FollowedTables, Follower, HistoryUse, RebuiltColumns, Renderer, RowRendering,
    Search, TableRow, UNSURE, digests_of, lacks_columns, read_log,
};
use crate::record::{LoggedChange, RowFlags};
use crate::sql::literal::push_equal;
use crate::sql::statement::{RowOutcome, push_statement};
use crate::sql::text::push;
use crate::table::WrittenTable;
pub use apply::{AppliedChanges, ApplyOptions, TableSummary};
use change::ScriptChange;
pub use collect::ReadHistory;
use collect::{CollectedChanges, ScriptCollector};

/// The summary of a script.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScriptSummary {
    /// Transactions with at least one statement.
    pub transactions: u64,
    /// Statements, one for each row.
    pub statements: u64,
    /// Rows that were chosen and for which no statement could be written; the script names each.
    pub rows_left: u64,
    /// Statements in the logs, as DDL, that were chosen and have no rows to take back; the script names each.
    pub statements_left: u64,
    /// Later changes of the same rows that weren't chosen; the script names them.
    pub changed_later: u64,
    /// Rows of a binary log that a REPLACE may have replaced, though their keys differ or aren't known: with them the server may delete
    /// rows that the REPLACE left. The report names them.
    pub replaced_checked: u64,
    /// Whether any transaction was chosen.
    pub has_chosen: bool,
}

/// The form that rows are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptForm {
    /// Statements for the mysql client: [`Script::write`].
    Sql,
    /// A binary log: [`Script::write_log`].
    Log,
    /// Changes of a server: [`Script::apply`].
    Apply,
}

/// A script in the making. Read all logs, then write it.
pub struct Script<'o> {
    selection: &'o RowSelection,
    schema: Option<&'o SchemaFile>,
    history: Option<&'o TableHistory>,
    /// The history that tells the columns' defaults.
    defaults: Option<&'o TableHistory>,
    direction: Direction,
    form: ScriptForm,
    /// Whether rows from before a DDL statement on their table are written nevertheless.
    across_ddl: bool,
    follower: Follower<ScriptCollector<'o>>,
    /// Whether the history of tables may tell what tables were.
    uses_history: bool,
    finder: Option<EffectFinder<'o, Rows>>,
    /// Foreign keys of which nobody looks for what they did below the log.
    carrying: Option<&'o CarryingKeys<'o>>,
    /// Of rows' keys, where changes are looked for that came later.
    digests: Option<Arc<Digests>>,
    /// Tables of which all rows are followed.
    followed: Option<Arc<FollowedTables>>,
    defers_conditions: bool,
    /// The last log and where it ended.
    last_read: Option<(String, u64)>,
}

impl<'o> Script<'o> {
    /// An empty script.
    pub fn new(
        selection: &'o RowSelection,
        schema: Option<&'o SchemaFile>,
        (direction, form): (Direction, ScriptForm),
        across_ddl: bool,
    ) -> Self {
        let mut follower = Follower::new(ScriptCollector::new(selection, direction, form));
        if form == ScriptForm::Apply {
            follower.listener.looks_for_repeated();
        }
        let looks_for_later = match form {
            ScriptForm::Sql => direction == Direction::Undo,
            ScriptForm::Apply => true,
            ScriptForm::Log => false,
        };
        let digests: Option<Arc<Digests>> = looks_for_later.then(Arc::default);
        follower.listener.digests.clone_from(&digests);
        Script {
            selection,
            schema,
            history: None,
            defaults: None,
            direction,
            form,
            across_ddl,
            follower,
            // An image of a log has its columns in their order then, and what is applied is compared with the table of now.
            uses_history: form == ScriptForm::Sql,
            finder: None,
            carrying: None,
            digests,
            followed: None,
            defers_conditions: false,
            last_read: None,
        }
    }

    /// Takes rows for what they were by this history, and writes them for the tables of now.
    #[must_use]
    pub fn with_history(mut self, history: &'o TableHistory) -> Self {
        self.history = Some(history);
        self
    }

    /// The history, as rows are written by it. The images of a log have their columns in their order, and names only for conditions.
    fn history_use(&self) -> Option<HistoryUse<'o>> {
        self.history.map(|history| HistoryUse { history, as_now: self.form == ScriptForm::Sql })
    }

    /// Follows all rows of these tables, so that chosen ones get columns that their images lack from earlier images, and from the
    /// columns' defaults, as far as a history of tables tells them. The logs are to be read from their beginning.
    #[must_use]
    pub fn with_images(
        mut self,
        tables: BTreeSet<(String, String)>,
        defaults: Option<&'o TableHistory>,
    ) -> Self {
        let renderer = Rows::new(self.direction, self.form, None);
        let history = self.history_use();
        let tables_then = (self.schema, history);
        self.follower.listener.images = Some(ImageRebuilder::new(tables_then, defaults, renderer));
        self.defaults = defaults;
        self.followed = Some(Arc::new(tables));
        self
    }

    /// Leaves rows of which the condition can't be decided by their own images to a pass with [`Script::with_images`], whose tables
    /// [`Script::lacking_tables`] then tells. Without it such a row is an error.
    #[must_use]
    pub fn deferring_conditions(mut self, defers: bool) -> Self {
        self.defers_conditions = defers;
        self
    }

    /// The tables with chosen rows that can't be written since their images lack columns, as far as earlier images may have
    /// them, once all logs are read.
    pub fn lacking_tables(&self) -> &BTreeSet<(String, String)> {
        &self.follower.listener.lacking
    }

    /// Whether the statements in the logs are those of its history, once all logs are read: logs in use may have more by then.
    pub fn is_of_its_history(&self) -> bool {
        let read = &self.follower.listener.history;
        self.history.or(self.defaults).is_none_or(|history| read.has_statements_of(history))
    }

    /// The history of tables, once all logs are read.
    pub fn take_history(&mut self) -> ReadHistory {
        self.follower.listener.take_history(self.schema, self.uses_history)
    }

    /// All of each log is read, whatever its transactions' places: where all rows are chosen too, no change of one that isn't comes later, and
    /// a script doesn't look for any.
    #[must_use]
    pub fn of_whole_logs(mut self) -> Self {
        if self.form == ScriptForm::Sql && self.selection.has_all_rows() {
            self.digests = None;
            self.follower.listener.digests = None;
        }
        self
    }

    /// Names what these foreign keys did below the log, which isn't taken back.
    #[must_use]
    pub fn with_keys_below(mut self, keys: Option<&'o CarryingKeys<'o>>) -> Self {
        self.carrying = keys;
        let reach = keys.map(CarryingKeys::named_reach).unwrap_or_default();
        self.follower.listener.follow_below(reach);
        self
    }

    /// Takes back as well what these foreign keys did below the log. All logs are then read ahead first.
    ///
    /// # Errors
    ///
    /// A schema without such foreign keys.
    pub fn with_cascades(mut self, schema: &'o SchemaFile) -> Result<Self, FamilyError> {
        let renderer = Rows::new(self.direction, self.form, None);
        self.finder = Some(EffectFinder::new(schema, renderer)?);
        self.uses_history = false;
        Ok(self)
    }

    /// Reads a log for the sake of cascades, in the order of the logs; the changes of it that could not be read.
    ///
    /// # Errors
    ///
    /// A log that can't be read, a temporary file that can't be written.
    pub fn read_ahead(
        &mut self,
        input: Input,
        name: &str,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<UnreadChanges, Error> {
        match &mut self.finder {
            Some(finder) => finder.read(input, name, workers, progress).map(|ran| ran.unread),
            None => Ok(UnreadChanges::default()),
        }
    }

    /// The foreign keys that changed rows below the log which aren't taken back, line by line, once all logs are read.
    pub fn keys_below_notes(&self) -> Vec<String> {
        let keys = self.carrying;
        keys.map(|keys| self.follower.carried.notes(keys, self.verb())).unwrap_or_default()
    }

    /// The foreign keys that statements in the logs took away after they had changed rows below the log, line by line, once all logs are
    /// read.
    pub fn lost_keys_notes(&self) -> Vec<String> {
        let keys = self.carrying;
        keys.map(|keys| self.follower.carried.lost_notes(keys, self.verb())).unwrap_or_default()
    }

    /// Names rows that foreign keys may have changed below the log which the account may not see, once all logs are read.
    pub fn unseen_keys_note(&self) -> Option<String> {
        self.follower.carried.unseen_note(self.carrying?, self.verb())
    }

    /// Names the rows of other tables that the statements of the chosen rows changed too, once all logs are read.
    pub fn changed_together_note(&self) -> Option<String> {
        self.follower.together.note(self.verb())
    }

    /// The verb for rows, in notes.
    fn verb(&self) -> &'static str {
        match self.direction {
            Direction::Undo => "undone",
            Direction::Redo => "redone",
        }
    }

    /// The cascades that can't be taken back, line by line, once all logs are read.
    pub fn cascade_notes(&self) -> Vec<String> {
        self.follower.listener.cascades.as_ref().map(Cascades::notes).unwrap_or_default()
    }

    /// The tables of which the condition may have chosen other rows than were meant, line by line, once all logs are read.
    pub fn condition_notes(&self) -> Vec<String> {
        self.follower.listener.condition_notes()
    }

    /// Names changes of chosen transactions that were logged as statements on other tables than those chosen: a view, a trigger, a
    /// stored function or a foreign key may have led them to these, and the log has no rows of that.
    pub fn statements_elsewhere_note(&self) -> Option<String> {
        let (count, first) = &self.follower.listener.elsewhere;
        (*count > 0).then(|| {
            format!(
                "the chosen transactions have {} on other tables, logged as text; whether a view, a trigger, a stored function or a \
                 foreign key led to the chosen tables isn't known, and the output has nothing of it; the first: {first}",
                counted(*count, "statements")
            )
        })
    }

    /// The triggers that may run again with a script, line by line, once all logs are read.
    pub fn trigger_notes(&self) -> Vec<String> {
        match self.form {
            ScriptForm::Sql => self.follower.listener.trigger_notes(),
            // The log's rows run none, and a table with one isn't applied to.
            ScriptForm::Log | ScriptForm::Apply => Vec::new(),
        }
    }

    /// Reads a log, in the order of the logs. `false`: nothing after it is asked for, but logs that are read nevertheless tell
    /// whether statements changed the tables since.
    ///
    /// # Errors
    ///
    /// A log that can't be read, a condition that doesn't fit its tables, a temporary file that can't be written.
    pub fn read(
        &mut self,
        input: Input,
        name: &str,
        range: Range,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(RunSummary, bool), Error> {
        if let Some(finder) = self.finder.take() {
            self.follower.listener.cascades = Some(finder.finish());
        }
        let renderer = Rows {
            followed: self.followed.clone(),
            defers_conditions: self.defers_conditions,
            ..Rows::new(self.direction, self.form, self.digests.clone())
        };
        let history = self.history_use();
        let selection = self.selection;
        let schema = self.schema;
        let carrying = self.carrying;
        let search = Search { selection, schema, history, carrying, renderer: &renderer, workers };
        let (ran, goes_on) = read_log(input, (name, range), &search, &mut self.follower, progress)?;
        self.last_read = Some((name.to_owned(), ran.read.bytes_read));
        Ok((ran, goes_on && !self.follower.is_over))
    }

    /// The tables with chosen rows whose columns' names aren't in the logs, as `database.table`: theirs come from elsewhere.
    pub fn unnamed_tables(&self) -> Vec<String> {
        self.follower.listener.unnamed_tables()
    }

    /// The log that was read last, and the offset where it ended.
    pub fn last_read(&self) -> Option<(&str, u64)> {
        self.last_read.as_ref().map(|(name, end)| (&**name, *end))
    }

    /// What was read are the net changes of other logs: the last of these has this name, and was read up to this offset. With all before
    /// them they hold these transactions.
    pub fn stands_for(&mut self, (name, end): (&str, u64), gtids: &GtidSet) {
        self.last_read = Some((name.to_owned(), end));
        self.follower.listener.seen.union(gtids);
    }

    /// The transactions that were read or passed over, and all before them.
    pub fn transactions_read(&self) -> &GtidSet {
        &self.follower.listener.seen
    }

    /// The tables without a key with chosen rows that are to be applied: whether that was done already, the logs after these may
    /// tell.
    pub fn keyless_tables(&self) -> Vec<(String, String)> {
        self.follower.listener.keyless_tables()
    }

    /// Why we can't know whether rows of tables without a key were changed in the same way since.
    pub fn repeated_unknown(&mut self, why: &str) {
        self.follower.listener.repeated_unknown(why);
    }

    /// Reads a log for the sake of statements that changed tables after all that was read, and of changes that did what is to be
    /// applied to these tables without a key: of transactions that were read before, nothing is taken.
    ///
    /// # Errors
    ///
    /// A log that can't be read.
    pub fn read_after(
        &mut self,
        input: Input,
        name: &str,
        keyless: &[(String, String)],
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ReadSummary, Error> {
        self.follower.read_only_statements()?;
        self.follower.listener.is_after = true;
        let mut tables = keyless.to_vec();
        let digests = self.digests.clone().filter(|_| !tables.is_empty());
        let renderer = Rows::new(self.direction, self.form, digests);
        // No table has this name: no row is looked at.
        if tables.is_empty() {
            tables.push((String::new(), String::new()));
        }
        // No transaction is chosen.
        let nothing = RowSelection { tables, gtids: Some(GtidSet::new()), ..RowSelection::default() };
        let search = Search::new(&nothing, &renderer, workers);
        let (RunSummary { read, unread }, _) =
            read_log(input, (name, Range::WHOLE), &search, &mut self.follower, progress)?;
        if let Some(unread) = unread.iter().next() {
            self.columns_unknown(&format!("{name} {unread}"));
            self.repeated_unknown(&format!("{name} {unread}"));
        }
        Ok(read)
    }

    /// Why we can't know whether tables whose columns' names aren't in the logs were changed since.
    pub fn columns_unknown(&mut self, why: &str) {
        self.follower.listener.columns_unknown(why);
    }

    /// The coming log holds these transactions, though parts of it may be left out of what is read.
    pub fn pass_over(&mut self, gtids: &GtidSet) {
        self.follower.listener.seen.union(gtids);
        self.follower.pass_over(gtids);
    }

    /// Chosen transactions were skipped, since they have no chosen row. They had rows of the tables at these places among
    /// the named ones.
    pub fn pass_chosen(&mut self, tables: &BTreeSet<usize>) {
        self.follower.has_chosen = true;
        self.follower.tables_met.resize(self.selection.tables.len(), false);
        for place in tables {
            if let Some(met) = self.follower.tables_met.get_mut(*place) {
                *met = true;
            }
        }
    }

    /// Whether the table at this place of those that were named had rows in chosen transactions.
    pub fn has_met_table(&self, place: usize) -> bool {
        self.follower.tables_met.get(place).copied().unwrap_or(false)
    }

    /// Writes the statements as a script for the mysql client.
    ///
    /// # Errors
    ///
    /// An output or a temporary file that fails.
    pub fn write(self, out: &mut dyn io::Write) -> io::Result<ScriptSummary> {
        self.finish(|how, collected| write::write(collected, how.direction, how.across_ddl, out))
    }

    /// Writes a binary log, and a report of the changes that were left out.
    ///
    /// # Errors
    ///
    /// An output or a temporary file that fails.
    pub fn write_log(self, out: &mut dyn io::Write, report: &mut dyn io::Write) -> io::Result<ScriptSummary> {
        self.finish(|how, collected| log::write(collected, how.direction, how.across_ddl, out, report))
    }

    /// Applies the script to a server, and writes a report of conflicts and of the changes that were left out.
    ///
    /// # Errors
    ///
    /// See [`ApplyError`]; it says what of the changes is there.
    pub fn apply(
        self,
        options: ApplyOptions<'_>,
        report: &mut dyn io::Write,
    ) -> Result<AppliedChanges, ApplyError> {
        self.finish(|how, collected| apply::apply(collected, how.direction, how.across_ddl, options, report))
    }

    fn finish<T: HasSummary, E: From<io::Error>>(
        mut self,
        write: impl FnOnce(&Settings, &CollectedChanges) -> Result<T, E>,
    ) -> Result<T, E> {
        self.follower.finish()?;
        let has_chosen = self.follower.has_chosen;
        let settings = Settings { direction: self.direction, across_ddl: self.across_ddl };
        let mut collected = self.follower.listener.finish()?;
        for table in &mut collected.tables {
            let described = self
                .schema
                .and_then(|schema| schema.table(table.database.as_bytes(), table.table.as_bytes()));
            table.is_described = described.is_some();
        }
        let mut written = write(&settings, &collected)?;
        written.summary_mut().has_chosen = has_chosen;
        Ok(written)
    }
}

/// Access to the summary of a writer.
trait HasSummary {
    fn summary_mut(&mut self) -> &mut ScriptSummary;
}

impl HasSummary for ScriptSummary {
    fn summary_mut(&mut self) -> &mut ScriptSummary {
        self
    }
}

impl HasSummary for AppliedChanges {
    fn summary_mut(&mut self) -> &mut ScriptSummary {
        &mut self.summary
    }
}

/// How the kept statements are written.
struct Settings {
    direction: Direction,
    across_ddl: bool,
}

/// Renders rows.
struct Rows {
    direction: Direction,
    form: ScriptForm,
    digests: Option<Arc<Digests>>,
    /// Of keys' values, of which two rows of one event after the other are compared.
    keys: Digests,
    followed: Option<Arc<FollowedTables>>,
    defers_conditions: bool,
}

impl Rows {
    fn new(direction: Direction, form: ScriptForm, digests: Option<Arc<Digests>>) -> Self {
        let keys = Digests::default();
        Rows { direction, form, digests, keys, followed: None, defers_conditions: false }
    }

    /// The digest of what a row has in the columns of all keys; 0: that isn't known.
    fn key_digest(&self, table: &WrittenTable, row: &Row<'_, '_>) -> u128 {
        let ((Some(image), None) | (None, Some(image))) = (row.before, row.after) else { return 0 };
        if table.key.is_none() {
            return 0;
        }
        let value = |index: &usize| match image.cell(*index)?.content {
            CellContent::Null => Some(None),
            CellContent::Value(bytes) => Some(Some(bytes)),
            CellContent::JsonDiffs(_) => None,
        };
        table.in_keys.iter().map(value).collect::<Option<Vec<_>>>().map_or(0, |values| self.keys.of(values))
    }
}

impl Renderer for Rows {
    fn render(&self, of: TableRow<'_>, out: &mut Vec<u8>) -> RowRendering {
        let TableRow { table, row, .. } = of;
        let start = out.len();
        let outcome = match self.form {
            ScriptForm::Sql => push_statement(out, table, row, self.direction),
            ScriptForm::Apply => ScriptChange::push(out, of, self.direction),
            ScriptForm::Log => {
                let keys = self.key_digest(table, row);
                LoggedChange::push_front(out, |out| push_name(out, of), keys);
                match push_images(out, table, row, self.direction) {
                    Ok(true) => RowOutcome::Statement { is_lenient: false },
                    Ok(false) => RowOutcome::Nothing,
                    Err(why) => RowOutcome::Missing(why),
                }
            }
        };
        match outcome {
            RowOutcome::Nothing => RowRendering::Nothing,
            RowOutcome::Statement { is_lenient } => {
                RowRendering::Text(if is_lenient { RowFlags::LENIENT } else { 0 })
            }
            RowOutcome::Missing(why) => {
                out.truncate(start);
                push_missing(out, of, &why);
                // Without its columns' names a row can't be written anyway, nor can one of a table that doesn't fit.
                let may_be_rebuilt =
                    table.unfit.is_none() && (table.has_names || self.form == ScriptForm::Log);
                match may_be_rebuilt && lacks_columns(table, row) {
                    true => RowRendering::Lacking(RowFlags::MISSING),
                    false => RowRendering::Text(RowFlags::MISSING),
                }
            }
        }
    }

    fn render_unsure(
        &self,
        row: TableRow<'_>,
        columns: Option<&RebuiltColumns<'_>>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        let why = columns.map_or(UNSURE, |columns| columns.why);
        push_missing(out, row, why);
        RowRendering::Lacking(RowFlags::MISSING)
    }

    fn counts_others(&self) -> bool {
        true
    }

    fn defers_conditions(&self) -> bool {
        self.defers_conditions
    }

    fn digest_of_keys(&self, table: &WrittenTable, row: &Row<'_, '_>) -> u128 {
        // Those of a log stand with the images.
        if self.form == ScriptForm::Log { 0 } else { self.key_digest(table, row) }
    }

    fn follows_replaced(&self) -> bool {
        true
    }

    /// A row that is applied is compared with the server's.
    fn follows_references(&self) -> bool {
        self.form == ScriptForm::Sql && self.digests.is_some()
    }

    fn digests(&self) -> Option<&Digests> {
        self.digests.as_deref()
    }

    fn digests_of_row(&self, digests: &Digests, table: &WrittenTable, row: &Row<'_, '_>) -> Vec<u128> {
        match self.form {
            ScriptForm::Apply => {
                repeated::digests_of(digests, table, row, self.direction).into_iter().flatten().collect()
            }
            ScriptForm::Sql | ScriptForm::Log => digests_of(digests, table, row),
        }
    }

    fn followed(&self) -> Option<&FollowedTables> {
        self.followed.as_deref()
    }

    fn needs_table_maps(&self) -> bool {
        self.form == ScriptForm::Log
    }
}

/// Says of a row why it can't be written.
fn push_missing(out: &mut Vec<u8>, TableRow { table, operation, row }: TableRow<'_>, why: &str) {
    push(out, format_args!("{} of a row in {}: {why}; the row has ", operation.name(), table.shown()));
    push_row(out, table, row);
}

fn push_name(out: &mut Vec<u8>, TableRow { table, operation, row }: TableRow<'_>) {
    push(out, format_args!("{} of a row in {}: ", operation.name(), table.shown()));
    push_row(out, table, row);
}

/// The most bytes of a value by which a row is named.
const NAMED_VALUE_SIZE_MAX: usize = 64;
/// The most values.
const NAMED_VALUES_MAX: usize = 8;

/// Names a row by its key, or by its first values.
fn push_row(out: &mut Vec<u8>, table: &WrittenTable, row: &Row<'_, '_>) {
    let Some(image) = row.before.or(row.after) else { return };
    let is_short = |cell: &Cell<'_>| {
        matches!(cell.content, CellContent::Null)
            || matches!(cell.content, CellContent::Value(bytes) if bytes.len() <= NAMED_VALUE_SIZE_MAX)
    };
    let named: Vec<Cell<'_>> = match &table.key {
        Some(key) => key.iter().filter_map(|index| image.cell(*index)).filter(is_short).collect(),
        None => image.cells().filter(is_short).take(NAMED_VALUES_MAX).collect(),
    };
    let mut written = 0;
    for cell in named {
        let Some(column) = table.columns.get(cell.index) else { continue };
        let start = out.len();
        push(out, if written == 0 { "" } else { ", " });
        match push_equal(out, column, &cell, false) {
            Ok(()) => written += 1,
            Err(_) => out.truncate(start),
        }
    }
}
