//! `binlogz doctor`: asks the servers themselves what turning compression on would break.

mod targets;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use binlogz_advise::{READERS, Recommendation};
use binlogz_inspect::{
    CompressionAnswer, InspectReport, Knowledge, SavingsEstimate, ServerReport, SurveyedLog, answered,
    changes, examine, write_text,
};
use binlogz_relay::ReaderProfile;
use clap::{ArgGroup, Args};
use parking_lot::Mutex;

use super::advise::{self, BUDGET};
use super::profile_survey;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, with_server};
use crate::format::ReportFormat;
use crate::output;
use crate::pager;
use crate::server_args::ServerArgs;
use crate::terminal;
use crate::units;
use targets::DoctorTarget;

/// Ask servers what turning transaction compression on would break
///
/// Needs only a monitoring account and changes nothing. Checks settings, known bugs, figures, sessions with old values,
/// and for each client that reads the binary log whether it can read compressed transactions, and what happens if it
/// can't. Ends with a rollout plan: commands to review.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
#[command(group(ArgGroup::new("reading").args(["advise", "profile"]).multiple(true)))]
pub(crate) struct DoctorCommand {
    /// Servers: `mysql://[USER@]HOST[:PORT]`, `[USER@]HOST[:PORT]`, or a socket: `/PATH`, `unix:/PATH`
    #[arg(value_name = "SERVER")]
    servers: Vec<String>,
    /// A file that names one SERVER on each line
    #[arg(long, value_name = "FILE")]
    targets: Option<PathBuf>,
    /// Write the findings to this file
    #[arg(long, value_name = "BASELINE.json")]
    save: Option<PathBuf>,
    /// Replace the file of --save
    #[arg(long, requires = "save")]
    force: bool,
    /// Show what changed since that file
    #[arg(long, value_name = "BASELINE.json")]
    since: Option<PathBuf>,
    /// More rules about clients, read before the built-in ones; docs/reference/doctor.md describes the file
    #[arg(long, value_name = "FILE")]
    knowledge: Option<PathBuf>,
    /// Also read the servers' last logs, say what compressing would save, and answer: turn it on?
    #[arg(long)]
    advise: bool,
    /// Beside that answer, also what is well, and what our knowledge of clients rests on
    #[arg(long, requires = "advise")]
    details: bool,
    /// Also read the last hour of the servers' logs: what would clients of this profile not be sent as it is, through a
    /// relay? Profiles are those of docs/reference/relay-config.md; several with commas
    #[arg(long, value_name = "PROFILE", value_delimiter = ',', value_parser = profile_survey::profile)]
    profile: Vec<&'static ReaderProfile>,
    /// Time for either, for each server: 30s, 5m, or a number of seconds
    #[arg(long, value_name = "TIME", requires = "reading", default_value = BUDGET, value_parser = units::duration_or_seconds)]
    budget: Duration,
    /// Read at most this many bytes of logs a second: 500K, 20M (powers of 1024)
    #[arg(long, value_name = "SIZE", requires = "reading", value_parser = units::size_above_zero)]
    max_rate: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    #[command(flatten)]
    connection: ServerArgs,
}

const EXAMPLES: &str = "Examples:
  binlogz doctor -u monitor -p db1
  binlogz doctor --advise -p monitor@replica7     also: is it worth it?
  binlogz doctor --profile mariadb-10.2 -p repl@db1   what would MariaDB behind a relay not get?
  binlogz doctor --login-path=monitor --targets fleet.txt --save before.json
  binlogz doctor --login-path=monitor --targets fleet.txt --since before.json

Exit codes: 0 safe, as far as those connected go; 1 a consumer would break, or one is not known,
or none is connected, or the server can't compress, or it isn't worth it (--advise), or a dump would end (--profile); 2 a server could not be looked at, or other
trouble.";

/// Servers looked at in parallel: mostly waiting, and no burden on anybody's network.
const PARALLEL: usize = 8;
/// The largest file of targets, knowledge or baseline that is read, in bytes.
const FILE_SIZE_MAX: u64 = 64 << 20;

impl DoctorCommand {
    pub(super) fn run(self) -> Result<Exit> {
        let knowledge = self.knowledge()?;
        let baseline = self.since.as_deref().map(read_baseline).transpose()?;
        let save = self.save.clone().map(|path| output::target(path, &[], self.force)).transpose()?;
        let targets = self.targets()?;
        let recommended =
            targets.iter().map(|target| self.recommendation(target)).collect::<Result<Vec<_>>>()?;
        let mut servers = examine_all(&targets, &recommended, &knowledge);
        let is_surveyed = self.survey(&targets, &mut servers)?;
        let mut report = InspectReport::new(servers);
        for server in &report.servers {
            if let Some(error) = &server.error {
                complain(&with_server(&server.server, error));
            }
        }
        let is_default =
            self.servers.is_empty() && self.targets.is_none() && !self.connection.names_a_place();
        if is_default && report.servers.iter().any(|server| server.error.is_some()) {
            complain("no server was named: `binlogz doctor HOST` or -h HOST does, and --help has more");
        }
        if let Some(target) = &save {
            let mut output = target.create()?;
            write_json(&report, &mut output).map_err(|error| CommandFailure::writing(target, &error))?;
            output.finish()?;
        }
        report.changes = baseline.map(|baseline| changes(&baseline, &report));
        self.print(&report)?;
        // Questions that got no answer were reported above.
        let unanswered =
            self.advise && report.servers.iter().any(|server| server.answer.is_none()) || !is_surveyed;
        Ok(exit(&report).max(if unanswered { Exit::Trouble } else { Exit::Done }))
    }

    /// Looks through the log of each server that could be asked. Returns whether all could be read.
    fn survey(&self, targets: &[DoctorTarget], servers: &mut [ServerReport]) -> Result<bool> {
        let mut is_whole = true;
        for (target, report) in targets.iter().zip(servers) {
            let (Ok(options), None) = (&target.options, &report.error) else { continue };
            if self.profile.is_empty() {
                continue;
            }
            match profile_survey::of_server(options, &self.profile, self.budget, self.max_rate) {
                Ok(surveyed) => report.surveyed = Some(surveyed),
                Err(CommandFailure::Line(line)) => {
                    complain(&line);
                    is_whole = false;
                }
                Err(closed) => return Err(closed),
            }
        }
        Ok(is_whole)
    }

    /// The recommendation from its logs, if it is asked for and can be given.
    fn recommendation(&self, target: &DoctorTarget) -> Result<Option<Recommendation>> {
        let (true, Ok(options)) = (self.advise, &target.options) else { return Ok(None) };
        match advise::of_server(options.clone(), self.budget, self.max_rate) {
            Err(CommandFailure::Line(line)) => {
                complain(&line);
                Ok(None)
            }
            recommended => recommended,
        }
    }

    fn targets(&self) -> Result<Vec<DoctorTarget>> {
        let mut names = self.servers.clone();
        if let Some(path) = &self.targets {
            names.extend(
                targets::read(&read_text(path)?)
                    .map_err(|error| CommandFailure::of(&path.display(), error))?,
            );
        }
        let options = self.connection.connect_options("binlogz doctor")?;
        match names.is_empty() {
            true if self.targets.is_some() => {
                Err(CommandFailure::Line("--targets names no server".to_owned()))
            }
            true => Ok(vec![DoctorTarget { name: options.server(), options: Ok(options) }]),
            false if self.connection.names_a_place() => Err(CommandFailure::Line(
                "--host, --port and --socket name another server than SERVER does: give one of them"
                    .to_owned(),
            )),
            false => Ok(names.into_iter().map(|name| DoctorTarget::new(name, &options)).collect()),
        }
    }

    fn knowledge(&self) -> Result<Knowledge> {
        let Some(path) = &self.knowledge else { return Ok(Knowledge::built_in()) };
        Knowledge::extended_by(&read_text(path)?).map_err(|error| CommandFailure::of(&path.display(), error))
    }

    fn print(&self, report: &InspectReport) -> Result<()> {
        let width = terminal::width().unwrap_or(terminal::PIPE_WIDTH);
        pager::show(|out| match self.format {
            ReportFormat::Text => write_text(report, (Some(width), self.details), out),
            ReportFormat::Json => write_json(report, out),
        })
    }
}

/// Looks at all servers, several at once.
fn examine_all(
    targets: &[DoctorTarget],
    recommended: &[Option<Recommendation>],
    knowledge: &Knowledge,
) -> Vec<ServerReport> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(targets.len()));
    thread::scope(|scope| {
        for _ in 0..PARALLEL.min(targets.len()) {
            scope.spawn(|| {
                while let Some((number, target)) = next_of(targets, &next) {
                    let report = match &target.options {
                        Ok(options) => {
                            let recommended = recommended.get(number).and_then(Option::as_ref);
                            let level = recommended.and_then(|recommended| recommended.level);
                            let level = level.map(|level| level.get());
                            let report = examine(&target.name, options, knowledge, level);
                            match recommended.filter(|_| report.error.is_none()) {
                                Some(recommended) => answered(report, estimate(recommended)),
                                None => report,
                            }
                        }
                        Err(error) => ServerReport::failed(target.name.as_str(), error.as_str()),
                    };
                    done.lock().push((number, report));
                }
            });
        }
    });
    let mut done = done.into_inner();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, report)| report).collect()
}

fn next_of<'a>(targets: &'a [DoctorTarget], next: &AtomicUsize) -> Option<(usize, &'a DoctorTarget)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, targets.get(number)?))
}

fn estimate(recommended: &Recommendation) -> SavingsEstimate {
    SavingsEstimate {
        verdict: recommended.verdict.name().to_owned(),
        said: recommended.to_string(),
        level: recommended.level.map(|level| level.get()),
        saved_percent: recommended.saved.map(|(percent, _)| percent),
        // This command's question is who reads the log.
        reasons: recommended.reasons.iter().filter(|reason| *reason != READERS).cloned().collect(),
    }
}

fn exit(report: &InspectReport) -> Exit {
    let of_server = |server: &ServerReport| match (&server.error, server.safe) {
        (Some(_), _) => Exit::Trouble,
        (None, false) => Exit::Negative,
        (None, true) if server.surveyed.as_ref().is_some_and(SurveyedLog::has_refusals) => Exit::Negative,
        (None, true) => match server.answer {
            Some(CompressionAnswer::No | CompressionAnswer::CantTell | CompressionAnswer::NotYet) => {
                Exit::Negative
            }
            Some(CompressionAnswer::Yes | CompressionAnswer::OnAlready) | None => Exit::Done,
        },
    };
    report.servers.iter().map(of_server).max().unwrap_or(Exit::Done)
}

fn write_json(report: &InspectReport, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

fn read_baseline(path: &Path) -> Result<InspectReport> {
    InspectReport::from_json(&read_text(path)?).map_err(|_| {
        CommandFailure::of(
            &path.display(),
            "is no baseline, expected the JSON document that doctor --save wrote",
        )
    })
}

fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| CommandFailure::of(&path.display(), error))?;
    let size = file.take(FILE_SIZE_MAX + 1).read_to_string(&mut text);
    match size.map_err(|error| CommandFailure::of(&path.display(), error))? as u64 {
        0..=FILE_SIZE_MAX => Ok(text),
        _ => Err(CommandFailure::of(&path.display(), "is larger than 64 MiB")),
    }
}
