//! What compress and expand have in common: logs in, logs out, a report.

use std::fmt::Display;
use std::fs::Metadata;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::ops::Range;
use std::path::PathBuf;

use binlogz_flow::{Input, Lost, Moved, Rewrite, Summary, rewrite_without, survey};
use clap::Args;

use super::workers;
use crate::Exit;
use crate::failure::{Failure, Result, complain, warn, warn_cut};
use crate::log_path::{LogPath, check_stdin_once};
use crate::output::{Destination, Output, Target, target};
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

impl RewriteArgs {
    /// Rewrites each log.
    pub(super) fn run(self, verb: Verb, how: Rewrite, positions: Option<PathBuf>) -> Result<Exit> {
        check_stdin_once(&self.files)?;
        let jobs = self.resolve()?;
        let positions = positions.map(|path| positions_target(path, &jobs, self.force)).transpose()?;
        let mut positions = positions.as_ref().map(Positions::create).transpose()?;
        let workers = workers(self.jobs);
        let names: Vec<_> = jobs.iter().map(|job| job.log.to_string()).collect();
        let out: Box<dyn Write> =
            if self.output.is_stdout() { Box::new(io::stderr()) } else { Box::new(io::stdout()) };
        let mut report = Report::new(out, self.format, verb, &names);
        let mut exit = Exit::Done;
        for (job, name) in jobs.into_iter().zip(&names) {
            match job.run(how, self.salvage, workers, positions.as_mut()) {
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
                    complain(&line);
                    if let Some(positions) = &mut positions {
                        positions.forget()?;
                    }
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
    fn run(
        self,
        how: Rewrite,
        salvage: bool,
        workers: usize,
        positions: Option<&mut Positions<'_>>,
    ) -> Result<Rewritten> {
        let Job { log, metadata, target } = self;
        let metadata = metadata?;
        let target = target?;
        let input = log.open()?;
        let lost = if salvage { lost_parts(&log, &input)? } else { Vec::new() };
        let mut output = target.create(metadata.as_ref())?;
        let size = metadata.filter(Metadata::is_file).map(|metadata| metadata.len());
        let progress = Progress::new(&log, size);
        let mut position_trouble = None;
        let mut note = positions.map(|positions| {
            |moved| {
                positions.note(&log, &moved).map_err(|error| {
                    let kind = error.kind();
                    position_trouble = Some(Failure::writing(positions.target, &error));
                    kind.into()
                })
            }
        });
        let moved = note.as_mut().map(|note| note as &mut dyn FnMut(Moved) -> io::Result<()>);
        let result =
            rewrite_without(&lost, input, &mut output, how, workers, moved, &mut |bytes| progress.at(bytes));
        let summary = match (result, position_trouble) {
            (Err(_), Some(failure)) => return Err(failure),
            (result, _) => result.map_err(|error| Failure::rewriting(&log, &target, &error))?,
        };
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

fn positions_target(path: PathBuf, jobs: &[Job], force: bool) -> Result<Target> {
    let taken = |job: &Job| matches!(&job.target, Ok(Target::File { path: taken, .. }) if *taken == path);
    if jobs.iter().any(taken) {
        return Err(Failure::of(&path.display(), "is the output, too; --positions needs a file of its own"));
    }
    let inputs: Vec<_> = jobs.iter().filter_map(|job| job.metadata.as_ref().ok()?.clone()).collect();
    target(path, &inputs, force)
}

/// The file that says where each transaction was and is.
struct Positions<'a> {
    target: &'a Target,
    out: BufWriter<Output<'a>>,
    /// Bytes of all lines.
    size: u64,
    /// Bytes of the lines of logs that are done.
    kept: u64,
}

/// Its first line.
const POSITIONS_HEADING: &str = "file\tgtid\told_start\told_end\tnew_start\tnew_end";

/// What stands for the GTID of a transaction that has none.
const ANONYMOUS: &str = "ANONYMOUS";

impl<'a> Positions<'a> {
    fn create(target: &'a Target) -> Result<Self> {
        let mut positions = Positions { target, out: BufWriter::new(target.create(None)?), size: 0, kept: 0 };
        positions.line(POSITIONS_HEADING).map_err(|error| Failure::writing(target, &error))?;
        positions.keep();
        Ok(positions)
    }

    fn note(&mut self, log: &dyn Display, Moved { gtid, old, new }: &Moved) -> io::Result<()> {
        let gtid: &dyn Display = match gtid {
            Some(gtid) => gtid,
            None => &ANONYMOUS,
        };
        self.line(&format!("{log}\t{gtid}\t{}\t{}\t{}\t{}", old.start, old.end, new.start, new.end))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.size += line.len() as u64 + 1;
        writeln!(self.out, "{line}")
    }

    /// The log noted last is done.
    fn keep(&mut self) {
        self.kept = self.size;
    }

    /// The log noted last failed: it has no new positions.
    fn forget(&mut self) -> Result<()> {
        self.size = self.kept;
        let taken_back = self.out.flush().and_then(|()| self.out.get_mut().truncate(self.kept));
        taken_back.map_err(|error| Failure::writing(self.target, &error))
    }

    fn finish(self) -> Result<()> {
        let Positions { target, out, .. } = self;
        let output = out.into_inner().map_err(|error| Failure::writing(target, error.error()))?;
        output.finish()
    }
}
