//! Goes over the events of a log, part by part, by the rules of the programs that read logs, so that a directory says what those
//! would find.
//!
//! A part isn't told (`None`) if it has anything that a reader of it may report, refuse or take in another way: events that
//! can't be decoded, wrong checksums, sequences that no server writes, payloads, incidents, MariaDB's events, format
//! descriptions within the log. Readers go over its events then.

use binlogz_binlog::event::{
    FormatDescription, PostHeaderLengths, QueryEvent, RowsEvent, RowsFlags, RowsQueryEvent,
};
use binlogz_binlog::header::EVENT_TYPE_OFFSET;
use binlogz_binlog::row::{TableSchemas, count_rows};
use binlogz_binlog::{
    Boundary, ChangeContent, EventClass, EventFrame, EventType, Framing, MAGIC, TransactionBoundaryParser,
};
use binlogz_payload::transaction::eligibility;

use super::builder::DirectoryBuilder;
use super::{BlockDirectory, PartEnding, REASONS};
use crate::log::events;

/// Goes over the parts of a log, in order.
#[derive(Debug)]
pub(crate) struct DirectoryWalk {
    /// What the log's head tells of its events; `None`: it can't be read.
    layout: Option<(Framing, PostHeaderLengths)>,
    head_size: usize,
    parser: TransactionBoundaryParser,
    schemas: TableSchemas,
    /// The last row event ended its statement.
    statement_ended: bool,
    /// The transaction that goes on isn't told.
    is_untold: bool,
    /// A part of the transaction that goes on couldn't be read.
    is_cut: bool,
}

impl DirectoryWalk {
    /// At the start of a log with this head, as [`crate::log::events::head`] gives it.
    pub(crate) fn new(head: &[u8]) -> Self {
        DirectoryWalk {
            layout: layout_of(head),
            head_size: head.len(),
            parser: TransactionBoundaryParser::new(),
            schemas: TableSchemas::new(),
            statement_ended: false,
            is_untold: false,
            is_cut: false,
        }
    }

    /// Whether a part of the transaction that goes on couldn't be read.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The next part can't be read.
    pub(crate) fn lose(&mut self) {
        self.is_cut = true;
    }

    /// Takes the next part, which begins at `offset`; `continues`: within a transaction. `None`: it isn't told.
    pub(crate) fn take(&mut self, log: &[u8], offset: u64, continues: bool) -> Option<BlockDirectory> {
        if !continues {
            self.parser = TransactionBoundaryParser::new();
            self.end_statement();
            (self.is_untold, self.is_cut) = (false, false);
        }
        let is_known = !self.is_untold && !self.is_cut;
        let found = if is_known { self.events(log, offset, continues) } else { None };
        self.is_untold = found.is_none();
        if self.is_untold && self.is_described_anew(log, offset) {
            self.layout = None;
        }
        found
    }

    /// Whether the events after a part may have another layout: it has a format description after the log's head.
    fn is_described_anew(&self, log: &[u8], offset: u64) -> bool {
        let head_size = if offset == 0 { self.head_size } else { 0 };
        let rest = log.get(head_size..).unwrap_or_default();
        events::events(rest, offset + head_size as u64).any(|event| {
            event.get(EVENT_TYPE_OFFSET).is_some_and(|&code| EventType(code) == EventType::FORMAT_DESCRIPTION)
        })
    }

    fn end_statement(&mut self) {
        self.schemas.end_statement();
        self.statement_ended = false;
    }

    fn events(&mut self, log: &[u8], offset: u64, continues: bool) -> Option<BlockDirectory> {
        let (framing, lengths) = self.layout?;
        let mut found = DirectoryBuilder::new(offset, continues);
        let mut at = if offset == 0 { self.head_size } else { 0 };
        while at < log.len() {
            let frame = framing.next_frame(log.get(at..)?).ok()??.verify().ok()?.frame();
            self.event(&frame, offset + at as u64, &lengths, &mut found)?;
            at += frame.bytes().len();
        }
        (at == log.len()).then(|| found.finish())
    }

    fn event(
        &mut self,
        frame: &EventFrame<'_>,
        position: u64,
        lengths: &PostHeaderLengths,
        found: &mut DirectoryBuilder,
    ) -> Option<()> {
        let event_type = frame.event_type();
        let placement = self.parser.feed(frame.header(), frame.body());
        if placement.malformed.is_some() {
            return None;
        }
        match (placement.boundary, is_told(event_type)) {
            (Boundary::Outside, _) => {
                return matches!(event_type, EventType::ROTATE | EventType::STOP).then_some(());
            }
            (_, false) | (Boundary::BeginAgain, true) => return None,
            (Boundary::Begin | Boundary::Single, true) => found.begin(frame, position)?,
            (Boundary::Inside | Boundary::End, true) => {}
        }
        found.add(frame)?;
        self.look_inside(frame, lengths, found)?;
        if matches!(placement.boundary, Boundary::End | Boundary::Single) {
            found.end(match eligibility::check(self.parser.content(), event_type) {
                Ok(()) => PartEnding::Compressible,
                Err(reason) if REASONS.contains(&reason) => PartEnding::Plain(reason),
                Err(_) => return None,
            })?;
        }
        Some(())
    }

    fn look_inside(
        &mut self,
        frame: &EventFrame<'_>,
        lengths: &PostHeaderLengths,
        found: &mut DirectoryBuilder,
    ) -> Option<()> {
        let event_type = frame.event_type();
        let body = frame.body();
        if self.statement_ended || event_type.is_gtid() {
            self.end_statement();
        }
        if event_type == EventType::QUERY {
            found.thread(QueryEvent::decode(body).ok()?.thread_id)?;
        } else if event_type == EventType::ROWS_QUERY {
            RowsQueryEvent::decode(body).ok()?;
        } else if event_type == EventType::TABLE_MAP {
            self.schemas.note(body, lengths).ok()?;
        } else if event_type.is_rows() {
            let rows = RowsEvent::decode(event_type, body, lengths.of(event_type)).ok()?;
            self.statement_ended = rows.flags.contains(RowsFlags::STMT_END);
            let schema = self.schemas.get(rows.table_id).ok()?;
            let count = count_rows(schema, &rows).ok()?;
            found.rows(schema, rows.kind(), count)?;
        }
        Some(())
    }
}

/// How events are laid out in a log with this head; `None`: it has anything but a format description and previous GTIDs.
fn layout_of(head: &[u8]) -> Option<(Framing, PostHeaderLengths)> {
    let mut rest = head.strip_prefix(&MAGIC)?;
    let first = Framing::new().next_frame(rest).ok()??.verify().ok()?;
    let description = FormatDescription::decode_frame(&first).ok()?;
    let framing = Framing::of(&description);
    rest = rest.get(first.bytes().len()..)?;
    while !rest.is_empty() {
        let event = framing.next_frame(rest).ok()??.verify().ok()?;
        if event.event_type() != EventType::PREVIOUS_GTIDS {
            return None;
        }
        rest = rest.get(event.bytes().len()..)?;
    }
    Some((framing, PostHeaderLengths::from(&description)))
}

/// Whether transactions with events of this type are told.
fn is_told(event_type: EventType) -> bool {
    match event_type.class() {
        EventClass::Gtid
        | EventClass::Statement
        | EventClass::StatementValue
        | EventClass::TableMap
        | EventClass::Rows
        | EventClass::Commit
        | EventClass::GroupContext
        | EventClass::GroupView => {
            !matches!(event_type.changes(), ChangeContent::Unread | ChangeContent::Lost)
        }
        EventClass::RowsStatement => event_type == EventType::ROWS_QUERY,
        EventClass::File
        | EventClass::FileNote
        | EventClass::Heartbeat
        | EventClass::MariadbGtid
        | EventClass::CompressedStatement
        | EventClass::LoadStatement
        | EventClass::LoadBlock
        | EventClass::LoadEnd
        | EventClass::CompressedRows
        | EventClass::Payload
        | EventClass::Incident
        | EventClass::Ignorable
        | EventClass::Dead
        | EventClass::Unknown => false,
    }
}
