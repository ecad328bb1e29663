//! The state pass over the events that make up nearly every transaction. Most of them leave nothing that the
//! next one does not replace: only their type is read, except for what follows the last transaction that
//! ended.
//!
//! | event | what it leaves |
//! |---|---|
//! | GTID | a transaction is about to begin; the last one: the server's version |
//! | `BEGIN` with the settings of the one before | the transaction is open |
//! | table map, rows | what waits for the end of the statement |
//! | XID | the transaction is over |
//! | payload | nothing |
//!
//! All other events, and all events of a run that does not show everything, are read in full
//! ([`super::select`]). Errors in an event are found by the pass that prints it, which ends the run there.

use std::io;

use binlogz_binlog::event::{AnyGtidEvent, QueryEvent, RowsEvent, RowsFlags};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventType, HeaderFlags, MAGIC};
use binlogz_flow::events::{BatchItem, ListedEvents, Outline};

use super::Run;
use super::control::immediate_version;
use super::statement::starts_group;
use crate::mysqlbinlog::options::Base64Output;

/// Bytes before the compared part of a statement: the thread, and how long it took.
const QUERY_TIMES_SIZE: usize = 8;

/// State that later events need from earlier ones.
#[derive(Default)]
struct EarlierEvents<'l> {
    /// The last statement, if it was a `BEGIN` whose settings are in force.
    begin: Option<(HeaderFlags, &'l [u8])>,
    gtid: Option<Outline<'l>>,
}

impl<'l> Run<'l> {
    /// Passes over events without printing any.
    pub(super) fn pass_state(&mut self, events: ListedEvents<'l>) -> io::Result<()> {
        let mut seen = EarlierEvents::default();
        let mut place = 0;
        while self.state.stopped.is_none() {
            if self.shows_all() && !self.state.payload_hidden {
                place = self.pass_usual(events, place, &mut seen)?;
            }
            if place >= events.len() {
                break;
            }
            self.place = place;
            match events.item(place) {
                Some(BatchItem::Event(event)) => self.log_event(&event)?,
                Some(BatchItem::PayloadEnd(_)) => self.payload_end(),
                None => {}
            }
            let query = events.outline(place).filter(|event| event.event_type == EventType::QUERY);
            seen.begin = query.and_then(begin_of);
            place += 1;
        }
        if let Some(gtid) = seen.gtid
            && let Ok(Some(gtid)) = AnyGtidEvent::decode(gtid.body, gtid.event_type)
        {
            self.state.immediate_server_version = immediate_version(&gtid);
        }
        Ok(())
    }

    /// Passes over the usual events from `from` on; returns the place of the first other one.
    fn pass_usual(
        &mut self,
        events: ListedEvents<'l>,
        from: usize,
        seen: &mut EarlierEvents<'l>,
    ) -> io::Result<usize> {
        let mut end = events.len();
        let mut count = 0;
        let mut gtid = None;
        for (place, event_type) in events.types(from) {
            let is_usual = event_type.is_some_and(|event_type| match event_type {
                EventType::XID | EventType::TABLE_MAP | EventType::TRANSACTION_PAYLOAD => true,
                EventType::QUERY => events.outline(place).is_some_and(|event| seen.is_again(event)),
                event_type if event_type.is_gtid() => {
                    gtid = Some(place);
                    true
                }
                event_type => event_type.is_rows(),
            });
            if !is_usual {
                end = place;
                break;
            }
            count += 1;
        }
        self.state.entries += count;
        if let Some(gtid) = gtid {
            seen.gtid = events.outline(gtid);
        }
        let ends = (from..end).rev().find_map(|place| events.outline(place)?.end);
        self.state.log_end = ends.unwrap_or(self.state.log_end);
        let mut begin = from;
        if let Some(xid) = (from + 1..end).rev().find(|&place| ends_all(events, place)) {
            self.end_rows()?;
            self.state.end_transaction();
            begin = xid + 1;
        }
        for place in begin..end {
            self.place = place;
            if let Some(event) = events.outline(place) {
                self.pass_quickly(event, events)?;
            }
        }
        Ok(end)
    }

    /// Whether everything is shown, so that no event needs to be checked.
    fn shows_all(&self) -> bool {
        let (options, selection) = (self.options, &self.options.selection);
        let all_transactions = selection.include_gtids.is_none()
            && selection.exclude_gtids.is_none()
            && selection.stop_before_gtid.is_none()
            && !options.skip_gtids;
        let all_tables = selection.database.is_none() && selection.tables.is_empty();
        let all_servers = selection.server_id.is_none();
        let whole_log = self.positions.start <= MAGIC.len() as u64
            && self.positions.stop == u64::MAX
            && selection.stop_time.is_none()
            && self.state.started
            && !self.state.held_format_description;
        let as_they_are = options.rewrite_db.is_empty() && !options.require_row_format && !options.short_form;
        let can_be_encoded =
            self.state.printed_format_description || options.base64_output == Base64Output::DecodeRows;
        all_transactions && all_tables && all_servers && whole_log && as_they_are && can_be_encoded
    }

    /// Passes over a usual event.
    fn pass_quickly(&mut self, event: Outline<'l>, events: ListedEvents<'l>) -> io::Result<()> {
        match event.event_type {
            EventType::XID => self.state.end_transaction(),
            EventType::QUERY => self.state.begin_transaction(),
            EventType::TRANSACTION_PAYLOAD => {}
            event_type if event_type.is_gtid() => {
                self.state.seen_gtid = true;
                self.state.skipped_in_transaction = false;
            }
            event_type => {
                self.pass_quietly(event_type, event.body, events.log().lengths.of(event_type))?;
            }
        }
        Ok(())
    }
}

impl<'l> EarlierEvents<'l> {
    /// Whether an event is the last `BEGIN` again.
    #[inline]
    fn is_again(&self, event: Outline<'l>) -> bool {
        let body = event.body.get(QUERY_TIMES_SIZE..);
        body.is_some_and(|body| self.begin == Some((event.flags, body)))
    }
}

/// Whether the transaction and its last statement are over after an event, so that nothing before it is open.
fn ends_all(events: ListedEvents<'_>, place: usize) -> bool {
    let is_xid = |event: Outline<'_>| event.event_type == EventType::XID;
    let ends_statement = |event: Outline<'_>| {
        let front =
            RowsEvent::decode_front(event.event_type, event.body, events.log().lengths.of(event.event_type));
        event.event_type.is_rows() && front.is_ok_and(|(_, flags)| flags.contains(RowsFlags::STMT_END))
    };
    events.outline(place).is_some_and(is_xid) && events.outline(place - 1).is_some_and(ends_statement)
}

/// The part of a `BEGIN` that is the same in each one that leaves the same state.
fn begin_of<'l>(event: Outline<'l>) -> Option<(HeaderFlags, &'l [u8])> {
    let query = QueryEvent::decode(event.body).ok()?;
    // Some statements also show the thread.
    let is_begin = starts_group(StatementKind::of(query.statement))
        && !event.flags.contains(HeaderFlags::THREAD_SPECIFIC);
    Some((event.flags, event.body.get(QUERY_TIMES_SIZE..)?)).filter(|_| is_begin)
}
