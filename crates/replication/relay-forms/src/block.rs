//! Some whole transactions of a stored file, converted once to a form and sent to every client that needs them.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::gtid::Gtid;
use binlogz_payload::Spool;
use binlogz_relay_log::{Error, EventGroup, Result};

/// How many bytes to read at a time of a block that isn't in memory.
const COPY_SIZE: usize = 32 << 10;

/// Transactions converted to a form.
#[derive(Debug)]
pub struct Block {
    bytes: Spool,
    /// Where the block begins in the form, in bytes.
    at: u64,
    transactions: Vec<PlacedTransaction>,
}

/// A transaction, or an event between transactions, and its position in the form.
#[derive(Debug, Clone)]
pub struct PlacedTransaction {
    /// Its GTID, if it has one.
    pub gtid: Option<Gtid>,
    /// Range in the stored file.
    pub stored: Range<u64>,
    /// Range in the form.
    pub at: Range<u64>,
    /// When it was committed, in microseconds since 1970; 0 if unknown.
    pub committed: u64,
    /// The time of its first event, in seconds since 1970.
    pub timestamp: u32,
    /// The type of its first event.
    pub event_type: EventType,
    /// Why it may not leave by the account's policy: then the form has no bytes of it, and only a client that has it goes on after it.
    pub refused: Option<Arc<str>>,
}

impl PlacedTransaction {
    /// A converted transaction at this position in the form.
    pub fn new(group: &EventGroup, at: Range<u64>) -> Self {
        PlacedTransaction {
            gtid: group.gtid,
            stored: group.begin..group.end,
            at,
            committed: group.committed,
            timestamp: group.first.timestamp,
            event_type: group.first.event_type,
            refused: None,
        }
    }
}

impl Block {
    /// Transactions of the form, whose first one begins at this position.
    pub(crate) fn new(bytes: Spool, at: u64, transactions: Vec<PlacedTransaction>) -> Block {
        Block { bytes, at, transactions }
    }

    /// The transactions in it, in order.
    pub fn transactions(&self) -> &[PlacedTransaction] {
        &self.transactions
    }

    /// Where the block ends in the stored file, in bytes.
    pub fn stored_end(&self) -> u64 {
        self.transactions.last().map_or(0, |placed| placed.stored.end)
    }

    /// The memory needed to keep it.
    pub fn cost(&self) -> usize {
        self.bytes.size() as usize + std::mem::size_of_val(self.transactions.as_slice())
    }

    /// Whether part of it is on disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.bytes.is_on_disk()
    }

    /// Writes a transaction; `buffer` is for parts that are not in memory.
    pub fn write(
        &self,
        placed: &PlacedTransaction,
        buffer: &mut Vec<u8>,
        mut put: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let range = placed.at.start - self.at..placed.at.end - self.at;
        if let Some(bytes) = self.bytes.memory(range.clone()) {
            return put(bytes);
        }
        let mut reader = self.bytes.reader(range);
        buffer.resize(COPY_SIZE, 0);
        loop {
            match reader.read(buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => put(buffer.get(..count).unwrap_or_default())?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::io("read a temporary file")(source)),
            }
        }
    }
}
