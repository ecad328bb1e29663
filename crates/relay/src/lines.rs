//! A small file of lines in the relay's directory, each with a value and whose it is: read whole, replaced whole.
//!
//! ```text
//! VALUE KEY        a line each; the value has no space
//! ```

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use binlogz_store::{Storage, storage};

use crate::error::{Error, Result};

/// The text of a small file, if it is there.
pub(crate) fn small_file(storage: &dyn Storage, name: &str, size_max: u64) -> Result<Option<String>> {
    let file = storage.open(name, false);
    match file.and_then(|file| storage::read_all(file.as_ref(), size_max)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("read {name}"))(error)),
    }
}

/// Where it is, and what its lines look like.
#[derive(Debug)]
pub(crate) struct LinesFile {
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) name: &'static str,
    /// More bytes are not read.
    pub(crate) size_max: u64,
    /// A line, as errors call it.
    pub(crate) expected: &'static str,
}

impl LinesFile {
    /// What stands there, by key; nothing without a file. `parse`: a key and its value.
    ///
    /// # Errors
    ///
    /// A file that can't be read, a line that is none.
    pub(crate) fn read<K: Ord, V>(
        &self,
        parse: impl Fn(&str, &str) -> Option<(K, V)>,
    ) -> Result<BTreeMap<K, V>> {
        let LinesFile { storage, name, size_max, expected } = self;
        let text = small_file(storage.as_ref(), name, *size_max)?.unwrap_or_default();
        let one = |line: &str| {
            let (value, key) = line.split_once(' ')?;
            parse(key, value)
        };
        let unfit = |line| Error::Refused(format!("{name}: {line:?}, expected {expected}"));
        text.lines().map(|line| one(line).ok_or_else(|| unfit(line))).collect()
    }

    /// Puts these in the place of what stands there, durably.
    pub(crate) fn write<K, V>(&self, lines: &BTreeMap<K, V>, line: impl Fn(&K, &V) -> String) -> Result<()> {
        let text: String = lines.iter().map(|(key, value)| line(key, value) + "\n").collect();
        storage::replace(self.storage.as_ref(), self.name, text.as_bytes())
            .map_err(Error::io(format!("write {}", self.name)))
    }
}
