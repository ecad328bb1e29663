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
//! check 7d4b1f02            CRC-32 of the lines before, since 0.3; a file without it is read, and gets it when it is next written
//! ```
//!
//! Written and synced when a log begins and before each purge. All other numbers follow from the stored bytes; these
//! don't, so the file must not be removed.

use std::sync::Arc;

use binlogz_binlog::checksum::crc32;
use binlogz_store::{FileNumber, Storage, storage};

use crate::error::{Error, Result};
use crate::small_files::{check_version, is_member, small_file};

pub(crate) const NAME: &str = "relay.numbers";
const TITLE: &str = "binlogz-relay numbers 1";
/// What begins the line with the check of the others.
const CHECK: &str = "check ";
const SIZE_MAX: u64 = 4096;

/// KeptNumbers that can't be found in the stored files.
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
        numbers
            .map(Some)
            .ok_or_else(|| Error::damaged(NAME, &text, format!("{TITLE:?}, numbers and their own check")))
    }

    pub(crate) fn write(&self, storage: &Arc<dyn Storage>) -> Result<()> {
        storage::replace(storage.as_ref(), NAME, self.encode().as_bytes())
            .map_err(Error::io(format!("write {NAME}")))
    }

    fn encode(&self) -> String {
        let text = self.lines();
        format!("{text}{CHECK}{}\n", check_of(&text))
    }

    fn lines(&self) -> String {
        let first = self.first.map(|(stored, number)| format!("first {} {}\n", stored.0, number.0));
        let limit = self.limit;
        let whole_before = self.whole_before.0;
        format!("{TITLE}\nlimit {limit}\nwhole-before {whole_before}\n{}", first.unwrap_or_default())
    }

    fn decode(text: &str) -> Option<KeptNumbers> {
        // A last number that was cut is another number.
        let mut lines = text.strip_suffix('\n')?.lines();
        if lines.next()? != TITLE {
            return None;
        }
        let limit = lines.next()?.strip_prefix("limit ")?.parse().ok().filter(|limit| *limit > 0)?;
        let whole_before = FileNumber(lines.next()?.strip_prefix("whole-before ")?.parse().ok()?);
        let mut first = None;
        let mut check = None;
        for line in lines {
            match (line.strip_prefix("first "), line.strip_prefix(CHECK)) {
                (Some(numbers), _) if first.is_none() => {
                    let (stored, number) = numbers.split_once(' ')?;
                    first = Some((FileNumber(stored.parse().ok()?), FileNumber(number.parse().ok()?)));
                }
                (None, Some(found)) if check.is_none() => check = Some(found),
                (None, None) if is_member(line) => {}
                _ => return None,
            }
        }
        let numbers = KeptNumbers { limit, whole_before, first };
        // One bit more or less, and replicas would find other transactions under a file's name: nobody would notice.
        check.is_none_or(|check| check == check_of(&numbers.lines())).then_some(numbers)
    }
}

/// The check of our own lines; what other releases add is not in it.
fn check_of(lines: &str) -> String {
    format!("{:08x}", crc32(lines.as_bytes()))
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
            let without_check = numbers.lines().len();
            for end in (0..text.len()).filter(|end| *end != without_check) {
                let cut = text.get(..end).unwrap();
                assert_ne!(KeptNumbers::decode(cut), Some(numbers), "{cut}");
            }
            for bit in 0..text.len() * 8 {
                let mut bytes = text.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                storage::replace(storage.as_ref(), NAME, &bytes).unwrap();
                match KeptNumbers::read(&storage) {
                    Ok(found) => assert_eq!(found, Some(numbers), "bit {bit}"),
                    Err(Error::Damaged { .. } | Error::Version { .. }) => {}
                    Err(error) => panic!("bit {bit}: {error}"),
                }
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
        let before = numbers.encode() + "later 1 2\n";
        let after = numbers.encode().replace("first", "later 1\nfirst");
        for text in [before, after] {
            storage::replace(storage.as_ref(), NAME, text.as_bytes()).unwrap();
            assert_eq!(KeptNumbers::read(&storage).unwrap(), Some(numbers), "{text}");
        }
    }

    /// Issue 42. The bytes are those that 0.2.0 wrote.
    #[test]
    fn files_of_before_have_no_check_and_are_read() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let before = "binlogz-relay numbers 1\nlimit 1073741824\nwhole-before 1\nfirst 12 15\n";
        let numbers = KeptNumbers {
            limit: 1 << 30,
            whole_before: FileNumber(1),
            first: Some((FileNumber(12), FileNumber(15))),
        };
        storage::replace(storage.as_ref(), NAME, before.as_bytes()).unwrap();
        assert_eq!(KeptNumbers::read(&storage).unwrap(), Some(numbers));
        numbers.write(&storage).unwrap();
        let after = crate::small_files::small_file(storage.as_ref(), NAME, SIZE_MAX).unwrap().unwrap();
        assert_eq!(after, format!("{before}check {:08x}\n", crc32(before.as_bytes())));
        // Without a check another number can't be told from the right one, with it, it is damage.
        for (from, to) in [("12 15", "12 14"), ("whole-before 1", "whole-before 3"), ("first 12", "fjrst 12")]
        {
            storage::replace(storage.as_ref(), NAME, after.replace(from, to).as_bytes()).unwrap();
            let error = KeptNumbers::read(&storage).unwrap_err().to_string();
            assert!(error.starts_with("relay.numbers in the relay's directory is damaged: "), "{error}");
        }
    }
}
