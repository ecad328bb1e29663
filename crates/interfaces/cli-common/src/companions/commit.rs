//! `binlogz bench commit`: its options.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use binlogz_payload::CompressionLevel;
use clap::Args;

use crate::format::TableFormat;
use crate::units;

/// Measure commits a second against committers, flush policy and compression
///
/// Committers (threads) put transactions of one row into a binary log on this disk, with the engine that
/// binlogz writes logs with: mysqld's commit path without a server around it. Each line is one run; first
/// comes a bare loop that appends as many bytes and syncs, one transaction at a time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CommitArgs {
    /// Where the log is written during the run: the disk to measure
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Numbers of threads that commit at once
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = COMMITTERS,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub committers: Vec<u32>,
    /// flush_log_at_commit: 1 synced at each commit, 2 written at each and synced once a second, 0 neither
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [0, 1, 2],
          value_parser = clap::value_parser!(u8).range(0..=2))]
    pub policies: Vec<u8>,
    /// Compression levels, or off
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values = ["off", "3"], value_parser = level)]
    pub levels: Vec<CommitLevel>,
    /// Bytes of a transaction's events, before compression
    #[arg(long, value_name = "BYTES", default_value_t = TRANSACTION_SIZE,
          value_parser = clap::value_parser!(u32).range(200..=1 << 20))]
    pub size: u32,
    /// How long each run takes: 5s, 1m, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = TIME, value_parser = time)]
    pub time: Duration,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    pub format: TableFormat,
}

/// The numbers of committers in the published study of inserts, and 5,000.
const COMMITTERS: [u32; 10] = [1, 4, 5, 10, 50, 100, 200, 500, 1000, 5000];

/// The approximate size of one inserted row of a sysbench table.
const TRANSACTION_SIZE: u32 = 300;

/// Long enough for thousands of commits, short enough for sixty runs.
const TIME: &str = "1s";

const EXAMPLES: &str = "Examples:
  binlogz bench commit --dir /var/lib/mysql-test
  binlogz bench commit --committers 1,200 --policies 1 --time 5 --format json

The log is made in a temporary folder in --dir and removed again.";

/// A level, or none.
#[derive(Debug, Clone, Copy)]
pub struct CommitLevel(pub Option<CompressionLevel>);

fn level(text: &str) -> Result<CommitLevel, String> {
    match text {
        "off" => Ok(CommitLevel(None)),
        _ => match text.parse::<i64>() {
            Ok(level @ 1..=22) => Ok(CommitLevel(Some(CompressionLevel::clamped(level)))),
            _ => Err("expected off or 1 to 22".to_owned()),
        },
    }
}

fn time(text: &str) -> Result<Duration, String> {
    const RANGE: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);
    match units::duration_or_seconds(text) {
        Ok(time) if RANGE.contains(&time) => Ok(time),
        _ => Err("expected 0.01 to 3600 seconds".to_owned()),
    }
}
