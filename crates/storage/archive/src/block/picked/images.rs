//! New images of a block: where `fill` finds the values of each that `gather` has come to.

use super::PickedTable;
use super::streams::{NumberStream, TextStream};
use crate::block::cells::bit;
use crate::block::slots::{ImageRole, ROLES};

/// New images, and where their values come from.
#[derive(Debug)]
pub(super) enum NewImages<'s> {
    /// This many images that have values in all picked columns of their side, and differ from no others.
    Fresh { side: &'s RowSide, count: usize },
    /// One whose values may be NULL, or differences from another's.
    One { side: &'s RowSide, nulls: Nulls, base: Option<Base> },
    /// One of another block again.
    Again { source: usize, image: usize },
}

/// One side of an event's rows.
#[derive(Debug)]
pub(super) struct RowSide {
    pub(super) role: ImageRole,
    pub(super) is_whole: bool,
    /// How many columns its images have.
    pub(super) width: usize,
    /// For each picked column, its place among the columns of the image.
    places: Vec<Option<usize>>,
    /// One bit for each place in `places`: ANDed with an image's NULL bits, it tells whether a picked column is NULL.
    pub(super) null_mask: u64,
}

impl RowSide {
    pub(super) fn new(role: ImageRole, bitmap: &[u8], table: &PickedTable, width: usize) -> Self {
        let place = |&column: &usize| {
            bit(bitmap, column).then(|| (0..column).filter(|&before| bit(bitmap, before)).count())
        };
        let count = (0..width).filter(|&column| bit(bitmap, column)).count();
        let places: Vec<Option<usize>> = table.columns.iter().map(place).collect();
        let bits = places.iter().flatten().map(|&place| 1u64.checked_shl(place as u32).unwrap_or_default());
        RowSide {
            role,
            is_whole: count == width,
            width: count,
            null_mask: bits.fold(0, |mask, bit| mask | bit),
            places,
        }
    }

    /// The place of a picked column among those of the side's images.
    pub(super) fn place(&self, pick: usize) -> Option<usize> {
        self.places.get(pick).copied().flatten()
    }

    pub(super) fn has(&self, pick: usize) -> bool {
        self.place(pick).is_some()
    }
}

/// The image that one differs from: in which block, and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Base(pub(super) Option<usize>, pub(super) usize);

/// Null bits: few, or which of a role's texts.
#[derive(Debug)]
pub(super) enum Nulls {
    Number([u8; 8]),
    Text(usize, usize),
}

impl Nulls {
    pub(super) fn bytes<'n>(&'n self, nulls: &'n [(NumberStream, TextStream); ROLES]) -> &'n [u8] {
        match self {
            Nulls::Number(bytes) => bytes,
            Nulls::Text(role, text) => {
                nulls.get(*role).and_then(|(_, texts)| texts.0.get(*text)).unwrap_or_default()
            }
        }
    }
}
