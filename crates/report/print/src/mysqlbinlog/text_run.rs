//! Goes through logs and prints them: all cores print, one thread puts the text in order and writes it.
//!
//! ```text
//! log → flow::events::run_in_turns → MysqlbinlogPrinter (workers) → Assembler (in order) → a file that the caller opened
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;

use binlogz_binlog::EventFrame;
use binlogz_flow::events::{TurnsSummary, UnreadChanges, run_in_turns};
use binlogz_flow::{CutEvent, Error as FlowError, Input};

use super::around::{push_begin, push_end};
use super::assembler::Assembler;
use super::options::PrintOptions;
use super::printer::{MysqlbinlogPrinter, PrintedBatch, end_log, made_up_event};
use super::state::MysqlbinlogState;
use super::text::Text;
use super::write::text_memory::TextMemory;
use crate::selection::LogBounds;

/// How text is made of logs.
#[derive(Clone, Copy)]
pub struct TextRunSettings<'o> {
    /// What the text has.
    pub print: &'o PrintOptions,
    /// How many print at once.
    pub workers: usize,
    /// Whether the checksum of each event is compared.
    pub verify_checksums: bool,
    /// Called when the output of a log that is received can't be written. A thread may wait for more of the log then, and nothing
    /// wakes it: the caller may end the process here.
    pub lost_output: &'o (dyn Fn(&io::Error) + Sync),
}

impl std::fmt::Debug for TextRunSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextRunSettings").field("print", self.print).finish_non_exhaustive()
    }
}

/// A run over logs, one after the other: [`TextRun::begin`], [`TextRun::log`] for each, [`TextRun::end`].
#[derive(Debug)]
pub struct TextRun<'o> {
    settings: TextRunSettings<'o>,
    assembler: Assembler<'o>,
    memory: TextMemory,
    out: File,
}

/// What was found in a log besides its text.
#[derive(Debug)]
#[must_use]
pub struct LogAsText {
    /// The state after it.
    pub state: MysqlbinlogState,
    /// Changes that could not be read.
    pub unread: UnreadChanges,
    /// The error that ended the log. The text before it was written.
    pub failed: Option<FlowError>,
    /// The event that a log in use ends in.
    pub cut: Option<CutEvent>,
}

/// Why a run over a log ends at once.
#[derive(Debug)]
pub enum TextRunError {
    /// The log can't be read.
    Log(FlowError),
    /// The output can't be written.
    Output(io::Error),
    /// A temporary file can't be written or read.
    Spill(io::Error),
}

impl From<FlowError> for TextRunError {
    fn from(error: FlowError) -> Self {
        TextRunError::Log(error)
    }
}

impl<'o> TextRun<'o> {
    /// Nothing printed yet.
    pub fn new(settings: TextRunSettings<'o>, out: File) -> Self {
        let assembler = Assembler::new(settings.print, settings.workers);
        TextRun { settings, assembler, memory: TextMemory::default(), out }
    }

    /// Prints what stands before all logs.
    ///
    /// # Errors
    ///
    /// An output that can't be written.
    pub fn begin(&mut self) -> Result<(), TextRunError> {
        let mut text = Vec::new();
        push_begin(&mut text, self.settings.print);
        self.out.write_all(&text).map_err(TextRunError::Output)
    }

    /// Prints what stands after all logs.
    ///
    /// # Errors
    ///
    /// An output that can't be written.
    pub fn end(&mut self, mut state: MysqlbinlogState) -> Result<(), TextRunError> {
        let mut text = Vec::new();
        push_end(&mut text, self.settings.print, &mut state);
        self.out.write_all(&text).map_err(TextRunError::Output)
    }

    /// Prints a log, but for its end. `told` hears of warnings when the text up to them is about to be written.
    ///
    /// # Errors
    ///
    /// An output or a temporary file that can't be written, a log that can't be read at all.
    pub fn log(
        &mut self,
        input: Input,
        bounds: LogBounds,
        mut state: MysqlbinlogState,
        told: &mut dyn FnMut(&str),
    ) -> Result<LogAsText, TextRunError> {
        state.begin_log();
        let TextRunSettings { print, workers, verify_checksums, lost_output } = self.settings;
        let live = matches!(input, Input::Live(_));
        let memory = &self.memory;
        let mut ended_in = None;
        let ran = run_in_turns(
            input,
            workers,
            verify_checksums,
            state,
            || Ok::<_, TextRunError>(MysqlbinlogPrinter::new(print, bounds, workers)),
            |printer, turn, batch| printer.print(turn, batch, memory).map_err(TextRunError::Spill),
            |printed| {
                let Some(PrintedBatch { text, ended, warnings }) = printed else {
                    return Ok(ControlFlow::Break(()));
                };
                warnings.iter().for_each(|warning| told(warning));
                let stopped = self.assembler.write(text, memory, &mut self.out).map_err(|error| {
                    if live {
                        lost_output(&error);
                    }
                    TextRunError::Output(error)
                })?;
                ended_in = stopped.or(ended);
                Ok(if ended_in.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        );
        let TurnsSummary { read, state, unread, failed } = ran?;
        let state = ended_in.or(state).unwrap_or_default();
        Ok(LogAsText { state, unread, failed, cut: read.cut })
    }

    /// Prints the end of a log.
    ///
    /// # Errors
    ///
    /// An output or a temporary file that can't be written.
    pub fn end_log(&mut self, bounds: LogBounds, state: &mut MysqlbinlogState) -> Result<(), TextRunError> {
        self.write(end_log(self.settings.print, bounds, state))
    }

    /// Prints the rotate event that a server makes up between two of its logs.
    ///
    /// # Errors
    ///
    /// An output or a temporary file that can't be written.
    pub fn rotate(
        &mut self,
        bounds: LogBounds,
        state: &mut MysqlbinlogState,
        rotate: &EventFrame<'_>,
    ) -> Result<(), TextRunError> {
        self.write(made_up_event(self.settings.print, bounds, state, rotate))
    }

    fn write(&mut self, text: io::Result<Text>) -> Result<(), TextRunError> {
        let text = text.map_err(TextRunError::Spill)?;
        let written = self.assembler.write(text, &self.memory, &mut self.out);
        // Text without rows can be written whole.
        written.map(drop).map_err(TextRunError::Output)
    }
}
