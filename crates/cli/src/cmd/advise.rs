//! `binlogz advise`: what compression would save and cost on a server that wrote these logs.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;

use binlogz_encryption::Keyring;
use binlogz_flow::measure::measure;
use binlogz_payload::CompressionLevel;
use binlogz_report::advice::{Advice, ExactMeter, LEVELS};
use binlogz_report::stats::Format;
use clap::Args;

use super::workers;
use crate::Exit;
use crate::failure::{Failure, Result, complain, warn_cut};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, check_stdin_once};
use crate::progress::Progress;
use crate::report::Format as FormatArg;

/// Tell what compressing the binary log would save and cost, and whether to turn it on
///
/// For each level: the size that the server would have written, the processor time it takes, what it
/// adds to a commit; by size of transaction, table and hour; what would stay as it is, and why. Several
/// files are measured together. Logs that are compressed already are measured as if they were not.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Advise {
    /// Levels to look at, 1 to 22 [default: 1,3,6,9,15,19,22]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    levels: Vec<CompressionLevel>,
    /// How many replicas read the log, for the network's share
    #[arg(long, value_name = "N", default_value_t = REPLICAS)]
    replicas: u32,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    keyring: KeyringArg,
    /// Binary logs or relay logs; - is standard input
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<LogPath>,
}

/// One source with one replica is the smallest common set-up.
const REPLICAS: u32 = 1;

/// How many tables, and hours, people are shown.
const TOP: usize = 10;

const EXAMPLES: &str = "Examples:
  binlogz advise binlog.0000*
  binlogz advise --levels 3,9 --replicas 4 --format json binlog.000042
  ssh db1 cat /var/lib/mysql/binlog.000042 | binlogz advise -

A file that fails is reported and left out; the others are measured, and the exit code is 2.";

impl Advise {
    pub(super) fn run(self) -> Result<Exit> {
        check_stdin_once(&self.files)?;
        let keyring = self.keyring.open()?;
        let levels = self.levels();
        let mut advice = Advice::new(&levels, self.replicas);
        let mut exit = Exit::Done;
        for log in &self.files {
            match self.exact(log, keyring.as_ref(), &levels) {
                Ok(of_log) => advice.add(&of_log),
                Err(Failure::Line(line)) => {
                    complain(&line);
                    exit = Exit::Trouble;
                }
                Err(closed) => return Err(closed),
            }
        }
        let mut out = BufWriter::new(io::stdout().lock());
        let written = self.tell(&advice, &mut out).and_then(|()| out.flush());
        written.map_err(|error| Failure::writing(&"standard output", &error))?;
        Ok(exit)
    }

    /// The levels asked for, each once, the lowest first.
    fn levels(&self) -> Vec<CompressionLevel> {
        let mut levels = self.levels.clone();
        if levels.is_empty() {
            levels.extend(LEVELS.map(|level| CompressionLevel::clamped(level.into())));
        }
        levels.sort();
        levels.dedup();
        levels
    }

    /// Compresses all transactions of a log.
    fn exact(&self, log: &LogPath, keyring: Option<&Keyring>, levels: &[CompressionLevel]) -> Result<Advice> {
        let size = log.size()?;
        let input = log.open(keyring)?;
        let progress = Progress::new(log, size);
        let mut advice = Advice::new(levels, self.replicas);
        let summary = measure(
            input,
            workers(self.jobs),
            &|| false,
            || Ok(ExactMeter::new(levels)?),
            |piece| {
                advice.add_exact(piece);
                Ok(())
            },
            &mut |bytes| progress.at(bytes),
        );
        let summary = summary.map_err(|error| Failure::reading(log, &error))?;
        if let Some(cut) = summary.cut {
            warn_cut(log, cut, "; they are left out");
        }
        Ok(advice)
    }

    fn tell(&self, advice: &Advice, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            FormatArg::Json => Format::Json.write(&advice.sections(), out),
            FormatArg::Text => {
                let recommendation = advice.recommendation();
                writeln!(out, "Recommendation: {recommendation}")?;
                for reason in &recommendation.reasons {
                    writeln!(out, "  - {reason}")?;
                }
                writeln!(out)?;
                Format::Table.write(&advice.shown(TOP), out)
            }
        }
    }
}
