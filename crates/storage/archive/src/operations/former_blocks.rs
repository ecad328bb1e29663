//! The blocks in which a log is packed, for a run that packs it anew: what is as it was in them needs no coding.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Result;
use crate::format::FileEntry;
use crate::log::FormerBlock;
use crate::operations::restore::LastObject;
use crate::segment::Object;
use crate::storage::ArchiveStorage;

/// The blocks of a log, by where each begins, or where what is left of it begins.
#[derive(Debug, Default)]
pub(crate) struct FormerBlocks {
    objects: Vec<Arc<Object>>,
    /// Of each, its object and its number there.
    blocks: BTreeMap<u64, (usize, u32)>,
    /// Whether they go on referring to the blocks to which they do.
    keeps_references: bool,
}

impl FormerBlocks {
    /// The blocks of a log, as its objects have them now.
    ///
    /// # Errors
    ///
    /// An object that is missing, damaged, or doesn't hold the log.
    pub(crate) fn of(storage: &dyn ArchiveStorage, file: &FileEntry) -> Result<Self> {
        let mut former = FormerBlocks::default();
        for (place, name) in file.objects.iter().enumerate() {
            let object = LastObject::default().open(storage, name)?;
            let (_, numbers) = object.log(&file.name)?;
            for number in numbers {
                let entry = object.index.blocks.get(number as usize);
                former.blocks.extend(entry.map(|entry| (entry.offset, (place, number))));
            }
            former.objects.push(object);
        }
        Ok(former)
    }

    /// Where they begin.
    pub(crate) fn begins(&self) -> Vec<u64> {
        self.blocks.keys().copied().collect()
    }

    /// Keeps the blocks that began at the first offset of a pair, and moves each to the second. The block at the log's begin stays.
    pub(crate) fn moved(self, begins: &[(u64, u64)]) -> Self {
        let moved = begins.iter().filter_map(|(before, now)| Some((*now, *self.blocks.get(before)?)));
        let first = self.blocks.first_key_value().filter(|(begin, _)| **begin == 0);
        let blocks = first.map(|(begin, block)| (*begin, *block)).into_iter().chain(moved).collect();
        FormerBlocks { blocks, ..self }
    }

    /// Blocks refer to those to which they did, as far as these are packed anew before them: others aren't looked for, which takes time.
    #[must_use]
    pub(crate) fn keeping_references(self) -> Self {
        FormerBlocks { keeps_references: true, ..self }
    }

    /// The block of which what is left begins at this offset.
    ///
    /// # Errors
    ///
    /// A block that can't be read or is damaged.
    pub(crate) fn at(&self, offset: u64) -> Result<Option<FormerBlock>> {
        let Some((place, number)) = self.blocks.get(&offset) else { return Ok(None) };
        let block = self.objects.get(*place).map(|object| object.packed(*number)).transpose()?;
        Ok(block.map(|block| FormerBlock {
            references: block.references.filter(|_| self.keeps_references),
            ..block
        }))
    }
}
