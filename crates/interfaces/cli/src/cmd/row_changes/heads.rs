//! The first events of logs: they tell which logs may have changes after a moment, or certain transactions. They are files
//! and archives that the user names, or a server's own.

use std::fmt::Display;
use std::io::{BufReader, Read};

use binlogz_binlog::event::PreviousGtidsEvent;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventReader, EventType};
use binlogz_encryption::Keyring;
use binlogz_flow::{FactsUpTo, InOrder, Input, LogFacts, NotInSequence, check_sequence};
use binlogz_row_changes::{ServerLogs, TableMoment};
use binlogz_source::{AnswerFields, ConnectOptions, Connection};

use crate::failure::{CommandFailure, Result, warn};
use crate::log_path::LogPath;
use binlogz_archive::input as archived;

/// Where a log of a server begins: after the magic.
pub(super) const LOG_BEGIN: u64 = 4;

/// The facts in the first events of a log.
pub(super) struct LogHead {
    /// When its server began it, in seconds since 1970.
    pub(super) created: u32,
    /// All transactions before it.
    previous: GtidSet,
}

impl LogHead {
    /// Whether the moment comes after the log's begin.
    pub(super) fn is_before(&self, moment: TableMoment) -> bool {
        match moment {
            TableMoment::After(gtid) => !self.previous.contains(&gtid),
            // A transaction of the second in which it was created may be in the log before it.
            TableMoment::Before(end) => (i64::from(self.created) + 1) * 1_000_000 <= end,
        }
    }

    /// Whether one of these transactions came before it.
    pub(super) fn follows_any(&self, gtids: &GtidSet) -> bool {
        !self.previous.is_disjoint(gtids)
    }

    /// Whether all that came before it is among these transactions.
    pub(super) fn follows_only(&self, gtids: &GtidSet) -> bool {
        self.previous.is_subset(gtids)
    }

    /// Whether nothing came before it.
    pub(super) fn is_first(&self) -> bool {
        self.previous.is_empty()
    }

    fn read(bytes: impl Read, name: &str) -> Result<LogHead> {
        let mut events = EventReader::new(BufReader::new(bytes));
        let bad = |error: binlogz_binlog::Error| match error.offset() {
            Some(_) => CommandFailure::Line(format!("{name} {error}")),
            None => CommandFailure::of(&name, error),
        };
        let mut head = LogHead { created: 0, previous: GtidSet::new() };
        // A format description, then what came before; other events before any transaction tell nothing.
        while let Some((_, frame)) = events.next_event().map_err(bad)? {
            match frame.header().event_type {
                EventType::FORMAT_DESCRIPTION => head.created = frame.header().timestamp,
                EventType::PREVIOUS_GTIDS => {
                    head.previous = PreviousGtidsEvent::decode_frame(&frame).map_err(bad)?.gtid_set;
                    break;
                }
                _ => break,
            }
        }
        Ok(head)
    }

    fn of(log: &LogPath, keyring: Option<&Keyring>) -> Result<LogHead> {
        LogHead::of_input(log.open(keyring)?, log)
    }

    /// The head of an opened log with this name.
    pub(super) fn of_input(input: Input, log: &dyn Display) -> Result<LogHead> {
        let name = log.to_string();
        match input {
            Input::Places(places) | Input::Seek { places, .. } => LogHead::read(InOrder::new(places), &name),
            Input::Stream(stream) | Input::Sparse { stream, .. } => LogHead::read(stream, &name),
            _ => Err(CommandFailure::of(
                log,
                "is a pipe, expected a file or an archive: its begin is read twice",
            )),
        }
    }
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
        return archived.facts(log.to_string()).map(Some).map_err(failed);
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

/// Drops the logs that end before the moment; the head of the first that is left.
pub(super) fn from_moment(
    logs: &mut Vec<LogPath>,
    keyring: Option<&Keyring>,
    moment: TableMoment,
) -> Result<Option<LogHead>> {
    let mut first = None;
    for (place, log) in logs.iter().enumerate().rev() {
        let head = LogHead::of(log, keyring)?;
        let is_before = head.is_before(moment);
        first = Some((place, head));
        if is_before {
            break;
        }
    }
    let Some((place, head)) = first else { return Ok(None) };
    logs.drain(..place);
    Ok(Some(head))
}

/// The server's own logs from the one on that has the moment, and the head of that one.
pub(super) fn of_server(connect: &ConnectOptions, moment: TableMoment) -> Result<(ServerLogs, LogHead)> {
    let names = list(connect)?.into_iter().map(|(name, _)| name).collect();
    let Some((names, head)) = from_last(names, connect, &|head| head.is_before(moment))? else {
        return Err(CommandFailure::of(&connect.server(), "has no binary log"));
    };
    // Its begin was read: the log comes once more.
    let first = names.first().map(String::as_str).unwrap_or_default();
    let logs = ServerLogs::open(connect, first, LOG_BEGIN);
    Ok((logs.map_err(|error| CommandFailure::of_server(&connect.server(), error))?, head))
}

/// A server's logs with their sizes, in order.
pub(in crate::cmd) fn list(connect: &ConnectOptions) -> Result<Vec<(String, u64)>> {
    const STATEMENT: &str = "SHOW BINARY LOGS";
    let server = connect.server();
    let rows = Connection::open(connect).and_then(|mut connection| connection.query(STATEMENT));
    // Their errors name the server themselves.
    let trouble = |error: binlogz_source::Error| CommandFailure::Line(error.to_string());
    let rows = rows.map_err(|error| CommandFailure::of_server(&server.to_string(), error))?;
    let log = |row| {
        let row = AnswerFields::first_of(&server, STATEMENT, vec![row])?;
        Ok((row.text(0)?.to_owned(), row.parsed(1, "a size in bytes")?))
    };
    rows.into_iter().map(log).collect::<binlogz_source::Result<_>>().map_err(trouble)
}

/// Reads the heads of a server's logs, from the last one back to the first for which `may_be_first` is true. Returns that
/// log and those after it, and its head. If it is true for none, all logs are returned.
pub(super) fn from_last(
    mut names: Vec<String>,
    connect: &ConnectOptions,
    may_be_first: &dyn Fn(&LogHead) -> bool,
) -> Result<Option<(Vec<String>, LogHead)>> {
    let trouble = |error: binlogz_source::Error| CommandFailure::of_server(&connect.server(), error);
    let mut first = None;
    for (place, name) in names.iter().enumerate().rev() {
        let logs = ServerLogs::open(connect, name, LOG_BEGIN).map_err(trouble)?;
        let Some((_, bytes)) = logs.next_log().map_err(trouble)? else { continue };
        let head = LogHead::read(bytes, name)?;
        let is_first = may_be_first(&head);
        first = Some((place, head));
        if is_first {
            break;
        }
    }
    let Some((place, head)) = first else { return Ok(None) };
    names.drain(..place);
    Ok(Some((names, head)))
}
