//! How a program drives libzstd: with the same library and level, another recipe gives other bytes.

use std::fmt;

/// The settings that a program gives libzstd for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Recipe {
    /// The frame records its content's size, which the program knew beforehand: mysqld since 8.0.35 (bug
    /// 34833913).
    #[default]
    Sized,
    /// The frame does not record its content's size: `mysqlbinlog --raw --rewrite-db`.
    Unsized,
    /// As [`Recipe::Unsized`], and the last block is flushed before the frame ends, so that an empty block follows
    /// it: mysqld 8.0.20 to 8.0.33.
    UnsizedFlushed,
}

impl Recipe {
    /// All recipes, the usual one first.
    pub const ALL: [Recipe; 3] = [Recipe::Sized, Recipe::Unsized, Recipe::UnsizedFlushed];

    /// The recipe's name in manifests and messages.
    pub fn name(self) -> &'static str {
        match self {
            Recipe::Sized => "sized",
            Recipe::Unsized => "unsized",
            Recipe::UnsizedFlushed => "unsized, flushed",
        }
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
