//! The last image of each row of a block, by the value of its first column: very likely the before-image of a
//! later change.

use std::collections::HashMap;
use std::ops::Range;

/// Longer first values are not remembered.
const KEY_MAX: usize = 64;

/// The place of an image in the block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImagePlace {
    start: u32,
    /// Where its first value ends.
    key_end: u32,
    end: u32,
    key_start: u32,
}

impl ImagePlace {
    pub(crate) fn new(image: Range<usize>, key: Range<usize>) -> Option<ImagePlace> {
        let place = |at: usize| u32::try_from(at).ok();
        (key.len() <= KEY_MAX).then_some(ImagePlace {
            start: place(image.start)?,
            key_start: place(key.start)?,
            key_end: place(key.end)?,
            end: place(image.end)?,
        })
    }

    /// The bytes before the first value: which values are NULL.
    pub(crate) fn nulls(self) -> Range<usize> {
        self.start as usize..self.key_start as usize
    }

    /// The bytes after the first value.
    pub(crate) fn rest(self) -> Range<usize> {
        self.key_end as usize..self.end as usize
    }
}

/// The last images of a table's rows.
#[derive(Debug, Default)]
pub(crate) struct LastImages {
    images: HashMap<u64, ImagePlace>,
}

impl LastImages {
    /// The last image with this first value. If another value has the same hash, the image simply does not
    /// fit.
    pub(crate) fn get(&self, key: &[u8]) -> Option<ImagePlace> {
        self.images.get(&hash(key)).copied()
    }

    pub(crate) fn insert(&mut self, key: &[u8], image: ImagePlace) {
        self.images.insert(hash(key), image);
    }
}

/// FNV-1a: part of the format, since both sides must agree.
fn hash(key: &[u8]) -> u64 {
    key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
