//! Shared by `archive serve` and `recover`: the arguments that say where logs end and where to put the files needed meanwhile,
//! and what is told of the logs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_archive::existing;
use binlogz_archive::format::FileEntry;
use binlogz_archive::storage::Manner;
use binlogz_binlog::gtid::Gtid;
use binlogz_relay::{BringBack, EndedLogs, LogError, StopAt};
use binlogz_replay::{ReplayError, ReplayListener, ReplayedLogs};
use clap::Args;
use tempfile::TempDir;

use crate::failure::{CommandFailure, Result, complain, warn};
use crate::interrupt;
use crate::keyring::KeyringArg;
use crate::log;
use crate::time::{self, GivenTime};
use crate::units;

/// Where to stop.
#[derive(Debug, Args)]
pub(super) struct StopArgs {
    /// Stop after this transaction
    #[arg(long, value_name = "GTID", group = "stop")]
    until_gtid: Option<String>,
    /// Stop before this transaction
    #[arg(long, value_name = "GTID", group = "stop")]
    stop_before_gtid: Option<String>,
    /// Stop before the first transaction, in the log's order, that was committed at this time or later: '2026-11-22 23:10',
    /// 23:10, 'yesterday 23:10', -1h …
    #[arg(long, value_name = "TIME", group = "stop", allow_hyphen_values = true, alias = "stop-datetime")]
    until_datetime: Option<GivenTime>,
}

impl StopArgs {
    pub(super) fn stop(&self) -> Result<StopAt> {
        let gtid = |name: &str, text: &str| -> Result<Gtid> {
            let expected = |error| CommandFailure::of(&name, format_args!("{text:?}: {error}"));
            text.parse().map_err(expected)
        };
        Ok(match (&self.until_gtid, &self.stop_before_gtid, &self.until_datetime) {
            (Some(text), ..) => StopAt::After(gtid("--until-gtid", text)?),
            (_, Some(text), _) => StopAt::Before(gtid("--stop-before-gtid", text)?),
            (.., Some(time)) => StopAt::Time(u64::try_from(time.microseconds()).unwrap_or(0)),
            (None, None, None) => StopAt::End,
        })
    }
}

/// Temporary files that may be on disk meanwhile.
#[derive(Debug, Args)]
pub(super) struct DiskArgs {
    /// Where to put the logs that are being read, in a folder that is removed at the end [default: the system's temporary
    /// folder]
    #[arg(long, value_name = "DIR")]
    work_dir: Option<PathBuf>,
    /// How much of them may be on disk at a time, beside the last one; 1 GiB stays free
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = units::size)]
    disk_max: u64,
}

impl DiskArgs {
    pub(super) fn bring_back(&self) -> BringBack {
        BringBack { bytes_max: self.disk_max, ..BringBack::default() }
    }

    /// A folder that goes with the process, unless that is killed.
    pub(super) fn folder(&self) -> Result<TempDir> {
        let parent = self.work_dir.clone().unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new().prefix("binlogz-served-").tempdir_in(&parent);
        let folder = folder
            .map_err(|error| CommandFailure::of(&parent.display(), format_args!("make a folder: {error}")))?;
        let path = folder.path().to_owned();
        interrupt::before_the_end(move || {
            log::end();
            // Whatever stays is the system's to clean up: it is in its temporary folder.
            let _ = std::fs::remove_dir_all(path);
        });
        Ok(folder)
    }
}

/// The logs that are named, up to where they end; `None` after a word that they don't have that moment.
pub(super) fn open(
    paths: &[PathBuf],
    keyring: &KeyringArg,
    stop: &StopAt,
    folder: &Path,
) -> Result<Option<EndedLogs>> {
    let named = ReplayedLogs::named(paths).map_err(line)?;
    let (keyring, archive) = match named {
        ReplayedLogs::Archive(archive) => (None, Some(archive)),
        ReplayedLogs::Files(_) => (keyring.open()?, None),
    };
    match named.ended(keyring, stop, folder, &StderrListener) {
        Ok(ended) => Ok(Some(ended)),
        Err(error @ ReplayError::Logs(LogError::Unmet(_))) => {
            let end = archive.filter(|_| matches!(stop, StopAt::Time(_))).and_then(end_of);
            complain(&end.map_or(error.to_string(), |end| format!("{error}; {end}")));
            Ok(None)
        }
        Err(error) => Err(line(error)),
    }
}

/// Where an archive ends, and how it gets further; `None` if that isn't known.
fn end_of(archive: &Path) -> Option<String> {
    let (_, manifest) = existing::open(archive, &Manner::default()).ok()?;
    end_in_words(&manifest.files)
}

/// Where logs of an archive end, and how it gets further; `None` if that isn't known.
pub(super) fn end_in_words(files: &[FileEntry]) -> Option<String> {
    let (_, last) = files.iter().filter_map(|file| file.times).max_by_key(|(_, last)| *last)?;
    Some(format!(
        "the archive ends at {}: FLUSH BINARY LOGS and create again, or --include-active",
        time::shown(last)
    ))
}

/// How far logs go: `UUID:23, committed 2026-11-22 23:10:05`.
pub(super) fn reach(ended: &EndedLogs) -> String {
    match &ended.last {
        Some(last) => {
            let gtid = last.gtid.map_or("a transaction without GTID".to_owned(), |gtid| gtid.to_string());
            let seconds = u32::try_from(last.committed / 1_000_000).unwrap_or(u32::MAX);
            format!("{gtid}, committed {}", time::shown(seconds))
        }
        None => format!("before {}, which has no transaction", ended.logs().range().1),
    }
}

/// Tells on stderr what happens while logs are replayed.
pub(super) struct StderrListener;

impl StderrListener {
    pub(super) fn shared() -> Arc<dyn ReplayListener> {
        Arc::new(StderrListener)
    }
}

impl ReplayListener for StderrListener {
    fn warn(&self, line: &str) {
        warn(line);
    }

    fn complain(&self, line: &str) {
        complain(line);
    }
}

/// An error as the line that it ends the command with.
pub(super) fn line(error: impl std::fmt::Display) -> CommandFailure {
    CommandFailure::Line(error.to_string())
}
