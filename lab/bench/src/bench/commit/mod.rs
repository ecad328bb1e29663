//! `binlogz bench commit`: how many transactions a second a binary log takes, without a server around it.
//!
//! The study of inserts by connections and flush policy, without a server: the engine commits to a log of its
//! own on the user's disk. [`measure`] runs one cell, [`plot`] draws the curves.

mod measure;
mod plot;

use std::io::{self, BufWriter, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use binlogz_cli_common::Exit;
use binlogz_cli_common::failure::{CommandFailure, Result};
use binlogz_cli_common::format::TableFormat;
use binlogz_cli_common::terminal::SizesArg;
use binlogz_cli_common::units;
use binlogz_figures::{Section, TableCell as Figure};
use binlogz_payload::CompressionLevel;
use clap::Args;

use measure::{CommitResults, CommitSettings};

/// Measure commits a second against committers, flush policy and compression
///
/// Committers (threads) put transactions of one row into a binary log on this disk, with the engine that
/// binlogz writes logs with: mysqld's commit path without a server around it. Each line is one run; first
/// comes a bare loop that appends as many bytes and syncs, one transaction at a time.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Commit {
    /// Where the log is written during the run: the disk to measure
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Numbers of threads that commit at once
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = COMMITTERS,
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    committers: Vec<u32>,
    /// flush_log_at_commit: 1 synced at each commit, 2 written at each and synced once a second, 0 neither
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [0, 1, 2],
          value_parser = clap::value_parser!(u8).range(0..=2))]
    policies: Vec<u8>,
    /// Compression levels, or off
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values = ["off", "3"], value_parser = level)]
    levels: Vec<Level>,
    /// Bytes of a transaction's events, before compression
    #[arg(long, value_name = "BYTES", default_value_t = TRANSACTION_SIZE,
          value_parser = clap::value_parser!(u32).range(200..=1 << 20))]
    size: u32,
    /// How long each run takes: 5s, 1m, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = TIME, value_parser = time)]
    time: Duration,
    /// Output format
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,
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
struct Level(Option<CompressionLevel>);

fn level(text: &str) -> std::result::Result<Level, String> {
    match text {
        "off" => Ok(Level(None)),
        _ => match text.parse::<i64>() {
            Ok(level @ 1..=22) => Ok(Level(Some(CompressionLevel::clamped(level)))),
            _ => Err("expected off or 1 to 22".to_owned()),
        },
    }
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    const RANGE: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);
    match units::duration_or_seconds(text) {
        Ok(time) if RANGE.contains(&time) => Ok(time),
        _ => Err("expected 0.01 to 3600 seconds".to_owned()),
    }
}

impl Commit {
    pub(in crate::bench) fn run(self) -> Result<Exit> {
        let time = self.time;
        let failed = |error| CommandFailure::of(&self.dir.display(), error);
        let bare = measure::bare_loop(&self.dir, self.size, time).map_err(failed)?;
        let mut rows = Vec::new();
        for policy in self.policies.iter().copied() {
            for Level(level) in self.levels.iter().copied() {
                for committers in self.committers.iter().copied() {
                    let cell = CommitSettings { policy, level, committers };
                    let measured = measure::run(&self.dir, cell, self.size, time).map_err(failed)?;
                    rows.push((cell, measured));
                }
            }
        }
        let mut out = BufWriter::new(io::stdout().lock());
        let written = self.tell(&bare, &rows, &mut out).and_then(|()| out.flush());
        written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }

    fn tell(
        &self,
        bare: &CommitResults,
        rows: &[(CommitSettings, CommitResults)],
        out: &mut impl Write,
    ) -> io::Result<()> {
        let section = section(bare, rows);
        self.format.writer(SizesArg::default().layout()).write(&[section], out)?;
        match self.format {
            TableFormat::Table => plot::write(rows, out),
            TableFormat::Json | TableFormat::Csv => Ok(()),
        }
    }
}

fn section(bare: &CommitResults, rows: &[(CommitSettings, CommitResults)]) -> Section {
    let bare_row = vec![
        "bare loop".into(),
        Figure::Null,
        1u64.into(),
        whole(bare.commits_per_second()),
        Figure::decimal(1.0, 2),
        Figure::decimal(1.0, 3),
        micros(bare.percentile(0.5)),
        micros(bare.percentile(0.99)),
        micros(bare.max()),
        bare.bytes_per_commit().into(),
        Figure::Null,
    ];
    let row = |(cell, measured): &(CommitSettings, CommitResults)| {
        vec![
            format!("{}", cell.policy).into(),
            cell.compression().into(),
            u64::from(cell.committers).into(),
            whole(measured.commits_per_second()),
            Figure::decimal(measured.commits_per_second() / bare.commits_per_second().max(1e-9), 2),
            Figure::decimal(measured.syncs_per_commit(), 3),
            micros(measured.percentile(0.5)),
            micros(measured.percentile(0.99)),
            micros(measured.max()),
            measured.bytes_per_commit().into(),
            cell.published().map_or(Figure::Null, whole),
        ]
    };
    Section {
        name: "commits",
        title: "Commits to the log alone (published: MySQL's inserts by study 2, on a hard disk with 4 cores)",
        columns: &[
            "flush_log_at_commit",
            "level",
            "committers",
            "commits_per_second",
            "of_bare_loop",
            "syncs_per_commit",
            "p50_us",
            "p99_us",
            "max_us",
            "bytes_per_commit",
            "published",
        ],
        rows: std::iter::once(bare_row).chain(rows.iter().map(row)).collect(),
    }
}

fn micros(time: Duration) -> Figure {
    whole(time.as_secs_f64() * 1e6)
}

fn whole(figure: f64) -> Figure {
    Figure::Number(figure.round() as i128)
}
