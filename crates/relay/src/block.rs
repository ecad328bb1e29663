//! Some whole transactions of a stored file as they are in a form: made once, sent to every client that comes by.
//!
//! ```text
//! stored   … ┬ transaction ┬ transaction ┬─ over a multiple of STEP ─┬ …
//! block      └ positions, lengths and checksums of the form ─────────┘
//! ```
//!
//! Blocks end where the stored file says, not where whoever had them made began: clients that began in different
//! places soon ask for the same ones; and where a file of the form ends. A large transaction is a block of its own, in a temporary file.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::EventType;
use binlogz_binlog::gtid::Gtid;
use binlogz_payload::{Spool, SpoolMemory};

use crate::checkpoints::Start;
use crate::convert::{Change, HELD_SIZE_MAX};
use crate::error::{Error, Result};
use crate::form::Form;
use crate::groups::Group;
use crate::lineages::Kept;
use crate::parts::Part;
use crate::translate::{FormSink, Translator};

/// A transaction that reaches over a multiple of this, in the stored file, ends a block.
const STEP: u64 = 64 << 10;
/// So does one with which a block becomes as large as this.
const SIZE_MAX: u64 = 128 << 10;
/// And the last of so many.
const TRANSACTIONS_MAX: usize = 256;

/// Bytes read at a time of what is not in memory.
const COPY_SIZE: usize = 32 << 10;

/// Transactions in a form.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Spool,
    /// Where it begins in the form.
    at: u64,
    transactions: Vec<Placed>,
}

/// A transaction, or an event between transactions, and where it went.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) gtid: Option<Gtid>,
    /// In the stored file.
    pub(crate) stored: Range<u64>,
    /// In the form.
    pub(crate) at: Range<u64>,
    pub(crate) committed: u64,
    pub(crate) timestamp: u32,
    pub(crate) event_type: EventType,
}

impl Placed {
    /// What a transaction became that stands here in the form.
    pub(crate) fn new(group: &Group, at: Range<u64>) -> Self {
        Placed {
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
    /// What is behind a place of a file; `None`: nothing that is durable, or what goes out as it is stored.
    pub(crate) fn make(
        kept: &Kept,
        form: Form,
        part: &Arc<Part>,
        start: &Start,
        memory: &SpoolMemory,
    ) -> Result<Option<Block>> {
        let spool = Spool::new(memory, Vec::new());
        let mut translator = Translator::at(kept, form, part, start, spool)?;
        let mut transactions = Vec::new();
        loop {
            let is_first = transactions.is_empty();
            let placed = match Block::next(&mut translator, form, is_first) {
                Ok(Some(placed)) => placed,
                Ok(None) => break,
                // What is in front of damage goes out first.
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

    /// One of these bytes, with no transaction.
    #[cfg(test)]
    pub(crate) fn of(bytes: Spool) -> Block {
        Block { bytes, at: 0, transactions: Vec::new() }
    }

    fn next(translator: &mut Translator<'_, Spool>, form: Form, is_first: bool) -> Result<Option<Placed>> {
        let Some(group) = translator.walker().next()? else { return Ok(None) };
        if translator.is_cut(&group)? {
            return Ok(None);
        }
        let (at, part) = (translator.offset(), translator.part());
        let as_stored = Change::of(&group, form, &part.head) == Change::None && part.is_as_stored(at, &group);
        if (is_first && as_stored) || (!is_first && group.size() > HELD_SIZE_MAX) {
            return Ok(None);
        }
        translator.write(&group)?;
        Ok(Some(Placed::new(&group, at..translator.offset())))
    }

    /// What is in it, in order.
    pub(crate) fn transactions(&self) -> &[Placed] {
        &self.transactions
    }

    /// Where it ends in the stored file.
    pub(crate) fn stored_end(&self) -> u64 {
        self.transactions.last().map_or(0, |placed| placed.stored.end)
    }

    /// What it costs to keep it.
    pub(crate) fn cost(&self) -> usize {
        self.bytes.size() as usize + std::mem::size_of_val(self.transactions.as_slice())
    }

    /// Whether not all of it is in memory.
    pub(crate) fn is_on_disk(&self) -> bool {
        self.bytes.is_on_disk()
    }

    /// Writes a transaction; `buffer` is for what is not in memory.
    pub(crate) fn write(
        &self,
        placed: &Placed,
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
