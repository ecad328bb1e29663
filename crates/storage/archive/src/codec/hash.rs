//! A fast hash of bytes, to look up bytes that occurred before. It is not part of the format.

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;

/// Hashes bytes, starting from a seed or an earlier hash.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word).wrapping_mul(u128::from(FACTOR));
        product as u64 ^ (product >> 64) as u64 ^ SEED
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let hash = words.iter().fold(seed ^ SEED, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().rev().fold(1, |number: u64, &byte| number << 8 | u64::from(byte));
    mix(mix(hash, rest), bytes.len() as u64)
}
