//! Codes a column of numbers as one value, through pco, or through zstd, whichever is smallest on a sample.
//! Before pco it may become differences from another column of the same rows, steps from the rows before with the same value
//! in another column, or the floating-point numbers that its bits are.
//!
//! - `earlier`: the columns that a column may be coded by; `previous`: the rows before with the same key
//! - `keyed`: steps by key; `decimals`: floating-point numbers as whole ones
//!
//! ```text
//! count   varint
//! code    1       0 one value | 1 pco | 2 zstd | 3 doubles, 4 floats (in blocks of method 3) | 5 steps by key (since version 13)
//! one:    varint  the value, signed
//! pco:    varint  0, or 1 + how many columns back the partner is
//!         1       with a partner: its shift + 1 (0: its value in the row before, 1: same row, 2: next row)
//!         bytes   length, then pco's standalone format for signed 64-bit numbers
//! doubles: bytes  length, then pco's standalone format for 64-bit floating-point numbers, whose bits these are
//! floats: bytes   length, then pco's for 32-bit ones, whose bits, with their sign extended, these are
//! zstd:   1       width in bytes, 1 to 8
//!         varint  the smallest value, signed
//!         bytes   length, then zstd's frame of the numbers minus the smallest, `width` bytes each
//! steps by key    see keyed.rs
//! ```

mod decimals;
mod earlier;
mod keyed;
mod previous;

use pco::ChunkConfig;
use pco::data_types::Number;
use pco::standalone::{simple_compress, simple_decompress_into};

use crate::codec::varint::{self, Taker};
use crate::codec::{Level, zstd};
use crate::error::{Error, Result};
pub(crate) use earlier::EarlierColumns;
use keyed::KeyedSteps;

const ONE: u8 = 0;
const PCO: u8 = 1;
const ZSTD: u8 = 2;
const DOUBLES: u8 = 3;
const FLOATS: u8 = 4;
const KEYED: u8 = 5;

/// Numbers looked at, in each of two places, to choose a code.
const SAMPLE: usize = 1024;
/// pco's levels: for the columns that are stored, and for samples.
const LEVEL: usize = 8;
const LEVEL_SAMPLE: usize = 5;
/// How many of the preceding columns may be its partner.
const PARTNERS_MAX: usize = 8;
const SHIFTS: [i8; 3] = [-1, 0, 1];
/// A partner must save at least one part in this many.
const PARTNER_GAIN: usize = 16;
/// Columns whose numbers differ by fewer bits than these are no doubles, or no floats.
const DOUBLE_BITS_MIN: usize = 32;
const FLOAT_BITS_MIN: usize = 12;
/// Steps by key are tried on columns that take more than so many bits a number.
const KEYED_BITS_MIN: usize = 6;

/// How a column is turned into differences from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Partner {
    /// How many columns back.
    back: usize,
    shift: i8,
}

/// Appends the code of a column that has no columns before it.
pub(crate) fn pack_alone(numbers: &[i64], level: Level, out: &mut Vec<u8>) -> Result<()> {
    pack(numbers, &EarlierColumns::default(), level, out)
}

/// Appends the code of `numbers`. `before` holds the columns coded before, the nearest last.
pub(crate) fn pack(
    numbers: &[i64],
    before: &EarlierColumns<'_>,
    level: Level,
    out: &mut Vec<u8>,
) -> Result<()> {
    varint::put(out, numbers.len() as u64);
    let Some(&first) = numbers.first() else { return Ok(()) };
    if numbers.iter().all(|&number| number == first) {
        out.push(ONE);
        varint::put_signed(out, first);
        return Ok(());
    }
    let sample = sample(numbers);
    let (pco_size, partner) = best_partner(numbers, &sample, before)?;
    let zstd_size = zstd_code(&sample, zstd::Effort::Sample)?.len();
    let kind = floating(&sample);
    let floating = as_floating(kind, numbers, &sample, pco_size.min(zstd_size.saturating_add(1)))?;
    let size = floating.map_or(pco_size.min(zstd_size), |(_, size)| size);
    if size * 8 > sample.len() * KEYED_BITS_MIN
        && let Some(steps) = KeyedSteps::find(numbers, &places(numbers.len()), kind, before)?
        && steps.size() + size / PARTNER_GAIN < size
    {
        out.push(KEYED);
        return steps.pack(out);
    }
    if let Some((floating, _)) = floating {
        out.push(floating.code());
        varint::put_bytes(out, &floating.pack(numbers, LEVEL)?);
        return Ok(());
    }
    if zstd_size < pco_size {
        let effort = if level == Level::Max { zstd::Effort::Full } else { zstd::Effort::Medium };
        out.extend_from_slice(&zstd_code(numbers, effort)?);
        return Ok(());
    }
    pack_pco(numbers, partner.and_then(|partner| Some((partner, before.back(partner.back)?))), out)
}

/// How many columns back the key is by whose steps these numbers take least, whatever else might take less.
pub(crate) fn key_of(numbers: &[i64], before: &EarlierColumns<'_>) -> Result<Option<usize>> {
    let kind = floating(&sample(numbers));
    let steps = KeyedSteps::find(numbers, &places(numbers.len()), kind, before)?;
    Ok(steps.map(|steps| steps.back()))
}

/// Appends the code through pco, perhaps as differences from a column.
fn pack_pco(numbers: &[i64], partner: Option<(Partner, &[i64])>, out: &mut Vec<u8>) -> Result<()> {
    out.push(PCO);
    let packed = match partner {
        None => {
            varint::put(out, 0);
            pco(numbers, LEVEL)?
        }
        Some((partner, column)) => {
            varint::put(out, partner.back as u64);
            out.push((partner.shift + 1) as u8);
            pco(&differences(numbers, column, partner.shift, 0), LEVEL)?
        }
    };
    varint::put_bytes(out, &packed);
    Ok(())
}

/// Takes a column of at most `count_max` numbers.
pub(crate) fn unpack(from: &mut Taker<'_>, before: &[&[i64]], count_max: usize) -> Result<Vec<i64>> {
    let count = from.at_most(count_max as u64, "count of numbers")?;
    if count == 0 {
        return Ok(Vec::new());
    }
    match from.byte()? {
        ONE => {
            let value = from.signed()?;
            Ok(vec![value; count])
        }
        PCO => unpack_pco(from, before, count),
        ZSTD => unpack_zstd(from, count),
        DOUBLES => FloatKind::Doubles.unpack(from.bytes()?, count),
        FLOATS => FloatKind::Floats.unpack(from.bytes()?, count),
        KEYED => keyed::unpack(from, before, count),
        other => Err(Error::damaged("column of numbers", format!("code {other}"), "0 to 5")),
    }
}

/// Passes over a column of numbers.
pub(crate) fn pass(from: &mut Taker<'_>) -> Result<()> {
    if from.number()? == 0 {
        return Ok(());
    }
    match from.byte()? {
        ONE => from.signed().map(drop),
        PCO => {
            if from.number()? > 0 {
                from.byte()?;
            }
            from.bytes().map(drop)
        }
        ZSTD => {
            from.byte()?;
            from.signed()?;
            from.bytes().map(drop)
        }
        DOUBLES | FLOATS => from.bytes().map(drop),
        KEYED => {
            from.number()?;
            from.byte()?;
            from.bytes().map(drop)
        }
        other => Err(Error::damaged("column of numbers", format!("code {other}"), "0 to 5")),
    }
}

/// How many numbers the column has that comes next, and how many columns back its partner or key is; 0: it has none.
pub(crate) fn outline(mut from: Taker<'_>) -> Result<(u64, u64)> {
    let count = from.number()?;
    let has_back = count > 0 && matches!(from.byte()?, PCO | KEYED);
    Ok((count, if has_back { from.number()? } else { 0 }))
}

/// Floating-point numbers whose bits a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FloatKind {
    Doubles,
    Floats,
}

/// The floating-point numbers that a sample might be.
fn floating(sample: &[i64]) -> Option<FloatKind> {
    let bits = estimate(sample) / sample.len().max(1);
    match FloatKind::Floats.fits(sample) {
        true if bits >= FLOAT_BITS_MIN => Some(FloatKind::Floats),
        false if bits >= DOUBLE_BITS_MIN => Some(FloatKind::Doubles),
        _ => None,
    }
}

/// The same, if the sample takes less than so many bytes then, with its size.
fn as_floating(
    kind: Option<FloatKind>,
    numbers: &[i64],
    sample: &[i64],
    size_max: usize,
) -> Result<Option<(FloatKind, usize)>> {
    let Some(kind) = kind else { return Ok(None) };
    let size = kind.pack(sample, LEVEL_SAMPLE)?.len();
    Ok((size < size_max && kind.fits(numbers)).then_some((kind, size)))
}

impl FloatKind {
    fn code(self) -> u8 {
        match self {
            FloatKind::Doubles => DOUBLES,
            FloatKind::Floats => FLOATS,
        }
    }

    fn fits(self, numbers: &[i64]) -> bool {
        self == FloatKind::Doubles || numbers.iter().all(|&number| i32::try_from(number).is_ok())
    }

    fn pack(self, numbers: &[i64], level: usize) -> Result<Vec<u8>> {
        match self {
            FloatKind::Doubles => {
                pco(&numbers.iter().map(|&number| f64::from_bits(number as u64)).collect::<Vec<_>>(), level)
            }
            FloatKind::Floats => {
                pco(&numbers.iter().map(|&number| f32::from_bits(number as u32)).collect::<Vec<_>>(), level)
            }
        }
    }

    fn unpack(self, packed: &[u8], count: usize) -> Result<Vec<i64>> {
        match self {
            FloatKind::Doubles => {
                let doubles = unpco(packed, vec![0f64; count])?;
                Ok(doubles.into_iter().map(|double| double.to_bits() as i64).collect())
            }
            FloatKind::Floats => {
                let floats = unpco(packed, vec![0f32; count])?;
                Ok(floats.into_iter().map(|float| i64::from(float.to_bits() as i32)).collect())
            }
        }
    }
}

fn unpack_pco(from: &mut Taker<'_>, before: &[&[i64]], count: usize) -> Result<Vec<i64>> {
    let back = from.at_most(before.len() as u64, "partner")?;
    let shift = if back > 0 { from.at_most(2, "shift")? as i8 - 1 } else { 0 };
    let mut numbers = unpco(from.bytes()?, vec![0i64; count])?;
    if back > 0 {
        let column = Partner { back, shift }.column(before).filter(|column| column.len() == count);
        let column = column.ok_or_else(|| {
            Error::damaged("partner", "a column of another length", "as many numbers as this column has")
        })?;
        // As `shifted` says, without looking at each place.
        let (first, column) = match shift {
            -1 => (1, column),
            0 => (0, column),
            _ => (0, column.get(1..).unwrap_or_default()),
        };
        for (number, partner) in numbers.iter_mut().skip(first).zip(column) {
            *number = number.wrapping_add(*partner);
        }
    }
    Ok(numbers)
}

/// Takes as many numbers as there is room for.
fn unpco<T: Number>(packed: &[u8], mut numbers: Vec<T>) -> Result<Vec<T>> {
    let progress = simple_decompress_into(packed, &mut numbers)
        .map_err(|error| Error::damaged("column of numbers", error.to_string(), "bytes that pco wrote"))?;
    if !progress.finished || progress.n_processed != numbers.len() {
        return Err(Error::damaged(
            "column of numbers",
            format!("{} numbers", progress.n_processed),
            "as many as the column says",
        ));
    }
    Ok(numbers)
}

fn unpack_zstd(from: &mut Taker<'_>, count: usize) -> Result<Vec<i64>> {
    let width = from.byte()?;
    let numbers = match width {
        1 => above::<1>,
        2 => above::<2>,
        3 => above::<3>,
        4 => above::<4>,
        5 => above::<5>,
        6 => above::<6>,
        7 => above::<7>,
        8 => above::<8>,
        _ => return Err(Error::damaged("width", width.to_string(), "1 to 8")),
    };
    let smallest = from.signed()?;
    let bytes = zstd::unpack(from.bytes()?, count.saturating_mul(usize::from(width)))?;
    Ok(numbers(&bytes, smallest))
}

/// Numbers above the smallest, of this many bytes each.
fn above<const WIDTH: usize>(bytes: &[u8], smallest: i64) -> Vec<i64> {
    let (numbers, _) = bytes.as_chunks::<WIDTH>();
    let number = |bytes: &[u8; WIDTH]| {
        let number = bytes.iter().rev().fold(0u64, |number, &byte| number << 8 | u64::from(byte));
        smallest.wrapping_add(number as i64)
    };
    numbers.iter().map(number).collect()
}

fn zstd_code(numbers: &[i64], effort: zstd::Effort) -> Result<Vec<u8>> {
    let smallest = numbers.iter().copied().min().unwrap_or_default();
    let largest = numbers.iter().copied().max().unwrap_or_default();
    let range = largest.wrapping_sub(smallest) as u64;
    let width = (range.max(1).ilog2() / 8 + 1) as usize;
    let mut bytes = Vec::with_capacity(numbers.len() * width);
    for number in numbers {
        let number = (number.wrapping_sub(smallest) as u64).to_le_bytes();
        bytes.extend(number.iter().take(width));
    }
    let mut out = vec![ZSTD, width as u8];
    varint::put_signed(&mut out, smallest);
    varint::put_bytes(&mut out, &zstd::pack(&bytes, effort)?);
    Ok(out)
}

fn pco<T: Number>(numbers: &[T], level: usize) -> Result<Vec<u8>> {
    simple_compress(numbers, &ChunkConfig::default().with_compression_level(level))
        .map_err(|error| Error::damaged("column of numbers", error.to_string(), "numbers that pco takes"))
}

impl Partner {
    fn column<'a>(self, before: &[&'a [i64]]) -> Option<&'a [i64]> {
        before.iter().rev().nth(self.back.checked_sub(1)?).copied()
    }
}

/// The two places of a column that are looked at; all of a short column.
fn places(count: usize) -> [std::ops::Range<usize>; 2] {
    if count <= 2 * SAMPLE {
        return [0..count, count..count];
    }
    let second = count * 2 / 3;
    let first = (count / 3).min(second - SAMPLE);
    [first..first + SAMPLE, second..second + SAMPLE]
}

fn sample(numbers: &[i64]) -> Vec<i64> {
    places(numbers.len())
        .into_iter()
        .flat_map(|place| numbers.get(place).unwrap_or_default())
        .copied()
        .collect()
}

/// The partner that makes the sample smallest, and the size.
fn best_partner(
    numbers: &[i64],
    sample: &[i64],
    before: &EarlierColumns<'_>,
) -> Result<(usize, Option<Partner>)> {
    let places = places(numbers.len());
    let alone = pco(sample, LEVEL_SAMPLE)?.len();
    let mut best = (estimate(sample), None);
    let before = before.nearest_first().enumerate().filter(|(_, column)| !column.is_empty());
    for (index, column) in before.take(PARTNERS_MAX) {
        if column.len() != numbers.len() {
            continue;
        }
        for shift in SHIFTS {
            let mut sample = Vec::with_capacity(sample.len());
            for place in places.clone() {
                let part = numbers.get(place.clone()).unwrap_or_default();
                sample.extend(differences(part, column, shift, place.start));
            }
            let bits = estimate(&sample);
            if bits + best.0 / PARTNER_GAIN < best.0 {
                best = (bits, Some((Partner { back: index + 1, shift }, sample)));
            }
        }
    }
    if let (_, Some((partner, sample))) = best {
        let size = pco(&sample, LEVEL_SAMPLE)?.len();
        if size < alone {
            return Ok((size, Some(partner)));
        }
    }
    Ok((alone, None))
}

/// A rough size of a column in bits: of its numbers above the smallest, or of the steps between them.
fn estimate(numbers: &[i64]) -> usize {
    let bits = |number: u64| (u64::BITS - number.leading_zeros()) as usize;
    let smallest = numbers.iter().copied().min().unwrap_or_default();
    let above = numbers.iter().map(|number| bits(number.wrapping_sub(smallest) as u64)).sum();
    let steps = numbers.windows(2).map(|pair| match pair {
        [one, next] => bits(next.wrapping_sub(*one).unsigned_abs()),
        _ => 0,
    });
    steps.sum::<usize>().min(above)
}

fn differences(numbers: &[i64], column: &[i64], shift: i8, start: usize) -> Vec<i64> {
    let difference =
        |(index, number): (usize, &i64)| number.wrapping_sub(shifted(column, start + index, shift));
    numbers.iter().enumerate().map(difference).collect()
}

/// The partner's number for a row; 0 outside the column.
fn shifted(column: &[i64], index: usize, shift: i8) -> i64 {
    index
        .checked_add_signed(isize::from(shift))
        .and_then(|index| column.get(index))
        .copied()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(numbers: &[i64], before: &[&[i64]]) -> usize {
        let mut packed = Vec::new();
        pack(numbers, &EarlierColumns::of(before.iter().copied()), Level::Default, &mut packed).unwrap();
        let mut taker = Taker::new(&packed);
        assert_eq!(unpack(&mut taker, before, numbers.len()).unwrap(), numbers);
        assert_eq!(taker.left(), 0);
        for length in 0..packed.len() {
            assert!(unpack(&mut Taker::new(&packed[..length]), before, numbers.len()).is_err());
        }
        if let Some(less) = numbers.len().checked_sub(1) {
            assert!(unpack(&mut Taker::new(&packed), before, less).is_err());
        }
        packed.len()
    }

    #[test]
    fn columns_of_every_kind_come_back() {
        round(&[], &[]);
        round(&[i64::MIN], &[]);
        assert!(round(&[7; 10_000], &[]) < 6);
        assert!(round(&(0..10_000).collect::<Vec<_>>(), &[]) < 60);
        round(&[i64::MIN, i64::MAX, 0, -1, 1], &[]);
        let repeated: Vec<i64> = (0..3000).map(|index| [5, 900, 2, 70_000][index % 4]).collect();
        assert!(round(&repeated, &[]) < 60);
        for bits in [8, 16, 24, 32, 40, 48, 56, 64] {
            let most = (u64::MAX >> (64 - bits)) as i64;
            let repeated: Vec<i64> =
                (0..3000).map(|index| [-7, most.wrapping_sub(7), 2, 0][index % 4]).collect();
            let size = round(&repeated, &[]);
            assert!(size < 70, "{size} for {bits} bits");
        }
    }

    #[test]
    fn decimals_in_doubles_and_floats_are_small_and_their_bits_come_back() {
        let doubles: Vec<i64> =
            (0..3000).map(|n| (f64::from(n * 7919 % 1000) / 100.0).to_bits() as i64).collect();
        let size = round(&doubles, &[]);
        assert!(size < 3000 * 2, "{size}");
        let floats: Vec<i64> =
            (0..3000).map(|n| i64::from((n as f32 * 7919.0 % 1000.0 / 8.0).to_bits() as i32)).collect();
        let size = round(&floats, &[]);
        assert!(size < 3000 * 2, "{size}");
        let odd =
            [f64::NAN.to_bits() | 5, (-f64::NAN).to_bits(), (-0.0f64).to_bits(), f64::INFINITY.to_bits()];
        let mixed: Vec<i64> = doubles
            .iter()
            .enumerate()
            .map(|(n, &bits)| if n % 9 == 0 { odd[n % 4] as i64 } else { bits })
            .collect();
        round(&mixed, &[]);
    }

    #[test]
    fn a_partner_is_found_and_makes_the_column_small() {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as i64
        };
        let first: Vec<i64> = (0..3000).map(|_| next()).collect();
        let other: Vec<i64> = (0..3000).map(|_| next()).collect();
        let same: Vec<i64> = first.iter().map(|number| number + 1).collect();
        let following: Vec<i64> = first.iter().skip(1).copied().chain([9]).collect();
        assert!(round(&first, &[]) > 8000);
        assert!(round(&same, &[&first, &other]) < 100);
        assert!(round(&following, &[&first, &other]) < 100);
    }
}
