//! Logs as lines: which logs the options name, and what is told of them. [`LineRun`] makes the lines and writes them.
//!
//! [`super::jsonl`] and [`super::changes`] make the printers.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use binlogz_encryption::Keyring;
use binlogz_exits::MaskedLogs;
use binlogz_flow::Input;
use binlogz_flow::read::growing::{GrowingLog, next_log};
use binlogz_print::line_printer::{Flow, LinePrinter};
use binlogz_print::line_run::{
    LineOutput, LineRun, LineRunError, LineRunSettings, LogAsLines, Offsets, OffsetsError,
};
use binlogz_print::{EventSelection, LogBounds};
use binlogz_schema::TablesOfLogs;
use binlogz_source::ConnectOptions;

use super::exits;
use super::looked_for::DumpSearch;
use super::options::{DumpSettings, POSITION_MIN};
use super::remote::{self, RemoteInputs};
use super::{FAILED, tell_line, unmet};
use crate::Exit;
use crate::cmd::row_changes::list as server_logs;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, name_unread, warn_cut};
use crate::log_path::LogPath;
use crate::output::create_printed;

/// One run over logs: where its lines go, and which events become lines.
pub(super) struct LineJob<'o, N> {
    pub(super) options: &'o DumpSettings,
    /// The events that are shown.
    pub(super) selection: &'o EventSelection,
    /// The events that the user chose: a request that no event meets is reported.
    pub(super) asked: &'o EventSelection,
    /// What is known of tables besides their maps.
    pub(super) tables: &'o TablesOfLogs,
    /// By what the logs leave.
    pub(super) exits: Option<MaskedLogs>,
    /// Where the lines go, and its name.
    pub(super) out: (LineOutput, String),
    pub(super) offsets: Option<Offsets>,
    /// Makes a worker's printer of a log of this name.
    pub(super) new_printer: N,
}

/// Refuses options that lines can't follow.
fn check_options(options: &DumpSettings) -> Result<()> {
    if options.rewrite_db.is_empty() && options.offset == 0 {
        return Ok(());
    }
    let option = if options.offset > 0 { "--offset" } else { "--rewrite-db" };
    let format = options.format.name();
    Err(CommandFailure::Line(format!("{option} can't be used with --format={format}")))
}

/// The positions that are wanted of the log with this number among those that are named.
fn bounds_of(options: &DumpSettings, number: usize) -> LogBounds {
    let is_remote = options.is_remote();
    let is_last = number == options.logs.len().saturating_sub(1);
    LogBounds {
        start: if number == 0 && !is_remote { options.start_position } else { POSITION_MIN },
        stop: options.stop_position.filter(|_| is_last).unwrap_or(u64::MAX),
        // The events show where a server's data begins.
        sent_from: is_remote.then_some(POSITION_MIN),
    }
}

/// Dumps the logs that were asked for; the exit code.
pub(super) fn run<P: LinePrinter, N>(job: LineJob<'_, N>) -> Result<u8>
where
    N: Fn(&str, LogBounds, usize) -> P + Sync,
{
    let LineJob { options, selection, asked, tables, exits, out, offsets, new_printer } = job;
    check_options(options)?;
    let (out, out_name) = out;
    let settings = LineRunSettings {
        workers: workers(options.jobs),
        verify_checksums: options.verify_binlog_checksum,
        tables,
        lost_output: &|error| remote::leave(CommandFailure::writing(&out_name, error)),
    };
    let goes_on = offsets.is_some();
    let mut run = DumpRun {
        options,
        lines: LineRun::new(settings, new_printer, out, offsets),
        keyring: options.keyring.as_deref().map(open_keyring).transpose()?,
        exits: exits.as_ref(),
        out_name: &out_name,
        unread: false,
        stopped: false,
    };
    let last = options.logs.len().saturating_sub(1);
    let mut looked_for =
        DumpSearch::new(options, selection).needing_statements(tables.is_forward() || exits.is_some());
    let mut ended = false;
    let connect = if options.is_remote() { Some(remote::connect(options)?) } else { None };
    for (number, log) in options.logs.iter().enumerate() {
        let positions = bounds_of(options, number);
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
    run.lines.finish().map_err(|error| offsets_failure(&error))?;
    run.tell_notes(tables, connect.as_ref());
    run.unread |= exits::ended(exits.as_ref());
    // What is asked for may have been handed over before.
    if goes_on {
        return Ok(if run.unread { FAILED } else { 0 });
    }
    let mut met = run.lines.met();
    met.add_passed_over(looked_for.met);
    let unmet = met.unmet(asked, &[], options.stop_position, ended);
    Ok(if unmet::tell(options, &unmet) || run.unread { FAILED } else { 0 })
}

struct DumpRun<'o, P: LinePrinter, N> {
    options: &'o DumpSettings,
    lines: LineRun<'o, P, N>,
    keyring: Option<Keyring>,
    exits: Option<&'o MaskedLogs>,
    out_name: &'o str,
    /// Whether changes that were asked for could not be read, or not told for certain.
    unread: bool,
    /// Whether an option to stop ended the reading.
    stopped: bool,
}

impl<P: LinePrinter, N: Fn(&str, LogBounds, usize) -> P + Sync> DumpRun<'_, P, N> {
    /// Names, once all logs were read, what isn't known of tables.
    fn tell_notes(&mut self, tables: &TablesOfLogs, connect: Option<&ConnectOptions>) {
        let mut notes = tables.notes(&self.lines.tables_so_far());
        if tables.is_forward()
            && let Some(why) = self.unseen(connect)
        {
            notes.extend(tables.unseen(&why));
        }
        notes.iter().for_each(|note| tell_line("ERROR", note));
        self.unread |= !notes.is_empty() || tables.has_notes();
    }

    /// A log that grows, and those that follow it.
    fn growing_logs(&mut self, log: &Path, positions: LogBounds) -> Result<Flow> {
        let mut next = Some(log.to_owned());
        while let Some(path) = next {
            let name = path.display().to_string();
            let input = open_growing(&path)?;
            if self.log(&name, Input::Live(Box::new(input)), positions)? == Flow::Ends {
                return Ok(Flow::Ends);
            }
            next = next_log(&path);
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

    fn log(&mut self, name: &str, input: Input, bounds: LogBounds) -> Result<Flow> {
        let input = exits::leaving(self.exits, name, input)?;
        let LogAsLines { flow, unread, failed, cut } =
            self.lines.log(name, input, bounds).map_err(|error| match error {
                LineRunError::Log(error) => CommandFailure::reading(&name, &error),
                LineRunError::Output(error) => CommandFailure::writing(&self.out_name, &error),
                LineRunError::Offsets(error) => offsets_failure(&error),
            })?;
        self.unread |= name_unread(&name, &unread, "the output lacks its changes") != Exit::Done;
        if let Some(error) = &failed {
            return Err(CommandFailure::reading(&name, error));
        }
        if let Some(cut) = cut {
            warn_cut(&name, cut, "");
        }
        self.stopped |= flow == Flow::Ends;
        Ok(flow)
    }
}

/// Trouble with the file of `--offsets`.
pub(super) fn offsets_failure(error: &OffsetsError) -> CommandFailure {
    match error {
        OffsetsError::NoGtid => CommandFailure::of(&"--offsets", error),
        error => CommandFailure::Line(error.to_string()),
    }
}

/// The output of lines, and its name.
pub(super) fn open_output(result_file: Option<&Path>) -> Result<(LineOutput, String)> {
    let (file, name) = match result_file {
        None => (io::stdout().as_fd().try_clone_to_owned().map(File::from), "stdout".to_owned()),
        Some(path) => (create_printed(path), path.display().to_string()),
    };
    let file =
        file.map_err(|error| CommandFailure::Line(format!("Could not create log file '{name}': {error}")))?;
    Ok((LineOutput::new(file), name))
}

/// Opens a log that is followed.
fn open_growing(path: &Path) -> Result<GrowingLog> {
    let name = path.display();
    if !fs::metadata(path).map_err(|error| CommandFailure::of(&name, error))?.is_file() {
        return Err(CommandFailure::of(&name, "is no file, which --follow could read on"));
    }
    GrowingLog::open(path).map_err(|error| CommandFailure::reading(&name, &error))
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
