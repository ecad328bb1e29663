//! Hashes of numbers, bits and members: keyed permutations of what the type holds.

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::row::temporal::big_endian;
use binlogz_binlog::row::{ColumnKind, ColumnSchema, Decimal};

use super::permutation::{permute_below, permute_bits, permute_digits, permute_valid};
use crate::secret::MaskKey;

const WHAT: &str = "row value";

/// An integer of any size. The highest bit stays, so that a number keeps its sign whether or not it has one.
pub(super) fn hashed_integer(key: &MaskKey, bytes: &[u8]) -> Vec<u8> {
    let raw = bytes.iter().rev().fold(0_u64, |raw, byte| raw << 8 | u64::from(*byte));
    let bits = 8 * bytes.len() as u32;
    if raw == 0 || bits == 0 {
        return bytes.to_vec();
    }
    let sign = raw & 1 << (bits - 1);
    let is_positive = sign == 0;
    let domain = if is_positive { "integer" } else { "negative integer" };
    let permuted = permute_valid(key, domain, (raw & !sign, bits - 1), |low| !is_positive || low != 0);
    little_endian(permuted | sign, bytes.len())
}

fn little_endian(value: u64, size: usize) -> Vec<u8> {
    value.to_le_bytes().into_iter().take(size).collect()
}

pub(super) fn hashed_float(key: &MaskKey, number: f32) -> Result<Vec<u8>, BinlogError> {
    let is_valid = |bits: u64| bits != 0 && f32::from_bits(bits as u32).is_finite();
    let bits = floating(key, (number.to_bits().into(), 32), is_valid, number == 0.0, number.is_finite())?;
    Ok(little_endian(bits, 4))
}

pub(super) fn hashed_double(key: &MaskKey, number: f64) -> Result<Vec<u8>, BinlogError> {
    let is_valid = |bits: u64| bits != 0 && f64::from_bits(bits).is_finite();
    let bits = floating(key, (number.to_bits(), 64), is_valid, number == 0.0, number.is_finite())?;
    Ok(little_endian(bits, 8))
}

fn floating(
    key: &MaskKey,
    (raw, bits): (u64, u32),
    is_valid: impl Fn(u64) -> bool,
    is_zero: bool,
    is_finite: bool,
) -> Result<u64, BinlogError> {
    if !is_finite {
        return Err(BinlogError::invalid(WHAT, "number", "infinite or none", "one that a server stores"));
    }
    if is_zero {
        return Ok(raw);
    }
    let sign = raw & 1 << (bits - 1);
    Ok(sign | permute_valid(key, "floating", (raw & !sign, bits - 1), is_valid))
}

/// A DECIMAL: its digits are permuted, its sign stays.
pub(super) fn hashed_decimal(key: &MaskKey, decimal: Decimal<'_>) -> Vec<u8> {
    let format = decimal.format();
    let text = decimal.text();
    let text = text.to_string();
    let unsigned = text.trim_start_matches('-');
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut digits = format.digits(whole, fraction).unwrap_or_default();
    if digits.iter().any(|&digit| digit != 0) {
        let domain = format!("decimal {}", format.scale());
        permute_digits(key, &domain, &mut digits, 10);
        while digits.iter().all(|&digit| digit == 0) {
            permute_digits(key, &domain, &mut digits, 10);
        }
    }
    format.encode(decimal.is_negative(), &digits)
}

pub(super) fn hashed_bits(key: &MaskKey, kind: ColumnKind, value: u64) -> Vec<u8> {
    let ColumnKind::Bit { bits } = kind else { return Vec::new() };
    let bits = u32::from(bits);
    let is_inside = bits >= u64::BITS || value >> bits == 0;
    let permuted = match value != 0 && is_inside {
        true => permute_valid(key, "bit", (value, bits), |value| value != 0),
        false => 0,
    };
    big_endian(permuted, bits.div_ceil(8) as usize)
}

/// A member of an ENUM: another one of its members. The empty value of an invalid one stays.
pub(super) fn hashed_member(key: &MaskKey, column: &ColumnSchema, number: u16, size: usize) -> Vec<u8> {
    let members = column.members.as_ref().map_or(0, |members| members.len()) as u64;
    let permuted = match u64::from(number).checked_sub(1) {
        Some(index) if index < members => 1 + permute_below(key, "enum", index, members),
        _ => 0,
    };
    little_endian(permuted, size)
}

/// The members of a SET: others of its members.
pub(super) fn hashed_members(key: &MaskKey, column: &ColumnSchema, bits: u64, size: usize) -> Vec<u8> {
    let members = column.members.as_ref().map_or(0, |members| members.len()).min(64) as u32;
    let is_inside = members >= u64::BITS || bits >> members == 0;
    let permuted = match (bits, members) {
        (0, _) => 0,
        (_, 1) if is_inside => bits,
        _ if is_inside => permute_valid(key, "set", (bits, members), |bits| bits != 0),
        _ => 0,
    };
    little_endian(permuted, size)
}

pub(super) fn hashed_year(key: &MaskKey, bytes: &[u8]) -> Vec<u8> {
    let hashed = |&year: &u8| match year.checked_sub(1) {
        None => 0,
        Some(year) => 1 + permute_below(key, "year", year.into(), 255) as u8,
    };
    bytes.iter().map(hashed).collect()
}

/// A VECTOR of as many numbers, between -1 and 1.
pub(super) fn hashed_vector(key: &MaskKey, bytes: &[u8]) -> Vec<u8> {
    let seed = key.digest(&[b"vector", bytes]);
    let number = |place: usize| {
        let hash = permute_bits(key, "vector", place as u64 & 0xffff, 16);
        let [first, second, ..] = key.digest(&[&seed, &hash.to_le_bytes(), &(place as u64).to_le_bytes()]);
        f32::from(i16::from_le_bytes([first, second])) / 32768.0
    };
    (0..bytes.len() / 4).flat_map(|place| number(place).to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use binlogz_binlog::row::DecimalFormat;

    use super::*;

    fn key() -> MaskKey {
        MaskKey::new(b"a key of sixteen")
    }

    #[test]
    fn integers_stay_unique_and_keep_sign_and_zero() {
        let key = key();
        let all: BTreeSet<Vec<u8>> = (0..=255).map(|byte| hashed_integer(&key, &[byte])).collect();
        assert_eq!(all.len(), 256);
        for size in [1, 2, 3, 4, 8] {
            assert_eq!(hashed_integer(&key, &vec![0; size]), vec![0; size]);
            let negative = hashed_integer(&key, &vec![0xff; size]);
            assert!(negative.len() == size && negative[size - 1] & 0x80 != 0, "{negative:?}");
            let mut one = vec![0; size];
            one[0] = 5;
            let positive = hashed_integer(&key, &one);
            assert!(positive != one && positive[size - 1] & 0x80 == 0, "{positive:?}");
        }
    }

    #[test]
    fn decimals_keep_sign_and_zero() {
        for (precision, scale) in [(1, 0), (1, 1), (4, 2), (9, 9), (10, 0), (18, 9), (65, 30), (31, 1)] {
            let format = DecimalFormat::new(precision, scale).unwrap();
            for is_negative in [false, true] {
                let digits: Vec<u8> = (0..precision).map(|place| 1 + place % 9).collect();
                let bytes = format.encode(is_negative, &digits);
                let decimal = Decimal::new(&bytes, format).unwrap();
                let hashed = hashed_decimal(&key(), decimal);
                let again = Decimal::new(&hashed, format).unwrap();
                assert_eq!(again.is_negative(), is_negative);
                assert!(precision == 1 || hashed != bytes);
            }
            let zero = format.encode(false, &vec![0; precision.into()]);
            assert_eq!(hashed_decimal(&key(), Decimal::new(&zero, format).unwrap()), zero);
        }
    }

    #[test]
    fn floating_numbers_stay_numbers() {
        for number in [1.5_f64, -1e300, 5e-324, f64::MAX] {
            let hashed = hashed_double(&key(), number).unwrap();
            let hashed = f64::from_le_bytes(hashed.try_into().unwrap());
            assert!(hashed.is_finite() && hashed != number && hashed.is_sign_negative() == (number < 0.0));
        }
        let hashed = hashed_float(&key(), f32::MAX).unwrap();
        assert!(f32::from_le_bytes(hashed.try_into().unwrap()).is_finite());
        assert_eq!(hashed_float(&key(), 0.0).unwrap(), [0; 4]);
        assert!(hashed_double(&key(), f64::NAN).is_err());
    }

    #[test]
    fn bits_and_years_stay_inside_their_type() {
        let kind = ColumnKind::Bit { bits: 10 };
        let all: BTreeSet<Vec<u8>> = (0..1024).map(|value| hashed_bits(&key(), kind, value)).collect();
        assert_eq!(all.len(), 1024);
        assert!(all.iter().all(|bytes| bytes[0] < 4));
        assert_eq!(hashed_bits(&key(), kind, u64::MAX), [0, 0]);
        let years: BTreeSet<Vec<u8>> = (0..=255).map(|year| hashed_year(&key(), &[year])).collect();
        assert_eq!((years.len(), hashed_year(&key(), &[0])), (256, vec![0]));
        assert_eq!(hashed_vector(&key(), &[1; 12]).len(), 12);
    }
}
