//! Some whole transactions of a stored file, converted once to a form and sent to every client that needs them.
//!
//! ```text
//! stored   … ┬ transaction ┬ transaction ┬─ over a multiple of STEP ─┬ …
//! block      └ positions, lengths and checksums of the form ─────────┘
//! ```
//!
//! Where a block ends depends on the stored file, not on the client for which it was made. So clients that began at
//! different positions soon ask for the same blocks. A block also ends where a file of the form ends. A large
//! transaction is a block of its own, in a temporary file.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::gtid::Gtid;
use binlogz_payload::Spool;

use crate::error::{Error, Result};
use crate::form::Form;
use crate::forms::Forms;
use crate::forms::convert::{FormChange, HELD_SIZE_MAX};
use crate::forms::translate::{FormSink, Translator};
use crate::log::checkpoints::StartOffsets;
use crate::log::groups::EventGroup;
use crate::log::parts::FilePart;

/// A transaction that reaches over a multiple of this, in the stored file, ends a block.
const STEP: u64 = 64 << 10;
/// A transaction with which a block reaches this size ends the block.
const SIZE_MAX: u64 = 128 << 10;
/// The last of this many transactions ends a block.
const TRANSACTIONS_MAX: usize = 256;

/// How many bytes to read at a time of a block that isn't in memory.
const COPY_SIZE: usize = 32 << 10;

/// Transactions converted to a form.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Spool,
    /// Where the block begins in the form, in bytes.
    at: u64,
    transactions: Vec<PlacedTransaction>,
}

/// A transaction, or an event between transactions, and its position in the form.
#[derive(Debug, Clone)]
pub(crate) struct PlacedTransaction {
    pub(crate) gtid: Option<Gtid>,
    /// Range in the stored file.
    pub(crate) stored: Range<u64>,
    /// Range in the form.
    pub(crate) at: Range<u64>,
    pub(crate) committed: u64,
    pub(crate) timestamp: u32,
    pub(crate) event_type: EventType,
}

impl PlacedTransaction {
    /// A converted transaction at this position in the form.
    pub(crate) fn new(group: &EventGroup, at: Range<u64>) -> Self {
        PlacedTransaction {
            gtid: group.gtid,
            stored: group.begin..group.end,
            at,
            committed: group.committed,
            timestamp: group.first.timestamp,
            event_type: group.first.event_type,
        }
    }
}

impl FormSink for Spool {
    fn skip_to(&mut self, _: u64) {}
}

impl Block {
    /// Converts the transactions after a position of a file; `None` if nothing is durable there, or if it is sent as
    /// stored.
    pub(crate) fn make(
        forms: Forms<'_>,
        form: Form,
        part: &Arc<FilePart>,
        start: &StartOffsets,
    ) -> Result<Option<Block>> {
        let spool = Spool::new(&forms.conversions.memory, Vec::new());
        let mut translator = Translator::at(forms, form, part, start, spool)?;
        let mut transactions = Vec::new();
        loop {
            let is_first = transactions.is_empty();
            let placed = match Block::next(&mut translator, form, is_first) {
                Ok(Some(placed)) => placed,
                Ok(None) => break,
                // Transactions before the damage are sent first.
                Err(_) if !is_first => break,
                Err(error) => return Err(error),
            };
            let over = placed.stored.start / STEP != placed.stored.end / STEP;
            let size = placed.at.end - start.at;
            transactions.push(placed);
            if over || size >= SIZE_MAX || transactions.len() >= TRANSACTIONS_MAX {
                break;
            }
        }
        if transactions.is_empty() {
            return Ok(None);
        }
        let mut bytes = std::mem::replace(translator.sink()?, Spool::on_disk());
        bytes.settle();
        transactions.shrink_to_fit();
        Ok(Some(Block { bytes, at: start.at, transactions }))
    }

    /// A block of these bytes, without transactions.
    #[cfg(test)]
    pub(crate) fn of(bytes: Spool) -> Block {
        Block { bytes, at: 0, transactions: Vec::new() }
    }

    fn next(
        translator: &mut Translator<'_, Spool>,
        form: Form,
        is_first: bool,
    ) -> Result<Option<PlacedTransaction>> {
        let Some(group) = translator.walker().next()? else { return Ok(None) };
        if translator.is_cut(&group)? {
            return Ok(None);
        }
        let (at, part) = (translator.offset(), translator.part());
        let as_stored =
            FormChange::of(&group, form, &part.head) == FormChange::None && part.is_as_stored(at, &group);
        if (is_first && as_stored) || (!is_first && group.size() > HELD_SIZE_MAX) {
            return Ok(None);
        }
        translator.write(&group)?;
        Ok(Some(PlacedTransaction::new(&group, at..translator.offset())))
    }

    /// The transactions in it, in order.
    pub(crate) fn transactions(&self) -> &[PlacedTransaction] {
        &self.transactions
    }

    /// Where the block ends in the stored file, in bytes.
    pub(crate) fn stored_end(&self) -> u64 {
        self.transactions.last().map_or(0, |placed| placed.stored.end)
    }

    /// The memory needed to keep it.
    pub(crate) fn cost(&self) -> usize {
        self.bytes.size() as usize + std::mem::size_of_val(self.transactions.as_slice())
    }

    /// Whether part of it is on disk.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.bytes.is_on_disk()
    }

    /// Writes a transaction; `buffer` is for parts that are not in memory.
    pub(crate) fn write(
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
