//! Some columns of a block; the others are skipped. A column is unpacked when a caller asks for it, since the tables'
//! numbers are known only once the table maps are.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::{
    GROUPS_MAX, MEMORY_FACTOR, MEMORY_SMALL, NUMBERS, POOLS_MAX, SLOTS_MAX, STREAM_COST, STRINGS,
    StreamColumn, too_much,
};
use crate::codec::numbers;
use crate::codec::strings::{self, StringList};
use crate::codec::varint::Taker;
use crate::error::{Error, Result};

/// Where the columns of a block are.
#[derive(Debug)]
pub(crate) struct SparseStreams<'a> {
    /// By group, slot and kind.
    places: HashMap<(usize, usize, u8), ColumnPlace>,
    /// Columns that are coded alone.
    alone: PartneredColumns<'a>,
    pools: PartneredColumns<'a>,
    room: UnpackRoom,
}

/// Room for what is unpacked.
#[derive(Debug)]
struct UnpackRoom {
    /// Plain bytes of the block.
    size: usize,
    /// Memory that columns may still take.
    memory: usize,
}

/// A column's place.
#[derive(Debug, Clone)]
enum ColumnPlace {
    Alone(usize),
    /// Which of the pools, and which of its values.
    Pool(usize, Range<usize>),
}

/// Columns, or pools, of which each may have a partner among those before it.
#[derive(Debug, Default)]
struct PartneredColumns<'a> {
    columns: Vec<PartneredColumn<'a>>,
    /// Numbers that were taken: partners are needed again.
    taken: HashMap<usize, Arc<Vec<i64>>>,
}

#[derive(Debug, Clone, Copy)]
struct PartneredColumn<'a> {
    code: Taker<'a>,
    /// Which of the columns before it is its partner or key.
    partner: Option<usize>,
}

impl<'a> PartneredColumns<'a> {
    fn numbers(&mut self, number: usize, room: &mut UnpackRoom) -> Result<Arc<Vec<i64>>> {
        if let Some(taken) = self.taken.get(&number) {
            return Ok(Arc::clone(taken));
        }
        // From the column that needs no partner on.
        let mut chain = vec![number];
        while let Some(partner) = chain.last().and_then(|last| self.columns.get(*last)?.partner)
            && !self.taken.contains_key(&partner)
        {
            chain.push(partner);
        }
        while let Some(next) = chain.pop() {
            let Some(PartneredColumn { code, partner }) = self.columns.get(next) else { continue };
            let partner = partner.and_then(|partner| self.taken.get(&partner));
            let numbers = room.unpack(*code, partner)?;
            self.taken.insert(next, Arc::new(numbers));
        }
        self.taken.get(&number).cloned().ok_or_else(short_pool)
    }
}

impl<'a> SparseStreams<'a> {
    /// Finds the columns of a block of `size` bytes, with its pools.
    pub(crate) fn find(from: &mut Taker<'a>, size: usize) -> Result<Self> {
        let mut streams = SparseStreams {
            places: HashMap::new(),
            alone: PartneredColumns::default(),
            pools: PartneredColumns::default(),
            room: UnpackRoom {
                size,
                memory: size.saturating_mul(MEMORY_FACTOR).saturating_add(MEMORY_SMALL),
            },
        };
        let mut group = 0usize;
        let mut slot_min = 0;
        // The group's columns of numbers so far.
        let mut before: Vec<usize> = Vec::new();
        loop {
            let step = from.at_most(GROUPS_MAX as u64, "group")?;
            if step == 0 {
                break;
            }
            if step > 1 {
                slot_min = 0;
                before.clear();
            }
            group += step - 1;
            let slot = from.at_most(SLOTS_MAX as u64, "slot")?;
            if slot < slot_min {
                let found = format!("slot {slot} after slot {slot_min}");
                return Err(Error::damaged("columns", found, "rising slots"));
            }
            slot_min = slot;
            let kind = from.byte()?;
            let number = streams.alone.columns.len();
            let code = *from;
            let partner = match kind {
                NUMBERS => {
                    let (count, back) = numbers::outline(code)?;
                    let partner = partner_of(&before, back)?;
                    numbers::pass(from)?;
                    if count > 0 {
                        before.push(number);
                    }
                    partner
                }
                STRINGS => {
                    strings::pass(from, size)?;
                    partner_of(&before, strings::outline(code)?)?
                }
                other => return Err(Error::damaged("column", format!("kind {other}"), "0 or 1")),
            };
            streams.room.memory = streams.room.memory.checked_sub(STREAM_COST).ok_or_else(|| too_much(0))?;
            streams.alone.columns.push(PartneredColumn { code, partner });
            streams.put((group, slot, kind), ColumnPlace::Alone(number))?;
        }
        streams.find_pools(from)?;
        Ok(streams)
    }

    fn find_pools(&mut self, from: &mut Taker<'a>) -> Result<()> {
        for number in 0..from.at_most(POOLS_MAX, "count of pools")? {
            let slot = from.at_most(SLOTS_MAX as u64, "slot")?;
            let kind = from.byte()?;
            let members = numbers::unpack(from, &[], GROUPS_MAX.min(self.room.size))?;
            let counts = numbers::unpack(from, &[], members.len())?;
            self.room.use_up((members.len() + 1) * STREAM_COST)?;
            if counts.len() != members.len() {
                let found = format!("{} counts", counts.len());
                return Err(Error::damaged("pool", found, "one for each member"));
            }
            let code = *from;
            let mut partner = None;
            match kind {
                NUMBERS => {
                    // A pool of strings counts as one of no numbers.
                    let (_, back) = numbers::outline(code)?;
                    if back > 0 {
                        let place = number.checked_sub(usize::try_from(back).unwrap_or(usize::MAX));
                        partner = Some(place.ok_or_else(|| no_partner(back, number))?);
                    }
                    numbers::pass(from)?;
                }
                STRINGS => strings::pass(from, self.room.size)?,
                other => return Err(Error::damaged("pool", format!("kind {other}"), "0 or 1")),
            }
            let mut group = 0i64;
            let mut at = 0usize;
            for (step, count) in members.iter().zip(&counts) {
                group = group.wrapping_add(*step);
                let column = usize::try_from(group).ok().filter(|&group| group >= StreamColumn::TABLES);
                let end = usize::try_from(*count).ok().and_then(|count| at.checked_add(count));
                let (Some(column), Some(end)) = (column, end) else {
                    let found = format!("group {group} with {count} values");
                    return Err(Error::damaged("pool", found, "a table's group, and values of it"));
                };
                self.put((column, slot, kind), ColumnPlace::Pool(number, at..end))?;
                at = end;
            }
            self.pools.columns.push(PartneredColumn { code, partner });
        }
        Ok(())
    }

    fn put(&mut self, column: (usize, usize, u8), place: ColumnPlace) -> Result<()> {
        match self.places.insert(column, place) {
            None => Ok(()),
            Some(_) => {
                Err(Error::damaged("columns", format!("group {} again", column.0), "each column once"))
            }
        }
    }

    /// The numbers of a column; none, if there is no such column.
    pub(crate) fn numbers(&mut self, column: StreamColumn) -> Result<Vec<i64>> {
        match self.places.get(&(column.group, column.slot, NUMBERS)).cloned() {
            None => Ok(Vec::new()),
            Some(ColumnPlace::Alone(number)) => {
                let numbers = self.alone.numbers(number, &mut self.room)?;
                // Taken out, unless another column needs it; then it is unpacked again.
                self.alone.taken.remove(&number);
                Ok(Arc::unwrap_or_clone(numbers))
            }
            Some(ColumnPlace::Pool(number, range)) => {
                let numbers = self.pools.numbers(number, &mut self.room)?;
                numbers.get(range).map(<[i64]>::to_vec).ok_or_else(short_pool)
            }
        }
    }

    /// The strings of a column; none, if there is no such column.
    pub(crate) fn strings(&mut self, column: StreamColumn) -> Result<StringList> {
        let place = self.places.get(&(column.group, column.slot, STRINGS)).cloned();
        let column = match &place {
            None => None,
            Some(ColumnPlace::Alone(number)) => self.alone.columns.get(*number),
            Some(ColumnPlace::Pool(number, _)) => self.pools.columns.get(*number),
        };
        let Some(&PartneredColumn { mut code, partner }) = column else { return Ok(StringList::new()) };
        let key = match partner {
            Some(partner) => Some(self.alone.numbers(partner, &mut self.room)?),
            None => None,
        };
        let before = columns_back(strings::outline(code)?, key.as_ref());
        let UnpackRoom { size, memory } = self.room;
        let strings = strings::unpack(&mut code, &before, (memory / 8).min(size), memory.min(size))?;
        self.room.use_up(strings.len() * 8 + strings.size())?;
        match place {
            Some(ColumnPlace::Pool(_, range)) if range.end > strings.len() => Err(short_pool()),
            Some(ColumnPlace::Pool(_, range)) => Ok(strings.part(range)),
            _ => Ok(strings),
        }
    }
}

impl UnpackRoom {
    fn unpack(&mut self, mut code: Taker<'_>, partner: Option<&Arc<Vec<i64>>>) -> Result<Vec<i64>> {
        let (_, back) = numbers::outline(code)?;
        let before = columns_back(back, partner);
        let numbers = numbers::unpack(&mut code, &before, (self.memory / 8).min(self.size))?;
        self.use_up(numbers.len() * 8)?;
        Ok(numbers)
    }

    fn use_up(&mut self, bytes: usize) -> Result<()> {
        self.memory = self.memory.checked_sub(bytes).ok_or_else(|| too_much(bytes))?;
        Ok(())
    }
}

/// Columns of which only the one so many columns back counts.
fn columns_back(back: u64, column: Option<&Arc<Vec<i64>>>) -> Vec<&[i64]> {
    let mut columns: Vec<&[i64]> = vec![&[]; usize::try_from(back).unwrap_or(usize::MAX).min(PARTNERS_MAX)];
    if let (Some(first), Some(column)) = (columns.first_mut(), column) {
        *first = column;
    }
    columns
}

/// More columns back than any packer's partner is.
const PARTNERS_MAX: usize = 1 << 12;

/// The partner that is this many columns back.
fn partner_of(before: &[usize], back: u64) -> Result<Option<usize>> {
    if back == 0 {
        return Ok(None);
    }
    let place = usize::try_from(back).ok().filter(|back| *back <= PARTNERS_MAX);
    let partner = place.and_then(|back| before.get(before.len().checked_sub(back)?)).copied();
    partner.map(Some).ok_or_else(|| no_partner(back, before.len()))
}

fn no_partner(back: u64, count: usize) -> Error {
    Error::unexpected("partner", back, format_args!("at most {}", count.min(PARTNERS_MAX)))
}

fn short_pool() -> Error {
    Error::damaged("pool", "its end", "as many values as its members have")
}

#[cfg(test)]
mod tests {
    use super::super::Streams;
    use super::*;
    use crate::codec::Level;

    /// Rows of 30 vehicles in any order: where they are, as a geometry and as a double.
    fn tracks() -> Streams {
        let mut streams = Streams::default();
        let mut places: Vec<i64> = (0..30).map(|vehicle| 13_000_000 + vehicle * 77_777).collect();
        let mut state = 1u64;
        for _ in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let vehicle = (state >> 33) as usize % 30;
            places[vehicle] += (state >> 50) as i64 % 200;
            let degrees = (places[vehicle] as f64 / 1e6).to_le_bytes();
            let point = [&[0, 0, 0, 0, 1, 1, 0, 0, 0][..], &degrees, &degrees].concat();
            streams.at(StreamColumn::new(StreamColumn::TABLES, 16)).unwrap().numbers.push(vehicle as i64);
            streams.at(StreamColumn::new(StreamColumn::TABLES, 24)).unwrap().strings.push(&point);
            let double = i64::from_le_bytes(degrees);
            streams.at(StreamColumn::new(StreamColumn::TABLES, 32)).unwrap().numbers.push(double);
        }
        streams
    }

    #[test]
    fn columns_by_key_are_taken_with_their_key_alone() {
        let streams = tracks();
        let mut packed = Vec::new();
        streams.pack(&[], Level::Default, &mut crate::block::FormerColumns::default(), &mut packed).unwrap();
        // Two columns of steps of eight bits, a point's second coordinate, and the vehicles.
        assert!(packed.len() < 3000 * 6, "{}", packed.len());
        for slot in [24, 32] {
            let mut sparse = SparseStreams::find(&mut Taker::new(&packed), 1 << 20).unwrap();
            let column = StreamColumn::new(StreamColumn::TABLES, slot);
            let whole = &streams.groups[StreamColumn::TABLES][slot];
            assert!(sparse.numbers(column).unwrap() == whole.numbers, "{slot}");
            assert!(sparse.strings(column).unwrap() == whole.strings, "{slot}");
        }
    }
}
