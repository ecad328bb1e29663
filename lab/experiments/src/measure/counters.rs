//! The cost of a step: the server's own counters before and after it, and the difference. Nothing is truncated.
//!
//! ```text
//! SHOW BINARY LOGS                                            bytes of the log, all files that the step wrote
//! SHOW GLOBAL STATUS                                          bytes on the network
//! performance_schema.binary_log_transaction_compression_stats what was compressed
//! …events_stages_summary_global_by_event_name                 time of compressing and expanding
//! …file_summary_by_event_name                                 time and bytes of the binary log's I/O
//! /proc/PID/stat, status, io                                  processor time, memory, disk; servers on this machine
//! ```

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::server::session::{STAGES, ServerSession, column, number};

const PICOSECONDS: f64 = 1e12;
/// /proc counts processor time in hundredths of a second, whatever the kernel's tick.
const TICKS: f64 = 100.0;

/// The counters at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// The binary log's files, in order: name, size.
    logs: Vec<(String, u64)>,
    sent: u64,
    received: u64,
    /// Log type and compression type: transactions, compressed bytes, uncompressed bytes.
    compression: BTreeMap<(String, String), [u64; 3]>,
    /// Picoseconds of compressing and expanding; `None`: not timed.
    stages: Option<[u64; 2]>,
    /// Operations, picoseconds, bytes written.
    binlog_io: Option<[u64; 3]>,
    process: Option<Process>,
}

/// A server's process.
#[derive(Debug, Clone, Copy, Default)]
struct Process {
    ticks: u64,
    memory: u64,
    disk: Option<u64>,
}

/// A step's cost to the server. `None`: unknown on this server, for this account, or from this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepCost {
    /// Bytes of all files of the binary log that the step wrote.
    pub binlog_bytes: u64,
    /// The number of these files.
    pub binlog_files: u64,
    /// Bytes that the server sent, to all its clients.
    pub sent_bytes: u64,
    /// Bytes that it received.
    pub received_bytes: u64,
    /// Seconds of processor time.
    pub server_cpu_s: Option<f64>,
    /// Bytes of memory that the server held at the end of the step.
    pub server_memory_bytes: Option<u64>,
    /// Bytes that it wrote to disk.
    pub disk_bytes: Option<u64>,
    /// Rows of `binary_log_transaction_compression_stats`.
    pub compression: Vec<CompressionRow>,
    /// Seconds of the stage "Compressing transaction changes."
    pub compressing_s: Option<f64>,
    /// Seconds of the stage "Decompressing transaction changes."
    pub expanding_s: Option<f64>,
    /// Operations on the binary log's files (`wait/io/file/sql/binlog`).
    pub binlog_io_count: Option<u64>,
    /// Seconds that these operations took.
    pub binlog_io_s: Option<f64>,
    /// Bytes that they wrote.
    pub binlog_io_bytes: Option<u64>,
}

/// A row of the server's statistics, of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompressionRow {
    /// BINARY or RELAY.
    pub log_type: String,
    /// ZSTD or NONE.
    pub compression_type: String,
    /// Transactions.
    pub transactions: u64,
    /// Bytes of the transactions in the log, without events around them.
    pub compressed_bytes: u64,
    /// Bytes of the transactions before compression.
    pub uncompressed_bytes: u64,
}

impl Snapshot {
    pub(crate) fn take(session: &mut ServerSession, pid: Option<u32>) -> Result<Snapshot> {
        let mut snapshot = Snapshot { process: pid.and_then(process), ..Snapshot::default() };
        let logs = session.rows("SHOW BINARY LOGS")?;
        snapshot.logs = logs.iter().map(|row| (column(row, 0).to_owned(), number(row, 1))).collect();
        let status =
            session.rows("SHOW GLOBAL STATUS WHERE Variable_name IN ('Bytes_received', 'Bytes_sent')")?;
        for row in &status {
            match column(row, 0) {
                "Bytes_sent" => snapshot.sent = number(row, 1),
                _ => snapshot.received = number(row, 1),
            }
        }
        // Without the right to read these they stay unknown.
        let rows = session.rows(
            "SELECT LOG_TYPE, COMPRESSION_TYPE, TRANSACTION_COUNTER, COMPRESSED_BYTES_COUNTER, \
             UNCOMPRESSED_BYTES_COUNTER FROM performance_schema.binary_log_transaction_compression_stats",
        );
        for row in rows.unwrap_or_default() {
            let figures = [number(&row, 2), number(&row, 3), number(&row, 4)];
            snapshot.compression.insert((column(&row, 0).to_owned(), column(&row, 1).to_owned()), figures);
        }
        snapshot.stages = stages(session);
        snapshot.binlog_io = binlog_io(session);
        Ok(snapshot)
    }

    /// The file that is written now.
    pub(crate) fn current_log(&self) -> Option<&str> {
        self.logs.last().map(|(name, _)| name.as_str())
    }

    /// The files written since: the one that was current then, and those after it, with their sizes now.
    pub(crate) fn logs_since(&self, before: &Snapshot) -> Vec<(String, u64)> {
        let Some(first) = before.current_log() else { return Vec::new() };
        self.logs.iter().skip_while(|(name, _)| name != first).cloned().collect()
    }

    /// The difference since then.
    pub(crate) fn since(&self, before: &Snapshot) -> StepCost {
        let logs = self.logs_since(before);
        let [compressing, expanding] = match (self.stages, before.stages) {
            (Some(now), Some(then)) => {
                [0, 1].map(|place| Some(difference(&now, &then, place) as f64 / PICOSECONDS))
            }
            _ => [None, None],
        };
        let io = self.binlog_io.zip(before.binlog_io);
        let io = |place: usize| io.map(|(now, then)| difference(&now, &then, place));
        let processes = self.process.zip(before.process);
        StepCost {
            binlog_bytes: logs.iter().map(|(_, size)| size).sum(),
            binlog_files: logs.len() as u64,
            sent_bytes: self.sent.saturating_sub(before.sent),
            received_bytes: self.received.saturating_sub(before.received),
            server_cpu_s: processes.map(|(now, then)| now.ticks.saturating_sub(then.ticks) as f64 / TICKS),
            server_memory_bytes: self.process.map(|process| process.memory),
            disk_bytes: processes
                .and_then(|(now, then)| Some(now.disk?.saturating_sub(then.disk.unwrap_or_default()))),
            compression: self.compression_since(before),
            compressing_s: compressing,
            expanding_s: expanding,
            binlog_io_count: io(0),
            binlog_io_s: io(1).map(|picoseconds| picoseconds as f64 / PICOSECONDS),
            binlog_io_bytes: io(2),
        }
    }

    fn compression_since(&self, before: &Snapshot) -> Vec<CompressionRow> {
        let rows = self.compression.iter().map(|(key, now)| {
            let then = before.compression.get(key).copied().unwrap_or_default();
            CompressionRow {
                log_type: key.0.clone(),
                compression_type: key.1.clone(),
                transactions: difference(now, &then, 0),
                compressed_bytes: difference(now, &then, 1),
                uncompressed_bytes: difference(now, &then, 2),
            }
        });
        rows.filter(|row| row.transactions > 0).collect()
    }
}

/// Counters that were reset in between count from zero.
fn difference(now: &[u64], then: &[u64], place: usize) -> u64 {
    let of = |counters: &[u64]| counters.get(place).copied().unwrap_or_default();
    of(now).checked_sub(of(then)).unwrap_or(of(now))
}

fn stages(session: &mut ServerSession) -> Option<[u64; 2]> {
    let sum = |stage: &str| {
        format!(
            "(SELECT SUM(SUM_TIMER_WAIT) FROM performance_schema.events_stages_summary_global_by_event_name \
             WHERE EVENT_NAME = '{stage}')"
        )
    };
    let rows = session.rows(&format!("SELECT {}, {}", sum(STAGES[0]), sum(STAGES[1]))).ok()?;
    rows.first().map(|row| [number(row, 0), number(row, 1)])
}

fn binlog_io(session: &mut ServerSession) -> Option<[u64; 3]> {
    let rows = session.rows(
        "SELECT COUNT_STAR, SUM_TIMER_WAIT, SUM_NUMBER_OF_BYTES_WRITE FROM \
         performance_schema.file_summary_by_event_name WHERE EVENT_NAME = 'wait/io/file/sql/binlog'",
    );
    rows.ok()?.first().map(|row| [0, 1, 2].map(|place| number(row, place)))
}

/// Times the stages from now on; `false`: this account may not.
pub(crate) fn time_stages(session: &mut ServerSession) -> bool {
    let [compressing, expanding] = STAGES;
    let statement = format!(
        "UPDATE performance_schema.setup_instruments SET ENABLED = 'YES', TIMED = 'YES' \
         WHERE NAME IN ('{compressing}', '{expanding}')"
    );
    session.run(&statement).is_ok()
}

fn process(pid: u32) -> Option<Process> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let memory = read("status")?.lines().find_map(|line| line.strip_prefix("VmRSS:").and_then(kilobytes))?;
    // Only the owner and root can see written bytes.
    let disk = read("io").and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("write_bytes:")?.trim().parse().ok())
    });
    Some(Process { ticks: ticks(&read("stat")?)?, memory, disk })
}

/// The 14th and 15th field; the second is a name in brackets, which may hold blanks.
fn ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

fn kilobytes(text: &str) -> Option<u64> {
    text.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(logs: &[(&str, u64)]) -> Snapshot {
        let logs = logs.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        Snapshot { logs, ..Snapshot::default() }
    }

    #[test]
    fn all_files_of_a_step_count() {
        let before = logs(&[("binlog.1", 500), ("binlog.2", 157)]);
        let after = logs(&[("binlog.1", 500), ("binlog.2", 1000), ("binlog.3", 70)]);
        let cost = after.since(&before);
        assert_eq!((cost.binlog_bytes, cost.binlog_files), (1070, 2));
    }

    #[test]
    fn only_what_was_added_to_counters_counts_also_after_a_reset() {
        let key = || ("BINARY".to_owned(), "ZSTD".to_owned());
        let before = Snapshot { compression: [(key(), [10, 100, 200])].into(), ..Snapshot::default() };
        for (now, transactions, bytes) in [([13, 160, 300], 3, 60), ([2, 20, 30], 2, 20)] {
            let after = Snapshot { compression: [(key(), now)].into(), ..Snapshot::default() };
            let cost = after.since(&before);
            assert_eq!(cost.compression[0].transactions, transactions);
            assert_eq!(cost.compression[0].compressed_bytes, bytes);
        }
    }

    #[test]
    fn processor_time_is_found_behind_any_name() {
        let stat = "7 (my (sql) d) S 1 7 7 0 -1 4194560 11 12 13 14 150 50 3 4 20 0";
        assert_eq!(ticks(stat), Some(200));
        assert!(process(std::process::id()).is_some_and(|process| process.memory > 0));
    }
}
