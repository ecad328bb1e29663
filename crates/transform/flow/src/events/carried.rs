//! State that a batch that begins inside a transaction needs from the events before it.
//!
//! The reading thread must know this at the end of each batch, but should not examine every event. An earlier
//! transaction's events can't matter after two more GTID events, nor table maps and the text of a statement after its
//! end.

use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::{
    PostHeaderLengths, RowsEvent, RowsFlags, RowsQueryEvent, TableId, TableMapEvent,
};
use binlogz_binlog::header::{EVENT_TYPE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{Error, EventHeader, EventType, Framing, TransactionBoundaryParser};

/// Bytes of table maps that a statement may have. The widest table of 4096 columns has some 100 KB.
const TABLE_MAPS_SIZE_MAX: usize = 8 << 20;

/// State that the events before a batch leave behind.
#[derive(Debug, Clone, Default)]
pub struct CarriedState {
    /// The GTID event of the open transaction, or of the one whose payload the batch is in.
    pub gtid: Option<Arc<HeldEvent>>,
    /// Bodies (without checksum) of the table maps in force, the last of each table id.
    pub table_maps: Vec<Arc<[u8]>>,
    /// The text of the open statement, if its server logs texts beside rows.
    pub statement: Option<Arc<[u8]>>,
    /// Where in a transaction the batch begins.
    pub transaction: TransactionBoundaryParser,
}

/// An event kept beyond its batch.
#[derive(Debug, PartialEq, Eq)]
pub struct HeldEvent {
    /// Where the event begins in its log, in bytes.
    pub offset: u64,
    /// The whole event, including its checksum, which is not checked.
    pub bytes: Box<[u8]>,
}

/// Keeps [`CarriedState`] as the events go by.
#[derive(Debug, Default)]
pub(super) struct Tracker {
    gtid: Option<Arc<HeldEvent>>,
    table_maps: Vec<(TableId, Arc<[u8]>)>,
    statement: Option<Arc<[u8]>>,
    transaction: TransactionBoundaryParser,
    /// Whether the events are those of a payload: in the log, its transaction is over.
    in_payload: bool,
}

/// Whole events, one after the other, and how to read them.
#[derive(Debug, Clone, Copy)]
pub(super) struct WholeEvents<'a> {
    pub(super) bytes: &'a [u8],
    /// Where the first one begins in its log.
    pub(super) offset: u64,
    pub(super) framing: Framing,
    pub(super) lengths: &'a PostHeaderLengths,
}

impl<'a> WholeEvents<'a> {
    /// Each header with the place of the whole event in the bytes.
    fn headers(self) -> impl Iterator<Item = (EventHeader, Range<usize>)> + use<'a> {
        let mut begin = 0;
        std::iter::from_fn(move || {
            let header = EventHeader::decode(self.bytes.get(begin..)?).ok()?;
            let event = begin..begin + (header.event_size as usize).max(HEADER_SIZE);
            begin = event.end;
            Some((header, event))
        })
    }

    fn body(self, event: &Range<usize>) -> &'a [u8] {
        let end = event.end.saturating_sub(self.framing.checksum().size());
        self.bytes.get(event.start + HEADER_SIZE..end).unwrap_or_default()
    }
}

impl Tracker {
    /// State for the next batch.
    pub(super) fn carried(&self) -> CarriedState {
        let is_its = self.in_payload || self.transaction.is_open();
        let has_one = self.transaction.content().gtid.is_some();
        CarriedState {
            gtid: self.gtid.clone().filter(|_| is_its && has_one),
            table_maps: self.table_maps.iter().map(|(_, body)| Arc::clone(body)).collect(),
            statement: self.statement.clone(),
            transaction: self.transaction.clone(),
        }
    }

    /// For the events of the payload that just passed.
    pub(super) fn inside_payload(&self) -> Self {
        Tracker {
            gtid: self.gtid.clone(),
            table_maps: Vec::new(),
            statement: None,
            transaction: self.transaction.clone(),
            in_payload: true,
        }
    }

    /// Processes events of the log at these places: from the last one backwards, as far as they matter.
    ///
    /// # Errors
    ///
    /// A statement with more table maps than any has.
    pub(super) fn pass(&mut self, events: WholeEvents<'_>, starts: &[u32]) -> Result<(), Error> {
        let mut last_gtid = None;
        let mut last_but_one = None;
        let mut noted = Vec::new();
        let mut statement = None;
        let mut statement_ended = false;
        let mut end = events.bytes.len();
        for start in starts.iter().rev().map(|&start| start as usize) {
            let event = start..std::mem::replace(&mut end, start);
            let Some(&event_type) = events.bytes.get(start + EVENT_TYPE_OFFSET) else { continue };
            let event_type = EventType(event_type);
            if !statement_ended {
                if event_type == EventType::TABLE_MAP {
                    noted.push(event.clone());
                } else if is_statement_text(event_type) {
                    statement = statement.or_else(|| statement_text(event_type, events.body(&event)));
                } else if ends_statement(events, event_type, &event) {
                    statement_ended = true;
                }
            }
            if event_type.is_gtid() {
                if last_gtid.is_some() {
                    last_but_one = Some(event);
                    // A GTID event ends statements too.
                    break;
                }
                last_gtid = Some(event);
            }
        }
        if statement_ended {
            self.table_maps.clear();
            self.statement = None;
        }
        if statement.is_some() {
            self.statement = statement;
        }
        noted.reverse();
        // A GTID event begins a transaction in any case, but what came before decides whether that is valid.
        let from = last_but_one.map_or(0, |event: Range<usize>| event.start);
        let rest = WholeEvents { bytes: events.bytes.get(from..).unwrap_or_default(), ..events };
        for (header, event) in rest.headers() {
            self.transaction.feed(&header, rest.body(&event));
        }
        if let Some(event) = last_gtid {
            let offset = events.offset + event.start as u64;
            let bytes = events.bytes.get(event).unwrap_or_default().into();
            self.gtid = Some(Arc::new(HeldEvent { offset, bytes }));
        }
        self.keep(events, noted)
    }

    /// Processes events of which only table maps and the texts of statements matter: those of a payload.
    pub(super) fn pass_table_maps(&mut self, events: WholeEvents<'_>) -> Result<(), Error> {
        let mut noted = Vec::new();
        for (header, event) in events.headers() {
            self.note(events, &header, &event, &mut noted);
        }
        self.keep(events, noted)
    }

    /// Records the places of the table maps in force, and the text of the open statement.
    #[inline]
    fn note(
        &mut self,
        events: WholeEvents<'_>,
        header: &EventHeader,
        event: &Range<usize>,
        noted: &mut Vec<Range<usize>>,
    ) {
        if header.event_type == EventType::TABLE_MAP {
            noted.push(event.clone());
        } else if is_statement_text(header.event_type) {
            self.statement = statement_text(header.event_type, events.body(event));
        } else if ends_statement(events, header.event_type, event) {
            noted.clear();
            self.table_maps.clear();
            self.statement = None;
        }
    }

    /// Keeps the table maps that were recorded.
    fn keep(&mut self, events: WholeEvents<'_>, noted: Vec<Range<usize>>) -> Result<(), Error> {
        for event in noted {
            let body = events.body(&event);
            // A table map that can't be read is reported with its rows.
            let length = events.lengths.of(EventType::TABLE_MAP);
            let Ok(table_id) = TableMapEvent::decode_table_id(body, length) else { continue };
            self.table_maps.retain(|(id, _)| *id != table_id);
            self.table_maps.push((table_id, body.into()));
        }
        let size: usize = self.table_maps.iter().map(|(_, body)| body.len()).sum();
        if size > TABLE_MAPS_SIZE_MAX {
            let error =
                Error::invalid("statement", "size of its table maps", size, "at most 8 MiB of table maps");
            return Err(error.at(events.offset, Some(EventType::TABLE_MAP)));
        }
        Ok(())
    }
}

/// Whether an event is the text of the statement whose rows follow.
fn is_statement_text(event_type: EventType) -> bool {
    event_type == EventType::ROWS_QUERY || event_type == EventType::MARIADB_ANNOTATE_ROWS
}

/// The text of the statement whose rows follow an event; `None`: the event has none, or can't be read.
pub fn statement_text(event_type: EventType, body: &[u8]) -> Option<Arc<[u8]>> {
    // MariaDB's event is nothing but the text.
    let annotated = (event_type == EventType::MARIADB_ANNOTATE_ROWS).then_some(body);
    let logged = || RowsQueryEvent::decode(body).ok().filter(|_| event_type == EventType::ROWS_QUERY);
    annotated.or_else(|| logged().map(|event| event.statement)).map(Arc::from)
}

/// Whether no table map is in force after an event.
fn ends_statement(events: WholeEvents<'_>, event_type: EventType, event: &Range<usize>) -> bool {
    if event_type.is_gtid() || event_type == EventType::TRANSACTION_PAYLOAD {
        return true;
    }
    let event_type = event_type.mariadb_expanded().unwrap_or(event_type);
    event_type.is_rows()
        && RowsEvent::decode_front(event_type, events.body(event), events.lengths.of(event_type))
            .is_ok_and(|(_, flags)| flags.contains(RowsFlags::STMT_END))
}
