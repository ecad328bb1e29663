//! A keyed permutation of the numbers of a range: each has exactly one other in its place, so what was unique stays so.
//!
//! A Feistel network over digits, with the structure of FF1 (NIST SP 800-38G): ten rounds, each of which adds digits of a keyed
//! hash of one half to the other, without carry. A result outside of the range is permuted again, until it is inside
//! (cycle-walking, Black and Rogaway 2002). A range of few numbers hides little: who sees enough of them sees which is which.

use crate::secret::MaskKey;

const ROUNDS: u8 = 10;
/// Digits made of one hash: two bytes each, so that remainders are even enough.
const DIGITS_OF_HASH: usize = 16;

/// Permutes the numbers of as many digits as these.
pub(super) fn permute_digits(key: &MaskKey, domain: &str, digits: &mut Vec<u8>, radix: u8) {
    match digits.as_mut_slice() {
        [] => {}
        [digit] => *digit = permuted_digit(key, domain, *digit, radix),
        _ => feistel(key, domain, digits, radix),
    }
}

fn feistel(key: &MaskKey, domain: &str, digits: &mut Vec<u8>, radix: u8) {
    let count = digits.len() as u64;
    let mut back = digits.split_off(digits.len() / 2);
    let mut front = std::mem::take(digits);
    for round in 0..ROUNDS {
        let place = [round, radix];
        let added = hash_digits(key, &[domain.as_bytes(), &count.to_le_bytes(), &place, &back], radix);
        for (digit, more) in front.iter_mut().zip(added(front_len(count, round))) {
            *digit = ((u16::from(*digit) + u16::from(more)) % u16::from(radix)) as u8;
        }
        std::mem::swap(&mut front, &mut back);
    }
    front.append(&mut back);
    *digits = front;
}

/// Digits of the half that a round changes.
fn front_len(count: u64, round: u8) -> usize {
    let front = count / 2;
    (if round.is_multiple_of(2) { front } else { count - front }) as usize
}

/// Makes as many digits as are asked for.
fn hash_digits<'a>(key: &'a MaskKey, parts: &[&[u8]], radix: u8) -> impl Fn(usize) -> Vec<u8> + use<'a> {
    let seed = key.digest(parts);
    move |count| {
        let mut digits = Vec::with_capacity(count);
        for block in 0..count.div_ceil(DIGITS_OF_HASH) as u64 {
            let hash = if block == 0 { seed } else { key.digest(&[&seed, &block.to_le_bytes()]) };
            let (pairs, _) = hash.as_chunks::<2>();
            digits.extend(pairs.iter().map(|pair| (u16::from_le_bytes(*pair) % u16::from(radix)) as u8));
        }
        digits.truncate(count);
        digits
    }
}

/// One digit: all of them are shuffled.
fn permuted_digit(key: &MaskKey, domain: &str, digit: u8, radix: u8) -> u8 {
    let mut shuffled: Vec<u8> = (0..radix).collect();
    for place in (1..shuffled.len()).rev() {
        let hash = key.digest(&[domain.as_bytes(), b"digit", &[radix, place as u8]]);
        let number = hash.iter().take(4).fold(0_usize, |number, byte| number << 8 | usize::from(*byte));
        shuffled.swap(place, number % (place + 1));
    }
    shuffled.get(usize::from(digit)).copied().unwrap_or(digit)
}

/// Permutes numbers below `1 << bits`.
pub(super) fn permute_bits(key: &MaskKey, domain: &str, value: u64, bits: u32) -> u64 {
    let mut digits: Vec<u8> = (0..bits).rev().map(|bit| (value >> bit & 1) as u8).collect();
    permute_digits(key, domain, &mut digits, 2);
    digits.iter().fold(0, |value, &bit| value << 1 | u64::from(bit))
}

/// Permutes the numbers below `1 << bits` that are valid. `value` is one of them.
pub(super) fn permute_valid(
    key: &MaskKey,
    domain: &str,
    (value, bits): (u64, u32),
    is_valid: impl Fn(u64) -> bool,
) -> u64 {
    let mut permuted = permute_bits(key, domain, value, bits);
    // It comes back to the value itself at the latest, which is valid.
    while !is_valid(permuted) && permuted != value {
        permuted = permute_bits(key, domain, permuted, bits);
    }
    permuted
}

/// Permutes the numbers below a bound; `value` is one of them.
pub(super) fn permute_below(key: &MaskKey, domain: &str, value: u64, bound: u64) -> u64 {
    if value >= bound || bound < 2 {
        return value;
    }
    let bits = u64::BITS - (bound - 1).leading_zeros();
    permute_valid(key, domain, (value, bits), |number| number < bound)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_number_of_a_range_has_one_other_in_its_place() {
        let key = MaskKey::new(b"a key of sixteen");
        for bound in [2, 3, 10, 255, 1000, 4096] {
            let permuted: BTreeSet<u64> =
                (0..bound).map(|value| permute_below(&key, "test", value, bound)).collect();
            assert_eq!(permuted.len() as u64, bound);
            assert_eq!(permuted.last(), Some(&(bound - 1)));
        }
        for digits in 1..=3 {
            let bound = 10_usize.pow(digits);
            let all: BTreeSet<Vec<u8>> = (0..bound)
                .map(|number| {
                    let mut own = format!("{number:0width$}", width = digits as usize).into_bytes();
                    own.iter_mut().for_each(|digit| *digit -= b'0');
                    permute_digits(&key, "test", &mut own, 10);
                    own
                })
                .collect();
            assert_eq!(all.len(), bound);
        }
    }

    #[test]
    fn key_domain_and_length_matter() {
        let [key, other] = [MaskKey::new(b"a key of sixteen"), MaskKey::new(b"A key of sixteen")];
        let value = 123_456_789;
        let permuted = permute_bits(&key, "test", value, 63);
        assert_eq!(permute_bits(&key, "test", value, 63), permuted);
        for another in [
            permute_bits(&other, "test", value, 63),
            permute_bits(&key, "tests", value, 63),
            permute_bits(&key, "test", value, 62),
            value,
        ] {
            assert_ne!(another, permuted);
        }
    }
}
