//! The logs to be replayed, as they are named: an archive, or files. They end after their last whole transaction, or before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_encryption::Keyring;
use binlogz_figures::moment_of_second;
use binlogz_relay::{ClosedLogs, EndedLogs, StopAt};

use crate::error::{ReplayError, Result};
use crate::listener::ReplayListener;

/// Where logs are replayed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayedLogs<'p> {
    /// An archive: its folder, or its place in object storage.
    Archive(&'p Path),
    /// Files of one server.
    Files(&'p [PathBuf]),
}

impl<'p> ReplayedLogs<'p> {
    /// The archive that is named, or the files.
    ///
    /// # Errors
    ///
    /// An archive is named beside something else.
    pub fn named(paths: &'p [PathBuf]) -> Result<ReplayedLogs<'p>> {
        match paths {
            [path] if is_archive(path) => Ok(ReplayedLogs::Archive(path)),
            paths => match paths.iter().find(|path| is_archive(path)) {
                Some(path) => {
                    Err(ReplayError::place(path.display(), "is an archive, expected it alone, or files"))
                }
                None => Ok(ReplayedLogs::Files(paths)),
            },
        }
    }

    fn closed(self, keyring: Option<Keyring>) -> Result<ClosedLogs> {
        Ok(match self {
            ReplayedLogs::Archive(place) => ClosedLogs::of_archive(place)?,
            ReplayedLogs::Files(paths) => ClosedLogs::of_files(paths, keyring.map(Arc::new))?,
        })
    }

    /// All transactions before one, those before the first log among them. The folder is for a log meanwhile.
    ///
    /// # Errors
    ///
    /// Logs that can't be read, or don't follow one another; `LogError::Unmet`: they don't have that transaction.
    pub fn before(self, keyring: Option<Keyring>, gtid: Gtid, folder: &Path) -> Result<GtidSet> {
        Ok(self.closed(keyring)?.ended(&StopAt::Before(gtid), folder)?.gtids)
    }

    /// The logs up to where they end. The last of them is written into the folder, cut there.
    ///
    /// # Errors
    ///
    /// Logs that can't be read, or don't follow one another; `LogError::Unmet`: they don't have that moment.
    pub fn ended(
        self,
        keyring: Option<Keyring>,
        stop: &StopAt,
        folder: &Path,
        listener: &dyn ReplayListener,
    ) -> Result<EndedLogs> {
        let logs = self.closed(keyring)?;
        for why in logs.left_out().into_iter().chain(logs.uncertain()) {
            listener.warn(&format!("{}: {why}", logs.place()));
        }
        let ended = logs.ended(stop, folder)?;
        if let Some(erased) = ended.logs().erased() {
            listener.warn(&format!("{}: {}", ended.logs().place(), erased.in_words(moment_of_second)));
        }
        if let Some(torn) = &ended.torn {
            listener.warn(torn);
        }
        Ok(ended)
    }
}

/// Looks whether files and folders that are named are there, before anything is asked of a server.
///
/// # Errors
///
/// One of them is not there, or may not be read.
pub fn check_paths(paths: &[PathBuf]) -> Result<()> {
    for path in paths.iter().filter(|path| binlogz_archive::storage::in_object_storage(path).is_none()) {
        std::fs::metadata(path).map_err(|error| ReplayError::place(path.display(), error))?;
    }
    Ok(())
}

fn is_archive(path: &Path) -> bool {
    binlogz_archive::storage::in_object_storage(path).is_some() || path.is_dir()
}
