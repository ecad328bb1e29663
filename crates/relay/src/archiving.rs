//! Closed files go into an archive, and are purged only when they are there: packed, stored, read back and compared
//! (`binlogz-archive`). An archive that can't be reached keeps files from being purged, and nothing else.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use binlogz_archive::create::{Created, Creator};
use binlogz_archive::storage;
use binlogz_flow::Input;
use binlogz_store::{BinlogStore, FileNumber};

use crate::error::{Error, Result};
use crate::relay::{Kept, Relay};

/// How often is looked for files that were closed.
const INTERVAL: Duration = Duration::from_secs(5);
/// Threads that pack: receiving and serving go on meanwhile.
const WORKERS: usize = 1;

/// Where closed files go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveOptions {
    /// A folder, or `s3://BUCKET/PREFIX`.
    pub to: PathBuf,
}

/// Which files are archived.
#[derive(Debug, Default)]
pub(crate) struct Archived(Mutex<Option<FileNumber>>);

impl Archived {
    fn last(&self) -> Option<FileNumber> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self, number: FileNumber) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(Some(number));
    }
}

/// Archives for ever.
pub(crate) fn watch(relay: &Relay, options: &ArchiveOptions) {
    loop {
        if let Some(kept) = relay.kept()
            && let Err(error) = archive(relay, kept, options)
        {
            relay.complain(&error, &format!("{error}; files that are not archived are not purged"));
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Archives the files that were closed since.
fn archive(relay: &Relay, kept: &Kept, options: &ArchiveOptions) -> Result<()> {
    let last = relay.archived.last();
    let mut closed = kept.store.logs()?;
    closed.pop();
    closed.retain(|log| Some(log.number) > last);
    if closed.is_empty() {
        return Ok(());
    }
    let failed = |error| Error::Archive(options.to.display().to_string(), error);
    let storage = storage::at(&options.to).map_err(failed)?;
    let mut told = |created: &Created| {
        let (Created::Added(file) | Created::Known(file)) = created;
        if let Some(log) = closed.iter().find(|log| log.name == file.name) {
            relay.archived.advance(log.number);
        }
        if matches!(created, Created::Added(_)) {
            relay.say(&format!("archived {}: {} -> {} bytes", file.name, file.size, file.packed_size));
        }
    };
    let mut creator = Creator::new(&storage, WORKERS, &mut told).map_err(failed)?;
    for log in &closed {
        let path = relay.options.directory.join(&log.name);
        let reading = || Error::io(format!("read {}", path.display()));
        let mut input = Input::open(&path).map_err(reading())?;
        if let Some(keyring) = &relay.options.keyring {
            input = input.decrypted(keyring).map_err(|error| reading()(std::io::Error::other(error)))?;
        }
        let Input::Places(bytes) = input else { continue };
        creator.add(&log.name, bytes).map_err(failed)?;
    }
    creator.finish().map_err(failed)
}

/// The first of these files that may not be purged, since it is not archived; `None`: there is no archive.
pub(crate) fn first_needed(relay: &Relay, store: &BinlogStore) -> Result<Option<FileNumber>> {
    if relay.options.archive.is_none() {
        return Ok(None);
    }
    let first = || Ok::<_, Error>(store.logs()?.first().map(|log| log.number));
    relay.archived.last().map_or_else(first, |last| Ok(Some(last.next())))
}
