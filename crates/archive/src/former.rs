//! Where a row's image stood before: what an update or a delete finds is what an insert or an update left, here or
//! in an earlier block of the segment. A packer looks images up by their hash ([`Finder`]); an unpacker is told
//! which one it is, and takes it from the unpacked blocks ([`Unpacked`]).
//!
//! Images are numbered by block and table, in the order in which they come: those of inserted rows, and those that
//! updates leave. Hashes are no part of the format: what they find is unpacked and compared before it is kept.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

/// Images that a segment's packer knows at the most: their maps take 17 to 39 bytes for each, and grow one by one.
const IMAGES_MAX: usize = 6 << 20;
/// Maps of a table.
const MAPS: usize = 64;
/// Images in a part of those that wait.
const WAITING_PART: usize = 1 << 14;

/// Where an image stands in a block.
pub(crate) type Place = Range<u32>;

/// A block that was unpacked, and where its images are.
#[derive(Debug, Default)]
pub struct Unpacked {
    /// Its bytes of the log.
    pub log: Vec<u8>,
    /// Numbers of the tables, by their maps without the table id.
    pub(crate) tables: HashMap<Vec<u8>, usize>,
    /// By table.
    pub(crate) images: Vec<Vec<Place>>,
}

impl Unpacked {
    /// An image of a table.
    pub(crate) fn image(&self, table: usize, number: usize) -> Option<&[u8]> {
        let place = self.images.get(table)?.get(number)?;
        self.log.get(place.start as usize..place.end as usize)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        self.log.len() + self.images.iter().map(|places| places.len() * size_of::<Place>()).sum::<usize>()
    }
}

/// How a block learns of former images.
#[derive(Debug, Default)]
pub(crate) enum Formers<'a> {
    /// As version 1 did: an image of the block by the first value of its row.
    #[default]
    ByKey,
    /// While it is packed.
    Find(BlockFinder<'a>),
    /// While it is unpacked: the blocks that it refers to.
    Given(Vec<Arc<Unpacked>>),
}

/// Hashes are keys as they are.
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

/// An image found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// 0: nowhere; 1: in this block; else 2 + which of its references.
    pub(crate) source: usize,
    /// Among the images of its table there.
    pub(crate) number: usize,
    /// Its bytes.
    pub(crate) size: usize,
}

/// Where an image stands: block, and number among the images of its table there.
type Standing = (u32, u32);

/// By hash, in maps that share them out: one that grows holds its images twice, all of them at once would not do.
#[derive(Debug, Default)]
struct Images(Vec<HashMap<u64, Standing, BuildHasherDefault<AsItIs>>>);

impl Images {
    /// The map of a hash. Its high and low bits choose places inside the map.
    fn map(&mut self, hash: u64) -> Option<&mut HashMap<u64, Standing, BuildHasherDefault<AsItIs>>> {
        if self.0.is_empty() {
            self.0.resize_with(MAPS, HashMap::default);
        }
        self.0.get_mut((hash >> 40) as usize % MAPS)
    }

    fn get(&mut self, hash: u64) -> Option<Standing> {
        self.map(hash)?.get(&hash).copied()
    }

    /// Whether it is new.
    fn insert(&mut self, hash: u64, standing: Standing) -> bool {
        self.map(hash).is_some_and(|map| map.insert(hash, standing).is_none())
    }

    fn remove(&mut self, hash: u64) {
        if let Some(map) = self.map(hash) {
            map.remove(&hash);
        }
    }
}

/// The images that a segment's blocks left, each the last one of its row, by table.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    tables: HashMap<u64, OfTable>,
    count: usize,
}

/// The images of a table.
#[derive(Debug, Default)]
struct OfTable {
    /// Not looked for yet, in parts: tables that rows are only added to never need a map.
    waiting: Vec<Vec<(u64, Standing)>>,
    images: Images,
}

/// What a block finds while it is dealt out.
#[derive(Debug)]
pub(crate) struct BlockFinder<'a> {
    finder: &'a mut Finder,
    block: u32,
    /// Blocks that it may refer to.
    references: &'a [u32],
    /// Images that are no row's any more.
    taken: Vec<(u64, u64, Standing)>,
    gains: HashMap<u32, u64>,
}

impl<'a> BlockFinder<'a> {
    /// For the block of this number. It may be dealt out twice: the second time finds what the first left, and
    /// leaves it again.
    pub(crate) fn new(finder: &'a mut Finder, block: u32, references: &'a [u32]) -> Self {
        BlockFinder { finder, block, references, taken: Vec::new(), gains: HashMap::new() }
    }

    /// Where this image of a table stood; `count` of its images were left in this block so far.
    pub(crate) fn find(&mut self, table: u64, image: &[u8], count: usize) -> Option<Found> {
        let images = self.finder.images(table)?;
        let hash = hash(table, image);
        let standing = images.get(hash)?;
        let (block, number) = (standing.0, standing.1 as usize);
        let source = if block == self.block {
            (number < count).then_some(1)?
        } else {
            *self.gains.entry(block).or_default() += image.len() as u64;
            2 + self.references.iter().position(|&reference| reference == block)?
        };
        self.taken.push((table, hash, standing));
        Some(Found { source, number, size: image.len() })
    }

    /// An image that this block leaves.
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

    /// Rows that the block took; by block, the bytes of its images that stand there.
    pub(crate) fn into_taken(self) -> (Taken, HashMap<u32, u64>) {
        (Taken(self.taken), self.gains)
    }
}

/// Images that are no row's any more.
#[derive(Debug, Default)]
pub(crate) struct Taken(Vec<(u64, u64, Standing)>);

impl Finder {
    /// The images of a table, all in its map.
    fn images(&mut self, table: u64) -> Option<&mut Images> {
        let table = self.tables.get_mut(&table)?;
        for (hash, standing) in table.waiting.drain(..).flatten() {
            self.count -= usize::from(!table.images.insert(hash, standing));
        }
        Some(&mut table.images)
    }

    /// Forgets images that a block took.
    pub(crate) fn forget(&mut self, taken: Taken) {
        for (table, hash, standing) in taken.0 {
            // One that was left again since then stays.
            if let Some(images) = self.images(table)
                && images.get(hash) == Some(standing)
            {
                images.remove(hash);
                self.count -= 1;
            }
        }
    }
}

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// A hash of bytes, after another.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word).wrapping_mul(u128::from(FACTOR));
        product as u64 ^ (product >> 64) as u64 ^ SEED
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(seed ^ SEED, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(1, |number: u64, &byte| number << 8 | u64::from(byte));
    mix(mix(hash, rest), bytes.len() as u64)
}
