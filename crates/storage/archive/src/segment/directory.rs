//! The directory of an object that is read: what it tells of a block, and whether the block holds that.

use binlogz_binlog::event::AnyGtidEvent;

use super::object::{Object, in_object};
use super::unpacker::PackedBlocks;
use crate::block::UnpackedBlock;
use crate::block::picked::{self, PickedTransaction};
use crate::error::{Error, Result};
use crate::format::directory::{DirectoryGroups, StoredDirectory};
use crate::format::{BlockEntry, Contents};
use crate::log::directory::{BlockDirectory, DirectoryWalk, moments};
use crate::log::events;

impl Object {
    /// The transactions of its blocks; `None`: objects before version 11 don't tell them, or the index was made again.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read or are damaged. Nothing is lost then: the blocks tell them.
    pub fn directory(&self) -> Result<Option<StoredDirectory>> {
        let Some(entry) = self.index.directory else { return Ok(None) };
        let bytes = self.told(entry, "directory of transactions");
        bytes
            .and_then(|bytes| StoredDirectory::new(bytes, self.index.blocks.len()))
            .map(Some)
            .map_err(|error| in_object(&self.name, entry.at, error))
    }

    /// The directory of a block, with those of these groups that are there; times of commit that aren't are taken from the block. `None`: it isn't
    /// told.
    ///
    /// # Errors
    ///
    /// A directory that can't be decoded; a damaged block.
    pub(crate) fn directory_of(
        &self,
        number: u32,
        (stored, contents): (&StoredDirectory, &Contents),
        wanted: DirectoryGroups,
    ) -> Result<Option<BlockDirectory>> {
        let Some(entry) = self.index.blocks.get(number as usize) else { return Ok(None) };
        let read = || {
            let decoded = stored.block(number, entry, &contents.tables, wanted);
            let decoded = decoded
                .map_err(|error| of_directory(entry, format!("not as a packer writes it ({error})")))?;
            let Some(mut directory) = decoded else { return Ok(None) };
            if wanted.without(stored.groups(number)).has(DirectoryGroups::TIMES) {
                fill_times(&mut directory, &self.gtid_events(number, entry)?)?;
            }
            Ok(Some(directory))
        };
        read().map_err(|error| self.name_it(number, error))
    }

    /// The transactions of a block's GTID events, in order.
    fn gtid_events(&self, number: u32, entry: &BlockEntry) -> Result<Vec<PickedTransaction>> {
        let packed = self.read(entry)?;
        if let Some(found) = picked::gtid_events(&packed, entry.size as usize)? {
            return Ok(found);
        }
        let block = self.block(number, 1)?;
        let mut found = Vec::new();
        for event in events::events(&block.log, entry.offset) {
            let frame =
                events::frame(event).ok_or_else(|| Error::damaged("block", "a cut event", "a whole one"))?;
            found.extend(AnyGtidEvent::decode_frame(&frame)?.map(|event| PickedTransaction::of(&event)));
        }
        Ok(found)
    }

    /// Has `walk` go over a block of which nothing is told.
    pub(crate) fn pass_over(&self, number: u32, block: &UnpackedBlock, walk: &mut DirectoryWalk) {
        if let Some(entry) = self.index.blocks.get(number as usize) {
            walk.take(&block.log, entry.offset, entry.continues);
        }
    }

    /// Compares what `walk` finds in a block with what is told of its transactions.
    ///
    /// # Errors
    ///
    /// A difference.
    pub(crate) fn compare_directory(
        &self,
        number: u32,
        block: &UnpackedBlock,
        told: (&StoredDirectory, &Contents),
        walk: &mut DirectoryWalk,
    ) -> Result<()> {
        let Some(entry) = self.index.blocks.get(number as usize) else { return Ok(()) };
        // Of a transaction that began in a lost block nothing can be found.
        let is_known = !entry.continues || !walk.is_cut();
        let groups = told.0.groups(number);
        let found = walk.take(&block.log, entry.offset, entry.continues).map(|found| found.only(groups));
        match self.directory_of(number, told, groups)? {
            None => Ok(()),
            stored if stored == found || !is_known => Ok(()),
            Some(_) => Err(self.name_it(number, of_directory(entry, "not what the block holds".into()))),
        }
    }
}

fn of_directory(entry: &BlockEntry, found: String) -> Error {
    Error::Unexpected {
        what: format!("directory of transactions of {}", entry.describe()),
        found,
        expected: "its transactions".into(),
    }
}

/// Fills in the times of commit from the GTID events of the block, in order. Whether a transaction has such an event must be known.
fn fill_times(directory: &mut BlockDirectory, events: &[PickedTransaction]) -> Result<()> {
    let places: Vec<usize> = directory.gtid_events().collect();
    let columns = &mut directory.columns;
    if places.len() != events.len() {
        let found = format!("{} transactions with GTID events", places.len());
        return Err(Error::damaged(
            "directory of transactions",
            found,
            "as many as the block has such events",
        ));
    }
    columns.applied_at = vec![0; columns.shape.len()];
    columns.committed_at = columns.applied_at.clone();
    for (place, event) in places.into_iter().zip(events) {
        let times = moments(event.commit_timestamps);
        for (column, time) in [&mut columns.applied_at, &mut columns.committed_at].into_iter().zip(times) {
            if let Some(known) = column.get_mut(place) {
                *known = time;
            }
        }
    }
    Ok(())
}
