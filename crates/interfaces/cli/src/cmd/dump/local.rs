//! Dumps files, stdin and logs of servers as text: which logs the options name, and what is told of them. [`TextRun`] prints.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use binlogz_binlog::{Error as BinlogError, MAGIC, printable};
use binlogz_encryption::Keyring;
use binlogz_exits::MaskedLogs;
use binlogz_flow::{Error as FlowError, Input};
use binlogz_payload::Error as PayloadError;
use binlogz_print::LogBounds;
use binlogz_print::mysqlbinlog::{
    LogAsText, MysqlbinlogState, PrintStop, TextRun, TextRunError, TextRunSettings, warnings_at_end,
};
use binlogz_source::ConnectOptions;

use super::exits;
use super::line_run::open_keyring;
use super::looked_for::DumpSearch;
use super::options::{DumpSettings, POSITION_MIN};
use super::print_options::print_options;
use super::remote::{self, RemoteInputs};
use super::{FAILED, unmet};
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result};
use crate::output::create_printed;
use crate::progress::WorkProgress;
use binlogz_archive::input as archived;

/// Dumps the logs that were named; the exit code.
pub(super) fn dump(options: &DumpSettings) -> Result<u8> {
    let keyring = options.keyring.as_deref().map(open_keyring).transpose()?;
    let exits = exits::gate(options, keyring.as_ref())?;
    let connect = if options.is_remote() { Some(remote::connect(options)?) } else { None };
    let print = print_options(options);
    let (out, out_name) = open_output(options.result_file.as_deref())?;
    let settings = TextRunSettings {
        print: &print,
        workers: workers(options.jobs),
        verify_checksums: options.verify_binlog_checksum,
        lost_output: &|error| remote::leave(CommandFailure::writing(&out_name, error)),
    };
    let mut run = DumpedText {
        text: TextRun::new(settings, out),
        out_name: &out_name,
        to_file: options.result_file.is_some(),
        failed: false,
        exits: exits.as_ref(),
        looked_for: DumpSearch::new(options, &print.selection).needing_statements(exits.is_some()),
    };
    run.text.begin().map_err(|error| failure(&"", &out_name, error))?;
    let mut state = MysqlbinlogState::new();
    let last = options.logs.len().saturating_sub(1);
    for (index, log) in options.logs.iter().enumerate() {
        let start = if index == 0 { options.start_position } else { POSITION_MIN };
        let stop = options.stop_position.filter(|_| index == last).unwrap_or(u64::MAX);
        state = match &connect {
            None => run.log(
                log,
                (index + 1, options.logs.len()),
                keyring.as_ref(),
                LogBounds { start, stop, sent_from: None },
                state,
            )?,
            Some(connect) => {
                let sent_from = (start != POSITION_MIN).then_some(start);
                let positions = LogBounds { start: POSITION_MIN, stop, sent_from };
                run.remote_log(options, connect, (index, log), positions, state)?
            }
        };
        if run.failed || state.stopped().is_some() {
            break;
        }
    }
    if !run.failed {
        let ended = state.stopped().is_some();
        let unmet = state.met().unmet(&print.selection, &print.rewrite_db, options.stop_position, ended);
        run.failed = unmet::tell(options, &unmet);
    }
    if let Some(warning) = warnings_at_end(&state) {
        tell(&warning);
    }
    run.failed |= exits::ended(exits.as_ref());
    run.text.end(state).map_err(|error| failure(&"", &out_name, error))?;
    Ok(if run.failed { FAILED } else { 0 })
}

/// A run over all logs.
struct DumpedText<'o> {
    text: TextRun<'o>,
    out_name: &'o str,
    to_file: bool,
    failed: bool,
    exits: Option<&'o MaskedLogs>,
    looked_for: DumpSearch<'o>,
}

/// Why a log is not printed to its end.
fn failure(log: &dyn Display, out: &str, error: TextRunError) -> CommandFailure {
    match error {
        TextRunError::Log(error) => CommandFailure::reading(log, &error),
        TextRunError::Output(error) => CommandFailure::writing(&out, &error),
        TextRunError::Spill(error) => CommandFailure::of(&"temporary file", error),
    }
}

impl DumpedText<'_> {
    /// Dumps one log; returns the state after it.
    fn log(
        &mut self,
        path: &Path,
        number: (usize, usize),
        keyring: Option<&Keyring>,
        positions: LogBounds,
        state: MysqlbinlogState,
    ) -> Result<MysqlbinlogState> {
        match open(path, keyring, &mut self.looked_for) {
            Ok(input) => {
                // Text that goes to a terminal is progress enough.
                let progress = self.to_file.then(|| {
                    WorkProgress::of(&path.display(), fs::metadata(path).ok().map(|file| file.len()), number)
                });
                let input = match (&progress, input.starting_at(positions.start)) {
                    (Some(progress), Input::Places(log)) => Input::Places(progress.watch_all(log)),
                    (_, input) => input,
                };
                self.input(&path.display(), input, positions, state, || None)
            }
            Err(CommandFailure::Line(line)) => {
                self.fail(&line);
                Ok(state)
            }
            Err(closed) => Err(closed),
        }
    }

    /// Dumps the files of a server's log; returns the state after them.
    fn remote_log(
        &mut self,
        options: &DumpSettings,
        connect: &ConnectOptions,
        (number, log): (usize, &Path),
        positions: LogBounds,
        mut state: MysqlbinlogState,
    ) -> Result<MysqlbinlogState> {
        let inputs = match RemoteInputs::open(options, connect, number, log) {
            Ok(inputs) => inputs,
            Err(failure) => return self.told(failure, state),
        };
        while !self.failed && state.stopped().is_none() {
            let (name, input) = match inputs.next_input(options, log) {
                Ok(Some(next)) => next,
                Ok(None) => break,
                Err(failure) => return self.told(failure, state),
            };
            if options.to_last_log {
                // mysqlbinlog shows events between two files only here.
                let shown = inputs.rotate(|rotate| self.text.rotate(positions, &mut state, rotate))?;
                shown.map_err(|error| failure(&name, self.out_name, error))?;
            }
            state = self.input(&name, input, positions, state, || inputs.failure())?;
        }
        Ok(state)
    }

    /// Tells of a log that can't be read; the state stays.
    fn told(&mut self, failure: CommandFailure, state: MysqlbinlogState) -> Result<MysqlbinlogState> {
        match failure {
            CommandFailure::Line(line) => self.fail(&line),
            closed => return Err(closed),
        }
        Ok(state)
    }

    /// Dumps a log; returns the state after it. `trouble` knows better than the reader why no more bytes came.
    fn input(
        &mut self,
        name: &dyn Display,
        input: Input,
        positions: LogBounds,
        state: MysqlbinlogState,
        trouble: impl FnOnce() -> Option<CommandFailure>,
    ) -> Result<MysqlbinlogState> {
        let input = exits::leaving(self.exits, &name.to_string(), input)?;
        let printed = self.text.log(input, positions, state, &mut tell);
        let LogAsText { mut state, mut unread, failed, cut } =
            printed.map_err(|error| failure(name, self.out_name, error))?;
        if let Some(cut) = cut {
            tell(&format!(
                "WARNING: {name} at {}: the log is in use and ends inside an event, of which {} bytes are there.",
                cut.offset, cut.size
            ));
        }
        if let Some(error) = failed.filter(|error| !is_only_magic(error)) {
            match trouble().unwrap_or_else(|| CommandFailure::reading(name, &error)) {
                CommandFailure::Line(line) => self.fail(&line),
                closed => return Err(closed),
            }
        }
        // The text shows an incident, as mysqlbinlog's does: replaying it fails there.
        unread.retain(|unread| !unread.is_incident());
        for unread in unread.iter() {
            self.fail(&format!("{name} {unread}"));
        }
        self.failed |= !unread.is_empty();
        if let Some(PrintStop::Error(line)) = state.stopped() {
            let line = line.clone();
            self.fail(&line);
        }
        self.text.end_log(positions, &mut state).map_err(|error| failure(name, self.out_name, error))?;
        Ok(state)
    }

    fn fail(&mut self, line: &str) {
        tell(&format!("ERROR: {line}"));
        self.failed = true;
    }
}

/// Whether a log has nothing but its first four bytes: mysqlbinlog takes it for one without events.
fn is_only_magic(error: &FlowError) -> bool {
    let FlowError::Input(PayloadError::Binlog(BinlogError::At { offset, source, .. })) = error else {
        return false;
    };
    *offset == MAGIC.len() as u64 && matches!(**source, BinlogError::Truncated { left: 0, .. })
}

/// Prints on stderr. If even that is closed, the exit code must do.
fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

fn open(path: &Path, keyring: Option<&Keyring>, looked_for: &mut DumpSearch<'_>) -> Result<Input> {
    let name = path.display();
    let input = match archived::find(path) {
        Ok(Some(archived)) => archived.input_of(&mut |run| looked_for.may_be_in(run)),
        Ok(None) => {
            looked_for.pass_log();
            if path == OsStr::new("-") { Input::stdin() } else { Input::open(path) }
        }
        Err(error) => Err(error),
    };
    let input =
        input.map_err(|error| CommandFailure::of(&name, format_args!("Could not open log file: {error}")))?;
    match keyring {
        None => Ok(input),
        Some(keyring) => {
            input.decrypted(keyring).map_err(|error| CommandFailure::with_encryption(&name, &error))
        }
    }
}

/// The output, written without a buffer, since the pieces are large.
fn open_output(result_file: Option<&Path>) -> Result<(File, String)> {
    match result_file {
        None => {
            let name = "stdout".to_owned();
            let stdout = io::stdout()
                .as_fd()
                .try_clone_to_owned()
                .map_err(|error| CommandFailure::writing(&name, &error))?;
            Ok((File::from(stdout), name))
        }
        Some(path) => {
            let name = path.display().to_string();
            let file = create_printed(path)
                .map_err(|error| CommandFailure::of(&name, format_args!("open: {error}")))?;
            Ok((file, name))
        }
    }
}
