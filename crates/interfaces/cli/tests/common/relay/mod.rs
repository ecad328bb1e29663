//! A relay that runs beside real servers, configured by options or by a file; killed when dropped.
//!
//! * `start` starts it either way;
//! * `status` asks it over HTTP, and waits until it has all of the source's transactions;
//! * `clients` are MySQL's own programs and replicas that it serves;
//! * `files` compares what it keeps and sends with the source's files.

mod clients;
mod files;
mod ports;
mod start;
mod status;

use std::fs;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

pub(crate) use clients::{Running, client, sql};
pub(crate) use files::{is_kept, name};
pub(crate) use ports::reserved_port;
pub(crate) use start::{Configuration, url};

/// Two busy cores.
const PATIENCE: Duration = Duration::from_secs(120);

/// A relay that runs; killed when dropped.
pub(crate) struct Relay {
    pub(crate) child: Child,
    log: PathBuf,
    /// How much earlier relays had written to the log in this folder, in bytes.
    log_start: usize,
    pub(crate) port: u16,
    /// Where it answers over HTTP; empty for a relay configured by options.
    pub(crate) http: String,
    /// The password of the relay's accounts.
    password: &'static str,
}

impl Relay {
    /// All that it has logged.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap().split_off(self.log_start)
    }

    pub(crate) fn wait_for<T>(&mut self, what: &str, mut found: impl FnMut(&mut Relay) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(self) {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "no {what}: {ended:?}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Takes back the limit of [`Configuration::file_size_max`].
    pub(crate) fn may_write_any_size(&self) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        let pid = Pid::from_child(&self.child);
        prlimit(Some(pid), Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    }

    /// As a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
