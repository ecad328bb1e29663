//! The machine that the figures were measured on, and the server's settings that they depend on.

use std::fs;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::server::session::{ServerSession, column};

/// Variables that affect the size and the speed of a binary log.
const VARIABLES: [&str; 18] = [
    "version",
    "version_comment",
    "server_uuid",
    "binlog_format",
    "binlog_row_image",
    "binlog_checksum",
    "binlog_transaction_compression",
    "binlog_transaction_compression_level_zstd",
    "binlog_encryption",
    "gtid_mode",
    "sync_binlog",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
    "max_binlog_size",
    "max_connections",
    "collation_server",
];

/// The machine that binlogz ran on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's name for itself.
    pub processor: String,
    /// The number of processors that may be used.
    pub cores: usize,
    /// The number of disks.
    pub disks: usize,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// The kernel's release.
    pub kernel: String,
    /// Processes that waited for a processor when the run began, over a minute: how busy it was.
    pub load_average: f64,
}

/// The server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerMachine {
    /// The server's name, as the user gave it.
    pub name: String,
    /// Whether it was started only for this run.
    pub private: bool,
    /// Whether it ran on this machine, so that its processor time and memory could be seen.
    pub local: bool,
    /// Settings before the run: name, value.
    pub variables: Vec<(String, String)>,
}

impl Machine {
    pub(crate) fn this() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let field = |path: &str, name: &str| {
            let text = read(path);
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: available_parallelism().map_or(1, usize::from),
            disks: disks(),
            memory_bytes: memory.trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10,
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            load_average: read("/proc/loadavg")
                .split_whitespace()
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
        }
    }
}

/// Disks backed by a device: neither loops nor memory.
fn disks() -> usize {
    let disks = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    disks.filter(|disk| disk.path().join("device").exists()).count().max(1)
}

impl ServerMachine {
    pub(crate) fn ask(session: &mut ServerSession) -> Result<ServerMachine> {
        let list: Vec<String> = VARIABLES.iter().map(|name| format!("'{name}'")).collect();
        let rows =
            session.rows(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})", list.join(", ")))?;
        let variables =
            rows.iter().map(|row| (column(row, 0).to_owned(), column(row, 1).to_owned())).collect();
        Ok(ServerMachine { variables, ..ServerMachine::default() })
    }

    /// A variable's value; empty if the server has none of that name.
    pub fn variable(&self, name: &str) -> &str {
        self.variables.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }
}
