//! Checks a log to the last byte, payloads included, without writing anything.
//!
//! Bytes that can't be read as events are errors, as everywhere. Bytes that can be read but that no server
//! writes are a [`Problem`]: a body or row that does not decode, an event where none belongs, a length or
//! position that does not fit. The parser checks the checksums.

use std::fmt;
use std::io::Read;

use binlogz_binlog::event::{
    self, AnyEvent, CompressedEvent, IncidentEvent, QueryEvent, RowsEvent, RowsFlags, TableId, TableMapEvent,
};
use binlogz_binlog::row::{RowDecoder, TableSchemas};
use binlogz_binlog::transaction::{Boundary, MalformedSequence, TransactionBoundaryParser};
use binlogz_binlog::{
    ChangeContent, EventFrame, EventHeader, EventParser, EventType, EventVisitor, HeaderFlags,
    StoredChecksum, VerifiedChecksum,
};

use crate::codec::expander::Expander;
use crate::compress::feed::{STAGE_SIZE, push_all};
use crate::error::{Error, Result};
use crate::expand::payload_stream::PayloadStream;
use crate::transaction::candidate::{BodyPrefix, HeldGtid, OpenGtid};
use crate::transaction::context::LogContext;

/// Bodies above this size are not held, and so not decoded: law 5.
const DECODED_SIZE_MAX: usize = 8 << 20;

/// Problems of one piece that are reported one by one; the others are counted.
const PROBLEMS_MAX: usize = 100;

/// Something that no server writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where the event begins, or the payload that holds it.
    pub offset: u64,
    /// The event's type.
    pub event_type: EventType,
    /// The problem.
    pub what: String,
}

impl Problem {
    /// Whether it is the same wherever it stands.
    fn is_same(&self, other: &Self) -> bool {
        self.event_type == other.event_type && self.what == other.what
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {} event: {}", self.offset, self.event_type, self.what)
    }
}

/// The checks made, and the problems found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Events, those in payloads included.
    pub events: u64,
    /// Transactions that end.
    pub transactions: u64,
    /// Payload events.
    pub payloads: u64,
    /// Rows in row events; an updated row counts once.
    pub rows: u64,
    /// Events too large to be decoded: only their frame and checksum were checked.
    pub not_decoded: u64,
    /// The first problems.
    pub problems: Vec<Problem>,
    /// All problems.
    pub problem_count: u64,
    /// Whether the log ends inside a transaction.
    pub ends_inside_transaction: bool,
}

impl Findings {
    /// Adds the findings of the next piece.
    pub fn add(&mut self, next: Findings) {
        self.events += next.events;
        self.transactions += next.transactions;
        self.payloads += next.payloads;
        self.rows += next.rows;
        self.not_decoded += next.not_decoded;
        self.problem_count += next.problem_count;
        for problem in next.problems {
            // A table is mapped again and again.
            let is_of_table = problem.event_type == EventType::TABLE_MAP;
            if is_of_table && self.problems.iter().any(|known| known.is_same(&problem)) {
                self.problem_count -= 1;
            } else if self.problems.len() < PROBLEMS_MAX {
                self.problems.push(problem);
            }
        }
        self.ends_inside_transaction = next.ends_inside_transaction;
    }

    fn problem(&mut self, offset: u64, event_type: EventType, what: impl ToString) {
        self.problem_count += 1;
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(Problem { offset, event_type, what: what.to_string() });
        }
    }
}

/// Checks pieces of a log, one after the other, with one context.
#[derive(Debug)]
pub struct Verifier {
    expander: Expander,
    event: Vec<u8>,
    rows: RowDecoder,
}

impl Verifier {
    /// A verifier; one a thread.
    pub fn new() -> Result<Self> {
        Ok(Verifier { expander: Expander::new()?, event: Vec::new(), rows: RowDecoder::new() })
    }

    /// Checks whole events from `reader` that begin at `offset` of their log, at the start of a transaction
    /// or between two.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read as events, with their offset; a reader that fails.
    pub fn verify(&mut self, reader: impl Read, offset: u64, context: LogContext) -> Result<Findings> {
        let mut visitor = self.visitor(context);
        let mut parser = EventParser::new(context.framing, offset);
        push_all(reader, &mut vec![0; STAGE_SIZE], &mut parser, &mut visitor)?;
        parser.finish()?;
        Ok(visitor.finish())
    }

    /// Verifies the bytes of a log, or a part of one that begins at `offset`, in memory.
    ///
    /// # Errors
    ///
    /// As for [`Verifier::verify`].
    pub fn verify_bytes(&mut self, bytes: &[u8], offset: u64, context: LogContext) -> Result<Findings> {
        let mut visitor = self.visitor(context);
        let mut parser = EventParser::new(context.framing, offset);
        parser.push(bytes, &mut visitor)?;
        parser.finish()?;
        Ok(visitor.finish())
    }

    fn visitor(&mut self, context: LogContext) -> Visitor<'_> {
        Visitor {
            expander: &mut self.expander,
            check: Check {
                context,
                findings: Findings::default(),
                event: &mut self.event,
                rows: &mut self.rows,
                schemas: TableSchemas::new(),
                unreadable: Vec::new(),
                expanded: Vec::new(),
                payload_offset: None,
                current: None,
            },
            assembler: TransactionBoundaryParser::new(),
            prefix: BodyPrefix::default(),
            open: None,
            open_gtid: None,
            gtid: None,
        }
    }
}

/// Checks the events outside of payloads.
struct Visitor<'a> {
    expander: &'a mut Expander,
    check: Check<'a>,
    assembler: TransactionBoundaryParser,
    prefix: BodyPrefix,
    open: Option<Open>,
    /// The GTID event being read.
    open_gtid: Option<OpenGtid>,
    /// The GTID event of the open transaction.
    gtid: Option<HeldGtid>,
}

struct Open {
    offset: u64,
    header: EventHeader,
    payload: Option<PayloadStream>,
}

impl Visitor<'_> {
    fn finish(mut self) -> Findings {
        self.check.findings.ends_inside_transaction = self.assembler.is_open();
        self.check.findings
    }

    /// A transaction ends at `end` of the log.
    fn transaction_end(&mut self, end: u64) -> Result<()> {
        self.check.findings.transactions += 1;
        let Some(gtid) = self.gtid.take() else { return Ok(()) };
        let frame = gtid.frame(self.check.context.framing)?;
        let found = event::transaction_length(&frame)?;
        let length = end - gtid.offset;
        if let Some(found) = found.filter(|&found| found != length) {
            let what = format!("transaction length is {found}, expected {length}");
            self.check.findings.problem(gtid.offset, gtid.header.event_type, what);
        }
        Ok(())
    }

    /// Checks the end that an event gives, in a log with coordinates of its own; artificial events give 0.
    fn check_position(&mut self, offset: u64, header: &EventHeader) {
        let context = self.check.context;
        let end = offset + u64::from(header.event_size);
        let own = context.has_own_position(header, end);
        if !own && header.end_log_pos != 0 && !context.relay_log {
            let what = format!("end log pos is {}, expected {}", header.end_log_pos, end as u32);
            self.check.findings.problem(offset, header.event_type, what);
        }
    }
}

impl EventVisitor for Visitor<'_> {
    type Error = Error;

    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
        self.check_position(offset, header);
        self.prefix.begin(header.event_type);
        let is_payload = header.event_type == EventType::TRANSACTION_PAYLOAD;
        let payload = is_payload.then(|| PayloadStream::begin(offset, header, self.check.context.framing));
        if header.event_type.is_gtid() {
            self.open_gtid = Some(OpenGtid::begin(offset, header)?);
            self.check.schemas.end_statement();
        }
        self.check.payload_offset = None;
        self.check.begin(offset, header)?;
        self.open = Some(Open { offset, header: *header, payload });
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        self.prefix.body(bytes);
        match &mut self.open {
            Some(Open { payload: Some(payload), offset, .. }) => {
                self.check.payload_offset = Some(*offset);
                payload.body(bytes, self.expander, &mut self.check)
            }
            Some(Open { header, .. }) if header.event_type.is_gtid() => {
                if let Some(gtid) = &mut self.open_gtid {
                    gtid.body(bytes);
                }
                self.check.body(bytes)
            }
            _ => self.check.body(bytes),
        }
    }

    fn end(&mut self, verified: VerifiedChecksum) -> Result<()> {
        let Some(Open { offset, header, payload }) = self.open.take() else { return Ok(()) };
        match payload {
            Some(payload) => {
                payload.end(self.expander)?;
                self.check.findings.payloads += 1;
                self.check.findings.events += 1;
            }
            None => self.check.whole()?,
        }
        if let Some(gtid) = self.open_gtid.take() {
            self.gtid = Some(gtid.end(verified));
        }
        let placement = self.assembler.feed(&header, self.prefix.bytes());
        // Logs without GTIDs are cut anywhere, so the order of events can't be checked there.
        let told = match placement.malformed {
            Some(MalformedSequence::MissingStatement) => true,
            // What is in the event tells.
            Some(MalformedSequence::UnknownEvent) => false,
            _ => self.assembler.content().gtid.is_some(),
        };
        if let Some(malformed) = placement.malformed.filter(|_| told) {
            self.check.findings.problem(offset, header.event_type, malformed);
        }
        if matches!(placement.boundary, Boundary::End | Boundary::Single) {
            self.transaction_end(offset + u64::from(header.event_size))?;
        }
        Ok(())
    }
}

/// Checks the contents of an event, wherever it is.
struct Check<'a> {
    context: LogContext,
    findings: Findings,
    /// The current event, without checksum.
    event: &'a mut Vec<u8>,
    rows: &'a mut RowDecoder,
    schemas: TableSchemas,
    /// Tables whose maps can't be compiled; their maps are problems, their rows can't be read.
    unreadable: Vec<TableId>,
    /// The expanded body of a compressed event.
    expanded: Vec<u8>,
    /// The payload event that contains the current event.
    payload_offset: Option<u64>,
    current: Option<(u64, EventHeader)>,
}

impl Check<'_> {
    /// Decodes the current event.
    fn decode(&mut self, event: &[u8]) -> std::result::Result<(), String> {
        let frame = EventFrame::without_checksum_behind(event).map_err(in_words)?;
        let event_type = frame.event_type();
        let lengths = self.context.post_header_lengths;
        match event_type.changes() {
            ChangeContent::Unread if frame.header().flags.contains(HeaderFlags::IGNORABLE) => return Ok(()),
            ChangeContent::Unread if event_type.is_rows() => {
                return Err("rows of a 5.1 beta can't be decoded".to_owned());
            }
            ChangeContent::Unread => return Err(MalformedSequence::UnknownEvent.to_string()),
            ChangeContent::Lost => {
                let event = IncidentEvent::decode_frame(&frame).map_err(in_words)?;
                let message = String::from_utf8_lossy(event.message);
                return Err(format!("the server lost changes here ({}: {message})", event.incident));
            }
            ChangeContent::None | ChangeContent::Decoded | ChangeContent::Beside => {}
        }
        if event_type.mariadb_expanded().is_some() {
            return self.decode_compressed(&frame);
        }
        match AnyEvent::decode(&frame, &lengths).map_err(in_words)? {
            AnyEvent::TableMap(map) => self.note(&map, frame.body()),
            AnyEvent::Rows(event) => self.rows(&event),
            _ => Ok(()),
        }
    }

    /// Decodes a compressed event, expanded.
    fn decode_compressed(&mut self, frame: &EventFrame<'_>) -> std::result::Result<(), String> {
        let lengths = self.context.post_header_lengths;
        let event = CompressedEvent::decode(frame.event_type(), frame.body(), &lengths).map_err(in_words)?;
        if event.body_size_max() > DECODED_SIZE_MAX as u64 {
            self.findings.not_decoded += 1;
            return Ok(());
        }
        let mut expanded = std::mem::take(&mut self.expanded);
        expanded.clear();
        let event_type = event.expanded_type;
        let checked = event.expand(&mut expanded).map_err(in_words).and_then(|()| {
            if event_type == EventType::QUERY {
                return QueryEvent::decode(&expanded).map(drop).map_err(in_words);
            }
            let rows = RowsEvent::decode(event_type, &expanded, lengths.of(event_type)).map_err(in_words)?;
            self.rows(&rows)
        });
        self.expanded = expanded;
        checked
    }

    /// Takes a table map. One that can't be compiled costs its own table's rows.
    fn note(&mut self, map: &TableMapEvent<'_>, body: &[u8]) -> std::result::Result<(), String> {
        self.unreadable.retain(|table_id| *table_id != map.table_id);
        let Err(error) = self.schemas.note(body, &self.context.post_header_lengths) else { return Ok(()) };
        self.unreadable.push(map.table_id);
        let [database, table] = [map.database, map.table].map(String::from_utf8_lossy);
        Err(format!("the rows of {database}.{table} can't be decoded: {error}"))
    }

    /// Passes over the rows of an event.
    fn rows(&mut self, event: &RowsEvent<'_>) -> std::result::Result<(), String> {
        let ends = event.flags.contains(RowsFlags::STMT_END);
        // A row event without a table ends a statement, and changes nothing.
        let checked = match event.rows.is_empty() || self.unreadable.contains(&event.table_id) {
            true => Ok(()),
            false => self.count(event),
        };
        if ends {
            self.schemas.end_statement();
            self.unreadable.clear();
        }
        checked.map_err(in_words)
    }

    fn count(&mut self, event: &RowsEvent<'_>) -> binlogz_binlog::Result<()> {
        let schema = self.schemas.get(event.table_id)?;
        self.findings.rows += self.rows.count(schema, event)?;
        Ok(())
    }
}

fn in_words(error: binlogz_binlog::Error) -> String {
    error.to_string()
}

impl EventVisitor<StoredChecksum> for Check<'_> {
    type Error = Error;

    fn begin(&mut self, offset: u64, header: &EventHeader) -> Result<()> {
        self.event.clear();
        self.event.extend_from_slice(&header.encode());
        self.current = Some((self.payload_offset.unwrap_or(offset), *header));
        Ok(())
    }

    fn body(&mut self, bytes: &[u8]) -> Result<()> {
        if self.event.len() + bytes.len() <= DECODED_SIZE_MAX {
            self.event.extend_from_slice(bytes);
        } else {
            // No longer whole: `end` sees that its size is wrong.
            self.event.clear();
        }
        Ok(())
    }

    fn end(&mut self, _: StoredChecksum) -> Result<()> {
        self.whole()
    }
}

impl Check<'_> {
    /// The current event is whole.
    fn whole(&mut self) -> Result<()> {
        let Some((offset, header)) = self.current.take() else { return Ok(()) };
        self.findings.events += 1;
        let checksum = if self.payload_offset.is_some() { 0 } else { self.context.framing.checksum().size() };
        if self.event.len() + checksum != header.event_size as usize {
            self.findings.not_decoded += 1;
            return Ok(());
        }
        let event = std::mem::take(self.event);
        let decoded = self.decode(&event);
        *self.event = event;
        if let Err(error) = decoded {
            self.findings.problem(offset, header.event_type, error);
        }
        Ok(())
    }
}
