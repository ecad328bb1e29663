//! The slots of a table's group: which values each column of a block has.
//!
//! ```text
//! slots of a table's group
//! 0                     one more row follows
//! 1 + role              bits of NULL values
//! 5 + role              version 1: the image is the last one known of its row
//! 9 + role (1, 2)       where the image was before: 0 nowhere known | 1 in this block | 2 and up: in the blocks
//!                       that it refers to | 67 and up: as from 1 on, but an image of the same row, from which it differs
//! 12 + role (1, 2)      its number there, minus the number that follows the last such image
//! 9, 15                 after-images with partial updates: value options; bits for JSON columns
//! 16 + 8 c + 2 role     values of column c
//! 17 + 8 c + 2 role     0 the value is another than in the before-image, or in the image that this one differs from
//!                       | 1 the same | 2 a difference from it, which is in the same slot (delta.rs)
//! ```
//!
//! Differing images, differences and partial updates are in blocks of methods 5 and 6. A partial update's after-image has
//! only differences between documents. So later images of the row may differ from its before-image, if that is whole: it
//! is numbered like an after-image.

/// The kind of row image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ImageRole {
    Inserted = 0,
    Deleted = 1,
    Before = 2,
    After = 3,
}

/// The most blocks that a block refers to.
pub(crate) const REFERENCES_MAX: usize = 64;
/// The number of image roles.
pub(crate) const ROLES: usize = 4;
pub(crate) const MORE: usize = 0;
pub(crate) const NULLS: usize = 1;
pub(crate) const LAST: usize = NULLS + ROLES;
pub(crate) const SOURCE: usize = LAST + ROLES;
pub(crate) const NUMBER: usize = SOURCE + ROLES - 1;
pub(crate) const OPTIONS: usize = SOURCE;
pub(crate) const PARTIAL: usize = VALUES - 1;
pub(crate) const VALUES: usize = 16;

/// Added to the source of an image from which another one differs.
pub(crate) const DIFFERS: usize = REFERENCES_MAX + 2;
/// Value options that say: JSON columns may hold differences.
pub(crate) const PARTIAL_JSON: i64 = 1;

/// How a value relates to an older one.
pub(crate) const SAME: i64 = 1;
pub(crate) const DIFFERENCE: i64 = 2;

/// The column of a table whose values go to a slot.
pub(crate) fn column_of(slot: usize) -> Option<usize> {
    slot.checked_sub(VALUES).map(|slot| slot / 8)
}
