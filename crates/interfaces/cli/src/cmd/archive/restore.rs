//! `binlogz archive restore` and `cat`: logs, or chosen transactions, come back as files or as one stream.

use std::cell::OnceCell;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use binlogz_archive::Error;
use binlogz_archive::format::{FileEntry, Manifest};
use binlogz_archive::restore::{self, LastObject};
use binlogz_archive::selection::TransactionSelection;
use binlogz_archive::storage::ArchiveStorage;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_figures::counted;
use binlogz_flow::BoundaryMoment;
use binlogz_print::met::UnmetRequest;
use clap::Args;

use super::{failure, json, marks_of, open, print};
use crate::Exit;
use crate::cmd::closed_logs::end_in_words;
use crate::cmd::workers;
use crate::erased;
use crate::failure::{CommandFailure, Result, complain, warn};
use crate::format::ReportFormat;
use crate::output::{self, OutputTarget};
use crate::progress::WorkProgress;
use crate::time::{GivenTime, NoTime};

#[derive(Debug, Args)]
struct Chosen {
    /// Only these transactions
    #[arg(long, value_name = "GTID_SET", alias = "include-gtids")]
    gtids: Option<GtidSet>,
    /// Only transactions begun at this time or later: '2026-11-22 23:10', 23:10, 'yesterday 23:10', -1h …
    ///
    /// With a fraction of a second: only those committed then or later, where MySQL logs microseconds, else by whole seconds.
    #[arg(long, value_name = "TIME", value_parser = boundary, allow_hyphen_values = true)]
    start_datetime: Option<BoundaryMoment>,
    /// Only transactions begun before this time, or with a fraction committed
    #[arg(long, value_name = "TIME", value_parser = boundary, allow_hyphen_values = true, alias = "until-datetime")]
    stop_datetime: Option<BoundaryMoment>,
    /// Only what stands before this transaction
    #[arg(long, value_name = "GTID")]
    stop_before_gtid: Option<Gtid>,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
    /// Only these logs
    #[arg(value_name = "LOG")]
    logs: Vec<String>,
}

/// Restore logs, or chosen transactions as logs of their own
///
/// Whole logs come back byte for byte. Chosen transactions come in logs of the same names, with their format
/// description and previous GTIDs; compressed ones come expanded.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Restore {
    /// The folder for the logs
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Text)]
    format: ReportFormat,
    #[command(flatten)]
    chosen: Chosen,
}

const EXAMPLES: &str = "Examples:
  binlogz archive restore --to back /backup/db1
  binlogz archive restore --to back s3://bucket/db1 binlog.000042 binlog.000043
  binlogz archive restore --to back --gtids 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 /backup/db1";

/// Write logs, or chosen transactions, to standard output as one stream for mysqlbinlog or dump
///
/// The first log's magic alone is written: format descriptions in mid-stream are read.
#[derive(Debug, Args)]
#[command(after_help = CAT_EXAMPLES)]
pub(super) struct Cat {
    #[command(flatten)]
    chosen: Chosen,
}

const CAT_EXAMPLES: &str = "Examples:
  binlogz archive cat --start-datetime '2026-11-22 10:00:00' /backup/db1 | mysqlbinlog -v -
  binlogz archive cat /backup/db1 binlog.000042 | binlogz stats --by table -";

impl Chosen {
    fn selection(&self) -> TransactionSelection {
        TransactionSelection {
            gtids: self.gtids.clone(),
            start: self.start_datetime,
            stop: self.stop_datetime,
            stop_before: self.stop_before_gtid,
        }
    }

    /// The logs asked for.
    fn files(&self, manifest: Manifest) -> Result<Vec<FileEntry>> {
        if let Some(missing) =
            self.logs.iter().find(|name| !manifest.files.iter().any(|file| file.name == **name))
        {
            return Err(CommandFailure::of(&self.archive.display(), format_args!("holds no log {missing}")));
        }
        let wanted =
            |file: &FileEntry| self.logs.is_empty() || self.logs.iter().any(|name| file.name == *name);
        Ok(manifest.files.into_iter().filter(wanted).collect())
    }

    /// Finds a request that none of the logs can meet, as far as the manifest can tell. Warns about GTIDs that are missing
    /// from a set of which others are there.
    fn unmet(&self, files: &[FileEntry]) -> Result<Option<String>> {
        let mut there = GtidSet::new();
        for file in files {
            there.union(&file.gtid_set().map_err(failure(&self.archive))?);
        }
        let is_of_times = |file: &FileEntry| {
            let (first, last) = file.times.unwrap_or((0, u32::MAX));
            self.start_datetime.is_none_or(|start| start.may_be_reached(last))
                && self.stop_datetime.is_none_or(|stop| !stop.is_reached(first, None))
        };
        if let Some(stop) = self.stop_before_gtid.filter(|stop| !there.contains(stop)) {
            return Ok(Some(UnmetRequest::stop_before_gtid(&stop).line));
        }
        if !files.is_empty() && !files.iter().any(is_of_times) {
            let unmet = UnmetRequest::times("transaction").line;
            let is_over = files
                .iter()
                .filter_map(|file| file.times)
                .all(|(_, last)| self.start_datetime.is_some_and(|start| !start.may_be_reached(last)));
            let end = end_in_words(files).filter(|_| is_over && self.logs.is_empty());
            return Ok(Some(end.map_or(unmet.clone(), |end| format!("{unmet}; {end}"))));
        }
        let Some(mut absent) = self.gtids.clone() else { return Ok(None) };
        if absent.is_disjoint(&there) {
            return Ok(Some(UnmetRequest::gtids(&absent).line));
        }
        absent.subtract(&there);
        if !absent.is_empty() {
            warn(&format!("{}: {} are not there", self.archive.display(), one_line(&absent)));
        }
        Ok(None)
    }

    /// Gives each log, or the chosen part of it, to an output that `begin` makes and `end` completes. `end` receives how many
    /// transactions were chosen. `in_stream`: nothing may follow a log that failed.
    fn each<O>(
        &self,
        storage: &dyn ArchiveStorage,
        files: &[FileEntry],
        in_stream: bool,
        mut begin: impl FnMut(usize, &FileEntry) -> Result<(O, Box<dyn Write>)>,
        mut end: impl FnMut(&FileEntry, O, Option<u64>) -> Result<()>,
        report: &mut json::RestoreJson,
    ) -> Result<Exit> {
        let selection = self.selection();
        let last = LastObject::default();
        // Asked once: the system reads several files to answer.
        let workers = workers(None);
        let mut exit = Exit::Done;
        if let Some(unmet) = self.unmet(files)? {
            complain(&format!("{}: {unmet}", self.archive.display()));
            report.unmet = Some(unmet);
            return Ok(Exit::Negative);
        }
        if let Some(note) = erased::note_on(files) {
            warn(&format!("{}: {note}", self.archive.display()));
        }
        let mut is_chosen = selection.is_all();
        for (place, file) in files.iter().enumerate() {
            let mut output = None;
            let mut refused = None;
            let mut begin = || match begin(place, file) {
                Ok((made, out)) => {
                    output = Some(made);
                    Ok(out)
                }
                Err(failure) => {
                    refused = Some(failure);
                    Err(Error::writing(io::ErrorKind::Other.into()))
                }
            };
            let restored = if selection.is_all() {
                begin().and_then(|mut out| {
                    restore::whole_after(storage, &last, file, &mut out, workers)?;
                    out.flush().map_err(Error::writing)?;
                    Ok((false, None))
                })
            } else {
                restore::chosen_after(storage, &last, file, &selection, workers, &mut begin)
                    .map(|restored| (restored.ended, Some(restored.transactions)))
            };
            let done = match (restored, refused) {
                (Ok((ended, count)), _) => {
                    is_chosen |= output.is_some();
                    output.map_or(Ok(()), |output| end(file, output, count)).map(|()| ended)
                }
                (_, Some(refused)) => Err(refused),
                (Err(error), _) if error.is_closed_pipe() => Err(CommandFailure::ClosedPipe),
                (Err(error), _) => Err(CommandFailure::of(&file.name, error)),
            };
            match done {
                Ok(false) => {}
                Ok(true) => break,
                Err(CommandFailure::Line(line)) => {
                    complain(&line);
                    report.failed.push(json::FailedLogJson { log: file.name.to_string(), error: line });
                    exit = Exit::Trouble;
                    if in_stream {
                        break;
                    }
                }
                Err(closed) => return Err(closed),
            }
        }
        if !is_chosen && exit == Exit::Done {
            complain(&format!("{}: no transaction is all that was asked for", self.archive.display()));
            exit = Exit::Negative;
        }
        Ok(exit)
    }
}

fn one_line(set: &GtidSet) -> String {
    set.to_string().replace('\n', "")
}

/// The mode of a restored log that was archived without its own.
const MODE_DEFAULT: u32 = 0o640;
/// No restored log has more: it holds rows, which are not for everybody.
const MODE_MAX: u32 = 0o660;

impl Restore {
    pub(super) fn run(self) -> Result<Exit> {
        let Restore { to, force, format, chosen } = self;
        let (storage, manifest) = open(&chosen.archive)?;
        let (selection, exits) = (manifest.selection.clone(), manifest.exits.clone());
        let marks = marks_of(&manifest);
        let files = chosen.files(manifest)?;
        fs::create_dir_all(&to).map_err(|error| CommandFailure::of(&to.display(), error))?;
        let targets: Vec<OnceCell<OutputTarget>> = files.iter().map(|_| OnceCell::new()).collect();
        let mut report = json::RestoreJson::default();
        let mut logs = Vec::new();
        let is_all = chosen.selection().is_all();
        let exit = chosen.each(
            &storage,
            &files,
            false,
            |place, file| {
                let path = to.join(Path::new(&file.name).file_name().unwrap_or_default());
                let target = output::target(path, &[], force)?;
                #[expect(clippy::indexing_slicing, reason = "there are as many targets as files")]
                let target = targets[place].get_or_init(|| target);
                let mode = file.mode.unwrap_or(MODE_DEFAULT) & MODE_MAX;
                let output = target.create_with(mode, None)?;
                let writer = output.writer().map_err(|error| CommandFailure::writing(target, &error))?;
                // Of chosen transactions nobody knows how many bytes they have.
                let size = is_all.then_some(file.size);
                let progress = WorkProgress::of(&file.name, size, (place + 1, files.len()));
                let writer = BufWriter::with_capacity(1 << 18, progress.watch_writer(writer));
                Ok(((output, target, progress), Box::new(writer) as Box<dyn Write>))
            },
            |file, (output, target, progress), transactions| {
                drop(progress);
                let size = output.size().map_err(|error| CommandFailure::writing(target, &error))?;
                output.finish()?;
                let log = file.name.to_string();
                let output = target.to_string();
                logs.push(json::RestoredLog { log, output, bytes: size, transactions });
                Ok(())
            },
            &mut report,
        )?;
        match format {
            ReportFormat::Json => json::print(&json::RestoreJson { selection, exits, logs, ..report })?,
            ReportFormat::Text => {
                logs.iter().try_for_each(|log| print(&mut io::stdout(), &restored_line(log)))?;
                marks.iter().try_for_each(|line| print(&mut io::stdout(), line))?;
            }
        }
        Ok(exit)
    }
}

fn restored_line(log: &json::RestoredLog) -> String {
    let json::RestoredLog { output, bytes, transactions, .. } = log;
    let bytes = counted(*bytes, "bytes");
    match transactions {
        Some(count) => format!("{output}: restored, {bytes}, {}", counted(*count, "transactions")),
        None => format!("{output}: restored, {bytes}"),
    }
}

impl Cat {
    pub(super) fn run(self) -> Result<Exit> {
        let (storage, manifest) = open(&self.chosen.archive)?;
        for mark in marks_of(&manifest) {
            warn(&format!("{}: {mark}", self.chosen.archive.display()));
        }
        let files = self.chosen.files(manifest)?;
        let mut first = true;
        self.chosen.each(
            &storage,
            &files,
            true,
            |_, _| {
                let skip = if std::mem::take(&mut first) { 0 } else { binlogz_binlog::MAGIC.len() };
                let out = BufWriter::with_capacity(1 << 18, io::stdout());
                Ok(((), Box::new(SkippingWriter { skip, out }) as Box<dyn Write>))
            },
            |_, (), _| Ok(()),
            &mut json::RestoreJson::default(),
        )
    }
}

/// Leaves the first bytes out: mysqlbinlog takes no magic in mid-stream.
struct SkippingWriter<W> {
    skip: usize,
    out: W,
}

impl<W: Write> Write for SkippingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.out.write_all(bytes.get(skipped..).unwrap_or_default())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Reads a time. A plain number is seconds since 1970, as in earlier versions, unless it is a date as well.
fn boundary(text: &str) -> Result<BoundaryMoment, String> {
    let given = text.parse::<GivenTime>();
    let microseconds = match (given, text.parse::<u32>()) {
        (Ok(_), Ok(_)) => {
            return Err("may be a date or seconds since 1970: write @ before the seconds".to_owned());
        }
        (Err(NoTime::Text | NoTime::Date { .. }), Ok(seconds)) => i64::from(seconds) * 1_000_000,
        (given, _) => given.map(GivenTime::microseconds).map_err(|no_time| no_time.to_string())?,
    };
    Ok(BoundaryMoment::of_microseconds(microseconds))
}
