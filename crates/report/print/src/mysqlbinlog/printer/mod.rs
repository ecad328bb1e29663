//! Prints the events of batches, on any core. [`MysqlbinlogState`] has everything that depends on their order.
//!
//! ```text
//! turn: state before the batch → all events pass by, nothing is printed → state after it
//! text: state before the batch → the same again, printing                → Text
//! ```
//!
//! With one worker there is no other to wait for: one pass does both.

mod control;
mod quick;
mod row_events;
mod select;
mod statement;
mod table_maps;
mod waiting;

use std::io;

use binlogz_binlog::EventFrame;
use binlogz_binlog::gtid::Tsid;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_flow::events::{BatchItem, BatchTurn, EventBatch, EventList, EventPosition, ListedEvents};

use super::options::PrintOptions;
use super::rows_pen::RowsPen;
use super::shown::{ShownBuffer, ShownEvent};
use super::state::{BufferedEvent, MysqlbinlogState};
use super::text::Text;
use super::write::local_time::LocalTime;
use super::write::text_memory::TextMemory;
use crate::number::push_unsigned;
use crate::selection::LogBounds;
use table_maps::TableMapTexts;
use waiting::WaitingEvent;

/// The result of a batch.
#[derive(Debug)]
pub(super) struct PrintedBatch {
    /// The text of the batch.
    pub(super) text: Text,
    /// The state at its end, if nothing after it is shown.
    pub(super) ended: Option<MysqlbinlogState>,
    /// Warnings for stderr, in mysqlbinlog's words.
    pub(super) warnings: Vec<String>,
}

/// A worker's printer, used for all its batches.
#[derive(Debug)]
pub(super) struct MysqlbinlogPrinter<'o> {
    options: &'o PrintOptions,
    positions: LogBounds,
    workers: usize,
    list: EventList,
    pen: Pen,
}

/// All that prints, and is used again for each event.
#[derive(Debug)]
struct Pen {
    time: LocalTime,
    rows: RowsPen,
    shown: ShownBuffer,
    waiting: Vec<WaitingEvent>,
    table_maps: TableMapTexts,
    /// How the comment of the last event began, and its GTID.
    front: CommentFront,
    tsid: (Option<Tsid>, Vec<u8>),
    /// When its transaction was committed: originally, and on this server.
    commit_times: [CommitTime; 2],
    scratch: Vec<u8>,
}

/// `#261121  1:56:30 server id 1  end_log_pos `.
#[derive(Debug, Default)]
struct CommentFront {
    time: u32,
    server_id: u32,
    text: Vec<u8>,
}

/// A time that occurs several times in the text of a GTID event.
#[derive(Debug, Default)]
struct CommitTime {
    /// `1795360310982997`.
    digits: Vec<u8>,
    /// `1795360310982997 (2026-11-22 15:11:50.982997 UTC)` and the end of the line.
    comment: Vec<u8>,
}

impl CommitTime {
    #[inline]
    fn set(&mut self, microseconds: u64, time: &mut LocalTime) {
        self.digits.clear();
        push_unsigned(&mut self.digits, microseconds);
        self.comment.clear();
        self.comment.extend_from_slice(&self.digits);
        self.comment.extend_from_slice(b" (");
        time.push_long(&mut self.comment, microseconds);
        self.comment.extend_from_slice(b")\n");
    }
}

/// The next step after an event.
enum PrintStep {
    Go,
    Stop,
    /// mysqlbinlog refuses to show it, but inside a payload continues after it.
    Error(String),
    /// Bytes that can't be read.
    Damaged(String),
}

/// The purpose of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    State,
    Text,
    Both,
}

/// One pass over events.
struct Run<'r> {
    options: &'r PrintOptions,
    positions: LogBounds,
    pen: &'r mut Pen,
    state: &'r mut MysqlbinlogState,
    text: &'r mut Text,
    pass: Pass,
    emit: bool,
    /// The events, and the current one; none at a log's end, and for an event that is in no log.
    events: Option<ListedEvents<'r>>,
    /// Where the text is written.
    memory: Option<&'r TextMemory>,
    place: usize,
    /// Whether the current event was asked for.
    is_chosen: bool,
    /// Earlier passes left part of the open statement to be printed, and began its `BINLOG`.
    left_open: bool,
    left_body_open: bool,
}

impl<'o> MysqlbinlogPrinter<'o> {
    /// A printer for a run with this many workers.
    pub(super) fn new(options: &'o PrintOptions, positions: LogBounds, workers: usize) -> Self {
        MysqlbinlogPrinter {
            options,
            positions,
            workers,
            list: EventList::default(),
            pen: Pen {
                time: LocalTime::new(),
                rows: RowsPen::new(workers),
                shown: ShownBuffer::default(),
                waiting: Vec::new(),
                table_maps: TableMapTexts::default(),
                front: CommentFront::default(),
                tsid: (None, Vec::new()),
                commit_times: Default::default(),
                scratch: Vec::new(),
            },
        }
    }

    /// Prints the events of a batch; the text is written to `memory`. `None`: an earlier batch failed.
    ///
    /// # Errors
    ///
    /// A temporary file that can't be written.
    pub(super) fn print(
        &mut self,
        turn: BatchTurn<MysqlbinlogState>,
        batch: &mut EventBatch<'_>,
        memory: &TextMemory,
    ) -> io::Result<Option<PrintedBatch>> {
        let mut text = Text::new(memory);
        if let Err(error) = self.pen.rows.tables.begin(batch) {
            batch.fail(error);
        }
        batch.read_ahead(&mut self.list);
        let Some(mut state) = turn.wait() else { return Ok(None) };
        let mut turn = Some(turn);
        loop {
            let is_last = batch.is_at_end();
            let mut ahead = None;
            if self.workers > 1 {
                let mut behind = state.clone();
                self.pass(Pass::State, (batch, memory), &mut behind, &mut Text::default())?;
                state.made_files = std::mem::take(&mut behind.made_files);
                behind.warnings.clear();
                match turn.take_if(|_| is_last) {
                    Some(turn) => turn.pass(behind),
                    None => ahead = Some(behind),
                }
            }
            let pass = if self.workers > 1 { Pass::Text } else { Pass::Both };
            self.pass(pass, (batch, memory), &mut state, &mut text)?;
            if is_last || state.stopped.is_some() {
                let warnings = state.take_warnings();
                let ended = state.stopped.is_some().then(|| state.clone());
                if let Some(turn) = turn {
                    turn.pass(state);
                }
                return Ok(Some(PrintedBatch { text, ended, warnings }));
            }
            if let Some(ahead) = ahead {
                // The state carries on what only the text pass finds out.
                let warnings = state.take_warnings();
                state = MysqlbinlogState { warnings, ..ahead };
            }
            batch.read_ahead(&mut self.list);
        }
    }

    /// One pass over the events that were read ahead.
    fn pass(
        &mut self,
        pass: Pass,
        (batch, memory): (&EventBatch<'_>, &TextMemory),
        state: &mut MysqlbinlogState,
        text: &mut Text,
    ) -> io::Result<()> {
        let events = batch.listed(&self.list);
        let mut run = Run::new(self.options, self.positions, &mut self.pen, pass, state, text);
        if pass == Pass::State {
            run.events = Some(events);
            run.pass_state(events)?;
            return run.leave_open();
        }
        (run.events, run.memory) = (Some(events), Some(memory));
        let mut last = EventPosition::default();
        for (place, item) in events.places() {
            if run.state.stopped.is_some() {
                // What follows isn't shown.
                batch.retain_unread(|unread| unread.position <= last);
                break;
            }
            run.place = place;
            if let BatchItem::Event(event) = &item {
                last = event.position;
            }
            match item {
                BatchItem::Event(event) => run.log_event(&event)?,
                BatchItem::PayloadEnd(_) => run.payload_end(),
            }
        }
        run.leave_open()
    }
}

impl<'r> Run<'r> {
    fn new(
        options: &'r PrintOptions,
        positions: LogBounds,
        pen: &'r mut Pen,
        pass: Pass,
        state: &'r mut MysqlbinlogState,
        text: &'r mut Text,
    ) -> Self {
        pen.waiting.clear();
        Run {
            options,
            positions,
            pen,
            pass,
            emit: pass != Pass::State,
            events: None,
            memory: None,
            place: 0,
            is_chosen: false,
            left_open: state.rows_waiting,
            left_body_open: state.body_open,
            state,
            text,
        }
    }
}

/// Prints text that does not come from an event of a log.
fn print_apart(
    options: &PrintOptions,
    positions: LogBounds,
    state: &mut MysqlbinlogState,
    print: impl FnOnce(&mut Run<'_>) -> io::Result<()>,
) -> io::Result<Text> {
    let mut text = Text::default();
    let mut printer = MysqlbinlogPrinter::new(options, positions, 1);
    print(&mut Run::new(options, positions, &mut printer.pen, Pass::Both, state, &mut text))?;
    Ok(text)
}

/// Prints the rest of a log that ended.
///
/// # Errors
///
/// None that an empty text has.
pub(super) fn end_log(
    options: &PrintOptions,
    positions: LogBounds,
    state: &mut MysqlbinlogState,
) -> io::Result<Text> {
    print_apart(options, positions, state, |run| {
        if run.state.skipped_end < positions.start {
            // mysqlbinlog, reading on, reached the end.
            run.state.skipped_to = Some(run.state.skipped_end);
        }
        run.release_format_description()
    })
}

/// Prints an event that is in no log: the rotate event that a server sends before each file.
///
/// # Errors
///
/// None that an empty text has.
pub(super) fn made_up_event(
    options: &PrintOptions,
    positions: LogBounds,
    state: &mut MysqlbinlogState,
    event: &EventFrame<'_>,
) -> io::Result<Text> {
    let shown = ShownEvent {
        header: *event.header(),
        end_log_pos: event.header().end_log_pos,
        position: positions.sent_from.unwrap_or(positions.start),
        bytes: event.bytes(),
        body: event.body(),
        checksum: event.stored_checksum(),
        inside_payload: false,
    };
    print_apart(options, positions, state, |run| run.shown_event(&shown, None))
}

impl BufferedEvent {
    /// The event again.
    fn shown(&self) -> ShownEvent<'_> {
        let end = self.bytes.len().saturating_sub(self.checksum_size);
        ShownEvent {
            header: self.header,
            end_log_pos: self.end_log_pos,
            position: self.position,
            bytes: &self.bytes,
            body: self.bytes.get(HEADER_SIZE..end).unwrap_or_default(),
            checksum: self.checksum,
            inside_payload: false,
        }
    }
}
