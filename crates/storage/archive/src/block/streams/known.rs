//! The columns of a block as they were packed before: those that have the same values keep their code.
//!
//! An erasure changes few of a block's columns, and coding a column takes far longer than comparing it. A column of numbers may be coded by an
//! earlier one of its group, so its code is kept only if the earlier one is unchanged, too.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{ColumnStream, NUMBERS, STRINGS, StreamColumn, Streams};
use crate::codec::numbers;
use crate::codec::strings::{self, StringList};
use crate::codec::varint::Taker;
use crate::error::Result;

/// A column by its group, slot and kind.
type ColumnName = (usize, usize, u8);

/// The columns of a block that was packed before.
#[derive(Debug, Default)]
pub(crate) struct FormerColumns {
    packed: Vec<u8>,
    streams: Streams,
    codes: HashMap<ColumnName, Range<usize>>,
    /// The columns of numbers of each group, in order.
    numbers: HashMap<usize, Vec<usize>>,
    /// The columns whose codes were kept.
    kept: HashSet<ColumnName>,
}

/// Where the codes of columns are: each with how many bytes were left before and after it.
#[derive(Debug, Default)]
pub(crate) struct CodePlaces(Vec<(ColumnName, usize, usize)>);

impl CodePlaces {
    pub(super) fn note(&mut self, column: StreamColumn, kind: u8, (before, after): (usize, usize)) {
        self.0.push(((column.group, column.slot, kind), before, after));
    }
}

impl FormerColumns {
    /// The columns of a packed block, with their codes at these places.
    pub(crate) fn new(packed: Vec<u8>, streams: Streams, places: CodePlaces) -> Self {
        let mut former = FormerColumns { streams, ..FormerColumns::default() };
        for ((group, slot, kind), before, after) in places.0 {
            former.codes.insert((group, slot, kind), packed.len() - before..packed.len() - after);
            if kind == NUMBERS {
                former.numbers.entry(group).or_default().push(slot);
            }
        }
        former.packed = packed;
        former
    }

    /// Whether there is none.
    pub(crate) fn is_none(&self) -> bool {
        self.codes.is_empty()
    }

    /// Begins a group.
    pub(super) fn group(&mut self, group: usize) -> FormerGroup<'_> {
        FormerGroup { group, former: self, is_same: Vec::new() }
    }

    /// Takes a column of numbers whose code was kept.
    pub(super) fn take_numbers(&self, column: StreamColumn, from: &mut Taker<'_>) -> Option<Vec<i64>> {
        self.take(column, NUMBERS, from).map(|stream| stream.numbers.clone())
    }

    /// Takes a column of strings whose code was kept.
    pub(super) fn take_strings(&self, column: StreamColumn, from: &mut Taker<'_>) -> Option<StringList> {
        self.take(column, STRINGS, from).map(|stream| stream.strings.clone())
    }

    fn take(&self, column: StreamColumn, kind: u8, from: &mut Taker<'_>) -> Option<&ColumnStream> {
        let name = (column.group, column.slot, kind);
        let code = self.kept.contains(&name).then(|| self.code(name))??;
        from.skip(code).then(|| self.stream(column.group, column.slot))?
    }

    fn code(&self, column: ColumnName) -> Option<&[u8]> {
        self.packed.get(self.codes.get(&column)?.clone())
    }

    fn stream(&self, group: usize, slot: usize) -> Option<&ColumnStream> {
        self.streams.groups.get(group)?.get(slot)
    }
}

/// A group of which the columns are packed in order.
pub(super) struct FormerGroup<'f> {
    group: usize,
    former: &'f mut FormerColumns,
    /// Of the columns of numbers so far, whether each is the same.
    is_same: Vec<bool>,
}

impl FormerGroup<'_> {
    /// The code of the next column of numbers, if it can stay.
    pub(super) fn numbers(&mut self, slot: usize, numbers: &[i64]) -> Option<&[u8]> {
        let own = self.former.numbers.get(&self.group);
        let is_in_place = own.and_then(|own| own.get(self.is_same.len())) == Some(&slot);
        let is_same = is_in_place
            && self.former.stream(self.group, slot).is_some_and(|stream| stream.numbers == numbers);
        let code = self.former.code((self.group, slot, NUMBERS)).filter(|_| is_same);
        let stays =
            code.is_some_and(|code| self.has(numbers::outline(Taker::new(code)).map(|(_, back)| back)));
        self.is_same.push(is_same);
        self.keep(slot, NUMBERS, stays)
    }

    /// The code of the next column of strings, if it can stay.
    pub(super) fn strings(&mut self, slot: usize, strings: &StringList) -> Option<&[u8]> {
        let is_same = self.former.stream(self.group, slot).is_some_and(|stream| stream.strings == *strings);
        let code = self.former.code((self.group, slot, STRINGS)).filter(|_| is_same);
        let stays = code.is_some_and(|code| self.has(strings::outline(Taker::new(code))));
        self.keep(slot, STRINGS, stays)
    }

    /// Whether the column so many columns back is as it was; 0: none is needed.
    fn has(&self, back: Result<u64>) -> bool {
        let Ok(back) = back else { return false };
        let place = usize::try_from(back).ok().and_then(|back| self.is_same.len().checked_sub(back));
        back == 0 || place.and_then(|place| self.is_same.get(place)).copied().unwrap_or_default()
    }

    fn keep(&mut self, slot: usize, kind: u8, stays: bool) -> Option<&[u8]> {
        let name = (self.group, slot, kind);
        if stays {
            self.former.kept.insert(name);
        }
        self.former.code(name).filter(|_| stays)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::content;
    use super::*;
    use crate::codec::Level;

    const GROUP: usize = StreamColumn::TABLES;
    const SIZE: usize = 1 << 20;

    /// Columns of a table: a key, one that follows it, one of its own, texts.
    fn streams(change: &dyn Fn(&mut Streams)) -> Streams {
        let mut streams = Streams::default();
        let mut state = 1i64;
        for row in 0..3000i64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mut put = |slot, number| {
                streams.at(StreamColumn::new(GROUP, slot)).unwrap().numbers.push(number);
            };
            put(0, state >> 20);
            put(8, (state >> 20) + row % 3);
            put(16, row % 7);
            let text = format!("text {} of {row}", state >> 40);
            streams.at(StreamColumn::new(GROUP, 24)).unwrap().strings.push(text.as_bytes());
        }
        change(&mut streams);
        streams
    }

    /// The columns of a block as it was packed, and what was packed after it, with the slots whose codes stayed.
    fn packed_after(former: &Streams, now: &Streams) -> (Vec<u8>, Vec<usize>) {
        let mut packed = Vec::new();
        former.pack(&[], Level::Fast, &mut FormerColumns::default(), &mut packed).unwrap();
        let mut places = CodePlaces::default();
        let taken = Streams::unpack_noting(&mut Taker::new(&packed), SIZE, true, &mut places).unwrap();
        let mut former = FormerColumns::new(packed, taken, places);
        let mut packed = Vec::new();
        now.pack(&[], Level::Fast, &mut former, &mut packed).unwrap();
        let mut from = Taker::new(&packed);
        let back = Streams::unpack_after(&mut from, SIZE, &former).unwrap();
        assert!(from.left() == 0 && content(&back) == content(now));
        let mut slots: Vec<_> = former.kept.iter().map(|(_, slot, _)| *slot).collect();
        slots.sort_unstable();
        (packed, slots)
    }

    #[test]
    fn columns_with_the_same_values_keep_their_code_unless_their_partner_changed() {
        let own = streams(&|_| {});
        let alone = |streams: &Streams| {
            let mut packed = Vec::new();
            streams.pack(&[], Level::Fast, &mut FormerColumns::default(), &mut packed).unwrap();
            packed
        };
        let (packed, slots) = packed_after(&own, &own);
        assert_eq!(slots, [0, 8, 16, 24]);
        assert!(packed == alone(&own));
        let cases: [(usize, &[usize]); 4] =
            [(0, &[16, 24]), (8, &[0, 16, 24]), (16, &[0, 8, 24]), (24, &[0, 8, 16])];
        for (changed, expected) in cases {
            let now = streams(&|streams| {
                let stream = streams.at(StreamColumn::new(GROUP, changed)).unwrap();
                match changed {
                    24 => stream.strings.push(b"more"),
                    _ => stream.numbers[1500] = 12_345_678_901,
                }
            });
            let (packed, slots) = packed_after(&own, &now);
            assert_eq!(slots, expected, "{changed}");
            assert!(
                content(&Streams::unpack(&mut Taker::new(&packed), SIZE, true, 1).unwrap()) == content(&now)
            );
            assert!(packed == alone(&now), "{changed}");
        }
    }
}
