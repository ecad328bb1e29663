//! Maxwell writes a transaction's number, which only its end tells, into all of its rows, counts them from 0, and marks the last.
//!
//! ```text
//! …"ts":1,\0"data":{…}      a row: the mark stands where `"xid":N,"xoffset":0,` or `"xid":N,"commit":true,` belongs
//! \x01N\n                   the transaction's end and its number, if it has one
//! ```
//!
//! A worker resolves transactions that it has whole. The others are resolved here, in order: lines of an open transaction
//! wait in memory, and beyond a limit in a temporary file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::{END, MARK};

/// Bytes of lines that wait in memory.
const WAITING_MAX: usize = 8 << 20;
/// Bytes that are read again at a time.
const READ_SIZE: usize = 256 << 10;

/// Writes the number of a Maxwell transaction into all of its rows once its end has been read.
#[derive(Debug, Default)]
pub(super) struct Xids {
    waiting: Vec<u8>,
    spilled: Option<File>,
    /// The marks that wait.
    marks: u64,
}

impl Xids {
    /// Takes whole lines; writes those of transactions that have ended.
    pub(super) fn take(&mut self, lines: &[u8], out: &mut impl Write) -> io::Result<()> {
        let mut rest = lines;
        while !rest.is_empty() {
            let mark = rest.iter().position(|&byte| byte <= END);
            match mark {
                None if self.marks == 0 => return out.write_all(rest),
                None => return self.wait(rest),
                Some(at) => {
                    let (before, after) = rest.split_at(at);
                    let is_mark = after.first() == Some(&MARK);
                    // No line is written before all of it is known.
                    let line = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
                    let (lines, line) = before.split_at(line);
                    if self.marks == 0 {
                        out.write_all(lines)?
                    } else {
                        self.wait(lines)?
                    }
                    if is_mark {
                        self.wait(line)?;
                        self.wait(&[MARK])?;
                        self.marks += 1;
                        rest = after.get(1..).unwrap_or_default();
                    } else {
                        let end = after.iter().position(|&byte| byte == b'\n').unwrap_or(after.len());
                        self.end(after.get(1..end).unwrap_or_default(), out)?;
                        rest = after.get(end + 1..).unwrap_or_default();
                    }
                }
            }
        }
        Ok(())
    }

    fn wait(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() > WAITING_MAX {
            let file = match &mut self.spilled {
                Some(file) => file,
                none => none.insert(tempfile::tempfile()?),
            };
            file.write_all(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    fn end(&mut self, xid: &[u8], out: &mut impl Write) -> io::Result<()> {
        let mut marks = Marks::new(std::mem::take(&mut self.marks));
        let mut text = Vec::new();
        if let Some(mut file) = self.spilled.take() {
            file.seek(SeekFrom::Start(0))?;
            let mut buffer = vec![0; READ_SIZE];
            loop {
                let size = file.read(&mut buffer)?;
                if size == 0 {
                    break;
                }
                text.clear();
                resolve(buffer.get(..size).unwrap_or_default(), xid, &mut marks, &mut text);
                out.write_all(&text)?;
            }
        }
        text.clear();
        resolve(&self.waiting, xid, &mut marks, &mut text);
        self.waiting.clear();
        out.write_all(&text)
    }
}

/// The marks of a transaction.
#[derive(Debug)]
pub(crate) struct Marks {
    all: u64,
    replaced: u64,
}

impl Marks {
    pub(crate) fn new(all: u64) -> Self {
        Marks { all, replaced: 0 }
    }
}

/// Appends lines with their marks replaced, the last of which commits.
pub(crate) fn resolve(lines: &[u8], xid: &[u8], marks: &mut Marks, out: &mut Vec<u8>) {
    let mut rest = lines;
    while let Some(at) = rest.iter().position(|&byte| byte == MARK) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        if !xid.is_empty() {
            out.extend_from_slice(b"\"xid\":");
            out.extend_from_slice(xid);
            out.push(b',');
        }
        if marks.replaced + 1 == marks.all {
            out.extend_from_slice(b"\"commit\":true,");
        } else {
            // Writing to a vector can't fail.
            let _ = write!(out, "\"xoffset\":{},", marks.replaced);
        }
        marks.replaced += 1;
        rest = after.get(1..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_wait_for_the_end_of_their_transaction() {
        let lines = b"{a,\0b}\n{c,\0d}\n\x017\n{e,\0f}\n\x01\n{\"no\":1}\n{g,\0h}\n";
        let expected = "{a,\"xid\":7,\"xoffset\":0,b}\n{c,\"xid\":7,\"commit\":true,d}\n{e,\"commit\":true,f}\n{\"no\":1}\n";
        // However whole lines are cut.
        let cuts = lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        for cut in cuts {
            let mut out = Vec::new();
            let mut xids = Xids::default();
            let (front, back) = lines.split_at(cut);
            xids.take(front, &mut out).unwrap();
            xids.take(back, &mut out).unwrap();
            assert!(xids.marks > 0);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn more_lines_than_fit_in_memory_wait_in_a_file() {
        let line = [&b"{"[..], &[b'x'; 100_000], b",\0}\n"].concat();
        let mut xids = Xids::default();
        let mut out = Vec::new();
        for _ in 0..200 {
            xids.take(&line, &mut out).unwrap();
            assert!(xids.waiting.len() <= WAITING_MAX + line.len());
        }
        assert!(xids.spilled.is_some());
        xids.take(b"\x0142\n", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches("\"xid\":42,").count(), 200);
        assert_eq!(text.matches("\"commit\":true").count(), 1);
        assert!(text.ends_with(",\"xid\":42,\"commit\":true,}\n") && xids.marks == 0);
    }
}
