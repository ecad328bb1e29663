//! Gathers the events of logs, payloads opened, as owned events: one thread reads them, and another makes Python objects
//! of them.
//!
//! `end_log_pos` of an event inside a payload is no place in the log. A reader that begins again there would lose the rest of
//! the transaction. So such an event gets the payload's beginning as its position, and the last one the payload's end.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, CompressedEvent, PostHeaderLengths, QueryEvent, RowsEvent, RowsFlags, TableId,
    TableMapEvent, TransactionPayloadHeader,
};
use binlogz_binlog::row::{TableSchema, TableSchemas};
use binlogz_binlog::{Error as BinlogError, EventHeader, EventType, EventVisitor, StoredChecksum};
use binlogz_flow::events::{EventPosition, UnreadChanges};
use binlogz_flow::{EventSpan, LogStart, Walker};
use binlogz_payload::Error as PayloadError;

use crate::known_tables::TablesByPlace;
use crate::selection::GtidSelection;

/// A batch is passed on when it has this many bytes,
const BATCH_BYTES: usize = 512 << 10;
/// or this many events.
const BATCH_EVENTS: usize = 4096;

/// Room for a body that is kept for the next one.
const BODY_KEPT_MAX: usize = 1 << 20;

/// An event.
pub(crate) struct GatheredEvent {
    pub(crate) header: EventHeader,
    /// Name of the event's log, without folder.
    pub(crate) log: Arc<str>,
    /// Where the event begins in its log, or the payload event that it is in, in bytes.
    pub(crate) offset: u64,
    /// Whether it is in a payload.
    pub(crate) inside: bool,
    /// Bytes of its body.
    pub(crate) body_size: u32,
    /// Where a reader that has it may go on.
    pub(crate) next_position: u64,
    pub(crate) content: EventContent,
}

/// The contents of an event.
pub(crate) enum EventContent {
    /// Rows, unread, and the table that they are of.
    Rows(RowsContent),
    TableMap {
        id: TableId,
        schema: Arc<TableSchema>,
    },
    Gtid(Box<GtidContent>),
    Query(Box<QueryContent>),
    /// The body of any other event.
    Bytes(Vec<u8>),
}

#[derive(Clone)]
pub(crate) struct RowsContent {
    pub(crate) schema: Arc<TableSchema>,
    pub(crate) event_type: EventType,
    pub(crate) body: Arc<[u8]>,
    pub(crate) post_header_length: u8,
}

pub(crate) struct GtidContent {
    /// `None`: anonymous.
    pub(crate) gtid: Option<String>,
    pub(crate) may_have_statements: bool,
    pub(crate) last_committed: Option<i64>,
    pub(crate) sequence_number: Option<i64>,
    /// Microseconds since 1970.
    pub(crate) immediate: Option<u64>,
    pub(crate) original: Option<u64>,
}

pub(crate) struct QueryContent {
    pub(crate) thread_id: u32,
    pub(crate) exec_time: u32,
    pub(crate) error_code: u16,
    pub(crate) database: Vec<u8>,
    pub(crate) statement: Vec<u8>,
    pub(crate) status_variables: Vec<u8>,
}

/// A table whose rows can't be read.
struct UnreadableTable {
    database: Vec<u8>,
    table: Vec<u8>,
    why: String,
}

/// Takes batches; `false`: nobody wants more.
pub(crate) type BatchTaker<'a> = Box<dyn FnMut(Vec<GatheredEvent>) -> bool + Send + 'a>;

/// Gathers events.
pub(crate) struct EventGatherer<'a> {
    pass: BatchTaker<'a>,
    batch: Vec<GatheredEvent>,
    bytes: usize,
    /// An event in a payload that may be its last, and where the payload ends.
    held: Option<(GatheredEvent, u64)>,
    log: Arc<str>,
    lengths: PostHeaderLengths,
    schemas: TableSchemas,
    /// What is known of tables besides their maps.
    tables: TablesByPlace,
    statement_ended: bool,
    /// Transactions that are wanted.
    selection: GtidSelection,
    /// The bytes of the log in which the row events begin that are wanted; `None`: all.
    offsets: Option<Range<u64>>,
    /// The transaction that the events are of is left out.
    is_leaving_out: bool,
    /// Types of events that nobody looks at.
    unread: Vec<EventType>,
    /// The last event, if nobody looks at it: where the reader is.
    passed: Option<GatheredEvent>,
    header: Option<(EventHeader, EventSpan)>,
    body: Vec<u8>,
    /// Tables of the open statement whose maps can't be compiled.
    unreadable: Vec<(TableId, UnreadableTable)>,
    /// Changes that could not be read.
    pub(crate) lacking: UnreadChanges,
    /// The body of a compressed event, expanded.
    expanded: Vec<u8>,
    /// Bad bytes in an event, and where.
    pub(crate) failed: Option<BinlogError>,
    /// The reader needs no more events.
    pub(crate) is_over: bool,
}

impl<'a> EventGatherer<'a> {
    pub(crate) fn new(selection: GtidSelection, pass: BatchTaker<'a>) -> Self {
        EventGatherer {
            pass,
            batch: Vec::new(),
            bytes: 0,
            held: None,
            log: Arc::from(""),
            lengths: PostHeaderLengths::default(),
            schemas: TableSchemas::new(),
            tables: TablesByPlace::default(),
            statement_ended: false,
            selection,
            offsets: None,
            is_leaving_out: false,
            unread: Vec::new(),
            passed: None,
            header: None,
            body: Vec::new(),
            unreadable: Vec::new(),
            lacking: UnreadChanges::default(),
            expanded: Vec::new(),
            failed: None,
            is_over: false,
        }
    }

    /// Without the events of these types, but for the last of a batch: it says where the reader is.
    pub(crate) fn without(self, unread: Vec<EventType>) -> Self {
        EventGatherer { unread, ..self }
    }

    /// Of transactions that the server leaves out: statements may be among them.
    pub(crate) fn with_gaps(self) -> Self {
        EventGatherer { tables: TablesByPlace::with_gaps(), ..self }
    }

    /// Only row events that begin in these bytes of the log are wanted; `None`: all.
    pub(crate) fn take_offsets(&mut self, offsets: Option<Range<u64>>) {
        self.offsets = offsets;
    }

    /// A log of this name begins. Two that follow one another may have the same.
    pub(crate) fn begin_log(&mut self, name: &str) {
        self.log = Arc::from(name);
        self.tables.begin_log(name);
    }

    /// The following events are of this log.
    pub(crate) fn take_log(&mut self, name: &str) {
        if *self.log != *name {
            self.begin_log(name);
        }
    }

    pub(crate) fn take_lengths(&mut self, lengths: PostHeaderLengths) {
        self.lengths = lengths;
    }

    /// Passes on what is there.
    pub(crate) fn flush(&mut self) -> ControlFlow<()> {
        self.bytes = 0;
        self.batch.extend(self.passed.take());
        if !self.batch.is_empty() && !(self.pass)(std::mem::take(&mut self.batch)) {
            self.is_over = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// An event that is whole. MariaDB's compressed ones become the plain ones.
    pub(crate) fn event(&mut self, place: EventSpan, header: &EventHeader, body: &[u8]) -> ControlFlow<()> {
        let position = EventPosition { offset: place.offset, inside: None };
        if place.payload_end_log_pos.is_none() && header.event_type.mariadb_expanded().is_some() {
            let mut expanded = std::mem::take(&mut self.expanded);
            expanded.clear();
            let done = CompressedEvent::decode(header.event_type, body, &self.lengths).and_then(|event| {
                event.expand(&mut expanded)?;
                Ok(event.expanded_type)
            });
            let flow = match done {
                Ok(event_type) => self.plain(place, &EventHeader { event_type, ..*header }, &expanded),
                Err(error) => {
                    self.lacking.note(0, (position, header), None, error);
                    self.plain(place, header, body)
                }
            };
            self.expanded = expanded;
            return flow;
        }
        self.lacking.note_by_type(0, position, header, body);
        self.plain(place, header, body)
    }

    /// An event that is not compressed, or can't be expanded.
    fn plain(&mut self, place: EventSpan, header: &EventHeader, body: &[u8]) -> ControlFlow<()> {
        let position = EventPosition { offset: place.offset, inside: None };
        let taken = match self.content(position, header, body) {
            Ok(Some(content)) => GatheredEvent {
                header: *header,
                log: Arc::clone(&self.log),
                offset: place.offset,
                inside: place.payload_end_log_pos.is_some(),
                next_position: match place.payload_end_log_pos {
                    Some(_) => place.offset,
                    None => u64::from(header.end_log_pos),
                },
                body_size: u32::try_from(body.len()).unwrap_or(u32::MAX),
                content,
            },
            Ok(None) => return ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error.at(place.offset, Some(header.event_type)));
                return ControlFlow::Break(());
            }
        };
        self.bytes += body.len() + size_of::<GatheredEvent>();
        match taken.inside {
            true => {
                if let Some((before, _)) = self.held.replace((taken, place.end)) {
                    self.push(before);
                }
            }
            false => self.push(taken),
        }
        match self.bytes >= BATCH_BYTES || self.batch.len() >= BATCH_EVENTS {
            true => self.flush(),
            false => ControlFlow::Continue(()),
        }
    }

    /// The payload is over.
    pub(crate) fn payload_end(&mut self) {
        if let Some((last, end)) = self.held.take() {
            self.push(GatheredEvent { next_position: end, ..last });
        }
    }

    fn push(&mut self, event: GatheredEvent) {
        if self.unread.contains(&event.header.event_type) {
            self.passed = Some(event);
        } else {
            self.passed = None;
            self.batch.push(event);
        }
    }

    /// The contents of an event; `None`: it is left out.
    fn content(
        &mut self,
        position: EventPosition,
        header: &EventHeader,
        body: &[u8],
    ) -> Result<Option<EventContent>, BinlogError> {
        let event_type = header.event_type;
        self.tables.learn(position.offset, header, body);
        if event_type.is_gtid() {
            return self.gtid_content(event_type, body);
        }
        if self.is_leaving_out {
            let ends = [EventType::ROTATE, EventType::STOP, EventType::FORMAT_DESCRIPTION];
            if !ends.contains(&event_type) {
                return Ok(None);
            }
            self.is_leaving_out = false;
        }
        if std::mem::take(&mut self.statement_ended) {
            self.schemas.end_statement();
            self.unreadable.clear();
        }
        if event_type == EventType::TABLE_MAP {
            return self.table_map_content(position, body).map(Some);
        }
        if event_type.is_rows() {
            return self.rows_content(position, header, body);
        }
        if self.unread.contains(&event_type) {
            return Ok(Some(EventContent::Bytes(Vec::new())));
        }
        if event_type == EventType::QUERY {
            return Ok(Some(query_content(&QueryEvent::decode(body)?)));
        }
        Ok(Some(EventContent::Bytes(body.to_vec())))
    }

    /// A transaction begins, which is left out or not.
    fn gtid_content(
        &mut self,
        event_type: EventType,
        body: &[u8],
    ) -> Result<Option<EventContent>, BinlogError> {
        let decoded = AnyGtidEvent::decode(body, event_type)?;
        let gtid = decoded.as_ref().and_then(|event| event.gtid());
        self.is_leaving_out = self.selection.leaves_out(gtid.as_ref());
        self.schemas.end_statement();
        self.unreadable.clear();
        if self.is_leaving_out {
            return Ok(None);
        }
        if self.unread.contains(&event_type) {
            return Ok(Some(EventContent::Bytes(Vec::new())));
        }
        let Some(event) = decoded else { return Ok(Some(EventContent::Bytes(body.to_vec()))) };
        let clock = event.logical_clock();
        let times = event.commit_timestamps();
        Ok(Some(EventContent::Gtid(Box::new(GtidContent {
            gtid: gtid.map(|gtid| gtid.to_string()),
            may_have_statements: event.flags().may_have_sbr(),
            last_committed: clock.map(|clock| clock.last_committed),
            sequence_number: clock.map(|clock| clock.sequence_number),
            immediate: times.map(|times| times.immediate),
            original: times.map(|times| times.original.unwrap_or(times.immediate)),
        }))))
    }

    /// A table map; one that can't be compiled is noted, since it costs only its own rows.
    fn table_map_content(
        &mut self,
        position: EventPosition,
        body: &[u8],
    ) -> Result<EventContent, BinlogError> {
        let map = TableMapEvent::decode(body, self.lengths.of(EventType::TABLE_MAP))?;
        let id = map.table_id;
        self.unreadable.retain(|(unreadable, _)| *unreadable != id);
        let error = match self.schemas.note(body, &self.lengths) {
            Ok(schema) => {
                let schema = self.tables.complete(schema, position.offset);
                return Ok(EventContent::TableMap { id, schema });
            }
            Err(error) if TableSchema::new(&map, self.lengths.family()).is_ok() => return Err(error),
            Err(error) => error,
        };
        let database = map.database.to_vec();
        let table = map.table.to_vec();
        self.unreadable.push((id, UnreadableTable { database, table, why: error.to_string() }));
        Ok(EventContent::Bytes(body.to_vec()))
    }

    /// The rows of an event, unread; `None`: they are outside the bytes that are wanted.
    fn rows_content(
        &mut self,
        position: EventPosition,
        header: &EventHeader,
        body: &[u8],
    ) -> Result<Option<EventContent>, BinlogError> {
        let event_type = header.event_type;
        let post_header_length = self.lengths.of(event_type);
        let rows = RowsEvent::decode(event_type, body, post_header_length)?;
        if let Some((_, table)) = self.unreadable.iter().find(|(id, _)| *id == rows.table_id) {
            self.statement_ended = rows.flags.contains(RowsFlags::STMT_END);
            let names = Some((&table.database[..], &table.table[..]));
            self.lacking.note(0, (position, header), names, &table.why);
            return Ok(Some(EventContent::Bytes(body.to_vec())));
        }
        let schema = self.tables.complete(Arc::clone(self.schemas.get(rows.table_id)?), position.offset);
        self.statement_ended = rows.flags.contains(RowsFlags::STMT_END);
        if self.unread.contains(&event_type) {
            return Ok(Some(EventContent::Bytes(Vec::new())));
        }
        if self.offsets.as_ref().is_some_and(|offsets| !offsets.contains(&position.offset)) {
            return Ok(None);
        }
        let body = Arc::from(body);
        Ok(Some(EventContent::Rows(RowsContent { schema, event_type, body, post_header_length })))
    }
}

fn query_content(query: &QueryEvent<'_>) -> EventContent {
    EventContent::Query(Box::new(QueryContent {
        thread_id: query.thread_id,
        exec_time: query.exec_time,
        error_code: query.error_code,
        database: query.database.to_vec(),
        statement: query.statement.to_vec(),
        status_variables: query.status_variables.0.to_vec(),
    }))
}

impl Walker for EventGatherer<'_> {
    fn format_description(&mut self, start: &LogStart) -> ControlFlow<()> {
        self.take_lengths(start.context.post_header_lengths);
        ControlFlow::Continue(())
    }

    fn payload(
        &mut self,
        _: EventSpan,
        _: &EventHeader,
        _: &TransactionPayloadHeader<'_>,
    ) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn begin(&mut self, place: EventSpan, header: &EventHeader) -> ControlFlow<()> {
        // The walk does not tell where a payload ends: with the next event that is in none, or in another.
        if self.held.as_ref().is_some_and(|(held, _)| held.offset != place.offset) {
            self.payload_end();
        }
        self.header = Some((*header, place));
        self.body.clear();
        ControlFlow::Continue(())
    }

    fn body(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        let Some((header, place)) = self.header.take() else { return ControlFlow::Continue(()) };
        let body = std::mem::take(&mut self.body);
        let flow = self.event(place, &header, &body);
        // The room for a large one is not held while Python works with it.
        if body.capacity() <= BODY_KEPT_MAX {
            self.body = body;
        }
        flow
    }
}

/// The events in a payload that a server sent.
pub(crate) struct InPayload<'g, 'a> {
    pub(crate) gatherer: &'g mut EventGatherer<'a>,
    pub(crate) place: EventSpan,
}

impl InPayload<'_, '_> {
    fn go_on(&self, flow: ControlFlow<()>) -> Result<(), PayloadError> {
        match flow {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(std::io::Error::other("nobody reads the events").into()),
        }
    }
}

impl EventVisitor<StoredChecksum> for InPayload<'_, '_> {
    type Error = PayloadError;

    fn begin(&mut self, _: u64, header: &EventHeader) -> Result<(), PayloadError> {
        let flow = Walker::begin(self.gatherer, self.place, header);
        self.go_on(flow)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), PayloadError> {
        let flow = Walker::body(self.gatherer, bytes);
        self.go_on(flow)
    }

    fn end(&mut self, _: StoredChecksum) -> Result<(), PayloadError> {
        let flow = Walker::end(self.gatherer);
        self.go_on(flow)
    }
}
