//! Which keys the rows of a block have: a filter of their hashes, and the forms in which keys are hashed. The filter's
//! "no" is certain; its "yes" is sometimes wrong.
//!
//! A filter is the sorted hashes, cut to `bits` bits more than numbering them takes, as differences in Golomb-Rice
//! code: the quotient in unary (ones, then a zero), then `bits` bits; bits fill bytes from the lowest. It takes
//! about `bits` + 1.5 bits a key, and one in 2^`bits` other keys passes.

use binlogz_binlog::charset::Charset;
use binlogz_binlog::row::{Cell, Value};

use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

/// The fewest bits with which a filter is worth its room: one other key in eight passes.
const BITS_MIN: u8 = 3;
/// The most: one in 4,096 passes, and what more bits would save is less than the rest of the index takes.
const BITS_MAX: u8 = 12;
/// The most keys of a filter: a block has no more row images.
const KEYS_MAX: u64 = 1 << 24;

/// A value of a key column, in the one form in which equal values are equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A whole number.
    Number(i128),
    /// Text in lower case, whatever its character set; other bytes as they are.
    Text(Vec<u8>),
}

impl Key {
    /// The key of a text as a user writes it, or of bytes.
    pub fn of_bytes(bytes: &[u8]) -> Key {
        Key::Text(match str::from_utf8(bytes) {
            Ok(text) => text.to_lowercase().into_bytes(),
            Err(_) => bytes.to_vec(),
        })
    }

    /// The keys of a column's value: several where the log does not say whether it has a sign. `None`: a type that
    /// has no keys, or bytes that can't be read.
    pub(crate) fn of_cell(cell: &Cell<'_>) -> Option<Keys> {
        let one = |key| Some(Keys { first: Some(key), second: None });
        match cell.value().ok()? {
            Value::Null => Some(Keys { first: None, second: None }),
            Value::Int(value) => {
                let other = (value < 0 && cell.column.unsigned.is_none())
                    .then_some(Key::Number(i128::from(value as u64)));
                Some(Keys { first: Some(Key::Number(value.into())), second: other })
            }
            Value::Uint(value) | Value::Bit(value) => one(Key::Number(value.into())),
            Value::Year(value) => one(Key::Number(value.into())),
            Value::Bytes(bytes) => {
                let charset = cell.column.charset().filter(|charset| *charset != Charset::Binary);
                match charset.and_then(|charset| charset.decode(bytes)) {
                    Some(text) => one(Key::Text(text.to_lowercase().into_bytes())),
                    // As a character string of an unknown character set is compared: what is no UTF-8 is replaced.
                    None if cell.column.collation.is_some() && charset_is_text(cell) => {
                        one(Key::Text(String::from_utf8_lossy(bytes).to_lowercase().into_bytes()))
                    }
                    None => one(Key::of_bytes(bytes)),
                }
            }
            _ => None,
        }
    }

    /// The hash that filters hold; it is part of the format. `table` is that of the table's name.
    pub(crate) fn hash(&self, table: u64) -> u64 {
        match self {
            Key::Number(number) => finish(fnv(fnv(table, b"n"), &number.to_le_bytes())),
            Key::Text(text) => finish(fnv(fnv(table, b"t"), text)),
        }
    }
}

fn charset_is_text(cell: &Cell<'_>) -> bool {
    cell.column.charset() != Some(Charset::Binary)
}

/// The keys of one value.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) first: Option<Key>,
    pub(crate) second: Option<Key>,
}

/// The hash of a table's name, from which those of its keys go on.
pub(crate) fn hash_of_table(database: &[u8], table: &[u8]) -> u64 {
    fnv(fnv(fnv(FNV_BASIS, database), &[0]), table)
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a.
fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// Spreads the bits of a hash, as the end of MurmurHash3 does.
fn finish(mut hash: u64) -> u64 {
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

/// Which keys may be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    bits: u8,
    count: u64,
    packed: Vec<u8>,
}

impl Filter {
    /// The filter of distinct hashes that takes at most `size_max` bytes; `None`: none of use does.
    pub(crate) fn new(hashes: &[u64], size_max: u64) -> Option<Filter> {
        let bits_max = bits_within(hashes.len() as u64, size_max)?;
        let with = |bits| Filter::with_bits(hashes, bits);
        // These hashes may need a little more than others in the mean.
        (BITS_MIN..=bits_max).rev().map(with).find(|filter| filter.packed.len() as u64 <= size_max)
    }

    /// The filter of distinct hashes that has this many bits for each.
    pub(super) fn with_bits(hashes: &[u64], bits: u8) -> Filter {
        let count = hashes.len() as u64;
        let mut values: Vec<u64> = hashes.iter().map(|&hash| scaled(hash, count, bits)).collect();
        values.sort_unstable();
        let mut out = BitWriter::default();
        let mut last = 0;
        for value in values {
            let difference = value - last;
            (0..difference >> bits).for_each(|_| out.put(true));
            out.put(false);
            (0..bits).for_each(|bit| out.put(difference >> bit & 1 == 1));
            last = value;
        }
        out.bytes.shrink_to_fit();
        Filter { bits, count, packed: out.bytes }
    }

    /// Whether a filter of this many keys is of use within this many bytes.
    pub(crate) fn fits(count: u64, size_max: u64) -> bool {
        bits_within(count, size_max).is_some()
    }

    /// Bytes of memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.packed.capacity()
    }

    /// Bytes that it takes.
    #[cfg(test)]
    fn size(&self) -> u64 {
        self.packed.len() as u64
    }

    /// Whether one of these hashes may be there.
    pub(crate) fn may_have(&self, hashes: &[u64]) -> bool {
        let mut wanted: Vec<u64> = hashes.iter().map(|&hash| scaled(hash, self.count, self.bits)).collect();
        wanted.sort_unstable();
        let mut wanted = wanted.into_iter().peekable();
        let mut bits = BitReader { bytes: &self.packed, at: 0 };
        let mut value = 0u64;
        for _ in 0..self.count {
            // A filter that ends early says nothing.
            let Some(difference) = bits.difference(self.bits) else { return true };
            value = value.saturating_add(difference);
            while wanted.next_if(|&wanted| wanted < value).is_some() {}
            match wanted.peek() {
                None => return false,
                Some(&wanted) if wanted == value => return true,
                Some(_) => {}
            }
        }
        false
    }

    pub(crate) fn encode(filter: Option<&Filter>, out: &mut Vec<u8>) {
        varint::put(out, filter.map_or(0, |filter| filter.count));
        if let Some(filter) = filter {
            out.push(filter.bits);
            varint::put_bytes(out, &filter.packed);
        }
    }

    pub(crate) fn decode(from: &mut Taker<'_>) -> Result<Option<Filter>> {
        let count = from.at_most(KEYS_MAX, "count of keys")? as u64;
        if count == 0 {
            return Ok(None);
        }
        let bits = from.byte()?;
        if !(BITS_MIN..=BITS_MAX).contains(&bits) {
            return Err(Error::damaged("filter", format!("{bits} bits"), "3 to 12"));
        }
        Ok(Some(Filter { bits, count, packed: from.bytes()?.to_vec() }))
    }
}

/// As many bits as should fit into `size_max` bytes.
fn bits_within(count: u64, size_max: u64) -> Option<u8> {
    if count == 0 || count > KEYS_MAX {
        return None;
    }
    // A key takes its bits and, of the unary part, less than 1.6 in the mean.
    let fits = |bits: &u8| count * (u64::from(*bits) * 10 + 16) <= size_max.saturating_mul(80);
    (BITS_MIN..=BITS_MAX).rev().find(fits)
}

/// A hash as one of `count` × 2^`bits` numbers.
fn scaled(hash: u64, count: u64, bits: u8) -> u64 {
    ((u128::from(hash) * u128::from(count << bits)) >> 64) as u64
}

#[derive(Default)]
struct BitWriter {
    bytes: Vec<u8>,
    used: u8,
}

impl BitWriter {
    fn put(&mut self, bit: bool) {
        if self.used == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << self.used;
        }
        self.used = (self.used + 1) % 8;
    }
}

/// Bits that are read at once.
const WORD_BITS: u32 = 56;

struct BitReader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl BitReader<'_> {
    /// The next bits, the first one lowest: at least [`WORD_BITS`], with zeros after the end.
    fn word(&self) -> u64 {
        let bytes = self.bytes.get(self.at / 8..).unwrap_or_default();
        let word = match bytes.first_chunk() {
            Some(whole) => u64::from_le_bytes(*whole),
            None => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        word >> (self.at % 8)
    }

    /// The next difference; `None`: the bits end before it does.
    fn difference(&mut self, bits: u8) -> Option<u64> {
        let mut high = 0;
        let mut word = self.word();
        let mut ones = word.trailing_ones();
        while ones >= WORD_BITS {
            high += u64::from(WORD_BITS);
            self.at += WORD_BITS as usize;
            word = self.word();
            ones = word.trailing_ones();
        }
        high += u64::from(ones);
        let begin = ones + 1;
        if begin + u32::from(bits) > WORD_BITS {
            self.at += begin as usize;
            word = self.word();
        } else {
            self.at += begin as usize;
            word >>= begin;
        }
        let low = word & ((1 << bits) - 1);
        self.at += usize::from(bits);
        (self.at <= self.bytes.len() * 8).then_some(high << bits | low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashes(range: std::ops::Range<i128>) -> Vec<u64> {
        let table = hash_of_table(b"shop", b"orders");
        range.map(|number| Key::Number(number).hash(table)).collect()
    }

    #[test]
    fn a_filter_has_what_was_put_in_and_little_else() {
        let there = hashes(0..1_000);
        for (size_max, passing_max) in [(2_000, 0.005), (1_200, 0.02), (700, 0.2)] {
            let filter = Filter::new(&there, size_max).unwrap();
            assert!(filter.size() <= size_max, "{} of {size_max}", filter.size());
            assert!(there.iter().all(|&hash| filter.may_have(&[hash])));
            let others = hashes(1_000_000..1_002_000);
            let passing = others.iter().filter(|&&hash| filter.may_have(&[hash])).count();
            assert!((passing as f64) < passing_max * others.len() as f64, "{passing} with {size_max}");
            let mut encoded = Vec::new();
            Filter::encode(Some(&filter), &mut encoded);
            let mut from = Taker::new(&encoded);
            assert_eq!(Filter::decode(&mut from).unwrap(), Some(filter));
            assert_eq!(from.left(), 0);
        }
        assert_eq!(Filter::new(&there, 100), None);
        assert_eq!(Filter::new(&[], 1_000), None);
    }

    #[test]
    fn differences_of_every_size_come_back() {
        for bits in BITS_MIN..=BITS_MAX {
            let differences = [0, 1, 7, 100, 51 << bits, (56 << bits) - 1, 56 << bits, 300 << bits | 5, 3];
            let mut out = BitWriter::default();
            for difference in differences {
                (0..difference >> bits).for_each(|_| out.put(true));
                out.put(false);
                (0..bits).for_each(|bit| out.put(difference >> bit & 1 == 1));
            }
            let mut from = BitReader { bytes: &out.bytes, at: 0 };
            for difference in differences {
                assert_eq!(from.difference(bits), Some(difference), "{bits}");
            }
            from = BitReader { bytes: &out.bytes[..out.bytes.len() - 1], at: 0 };
            let read = std::iter::from_fn(|| from.difference(bits)).take(20).count();
            assert!((7..9).contains(&read), "{read} with {bits}");
        }
    }

    #[test]
    fn a_filter_cut_short_denies_nothing_that_is_there() {
        let there = hashes(0..200);
        let mut filter = Filter::new(&there, 400).unwrap();
        filter.packed.truncate(10);
        assert!(there.iter().all(|&hash| filter.may_have(&[hash])));
    }

    #[test]
    fn texts_are_alike_whatever_their_case() {
        assert_eq!(Key::of_bytes("ÄB-c".as_bytes()), Key::of_bytes("äb-C".as_bytes()));
        assert_ne!(Key::of_bytes(&[0xff, b'A']), Key::of_bytes(&[0xff, b'a']));
    }
}
