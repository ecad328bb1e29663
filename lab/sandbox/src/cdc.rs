//! A change-data-capture client, as people run it: Python with mysql-replication, which silently loses the
//! rows of compressed transactions.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;

use crate::{Error, Result, Tool};

/// Prints the name of each event it is given, a line each.
const FOLLOW: &str = "\
import sys
from pymysqlreplication import BinLogStreamReader
settings = dict(host='127.0.0.1', port=int(sys.argv[1]), user=sys.argv[3], passwd=sys.argv[4])
begin = dict(log_file=sys.argv[5], log_pos=4, resume_stream=True) if len(sys.argv) > 5 else {}
for event in BinLogStreamReader(connection_settings=settings, server_id=int(sys.argv[2]), blocking=True, **begin):
    print(type(event).__name__, flush=True)
";

/// A client that follows a server's log. Gone when dropped, and with the server.
#[derive(Debug)]
pub struct CdcClient {
    process: Child,
    events: Arc<Mutex<Vec<String>>>,
    complaints: Arc<Mutex<Vec<String>>>,
}

impl CdcClient {
    /// Follows the log of a sandbox on a port of 127.0.0.1 from its beginning, with a server id of its own.
    pub fn follow(port: u16, server_id: u32) -> Result<CdcClient> {
        Self::begin(port, server_id, ("repl", "repl"), None)
    }

    /// Follows the log from the beginning of the file with this name, as if it had stored that place, as this user with
    /// this password.
    pub fn follow_file(port: u16, server_id: u32, account: (&str, &str), name: &str) -> Result<CdcClient> {
        Self::begin(port, server_id, account, Some(name))
    }

    fn begin(
        port: u16,
        server_id: u32,
        (user, password): (&str, &str),
        name: Option<&str>,
    ) -> Result<CdcClient> {
        let mut command = Tool::Cdc.find()?.command("python");
        command.args(["-c", FOLLOW, &port.to_string(), &server_id.to_string(), user, password]).args(name);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(|error| Error::Io("run python".into(), error))?;
        let events = process.stdout.take().map(collected).unwrap_or_default();
        let complaints = process.stderr.take().map(collected).unwrap_or_default();
        Ok(CdcClient { process, events, complaints })
    }

    /// The last line of its error output, once it has ended; it only ends on an error.
    pub fn trouble(&mut self) -> Option<String> {
        self.process.try_wait().ok().flatten()?;
        self.complaints.lock().last().cloned()
    }

    /// The names of the events it was given so far, as in `WriteRowsEvent`.
    pub fn events(&self) -> Vec<String> {
        self.events.lock().clone()
    }
}

/// The lines of a pipe, as they come.
fn collected(pipe: impl Read + Send + 'static) -> Arc<Mutex<Vec<String>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let collecting = Arc::clone(&lines);
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(std::result::Result::ok) {
            collecting.lock().push(line);
        }
    });
    lines
}

impl Drop for CdcClient {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
