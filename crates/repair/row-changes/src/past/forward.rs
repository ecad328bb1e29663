//! A table as it was at a moment, worked out forward from a dump: for each key that was changed between the dump and the
//! moment, the row after its last change.
//!
//! For each row change, a worker writes the rows that it leaves as records (see `record/touch.rs`). The key in them is, of each of
//! its values, the size (u32) and the bytes, as `dump.rs` reads literals.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};

use binlogz_binlog::charset::Charset;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::row::{Cell, RowImage, Value};
use binlogz_flow::Input;
use binlogz_flow::events::RunSummary;
use binlogz_payload::{Spool, SpoolMemory};

use super::PastError;
use super::dump::{DumpPlace, DumpedTable, literal, number};
use super::indirect::{IndirectStatements, IsolatedTables};
use super::moment::TableMoment;
use super::write::{LiveColumn, PastFormat, RowWriter, begin_script, end_script};
use crate::choose::{Range, RowSelection};
use crate::digest::Digests;
use crate::pass::{
    Break, ChoiceListener, Error, FollowedTransaction, Follower, RebuiltColumns, Renderer, RowRendering,
    Search, StatementAt, StatementWords, TableRow, TransactionEnding, UNSURE, read_log,
};
use crate::record::{KeyRecord, KeyState, RecordFields, RowAt, put_no_key, put_sized};
use crate::sql::literal::{column_charset, push_stored};
use crate::sql::text::push;
use crate::table::{WrittenTable, lacks};

/// Memory for rows; the rest goes to a temporary file.
const ROWS_MEMORY: usize = 16 << 20;

/// A table as it was at a moment, forward from a dump. Read all logs, in their order, then write the table.
pub struct Forward<'o> {
    selection: RowSelection,
    dumped: &'o DumpedTable,
    moment: TableMoment,
    follower: Follower<LastChanges<'o>>,
}

impl<'o> Forward<'o> {
    /// Begins a pass over logs. Statements that may have changed the table without naming it are refused, or counted if they are to be
    /// passed over: a dump doesn't tell which tables lead to others.
    pub fn new(dumped: &'o DumpedTable, moment: TableMoment, passes_statements: bool) -> Self {
        let names = (dumped.database.clone(), dumped.table.clone());
        let selection = RowSelection { tables: vec![names], ..RowSelection::default() };
        let follower = Follower::new(LastChanges::new(dumped, moment, passes_statements));
        Forward { selection, dumped, moment, follower }
    }

    /// Reads a log, in the order of the logs. `false`: the moment has passed.
    ///
    /// # Errors
    ///
    /// A log that can't be read or doesn't follow; a change whose result isn't known; a temporary file that can't be
    /// written.
    pub fn read(
        &mut self,
        input: Input,
        name: &str,
        workers: usize,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(RunSummary, bool), PastError> {
        let renderer = AsLeft { key: &self.dumped.key };
        let schema = Some(&self.dumped.schema);
        let search = Search {
            selection: &self.selection,
            schema,
            history: None,
            carrying: None,
            renderer: &renderer,
            workers,
        };
        let whole = Range { start: 0, stop: u64::MAX };
        let (ran, _) = read_log(input, (name, whole), &search, &mut self.follower, progress)?;
        self.follower.listener.refusal()?;
        Ok((ran, self.follower.listener.now != DumpPhase::After))
    }

    /// The number of statements that were passed over and may have changed the table.
    pub fn passed_statements(&self) -> u64 {
        self.follower.listener.indirect.passed()
    }

    /// Writes the table as it was, as SQL; `dump` is the dump once more. Returns how many rows it had.
    ///
    /// # Errors
    ///
    /// The logs lack the moment or the dump's place; a change whose result isn't known; the dump; the output.
    pub fn write(mut self, dump: impl BufRead, title: &str, out: &mut dyn Write) -> Result<u64, PastError> {
        self.follower.finish().map_err(PastError::Temporary)?;
        let mut changes = self.follower.listener;
        changes.refusal()?;
        changes.check_end(self.moment)?;
        let DumpedTable { names, stored, key, table, create, .. } = self.dumped;
        let columns: Vec<_> =
            stored.iter().filter_map(|place| names.get(*place)).map(|name| LiveColumn::named(name)).collect();
        begin_script(title, out).map_err(PastError::Output)?;
        let mut writer = RowWriter::new(PastFormat::Sql, table, &columns, out);
        writer.begin(create, &columns).map_err(PastError::Output)?;
        self.dumped.rows(dump, &mut |places, values| {
            let value = |place: &usize| {
                let at = places.iter().position(|own| own == place)?;
                values.get(at).copied()
            };
            let own: Option<Vec<_>> = key.iter().map(|place| literal(value(place)?)).collect();
            let own =
                own.ok_or_else(|| PastError::Dump(format!("a row of {table} has a key that can't be read")))?;
            let mut bytes = Vec::new();
            own.iter().for_each(|value| put_sized(&mut bytes, value));
            if changes.states.contains_key(&changes.digests.of(&bytes)) {
                return Ok(());
            }
            let spelled: Option<Vec<&[u8]>> = stored.iter().map(value).collect();
            let spelled =
                spelled.ok_or_else(|| PastError::Dump(format!("a row of {table} lacks columns")))?;
            writer.spelled(&spelled).map_err(PastError::Output)
        })?;
        for text in changes.left()? {
            let row = changes.load(text)?;
            writer.spelled(&[&row]).map_err(PastError::Output)?;
        }
        let rows = writer.end().map_err(PastError::Output)?;
        end_script(&[(table, rows)], out).map_err(PastError::Output)?;
        Ok(rows)
    }
}

/// Where the log is, against dump and moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DumpPhase {
    /// The transaction is in the dump.
    Dumped,
    Between,
    /// The transaction is the last one before the moment.
    AtLast,
    After,
}

/// A key's row: its state, and where its text is.
type KeyRow = (KeyState, u64, u32);

/// The rows of the keys that were changed between the dump and the moment, each after its last change.
struct LastChanges<'o> {
    dumped: &'o DumpedTable,
    moment: TableMoment,
    now: DumpPhase,
    /// All transactions before the first log.
    before: Option<GtidSet>,
    has_last: bool,
    has_position: bool,
    states: HashMap<u128, KeyRow>,
    digests: Digests,
    rows: Spool,
    has_rows: bool,
    /// Prepared transactions, whether they changed the table.
    prepared: HashMap<String, bool>,
    indirect: IndirectStatements,
    refused: Option<PastError>,
}

impl<'o> LastChanges<'o> {
    fn new(dumped: &'o DumpedTable, moment: TableMoment, passes_statements: bool) -> Self {
        LastChanges {
            dumped,
            moment,
            now: DumpPhase::Dumped,
            before: None,
            has_last: false,
            has_position: false,
            states: HashMap::new(),
            digests: Digests::default(),
            rows: Spool::new(&SpoolMemory::new(ROWS_MEMORY), Vec::new()),
            has_rows: false,
            prepared: HashMap::new(),
            indirect: IndirectStatements::new(IsolatedTables::default(), passes_statements),
            refused: None,
        }
    }

    /// The first reason wins.
    fn refuse(&mut self, why: impl FnOnce() -> PastError) {
        if self.refused.is_none() {
            self.refused = Some(why());
        }
    }

    fn refusal(&mut self) -> Result<(), PastError> {
        self.refused.take().map_or(Ok(()), Err)
    }

    fn is_between(&self) -> bool {
        matches!(self.now, DumpPhase::Between | DumpPhase::AtLast)
    }

    /// Whether the logs reach from the dump to the moment.
    fn check_end(&self, moment: TableMoment) -> Result<(), PastError> {
        if let (DumpPlace::Position(log, _), false) = (&self.dumped.place, self.has_position) {
            return Err(PastError::Refused(format!(
                "the dump was made in {log}, which is not among the logs"
            )));
        }
        match moment {
            TableMoment::After(gtid) if !self.has_last => {
                Err(PastError::Unmet(format!("--at {gtid}: this transaction is not in the logs")))
            }
            TableMoment::Before(_) if self.now != DumpPhase::After => Err(PastError::Unmet(
                "the logs end before the moment: no transaction in them was committed then or later"
                    .to_owned(),
            )),
            _ if self.prepared.values().any(|has_rows| *has_rows) => Err(PastError::Refused(
                "an XA transaction that changed the table was prepared, but not committed at that moment"
                    .to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Where the rows are that are left, in the order of their last changes.
    fn left(&self) -> Result<Vec<(u64, u32)>, PastError> {
        let mut found = Vec::new();
        let mut unknown: Option<(u64, u32)> = None;
        for (state, start, size) in self.states.values() {
            match state {
                KeyState::There => found.push((*start, *size)),
                KeyState::Unknown => unknown = unknown.min(Some((*start, *size))).or(Some((*start, *size))),
                KeyState::Absent | KeyState::NoKey => {}
            }
        }
        if let Some(place) = unknown {
            return Err(PastError::Refused(String::from_utf8_lossy(&self.load(place)?).into_owned()));
        }
        found.sort_unstable();
        Ok(found)
    }

    fn load(&self, (start, size): (u64, u32)) -> Result<Vec<u8>, PastError> {
        let mut text = Vec::new();
        let mut reader = self.rows.reader(start..start + u64::from(size));
        reader.read_to_end(&mut text).map_err(PastError::Temporary)?;
        Ok(text)
    }

    /// Whether a transaction is in the dump.
    fn is_dumped(&mut self, gtid: Option<&Gtid>) -> bool {
        match (&self.dumped.place, gtid) {
            (DumpPlace::Gtids(set), Some(gtid)) => set.contains(gtid),
            (DumpPlace::Gtids(_), None) => {
                self.refuse(|| {
                    PastError::Refused(
                        "the dump tells GTIDs, but the logs have transactions without: which of them it has can't be told"
                            .to_owned(),
                    )
                });
                true
            }
            // A row's transaction tells where it stands.
            (DumpPlace::Position(..), _) => false,
        }
    }

    /// Whether a transaction stands before the dump's position.
    fn is_before_position(&mut self, transaction: &FollowedTransaction) -> bool {
        match &self.dumped.place {
            DumpPlace::Gtids(_) => false,
            DumpPlace::Position(log, offset) => {
                let is_there = transaction.log == *log;
                self.has_position |= is_there;
                !self.has_position || is_there && transaction.offset < *offset
            }
        }
    }

    fn leave(&mut self, place: &str, row: &RowAt<'_>) -> io::Result<()> {
        let mut fields = RecordFields::of(row.text);
        while !fields.is_empty() {
            let KeyRecord { state, key, text } = KeyRecord::take(&mut fields)?;
            if state == KeyState::NoKey {
                let why = String::from_utf8_lossy(text).into_owned();
                self.refuse(|| PastError::Refused(format!("{place}: {why}")));
                continue;
            }
            let text = match state {
                KeyState::Unknown => [place.as_bytes(), b": ", text].concat(),
                KeyState::Absent | KeyState::There | KeyState::NoKey => text.to_vec(),
            };
            let start = self.rows.size();
            self.rows.append(&text)?;
            self.states.insert(self.digests.of(key), (state, start, text.len() as u32));
        }
        Ok(())
    }
}

fn gtid_of(transaction: &FollowedTransaction) -> &str {
    transaction.gtid.as_deref().unwrap_or("a transaction without GTID")
}

impl ChoiceListener for LastChanges<'_> {
    fn breaks(&mut self, logs: &Break) -> Result<(), Error> {
        if self.now == DumpPhase::After { Ok(()) } else { Err(Error::Refused(logs.line.clone())) }
    }

    fn follows(&mut self, previous: &GtidSet) {
        if self.before.is_some() {
            return;
        }
        if let DumpPlace::Gtids(dumped) = &self.dumped.place {
            let mut missing = previous.clone();
            missing.subtract(dumped);
            if !missing.is_empty() {
                let missing = missing.brief().to_string();
                self.refuse(|| {
                    PastError::Refused(format!("the logs begin after the dump: they lack {missing}"))
                });
            }
        }
        self.before = Some(previous.clone());
    }

    fn begin(&mut self, gtid: Option<&Gtid>, time: u64) {
        self.has_rows = false;
        let is_late = match self.moment {
            TableMoment::Before(end) => i64::try_from(time).unwrap_or(i64::MAX) >= end,
            TableMoment::After(_) => self.has_last,
        };
        let is_dumped = self.is_dumped(gtid);
        if is_dumped && (is_late || self.now == DumpPhase::After) {
            let shown = gtid.map(Gtid::to_string).unwrap_or_default();
            self.refuse(|| PastError::Unmet(format!("the dump is later than the moment: it has {shown}")));
        }
        let is_last = matches!((self.moment, gtid), (TableMoment::After(last), Some(gtid)) if last == *gtid);
        self.has_last |= is_last;
        self.now = match self.now {
            DumpPhase::After => DumpPhase::After,
            _ if is_late => DumpPhase::After,
            _ if is_last && !is_dumped => DumpPhase::AtLast,
            _ if is_dumped => DumpPhase::Dumped,
            _ => DumpPhase::Between,
        };
    }

    fn row(&mut self, transaction: &FollowedTransaction, row: &RowAt<'_>) -> io::Result<()> {
        if !self.is_between() || self.is_before_position(transaction) {
            return Ok(());
        }
        self.has_rows = true;
        self.leave(&format!("{} at {}, {}", transaction.log, row.offset, gtid_of(transaction)), row)
    }

    fn statement(&mut self, transaction: &FollowedTransaction, statement: StatementAt<'_>) -> io::Result<()> {
        if !self.is_between() || self.is_before_position(transaction) {
            return Ok(());
        }
        let text = String::from_utf8_lossy(statement.text);
        let current = String::from_utf8_lossy(statement.database);
        let words = StatementWords::of(&text);
        if words.may_change(&current, &self.dumped.database, &self.dumped.table) {
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let log = &transaction.log;
            let offset = transaction.offset;
            let gtid = gtid_of(transaction);
            let line = format!(
                "{log} at {offset}, {gtid}: a statement changed the table, which can't be made again: {line}"
            );
            self.refuse(|| PastError::Refused(line));
        } else if let Some(why) = self.indirect.take(&text, &words, &current, &transaction.changed_by(&text))
        {
            self.refuse(|| PastError::Refused(why));
        }
        Ok(())
    }

    fn decided(&mut self, xid: &str, is_committed: bool) {
        if !self.is_between() {
            return;
        }
        match (self.prepared.remove(xid), is_committed) {
            (Some(true), false) => self.refuse(|| {
                PastError::Refused(format!("the XA transaction {xid} changed the table, and was rolled back"))
            }),
            (None, true) => self.refuse(|| {
                PastError::Refused(format!(
                    "the XA transaction {xid} was prepared before the dump: it may have changed the table"
                ))
            }),
            _ => {}
        }
    }

    fn end(&mut self, transaction: &FollowedTransaction, ending: TransactionEnding) -> io::Result<()> {
        if self.is_before_position(transaction) && self.has_position && self.now == DumpPhase::After {
            self.refuse(|| PastError::Unmet("the dump is later than the moment".to_owned()));
        }
        if !self.is_between() {
            return Ok(());
        }
        if let Some(xid) = &transaction.prepared {
            self.prepared.insert(xid.clone(), self.has_rows);
        }
        if ending != TransactionEnding::Whole && self.has_rows {
            let log = &transaction.log;
            let offset = transaction.offset;
            let gtid = gtid_of(transaction);
            let line =
                format!("{log} at {offset}, {gtid}: changes of the table that were rolled back, or cut off");
            self.refuse(|| PastError::Refused(line));
        }
        Ok(())
    }
}

/// Says what rows leave.
struct AsLeft<'o> {
    key: &'o [usize],
}

impl Renderer for AsLeft<'_> {
    fn render_unsure(
        &self,
        _: TableRow<'_>,
        _: Option<&RebuiltColumns<'_>>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        put_no_key(out, &format!("update of a row: {UNSURE}"));
        RowRendering::Text(0)
    }

    fn render(&self, TableRow { table, operation, row }: TableRow<'_>, out: &mut Vec<u8>) -> RowRendering {
        if let Some(unfit) = &table.unfit {
            let why = unfit.replace("--schema doesn't fit", "the dump's table is another one");
            put_no_key(out, &why);
            return RowRendering::Text(0);
        }
        let told = (|| {
            let before = row.before.map(|image| self.key_of(table, [Some(image), None])).transpose()?;
            let after = row.after.map(|image| self.key_of(table, [Some(image), row.before])).transpose()?;
            Ok::<_, String>((before, after))
        })();
        let (before, after) = match told {
            Ok(keys) => keys,
            Err(why) => {
                let line = format!("{} of a row: {why}", operation.name());
                put_no_key(out, &line);
                return RowRendering::Text(0);
            }
        };
        if let Some(before) = before.filter(|before| after.as_ref() != Some(before)) {
            KeyRecord { state: KeyState::Absent, key: &before, text: b"" }.encode(out);
        }
        if let Some((image, after)) = row.after.zip(after) {
            let mut text = Vec::new();
            match push_row(&mut text, table, [Some(image), row.before]) {
                Ok(()) => KeyRecord { state: KeyState::There, key: &after, text: &text }.encode(out),
                Err(why) => {
                    let line = format!("{} of a row: {why}", operation.name());
                    KeyRecord { state: KeyState::Unknown, key: &after, text: line.as_bytes() }.encode(out);
                }
            }
        }
        RowRendering::Text(0)
    }
}

type Images<'r, 'a> = [Option<RowImage<'r, 'a>>; 2];

/// A column, of the first image that has it.
fn cell_of<'a>(images: &Images<'_, 'a>, index: usize) -> Option<Cell<'a>> {
    images.iter().flatten().find_map(|image| image.cell(index))
}

impl AsLeft<'_> {
    fn key_of(&self, table: &WrittenTable, images: Images<'_, '_>) -> Result<Vec<u8>, String> {
        let mut key = Vec::new();
        for index in self.key {
            let Some(column) = table.columns.get(*index) else { return Err("its key is unknown".to_owned()) };
            let cell = cell_of(&images, *index).ok_or_else(|| lacks(&[column.shown()]))?;
            if cell.column.nullable {
                return Err(format!("{} may be NULL: it tells no rows apart", column.shown()));
            }
            let mut text = Vec::new();
            let value = cell.value().map_err(|error| error.to_string())?;
            let value = match value {
                Value::Int(_) | Value::Uint(_) | Value::Year(_) => {
                    push_stored(&mut text, column, &cell)?;
                    number(&text)
                }
                Value::Decimal(_)
                | Value::Date(_)
                | Value::Time(_)
                | Value::DateTime(_)
                | Value::Timestamp(_) => {
                    push_stored(&mut text, column, &cell)?;
                    literal(&text).unwrap_or_default()
                }
                Value::Bytes(bytes) => as_dumped(&cell, bytes).ok_or_else(|| {
                    format!("{}: a key in a character set other than UTF-8", column.shown())
                })?,
                Value::Null
                | Value::Float(_)
                | Value::Double(_)
                | Value::Bit(_)
                | Value::Enum(_)
                | Value::Set(_)
                | Value::Json(_)
                | Value::JsonDiffs(_)
                | Value::Geometry(_)
                | Value::Vector(_) => {
                    return Err(format!(
                        "{}: a key of a type whose spelling in a dump is open",
                        column.shown()
                    ));
                }
            };
            put_sized(&mut key, &value);
        }
        Ok(key)
    }
}

/// Text or bytes of a key as a dump has them.
fn as_dumped(cell: &Cell<'_>, bytes: &[u8]) -> Option<Vec<u8>> {
    let charset = column_charset(cell)?;
    let is_same = match charset.name() {
        "utf8mb4" | "utf8mb3" | "ascii" => true,
        "latin1" => bytes.is_ascii(),
        _ => charset == Charset::Binary,
    };
    is_same.then(|| cell.column.padded(bytes).into_owned())
}

fn push_row(out: &mut Vec<u8>, table: &WrittenTable, images: Images<'_, '_>) -> Result<(), String> {
    let mut absent = Vec::new();
    for (number, column) in table.columns.iter().filter(|column| !column.is_generated).enumerate() {
        push(out, if number == 0 { "" } else { ", " });
        match cell_of(&images, column.index) {
            Some(cell) => {
                push_stored(out, column, &cell).map_err(|why| format!("{}: {why}", column.shown()))?;
            }
            None => absent.push(column.shown()),
        }
    }
    if absent.is_empty() { Ok(()) } else { Err(lacks(&absent)) }
}
