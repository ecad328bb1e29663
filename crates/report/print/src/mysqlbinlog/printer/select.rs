//! Decides which events are shown, by mysqlbinlog's options and behaviour, one event after the other.

use std::io;

use binlogz_binlog::event::{AnyGtidEvent, QueryEvent};
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::statement::StatementKind;
use binlogz_binlog::{Error as BinlogError, EventType, MAGIC};
use binlogz_flow::Error as FlowError;
use binlogz_flow::events::Event;

use super::statement::ends_group;
use super::{PrintStep, Run};
use crate::mysqlbinlog::query::end_line;
use crate::mysqlbinlog::row_format;
use crate::mysqlbinlog::shown::ShownEvent;
use crate::mysqlbinlog::state::{BufferedEvent, PrintStop};
use crate::number::push_unsigned;
use crate::selection::EventSelection;

impl Run<'_> {
    /// Takes an event of the log: before `--start-position` only the first few are read.
    pub(super) fn log_event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let offset = event.position.offset;
        let start = self.positions.start;
        if event.position.inside.is_none() {
            if event.log.number != self.state.log_number {
                self.state.log_number = event.log.number;
                self.state.log_begin += self.state.log_end;
            }
            self.state.log_end = offset + u64::from(event.header.event_size);
        }
        if event.header.event_type == EventType::TRANSACTION_PAYLOAD {
            self.state.payload_hidden = true;
        } else if event.is_inside_payload() && self.state.payload_hidden {
            return Ok(());
        }
        if offset < start && event.log.number == 0 {
            event.pass_over();
            return self.skipped_event(event);
        }
        if self.state.held_format_description {
            self.release_format_description()?;
        }
        self.event(event)
    }

    /// An event before `--start-position`: mysqlbinlog reads from the start of the log as long as there are
    /// events that belong to it, and shows the format description where it stopped.
    pub(super) fn skipped_event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let offset = event.position.offset;
        let event_type = event.header.event_type;
        let end = offset + u64::from(event.header.event_size);
        if event_type == EventType::FORMAT_DESCRIPTION && (offset == 4 || self.state.held_format_description)
        {
            self.state.held_format_description = true;
            (self.state.skipped_to, self.state.skipped_end) = (Some(offset), end);
            self.state.buffered.clear();
            let held = ShownEvent {
                header: event.header,
                end_log_pos: event.end_log_pos(),
                position: offset,
                bytes: event.frame.map_or(&[][..], |frame| frame.bytes()),
                body: event.body,
                checksum: event.stored_checksum().filter(|_| event.log.context.framing.checksum().size() > 0),
                inside_payload: false,
            };
            self.hold(&held);
            return Ok(());
        }
        if self.state.held_format_description {
            (self.state.skipped_to, self.state.skipped_end) = (Some(offset), end);
            if !matches!(event_type, EventType::PREVIOUS_GTIDS | EventType::ROTATE) {
                self.release_format_description()?;
                return Ok(());
            }
        }
        if end > self.positions.start && self.state.skipped_to != Some(offset) {
            self.state.stopped = Some(PrintStop::Error(format!(
                "Could not read entry at offset {}: no event begins there; one begins at {offset}.",
                self.positions.start
            )));
        }
        Ok(())
    }

    pub(super) fn hold(&mut self, shown: &ShownEvent<'_>) {
        self.state.buffered.push(BufferedEvent {
            header: shown.header,
            end_log_pos: shown.end_log_pos,
            position: shown.position,
            bytes: shown.bytes.into(),
            checksum: shown.checksum,
            checksum_size: shown.bytes.len() - shown.body.len() - HEADER_SIZE,
        });
    }

    /// Shows the format description of a log that is not shown from its start.
    pub(super) fn release_format_description(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.state.held_format_description) {
            return Ok(());
        }
        let (Some(held), Some(position)) = (self.state.buffered.pop(), self.state.skipped_to) else {
            return Ok(());
        };
        let shown = ShownEvent { position, ..held.shown() };
        self.shown_event(&shown, None)
    }

    pub(super) fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.pen.shown);
        let ended = match buffer.show(event, &self.options.rewrite_db, self.emit) {
            Ok((mut shown, rule)) => {
                if let Some(rule) = rule {
                    self.state.met.renames.insert(rule);
                }
                self.place(&mut shown);
                self.shown_event(&shown, Some(event))
            }
            Err(error) => {
                self.unreadable(event.error(error));
                Ok(())
            }
        };
        self.pen.shown = buffer;
        ended
    }

    /// For several logs in a row, positions count from the first; the position of a format description is
    /// where its log begins.
    fn place(&mut self, shown: &mut ShownEvent<'_>) {
        if shown.inside_payload {
            return;
        }
        if let Some(from) = self.positions.sent_from {
            if shown.header.event_type == EventType::FORMAT_DESCRIPTION {
                self.state.description_end = shown.position + u64::from(shown.header.event_size);
                shown.position = from;
            } else {
                shown.position = from + shown.position.saturating_sub(self.state.description_end);
            }
            return;
        }
        if self.state.log_begin == 0 {
            return;
        }
        if shown.header.event_type == EventType::FORMAT_DESCRIPTION && shown.position == MAGIC.len() as u64 {
            shown.position = 0;
        }
        shown.position += self.state.log_begin;
    }

    #[cold]
    pub(super) fn unreadable(&mut self, error: FlowError) {
        self.state.stopped = Some(PrintStop::Error(error.to_string()));
    }

    pub(super) fn shown_event(
        &mut self,
        shown: &ShownEvent<'_>,
        event: Option<&Event<'_>>,
    ) -> io::Result<()> {
        self.is_chosen = false;
        let next = self.selected_event(shown, event)?;
        if let Some(event) = event.filter(|_| !self.is_chosen) {
            event.pass_over();
        }
        self.state.entries += 1;
        match next {
            PrintStep::Go => {}
            // mysqlbinlog ignores the result of an event inside a payload.
            PrintStep::Stop if shown.inside_payload => {}
            PrintStep::Error(line) if shown.inside_payload => {
                if self.emit {
                    self.state.warnings.push(format!("ERROR: {line}"));
                }
            }
            PrintStep::Damaged(line) => self.state.stopped = Some(PrintStop::Error(line)),
            PrintStep::Stop => self.state.stopped = Some(PrintStop::Asked),
            PrintStep::Error(line) => self.state.stopped = Some(PrintStop::Error(line)),
        }
        Ok(())
    }

    /// Decides whether an event is shown.
    pub(super) fn selected_event(
        &mut self,
        shown: &ShownEvent<'_>,
        event: Option<&Event<'_>>,
    ) -> io::Result<PrintStep> {
        let selection = &self.options.selection;
        let event_type = shown.header.event_type;
        let second = shown.header.timestamp;
        self.note_commit(shown);
        if event_type != EventType::FORMAT_DESCRIPTION {
            if !self.state.started {
                let late =
                    selection.start_time.is_none_or(|start| start.is_reached(second, self.state.committed));
                if self.state.entries < selection.offset || !late {
                    return Ok(PrintStep::Go);
                }
                self.state.started = true;
            }
            let server_id = shown.header.server_id & selection.server_id_mask;
            let other_server = selection.server_id.is_some_and(|id| id != server_id);
            if event_type != EventType::ROTATE && other_server {
                return Ok(PrintStep::Go);
            }
            self.state.met.server_id |= !other_server && is_of_the_data(event_type);
        }
        let is_at_stop = !shown.inside_payload && shown.position >= self.positions.stop;
        if !shown.inside_payload && !is_at_stop {
            self.state.met.end = shown.position + u64::from(shown.header.event_size);
        }
        if selection.stop_time.is_some_and(|stop| stop.is_reached(second, self.state.committed)) || is_at_stop
        {
            return Ok(PrintStep::Stop);
        }
        self.state.met.time |= is_of_the_data(event_type);
        if event_type == EventType::PREVIOUS_GTIDS && self.state.met.previous_gtids(shown.body, selection) {
            return Ok(PrintStep::Stop);
        }
        if let Some(stop) = &selection.stop_before_gtid
            && event_type.is_gtid()
            && gtid_of(shown).and_then(|gtid| gtid.gtid()).as_ref() == Some(stop)
        {
            return Ok(PrintStep::Stop);
        }
        if self.options.require_row_format
            && !shown.inside_payload
            && let Some(refused) = row_format::check(&shown.header, shown.body)
        {
            return Ok(PrintStep::Error(refused));
        }
        if self.emit && !self.options.short_form {
            let head = &mut self.text.head;
            head.extend_from_slice(b"# at ");
            push_unsigned(head, shown.position);
            head.push(b'\n');
        }
        if self.is_filtered_by_gtid(shown) {
            return Ok(PrintStep::Go);
        }
        self.is_chosen = true;
        self.chosen_event(shown, event)
    }

    /// Takes the time of commit, where times are chosen.
    fn note_commit(&mut self, shown: &ShownEvent<'_>) {
        let EventSelection { start_time, stop_time, .. } = &self.options.selection;
        if start_time.is_none() && stop_time.is_none() {
            return;
        }
        let event_type = shown.header.event_type;
        if event_type.is_gtid() {
            let times = gtid_of(shown).and_then(|gtid| gtid.commit_timestamps());
            self.state.committed = times.map(|times| times.original.unwrap_or(times.immediate));
        } else if event_type.is_of_file() {
            self.state.committed = None;
        }
    }

    /// Whether the transaction's GTID is excluded.
    pub(super) fn is_filtered_by_gtid(&mut self, shown: &ShownEvent<'_>) -> bool {
        let selection = &self.options.selection;
        let filtered = self.state.filtered_by_gtid;
        match shown.header.event_type {
            event_type if event_type.is_gtid() => {
                if selection.include_gtids.is_none() && selection.exclude_gtids.is_none() {
                    return self.options.skip_gtids;
                }
                let gtid = gtid_of(shown).and_then(|gtid| gtid.gtid());
                let is_in = |set: &GtidSet| gtid.as_ref().is_some_and(|gtid| set.contains(gtid));
                let included = selection.include_gtids.as_ref().is_none_or(is_in);
                self.state.met.gtid |= included;
                let excluded = selection.exclude_gtids.as_ref().is_some_and(is_in);
                self.state.met.excluded |= excluded;
                self.state.filtered_by_gtid = !included || excluded;
                self.state.filtered_by_gtid || self.options.skip_gtids
            }
            EventType::PREVIOUS_GTIDS => self.options.skip_gtids,
            EventType::XID => {
                self.state.filtered_by_gtid = false;
                filtered
            }
            EventType::QUERY => {
                if filtered && query_kind(shown.body).is_some_and(ends_group) {
                    self.state.filtered_by_gtid = false;
                }
                filtered
            }
            EventType::STOP
            | EventType::FORMAT_DESCRIPTION
            | EventType::ROTATE
            | EventType::IGNORABLE
            | EventType::INCIDENT => false,
            _ => filtered,
        }
    }

    /// Shows an event that was asked for.
    pub(super) fn chosen_event(
        &mut self,
        shown: &ShownEvent<'_>,
        event: Option<&Event<'_>>,
    ) -> io::Result<PrintStep> {
        let event_type = shown.header.event_type;
        let printed = match event_type {
            EventType::QUERY => self.query(shown)?,
            EventType::INTVAR | EventType::RAND | EventType::USER_VAR => {
                self.hold(shown);
                self.flush_head();
                return Ok(PrintStep::Go);
            }
            EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => self.load_block(shown)?,
            EventType::EXECUTE_LOAD_QUERY => self.execute_load(shown)?,
            EventType::FORMAT_DESCRIPTION => return self.format_description(shown),
            EventType::TABLE_MAP | EventType::ROWS_QUERY => return self.row_related(shown, event),
            event_type if event_type.is_rows() => return self.row_related(shown, event),
            event_type if event_type.is_gtid() => self.gtid(shown),
            EventType::XID => self.xid(shown),
            EventType::TRANSACTION_PAYLOAD => self.payload(shown, event)?,
            _ => self.other(shown),
        };
        Ok(match printed {
            Ok(Some(next)) => next,
            Ok(None) => {
                self.flush_head();
                PrintStep::Go
            }
            Err(error) => PrintStep::Damaged(unreadable(shown, &error)),
        })
    }

    pub(super) fn flush_head(&mut self) {
        if self.emit {
            self.text.flush_head();
        }
    }

    /// Writes directly, bypassing what waits in the head.
    pub(super) fn direct(&mut self, line: &[u8]) {
        if self.emit {
            self.text.out.text.extend_from_slice(line);
            end_line(&mut self.text.out.text);
        }
    }

    /// Whether `--database` is another one.
    pub(super) fn is_other_database(&mut self, database: &[u8]) -> bool {
        let Some(wanted) = &self.options.selection.database else { return false };
        self.state.met.database |= wanted == database;
        wanted != database
    }
}

/// Whether events of a type are what a log is kept for: the others say where files begin and end.
fn is_of_the_data(event_type: EventType) -> bool {
    !event_type.is_of_file()
}

#[cold]
pub(super) fn unreadable(shown: &ShownEvent<'_>, error: &BinlogError) -> String {
    format!("Could not read entry at offset {}: {error}", shown.position)
}

pub(super) fn query_kind(body: &[u8]) -> Option<StatementKind> {
    QueryEvent::decode(body).ok().map(|query| StatementKind::of(query.statement))
}

pub(super) fn gtid_of<'a>(shown: &ShownEvent<'a>) -> Option<AnyGtidEvent<'a>> {
    AnyGtidEvent::decode(shown.body, shown.header.event_type).ok()?
}
