//! The state pass over the events that nearly every transaction is made of. Most of them leave nothing behind that
//! the next one does not replace: their type, and a few bytes of them, are all that is looked at.
//!
//! | event | what it leaves behind |
//! |---|---|
//! | GTID | a transaction is about to begin; the last one: the server's version |
//! | `BEGIN` with the settings of the one before | the transaction is open |
//! | table map, rows | what waits for the end of the statement |
//! | XID | the transaction is over |
//!
//! All others, and all events of a run that does not show everything, are looked at whole ([`super::select`]). What is
//! wrong with an event is found by the pass that prints it, which ends the run there.

use std::io;

use binlogz_binlog::event::{AnyGtidEvent, QueryEvent};
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{EventType, HeaderFlags, MAGIC};
use binlogz_flow::events::{Item, Listed, Outline};

use super::Run;
use super::control::immediate_version;
use super::statement::starts_group;
use crate::mysqlbinlog::options::Base64Output;

/// In front of what is compared of a statement: the thread, and how long it took.
const QUERY_TIMES_SIZE: usize = 8;

/// What of the events so far matters to those behind them.
#[derive(Default)]
struct Seen<'l> {
    /// The last statement, if it was a `BEGIN` whose settings are in force.
    begin: Option<(HeaderFlags, &'l [u8])>,
    gtid: Option<Outline<'l>>,
}

impl<'l> Run<'l> {
    /// Lets events pass by without printing any.
    pub(super) fn pass_state(&mut self, events: Listed<'l>) -> io::Result<()> {
        let shows_all = self.shows_all();
        let mut seen = Seen::default();
        for (place, outline) in events.outlines() {
            if self.state.stopped.is_some() {
                break;
            }
            self.place = place;
            if let Some(event) = outline.filter(|_| shows_all)
                && self.pass_quickly(event, events, &mut seen)?
            {
                self.state.entries += 1;
                self.state.log_end = event.end.unwrap_or(self.state.log_end);
                continue;
            }
            match events.item(place) {
                Some(Item::Event(event)) => self.log_event(&event)?,
                Some(Item::PayloadEnd(_)) => self.payload_end(),
                None => {}
            }
            seen.begin = outline.filter(|event| event.event_type == EventType::QUERY).and_then(begin_of);
        }
        if let Some(gtid) = seen.gtid
            && let Ok(Some(gtid)) = AnyGtidEvent::decode(gtid.body, gtid.event_type)
        {
            self.state.immediate_server_version = immediate_version(&gtid);
        }
        Ok(())
    }

    /// Whether nothing was asked for that tells some events from others.
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

    /// `false`: the event has to be looked at whole.
    #[inline]
    fn pass_quickly(
        &mut self,
        event: Outline<'l>,
        events: Listed<'l>,
        seen: &mut Seen<'l>,
    ) -> io::Result<bool> {
        if self.state.payload_hidden {
            return Ok(false);
        }
        match event.event_type {
            EventType::XID => self.state.end_transaction(),
            EventType::QUERY => {
                let again = event
                    .body
                    .get(QUERY_TIMES_SIZE..)
                    .is_some_and(|body| seen.begin == Some((event.flags, body)));
                if again {
                    self.state.begin_transaction();
                }
                return Ok(again);
            }
            event_type if event_type.is_gtid() => {
                self.state.seen_gtid = true;
                self.state.skipped_in_transaction = false;
                seen.gtid = Some(event);
            }
            event_type => {
                let length = events.log().lengths.of(event_type);
                return self.pass_quietly(event_type, event.body, length);
            }
        }
        Ok(true)
    }
}

/// What is the same of a `BEGIN` that leaves nothing else behind than this one.
fn begin_of<'l>(event: Outline<'l>) -> Option<(HeaderFlags, &'l [u8])> {
    let query = QueryEvent::decode(event.body).ok()?;
    // Of some statements the thread is shown too.
    let is_begin = starts_group(StatementKind::of(query.statement))
        && !event.flags.contains(HeaderFlags::THREAD_SPECIFIC);
    Some((event.flags, event.body.get(QUERY_TIMES_SIZE..)?)).filter(|_| is_begin)
}
