//! State that later lines need from earlier events: the transaction they are in, and the selection so far.
//! Carries over from batch to batch.

use binlogz_binlog::event::{QueryEvent, RotateEvent};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Boundary, EventClass, EventHeader, EventType, Result, TransactionBoundaryParser};
use binlogz_flow::events::Event;
use binlogz_schema::{HistoryPlace, RecordedStatement, TablesOfLogs, TablesSoFar};

use super::frame::{JsonFrame, statement_text};
use super::held::HeldLines;
use crate::line_printer::{LineState, is_control};
use crate::met::MetRequests;
use crate::selection::{EventSelection, LogBounds};

/// The state between two events.
#[derive(Debug, Clone, Default)]
pub struct JsonState {
    /// The position of the current event, or of the payload around it.
    pub(super) position: u64,
    /// The difference between that position and the offset in what was read.
    moved: u64,
    /// Where in a transaction the log is.
    transaction: TransactionBoundaryParser,
    pub(super) frame: JsonFrame,
    pub(super) held: HeldLines,
    /// Events were late enough: from now on all are.
    started: bool,
    /// The transaction is not selected; events after it, outside transactions, are.
    is_filtered: bool,
    ended: bool,
    met: MetRequests,
    /// The tables by the statements so far.
    tables: TablesSoFar,
}

impl JsonState {
    /// Notes a request that was met.
    pub(crate) fn met_mut(&mut self) -> &mut MetRequests {
        &mut self.met
    }

    /// Notes that rows of a chosen table are shown, whose place in `--table` is this.
    pub fn note_rows(&mut self, place: Option<usize>) {
        self.met.note_rows(place);
    }

    /// The place of the current event among all logs, for what is known of tables there.
    pub fn place(&self) -> HistoryPlace {
        self.tables.place(self.position)
    }

    /// Takes an event for what it says of tables: statements change them, and the ends and beginnings of logs say whether
    /// one continues the other.
    #[inline]
    pub fn learn(&mut self, event: &Event<'_>, tables: &TablesOfLogs) {
        let class = event.header.event_type.class();
        // In payloads there is no DDL: the server doesn't compress it.
        if class.may_change_tables() {
            let place = self.tables.place(event.position.offset + self.moved);
            if tables.records(place) && !event.is_inside_payload() && !is_control(event.body) {
                self.record(event);
            }
        } else if class == EventClass::File {
            self.learn_of_log(event);
        }
    }

    fn learn_of_log(&mut self, event: &Event<'_>) {
        let header = &event.header;
        if header.event_type == EventType::FORMAT_DESCRIPTION {
            self.tables.take_server(header.server_id, event.position.offset);
        }
        if header.event_type == EventType::ROTATE
            && header.timestamp != 0
            && let Ok(rotate) = RotateEvent::decode(event.body)
        {
            self.tables.rotate_to(rotate.name);
        }
    }

    #[cold]
    fn record(&mut self, event: &Event<'_>) {
        // One that can't be read is an error where it is printed.
        let Ok(query) = QueryEvent::decode(event.body) else { return };
        if StatementKind::of(query.statement) == StatementKind::Other && !query.is_alter_without_effect() {
            let place = self.tables.place(event.position.offset + self.moved);
            let text = statement_text(&query).unwrap_or_else(|| String::from_utf8_lossy(query.statement));
            let database = String::from_utf8_lossy(query.database);
            self.tables.record(&RecordedStatement::of_query(place, &query, (&database, &text)));
        }
    }

    /// The position of the current event, or of the payload around it.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the log is inside a transaction; inside a payload, its transaction has ended.
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_open()
    }

    /// The GTID of the current transaction, or of the last one.
    pub fn gtid(&self) -> Option<Gtid> {
        self.frame.gtid
    }

    /// The connection that the transaction is from.
    pub fn thread_id(&self) -> Option<u32> {
        self.frame.thread_id
    }

    /// Whether the transaction began with XA START.
    pub fn is_xa(&self) -> bool {
        self.frame.is_xa
    }

    /// Where the transaction's BEGIN stands, if it has one; in a payload, where that stands.
    pub fn begin_position(&self) -> Option<u64> {
        self.frame.begin_position
    }

    /// When the transaction was committed first, in microseconds since 1970.
    pub fn commit_time(&self) -> Option<u64> {
        self.frame.commit_time
    }

    /// Where the transaction begins.
    pub fn transaction_position(&self) -> u64 {
        self.frame.position
    }

    /// Takes the next event of the log.
    ///
    /// # Errors
    ///
    /// An event that can't be read.
    pub fn pass(&mut self, event: &Event<'_>, positions: LogBounds) -> Result<()> {
        self.find_position(event, positions);

        // Events inside a payload belong to the payload's transaction.
        let boundary = match event.is_inside_payload() {
            true => Boundary::Inside,
            false => self.transaction.feed(&event.header, event.body).boundary,
        };
        if !matches!(boundary, Boundary::Inside | Boundary::End) {
            self.held.begin();
        }
        self.frame.pass(event, self.position, boundary)
    }

    /// Finds an event's position in its log. A server's stream may lack the beginning or some transactions:
    /// the events themselves give the low 32 bits of where they end.
    fn find_position(&mut self, event: &Event<'_>, positions: LogBounds) {
        if event.is_inside_payload() {
            return;
        }
        let EventHeader { event_type, event_size, end_log_pos, .. } = event.header;
        let position = event.position.offset + self.moved;
        let tells = event_type != EventType::FORMAT_DESCRIPTION && end_log_pos != 0;
        if positions.sent_from.is_some() && tells {
            self.moved += u64::from(end_log_pos.wrapping_sub(event_size).wrapping_sub(position as u32));
        }
        self.position = event.position.offset + self.moved;
    }

    /// Whether an event is selected. Format descriptions always are.
    pub fn selects(&mut self, event: &Event<'_>, selection: &EventSelection, positions: LogBounds) -> bool {
        let event_type = event.header.event_type;
        let offset = self.position;
        // Before the start position, only a transaction that continues past it matters.
        let is_in_front = offset < positions.start;
        if offset >= positions.stop {
            self.ended = true;
            return false;
        }
        if !event.is_inside_payload() {
            self.met.end = offset + u64::from(event.header.event_size);
        }
        if event_type == EventType::PREVIOUS_GTIDS && self.met.previous_gtids(event.body, selection) {
            self.ended = true;
            return false;
        }
        if event_type.is_gtid() {
            let gtid = self.frame.gtid.as_ref();
            let stops = selection.stop_before_gtid.is_some() && gtid == selection.stop_before_gtid.as_ref();
            if stops && !is_in_front {
                self.ended = true;
                return false;
            }
            let is_in = |set: &GtidSet| gtid.is_some_and(|gtid| set.contains(gtid));
            let included = selection.include_gtids.as_ref().is_none_or(is_in);
            self.met.gtid |= included && !is_in_front;
            let excluded = selection.exclude_gtids.as_ref().is_some_and(is_in);
            self.met.excluded |= excluded;
            self.is_filtered = !included || excluded;
        }
        if event_type == EventType::FORMAT_DESCRIPTION {
            return !is_in_front || positions.start == LogBounds::default().start;
        }
        if is_in_front {
            return false;
        }
        let (second, committed) = (event.header.timestamp, self.frame.commit_time);
        if selection.stop_time.is_some_and(|stop| stop.is_reached(second, committed)) {
            self.ended |= !event.is_inside_payload();
            return false;
        }
        self.started |= selection.start_time.is_none_or(|start| start.is_reached(second, committed));
        let is_of_the_data =
            !matches!(event_type, EventType::PREVIOUS_GTIDS | EventType::ROTATE | EventType::STOP);
        self.met.time |= self.started && is_of_the_data;
        let mask = if selection.server_id_mask == 0 { u32::MAX } else { selection.server_id_mask };
        let other_server = selection.server_id.is_some_and(|id| id != event.header.server_id & mask);
        self.met.server_id |= self.started && !other_server && is_of_the_data;
        let is_filtered = self.is_filtered && self.frame.is_open();
        self.started && !is_filtered && !other_server
    }
}

impl LineState for JsonState {
    fn begin_log(&mut self, name: &str) {
        let before = std::mem::take(self);
        *self = JsonState {
            started: before.started,
            ended: before.ended,
            met: MetRequests { end: 0, ..before.met },
            tables: before.tables,
            ..JsonState::default()
        };
        self.tables.begin_log(name.as_bytes());
    }

    fn met(&self) -> MetRequests {
        self.met
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn tables(&self) -> &TablesSoFar {
        &self.tables
    }
}
