//! `binlogz bench PRESET`: the public experiments on a server. The work is `binlogz-experiments`'.

use std::io::{self, Write};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use binlogz_cli_common::Exit;
use binlogz_cli_common::companions::presets::{AllowArg, PresetOptions};
use binlogz_cli_common::failure::{CommandFailure, Result, complain, warn};
use binlogz_cli_common::interrupt;
use binlogz_cli_common::progress::is_quiet;
use binlogz_cli_common::server_args::with_place;
use binlogz_cli_common::terminal::{self, SizesArg};
use binlogz_experiments::{
    Allow, Error, ExperimentOptions, ExperimentProgress, Experimenter, Preset, Results, RunStopper,
    TestedServer, write_report,
};
use binlogz_figures::FigureFormat;
use indicatif::{ProgressBar, ProgressStyle};

/// An interrupted run keeps its results in less.
const KEEP_MAX: Duration = Duration::from_secs(20);

fn allowed(allow: AllowArg) -> Allow {
    match allow {
        AllowArg::Replicas => Allow::Replicas,
        AllowArg::SemiSync => Allow::SemiSync,
        AllowArg::UserSchemas => Allow::UserSchemas,
        AllowArg::OtherLoad => Allow::OtherLoad,
        AllowArg::LittleSpace => Allow::LittleSpace,
    }
}

pub(super) fn run(args: PresetOptions, preset: Preset) -> Result<Exit> {
    let stopper = RunStopper::default();
    let experimenter = experimenter(&args, preset, stopper.clone());
    if args.plan {
        return tell_plan(&experimenter);
    }
    let server = tested_server(&args).map_err(|error| line(&error))?;
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
        Ok(results) => tell(&args, &results),
        Err(error) => {
            // The measurements so far deserve a page, which says that it is incomplete.
            if let Ok(Some(results)) = Results::read(&args.out)
                && !(results.cells.is_empty() && results.replicas.is_empty())
                && let Err(error) = write_report(&results, &args.out)
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

fn experimenter(args: &PresetOptions, preset: Preset, stopper: RunStopper) -> Experimenter {
    Experimenter {
        preset,
        skipped: args.skip.clone(),
        settings: args.setting.clone(),
        options: ExperimentOptions {
            preset: preset.name().to_owned(),
            scale: args.scale,
            repeat: args.repeat,
            time_s: args.time.as_secs_f64(),
            seed: args.seed,
            threads: args.threads.clone(),
        },
        folder: args.out.clone(),
        allowed: args.allow.iter().copied().map(allowed).collect(),
        stopper,
    }
}

fn tested_server(args: &PresetOptions) -> std::result::Result<TestedServer, Error> {
    if args.sandbox {
        return TestedServer::private(&args.sandbox_option);
    }
    let refused = |text: &str| Err(Error::Refused(text.to_owned()));
    if args.server.is_none() && !args.connection.names_a_place() {
        return refused("no server: name one, or --sandbox starts a private one");
    }
    if !args.yes_load_this_server {
        return refused(
            "the workloads load the server, replicate, and change its global settings for a while: \
             --yes-load-this-server says that they may; --sandbox starts a private server instead",
        );
    }
    let options = args.connection.connect_options("binlogz bench").map_err(text_of)?;
    let options = match &args.server {
        Some(_) if args.connection.names_a_place() => {
            return refused(
                "--host, --port and --socket name another server than SERVER does: give one of them",
            );
        }
        Some(server) => with_place(&options, server).map_err(Error::Refused)?,
        None => options,
    };
    TestedServer::of_the_user(options)
}

fn tell(args: &PresetOptions, results: &Results) -> Result<Exit> {
    let conclusions = write_report(results, &args.out).map_err(|error| line(&error))?;
    let mut out = io::stdout().lock();
    let mut write = || {
        conclusions
            .iter()
            .try_for_each(|conclusion| write!(out, "{}", terminal::within_width(conclusion)))?;
        writeln!(out, "{}", args.out.join("report.html").display())?;
        out.flush()
    };
    write().map_err(|error| CommandFailure::writing(&"standard output", &error))?;
    Ok(Exit::Done)
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
