//! The first events of logs: they tell which logs may have changes after a moment, or certain transactions.

use std::io::{BufReader, Read};

use binlogz_binlog::event::{AnyGtidEvent, PreviousGtidsEvent};
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{Error as LogError, EventFrame, EventReader, EventType};
use binlogz_flow::is_outside_transactions;
use binlogz_source::{AnswerFields, ConnectOptions, Connection, Error as ServerError};

use super::moment::{PastMoment, TableMoment};
use crate::apply::ServerLogs;

/// Where a log of a server begins: after the magic.
pub const LOG_BEGIN: u64 = 4;

/// A reason for which the first events of a log can't be read.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    /// The log's bytes; the line names it.
    #[error("{0}")]
    Log(String),
    /// The server that has it.
    #[error(transparent)]
    Server(#[from] ServerError),
}

/// The facts in the first events of a log.
#[derive(Debug, Clone)]
pub struct LogHead {
    /// The time at which its server began the log, in seconds since 1970: the statement that made it do so began then. Others may have committed
    /// after that into the log before it.
    pub created: u32,
    /// All transactions before it.
    pub previous: GtidSet,
    /// The time at which its first transaction was committed (in old logs, began), in microseconds since 1970. `None`: it has none yet.
    pub first_commit: Option<i64>,
}

impl LogHead {
    /// Whether the moment comes after the log's begin.
    pub fn is_before(&self, moment: TableMoment) -> bool {
        match moment {
            TableMoment::After(gtid) => !self.previous.contains(&gtid),
            // A transaction of the second in which it was created may be in the log before it. So may be later ones, up to its own first.
            TableMoment::Before(end) => {
                self.was_there_at(end) && self.first_commit.is_some_and(|first| first < end)
            }
        }
    }

    /// Whether the second in which it was created is over at a time in microseconds since 1970.
    pub fn was_there_at(&self, time: i64) -> bool {
        (i64::from(self.created) + 1) * 1_000_000 <= time
    }

    /// Whether the moment is a time before the log's begin.
    pub fn begins_after(&self, moment: TableMoment) -> bool {
        match moment {
            TableMoment::After(_) => false,
            TableMoment::Before(end) => i64::from(self.created) * 1_000_000 > end,
        }
    }

    /// Whether a moment of either kind comes after the log's begin. One that comes at its begin may come before an earlier log that has no
    /// transactions but such without GTIDs.
    pub fn comes_before(&self, moment: &PastMoment) -> bool {
        match moment {
            PastMoment::InLog(moment) => self.is_before(*moment),
            PastMoment::Executed(set) => self.follows_only(set) && !set.is_subset(&self.previous),
        }
    }

    /// Whether one of these transactions came before it.
    pub fn follows_any(&self, gtids: &GtidSet) -> bool {
        !self.previous.is_disjoint(gtids)
    }

    /// Whether all that came before it is among these transactions.
    pub fn follows_only(&self, gtids: &GtidSet) -> bool {
        self.previous.is_subset(gtids)
    }

    /// Whether nothing came before it.
    pub fn is_first(&self) -> bool {
        self.previous.is_empty()
    }

    /// Whether nothing came before a server's log of this name, without GTIDs either: only its number tells that.
    pub fn is_first_of_server(&self, name: &str) -> bool {
        let number = name.rsplit_once('.').and_then(|(_, number)| number.parse::<u64>().ok());
        self.is_first() && number == Some(1)
    }

    /// Reads the first events of the log that is called `name`.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read.
    pub fn read(bytes: impl Read, name: &str) -> Result<LogHead, HeadError> {
        let mut events = EventReader::new(BufReader::new(bytes));
        let bad = |error: LogError| match error.offset() {
            Some(_) => HeadError::Log(format!("{name} {error}")),
            None => HeadError::Log(format!("{name}: {error}")),
        };
        let mut head = LogHead { created: 0, previous: GtidSet::new(), first_commit: None };
        // A format description, then what came before, then the first transaction.
        loop {
            let frame = match events.next_event() {
                Ok(Some((_, frame))) => frame,
                // A log in use, or a copy of one, may end inside an event: it has no whole transaction.
                Ok(None) => return Ok(head),
                Err(error) if error.is_truncation() && head.created > 0 => return Ok(head),
                Err(error) => return Err(bad(error)),
            };
            let event_type = frame.header().event_type;
            if event_type == EventType::FORMAT_DESCRIPTION {
                head.created = frame.header().timestamp;
            } else if event_type == EventType::PREVIOUS_GTIDS {
                head.previous = PreviousGtidsEvent::decode_frame(&frame).map_err(bad)?.gtid_set;
            } else if !is_outside_transactions(event_type) {
                head.first_commit = Some(committed(&frame).map_err(bad)?);
                return Ok(head);
            }
        }
    }
}

/// The time of the commit of the transaction that begins with this event, in microseconds since 1970: on this server or, if that was later, on
/// the one that had it first.
fn committed(first: &EventFrame<'_>) -> Result<i64, LogError> {
    let event = AnyGtidEvent::decode_frame(first)?;
    let times = event.as_ref().and_then(AnyGtidEvent::commit_timestamps);
    let time = times.map(|times| times.original.unwrap_or_default().max(times.immediate));
    let time = time.filter(|time| *time > 0).and_then(|time| i64::try_from(time).ok());
    Ok(time.unwrap_or(i64::from(first.header().timestamp) * 1_000_000))
}

/// A server's logs with their sizes in bytes, in order.
///
/// # Errors
///
/// A server that can't be asked.
pub fn server_logs(connect: &ConnectOptions) -> Result<Vec<(String, u64)>, ServerError> {
    const STATEMENT: &str = "SHOW BINARY LOGS";
    let server = connect.server();
    let rows = Connection::open(connect).and_then(|mut connection| connection.query(STATEMENT))?;
    let log = |row| {
        let row = AnswerFields::first_of(&server, STATEMENT, vec![row])?;
        Ok((row.text(0)?.to_owned(), row.parsed(1, "a size in bytes")?))
    };
    rows.into_iter().map(log).collect()
}

/// Reads the heads of a server's logs, from the last one back to the first for which `may_be_first` is true. Returns that
/// log and those after it, and its head. If it is true for none, all logs are returned.
///
/// # Errors
///
/// A log that can't be read.
pub fn from_last_head(
    mut names: Vec<String>,
    connect: &ConnectOptions,
    may_be_first: &dyn Fn(&LogHead) -> bool,
) -> Result<Option<(Vec<String>, LogHead)>, HeadError> {
    let mut first = None;
    for (place, name) in names.iter().enumerate().rev() {
        let logs = ServerLogs::open(connect, name, LOG_BEGIN)?;
        let Some((_, bytes)) = logs.next_log()? else { continue };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Times of old logs are whole seconds: of its first transaction's second, the log before it may have some as well.
    #[test]
    fn a_log_whose_first_commit_is_at_the_moment_may_not_have_all_since() {
        let head = LogHead { created: 100, previous: GtidSet::new(), first_commit: Some(105_000_000) };
        assert!(!head.is_before(TableMoment::Before(105_000_000)));
        assert!(head.is_before(TableMoment::Before(105_000_001)));
        assert!(!head.was_there_at(100_999_999));
        assert!(head.was_there_at(101_000_000));
    }
}
