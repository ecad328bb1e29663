//! `binlogz stats`: the contents of logs, in figures.

mod filter;

use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;

use binlogz_binlog::printable;
use binlogz_encryption::Keyring;
use binlogz_figures::{Section, wrapped};
use binlogz_flow::events::{self, RunSummary};
use binlogz_stats::{FileStats, Stats as Figures, StatsCollector, StatsFilter, StatsGrouping};
use clap::{Args, ValueEnum};

use super::workers;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, name_unread, warn, warn_cut};
use crate::format::TableFormat;
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::mariadb;
use crate::pager;
use crate::progress::WorkProgress;
use crate::terminal::TableArgs;
use crate::units;
use filter::StatsFilterArgs;

/// Count what binary logs hold: how well they compress, which tables change
///
/// A summary and the largest tables. With --all, for any files, the rows of
/// performance_schema.binary_log_transaction_compression_stats, and what the server can't tell: why transactions are not
/// compressed, figures by file, table and hour, the largest transactions. Several files are counted together.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsCommand {
    /// Show only the figures by this
    #[arg(long, value_enum)]
    by: Option<ByArg>,
    /// Show all figures, not the summary; JSON and CSV have all of them
    #[arg(long, conflicts_with = "by")]
    all: bool,
    #[command(flatten)]
    filter: StatsFilterArgs,
    /// Number of the largest tables and transactions to show [default: 5; 10 with --all; all tables with --by table]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top: Option<u16>,
    /// Output format; csv without --by has the server's rows alone
    #[arg(long, value_enum, default_value_t = TableFormat::Table)]
    format: TableFormat,
    /// Decode every value of every row, to find damaged values
    #[arg(long)]
    values: bool,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    keyring: KeyringArg,
    /// Binary logs or relay logs; - is standard input
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<LogPath>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ByArg {
    /// Each file
    File,
    /// Each table
    Table,
    /// The largest transactions
    Transaction,
    /// Transactions by size
    Size,
    /// Hours of commit
    Hour,
}

const EXAMPLES: &str = "Examples:
  binlogz stats binlog.0000*
  binlogz stats --by table --format csv binlog.000042 > tables.csv
  binlogz stats --by hour --table shop.orders --start-datetime '2026-11-22 23:10' binlog.0000*
  ssh db1 cat /var/lib/mysql/binlog.000042 | binlogz stats -

A file that fails is reported and left out; the others are counted, and the exit code is 2.
Exit code 1: changes in a log could not be read, and each is named, or nothing in the logs is what was chosen.";

/// How many of the largest are shown.
const TOP: u16 = 10;

/// How many tables the summary shows.
const SUMMARY_TABLES: u16 = 5;

impl StatsCommand {
    pub(super) fn run(mut self) -> Result<Exit> {
        resolve(&mut self.files)?;
        let keyring = self.keyring.open()?;
        let top = usize::from(self.top.unwrap_or(TOP));
        let filter = Arc::new(self.filter.filter());
        let mut figures = Figures::new(top);
        let mut exit = Exit::Done;
        let mut counted = 0;
        for (log, number) in self.files.iter().zip(1..) {
            match self.count(log, (number, self.files.len()), keyring.as_ref(), (top, &filter)) {
                Ok((file, RunSummary { read, unread })) => {
                    exit = exit.max(name_unread(log, &unread, "its rows are not counted"));
                    figures.add(log.to_string(), read.bytes_read, file);
                    counted += 1;
                }
                Err(CommandFailure::Line(line)) => {
                    complain(&line);
                    exit = Exit::Trouble;
                }
                Err(closed) => return Err(closed),
            }
        }
        if counted == 0 {
            return Ok(exit);
        }
        pager::show(|out| self.show(&figures, out))?;
        if filter.is_active() && !figures.has_anything() {
            warn("nothing in these logs is what was chosen");
            return Ok(exit.max(Exit::Negative));
        }
        Ok(exit)
    }

    /// Counts one log: its figures, and how much of it was read.
    fn count(
        &self,
        log: &LogPath,
        number: (usize, usize),
        keyring: Option<&Keyring>,
        (top, filter): (usize, &Arc<StatsFilter>),
    ) -> Result<(FileStats, RunSummary)> {
        let size = log.size()?;
        let input = log.open(keyring)?;
        mariadb::warn_of(log);
        let progress = WorkProgress::of(log, size, number);
        let input = progress.watch(input);
        let mut file = FileStats::new(top).filtered(filter);
        let values = self.values;
        let workers = workers(self.jobs);
        let ran = events::run(
            input,
            workers,
            || Ok(StatsCollector::new(top, values, workers).filtered(filter)),
            |collector, batch| Ok(collector.collect(batch)),
            |part| {
                file.add(part);
                Ok(())
            },
            &mut |bytes| progress.at(bytes),
        )
        .map_err(|error| CommandFailure::reading(log, &error))?;
        if let Some(cut) = ran.read.cut {
            warn_cut(log, cut, "; they are left out");
        }
        Ok((file, ran))
    }

    /// The summary, or what was asked for.
    fn show(&self, figures: &Figures, out: &mut impl Write) -> io::Result<()> {
        let layout = self.table.layout();
        if self.all || self.by.is_some() || self.format != TableFormat::Table {
            return self.format.writer(layout).write(&self.sections(figures), out);
        }
        for line in figures.summary(layout.exact_sizes) {
            writeln!(out, "{}", wrapped(&printable(&line), "", "  ", layout.width))?;
        }
        writeln!(out)?;
        let tables = figures.largest_tables(self.top.unwrap_or(SUMMARY_TABLES).into());
        self.format.writer(layout).write(&[tables], out)?;
        writeln!(out, "\n{}", wrapped(MORE, "", "  ", layout.width))
    }

    fn sections(&self, figures: &Figures) -> Vec<Section> {
        let Some(by) = self.by else {
            let mut sections = match self.format {
                TableFormat::Csv => vec![figures.compression()],
                TableFormat::Table | TableFormat::Json => figures.sections(),
            };
            let tables = sections.iter_mut().filter(|section| section.name == "tables");
            let shortened = self.top.or((self.format == TableFormat::Table).then_some(TOP));
            for (tables, top) in tables.zip(shortened) {
                tables.rows.truncate(usize::from(top));
            }
            return sections;
        };
        let mut section = figures.section(by.into());
        if let (ByArg::Table, Some(top)) = (by, self.top) {
            section.rows.truncate(usize::from(top));
        }
        vec![section]
    }
}

/// Where to look next.
const MORE: &str = "More: --all, or --by file, table, transaction, size or hour. What compression would save: binlogz advise";

impl From<ByArg> for StatsGrouping {
    fn from(by: ByArg) -> Self {
        match by {
            ByArg::File => StatsGrouping::File,
            ByArg::Table => StatsGrouping::Table,
            ByArg::Transaction => StatsGrouping::Transaction,
            ByArg::Size => StatsGrouping::Size,
            ByArg::Hour => StatsGrouping::Hour,
        }
    }
}
