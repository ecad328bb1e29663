//! The texts of a log's rows, and of the bytes they become when they are packed. Finds them again in files that should
//! not have them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{IoContext, Result};

/// Characters of a text: no name of a file, a table or an option is as long.
const SIZE: usize = 18;

/// Different bytes of a piece of other bytes: what repeats itself, such as zeros, is anywhere.
const DIFFERENT_MIN: usize = 12;

/// The runs of printable bytes that are long enough.
fn runs(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_printable = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    bytes.split(move |byte| !is_printable(byte)).filter(|run| run.len() >= SIZE)
}

/// Texts of rows: pieces of everything printable in them. And pieces of other bytes, if there are any.
#[derive(Debug, Default)]
pub struct RowTexts {
    texts: HashSet<[u8; SIZE]>,
    others: HashSet<[u8; SIZE]>,
}

impl RowTexts {
    /// The texts of some logs.
    pub fn of<'l>(logs: impl IntoIterator<Item = &'l [u8]>) -> RowTexts {
        let mut texts = RowTexts::default();
        for run in logs.into_iter().flat_map(runs) {
            texts.texts.extend(run.as_chunks().0);
        }
        texts
    }

    /// These texts, and pieces of other bytes: those of rows that are packed, where no text can be read.
    #[must_use]
    pub fn and_bytes<'b>(mut self, all: impl IntoIterator<Item = &'b [u8]>) -> RowTexts {
        let is_its_own = |piece: &&[u8; SIZE]| piece.iter().collect::<HashSet<_>>().len() >= DIFFERENT_MIN;
        for bytes in all {
            self.others.extend(bytes.as_chunks().0.iter().filter(is_its_own));
        }
        self
    }

    /// How many texts there are.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// Whether one of them is in these bytes, at any place.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        runs(bytes).flat_map(|run| run.windows(SIZE)).any(|window| self.texts.contains(window))
            || !self.others.is_empty() && bytes.windows(SIZE).any(|window| self.others.contains(window))
    }

    /// The files in a folder, and in folders below it, that have one of them.
    ///
    /// # Errors
    ///
    /// A file that can't be read.
    pub fn found_in(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).at("list", folder)? {
            let path = entry.at("list", folder)?.path();
            if path.is_dir() {
                found.extend(self.found_in(&path)?);
            } else if self.are_in(&fs::read(&path).at("read", &path)?) {
                found.push(path);
            }
        }
        Ok(found)
    }
}
