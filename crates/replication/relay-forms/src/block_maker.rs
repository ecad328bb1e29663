//! Makes the blocks that a translator sends, unless another one has made them.
//!
//! ```text
//! stored   … ┬ transaction ┬ transaction ┬─ over a multiple of STEP ─┬ …
//! block      └ positions, lengths and checksums of the form ─────────┘
//! ```
//!
//! Where a block ends depends on the stored file, not on the client for which it was made. So clients that began at
//! different positions soon ask for the same blocks. A block also ends where a file of the form ends. A large
//! transaction is a block of its own, in a temporary file.

use std::sync::Arc;

use binlogz_payload::Spool;
use binlogz_relay_log::{FilePart, Form, Result, StartOffsets};

use crate::block::{Block, PlacedTransaction};
use crate::conversions::{BlockKey, SharedBlock};
use crate::convert::{FormChange, HELD_SIZE_MAX};
use crate::forms::Forms;
use crate::masked::MaskedForm;
use crate::translate::{FormSink, Translator};

/// A transaction that reaches over a multiple of this, in the stored file, ends a block.
const STEP: u64 = 64 << 10;
/// A transaction with which a block reaches this size ends the block.
const SIZE_MAX: u64 = 128 << 10;
/// The last of this many transactions ends a block.
const TRANSACTIONS_MAX: usize = 256;

impl<W: FormSink> Translator<'_, W> {
    /// The converted transactions after this position, shared with other readers; `None` if they are sent as stored,
    /// or there are none.
    pub fn block(&mut self) -> Result<Option<SharedBlock>> {
        let start = StartOffsets { stored: self.walker().offset(), at: self.offset() };
        let forms = self.forms;
        let form = self.form;
        let part = self.part();
        let exits = forms.exits.map(MaskedForm::key);
        let StartOffsets { stored, at } = start;
        let key = BlockKey { log: forms.kept.id, file: part.of, form, exits, stored, at };
        forms.conversions.block(key, || make_block(forms, form, part, &start))
    }
}

impl FormSink for Spool {
    fn skip_to(&mut self, _: u64) {}
}

/// Converts the transactions after a position of a file; `None` if nothing is durable there, or if it is sent as
/// stored.
pub fn make_block(
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
        let placed = match next(&mut translator, form, is_first) {
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
    translator.note_tables();
    let mut bytes = std::mem::replace(translator.sink()?, Spool::on_disk());
    bytes.settle();
    transactions.shrink_to_fit();
    Ok(Some(Block::new(bytes, start.at, transactions)))
}

fn next(
    translator: &mut Translator<'_, Spool>,
    form: Form,
    is_first: bool,
) -> Result<Option<PlacedTransaction>> {
    let Some(group) = translator.walker().next_group()? else { return Ok(None) };
    if translator.is_cut(&group)? {
        return Ok(None);
    }
    let at = translator.offset();
    let part = translator.part();
    let is_masked = translator.forms.exits.is_some();
    let as_stored = !is_masked
        && FormChange::of(&group, form, &part.head) == FormChange::None
        && part.is_as_stored(at, &group);
    if (is_first && as_stored) || (!is_first && group.size() > HELD_SIZE_MAX) {
        return Ok(None);
    }
    let refused = translator.write_unless_refused(&group)?;
    Ok(Some(PlacedTransaction { refused, ..PlacedTransaction::new(&group, at..translator.offset()) }))
}
