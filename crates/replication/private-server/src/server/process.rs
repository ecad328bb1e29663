//! A server process and its directory: started, waited for until it accepts connections, never left behind.
//!
//! Dropping a [`ServerProcess`] kills the server. A [`ServerGuard`], a small shell in a process group of its own, does the
//! same should this process end without dropping anything: it waits on a pipe that only this process holds.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::{Error, IoContext, Result};

/// A server on two busy cores needs seconds; after a crash with large logs, tens of seconds.
const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);

/// The words that MySQL and MariaDB alike write to the error log when they accept connections.
const READY: &str = "ready for connections";
/// The words that they write when another program took the port.
const PORT_TAKEN: &str = "Can't start server: Bind on TCP/IP port";

/// Notes the last process id its input names; at the end of input kills that one and removes directory $1.
const GUARD: &str = r#"
    while read -r next; do server=$next; done
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
    rm -rf "$1"
"#;

/// Ends a server and removes its directory with this process, however that ends.
#[derive(Debug)]
pub(super) struct ServerGuard {
    shell: Child,
}

impl ServerGuard {
    pub(super) fn new(dir: &Path) -> Result<ServerGuard> {
        let shell = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| Error::Io("run sh".into(), error))?;
        Ok(ServerGuard { shell })
    }

    /// Names the server to end, or none: its id may soon be another process's.
    fn watch(&self, server: Option<u32>) {
        if let Some(mut stdin) = self.shell.stdin.as_ref() {
            let id = server.map(|id| id.to_string()).unwrap_or_default();
            // Without a guard a server may outlive a killed test: no reason to fail this one.
            let _ = writeln!(stdin, "{id}");
        }
    }
}

impl Drop for ServerGuard {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[derive(Debug)]
pub(super) struct ServerProcess {
    server: Child,
    guard: Arc<ServerGuard>,
}

impl ServerProcess {
    /// Starts a server that logs to `log`, and waits until it is ready; `None`: its port was taken by then.
    pub(super) fn start(
        mut command: Command,
        log: &Path,
        guard: &Arc<ServerGuard>,
    ) -> Result<Option<ServerProcess>> {
        let log_start = fs::metadata(log).map_or(0, |metadata| metadata.len() as usize);
        let output = fs::OpenOptions::new().create(true).append(true).open(log).at("open", log)?;
        let errors = output.try_clone().at("open", log)?;
        let server = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| Error::Io(format!("run {:?}", command.get_program()), error))?;
        guard.watch(Some(server.id()));
        let mut process = ServerProcess { server, guard: Arc::clone(guard) };

        let deadline = Instant::now() + START_MAX;
        loop {
            let exited = process.server.try_wait().at("wait for server that logs to", log)?;
            let bytes = fs::read(log).at("read", log)?;
            let said = String::from_utf8_lossy(bytes.get(log_start..).unwrap_or_default()).into_owned();
            if exited.is_some() && said.contains(PORT_TAKEN) {
                return Ok(None);
            }
            if exited.is_some() || Instant::now() > deadline {
                let how = exited.map_or("is not ready in time".into(), |status| format!("ended: {status}"));
                return Err(Error::Failed(format!("{:?} {how}\n{said}", command.get_program())));
            }
            if said.contains(READY) {
                return Ok(Some(process));
            }
            sleep(POLL);
        }
    }

    pub(super) fn id(&self) -> u32 {
        self.server.id()
    }

    /// Tells it to shut down by a signal.
    pub(super) fn terminate(&self) -> Result<()> {
        let mut command = Command::new("kill");
        command.args(["-TERM", &self.server.id().to_string()]);
        match command.status().map_err(|error| Error::Io("run kill".into(), error))? {
            status if status.success() => Ok(()),
            status => Err(Error::Failed(format!("end server {}: kill {status}", self.server.id()))),
        }
    }

    /// Waits for a server that was told to shut down.
    pub(super) fn wait(mut self) -> Result<()> {
        let deadline = Instant::now() + STOP_MAX;
        let failed = |error| Error::Io("wait for server".into(), error);
        while self.server.try_wait().map_err(failed)?.is_none() {
            if Instant::now() > deadline {
                return Err(Error::Failed("server did not shut down in time".into()));
            }
            sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may be gone already: then there is nothing left to kill.
        let _ = self.server.kill();
        let _ = self.server.wait();
        self.guard.watch(None);
    }
}

/// A port on 127.0.0.1 that is free now.
///
/// # Errors
///
/// There is none.
pub fn free_port() -> Result<u16> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Error::Io("find a free port".into(), error))
}
