//! The context of rows: the transaction that they belong to, and the header of their event. Both are taken from the
//! streams of the events that begin and end transactions, which are few and small; no event is put together.
//!
//! ```text
//! event                        what is taken
//! GTID, of the known layout    its type's group: uuid, gno, clock type, commit timestamps
//! GTID, of another             its body
//! query                        its statement: BEGIN, COMMIT, ...
//! others                       their type and flags
//! all                          timestamp and server id, each as its difference from the event's before it
//! ```

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::vec;

use binlogz_binlog::event::{AnyGtidEvent, CommitTimestamps, QueryEvent, StatusVariables};
use binlogz_binlog::gtid::{Gtid, ServerUuid};
use binlogz_binlog::header::HeaderFlags;
use binlogz_binlog::{Boundary, EventHeader, EventType, TransactionBoundaryParser};

use super::streams::{NumberStream, TextStream};
use crate::block::layout::{
    self, BODY, FLAGS, KNOWN, LOGICAL_CLOCK, ORIGINAL_TIMESTAMP, SERVER_ID, TIMESTAMP, TIMESTAMP_MAX, TYPE,
    UNKNOWN_BODY,
};
use crate::block::packed::{self, Front};
use crate::block::streams::{SparseStreams, StreamColumn};
use crate::error::{Error, Result};

/// The context of an event's rows: their transaction, and the fields of the event's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowContext {
    /// The rows' transaction; `None`: no GTID event begins it.
    pub transaction: Option<Arc<PickedTransaction>>,
    /// The event's timestamp, in seconds since 1970; 0: none.
    pub timestamp: u32,
    /// The server that wrote the event.
    pub server_id: u32,
}

/// A transaction as its GTID event tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PickedTransaction {
    /// `None`: it is anonymous.
    pub gtid: Option<Gtid>,
    /// When it was committed, since MySQL 8.0.1.
    pub commit_timestamps: Option<CommitTimestamps>,
    /// Where its GTID event begins in the log, in bytes; `None`: nobody asks.
    pub position: Option<u64>,
}

impl PickedTransaction {
    pub(crate) fn of(event: &AnyGtidEvent<'_>) -> Self {
        PickedTransaction { gtid: event.gtid(), commit_timestamps: event.commit_timestamps(), position: None }
    }
}

/// Which transaction events belong to: as [`Boundary`] says, from the begin of a log's part.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransactionTracker {
    parser: TransactionBoundaryParser,
    pub(super) open: Option<Arc<PickedTransaction>>,
}

impl TransactionTracker {
    /// Takes the next event, which begins at `position` of the log, if somebody asks for that.
    pub(super) fn pass(&mut self, header: &EventHeader, body: &[u8], position: Option<u64>) -> Result<()> {
        if self.stays(header, body) {
            return Ok(());
        }
        let begins = AnyGtidEvent::decode(body, header.event_type)?;
        self.open =
            begins.map(|event| Arc::new(PickedTransaction { position, ..PickedTransaction::of(&event) }));
        Ok(())
    }

    /// Whether the next event belongs to the transaction before it.
    fn stays(&mut self, header: &EventHeader, body: &[u8]) -> bool {
        matches!(self.parser.feed(header, body).boundary, Boundary::Inside | Boundary::End)
    }
}

/// The streams of a block's events that have transactions and event headers.
#[derive(Debug)]
pub(super) struct EventStreams {
    /// The types of all events, in order; how many were passed.
    types: NumberStream,
    /// By type.
    streams: HashMap<EventType, OfType>,
    last: PreviousEvent,
    /// The body of a query that has the last statement.
    query: Option<(Vec<u8>, Vec<u8>)>,
    /// Where GTID events that weren't passed begin in the log; empty: nobody asks.
    positions: vec::IntoIter<u64>,
}

/// The fields that an event's are differences from.
#[derive(Debug, Default)]
struct PreviousEvent {
    timestamp: i64,
    server_id: i64,
    gno: i64,
    commit_timestamp: i64,
}

/// The streams of an event type; unneeded ones are empty.
#[derive(Debug)]
struct OfType {
    timestamps: NumberStream,
    server_ids: NumberStream,
    flags: NumberStream,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// Nothing depends on it.
    Any,
    Gtid {
        known: NumberStream,
        gtids: Box<Gtids>,
        unknown: TextStream,
    },
    Query {
        known: NumberStream,
        statements: TextStream,
        unknown: TextStream,
    },
}

#[derive(Debug)]
struct Gtids {
    uuids: TextStream,
    gnos: NumberStream,
    clock_types: NumberStream,
    immediate: NumberStream,
    original: NumberStream,
}

impl EventStreams {
    /// Takes the streams of a block that has events of these types.
    pub(super) fn take(streams: &mut SparseStreams<'_>, types: Vec<i64>) -> Result<Self> {
        let distinct: BTreeSet<i64> = types.iter().copied().collect();
        let mut by_type = HashMap::new();
        for event_type in distinct {
            let event_type = type_of(event_type)?;
            by_type.insert(event_type, OfType::take(streams, event_type)?);
        }
        Ok(EventStreams {
            types: NumberStream(types, 0),
            streams: by_type,
            last: PreviousEvent::default(),
            query: None,
            positions: Vec::new().into_iter(),
        })
    }

    /// Takes where GTID events begin in the log, in order.
    pub(super) fn take_positions(&mut self, positions: Vec<u64>) -> Result<()> {
        let types = self.types.0.iter().filter_map(|&event_type| type_of(event_type).ok());
        let events = types.filter(|&event_type| begins_transaction(event_type)).count();
        if events != positions.len() {
            let found = format!("{} transactions with GTID events", positions.len());
            let expected = "as many as the block has such events";
            return Err(Error::damaged("directory of transactions", found, expected));
        }
        self.positions = positions.into_iter();
        Ok(())
    }

    /// Goes through the events up to one, by its number in the block, and returns that event's transaction and header.
    pub(super) fn pass_to(
        &mut self,
        event: usize,
        transactions: &mut TransactionTracker,
    ) -> Result<RowContext> {
        while self.types.1 <= event {
            self.pass(transactions)?;
        }
        Ok(RowContext {
            transaction: transactions.open.clone(),
            timestamp: self.last.timestamp as u32,
            server_id: self.last.server_id as u32,
        })
    }

    /// Goes through the rest of the events.
    pub(super) fn pass_all(&mut self, transactions: &mut TransactionTracker) -> Result<()> {
        while self.types.1 < self.types.0.len() {
            self.pass(transactions)?;
        }
        Ok(())
    }

    fn pass(&mut self, transactions: &mut TransactionTracker) -> Result<()> {
        let event_type = type_of(self.types.next()?)?;
        let Some(streams) = self.streams.get_mut(&event_type) else { return Ok(()) };
        let last = &mut self.last;
        last.timestamp = last.timestamp.wrapping_add(streams.timestamps.next()?);
        last.server_id = last.server_id.wrapping_add(streams.server_ids.next()?);
        let mut header = EventHeader {
            timestamp: last.timestamp as u32,
            event_type,
            server_id: last.server_id as u32,
            event_size: 0,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        match &mut streams.body {
            Body::Any => {
                header.flags = HeaderFlags(streams.flags.next()? as u16);
                transactions.pass(&header, &[], None)
            }
            Body::Gtid { known, gtids, unknown } => {
                let position = self.positions.next();
                match known.next()? {
                    1 => {
                        let begins = gtids.next(event_type, last)?;
                        // Of such an event only the type counts.
                        if !transactions.stays(&header, &[]) {
                            transactions.open = Some(Arc::new(PickedTransaction { position, ..begins }));
                        }
                        Ok(())
                    }
                    _ => transactions.pass(&header, unknown.next()?, position),
                }
            }
            Body::Query { known, statements, unknown } => match known.next()? {
                1 => transactions.pass(&header, body_of(&mut self.query, statements.next()?)?, None),
                _ => transactions.pass(&header, unknown.next()?, None),
            },
        }
    }
}

/// The body of a query: most have the same statement as the one before them.
fn body_of<'q>(last: &'q mut Option<(Vec<u8>, Vec<u8>)>, statement: &[u8]) -> Result<&'q [u8]> {
    if last.as_ref().is_none_or(|(known, _)| known != statement) {
        let query = QueryEvent {
            thread_id: 0,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables::default(),
            database: b"",
            statement,
        };
        *last = Some((statement.to_vec(), query.encode()?));
    }
    Ok(last.as_ref().map(|(_, body)| body.as_slice()).unwrap_or_default())
}

impl OfType {
    fn take(streams: &mut SparseStreams<'_>, event_type: EventType) -> Result<Self> {
        let at = |slot: usize| StreamColumn::new(usize::from(event_type.0), slot);
        let mut numbers = |slot: usize| streams.numbers(at(slot)).map(|numbers| NumberStream(numbers, 0));
        let timestamps = numbers(TIMESTAMP)?;
        let server_ids = numbers(SERVER_ID)?;
        let is_gtid = begins_transaction(event_type);
        if !is_gtid && event_type != EventType::QUERY {
            return Ok(OfType { timestamps, server_ids, flags: numbers(FLAGS)?, body: Body::Any });
        }
        let body = if is_gtid {
            let GtidStreams { known, gtids, unknown } = GtidStreams::take(streams, event_type)?;
            Body::Gtid { known, gtids, unknown }
        } else {
            let known = numbers(KNOWN)?;
            let statements = TextStream(streams.strings(at(BODY + layout::STATEMENT))?, 0);
            Body::Query { known, statements, unknown: TextStream(streams.strings(at(UNKNOWN_BODY))?, 0) }
        };
        Ok(OfType { timestamps, server_ids, flags: NumberStream::default(), body })
    }
}

/// The streams of GTID events of a type.
struct GtidStreams {
    known: NumberStream,
    gtids: Box<Gtids>,
    unknown: TextStream,
}

impl GtidStreams {
    fn take(streams: &mut SparseStreams<'_>, event_type: EventType) -> Result<Self> {
        let at = |slot: usize| StreamColumn::new(usize::from(event_type.0), slot);
        let mut numbers = |slot: usize| streams.numbers(at(slot)).map(|numbers| NumberStream(numbers, 0));
        let known = numbers(KNOWN)?;
        let gnos = numbers(BODY + layout::GNO)?;
        let clock_types = numbers(BODY + layout::CLOCK_TYPE)?;
        let immediate = numbers(BODY + layout::COMMIT_TIMESTAMP)?;
        let original = numbers(BODY + layout::ORIGINAL_COMMIT_TIMESTAMP)?;
        let uuids = TextStream(streams.strings(at(BODY + layout::UUID))?, 0);
        let gtids = Box::new(Gtids { uuids, gnos, clock_types, immediate, original });
        let unknown = TextStream(streams.strings(at(UNKNOWN_BODY))?, 0);
        Ok(GtidStreams { known, gtids, unknown })
    }

    fn next(&mut self, event_type: EventType, last: &mut PreviousEvent) -> Result<Option<PickedTransaction>> {
        match self.known.next()? {
            1 => self.gtids.next(event_type, last).map(Some),
            _ => {
                let event = AnyGtidEvent::decode(self.unknown.next()?, event_type)?;
                Ok(event.map(|event| PickedTransaction::of(&event)))
            }
        }
    }
}

/// The transactions of a block's GTID events, in order. Only the streams of those are unpacked. `None`: the block isn't packed by columns.
pub(crate) fn gtid_events(packed: &[u8], size: usize) -> Result<Option<Vec<PickedTransaction>>> {
    let (_, Some(Front { count, mut from, .. })) = packed::front(packed, size)? else { return Ok(None) };
    let mut streams = SparseStreams::find(&mut from, size)?;
    let types = streams.numbers(TYPE)?;
    if types.len() != count {
        return Err(Error::damaged("block", format!("{} event types", types.len()), "one for each event"));
    }
    let mut by_type: HashMap<EventType, GtidStreams> = HashMap::new();
    let mut last = PreviousEvent::default();
    let mut found = Vec::new();
    for &event_type in types.iter() {
        let event_type = type_of(event_type)?;
        if !event_type.is_gtid() {
            continue;
        }
        let streams = match by_type.entry(event_type) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(GtidStreams::take(&mut streams, event_type)?),
        };
        found.extend(streams.next(event_type, &mut last)?);
    }
    Ok(Some(found))
}

impl Gtids {
    /// The transaction that the next event begins.
    fn next(&mut self, event_type: EventType, last: &mut PreviousEvent) -> Result<PickedTransaction> {
        last.gno = last.gno.wrapping_add(self.gnos.next()?);
        let immediate = last.commit_timestamp.wrapping_add(self.immediate.next()?);
        last.commit_timestamp = immediate;
        let time = (immediate & (ORIGINAL_TIMESTAMP - 1)) as u64;
        let original = match immediate & ORIGINAL_TIMESTAMP {
            0 => None,
            _ => Some((time.wrapping_add(self.original.next()? as u64)) & TIMESTAMP_MAX),
        };
        let uuid = self.uuids.next()?.first_chunk().copied();
        let uuid = uuid.ok_or_else(|| Error::damaged("GTID event", "a short uuid", "16 bytes"))?;
        let gno = last.gno as u64;
        let gtid = match event_type {
            EventType::ANONYMOUS_GTID => None,
            _ => Some(Gtid::new(ServerUuid(uuid).into(), gno)?),
        };
        let has_times = self.clock_types.next()? == LOGICAL_CLOCK;
        let commit_timestamps = has_times.then_some(CommitTimestamps { immediate: time, original });
        Ok(PickedTransaction { gtid, commit_timestamps, position: None })
    }
}

fn begins_transaction(event_type: EventType) -> bool {
    event_type.is_gtid() || event_type == EventType::MARIADB_GTID
}

fn type_of(number: i64) -> Result<EventType> {
    let event_type = u8::try_from(number).map(EventType);
    event_type.map_err(|_| Error::damaged("event type", number.to_string(), "0 to 255"))
}
