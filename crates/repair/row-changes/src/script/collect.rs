//! Keeps the statements of a pass, and the events that decide over them: DDL, the end of transactions, XA.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem;
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_payload::{Spool, SpoolMemory};
use binlogz_schema::{HistoryPlace, SchemaFile, TableHistory, TableThen};

use super::commit_times::CommitTimes;
use super::later::LaterChanges;
use super::later_below::LaterBelow;
use super::repeated::{ChangeNumber, RepeatedChanges};
use super::replaced::ReplacedRows;
use super::{Rows, ScriptForm};
use crate::apply::{SplitRows, SplitTables};
use crate::cascade::{Cascades, row_place};
use crate::choose::{Condition, Direction, RowSelection};
use crate::digest::Digests;
use crate::images::{ImageRebuilder, RebuiltRow};
use crate::pass::{
    Break, ChoiceListener, Error, FollowedTables, FollowedTransaction, NamedReach, StatementAt,
    StatementWords, TransactionEnding, shortened,
};
use crate::record::{
    CarriedParent, RowAt, RowFlags, RowImages, RowKeys, RowReference, ScriptRecord, ScriptRow,
};
use crate::table::Structure;

/// Memory for the kept statements; the rest goes to a temporary file.
const KEPT_MEMORY: usize = 16 << 20;

/// Why nothing of a transaction is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkipReason {
    Ended(TransactionEnding),
    XaRolledBack,
    /// Neither committed nor rolled back in the logs given.
    XaPrepared,
}

/// A table that had rows.
#[derive(Debug)]
pub(super) struct SeenTable {
    pub(super) database: String,
    pub(super) table: String,
    structure: Structure,
    /// The statements that changed it, in order: a row of epoch n is older than all but the first n.
    pub(super) borders: Vec<String>,
    /// Where its first row is.
    first_row: Option<HistoryPlace>,
    /// How many of them there were when it had its last rows.
    borders_met: usize,
    /// Whether its columns became others though no statement says so.
    is_unexplained: bool,
    /// Whether rows were looked at with the columns of now, whatever changed them since.
    is_doubtful: bool,
    /// Whether it has rows that foreign keys may have changed, which are changed again unchecked.
    pub(super) may_be_cascaded: bool,
    /// Whether a schema describes it, so that its generated columns are known.
    pub(super) is_described: bool,
}

/// All that was kept.
pub(super) struct CollectedChanges {
    pub(super) kept: Spool,
    pub(super) tables: Vec<SeenTable>,
    /// Different table maps that rows need.
    pub(super) maps: Vec<Vec<u8>>,
    /// By number of transaction.
    pub(super) skipped: HashMap<u64, SkipReason>,
    /// How many transactions have rows that foreign keys may have changed.
    pub(super) cascading: u64,
    pub(super) later: LaterChanges,
    /// Where rows are to be applied.
    pub(super) repeated: Option<RepeatedChanges>,
    /// Tables of which one statement changed rows, though no foreign key did.
    pub(super) together: BTreeSet<BTreeSet<usize>>,
    /// Tables with rows that a REPLACE deleted and inserted, which are deleted unchecked.
    pub(super) split: SplitTables,
}

impl CollectedChanges {
    /// Notes, one a line, on statements whose changes a trigger may have made: it would run again with the script.
    pub(super) fn trigger_notes(&self) -> Vec<String> {
        let name = |number: &usize| {
            let table = self.tables.get(*number);
            table.map(|table| format!("{}.{}", table.database, table.table)).unwrap_or_default()
        };
        let line = |tables: &BTreeSet<usize>| {
            let names: Vec<_> = tables.iter().map(name).collect();
            format!(
                "one statement changed rows of {}: if a trigger did that, the script ends before it, as it would run again; --format binlog runs \
                 none",
                names.join(" and ")
            )
        };
        self.together.iter().map(line).collect()
    }

    /// The tables with rows that are changed unchecked, by database and name.
    pub(super) fn unchecked_tables(&self) -> Vec<(&str, &str)> {
        let tables = self.tables.iter().filter(|table| table.may_be_cascaded);
        tables.map(|table| (&*table.database, &*table.table)).collect()
    }
}

/// Keeps the statements of a pass, and learns what decides over them: DDL, the end of transactions, XA.
pub(super) struct ScriptCollector<'o> {
    selection: &'o RowSelection,
    direction: Direction,
    form: ScriptForm,
    collected: CollectedChanges,
    replaced: ReplacedRows,
    numbers: HashMap<(String, String), usize>,
    table: usize,
    map_numbers: HashMap<Vec<u8>, usize>,
    map: usize,
    /// The transaction that has records.
    open: Option<u64>,
    times: CommitTimes,
    /// The statement that the last rows were of, by its number in the transaction.
    statement: Option<(u64, Vec<u8>)>,
    /// Of chosen transactions, how many changes were logged as statements that name other tables than those chosen, and the first.
    pub(super) elsewhere: (u64, String),
    /// Prepared transactions by their identifier.
    prepared: HashMap<String, u64>,
    /// Tables of the open statement, without rows that foreign keys changed; and its last event, if that has begun.
    statement_tables: BTreeSet<usize>,
    statement_end: Option<(u64, Option<u64>)>,
    /// Where the event after a deleted row begins, if the kept row before is one and its statement goes on.
    after_deleted: Option<(u64, Option<u64>)>,
    /// Transactions that were read, and all before them.
    pub(super) seen: GtidSet,
    /// Whether all that was asked for was read, and only later statements count.
    pub(super) is_after: bool,
    /// The last transaction with rows that foreign keys may have changed.
    cascading: Option<u64>,
    /// Tables without a key with chosen rows that are to be applied, by database and name.
    keyless: BTreeSet<(String, String)>,
    /// The change of the row that follows.
    change: ChangeNumber,
    /// The effects of foreign keys below the log.
    pub(super) cascades: Option<Cascades>,
    /// The tables with chosen rows whose images lack columns that they would need.
    pub(super) lacking: FollowedTables,
    /// Whether the row that follows lacks such columns.
    is_lacking: bool,
    /// The rows of tables with such rows, followed from the beginning of the logs.
    pub(super) images: Option<ImageRebuilder<'o, Rows>>,
    /// Of rows' keys, where changes are looked for that came later.
    pub(super) digests: Option<Arc<Digests>>,
    /// The rows that the row refers to whose keys come next.
    references: Vec<RowReference>,
    /// The statements that were read.
    pub(super) history: TableHistory,
    /// Whether statements may be missing between those that were read.
    has_gaps: bool,
    /// Whether statements may be missing between the logs and the schema.
    is_cut_off: bool,
}

/// The history of tables as far as logs and schema tell it.
#[derive(Debug)]
pub struct ReadHistory {
    /// The history.
    pub history: TableHistory,
    /// Whether a script with it has rows that one without it leaves: statements changed tables of rows that were read.
    pub tells_tables: bool,
    /// Whether it has all statements from the first log to the last, and tells tables as far as these and the schema do.
    pub is_whole: bool,
}

impl<'o> ScriptCollector<'o> {
    pub(super) fn new(selection: &'o RowSelection, direction: Direction, form: ScriptForm) -> Self {
        let kept = Spool::new(&SpoolMemory::new(KEPT_MEMORY), Vec::new());
        ScriptCollector {
            selection,
            direction,
            form,
            replaced: ReplacedRows::default(),
            collected: CollectedChanges {
                kept,
                tables: Vec::new(),
                maps: Vec::new(),
                skipped: HashMap::new(),
                cascading: 0,
                later: LaterChanges::default(),
                repeated: None,
                together: BTreeSet::new(),
                split: SplitTables::new(),
            },
            statement_tables: BTreeSet::new(),
            statement_end: None,
            after_deleted: None,
            cascading: None,
            keyless: BTreeSet::new(),
            change: ChangeNumber::KEYED,
            seen: GtidSet::new(),
            is_after: false,
            numbers: HashMap::new(),
            table: 0,
            map_numbers: HashMap::new(),
            map: 0,
            open: None,
            times: CommitTimes::default(),
            statement: None,
            elsewhere: (0, String::new()),
            prepared: HashMap::new(),
            cascades: None,
            lacking: FollowedTables::new(),
            is_lacking: false,
            images: None,
            digests: None,
            references: Vec::new(),
            history: TableHistory::default(),
            has_gaps: false,
            is_cut_off: false,
        }
    }

    pub(super) fn finish(mut self) -> io::Result<CollectedChanges> {
        self.put_waiting()?;
        let open = self.prepared.into_values().map(|number| (number, SkipReason::XaPrepared));
        self.collected.skipped.extend(open);
        Ok(self.collected)
    }

    /// Follows what chosen rows refer to by these foreign keys.
    pub(super) fn follow_below(&mut self, keys: NamedReach) {
        self.collected.later.below = LaterBelow::of(keys);
    }

    pub(super) fn looks_for_repeated(&mut self) {
        self.collected.repeated = Some(RepeatedChanges::default());
    }

    pub(super) fn keyless_tables(&self) -> Vec<(String, String)> {
        self.keyless.iter().cloned().collect()
    }

    pub(super) fn repeated_unknown(&mut self, why: &str) {
        if let Some(repeated) = &mut self.collected.repeated {
            repeated.unknown(why);
        }
    }

    pub(super) fn trigger_notes(&self) -> Vec<String> {
        self.collected.trigger_notes()
    }

    /// The tables of which the condition may have taken other columns than were meant, line by line.
    pub(super) fn condition_notes(&self) -> Vec<String> {
        if self.selection.condition.is_none() {
            return Vec::new();
        }
        let doubtful = |table: &SeenTable| {
            let is_doubtful = table.is_doubtful && !table.structure.has_names();
            let by = table.borders.first().filter(|_| is_doubtful)?;
            let SeenTable { database, table, .. } = table;
            Some(format!(
                "--where: {database}.{table} was changed after its first rows here ({by}): the log has no column names, and those given \
                 may be of other columns before that, so other rows may have been meant"
            ))
        };
        self.collected.tables.iter().filter_map(doubtful).collect()
    }

    pub(super) fn unnamed_tables(&self) -> Vec<String> {
        let unnamed = self.collected.tables.iter().filter(|table| !table.structure.has_names());
        unnamed.map(|table| format!("{}.{}", table.database, table.table)).collect()
    }

    /// The history of the tables, which are these now: if statements changed those that had rows, or make other tables of them,
    /// it tells what they were.
    pub(super) fn take_history(&mut self, now: Option<&SchemaFile>, may_tell_tables: bool) -> ReadHistory {
        let mut history = mem::take(&mut self.history);
        if !may_tell_tables && self.lacking.is_empty() {
            return ReadHistory { history, tells_tables: false, is_whole: false };
        }
        history.settle(now.filter(|_| !self.is_cut_off).cloned().unwrap_or_default());
        let tables = &self.collected.tables;
        let helps = tables.iter().any(|table| {
            let first = table.first_row.unwrap_or_default();
            let is_disputed = || {
                let then = history.at(first, &table.database, &table.table);
                !table.structure.has_names() && matches!(then, TableThen::Disagrees(_))
            };
            // Without a schema only what a statement made of the table has names.
            if now.is_none() {
                let then = history.at(first, &table.database, &table.table);
                return !table.structure.has_names()
                    && matches!(then, TableThen::Known(_) | TableThen::UnknownSince(_));
            }
            !table.borders.is_empty()
                || history.touches(first, &table.database, &table.table)
                || is_disputed()
        });
        let is_explained = !tables.iter().any(|table| table.is_unexplained);
        let tells_tables = may_tell_tables && !self.is_cut_off && helps && is_explained;
        ReadHistory { history, tells_tables, is_whole: !self.has_gaps }
    }

    pub(super) fn columns_unknown(&mut self, why: &str) {
        self.is_cut_off = true;
        for table in self.collected.tables.iter_mut().filter(|table| !table.structure.has_names()) {
            table.borders.push(why.to_owned());
        }
    }

    /// A record of this transaction follows.
    fn begin(&mut self, transaction: &FollowedTransaction) -> io::Result<()> {
        if self.open != Some(transaction.number) {
            self.open = Some(transaction.number);
            self.statement = None;
            self.statement_tables.clear();
            self.statement_end = None;
            self.after_deleted = None;
            self.replaced.forget();
            if self.direction == Direction::Redo {
                self.header(transaction)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, record: &ScriptRecord<'_>) -> io::Result<()> {
        self.put_waiting()?;
        record.put(&mut self.collected.kept)
    }

    /// Keeps the rows that waited for the one that may replace them.
    fn put_waiting(&mut self) -> io::Result<()> {
        let kept = &mut self.collected.kept;
        self.replaced.take().into_iter().try_for_each(|row| ScriptRecord::Row(row).put(kept))
    }

    fn header(&mut self, transaction: &FollowedTransaction) -> io::Result<()> {
        let text = describe(transaction, &mut self.times);
        self.put(&ScriptRecord::Header(transaction.number, transaction.time, text.as_bytes()))
    }

    /// The rows after this are of the transaction's current statement.
    fn begin_statement(&mut self, transaction: &FollowedTransaction) -> io::Result<()> {
        let number = transaction.statements;
        if self.statement.as_ref().is_some_and(|(last, _)| *last == number) {
            return Ok(());
        }
        let Some(text) = &transaction.statement else { return Ok(()) };
        match self.direction {
            Direction::Redo => self.put(&ScriptRecord::Statement(text))?,
            Direction::Undo => self.end_statement()?,
        }
        self.statement = Some((number, text.clone()));
        Ok(())
    }

    /// Backwards, a statement is read before its rows if it stands after them.
    fn end_statement(&mut self) -> io::Result<()> {
        match self.statement.take() {
            Some((_, text)) if self.direction == Direction::Undo => self.put(&ScriptRecord::Statement(&text)),
            _ => Ok(()),
        }
    }

    /// Learns which tables one statement changed.
    fn note_tables(&mut self, row: &RowAt<'_>) {
        let event = (row.offset, row.inside);
        if self.statement_end.is_some_and(|end| end != event) {
            self.statement_tables.clear();
        }
        self.statement_end = row.flags.has(RowFlags::ENDS_STATEMENT).then_some(event);
        if !row.flags.may_be_cascaded()
            && self.statement_tables.insert(self.table)
            && self.statement_tables.len() > 1
        {
            self.collected.together.insert(self.statement_tables.clone());
        }
    }

    /// The flag of a row that stands right behind one that its statement deleted.
    fn follows_deleted(&mut self, row: &RowAt<'_>) -> u8 {
        let next =
            row.next_event.filter(|_| !row.flags.has(RowFlags::MISSING)).map(|next| match row.inside {
                Some(_) => (row.offset, Some(next)),
                None => (next, None),
            });
        let place = std::mem::replace(&mut self.after_deleted, next);
        let follows = row.row == 0 && place == Some((row.offset, row.inside));
        if follows { RowFlags::FOLLOWS_DELETED } else { 0 }
    }

    fn put_row(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        if row.flags.has(RowFlags::MISSING) {
            let inside = row.inside.map(|index| format!("+{index}")).unwrap_or_default();
            let place = format!("{} at {}{inside}#{}: ", transaction.log, row.offset, row.row);
            return self.put(&ScriptRecord::Missing(&[place.as_bytes(), row.text].concat()));
        }
        let flags = self.replacing(transaction, row);
        if flags.may_be_cascaded() {
            self.note_unchecked(transaction);
        }
        let borders = self.collected.tables.get(self.table).map_or(0, |table| table.borders.len() as u32);
        // What changed the table later is taken into account.
        let epoch = if row.flags.has(RowFlags::SETTLED) { u32::MAX } else { borders };
        let [table, map] = [self.table, self.map].map(|number| number as u32);
        let change = self.change.0;
        let kept = ScriptRow { table, epoch, map, change, flags, text: row.text.into() };
        // Made again, it is deleted first: the row that may replace it tells how.
        if self.direction == Direction::Redo && row.may_be_replaced && self.form != ScriptForm::Log {
            let beyond = self.replaced.wait(kept.into_owned());
            let spool = &mut self.collected.kept;
            return beyond.map_or(Ok(()), |row| ScriptRecord::Row(row).put(spool));
        }
        self.put(&ScriptRecord::Row(kept))
    }

    /// The current transaction has a row that is changed unchecked, in the current table.
    fn note_unchecked(&mut self, transaction: &FollowedTransaction) {
        if self.cascading.replace(transaction.number) != Some(transaction.number) {
            self.collected.cascading += 1;
        }
        if let Some(table) = self.collected.tables.get_mut(self.table) {
            table.may_be_cascaded = true;
        }
    }

    /// The flags of a row, which may be the one that a REPLACE inserted: what deletes it, or the one that it replaced, is not to check foreign
    /// keys.
    fn replacing(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> RowFlags {
        if self.form == ScriptForm::Log {
            return row.flags;
        }
        let follows = row.flags.has(RowFlags::FOLLOWS_DELETED);
        let flags = RowFlags(row.flags.0 & !RowFlags::FOLLOWS_DELETED);
        let last = self.replaced.pass((self.table, row.keys), row.may_be_replaced);
        let may_replace = row.may_replace && follows && !flags.has(RowFlags::NO_FOREIGN_KEYS);
        let Some(keys) = last.filter(|_| may_replace) else {
            return flags;
        };
        let has_same_keys = keys != 0 && keys == row.keys;
        match self.collected.tables.get(self.table).filter(|_| has_same_keys) {
            Some(SeenTable { database, table, .. }) => {
                self.collected.split.insert(format!("{database}.{table}"), SplitRows::OfOneKey);
            }
            None => self.note_unchecked(transaction),
        }
        let unchecked = |flags: RowFlags| match has_same_keys {
            // Nothing needs to be counted.
            true => RowFlags(flags.0 & !RowFlags::SQL_FOREIGN_KEYS | RowFlags::NO_FOREIGN_KEYS),
            false => RowFlags(flags.0 | RowFlags::NO_FOREIGN_KEYS),
        };
        match self.direction {
            Direction::Undo => unchecked(flags),
            Direction::Redo => {
                self.replaced.change_flags(unchecked);
                flags
            }
        }
    }

    /// The rows that foreign keys changed with this one stand before it, so that they are made again after it.
    fn cascaded(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        let Some(mut cascades) = self.cascades.take() else { return Ok(()) };
        let table = self.table;
        let map = self.map;
        let change = std::mem::replace(&mut self.change, ChangeNumber::KEYED);
        let mut by = None;
        cascades.at(row_place(transaction, row), &mut |child| {
            if by.as_ref().is_some_and(|by| *by != child.constraint) {
                self.by_constraint(by.take())?;
            }
            by = Some(child.constraint.clone());
            if row.flags.has(RowFlags::MISSING) {
                let [database, table] = [child.database, child.table].map(String::from_utf8_lossy);
                let text = format!(
                    "a row of {database}.{table} that was changed with it: the row it refers to is left"
                );
                return self.put_row(transaction, &RowAt { text: text.as_bytes(), ..*row });
            }
            self.table(child.database, child.table, child.structure)?;
            self.table_map(child.map)?;
            self.put_row(transaction, &RowAt { flags: child.flags, text: child.text, ..*row })
        })?;
        self.by_constraint(by)?;
        (self.table, self.map, self.change) = (table, map, change);
        self.cascades = Some(cascades);
        Ok(())
    }

    /// Read backwards, it stands before the rows.
    fn by_constraint(&mut self, constraint: Option<String>) -> io::Result<()> {
        match constraint {
            Some(text) => self.put(&ScriptRecord::Statement(text.as_bytes())),
            None => Ok(()),
        }
    }

    fn change_tables(&mut self, statement: &str, current: &str, words: &StatementWords) {
        for table in &mut self.collected.tables {
            if words.redefines(current, &table.database, &table.table) {
                table.borders.push(statement.to_owned());
            }
        }
    }
}

impl ChoiceListener for ScriptCollector<'_> {
    /// A statement after the chosen part of the logs may have changed the tables of its rows.
    fn wants_statements_after(&self) -> bool {
        true
    }

    fn follows(&mut self, previous: &GtidSet) {
        if !self.is_after {
            self.seen.union(previous);
        }
    }

    fn begin(&mut self, gtid: Option<&Gtid>, _: u64) {
        if !self.is_after {
            gtid.into_iter().for_each(|gtid| self.seen.add(*gtid));
        }
    }

    /// A missing transaction may have changed the same rows, unless it is known that none of it was chosen.
    fn breaks(&mut self, logs: &Break) -> Result<(), Error> {
        let is_irrelevant = self.selection.gtids.as_ref().is_some_and(|chosen| logs.lacks_none_of(chosen));
        self.has_gaps = true;
        if let Some(images) = &mut self.images {
            images.lose(None, &logs.line);
        }
        if is_irrelevant { Ok(()) } else { Err(Error::Refused(logs.line.clone())) }
    }

    fn table(&mut self, database: &[u8], table: &[u8], structure: Structure) -> io::Result<()> {
        let [database, table] = [database, table].map(|name| String::from_utf8_lossy(name).into_owned());
        let tables = &mut self.collected.tables;
        let number = *self.numbers.entry((database.clone(), table.clone())).or_insert_with(|| {
            let borders = Vec::new();
            tables.push(SeenTable {
                database,
                table,
                structure,
                borders,
                first_row: None,
                borders_met: 0,
                is_unexplained: false,
                is_doubtful: false,
                may_be_cascaded: false,
                is_described: false,
            });
            tables.len() - 1
        });
        if let Some(seen) = tables.get_mut(number) {
            if !seen.structure.fits(structure) {
                seen.is_unexplained |= seen.borders_met == seen.borders.len();
                let border =
                    "its columns in the log are others from here on, without a statement that says why";
                seen.borders.push(border.to_owned());
            }
            seen.structure = structure;
            seen.borders_met = seen.borders.len();
            seen.is_doubtful |= !structure.is_settled;
        }
        self.table = number;
        Ok(())
    }

    fn table_map(&mut self, map: &[u8]) -> io::Result<()> {
        self.map = match self.map_numbers.get(map) {
            Some(number) => *number,
            None => {
                self.collected.maps.push(map.to_vec());
                self.map_numbers.insert(map.to_vec(), self.map_numbers.len());
                self.map_numbers.len() - 1
            }
        };
        Ok(())
    }

    fn lacking(&mut self) {
        self.is_lacking = true;
    }

    fn decide(&mut self, condition: Option<&Condition>, why: &str) -> Result<bool, Error> {
        let Some(SeenTable { database, table, .. }) = self.collected.tables.get(self.table) else {
            return Ok(false);
        };
        // A later pass has the images.
        self.lacking.insert((database.clone(), table.clone()));
        let (Some(images), Some(condition)) = (&mut self.images, condition) else { return Ok(false) };
        let is_met = images.meets((database, table), condition)?;
        is_met.ok_or_else(|| Error::Refused(why.to_owned()))
    }

    fn row(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        let is_lacking = mem::take(&mut self.is_lacking);
        // Of a table that isn't followed there is no image, and the last one is another's.
        let rebuilt = match (&mut self.images, self.collected.tables.get(self.table)) {
            (Some(images), Some(seen)) if is_lacking => images.rebuilt(&seen.database, &seen.table)?,
            _ => None,
        };
        let row = &match &rebuilt {
            None => *row,
            Some(RebuiltRow::Text(flags, text)) => {
                RowAt { flags: RowFlags(row.flags.0 & !RowFlags::MISSING | flags), text, ..*row }
            }
            Some(RebuiltRow::Nothing) => return Ok(()),
        };
        if is_lacking && let Some(SeenTable { database, table, .. }) = self.collected.tables.get(self.table) {
            self.lacking.insert((database.clone(), table.clone()));
        }
        self.begin(transaction)?;
        if let Some(table) = self.collected.tables.get_mut(self.table) {
            let place = HistoryPlace { log: transaction.log_number, offset: row.offset };
            table.first_row.get_or_insert(place);
        }
        self.note_tables(row);
        self.begin_statement(transaction)?;
        self.cascaded(transaction, row)?;
        let follows = self.follows_deleted(row);
        self.put_row(transaction, &RowAt { flags: RowFlags(row.flags.0 | follows), ..*row })
    }

    fn images_table(&mut self, place: HistoryPlace, map: &[u8]) -> Result<(), Error> {
        match &mut self.images {
            Some(images) => Ok(images.table(place, map)?),
            None => Ok(()),
        }
    }

    fn image(&mut self, change: RowImages<'_>) -> io::Result<()> {
        self.images.as_mut().map_or(Ok(()), |images| images.image(change))
    }

    fn lost_images(&mut self, table: Option<(&str, &str)>, why: &str) {
        if let Some(images) = &mut self.images {
            images.lose(table, why);
        }
    }

    fn annotation(&mut self, statement: &[u8]) {
        self.images.iter_mut().for_each(|images| images.annotation(statement));
    }

    fn keys_below(&mut self) {
        if let Some(images) = &mut self.images {
            images.keys_below();
        }
    }

    fn passed(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) {
        if let Some(images) = &mut self.images {
            images.passed(transaction, ending);
        }
    }

    fn references(&mut self, references: Vec<RowReference>) {
        self.references = references;
    }

    fn parent_changed(&mut self, transaction: &FollowedTransaction, change: &CarriedParent) {
        self.collected.later.change_below(transaction, change);
    }

    fn keys(&mut self, transaction: &FollowedTransaction, keys: &RowKeys<'_>, is_chosen: bool) {
        let references = mem::take(&mut self.references);
        if is_chosen {
            self.collected.later.refer(&references);
        }
        if self.is_after && transaction.id.as_ref().is_some_and(|gtid| self.seen.contains(gtid)) {
            return;
        }
        match &mut self.collected.repeated {
            Some(repeated) => {
                if is_chosen && !keys.digests.is_empty() {
                    self.keyless.insert(keys.table.names());
                }
                self.change = repeated.take(transaction, keys, is_chosen);
            }
            None => {
                let images = self.images.as_ref().zip(self.digests.as_ref());
                let whole =
                    images.and_then(|(images, digests)| images.whole_digests(digests, &keys.table.names()));
                self.collected.later.take(transaction, keys, whole.as_deref(), is_chosen);
            }
        }
    }

    fn statement(&mut self, transaction: &FollowedTransaction, statement: StatementAt<'_>) -> io::Result<()> {
        let is_chosen = transaction.is_chosen;
        if self.is_after && transaction.id.as_ref().is_some_and(|gtid| self.seen.contains(gtid)) {
            return Ok(());
        }
        statement.record(transaction, &mut self.history);
        let text = String::from_utf8_lossy(statement.text);
        let words = StatementWords::of(&text);
        if words.leaves_rows_alone() {
            return Ok(());
        }
        let shown = shortened(&text);
        let database = String::from_utf8_lossy(statement.database);
        if let Some(images) = &mut self.images {
            images.statement(transaction, (&text, &database), &words);
        }
        if words.is_ddl() {
            self.change_tables(&transaction.changed_by(&text), &database, &words);
        }
        let is_about = |(own, table): &(String, String)| match words.is_ddl() {
            _ if table == RowSelection::ALL_TABLES => words.may_be_in(&database, own),
            true => words.redefines(&database, own, table),
            false => words.mention(own, table),
        };
        let is_meant = self.selection.tables.is_empty() || self.selection.tables.iter().any(is_about);
        if is_chosen && is_meant {
            self.begin(transaction)?;
            self.end_statement()?;
            let context = if database.is_empty() { String::new() } else { format!(" (in {database})") };
            self.put(&ScriptRecord::Border(format!("{shown}{context}").as_bytes()))?;
        } else if is_chosen && !words.is_ddl() {
            if self.elsewhere.0 == 0 {
                self.elsewhere.1 = transaction.changed_by(&text);
            }
            self.elsewhere.0 += 1;
        }
        Ok(())
    }

    fn decided(&mut self, xid: &str, is_committed: bool) {
        if let Some(images) = &mut self.images {
            images.decided(xid, is_committed);
        }
        if let Some(number) = self.prepared.remove(xid).filter(|_| !is_committed) {
            self.collected.skipped.insert(number, SkipReason::XaRolledBack);
        }
    }

    fn end(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) -> io::Result<()> {
        if self.open.take_if(|open| *open == transaction.number).is_none() {
            return Ok(());
        }
        self.end_statement()?;
        if ending != TransactionEnding::Whole {
            self.collected.skipped.insert(transaction.number, SkipReason::Ended(ending));
        }
        if let Some(xid) = &transaction.prepared {
            self.prepared.insert(xid.clone(), transaction.number);
        }
        if self.direction == Direction::Undo {
            self.header(transaction)?;
        }
        Ok(())
    }
}

/// GTID, time, session and place.
fn describe(transaction: &FollowedTransaction, times: &mut CommitTimes) -> String {
    let time = times.text(transaction.time);
    let gtid = transaction.gtid.as_deref().unwrap_or("no GTID");
    let thread = transaction.thread_id.map(|id| format!(", thread {id}")).unwrap_or_default();
    format!("{gtid}, {time}{thread}, {} at {}", transaction.log, transaction.offset)
}
