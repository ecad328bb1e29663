//! `binlogz bench PRESET`: the public experiments on a server. The work is `binlogz-experiments`'.

use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use binlogz_cli_common::Exit;
use binlogz_cli_common::failure::{CommandFailure, Result, complain, warn};
use binlogz_cli_common::interrupt;
use binlogz_cli_common::progress::is_quiet;
use binlogz_cli_common::server_args::{ServerArgs, with_place};
use binlogz_cli_common::terminal::{self, SizesArg};
use binlogz_cli_common::units;
use binlogz_experiments::{
    Allow, Error, ExperimentOptions, ExperimentProgress, Experimenter, Preset, Results, RunStopper,
    TestedServer, write_report,
};
use binlogz_figures::FigureFormat;
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};

/// The options that all presets have.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_flag = true)]
pub(super) struct PresetOptions {
    /// The server: `mysql://[USER@]HOST[:PORT]`, `[USER@]HOST[:PORT]`, or a socket: `/PATH`, `unix:/PATH`
    #[arg(value_name = "SERVER", conflicts_with = "sandbox")]
    server: Option<String>,
    /// Start a private server for the run, of the MySQL that MYSQL_BASEDIR names or that the tests use
    #[arg(long)]
    sandbox: bool,
    /// An option of the private server, as in innodb-buffer-pool-size=1G
    #[arg(long, value_name = "NAME=VALUE", requires = "sandbox", value_parser = name_and_value, hide_short_help = true)]
    sandbox_option: Vec<(String, String)>,
    /// Allow the load: the workloads write, replicate, and change global settings until the end of the run
    #[arg(long)]
    yes_load_this_server: bool,
    /// Safety checks to override
    #[arg(long, value_name = "WHAT,…", value_delimiter = ',')]
    allow: Vec<AllowArg>,
    /// Presets that `all` leaves out
    #[arg(long, value_name = "PRESET,…", value_delimiter = ',', hide_short_help = true)]
    skip: Vec<String>,
    /// Measure only this setting, such as 'level 22'; repeatable. Later runs can add others in the same folder
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    setting: Vec<String>,
    /// Numbers of connections for insert, instead of the study's
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=CONNECTIONS_MAX), hide_short_help = true)]
    threads: Vec<u32>,
    /// Print what would run and about how long it takes, without connecting to a server
    #[arg(long)]
    plan: bool,
    /// Size of the data, where 1 is the studies' own
    #[arg(long, value_name = "0.001…1", default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// How many times each setting is measured
    #[arg(long, value_name = "N", default_value_t = REPEAT, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Duration of open-ended steps: 10s, 2m, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = TIME, value_parser = time)]
    time: Duration,
    /// Seed of the order of settings and of the data
    #[arg(long, value_name = "N", default_value_t = SEED, hide_short_help = true)]
    seed: u64,
    /// Folder for results and report; an interrupted run continues there
    #[arg(long = "to", value_name = "DIR", alias = "out")]
    out: PathBuf,
    #[command(flatten)]
    connection: ServerArgs,
}

/// Enough for a median, and to see how far figures lie apart.
const REPEAT: u32 = 3;
/// Long enough for a steady rate.
const TIME: &str = "10s";
/// Any; the same for everyone, so that data and order are.
const SEED: u64 = 7;

/// More than MySQL's own max_connections can be.
const CONNECTIONS_MAX: i64 = 100_000;

/// An interrupted run keeps its results in less.
const KEEP_MAX: Duration = Duration::from_secs(20);

const EXAMPLES: &str = "Examples:
  binlogz bench space --sandbox --scale 0.1 --to space
  binlogz bench levels --yes-load-this-server --allow user-schemas --to levels -u root -p db1

DIR/restore.sql holds the settings that were changed until they are restored: at the end, at an error, at Ctrl-C.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AllowArg {
    /// Replicas or other readers of the binary log are attached
    Replicas,
    /// Commits wait for a replica's acknowledgement
    SemiSync,
    /// The server has users' schemas
    UserSchemas,
    /// Other sessions are active
    OtherLoad,
    /// The disk may become full
    LittleSpace,
}

impl From<AllowArg> for Allow {
    fn from(allow: AllowArg) -> Allow {
        match allow {
            AllowArg::Replicas => Allow::Replicas,
            AllowArg::SemiSync => Allow::SemiSync,
            AllowArg::UserSchemas => Allow::UserSchemas,
            AllowArg::OtherLoad => Allow::OtherLoad,
            AllowArg::LittleSpace => Allow::LittleSpace,
        }
    }
}

fn scale(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.0001..=10.0).contains(&scale) => Ok(scale),
        _ => Err("expected 0.0001 to 10".to_owned()),
    }
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    const RANGE: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(86_400);
    match units::duration_or_seconds(text) {
        Ok(time) if RANGE.contains(&time) => Ok(time),
        _ => Err("expected 0.1 to 86400 seconds".to_owned()),
    }
}

fn name_and_value(text: &str) -> std::result::Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| "expected NAME=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

impl PresetOptions {
    pub(super) fn run(self, preset: Preset) -> Result<Exit> {
        let stopper = RunStopper::default();
        let experimenter = self.experimenter(preset, stopper.clone());
        if self.plan {
            return tell_plan(&experimenter);
        }
        let server = self.tested_server().map_err(|error| line(&error))?;
        let (on_signal, (kept, is_kept)) = (stopper.clone(), mpsc::channel::<()>());
        interrupt::before_the_end(move || {
            if let Err(error) = on_signal.stop() {
                complain(&error.to_string());
            }
            // The run notices this and keeps its results.
            let _ = is_kept.recv_timeout(KEEP_MAX);
        });
        let bar = Bar::new();
        let ran = experimenter.run(&server, &mut |progress| bar.show(progress));
        drop(bar);
        match ran {
            Ok(results) => self.tell(&results),
            Err(error) => {
                // The measurements so far deserve a page, which says that it is incomplete.
                if let Ok(Some(results)) = Results::read(&self.out)
                    && !(results.cells.is_empty() && results.replicas.is_empty())
                    && let Err(error) = write_report(&results, &self.out)
                {
                    warn(&error.to_string());
                }
                if matches!(error, Error::Interrupted) {
                    drop(kept);
                    // The signal ends the process, as its sender expects.
                    loop {
                        thread::park();
                    }
                }
                Err(line(&error))
            }
        }
    }

    fn experimenter(&self, preset: Preset, stopper: RunStopper) -> Experimenter {
        Experimenter {
            preset,
            skipped: self.skip.clone(),
            settings: self.setting.clone(),
            options: ExperimentOptions {
                preset: preset.name().to_owned(),
                scale: self.scale,
                repeat: self.repeat,
                time_s: self.time.as_secs_f64(),
                seed: self.seed,
                threads: self.threads.clone(),
            },
            folder: self.out.clone(),
            allowed: self.allow.iter().copied().map(Allow::from).collect(),
            stopper,
        }
    }

    fn tested_server(&self) -> std::result::Result<TestedServer, Error> {
        if self.sandbox {
            return TestedServer::private(&self.sandbox_option);
        }
        let refused = |text: &str| Err(Error::Refused(text.to_owned()));
        if self.server.is_none() && !self.connection.names_a_place() {
            return refused("no server: name one, or --sandbox starts a private one");
        }
        if !self.yes_load_this_server {
            return refused(
                "the workloads load the server, replicate, and change its global settings for a while: \
                 --yes-load-this-server says that they may; --sandbox starts a private server instead",
            );
        }
        let options = self.connection.connect_options("binlogz bench").map_err(text_of)?;
        let options = match &self.server {
            Some(_) if self.connection.names_a_place() => {
                return refused(
                    "--host, --port and --socket name another server than SERVER does: give one of them",
                );
            }
            Some(server) => with_place(&options, server).map_err(Error::Refused)?,
            None => options,
        };
        TestedServer::of_the_user(options)
    }

    fn tell(&self, results: &Results) -> Result<Exit> {
        let conclusions = write_report(results, &self.out).map_err(|error| line(&error))?;
        let mut out = io::stdout().lock();
        let mut write = || {
            conclusions
                .iter()
                .try_for_each(|conclusion| write!(out, "{}", terminal::within_width(conclusion)))?;
            writeln!(out, "{}", self.out.join("report.html").display())?;
            out.flush()
        };
        write().map_err(|error| CommandFailure::writing(&"standard output", &error))?;
        Ok(Exit::Done)
    }
}

fn tell_plan(experimenter: &Experimenter) -> Result<Exit> {
    let plan = experimenter.plan().map_err(|error| line(&error))?;
    let mut out = io::stdout().lock();
    let written =
        FigureFormat::Table(SizesArg::default().layout()).write(&[plan], &mut out).and_then(|()| out.flush());
    written.map_err(|error| CommandFailure::writing(&"standard output", &error))?;
    Ok(Exit::Done)
}

fn line(error: &Error) -> CommandFailure {
    CommandFailure::Line(error.to_string())
}

fn text_of(failure: CommandFailure) -> Error {
    match failure {
        CommandFailure::Line(line) => Error::Refused(line),
        CommandFailure::ClosedPipe => Error::Refused("a closed pipe".to_owned()),
    }
}

/// Progress, on stderr while that is a terminal.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Bar {
        let style = ProgressStyle::with_template("{bar:16} {pos}/{len} {wide_msg}");
        let bar = if is_quiet() { ProgressBar::hidden() } else { ProgressBar::new(0) };
        Bar(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    fn show(&self, progress: &ExperimentProgress) {
        self.0.set_length(progress.cells as u64);
        self.0.set_position(progress.done as u64);
        let left = progress.left.map_or_else(String::new, |left| format!(", about {} left", span(left)));
        self.0.set_message(format!("{}{left}", progress.now));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// As in `3 min` and `40 s`.
fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}
