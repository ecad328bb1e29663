//! Writes the events of a log whose payloads are expanded, with fillers in the places of what is about other tables.
//!
//! ```text
//! event      body begins with          what is written
//! Table_map  table id 6, flags 2, …    of a chosen table: the event, once rows of it come; of another: a filler that names it
//! Rows       table id 6, flags 2, …    of a chosen table: the event; of another: a filler
//! Rows_query, Annotate_rows            a filler: they may quote rows of other tables
//! Query      see `statement_fate`      the event, a shorter one with spaces, a filler, or an empty transaction, with the names of its tables; in a database that is not made,
//!                                      without USE (a flag): it names its tables' databases
//! Transaction_context                  a filler: hashes of rows
//! XA_prepare                           the event; where no rows of the transaction stay, see `empty_xa`
//! GTID, XID, file's own, LOAD DATA …   the event
//! unknown                              none: the log is refused
//! ```
//!
//! The last rows event of a statement has a flag by which a server applies what it has and closes its tables. If that event is left
//! out, the last one before it that stays gets the flag. If none stays, the statement's table maps don't either.
//!
//! MariaDB's GTID event says whether a BEGIN is one with it, so it waits for the event after it.
//!
//! The output is a temporary file. No place of it with rows is written twice, since it is encrypted (`binlogz-scratch-file`): a table
//! map is written once it is known whether it stays, and later only a flag and a checksum change.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::checksum::{CHECKSUM_SIZE, Crc32};
use binlogz_binlog::event::{
    CompressedEvent, FormatDescription, LeftOutStatement, LeftOutTable, PostHeaderLengths, QueryEvent,
    TableMapEvent,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{
    Boundary, ChecksumAlgorithm, EventClass, EventFrame, EventHeader, EventType, Framing, HeaderFlags, MAGIC,
    StatementKind, TransactionBoundaryParser,
};
use binlogz_scratch_file::Scratch;

use super::doubts::DoubtfulStatement;
use super::empty_xa::{EmptyXa, XaFrame, beginning_gtid, id_of};
use super::statement_fate::{StatementFate, StatementJudge};
use super::{SelectedLog, SelectionDoubts, TableChoice, filler};
use crate::error::{Error, Result};
use crate::log::events::TABLE_MAP_POST_HEADER;

/// Bytes of a row event's body that tell table and flags: 6 and 2.
const ROWS_HEAD_SIZE: usize = 8;
/// The flag of the last rows event of a statement.
const STATEMENT_END: u8 = 0x01;
/// The table of an event that has no rows and only ends a statement, in 6 bytes or in the 4 of older logs: no table has this number.
const NO_TABLES: [u64; 2] = [0x00ff_ffff, 0xffff_ffff_ffff];
/// A table map or format description of more bytes is no server's: 4,096 columns with names and metadata need less. Nor is a longer
/// statement read.
const HELD_SIZE_MAX: u32 = 16 << 20;
/// Bytes of an event that are read again at once.
const PIECE_SIZE: usize = 64 << 10;
/// Prepared transactions without rows whose end is waited for.
const PREPARED_MAX: usize = 10_000;

/// Where the writer is within an event.
#[derive(Debug, Clone, Copy)]
enum EventStage {
    /// So many bytes of its front have to be there before it is decided.
    Front(usize),
    /// So many bytes are still to be written.
    Kept(u64),
    /// So many bytes are still to be passed over: a filler stands in their place.
    LeftOut(u64),
}

/// Writes a log's events as they come, in any pieces.
pub(super) struct SelectedLogWriter<'c> {
    judge: StatementJudge<'c>,
    file: Scratch,
    /// Where the next byte goes.
    at: u64,
    /// The first bytes of the current event; before all, the magic.
    front: Vec<u8>,
    stage: EventStage,
    has_magic: bool,
    checksum: ChecksumAlgorithm,
    lengths: PostHeaderLengths,
    parser: TransactionBoundaryParser,
    /// MariaDB's GTID event and where it goes, until the event after it is known.
    gtid: Option<(u64, Vec<u8>)>,
    /// Whether values for the next statement were written: Intvar, Rand, User_var.
    has_values: bool,
    /// Whether rows of the transaction stay, or statements that may change some.
    has_rows: bool,
    xa: XaFrame,
    /// Prepared transactions without rows, by what their statements call them.
    prepared: BTreeMap<Vec<u8>, EmptyXa>,
    statement: ChosenRows,
    /// Tables that the choice names.
    named: BTreeSet<String>,
    /// Those of them that have rows.
    met: BTreeSet<String>,
    events_left_out: u64,
    statements_left_out: u64,
    doubts: SelectionDoubts,
    error: Option<Error>,
}

/// The statement whose rows come.
#[derive(Debug, Default)]
struct ChosenRows {
    /// Ids of tables whose rows are left out.
    left_out: Vec<u64>,
    /// Ids of the others.
    chosen: Vec<u64>,
    /// Maps of chosen tables, which are written before the first rows of one, and where.
    maps: Vec<(u64, Vec<u8>)>,
    /// The last rows event that stays.
    last: Option<Range<u64>>,
}

impl<'c> SelectedLogWriter<'c> {
    /// Writes into a new temporary file.
    pub(super) fn new(choice: &'c TableChoice) -> Result<Self> {
        Ok(SelectedLogWriter {
            judge: StatementJudge { choice, lowered: choice.in_small_letters() },
            file: Scratch::new().map_err(Error::io("make a temporary file"))?,
            at: 0,
            front: Vec::new(),
            stage: EventStage::Front(MAGIC.len()),
            has_magic: false,
            checksum: ChecksumAlgorithm::NONE,
            lengths: PostHeaderLengths::default(),
            parser: TransactionBoundaryParser::new(),
            gtid: None,
            has_values: false,
            has_rows: false,
            xa: XaFrame::default(),
            prepared: BTreeMap::new(),
            statement: ChosenRows::default(),
            named: choice.named().collect(),
            met: BTreeSet::new(),
            events_left_out: 0,
            statements_left_out: 0,
            doubts: SelectionDoubts::default(),
            error: None,
        })
    }

    /// Why writing failed, if it did.
    pub(super) fn take_error(&mut self) -> Option<Error> {
        self.error.take()
    }

    /// The log is over.
    pub(super) fn finish(mut self) -> Result<SelectedLog> {
        if !self.front.is_empty() {
            return Err(Error::damaged("selected log", "an end inside an event", "whole events"));
        }
        self.settle_gtid(false)?;
        self.keep_maps()?;
        self.prepared
            .values()
            .for_each(|xa| self.doubts.note_statement(DoubtfulStatement::EmptyXa, xa.end_at));
        Ok(SelectedLog {
            log: Arc::new(self.file),
            events_left_out: self.events_left_out,
            statements_left_out: self.statements_left_out,
            met: self.met,
            doubts: self.doubts,
        })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.stage {
                EventStage::Front(needed) => {
                    let (now, after) = split(rest, needed.saturating_sub(self.front.len()) as u64);
                    self.front.extend_from_slice(now);
                    rest = after;
                    if self.front.len() >= needed {
                        self.decide()?;
                    }
                }
                EventStage::Kept(left) => {
                    let (now, after) = split(rest, left);
                    self.write(now)?;
                    rest = after;
                    self.go_on(EventStage::Kept(left - now.len() as u64));
                }
                EventStage::LeftOut(left) => {
                    let (now, after) = split(rest, left);
                    rest = after;
                    self.go_on(EventStage::LeftOut(left - now.len() as u64));
                }
            }
        }
        Ok(())
    }

    /// The next stage: the next event, where nothing is left of this one.
    fn go_on(&mut self, stage: EventStage) {
        self.stage = match stage {
            EventStage::Kept(0) | EventStage::LeftOut(0) => {
                self.front.clear();
                EventStage::Front(HEADER_SIZE)
            }
            stage => stage,
        };
    }

    /// Decides about the event whose front is there, or says how much more of it is needed.
    fn decide(&mut self) -> Result<()> {
        if !self.has_magic {
            self.has_magic = true;
            let magic = std::mem::take(&mut self.front);
            self.write(&magic)?;
            self.go_on(EventStage::Kept(0));
            return Ok(());
        }
        let header = EventHeader::decode(&self.front)?;
        let smallest = HEADER_SIZE + self.checksum.size();
        if (header.event_size as usize) < smallest {
            return Err(Error::unexpected(
                "event size",
                header.event_size,
                format_args!("at least {smallest}"),
            ));
        }
        let needed = front_size(&header)?;
        if self.front.len() < needed {
            self.stage = EventStage::Front(needed);
            return Ok(());
        }
        let (_, body) = split(&self.front, HEADER_SIZE as u64);
        let body_size = u64::from(header.event_size) - smallest as u64;
        let boundary = self.parser.feed(&header, split(body, body_size).0).boundary;
        let class = header.event_type.class();
        if class != EventClass::Statement && class != EventClass::CompressedStatement {
            self.settle_gtid(false)?;
        }
        if !matches!(class, EventClass::TableMap | EventClass::Rows | EventClass::CompressedRows) {
            self.end_statement()?;
        }
        self.by_class(&header, class, boundary)?;
        self.has_values = class == EventClass::StatementValue;
        Ok(())
    }

    fn by_class(&mut self, header: &EventHeader, class: EventClass, boundary: Boundary) -> Result<()> {
        match class {
            EventClass::TableMap => self.table_map(header),
            EventClass::Rows | EventClass::CompressedRows => self.rows(header),
            // A context and a view of group replication have hashes of rows.
            EventClass::RowsStatement | EventClass::GroupContext | EventClass::GroupView => {
                self.leave_out(header, &[])
            }
            EventClass::Statement | EventClass::CompressedStatement => self.statement(header, boundary),
            // Of a LOAD DATA that failed there is no statement, but its file's rows.
            EventClass::LoadStatement | EventClass::LoadEnd => {
                self.has_rows = true;
                self.doubts.note_statement(DoubtfulStatement::Rows, self.at);
                self.keep(header)
            }
            EventClass::Gtid => {
                self.has_rows = false;
                self.xa = XaFrame::default();
                self.keep(header)
            }
            EventClass::MariadbGtid => {
                self.has_rows = false;
                let event = std::mem::take(&mut self.front);
                self.xa.note_gtid(self.at, &event, self.checksum)?;
                self.gtid = Some((self.at, event));
                self.pass(header);
                Ok(())
            }
            EventClass::File => {
                if header.event_type == EventType::FORMAT_DESCRIPTION {
                    self.format_description()?;
                }
                self.keep(header)
            }
            EventClass::Unknown if header.flags.contains(HeaderFlags::IGNORABLE) => {
                self.leave_out(header, &[])
            }
            EventClass::FileNote if header.event_type != EventType::MARIADB_START_ENCRYPTION => {
                self.keep(header)
            }
            EventClass::Commit if header.event_type == EventType::XA_PREPARE && !self.has_rows => {
                self.prepare_empty(header)
            }
            EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::Commit
            | EventClass::Incident
            | EventClass::Ignorable
            | EventClass::Heartbeat => self.keep(header),
            EventClass::FileNote | EventClass::Payload | EventClass::Dead | EventClass::Unknown => {
                Err(Error::unexpected(
                    format!("event at {}", self.at),
                    header.event_type,
                    "one whose tables are known, to leave out others",
                ))
            }
        }
    }

    fn format_description(&mut self) -> Result<()> {
        let frame = Framing::new().next_frame(&self.front)?;
        let frame = frame.ok_or_else(|| Error::damaged("format description", "a part", "the whole event"))?;
        let frame = frame.verify()?;
        let description = FormatDescription::decode_frame(&frame)?;
        self.checksum = description.checksum_algorithm;
        self.lengths = PostHeaderLengths::new(&description.post_header_lengths);
        Ok(())
    }

    /// Writes MariaDB's GTID event that waits: as it is, or as one that takes the place of BEGIN and announces nothing.
    fn settle_gtid(&mut self, begins: bool) -> Result<()> {
        let Some((at, event)) = self.gtid.take() else { return Ok(()) };
        if !begins {
            return self.write_at(&event, at);
        }
        self.write_at(&beginning_gtid(&event, self.checksum)?, at)
    }

    /// An event prepares a transaction of which no rows stay.
    fn prepare_empty(&mut self, header: &EventHeader) -> Result<()> {
        let at = self.at;
        let is_held = self.front.len() == header.event_size as usize;
        let is_one_phase = is_held && self.front.get(HEADER_SIZE) == Some(&1);
        self.keep(header)?;
        match std::mem::take(&mut self.xa).prepared(at, header) {
            Some((_, xa)) if is_one_phase => {
                if !self.empty(&xa)? {
                    self.doubts.note_statement(DoubtfulStatement::EmptyXa, at);
                }
            }
            Some((id, xa)) if self.prepared.len() < PREPARED_MAX => {
                if let Some(earlier) = self.prepared.insert(id, xa) {
                    self.doubts.note_statement(DoubtfulStatement::EmptyXa, earlier.end_at);
                }
            }
            Some(_) | None => self.doubts.note_statement(DoubtfulStatement::EmptyXa, at),
        }
        Ok(())
    }

    /// Makes a prepared transaction an empty one; `false`: there is no room.
    fn empty(&self, xa: &EmptyXa) -> Result<bool> {
        let Some(events) = xa.emptied(self.checksum)? else { return Ok(false) };
        events.iter().try_for_each(|(at, event)| self.write_at(event, *at))?;
        Ok(true)
    }

    /// Notes a statement of an XA transaction. Returns the one that it ends, if no rows of that stay.
    fn note_xa(&mut self, header: &EventHeader) -> Result<Option<EmptyXa>> {
        let frame = EventFrame::from_bytes(&self.front, self.checksum.size())?;
        let mut expanded = Vec::new();
        let query = QueryEvent::decode(self.plain(header, &frame, &mut expanded)?)?;
        match StatementKind::of(query.statement) {
            StatementKind::XaStart => {
                self.has_rows = false;
                self.xa.note_start(self.at, *header);
            }
            StatementKind::XaEnd => self.xa.note_end(self.at, *header, id_of(query.statement)),
            StatementKind::XaCommit | StatementKind::XaRollback => {
                return Ok(self.prepared.remove(&id_of(query.statement)));
            }
            StatementKind::Begin
            | StatementKind::Commit
            | StatementKind::Rollback
            | StatementKind::RollbackTo
            | StatementKind::Savepoint
            | StatementKind::XaPrepare
            | StatementKind::Other => {}
        }
        Ok(None)
    }

    /// A statement ends a prepared transaction of which no rows stay.
    fn end_empty(&mut self, header: &EventHeader, xa: &EmptyXa) -> Result<()> {
        let begins = self.gtid.is_none();
        match filler::empty_transaction(header, begins, None, self.checksum) {
            Some(events) if self.empty(xa)? => {
                self.settle_gtid(true)?;
                self.statements_left_out += 1;
                self.replace(&events)
            }
            Some(_) | None => self.keep_in_doubt(header, DoubtfulStatement::EmptyXa),
        }
    }

    fn statement(&mut self, header: &EventHeader, boundary: Boundary) -> Result<()> {
        let is_held = self.front.len() == header.event_size as usize;
        if is_held && let Some(xa) = self.note_xa(header)? {
            return self.end_empty(header, &xa);
        }
        let (fate, shortened) = match is_held {
            true => self.fate(header)?,
            false => (StatementFate::StayInDoubt(DoubtfulStatement::Rows), None),
        };
        let is_whole = boundary == Boundary::End;
        match fate {
            StatementFate::LeaveOut(_) if self.has_values => {
                self.keep_in_doubt(header, DoubtfulStatement::AfterValues)
            }
            StatementFate::LeaveOut(mark) if is_whole => {
                let begins = self.gtid.is_none();
                match filler::empty_transaction(header, begins, mark.encode().as_deref(), self.checksum) {
                    Some(events) => {
                        self.settle_gtid(true)?;
                        self.statements_left_out += 1;
                        self.replace(&events)
                    }
                    None => self.keep_in_doubt(header, DoubtfulStatement::NoRoom),
                }
            }
            StatementFate::LeaveOut(mark) => {
                self.settle_gtid(false)?;
                self.statements_left_out += 1;
                let mark = mark.encode().unwrap_or_default();
                let room = (header.event_size as usize).saturating_sub(HEADER_SIZE + self.checksum.size());
                self.pass_over(header, if mark.len() > room { &LeftOutStatement::UNNAMED } else { &mark })
            }
            StatementFate::Shorten(_) => {
                self.settle_gtid(false)?;
                match shortened {
                    Some(event) => self.replace(&event),
                    None => self.keep_in_doubt(header, DoubtfulStatement::BothKinds),
                }
            }
            // It names chosen tables alone.
            StatementFate::StayInDoubt(DoubtfulStatement::Parents) => {
                self.doubts.note_statement(DoubtfulStatement::Parents, self.at);
                self.stay(header)
            }
            StatementFate::StayInDoubt(kind) => self.keep_in_doubt(header, kind),
            StatementFate::Stay => self.stay(header),
        }
    }

    /// The statement stays, and needs no database that isn't made.
    fn stay(&mut self, header: &EventHeader) -> Result<()> {
        self.settle_gtid(false)?;
        match self.without_use(header)? {
            Some(event) => self.replace(&event),
            None => self.keep(header),
        }
    }

    /// The statement as one of no database, if no table of its own is chosen: that database isn't made.
    fn without_use(&self, header: &EventHeader) -> Result<Option<Vec<u8>>> {
        let frame = EventFrame::from_bytes(&self.front, self.checksum.size())?;
        let mut expanded = Vec::new();
        let query = QueryEvent::decode(self.plain(header, &frame, &mut expanded)?)?;
        let flags = self.flags_in(query.database, header.flags);
        let is_changed = flags != header.flags;
        Ok(is_changed.then(|| encode_event(EventHeader { flags, ..*header }, frame.body(), self.checksum)))
    }

    /// The flags of a statement that was made in this database: without USE, if no table of it is chosen. Then the statement names the
    /// databases of all its tables.
    fn flags_in(&self, database: &[u8], flags: HeaderFlags) -> HeaderFlags {
        match database.is_empty() || self.judge.has_some_of(database) {
            true => flags,
            false => HeaderFlags(flags.0 | HeaderFlags::SUPPRESS_USE.0),
        }
    }

    /// The body of a Query event, expanded.
    fn plain<'b>(
        &self,
        header: &EventHeader,
        frame: &EventFrame<'b>,
        expanded: &'b mut Vec<u8>,
    ) -> Result<&'b [u8]> {
        if header.event_type.class() != EventClass::CompressedStatement {
            return Ok(frame.body());
        }
        CompressedEvent::decode(header.event_type, frame.body(), &self.lengths)?.expand(expanded)?;
        Ok(expanded)
    }

    fn keep_in_doubt(&mut self, header: &EventHeader, kind: DoubtfulStatement) -> Result<()> {
        self.settle_gtid(false)?;
        self.has_rows = true;
        self.doubts.note_statement(kind, self.at);
        self.keep(header)
    }

    /// What becomes of the statement that is there as a whole; if it is to be shortened and there is room, the event with the new
    /// text.
    fn fate(&self, header: &EventHeader) -> Result<(StatementFate, Option<Vec<u8>>)> {
        let frame = EventFrame::from_bytes(&self.front, self.checksum.size())?;
        let mut expanded = Vec::new();
        let query = QueryEvent::decode(self.plain(header, &frame, &mut expanded)?)?;
        let fate = self.judge.fate(&query);
        let StatementFate::Shorten(text) = &fate else { return Ok((fate, None)) };
        let spaces = " ".repeat(query.statement.len().saturating_sub(text.len()));
        let padded = format!("{text}{spaces}");
        let statement = padded.as_bytes();
        let shortened = QueryEvent { statement, ..query }.encode()?;
        let flags = self.flags_in(query.database, header.flags);
        let shorter = EventHeader { event_type: EventType::QUERY, flags, ..*header };
        let event = encode_event(shorter, &shortened, self.checksum);
        // One that was compressed is larger now, as a rule.
        let fits = event.len() == header.event_size as usize;
        Ok((fate, fits.then_some(event)))
    }

    fn table_map(&mut self, header: &EventHeader) -> Result<()> {
        let front = std::mem::take(&mut self.front);
        let frame = EventFrame::from_bytes(&front, self.checksum.size())?;
        let TableMapEvent { database, table, table_id, .. } =
            TableMapEvent::decode(frame.body(), TABLE_MAP_POST_HEADER)?;
        let [low_database, low_table] =
            [database, table].map(|name| String::from_utf8_lossy(name).to_lowercase());
        let is_chosen = self.judge.choice.has(database, table);
        if is_chosen != self.judge.lowered.has(low_database.as_bytes(), low_table.as_bytes()) {
            self.doubts.note_other_case([database, table], is_chosen);
        }
        if is_chosen {
            if self.met.len() < self.named.len() {
                let name =
                    format!("{}.{}", String::from_utf8_lossy(database), String::from_utf8_lossy(table));
                self.met.extend(self.named.get(&name).cloned());
            }
            self.statement.chosen.push(table_id.0);
            self.statement.maps.push((self.at, front));
            self.pass(header);
            return Ok(());
        }
        self.statement.left_out.push(table_id.0);
        let mark = LeftOutTable { database, table }.encode().unwrap_or_default();
        self.leave_out(header, &mark)
    }

    fn rows(&mut self, header: &EventHeader) -> Result<()> {
        let head = self.front.get(HEADER_SIZE..).and_then(|body| body.first_chunk::<ROWS_HEAD_SIZE>());
        let Some([a, b, c, d, e, f, flags, _]) = head.copied() else {
            return Err(Error::damaged("rows event", "no table", "a table and flags"));
        };
        let table = u64::from_le_bytes([a, b, c, d, e, f, 0, 0]);
        let ends = flags & STATEMENT_END != 0;
        if self.statement.left_out.contains(&table) {
            if ends {
                self.end_before()?;
            }
            self.leave_out(header, &[])?;
        } else if self.statement.chosen.contains(&table) || NO_TABLES.contains(&table) {
            self.keep_maps()?;
            self.has_rows = true;
            self.statement.last = Some(self.at..self.at + u64::from(header.event_size));
            self.keep(header)?;
        } else {
            return Err(Error::unexpected(
                format!("rows event at {}", self.at),
                format_args!("table number {table}, which no table map of its statement has"),
                "one that tells the table",
            ));
        }
        if ends {
            self.statement = ChosenRows::default();
        }
        Ok(())
    }

    /// The statement's last rows event is left out: the last one that stays ends it, or its maps are left out too.
    fn end_before(&mut self) -> Result<()> {
        if let Some(last) = self.statement.last.clone() {
            return self.set_statement_end(last);
        }
        for (at, event) in std::mem::take(&mut self.statement.maps) {
            self.events_left_out += 1;
            self.fill(at, &EventHeader::decode(&event)?, &[])?;
        }
        Ok(())
    }

    /// No more rows of the statement come, though none of them ended it.
    fn end_statement(&mut self) -> Result<()> {
        self.keep_maps()?;
        self.statement = ChosenRows::default();
        Ok(())
    }

    fn keep_maps(&mut self) -> Result<()> {
        for (at, event) in std::mem::take(&mut self.statement.maps) {
            self.write_at(&event, at)?;
        }
        Ok(())
    }

    /// Gives a rows event that was written the flag of the last one of its statement, and the checksum that goes with it.
    fn set_statement_end(&mut self, event: Range<u64>) -> Result<()> {
        let flags_at = event.start + (HEADER_SIZE + ROWS_HEAD_SIZE - 2) as u64;
        let mut flags = [0];
        self.file.read_exact_at(&mut flags, flags_at).map_err(Error::io("read a temporary file"))?;
        self.write_at(&[flags[0] | STATEMENT_END], flags_at)?;
        if self.checksum == ChecksumAlgorithm::NONE {
            return Ok(());
        }
        let end = event.end - CHECKSUM_SIZE as u64;
        let mut crc = Crc32::new();
        let mut piece = vec![0; PIECE_SIZE];
        let mut at = event.start;
        while at < end {
            let size = usize::try_from(end - at).unwrap_or(PIECE_SIZE).min(PIECE_SIZE);
            let piece = piece.get_mut(..size).unwrap_or_default();
            self.file.read_exact_at(piece, at).map_err(Error::io("read a temporary file"))?;
            crc.update(piece);
            at += size as u64;
        }
        self.write_at(&crc.finish().to_le_bytes(), end)
    }

    /// The current event stays.
    fn keep(&mut self, header: &EventHeader) -> Result<()> {
        let front = std::mem::take(&mut self.front);
        self.write(&front)?;
        let left = u64::from(header.event_size).saturating_sub(front.len() as u64);
        self.front = front;
        self.go_on(EventStage::Kept(left));
        Ok(())
    }

    /// These bytes take the place of the current event, which is as large and there as a whole.
    fn replace(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)?;
        self.go_on(EventStage::LeftOut(0));
        Ok(())
    }

    /// The current event, which was taken as a whole, is written later.
    fn pass(&mut self, header: &EventHeader) {
        self.at += u64::from(header.event_size);
        self.go_on(EventStage::Kept(0));
    }

    /// A filler takes the place of the current event, which has rows or is beside some. Its body begins with `mark`.
    fn leave_out(&mut self, header: &EventHeader, mark: &[u8]) -> Result<()> {
        self.events_left_out += 1;
        self.pass_over(header, mark)
    }

    fn pass_over(&mut self, header: &EventHeader, mark: &[u8]) -> Result<()> {
        self.fill(self.at, header, mark)?;
        self.at += u64::from(header.event_size);
        let front_size = front_size(header)? as u64;
        self.go_on(EventStage::LeftOut(u64::from(header.event_size).saturating_sub(front_size)));
        Ok(())
    }

    fn fill(&self, at: u64, replaced: &EventHeader, mark: &[u8]) -> Result<()> {
        let mut end = at;
        filler::write(replaced, mark, self.checksum, |bytes| {
            self.write_at(bytes, end)?;
            end += bytes.len() as u64;
            Ok(())
        })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<()> {
        self.file.write_all_at(bytes, at).map_err(Error::io("write a temporary file"))
    }
}

/// How much of an event has to be there before it is decided.
fn front_size(header: &EventHeader) -> Result<usize> {
    let size = header.event_size as usize;
    let start = HEADER_SIZE + TransactionBoundaryParser::body_wanted(header);
    let has_room = header.event_size <= HELD_SIZE_MAX;
    match header.event_type.class() {
        EventClass::Rows | EventClass::CompressedRows => Ok((HEADER_SIZE + ROWS_HEAD_SIZE).min(size)),
        EventClass::Statement | EventClass::CompressedStatement => {
            Ok(if has_room { size } else { start.min(size) })
        }
        EventClass::TableMap | EventClass::MariadbGtid if has_room => Ok(size),
        EventClass::Commit if has_room && header.event_type == EventType::XA_PREPARE => Ok(size),
        EventClass::File if has_room && header.event_type == EventType::FORMAT_DESCRIPTION => Ok(size),
        EventClass::TableMap | EventClass::MariadbGtid => Err(too_large(header)),
        EventClass::File if header.event_type == EventType::FORMAT_DESCRIPTION => Err(too_large(header)),
        EventClass::File
        | EventClass::FileNote
        | EventClass::Gtid
        | EventClass::LoadStatement
        | EventClass::StatementValue
        | EventClass::LoadBlock
        | EventClass::LoadEnd
        | EventClass::RowsStatement
        | EventClass::Commit
        | EventClass::Incident
        | EventClass::GroupContext
        | EventClass::GroupView
        | EventClass::Ignorable
        | EventClass::Heartbeat
        | EventClass::Payload
        | EventClass::Dead
        | EventClass::Unknown => Ok(start.min(size)),
    }
}

fn too_large(header: &EventHeader) -> Error {
    Error::unexpected(
        format!("size of a {}", header.event_type),
        header.event_size,
        format_args!("at most {HELD_SIZE_MAX}"),
    )
}

/// The first bytes, at most so many, and the others.
fn split(bytes: &[u8], count: u64) -> (&[u8], &[u8]) {
    bytes.split_at_checked(usize::try_from(count).unwrap_or(usize::MAX)).unwrap_or((bytes, &[]))
}

impl Write for SelectedLogWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.take(bytes).map(|()| bytes.len()).map_err(|error| {
            let why = io::Error::other(error.to_string());
            self.error.get_or_insert(error);
            why
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
