//! The rows that were changed after a moment, as `touched.rs` writes them and `live.rs` hands them to the server.
//!
//! ```text
//! size field
//!    4 size
//!    n values      of a key or a row, as SQL in parentheses
//! ```

use std::io::{self, BufReader, Read};

use binlogz_payload::{Spool, SpoolMemory};

/// The rows changed after the moment.
#[derive(Debug)]
pub struct TouchedRows {
    /// The keys of the rows.
    pub(super) keys: SqlValues,
    /// The rows as they were.
    pub(super) rows: SqlValues,
    /// How many keys.
    pub key_count: u64,
    /// How many of them had a row at the moment.
    pub row_count: u64,
}

/// The values of keys or rows, as SQL in parentheses.
#[derive(Debug)]
pub(super) struct SqlValues(Spool);

impl SqlValues {
    /// No values yet; what exceeds the memory that they share with others goes to a temporary file.
    pub(super) fn new(memory: &SpoolMemory) -> Self {
        SqlValues(Spool::new(memory, Vec::new()))
    }

    /// Adds the values of one more key or row.
    pub(super) fn append(&mut self, values: &[u8]) -> io::Result<()> {
        let size =
            u32::try_from(values.len()).map_err(|_| io::Error::other("a row takes more than 4 GiB"))?;
        self.0.append(&size.to_le_bytes())?;
        self.0.append(values)
    }

    pub(super) fn reader(&self) -> SqlValuesReader<impl Read> {
        SqlValuesReader { rest: BufReader::new(self.0.reader(0..self.0.size())), size: self.0.size() }
    }
}

/// Reads the values of one key or row after the other.
#[derive(Debug)]
pub(super) struct SqlValuesReader<R> {
    rest: R,
    /// How many bytes are left.
    size: u64,
}

impl<R: Read> SqlValuesReader<R> {
    pub(super) fn is_at_end(&self) -> bool {
        self.size == 0
    }

    /// Appends the values of the next key or row to `out`.
    pub(super) fn append_next(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let mut size = [0; 4];
        self.rest.read_exact(&mut size)?;
        let size = u64::from(u32::from_le_bytes(size));
        self.size = self.size.saturating_sub(4 + size);
        (&mut self.rest).take(size).read_to_end(out).map(drop)
    }
}
