//! Goes through a log event by event, and writes what is left of it.
//!
//! ```text
//! event        checksum compared → boundaries of transactions
//! transaction  kept until it ends; written with the length that it has then
//! payload      opened; stays as it is, byte for byte, if nothing in it was chosen, else its events take its place
//! others       as they are, at their new place
//! ```

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::{
    CompressedEvent, CompressionType, FormatDescription, PostHeaderLengths, RowsEvent, RowsFlags,
    TableMapEvent, TransactionPayloadHeader,
};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::row::{RowDecoder, TableSchemas};
use binlogz_binlog::{
    Boundary, EVENT_SIZE_MAX, Error as BinlogError, EventClass, EventHeader, EventType, Framing, MAGIC,
    TransactionBoundaryParser,
};
use binlogz_flow::{InOrder, ReadAt};
use binlogz_payload::{Expander, expanded_size_max};

use super::aim::ErasureAim;
use super::choice::ReferredRows;
use super::events::{ErasureEventAt, ErasureEvents, EventRead, RemainingLog};
use super::findings::{StatementFindings, StatementLook, statement_text};
use super::plan::{PlannedTables, TableErasure};
use super::rows::remaining;
use super::statement::{OpenStatement, TextBesideRows};
use super::{ErasureCounts, LogErasure, cut};
use crate::pass::Error;

/// The most bytes of a payload that is opened here: only those that no codec reproduced are.
const PAYLOAD_MAX: u64 = 1 << 30;

/// The transaction that is open.
struct OpenErasure {
    gtid: Option<(EventHeader, Vec<u8>, bool)>,
    events: ErasureEvents,
    rows: u64,
    /// Where it was, if a block began with it.
    begins_block: Option<u64>,
}

impl OpenErasure {
    fn new(begins_block: Option<u64>) -> Self {
        OpenErasure { gtid: None, events: ErasureEvents::new(), rows: 0, begins_block }
    }
}

/// A log that is rewritten.
pub(super) struct LogRewriting<'l, 'a, 'o> {
    aim: &'a ErasureAim,
    referred: &'l mut ReferredRows,
    look: StatementLook<'l, 'a>,
    log: RemainingLog<'o>,
    framing: Framing,
    lengths: PostHeaderLengths,
    parser: TransactionBoundaryParser,
    open: Option<OpenErasure>,
    statement: OpenStatement,
    schemas: TableSchemas,
    decoder: RowDecoder,
    counts: ErasureCounts,
    /// Where the event is that passes, or the payload that it is in.
    offset: u64,
    /// Where blocks begin, those that come yet.
    blocks: &'l [u64],
}

impl<'l, 'a, 'o> LogRewriting<'l, 'a, 'o> {
    pub(super) fn new(
        aim: &'a ErasureAim,
        (name, referred): (&'l str, &'l mut ReferredRows),
        planned: &'l mut PlannedTables<'a>,
        findings: &'l mut StatementFindings,
        (blocks, out): (&'l [u64], &'o mut dyn Write),
    ) -> Self {
        LogRewriting {
            aim,
            referred,
            look: StatementLook::new(aim, name, planned, findings),
            log: RemainingLog::new(out),
            framing: Framing::new(),
            lengths: PostHeaderLengths::default(),
            parser: TransactionBoundaryParser::new(),
            open: None,
            statement: OpenStatement::default(),
            schemas: TableSchemas::new(),
            decoder: RowDecoder::new(),
            counts: ErasureCounts::of(aim),
            offset: 0,
            blocks,
        }
    }

    /// Where the event that passes is, if a block begins with it.
    fn begun_block(&mut self) -> Option<u64> {
        while let [next, rest @ ..] = self.blocks
            && *next < self.offset
        {
            self.blocks = rest;
        }
        self.blocks.first().copied().filter(|next| *next == self.offset)
    }

    /// Reads the log to its end; the gaps are left out of it.
    pub(super) fn run(&mut self, log: Arc<dyn ReadAt>, gaps: &[Range<u64>]) -> Result<(), Error> {
        let mut bytes = io::BufReader::with_capacity(1 << 20, InOrder::new(log));
        let mut magic = [0; MAGIC.len()];
        bytes.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(Error::Refused(
                "doesn't begin as a binary log; one that its server encrypted can't be rewritten".to_owned(),
            ));
        }
        self.log.magic()?;
        self.offset = MAGIC.len() as u64;
        let mut event = Vec::new();
        let mut gaps = gaps.iter().peekable();
        loop {
            while let Some(gap) = gaps.next_if(|gap| gap.start == self.offset) {
                self.offset = gap.end;
            }
            if !read_event(&mut bytes, &mut event)? {
                break;
            }
            let size = event.len() as u64;
            let event_type = EventHeader::decode(&event)?.event_type;
            self.event(&event).map_err(|error| located(error, self.offset, event_type))?;
            self.offset += size;
        }
        self.end_log()
    }

    pub(super) fn finish(self) -> LogErasure {
        let RemainingLog { same_until, begins, changed_blocks, .. } = self.log;
        LogErasure { counts: self.counts, same_until, block_begins: begins, changed_blocks }
    }

    /// The log ends, perhaps within a transaction, which stays as it is.
    fn end_log(&mut self) -> Result<(), Error> {
        self.end_statement()?;
        let Some(open) = self.open.take() else { return Ok(()) };
        if open.events.is_changed {
            return Err(Error::Refused("ends within a transaction with such rows".to_owned()));
        }
        self.write(open)
    }

    /// Takes an event with its bytes.
    fn event(&mut self, event: &[u8]) -> Result<(), Error> {
        let is_description = EventHeader::decode(event)?.event_type == EventType::FORMAT_DESCRIPTION;
        // It says itself how it is framed.
        let framing = if is_description { Framing::new() } else { self.framing };
        let frame = framing.next_frame(event)?.ok_or_else(cut)?.verify()?;
        let header = *frame.header();
        let end = self.offset + event.len() as u64;
        let is_in_place = header.end_log_pos == end as u32;
        if is_description {
            let description = FormatDescription::decode_frame(&frame)?;
            self.framing = Framing::of(&description);
            self.lengths = PostHeaderLengths::from(&description);
            self.look.lengths = self.lengths;
            self.look.planned.so_far.take_server(header.server_id, self.offset);
            return self.log.format_description(event, is_in_place, self.framing);
        }
        self.placed(EventRead { header: &header, body: frame.body(), is_in_place })
    }

    /// Takes an event where it stands among transactions.
    fn placed(&mut self, event: EventRead<'_>) -> Result<(), Error> {
        let boundary = self.parser.feed(event.header, event.body).boundary;
        if matches!(boundary, Boundary::Begin | Boundary::BeginAgain | Boundary::Single) {
            self.end_transaction()?;
            self.open = Some(OpenErasure::new(self.begun_block()));
        }
        match event.header.event_type.class() {
            EventClass::Payload => self.payload(event)?,
            EventClass::Gtid | EventClass::MariadbGtid => {
                self.look.event(event.header, event.body, self.offset)?;
                self.schemas.end_statement();
                match &mut self.open {
                    Some(open) => open.gtid = Some((*event.header, event.body.to_vec(), event.is_in_place)),
                    None => drop(self.put(event)?),
                }
            }
            EventClass::File
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::Statement
            | EventClass::CompressedStatement
            | EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::RowsStatement
            | EventClass::TableMap
            | EventClass::Rows
            | EventClass::CompressedRows
            | EventClass::Commit
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Dead
            | EventClass::Unknown => self.inner(event)?,
        }
        if matches!(boundary, Boundary::End | Boundary::Single) {
            self.end_transaction()?;
        }
        Ok(())
    }

    fn end_transaction(&mut self) -> Result<(), Error> {
        self.end_statement()?;
        let Some(open) = self.open.take() else { return Ok(()) };
        self.counts.transactions += u64::from(open.rows > 0);
        self.write(open)
    }

    fn write(&mut self, open: OpenErasure) -> Result<(), Error> {
        if let Some(offset) = open.begins_block {
            self.log.begin_block(offset);
        }
        let gtid = open.gtid.as_ref();
        let gtid =
            gtid.map(|(header, body, is_in_place)| EventRead { header, body, is_in_place: *is_in_place });
        self.log.transaction(gtid, &open.events)
    }

    /// Takes an event of a transaction, or between two.
    fn inner(&mut self, event: EventRead<'_>) -> Result<(), Error> {
        match event.header.event_type.class() {
            EventClass::TableMap => self.table_map(event),
            EventClass::Rows | EventClass::CompressedRows => self.rows(event),
            EventClass::RowsStatement => self.text(event),
            EventClass::File
            | EventClass::FileNote
            | EventClass::Heartbeat
            | EventClass::Gtid
            | EventClass::MariadbGtid
            | EventClass::Statement
            | EventClass::CompressedStatement
            | EventClass::LoadStatement
            | EventClass::StatementValue
            | EventClass::LoadBlock
            | EventClass::LoadEnd
            | EventClass::Commit
            | EventClass::Payload
            | EventClass::Incident
            | EventClass::GroupContext
            | EventClass::GroupView
            | EventClass::Ignorable
            | EventClass::Dead
            | EventClass::Unknown => {
                self.look.event(event.header, event.body, self.offset)?;
                self.put(event).map(drop)
            }
        }
    }

    /// Keeps an event, or writes it if no transaction is open.
    fn put(&mut self, event: EventRead<'_>) -> Result<Option<ErasureEventAt>, Error> {
        let begun = self.begun_block();
        match &mut self.open {
            Some(open) => {
                if let Some(offset) = begun.filter(|_| open.begins_block != begun) {
                    open.events.begin_block(offset);
                }
                open.events.add(event).map(Some)
            }
            None => {
                if let Some(offset) = begun {
                    self.log.begin_block(offset);
                }
                self.log.event(event).map(|()| None)
            }
        }
    }

    /// A statement's first event after the last one's rows.
    fn begin_statement(&mut self) -> Result<(), Error> {
        if self.statement.has_rows() {
            self.end_statement()?;
        }
        Ok(())
    }

    fn end_statement(&mut self) -> Result<(), Error> {
        let statement = std::mem::take(&mut self.statement);
        self.schemas.end_statement();
        let Some(open) = &mut self.open else { return Ok(()) };
        for TextBesideRows { event, text, offset } in &statement.texts {
            let names_table = self.look.names_table(text);
            if statement.has_chosen || self.aim.texts && names_table {
                open.events.drop_event(*event);
                self.counts.texts += 1;
            } else if names_table {
                self.look.text_stays(*offset);
            }
        }
        statement.end(&mut open.events, &self.lengths)
    }

    fn text(&mut self, event: EventRead<'_>) -> Result<(), Error> {
        self.begin_statement()?;
        let kept = self.put(event)?;
        let text = statement_text(event.header, event.body)?;
        if let Some((event, text)) = kept.zip(text) {
            self.statement.texts.push(TextBesideRows { event, text: text.to_vec(), offset: self.offset });
        }
        Ok(())
    }

    fn table_map(&mut self, event: EventRead<'_>) -> Result<(), Error> {
        self.begin_statement()?;
        let map = TableMapEvent::decode(event.body, self.lengths.of(EventType::TABLE_MAP))?;
        let plan = match self.aim.place_of_logged(map.database, map.table) {
            Some(number) => {
                let schema = self.schemas.note(event.body, &self.lengths)?;
                Some(self.look.planned.plan(number, &schema, self.offset)?)
            }
            None => None,
        };
        if let Some(kept) = self.put(event)? {
            self.statement.table(map.table_id, kept, plan);
        }
        Ok(())
    }

    fn rows(&mut self, event: EventRead<'_>) -> Result<(), Error> {
        let header = event.header;
        let plain_type = header.event_type.mariadb_expanded().unwrap_or(header.event_type);
        let (id, flags) = RowsEvent::decode_front(plain_type, event.body, self.lengths.of(plain_type))?;
        let plan = self.statement.plan(id).ok_or_else(|| {
            BinlogError::invalid("rows event", "table id", id, "one that a table map of the statement gave")
        })?;
        match plan {
            None => self.keep_rows(event, flags)?,
            Some(plan) => self.planned_rows(event, flags, &plan)?,
        }
        if flags.contains(RowsFlags::STMT_END) {
            self.end_statement()?;
        }
        Ok(())
    }

    fn keep_rows(&mut self, event: EventRead<'_>, flags: RowsFlags) -> Result<(), Error> {
        if let Some(kept) = self.put(event)? {
            self.statement.rows(kept, event.header.event_type, flags);
        }
        Ok(())
    }

    /// Rows of a table of the aim.
    fn planned_rows(
        &mut self,
        event: EventRead<'_>,
        flags: RowsFlags,
        plan: &TableErasure,
    ) -> Result<(), Error> {
        let mut expanded = Vec::new();
        let (event_type, body) = match event.header.event_type.class() == EventClass::CompressedRows {
            true => {
                let compressed = CompressedEvent::decode(event.header.event_type, event.body, &self.lengths)?;
                compressed.expand(&mut expanded)?;
                (compressed.expanded_type, expanded.as_slice())
            }
            false => (event.header.event_type, event.body),
        };
        let length = self.lengths.of(event_type);
        let decoded = RowsEvent::decode(event_type, body, length)?;
        let left = remaining((self.aim, &mut *self.referred), plan, &decoded, &mut self.decoder)?;
        self.counts.add_rows(plan.number, &left);
        self.statement.has_chosen |= left.chosen > 0;
        let Some(rows) = &left.rows else { return self.keep_rows(event, flags) };
        let open = self
            .open
            .as_mut()
            .ok_or_else(|| Error::Refused("has rows outside of a transaction".to_owned()))?;
        open.rows += left.erased;
        open.events.is_changed = true;
        if left.left == 0 {
            self.statement.rows_gone();
            return Ok(());
        }
        let body = RowsEvent { rows, ..decoded }.encode(length)?;
        let header = EventHeader { event_type, ..*event.header };
        self.keep_rows(EventRead { header: &header, body: &body, ..event }, flags)
    }

    /// A payload that is one in the archive, too.
    fn payload(&mut self, event: EventRead<'_>) -> Result<(), Error> {
        let inside = opened(event.body)?;
        let Some(outer) = self.open.take() else {
            return Err(Error::Refused("has a payload outside of a transaction".to_owned()));
        };
        let OpenErasure { gtid, mut events, rows, begins_block } = outer;
        let begun = self.begun_block().filter(|_| begins_block.is_none());
        // Its events take the payload's place only if something in it is chosen.
        self.open = Some(OpenErasure::new(begins_block));
        let framing = self.framing.inside_payload();
        let mut rest = inside.as_slice();
        while !rest.is_empty() {
            let frame = framing.next_frame(rest)?.ok_or_else(cut)?.unchecked()?;
            self.inner(EventRead { header: frame.header(), body: frame.body(), is_in_place: true })?;
            rest = rest.get(frame.bytes().len()..).unwrap_or_default();
        }
        self.end_statement()?;
        let inner = self.open.take();
        let chosen = inner.as_ref().map_or(0, |inner| inner.rows);
        match inner.filter(|inner| inner.events.is_changed) {
            Some(inner) => {
                events = inner.events;
                events.is_changed = true;
            }
            None => {
                begun.into_iter().for_each(|offset| events.begin_block(offset));
                events.add(event)?;
            }
        }
        self.open = Some(OpenErasure { gtid, events, rows: rows + chosen, begins_block });
        Ok(())
    }
}

/// What a payload holds.
fn opened(body: &[u8]) -> Result<Vec<u8>, Error> {
    let Some((header, front)) = TransactionPayloadHeader::decode_front(body, body.len() as u64)? else {
        return Err(cut());
    };
    let size = usize::try_from(header.payload_size()).map_err(|_| cut())?;
    let payload = body.get(front..).and_then(|rest| rest.get(..size)).ok_or_else(cut)?;
    if header.compression_type() == CompressionType::NONE {
        return Ok(payload.to_vec());
    }
    let bound = expanded_size_max(payload).unwrap_or(u64::MAX);
    let told = header.uncompressed_size().unwrap_or(bound).min(bound);
    if told > PAYLOAD_MAX {
        return Err(Error::Refused(format!(
            "has a payload of {told} bytes that is kept as it is, expected at most {PAYLOAD_MAX}"
        )));
    }
    let mut inside = Vec::with_capacity(usize::try_from(told).unwrap_or_default());
    Expander::new()
        .and_then(|mut expander| expander.expand_whole(payload, &mut inside))
        .map_err(binlogz_flow::Error::from)?;
    Ok(inside)
}

/// Reads the next event with its header; `false`: the log is at its end.
fn read_event(log: &mut impl Read, event: &mut Vec<u8>) -> Result<bool, Error> {
    event.clear();
    log.by_ref().take(HEADER_SIZE as u64).read_to_end(event)?;
    if event.is_empty() {
        return Ok(false);
    }
    let header = EventHeader::decode(event)?;
    let size = header.event_size;
    if (size as usize) < HEADER_SIZE || size > EVENT_SIZE_MAX {
        return Err(BinlogError::invalid("event header", "event size", size, "19 bytes to 1 GiB").into());
    }
    log.by_ref().take(u64::from(size) - HEADER_SIZE as u64).read_to_end(event)?;
    if event.len() < size as usize {
        return Err(cut());
    }
    Ok(true)
}

/// An error with its place.
fn located(error: Error, offset: u64, event_type: EventType) -> Error {
    match error {
        Error::Log(error) => Error::Refused(format!("{event_type} at {offset}: {error}")),
        Error::Refused(why) => Error::Refused(format!("at {offset}: {why}")),
        Error::Condition(_) | Error::Io(_) => error,
    }
}
