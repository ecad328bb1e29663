//! Reads an object: its index, then the blocks that are wanted. The byte table is that of [`crate::format::ends`].

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::EventType;

use crate::block::{self, UnpackedBlock};
use crate::error::{Error, Result};
use crate::format::contents::{BlockFindings, ListedTable};
use crate::format::ends::{HEAD_SIZE, read_end, read_version};
use crate::format::index::ContentsEntry;
use crate::format::version::{VERSION, VERSION_DEFINITIONS, VERSION_HEADERS};
use crate::format::{BlockEntry, Contents, Index};
use crate::format::{BlockHeader, index_anew};
use crate::log::{BLOCK_SIZE_MAX, BlockReuse, CutPiece, FormerBlock, FormerReferences, events};
use crate::segment::unpacker::{self, PackedBlocks, UnpackedBlocks};
use crate::storage::ReadRange;

/// Memory of a block's entry of the index with what is told of the block, in bytes; and how much more memory stored contents take than
/// their packed bytes.
const TOLD_OF_BLOCK: u64 = 1 << 10;
const TOLD_FACTOR: u64 = 3;

/// An object that is read.
pub struct Object {
    /// The object's name, for errors.
    pub(super) name: String,
    bytes: Box<dyn ReadRange>,
    kept: UnpackedBlocks,
    /// The object's index.
    pub index: Index,
    version: u32,
    /// Whether the index was damaged and rebuilt from the blocks: those that also lost their headers are not
    /// in it.
    pub(crate) made_anew: bool,
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Object {
    /// Reads the index.
    ///
    /// # Errors
    ///
    /// An object that can't be read, of another version, or with a damaged index.
    pub fn open(name: &str, bytes: Box<dyn ReadRange>) -> Result<Object> {
        let read = || match read_end(bytes.as_ref()) {
            Ok((index, version)) => Ok((index, version, false)),
            Err(error) => match read_version(bytes.as_ref()) {
                Ok(version @ VERSION_HEADERS..=VERSION) if !matches!(error, Error::Io { .. }) => {
                    let index = index_anew(bytes.as_ref())?;
                    if index.blocks.is_empty() { Err(error) } else { Ok((index, version, true)) }
                }
                _ => Err(error),
            },
        };
        let (index, version, made_anew) = read().map_err(|error| in_object(name, 0, error))?;
        Ok(Object { name: name.into(), bytes, kept: UnpackedBlocks::default(), index, version, made_anew })
    }

    /// Damage other than to the blocks themselves, as far as it concerns a log: everything needed is stored a
    /// second time.
    pub fn inspect(&self, log: u32) -> Vec<Error> {
        let mut problems = Vec::new();
        let size = self.bytes.size().unwrap_or_default();
        if let Err(damage) = read_end(self.bytes.as_ref()) {
            let index = "index, which was made anew of the blocks,".to_owned();
            let copy = Error::Copy { what: index, source: Box::new(damage) };
            problems.push(in_object(&self.name, size, copy));
        }
        let begin = match read_version(self.bytes.as_ref()) {
            Ok(version) if version == self.version => Ok(()),
            Ok(other) => Err(Error::unexpected("version", other, self.version)),
            Err(error) => Err(error),
        };
        if let Err(error) = begin {
            let copy = Error::Copy { what: "begin".into(), source: Box::new(error) };
            problems.push(in_object(&self.name, 0, copy));
        }
        if self.version < VERSION_HEADERS {
            return problems;
        }
        let mut at = HEAD_SIZE;
        for (number, entry) in (0..).zip(&self.index.blocks) {
            let begin = std::mem::replace(&mut at, entry.at.saturating_add(entry.packed_size).min(size));
            if entry.log != log {
                continue;
            }
            let same =
                |(header, _): (BlockHeader, u64)| match header.number == number && header.entry == *entry {
                    true => Ok(()),
                    false => Err(Error::damaged(
                        "header of a block",
                        "another block",
                        "the block that the index has there",
                    )),
                };
            if let Err(error) = BlockHeader::read(self.bytes.as_ref(), begin).and_then(same) {
                let what = format!("header of {}", entry.describe());
                problems.push(in_object(&self.name, begin, Error::Copy { what, source: Box::new(error) }));
            }
        }
        problems
    }

    /// Contents of its blocks; `None`: objects before version 6 don't have them, or the index was made again.
    ///
    /// # Errors
    ///
    /// Bytes that can't be read or are damaged. Nothing is lost then: every block may hold anything.
    pub fn contents(&self) -> Result<Option<Contents>> {
        let Some(entry) = self.index.contents else { return Ok(None) };
        let bytes = self.told(entry, "contents");
        bytes
            .and_then(|bytes| Contents::decode(&bytes, self.version, self.index.blocks.len()))
            .map(Some)
            .map_err(|error| in_object(&self.name, entry.at, error))
    }

    /// The bytes of something that is told of the blocks, checked.
    pub(super) fn told(
        &self,
        ContentsEntry { at, size, crc32 }: ContentsEntry,
        what: &'static str,
    ) -> Result<Vec<u8>> {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size as u64 > self.bytes.size()? {
            return Err(Error::damaged(what, format!("{size} bytes"), "no more than the object has"));
        }
        let bytes = self.bytes.read(at, size)?;
        match crc32fast::hash(&bytes) == crc32 {
            true => Ok(bytes),
            false => Err(Error::damaged(what, "another checksum", "that of its bytes")),
        }
    }

    /// About how much memory its index takes, and what it tells of its blocks.
    pub(crate) fn told_memory(&self) -> u64 {
        let of_blocks = (self.index.blocks.len() as u64).saturating_mul(TOLD_OF_BLOCK);
        let told = [self.index.contents, self.index.directory].into_iter().flatten();
        told.fold(of_blocks, |sum, told| sum.saturating_add(told.size.saturating_mul(TOLD_FACTOR)))
    }

    /// Drops the unpacked blocks that nobody uses, and what was read ahead.
    pub(crate) fn forget_blocks(&self) {
        self.kept.clear();
        self.bytes.forget();
    }

    /// The head of a log that has blocks in it.
    pub(crate) fn head_of(&self, log: u32) -> Vec<u8> {
        self.index.logs.get(log as usize).map(|log| log.head.clone()).unwrap_or_default()
    }

    /// Whether its contents have the definitions of tables.
    pub(crate) fn has_definitions(&self) -> bool {
        self.version >= VERSION_DEFINITIONS && !self.made_anew
    }

    /// Compares a block with the contents stored about it. A block that begins inside a transaction isn't compared: its
    /// table maps are in another block.
    ///
    /// # Errors
    ///
    /// A difference.
    pub(crate) fn compare(&self, number: u32, block: &UnpackedBlock, contents: &Contents) -> Result<()> {
        let (Some(entry), Some(told)) =
            (self.index.blocks.get(number as usize), contents.blocks.get(number as usize))
        else {
            return Ok(());
        };
        if entry.continues {
            return Ok(());
        }
        let head = self.index.logs.get(entry.log as usize).map(|log| log.head.as_slice()).unwrap_or_default();
        let piece = CutPiece { offset: entry.offset, log: block.log.clone(), ..CutPiece::default() };
        let found = BlockFindings::of(&piece, events::lengths(head).as_ref(), self.version);
        let mut place = |name: ListedTable| {
            let place = contents.tables.iter().position(|table| *table == name);
            place.map_or(u32::MAX, |place| place as u32)
        };
        // Where it stood among payloads is known only once all are made again.
        let mut found = found.told(entry.packed_size, &mut place);
        found.origin = told.origin;
        if !self.has_definitions() {
            // Earlier versions don't tell it.
            found.has_all_gtids &= told.has_all_gtids;
        }
        match found == *told {
            true => Ok(()),
            false => Err(self.name_it(
                number,
                Error::Unexpected {
                    what: format!("what is told of {}", entry.describe()),
                    found: "not what the block holds".into(),
                    expected: "its tables, rows and keys".into(),
                },
            )),
        }
    }

    /// The number of a log and those of its blocks.
    ///
    /// # Errors
    ///
    /// An object that does not hold it.
    pub fn log(&self, name: &str) -> Result<(u32, Vec<u32>)> {
        let log = self.index.log(name);
        let log = log.ok_or_else(|| Error::unexpected(&self.name, "without that log", name))?;
        Ok((log, self.index.blocks_of(log)))
    }

    /// Unpacks a block, and the blocks that it needs.
    ///
    /// # Errors
    ///
    /// A block that can't be read or is damaged; the error names it with its transactions.
    pub fn block(&self, number: u32, workers: usize) -> Result<Arc<UnpackedBlock>> {
        let block = unpacker::one(&self.index.blocks, self, &self.kept, number, workers);
        block.map_err(|error| self.name_it(number, error))
    }

    /// Unpacks blocks one after the other. Other readers of the object go on while `sink` waits.
    ///
    /// # Errors
    ///
    /// As for [`Object::block`], and those of `sink`.
    pub fn blocks(
        &self,
        numbers: &[u32],
        workers: usize,
        sink: &mut dyn FnMut(&BlockEntry, &UnpackedBlock) -> Result<()>,
    ) -> Result<()> {
        unpacker::each(&self.index.blocks, self, &self.kept, numbers, workers, sink)
    }

    /// Reads every block and compares its checksum.
    pub(crate) fn read_all(&self) -> Result<()> {
        self.index.blocks.iter().try_for_each(|entry| self.read(entry).map(drop))
    }

    /// A block as it is packed.
    pub(crate) fn packed(&self, number: u32) -> Result<FormerBlock> {
        let entry = self.index.blocks.get(number as usize);
        let entry = entry
            .ok_or_else(|| Error::damaged("index", format!("no block {number}"), "one of its blocks"))?;
        let mut packed = Vec::new();
        self.read_into(entry, &mut packed)?;
        // The index tells the numbers that references mean.
        let references = (!self.made_anew).then(|| FormerReferences {
            object: self.name.as_str().into(),
            number,
            blocks: entry.references.clone(),
        });
        Ok(FormerBlock { packed, size: entry.size as usize, references, reuse: BlockReuse::default() })
    }

    /// The types that events of a block have; `None`: it isn't packed by columns as they are now.
    ///
    /// # Errors
    ///
    /// A block that can't be read or is damaged; the error names it with its transactions.
    pub(crate) fn event_types(&self, number: u32) -> Result<Option<BTreeSet<EventType>>> {
        let FormerBlock { packed, size, .. } = self.packed(number)?;
        block::event_types(&packed, size).map_err(|error| self.name_it(number, error))
    }

    /// Names the object, if the error does not.
    pub(crate) fn name_it(&self, number: u32, error: Error) -> Error {
        let at = self.index.blocks.get(number as usize).map_or(0, |entry| entry.at);
        match error {
            error @ Error::In { .. } => error,
            error => in_object(&self.name, at, error),
        }
    }
}

impl Object {
    /// Reads a packed block in place of what `into` holds, and compares its checksum.
    pub(super) fn read_into(&self, entry: &BlockEntry, into: &mut Vec<u8>) -> Result<()> {
        if entry.is_lost() {
            return Err(in_object(
                &self.name,
                0,
                Error::damaged("block", "neither the block nor its header", "the block"),
            ));
        }
        let mut read = || {
            let packed_size = usize::try_from(entry.packed_size).unwrap_or(usize::MAX);
            if packed_size > 2 * BLOCK_SIZE_MAX {
                return Err(Error::unexpected(
                    "size of a packed block",
                    packed_size,
                    format_args!("at most {}", 2 * BLOCK_SIZE_MAX),
                ));
            }
            self.bytes.read_into(entry.at, packed_size, into)?;
            if into.len() != packed_size || crc32fast::hash(into) != entry.crc32 {
                return Err(Error::Block { block: entry.describe() });
            }
            Ok(())
        };
        read().map_err(|error| in_object(&self.name, entry.at, error))
    }
}

impl PackedBlocks for Object {
    fn read(&self, entry: &BlockEntry) -> Result<Vec<u8>> {
        let mut packed = Vec::new();
        self.read_into(entry, &mut packed)?;
        Ok(packed)
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        self.bytes.expect(ranges);
    }
}

/// An error at this offset of an object.
pub(super) fn in_object(name: &str, offset: u64, error: Error) -> Error {
    Error::In { object: name.into(), offset, source: Box::new(error) }
}
