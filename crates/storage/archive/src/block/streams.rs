//! The columns that a block's fields are dealt out to: numbers and strings, by group and slot.
//!
//! A group is an event type (0 to 255) or a table (from [`StreamColumn::TABLES`] up); a slot is a field of the
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
//!
//! In blocks of method 3 the short columns of many tables follow, pooled: those of the same slot, whose values have the
//! same form, one after the other as one column.
//!
//! ```text
//! pools     varint  count; each:
//!   slot    varint
//!   kind    1       0 numbers | 1 strings
//!   members numbers the groups, each minus that before
//!   counts  numbers how many values each has
//!   code            the values, see numbers.rs, strings.rs; the partners of numbers are the pools before it
//! ```

mod heavy;
mod known;
mod sparse;

use std::collections::{BTreeMap, HashSet};

use crate::block::slots::column_of;
use crate::codec::Level;
use crate::codec::numbers::{self, EarlierColumns};
use crate::codec::strings::{self, StringList};
use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

use heavy::{HEAVY_MIN, HeavyColumns};
pub(crate) use known::{CodePlaces, FormerColumns};
pub(crate) use sparse::SparseStreams;

/// The column a field goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StreamColumn {
    pub(crate) group: usize,
    pub(crate) slot: usize,
}

impl StreamColumn {
    /// The first group that is a table.
    pub(crate) const TABLES: usize = 256;

    pub(crate) const fn new(group: usize, slot: usize) -> Self {
        StreamColumn { group, slot }
    }
}

/// More groups and slots than any block has: 4096 columns in [`crate::block::slots::ROLES`] roles.
const GROUPS_MAX: usize = 1 << 20;
const SLOTS_MAX: usize = 1 << 16;

const NUMBERS: u8 = 0;
const STRINGS: u8 = 1;

#[derive(Debug, Default)]
pub(crate) struct ColumnStream {
    pub(crate) numbers: Vec<i64>,
    pub(crate) strings: StringList,
    /// The number to read next.
    number_at: usize,
    string_at: usize,
    /// The last event that was dealt out to it.
    pub(crate) event: u64,
}

/// All columns of a block.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    groups: Vec<Vec<ColumnStream>>,
}

impl Streams {
    fn stream(&mut self, column: StreamColumn) -> Option<&mut ColumnStream> {
        if column.group >= GROUPS_MAX || column.slot >= SLOTS_MAX {
            return None;
        }
        if self.groups.len() <= column.group {
            self.groups.resize_with(column.group + 1, Vec::new);
        }
        let group = self.groups.get_mut(column.group)?;
        if group.len() <= column.slot {
            group.resize_with(column.slot + 1, ColumnStream::default);
        }
        group.get_mut(column.slot)
    }

    fn known(&mut self, column: StreamColumn) -> Option<&mut ColumnStream> {
        self.groups.get_mut(column.group)?.get_mut(column.slot)
    }

    /// The column to write to.
    #[inline]
    pub(crate) fn at(&mut self, column: StreamColumn) -> Result<&mut ColumnStream> {
        self.stream(column).ok_or_else(|| {
            Error::damaged("column", "a number beyond the last", "a column that an archive can have")
        })
    }

    /// The next number of a column.
    #[inline]
    pub(crate) fn next_number(&mut self, column: StreamColumn) -> Result<i64> {
        let next = self.known(column).and_then(|stream| {
            stream.number_at += 1;
            stream.numbers.get(stream.number_at - 1).copied()
        });
        next.ok_or_else(|| Error::damaged("column of numbers", "its end", "another number"))
    }

    /// The next string of a column.
    #[inline]
    pub(crate) fn next_string(&mut self, column: StreamColumn) -> Result<&[u8]> {
        let next = self.known(column).and_then(|stream| {
            stream.string_at += 1;
            stream.strings.get(stream.string_at - 1)
        });
        next.ok_or_else(|| Error::damaged("column of strings", "its end", "another string"))
    }

    /// Bytes of memory that the columns take.
    pub(crate) fn memory(&self) -> usize {
        let of =
            |stream: &ColumnStream| stream.numbers.capacity() * size_of::<i64>() + stream.strings.memory();
        self.groups.iter().flatten().map(of).sum()
    }

    /// Appends the code of all columns. `forms` has a number for the form of each column of each table, by
    /// group from [`StreamColumn::TABLES`] up. Columns that have the same values in `former` keep their code.
    pub(crate) fn pack(
        &self,
        forms: &[Vec<u8>],
        level: Level,
        former: &mut FormerColumns,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let pools = self.pools(forms);
        let pooled: HashSet<(usize, usize, u8)> = pools
            .iter()
            .flat_map(|pool| pool.groups.iter().map(|&group| (group, pool.slot, pool.kind)))
            .collect();
        let mut last_group = 0;
        for (group_index, group) in self.groups.iter().enumerate() {
            let mut before = EarlierColumns::default();
            let mut former = former.group(group_index);
            for (slot, stream) in group.iter().enumerate() {
                let alone = |kind| !pooled.contains(&(group_index, slot, kind));
                if !stream.numbers.is_empty() && alone(NUMBERS) {
                    put_head(out, &mut last_group, StreamColumn::new(group_index, slot), NUMBERS);
                    match former.numbers(slot, &stream.numbers) {
                        Some(code) => out.extend_from_slice(code),
                        None => numbers::pack(&stream.numbers, &before, level, out)?,
                    }
                    before.push(&stream.numbers);
                }
                if !stream.strings.is_empty() && alone(STRINGS) {
                    put_head(out, &mut last_group, StreamColumn::new(group_index, slot), STRINGS);
                    match former.strings(slot, &stream.strings) {
                        Some(code) => out.extend_from_slice(code),
                        None => strings::pack(&stream.strings, &before, level, out)?,
                    }
                }
            }
        }
        out.push(0);
        varint::put(out, pools.len() as u64);
        let mut before: Vec<Vec<i64>> = Vec::new();
        for pool in &pools {
            self.pack_pool(pool, level, &mut before, out)?;
        }
        Ok(())
    }

    /// The short columns of tables that are enough to be pooled.
    fn pools(&self, forms: &[Vec<u8>]) -> Vec<Pool> {
        // By slot, kind and form; tables of the same definition stand together.
        let mut members: BTreeMap<(usize, u8, u8), Vec<GroupMember<'_>>> = BTreeMap::new();
        for (table, group) in self.groups.iter().skip(StreamColumn::TABLES).enumerate() {
            let forms = forms.get(table).map(Vec::as_slice).unwrap_or_default();
            for (slot, stream) in group.iter().enumerate() {
                let form = column_of(slot).and_then(|column| forms.get(column)).copied().unwrap_or_default();
                let mut note = |kind| {
                    let pool = members.entry((slot, kind, form)).or_default();
                    pool.push((forms, StreamColumn::TABLES + table));
                };
                if (1..=POOLED_NUMBERS_MAX).contains(&stream.numbers.len()) {
                    note(NUMBERS);
                }
                if !stream.strings.is_empty()
                    && stream.strings.len() <= POOLED_NUMBERS_MAX
                    && stream.strings.size() <= POOLED_BYTES_MAX
                {
                    note(STRINGS);
                }
            }
        }
        let enough = members.into_iter().filter(|(_, members)| members.len() >= POOL_MEMBERS_MIN);
        let pools = enough.map(|((slot, kind, _), mut members)| {
            members.sort_unstable();
            Pool { slot, kind, groups: members.into_iter().map(|(_, group)| group).collect() }
        });
        pools.collect()
    }

    fn pack_pool(
        &self,
        pool: &Pool,
        level: Level,
        before: &mut Vec<Vec<i64>>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        varint::put(out, pool.slot as u64);
        out.push(pool.kind);
        let mut last = 0;
        let mut members = Vec::with_capacity(pool.groups.len());
        for &group in &pool.groups {
            members.push(group as i64 - last);
            last = group as i64;
        }
        numbers::pack_alone(&members, level, out)?;
        let streams = pool.groups.iter().filter_map(|&group| self.groups.get(group)?.get(pool.slot));
        if pool.kind == STRINGS {
            let counts: Vec<i64> = streams.clone().map(|stream| stream.strings.len() as i64).collect();
            numbers::pack_alone(&counts, level, out)?;
            let mut values = StringList::new();
            streams.for_each(|stream| values.append(&stream.strings));
            // Readers count it among the pools that a partner is so many back of.
            before.push(Vec::new());
            return strings::pack(&values, &EarlierColumns::default(), level, out);
        }
        let counts: Vec<i64> = streams.clone().map(|stream| stream.numbers.len() as i64).collect();
        numbers::pack_alone(&counts, level, out)?;
        let values: Vec<i64> = streams.flat_map(|stream| &stream.numbers).copied().collect();
        numbers::pack(&values, &EarlierColumns::of(before.iter().map(Vec::as_slice)), level, out)?;
        before.push(values);
        Ok(())
    }

    /// Takes pools, whose columns may take `memory` bytes.
    fn unpack_pools(&mut self, from: &mut Taker<'_>, size: usize, memory: &mut usize) -> Result<()> {
        let mut before: Vec<Vec<i64>> = Vec::new();
        for _ in 0..from.at_most(POOLS_MAX, "count of pools")? {
            let slot = from.at_most(SLOTS_MAX as u64, "slot")?;
            let kind = from.byte()?;
            let members = numbers::unpack(from, &[], GROUPS_MAX.min(size))?;
            let counts = numbers::unpack(from, &[], members.len())?;
            let values_max = (*memory / 8).min(size);
            let (numbers, strings) = match kind {
                NUMBERS => {
                    let partners: Vec<&[i64]> = before.iter().map(Vec::as_slice).collect();
                    (numbers::unpack(from, &partners, values_max)?, StringList::new())
                }
                STRINGS => (Vec::new(), strings::unpack(from, &[], values_max, (*memory).min(size))?),
                other => return Err(Error::damaged("pool", format!("kind {other}"), "0 or 1")),
            };
            // Numbers are there twice while later pools may refer to them.
            let used = numbers.len() * 16 + strings.len() * 8 + strings.size() + members.len() * STREAM_COST;
            *memory = memory.checked_sub(used + STREAM_COST).ok_or_else(|| too_much(used))?;
            if counts.len() != members.len() {
                return Err(Error::damaged(
                    "pool",
                    format!("{} counts", counts.len()),
                    "one for each member",
                ));
            }
            let mut group = 0i64;
            let mut at = 0usize;
            for (step, count) in members.iter().zip(&counts) {
                group = group.wrapping_add(*step);
                let column =
                    usize::try_from(group).ok().filter(|&group| group >= StreamColumn::TABLES).ok_or_else(
                        || Error::damaged("pool", format!("group {group}"), "the group of a table"),
                    )?;
                let end = usize::try_from(*count).ok().and_then(|count| at.checked_add(count));
                let whole = if kind == NUMBERS { numbers.len() } else { strings.len() };
                let end = end.filter(|&end| end <= whole && end > at).ok_or_else(|| {
                    Error::damaged("pool", format!("a member of {count} values"), "as many as the pool has")
                })?;
                let stream = self.at(StreamColumn::new(column, slot))?;
                let taken =
                    if kind == NUMBERS { !stream.numbers.is_empty() } else { !stream.strings.is_empty() };
                if taken {
                    return Err(Error::damaged("pool", format!("group {group} again"), "each column once"));
                }
                if kind == NUMBERS {
                    stream.numbers = numbers.get(at..end).unwrap_or_default().to_vec();
                } else {
                    stream.strings = strings.part(at..end);
                }
                at = end;
            }
            if at != numbers.len().max(strings.len()) {
                return Err(Error::damaged("pool", format!("members of {at} values"), "as many as it has"));
            }
            before.push(numbers);
        }
        Ok(())
    }

    /// A group's columns of numbers so far.
    fn numbers_of(&self, group: usize) -> Vec<&[i64]> {
        let streams = self.groups.get(group).map(Vec::as_slice).unwrap_or_default();
        streams.iter().map(|stream| stream.numbers.as_slice()).filter(|numbers| !numbers.is_empty()).collect()
    }

    /// Takes the columns of a block of `size` bytes; `pooled`: and its pools. `threads` are idle, the calling one among them.
    pub(crate) fn unpack(from: &mut Taker<'_>, size: usize, pooled: bool, threads: usize) -> Result<Streams> {
        let mut places = CodePlaces::default();
        Streams::unpack_by(from, (size, pooled), threads, (&FormerColumns::default(), &mut places))
    }

    /// Takes the columns as [`Streams::unpack`] does, and notes where the code of each is.
    pub(crate) fn unpack_noting(
        from: &mut Taker<'_>,
        size: usize,
        pooled: bool,
        places: &mut CodePlaces,
    ) -> Result<Streams> {
        Streams::unpack_by(from, (size, pooled), 1, (&FormerColumns::default(), places))
    }

    /// Takes the columns as [`Streams::unpack`] does; those whose code was kept are those of the former block.
    pub(crate) fn unpack_after(from: &mut Taker<'_>, size: usize, former: &FormerColumns) -> Result<Streams> {
        Streams::unpack_by(from, (size, true), 1, (former, &mut CodePlaces::default()))
    }

    fn unpack_by(
        from: &mut Taker<'_>,
        (size, pooled): (usize, bool),
        threads: usize,
        (former, places): (&FormerColumns, &mut CodePlaces),
    ) -> Result<Streams> {
        // No column has more fields than the block has bytes: each event takes at least 19.
        let mut memory = size.saturating_mul(MEMORY_FACTOR).saturating_add(MEMORY_SMALL);
        let mut streams = Streams::default();
        let mut group = 0usize;
        let mut slot_min = 0;
        let mut heavy = HeavyColumns::default();
        loop {
            let step = from.at_most(GROUPS_MAX as u64, "group")?;
            if step == 0 {
                for (column, strings) in heavy.unpack(threads, size, &mut memory)? {
                    streams.at(column)?.strings = strings;
                }
                if pooled {
                    streams.unpack_pools(from, size, &mut memory)?;
                }
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
            let column = StreamColumn::new(group, slot);
            let left = from.left();
            let used = match kind {
                NUMBERS => {
                    let numbers = match former.take_numbers(column, from) {
                        Some(numbers) => numbers,
                        None => numbers::unpack(from, &streams.numbers_of(group), (memory / 8).min(size))?,
                    };
                    let used = numbers.len() * 8;
                    streams.at(column)?.numbers = numbers;
                    used
                }
                STRINGS if threads > 1 && strings::text_size(*from)? >= HEAVY_MIN => {
                    heavy.push(column, *from, strings::text_size(*from)?);
                    strings::pass(from, size)?;
                    continue;
                }
                STRINGS => {
                    let before = streams.numbers_of(group);
                    let strings = match former.take_strings(column, from) {
                        Some(strings) => strings,
                        None => strings::unpack(from, &before, (memory / 8).min(size), memory.min(size))?,
                    };
                    let used = strings.len() * 8 + strings.size();
                    streams.at(column)?.strings = strings;
                    used
                }
                other => return Err(Error::damaged("column", format!("kind {other}"), "0 or 1")),
            };
            memory = memory.checked_sub(used + STREAM_COST).ok_or_else(|| too_much(used))?;
            places.note(column, kind, (left, from.left()));
        }
    }
}

/// The forms of a table's columns, and its group.
type GroupMember<'a> = (&'a [u8], usize);

/// Columns that are coded as one.
struct Pool {
    slot: usize,
    kind: u8,
    groups: Vec<usize>,
}

/// Longer columns are coded alone: a column's own cost no longer matters then, and its table's own columns are better
/// partners.
const POOLED_NUMBERS_MAX: usize = 512;
const POOLED_BYTES_MAX: usize = 16 << 10;
/// Fewer columns than this are not pooled.
const POOL_MEMBERS_MIN: usize = 8;
/// More pools than any block has: a form of a column in each slot.
const POOLS_MAX: u64 = 1 << 18;

fn too_much(used: usize) -> Error {
    Error::damaged("columns", format!("{used} bytes in one"), "no more than the block can hold")
}

/// The most bytes of memory that a block's fields take per byte of the block: a TINYINT becomes eight.
const MEMORY_FACTOR: usize = 24;
/// Additional memory allowed for a small block.
const MEMORY_SMALL: usize = 1 << 20;
/// The cost of a column that holds next to nothing.
const STREAM_COST: usize = 16;

fn put_head(out: &mut Vec<u8>, last_group: &mut usize, column: StreamColumn, kind: u8) {
    varint::put(out, (column.group - *last_group) as u64 + 1);
    varint::put(out, column.slot as u64);
    out.push(kind);
    *last_group = column.group;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of this many tables of two definitions, a few rows in each.
    fn streams(tables: usize) -> (Streams, Vec<Vec<u8>>) {
        let mut streams = Streams::default();
        streams.at(StreamColumn::new(0, 0)).unwrap().numbers.extend(0..100);
        let mut forms = Vec::new();
        for table in 0..tables {
            let group = StreamColumn::TABLES + table;
            forms.push(if table % 2 == 0 { vec![0x14, 0x81] } else { vec![0x14, 0x18] });
            for row in 0..(1 + table % 5) as i64 {
                streams.at(StreamColumn::new(group, 0)).unwrap().numbers.extend([1, 0]);
                streams.at(StreamColumn::new(group, 16)).unwrap().numbers.push(row + 1);
                let last = streams.at(StreamColumn::new(group, 24)).unwrap();
                if table % 2 == 0 {
                    last.strings.push(format!("name {row} of {table}").as_bytes());
                } else {
                    last.numbers.push(row << 33);
                }
            }
        }
        // Too long to be pooled.
        streams
            .at(StreamColumn::new(StreamColumn::TABLES, 32))
            .unwrap()
            .numbers
            .extend((0..2000).map(|n| n * n % 71));
        (streams, forms)
    }

    pub(super) fn content(streams: &Streams) -> Vec<(usize, usize, Vec<i64>, StringList)> {
        let groups = streams.groups.iter().enumerate();
        groups
            .flat_map(|(group, slots)| {
                slots
                    .iter()
                    .enumerate()
                    .map(move |(slot, stream)| (group, slot, stream.numbers.clone(), stream.strings.clone()))
            })
            .filter(|(_, _, numbers, strings)| !numbers.is_empty() || !strings.is_empty())
            .collect()
    }

    const SIZE: usize = 1 << 20;

    #[test]
    fn pooled_columns_come_back_and_take_less_than_apart() {
        for tables in [0, 1, POOL_MEMBERS_MIN - 1, POOL_MEMBERS_MIN, 300] {
            let (streams, forms) = streams(tables);
            let mut packed = Vec::new();
            streams.pack(&forms, Level::Default, &mut FormerColumns::default(), &mut packed).unwrap();
            let mut from = Taker::new(&packed);
            let back = Streams::unpack(&mut from, SIZE, true, 1).unwrap();
            assert!(from.left() == 0 && content(&back) == content(&streams), "{tables}");
            // As before: a code for each.
            assert!(packed.len() < 600 + 10 * tables, "{tables}: {}", packed.len());
        }
    }

    #[test]
    fn a_pool_of_numbers_has_its_partner_before_a_pool_of_strings() {
        let mut streams = Streams::default();
        let forms = vec![vec![0x18, 0x81, 0x18]; 40];
        let mut number = 1i64;
        for table in 0..40 {
            for row in 0..20 {
                let mut put = |slot, number| {
                    streams
                        .at(StreamColumn::new(StreamColumn::TABLES + table, slot))
                        .unwrap()
                        .numbers
                        .push(number);
                };
                // As random as numbers get, and the same in the other column.
                number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                put(16, number >> 20);
                put(32, (number >> 20) + 7);
                let text = streams.at(StreamColumn::new(StreamColumn::TABLES + table, 24)).unwrap();
                text.strings.push(format!("name {row} of {table}").as_bytes());
            }
        }
        let mut packed = Vec::new();
        streams.pack(&forms, Level::Default, &mut FormerColumns::default(), &mut packed).unwrap();
        let back = Streams::unpack(&mut Taker::new(&packed), SIZE, true, 1).unwrap();
        assert!(content(&back) == content(&streams));
        assert!(packed.len() < 800 * 8, "{}: without its partner", packed.len());
    }

    #[test]
    fn damaged_pools_are_errors_or_other_columns_and_never_a_panic() {
        let (streams, forms) = streams(20);
        let mut packed = Vec::new();
        streams.pack(&forms, Level::Default, &mut FormerColumns::default(), &mut packed).unwrap();
        for length in 0..packed.len() {
            assert!(Streams::unpack(&mut Taker::new(&packed[..length]), SIZE, true, 1).is_err(), "{length}");
        }
        for at in 0..packed.len() {
            for flip in [0x01, 0x55, 0x80, 0xff] {
                let mut bad = packed.clone();
                bad[at] ^= flip;
                let _ = Streams::unpack(&mut Taker::new(&bad), SIZE, true, 1);
            }
        }
    }

    /// Texts that PPMd codes, of several tables.
    fn texts() -> Streams {
        let mut streams = Streams::default();
        let mut state = 1u64;
        for table in 0..5 {
            let stream = streams.at(StreamColumn::new(StreamColumn::TABLES + table, 16)).unwrap();
            for _ in 0..4000 * (table + 1) {
                let mut text = String::new();
                for _ in 0..8 {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let word = ["order ", "sent ", "again ", "missing ", "customer ", "late "]
                        [(state >> 33) as usize % 6];
                    text.push_str(word);
                }
                stream.strings.push(text.as_bytes());
            }
            streams.at(StreamColumn::new(StreamColumn::TABLES + table, 0)).unwrap().numbers.extend(0..9);
        }
        streams
    }

    #[test]
    fn texts_are_taken_by_any_number_of_threads_and_damaged_by_none_without_an_error() {
        let streams = texts();
        let mut packed = Vec::new();
        streams.pack(&[], Level::Default, &mut FormerColumns::default(), &mut packed).unwrap();
        let size = streams.memory();
        for threads in [1, 2, 3, 16] {
            let back = Streams::unpack(&mut Taker::new(&packed), size, true, threads).unwrap();
            assert!(content(&back) == content(&streams), "{threads}");
        }
        // The whole of it doesn't fit into a block so small, whoever counts.
        let small = streams.memory() / 40;
        let errors = [1, 2, 3].map(|threads| {
            Streams::unpack(&mut Taker::new(&packed), small, true, threads).unwrap_err().to_string()
        });
        assert!(
            errors.iter().all(|error| error.contains("more than") || error.contains("no more than")),
            "{errors:?}"
        );
        for at in (0..packed.len()).step_by(packed.len() / 30 + 1) {
            let mut bad = packed.clone();
            bad[at] ^= 0x55;
            let [one, many] =
                [1, 3].map(|threads| Streams::unpack(&mut Taker::new(&bad), size, true, threads));
            assert_eq!(one.is_ok(), many.is_ok(), "{at}");
            assert!(one.is_err() || content(&one.unwrap()) == content(&many.unwrap()), "{at}");
        }
    }

    /// A pool of numbers of these members and counts.
    fn pool(members: &[i64], counts: &[i64], values: &[i64]) -> Result<Streams> {
        let mut packed = vec![0, 1, 16, NUMBERS];
        numbers::pack_alone(members, Level::Default, &mut packed).unwrap();
        numbers::pack_alone(counts, Level::Default, &mut packed).unwrap();
        numbers::pack_alone(values, Level::Default, &mut packed).unwrap();
        Streams::unpack(&mut Taker::new(&packed), SIZE, true, 1)
    }

    #[test]
    fn pools_that_do_not_add_up_are_refused() {
        assert!(pool(&[256, 1], &[1, 2], &[7, 8, 9]).is_ok());
        for (members, counts, values) in [
            (&[255, 1][..], &[1, 2][..], &[7, 8, 9][..]),
            (&[256, 0], &[1, 2], &[7, 8, 9]),
            (&[256, -300], &[1, 2], &[7, 8, 9]),
            (&[256, 1 << 40], &[1, 2], &[7, 8, 9]),
            (&[256, 1], &[1], &[7]),
            (&[256, 1], &[1, 1], &[7, 8, 9]),
            (&[256, 1], &[1, 3], &[7, 8, 9]),
            (&[256, 1], &[3, 0], &[7, 8, 9]),
            (&[256, 1], &[-1, 4], &[7, 8, 9]),
            (&[256, 1], &[1, i64::MAX], &[7, 8, 9]),
        ] {
            assert!(pool(members, counts, values).is_err(), "{members:?} {counts:?}");
        }
    }
}
