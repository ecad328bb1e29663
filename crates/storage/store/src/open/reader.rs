//! Reads a stored log, but no byte that is damaged or not yet durable.

use std::io;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::files::log_file::LogFile;
use crate::files::names::FileNumber;
use crate::state::StoreShared;

/// A place in one file of a log. At the durable end it reads nothing, and can be read again once there is
/// more ([`crate::BinlogStore::wait_durable_beyond`]). Purging the file does not affect it.
#[derive(Debug)]
pub struct LogReader {
    pub(crate) shared: Arc<StoreShared>,
    pub(crate) log: LogFile,
    pub(crate) number: FileNumber,
    pub(crate) offset: u64,
}

impl LogReader {
    /// The offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The file's number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Continues at another offset of the file.
    pub fn seek_to(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Where the file ends for readers: its durable end.
    pub fn end(&self) -> Result<u64> {
        match self.shared.positions.get() {
            Some(now) if now.durable.file == self.number => Ok(now.durable.offset),
            // Every file but the last is closed, and was synced before it was closed.
            Some(now) if now.durable.file > self.number => self.log.size(),
            _ => Ok(0),
        }
    }
}

impl io::Read for LogReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut end = self.end().map_err(io::Error::other)?;
        if let Some(damage) = self.shared.damage_of(self.number) {
            if let Some(hole) = damage.hole_at(self.offset) {
                let damage = damage.tell(hole);
                return Err(io::Error::new(io::ErrorKind::InvalidData, Error::Unreadable { damage }));
            }
            end = damage.next_hole(self.offset).map_or(end, |hole| hole.min(end));
        }
        let room = usize::try_from(end.saturating_sub(self.offset)).unwrap_or(usize::MAX).min(bytes.len());
        let read = self.log.read_at(self.offset, bytes.get_mut(..room).unwrap_or_default());
        let count = read.map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}
