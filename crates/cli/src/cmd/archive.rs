//! `binlogz archive`: logs packed by column, across transactions, and restored byte for byte.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use binlogz_archive::create::{Created, Creator};
use binlogz_archive::manifest::{FileEntry, Manifest};
use binlogz_archive::selection::Selection;
use binlogz_archive::storage::{self, Storage};
use binlogz_archive::{Error, check, order, restore};
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_flow::Input;
use binlogz_report::zone::Zone;
use clap::{Args, Subcommand};
use tempfile::NamedTempFile;

use super::workers;
use crate::Exit;
use crate::failure::{Failure, Result, complain, warn};
use crate::keyring::KeyringArg;
use crate::log_path::LogPath;
use crate::memory;
use crate::time;

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
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
}

/// Check every block of an archive, and that its transactions have no gaps
#[derive(Debug, Args)]
struct Check {
    /// The archive: its folder, or s3://BUCKET/PREFIX
    archive: PathBuf,
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
        let mut last = None;
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
                Input::Places(log) => creator.add(&name, log).map_err(failure(path)),
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
        if let Some(last) = last
            && let Some(line) = purge_line(&open(&self.to)?.1, &last)
        {
            print(&mut io::stdout().lock(), &line)?;
        }
        Ok(exit)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// What may be deleted on the source: logs without a gap in their numbers, up to `last`.
fn purge_line(manifest: &Manifest, last: &str) -> Option<String> {
    let known = |name: &String| manifest.files.iter().any(|file| file.name == *name);
    let first =
        std::iter::successors(Some(last.to_owned()), |name| numbered(name, -1).filter(known)).last()?;
    let next = numbered(last, 1)?;
    Some(format!(
        "{first} to {last} are archived; where the source has none older: PURGE BINARY LOGS TO '{next}';"
    ))
}

/// The name of the log so many numbers on.
fn numbered(name: &str, step: i64) -> Option<String> {
    let (base, number) = name.rsplit_once('.')?;
    let next = number.parse::<u64>().ok()?.checked_add_signed(step)?;
    Some(format!("{base}.{next:0width$}", width = number.len()))
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
        let (storage, manifest) = open(&self.archive)?;
        let problems = check::check(&storage, &manifest, workers(None)).map_err(failure(&self.archive))?;
        let out = &mut io::stdout().lock();
        problems.iter().try_for_each(|problem| print(out, problem))?;
        if problems.is_empty() {
            print(out, &format!("{} logs are whole and follow one another", manifest.files.len()))?;
            return Ok(Exit::Done);
        }
        Ok(Exit::Negative)
    }
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

    /// Gives each log, or what is chosen of it, to an output that `begin` makes and `end` completes.
    fn each<O>(
        &self,
        mut begin: impl FnMut(&FileEntry) -> Result<(O, Box<dyn Write>), Error>,
        mut end: impl FnMut(O) -> Result<()>,
    ) -> Result<Exit> {
        let (storage, manifest) = open(&self.archive)?;
        let selection = self.selection();
        let mut exit = Exit::Done;
        let files = self.files(manifest)?;
        if !self.is_met(&files)? {
            return Ok(Exit::Negative);
        }
        let mut is_chosen = selection.is_all();
        for file in files {
            let mut output = None;
            let restored = if selection.is_all() {
                begin(&file).and_then(|(made, mut out)| {
                    output = Some(made);
                    restore::whole(&storage, &file, &mut out, workers(None))?;
                    out.flush().map_err(Error::writing)?;
                    Ok(false)
                })
            } else {
                let mut begin = || {
                    let (made, out) = begin(&file)?;
                    output = Some(made);
                    Ok(out)
                };
                restore::chosen(&storage, &file, &selection, workers(None), &mut begin)
                    .map(|restored| restored.ended)
            };
            match restored {
                Ok(ended) => {
                    is_chosen |= output.is_some();
                    output.map_or(Ok(()), &mut end)?;
                    if ended {
                        break;
                    }
                }
                Err(error) if error.is_closed_pipe() => return Err(Failure::ClosedPipe),
                Err(error) => {
                    complain(&format!("{}: {error}", file.name));
                    exit = Exit::Trouble;
                }
            }
        }
        if !is_chosen && exit == Exit::Done {
            complain(&format!("{}: no transaction is all that was asked for", self.archive.display()));
            exit = Exit::Negative;
        }
        Ok(exit)
    }

    /// Whether these logs have what is asked for, as far as the manifest can tell; tells what they don't.
    fn is_met(&self, files: &[FileEntry]) -> Result<bool> {
        let mut there = GtidSet::default();
        for file in files {
            there.union(&file.gtid_set().map_err(failure(&self.archive))?);
        }
        let is_of_times = |file: &FileEntry| {
            let (first, last) = file.times.unwrap_or((0, u32::MAX));
            self.start_datetime.is_none_or(|start| last >= start)
                && self.stop_datetime.is_none_or(|stop| first < stop)
        };
        let no = |what: String| {
            complain(&format!("{}: {what}", self.archive.display()));
            Ok(false)
        };
        if let Some(stop) = self.stop_before_gtid.filter(|stop| !there.contains(stop)) {
            return no(format!("--stop-before-gtid {stop}: this transaction is not there"));
        }
        if !files.is_empty() && !files.iter().any(is_of_times) {
            return no("no transaction is of these times".to_owned());
        }
        let Some(mut absent) = self.gtids.clone() else { return Ok(true) };
        if absent.is_disjoint(&there) {
            return no(format!("--gtids {}: none of these transactions is there", one_line(&absent)));
        }
        absent.subtract(&there);
        if !absent.is_empty() {
            warn(&format!("{}: {} are not there", self.archive.display(), one_line(&absent)));
        }
        Ok(true)
    }
}

fn one_line(set: &GtidSet) -> String {
    set.to_string().replace('\n', "")
}

impl Restore {
    fn run(self) -> Result<Exit> {
        let Restore { to, force, chosen } = self;
        fs::create_dir_all(&to).map_err(|error| Failure::of(&to.display(), error))?;
        chosen.each(
            |file| {
                let path = to.join(Path::new(&file.name).file_name().unwrap_or_default());
                if path.exists() && !force {
                    let found = io::Error::new(io::ErrorKind::AlreadyExists, "is there; --force replaces it");
                    return Err(Error::Io { doing: path.display().to_string(), source: found });
                }
                let new = NamedTempFile::with_prefix_in(".new-", &to).map_err(Error::writing)?;
                let out = BufWriter::new(new.reopen().map_err(Error::writing)?);
                Ok(((new, path), Box::new(out) as Box<dyn Write>))
            },
            |(new, path)| {
                let done = new.as_file().sync_all().and_then(|()| Ok(new.persist(&path)?));
                done.map(drop).map_err(|error| Failure::writing(&path.display(), &error))
            },
        )
    }
}

impl Cat {
    fn run(self) -> Result<Exit> {
        let mut first = true;
        self.chosen.each(
            |_| {
                let skip = if std::mem::take(&mut first) { 0 } else { binlogz_binlog::MAGIC.len() };
                let out = BufWriter::with_capacity(1 << 18, io::stdout());
                Ok(((), Box::new(Behind { skip, out }) as Box<dyn Write>))
            },
            Ok,
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
    writeln!(out, "{line}").map_err(|error| Failure::writing(&"standard output", &error))
}

/// What a user wrote, in seconds since 1970: a number is that already.
fn seconds(text: &str) -> Result<u32, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(seconds);
    }
    let seconds = time::parse(text).map_err(|no_time| format!("{no_time}, or seconds since 1970"))?;
    Ok(u32::try_from(seconds.max(0)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_log_has_the_next_number() {
        assert_eq!(numbered("binlog.000009", 1).as_deref(), Some("binlog.000010"));
        assert_eq!(numbered("binlog.999999", 1).as_deref(), Some("binlog.1000000"));
        assert_eq!(numbered("binlog.000000", -1), None);
        assert_eq!(numbered("binlog", 1), None);
    }
}
