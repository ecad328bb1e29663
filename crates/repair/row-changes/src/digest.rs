//! Digests of keys and values: 128 bits, seeded with random numbers that nobody knows beforehand, so that no log can be
//! made in which two rows have one digest.

use std::hash::{BuildHasher, Hash, RandomState};

/// Makes 128-bit digests of keys and values. Digests made by two different values of this type can't be compared.
#[derive(Debug, Default)]
pub(crate) struct Digests([RandomState; 2]);

impl Digests {
    /// The digest of a value.
    pub(crate) fn of(&self, value: impl Hash) -> u128 {
        let [one, other] = &self.0;
        u128::from(one.hash_one(&value)) << 64 | u128::from(other.hash_one(&value))
    }
}
