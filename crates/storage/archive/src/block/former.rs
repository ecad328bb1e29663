//! Finds where a row's image occurred before. The before-image of an update or a delete is an image that an insert or an
//! update left, here or in an earlier block of the segment. A packer looks images up by their hash ([`FormerImages`]). An
//! unpacker reads the number of the image, and takes the image from the unpacked blocks ([`UnpackedBlock`]).
//!
//! Images are numbered by block and table, in the order in which they occur: those of inserted rows, and those that
//! updates leave. A partial update leaves only differences, so the next image of its row is not known as a whole. It is
//! looked up by its key, and stored as its difference from the row's last known image. Hashes are not part of the format:
//! an image that a hash finds is unpacked and compared before it is used.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::codec::hash::hash;

/// The most images that a segment's packer knows: their maps take 17 to 39 bytes for each, and grow one by
/// one.
const IMAGES_MAX: usize = 6 << 20;
/// The number of maps of a table.
const MAPS: usize = 64;
/// Bytes of the last known images of rows with documents; those of the blocks longest ago are forgotten.
const BASES_BYTES_MAX: usize = 32 << 20;
/// Memory that such an image takes besides its bytes.
const BASE_COST: usize = 64;
/// Images in one part of the waiting list.
const WAITING_PART: usize = 1 << 14;

/// The range of an image in a block.
pub(crate) type ImageRange = Range<u32>;

/// An unpacked block, and where its images are.
#[derive(Debug, Default)]
pub struct UnpackedBlock {
    /// The block's bytes of the log.
    pub log: Vec<u8>,
    /// Numbers of the tables, keyed by their table maps without the table id.
    pub(crate) tables: HashMap<Vec<u8>, usize>,
    /// The images of each table.
    pub(crate) images: Vec<Vec<ImageRange>>,
}

impl UnpackedBlock {
    pub(crate) fn image(&self, table: usize, number: usize) -> Option<&[u8]> {
        let place = self.images.get(table)?.get(number)?;
        self.log.get(place.start as usize..place.end as usize)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.log.len()
            + self.images.iter().map(|places| places.len() * size_of::<ImageRange>()).sum::<usize>()
    }
}

/// How a block finds former images.
#[derive(Debug, Default)]
pub(crate) enum Formers<'a> {
    /// As in version 1: an image in the same block, by the first value of its row.
    #[default]
    ByKey,
    /// While the block is packed.
    Find(BlockFinder<'a>),
    /// While the block is unpacked: the blocks that it refers to.
    Given(Vec<Arc<UnpackedBlock>>),
}

/// Uses hashes as keys, unchanged.
#[derive(Debug, Default)]
pub(crate) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// An image that was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FormerImage {
    /// 0: nowhere; 1: in this block; otherwise 2 + the index of the reference.
    pub(crate) source: usize,
    /// The image's number among the images of its table in that block.
    pub(crate) number: usize,
    /// Size of the image in bytes.
    pub(crate) size: usize,
    /// It is not the same image, but an earlier one of the same row.
    pub(crate) differs: bool,
}

/// The place of an image: its block, and its number among the images of its table there.
type ImageStanding = (u32, u32);

/// Images by hash, spread over several maps: a map that grows holds its images twice, and we can't afford
/// that for all at once.
#[derive(Debug, Default)]
struct Images(Vec<HashMap<u64, ImageStanding, BuildHasherDefault<AsItIs>>>);

impl Images {
    /// The map for a hash. The hash's high and low bits choose places inside the map.
    fn map(&mut self, hash: u64) -> Option<&mut HashMap<u64, ImageStanding, BuildHasherDefault<AsItIs>>> {
        if self.0.is_empty() {
            self.0.resize_with(MAPS, HashMap::default);
        }
        self.0.get_mut((hash >> 40) as usize % MAPS)
    }

    fn get(&mut self, hash: u64) -> Option<ImageStanding> {
        self.map(hash)?.get(&hash).copied()
    }

    /// Inserts an image. Returns whether it is new.
    fn insert(&mut self, hash: u64, standing: ImageStanding) -> bool {
        self.map(hash).is_some_and(|map| map.insert(hash, standing).is_none())
    }

    fn remove(&mut self, hash: u64) {
        if let Some(map) = self.map(hash) {
            map.remove(&hash);
        }
    }
}

/// The images left by a segment's blocks, by table: the last one of each row.
#[derive(Debug, Default)]
pub(crate) struct FormerImages {
    tables: HashMap<u64, OfTable>,
    count: usize,
    bases: Bases,
}

/// The last known images of rows with documents, by the hash of table and key.
#[derive(Debug, Default)]
struct Bases {
    images: HashMap<u64, (ImageStanding, Box<[u8]>), BuildHasherDefault<AsItIs>>,
    bytes: usize,
}

impl Bases {
    fn put(&mut self, key: u64, standing: ImageStanding, image: &[u8]) {
        let cost = |image: &[u8]| image.len() + BASE_COST;
        self.bytes += cost(image);
        if let Some((_, replaced)) = self.images.insert(key, (standing, image.into())) {
            self.bytes -= cost(&replaced);
        }
        while self.bytes > BASES_BYTES_MAX {
            let Some(oldest) = self.images.values().map(|((block, _), _)| *block).min() else { return };
            self.images.retain(|_, ((block, _), _)| *block != oldest);
            self.bytes = self.images.values().map(|(_, image)| cost(image)).sum();
        }
    }
}

/// The images of a table.
#[derive(Debug, Default)]
struct OfTable {
    /// Images not looked for yet, in parts: tables that are only inserted into never need a map.
    waiting: Vec<Vec<(u64, ImageStanding)>>,
    images: Images,
}

/// Findings about a block, made while it is dealt out.
#[derive(Debug)]
pub(crate) struct BlockFinder<'a> {
    finder: &'a mut FormerImages,
    block: u32,
    /// Blocks that it may refer to.
    references: &'a [u32],
    /// Images that no row has any more.
    taken: Vec<(u64, u64, ImageStanding)>,
    gains: HashMap<u32, u64>,
    /// The images that this block leaves of rows with documents: by key, their numbers and places.
    left: HashMap<u64, (u32, ImageRange), BuildHasherDefault<AsItIs>>,
    /// The key of the base that was found last.
    found: u64,
}

impl<'a> BlockFinder<'a> {
    /// A finder for the block with this number. The block may be dealt out twice: the second time finds the images that
    /// the first left, and leaves them again.
    pub(crate) fn new(finder: &'a mut FormerImages, block: u32, references: &'a [u32]) -> Self {
        BlockFinder {
            finder,
            block,
            references,
            taken: Vec::new(),
            gains: HashMap::new(),
            left: HashMap::default(),
            found: 0,
        }
    }

    /// Finds where this image of a table occurred; `count` of its images were left in this block so far.
    pub(crate) fn find(&mut self, table: u64, image: &[u8], count: usize) -> Option<FormerImage> {
        let images = self.finder.images(table)?;
        let hash = hash(table, image);
        let standing = images.get(hash)?;
        let block = standing.0;
        let number = standing.1 as usize;
        let source = if block == self.block {
            (number < count).then_some(1)?
        } else {
            *self.gains.entry(block).or_default() += image.len() as u64;
            2 + self.references.iter().position(|&reference| reference == block)?
        };
        self.taken.push((table, hash, standing));
        Some(FormerImage { source, number, size: image.len(), differs: false })
    }

    /// Finds the last known image of a row.
    pub(crate) fn find_base(&mut self, key: u64) -> Option<FormerImage> {
        if let Some((number, place)) = self.left.get(&key) {
            let found = FormerImage { source: 1, number: *number as usize, size: place.len(), differs: true };
            return Some(found);
        }
        let ((block, number), image) = self.finder.bases.images.get(&key)?;
        *self.gains.entry(*block).or_default() += image.len() as u64;
        let source = 2 + self.references.iter().position(|reference| reference == block)?;
        self.found = key;
        Some(FormerImage { source, number: *number as usize, size: image.len(), differs: true })
    }

    /// The image in another block that was found last.
    pub(crate) fn base(&self) -> Option<&[u8]> {
        self.finder.bases.images.get(&self.found).map(|(_, image)| &**image)
    }

    /// Notes an image that this block leaves of a row with documents.
    pub(crate) fn leave_base(&mut self, key: u64, number: u32, place: ImageRange) {
        self.left.insert(key, (number, place));
    }

    /// Notes an image that this block leaves.
    pub(crate) fn leave(&mut self, table: u64, image: &[u8], number: u32) {
        if self.finder.count < IMAGES_MAX {
            self.finder.count += 1;
            let image = (hash(table, image), (self.block, number));
            let waiting = &mut self.finder.tables.entry(table).or_default().waiting;
            match waiting.last_mut().filter(|part| part.len() < WAITING_PART) {
                Some(part) => part.push(image),
                None => waiting.push(vec![image]),
            }
        }
    }

    /// The rows that the block took; and by block, the bytes of its images that are there.
    pub(crate) fn into_taken(self) -> (BlockImages, HashMap<u32, u64>) {
        (BlockImages { images: self.taken, block: self.block, left: self.left }, self.gains)
    }
}

/// A block's contribution to later ones.
#[derive(Debug, Default)]
pub(crate) struct BlockImages {
    /// Images that no row has any more.
    images: Vec<(u64, u64, ImageStanding)>,
    block: u32,
    left: HashMap<u64, (u32, ImageRange), BuildHasherDefault<AsItIs>>,
}

impl FormerImages {
    /// The images of a table, all in its map.
    fn images(&mut self, table: u64) -> Option<&mut Images> {
        let table = self.tables.get_mut(&table)?;
        for (hash, standing) in table.waiting.drain(..).flatten() {
            self.count -= usize::from(!table.images.insert(hash, standing));
        }
        Some(&mut table.images)
    }

    /// Forgets images that a block took, and keeps those of rows with documents that it left in its log.
    pub(crate) fn forget(&mut self, taken: BlockImages, log: &[u8]) {
        let mut left: Vec<_> = taken.left.into_iter().collect();
        left.sort_unstable_by_key(|(_, (_, place))| place.start);
        for (key, (number, place)) in left {
            if let Some(image) = log.get(place.start as usize..place.end as usize) {
                self.bases.put(key, (taken.block, number), image);
            }
        }
        for (table, hash, standing) in taken.images {
            // An image that was left again since then stays.
            if let Some(images) = self.images(table)
                && images.get(hash) == Some(standing)
            {
                images.remove(hash);
                self.count -= 1;
            }
        }
    }
}
