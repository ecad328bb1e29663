//! Goes through logs and makes lines of them: [`LineRun::log`] for each, in their order.

use std::io;
use std::ops::ControlFlow;

use binlogz_flow::events::{BatchTurn, EventBatch, EventList, TurnsSummary, UnreadChanges, run_in_turns};
use binlogz_flow::{CutEvent, Error as FlowError, Input};
use binlogz_schema::{TablesOfLogs, TablesSoFar};

use super::batch::{AwaitedOutput, LineBatch, UnwrittenLines, at_hand};
use super::offsets::{Offsets, OffsetsError};
use super::output::LineOutput;
use crate::line_printer::{FinishedTransactions, Flow, LinePrinter, LineState};
use crate::met::MetRequests;
use crate::mysqlbinlog::TextMemory;
use crate::selection::LogBounds;

/// How lines are made of logs.
#[derive(Clone, Copy)]
pub struct LineRunSettings<'o> {
    /// How many make lines at once.
    pub workers: usize,
    /// Whether the checksum of each event is compared.
    pub verify_checksums: bool,
    /// What is known of tables besides their maps.
    pub tables: &'o TablesOfLogs,
    /// Called when the output of a log that is received can't be written. A thread may wait for more of the log then, and nothing
    /// wakes it: the caller may end the process here.
    pub lost_output: &'o (dyn Fn(&io::Error) + Sync),
}

impl std::fmt::Debug for LineRunSettings<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineRunSettings").field("workers", &self.workers).finish_non_exhaustive()
    }
}

/// A run over logs, one after the other.
pub struct LineRun<'o, P: LinePrinter, N> {
    settings: LineRunSettings<'o>,
    new_printer: N,
    offsets: Option<Offsets>,
    memory: TextMemory,
    /// The requests that were met up to the end of the last log.
    met: MetRequests,
    /// Held by the worker that has the turn; `None` once nothing more is shown.
    passed: Option<CarriedLineState<P::State>>,
}

/// What was found in a log besides its lines.
#[derive(Debug)]
#[must_use]
pub struct LogAsLines {
    /// Whether there is more to come: `Ends` where nothing further is asked for.
    pub flow: Flow,
    /// Changes that could not be read.
    pub unread: UnreadChanges,
    /// The error that ended the log. The lines before it were written; nothing can follow.
    pub failed: Option<FlowError>,
    /// The event that a log in use ends in.
    pub cut: Option<CutEvent>,
}

/// Why a run over a log ends at once.
#[derive(Debug)]
pub enum LineRunError {
    /// The log can't be read.
    Log(FlowError),
    /// The output can't be written.
    Output(io::Error),
    /// It can't be noted what was handed over.
    Offsets(OffsetsError),
}

impl From<FlowError> for LineRunError {
    fn from(error: FlowError) -> Self {
        LineRunError::Log(error)
    }
}

/// The state that passes from batch to batch.
struct CarriedLineState<S> {
    state: S,
    out: AwaitedOutput,
}

/// The result of a batch.
struct PrintedLines {
    lines: LineBatch,
    /// The last of them.
    last: Vec<u8>,
    flow: Flow,
    failed: bool,
    met: MetRequests,
    finished: FinishedTransactions,
}

/// A worker, for all its batches of a log.
struct LineWorker<'o, P> {
    printer: P,
    list: EventList,
    memory: &'o TextMemory,
    /// With several workers the state is passed on before the lines are made.
    is_one_of_many: bool,
}

impl<P: LinePrinter, N> std::fmt::Debug for LineRun<'_, P, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LineRun").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<'o, P: LinePrinter, N: Fn(&str, LogBounds, usize) -> P + Sync> LineRun<'o, P, N> {
    /// Nothing read yet. `new_printer` makes a worker's printer of a log of this name, of which there are this many.
    pub fn new(
        settings: LineRunSettings<'o>,
        new_printer: N,
        out: LineOutput,
        offsets: Option<Offsets>,
    ) -> Self {
        let passed = CarriedLineState { state: P::State::default(), out: at_hand(out) };
        LineRun {
            settings,
            new_printer,
            offsets,
            memory: TextMemory::default(),
            met: MetRequests::default(),
            passed: Some(passed),
        }
    }

    /// The requests that were met so far.
    pub fn met(&self) -> MetRequests {
        self.met
    }

    /// The tables by the statements of all logs so far.
    pub fn tables_so_far(&self) -> TablesSoFar {
        self.passed.as_ref().map(|passed| passed.state.tables().clone()).unwrap_or_default()
    }

    /// Waits until all lines were handed over, and notes it, where that was asked for.
    ///
    /// # Errors
    ///
    /// Offsets that can't be noted.
    pub fn finish(&mut self) -> Result<(), OffsetsError> {
        self.offsets.take().map_or(Ok(()), Offsets::finish)
    }

    /// Makes lines of the next log.
    ///
    /// # Errors
    ///
    /// An output or offsets that can't be written, a log that can't be read at all.
    pub fn log(&mut self, name: &str, input: Input, bounds: LogBounds) -> Result<LogAsLines, LineRunError> {
        let Some(mut passed) = self.passed.take() else {
            return Ok(LogAsLines {
                flow: Flow::Ends,
                unread: UnreadChanges::default(),
                failed: None,
                cut: None,
            });
        };
        passed.state.begin_log(name);
        let LineRunSettings { workers, verify_checksums, tables, lost_output } = self.settings;
        tables.begin_log(name);
        let live = matches!(input, Input::Live(_));
        let new_printer = &self.new_printer;
        let memory = &self.memory;
        let offsets = self.offsets.as_ref();
        let unwritten = |error: io::Error| {
            if live {
                lost_output(&error);
            }
            LineRunError::Output(error)
        };
        let mut flow = Flow::GoesOn;
        let mut met = self.met;
        let ran = run_in_turns(
            input,
            workers,
            verify_checksums,
            passed,
            || {
                let printer = new_printer(name, bounds, workers);
                Ok(LineWorker { printer, list: EventList::default(), memory, is_one_of_many: workers > 1 })
            },
            |worker, turn, batch| match worker.print(turn, batch) {
                Ok(printed) => Ok(printed),
                Err(UnwrittenLines::Nobody) => Ok(None),
                Err(UnwrittenLines::File(error)) => Err(unwritten(error)),
            },
            |printed| {
                let Some(PrintedLines { lines, last, flow: batch_flow, failed, met: batch_met, finished }) =
                    printed
                else {
                    return Ok(ControlFlow::Break(()));
                };
                flow = batch_flow;
                met = with_names_of(met, batch_met);
                // First print what could be printed, whatever happened after it.
                match lines.end(last, !failed) {
                    Ok(written) => {
                        if let Some(offsets) = offsets {
                            offsets.written(finished, written).map_err(LineRunError::Offsets)?;
                        }
                        Ok(if flow == Flow::GoesOn {
                            ControlFlow::Continue(())
                        } else {
                            ControlFlow::Break(())
                        })
                    }
                    Err(UnwrittenLines::Nobody) => Ok(ControlFlow::Break(())),
                    Err(UnwrittenLines::File(error)) => Err(unwritten(error)),
                }
            },
        );
        let TurnsSummary { read, state, unread, failed } = ran?;
        if failed.is_some() {
            return Ok(LogAsLines { flow, unread, failed, cut: read.cut });
        }
        self.passed = state;
        // Tables and servers are looked at where lines are made, not where the state is passed on.
        self.met = match &self.passed {
            Some(passed) => with_names_of(met, passed.state.met()),
            None => met,
        };
        Ok(LogAsLines { flow, unread, failed: None, cut: read.cut })
    }
}

impl<P: LinePrinter> LineWorker<'_, P> {
    /// Makes lines of a batch. `None`: an earlier batch failed.
    fn print(
        &mut self,
        turn: BatchTurn<CarriedLineState<P::State>>,
        batch: &mut EventBatch<'_>,
    ) -> Result<Option<PrintedLines>, UnwrittenLines> {
        if let Err(error) = self.printer.begin_batch(batch) {
            batch.fail(error);
        }
        batch.read_ahead(&mut self.list);
        let Some(CarriedLineState { mut state, out }) = turn.wait() else { return Ok(None) };
        let (mut lines, next) = LineBatch::new(out, self.memory);
        let mut turn = Some((turn, next));
        let mut last = self.memory.take();
        loop {
            let is_last = batch.is_at_end();
            let mut ahead = None;
            if self.is_one_of_many {
                let mut behind = state.clone();
                self.printer.pass(batch, &self.list, &mut behind);
                match turn.take_if(|_| is_last) {
                    Some((turn, out)) => turn.pass(CarriedLineState { state: behind, out }),
                    None => ahead = Some(behind),
                }
            }
            let flow = match self.printer.print(batch, &self.list, &mut state, &mut last, |last| {
                lines.take(last).map_err(LineStop::Lines)
            }) {
                Ok(flow) => flow,
                Err(LineStop::Lines(error)) => return Err(error),
                Err(LineStop::Log(error)) => {
                    batch.fail(error);
                    Flow::GoesOn
                }
            };
            if is_last || batch.has_failed() || flow == Flow::Ends {
                let met = state.met();
                if let Some((turn, out)) = turn {
                    turn.pass(CarriedLineState { state, out });
                }
                let finished = self.printer.take_finished();
                return Ok(Some(PrintedLines {
                    lines,
                    last,
                    flow,
                    failed: batch.has_failed(),
                    met,
                    finished,
                }));
            }
            state = ahead.unwrap_or(state);
            batch.read_ahead(&mut self.list);
        }
    }
}

/// Why no more lines were made of a batch.
enum LineStop {
    Log(FlowError),
    Lines(UnwrittenLines),
}

impl From<FlowError> for LineStop {
    fn from(error: FlowError) -> Self {
        LineStop::Log(error)
    }
}

/// The requests that a later state met, and the names that were met before.
fn with_names_of(before: MetRequests, later: MetRequests) -> MetRequests {
    let mut met = later;
    met.add_names(before);
    met
}
