//! Prints the events of batches, on any core: the order they depend on is that of [`State`].
//!
//! ```text
//! turn: state before the batch → all events pass by, nothing is printed → state behind it
//! text: state before the batch → the same again, printing                → Text
//! ```
//!
//! With one worker there is nobody to wait for: one pass does both.

mod control;
mod row_events;
mod select;
mod statement;

use std::collections::HashMap;
use std::io;

use binlogz_binlog::EventFrame;
use binlogz_binlog::event::TableId;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::row::RowDecoder;
use binlogz_flow::events::{EventBatch, EventList, Item, Tables, Turn};

use super::local_time::LocalTime;
use super::options::{Positions, PrintOptions};
use super::rows::RowsPrinter;
use super::shown::{Shown, ShownBuffer};
use super::state::{Buffered, State};
use super::text::{Buffers, Text};

/// What a batch became.
#[derive(Debug)]
pub struct Printed {
    /// Its text.
    pub text: Text,
    /// The state at its end, if nothing behind it is shown.
    pub ended: Option<State>,
    /// To be told on stderr, in mysqlbinlog's words.
    pub warnings: Vec<String>,
}

/// A worker's printer. One for all its batches.
#[derive(Debug)]
pub struct Printer<'o> {
    options: &'o PrintOptions,
    positions: Positions,
    workers: usize,
    list: EventList,
    pen: Pen,
}

/// All that prints, and is used again for each event.
#[derive(Debug)]
struct Pen {
    time: LocalTime,
    tables: Tables,
    decoder: RowDecoder,
    rows: HashMap<TableId, RowsPrinter>,
    shown: ShownBuffer,
    scratch: Vec<u8>,
}

/// What an event leads to.
enum Next {
    Go,
    Stop,
    /// mysqlbinlog refuses to show it, but goes on behind it inside a payload.
    Error(String),
    /// Bytes that can't be read.
    Damaged(String),
}

/// Which of the two things a pass does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    State,
    Text,
    Both,
}

/// One pass over events.
struct Run<'r> {
    options: &'r PrintOptions,
    positions: Positions,
    pen: &'r mut Pen,
    state: &'r mut State,
    text: &'r mut Text,
    pass: Pass,
    emit: bool,
}

impl<'o> Printer<'o> {
    /// A printer for a run with so many workers.
    pub fn new(options: &'o PrintOptions, positions: Positions, workers: usize) -> Self {
        Printer {
            options,
            positions,
            workers,
            list: EventList::default(),
            pen: Pen {
                time: LocalTime::new(),
                tables: Tables::new(),
                decoder: RowDecoder::new(),
                rows: HashMap::new(),
                shown: ShownBuffer::default(),
                scratch: Vec::new(),
            },
        }
    }

    /// Prints the events of a batch; `buffers` are used for the text. `None`: an earlier batch failed.
    ///
    /// # Errors
    ///
    /// A temporary file that can't be written.
    pub fn print(
        &mut self,
        turn: Turn<State>,
        batch: &mut EventBatch<'_>,
        buffers: &Buffers,
    ) -> io::Result<Option<Printed>> {
        let mut text = Text::new(buffers);
        if let Err(error) = self.pen.tables.begin(batch) {
            batch.fail(error);
        }
        batch.read_ahead(&mut self.list);
        let Some(mut state) = turn.wait() else { return Ok(None) };
        let mut turn = Some(turn);
        let mut before = None;
        loop {
            let is_last = batch.is_at_end();
            if self.workers > 1 {
                before = Some(state.clone());
                self.run(&mut state, &mut Text::default(), batch, Pass::State)?;
                let made_files = std::mem::take(&mut state.made_files);
                let warnings = std::mem::take(&mut state.warnings);
                drop(warnings);
                if let Some(before) = &mut before {
                    before.made_files = made_files;
                }
                if let Some(turn) = turn.take_if(|_| is_last) {
                    turn.pass(state.clone());
                }
            }
            let printing = before.as_mut().unwrap_or(&mut state);
            let pass = if self.workers > 1 { Pass::Text } else { Pass::Both };
            run(self.options, self.positions, &mut self.pen, printing, &mut text, &self.list, batch, pass)?;
            if is_last {
                let warnings = printing.take_warnings();
                let ended = printing.stopped.is_some().then(|| printing.clone());
                if let Some(turn) = turn.take() {
                    turn.pass(state);
                }
                return Ok(Some(Printed { text, ended, warnings }));
            }
            if self.workers > 1 {
                // What the text pass alone finds out goes on with the state.
                let told = before.as_mut().map(State::take_warnings).unwrap_or_default();
                state.warnings = told;
            }
            batch.read_ahead(&mut self.list);
        }
    }

    fn run(
        &mut self,
        state: &mut State,
        text: &mut Text,
        batch: &EventBatch<'_>,
        pass: Pass,
    ) -> io::Result<()> {
        run(self.options, self.positions, &mut self.pen, state, text, &self.list, batch, pass)
    }
}

#[expect(clippy::too_many_arguments, reason = "they are borrowed apart from each other")]
fn run(
    options: &PrintOptions,
    positions: Positions,
    pen: &mut Pen,
    state: &mut State,
    text: &mut Text,
    list: &EventList,
    batch: &EventBatch<'_>,
    pass: Pass,
) -> io::Result<()> {
    let mut run = Run { options, positions, pen, state, text, pass, emit: pass != Pass::State };
    for item in batch.listed(list) {
        if run.state.stopped.is_some() {
            break;
        }
        match item {
            Item::Event(event) => run.log_event(&event)?,
            Item::PayloadEnd(_) => run.payload_end(),
        }
    }
    Ok(())
}

/// Prints what a log that ended had not shown yet.
///
/// # Errors
///
/// None that an empty text has.
pub fn end_log(options: &PrintOptions, positions: Positions, state: &mut State) -> io::Result<Text> {
    let mut text = Text::default();
    let mut printer = Printer::new(options, positions, 1);
    let mut run = Run {
        options,
        positions,
        pen: &mut printer.pen,
        state,
        text: &mut text,
        pass: Pass::Both,
        emit: true,
    };
    if run.state.skipped_end < positions.start {
        // Reading on, mysqlbinlog came to the end.
        run.state.skipped_to = Some(run.state.skipped_end);
    }
    run.release_format_description()?;
    Ok(text)
}

/// Prints an event that stands in no log: the rotate event that a server sends in front of each file.
///
/// # Errors
///
/// None that an empty text has.
pub fn made_up_event(
    options: &PrintOptions,
    positions: Positions,
    state: &mut State,
    event: &EventFrame<'_>,
) -> io::Result<Text> {
    let mut text = Text::default();
    let mut printer = Printer::new(options, positions, 1);
    let mut run = Run {
        options,
        positions,
        pen: &mut printer.pen,
        state,
        text: &mut text,
        pass: Pass::Both,
        emit: true,
    };
    let shown = Shown {
        header: *event.header(),
        end_log_pos: event.header().end_log_pos,
        position: positions.sent_from.unwrap_or(positions.start),
        bytes: event.bytes(),
        body: event.body(),
        checksum: event.stored_checksum(),
        inside_payload: false,
    };
    run.shown_event(&shown, None)?;
    Ok(text)
}

impl Buffered {
    /// The event again.
    fn shown(&self) -> Shown<'_> {
        let end = self.bytes.len().saturating_sub(self.checksum_size);
        Shown {
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
