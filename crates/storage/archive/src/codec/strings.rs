//! Codes a column of byte strings: as they are, through a dictionary, as shapes with numbers in them, or as coordinates.
//!
//! ```text
//! count       varint
//! code        1       0 plain | 1 dictionary | 2 shapes | 3 text (in blocks of method 3) | 4 geometries (since version 13)
//! plain:      numbers the lengths
//!             bytes   length, then zstd's frame of all bytes
//! text:       numbers the lengths
//!             bytes   length, then PPMd's code of all bytes, see ppmd.rs
//! dictionary: column  the distinct strings in order of first occurrence, coded without a dictionary
//!             numbers which of them each string is
//! shapes:     column  the distinct shapes, coded plain or as text: strings with each digit as '0'
//!             numbers which of them each string has
//!             numbers for each shape and each run of digits in it: the runs (18 digits at most, longer ones in
//!                     parts)
//! geometries: see geometry.rs; also of a dictionary's distinct strings
//! ```

mod geometry;
mod shapes;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use crate::codec::hash::hash;
use crate::codec::numbers::{self, EarlierColumns};
use crate::codec::text::{self, ByteContent, Coder};
use crate::codec::varint::{self, Taker};
use crate::codec::{Level, ppmd, zstd};
use crate::error::{Error, Result};
use geometry::Geometries;
use shapes::ShapedStrings;

const PLAIN: u8 = 0;
const DICTIONARY: u8 = 1;
const SHAPES: u8 = 2;
const TEXT: u8 = 3;
const GEOMETRIES: u8 = 4;

/// Strings looked at to choose between plain and shapes: at least, and for each run of digits in the shapes, whose numbers take some bytes
/// whatever they are.
const SAMPLE: usize = 256;
const SAMPLE_OF_RUN: usize = 128;
/// Shapes are unpacked far faster than PPMd's code: they may take one byte in so many more, unless a level wants the fewest bytes.
const SHAPES_MARGIN: usize = 16;
/// From so many strings of one length on they are fixed binaries, ...
const FIXED_MIN: usize = 8;
/// ... if more than one byte in so many, of those that are looked at, is no text: of random bytes it is one in ten.
const FIXED_CONTROLS: usize = 32;
const FIXED_LOOKED_AT: usize = 4 << 10;
/// The most bytes of them that PPMd is tried on.
const SAMPLE_TEXT_MAX: usize = 64 << 10;

/// A list of byte strings, stored one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StringList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl StringList {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of all strings.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory that they take.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }

    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// Keeps only the first `count` strings.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.ends.truncate(count);
        self.bytes.truncate(self.ends.last().copied().unwrap_or_default());
    }

    pub(crate) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start =
            index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.bytes.get(start..end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The bytes of a range of the strings, and where each ends in them.
    pub(crate) fn run(&self, range: Range<usize>) -> Option<(&[u8], impl ExactSizeIterator<Item = usize>)> {
        let start = range.start.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        let ends = self.ends.get(range)?;
        let bytes = self.bytes.get(start..ends.last().copied().unwrap_or(start))?;
        Some((bytes, ends.iter().map(move |end| end - start)))
    }

    /// What the bytes are: binary values of one length, or anything.
    fn content(&self) -> ByteContent {
        let size = self.ends.first().copied().unwrap_or_default();
        let is_fixed = self.len() >= FIXED_MIN
            && size > 0
            && self.ends.windows(2).all(|ends| matches!(ends, [one, next] if next - one == size));
        let looked_at = self.bytes.get(..self.bytes.len().min(FIXED_LOOKED_AT)).unwrap_or_default();
        let controls = looked_at.iter().filter(|&&byte| byte < b' ' && !byte.is_ascii_whitespace()).count();
        match is_fixed && controls > looked_at.len() / FIXED_CONTROLS {
            true => ByteContent::FixedBinary,
            false => ByteContent::Any,
        }
    }

    /// Appends all strings of another list.
    pub(crate) fn append(&mut self, other: &StringList) {
        other.iter().for_each(|string| self.push(string));
    }

    /// The strings in a range.
    pub(crate) fn part(&self, range: Range<usize>) -> StringList {
        let mut part = StringList::new();
        range.filter_map(|index| self.get(index)).for_each(|string| part.push(string));
        part
    }
}

/// Appends the code of `strings`; `before`: the columns of numbers that were coded before, of the same table.
pub(crate) fn pack(
    strings: &StringList,
    before: &EarlierColumns<'_>,
    level: Level,
    out: &mut Vec<u8>,
) -> Result<()> {
    varint::put(out, strings.len() as u64);
    if strings.is_empty() {
        return Ok(());
    }
    let dictionary = Dictionary::of(strings);
    let Some(geometries) = Geometries::of(strings) else {
        return pack_repeated(strings, dictionary.as_ref(), level, out);
    };
    let mut coded = vec![GEOMETRIES];
    geometries.pack(before, level, &mut coded)?;
    // Some stand still: their places are few.
    if dictionary.is_some() || level == Level::Max {
        let mut repeated = Vec::new();
        pack_repeated(strings, dictionary.as_ref(), level, &mut repeated)?;
        if repeated.len() < coded.len() {
            coded = repeated;
        }
    }
    out.extend_from_slice(&coded);
    Ok(())
}

/// Codes through a dictionary, if there is one.
fn pack_repeated(
    strings: &StringList,
    dictionary: Option<&Dictionary>,
    level: Level,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Some(dictionary) = dictionary else { return pack_different(strings, level, out) };
    out.push(DICTIONARY);
    varint::put(out, dictionary.entries.len() as u64);
    match Geometries::of(&dictionary.entries) {
        Some(geometries) => {
            out.push(GEOMETRIES);
            geometries.pack(&EarlierColumns::default(), level, out)?;
        }
        None => pack_different(&dictionary.entries, level, out)?,
    }
    numbers::pack_alone(&dictionary.indexes, level, out)
}

/// Codes as plain or as shapes, whichever makes a sample smaller.
fn pack_different(strings: &StringList, level: Level, out: &mut Vec<u8>) -> Result<()> {
    let Some(shaped) = ShapedStrings::of(strings) else { return pack_plain(strings, level, out) };
    let start = strings.len() / 3;
    let count = SAMPLE.max(SAMPLE_OF_RUN * shaped.runs());
    let sample = if strings.len() > 2 * count { strings.part(start..start + count) } else { strings.clone() };
    let mut plain_sample = Vec::new();
    let mut shaped_sample = Vec::new();
    let quick = quick(&sample, level)?;
    let margin = if quick.0 == Coder::Ppmd && level == Level::Default { SHAPES_MARGIN } else { usize::MAX };
    pack_coded(&sample, quick, level, &mut plain_sample)?;
    match ShapedStrings::of(&sample) {
        Some(sample) => sample.pack(level, &mut shaped_sample)?,
        None => return pack_plain(strings, level, out),
    }
    if shaped_sample.len() < plain_sample.len() + plain_sample.len() / margin {
        shaped.pack(level, out)
    } else {
        pack_plain(strings, level, out)
    }
}

/// A quick code of a sample, to estimate the size of its column.
fn quick(sample: &StringList, level: Level) -> Result<(Coder, Vec<u8>)> {
    let bytes = &sample.bytes;
    let by_zstd = zstd::pack(bytes, zstd::Effort::Sample)?;
    let with_ppmd = match level {
        Level::Fast => false,
        Level::Default => sample.content() == ByteContent::Any,
        Level::Max => true,
    };
    if with_ppmd && bytes.len() <= SAMPLE_TEXT_MAX {
        let by_ppmd =
            if level == Level::Max { ppmd::pack(bytes, ppmd::ORDER)? } else { ppmd::pack_quick(bytes)? };
        if by_ppmd.len() < by_zstd.len() {
            return Ok((Coder::Ppmd, by_ppmd));
        }
    }
    Ok((Coder::Zstd, by_zstd))
}

/// Codes as plain or as text, whichever costs less.
fn pack_plain(strings: &StringList, level: Level, out: &mut Vec<u8>) -> Result<()> {
    pack_coded(strings, text::pack(&strings.bytes, strings.content(), level)?, level, out)
}

fn pack_coded(
    strings: &StringList,
    (coder, packed): (Coder, Vec<u8>),
    level: Level,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(if coder == Coder::Ppmd { TEXT } else { PLAIN });
    let mut before = 0;
    let mut lengths = Vec::with_capacity(strings.len());
    for &end in &strings.ends {
        lengths.push((end - before) as i64);
        before = end;
    }
    numbers::pack_alone(&lengths, level, out)?;
    varint::put_bytes(out, &packed);
    Ok(())
}

/// Takes a column of at most `count_max` strings and `bytes_max` bytes.
pub(crate) fn unpack(
    from: &mut Taker<'_>,
    before: &[&[i64]],
    count_max: usize,
    bytes_max: usize,
) -> Result<StringList> {
    let count = from.at_most(count_max as u64, "count of strings")?;
    if count == 0 {
        return Ok(StringList::new());
    }
    match from.byte()? {
        DICTIONARY => {
            let different = from.at_most(count as u64, "size of the dictionary")?;
            let entries = match from.byte()? {
                GEOMETRIES => check_count(Geometries::unpack(from, &[], different, bytes_max)?, different)?,
                code => unpack_different(from, code, different, bytes_max)?,
            };
            let indexes = numbers::unpack(from, &[], count)?;
            let mut strings = StringList::new();
            for index in indexes {
                let entry = usize::try_from(index).ok().and_then(|index| entries.get(index));
                let entry = entry.ok_or_else(|| {
                    Error::damaged("dictionary", format!("entry {index}"), "one of its entries")
                })?;
                check_size(strings.bytes.len() + entry.len(), bytes_max)?;
                strings.push(entry);
            }
            check_count(strings, count)
        }
        GEOMETRIES => check_count(Geometries::unpack(from, before, count, bytes_max)?, count),
        code => unpack_different(from, code, count, bytes_max),
    }
}

/// How many columns back the key of the column is that comes next; 0: it has none.
pub(crate) fn outline(mut from: Taker<'_>) -> Result<u64> {
    let has_key = from.number()? > 0 && from.byte()? == GEOMETRIES;
    if has_key { from.number() } else { Ok(0) }
}

/// The size of PPMd's code in the column that comes next.
pub(crate) fn text_size(mut from: Taker<'_>) -> Result<usize> {
    if from.number()? == 0 {
        return Ok(0);
    }
    let mut code = from.byte()?;
    if code == DICTIONARY {
        from.number()?;
        code = from.byte()?;
    }
    if code != TEXT {
        return Ok(0);
    }
    numbers::pass(&mut from)?;
    Ok(from.bytes()?.len())
}

/// Passes over a column of strings, which may have at most `bytes_max` bytes.
pub(crate) fn pass(from: &mut Taker<'_>, bytes_max: usize) -> Result<()> {
    if from.number()? == 0 {
        return Ok(());
    }
    match from.byte()? {
        DICTIONARY => {
            from.number()?;
            match from.byte()? {
                GEOMETRIES => Geometries::pass(from, bytes_max)?,
                code => pass_different(from, code, bytes_max)?,
            }
            numbers::pass(from)
        }
        GEOMETRIES => Geometries::pass(from, bytes_max),
        code => pass_different(from, code, bytes_max),
    }
}

fn pass_different(from: &mut Taker<'_>, code: u8, bytes_max: usize) -> Result<()> {
    match code {
        PLAIN | TEXT => {
            numbers::pass(from)?;
            from.bytes().map(drop)
        }
        SHAPES => ShapedStrings::pass(from, bytes_max),
        other => Err(Error::damaged("column of strings", format!("code {other}"), "0 to 4")),
    }
}

fn unpack_different(from: &mut Taker<'_>, code: u8, count: usize, bytes_max: usize) -> Result<StringList> {
    let strings = match code {
        PLAIN => unpack_plain(from, Coder::Zstd, count, bytes_max)?,
        TEXT => unpack_plain(from, Coder::Ppmd, count, bytes_max)?,
        SHAPES => ShapedStrings::unpack(from, count, bytes_max)?,
        other => return Err(Error::damaged("column of strings", format!("code {other}"), "0 to 4")),
    };
    check_count(strings, count)
}

fn unpack_plain(from: &mut Taker<'_>, coder: Coder, count: usize, bytes_max: usize) -> Result<StringList> {
    let mut end = 0usize;
    let mut ends = Vec::with_capacity(count);
    for length in numbers::unpack(from, &[], count)? {
        let length = usize::try_from(length)
            .map_err(|_| Error::damaged("length", length.to_string(), "at least 0"))?;
        end = end.saturating_add(length);
        check_size(end, bytes_max)?;
        ends.push(end);
    }
    Ok(StringList { bytes: text::unpack(coder, from.bytes()?, end)?, ends })
}

fn check_size(size: usize, bytes_max: usize) -> Result<()> {
    if size <= bytes_max {
        Ok(())
    } else {
        Err(Error::damaged("column of strings", format!("{size} bytes"), "no more than the block can hold"))
    }
}

fn check_count(strings: StringList, count: usize) -> Result<StringList> {
    if strings.len() == count {
        Ok(strings)
    } else {
        Err(Error::damaged(
            "column of strings",
            format!("{} strings", strings.len()),
            "as many as the column says",
        ))
    }
}

/// Hashes strings faster than the standard library does. An attacker who makes strings collide only slows the
/// packing of their own log.
#[derive(Default)]
struct OfBytes(u64);

impl Hasher for OfBytes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash(self.0, bytes);
    }

    fn write_usize(&mut self, _: usize) {}
}

/// Strings, many of which repeat.
struct Dictionary {
    entries: StringList,
    indexes: Vec<i64>,
}

impl Dictionary {
    fn of(strings: &StringList) -> Option<Dictionary> {
        // For long strings a dictionary pays if a quarter of them repeat, for short ones if most do.
        let long = strings.bytes.len() >= 8 * strings.len();
        let entries_max = if long { strings.len() / 4 * 3 } else { strings.len() / 4 };
        Dictionary::up_to(strings, entries_max.max(1))
    }

    /// `None`: more than `entries_max` are different.
    fn up_to(strings: &StringList, entries_max: usize) -> Option<Dictionary> {
        let mut places: HashMap<&[u8], i64, BuildHasherDefault<OfBytes>> = HashMap::default();
        let mut dictionary =
            Dictionary { entries: StringList::new(), indexes: Vec::with_capacity(strings.len()) };
        for string in strings.iter() {
            let next = places.len() as i64;
            let index = *places.entry(string).or_insert(next);
            if index == next {
                if places.len() > entries_max {
                    return None;
                }
                dictionary.entries.push(string);
            }
            dictionary.indexes.push(index);
        }
        Some(dictionary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round<S: AsRef<[u8]>>(values: impl IntoIterator<Item = S>) -> usize {
        let mut strings = StringList::new();
        values.into_iter().for_each(|value| strings.push(value.as_ref()));
        let mut packed = Vec::new();
        pack(&strings, &EarlierColumns::default(), Level::Default, &mut packed).unwrap();
        let mut taker = Taker::new(&packed);
        let count = strings.len();
        let size = strings.bytes.len();
        assert_eq!(unpack(&mut taker, &[], count, size).unwrap(), strings);
        assert_eq!(taker.left(), 0);
        for length in (0..packed.len()).step_by(packed.len() / 50 + 1) {
            assert!(unpack(&mut Taker::new(&packed[..length]), &[], count, size).is_err());
        }
        if size > 0 {
            assert!(unpack(&mut Taker::new(&packed), &[], count, size - 1).is_err());
            assert!(unpack(&mut Taker::new(&packed), &[], count - 1, size).is_err());
        }
        packed.len()
    }

    #[test]
    fn columns_of_every_kind_come_back() {
        round::<&str>([]);
        round([""]);
        round(["a", "", "b", "1", "007", "12-34", "99999999999999999999999999999999999999", "\u{0}\u{ff}"]);
        round((0..200).map(|index| format!("name {index} of {}", index * index)));
        assert!(round((0..2000).map(|index| ["Smith", "Jones", "Miller"][index % 3])) < 100);
    }

    #[test]
    fn random_digits_take_hardly_more_than_their_entropy() {
        let mut state = 7u64;
        let mut group = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            format!("{:011}", (state >> 20) % 100_000_000_000)
        };
        let values: Vec<_> = (0..2000).map(|_| format!("{}-{}-{}", group(), group(), group())).collect();
        let bits = 2000.0 * 33.0 * 10f64.log2();
        let size = round(&values);
        assert!((size as f64) * 8.0 < bits * 1.02, "{size} for {bits} bits");
    }

    #[test]
    fn paths_with_numbers_are_shapes_though_ppmd_makes_few_of_them_smaller() {
        let mut state = 11u64;
        let mut strings = StringList::new();
        for _ in 0..40_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let kind = ["product", "basket", "search?q=", "account"][(state >> 33) as usize % 4];
            strings.push(format!("/shop/{kind}/{}", (state >> 40) % 20_000).as_bytes());
        }
        let code_of = |strings: &StringList, level| {
            let mut packed = Vec::new();
            pack(strings, &EarlierColumns::default(), level, &mut packed).unwrap();
            let mut taker = Taker::new(&packed);
            assert_eq!(taker.number().unwrap(), strings.len() as u64);
            (taker.byte().unwrap(), packed.len())
        };
        let (code, size) = code_of(&strings, Level::Default);
        assert_eq!(code, SHAPES);
        let mut by_ppmd = Vec::new();
        pack_plain(&strings, Level::Default, &mut by_ppmd).unwrap();
        assert!(size <= by_ppmd.len() + by_ppmd.len() / SHAPES_MARGIN, "{size} {}", by_ppmd.len());
        assert!(code_of(&strings, Level::Max).1 <= size);
    }

    #[test]
    fn a_string_taken_away_leaves_the_others() {
        let mut strings = StringList::new();
        strings.push(b"one");
        strings.push(b"two");
        strings.truncate(1);
        assert_eq!(strings.iter().collect::<Vec<_>>(), [b"one"]);
    }
}
