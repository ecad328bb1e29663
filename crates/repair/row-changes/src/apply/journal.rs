//! A file that says how far changes were applied, so that a run that was killed goes on where it ended.
//!
//! ```text
//! binlogz-journal 2 CHECKSUM SERVER     which changes, in which batches; the server's UUID
//! commit ROWS THREAD POSITION LOG       a batch is about to be committed, with which this many rows are done: if it is, the
//!                                       server's LOG has a transaction of THREAD after POSITION
//! done ROWS                             it is committed
//! undone                                it is not, as a later run found
//! ```
//!
//! A line is synced before what it announces happens. Each line but the first begins with its size, line end included,
//! and each ends with its CRC-32, which covers the CRC-32 of the line before: a line that was changed, removed or moved
//! is an error. A last line that was cut, so that it lacks its end and bytes of its size, announced nothing.
//!
//! A file that doesn't begin as a journal of these changes is never changed. Journals of version 1 had no checksums.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use binlogz_binlog::checksum::Crc32;

use super::ApplyError;
use super::session::ServerPosition;

/// A journal is a line a batch: this is tens of millions of them.
const SIZE_MAX: u64 = 1 << 30;
/// The digits of a line's size.
const SIZE_DIGITS: usize = 4;
/// The digits of a checksum, the space before it and the line's end.
const END_SIZE: usize = 10;

/// The file that says how far changes were applied. A run that was killed reads it and goes on from there.
pub(crate) struct Journal {
    file: File,
    /// The checksum of the last line.
    last: u32,
    /// Rows of batches that are known to be committed.
    pub(crate) done: u64,
    /// The batch whose end is not known: rows with it, and where to look.
    pub(crate) open: Option<(u64, ServerPosition)>,
    /// The sessions that earlier runs had, each with the place of its first batch.
    pub(crate) sessions: Vec<ServerPosition>,
}

impl Journal {
    /// Whether batches of it were begun before.
    pub(crate) fn has_begun(&self) -> bool {
        self.done > 0 || self.open.is_some()
    }

    /// Begins a journal, or goes on with one of the same changes.
    pub(crate) fn open(mut file: File, checksum: u32, server: &str) -> Result<Self, ApplyError> {
        if file.try_lock().is_err() {
            return Err(trouble("another run has it open"));
        }
        let metadata = file.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(trouble("is no regular file"));
        }
        if metadata.len() > SIZE_MAX {
            return Err(trouble("is too large to be one"));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let first = format!("binlogz-journal 2 {checksum:08x} {server}");
        let (first, crc) = ended(0, &first);
        let mut journal = Journal { file, last: crc, done: 0, open: None, sessions: Vec::new() };
        match bytes.strip_prefix(first.as_bytes()) {
            Some(lines) => {
                let whole = journal.lines(lines)?;
                journal.file.set_len((first.len() + whole) as u64).map_err(io)?;
                journal.file.seek(SeekFrom::End(0)).map_err(io)?;
            }
            // Nothing was announced yet.
            None if first.as_bytes().starts_with(&bytes) => {
                journal.file.rewind().map_err(io)?;
                journal.write(&first)?;
            }
            None => return Err(trouble(&foreign(&bytes))),
        }
        Ok(journal)
    }

    /// Takes the lines after the first; returns how many bytes of them are whole.
    fn lines(&mut self, lines: &[u8]) -> Result<usize, ApplyError> {
        let mut rest = lines;
        while !rest.is_empty() {
            let place = lines.len() - rest.len();
            let damaged = || {
                trouble(&format!(
                    "is damaged: the line {place} bytes after the first isn't as it was written; which rows are done can't \
                     be told from it"
                ))
            };
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                let is_cut = match rest.get(..SIZE_DIGITS) {
                    Some(digits) => size_of(digits).is_some_and(|size| rest.len() < size),
                    None => rest.iter().all(u8::is_ascii_digit),
                };
                return if is_cut { Ok(place) } else { Err(damaged()) };
            };
            let (line, after) = rest.split_at_checked(end + 1).unwrap_or((rest, &[]));
            let content = line.get(..line.len().saturating_sub(END_SIZE)).unwrap_or_default();
            let content = std::str::from_utf8(content).map_err(|_| damaged())?;
            let (expected, crc) = ended(self.last, content);
            let words = content.get(SIZE_DIGITS + 1..).unwrap_or_default();
            let size = content.as_bytes().get(..SIZE_DIGITS).and_then(size_of);
            if expected.as_bytes() != line || size != Some(line.len()) || self.take(words).is_none() {
                return Err(damaged());
            }
            self.last = crc;
            rest = after;
        }
        Ok(lines.len())
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let mut words = line.splitn(5, ' ');
        match words.next()? {
            "commit" => {
                let rows = words.next()?.parse().ok()?;
                let thread = words.next()?.parse().ok()?;
                let position = words.next()?.parse().ok()?;
                let place = ServerPosition { log: words.next()?.to_owned(), position, thread };
                if self.sessions.last().is_none_or(|last| last.thread != thread) {
                    self.sessions.push(place.clone());
                }
                self.open = Some((rows, place));
            }
            "done" => {
                self.done = words.next()?.parse().ok()?;
                self.open = None;
            }
            "undone" => self.open = None,
            _ => return None,
        }
        Some(())
    }

    /// A batch is about to be committed.
    pub(crate) fn commit(&mut self, rows: u64, place: &ServerPosition) -> Result<(), ApplyError> {
        self.line(&format!("commit {rows} {} {} {}", place.thread, place.position, place.log))
    }

    /// Notes that the open batch is committed. `rows`: all rows that are done now.
    pub(crate) fn done(&mut self, rows: u64) -> Result<(), ApplyError> {
        (self.done, self.open) = (rows, None);
        self.line(&format!("done {rows}"))
    }

    /// Notes that the open batch was not committed.
    pub(crate) fn undone(&mut self) -> Result<(), ApplyError> {
        self.open = None;
        self.line("undone")
    }

    fn line(&mut self, line: &str) -> Result<(), ApplyError> {
        let size = SIZE_DIGITS + 1 + line.len() + END_SIZE;
        let (whole, crc) = ended(self.last, &format!("{size:0SIZE_DIGITS$} {line}"));
        self.last = crc;
        self.write(&whole)
    }

    fn write(&mut self, line: &str) -> Result<(), ApplyError> {
        self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data()).map_err(io)
    }
}

/// A line with its checksum, after a line with that one.
fn ended(last: u32, content: &str) -> (String, u32) {
    let mut crc = Crc32::new();
    crc.update(&last.to_le_bytes());
    crc.update(content.as_bytes());
    let crc = crc.finish();
    (format!("{content} {crc:08x}\n"), crc)
}

fn size_of(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Why a file isn't the journal of these changes.
fn foreign(bytes: &[u8]) -> String {
    let begins = |text: &str| bytes.starts_with(text.as_bytes());
    let what = match () {
        () if begins("binlogz-journal 1 ") => {
            "was begun by an older version, which wrote no checksums: that version finishes it"
        }
        () if begins("binlogz-journal 2 ") => {
            "is of other changes, another --batch or another server, or its first line is damaged; the same command goes on, \
             another one needs a journal of its own"
        }
        () => "is no journal of binlogz; nothing in it is changed",
    };
    what.to_owned()
}

fn trouble(what: &str) -> ApplyError {
    ApplyError::Journal(what.to_owned())
}

fn io(error: std::io::Error) -> ApplyError {
    ApplyError::Journal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ServerPosition {
        ServerPosition { log: "binlog 7.000001".to_owned(), position: 5, thread: 9 }
    }

    #[test]
    fn a_journal_goes_on_where_it_was() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let file = || File::options().read(true).write(true).open(&path).unwrap();
        let mut journal = Journal::open(file(), 7, "uuid").unwrap();
        assert!(Journal::open(file(), 7, "uuid").is_err(), "two at once");
        journal.commit(1000, &place()).unwrap();
        journal.done(1000).unwrap();
        journal.commit(2000, &place()).unwrap();
        journal.file.write_all(b"0024 done 20").unwrap();
        drop(journal);
        let mut journal = Journal::open(file(), 7, "uuid").unwrap();
        assert_eq!((journal.done, &journal.open), (1000, &Some((2000, place()))));
        // One session for two batches.
        assert_eq!(journal.sessions, [place()]);
        journal.undone().unwrap();
        drop(journal);
        let journal = Journal::open(file(), 7, "uuid").unwrap();
        assert_eq!((journal.done, journal.open), (1000, None));
        drop(journal.file);
        assert!(Journal::open(file(), 8, "uuid").is_err());
        assert!(Journal::open(file(), 7, "other").is_err());
    }

    #[test]
    fn a_file_that_is_no_journal_is_not_touched() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let file = || File::options().read(true).write(true).open(&path).unwrap();
        for (content, why) in [
            (&b"something else\n"[..], "is no journal"),
            (b"my only copy, without a line end", "is no journal"),
            (&[0, 159, 146, 150], "is no journal"),
            (b"binlogz-journal 1 00000007 uuid\ndone 5\n", "older version"),
            (b"binlogz-journal 2 00000008 uuid 00000000\ndone", "is of other changes"),
        ] {
            std::fs::write(&path, content).unwrap();
            let refused = Journal::open(file(), 7, "uuid").err().unwrap().to_string();
            assert!(refused.contains(why), "{refused}");
            assert_eq!(std::fs::read(&path).unwrap(), content);
        }
        // A first line that was cut is one of ours.
        std::fs::write(&path, "binlogz-journal 2 000").unwrap();
        drop(Journal::open(file(), 7, "uuid").unwrap());
        assert!(std::fs::read_to_string(&path).unwrap().ends_with('\n'));
    }

    #[test]
    fn a_flipped_bit_in_a_journal_is_an_error_and_a_cut_never_goes_on_too_far() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let file = || File::options().read(true).write(true).open(&path).unwrap();
        let mut journal = Journal::open(file(), 7, "uuid").unwrap();
        journal.commit(1000, &place()).unwrap();
        journal.done(1000).unwrap();
        journal.commit(2000, &place()).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut flipped = whole.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &flipped).unwrap();
            assert!(Journal::open(file(), 7, "uuid").is_err(), "bit {bit}");
            assert_eq!(std::fs::read(&path).unwrap(), flipped, "bit {bit}");
        }
        for end in 0..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            let journal = Journal::open(file(), 7, "uuid").unwrap();
            let lines = whole[..end].iter().filter(|byte| **byte == b'\n').count();
            let told = (journal.done, journal.open.as_ref().map(|(rows, _)| *rows));
            let expected = [(0, None), (0, None), (0, Some(1000)), (1000, None)][lines];
            assert_eq!(told, expected, "{end}");
        }
    }
}
