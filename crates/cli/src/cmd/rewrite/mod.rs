//! What compress and expand have in common: logs in, logs out, a report; and the [`positions`] that moved.

mod positions;

use std::fmt::Display;
use std::fs::Metadata;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

use binlogz_encryption::{EncryptingWriter, Keyring, MasterKey};
use binlogz_flow::{Input, Lost, Moved, Rewrite, Summary, rewrite_without, survey};
use clap::Args;
use positions::Positions;

use super::workers;
use crate::Exit;
use crate::failure::{Failure, Result, complain, warn, warn_cut};
use crate::keyring::{EncryptArg, KeyringArg};
use crate::log_path::{LogPath, resolve};
use crate::output::{Destination, Target};
use crate::progress::Progress;
use crate::report::{Format, Report, Verb};

/// The arguments of both.
#[derive(Debug, Args)]
pub(super) struct RewriteArgs {
    /// Folder (files keep their names), file, or - for standard output
    #[arg(long, short, value_name = "DIR|FILE|-")]
    output: Destination,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Replace files that exist; never those that a server's *.index beside them lists
    #[arg(long, short)]
    force: bool,
    /// Save what is whole of a damaged log; what is left out is told, and the exit code is 1
    #[arg(long)]
    salvage: bool,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    encrypt: EncryptArg,
    /// How the report is written: to standard output, or to standard error with --output -
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Binary logs or relay logs; - is standard input
    #[arg(required = true, value_name = "FILE|-")]
    files: Vec<LogPath>,
}

/// A log and the place of its new form.
struct Job {
    log: LogPath,
    metadata: Result<Option<Metadata>>,
    target: Result<Target>,
}

/// What is done to each log.
struct Settings {
    rewrite: Rewrite,
    salvage: bool,
    workers: usize,
    keyring: Option<Keyring>,
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
            keyring,
        };
        let jobs = self.resolve()?;
        let positions = positions.map(|path| positions::target(path, &jobs, self.force)).transpose()?;
        let mut positions = positions.as_ref().map(Positions::create).transpose()?;
        let names: Vec<_> = jobs.iter().map(|job| job.log.to_string()).collect();
        let out: Box<dyn Write> =
            if self.output.is_stdout() { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
        let mut report = Report::new(out, self.format, verb, &names);
        let mut exit = Exit::Done;
        for (job, name) in jobs.into_iter().zip(&names) {
            match job.run(&settings, positions.as_mut()) {
                Ok(Rewritten { target, summary, lost }) => {
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
                    report.done(name, &target, &summary, &lost)?;
                }
                Err(Failure::Line(line)) => {
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
        Ok(exit)
    }

    fn resolve(&self) -> Result<Vec<Job>> {
        let targets = self.output.targets(&self.files, self.force)?;
        let jobs = self.files.iter().zip(targets);
        Ok(jobs.map(|(log, target)| Job { log: log.clone(), metadata: log.metadata(), target }).collect())
    }
}

/// What came of a log.
struct Rewritten {
    target: Target,
    summary: Summary,
    lost: Vec<Lost>,
}

impl Job {
    fn run(self, settings: &Settings, positions: Option<&mut Positions<'_>>) -> Result<Rewritten> {
        let &Settings { rewrite, salvage, workers, .. } = settings;
        let Job { log, metadata, target } = self;
        let metadata = metadata?;
        let target = target?;
        let input = log.open(settings.keyring.as_ref())?;
        let lost = if salvage { lost_parts(&log, &input)? } else { Vec::new() };
        let mut output = target.create_log(metadata.as_ref())?;
        let size = metadata.filter(Metadata::is_file).map(|metadata| metadata.len());
        let progress = Progress::new(&log, size);
        let mut note = positions.map(|positions| |moved| positions.note(&log, &moved));
        let moved = note.as_mut().map(|note| note as &mut dyn FnMut(Moved) -> io::Result<()>);
        let mut encrypting;
        let out: &mut dyn Write = match &settings.encrypt {
            Some(key) => {
                let header_written = EncryptingWriter::new(&mut output, key);
                encrypting =
                    header_written.map_err(|error| Failure::writing(&target, &io::Error::from(error)))?;
                &mut encrypting
            }
            None => &mut output,
        };
        let summary =
            rewrite_without(&lost, input, out, rewrite, workers, moved, &mut |bytes| progress.at(bytes));
        let summary = summary.map_err(|error| Failure::rewriting(&log, &target, &error))?;
        output.finish()?;
        Ok(Rewritten { target, summary, lost })
    }
}

fn lost_parts(log: &LogPath, input: &Input) -> Result<Vec<Lost>> {
    match input {
        Input::Places(places) => survey(places).map_err(|error| Failure::reading(log, &error)),
        _ => Err(Failure::of(log, "can't be read twice, expected a file for --salvage")),
    }
}

/// Tells what is not in the output.
fn warn_lost(log: &dyn Display, Lost { range, damage, gtid, why }: &Lost) {
    let place = if why.starts_with("at ") { String::new() } else { format!("at {damage}: ") };
    let transaction = gtid.map(|gtid| format!(", with transaction {gtid}")).unwrap_or_default();
    let Range { start, end } = range;
    warn(&format!("{log} {place}{why}; the bytes from {start} to {end} are left out{transaction}"));
}
