//! Small files in the relay's directory. [`LinesFile`]: a file of lines, each with a value and its key, read line by
//! line and replaced whole. [`small_file`]: the text of a file with a few lines at most.
//!
//! ```text
//! VALUE KEY                  a line each; the value has no space
//! # …                        passed over
//! binlogz-relay NAME 1       first, of a later version; version 1 has no such line
//! ```
//!
//! Each of the relay's own files has a version, and one that it doesn't know is refused. Within a version lines may be
//! added: a name, a space and a value. A relay that doesn't know a name skips the line, and drops it when it writes the
//! file. So relays of two successive releases can use one directory in turn.

use std::io::ErrorKind;
use std::sync::Arc;

use binlogz_store::{Storage, StorageFile, storage};

use crate::error::{Error, Result};

/// The text of a small file, if it exists.
pub fn small_file(storage: &dyn Storage, name: &str, size_max: u64) -> Result<Option<String>> {
    let file = storage.open(name, false);
    match file.and_then(|file| storage::read_all(file.as_ref(), size_max)) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("read {name}"))(error)),
    }
}

/// The version of each of our own files.
const VERSION: u32 = 1;
/// Every title of ours begins with it.
const TITLE: &str = "binlogz-relay ";

/// Refuses a file whose first line is the title of a version that this relay does not know.
pub(crate) fn check_version(file: &str, first_line: &str) -> Result<()> {
    let Some((_, version)) = first_line.strip_prefix(TITLE).and_then(|named| named.split_once(' ')) else {
        return Ok(());
    };
    match version.split(' ').next().unwrap_or_default().parse() {
        Ok(found) if found != VERSION => Err(Error::Version { file: file.to_owned(), found, known: VERSION }),
        _ => Ok(()),
    }
}

/// Whether a line is one that another release may have added.
pub fn is_member(line: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_lowercase() || letter == b'-')
    };
    line.split_once(' ').is_some_and(|(name, value)| is_name(name) && !value.is_empty())
}

/// A line is read whole. The longest ones that an earlier version wrote had a program name of 64 KiB, each byte of
/// which may have become three.
const LINE_SIZE_MAX: usize = 1 << 20;
const CHUNK_SIZE: usize = 64 << 10;

/// The file, and the format of its lines.
#[derive(Debug)]
pub struct LinesFile {
    /// Where the file is.
    pub storage: Arc<dyn Storage>,
    /// The file's name.
    pub name: &'static str,
    /// The name of a line in errors.
    pub expected: &'static str,
}

impl LinesFile {
    /// Passes each line's value and key to `take`, in file order; a missing file has no lines. `take` returns `None`
    /// for a line that it does not understand. The file may be of any size: an earlier version bounded neither keys
    /// nor file, and what it wrote must not keep the relay from starting.
    ///
    /// # Errors
    ///
    /// The file can't be read, or a line is invalid.
    pub fn read(&self, mut take: impl FnMut(&str, &str) -> Option<()>) -> Result<()> {
        let file = match self.storage.open(self.name, false) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io(format!("open {}", self.name))(error)),
        };
        let mut lines = Lines { file: file.as_ref(), offset: 0, held: Vec::new() };
        let mut is_first = true;
        while let Some(line) = lines.next().map_err(Error::io(format!("read {}", self.name)))? {
            let line = String::from_utf8_lossy(&line);
            let is_title = std::mem::take(&mut is_first) && line.starts_with(TITLE);
            if is_title {
                check_version(self.name, &line)?;
            }
            if is_title || line.starts_with('#') {
                continue;
            }
            let taken = line.split_once(' ').and_then(|(value, key)| take(value, key));
            taken.ok_or_else(|| Error::damaged(self.name, &line, self.expected))?;
        }
        Ok(())
    }

    /// Replaces the file's content with these lines, durably.
    pub fn write(&self, lines: impl Iterator<Item = String>) -> Result<()> {
        let text: String = lines.map(|line| line + "\n").collect();
        storage::replace(self.storage.as_ref(), self.name, text.as_bytes())
            .map_err(Error::io(format!("write {}", self.name)))
    }
}

/// The lines of a file, holding at most one of them and a chunk.
struct Lines<'a> {
    file: &'a dyn StorageFile,
    offset: u64,
    /// Bytes that were read but not returned yet.
    held: Vec<u8>,
}

impl Lines<'_> {
    /// The next line, without its end. A line over the limit is cut there: it isn't one of ours.
    fn next(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let mut looked_at = 0;
        loop {
            let unseen = self.held.get(looked_at..).unwrap_or_default();
            if let Some(end) = unseen.iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(looked_at + end + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                line.pop();
                // An editor may have left it.
                line.pop_if(|last| *last == b'\r');
                return Ok(Some(line));
            }
            looked_at = self.held.len();
            let mut chunk = vec![0; CHUNK_SIZE];
            let count = self.file.read_at(self.offset, &mut chunk)?;
            self.offset += count as u64;
            self.held.extend(chunk.into_iter().take(count));
            if count == 0 || self.held.len() > LINE_SIZE_MAX {
                let line = std::mem::take(&mut self.held);
                return Ok((!line.is_empty()).then_some(line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    #[test]
    fn lines_of_any_length_and_number_are_read() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let file = LinesFile { storage: Arc::clone(&storage), name: "lines", expected: "VALUE KEY" };
        let read = || {
            let mut lines = Vec::new();
            file.read(|value, key| {
                lines.push(format!("{value} {key}"));
                Some(())
            })
            .map(|()| lines)
        };
        assert_eq!(read().unwrap(), Vec::<String>::new());
        let lines: Vec<String> = [0, 1, CHUNK_SIZE - 4, CHUNK_SIZE - 3, CHUNK_SIZE - 2, 3 * CHUNK_SIZE, 5]
            .map(|size| format!("v {}", "k".repeat(size)))
            .into();
        file.write(lines.clone().into_iter()).unwrap();
        assert_eq!(read().unwrap(), lines);
        // The last line may lack its end; an empty one is none.
        storage::replace(storage.as_ref(), "lines", b"a b\r\nc d").unwrap();
        assert_eq!(read().unwrap(), ["a b", "c d"]);
        for bad in [&b"a b\n\nc d\n"[..], b"word\n", &[b'x'; 2 << 20]] {
            storage::replace(storage.as_ref(), "lines", bad).unwrap();
            let error = read().unwrap_err();
            assert!(matches!(error, Error::Damaged { .. }), "{error}");
            assert!(error.to_string().len() < 300, "{error}");
        }
    }
}
