//! `binlogz advise`: what compression would save and cost on a server that wrote these logs.

mod server;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_binlog::printable;
use binlogz_encryption::Keyring;
use binlogz_flow::measure::{Measure, MeasureSummary, measure};
use binlogz_flow::{Input, ReadAt};
use binlogz_payload::CompressionLevel;
use binlogz_report::advice::{Advice, Commits, ExactMeter, LEVELS, Part, SampleMeter, Sampler};
use binlogz_report::stats::Format;
use clap::Args;

use super::workers;
use crate::Exit;
use crate::failure::{Failure, Result, complain, warn, warn_cut};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::output::{self, Target};
use crate::progress::Progress;
use crate::report::Format as FormatArg;
use crate::server_args::{ServerArgs, with_place};
use server::{ServerLog, last_logs, rate};

/// Tell what compressing the binary log would save and cost, and whether to turn it on
///
/// For each level: the size that the server would have written, the processor time it takes, what it
/// adds to a commit; by size of transaction, table and hour; what would stay as it is, and why. Several
/// files are measured together. Logs that are compressed already are measured as if they were not.
///
/// All transactions are looked at, but only a sample is compressed, within the budget; sizes come with
/// what they may be off by.
///
/// Of a server the last logs are read, as a replica reads them; nothing is changed there. That needs the
/// rights REPLICATION CLIENT and REPLICATION SLAVE.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct Advise {
    /// Levels to look at, 1 to 22 [default: 1,3,6,9,15,19,22]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    levels: Vec<CompressionLevel>,
    /// Compress every transaction: sizes are exact, and it takes as long as it takes
    #[arg(long, conflicts_with_all = ["budget", "seed"])]
    exact: bool,
    /// Leave out what zstd would make of the files as a whole: an exact run of one level then does little else
    #[arg(long)]
    no_whole_files: bool,
    /// Time for the sample: 30s, 5m
    #[arg(long, value_name = "TIME", default_value = BUDGET, value_parser = duration)]
    budget: Duration,
    /// Draw another sample; the same seed draws the same
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many replicas read the log, for the network's share
    #[arg(long, value_name = "N", default_value_t = REPLICAS)]
    replicas: u32,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Write the answer as a page with charts as well, to this file
    #[arg(long, value_name = "REPORT.html")]
    html: Option<PathBuf>,
    /// Replace that file if it is there
    #[arg(long, requires = "html")]
    force: bool,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    keyring: KeyringArg,
    /// How many of a server's logs to read, the last ones [default: two, and as many more as make 64 MiB]
    #[arg(long, value_name = "N")]
    last: Option<NonZeroUsize>,
    /// Bytes a second to read from a server at most: 500K, 20M
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    max_rate: Option<u64>,
    #[command(flatten)]
    connection: ServerArgs,
    // As an attribute: rustdoc takes brackets for links.
    #[arg(
        value_name = "FILE|-|SERVER",
        required_unless_present_any = ["host", "port", "socket"],
        help = "Binary logs or relay logs; - is standard input. A server: mysql://[USER@]HOST[:PORT]"
    )]
    logs: Vec<LogPath>,
}

/// A log that is measured.
#[derive(Debug)]
enum Log {
    Path(LogPath),
    Server(Box<ServerLog>),
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Log::Path(path) => path.fmt(f),
            Log::Server(log) => log.fmt(f),
        }
    }
}

impl Log {
    fn size(&self) -> Result<Option<u64>> {
        match self {
            Log::Path(path) => path.size(),
            Log::Server(log) => Ok(Some(log.size)),
        }
    }

    fn open(&self, keyring: Option<&Keyring>) -> Result<Input> {
        match self {
            Log::Path(path) => path.open(keyring),
            Log::Server(log) => log.open(),
        }
    }
}

/// Half a minute is what people wait for an answer.
const BUDGET: &str = "30s";

/// The part of the budget that may be spent on reading the logs, and on reading them and on whole files.
const SCAN_SHARE: f64 = 0.4;
const WHOLE_FILE_SHARE: f64 = 0.5;

/// The part of the budget that the sample gets at the least, however long the rest took.
const SAMPLE_SHARE: f64 = 0.4;

/// The part of the time, of an exact run's that of compressing, for finding out what commits take longer, and how much
/// of it is of any use.
const COMMITS_SHARE: f64 = 0.1;
const COMMITS_MAX: Duration = Duration::from_secs(2);

/// Bytes to keep of each class of size for each second of the budget: more than can be compressed in it.
const SAMPLE_BYTES_PER_SECOND: f64 = 2e6;

/// Bounds of the same.
const SAMPLE_BYTES: std::ops::RangeInclusive<u64> = 16 << 20..=1 << 30;

/// One source with one replica is the smallest common set-up.
const REPLICAS: u32 = 1;

/// How many tables, and hours, people are shown.
const TOP: usize = 10;

const EXAMPLES: &str = "Examples:
  binlogz advise binlog.0000*
  binlogz advise --exact --levels 3 binlog.000042
  binlogz advise --html report.html binlog.000042
  binlogz advise --levels 3,9 --replicas 4 --format json binlog.000042
  ssh db1 cat /var/lib/mysql/binlog.000042 | binlogz advise -
  binlogz advise --max-rate 20M mysql://monitor@replica7

A file that fails is reported and left out; the others are measured, and the exit code is 2.";

/// A time such as `30s`, `1.5m` or `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..) {
        Some("ms") => 0.001,
        Some("s" | "") => 1.0,
        Some("m") => 60.0,
        Some("h") => 3600.0,
        _ => f64::NAN,
    };
    let seconds = digits.parse::<f64>().ok().map(|number| number * unit);
    let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    duration
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| format!("{text:?} is no time such as 30s or 5m"))
}

/// The parts of a run in time.
#[derive(Debug, Clone, Copy)]
struct Deadlines {
    scan: Instant,
    whole_file: Instant,
    all: Instant,
}

impl Advise {
    pub(super) fn run(mut self) -> Result<Exit> {
        let start = Instant::now();
        let part = |share| start + self.budget.mul_f64(share);
        let deadlines =
            Deadlines { scan: part(SCAN_SHARE), whole_file: part(WHOLE_FILE_SHARE), all: part(1.0) };
        resolve(&mut self.logs)?;
        let keyring = self.keyring.open()?;
        let page = self.page()?;
        let (logs, mut exit) = self.logs()?;
        let levels = self.levels();
        let mut advice = Advice::new(&levels, self.replicas);
        let mut measured = 0;
        let kept = (self.budget.as_secs_f64() * SAMPLE_BYTES_PER_SECOND) as u64;
        let kept = kept.clamp(*SAMPLE_BYTES.start(), *SAMPLE_BYTES.end());
        let sampler = Arc::new(Sampler::new(self.seed, kept));
        let commits = Arc::new(Commits::default());
        let mut files = Vec::new();
        for (number, log) in logs.iter().enumerate() {
            let number = number as u64;
            let of_log = match self.exact {
                true => {
                    self.log(log, keyring.as_ref(), &|| false, || Ok(ExactMeter::new(&levels, &commits)?))
                }
                false => self.log(log, keyring.as_ref(), &|| Instant::now() >= deadlines.scan, || {
                    Ok(SampleMeter::new(&sampler, number, &commits)?)
                }),
            };
            match of_log {
                Ok((of_log, places)) => {
                    advice.add(&of_log);
                    measured += 1;
                    files.extend(places);
                }
                Err(Failure::Line(line)) => {
                    sampler.forget(number);
                    complain(&line);
                    exit = Exit::Trouble;
                }
                Err(closed) => return Err(closed),
            }
        }
        if measured == 0 {
            return Ok(exit);
        }
        let all_so_far = if self.exact { start.elapsed() } else { self.budget };
        advice
            .measure_commits(&commits, !self.exact, all_so_far.mul_f64(COMMITS_SHARE).min(COMMITS_MAX))
            .map_err(|error| Failure::reading(&"the sample", &error.into()))?;
        // Of what comes from a pipe or a server nothing is left to read.
        let all_files = if files.len() == logs.len() { files.as_slice() } else { &[] };
        self.measure(&mut advice, sampler, all_files, deadlines)
            .map_err(|error| Failure::reading(&"the sample", &error))?;
        if let Some(page) = &page {
            let mut out = BufWriter::new(page.create()?);
            let written = advice.write_page(&name(&logs), &mut out);
            let written = written.and_then(|()| out.into_inner().map_err(|error| error.into_error()));
            written.map_err(|error| Failure::writing(page, &error))?.finish()?;
        }
        let mut out = BufWriter::new(io::stdout().lock());
        let written = self.tell(&advice, &mut out).and_then(|()| out.flush());
        written.map_err(|error| Failure::writing(&"standard output", &error))?;
        Ok(exit)
    }

    /// What is measured once all logs were read.
    fn measure(
        &self,
        advice: &mut Advice,
        sampler: Arc<Sampler>,
        files: &[(Arc<dyn ReadAt>, u64)],
        deadlines: Deadlines,
    ) -> Result<(), binlogz_flow::Error> {
        let workers = workers(self.jobs);
        // An exact run has no budget: the pieces that stand for whole files are few.
        let deadline = if self.exact { Instant::now() + EXACT_WHOLE_FILE } else { deadlines.whole_file };
        if !files.is_empty() && !self.no_whole_files {
            advice.measure_whole_files(files, self.seed, workers, deadline)?;
        }
        if self.exact {
            return Ok(());
        }
        // Nobody else has it any more: the workers are gone.
        let Some(sampler) = Arc::into_inner(sampler) else { return Ok(()) };
        let progress = Progress::new(&"sample", None);
        let deadline = deadlines.all.max(Instant::now() + self.budget.mul_f64(SAMPLE_SHARE));
        advice.measure_sample(sampler, workers, deadline, &mut |bytes| progress.at(bytes))
    }

    /// Where the page goes, if it may go there.
    fn page(&self) -> Result<Option<Target>> {
        let Some(path) = self.html.clone() else { return Ok(None) };
        let inputs: Vec<_> = self
            .logs
            .iter()
            .filter(|log| !is_server(log))
            .filter_map(|log| log.metadata().ok().flatten())
            .collect();
        output::target(path, &inputs, self.force).map(Some)
    }

    /// What there is to measure; a server that can't be asked is told of and left out.
    fn logs(&self) -> Result<(Vec<Log>, Exit)> {
        let (mut logs, mut exit) = (Vec::new(), Exit::Done);
        let places: Vec<_> = self.logs.iter().filter(|log| is_server(log)).map(ToString::to_string).collect();
        logs.extend(self.logs.iter().filter(|log| !is_server(log)).cloned().map(Log::Path));
        if places.is_empty() && !self.connection.names_a_place() {
            return Ok((logs, exit));
        }
        let options = self.connection.connect_options("binlogz")?;
        let mut servers = Vec::new();
        if self.connection.names_a_place() {
            servers.push(options.clone());
        }
        for place in places {
            let server = with_place(&options, &place);
            servers.push(server.map_err(|error| Failure::of(&place, error))?);
        }
        for server in servers {
            match last_logs(server, self.last, self.max_rate) {
                Ok(found) => logs.extend(found.into_iter().map(|log| Log::Server(Box::new(log)))),
                Err(Failure::Line(line)) => {
                    complain(&line);
                    exit = Exit::Trouble;
                }
                Err(closed) => return Err(closed),
            }
        }
        Ok((logs, exit))
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

    /// Takes the transactions of a log through meters, one a worker.
    fn log<M: Measure<Part = Part>>(
        &self,
        log: &Log,
        keyring: Option<&Keyring>,
        stop: &(dyn Fn() -> bool + Sync),
        new_meter: impl Fn() -> Result<M, binlogz_flow::Error> + Sync,
    ) -> Result<(Advice, Option<Places>)> {
        let size = log.size()?;
        let input = log.open(keyring)?;
        let places = places(&input);
        let progress = Progress::new(log, size);
        let mut advice = Advice::new(&self.levels(), self.replicas);
        let add = |piece| {
            advice.add_piece(&piece);
            Ok(())
        };
        let summary =
            measure(input, workers(self.jobs), stop, new_meter, add, &mut |bytes| progress.at(bytes));
        let summary = summary.map_err(|error| Failure::reading(log, &error))?;
        Ok((advice, read_to_end(log, &summary, size, places)))
    }

    fn tell(&self, advice: &Advice, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            FormatArg::Json => Format::Json.write(&advice.sections(), out),
            FormatArg::Text => {
                let recommendation = advice.recommendation();
                writeln!(out, "Recommendation: {}", printable(&recommendation.to_string()))?;
                for reason in &recommendation.reasons {
                    writeln!(out, "  - {}", printable(reason))?;
                }
                writeln!(out)?;
                Format::Table.write(&advice.shown(TOP), out)
            }
        }
    }
}

/// A file that can be read again, and how much of it was read.
type Places = (Arc<dyn ReadAt>, u64);

/// An exact run's time for the pieces that stand for whole files.
const EXACT_WHOLE_FILE: Duration = Duration::from_secs(60);

/// Whether an argument is a server's URL.
fn is_server(log: &LogPath) -> bool {
    matches!(log, LogPath::File(path) if path.as_os_str().as_encoded_bytes().starts_with(b"mysql://"))
}

/// What was measured, for the page.
fn name(logs: &[Log]) -> String {
    let name = |log: &Log| match log {
        Log::Path(LogPath::File(path)) => {
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
        }
        log => log.to_string(),
    };
    match logs {
        [log] => name(log),
        [first, .., last] => format!("{} … {}, {} files", name(first), name(last), logs.len()),
        [] => String::new(),
    }
}

fn places(input: &Input) -> Option<Arc<dyn ReadAt>> {
    match input {
        Input::Places(places) => Some(Arc::clone(places)),
        Input::Seek { .. } | Input::Stream(_) | Input::Live(_) | Input::Pipe(_) => None,
    }
}

/// Tells what of a log was not read, and why.
fn read_to_end(
    log: &Log,
    summary: &MeasureSummary,
    size: Option<u64>,
    places: Option<Arc<dyn ReadAt>>,
) -> Option<Places> {
    if let Some(cut) = summary.cut {
        warn_cut(log, cut, "; they are left out");
    }
    if summary.stopped {
        let of = size.map_or_else(String::new, |size| format!(" of {size}"));
        warn(&format!(
            "{log}: the budget allowed for {}{of} bytes, the rest was not looked at",
            summary.bytes_read
        ));
    }
    Some((places?, summary.bytes_read))
}
