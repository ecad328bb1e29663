//! `--format jsonl`: logs as JSON, one object a line.
//!
//! ```text
//! log → flow::events::run_in_turns: payloads are expanded on all cores → report's jsonl::Printer, in order → output
//! ```

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::path::Path;

use binlogz_encryption::Keyring;
use binlogz_flow::events::{EventList, run_in_turns};
use binlogz_flow::{Error as FlowError, Input};
use binlogz_report::jsonl::{Flow, Printer};
use binlogz_report::mysqlbinlog::Positions;

use super::options::{Options, POSITION_MIN};
use super::print_options::print_options;
use super::remote::{self, RemoteInputs};
use crate::cmd::workers;
use crate::failure::{Failure, Result, warn_cut};
use crate::log_path::LogPath;

/// Bytes that are written at a time.
const WRITE_SIZE: usize = 256 << 10;

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run(options: &Options) -> Result<u8> {
    if !options.rewrite_db.is_empty() || options.offset > 0 {
        let option = if options.offset > 0 { "--offset" } else { "--rewrite-db" };
        return Err(Failure::Line(format!("{option} can't be used with --format=jsonl")));
    }
    let selection = print_options(options).selection;
    let mut run = Run {
        options,
        keyring: options.keyring.as_deref().map(open_keyring).transpose()?,
        // Until a log is begun, it has no name.
        lines: Some(Lines {
            printer: Printer::new(&selection),
            out: Out::open(options.result_file.as_deref())?,
        }),
    };
    let last = options.logs.len().saturating_sub(1);
    let connect = if options.is_remote() { Some(remote::connect(options)?) } else { None };
    for (number, log) in options.logs.iter().enumerate() {
        let positions = Positions {
            start: if number == 0 && connect.is_none() { options.start_position } else { POSITION_MIN },
            stop: options.stop_position.filter(|_| number == last).unwrap_or(u64::MAX),
            // Where what a server sends begins, its events tell.
            sent_from: connect.as_ref().map(|_| POSITION_MIN),
        };
        let flow = match &connect {
            Some(connect) => {
                let inputs = RemoteInputs::open(options, connect, number, log)?;
                run.remote_log(&inputs, log, positions)?
            }
            None => {
                let name = log.display().to_string();
                run.log(&name, open(log, run.keyring.as_ref())?, positions)?
            }
        };
        if flow == Flow::Ends {
            break;
        }
    }
    Ok(0)
}

struct Run<'o> {
    options: &'o Options,
    keyring: Option<Keyring>,
    /// With whoever has the turn.
    lines: Option<Lines<'o>>,
}

/// What goes from batch to batch.
struct Lines<'o> {
    printer: Printer<'o>,
    out: Out,
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

impl<'o> Run<'o> {
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
        let Some(mut lines) = self.lines.take() else { return Ok(Flow::Ends) };
        lines.printer.begin_log(name, positions);
        let out_name = lines.out.name.clone();
        let live = matches!(input, Input::Live(_));
        let threads = workers(self.options.jobs);
        let mut flow = Flow::GoesOn;
        let ran = run_in_turns(
            input,
            threads,
            self.options.verify_binlog_checksum,
            lines,
            || Ok::<_, Ended>(EventList::default()),
            |list, turn, batch| {
                batch.read_ahead(list);
                let Some(mut lines) = turn.wait() else { return Ok(Flow::Ends) };
                let Lines { printer, out } = &mut lines;
                printer.begin_batch(batch)?;
                let flow = loop {
                    let Out { file, buffer, .. } = out;
                    let mut write = |buffer: &mut Vec<u8>| {
                        write(file, buffer).map_err(|error| match live {
                            true => remote::leave(Failure::writing(&out_name, &error)),
                            false => Ended::Output(error),
                        })
                    };
                    let printed = printer.print(batch, list, buffer, |buffer| match buffer.len() {
                        length if length < WRITE_SIZE => Ok(()),
                        _ => write(buffer),
                    });
                    // What could be printed comes first, whatever came after it.
                    write(buffer)?;
                    let flow = printed?;
                    if flow == Flow::Ends || batch.is_at_end() {
                        break flow;
                    }
                    batch.read_ahead(list);
                };
                turn.pass(lines);
                Ok(flow)
            },
            |printed| {
                flow = printed;
                Ok(if flow == Flow::Ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        );
        let summary = ran.map_err(|ended| match ended {
            Ended::Log(error) => Failure::reading(&name, &error),
            Ended::Output(error) => Failure::writing(&out_name, &error),
        })?;
        if let Some(error) = &summary.failed {
            return Err(Failure::reading(&name, error));
        }
        if let Some(cut) = summary.read.cut {
            warn_cut(&name, cut, "");
        }
        self.lines = summary.state;
        Ok(flow)
    }
}

/// Writes what is in the buffer.
fn write(file: &mut File, buffer: &mut Vec<u8>) -> io::Result<()> {
    file.write_all(buffer)?;
    buffer.clear();
    Ok(())
}

/// Where the lines go.
struct Out {
    file: File,
    name: String,
    buffer: Vec<u8>,
}

impl Out {
    fn open(result_file: Option<&Path>) -> Result<Self> {
        let (file, name) = match result_file {
            None => (io::stdout().as_fd().try_clone_to_owned().map(File::from), "stdout".to_owned()),
            Some(path) => (File::create(path), path.display().to_string()),
        };
        let file =
            file.map_err(|error| Failure::Line(format!("Could not create log file '{name}': {error}")))?;
        Ok(Out { file, name, buffer: Vec::new() })
    }
}

fn open_keyring(path: &Path) -> Result<Keyring> {
    Keyring::open(path).map_err(|error| Failure::with_encryption(&path.display(), &error))
}

fn open(path: &Path, keyring: Option<&Keyring>) -> Result<Input> {
    let log = if path == OsStr::new("-") { LogPath::Stdin } else { LogPath::File(path.into()) };
    log.open(keyring)
}
