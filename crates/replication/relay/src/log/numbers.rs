//! The numbers of a log's uncompressed files: there are more of these than stored files, since a stored file that
//! expands beyond a limit is cut into several (`cuts`).
//!
//! ```text
//! relay.numbers
//! binlogz-relay numbers 1
//! limit 1073741824          bytes after which an uncompressed file ends
//! whole-before 1            stored files with lower numbers are never cut: they were served whole before this was here
//! first 12 15               of stored file 12 the first uncompressed file has the number 15; without this line of the
//!                           first stored file its own
//! ```
//!
//! Written and synced when a log begins and before each purge. All other numbers follow from the stored bytes; these
//! don't, so the file must not be removed.

use std::sync::Arc;

use binlogz_store::{FileNumber, Storage, storage};

use crate::error::{Error, Result};
use crate::log::small_files::{check_version, is_member, small_file};

pub(crate) const NAME: &str = "relay.numbers";
const TITLE: &str = "binlogz-relay numbers 1";
const SIZE_MAX: u64 = 4096;

/// Numbers that can't be found in the stored files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptNumbers {
    pub(crate) limit: u64,
    pub(crate) whole_before: FileNumber,
    /// A stored file, and the number of its first uncompressed file.
    pub(crate) first: Option<(FileNumber, FileNumber)>,
}

impl KeptNumbers {
    /// For a log that is about to begin.
    pub(crate) fn new(limit: u64) -> Self {
        KeptNumbers { limit, whole_before: FileNumber(0), first: None }
    }

    /// Reads the stored numbers, if there are any.
    pub(crate) fn read(storage: &Arc<dyn Storage>) -> Result<Option<KeptNumbers>> {
        let Some(text) = small_file(storage.as_ref(), NAME, SIZE_MAX)? else { return Ok(None) };
        check_version(NAME, text.lines().next().unwrap_or_default())?;
        let numbers = KeptNumbers::decode(&text);
        numbers.map(Some).ok_or_else(|| Error::damaged(NAME, &text, format!("{TITLE:?} and numbers")))
    }

    pub(crate) fn write(&self, storage: &Arc<dyn Storage>) -> Result<()> {
        storage::replace(storage.as_ref(), NAME, self.encode().as_bytes())
            .map_err(Error::io(format!("write {NAME}")))
    }

    fn encode(&self) -> String {
        let first = self.first.map(|(stored, number)| format!("first {} {}\n", stored.0, number.0));
        let (limit, whole_before) = (self.limit, self.whole_before.0);
        format!("{TITLE}\nlimit {limit}\nwhole-before {whole_before}\n{}", first.unwrap_or_default())
    }

    fn decode(text: &str) -> Option<KeptNumbers> {
        let mut lines = text.lines();
        if lines.next()? != TITLE {
            return None;
        }
        let limit = lines.next()?.strip_prefix("limit ")?.parse().ok().filter(|limit| *limit > 0)?;
        let whole_before = FileNumber(lines.next()?.strip_prefix("whole-before ")?.parse().ok()?);
        let mut first = None;
        for line in lines {
            match line.strip_prefix("first ") {
                Some(numbers) if first.is_none() => {
                    let (stored, number) = numbers.split_once(' ')?;
                    first = Some((FileNumber(stored.parse().ok()?), FileNumber(number.parse().ok()?)));
                }
                None if is_member(line) => {}
                _ => return None,
            }
        }
        Some(KeptNumbers { limit, whole_before, first })
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn what_is_kept_comes_back_and_nothing_else_is_taken_for_it() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        assert_eq!(KeptNumbers::read(&storage).unwrap(), None);
        let new = KeptNumbers::new(1 << 30);
        for numbers in [
            new,
            KeptNumbers {
                limit: u64::MAX,
                whole_before: FileNumber(u64::MAX),
                first: Some((FileNumber(u64::MAX), FileNumber(u64::MAX))),
            },
            KeptNumbers { whole_before: FileNumber(7), first: Some((FileNumber(12), FileNumber(15))), ..new },
        ] {
            numbers.write(&storage).unwrap();
            assert_eq!(KeptNumbers::read(&storage).unwrap(), Some(numbers));
            let text = numbers.encode();
            for end in 0..text.len() - 1 {
                // Without its last digits a number is another one: a file is replaced as a whole.
                let cut = text.get(..end).unwrap();
                assert_ne!(KeptNumbers::decode(cut), Some(numbers), "{cut}");
            }
            assert_eq!(KeptNumbers::decode(&format!("{text}more\n")), None);
        }
        storage::replace(storage.as_ref(), NAME, b"binlogz-relay numbers 2\n").unwrap();
        assert_eq!(
            KeptNumbers::read(&storage).unwrap_err().to_string(),
            "relay.numbers in the relay's directory: format version 2, expected version 1: another version of binlogz wrote it"
        );
        // Members that another release of this version adds are passed over.
        let numbers = KeptNumbers { first: Some((FileNumber(12), FileNumber(15))), ..new };
        let (before, after) =
            (numbers.encode() + "later 1 2\n", numbers.encode().replace("first", "later 1\nfirst"));
        for text in [before, after] {
            storage::replace(storage.as_ref(), NAME, text.as_bytes()).unwrap();
            assert_eq!(KeptNumbers::read(&storage).unwrap(), Some(numbers), "{text}");
        }
    }
}
