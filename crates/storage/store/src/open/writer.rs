//! The only writer of a log: appends, begins files, closes them.
//!
//! ```text
//! begin_file   create it and the new index, both empty │ close the previous file │ head · sync · sync names
//!              │ index (write, sync, rename, sync names)
//! append       one write
//! extend …     several writes, which nobody sees until
//! publish      makes all of them visible
//! seal         sync │ clear the in-use flag · sync │ sums, if events have no checksums
//! ```
//!
//! Operations that can fail for lack of descriptors come first: such an error changes nothing, and the caller
//! can try again. After any other error the store refuses writes until it is reopened. The in-memory view of
//! the log (its files, its ends) changes only after the disk has changed.
//!
//! A crash at any `│` leaves a log that opens; `crates/storage/store/PROMISES.md` says which transactions it then holds.
//! A file is synced before its in-use flag is cleared, so only the last file can be torn.

use parking_lot::MutexGuard;
use std::sync::Arc;

use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_binlog::{HeaderFlags, MAGIC};
use binlogz_encryption::MasterKey;

use crate::error::{Error, Result};
use crate::files::Position;
use crate::files::index::NewIndex;
use crate::files::log_file::{LogFile, NewLogFile};
use crate::files::names::{FILE_NUMBER_MAX, FileNumber};
use crate::files::sums::{BlockSummer, BlockSums};
use crate::recovery::recover::holds_nothing;
use crate::recovery::scan;
use crate::state::StoreShared;
use crate::storage::Storage;

/// The offset of the in-use flag in a file: the first byte of the format description's flags.
const IN_USE_OFFSET: u64 = (MAGIC.len() + FLAGS_OFFSET) as u64;

/// The file that is appended to.
#[derive(Debug, Default)]
pub(crate) struct Active {
    file: Option<ActiveFile>,
    /// Holds the encrypted form of the bytes being written.
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct ActiveFile {
    log: Arc<LogFile>,
    /// Where the next byte goes.
    end: Position,
    /// The end of the part that others may see: less than `end` only while a transaction is written in parts.
    published: Position,
    sums: OpenFileSums,
}

/// The sums of the open file, for [`crate::files::sums`].
#[derive(Debug)]
enum OpenFileSums {
    /// The file needs no sums, because its events have checksums.
    Unneeded,
    /// This process did not begin the file, so the part that is already there is read back.
    Unknown,
    /// The sums are made while the file is written.
    Running(BlockSummer),
}

impl OpenFileSums {
    /// For a file that begins with this head, of which `on_disk` is the form on disk.
    fn begin(head: &[u8], on_disk: &[u8]) -> OpenFileSums {
        match scan::decode_head(head) {
            Ok((framing, ..)) if framing.checksum().size() == 0 => {}
            Ok(_) | Err(_) => return OpenFileSums::Unneeded,
        }
        let mut closed = on_disk.to_vec();
        if let Some(flags) = closed.get_mut(IN_USE_OFFSET as usize) {
            *flags ^= HeaderFlags::IN_USE.0 as u8;
        }
        let mut sums = BlockSummer::default();
        sums.add(&closed);
        OpenFileSums::Running(sums)
    }

    fn add(&mut self, on_disk: &[u8]) {
        match self {
            OpenFileSums::Running(sums) => sums.add(on_disk),
            OpenFileSums::Unneeded | OpenFileSums::Unknown => {}
        }
    }

    /// Writes the sums of a file that was just closed.
    fn write(self, storage: &dyn Storage, log: &LogFile, size: u64) -> Result<()> {
        let sums = match self {
            OpenFileSums::Unneeded => return Ok(()),
            OpenFileSums::Running(sums) => sums.finish(),
            OpenFileSums::Unknown => match scan::head(log)? {
                Ok((framing, ..)) if framing.checksum().size() == 0 => {
                    BlockSums::of(log, size, &mut |_| Ok(()))?
                }
                Ok(_) | Err(_) => return Ok(()),
            },
        };
        sums.write(storage, &log.name)
    }
}

impl Active {
    /// Continues a file that was in use.
    pub(crate) fn resume(&mut self, shared: &StoreShared, log: LogFile, end: Position) {
        let log = Arc::new(log);
        *shared.unsynced.lock() = Some((Arc::clone(&log), end));
        self.file = Some(ActiveFile { log, end, published: end, sums: OpenFileSums::Unknown });
    }

    fn is_published(&self) -> bool {
        self.file.as_ref().is_none_or(|file| file.end == file.published)
    }
}

/// Applies `change` to the flags of a file's format description, durably.
pub(crate) fn write_flags(log: &LogFile, change: impl FnOnce(u8) -> u8, scratch: &mut Vec<u8>) -> Result<()> {
    let mut flags = [0];
    log.read_at(IN_USE_OFFSET, &mut flags)?;
    let [flags] = flags;
    log.write_at(IN_USE_OFFSET, &[change(flags)], scratch)?;
    log.sync()
}

/// The writer, while it is held. If it is dropped between `extend` and `publish`, it latches the store, and
/// recovery cuts the part off.
#[derive(Debug)]
pub struct StoreWriter<'a> {
    pub(crate) shared: &'a Arc<StoreShared>,
    pub(crate) active: MutexGuard<'a, Active>,
}

impl StoreWriter<'_> {
    /// Where the next byte goes; `None` if no file is open.
    pub fn position(&self) -> Option<Position> {
        self.active.file.as_ref().map(|file| file.end)
    }

    /// The number of the next new file: one more than the last.
    pub fn next_number(&self) -> FileNumber {
        self.shared.files.lock().last().map_or(FileNumber(1), |last| last.next())
    }

    /// Appends whole transactions, or whole events between them, in one write. Returns the new end of the
    /// log.
    ///
    /// # Errors
    ///
    /// No file is open; the disk fails, after which the store refuses writes until it is reopened.
    pub fn append(&mut self, bytes: &[u8]) -> Result<Position> {
        self.extend(bytes)?;
        self.publish()
    }

    /// Appends a part of a transaction: call [`StoreWriter::publish`] after the last part. A part is
    /// invisible to readers, and no sync counts it.
    ///
    /// # Errors
    ///
    /// As for [`StoreWriter::append`].
    pub fn extend(&mut self, bytes: &[u8]) -> Result<Position> {
        let Active { file, scratch } = &mut *self.active;
        let file = file.as_mut().ok_or_else(no_open_file)?;
        self.shared.latch.guard(|| file.log.write_at(file.end.offset, bytes, scratch))?;
        file.sums.add(file.log.on_disk(bytes, scratch));
        file.end.offset += bytes.len() as u64;
        Ok(file.end)
    }

    /// Publishes the bytes written since the last transaction, now that they are a whole one. Returns the new end of the
    /// log.
    ///
    /// # Errors
    ///
    /// No file is open.
    pub fn publish(&mut self) -> Result<Position> {
        let file = self.active.file.as_mut().ok_or_else(no_open_file)?;
        file.published = file.end;
        // First what may be read, then how far it may be synced.
        self.shared.positions.set_written(file.end);
        if let Some((_, to)) = self.shared.unsynced.lock().as_mut() {
            *to = file.end;
        }
        Ok(file.end)
    }

    /// Closes the open file, if there is one, and begins another. `head` is the magic, the format description
    /// and whatever else comes before transactions; its in-use flag is set here. With a key the file is
    /// encrypted.
    ///
    /// # Errors
    ///
    /// The number is not above all others. There is no descriptor for the new file or the index: nothing was
    /// changed, and a retry may work later. The disk fails, after which the store refuses writes until it is
    /// reopened.
    pub fn begin_file(
        &mut self,
        number: FileNumber,
        head: &[u8],
        key: Option<&MasterKey>,
    ) -> Result<Position> {
        let last = self.shared.files.lock().last().copied();
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
        let place = &self.shared.place;
        let storage = place.storage.as_ref();
        self.shared.latch.check()?;
        let log = self.create(number, key)?;
        let index = NewIndex::prepare(storage, &place.names)?;
        self.seal()?;
        let end = Position { file: number, offset: head.len() as u64 };
        let mut files = self.shared.files.lock();
        let all: Vec<_> = files.iter().copied().chain([number]).collect();
        let log = self.shared.latch.guard(|| {
            let log = log.begin(&head, &mut self.active.scratch)?;
            storage.sync_names().map_err(Error::io("sync", "the directory"))?;
            // Only now: a file that the index lists has its head.
            index.replace(storage, &all)?;
            self.shared.note_durable(end, false)?;
            Ok(log)
        })?;
        *files = all;
        let sums = OpenFileSums::begin(&head, log.on_disk(&head, &self.active.scratch));
        let log = Arc::new(log);
        *self.shared.unsynced.lock() = Some((Arc::clone(&log), end));
        self.shared.positions.set_both(end);
        self.active.file = Some(ActiveFile { log, end, published: end, sums });
        Ok(end)
    }

    /// Creates a file that the index does not list, replacing one left by an earlier attempt.
    fn create(&self, number: FileNumber, key: Option<&MasterKey>) -> Result<NewLogFile> {
        let place = &self.shared.place;
        let storage = place.storage.as_ref();
        let name = place.names.log(number);
        if storage.list().map_err(Error::io("list", "the directory"))?.contains(&name) {
            if !holds_nothing(place, &name)? {
                return Err(Error::unfit(&name, "the index does not list it", "no such file yet"));
            }
            storage.remove(&name).map_err(Error::io("remove", &name))?;
        }
        NewLogFile::create(storage, &name, key)
    }

    /// Closes the open file: makes it durable, then marks it as no longer in use.
    ///
    /// # Errors
    ///
    /// The disk fails, after which the store refuses writes until it is reopened.
    pub fn seal(&mut self) -> Result<()> {
        if !self.active.is_published() {
            return Err(Error::Misuse {
                what: "seal",
                found: "a part of a transaction".into(),
                expected: "publish first",
            });
        }
        let Active { file, scratch } = &mut *self.active;
        let Some(open) = file else { return Ok(()) };
        let _syncing = self.shared.syncing.lock();
        self.shared.latch.guard(|| {
            open.log.sync()?;
            self.shared.note_durable(open.end, true)
        })?;
        self.shared.positions.set_durable(open.end);
        let closed = |flags: u8| flags & !(HeaderFlags::IN_USE.0 as u8);
        self.shared.latch.guard(|| write_flags(&open.log, closed, scratch))?;
        *self.shared.unsynced.lock() = None;
        if let Some(ActiveFile { log, end, sums, .. }) = file.take() {
            // The file is closed and whole without them, and whoever examines it writes those that are missing.
            let _ = sums.write(self.shared.place.storage.as_ref(), &log, end.offset);
        }
        Ok(())
    }
}

impl Drop for StoreWriter<'_> {
    fn drop(&mut self) {
        if !self.active.is_published() {
            self.shared.latch.close(|| "a transaction was written in part, and given up".into());
        }
    }
}

fn no_open_file() -> Error {
    Error::Misuse { what: "append", found: "no open file".into(), expected: "begin_file first" }
}
