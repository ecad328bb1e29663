//! How far changes were applied, so that a run that was killed goes on where it was.
//!
//! ```text
//! binlogz-journal 1 CHECKSUM SERVER     which changes, in which batches; the server's UUID
//! commit ROWS THREAD POSITION LOG       a batch is about to be committed, with which so many rows are done: if it is, the
//!                                       server's LOG has a transaction of THREAD after POSITION
//! done ROWS                             it is committed
//! undone                                it is not, as a later run found
//! ```
//!
//! A line is synced before what it announces happens. A last line that was cut announced nothing.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};

use super::ApplyError;
use super::session::Place;

/// A journal is a line a batch: this is tens of millions of them.
const SIZE_MAX: u64 = 1 << 30;

/// See the module.
pub(crate) struct Journal {
    file: File,
    /// Rows of batches that are known to be committed.
    pub(crate) done: u64,
    /// The batch whose end is not known: rows with it, and where to look.
    pub(crate) open: Option<(u64, Place)>,
}

impl Journal {
    /// Begins a journal, or goes on with one of the same changes.
    pub(crate) fn open(mut file: File, checksum: u32, server: &str) -> Result<Self, ApplyError> {
        if file.try_lock().is_err() {
            return Err(trouble("another run has it open"));
        }
        let size = file.metadata().map_err(io)?.len();
        if size > SIZE_MAX {
            return Err(trouble("is too large to be one"));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(io)?;
        file.seek(SeekFrom::End(0)).map_err(io)?;
        let first = format!("binlogz-journal 1 {checksum:08x} {server}");
        let mut journal = Journal { file, done: 0, open: None };
        let mut lines = text.get(..whole).unwrap_or_default().lines();
        match lines.next() {
            None => journal.line(&first)?,
            Some(line) if line == first => {}
            Some(line) if line.starts_with("binlogz-journal 1 ") => {
                return Err(trouble(
                    "is of other changes, another --batch or another server; the same command goes on, another one needs \
                     a journal of its own",
                ));
            }
            Some(_) => return Err(trouble("is no journal of binlogz")),
        }
        for line in lines {
            journal
                .read(line)
                .ok_or_else(|| trouble(&format!("has the line '{line}', expected commit, done or undone")))?;
        }
        Ok(journal)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let mut words = line.splitn(5, ' ');
        match words.next()? {
            "commit" => {
                let rows = words.next()?.parse().ok()?;
                let thread = words.next()?.parse().ok()?;
                let position = words.next()?.parse().ok()?;
                self.open = Some((rows, Place { log: words.next()?.to_owned(), position, thread }));
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
    pub(crate) fn commit(&mut self, rows: u64, place: &Place) -> Result<(), ApplyError> {
        self.line(&format!("commit {rows} {} {} {}", place.thread, place.position, place.log))
    }

    /// It is.
    pub(crate) fn done(&mut self, rows: u64) -> Result<(), ApplyError> {
        (self.done, self.open) = (rows, None);
        self.line(&format!("done {rows}"))
    }

    /// The open one is not.
    pub(crate) fn undone(&mut self) -> Result<(), ApplyError> {
        self.open = None;
        self.line("undone")
    }

    fn line(&mut self, line: &str) -> Result<(), ApplyError> {
        let mut whole = String::with_capacity(line.len() + 1);
        // Nothing fails that writes to memory.
        let _ = writeln!(whole, "{line}");
        self.file.write_all(whole.as_bytes()).and_then(|()| self.file.sync_data()).map_err(io)
    }
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

    fn place() -> Place {
        Place { log: "binlog 7.000001".to_owned(), position: 5, thread: 9 }
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
        journal.file.write_all(b"done 20").unwrap();
        drop(journal);
        let mut journal = Journal::open(file(), 7, "uuid").unwrap();
        assert_eq!((journal.done, &journal.open), (1000, &Some((2000, place()))));
        journal.undone().unwrap();
        drop(journal);
        let journal = Journal::open(file(), 7, "uuid").unwrap();
        assert_eq!((journal.done, journal.open), (1000, None));
        drop(journal.file);
        assert!(Journal::open(file(), 8, "uuid").is_err());
        assert!(Journal::open(file(), 7, "other").is_err());
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Journal::open(file(), 7, "uuid").is_err());
    }
}
