//! The first events of logs: they tell which logs may have changes after a moment, or certain transactions. They are files
//! and archives that the user names, or a server's own.

use std::fmt::Display;

use binlogz_encryption::Keyring;
use binlogz_flow::{FactsUpTo, InOrder, Input, LogFacts, NotInSequence, check_sequence};
use binlogz_row_changes::{HeadError, ServerLogs, TableMoment, from_last_head, server_logs};
use binlogz_source::ConnectOptions;

pub(super) use binlogz_row_changes::{LOG_BEGIN, LogHead};

use crate::failure::{CommandFailure, Result, warn};
use crate::log_path::LogPath;
use binlogz_archive::input as archived;

/// The head of a log that the user names.
fn head_of(log: &LogPath, keyring: Option<&Keyring>) -> Result<LogHead> {
    head_of_input(log.open(keyring)?, log)
}

/// The head of an opened log with this name.
pub(super) fn head_of_input(input: Input, log: &dyn Display) -> Result<LogHead> {
    let name = log.to_string();
    let head = match input {
        Input::Places(places) | Input::Seek { places, .. } => LogHead::read(InOrder::new(places), &name),
        Input::Stream(stream) | Input::Sparse { stream, .. } => LogHead::read(stream, &name),
        _ => {
            return Err(CommandFailure::of(
                log,
                "is a pipe, expected a file or an archive: its begin is read twice",
            ));
        }
    };
    head.map_err(|error| CommandFailure::Line(error.to_string()))
}

/// Checks that each of several logs continues the one before it, before anything of them is taken.
///
/// # Errors
///
/// Logs of two servers, the same one twice, another order than their own, a gap, a reset in between; a log that can't be read.
pub(in crate::cmd) fn follow_one_another<'l>(
    logs: impl IntoIterator<Item = &'l LogPath>,
    keyring: Option<&Keyring>,
) -> Result<()> {
    let logs: Vec<&LogPath> = logs.into_iter().collect();
    if logs.len() < 2 {
        return Ok(());
    }
    let mut all = Vec::new();
    let mut facts = Vec::new();
    for log in logs {
        match facts_of(log, keyring, FactsUpTo::FirstTransaction)? {
            Some(of_log) => {
                all.push(log);
                facts.push(of_log);
            }
            None => warn(&format!(
                "{log}: is a pipe, which is read once: whether it and the logs beside it continue one another can't be told"
            )),
        }
    }
    let whole = &mut |place: usize| match all.get(place) {
        Some(log) => {
            facts_of(log, keyring, FactsUpTo::End).map(Option::unwrap_or_default).map_err(SequenceFailure)
        }
        None => Ok(LogFacts::default()),
    };
    let said = check_sequence(&mut facts, whole).map_err(|SequenceFailure(failure)| failure)?;
    said.iter().for_each(|said| warn(said));
    Ok(())
}

/// Why logs are no sequence, or can't be read.
struct SequenceFailure(CommandFailure);

impl From<NotInSequence> for SequenceFailure {
    fn from(error: NotInSequence) -> Self {
        SequenceFailure(CommandFailure::Line(error.to_string()))
    }
}

/// `None`: it can be read only once.
fn facts_of(log: &LogPath, keyring: Option<&Keyring>, up_to: FactsUpTo) -> Result<Option<LogFacts>> {
    let LogPath::File(path) = log else { return Ok(None) };
    let failed = |error: std::io::Error| CommandFailure::of(log, error);
    if let Some(archived) = archived::find(path).map_err(failed)? {
        let mut facts = archived.facts(log.to_string()).map_err(failed)?;
        if up_to == FactsUpTo::End
            && let Input::Stream(stream) | Input::Sparse { stream, .. } = log.open(keyring)?
        {
            facts.read_end(stream).map_err(|error| CommandFailure::of(log, error))?;
        }
        return Ok(Some(facts));
    }
    // To open a FIFO is to take what is in it.
    if log.metadata()?.is_some_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Ok(None);
    }
    let (Input::Places(places) | Input::Seek { places, .. }) = log.open(keyring)? else { return Ok(None) };
    let facts = LogFacts::read(log.to_string(), places.as_ref(), up_to);
    facts.map(Some).map_err(|error| match error.offset() {
        Some(_) => CommandFailure::Line(format!("{log} {error}")),
        None => CommandFailure::of(log, error),
    })
}

/// Where the logs begin that are read for a moment.
pub(super) struct LogsBegin {
    /// The head of the first of them.
    pub(super) head: LogHead,
    /// Whether there were none before it.
    pub(super) is_first: bool,
}

/// Drops the logs that end before the moment; where those that are left begin.
pub(super) fn from_moment(
    logs: &mut Vec<LogPath>,
    keyring: Option<&Keyring>,
    moment: TableMoment,
) -> Result<Option<LogsBegin>> {
    let mut first = None;
    for (place, log) in logs.iter().enumerate().rev() {
        let head = head_of(log, keyring)?;
        let is_before = head.is_before(moment);
        first = Some((place, head));
        if is_before {
            break;
        }
    }
    let Some((place, head)) = first else { return Ok(None) };
    logs.drain(..place);
    // Logs of a server without GTIDs have nothing before them by which to tell.
    let is_first = logs.first().is_some_and(|log| head.is_first_of_server(&super::file_name(log)));
    Ok(Some(LogsBegin { head, is_first }))
}

/// A server's logs, from the one that has the moment to the last, and where they begin.
pub(super) fn from_moment_of_server(
    names: Vec<String>,
    connect: &ConnectOptions,
    moment: TableMoment,
) -> Result<Option<(Vec<String>, LogsBegin)>> {
    let found = from_last(names, connect, &|head| head.is_before(moment))?;
    Ok(found.map(|(names, head)| {
        let is_first = names.first().is_some_and(|name| head.is_first_of_server(name));
        (names, LogsBegin { head, is_first })
    }))
}

/// The server's own logs from the one on that has the moment, and where they begin.
pub(super) fn of_server(connect: &ConnectOptions, moment: TableMoment) -> Result<(ServerLogs, LogsBegin)> {
    let names = list(connect)?.into_iter().map(|(name, _)| name).collect();
    let Some((names, begin)) = from_moment_of_server(names, connect, moment)? else {
        return Err(CommandFailure::of(&connect.server(), "has no binary log"));
    };
    // Its begin was read: the log comes once more.
    let first = names.first().map(String::as_str).unwrap_or_default();
    let logs = ServerLogs::open(connect, first, LOG_BEGIN);
    let logs = logs.map_err(|error| CommandFailure::of_server(&connect.server(), error))?;
    Ok((logs, begin))
}

/// A server's logs with their sizes, in order.
pub(in crate::cmd) fn list(connect: &ConnectOptions) -> Result<Vec<(String, u64)>> {
    let failed = |error| CommandFailure::of_server(&connect.server(), error);
    server_logs(connect).map_err(failed)
}

/// Reads the heads of a server's logs, from the last one back to the first for which `may_be_first` is true. Returns that
/// log and those after it, and its head. If it is true for none, all logs are returned.
pub(super) fn from_last(
    names: Vec<String>,
    connect: &ConnectOptions,
    may_be_first: &dyn Fn(&LogHead) -> bool,
) -> Result<Option<(Vec<String>, LogHead)>> {
    from_last_head(names, connect, may_be_first).map_err(|error| match error {
        HeadError::Log(line) => CommandFailure::Line(line),
        HeadError::Server(error) => CommandFailure::of_server(&connect.server(), error),
    })
}
