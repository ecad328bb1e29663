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
    alone: Vec<LoneColumn<'a>>,
    pools: Vec<Pool<'a>>,
    /// Numbers that were taken: partners are needed again.
    taken: HashMap<usize, Arc<Vec<i64>>>,
    taken_pools: HashMap<usize, Arc<Vec<i64>>>,
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

/// A column that is coded alone.
#[derive(Debug)]
struct LoneColumn<'a> {
    code: Taker<'a>,
    /// Which of the columns before it is its partner.
    partner: Option<usize>,
}

#[derive(Debug)]
struct Pool<'a> {
    code: Taker<'a>,
    partner: Option<usize>,
}

impl<'a> SparseStreams<'a> {
    /// Finds the columns of a block of `size` bytes, with its pools.
    pub(crate) fn find(from: &mut Taker<'a>, size: usize) -> Result<Self> {
        let mut streams = SparseStreams {
            places: HashMap::new(),
            alone: Vec::new(),
            pools: Vec::new(),
            taken: HashMap::new(),
            taken_pools: HashMap::new(),
            size,
            memory: size.saturating_mul(MEMORY_FACTOR).saturating_add(MEMORY_SMALL),
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
            let number = streams.alone.len();
            let code = *from;
            let mut partner = None;
            match kind {
                NUMBERS => {
                    let (count, back) = numbers::outline(code)?;
                    partner = partner_of(&before, back)?;
                    numbers::pass(from)?;
                    if count > 0 {
                        before.push(number);
                    }
                }
                STRINGS => strings::pass(from, size)?,
                other => return Err(Error::damaged("column", format!("kind {other}"), "0 or 1")),
            }
            streams.memory = streams.memory.checked_sub(STREAM_COST).ok_or_else(|| too_much(0))?;
            streams.alone.push(LoneColumn { code, partner });
            streams.put((group, slot, kind), ColumnPlace::Alone(number))?;
        }
        streams.find_pools(from)?;
        Ok(streams)
    }

    fn find_pools(&mut self, from: &mut Taker<'a>) -> Result<()> {
        for number in 0..from.at_most(POOLS_MAX, "count of pools")? {
            let slot = from.at_most(SLOTS_MAX as u64, "slot")?;
            let kind = from.byte()?;
            let members = numbers::unpack(from, &[], GROUPS_MAX.min(self.size))?;
            let counts = numbers::unpack(from, &[], members.len())?;
            let used = (members.len() + 1) * STREAM_COST;
            self.memory = self.memory.checked_sub(used).ok_or_else(|| too_much(used))?;
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
                STRINGS => strings::pass(from, self.size)?,
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
            self.pools.push(Pool { code, partner });
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
                let numbers = self.alone(number)?;
                // Taken out, unless another column needs it; then it is unpacked again.
                self.taken.remove(&number);
                Ok(Arc::unwrap_or_clone(numbers))
            }
            Some(ColumnPlace::Pool(number, range)) => {
                let numbers = self.pool(number)?;
                numbers.get(range).map(<[i64]>::to_vec).ok_or_else(short_pool)
            }
        }
    }

    /// The strings of a column; none, if there is no such column.
    pub(crate) fn strings(&mut self, column: StreamColumn) -> Result<StringList> {
        let place = self.places.get(&(column.group, column.slot, STRINGS)).cloned();
        let code = match &place {
            None => None,
            Some(ColumnPlace::Alone(number)) => self.alone.get(*number).map(|alone| alone.code),
            Some(ColumnPlace::Pool(number, _)) => self.pools.get(*number).map(|pool| pool.code),
        };
        let Some(mut code) = code else { return Ok(StringList::new()) };
        let strings =
            strings::unpack(&mut code, (self.memory / 8).min(self.size), self.memory.min(self.size))?;
        self.used(strings.len() * 8 + strings.size())?;
        match place {
            Some(ColumnPlace::Pool(_, range)) if range.end > strings.len() => Err(short_pool()),
            Some(ColumnPlace::Pool(_, range)) => Ok(strings.part(range)),
            _ => Ok(strings),
        }
    }

    fn alone(&mut self, number: usize) -> Result<Arc<Vec<i64>>> {
        if let Some(taken) = self.taken.get(&number) {
            return Ok(Arc::clone(taken));
        }
        // From the column that needs no partner on.
        let mut chain = vec![number];
        while let Some(partner) = chain.last().and_then(|last| self.alone.get(*last)?.partner)
            && !self.taken.contains_key(&partner)
        {
            chain.push(partner);
        }
        while let Some(next) = chain.pop() {
            let Some(LoneColumn { code, partner }) = self.alone.get(next) else { continue };
            let partner = partner.and_then(|partner| self.taken.get(&partner));
            let numbers = self.unpack(*code, partner.map(Arc::clone))?;
            self.taken.insert(next, Arc::new(numbers));
        }
        self.taken.get(&number).cloned().ok_or_else(short_pool)
    }

    fn pool(&mut self, number: usize) -> Result<Arc<Vec<i64>>> {
        if let Some(taken) = self.taken_pools.get(&number) {
            return Ok(Arc::clone(taken));
        }
        let mut chain = vec![number];
        while let Some(partner) = chain.last().and_then(|last| self.pools.get(*last)?.partner)
            && !self.taken_pools.contains_key(&partner)
        {
            chain.push(partner);
        }
        while let Some(next) = chain.pop() {
            let Some(Pool { code, partner }) = self.pools.get(next) else { continue };
            let partner = partner.and_then(|partner| self.taken_pools.get(&partner));
            let numbers = self.unpack(*code, partner.map(Arc::clone))?;
            self.taken_pools.insert(next, Arc::new(numbers));
        }
        self.taken_pools.get(&number).cloned().ok_or_else(short_pool)
    }

    fn unpack(&mut self, mut code: Taker<'_>, partner: Option<Arc<Vec<i64>>>) -> Result<Vec<i64>> {
        let (_, back) = numbers::outline(code)?;
        // Only the partner's place counts.
        let mut before: Vec<&[i64]> =
            vec![&[]; usize::try_from(back).unwrap_or(usize::MAX).min(PARTNERS_MAX)];
        if let (Some(first), Some(partner)) = (before.first_mut(), &partner) {
            *first = partner;
        }
        let numbers = numbers::unpack(&mut code, &before, (self.memory / 8).min(self.size))?;
        self.used(numbers.len() * 8)?;
        Ok(numbers)
    }

    fn used(&mut self, bytes: usize) -> Result<()> {
        self.memory = self.memory.checked_sub(bytes).ok_or_else(|| too_much(bytes))?;
        Ok(())
    }
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
