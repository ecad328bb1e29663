//! The rows that were changed after a moment, as `touched.rs` writes them and `live.rs` hands them to the server.

use std::io::{self, Read};

use binlogz_payload::{Spool, SpoolMemory};

use crate::record::{RecordReader, put};

/// The rows changed after the moment.
#[derive(Debug)]
pub struct TouchedRows {
    /// The keys of the rows.
    pub(super) keys: SqlValues,
    /// The rows as they were.
    pub(super) rows: SqlValues,
    /// The number of keys whose rows were changed after the moment.
    pub key_count: u64,
    /// The number of these keys that had a row at the moment.
    pub row_count: u64,
    /// Whether parts of the logs were passed over: only the rows that are wanted are certain.
    pub(super) are_partial: bool,
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
        put(&mut self.0, 0, &[values])
    }

    pub(super) fn reader(&self) -> RecordReader<impl Read> {
        RecordReader::new(self.0.reader(0..self.0.size()))
    }
}
