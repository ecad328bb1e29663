//! Follows transactions through the records of all batches, in order: those that can be folded go into the net changes, the others
//! are borders.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::{self, Write};

use binlogz_binlog::EventType;
use binlogz_binlog::event::{AnyGtidEvent, PreviousGtidsEvent, QueryEvent, XaPrepareEvent};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::statement::StatementKind;
use binlogz_payload::{Spool, SpoolMemory};

use super::border::FoldBorder;
use super::gtids::{SegmentGtids, WITHOUT_PLACES};
use super::net::{Contradiction, NetChange, NetChanges, NetTrouble};
use super::numbers::{LargestNumber, NumberEitherWay};
use super::tables::FoldTables;
use super::write::{FoldedTable, OrderedRows, SegmentWriter};
use super::{BorderCount, FoldOptions, FoldSummary};
use crate::apply::SplitRows;
use crate::pass::{ChangesTogether, Error};
use crate::past::TableMoment;
use crate::record::{FoldRecord, FoldTableFields, PassedEvent, RecordReader, broken, each_record};

/// Memory for net changes, before they go to sorted runs.
const NET_MEMORY: usize = 64 << 20;
/// Memory for the open transaction.
const TRANSACTION_MEMORY: usize = 8 << 20;

/// The end of a pass before that of its log.
#[derive(Debug)]
pub(super) enum FollowEnd {
    /// The moment has passed.
    Moment,
    Error(Error),
}

impl From<io::Error> for FollowEnd {
    fn from(error: io::Error) -> Self {
        FollowEnd::Error(Error::Io(error))
    }
}

impl From<binlogz_binlog::Error> for FollowEnd {
    fn from(error: binlogz_binlog::Error) -> Self {
        FollowEnd::Error(Error::from(error))
    }
}

/// A transaction that has not ended.
struct OpenFold {
    /// `LOG at OFFSET`.
    place: String,
    /// The event that it begins with, if that is a GTID event.
    gtid_event: Option<(EventType, Vec<u8>)>,
    gtid: Option<Gtid>,
    /// When it was committed, in microseconds since 1970; of old logs, when it began.
    time: u64,
    is_excluded: bool,
    border: Option<(FoldBorder, String)>,
    /// Whether it ends with COMMIT as text: its tables' engine has no transactions, as MyISAM.
    is_of_plain_engine: bool,
    /// Its events, and changes with the numbers of their tables among all.
    records: Spool,
    tables: Vec<usize>,
}

/// Follows the transactions of all logs.
pub(super) struct FoldFollower<'o> {
    options: FoldOptions,
    tables_told: Option<&'o FoldTables>,
    writer: SegmentWriter<'o>,
    net: NetChanges,
    log: String,
    open: Option<OpenFold>,
    /// The memory of the records before it.
    spare: Vec<u8>,
    tables: Vec<FoldedTable>,
    numbers: HashMap<Vec<u8>, usize>,
    /// The tables of the batch, as their numbers among all.
    of_batch: Vec<usize>,
    /// Which table, among all, has rows under a name in this segment.
    in_segment: HashMap<Vec<u8>, usize>,
    /// The transactions of the segment, for a log with GTIDs.
    of_segment: SegmentGtids,
    /// Those of a segment that is too short as yet to be folded for such a log.
    waiting: Vec<OpenFold>,
    /// XA transactions that are prepared, and whether that was before the moment to begin at.
    prepared: HashMap<String, bool>,
    /// Transactions before the moment to begin at.
    passed: GtidSet,
    /// Rows of tables that aren't chosen, which the statements of chosen rows changed too.
    together: ChangesTogether,
    /// All transactions that came before: those before the first log, those that are left out, those of the logs. `None`: no log has told.
    before: Option<GtidSet>,
    /// Transactions that a log doesn't have to their end, though others follow: as in relay logs, they come again.
    unended: Vec<(Gtid, String)>,
    /// Whether changes of this log could not be read.
    has_unread: bool,
    /// The moment has passed, and the log is only read to tell which changes can't be read.
    is_over: bool,
    /// When the last transaction of the segment was committed.
    time: u64,
    /// The largest numbers by table, among all, and column.
    given_numbers: BTreeMap<(usize, u32), NumberEitherWay>,
    summary: FoldSummary,
}

impl<'o> FoldFollower<'o> {
    pub(super) fn new(
        options: FoldOptions,
        tables_told: Option<&'o FoldTables>,
        out: &'o mut dyn Write,
    ) -> io::Result<Self> {
        let limits = (options.transaction_rows, options.aim);
        let writer = SegmentWriter::new(out, limits, options.previous.clone())?;
        let summary = FoldSummary { has_begun: options.since.is_none(), ..FoldSummary::default() };
        Ok(FoldFollower {
            options,
            tables_told,
            writer,
            net: NetChanges::new(NET_MEMORY),
            log: String::new(),
            open: None,
            spare: Vec::new(),
            tables: Vec::new(),
            numbers: HashMap::new(),
            of_batch: Vec::new(),
            in_segment: HashMap::new(),
            of_segment: SegmentGtids::default(),
            waiting: Vec::new(),
            prepared: HashMap::new(),
            passed: GtidSet::default(),
            together: ChangesTogether::default(),
            before: None,
            unended: Vec::new(),
            has_unread: false,
            is_over: false,
            time: 0,
            given_numbers: BTreeMap::new(),
            summary,
        })
    }

    /// Begins a log.
    ///
    /// # Errors
    ///
    /// The log before it ends within a transaction that has no GTID by which it is known again.
    pub(super) fn begin_log(&mut self, name: &str) -> Result<(), Error> {
        self.note_unended()?;
        name.clone_into(&mut self.log);
        self.has_unread = false;
        Ok(())
    }

    /// Whether the largest numbers of columns are of use.
    pub(super) fn takes_numbers(&self) -> bool {
        self.options.previous.is_some()
    }

    /// Whether the moment has passed.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The moment has passed. Changes before it that can't be read are told with those of the whole log.
    fn moment(&mut self) -> Result<(), FollowEnd> {
        self.summary.has_met_moment = true;
        if !self.has_unread {
            return Err(FollowEnd::Moment);
        }
        self.is_over = true;
        Ok(())
    }

    pub(super) fn take_batch(&mut self, records: &Spool) -> Result<(), FollowEnd> {
        self.of_batch.clear();
        each_record(records, |kind, content| self.record(FoldRecord::read(kind, content)?))
    }

    fn record(&mut self, record: FoldRecord<'_>) -> Result<(), FollowEnd> {
        if self.is_over {
            return Ok(());
        }
        match record {
            FoldRecord::Unread => self.has_unread = true,
            FoldRecord::Previous(body) => self.previous(body)?,
            FoldRecord::Begin(offset, event) => self.begin(offset, &event)?,
            FoldRecord::Event(event) => {
                self.note_xa(&event)?;
                let Some(open) = &mut self.open else { return Err(self.headless(&event)) };
                if !open.is_excluded {
                    record.put(&mut open.records)?;
                }
            }
            FoldRecord::Table(fields) => {
                let number = self.number(fields)?;
                self.of_batch.push(number);
            }
            FoldRecord::Change(place, sides) => {
                let number = *self.of_batch.get(place as usize).ok_or_else(broken)?;
                let Some(open) = self.open.as_mut().filter(|open| !open.is_excluded) else { return Ok(()) };
                let table = self.tables.get(number).ok_or_else(broken)?;
                if !table.is_chosen {
                    self.together.add(table.shown.clone(), Some(1), || open.place.clone());
                    return Ok(());
                }
                self.together.chosen_row();
                if !open.tables.contains(&number) {
                    open.tables.push(number);
                }
                FoldRecord::Change(number as u32, sides).put(&mut open.records)?;
            }
            FoldRecord::Number(place, column, signed, unsigned) => {
                let number = *self.of_batch.get(place as usize).ok_or_else(broken)?;
                let Some(open) = self.open.as_mut().filter(|open| !open.is_excluded) else { return Ok(()) };
                FoldRecord::Number(number as u32, column, signed, unsigned).put(&mut open.records)?;
            }
            FoldRecord::Border(code, words) => {
                let border = FoldBorder::of_code(code).ok_or_else(broken)?;
                let words = String::from_utf8_lossy(words).into_owned();
                if let Some(open) = &mut self.open {
                    open.border.get_or_insert((border, words));
                }
            }
            FoldRecord::StatementEnd => self.together.end_statement(),
            FoldRecord::End => self.end()?,
        }
        Ok(())
    }

    /// The error that a transaction doesn't begin in the logs.
    fn headless(&self, event: &PassedEvent<'_>) -> FollowEnd {
        FollowEnd::Error(Error::Refused(format!(
            "{}: {} of a transaction whose begin is not in this log, expected logs that begin between transactions",
            self.log, event.event_type
        )))
    }

    /// A log begins after these transactions: all of them came in the logs before it, or the target has them.
    fn previous(&mut self, body: &[u8]) -> Result<(), FollowEnd> {
        self.note_unended().map_err(FollowEnd::Error)?;
        let previous = PreviousGtidsEvent::decode(body)?.gtid_set;
        let excluded = &self.options.excluded;
        let mut lacking = previous.clone();
        match &mut self.before {
            Some(before) => {
                lacking.subtract(before);
                lacking.subtract(&self.summary.gtids);
                lacking.subtract(&self.passed);
            }
            before => {
                // Without a choice the target has the state before the first log.
                if excluded.is_empty() {
                    lacking = GtidSet::default();
                }
                *before = Some(previous);
            }
        }
        lacking.subtract(excluded);
        if lacking.is_empty() {
            return Ok(());
        }
        let place = &self.log;
        Err(FollowEnd::Error(Error::Refused(format!(
            "{place}: it comes after {lacking}, which no log before it has and --exclude-gtids doesn't name: the logs have a gap"
        ))))
    }

    /// The open transaction, if there is one, has no end, and others follow it. It was cut off, as in relay logs, and comes again; or it is lost.
    fn note_unended(&mut self) -> Result<(), Error> {
        let Some(open) = self.open.take().filter(|open| !open.is_excluded) else { return Ok(()) };
        match open.gtid {
            Some(gtid) => self.unended.push((gtid, open.place)),
            None => return Err(unended(&open.place)),
        }
        Ok(())
    }

    /// The number of a table among all.
    fn number(&mut self, fields: &[u8]) -> io::Result<usize> {
        if let Some(number) = self.numbers.get(fields) {
            return Ok(*number);
        }
        let number = self.tables.len();
        let mut table = FoldedTable::read(fields)?;
        let FoldTableFields { database, table: name, .. } = FoldTableFields::read(fields)?;
        table.is_chosen = self.options.selection.has_table(database, name);
        self.summary.tables_met.extend(self.options.selection.places_of(database, name));
        table.is_bound = self.tables_told.is_none_or(|told| told.is_bound(database, name));
        self.tables.push(table);
        self.numbers.insert(fields.to_vec(), number);
        Ok(number)
    }

    fn begin(&mut self, offset: u64, event: &PassedEvent<'_>) -> Result<(), FollowEnd> {
        if event.event_type.is_commit() {
            return Err(self.headless(event));
        }
        let gtid_event = AnyGtidEvent::decode(event.body, event.event_type)?;
        let gtid = gtid_event.as_ref().and_then(AnyGtidEvent::gtid);
        let times = gtid_event.as_ref().and_then(AnyGtidEvent::commit_timestamps);
        let time = times
            .map(|times| times.original.unwrap_or(times.immediate))
            .filter(|time| *time > 0)
            .unwrap_or(u64::from(event.timestamp) * 1_000_000);
        self.note_unended().map_err(FollowEnd::Error)?;
        if let Some(TableMoment::Before(start)) = self.options.since {
            self.summary.has_begun |= i64::try_from(time).unwrap_or(i64::MAX) >= start;
        }
        if let Some(TableMoment::Before(end)) = self.options.until
            && i64::try_from(time).unwrap_or(i64::MAX) >= end
        {
            return self.moment();
        }
        if gtid.is_none() && !self.options.excluded.is_empty() {
            let line = format!(
                "{} at {offset}: a transaction without a GTID: whether --exclude-gtids leaves it out can't be told",
                self.log
            );
            return Err(FollowEnd::Error(Error::Refused(line)));
        }
        if self.options.previous.is_some() {
            self.check_gtid(gtid, offset)?;
        }
        self.unended.retain(|(own, _)| Some(own) != gtid.as_ref());
        let is_again =
            gtid.as_ref().is_some_and(|gtid| self.summary.gtids.contains(gtid) || self.passed.contains(gtid));
        if let Some(gtid) = gtid.filter(|_| is_again) {
            let line =
                format!("{} at {offset}: {gtid} comes a second time, expected each log once", self.log);
            return Err(FollowEnd::Error(Error::Refused(line)));
        }
        self.open = Some(OpenFold {
            place: format!("{} at {offset}", self.log),
            gtid_event: gtid_event.map(|_| (event.event_type, event.body.to_vec())),
            gtid,
            time,
            is_excluded: !self.summary.has_begun
                || gtid.as_ref().is_some_and(|gtid| self.options.excluded.contains(gtid)),
            border: None,
            is_of_plain_engine: false,
            records: Spool::new(&SpoolMemory::new(TRANSACTION_MEMORY), std::mem::take(&mut self.spare)),
            tables: Vec::new(),
        });
        Ok(())
    }

    /// Checks that a transaction can be one of a log with GTIDs.
    fn check_gtid(&mut self, gtid: Option<Gtid>, offset: u64) -> Result<(), FollowEnd> {
        let place = format!("{} at {offset}", self.log);
        let Some(gtid) = gtid.filter(|gtid| gtid.tsid().tag.is_none()) else {
            let line = format!(
                "{place}: a transaction without a GTID, or one with a tag, expected a GTID without one"
            );
            return Err(FollowEnd::Error(Error::Refused(line)));
        };
        match (self.options.excluded.contains(&gtid), self.summary.first) {
            (true, None) => {}
            (true, Some(lacking)) => {
                return Err(FollowEnd::Error(Error::Refused(format!(
                    "{place}: the server has {gtid} and lacks {lacking}, which came before it, expected one that has everything up to a \
                     transaction and nothing later. Restore the backup again if a run with --fold was interrupted here and its channel is gone; \
                     otherwise go on without --fold"
                ))));
            }
            (false, _) => {
                self.summary.first.get_or_insert(gtid);
            }
        }
        Ok(())
    }

    /// Takes what an event says of XA transactions that are prepared.
    fn note_xa(&mut self, event: &PassedEvent<'_>) -> Result<(), FollowEnd> {
        if event.event_type == EventType::XA_PREPARE {
            let prepare = XaPrepareEvent::decode(event.body)?;
            if !prepare.one_phase {
                self.prepared.insert(prepare.xa_id.to_string(), !self.summary.has_begun);
            }
        }
        if event.event_type == EventType::QUERY {
            let query = QueryEvent::decode(event.body)?;
            let kind = StatementKind::of(query.statement);
            if let (StatementKind::Commit, Some(open)) = (kind, &mut self.open) {
                open.is_of_plain_engine = true;
            }
            if matches!(kind, StatementKind::XaCommit | StatementKind::XaRollback) {
                let text = String::from_utf8_lossy(query.statement);
                let xid = text.splitn(3, ' ').nth(2).unwrap_or_default();
                let was_before = self.prepared.remove(xid.strip_suffix(" ONE PHASE").unwrap_or(xid));
                // One of which the logs don't have the beginning was prepared before them.
                let is_of_before = self.options.since.is_some() && was_before.unwrap_or(true);
                if kind == StatementKind::XaCommit && is_of_before && self.summary.has_begun {
                    return Err(FollowEnd::Error(Error::Refused(format!(
                        "{}: {text}: it was prepared before the moment and committed after it: what it changed can't be folded",
                        self.log
                    ))));
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), FollowEnd> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let is_last = matches!((self.options.until, &open.gtid), (Some(TableMoment::After(last)), Some(own)) if last == *own);
        if open.is_excluded {
            self.summary.excluded += 1;
            if !self.summary.has_begun {
                open.gtid.into_iter().for_each(|gtid| self.passed.add(gtid));
                let own = open.gtid.map(TableMoment::After);
                self.summary.has_begun |= own.is_some() && self.options.since == own;
            }
        } else {
            self.summary.transactions += 1;
            open.gtid.into_iter().for_each(|gtid| self.summary.gtids.add(gtid));
            self.summary.last = open.gtid.or(self.summary.last);
            if open.border.is_none() && !self.prepared.is_empty() {
                open.border = Some((FoldBorder::WhileXa, String::new()));
            }
            if open.border.is_none() && open.is_of_plain_engine && self.options.previous.is_some() {
                open.border = Some((FoldBorder::PlainEngine, String::new()));
            }
            if open.border.is_none() && self.has_two_maps(&open) {
                open.border = Some((FoldBorder::OtherTable, String::new()));
            }
            // Those of a transaction that goes through are told by the pass that takes it back.
            self.together.end(open.border.is_some());
            match open.border.take() {
                None => self.fold(open)?,
                Some(border) => self.pass(&open, border)?,
            }
        }
        if is_last {
            return self.moment();
        }
        Ok(())
    }

    /// Whether a transaction has two tables of one name.
    fn has_two_maps(&self, open: &OpenFold) -> bool {
        if open.tables.len() < 2 {
            return false;
        }
        let mut names = HashSet::new();
        !open
            .tables
            .iter()
            .filter_map(|number| self.tables.get(*number))
            .all(|table| names.insert(&table.name))
    }

    /// Takes the changes of a transaction into the net changes.
    fn fold(&mut self, open: OpenFold) -> Result<(), FollowEnd> {
        let mut is_other = false;
        for number in &open.tables {
            let table = self.tables.get(*number).ok_or_else(broken)?;
            is_other |= self.in_segment.get(&table.name).is_some_and(|own| own != number);
        }
        if is_other {
            self.end_segment()?;
        }
        for number in &open.tables {
            let table = self.tables.get_mut(*number).ok_or_else(broken)?;
            table.is_of_plain_engine |= open.is_of_plain_engine;
            if !self.in_segment.contains_key(&table.name) {
                self.in_segment.insert(table.name.clone(), *number);
            }
        }
        self.time = self.time.max(open.time);
        if self.options.previous.is_some() {
            open.gtid.into_iter().for_each(|gtid| self.of_segment.add(gtid));
            if self.of_segment.count() <= WITHOUT_PLACES {
                self.waiting.push(open);
                return Ok(());
            }
            for waiting in std::mem::take(&mut self.waiting) {
                self.fold_changes(&waiting)?;
            }
        }
        self.fold_changes(&open)?;
        self.spare = open.records.into_buffer();
        Ok(())
    }

    fn fold_changes(&mut self, open: &OpenFold) -> Result<(), FollowEnd> {
        each_record(&open.records, |kind, content| {
            let record = FoldRecord::read(kind, content)?;
            if let FoldRecord::Number(table, column, signed, unsigned) = record {
                let number = NumberEitherWay { signed, unsigned };
                let largest = self.given_numbers.entry((table as usize, column));
                largest.and_modify(|known| known.take(number)).or_insert(number);
            }
            if let FoldRecord::Change(number, sides) = record {
                let table = self.tables.get(number as usize).ok_or_else(broken)?;
                self.summary.changes += 1;
                let taken = self.net.change((number, table.has_key), sides);
                taken.map_err(|trouble| self.trouble(trouble, Some(&open.place)))?;
            }
            Ok(())
        })
    }

    /// Ends the segment, and lets a transaction through as it is.
    fn pass(&mut self, open: &OpenFold, (border, words): (FoldBorder, String)) -> Result<(), FollowEnd> {
        self.end_segment()?;
        let words = if words.is_empty() { words } else { format!(": {words}") };
        BorderCount::add(&mut self.summary.borders, border, || format!("{}{words}", open.place));
        self.write_as_it_is(open)
    }

    fn write_as_it_is(&mut self, open: &OpenFold) -> Result<(), FollowEnd> {
        let mut reader = RecordReader::new(open.records.reader(0..open.records.size()));
        while let Some((kind, content)) = reader.next()? {
            if let FoldRecord::Event(event) = FoldRecord::read(kind, content)? {
                self.writer.pass(&event)?;
            }
        }
        let gtid = match &open.gtid_event {
            Some((event_type, body)) => AnyGtidEvent::decode(body, *event_type)?,
            None => None,
        };
        self.writer.pass_commit(gtid.as_ref(), open.time)?;
        Ok(())
    }

    /// Writes the net changes so far.
    fn end_segment(&mut self) -> Result<(), FollowEnd> {
        self.in_segment.clear();
        let gtids = std::mem::take(&mut self.of_segment);
        for waiting in std::mem::take(&mut self.waiting) {
            BorderCount::add(&mut self.summary.borders, FoldBorder::Few, || waiting.place.clone());
            self.write_as_it_is(&waiting)?;
        }
        if self.net.is_empty() {
            return Ok(());
        }
        let mut ordered = OrderedRows::new();
        let mut split = BTreeSet::new();
        let told = self.net.finish(&mut |table, change| {
            if let NetChange::Split(..) = change {
                split.insert(table);
            }
            ordered.take(table, change)
        });
        told.map_err(|trouble| self.trouble(trouble, None))?;
        self.note_split(&split, SplitRows::OfOneKey);
        let rekeyed = self.net.take_rekeyed();
        self.note_split(&rekeyed, SplitRows::OfAnyKey);
        self.writer.segment(&ordered, &self.tables, self.time, gtids)?;
        Ok(())
    }

    fn note_split(&mut self, tables: &BTreeSet<u32>, rows: SplitRows) {
        for number in tables {
            if let Some(table) = self.tables.get(*number as usize) {
                let known = self.summary.split.entry(table.shown.clone()).or_insert(rows);
                *known = rows.max(*known);
            }
        }
    }

    fn trouble(&self, trouble: NetTrouble, place: Option<&str>) -> FollowEnd {
        match trouble {
            NetTrouble::Io(error) => error.into(),
            NetTrouble::Contradiction(Contradiction { table }) => {
                let shown = self.tables.get(table as usize).map_or("a table", |table| &table.shown);
                let place = place.map(|place| format!("{place}: ")).unwrap_or_default();
                FollowEnd::Error(Error::Refused(format!(
                    "{place}{shown}: a row is inserted that is there, or one is changed or deleted that isn't, or has other values: the logs lack changes, \
                     or --schema tells a key that the table didn't have then"
                )))
            }
        }
    }

    /// The largest numbers. A name has one table from the last statement on that may have changed it.
    fn largest_numbers(&self) -> Vec<LargestNumber> {
        let of_table = |((table, column), number): (&(usize, u32), &NumberEitherWay)| {
            let (database, name) = self.tables.get(*table)?.names();
            let NumberEitherWay { signed, unsigned } = *number;
            Some(LargestNumber { database, table: name, column: *column, signed, unsigned })
        };
        self.given_numbers.iter().filter_map(of_table).collect()
    }

    pub(super) fn finish(mut self) -> Result<FoldSummary, Error> {
        self.end_segment().map_err(|end| match end {
            FollowEnd::Error(error) => error,
            FollowEnd::Moment => Error::Io(broken()),
        })?;
        if let Some((_, place)) = self.unended.first() {
            return Err(unended(place));
        }
        let counts = self.writer.counts;
        let numbers = self.largest_numbers();
        let mut up_to_end = self.before.take().unwrap_or_default();
        up_to_end.union(&self.passed);
        up_to_end.union(&self.options.excluded);
        up_to_end.union(&self.summary.gtids);
        Ok(FoldSummary {
            up_to_end,
            together: self.together.note("folded"),
            numbers,
            given: self.writer.given,
            written: counts.transactions,
            inserted: counts.inserted,
            updated: counts.updated,
            deleted: counts.deleted,
            cut: self.open.map(|open| open.place),
            ..self.summary
        })
    }
}

/// The error that a transaction lacks its end, though others follow.
fn unended(place: &str) -> Error {
    Error::Refused(format!("{place}: this transaction has no end, and others follow it, expected whole logs"))
}
