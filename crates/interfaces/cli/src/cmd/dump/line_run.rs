//! Logs as lines: all cores make them, and they are written in order.
//!
//! ```text
//! log → flow::events::run_in_turns → a LinePrinter (workers) → Lines (in order) → stdout, --result-file
//!                                                                        → Offsets: what was handed over
//! ```
//!
//! [`super::jsonl`] and [`super::changes`] make the printers.

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use binlogz_encryption::Keyring;
use binlogz_flow::events::{BatchTurn, EventBatch, EventList, TurnsSummary, run_in_turns};
use binlogz_flow::{Error as FlowError, Input};
use binlogz_print::line_printer::{FinishedTransactions, Flow, LinePrinter, LineState};
use binlogz_print::met::MetRequests;
use binlogz_print::mysqlbinlog::TextMemory;
use binlogz_print::{EventSelection, LogBounds};
use binlogz_schema::TablesOfLogs;
use binlogz_source::ConnectOptions;

use super::growing::{self, GrowingLog};
use super::lines::{AwaitedOutput, LineBatch, LineOutput, UnwrittenLines, at_hand};
use super::looked_for::DumpSearch;
use super::offsets::Offsets;
use super::options::{DumpSettings, POSITION_MIN};
use super::remote::{self, RemoteInputs};
use super::{FAILED, tell_line, unmet};
use crate::Exit;
use crate::cmd::row_changes::list as server_logs;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, name_unread, warn_cut};
use crate::log_path::LogPath;

/// One run over logs: where its lines go, and which events become lines.
pub(super) struct LineJob<'o, N> {
    pub(super) options: &'o DumpSettings,
    /// The events that are shown.
    pub(super) selection: &'o EventSelection,
    /// The events that the user chose: a request that no event meets is reported.
    pub(super) asked: &'o EventSelection,
    /// What is known of tables besides their maps.
    pub(super) tables: &'o TablesOfLogs,
    pub(super) out: LineOutput,
    pub(super) offsets: Option<Offsets>,
    /// Makes a worker's printer of a log of this name.
    pub(super) new_printer: N,
}

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run<P: LinePrinter, N>(job: LineJob<'_, N>) -> Result<u8>
where
    N: Fn(&str, LogBounds, usize) -> P + Sync,
{
    let LineJob { options, selection, asked, tables, out, offsets, new_printer } = job;
    if !options.rewrite_db.is_empty() || options.offset > 0 {
        let option = if options.offset > 0 { "--offset" } else { "--rewrite-db" };
        return Err(CommandFailure::Line(format!(
            "{option} can't be used with --format={}",
            options.format.name()
        )));
    }
    let mut run = Run {
        options,
        tables,
        new_printer,
        offsets,
        keyring: options.keyring.as_deref().map(open_keyring).transpose()?,
        memory: TextMemory::default(),
        out_name: out.name.clone(),
        unread: false,
        met: MetRequests::default(),
        passed: Some(CarriedLineState { state: P::State::default(), out: at_hand(out) }),
        stopped: false,
    };
    let last = options.logs.len().saturating_sub(1);
    let mut looked_for = DumpSearch::new(options, selection).needing_statements(tables.is_forward());
    let mut ended = false;
    let connect = if options.is_remote() { Some(remote::connect(options)?) } else { None };
    for (number, log) in options.logs.iter().enumerate() {
        let positions = LogBounds {
            start: if number == 0 && connect.is_none() { options.start_position } else { POSITION_MIN },
            stop: options.stop_position.filter(|_| number == last).unwrap_or(u64::MAX),
            // The events show where a server's data begins.
            sent_from: connect.as_ref().map(|_| POSITION_MIN),
        };
        let flow = match &connect {
            Some(connect) => {
                let inputs = RemoteInputs::open(options, connect, number, log)?;
                run.remote_log(&inputs, log, positions)?
            }
            None if options.follow && number == last => run.growing_logs(log, positions)?,
            None => {
                let name = log.display().to_string();
                // Each row is shown with its transaction.
                let input = open(log, run.keyring.as_ref(), &mut looked_for)?
                    .starting_in_transaction(positions.start);
                run.log(&name, input, positions)?
            }
        };
        ended = flow == Flow::Ends;
        if ended {
            break;
        }
    }
    let goes_on = run.offsets.is_some();
    if let Some(offsets) = run.offsets.take() {
        offsets.finish()?;
    }
    let so_far = run.passed.as_ref().map(|passed| passed.state.tables().clone()).unwrap_or_default();
    let mut notes = tables.notes(&so_far);
    if tables.is_forward()
        && let Some(why) = run.unseen(connect.as_ref())
    {
        notes.extend(tables.unseen(&why));
    }
    notes.iter().for_each(|note| tell_line("ERROR", note));
    run.unread |= !notes.is_empty() || tables.has_notes();
    // What is asked for may have been handed over before.
    if goes_on {
        return Ok(if run.unread { FAILED } else { 0 });
    }
    run.met.add_passed_over(looked_for.met);
    let unmet = run.met.unmet(asked, &[], options.stop_position, ended);
    Ok(if unmet::tell(options, &unmet) || run.unread { FAILED } else { 0 })
}

struct Run<'o, P: LinePrinter, N> {
    options: &'o DumpSettings,
    tables: &'o TablesOfLogs,
    new_printer: N,
    offsets: Option<Offsets>,
    keyring: Option<Keyring>,
    memory: TextMemory,
    out_name: String,
    /// Whether changes that were asked for could not be read, or not told for certain.
    unread: bool,
    /// The requests that were met up to the end of the last log.
    met: MetRequests,
    /// Held by the worker that has the turn; `None` once nothing more is shown.
    passed: Option<CarriedLineState<P::State>>,
    /// Whether an option to stop ended the reading.
    stopped: bool,
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
struct Worker<'o, P> {
    printer: P,
    list: EventList,
    memory: &'o TextMemory,
    /// With several workers the state is passed on before the lines are made.
    is_one_of_many: bool,
}

/// Why a run over a log ends at once.
enum LineRunEnd {
    Log(FlowError),
    Output(io::Error),
    Offsets(CommandFailure),
}

impl From<FlowError> for LineRunEnd {
    fn from(error: FlowError) -> Self {
        LineRunEnd::Log(error)
    }
}

impl<P: LinePrinter, N: Fn(&str, LogBounds, usize) -> P + Sync> Run<'_, P, N> {
    /// A log that grows, and those that follow it.
    fn growing_logs(&mut self, log: &Path, positions: LogBounds) -> Result<Flow> {
        let mut next = Some(log.to_owned());
        while let Some(path) = next {
            let name = path.display().to_string();
            let input = GrowingLog::open(&path)?;
            if self.log(&name, Input::Live(Box::new(input)), positions)? == Flow::Ends {
                return Ok(Flow::Ends);
            }
            next = growing::next_log(&path);
        }
        Ok(Flow::GoesOn)
    }

    /// The files of a server's log.
    fn remote_log(&mut self, inputs: &RemoteInputs, log: &Path, positions: LogBounds) -> Result<Flow> {
        while let Some((name, input)) = inputs.next_input(self.options, log)? {
            let ran = self.log(&name, input, positions);
            if let Some(failure) = inputs.failure() {
                return Err(failure);
            }
            if ran? == Flow::Ends {
                return Ok(Flow::Ends);
            }
        }
        Ok(Flow::GoesOn)
    }

    /// Why statements after what was read can't be seen, if they can't: reading stopped before the end, or the server has later logs.
    fn unseen(&self, connect: Option<&ConnectOptions>) -> Option<String> {
        if self.stopped {
            return Some("what comes after the end of the reading isn't read (--stop-…)".to_owned());
        }
        let (connect, last) = connect.filter(|_| !self.options.to_last_log).zip(self.options.logs.last())?;
        let last = last.file_name().unwrap_or_default().to_string_lossy();
        match server_logs(connect) {
            Ok(logs) if logs.last().is_some_and(|(name, _)| *name == last) => None,
            Ok(_) => Some(format!(
                "the server has logs after {last}, which aren't read (--to-last-log reads them)"
            )),
            Err(_) => Some(format!("the server doesn't tell whether it has logs after {last}")),
        }
    }

    fn log(&mut self, name: &str, input: Input, positions: LogBounds) -> Result<Flow> {
        let Some(mut passed) = self.passed.take() else { return Ok(Flow::Ends) };
        passed.state.begin_log(name);
        self.tables.begin_log(name);
        let live = matches!(input, Input::Live(_));
        let threads = workers(self.options.jobs);
        let new_printer = &self.new_printer;
        let memory = &self.memory;
        let out_name = &self.out_name;
        let offsets = self.offsets.as_ref();
        let unwritten = |error: io::Error| match live {
            true => remote::leave(CommandFailure::writing(out_name, &error)),
            false => LineRunEnd::Output(error),
        };
        let mut flow = Flow::GoesOn;
        let mut met = self.met;
        let ran = run_in_turns(
            input,
            threads,
            self.options.verify_binlog_checksum,
            passed,
            || {
                let printer = new_printer(name, positions, threads);
                Ok(Worker { printer, list: EventList::default(), memory, is_one_of_many: threads > 1 })
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
                            offsets.written(finished, written).map_err(LineRunEnd::Offsets)?;
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
        let TurnsSummary { read, state, unread, failed } = ran.map_err(|ended| match ended {
            LineRunEnd::Log(error) => CommandFailure::reading(&name, &error),
            LineRunEnd::Output(error) => CommandFailure::writing(out_name, &error),
            LineRunEnd::Offsets(failure) => failure,
        })?;
        self.unread |= name_unread(&name, &unread, "the output lacks its changes") != Exit::Done;
        if let Some(error) = &failed {
            return Err(CommandFailure::reading(&name, error));
        }
        if let Some(cut) = read.cut {
            warn_cut(&name, cut, "");
        }
        self.passed = state;
        self.stopped |= flow == Flow::Ends;
        // Tables and servers are looked at where lines are made, not where the state is passed on.
        self.met = match &self.passed {
            Some(passed) => with_names_of(met, passed.state.met()),
            None => met,
        };
        Ok(flow)
    }
}

impl<P: LinePrinter> Worker<'_, P> {
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

pub(super) fn open_keyring(path: &Path) -> Result<Keyring> {
    Keyring::open(path).map_err(|error| CommandFailure::with_encryption(&path.display(), &error))
}

fn open(path: &Path, keyring: Option<&Keyring>, looked_for: &mut DumpSearch<'_>) -> Result<Input> {
    let log = if path == OsStr::new("-") { LogPath::Stdin } else { LogPath::File(path.into()) };
    let mut is_archived = false;
    let input = log.open_part(keyring, &mut |run| {
        is_archived = true;
        looked_for.may_be_in(run)
    });
    if !is_archived {
        looked_for.pass_log();
    }
    input
}
