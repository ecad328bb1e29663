//! `--format jsonl`: logs as JSON, one object a line.
//!
//! ```text
//! log → flow::events::run_in_turns → report's jsonl::Printer (workers) → Lines (in order) → stdout, --result-file
//! ```

use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use binlogz_encryption::Keyring;
use binlogz_flow::events::{EventBatch, EventList, Turn, run_in_turns};
use binlogz_flow::{Error as FlowError, Input};
use binlogz_report::jsonl::{Flow, Printer, State};
use binlogz_report::met::Met;
use binlogz_report::mysqlbinlog::{Positions, Selection, TextMemory};

use super::lines::{Awaited, Lines, Out, Unwritten, at_hand};
use super::looked_for::LookedFor;
use super::options::{Options, POSITION_MIN};
use super::print_options::print_options;
use super::remote::{self, RemoteInputs};
use super::{FAILED, unmet};
use crate::cmd::workers;
use crate::failure::{Failure, Result, warn_cut};
use crate::log_path::LogPath;

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run(options: &Options) -> Result<u8> {
    if !options.rewrite_db.is_empty() || options.offset > 0 {
        let option = if options.offset > 0 { "--offset" } else { "--rewrite-db" };
        return Err(Failure::Line(format!("{option} can't be used with --format=jsonl")));
    }
    let selection = print_options(options).selection;
    let out = Out::open(options.result_file.as_deref())?;
    let mut run = Run {
        options,
        selection: &selection,
        keyring: options.keyring.as_deref().map(open_keyring).transpose()?,
        memory: TextMemory::default(),
        out_name: out.name.clone(),
        met: Met::default(),
        passed: Some(Passed { state: State::new(), out: at_hand(out) }),
    };
    let last = options.logs.len().saturating_sub(1);
    let mut looked_for = LookedFor::new(options, &selection);
    let mut ended = false;
    let connect = if options.is_remote() { Some(remote::connect(options)?) } else { None };
    for (number, log) in options.logs.iter().enumerate() {
        let positions = Positions {
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
    run.met.add_passed_over(looked_for.met);
    let unmet = run.met.unmet(&selection, &[], options.stop_position, ended);
    Ok(if unmet::tell(options, &unmet) { FAILED } else { 0 })
}

struct Run<'o> {
    options: &'o Options,
    selection: &'o Selection,
    keyring: Option<Keyring>,
    memory: TextMemory,
    out_name: String,
    /// The requests that were met up to the end of the last log.
    met: Met,
    /// Held by the worker that has the turn; `None` once nothing more is shown.
    passed: Option<Passed>,
}

/// The state that passes from batch to batch.
struct Passed {
    state: State,
    out: Awaited,
}

/// The result of a batch.
struct Printed {
    lines: Lines,
    /// The last of them.
    last: Vec<u8>,
    flow: Flow,
    failed: bool,
    met: Met,
}

/// A worker, for all its batches of a log.
struct Worker<'o> {
    printer: Printer<'o>,
    list: EventList,
    memory: &'o TextMemory,
    /// With several workers the state is passed on before the lines are made.
    is_one_of_many: bool,
}

/// Why a run over a log ends at once.
enum Ended {
    Log(FlowError),
    Output(io::Error),
}

impl From<FlowError> for Ended {
    fn from(error: FlowError) -> Self {
        Ended::Log(error)
    }
}

impl Run<'_> {
    /// The files of a server's log.
    fn remote_log(&mut self, inputs: &RemoteInputs, log: &Path, positions: Positions) -> Result<Flow> {
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

    fn log(&mut self, name: &str, input: Input, positions: Positions) -> Result<Flow> {
        let Some(mut passed) = self.passed.take() else { return Ok(Flow::Ends) };
        passed.state.begin_log();
        let live = matches!(input, Input::Live(_));
        let threads = workers(self.options.jobs);
        let (selection, memory, out_name) = (self.selection, &self.memory, &self.out_name);
        let unwritten = |error: io::Error| match live {
            true => remote::leave(Failure::writing(out_name, &error)),
            false => Ended::Output(error),
        };
        let (mut flow, mut met) = (Flow::GoesOn, self.met);
        let ran = run_in_turns(
            input,
            threads,
            self.options.verify_binlog_checksum,
            passed,
            || {
                let printer = Printer::new(selection, name, positions, threads);
                Ok(Worker { printer, list: EventList::default(), memory, is_one_of_many: threads > 1 })
            },
            |worker, turn, batch| match worker.print(turn, batch) {
                Ok(printed) => Ok(printed),
                Err(Unwritten::Nobody) => Ok(None),
                Err(Unwritten::File(error)) => Err(unwritten(error)),
            },
            |printed| {
                let Some(Printed { lines, last, flow: batch_flow, failed, met: batch_met }) = printed else {
                    return Ok(ControlFlow::Break(()));
                };
                flow = batch_flow;
                met = with_names_of(met, batch_met);
                // First print what could be printed, whatever happened after it.
                match lines.end(last, !failed) {
                    Ok(()) if flow == Flow::GoesOn => Ok(ControlFlow::Continue(())),
                    Ok(()) | Err(Unwritten::Nobody) => Ok(ControlFlow::Break(())),
                    Err(Unwritten::File(error)) => Err(unwritten(error)),
                }
            },
        );
        let summary = ran.map_err(|ended| match ended {
            Ended::Log(error) => Failure::reading(&name, &error),
            Ended::Output(error) => Failure::writing(out_name, &error),
        })?;
        if let Some(error) = &summary.failed {
            return Err(Failure::reading(&name, error));
        }
        if let Some(cut) = summary.read.cut {
            warn_cut(&name, cut, "");
        }
        self.passed = summary.state;
        // Tables and servers are looked at where lines are made, not where the state is passed on.
        self.met = match &self.passed {
            Some(passed) => with_names_of(met, passed.state.met()),
            None => met,
        };
        Ok(flow)
    }
}

impl Worker<'_> {
    /// Makes lines of a batch. `None`: an earlier batch failed.
    fn print(
        &mut self,
        turn: Turn<Passed>,
        batch: &mut EventBatch<'_>,
    ) -> Result<Option<Printed>, Unwritten> {
        if let Err(error) = self.printer.begin_batch(batch) {
            batch.fail(error);
        }
        batch.read_ahead(&mut self.list);
        let Some(Passed { mut state, out }) = turn.wait() else { return Ok(None) };
        let (mut lines, next) = Lines::new(out, self.memory);
        let mut turn = Some((turn, next));
        let mut last = self.memory.take();
        loop {
            let is_last = batch.is_at_end();
            let mut ahead = None;
            if self.is_one_of_many {
                let mut behind = state.clone();
                self.printer.pass(batch, &self.list, &mut behind);
                match turn.take_if(|_| is_last) {
                    Some((turn, out)) => turn.pass(Passed { state: behind, out }),
                    None => ahead = Some(behind),
                }
            }
            let flow = match self.printer.print(batch, &self.list, &mut state, &mut last, |last| {
                lines.take(last).map_err(Stopped::Lines)
            }) {
                Ok(flow) => flow,
                Err(Stopped::Lines(error)) => return Err(error),
                Err(Stopped::Log(error)) => {
                    batch.fail(error);
                    Flow::GoesOn
                }
            };
            if is_last || batch.has_failed() || flow == Flow::Ends {
                let met = state.met();
                if let Some((turn, out)) = turn {
                    turn.pass(Passed { state, out });
                }
                return Ok(Some(Printed { lines, last, flow, failed: batch.has_failed(), met }));
            }
            state = ahead.unwrap_or(state);
            batch.read_ahead(&mut self.list);
        }
    }
}

/// Why no more lines were made of a batch.
enum Stopped {
    Log(FlowError),
    Lines(Unwritten),
}

impl From<FlowError> for Stopped {
    fn from(error: FlowError) -> Self {
        Stopped::Log(error)
    }
}

/// The requests that a later state met, and the names that were met before.
fn with_names_of(before: Met, later: Met) -> Met {
    let mut met = later;
    met.add_names(before);
    met
}

fn open_keyring(path: &Path) -> Result<Keyring> {
    Keyring::open(path).map_err(|error| Failure::with_encryption(&path.display(), &error))
}

fn open(path: &Path, keyring: Option<&Keyring>, looked_for: &mut LookedFor<'_>) -> Result<Input> {
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
