//! The texts of a log's rows, and where they are found again: in files that should not have them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{IoContext, Result};

/// Characters of a text: no name of a file, a table or an option is as long.
const SIZE: usize = 18;

/// What is printable in some bytes, if it is long enough.
fn runs(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_printable = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    bytes.split(move |byte| !is_printable(byte)).filter(|run| run.len() >= SIZE)
}

/// Texts of rows: pieces of everything printable in them.
#[derive(Debug, Default)]
pub struct Texts(HashSet<[u8; SIZE]>);

impl Texts {
    /// Those of some logs.
    pub fn of<'l>(logs: impl IntoIterator<Item = &'l [u8]>) -> Texts {
        let mut texts = Texts::default();
        for run in logs.into_iter().flat_map(runs) {
            texts.0.extend(run.as_chunks().0);
        }
        texts
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether one of them is in these bytes, at any place.
    pub fn are_in(&self, bytes: &[u8]) -> bool {
        runs(bytes).flat_map(|run| run.windows(SIZE)).any(|window| self.0.contains(window))
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
