//! `binlogz advise`: what compression would save and cost on a server that wrote these logs.

mod generation;
mod measured_log;
mod measuring;
mod pace;
mod reread;
mod server;

pub(super) use server::{SampledServerLog, all_logs};

use std::fs;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use binlogz_advise::{Advice, Recommendation};
use binlogz_binlog::printable;
use binlogz_figures::{FigureFormat, counted, wrapped};
use binlogz_source::ConnectOptions;
use clap::Args;

use crate::Exit;
use crate::failure::{CommandFailure, Result, complain};
use crate::format::ReportFormat as FormatArg;
use crate::keyring::KeyringArg;
use crate::log_path::{LogPath, resolve};
use crate::output::{self, OutputTarget};
use crate::pager;
use crate::server_args::{ServerArgs, with_place};
use crate::terminal::TableArgs;
use crate::units;
use measured_log::MeasuredLog;
use measuring::{AdviceDepth, LevelMeasurement};
use server::last_logs;

/// People wait half a minute for an answer, if it takes that long.
pub(super) const BUDGET: &str = "30s";
const BUDGET_TIME: Duration = Duration::from_secs(30);

/// Estimate what compressing the binary log would save and cost, and whether to turn it on
///
/// For each level: the size that the server would have written, and what it adds to a commit; with --details also by size of
/// transaction, table and hour, and what would stay as it is, and why. Several files are measured together. Logs that are
/// compressed already are measured as if they were not.
///
/// All transactions are read. Levels up to 9 are tried on a sample, and on all transactions if that takes a few seconds or fits
/// into --budget; higher ones on a sample. Sizes of a sample come with their margin of error.
///
/// Of a server the last logs are read, as a replica reads them; nothing is changed there. That needs the
/// rights REPLICATION CLIENT and REPLICATION SLAVE.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct Advise {
    #[command(flatten)]
    measuring: LevelMeasurement,
    /// Show all reasons and figures, by size, table and hour too, and measure higher levels in the time that is left
    #[arg(long)]
    details: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "REPORT.html")]
    html: Option<PathBuf>,
    /// Replace that file if it is there
    #[arg(long, requires = "html")]
    force: bool,
    #[command(flatten)]
    table: TableArgs,
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

impl Advise {
    pub(super) fn run(mut self) -> Result<Exit> {
        let start = Instant::now();
        resolve(&mut self.logs)?;
        let keyring = self.keyring.open()?;
        let page = self.page()?;
        let (logs, mut exit) = self.logs()?;
        let (advice, measured) = self.measuring.measure(&logs, keyring.as_ref(), start, self.depth())?;
        exit = exit.max(measured);
        let Some(advice) = advice else { return Ok(exit) };
        if let Some(page) = &page {
            let mut out = BufWriter::new(page.create()?);
            let written = advice
                .write_page(&name(&logs), only_server(&logs).as_deref(), &mut out)
                .and_then(|()| out.into_inner().map_err(|error| error.into_error()));
            written.map_err(|error| CommandFailure::writing(page, &error))?.finish()?;
        }
        pager::show(|out| self.tell(&advice, out))?;
        Ok(exit)
    }

    fn depth(&self) -> AdviceDepth {
        match self.format {
            FormatArg::Text if !self.details && self.html.is_none() => AdviceDepth::Answer,
            FormatArg::Text | FormatArg::Json => AdviceDepth::Details,
        }
    }

    /// Where the page goes, if it may go there.
    fn page(&self) -> Result<Option<OutputTarget>> {
        let Some(path) = self.html.clone() else { return Ok(None) };
        let inputs: Vec<_> = self
            .logs
            .iter()
            .filter(|log| !is_server(log))
            .filter_map(|log| log.metadata().ok().flatten())
            .collect();
        output::target(path, &inputs, self.force).map(Some)
    }

    /// The logs to measure; a server that can't be asked is reported and left out.
    fn logs(&self) -> Result<(Vec<MeasuredLog>, Exit)> {
        let mut logs = Vec::new();
        let mut exit = Exit::Done;
        let places: Vec<_> = self.logs.iter().filter(|log| is_server(log)).map(ToString::to_string).collect();
        logs.extend(self.logs.iter().filter(|log| !is_server(log)).cloned().map(MeasuredLog::Path));
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
            servers.push(server.map_err(|error| CommandFailure::of(&place, error))?);
        }
        for server in servers {
            match last_logs(server, self.last, self.max_rate) {
                Ok(found) => logs.extend(found.into_iter().map(|log| MeasuredLog::Server(Box::new(log)))),
                Err(CommandFailure::Line(line)) => {
                    complain(&line);
                    exit = Exit::Trouble;
                }
                Err(closed) => return Err(closed),
            }
        }
        Ok((logs, exit))
    }

    fn tell(&self, advice: &Advice, out: &mut impl Write) -> io::Result<()> {
        match self.format {
            FormatArg::Json => FigureFormat::Json.write(&advice.sections(), out),
            FormatArg::Text => {
                let recommendation = advice.recommendation();
                let layout = self.table.layout();
                let said = printable(&recommendation.to_string()).into_owned();
                writeln!(out, "{}", wrapped(&said, "Recommendation: ", "  ", layout.width))?;
                let reasons: Vec<_> = match self.details {
                    true => recommendation.reasons.iter().map(String::as_str).collect(),
                    false => recommendation.main_reasons().collect(),
                };
                for reason in reasons {
                    writeln!(out, "{}", wrapped(&printable(reason), "  - ", "    ", layout.width))?;
                }
                writeln!(out)?;
                if self.details {
                    return FigureFormat::Table(layout).write(&advice.shown(TOP), out);
                }
                FigureFormat::Table(layout).write(&[advice.levels_summary()], out)?;
                writeln!(out, "\n{}", wrapped(&advice.looked_at(), "", "  ", layout.width))
            }
        }
    }
}

/// The recommendation for a server, by its last logs; `None`: they could not be read, which was reported.
pub(super) fn of_server(
    server: ConnectOptions,
    budget: Duration,
    max_rate: Option<u64>,
) -> Result<Option<Recommendation>> {
    let start = Instant::now();
    let logs: Vec<_> = last_logs(server, None, max_rate)?
        .into_iter()
        .map(|log| MeasuredLog::Server(Box::new(log)))
        .collect();
    let (advice, _) = LevelMeasurement::within(budget).measure(&logs, None, start, AdviceDepth::Answer)?;
    Ok(advice.map(|advice| advice.recommendation()))
}

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

/// The name of the measured logs, for the page, which has the server's name elsewhere.
fn name(logs: &[MeasuredLog]) -> String {
    let has_one_server = only_server(logs).is_some();
    let name = |log: &MeasuredLog| match log {
        MeasuredLog::Path(LogPath::File(path)) => {
            path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
        }
        MeasuredLog::Server(log) if has_one_server => log.name().to_owned(),
        log => log.to_string(),
    };
    match logs {
        [log] => name(log),
        [first, .., last] => {
            format!("{} … {}, {}", name(first), name(last), counted(logs.len() as u64, "files"))
        }
        [] => String::new(),
    }
}

/// The server that all logs were read from, if they were.
fn only_server(logs: &[MeasuredLog]) -> Option<String> {
    let mut servers = logs.iter().map(|log| match log {
        MeasuredLog::Server(log) => Some(log.server()),
        MeasuredLog::Path(_) => None,
    });
    let first = servers.next()??;
    servers.all(|server| server.as_ref() == Some(&first)).then_some(first)
}
