//! `binlogz doctor`: asks the servers themselves what turning compression on would break.

mod targets;

use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use binlogz_inspect::{Knowledge, Report, ServerReport, changes, examine, write_text};
use clap::{Args, ValueEnum};

use crate::Exit;
use crate::failure::{Failure, Result, complain};
use crate::output;
use crate::server_args::ServerArgs;
use crate::terminal;
use targets::Target;

/// Ask servers what turning transaction compression on would break
///
/// Needs only a monitoring account and changes nothing. Checks settings, known bugs, figures, sessions with old values,
/// and for each client that reads the binary log whether it can read compressed transactions, and what happens if it
/// can't. Ends with a rollout plan: commands to review.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(crate) struct Doctor {
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
    /// Output format
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    format: FormatArg,
    #[command(flatten)]
    connection: ServerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatArg {
    /// For people
    Text,
    /// One JSON document; its fields are stable
    Json,
}

const EXAMPLES: &str = "Examples:
  binlogz doctor -u monitor -p db1
  binlogz doctor --login-path=monitor --targets fleet.txt --save before.json
  binlogz doctor --login-path=monitor --targets fleet.txt --since before.json

Exit codes: 0 safe, as far as those connected go; 1 a consumer would break, or one is not known,
or none is connected, or the server can't compress; 2 a server could not be looked at, or other
trouble.";

/// Servers looked at in parallel: mostly waiting, and no burden on anybody's network.
const PARALLEL: usize = 8;
/// The largest file of targets, knowledge or baseline that is read, in bytes.
const FILE_SIZE_MAX: u64 = 64 << 20;

impl Doctor {
    pub(super) fn run(self) -> Result<Exit> {
        let knowledge = self.knowledge()?;
        let baseline = self.since.as_deref().map(read_baseline).transpose()?;
        let save = self.save.clone().map(|path| output::target(path, &[], self.force)).transpose()?;
        let mut report = Report::new(examine_all(&self.targets()?, &knowledge));
        for server in &report.servers {
            if let Some(error) = &server.error {
                complain(&format!("{}: {error}", server.server));
            }
        }
        if let Some(target) = &save {
            let mut output = target.create()?;
            write_json(&report, &mut output).map_err(|error| Failure::writing(target, &error))?;
            output.finish()?;
        }
        report.changes = baseline.map(|baseline| changes(&baseline, &report));
        self.print(&report)?;
        Ok(exit(&report))
    }

    fn targets(&self) -> Result<Vec<Target>> {
        let mut names = self.servers.clone();
        if let Some(path) = &self.targets {
            names.extend(
                targets::read(&read_text(path)?).map_err(|error| Failure::of(&path.display(), error))?,
            );
        }
        let options = self.connection.connect_options("binlogz doctor")?;
        match names.is_empty() {
            true if self.targets.is_some() => Err(Failure::Line("--targets names no server".to_owned())),
            true => Ok(vec![Target { name: options.server(), options: Ok(options) }]),
            false if self.connection.names_a_place() => Err(Failure::Line(
                "--host, --port and --socket name another server than SERVER does: give one of them"
                    .to_owned(),
            )),
            false => Ok(names.into_iter().map(|name| Target::new(name, &options)).collect()),
        }
    }

    fn knowledge(&self) -> Result<Knowledge> {
        let Some(path) = &self.knowledge else { return Ok(Knowledge::built_in()) };
        Knowledge::extended_by(&read_text(path)?).map_err(|error| Failure::of(&path.display(), error))
    }

    fn print(&self, report: &Report) -> Result<()> {
        let mut out = BufWriter::new(io::stdout().lock());
        let written = match self.format {
            FormatArg::Text => write_text(report, terminal::width(), &mut out),
            FormatArg::Json => write_json(report, &mut out),
        };
        written.and_then(|()| out.flush()).map_err(|error| Failure::writing(&"standard output", &error))
    }
}

/// Looks at all servers, several at once.
fn examine_all(targets: &[Target], knowledge: &Knowledge) -> Vec<ServerReport> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(targets.len()));
    thread::scope(|scope| {
        for _ in 0..PARALLEL.min(targets.len()) {
            scope.spawn(|| {
                while let Some((number, target)) = next_of(targets, &next) {
                    let report = match &target.options {
                        Ok(options) => examine(&target.name, options, knowledge),
                        Err(error) => ServerReport::failed(target.name.as_str(), error.as_str()),
                    };
                    done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, report));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, report)| report).collect()
}

fn next_of<'a>(targets: &'a [Target], next: &AtomicUsize) -> Option<(usize, &'a Target)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, targets.get(number)?))
}

fn exit(report: &Report) -> Exit {
    let of_server = |server: &ServerReport| match (&server.error, server.safe) {
        (Some(_), _) => Exit::Trouble,
        (None, false) => Exit::Negative,
        (None, true) => Exit::Done,
    };
    report.servers.iter().map(of_server).max().unwrap_or(Exit::Done)
}

fn write_json(report: &Report, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    writeln!(out)
}

fn read_baseline(path: &Path) -> Result<Report> {
    Report::from_json(&read_text(path)?).map_err(|_| {
        Failure::of(&path.display(), "is no baseline, expected the JSON document that doctor --save wrote")
    })
}

fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| Failure::of(&path.display(), error))?;
    let size = file.take(FILE_SIZE_MAX + 1).read_to_string(&mut text);
    match size.map_err(|error| Failure::of(&path.display(), error))? as u64 {
        0..=FILE_SIZE_MAX => Ok(text),
        _ => Err(Failure::of(&path.display(), "is larger than 64 MiB")),
    }
}
