//! Damages bytes the way disks, networks and attackers do, the same way for the same seed.
//!
//! A run takes its seed from [`seed`], which prints it; `SEED=N` replays it. Mutation `i` of a run depends on the
//! seed and `i` alone, so that one of 100,000 can be looked at without the others.

use std::ops::Range;

use crate::random::Random;

/// Damages of one mutated file: few, so that most of it is still read.
const DAMAGES_MAX: usize = 4;
/// Bytes of a range that is cut out, doubled or inserted.
const RANGE_MAX: usize = 4096;
/// Where an event's length is in its header, and where the first event begins.
const EVENT_SIZE_OFFSET: usize = 9;
const EVENT_HEADER_BYTES: usize = 19;
const FIRST_EVENT: usize = 4;

/// The seed of this run: `SEED` from the environment, or one from the clock; printed, so that it can be replayed.
pub fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64 % 1_000_000_000)
    });
    println!("SEED={seed}");
    seed
}

/// Mutation `index` of `original` under `seed`, and its description in words.
pub fn mutate(original: &[u8], seed: u64, index: u64) -> (Vec<u8>, String) {
    let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(index));
    let mut bytes = original.to_vec();
    let mut done = Vec::new();
    for _ in 0..=random.below(DAMAGES_MAX) {
        done.push(damage(&mut bytes, &mut random));
    }
    // Half of them with corrected checksums: they reach the checks after the first one.
    if random.below(2) == 0 {
        mend_checksums(&mut bytes);
        done.push("checksums mended".into());
    }
    (bytes, format!("SEED={seed} mutation {index}: {}", done.join(", ")))
}

fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    if bytes.is_empty() {
        bytes.push(random.bits() as u8);
        return "one byte where there was none".into();
    }
    let at = random.below(bytes.len());
    match random.below(9) {
        0 => {
            bytes[at] ^= 1 << random.below(8);
            format!("bit flipped at {at}")
        }
        1 => {
            bytes[at] = edge_byte(random);
            format!("byte {:#04x} at {at}", bytes[at])
        }
        2 => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
        3 => {
            let range = range(at, bytes.len(), random);
            bytes.drain(range.clone());
            format!("{range:?} removed")
        }
        4 => {
            let range = range(at, bytes.len(), random);
            let copy = bytes[range.clone()].to_vec();
            bytes.splice(at..at, copy);
            format!("{range:?} doubled")
        }
        5 => {
            let count = 1 + random.below(RANGE_MAX);
            let noise: Vec<u8> = (0..count).map(|_| random.bits() as u8).collect();
            bytes.splice(at..at, noise);
            format!("{count} random bytes inserted at {at}")
        }
        6 => {
            let range = range(at, bytes.len(), random);
            bytes[range.clone()].fill(0);
            format!("{range:?} zeroed")
        }
        7 => lie(bytes, at, 1 << random.below(4), random),
        _ => match event_starts(bytes) {
            starts if starts.is_empty() => lie(bytes, at, 4, random),
            starts => lie(bytes, starts[random.below(starts.len())] + EVENT_SIZE_OFFSET, 4, random),
        },
    }
}

/// Overwrites `width` bytes with a number that is critical for lengths and counts.
fn lie(bytes: &mut [u8], at: usize, width: usize, random: &mut Random) -> String {
    let end = (at + width).min(bytes.len());
    let near = u64::from(bytes[at]);
    let numbers = [0, 1, 18, 19, near + 1, near.wrapping_sub(1), 0x7fff_ffff, 0x8000_0000, u64::MAX, 1 << 30];
    let number = numbers[random.below(numbers.len())];
    for (byte, new) in bytes[at..end].iter_mut().zip(number.to_le_bytes()) {
        *byte = new;
    }
    format!("number {number:#x} at {at}, {} bytes", end - at)
}

/// Values at which length encodings and signs change.
fn edge_byte(random: &mut Random) -> u8 {
    [0, 1, 0x7f, 0x80, 250, 251, 252, 253, 254, 255][random.below(10)]
}

fn range(start: usize, len: usize, random: &mut Random) -> Range<usize> {
    start..len.min(start + 1 + random.below(RANGE_MAX))
}

/// Offsets at which events begin, as far as their lengths can be followed.
fn event_starts(bytes: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = FIRST_EVENT;
    while let Some(header) = bytes.get(at..at + EVENT_HEADER_BYTES) {
        let Some(size) = header[EVENT_SIZE_OFFSET..].first_chunk::<4>() else { break };
        let size = u32::from_le_bytes(*size) as usize;
        if size < EVENT_HEADER_BYTES {
            break;
        }
        starts.push(at);
        at += size;
    }
    starts
}

/// Writes a fitting CRC-32 into the last four bytes of each event.
pub fn mend_checksums(bytes: &mut [u8]) {
    let starts = event_starts(bytes);
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    for (start, end) in starts.iter().copied().zip(ends.collect::<Vec<_>>()) {
        if let Some((event, checksum)) = bytes[start..end].split_last_chunk_mut::<4>() {
            *checksum = crc32fast::hash(event).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{event_starts, mend_checksums, mutate};
    use crate::corpus;

    #[test]
    fn checksums_of_a_whole_file_need_no_mending() {
        let mut mended = std::fs::read(corpus::path("binlog.000002")).expect("in the checkout");
        let original = mended.clone();
        mend_checksums(&mut mended);
        assert_eq!(mended, original);
        mended[200] ^= 1;
        mend_checksums(&mut mended);
        assert_ne!(mended[201..], original[201..]);
    }

    #[test]
    fn mutations_differ_from_one_another_and_repeat_themselves() {
        let original = std::fs::read(corpus::path("binlog.000001")).expect("in the checkout");
        assert!(event_starts(&original).len() > 20);
        let all: HashSet<_> = (0..1000).map(|index| mutate(&original, 7, index)).collect();
        let files: HashSet<_> = all.iter().map(|(bytes, _)| bytes).collect();
        assert!(files.len() > 950, "{} different files", files.len());
        assert!(all.contains(&mutate(&original, 7, 500)));
        assert!(!all.contains(&mutate(&original, 8, 500)));
        assert!(mutate(&[], 7, 0).0.len() < 10_000);
    }
}
