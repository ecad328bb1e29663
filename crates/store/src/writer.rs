//! The one writer of a log: appends, begins files, closes them.
//!
//! ```text
//! begin_file   close the file before │ create · head · sync · sync names │ index (new, sync, rename, sync names)
//! append       one write
//! seal         sync │ clear the in-use flag · sync
//! ```
//!
//! Each `│` is a point at which a crash leaves a log that opens; `docs/store.md` says as what. A file whose
//! in-use flag is cleared was synced before: that is why only the last one can be torn.

use std::sync::{Arc, MutexGuard};

use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_binlog::{HeaderFlags, MAGIC};
use binlogz_encryption::MasterKey;

use crate::error::{Error, Result};
use crate::file::LogFile;
use crate::index;
use crate::log_name::{FILE_NUMBER_MAX, FileNumber};
use crate::positions::Position;
use crate::store::{Shared, lock};

/// Where the in-use flag stands in a file: in the first byte of the format description's flags.
const IN_USE_OFFSET: u64 = (MAGIC.len() + FLAGS_OFFSET) as u64;

/// The file that is appended to.
#[derive(Debug, Default)]
pub(crate) struct Active {
    file: Option<ActiveFile>,
    /// For the encrypted form of what is written.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct ActiveFile {
    log: Arc<LogFile>,
    end: Position,
}

impl Active {
    /// Goes on with a file that was in use.
    pub(crate) fn resume(&mut self, shared: &Shared, log: LogFile, end: Position) {
        let log = Arc::new(log);
        *lock(&shared.between) = Some(end);
        *lock(&shared.unsynced) = Some((Arc::clone(&log), end));
        self.file = Some(ActiveFile { log, end });
    }
}

/// The writer, while it is held.
#[derive(Debug)]
pub struct StoreWriter<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) active: MutexGuard<'a, Active>,
}

impl Drop for StoreWriter<'_> {
    /// What a writer appends before it is given back ends between transactions, in however many pieces it came.
    fn drop(&mut self) {
        if let Some(file) = &self.active.file {
            *lock(&self.shared.between) = Some(file.end);
        }
    }
}

impl StoreWriter<'_> {
    /// Where the next byte goes; `None`: no file is open.
    pub fn position(&self) -> Option<Position> {
        self.active.file.as_ref().map(|file| file.end)
    }

    /// The number that a new file gets: the one behind the last.
    pub fn next_number(&self) -> FileNumber {
        lock(&self.shared.files).last().map_or(FileNumber(1), |last| last.next())
    }

    /// Appends whole transactions, or whole events between them, in one write; where the log ends then.
    ///
    /// # Errors
    ///
    /// No file is open; a disk that fails, after which the store refuses everything.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Position> {
        let Active { file, scratch } = &mut *self.active;
        let Some(file) = file else {
            return Err(Error::Misuse {
                what: "append",
                found: "no open file".into(),
                expected: "begin_file first",
            });
        };
        self.shared.latching(|| file.log.write_at(file.end.offset, bytes, scratch))?;
        file.end.offset += bytes.len() as u64;
        // First what may be read of it, then up to where it may be synced.
        self.shared.positions.set_written(file.end);
        if let Some((_, to)) = lock(&self.shared.unsynced).as_mut() {
            *to = file.end;
        }
        Ok(file.end)
    }

    /// Closes the open file, if there is one, and begins another. `head`: magic, format description and
    /// whatever else stands before transactions; its in-use flag is set here. With a key it is encrypted.
    ///
    /// # Errors
    ///
    /// A number that is not above all others; a disk that fails, after which the store refuses everything.
    pub fn begin_file(
        &mut self,
        number: FileNumber,
        head: &[u8],
        key: Option<&MasterKey>,
    ) -> Result<Position> {
        let last = lock(&self.shared.files).last().copied();
        if last.is_some_and(|last| last >= number) || !(1..=FILE_NUMBER_MAX).contains(&number.0) {
            let found = number.to_string();
            return Err(Error::Misuse {
                what: "new file",
                found,
                expected: "a number above that of all files",
            });
        }
        let mut head = head.to_vec();
        match head.get_mut(IN_USE_OFFSET as usize) {
            Some(flags) => *flags |= HeaderFlags::IN_USE.0 as u8,
            None => {
                let found = format!("{} bytes", head.len());
                return Err(Error::Misuse {
                    what: "head of a file",
                    found,
                    expected: "a format description",
                });
            }
        }
        self.seal()?;
        let place = &self.shared.place;
        let storage = place.storage.as_ref();
        let end = Position { file: number, offset: head.len() as u64 };
        let log = self.shared.latching(|| {
            let log = LogFile::create(storage, &place.names.log(number), key)?;
            log.write_at(0, &head, &mut self.active.scratch)?;
            log.sync()?;
            storage.sync_names().map_err(Error::io("sync", "the directory"))?;
            // Only now: a file that the index lists has its head.
            let mut files = lock(&self.shared.files);
            files.push(number);
            index::write(storage, &place.names, &files)?;
            drop(files);
            self.shared.note_durable(Some(end), false)?;
            Ok(log)
        })?;
        let log = Arc::new(log);
        *lock(&self.shared.unsynced) = Some((Arc::clone(&log), end));
        self.shared.positions.set_both(end);
        self.active.file = Some(ActiveFile { log, end });
        Ok(end)
    }

    /// Closes the open file: makes it durable, then says that it is not in use any more.
    ///
    /// # Errors
    ///
    /// A disk that fails, after which the store refuses everything.
    pub fn seal(&mut self) -> Result<()> {
        let Active { file, scratch } = &mut *self.active;
        let Some(open) = file else { return Ok(()) };
        let _syncing = lock(&self.shared.syncing);
        self.shared.latching(|| {
            open.log.sync()?;
            let mut flags = [0];
            open.log.read_at(IN_USE_OFFSET, &mut flags)?;
            let [flags] = flags;
            open.log.write_at(IN_USE_OFFSET, &[flags & !(HeaderFlags::IN_USE.0 as u8)], scratch)?;
            open.log.sync()?;
            self.shared.note_durable(Some(open.end), true)
        })?;
        self.shared.positions.set_durable(open.end);
        *lock(&self.shared.between) = Some(open.end);
        *lock(&self.shared.unsynced) = None;
        *file = None;
        Ok(())
    }
}
