//! The last logs of a server, read as mysqlbinlog reads them: nothing changes there.
//!
//! ```text
//! SHOW REPLICA STATUS    is it a source? then a replica is the better place to ask
//! SHOW BINARY LOGS       names and sizes; the last of them are read
//! COM_BINLOG_DUMP        each, from its beginning; without its encryption, which the server takes off
//! ```

use std::fmt;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use binlogz_flow::Input;
use binlogz_source::{ConnectOptions, Connection, DumpOptions, RemoteFiles};

use crate::failure::{CommandFailure, Result, warn};

/// Where a binary log's events begin.
const FIRST_EVENT: u64 = 4;

/// A log of a server.
#[derive(Debug, Clone)]
pub(in crate::cmd) struct SampledServerLog {
    /// Options of the connection, shared by all logs of the server.
    connect: Arc<ConnectOptions>,
    name: String,
    pub(super) size: u64,
    /// The server's version.
    pub(super) version: Option<Arc<str>>,
    /// Bytes a second.
    rate_max: Option<u64>,
}

impl fmt::Display for SampledServerLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.connect.server(), self.name)
    }
}

/// Without a number of logs: the one that is written, the one before it, and as many more as make this many bytes. A
/// server that was just restarted has logs of a few hundred bytes.
const LAST_MIN: usize = 2;
const LAST_BYTES: u64 = 64 << 20;

/// All logs of a server, the oldest first.
pub(in crate::cmd) fn all_logs(
    connect: ConnectOptions,
    rate_max: Option<u64>,
) -> Result<Vec<SampledServerLog>> {
    let connect = Arc::new(connect);
    let mut connection =
        Connection::open(&connect).map_err(|error| CommandFailure::of_server(&connect.server(), error))?;
    listed(&mut connection, &connect, rate_max)
}

/// The logs that a server lists.
fn listed(
    connection: &mut Connection,
    connect: &Arc<ConnectOptions>,
    rate_max: Option<u64>,
) -> Result<Vec<SampledServerLog>> {
    let version: Option<Arc<str>> =
        connection.greeting().map(|greeting| greeting.server_version.as_str().into());
    let rows = connection
        .query("SHOW BINARY LOGS")
        .map_err(|error| CommandFailure::of_server(&connect.server(), error))?;
    let mut logs = Vec::new();
    for row in rows {
        let column = |index: usize| Some(String::from_utf8_lossy(row.get(index)?.as_deref()?).into_owned());
        let log = column(0).zip(column(1).and_then(|size| size.parse().ok()));
        let (name, size) = log.ok_or_else(|| {
            CommandFailure::of(&connect.server(), "SHOW BINARY LOGS has no name and size, expected both")
        })?;
        let connect = Arc::clone(connect);
        logs.push(SampledServerLog { connect, name, size, version: version.clone(), rate_max });
    }
    Ok(logs)
}

/// The last logs of a server, the oldest first: `count` of them, or enough to tell from.
pub(super) fn last_logs(
    connect: ConnectOptions,
    count: Option<NonZeroUsize>,
    rate_max: Option<u64>,
) -> Result<Vec<SampledServerLog>> {
    let connect = Arc::new(connect);
    let trouble = |error| CommandFailure::of_server(&connect.server(), error);
    let mut connection = Connection::open(&connect).map_err(trouble)?;
    // An account without the right to ask gets the advice, too.
    let replicates = connection.query("SHOW REPLICA STATUS").is_ok_and(|rows| !rows.is_empty());
    let mut logs = listed(&mut connection, &connect, rate_max)?;
    if let Some(count) = count.filter(|count| count.get() > logs.len()) {
        let there = logs.len();
        warn(&format!("--last {count}: {} has {there} logs, all of which are read", connect.server()));
    }
    let count = count.map_or_else(|| enough(logs.iter().map(|log| log.size)), NonZeroUsize::get);
    let logs = logs.split_off(logs.len().saturating_sub(count));
    if !replicates {
        let bytes: u64 = logs.iter().map(|log| log.size).sum();
        warn(&format!(
            "{} is no replica: up to {bytes} bytes are read from it; a replica's own binary log gives the same \
             answer without that, and --max-rate spreads it",
            connect.server()
        ));
    }
    Ok(logs)
}

/// The number of last logs, of these sizes, that are enough to measure.
fn enough(sizes: impl DoubleEndedIterator<Item = u64>) -> usize {
    let mut bytes = 0;
    let before_enough = sizes.rev().take_while(|size| {
        let more = bytes < LAST_BYTES;
        bytes += size;
        more
    });
    before_enough.count().max(LAST_MIN)
}

impl SampledServerLog {
    /// The server, as errors name it.
    pub(super) fn server(&self) -> String {
        self.connect.server()
    }

    /// The log's name at the server.
    pub(in crate::cmd) fn name(&self) -> &str {
        &self.name
    }

    /// Begins to receive it.
    pub(in crate::cmd) fn open(&self) -> Result<Input> {
        let dump = DumpOptions::to_the_end(&self.name, FIRST_EVENT);
        let files =
            RemoteFiles::open(&self.connect, dump).map_err(|error| CommandFailure::of(self, error))?;
        let reader = LogReader { files, begun: false };
        Ok(Input::Stream(match self.rate_max {
            Some(rate_max) => Box::new(PacedReader { reader, rate_max, begin: Instant::now(), bytes: 0 }),
            None => Box::new(reader),
        }))
    }
}

/// The bytes of one log.
struct LogReader {
    files: RemoteFiles,
    begun: bool,
}

impl Read for LogReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.begun {
            self.files.next_file().map_err(io::Error::other)?;
            self.begun = true;
        }
        match self.files.current_file() {
            Some(mut file) => file.read(buffer),
            None => Ok(0),
        }
    }
}

/// A reader with a limited rate.
struct PacedReader {
    reader: LogReader,
    rate_max: u64,
    begin: Instant,
    bytes: u64,
}

impl Read for PacedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let due = Duration::from_secs_f64(self.bytes as f64 / self.rate_max as f64);
        thread::sleep(due.saturating_sub(self.begin.elapsed()));
        let count = self.reader.read(buffer)?;
        self.bytes += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_a_few_bytes_are_not_enough() {
        assert_eq!(enough([LAST_BYTES, LAST_BYTES, LAST_BYTES].into_iter()), LAST_MIN);
        assert_eq!(enough([LAST_BYTES, 5_600_000, 200, 533].into_iter()), 4);
        assert_eq!(enough([LAST_BYTES, LAST_BYTES, 200, 533].into_iter()), 3);
        assert_eq!(enough([733].into_iter()), LAST_MIN);
    }
}
