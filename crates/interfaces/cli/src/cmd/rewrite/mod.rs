//! The common parts of compress and expand: logs in, logs out, a report; and the [`positions`] that moved.

mod positions;

use std::fmt::Display;
use std::fs::Metadata;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

use binlogz_cli_common::exits;
use binlogz_encryption::{EncryptingWriter, Keyring, MasterKey};
use binlogz_exits::MaskedLogs;
use binlogz_flow::{Input, LostRange, MovedTransaction, Rewrite, RewriteSummary, Rewriter, survey};
use clap::Args;
use positions::PositionsFile;

use super::exits::ExitsArgs;
use super::workers;
use crate::Exit;
use crate::failure::{CommandFailure, Result, complain, warn, warn_cut};
use crate::format::ReportFormat;
use crate::keyring::{EncryptArg, KeyringArg};
use crate::log_path::{LogPath, resolve};
use crate::mariadb;
use crate::output::{Destination, OutputTarget};
use crate::progress::WorkProgress;
use crate::report::{ResultReport, Verb};
use crate::terminal::TableArgs;
use crate::units;

/// The arguments of both.
#[derive(Debug, Args)]
pub(super) struct RewriteArgs {
    /// Folder (files keep their names), file, or - for standard output
    #[arg(long, short, value_name = "DIR|FILE|-", alias = "to")]
    output: Destination,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    /// Replace files that exist; never those that a server's *.index beside them lists
    #[arg(long, short)]
    force: bool,
    /// Keep the undamaged transactions of a damaged log; report what is left out, and exit with 1
    #[arg(long, conflicts_with = "exits")]
    salvage: bool,
    #[command(flatten)]
    exits: ExitsArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    encrypt: EncryptArg,
    /// Format of the report, which goes to standard output, or to standard error with --output -
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    /// Binary logs or relay logs; - is standard input
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<LogPath>,
}

/// A log and the place of its new form.
struct Job {
    log: LogPath,
    metadata: Result<Option<Metadata>>,
    target: Result<OutputTarget>,
}

/// The rewriting of each log.
struct Settings {
    rewrite: Rewrite,
    salvage: bool,
    workers: usize,
    keyring: Option<Keyring>,
    exits: Option<MaskedLogs>,
    encrypt: Option<MasterKey>,
}

impl RewriteArgs {
    /// Rewrites each log.
    pub(super) fn run(mut self, verb: Verb, how: Rewrite, positions: Option<PathBuf>) -> Result<Exit> {
        resolve(&mut self.files)?;
        let keyring = self.keyring.open()?;
        let settings = Settings {
            rewrite: how,
            salvage: self.salvage,
            workers: workers(self.jobs),
            encrypt: self.encrypt.key(keyring.as_ref())?,
            exits: self.exits.masked_logs(&self.files, keyring.as_ref(), workers(self.jobs))?,
            keyring,
        };
        let jobs = self.resolve()?;
        let positions = positions.map(|path| positions::target(path, &jobs, self.force)).transpose()?;
        let mut positions = positions.as_ref().map(PositionsFile::create).transpose()?;
        let names: Vec<_> = jobs.iter().map(|job| job.log.to_string()).collect();
        let (out, layout): (Box<dyn Write>, _) = match self.output.is_stdout() {
            true => (Box::new(io::stderr()), self.table.layout_on(&io::stderr())),
            false => (Box::new(io::stdout()), self.table.layout()),
        };
        let mut report = ResultReport::new(out, self.format, layout, verb);
        let mut exit = Exit::Done;
        for ((job, name), number) in jobs.into_iter().zip(&names).zip(1..) {
            match job.run(&settings, positions.as_mut(), (number, names.len())) {
                Ok(RewrittenLog { target, summary, lost }) => {
                    if let Some(cut) = summary.cut {
                        warn_cut(&name, cut, "; they are left out");
                    }
                    for lost in &lost {
                        warn_lost(&name, lost);
                        exit = exit.max(Exit::Negative);
                    }
                    if let Some(positions) = &mut positions {
                        positions.keep();
                    }
                    report.done(name, &target, &summary, &lost);
                }
                Err(CommandFailure::Line(line)) => {
                    if let Some(positions) = &mut positions {
                        positions.forget()?;
                    }
                    complain(&line);
                    report.failed(name, &line);
                    exit = Exit::Trouble;
                }
                Err(closed) => return Err(closed),
            }
        }
        if let Some(positions) = positions {
            positions.finish()?;
        }
        report.finish()?;
        if let Some(masked) = &settings.exits {
            exit = exit.max(exits::report(&masked.counts()));
        }
        Ok(exit)
    }

    fn resolve(&self) -> Result<Vec<Job>> {
        let targets = self.output.targets(&self.files, self.force)?;
        let jobs = self.files.iter().zip(targets);
        Ok(jobs.map(|(log, target)| Job { log: log.clone(), metadata: log.metadata(), target }).collect())
    }
}

/// The result for a log.
struct RewrittenLog {
    target: OutputTarget,
    summary: RewriteSummary,
    lost: Vec<LostRange>,
}

impl Job {
    fn run(
        self,
        settings: &Settings,
        positions: Option<&mut PositionsFile<'_>>,
        number: (usize, usize),
    ) -> Result<RewrittenLog> {
        let &Settings { rewrite, salvage, workers, .. } = settings;
        let Job { log, metadata, target } = self;
        let metadata = metadata?;
        let target = target?;
        let input = log.open(settings.keyring.as_ref())?;
        mariadb::warn_of(&log);
        let lost = if salvage { lost_parts(&log, &input)? } else { Vec::new() };
        let mut output = target.create_log(metadata.as_ref())?;
        let size = metadata.filter(Metadata::is_file).map(|metadata| metadata.len());
        let progress = WorkProgress::of(&log, size, number);
        let input = progress.watch(input);
        let input = match &settings.exits {
            Some(masked) => {
                let leaving = masked.log_at(number.0.saturating_sub(1), &log.to_string(), input);
                leaving.map_err(|error| CommandFailure::of(&log, error))?
            }
            None => input,
        };
        let mut note = positions.map(|positions| |moved: MovedTransaction| positions.note(&log, &moved));
        let mut at = |bytes| progress.at(bytes);
        let mut rewriter = Rewriter::new(rewrite).workers(workers).without(&lost).on_progress(&mut at);
        if let Some(note) = &mut note {
            rewriter = rewriter.on_moved(note);
        }
        let rewritten = match (&settings.encrypt, output.seekable()) {
            (Some(key), _) => {
                let encrypting = EncryptingWriter::new(&mut output, key);
                rewriter
                    .run(input, encrypting.map_err(|error| CommandFailure::writing(&target, &error.into()))?)
            }
            (None, Some(file)) => rewriter.run_seekable(input, file),
            (None, None) => rewriter.run(input, &mut output),
        };
        let summary = rewritten.map_err(|error| CommandFailure::rewriting(&log, &target, &error))?;
        output.finish()?;
        Ok(RewrittenLog { target, summary, lost })
    }
}

fn lost_parts(log: &LogPath, input: &Input) -> Result<Vec<LostRange>> {
    match input {
        Input::Places(places) => survey(places).map_err(|error| CommandFailure::reading(log, &error)),
        _ => Err(CommandFailure::of(log, "can't be read twice, expected a file for --salvage")),
    }
}

/// Reports the part of the log that is missing from the output.
fn warn_lost(log: &dyn Display, LostRange { range, damage, gtid, why }: &LostRange) {
    let place = if why.starts_with("at ") { String::new() } else { format!("at {damage}: ") };
    let transaction = gtid.map(|gtid| format!(", with transaction {gtid}")).unwrap_or_default();
    let Range { start, end } = range;
    warn(&format!("{log} {place}{why}; the bytes from {start} to {end} are left out{transaction}"));
}
