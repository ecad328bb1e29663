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

/// Images that a segment's packer knows at the most: their map takes 18 bytes for each.
const IMAGES_MAX: usize = 7 << 20;

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

type Images<T> = HashMap<u64, T, BuildHasherDefault<AsItIs>>;

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

/// The images that a segment's blocks left, each the last one of its row.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    images: Images<(u32, u32)>,
}

/// What a block finds while it is dealt out.
#[derive(Debug)]
pub(crate) struct BlockFinder<'a> {
    earlier: &'a Finder,
    /// Blocks that it may refer to.
    references: &'a [u32],
    left: Images<u32>,
    /// Images that are no row's any more.
    taken: Images<()>,
    gains: HashMap<u32, u64>,
}

impl<'a> BlockFinder<'a> {
    pub(crate) fn new(earlier: &'a Finder, references: &'a [u32]) -> Self {
        let (left, taken, gains) = (Images::default(), Images::default(), HashMap::new());
        BlockFinder { earlier, references, left, taken, gains }
    }

    /// Where this image stood.
    pub(crate) fn find(&mut self, hash: u64, size: usize) -> Option<Found> {
        if let Some(&number) = self.left.get(&hash) {
            self.taken.insert(hash, ());
            return Some(Found { source: 1, number: number as usize, size });
        }
        let &(block, number) = self.earlier.images.get(&hash)?;
        *self.gains.entry(block).or_default() += size as u64;
        let place = self.references.iter().position(|&reference| reference == block)?;
        self.taken.insert(hash, ());
        Some(Found { source: 2 + place, number: number as usize, size })
    }

    /// An image that this block leaves.
    pub(crate) fn leave(&mut self, hash: u64, number: u32) {
        self.taken.remove(&hash);
        self.left.insert(hash, number);
    }

    /// What the block changes for those behind it; by block, the bytes of its images that stand there.
    pub(crate) fn into_changes(self) -> (Changes, HashMap<u32, u64>) {
        (Changes { left: self.left, taken: self.taken }, self.gains)
    }
}

/// What a block changes for those behind it.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    left: Images<u32>,
    taken: Images<()>,
}

impl Finder {
    /// Takes note of what a block left and took.
    pub(crate) fn apply(&mut self, block: u32, changes: Changes) {
        let Changes { mut left, taken } = changes;
        for hash in taken.into_keys() {
            left.remove(&hash);
            self.images.remove(&hash);
        }
        // In the order of their places: what is left out for want of room depends on nothing else.
        let mut left: Vec<_> = left.into_iter().collect();
        left.sort_unstable_by_key(|&(hash, number)| (number, hash));
        for (hash, number) in left {
            if self.images.len() < IMAGES_MAX || self.images.contains_key(&hash) {
                self.images.insert(hash, (block, number));
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
