//! A reader of the binary log, like a replica: counts the bytes received while a step runs.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use binlogz_source::wire::session::{ClientProfile, DumpStart};
use binlogz_source::{ConnectOptions, DumpOptions, RemoteLog};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::measure::counters::Snapshot;
use crate::server::session::ServerSession;

/// A server id that no replica is likely to have.
const SERVER_ID: u32 = 3_999_999_937;
/// Where a binary log's events begin.
const FIRST_EVENT: u64 = 4;
/// Before each event: the packet's header, and the OK byte.
const AROUND: u64 = 5;

/// A running reader.
pub(crate) struct RunningReader {
    thread: JoinHandle<Result<u64>>,
    /// The file whose first event ends its work.
    end: Arc<Mutex<Option<String>>>,
}

impl RunningReader {
    /// Follows the log from the beginning of a file.
    pub(crate) fn follow(connect: &ConnectOptions, log: &str) -> RunningReader {
        let end = Arc::new(Mutex::new(None));
        let connect = connect.clone();
        let log = log.to_owned();
        let known = Arc::clone(&end);
        RunningReader { thread: thread::spawn(move || count(&connect, log, &known)), end }
    }

    /// Lets it read up to here, and returns the bytes that it received.
    pub(crate) fn end(self, session: &mut ServerSession) -> Result<u64> {
        session.run("FLUSH BINARY LOGS")?;
        let snapshot = Snapshot::take(session, None)?;
        *self.end.lock() = snapshot.current_log().map(str::to_owned);
        // It may already be waiting after the new file's first event.
        session.run("CREATE DATABASE IF NOT EXISTS sbtest")?;
        self.thread.join().unwrap_or_else(|_| Err(Error::Load("the consumer failed".to_owned())))
    }
}

fn count(connect: &ConnectOptions, log: String, end: &Mutex<Option<String>>) -> Result<u64> {
    let dump = DumpOptions {
        profile: ClientProfile::Mysqlbinlog,
        server_id: SERVER_ID,
        start: DumpStart::Position { name: log, position: FIRST_EVENT },
        non_blocking: false,
        verify_checksums: false,
    };
    let mut remote = RemoteLog::open(connect, dump)?;
    let mut bytes = 0;
    while let Some(event) = remote.next_event()? {
        let end = end.lock();
        if end.as_deref().is_some_and(|end| end.as_bytes() == event.name) {
            break;
        }
        bytes += event.bytes.len() as u64 + AROUND;
    }
    Ok(bytes)
}
