//! The columns that a block's fields are dealt out to: numbers and strings, by group and slot.
//!
//! A group is an event type (0 to 255) or a table (from [`Column::TABLES`] up); a slot is a field of the
//! event, or a column in one of its roles.
//!
//! ```text
//! for each column, by group and slot:
//!   group   varint  + 1, less the group before
//!   slot    varint
//!   kind    1       0 numbers | 1 strings
//!   code            see numbers.rs, strings.rs; the partners of numbers are those of their group
//! end       1       0
//! ```

use crate::codec::numbers;
use crate::codec::strings::{self, Strings};
use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

/// The column a field goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) group: usize,
    pub(crate) slot: usize,
}

impl Column {
    /// The first group that is a table.
    pub(crate) const TABLES: usize = 256;

    pub(crate) const fn new(group: usize, slot: usize) -> Self {
        Column { group, slot }
    }
}

/// More groups and slots than any block has: 4096 columns in [`crate::block::rows::ROLES`] roles.
const GROUPS_MAX: usize = 1 << 20;
const SLOTS_MAX: usize = 1 << 16;

const NUMBERS: u8 = 0;
const STRINGS: u8 = 1;

#[derive(Debug, Default)]
pub(crate) struct Stream {
    pub(crate) numbers: Vec<i64>,
    pub(crate) strings: Strings,
    /// The number to read next.
    number_at: usize,
    string_at: usize,
    /// The last event that was dealt out to it.
    pub(crate) event: u64,
}

/// All columns of a block.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    groups: Vec<Vec<Stream>>,
}

impl Streams {
    fn stream(&mut self, column: Column) -> Option<&mut Stream> {
        if column.group >= GROUPS_MAX || column.slot >= SLOTS_MAX {
            return None;
        }
        if self.groups.len() <= column.group {
            self.groups.resize_with(column.group + 1, Vec::new);
        }
        let group = self.groups.get_mut(column.group)?;
        if group.len() <= column.slot {
            group.resize_with(column.slot + 1, Stream::default);
        }
        group.get_mut(column.slot)
    }

    fn known(&mut self, column: Column) -> Option<&mut Stream> {
        self.groups.get_mut(column.group)?.get_mut(column.slot)
    }

    /// The column to write to.
    #[inline]
    pub(crate) fn at(&mut self, column: Column) -> Result<&mut Stream> {
        self.stream(column).ok_or_else(|| {
            Error::damaged("column", "a number beyond the last", "a column that an archive can have")
        })
    }

    /// The next number of a column.
    #[inline]
    pub(crate) fn next_number(&mut self, column: Column) -> Result<i64> {
        let next = self.known(column).and_then(|stream| {
            stream.number_at += 1;
            stream.numbers.get(stream.number_at - 1).copied()
        });
        next.ok_or_else(|| Error::damaged("column of numbers", "its end", "another number"))
    }

    /// The next string of a column.
    #[inline]
    pub(crate) fn next_string(&mut self, column: Column) -> Result<&[u8]> {
        let next = self.known(column).and_then(|stream| {
            stream.string_at += 1;
            stream.strings.get(stream.string_at - 1)
        });
        next.ok_or_else(|| Error::damaged("column of strings", "its end", "another string"))
    }

    /// Bytes of memory that the columns take.
    pub(crate) fn memory(&self) -> usize {
        let of = |stream: &Stream| stream.numbers.capacity() * size_of::<i64>() + stream.strings.memory();
        self.groups.iter().flatten().map(of).sum()
    }

    /// Appends the code of all columns.
    pub(crate) fn pack(&self, out: &mut Vec<u8>) -> Result<()> {
        let mut last_group = 0;
        for (group_index, group) in self.groups.iter().enumerate() {
            let mut before: Vec<&[i64]> = Vec::new();
            for (slot, stream) in group.iter().enumerate() {
                if !stream.numbers.is_empty() {
                    put_head(out, &mut last_group, Column::new(group_index, slot), NUMBERS);
                    numbers::pack(&stream.numbers, &before, out)?;
                    before.push(&stream.numbers);
                }
                if !stream.strings.is_empty() {
                    put_head(out, &mut last_group, Column::new(group_index, slot), STRINGS);
                    strings::pack(&stream.strings, out)?;
                }
            }
        }
        out.push(0);
        Ok(())
    }

    /// Takes the columns of a block of `size` bytes.
    pub(crate) fn unpack(from: &mut Taker<'_>, size: usize) -> Result<Streams> {
        // No column has more fields than the block has bytes: each event takes at least 19.
        let mut memory = size.saturating_mul(MEMORY_FACTOR).saturating_add(MEMORY_SMALL);
        let mut streams = Streams::default();
        let mut group = 0usize;
        let mut slot_min = 0;
        loop {
            let step = from.at_most(GROUPS_MAX as u64, "group")?;
            if step == 0 {
                return Ok(streams);
            }
            if step > 1 {
                slot_min = 0;
            }
            group += step - 1;
            let slot = from.at_most(SLOTS_MAX as u64, "slot")?;
            if slot < slot_min {
                return Err(Error::damaged(
                    "columns",
                    format!("slot {slot} after slot {slot_min}"),
                    "rising slots",
                ));
            }
            slot_min = slot;
            let kind = from.byte()?;
            let used = match kind {
                NUMBERS => {
                    let numbers = {
                        let known = streams.groups.get(group).map(Vec::as_slice).unwrap_or_default();
                        let before: Vec<&[i64]> = known
                            .iter()
                            .map(|stream| stream.numbers.as_slice())
                            .filter(|numbers| !numbers.is_empty())
                            .collect();
                        numbers::unpack(from, &before, (memory / 8).min(size))?
                    };
                    let used = numbers.len() * 8;
                    streams.at(Column::new(group, slot))?.numbers = numbers;
                    used
                }
                STRINGS => {
                    let strings = strings::unpack(from, (memory / 8).min(size), memory.min(size))?;
                    let used = strings.len() * 8 + strings.iter().map(<[u8]>::len).sum::<usize>();
                    streams.at(Column::new(group, slot))?.strings = strings;
                    used
                }
                other => return Err(Error::damaged("column", format!("kind {other}"), "0 or 1")),
            };
            memory = memory.checked_sub(used + STREAM_COST).ok_or_else(|| {
                Error::damaged("columns", format!("{used} bytes in one"), "no more than the block can hold")
            })?;
        }
    }
}

/// The most bytes of memory that a block's fields take per byte of the block: a TINYINT becomes eight.
const MEMORY_FACTOR: usize = 24;
/// Additional memory allowed for a small block.
const MEMORY_SMALL: usize = 1 << 20;
/// The cost of a column that holds next to nothing.
const STREAM_COST: usize = 16;

fn put_head(out: &mut Vec<u8>, last_group: &mut usize, column: Column, kind: u8) {
    varint::put(out, (column.group - *last_group) as u64 + 1);
    varint::put(out, column.slot as u64);
    out.push(kind);
    *last_group = column.group;
}
