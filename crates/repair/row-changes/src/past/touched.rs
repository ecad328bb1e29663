//! The keys that were changed after a moment, and for each key the row before its first change.
//!
//! For each row change, a worker writes the keys that it touches as records (see `key_record.rs`), with the row as it was before.
//! Key and row are their values as SQL, in parentheses.

use std::collections::{HashMap, HashSet};
use std::io;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::row::{Cell, CellContent, Row, RowImage};
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;

use super::PastError;
use super::indirect::{IndirectStatements, IsolatedTables};
use super::key_record::{KeyRecord, KeyState, put_no_key};
use super::live::{CascadingParent, LiveTable};
use super::touched_rows::{SqlValues, TouchedRows};
use crate::choose::{Operation, Range, RowSelection};
use crate::digest::Digests;
use crate::pass::{
    Break, ChoiceListener, Error, FollowedTransaction, Follower, Renderer, RowAt, RowFlags, RowRendering,
    Search, StatementAt, StatementWords, TransactionEnding, broken, read_log,
};
use crate::sql::literal::push_stored;
use crate::sql::text::push;
use crate::table::{Structure, TableColumn, WrittenTable, lacks};

/// Memory for the rows as they were; the rest goes to a temporary file.
const ROWS_MEMORY: usize = 16 << 20;
/// Memory for the keys; the rest goes to a temporary file.
const KEYS_MEMORY: usize = 8 << 20;

/// When the table is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableMoment {
    /// After this transaction, before the next one in the log.
    After(Gtid),
    /// Before the first transaction, in the log's order, that was committed at this time or later, in microseconds since
    /// 1970.
    Before(i64),
}

/// The keys in the making. Read all logs, in their order.
pub struct TouchedKeys<'o> {
    selection: RowSelection,
    table: &'o LiveTable,
    parents: Vec<CascadingParent>,
    follower: Follower<FirstTouches>,
}

impl<'o> TouchedKeys<'o> {
    /// Nothing read yet. Statements that may have changed the table without naming it are refused, unless they are all `isolated`; or
    /// counted, if they are to be passed over.
    pub fn new(
        table: &'o LiveTable,
        moment: TableMoment,
        parents: Vec<CascadingParent>,
        isolated: IsolatedTables,
        passes_statements: bool,
    ) -> Self {
        let names = (table.database.clone(), table.table.clone());
        let itself = parents.iter().find(|parent| parent.name == names);
        let own_references = itself.map(|own| own.columns.iter().all(|column| table.key.contains(column)));
        let mut tables = vec![names.clone()];
        tables.extend(parents.iter().map(|parent| parent.name.clone()));
        let selection = RowSelection { tables, ..RowSelection::default() };
        TouchedKeys {
            selection,
            table,
            parents,
            follower: Follower::new(FirstTouches {
                own_references,
                ..FirstTouches::new(moment, names, IndirectStatements::new(isolated, passes_statements))
            }),
        }
    }

    /// Reads a log, in the order of the logs.
    ///
    /// # Errors
    ///
    /// A log that can't be read or doesn't follow the one before it; a change that can't be taken back; a temporary file
    /// that can't be written.
    pub fn read(
        &mut self,
        input: Input,
        name: &str,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<RunSummary, PastError> {
        let own = (self.table.database.as_bytes(), self.table.table.as_bytes());
        let renderer = Touches { own, key: &self.table.key, parents: &self.parents };
        let search = Search {
            selection: &self.selection,
            history: None,
            schema: Some(&self.table.schema),
            renderer: &renderer,
            workers,
        };
        let whole = Range { start: 0, stop: u64::MAX };
        let (ran, _) = read_log(input, (name, whole), &search, &mut self.follower, progress)?;
        self.follower.listener.refusal()?;
        Ok(ran)
    }

    /// The first change of another table that foreign keys may have carried on to this one without a trace in the log: servers
    /// before 9.6, and later ones with `innodb_native_foreign_keys`, do that below it.
    pub fn unlogged_cascade(&self) -> Option<&str> {
        self.follower.listener.cascaded.as_deref()
    }

    /// How many statements were passed over that may have changed the table.
    pub fn passed_statements(&self) -> u64 {
        self.follower.listener.indirect.passed()
    }

    /// All keys, if the logs hold all these transactions, which the table may have in it.
    ///
    /// # Errors
    ///
    /// The logs lack some, or the moment; a change that can't be taken back.
    pub fn finish(mut self, needed: &GtidSet) -> Result<TouchedRows, PastError> {
        self.follower.finish().map_err(PastError::Temporary)?;
        let FirstTouches { moment, now, held, seen, keys, rows, row_count, .. } = {
            self.follower.listener.refusal()?;
            self.follower.listener
        };
        if let (TableMoment::After(gtid), MomentPhase::Before) = (moment, now) {
            return Err(PastError::Unmet(match held.contains(&gtid) {
                true => format!("--at {gtid}: this transaction stands before the logs"),
                false => format!("--at {gtid}: this transaction is not in the logs"),
            }));
        }
        let mut missing = needed.clone();
        missing.subtract(&held);
        if !missing.is_empty() {
            return Err(PastError::Refused(format!(
                "the logs lack {}, which the server has executed: the table may have been changed there",
                missing.brief()
            )));
        }
        Ok(TouchedRows { keys, rows, key_count: seen.len() as u64, row_count })
    }
}

/// Where the log is, against the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MomentPhase {
    Before,
    /// In the last transaction before it.
    AtLast,
    After,
}

/// For each key that was changed after the moment, the row before its first change.
struct FirstTouches {
    moment: TableMoment,
    database: String,
    table: String,
    now: MomentPhase,
    /// All transactions before the end of the logs.
    held: GtidSet,
    /// Keys, by their digests.
    seen: HashSet<u128>,
    digests: Digests,
    keys: SqlValues,
    rows: SqlValues,
    row_count: u64,
    /// Whether the open transaction has rows of the table.
    has_rows: bool,
    /// Transactions that are prepared, by their identifiers; whether they changed the table before the moment.
    prepared: HashMap<String, bool>,
    indirect: IndirectStatements,
    /// Whether the rows that come are of the table itself, not of one that foreign keys refer to.
    is_own: bool,
    cascaded: Option<String>,
    /// Whether a foreign key refers to the table itself, and then whether to its key alone.
    own_references: Option<bool>,
    refused: Option<String>,
}

impl FirstTouches {
    fn new(moment: TableMoment, (database, table): (String, String), indirect: IndirectStatements) -> Self {
        FirstTouches {
            moment,
            database,
            table,
            now: MomentPhase::Before,
            held: GtidSet::new(),
            seen: HashSet::new(),
            digests: Digests::default(),
            keys: SqlValues::new(KEYS_MEMORY),
            rows: SqlValues::new(ROWS_MEMORY),
            row_count: 0,
            has_rows: false,
            prepared: HashMap::new(),
            indirect,
            is_own: true,
            cascaded: None,
            own_references: None,
            refused: None,
        }
    }

    /// The first reason wins.
    fn refuse(&mut self, why: impl FnOnce() -> String) {
        if self.refused.is_none() {
            self.refused = Some(why());
        }
    }

    fn refusal(&mut self) -> Result<(), PastError> {
        self.refused.take().map_or(Ok(()), |why| Err(PastError::Refused(why)))
    }

    /// Takes a change that foreign keys carry on, unless the log has what they did, or they were off.
    fn may_cascade(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>, what: &str) {
        if !row.flags.has(RowFlags::NO_FOREIGN_KEYS) && !row.flags.has(RowFlags::SQL_FOREIGN_KEYS) {
            self.cascaded.get_or_insert_with(|| transaction.changed_by(what));
        }
    }

    fn touch(&mut self, touch: &KeyRecord<'_>, place: impl Fn() -> String) -> io::Result<()> {
        let text = || String::from_utf8_lossy(touch.text).into_owned();
        if touch.state == KeyState::NoKey {
            self.refuse(|| format!("{}: {}", place(), text()));
            return Ok(());
        }
        if !self.seen.insert(self.digests.of(touch.key)) {
            return Ok(());
        }
        self.keys.append(touch.key)?;
        match touch.state {
            KeyState::There => {
                self.row_count += 1;
                self.rows.append(touch.text)
            }
            KeyState::Unknown => {
                self.refuse(|| format!("{}: {}", place(), text()));
                Ok(())
            }
            KeyState::Absent | KeyState::NoKey => Ok(()),
        }
    }
}

impl ChoiceListener for FirstTouches {
    fn breaks(&mut self, logs: &Break) -> Result<(), Error> {
        Err(Error::Refused(logs.line.clone()))
    }

    fn follows(&mut self, previous: &GtidSet) {
        self.held.union(previous);
    }

    fn begin(&mut self, gtid: Option<&Gtid>, time: u64) {
        gtid.into_iter().for_each(|gtid| self.held.add(*gtid));
        self.has_rows = false;
        self.now = match (self.now, self.moment) {
            (MomentPhase::AtLast | MomentPhase::After, _) => MomentPhase::After,
            (MomentPhase::Before, TableMoment::After(last)) if gtid == Some(&last) => MomentPhase::AtLast,
            (MomentPhase::Before, TableMoment::Before(end))
                if i64::try_from(time).unwrap_or(i64::MAX) >= end =>
            {
                MomentPhase::After
            }
            (MomentPhase::Before, _) => MomentPhase::Before,
        };
    }

    fn table(&mut self, database: &[u8], table: &[u8], _: Structure) -> io::Result<()> {
        self.is_own = (database, table) == (self.database.as_bytes(), self.table.as_bytes());
        Ok(())
    }

    fn row(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        if !self.is_own {
            if self.now == MomentPhase::After {
                self.may_cascade(transaction, row, &String::from_utf8_lossy(row.text));
            }
            return Ok(());
        }
        self.has_rows = true;
        if self.now != MomentPhase::After {
            return Ok(());
        }
        let (mut was_there, mut has_moved) = (false, false);
        let place = || {
            let gtid = transaction.gtid.as_deref().unwrap_or("a transaction without GTID");
            format!("{} at {}, {gtid}", transaction.log, row.offset)
        };
        let mut rest = row.text;
        while !rest.is_empty() {
            let (touch, after) = KeyRecord::decode(rest).ok_or_else(broken)?;
            match touch.state {
                KeyState::There | KeyState::Unknown => was_there = true,
                KeyState::Absent => has_moved = true,
                KeyState::NoKey => {}
            }
            self.touch(&touch, place)?;
            rest = after;
        }
        let carries_on =
            self.own_references.is_some_and(|to_key_alone| match row.flags.has(RowFlags::UPDATE) {
                true => has_moved || !to_key_alone,
                false => was_there,
            });
        if carries_on {
            self.may_cascade(transaction, row, "a row of the table, to which others of it refer");
        }
        Ok(())
    }

    fn statement(
        &mut self,
        transaction: &FollowedTransaction,
        statement: &StatementAt<'_>,
        _: bool,
    ) -> io::Result<()> {
        if self.now != MomentPhase::After {
            return Ok(());
        }
        let text = String::from_utf8_lossy(statement.text);
        let words = StatementWords::of(&text);
        let current = String::from_utf8_lossy(statement.database);
        if words.may_change(&current, &self.database, &self.table) {
            let gtid = transaction.gtid.as_deref().unwrap_or("a transaction without GTID");
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (log, offset) = (&transaction.log, transaction.offset);
            self.refuse(|| {
                format!("{log} at {offset}, {gtid}: a statement changed the table, which can't be taken back: {line}")
            });
        } else if let Some(why) = self.indirect.take(&text, &words, &current, &transaction.changed_by(&text))
        {
            self.refuse(|| why);
        }
        Ok(())
    }

    fn decided(&mut self, xid: &str, is_committed: bool) {
        let changed_before = self.prepared.remove(xid);
        if self.now != MomentPhase::After || !is_committed {
            return;
        }
        match changed_before {
            Some(false) => {}
            Some(true) => self.refuse(|| {
                format!(
                    "the XA transaction {xid} had changed the table at that moment, and was committed later: what it \
                     changed can't be told from what was there"
                )
            }),
            None => self.refuse(|| {
                format!("the XA transaction {xid} was prepared before the logs: it may have changed the table")
            }),
        }
    }

    fn end(&mut self, transaction: &FollowedTransaction, _: TransactionEnding) -> io::Result<()> {
        if let Some(xid) = &transaction.prepared {
            self.prepared.insert(xid.clone(), self.has_rows && self.now != MomentPhase::After);
        }
        Ok(())
    }
}

/// Says what rows touch.
struct Touches<'o> {
    /// The database and the table.
    own: (&'o [u8], &'o [u8]),
    /// The columns of the key.
    key: &'o [usize],
    parents: &'o [CascadingParent],
}

impl Renderer for Touches<'_> {
    fn render(
        &self,
        table: &WrittenTable,
        operation: Operation,
        row: &Row<'_, '_>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        if (&*table.schema.database, &*table.schema.table) != self.own {
            return self.render_parent(table, operation, row, out);
        }
        if let Some(unfit) = &table.unfit {
            let why = unfit.replace("--schema doesn't fit", "the table was changed after it");
            put_no_key(out, &why);
            return RowRendering::Text(0);
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let told = (|| {
            if operation != Operation::Insert {
                self.push_key(&mut before, table, [row.before, None])?;
            }
            if operation != Operation::Delete {
                // An update left alone the columns that its image lacks.
                self.push_key(&mut after, table, [row.after, row.before])?;
            }
            Ok::<_, String>(())
        })();
        if let Err(why) = told {
            put_no_key(out, &format!("{} of a row: {why}", operation.name()));
            return RowRendering::Text(0);
        }
        if let Some(image) = row.before {
            let mut text = Vec::new();
            match push_row(&mut text, table, image) {
                Ok(()) => KeyRecord { state: KeyState::There, key: &before, text: &text }.encode(out),
                Err(why) => {
                    let mut line = format!("{} of the row of key ", operation.name()).into_bytes();
                    line.extend_from_slice(&before);
                    push(&mut line, format_args!(": {why}"));
                    KeyRecord { state: KeyState::Unknown, key: &before, text: &line }.encode(out);
                }
            }
        }
        if row.after.is_some() && before != after {
            KeyRecord { state: KeyState::Absent, key: &after, text: b"" }.encode(out);
        }
        RowRendering::Text(0)
    }
}

impl Touches<'_> {
    /// A change of a parent, if foreign keys carry it on: a deleted row, or another value of a column that they refer to.
    fn render_parent(
        &self,
        table: &WrittenTable,
        operation: Operation,
        row: &Row<'_, '_>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        let name = (&*table.schema.database, &*table.schema.table);
        let is_table =
            |parent: &&CascadingParent| (parent.name.0.as_bytes(), parent.name.1.as_bytes()) == name;
        let columns = self.parents.iter().find(is_table).map_or(&[][..], |parent| &parent.columns);
        // A column that one image lacks wasn't changed.
        let is_changed = columns.is_empty()
            || columns.iter().any(|index| match (content(row.before, *index), content(row.after, *index)) {
                (Some(before), Some(after)) => before != after,
                _ => false,
            });
        if operation == Operation::Insert || operation == Operation::Update && !is_changed {
            return RowRendering::Nothing;
        }
        push(out, format_args!("{} of a row in {}", operation.name(), String::from_utf8_lossy(&table.name)));
        RowRendering::Text(0)
    }

    fn push_key(
        &self,
        out: &mut Vec<u8>,
        table: &WrittenTable,
        images: [Option<RowImage<'_, '_>>; 2],
    ) -> Result<(), String> {
        let columns = self.key.iter().filter_map(|index| table.columns.get(*index));
        push_values(out, columns, |index| images.iter().flatten().find_map(|image| image.cell(index)))
    }
}

fn content<'a>(image: Option<RowImage<'_, 'a>>, index: usize) -> Option<CellContent<'a>> {
    Some(image?.cell(index)?.content)
}

fn push_row(out: &mut Vec<u8>, table: &WrittenTable, image: RowImage<'_, '_>) -> Result<(), String> {
    let stored = table.columns.iter().filter(|column| !column.is_generated);
    push_values(out, stored, |index| image.cell(index))
}

/// Appends values in parentheses.
fn push_values<'t, 'a>(
    out: &mut Vec<u8>,
    columns: impl Iterator<Item = &'t TableColumn>,
    cell: impl Fn(usize) -> Option<Cell<'a>>,
) -> Result<(), String> {
    let mut absent = Vec::new();
    for (number, column) in columns.enumerate() {
        push(out, if number == 0 { "(" } else { ", " });
        match cell(column.index) {
            Some(cell) => {
                push_stored(out, column, &cell).map_err(|why| format!("{}: {why}", column.shown()))?
            }
            None => absent.push(column.shown()),
        }
    }
    push(out, ")");
    if absent.is_empty() { Ok(()) } else { Err(lacks(&absent)) }
}
