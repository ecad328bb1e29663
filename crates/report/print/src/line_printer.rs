//! What printers of lines have in common: those of JSON lines, and of row changes in the formats of other programs. A printer
//! says what becomes of one event; how a batch is gone through stands here.

use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::{EventType, MAGIC};
use binlogz_flow::Error;
use binlogz_flow::events::{BatchItem, Event, EventBatch, EventList, EventPosition, ListedEvents};

use binlogz_schema::TablesSoFar;

use crate::met::MetRequests;
use crate::selection::{EventSelection, LogBounds};

/// Whether there is more to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// There may be.
    GoesOn,
    /// Nothing after this is asked for.
    Ends,
}

/// Why there are no lines of an event.
#[derive(Debug)]
pub enum LineFailure<E> {
    /// It can't be read.
    Event(Error),
    /// The lines before it could not be passed on.
    Flush(E),
}

/// The state that a printer hands from batch to batch.
pub trait LineState: Clone + Default + Send {
    /// Prepares for the next log, of this name.
    fn begin_log(&mut self, name: &str);

    /// The requests met so far.
    fn met(&self) -> MetRequests;

    /// Whether nothing further is asked for.
    fn has_ended(&self) -> bool;

    /// The tables by the statements up to here, where they are recorded.
    fn tables(&self) -> &TablesSoFar;
}

/// A worker's printer, used for all its batches of a log. [`LinePrinter::pass`] and [`LinePrinter::print`] go through a batch;
/// they are the same for all printers.
pub trait LinePrinter {
    /// State that depends on the order of events, handed from batch to batch.
    type State: LineState;

    /// Which events become lines, and where the log begins and ends.
    fn asked_for(&self) -> (&EventSelection, LogBounds);

    /// Takes the table maps in force where a batch begins.
    ///
    /// # Errors
    ///
    /// A table map that can't be read.
    fn begin_batch(&mut self, batch: &EventBatch<'_>) -> Result<(), Error>;

    /// Prepares for lines that are appended to `out`.
    fn begin_lines(&mut self, _state: &Self::State, _out: &[u8]) {}

    /// Takes a statement or a format description that is otherwise not looked at: it may change tables.
    fn pass_statement(&self, event: &Event<'_>, state: &mut Self::State);

    /// Passes over an item without printing it. `is_of_last`: no transaction begins after it in the batch.
    ///
    /// # Errors
    ///
    /// An event that can't be read.
    fn pass_item(&self, item: BatchItem<'_>, is_of_last: bool, state: &mut Self::State) -> Result<(), Error>;

    /// Appends the lines of an item. Calls `flush` with whole lines, which it may take.
    ///
    /// # Errors
    ///
    /// An event that can't be read. The errors of `flush`.
    fn print_item<E>(
        &mut self,
        item: BatchItem<'_>,
        state: &mut Self::State,
        out: &mut Vec<u8>,
        flush: &mut impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), LineFailure<E>>;

    /// All items that were read ahead are printed.
    fn end_lines(&mut self, _state: &Self::State) {}

    /// The transactions whose lines were completed since the last call, as far as they have GTIDs.
    fn take_finished(&mut self) -> FinishedTransactions {
        FinishedTransactions::default()
    }

    /// Passes over the events that were read ahead, without printing any. Errors in an event are found where
    /// it is printed.
    fn pass(&self, batch: &EventBatch<'_>, list: &EventList, state: &mut Self::State) {
        let events = batch.listed(list);
        let last_begin = last_transaction(events);
        let (selection, bounds) = self.asked_for();
        let from = if shows_all(selection, bounds) { last_begin } else { 0 };
        for event in statements_before(events, from) {
            self.pass_statement(&event, state);
        }
        for (place, item) in events.places_from(from) {
            if self.pass_item(item, place >= last_begin, state).is_err() || state.has_ended() {
                break;
            }
        }
    }

    /// Appends the lines of a batch's events, as far as they were read ahead into the list. Calls `flush`
    /// with whole lines, which it may take.
    ///
    /// # Errors
    ///
    /// Events that can't be read: the lines before them are whole. The errors of `flush`.
    fn print<E: From<Error>>(
        &mut self,
        batch: &EventBatch<'_>,
        list: &EventList,
        state: &mut Self::State,
        out: &mut Vec<u8>,
        mut flush: impl FnMut(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Flow, E> {
        self.begin_lines(state, out);
        let mut last = EventPosition::default();
        for item in batch.listed(list).iter() {
            if state.has_ended() {
                break;
            }
            if let BatchItem::Event(event) = &item {
                last = event.position;
            }
            match self.print_item(item, state, out, &mut flush) {
                Ok(()) => {}
                Err(LineFailure::Event(error)) => {
                    // Only whole lines were flushed meanwhile.
                    out.truncate(out.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
                    return Err(error.into());
                }
                Err(LineFailure::Flush(error)) => return Err(error),
            }
        }
        let (selection, _) = self.asked_for();
        keep_asked_for(batch, selection, state.has_ended().then_some(last));
        self.end_lines(state);
        Ok(if state.has_ended() { Flow::Ends } else { Flow::GoesOn })
    }
}

/// Transactions whose lines were all made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FinishedTransactions {
    /// GTIDs of the transactions.
    pub gtids: Vec<Gtid>,
    /// Whether there were some without.
    pub has_anonymous: bool,
}

/// Where the last transaction of a batch begins: its GTID event starts afresh, whatever came before.
fn last_transaction(events: ListedEvents<'_>) -> usize {
    let gtids = events.types(0).filter(|(_, event_type)| event_type.is_some_and(EventType::is_gtid));
    let is_in_log = |&place: &usize| events.outline(place).is_some_and(|event| event.end.is_some());
    gtids.map(|(place, _)| place).filter(is_in_log).last().unwrap_or(0)
}

/// The events before a place that may say what tables are: statements, without those that only begin or end a transaction, and
/// format descriptions.
fn statements_before(events: ListedEvents<'_>, end: usize) -> impl Iterator<Item = Event<'_>> {
    let types = events.types(0).take_while(move |(place, _)| *place < end);
    let is_statement = move |(place, event_type): &(usize, Option<EventType>)| match *event_type {
        Some(EventType::QUERY) => {
            events.outline(*place).is_some_and(|event| event.end.is_some() && !is_control(event.body))
        }
        event_type => event_type == Some(EventType::FORMAT_DESCRIPTION),
    };
    types.filter(is_statement).filter_map(move |(place, _)| events.event(place))
}

/// Whether a query event's body has the statement of nearly all of them: it begins or ends a transaction.
#[inline]
pub(crate) fn is_control(body: &[u8]) -> bool {
    // After the database's name and its NUL.
    body.ends_with(b"\0BEGIN") || body.ends_with(b"\0COMMIT")
}

/// Whether everything is shown, so that no event needs to be checked.
fn shows_all(selection: &EventSelection, bounds: LogBounds) -> bool {
    let whole_log = bounds.start <= MAGIC.len() as u64
        && bounds.stop == u64::MAX
        && bounds.sent_from.is_none()
        && selection.start_time.is_none()
        && selection.stop_time.is_none();
    let all_transactions = selection.include_gtids.is_none()
        && selection.exclude_gtids.is_none()
        && selection.stop_before_gtid.is_none();
    whole_log && all_transactions
}

/// Takes back the notes about changes that weren't asked for: those of other tables, and those from the end on.
fn keep_asked_for(batch: &EventBatch<'_>, selection: &EventSelection, end: Option<EventPosition>) {
    batch.retain_unread(|unread| {
        let has_table =
            |(database, table): (&str, &str)| selection.has_table(database.as_bytes(), table.as_bytes());
        end.is_none_or(|end| unread.position < end) && unread.table.is_none_or(has_table)
    });
}
