//! The blocks in which a log is packed, for a run that packs it anew: columns that are as they were need no coding, and whole blocks nothing but a
//! comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::error::Result;
use crate::format::FileEntry;
use crate::log::{BlockReuse, FormerBlock};
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
    /// Blocks that stay as they are packed, by their objects and numbers.
    whole: BTreeSet<(usize, u32)>,
    /// Blocks to which others refer that don't stay, or of which nothing is known here.
    referred: BTreeSet<(usize, u32)>,
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

    /// Keeps the blocks that began at the first offset of a pair, and moves each to the second. The block at the log's begin stays. Blocks stay
    /// as they are packed, but for those that began at an offset of `changed`.
    pub(crate) fn moved(self, begins: &[(u64, u64)], changed: &BTreeSet<u64>) -> Self {
        let moved = begins.iter().filter_map(|(before, now)| Some((*now, *self.blocks.get(before)?)));
        let first = self.blocks.first_key_value().filter(|(begin, _)| **begin == 0);
        let blocks = first.map(|(begin, block)| (*begin, *block)).into_iter().chain(moved).collect();
        let whole = self.blocks.iter().filter(|(begin, _)| !changed.contains(begin));
        let whole = whole.map(|(_, block)| *block).collect();
        FormerBlocks { blocks, ..self }.keeping_whole(whole)
    }

    /// All blocks stay as they are packed.
    #[must_use]
    pub(crate) fn unchanged(self) -> Self {
        let whole = self.blocks.values().copied().collect();
        self.keeping_whole(whole)
    }

    fn keeping_whole(self, whole: BTreeSet<(usize, u32)>) -> Self {
        let mut referred = BTreeSet::new();
        for (place, object) in self.objects.iter().enumerate() {
            for (number, entry) in (0..).zip(&object.index.blocks) {
                if !whole.contains(&(place, number)) {
                    referred.extend(entry.references.iter().map(|reference| (place, *reference)));
                }
            }
        }
        FormerBlocks { whole, referred, ..self }
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
        let standing = (*place, *number);
        let reuse = match (self.whole.contains(&standing), self.referred.contains(&standing)) {
            (true, false) => BlockReuse::Whole,
            (true, true) => BlockReuse::WholeReferred,
            (false, _) => BlockReuse::Columns,
        };
        Ok(block.map(|block| FormerBlock {
            references: block.references.filter(|_| self.keeps_references),
            reuse,
            ..block
        }))
    }
}
