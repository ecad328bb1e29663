//! `binlogz archive`: logs packed by column, across transactions, and restored byte for byte.

mod json;
mod source_logs;

use std::cell::OnceCell;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use binlogz_archive::create::{Created, Creator};
use binlogz_archive::manifest::{FileEntry, Manifest};
use binlogz_archive::selection::Selection;
use binlogz_archive::storage::{self, Storage};
use binlogz_archive::{Error, check, order, restore};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::printable;
use binlogz_flow::Input;
use binlogz_report::zone::Zone;
use clap::{Args, Subcommand};

use super::workers;
use crate::Exit;
use crate::failure::{Failure, Result, complain, warn};
use crate::keyring::KeyringArg;
use crate::log_path::LogPath;
use crate::memory;
use crate::output::{self, Target};
use crate::report::Format;
use crate::time;
use source_logs::{Looks, look_at, purge_line};

/// Pack binary logs by column into an archive, and restore them byte for byte
///
/// An archive is a folder, or a place in object storage, with a manifest and immutable objects, each a segment of up
/// to 512 MiB of logs. It takes about half of what `xz -6` makes of the same logs; one transaction is restored by
/// reading a few blocks. Settings of object storage come from the usual environment: AWS_ACCESS_KEY_ID,
/// AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL and so on.
#[derive(Debug, Args)]
pub(crate) struct Archive {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Create(Create),
    List(List),
    Check(Check),
    Restore(Restore),
    Cat(Cat),
}

/// Put logs into an archive
///
/// Each is packed, stored, read back and compared before the archive names it; what is in the archive already is
/// passed over. Nothing is deleted. Encrypted logs are kept as their plaintext.
#[derive(Debug, Args)]
struct Create {
    /// The archive: a folder, which is made where it is not there, or a place in object storage
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX")]
    to: PathBuf,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Expand payloads that no compression level would give back too: they come back with equal meaning, as
    /// `compress` makes them at level 3, not byte for byte
    #[arg(long)]
    canonical_payloads: bool,
    #[command(flatten)]
    keyring: KeyringArg,
    /// Binary logs or relay logs that are no longer written
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// List the logs of an archive
#[derive(Debug, Args)]
struct List {
    /// How it is told
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

/// Check every block of an archive, and that its transactions have no gaps
///
/// The archive of a relay has another one below it for each further log that the relay kept (lineage-2 and so on), after a
/// failover for instance: these are checked too, and that no transactions are missing between them.
#[derive(Debug, Args)]
struct Check {
    /// How it is told
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The archive: its folder, or s3://BUCKET/PREFIX; several in the order in which their logs follow one another
    #[arg(required = true, value_name = "ARCHIVE")]
    archives: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct Chosen {
    /// Only these transactions
    #[arg(long, value_name = "GTID_SET")]
    gtids: Option<GtidSet>,
    /// Only transactions begun at this time or later: YYYY-MM-DD hh:mm:ss, local time unless Z or an offset as
    /// +01:00 follows, or seconds since 1970
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    start_datetime: Option<u32>,
    /// Only transactions begun before this time
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    stop_datetime: Option<u32>,
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
struct Restore {
    /// The folder for the logs
    #[arg(long, value_name = "DIR")]
    to: PathBuf,
    /// Replace files that are there
    #[arg(long)]
    force: bool,
    /// How it is told: as text only trouble is
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    chosen: Chosen,
}

/// Write logs, or chosen transactions, to standard output as one stream for mysqlbinlog or dump
///
/// The first log's magic alone is written: format descriptions in mid-stream are read.
#[derive(Debug, Args)]
struct Cat {
    #[command(flatten)]
    chosen: Chosen,
}

impl Archive {
    pub(super) fn run(self) -> Result<Exit> {
        if let Some(problem) = Zone::of_process().problem() {
            warn(problem);
        }
        match self.what {
            What::Create(create) => create.run(),
            What::List(list) => list.run(),
            What::Check(check) => check.run(),
            What::Restore(restore) => restore.run(),
            What::Cat(cat) => cat.run(),
        }
    }
}

impl Create {
    fn run(self) -> Result<Exit> {
        memory::keep_small();
        let keyring = self.keyring.open()?;
        let storage = storage::at(&self.to).map_err(failure(&self.to))?;
        let mut exit = Exit::Done;
        let mut printed = Ok(());
        let (mut last, mut given, mut in_use) = (None, Vec::new(), Vec::new());
        let mut told = |created: &Created| {
            let (line, entry) = match created {
                Created::Added(entry) => (added_line(entry), entry),
                Created::Known(entry) => (format!("{}: is in the archive already", entry.name), entry),
            };
            if printed.is_ok() {
                printed = print(&mut io::stdout().lock(), &line);
            }
            last = Some(entry.name.clone());
        };
        // A shell gives `.1000000` before `.999999`; rows are found in the logs before.
        let mut files: Vec<_> = self.files.iter().map(|path| (path, name_of(path))).collect();
        order::sort_by_name(&mut files, |(_, name)| name);
        let mut creator = Creator::new(&storage, workers(self.jobs), &mut told).map_err(failure(&self.to))?;
        creator.canonical_payloads(self.canonical_payloads);
        for (path, name) in files {
            let added = LogPath::File(path.clone()).open(keyring.as_ref()).and_then(|input| match input {
                Input::Places(log) => match look_at(log.as_ref(), path, &name) {
                    Looks::Closed => {
                        let mode = fs::metadata(path).ok().map(|file| file.mode() & 0o777);
                        given.push((name.clone(), path));
                        creator.add_file(&name, log, mode).map_err(failure(path))
                    }
                    Looks::InUse => {
                        in_use.push(name.clone());
                        Ok(())
                    }
                    Looks::NoLog(what) => Err(Failure::of(&path.display(), what)),
                },
                _ => Err(Failure::of(&path.display(), "is no file; an archive needs to read it twice")),
            });
            match added {
                Ok(()) => {}
                Err(Failure::Line(line)) => {
                    complain(&line);
                    exit = Exit::Trouble;
                    // Nothing behind a log that is missing may be purged.
                    break;
                }
                Err(closed) => return Err(closed),
            }
        }
        if let Err(error) = creator.finish() {
            complain(&format!("{}: {error}", self.to.display()));
            exit = Exit::Trouble;
        }
        printed?;
        let out = &mut io::stdout().lock();
        for name in in_use {
            print(out, &format!("{name}: is in use and was left out: give it again once it is closed"))?;
        }
        if let Some((name, path)) = given.into_iter().find(|(name, _)| last.as_ref() == Some(name))
            && let Input::Places(log) = LogPath::File(path.clone()).open(keyring.as_ref())?
            && let Some(line) = purge_line(&open(&self.to)?.1, &name, path, log.as_ref())
        {
            print(out, &line)?;
        }
        Ok(exit)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn added_line(entry: &FileEntry) -> String {
    let percent = 100.0 * entry.packed_size as f64 / entry.size.max(1) as f64;
    let payloads = match (entry.payload_level, entry.payloads_kept) {
        (Some(level), _) if entry.source_sha256.is_some() => {
            format!(", payloads expanded: they come back with equal meaning, at level {level}")
        }
        (Some(level), _) => format!(", payloads of level {level} expanded"),
        (None, 0) => String::new(),
        (None, count) => format!(", {count} payloads kept as they are"),
    };
    format!("{}: {} -> {} bytes ({percent:.1}%){payloads}", entry.name, entry.size, entry.packed_size)
}

impl List {
    fn run(self) -> Result<Exit> {
        let (_, manifest) = open(&self.archive)?;
        if self.format == Format::Json {
            json::print(&json::Listed::new(self.archive.display().to_string(), &manifest))?;
            return Ok(Exit::Done);
        }
        let out = &mut io::stdout().lock();
        print(
            out,
            &format!("{:<24} {:>14} {:>14}  {:<19}  {:<19}  gtids", "log", "bytes", "packed", "from", "to"),
        )?;
        for file in &manifest.files {
            let shown = |seconds: Option<u32>| seconds.map(time::shown).unwrap_or_default();
            let (from, to) = (shown(file.times.map(|times| times.0)), shown(file.times.map(|times| times.1)));
            let gtids = file.gtids.replace('\n', "");
            let (name, size, packed) = (&file.name, file.size, file.packed_size);
            print(out, &format!("{name:<24} {size:>14} {packed:>14}  {from:<19}  {to:<19}  {gtids}"))?;
        }
        Ok(Exit::Done)
    }
}

impl Check {
    fn run(self) -> Result<Exit> {
        let mut parts = Vec::new();
        for archive in &self.archives {
            parts.extend(with_lineages(archive, self.archives.len() > 1)?);
        }
        let is_text = self.format == Format::Text;
        let out = &mut io::stdout();
        let mut told = json::Checked::default();
        for part in &parts {
            let problems = check::check(&part.storage, &part.manifest, workers(None));
            let problems = problems.map_err(failure(&part.place))?;
            if is_text {
                problems.iter().try_for_each(|problem| print(out, &format!("{}{problem}", part.prefix)))?;
            }
            let (archive, logs) = (part.place.display().to_string(), part.manifest.files.len());
            told.archives.push(json::CheckedArchive { archive, logs, problems });
        }
        let named: Vec<_> = parts.iter().map(|part| (part.prefix.as_str(), &part.manifest)).collect();
        told.gaps = check::between(&named).map_err(|error| Failure::Line(error.to_string()))?;
        told.whole = told.gaps.is_empty() && told.archives.iter().all(|archive| archive.problems.is_empty());
        if !is_text {
            json::print(&told)?;
        } else {
            told.gaps.iter().try_for_each(|problem| print(out, problem))?;
        }
        if !told.whole {
            return Ok(Exit::Negative);
        }
        let logs: usize = parts.iter().map(|part| part.manifest.files.len()).sum();
        let archives = if parts.len() > 1 { format!(" in {} archives", parts.len()) } else { String::new() };
        if is_text {
            print(out, &format!("{logs} logs{archives} are whole and follow one another"))?;
        }
        Ok(Exit::Done)
    }
}

/// An archive among several.
struct Part {
    place: PathBuf,
    /// Each line about it begins with this.
    prefix: String,
    storage: Box<dyn Storage>,
    manifest: Manifest,
}

/// Numbers of lineages that may be missing one after the other: those of servers that were followed, and had nothing.
const LINEAGES_MISSING_MAX: u32 = 3;

/// An archive, and those of a relay's further logs below it, the oldest first.
fn with_lineages(archive: &Path, is_one_of_several: bool) -> Result<Vec<Part>> {
    let prefix = if is_one_of_several { format!("{}: ", archive.display()) } else { String::new() };
    let (storage, manifest) = open(archive)?;
    let mut parts = vec![Part { place: archive.to_owned(), prefix: prefix.clone(), storage, manifest }];
    let mut missing = 0;
    for number in 2_u32.. {
        let name = format!("lineage-{number}");
        let place = archive.join(&name);
        let storage = storage::at(&place).map_err(failure(&place))?;
        match Manifest::read(&storage).map_err(failure(&place))? {
            Some(manifest) => {
                let prefix =
                    if is_one_of_several { format!("{}: ", place.display()) } else { format!("{name}: ") };
                parts.push(Part { place, prefix, storage, manifest });
                missing = 0;
            }
            None if missing == LINEAGES_MISSING_MAX => break,
            None => missing += 1,
        }
    }
    Ok(parts)
}

impl Chosen {
    fn selection(&self) -> Selection {
        Selection {
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
            return Err(Failure::of(&self.archive.display(), format_args!("holds no log {missing}")));
        }
        let wanted = |file: &FileEntry| self.logs.is_empty() || self.logs.contains(&file.name);
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
            self.start_datetime.is_none_or(|start| last >= start)
                && self.stop_datetime.is_none_or(|stop| first < stop)
        };
        if let Some(stop) = self.stop_before_gtid.filter(|stop| !there.contains(stop)) {
            return Ok(Some(format!("--stop-before-gtid {stop}: this transaction is not there")));
        }
        if !files.is_empty() && !files.iter().any(is_of_times) {
            return Ok(Some("no transaction is of these times".to_owned()));
        }
        let Some(mut absent) = self.gtids.clone() else { return Ok(None) };
        if absent.is_disjoint(&there) {
            return Ok(Some(format!("--gtids {}: none of these transactions is there", one_line(&absent))));
        }
        absent.subtract(&there);
        if !absent.is_empty() {
            warn(&format!("{}: {} are not there", self.archive.display(), one_line(&absent)));
        }
        Ok(None)
    }

    /// Gives each log, or what is chosen of it, to an output that `begin` makes and `end` completes, which are told how many
    /// transactions were chosen. `in_stream`: nothing may follow a log that failed.
    fn each<O>(
        &self,
        storage: &dyn Storage,
        files: &[FileEntry],
        in_stream: bool,
        mut begin: impl FnMut(usize, &FileEntry) -> Result<(O, Box<dyn Write>)>,
        mut end: impl FnMut(&FileEntry, O, Option<u64>) -> Result<()>,
        report: &mut json::Restored,
    ) -> Result<Exit> {
        let selection = self.selection();
        let mut exit = Exit::Done;
        if let Some(unmet) = self.unmet(files)? {
            complain(&format!("{}: {unmet}", self.archive.display()));
            report.unmet = Some(unmet);
            return Ok(Exit::Negative);
        }
        let mut is_chosen = selection.is_all();
        for (place, file) in files.iter().enumerate() {
            let (mut output, mut refused) = (None, None);
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
                    restore::whole(storage, file, &mut out, workers(None))?;
                    out.flush().map_err(Error::writing)?;
                    Ok((false, None))
                })
            } else {
                restore::chosen(storage, file, &selection, workers(None), &mut begin)
                    .map(|restored| (restored.ended, Some(restored.transactions)))
            };
            let done = match (restored, refused) {
                (Ok((ended, count)), _) => {
                    is_chosen |= output.is_some();
                    output.map_or(Ok(()), |output| end(file, output, count)).map(|()| ended)
                }
                (_, Some(refused)) => Err(refused),
                (Err(error), _) if error.is_closed_pipe() => Err(Failure::ClosedPipe),
                (Err(error), _) => Err(Failure::of(&file.name, error)),
            };
            match done {
                Ok(false) => {}
                Ok(true) => break,
                Err(Failure::Line(line)) => {
                    complain(&line);
                    report.failed.push(json::Failed { log: file.name.clone(), error: line });
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
    fn run(self) -> Result<Exit> {
        let Restore { to, force, format, chosen } = self;
        let (storage, manifest) = open(&chosen.archive)?;
        let files = chosen.files(manifest)?;
        fs::create_dir_all(&to).map_err(|error| Failure::of(&to.display(), error))?;
        let targets: Vec<OnceCell<Target>> = files.iter().map(|_| OnceCell::new()).collect();
        let (mut report, mut logs) = (json::Restored::default(), Vec::new());
        let exit = chosen.each(
            &storage,
            &files,
            false,
            |place, file| {
                let path = to.join(Path::new(&file.name).file_name().unwrap_or_default());
                let target = output::target(path, &[], force)?;
                let target = targets[place].get_or_init(|| target);
                let mode = file.mode.unwrap_or(MODE_DEFAULT) & MODE_MAX;
                let output = target.create_with(mode, None)?;
                let writer = output.writer().map_err(|error| Failure::writing(target, &error))?;
                Ok(((output, target), Box::new(BufWriter::with_capacity(1 << 18, writer)) as Box<dyn Write>))
            },
            |file, (output, target), transactions| {
                let size = output.size().map_err(|error| Failure::writing(target, &error))?;
                output.finish()?;
                let (log, output) = (file.name.clone(), target.to_string());
                logs.push(json::RestoredLog { log, output, bytes: size, transactions });
                Ok(())
            },
            &mut report,
        )?;
        if format == Format::Json {
            json::print(&json::Restored { logs, ..report })?;
        }
        Ok(exit)
    }
}

impl Cat {
    fn run(self) -> Result<Exit> {
        let (storage, manifest) = open(&self.chosen.archive)?;
        let files = self.chosen.files(manifest)?;
        let mut first = true;
        self.chosen.each(
            &storage,
            &files,
            true,
            |_, _| {
                let skip = if std::mem::take(&mut first) { 0 } else { binlogz_binlog::MAGIC.len() };
                let out = BufWriter::with_capacity(1 << 18, io::stdout());
                Ok(((), Box::new(Behind { skip, out }) as Box<dyn Write>))
            },
            |_, (), _| Ok(()),
            &mut json::Restored::default(),
        )
    }
}

/// Leaves the first bytes out: mysqlbinlog takes no magic in mid-stream.
struct Behind<W> {
    skip: usize,
    out: W,
}

impl<W: Write> Write for Behind<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.out.write_all(&bytes[skipped..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn open(archive: &Path) -> Result<(Box<dyn Storage>, Manifest)> {
    let storage = storage::at(archive).map_err(failure(archive))?;
    match Manifest::read(&storage).map_err(failure(archive))? {
        Some(manifest) => Ok((storage, manifest)),
        None => Err(Failure::of(&archive.display(), "is no archive: it has no manifest.json")),
    }
}

fn failure(path: &Path) -> impl FnOnce(Error) -> Failure {
    move |error| Failure::of(&path.display(), error)
}

fn print(out: &mut impl Write, line: &str) -> Result<()> {
    writeln!(out, "{}", printable(line)).map_err(|error| Failure::writing(&"standard output", &error))
}

/// What a user wrote, in seconds since 1970: a number is that already.
fn seconds(text: &str) -> Result<u32, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let seconds = time::parse(text).map_err(|no_time| format!("{no_time}, or seconds since 1970"))?;
    Ok(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
}
