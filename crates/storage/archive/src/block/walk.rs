//! One description of an event's layout for both directions. [`crate::block::layout`] walks over the fields.
//! The [`Dealer`] reads them from a log and deals them out to columns; the [`FieldGatherer`] takes them from the
//! columns and writes the log. Both have walked over the same bytes, so each may look back at them.

use std::ops::Range;

use binlogz_binlog::checksum::{CHECKSUM_SIZE, crc32};

use crate::block::streams::{ColumnStream, StreamColumn, Streams};
use crate::codec::delta;
use crate::error::{Error, Result};

/// The byte order of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrder {
    /// The lowest byte first; the highest bit is a sign.
    Low,
    /// The highest byte first; no sign.
    High,
}

/// An older value, with its length before it.
#[derive(Debug, Clone)]
pub(crate) enum OlderValue<'a> {
    /// In bytes that were walked over.
    Walked(Range<usize>),
    /// In another block, or a copy.
    Bytes(&'a [u8]),
}

impl<'a> OlderValue<'a> {
    pub(crate) fn bytes<'b>(&self, walked: &'b [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            OlderValue::Walked(range) => walked.get(range.clone()).unwrap_or_default(),
            OlderValue::Bytes(bytes) => bytes,
        }
    }
}

/// A walk over the fields of a block's events.
pub(crate) trait Walk {
    /// A number that is not in the log: the side that has the log derives it from the rest of the event.
    fn decide(&mut self, column: StreamColumn, find: impl FnOnce(&[u8], &[u8]) -> i64) -> Result<i64>;
    /// A field of 1 to 8 bytes, kept minus `base`.
    fn number(&mut self, column: StreamColumn, size: usize, order: ByteOrder, base: i64) -> Result<i64>;
    /// A field of this many bytes.
    fn fixed(&mut self, column: StreamColumn, size: usize) -> Result<Range<usize>>;
    /// A field preceded by its length, which takes 1 to 4 bytes.
    fn prefixed(&mut self, column: StreamColumn, prefix: usize) -> Result<()>;
    /// The rest of the event.
    fn rest(&mut self, column: StreamColumn) -> Result<Range<usize>>;
    /// A length-encoded integer in its shortest form.
    fn packed(&mut self, column: StreamColumn, base: i64) -> Result<i64>;
    /// Bytes that both sides know.
    fn known(&mut self, bytes: &[u8]) -> Result<()>;
    /// Bytes that repeat an earlier range of the log.
    fn again(&mut self, range: Range<usize>) -> Result<()>;
    /// `size` bytes that are in another block; `bytes` gives them when they have to be written.
    fn copy<'b>(&mut self, size: usize, bytes: impl FnOnce() -> Option<&'b [u8]>) -> Result<()>;
    /// A field preceded by its length, kept as its difference from an older one: `difference`, for the side that has
    /// the log.
    fn difference(
        &mut self,
        column: StreamColumn,
        prefix: usize,
        old: OlderValue<'_>,
        difference: &[u8],
    ) -> Result<()>;
    /// Writes into bytes that were walked over; does nothing when reading.
    fn put_back(&mut self, at: usize, bytes: &[u8]);
    /// Skips bytes that follow from others, to be put back later.
    fn skip(&mut self, size: usize) -> Result<()>;
    /// Excludes the last bytes of the event from the fields.
    fn leave_behind(&mut self, size: usize) -> Result<()>;
    /// The checksum of the event that began at `start`.
    fn checksum(&mut self, start: usize) -> Result<()>;
    /// Checks that the event's end was reached.
    fn finish(&mut self) -> Result<()>;
    /// All bytes walked over.
    fn walked(&self) -> &[u8];
}

/// Deals the fields of a log out to columns.
#[derive(Debug)]
pub(crate) struct Dealer<'a> {
    log: &'a [u8],
    at: usize,
    end: usize,
    pub(crate) streams: Streams,
    /// Columns that the current event was dealt out to, and what they held before.
    journal: Vec<(StreamColumn, usize, usize)>,
    /// The event's number.
    event: u64,
    began: usize,
}

impl<'a> Dealer<'a> {
    pub(crate) fn new(log: &'a [u8]) -> Self {
        Dealer { log, at: 0, end: 0, streams: Streams::default(), journal: Vec::new(), event: 0, began: 0 }
    }

    /// Begins an event that ends at `end`.
    pub(crate) fn begin(&mut self, end: usize) {
        self.began = self.at;
        self.end = end;
        self.event += 1;
        self.journal.clear();
    }

    /// Takes back the fields that the current event has dealt out.
    pub(crate) fn undo(&mut self) {
        self.at = self.began;
        while let Some((column, numbers, strings)) = self.journal.pop() {
            if let Ok(stream) = self.streams.at(column) {
                stream.numbers.truncate(numbers);
                stream.strings.truncate(strings);
            }
        }
    }

    /// The column to deal out to.
    #[inline]
    fn stream(&mut self, column: StreamColumn) -> Result<&mut ColumnStream> {
        let stream = self.streams.at(column)?;
        if stream.event != self.event {
            stream.event = self.event;
            self.journal.push((column, stream.numbers.len(), stream.strings.len()));
        }
        Ok(stream)
    }

    #[inline]
    fn deal(&mut self, column: StreamColumn, number: i64) -> Result<()> {
        self.stream(column)?.numbers.push(number);
        Ok(())
    }

    fn deal_string(&mut self, column: StreamColumn, range: Range<usize>) -> Result<()> {
        let string = self.log.get(range).ok_or_else(not_there)?;
        self.stream(column)?.strings.push(string);
        Ok(())
    }

    /// Takes a length of this many bytes.
    fn take_size(&mut self, prefix: usize) -> Result<usize> {
        let range = self.take(prefix)?;
        let bytes = self.log.get(range).unwrap_or_default();
        Ok(bytes.iter().rev().fold(0, |size, &byte| size << 8 | usize::from(byte)))
    }

    #[inline]
    fn take(&mut self, size: usize) -> Result<Range<usize>> {
        let to = self.at.checked_add(size).filter(|&to| to <= self.end).ok_or_else(not_there)?;
        let range = self.at..to;
        self.at = to;
        Ok(range)
    }
}

fn not_there() -> Error {
    Error::damaged("event", "its end inside a field", "whole fields")
}

fn too_long(size_max: usize) -> Error {
    Error::damaged("block", format!("more than {size_max} bytes"), "the size that its header says")
}

fn other_form() -> Error {
    Error::damaged("event", "a field in another form", "the form that servers write")
}

/// A number of up to eight bytes.
pub(crate) fn number_of(bytes: &[u8], order: ByteOrder) -> i64 {
    let join = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
    match order {
        ByteOrder::High => bytes.iter().fold(0, join) as i64,
        ByteOrder::Low => {
            let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
            (bytes.iter().rev().fold(0, join) << unused) as i64 >> unused
        }
    }
}

/// The number in the first `size` of eight bytes.
#[inline]
fn number_within(eight: u64, size: usize, order: ByteOrder) -> i64 {
    let unused = 64 - 8 * size.clamp(1, 8) as u32;
    match order {
        ByteOrder::Low => (eight << unused) as i64 >> unused,
        ByteOrder::High => (eight.swap_bytes() >> unused) as i64,
    }
}

impl Walk for Dealer<'_> {
    #[inline]
    fn decide(&mut self, column: StreamColumn, find: impl FnOnce(&[u8], &[u8]) -> i64) -> Result<i64> {
        let walked = self.log.get(..self.at).unwrap_or_default();
        let number = find(walked, self.log.get(self.at..self.end).unwrap_or_default());
        self.deal(column, number)?;
        Ok(number)
    }

    #[inline]
    fn number(&mut self, column: StreamColumn, size: usize, order: ByteOrder, base: i64) -> Result<i64> {
        let range = self.take(size)?;
        // Most fields have at least eight bytes from their start: read them in one go.
        let number = match self.log.get(range.start..).and_then(|rest| rest.first_chunk()) {
            Some(eight) => number_within(u64::from_le_bytes(*eight), size, order),
            None => number_of(self.log.get(range).unwrap_or_default(), order),
        };
        self.deal(column, number.wrapping_sub(base))?;
        Ok(number)
    }

    fn fixed(&mut self, column: StreamColumn, size: usize) -> Result<Range<usize>> {
        let range = self.take(size)?;
        self.deal_string(column, range.clone())?;
        Ok(range)
    }

    fn prefixed(&mut self, column: StreamColumn, prefix: usize) -> Result<()> {
        let size = self.take_size(prefix)?;
        let range = self.take(size)?;
        self.deal_string(column, range)
    }

    fn rest(&mut self, column: StreamColumn) -> Result<Range<usize>> {
        self.fixed(column, self.end.saturating_sub(self.at))
    }

    fn packed(&mut self, column: StreamColumn, base: i64) -> Result<i64> {
        let first = self.take(1)?;
        let first = *self.log.get(first.start).unwrap_or(&0);
        let number = match packed_size(first)? {
            0 => i64::from(first),
            size => {
                let range = self.take(size)?;
                number_of(self.log.get(range).unwrap_or_default(), ByteOrder::Low)
                    & (u64::MAX >> (64 - 8 * size)) as i64
            }
        };
        let mut shortest = Vec::new();
        put_packed(&mut shortest, number);
        if shortest.first() != Some(&first) {
            return Err(other_form());
        }
        self.deal(column, number.wrapping_sub(base))?;
        Ok(number)
    }

    fn known(&mut self, bytes: &[u8]) -> Result<()> {
        let range = self.take(bytes.len())?;
        if self.log.get(range) == Some(bytes) { Ok(()) } else { Err(other_form()) }
    }

    fn again(&mut self, range: Range<usize>) -> Result<()> {
        self.take(range.len()).map(drop)
    }

    fn copy<'b>(&mut self, size: usize, _: impl FnOnce() -> Option<&'b [u8]>) -> Result<()> {
        self.take(size).map(drop)
    }

    fn difference(
        &mut self,
        column: StreamColumn,
        prefix: usize,
        _: OlderValue<'_>,
        difference: &[u8],
    ) -> Result<()> {
        let size = self.take_size(prefix)?;
        self.take(size)?;
        self.stream(column)?.strings.push(difference);
        Ok(())
    }

    fn put_back(&mut self, _: usize, _: &[u8]) {}

    fn skip(&mut self, size: usize) -> Result<()> {
        self.take(size).map(drop)
    }

    fn leave_behind(&mut self, size: usize) -> Result<()> {
        self.end = self.end.checked_sub(size).filter(|&end| end >= self.at).ok_or_else(not_there)?;
        Ok(())
    }

    fn checksum(&mut self, _: usize) -> Result<()> {
        self.end += CHECKSUM_SIZE;
        self.take(CHECKSUM_SIZE).map(drop)
    }

    fn finish(&mut self) -> Result<()> {
        if self.at == self.end { Ok(()) } else { Err(other_form()) }
    }

    #[inline]
    fn walked(&self) -> &[u8] {
        self.log.get(..self.at).unwrap_or_default()
    }
}

/// Bytes after the first of a length-encoded integer.
fn packed_size(first: u8) -> Result<usize> {
    match first {
        0..=250 => Ok(0),
        252 => Ok(2),
        253 => Ok(3),
        254 => Ok(8),
        _ => Err(other_form()),
    }
}

fn put_packed(out: &mut Vec<u8>, number: i64) {
    let (first, size) = match number as u64 {
        0..=250 => (number as u8, 0),
        251..=0xffff => (252, 2),
        0x1_0000..=0xff_ffff => (253, 3),
        _ => (254, 8),
    };
    out.push(first);
    out.extend(number.to_le_bytes().iter().take(size));
}

/// Gathers the fields of a log from columns.
#[derive(Debug)]
pub(crate) struct FieldGatherer {
    pub(crate) log: Vec<u8>,
    streams: Streams,
    size_max: usize,
}

impl FieldGatherer {
    /// For a block of `size_max` bytes.
    pub(crate) fn new(streams: Streams, size_max: usize) -> Self {
        // Room for the eight bytes that are written at once.
        FieldGatherer { log: Vec::with_capacity(size_max + 8), streams, size_max }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if self.log.len() + bytes.len() > self.size_max {
            return Err(too_long(self.size_max));
        }
        self.log.extend_from_slice(bytes);
        Ok(())
    }

    fn string(
        &mut self,
        column: StreamColumn,
        check: impl Fn(usize) -> bool,
        prefix: usize,
    ) -> Result<Range<usize>> {
        let string = self.streams.next_string(column)?;
        if !check(string.len()) || self.log.len() + prefix + string.len() > self.size_max {
            return Err(Error::damaged(
                "field",
                format!("{} bytes", string.len()),
                "a size that the field can have",
            ));
        }
        self.log.extend((string.len() as u64).to_le_bytes().iter().take(prefix));
        let start = self.log.len();
        self.log.extend_from_slice(string);
        Ok(start..self.log.len())
    }
}

impl Walk for FieldGatherer {
    #[inline]
    fn decide(&mut self, column: StreamColumn, _: impl FnOnce(&[u8], &[u8]) -> i64) -> Result<i64> {
        self.streams.next_number(column)
    }

    #[inline]
    fn number(&mut self, column: StreamColumn, size: usize, order: ByteOrder, base: i64) -> Result<i64> {
        let number = self.streams.next_number(column)?.wrapping_add(base);
        let end = self.log.len() + size;
        if end > self.size_max {
            return Err(too_long(self.size_max));
        }
        let eight = match order {
            ByteOrder::Low => number as u64,
            ByteOrder::High => {
                (number as u64).checked_shl(64 - 8 * size as u32).unwrap_or_default().swap_bytes()
            }
        };
        self.log.extend_from_slice(&eight.to_le_bytes());
        self.log.truncate(end);
        Ok(number)
    }

    fn fixed(&mut self, column: StreamColumn, size: usize) -> Result<Range<usize>> {
        self.string(column, |length| length == size, 0)
    }

    fn prefixed(&mut self, column: StreamColumn, prefix: usize) -> Result<()> {
        self.string(column, |length| (length as u64) >> (8 * prefix) == 0, prefix).map(drop)
    }

    fn rest(&mut self, column: StreamColumn) -> Result<Range<usize>> {
        self.string(column, |_| true, 0)
    }

    fn packed(&mut self, column: StreamColumn, base: i64) -> Result<i64> {
        let number = self.streams.next_number(column)?.wrapping_add(base);
        let mut bytes = Vec::new();
        put_packed(&mut bytes, number);
        self.write(&bytes)?;
        Ok(number)
    }

    fn known(&mut self, bytes: &[u8]) -> Result<()> {
        self.write(bytes)
    }

    fn again(&mut self, range: Range<usize>) -> Result<()> {
        if range.end > self.log.len() || self.log.len() + range.len() > self.size_max {
            return Err(Error::damaged(
                "block",
                format!("a reference to bytes up to {}", range.end),
                "bytes before it",
            ));
        }
        self.log.extend_from_within(range);
        Ok(())
    }

    fn copy<'b>(&mut self, _: usize, bytes: impl FnOnce() -> Option<&'b [u8]>) -> Result<()> {
        let bytes = bytes().ok_or_else(|| {
            Error::damaged("block", "a reference to a missing row", "a row of the block that it refers to")
        })?;
        self.write(bytes)
    }

    fn difference(
        &mut self,
        column: StreamColumn,
        prefix: usize,
        old: OlderValue<'_>,
        _: &[u8],
    ) -> Result<()> {
        let room = self.size_max.saturating_sub(self.log.len() + prefix);
        let size_max = room.min(u32::MAX as usize >> (32 - 8 * prefix.clamp(1, 4)));
        let difference = self.streams.next_string(column)?;
        let old = old.bytes(&self.log).get(prefix..).unwrap_or_default();
        let new = delta::apply(old, difference, size_max)?;
        self.log.extend((new.len() as u64).to_le_bytes().iter().take(prefix));
        self.log.extend_from_slice(&new);
        Ok(())
    }

    fn put_back(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.log.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }

    fn skip(&mut self, size: usize) -> Result<()> {
        self.write([0; 8].get(..size).unwrap_or_default())
    }

    fn leave_behind(&mut self, _: usize) -> Result<()> {
        Ok(())
    }

    fn checksum(&mut self, start: usize) -> Result<()> {
        let checksum = crc32(self.log.get(start..).unwrap_or_default());
        self.write(&checksum.to_le_bytes())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn walked(&self) -> &[u8] {
        &self.log
    }
}
