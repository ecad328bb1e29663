//! A fixed-size buffer that lines of values are written into before they are appended to the text. Values found in nearly
//! every row (integers, dates, strings without escapes) are written with a few wide stores, which may run past the
//! value's end: the next value overwrites the excess. mysqlbinlog's text and JSON lines are both written this way.

use binlogz_binlog::Result;
use binlogz_binlog::row::text::{EIGHT_DIGITS_MAX, eight_digits, short_digits};
use binlogz_binlog::row::{Cell, CellContent, RowImage};

/// Text is put away when it is longer than this.
pub(crate) const CHUNK: usize = 256 << 10;

/// Bytes of the buffer: it stays in the first-level cache, along with the row.
const ROOM: usize = 8 << 10;

/// The most that is written between two checks of the space left: the text before a value, and a value of
/// fixed size.
const STEP_MAX: usize = 128;

/// Strings up to this length are written here.
const STRING_MAX: usize = 1 << 10;

/// Values up to this length are written apart and copied, if they have no short cut.
const APART_MAX: usize = 1 << 10;

/// Bytes checked together.
const BLOCK: usize = 16;

/// The buffer; see the module docs.
#[derive(Debug)]
pub struct LineRoom {
    bytes: Box<[u8; ROOM]>,
}

/// Text in the buffer that is not appended yet. It is passed by value and its methods are inlined, so the
/// position of the next byte is not in memory that a store could alias: it stays in a register.
#[derive(Debug)]
pub struct BufferedLines<'r> {
    room: &'r mut [u8; ROOM],
    at: usize,
    out: &'r mut Vec<u8>,
}

impl Default for LineRoom {
    fn default() -> Self {
        LineRoom { bytes: Box::new([0; ROOM]) }
    }
}

impl LineRoom {
    /// Lines that are appended to `out`, at the latest by [`BufferedLines::end`].
    #[inline]
    pub fn lines<'r>(&'r mut self, out: &'r mut Vec<u8>) -> BufferedLines<'r> {
        BufferedLines { room: &mut self.bytes, at: 0, out }
    }
}

/// The longest integer: `-9223372036854775808 (9223372036854775808)`.
const INTEGER_MAX: usize = 48;

/// Room for 24 digits, although no number has more than 20.
const UNSIGNED_MAX: usize = 24;

/// A number of many digits.
#[inline(never)]
fn long_unsigned(number: u64) -> ([u8; UNSIGNED_MAX], usize) {
    let mut text = [0; UNSIGNED_MAX];
    let mut length = 0;
    with_digits(number, |digits| {
        if let Some(place) = text.get_mut(..digits.len()) {
            place.copy_from_slice(digits);
            length = digits.len();
        }
    });
    (text, length)
}

/// An integer of many digits, or a negative one.
#[inline(never)]
fn long_integer(number: i64, bits: u32) -> ([u8; INTEGER_MAX], usize) {
    let mut text = [0; INTEGER_MAX];
    let mut length = 0;
    let mut put = |bytes: &[u8]| {
        if let Some(place) = text.get_mut(length..length + bytes.len()) {
            place.copy_from_slice(bytes);
            length += bytes.len();
        }
    };
    if number < 0 {
        put(b"-");
    }
    with_digits(number.unsigned_abs(), &mut put);
    if number < 0 {
        let unused = 64 - bits;
        put(b" (");
        with_digits((number as u64) << unused >> unused, &mut put);
        put(b")");
    }
    (text, length)
}

fn with_digits(number: u64, put: impl FnOnce(&[u8])) {
    const LIMIT: u64 = EIGHT_DIGITS_MAX as u64 + 1;
    let eights = [number / LIMIT / LIMIT, number / LIMIT % LIMIT, number % LIMIT]
        .map(|eight| eight_digits(eight as u32));
    let digits = eights.as_flattened();
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count().min(digits.len() - 1);
    put(digits.get(zeros..).unwrap_or_default());
}

#[cold]
fn append(out: &mut Vec<u8>, room: &[u8; ROOM], at: usize) {
    out.extend_from_slice(room.get(..at).unwrap_or_default());
}

impl BufferedLines<'_> {
    /// Appends the bytes in the room.
    #[inline(always)]
    pub fn end(&mut self) {
        append(self.out, self.room, self.at);
        self.at = 0;
    }

    /// The text itself, for values that don't fit in the buffer.
    #[inline(always)]
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.end();
        self.out
    }

    /// Whether the text is long enough to be put away.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.out.len() > CHUNK
    }

    /// Whether the text is longer than `limit` bytes.
    #[inline]
    pub fn is_longer(&self, limit: usize) -> bool {
        self.out.len() > limit
    }

    /// Makes room for a step: everything up to the next call, strings excepted.
    #[inline(always)]
    pub fn step(&mut self) {
        if self.at > ROOM - STEP_MAX {
            self.end();
        }
    }

    /// Writes the first `length` of `N` bytes.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, bytes: &[u8; N], length: usize) {
        let place = self.room.get_mut(self.at..).and_then(|room| room.first_chunk_mut());
        debug_assert!(place.is_some() && length <= N, "a step has room for all that belongs to it");
        if let Some(place) = place {
            *place = *bytes;
            self.at += length;
        }
    }

    /// Writes text of any length.
    #[inline(always)]
    pub fn put_text(&mut self, text: &[u8]) {
        match self.room.get_mut(self.at..self.at + text.len()) {
            Some(place) => {
                place.copy_from_slice(text);
                self.at += text.len();
            }
            None => self.out().extend_from_slice(text),
        }
    }

    /// Writes a number.
    #[inline(always)]
    pub fn put_unsigned(&mut self, number: u64) {
        if number <= u64::from(EIGHT_DIGITS_MAX) {
            let (digits, count) = short_digits(number as u32);
            return self.put(&digits, count);
        }
        let (text, length) = long_unsigned(number);
        self.put(&text, length);
    }

    /// Writes an integer.
    #[inline(always)]
    pub(crate) fn put_signed(&mut self, number: i64) {
        if number < 0 {
            self.put(b"-", 1);
        }
        self.put_unsigned(number.unsigned_abs());
    }

    /// Writes an integer of this many bits; a negative one also as unsigned.
    #[inline(always)]
    pub(crate) fn put_integer(&mut self, number: i64, bits: u32) {
        if (0..=i64::from(EIGHT_DIGITS_MAX)).contains(&number) {
            let (digits, count) = short_digits(number as u32);
            return self.put(&digits, count);
        }
        let (text, length) = long_integer(number, bits);
        self.put(&text, length);
    }

    /// Writes a date, such as `'YYYY:MM:DD'`: the characters around the digits, which are 0 there, and each pair of
    /// digits as it is in memory.
    #[inline(always)]
    pub(crate) fn put_date(&mut self, pairs: [u16; 4], around: [u8; 16]) {
        let [century, year, month, day] = pairs.map(u128::from);
        let digits = century << 8 | year << 24 | month << 48 | day << 72;
        self.put(&(u128::from_le_bytes(around) | digits).to_le_bytes(), 12);
    }

    /// Writes a string between quotes. `false` if it has a special byte or is too long; then nothing is written.
    #[inline(always)]
    pub(crate) fn put_quoted(
        &mut self,
        string: &[u8],
        quote: u8,
        is_special: impl Fn(u8) -> bool + Copy,
    ) -> bool {
        let length = string.len();
        // The quotes, and what is written beyond the end.
        if length > STRING_MAX {
            return false;
        }
        if self.at + length + BLOCK > ROOM {
            self.end();
        }
        let begin = self.at + 1;
        let Some(room) = self.room.get_mut(begin..) else { return false };
        let mut special = false;
        if let (Some(first), Some(last)) = (string.first_chunk::<BLOCK>(), string.last_chunk::<BLOCK>()) {
            // The last block may overlap the one before it.
            let (blocks, _) = string.as_chunks::<BLOCK>();
            special |= has_special(first, is_special) | has_special(last, is_special);
            for (block, place) in blocks.iter().zip(room.as_chunks_mut::<BLOCK>().0) {
                special |= has_special(block, is_special);
                *place = *block;
            }
            if let Some(place) = room.get_mut(length - BLOCK..).and_then(|room| room.first_chunk_mut()) {
                *place = *last;
            }
        } else if let (Some(first), Some(last)) = (string.first_chunk::<4>(), string.last_chunk::<4>()) {
            let second = string.get(4..).and_then(|rest| rest.first_chunk::<4>()).unwrap_or(last);
            let third = string.get(8..).and_then(|rest| rest.first_chunk::<4>()).unwrap_or(last);
            for (part, place) in [(first, 0), (second, 4), (third, 8), (last, length - 4)] {
                special |= has_special(part, is_special);
                let place = place.min(length - 4);
                if let Some(place) = room.get_mut(place..).and_then(|room| room.first_chunk_mut()) {
                    *place = *part;
                }
            }
        } else {
            for (&byte, place) in string.iter().zip(room.iter_mut()) {
                special |= is_special(byte);
                *place = byte;
            }
        }
        if special {
            return false;
        }
        self.put(&[quote], 1);
        self.at += length;
        self.put(&[quote], 1);
        true
    }
}

impl BufferedLines<'_> {
    /// Writes an integer of a row: the value of a signed column. `false` if it is none of 1, 2, 4 or 8 bytes.
    #[inline(always)]
    pub fn put_signed_value(&mut self, bytes: &[u8]) -> bool {
        self.put_signed(match *bytes {
            [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            [a] => i8::from_le_bytes([a]).into(),
            [a, b] => i16::from_le_bytes([a, b]).into(),
            _ => return false,
        });
        true
    }

    /// Writes an integer of a row: the value of an unsigned column. `false` if it is none of 1, 2, 4 or 8 bytes.
    #[inline(always)]
    pub fn put_unsigned_value(&mut self, bytes: &[u8]) -> bool {
        self.put_unsigned(match *bytes {
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            [a] => a.into(),
            [a, b] => u16::from_le_bytes([a, b]).into(),
            _ => return false,
        });
        true
    }

    /// Writes a string of ASCII as JSON. `false` if a byte of it needs more than to be copied; then nothing is written.
    #[inline(always)]
    pub fn put_json_string(&mut self, string: &[u8]) -> bool {
        self.put_quoted(string, b'"', is_special_in_json)
    }

    /// Writes the content of a cell as `push` writes it. On failure, what was written is appended.
    #[inline(always)]
    pub fn put_pushed(
        &mut self,
        content: &CellContent<'_>,
        apart: &mut Vec<u8>,
        push: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        match content {
            CellContent::Value(bytes) if bytes.len() <= APART_MAX => {
                apart.clear();
                let pushed = push(apart);
                self.put_text(apart);
                if pushed.is_err() {
                    self.end();
                }
                pushed
            }
            _ => push(self.out()),
        }
    }
}

/// Writes a value without a short cut, with the format's own `push_value`. On failure, what was written is appended.
#[inline(never)]
pub(crate) fn put_any<'l>(
    mut lines: BufferedLines<'l>,
    image: &RowImage<'_, '_>,
    index: usize,
    [apart, scratch]: &mut [Vec<u8>; 2],
    push_value: impl FnOnce(&mut Vec<u8>, &Cell<'_>, &mut Vec<u8>) -> Result<()>,
) -> Result<BufferedLines<'l>> {
    let Some(cell) = image.cell(index) else { return Ok(lines) };
    lines.put_pushed(&cell.content, apart, |out| push_value(out, &cell, scratch))?;
    lines.step();
    Ok(lines)
}

/// Whether JSON has to escape it, or it is not ASCII.
#[inline]
fn is_special_in_json(byte: u8) -> bool {
    // One comparison for control characters and what is not ASCII, which is negative.
    ((byte as i8) < b' ' as i8) | (byte == b'"') | (byte == b'\\')
}

/// Checks every byte without stopping early: that vectorizes well.
#[inline]
fn has_special<const N: usize>(block: &[u8; N], is_special: impl Fn(u8) -> bool) -> bool {
    block.iter().fold(false, |found, &byte| found | is_special(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mysqlbinlog::push_quoted;
    use crate::number::{push_signed, push_unsigned};

    fn is_special(byte: u8) -> bool {
        (byte < b' ') | (byte == b'\'') | (byte == b'\\')
    }

    #[test]
    fn strings_and_numbers_are_those_that_are_pushed() {
        let mut room = LineRoom::default();
        let mut ours = Vec::new();
        let mut expected = Vec::new();
        let mut lines = room.lines(&mut ours);
        for length in (0..300).chain([STRING_MAX - 1, STRING_MAX, STRING_MAX + 1, ROOM]) {
            for special in [None, Some(0), Some(length / 2), Some(length.saturating_sub(1))] {
                let mut string: Vec<u8> = (0..length).map(|place| b'A' + (place % 50) as u8 % 26).collect();
                if let Some(byte) = special.and_then(|place| string.get_mut(place)) {
                    *byte = b'\n';
                }
                lines.step();
                if !lines.put_quoted(&string, b'\'', is_special) {
                    push_quoted(lines.out(), &string);
                }
                push_quoted(&mut expected, &string);
            }
            for number in [length as i64, i64::from(i32::MAX) * length as i64, i64::MAX - length as i64] {
                lines.step();
                lines.put_integer(number, 64);
                push_signed(&mut expected, number);
                lines.step();
                lines.put_signed(-number);
                lines.put_unsigned(number as u64);
                push_signed(&mut expected, -number);
                push_unsigned(&mut expected, number as u64);
            }
        }
        lines.step();
        lines.put_integer(-3, 8);
        lines.put_integer(i64::MIN, 64);
        lines.step();
        lines.put_signed(i64::MIN);
        lines.put_unsigned(u64::MAX);
        expected.extend_from_slice(b"-3 (253)-9223372036854775808 (9223372036854775808)");
        expected.extend_from_slice(b"-922337203685477580818446744073709551615");
        lines.end();
        assert!(ours == expected);
    }
}
