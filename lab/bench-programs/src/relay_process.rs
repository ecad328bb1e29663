//! A relay in a process of its own, for programs that measure it: started, asked for its metrics and its figures in /proc, and
//! killed when dropped, as a crash would.

// Each program uses some of it.
#![allow(dead_code)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) type RelayFailure = Box<dyn std::error::Error + Send + Sync>;

const PATIENCE: Duration = Duration::from_secs(300);
const TICK: Duration = Duration::from_millis(20);
/// Kernel ticks in a second, as Linux has it everywhere.
const TICKS: f64 = 100.0;

/// A relay; killed when dropped.
pub(crate) struct RelayProcess {
    child: Child,
    pub(crate) port: u16,
    http: String,
}

impl RelayProcess {
    /// Starts one of this name in a folder, and waits until it serves.
    pub(crate) fn start(
        binlogz: &str,
        folder: &Path,
        name: &str,
        config: &str,
    ) -> Result<RelayProcess, RelayFailure> {
        let path = folder.join(format!("{name}.toml"));
        let log = folder.join(format!("{name}.log"));
        fs::write(&path, config)?;
        let child = Command::new(binlogz)
            .args(["relay", "run", "--config"])
            .arg(&path)
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()?;
        let mut relay = RelayProcess { child, port: 0, http: String::new() };
        let until = Instant::now() + PATIENCE;
        loop {
            let said = fs::read_to_string(&log)?;
            let after = |what: &str| said.lines().find_map(|line| Some(line.split_once(what)?.1.to_owned()));
            if let (Some(port), Some(http)) = (after("listening on 127.0.0.1:"), after("status on http://")) {
                (relay.port, relay.http) = (port.parse()?, http.trim_end_matches('/').to_owned());
                if relay.metrics().is_ok() {
                    return Ok(relay);
                }
            }
            if Instant::now() > until || relay.child.try_wait()?.is_some() {
                return Err(format!("the relay {name} did not begin: {said}").into());
            }
            thread::sleep(TICK);
        }
    }

    fn metrics(&self) -> Result<String, RelayFailure> {
        let mut stream = TcpStream::connect(&self.http)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", self.http)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Waits until the logs of these sources are durable up to this number of a file and this offset.
    pub(crate) fn has(&self, ends: &[(String, f64, u64)]) -> Result<(), RelayFailure> {
        let until = Instant::now() + PATIENCE;
        loop {
            let text = self.metrics()?;
            let value = |name: &str, source: &str| -> Option<f64> {
                let line = match source {
                    "" => format!("binlogz_relay_{name} "),
                    source => format!("binlogz_relay_{name}{{source=\"{source}\"}} "),
                };
                text.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok())
            };
            let lacks = ends.iter().find(|(source, file, offset)| {
                value("durable_file", source) != Some(*file)
                    || value("durable_position", source) != Some(*offset as f64)
            });
            let Some((source, file, offset)) = lacks else { return Ok(()) };
            if Instant::now() > until {
                return Err(format!("{source} is not here up to {file} at {offset}").into());
            }
            thread::sleep(TICK);
        }
    }

    /// A number of /proc/PID/status.
    pub(crate) fn status(&self, key: &str) -> Result<f64, RelayFailure> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let value = status.lines().find_map(|line| line.strip_prefix(key)).ok_or("no such figure")?;
        Ok(value.split_whitespace().next().unwrap_or_default().parse()?)
    }

    /// How often its threads gave the processor away by themselves.
    pub(crate) fn switches(&self) -> Result<f64, RelayFailure> {
        let mut all = 0.0;
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let Ok(status) = fs::read_to_string(task?.path().join("status")) else { continue };
            let value = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            all += value.unwrap_or_default().trim().parse().unwrap_or(0.0);
        }
        Ok(all)
    }

    /// Seconds of processor time.
    pub(crate) fn cpu(&self) -> Result<f64, RelayFailure> {
        cpu_of(self.child.id())
    }
}

/// Seconds of processor time that a process took.
pub(crate) fn cpu_of(pid: u32) -> Result<f64, RelayFailure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    Ok((ticks(11) + ticks(12)) / TICKS)
}

impl Drop for RelayProcess {
    fn drop(&mut self) {
        // As a crash would. It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
