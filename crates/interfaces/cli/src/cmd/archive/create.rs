//! `binlogz archive create`: packs logs into an archive.

use std::cell::RefCell;
use std::fs;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::format::FileEntry;
use binlogz_archive::log;
use binlogz_archive::presence::{CheckDepth, Inspector};
use binlogz_archive::storage::{ArchiveStorage, KeySource};
use binlogz_archive::{Error, Level};
use binlogz_binlog::MAGIC_ENCRYPTED;
use binlogz_figures::counted;
use binlogz_flow::Input;
use clap::{Args, ValueEnum};

use super::manner::MannerArgs;
use super::source_logs::{LogBeginning, Objects, look_at, purge_line};
use super::{failure, open, print, storage_in};
use crate::Exit;
use crate::cmd::workers;
use crate::failure::{CommandFailure, Result, complain};
use crate::keyring::KeyringArg;
use crate::log_path::LogPath;
use crate::memory;
use crate::progress::{self, WorkProgress};
use crate::report::less;
use crate::terminal::SizesArg;
use crate::units;

/// Put logs into an archive
///
/// Each is packed, stored, read back and compared before the archive names it. Of what is in the archive already the objects are
/// asked for; those that are missing or damaged are stored again. Nothing is deleted. Logs that their server encrypted are only put into an encrypted archive, unless
/// --plaintext is given.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Create {
    /// The archive: a folder, which is made where it is not there, or a place in object storage
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX")]
    to: PathBuf,
    /// Threads that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = units::above_zero)]
    jobs: Option<NonZeroUsize>,
    /// How small, and how fast
    #[arg(long, value_enum, default_value_t)]
    level: LevelArg,
    /// Expand payloads that no compression level would give back too: they come back with equal meaning, as
    /// `compress` makes them at level 3, not byte for byte
    #[arg(long)]
    canonical_payloads: bool,
    /// Store the transactions of a log in use that are whole. They are replaced once the log is given again, longer or
    /// closed
    #[arg(long)]
    include_active: bool,
    /// Store the whole transactions of a closed log that ends inside an event, or of one with a damaged event those before it;
    /// it counts as a part, and the exit code is 1
    #[arg(long)]
    salvage: bool,
    /// Read all objects of the given logs that are in the archive already, and compare each with its SHA-256: otherwise it is
    /// asked whether they are there as a whole
    #[arg(long)]
    verify: bool,
    /// Put logs that their server encrypted into an archive that is not encrypted
    #[arg(long)]
    plaintext: bool,
    #[command(flatten)]
    sizes: SizesArg,
    #[command(flatten)]
    keyring: KeyringArg,
    #[command(flatten)]
    manner: MannerArgs,
    /// Binary logs or relay logs that are no longer written
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

const EXAMPLES: &str = "Examples:
  binlogz archive create --to /backup/db1 /var/lib/mysql/binlog.[0-9]*
  binlogz archive create --to s3://bucket/db1 --include-active /var/lib/mysql/binlog.[0-9]*

Exit codes: 0 all logs are in the archive, 1 of a torn or damaged one only a part, 2 bad usage, bad
input or I/O trouble.";

/// How small and how fast an archive is packed; all are read alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum LevelArg {
    /// Texts by zstd: several times as fast on logs of long texts, and a third to a half larger there
    Fast,
    /// Texts by PPMd where that is smaller
    #[default]
    Default,
    /// Everything is tried on everything: a megabyte a second
    Max,
}

impl From<LevelArg> for Level {
    fn from(level: LevelArg) -> Level {
        match level {
            LevelArg::Fast => Level::Fast,
            LevelArg::Default => Level::Default,
            LevelArg::Max => Level::Max,
        }
    }
}

impl Create {
    pub(super) fn run(self) -> Result<Exit> {
        memory::keep_small();
        let keyring = self.keyring.open()?;
        let storage = storage_in(&self.to, &self.manner.manner())?;
        let is_encrypted = storage.is_encrypted().map_err(failure(&self.to))?;
        if !is_encrypted && KeySource::from_environment().is_some() {
            let found = "is not encrypted, though the environment names a key: `archive copy` makes an encrypted copy";
            return Err(CommandFailure::of(&self.to.display(), found));
        }
        let mut exit = Exit::Done;
        let mut printed = Ok(());
        let mut archived = Vec::new();
        let mut given = Vec::new();
        let mut in_use = Vec::new();
        // Logs that are torn or damaged, and why.
        let torn: RefCell<Vec<(String, String)>> = RefCell::default();
        let mut told = |created: &CreateOutcome| {
            let torn = torn.borrow();
            let of = |entry: &FileEntry| {
                let why = torn.iter().find(|(name, _)| entry.name == *name).map(|(_, why)| why.as_str());
                why.filter(|_| entry.active_size.is_some())
            };
            let (line, entry) = match created {
                CreateOutcome::Added(entry) => (added_line(entry, of(entry), self.sizes), entry),
                CreateOutcome::Known(entry) => {
                    let part =
                        of(entry).map(|why| format!(", as far as it is whole: {why}")).unwrap_or_default();
                    (format!("{}: is in the archive already{part}", entry.name), entry)
                }
                CreateOutcome::StoredAgain(entry, why) => {
                    let line = added_line(entry, of(entry), self.sizes);
                    (format!("{line}; it was stored again: {why}"), entry)
                }
            };
            if printed.is_ok() {
                printed = progress::above(|| print(&mut io::stdout().lock(), &line));
            }
            if entry.active_size.is_none() {
                archived.push(entry.name.to_string());
            }
        };
        // A shell gives `.1000000` before `.999999`; rows are found in the logs before.
        let mut files: Vec<_> = self.files.iter().map(|path| (path, name_of(path))).collect();
        log::sort_by_name(&mut files, |(_, name)| name);
        let mut creator = Creator::new(&storage, workers(self.jobs), &mut told).map_err(failure(&self.to))?;
        creator.canonical_payloads(self.canonical_payloads);
        creator.level(self.level.into());
        let depth = if self.verify { CheckDepth::Hash } else { CheckDepth::Presence };
        creator.depth(depth);
        let all = files.len();
        for ((path, name), number) in files.into_iter().zip(1..) {
            let size = || fs::metadata(path).ok().map(|file| file.len());
            let mode = || fs::metadata(path).ok().map(|file| file.mode() & 0o777);
            let is_told = keyring.is_some() && was_encrypted(path);
            let opened = match is_encrypted || self.plaintext || !is_told {
                true => LogPath::File(path.clone()).open(keyring.as_ref()),
                false => Err(CommandFailure::of(
                    &path.display(),
                    "its server encrypted it, and the archive is not encrypted: BINLOGZ_ARCHIVE_KEY_FILE names a key for a \
                     new archive, --plaintext stores it all the same",
                )),
            };
            let added = opened.and_then(|input| match input {
                Input::Places(log) => match look_at(log.as_ref(), path, &name) {
                    LogBeginning::Closed => {
                        given.push((name.clone(), path));
                        let progress = WorkProgress::of(&name, size(), (number, all));
                        let log = progress.watch_all(log);
                        match creator.add_file(&name, Arc::clone(&log), mode()) {
                            Err(Error::Torn(why)) if self.salvage || self.include_active => {
                                torn.borrow_mut().push((name.clone(), why.to_string()));
                                exit = Exit::Negative;
                                creator.add_active(&name, log, mode()).map_err(failure(path))
                            }
                            added => added.map_err(torn_failure(path)),
                        }
                    }
                    LogBeginning::InUse if self.include_active => {
                        let progress = WorkProgress::of(&name, size(), (number, all));
                        if let Some(why) = log::first_damage(log.as_ref()).map_err(failure(path))? {
                            torn.borrow_mut().push((name.clone(), why.to_string()));
                            exit = Exit::Negative;
                        }
                        creator.add_active(&name, progress.watch_all(log), mode()).map_err(failure(path))
                    }
                    LogBeginning::InUse => {
                        in_use.push(name.clone());
                        Ok(())
                    }
                    LogBeginning::NoLog(what) => Err(CommandFailure::of(&path.display(), what)),
                },
                _ => {
                    Err(CommandFailure::of(&path.display(), "is no file; an archive needs to read it twice"))
                }
            });
            match added {
                Ok(()) => {}
                Err(CommandFailure::Line(line)) => {
                    complain(&line);
                    exit = Exit::Trouble;
                    // Nothing after a missing log may be purged.
                    break;
                }
                Err(closed) => return Err(closed),
            }
        }
        let manifest = creator.finish();
        if let Err(error) = &manifest {
            complain(&format!("{}: {error}", self.to.display()));
            exit = Exit::Trouble;
        }
        printed?;
        let out = &mut io::stdout().lock();
        for name in in_use {
            print(
                out,
                &format!(
                    "{name}: is in use and was left out: give it again once it is closed, or use --include-active"
                ),
            )?;
        }
        if let Some((name, path)) = given.into_iter().rfind(|(name, _)| archived.contains(name))
            && let Input::Places(log) = LogPath::File(path.clone()).open(keyring.as_ref())?
            && let Some(line) = purge_line(
                &manifest.or_else(|_| open(&self.to).map(|(_, manifest)| manifest))?,
                &name,
                path,
                log.as_ref(),
                &mut Objects { storage: &storage, inspector: Inspector::new(&storage, depth) },
            )
            .map_err(failure(&self.to))?
        {
            print(out, &line)?;
        }
        Ok(exit)
    }
}

/// Whether a file is a log that its server encrypted.
fn was_encrypted(path: &Path) -> bool {
    let mut magic = [0; MAGIC_ENCRYPTED.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == MAGIC_ENCRYPTED
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A torn or damaged log is refused; two options keep its part.
fn torn_failure(path: &Path) -> impl FnOnce(Error) -> CommandFailure {
    move |error| match error {
        error @ Error::Torn(_) => CommandFailure::of(
            &path.display(),
            format_args!("{error}; --salvage stores the transactions that are whole"),
        ),
        error => failure(path)(error),
    }
}

/// `torn`: why only a part of it is there, if its server has closed it.
fn added_line(entry: &FileEntry, torn: Option<&str>, sizes: SizesArg) -> String {
    let saved = less(entry.packed_size, entry.size);
    let payloads = match (entry.payload_level, entry.payloads_kept) {
        (Some(level), _) if entry.source_sha256.is_some() => {
            format!(", payloads expanded: they come back with equal meaning, at level {level}")
        }
        (Some(level), 0) => format!(", payloads of level {level} expanded"),
        (Some(level), count) => {
            format!(", payloads of level {level} expanded, {} kept as they are", counted(count, "others"))
        }
        (None, 0) => String::new(),
        (None, 1) => ", 1 payload kept as it is".to_owned(),
        (None, count) => format!(", {} kept as they are", counted(count, "payloads")),
    };
    let part = match (entry.active_size, torn) {
        (None, _) => String::new(),
        (Some(_), None) => ", as far as it is whole while its server writes it".to_owned(),
        (Some(_), Some(why)) => format!(", as far as it is whole: {why}"),
    };
    let size = sizes.in_words(entry.size);
    let packed = sizes.in_words(entry.packed_size);
    format!("{}: {size} -> {packed}, saved {saved}{payloads}{part}", entry.name)
}
