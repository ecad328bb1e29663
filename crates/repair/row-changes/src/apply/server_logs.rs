//! A server's own binary logs, from one on to the end, as inputs of a pass.

use std::io::{self, Read};
use std::sync::Arc;

use binlogz_source::{ConnectOptions, DumpOptions, Error as ServerError, RemoteFiles};
use parking_lot::Mutex;

/// The bytes of a log, as they come.
pub type LogBytes = Box<dyn Read + Send>;

/// A server's own binary logs, from one on to the end, as inputs of a pass.
pub struct ServerLogs(Arc<Mutex<RemoteFiles>>);

impl std::fmt::Debug for ServerLogs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ServerLogs").finish_non_exhaustive()
    }
}

impl ServerLogs {
    /// The logs from a position in one of them on, up to where they end now.
    ///
    /// # Errors
    ///
    /// A server that can't be reached.
    pub fn open(connect: &ConnectOptions, log: &str, position: u64) -> Result<Self, ServerError> {
        let dump = DumpOptions { verify_checksums: true, ..DumpOptions::to_the_end(log, position) };
        Ok(ServerLogs(Arc::new(Mutex::new(RemoteFiles::open(connect, dump)?))))
    }

    /// The next log's name and bytes; the rest of the one before it is skipped.
    ///
    /// # Errors
    ///
    /// The server refuses it.
    pub fn next_log(&self) -> Result<Option<(String, LogBytes)>, ServerError> {
        let mut files = self.0.lock();
        let Some(file) = files.next_file()? else { return Ok(None) };
        let name = String::from_utf8_lossy(file.name()).into_owned();
        Ok(Some((name, Box::new(LogReader(Arc::clone(&self.0))))))
    }
}

/// The bytes of the current log.
struct LogReader(Arc<Mutex<RemoteFiles>>);

impl Read for LogReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().current_file().map_or(Ok(0), |mut file| file.read(buffer))
    }
}
