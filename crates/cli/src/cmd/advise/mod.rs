//! `binlogz advise`: what compression would save and cost on a server that wrote these logs.

mod generation;
mod server;

use std::fmt;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_binlog::printable;
use binlogz_encryption::Keyring;
use binlogz_figures::{Format, wrapped};
use binlogz_flow::measure::{Measure, MeasureSummary, measure};
use binlogz_flow::{Input, ReadAt};
use binlogz_payload::{CompressionLevel, ServerGeneration};
use binlogz_report::advice::{Advice, Commits, ExactMeter, LEVELS, Part, SampleMeter, Sampler};
use clap::Args;

use super::workers;
use crate::Exit;
use crate::failure::{Failure, Result, complain, warn, warn_cut};
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::mariadb;
use crate::output::{self, Target};
use crate::progress::Progress;
use crate::report::Format as FormatArg;
use crate::server_args::{ServerArgs, with_place};
use crate::terminal::SizesArg;
use crate::units;
use server::{ServerLog, last_logs};

/// Estimate what compressing the binary log would save and cost, and whether to turn it on
///
/// For each level: the size that the server would have written, the processor time it takes, what it
/// adds to a commit; by size of transaction, table and hour; what would stay as it is, and why. Several
/// files are measured together. Logs that are compressed already are measured as if they were not.
///
/// All transactions are read, but only a sample is compressed, within the budget; sizes come with their
/// margin of error.
///
/// Of a server the last logs are read, as a replica reads them; nothing is changed there. That needs the
/// rights REPLICATION CLIENT and REPLICATION SLAVE.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct Advise {
    /// Levels to measure, 1 to 22 [default: 1,3,6,9,15,19,22]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    levels: Vec<CompressionLevel>,
    /// Predict what this server would write, such as mysql-8.0.33 [default: the one whose logs they are]
    #[arg(long = "as", value_name = "SERVER", value_parser = generation::named)]
    server: Option<ServerGeneration>,
    /// Compress every transaction, however long it takes: sizes are exact
    #[arg(long, conflicts_with_all = ["budget", "seed"])]
    exact: bool,
    /// Don't measure zstd on the whole files, which takes most of the time of an exact run of one level
    #[arg(long)]
    no_whole_files: bool,
    /// Time for the whole run: 30s, 5m, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = BUDGET, value_parser = units::duration_or_seconds)]
    budget: Duration,
    /// Seed of the sample; the same seed draws the same sample
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many replicas read the log, for the network's share
    #[arg(long, value_name = "N", default_value_t = REPLICAS)]
    replicas: u32,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "REPORT.html")]
    html: Option<PathBuf>,
    /// Replace that file if it is there
    #[arg(long, requires = "html")]
    force: bool,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    sizes: SizesArg,
    #[command(flatten)]
    keyring: KeyringArg,
    /// How many of a server's last logs to read [default: two, or more to reach 64 MiB]
    #[arg(long, value_name = "N", value_parser = units::above_zero)]
    last: Option<NonZeroUsize>,
    /// Read at most this many bytes a second from a server: 500K, 20M (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = units::size_above_zero)]
    max_rate: Option<u64>,
    // As an attribute: rustdoc takes brackets for links.
    #[arg(
        value_name = "FILE|-|SERVER",
        required_unless_present_any = ["host", "port", "socket"],
        help = "Binary logs or relay logs; - is standard input. A server: mysql://[USER@]HOST[:PORT], \
                [USER@]HOST:PORT, or a socket: /PATH, unix:/PATH"
    )]
    logs: Vec<LogPath>,
    #[command(flatten)]
    connection: ServerArgs,
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

/// People wait half a minute for an answer.
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
        let generation = self.server.unwrap_or_else(|| generation::of_logs(&logs, keyring.as_ref()));
        self.levels = self.levels_of(generation)?;
        let levels = self.levels.clone();
        let mut advice = Advice::new(&levels, self.replicas, generation);
        let mut measured = 0;
        let kept = (self.budget.as_secs_f64() * SAMPLE_BYTES_PER_SECOND) as u64;
        let kept = kept.clamp(*SAMPLE_BYTES.start(), *SAMPLE_BYTES.end());
        let sampler = Arc::new(Sampler::new(self.seed, kept));
        let commits = Arc::new(Commits::default());
        let mut files = Vec::new();
        for (number, log) in logs.iter().enumerate() {
            let number = number as u64;
            let of_log = match self.exact {
                true => self.log(log, keyring.as_ref(), &|| false, || {
                    Ok(ExactMeter::new(&levels, generation, &commits)?)
                }),
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
        // Input from a pipe or a server can't be read again.
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
        // An exact run has no budget: only few pieces represent whole files.
        let deadline = if self.exact { Instant::now() + EXACT_WHOLE_FILE } else { deadlines.whole_file };
        if !files.is_empty() && !self.no_whole_files {
            let _progress = Progress::waiting("trying zstd on the whole files");
            advice.measure_whole_files(files, self.seed, workers, deadline)?;
        }
        if self.exact {
            return Ok(());
        }
        // The workers have ended, so this is the only owner.
        let Some(sampler) = Arc::into_inner(sampler) else { return Ok(()) };
        let deadline = deadlines.all.max(Instant::now() + self.budget.mul_f64(SAMPLE_SHARE));
        let progress = Progress::until("trying levels on a sample", deadline);
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

    /// The levels asked for, each once, the lowest first; of servers that have only one, that one.
    fn levels_of(&self, generation: ServerGeneration) -> Result<Vec<CompressionLevel>> {
        let mut levels = self.levels.clone();
        if let Some(only) = generation.only_level() {
            return match levels.iter().find(|level| **level != only) {
                None => Ok(vec![only]),
                Some(other) => Err(Failure::Line(format!(
                    "--levels has {other}, but this server always compresses at level {only}; --as mysql-9.7 predicts \
                     what a newer one would write"
                ))),
            };
        }
        if levels.is_empty() {
            levels.extend(LEVELS.map(|level| CompressionLevel::clamped(level.into())));
        }
        levels.sort();
        levels.dedup();
        Ok(levels)
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
        if let Log::Path(path) = log {
            mariadb::warn_of(path);
        }
        let places = places(&input);
        let progress = Progress::new(log, size);
        let input = progress.watch(input);
        let mut advice = Advice::new(&self.levels, self.replicas, ServerGeneration::default());
        let add = |piece| {
            advice.add_piece(&piece);
            Ok(())
        };
        let summary =
            measure(input, workers(self.jobs), stop, new_meter, add, &mut |bytes| progress.at(bytes));
        let summary = summary.map_err(|error| Failure::reading(log, &error))?;
        if summary.stopped && summary.cut.is_none() {
            advice.leave_out(size.map(|size| size.saturating_sub(summary.bytes_read)));
        }
        Ok((advice, read_to_end(log, &summary, size, places)))
    }

    fn tell(&self, advice: &Advice, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            FormatArg::Json => Format::Json.write(&advice.sections(), out),
            FormatArg::Text => {
                let recommendation = advice.recommendation();
                let layout = self.sizes.layout();
                let said = printable(&recommendation.to_string()).into_owned();
                writeln!(out, "{}", wrapped(&said, "Recommendation: ", "  ", layout.width))?;
                for reason in &recommendation.reasons {
                    writeln!(out, "{}", wrapped(&printable(reason), "  - ", "    ", layout.width))?;
                }
                writeln!(out)?;
                Format::Table(layout).write(&advice.shown(TOP), out)
            }
        }
    }
}

/// A file that can be read again, and how much of it was read.
type Places = (Arc<dyn ReadAt>, u64);

/// The time of an exact run for the pieces that represent whole files.
const EXACT_WHOLE_FILE: Duration = Duration::from_secs(60);

/// Whether an argument names a server: a URL, a socket, or HOST:PORT where there is no such file.
fn is_server(log: &LogPath) -> bool {
    let LogPath::File(path) = log else { return false };
    let Some(name) = path.to_str() else { return false };
    let has_port = || match name.rsplit_once(':') {
        Some((host, port)) => !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok(),
        None => false,
    };
    ["mysql://", "unix:/"].iter().any(|scheme| name.starts_with(scheme))
        || match fs::metadata(path) {
            Ok(metadata) => metadata.file_type().is_socket(),
            Err(_) => has_port(),
        }
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

/// Reports which part of a log was not read, and why.
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
