//! The values of a picked column, by image, one after the other.

use std::ops::Range;

use super::{no_row, too_many};
use crate::block::form::ValueWalk;
use crate::block::walk::ByteOrder;
use crate::codec::strings::StringList;
use crate::error::{Error, Result};

/// A column's values, by image.
#[derive(Debug)]
pub(super) struct ColumnCells {
    pub(super) form: ValueWalk,
    /// Whether values are left out: each is empty.
    pub(super) is_bare: bool,
    pub(super) states: Vec<CellState>,
    pub(super) bytes: Vec<u8>,
    /// Where each value ends, if it isn't of a fixed size.
    pub(super) ends: Vec<u32>,
    /// The most bytes that they have together, then.
    pub(super) texts_max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellState {
    Absent,
    Null,
    Value,
    /// The differences of a document from the one before the change.
    Differences,
}

/// A value, or why there is none.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueContent<'a> {
    None(CellState),
    Value(&'a [u8]),
    Differences(&'a [u8]),
}

impl ColumnCells {
    pub(super) fn new(form: ValueWalk) -> Self {
        ColumnCells {
            form,
            is_bare: false,
            states: Vec::new(),
            bytes: Vec::new(),
            ends: Vec::new(),
            texts_max: u32::MAX,
        }
    }

    /// Cells that only tell whether there are values.
    pub(super) fn bare() -> Self {
        ColumnCells { is_bare: true, ..ColumnCells::new(ValueWalk::Fixed { size: 0 }) }
    }

    /// These without their values.
    pub(super) fn anew(&self) -> Self {
        ColumnCells { is_bare: self.is_bare, ..ColumnCells::new(self.form) }
    }

    /// Makes room for this many images.
    pub(super) fn reserve(&mut self, images: usize) {
        self.states.reserve_exact(images);
        match self.stride() {
            // A number is written with 8 bytes first.
            Some(stride) => self.bytes.reserve_exact(images * stride + size_of::<i64>()),
            None => self.ends.reserve_exact(images),
        }
    }

    /// The bytes of each value, if they are as many.
    pub(super) fn stride(&self) -> Option<usize> {
        match self.form {
            ValueWalk::Number { size, .. } | ValueWalk::Fixed { size } => Some(size),
            ValueWalk::Prefixed { .. } => None,
        }
    }

    /// Where the bytes of a value are, or why there are none.
    #[inline]
    pub(super) fn range(&self, image: usize) -> Result<Range<usize>, CellState> {
        match self.states.get(image).copied().unwrap_or(CellState::Absent) {
            CellState::Value | CellState::Differences => {}
            state @ (CellState::Absent | CellState::Null) => return Err(state),
        }
        Ok(match self.stride() {
            Some(stride) => image * stride..(image + 1) * stride,
            None => {
                let start = image.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
                let end = self.ends.get(image).copied().unwrap_or_default();
                start.unwrap_or_default() as usize..end as usize
            }
        })
    }

    /// Where the bytes of an image's value are, if it has a whole one.
    #[inline]
    pub(super) fn value_range(&self, image: usize) -> Option<Range<usize>> {
        let is_whole = self.states.get(image) == Some(&CellState::Value);
        is_whole.then(|| self.range(image).ok())?
    }

    /// Whether all these images have a whole value.
    pub(super) fn has_all(&self, images: Range<usize>) -> bool {
        self.states.get(images).is_some_and(|states| states.iter().all(|&state| state == CellState::Value))
    }

    /// Bytes of the values of these images.
    pub(super) fn size(&self, images: Range<usize>) -> usize {
        let end_of = |image: usize| self.ends.get(image).copied().unwrap_or_default() as usize;
        match self.stride() {
            Some(stride) => images.len() * stride,
            None => {
                let start = images.start.checked_sub(1).map_or(0, end_of);
                images.end.checked_sub(1).map_or(0, end_of).saturating_sub(start)
            }
        }
    }

    #[inline]
    pub(super) fn get(&self, image: usize) -> ValueContent<'_> {
        let bytes = match self.range(image) {
            Ok(range) => self.bytes.get(range).unwrap_or_default(),
            Err(state) => return ValueContent::None(state),
        };
        match self.states.get(image) {
            Some(CellState::Differences) => ValueContent::Differences(bytes),
            _ => ValueContent::Value(bytes),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, content: ValueContent<'_>) -> Result<()> {
        let (state, value) = match content {
            ValueContent::None(state) => (state, None),
            ValueContent::Value(value) => (CellState::Value, Some(value)),
            ValueContent::Differences(value) => (CellState::Differences, Some(value)),
        };
        let value = if self.is_bare { value.map(|_| &[][..]) } else { value };
        match (self.stride(), value) {
            (Some(stride), Some(value)) if value.len() == stride => self.bytes.extend_from_slice(value),
            (Some(_), Some(value)) => {
                return Err(Error::damaged(
                    "value",
                    format!("{} bytes", value.len()),
                    "as many as its type has",
                ));
            }
            (Some(stride), None) => self.bytes.resize(self.bytes.len() + stride, 0),
            (None, value) => {
                self.bytes.extend_from_slice(value.unwrap_or_default());
                self.end_text()?;
            }
        }
        self.states.push(state);
        Ok(())
    }

    /// Appends images without a value.
    pub(super) fn push_none(&mut self, state: CellState, count: usize) {
        match self.stride() {
            Some(stride) => self.bytes.resize(self.bytes.len() + stride * count, 0),
            None => {
                let end = self.ends.last().copied().unwrap_or_default();
                self.ends.resize(self.ends.len() + count, end);
            }
        }
        self.states.resize(self.states.len() + count, state);
    }

    /// Appends texts, which aren't of a fixed size.
    pub(super) fn push_texts(&mut self, texts: &StringList, range: Range<usize>) -> Result<()> {
        let (bytes, ends) = texts.run(range).ok_or_else(no_row)?;
        let start = self.bytes.len();
        let size = u32::try_from(start + bytes.len()).ok().filter(|&size| size <= self.texts_max);
        size.ok_or_else(too_many)?;
        self.bytes.extend_from_slice(bytes);
        self.states.resize(self.states.len() + ends.len(), CellState::Value);
        self.ends.extend(ends.map(|end| (start + end) as u32));
        Ok(())
    }

    /// Appends a number of `size` bytes, 1 to 8: the column's.
    #[inline]
    pub(super) fn push_number(&mut self, number: i64, size: usize, order: ByteOrder) {
        let bytes = match order {
            ByteOrder::Low => number.to_le_bytes(),
            ByteOrder::High => (number << (u64::BITS - 8 * size as u32)).swap_bytes().to_le_bytes(),
        };
        let end = self.bytes.len() + size;
        self.bytes.extend(bytes);
        self.bytes.truncate(end);
        self.states.push(CellState::Value);
    }

    /// Appends numbers of `size` bytes each, 8 at most: the column's.
    pub(super) fn push_numbers(&mut self, numbers: &[i64], size: usize, order: ByteOrder) {
        match size {
            0 => {}
            1 => self.push_sized::<1>(numbers, order),
            2 => self.push_sized::<2>(numbers, order),
            3 => self.push_sized::<3>(numbers, order),
            4 => self.push_sized::<4>(numbers, order),
            5 => self.push_sized::<5>(numbers, order),
            6 => self.push_sized::<6>(numbers, order),
            7 => self.push_sized::<7>(numbers, order),
            _ => self.push_sized::<8>(numbers, order),
        }
        self.states.resize(self.states.len() + numbers.len(), CellState::Value);
    }

    fn push_sized<const SIZE: usize>(&mut self, numbers: &[i64], order: ByteOrder) {
        let start = self.bytes.len();
        self.bytes.resize(start + numbers.len() * SIZE, 0);
        let (places, _) = self.bytes.get_mut(start..).unwrap_or_default().as_chunks_mut::<SIZE>();
        for (place, number) in places.iter_mut().zip(numbers) {
            let low = number.to_le_bytes();
            let high = number.swap_bytes().to_le_bytes();
            let bytes = if order == ByteOrder::Low { low.first_chunk() } else { high.last_chunk() };
            *place = bytes.copied().unwrap_or([0; SIZE]);
        }
    }

    /// Adds the value that an earlier image has.
    pub(super) fn push_again(&mut self, image: usize) -> Result<()> {
        match self.range(image) {
            Err(state) => self.push(ValueContent::None(state)),
            Ok(range) if range.end > self.bytes.len() => Err(no_row()),
            Ok(range) => {
                self.bytes.extend_from_within(range);
                if self.stride().is_none() {
                    self.end_text()?;
                }
                self.states.push(self.states.get(image).copied().unwrap_or(CellState::Value));
                Ok(())
            }
        }
    }

    fn end_text(&mut self) -> Result<()> {
        let end = u32::try_from(self.bytes.len()).ok().filter(|&end| end <= self.texts_max);
        self.ends.push(end.ok_or_else(too_many)?);
        Ok(())
    }

    pub(super) fn memory(&self) -> usize {
        self.states.len() + self.bytes.len() + self.ends.len() * 4
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use super::*;

    #[test]
    fn texts_take_no_more_than_their_blocks_bytes() {
        let mut cells = ColumnCells::new(ValueWalk::Prefixed { prefix: 1 });
        cells.texts_max = 15;
        cells.push(ValueContent::Value(b"again")).unwrap();
        cells.push_again(0).unwrap();
        cells.push_again(0).unwrap();
        assert!(cells.push_again(0).is_err());
        assert!(cells.push(ValueContent::Value(b"new")).is_err());
    }

    #[test]
    fn texts_that_are_pushed_at_once_are_those_that_are_pushed_one_by_one() {
        let mut texts = StringList::new();
        [&b"not taken"[..], b"one", b"", b"three"].iter().for_each(|text| texts.push(text));
        let mut cells = ColumnCells::new(ValueWalk::Prefixed { prefix: 1 });
        cells.texts_max = 14;
        cells.push(ValueContent::Value(b"before")).unwrap();
        cells.push_texts(&texts, 1..4).unwrap();
        let values: Vec<_> =
            (0..4).map(|image| cells.value_range(image).map(|range| &cells.bytes[range])).collect();
        assert_eq!(values, [Some(&b"before"[..]), Some(b"one"), Some(b""), Some(b"three")]);
        assert_eq!([cells.size(0..1), cells.size(1..4), cells.size(2..3)], [6, 8, 0]);
        assert!(cells.push_texts(&texts, 1..2).is_err(), "more bytes than its block has");
        assert!(cells.push_texts(&texts, 2..5).is_err(), "there are four texts");
        let mut bare = ColumnCells::bare();
        bare.push(ValueContent::Value(b"left out")).unwrap();
        bare.push(ValueContent::None(CellState::Null)).unwrap();
        assert_eq!([bare.value_range(0), bare.value_range(1)], [Some(0..0), None]);
    }
}
