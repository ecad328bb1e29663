//! PPMd (var. H, as in 7-Zip) for text: it predicts each byte from the last few bytes. The code is a fifth to a third
//! smaller than zstd's at higher levels, and takes as long to unpack as to pack.
//!
//! ```text
//! 0  1  order of the model, 2 to 16; with 0x80 the text has phrases that were replaced
//! 1  1  log2 of the model's memory in bytes, 16 to 24
//! 2     if there are: the phrases, see phrases.rs
//!       the range coder's bytes, with an end marker
//! ```

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{Read, Write};

use ppmd_rust::{Ppmd7Decoder, Ppmd7Encoder};

use crate::codec::phrases::{Phrases, ReplacedText};
use crate::codec::varint::Taker;
use crate::error::{Error, Result};

/// The order written: how many bytes the model looks back.
pub(crate) const ORDER: u8 = 6;
/// The order written where time counts: it takes three quarters of the time, and a few hundredths more bytes.
const ORDER_QUICK: u8 = 5;
/// Another one that may be smaller: for documents that repeat in large parts.
pub(crate) const ORDER_LONG: u8 = 12;
/// The orders written where phrases were replaced: a byte is a word or more then.
pub(crate) const ORDER_PHRASES: u8 = 3;
pub(crate) const ORDER_PHRASES_QUICK: u8 = 2;
/// A bit beside the order: phrases were replaced.
const WITH_PHRASES: u8 = 0x80;
const ORDERS: std::ops::RangeInclusive<u8> = 2..=16;
/// The memory of a model. A model that is full begins again: more memory than this hardly helps 8 MiB of text.
const MEMORY_LOG_MIN: u8 = 16;
const MEMORY_LOG_MAX: u8 = 24;
/// The most memory where time counts: it stays in a core's caches.
const MEMORY_LOG_MAX_QUICK: u8 = 22;
const MEMORY_LOG_MAX_PHRASES: u8 = 22;
/// The memory of a model for each byte of text, as a power of two.
const MEMORY_FACTOR_LOG: u32 = 4;

/// The largest codes that are remembered, in bytes, and how many of the last ones a thread remembers. Bitmaps and table
/// maps are the same in block after block, and starting a model takes far longer than unpacking them.
const REMEMBERED_SIZE_MAX: usize = 256;
const REMEMBERED_COUNT_MAX: usize = 32;

thread_local! {
    /// Codes, and the text each stands for.
    static REMEMBERED: RefCell<VecDeque<(Vec<u8>, Vec<u8>)>> = const { RefCell::new(VecDeque::new()) };
}

/// Packs bytes.
pub(crate) fn pack(bytes: &[u8], order: u8) -> Result<Vec<u8>> {
    pack_within(bytes, order, MEMORY_LOG_MAX)
}

/// Packs bytes by a model that looks back less far.
pub(crate) fn pack_quick(bytes: &[u8]) -> Result<Vec<u8>> {
    pack_within(bytes, ORDER_QUICK, MEMORY_LOG_MAX_QUICK)
}

/// Packs a text with phrases replaced.
pub(crate) fn pack_replaced(replaced: &ReplacedText, order: u8) -> Result<Vec<u8>> {
    let memory_log = memory_log(replaced.bytes.len(), MEMORY_LOG_MAX_PHRASES);
    let mut out = vec![order | WITH_PHRASES, memory_log];
    replaced.phrases.put(replaced.bytes.len(), &mut out);
    pack_model(&replaced.bytes, order, memory_log, out)
}

/// The size of a sample of a text with phrases replaced, which is packed as [`pack_replaced`] does.
pub(crate) fn sample_size(sample: &[u8], order: u8) -> Result<usize> {
    Ok(pack_within(sample, order, MEMORY_LOG_MAX_PHRASES)?.len())
}

fn pack_within(bytes: &[u8], order: u8, memory_log_max: u8) -> Result<Vec<u8>> {
    let memory_log = memory_log(bytes.len(), memory_log_max);
    pack_model(bytes, order, memory_log, vec![order, memory_log])
}

/// The memory of a model for so many bytes, as a power of two.
fn memory_log(size: usize, max: u8) -> u8 {
    let memory_log = (size.max(1).ilog2() + 1 + MEMORY_FACTOR_LOG) as u8;
    memory_log.clamp(MEMORY_LOG_MIN, max)
}

fn pack_model(bytes: &[u8], order: u8, memory_log: u8, out: Vec<u8>) -> Result<Vec<u8>> {
    let mut encoder = Ppmd7Encoder::new(out, order.into(), 1 << memory_log).map_err(failed)?;
    encoder.write_all(bytes).and_then(|()| encoder.finish(true)).map_err(failed)
}

/// Unpacks bytes whose unpacked size is known.
pub(crate) fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>> {
    if packed.len().max(size) > REMEMBERED_SIZE_MAX {
        return unpack_anew(packed, size);
    }
    REMEMBERED.with_borrow_mut(|remembered| {
        let known = remembered.iter().find(|(code, bytes)| code == packed && bytes.len() == size);
        if let Some((_, bytes)) = known {
            return Ok(bytes.clone());
        }
        let bytes = unpack_anew(packed, size)?;
        if remembered.len() == REMEMBERED_COUNT_MAX {
            remembered.pop_back();
        }
        remembered.push_front((packed.to_vec(), bytes.clone()));
        Ok(bytes)
    })
}

fn unpack_anew(packed: &[u8], size: usize) -> Result<Vec<u8>> {
    let Some((&[order, memory_log], coded)) = packed.split_first_chunk() else {
        return Err(Error::damaged("PPMd model", "its end", "its order and memory"));
    };
    if order & WITH_PHRASES == 0 {
        return unpack_model(coded, order, memory_log, size);
    }
    let mut from = Taker::new(coded);
    let (phrases, replaced) = Phrases::take(&mut from, size)?;
    let model = from.take(from.left())?;
    phrases.restore(&unpack_model(model, order & !WITH_PHRASES, memory_log, replaced)?, size)
}

fn unpack_model(coded: &[u8], order: u8, memory_log: u8, size: usize) -> Result<Vec<u8>> {
    if !ORDERS.contains(&order) || !(MEMORY_LOG_MIN..=MEMORY_LOG_MAX).contains(&memory_log) {
        return Err(Error::damaged(
            "PPMd model",
            format!("order {order}, memory 2^{memory_log}"),
            "order 2 to 16, memory 2^16 to 2^24",
        ));
    }
    let mut left = coded;
    let mut out = Vec::new();
    out.try_reserve_exact(size.saturating_add(1))
        .map_err(|_| Error::damaged("size", format!("{size} bytes"), "a size that there is memory for"))?;
    let decoder = Ppmd7Decoder::new(&mut left, order.into(), 1 << memory_log).map_err(failed)?;
    // One more than there are: only at the end marker does the decoder check that it came to the end.
    decoder.take(size as u64 + 1).read_to_end(&mut out).map_err(failed)?;
    match (out.len() == size, left.is_empty()) {
        (true, true) => Ok(out),
        (true, false) => Err(Error::damaged("PPMd code", format!("{} bytes left over", left.len()), "none")),
        (false, _) => Err(Error::unexpected("size of PPMd code", out.len(), size)),
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::damaged("PPMd code", error.to_string(), "a whole one")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(size: usize) -> Vec<u8> {
        let words = ["the order ", "was sent ", "to ", "customer ", "1234 ", "again, "];
        let mut state = 1usize;
        let mut out = Vec::new();
        while out.len() < size {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            out.extend_from_slice(words[(state >> 33) % words.len()].as_bytes());
        }
        out.truncate(size);
        out
    }

    #[test]
    fn small_codes_that_are_remembered_give_the_same_and_of_another_size_an_error() {
        let texts: Vec<Vec<u8>> = (1..2 * REMEMBERED_COUNT_MAX).map(text).collect();
        let packed: Vec<Vec<u8>> = texts.iter().map(|text| pack(text, ORDER).unwrap()).collect();
        for (text, packed) in texts.iter().zip(&packed).chain(texts.iter().zip(&packed).rev()) {
            for _ in 0..2 {
                assert!(unpack(packed, text.len()).unwrap() == *text);
                assert!(unpack(packed, text.len() + 1).is_err());
                assert!(unpack(packed, text.len() - 1).is_err());
            }
        }
        REMEMBERED.with_borrow(|remembered| assert_eq!(remembered.len(), REMEMBERED_COUNT_MAX));
    }

    #[test]
    fn text_comes_back_small_and_damage_is_an_error_or_other_bytes() {
        for size in [0, 1, 2, 100, 10_000, 300_000] {
            let text = text(size);
            let packed = pack(&text, ORDER).unwrap();
            assert!(unpack(&packed, size).unwrap() == text);
            assert!(size < 100 || packed.len() < size / 2, "{size}: {}", packed.len());
            for length in (0..packed.len()).step_by(packed.len() / 20 + 1) {
                // The end marker's last byte may say nothing that the bytes before it have not said.
                let cut = unpack(&packed[..length], size);
                assert!(cut.is_err() || length + 4 > packed.len() && cut.is_ok_and(|back| back == text));
            }
            for at in (0..packed.len()).step_by(packed.len() / 20 + 1) {
                let mut bad = packed.clone();
                bad[at] ^= 0x55;
                let _ = unpack(&bad, size);
            }
            assert!(unpack(&[packed.as_slice(), b"x"].concat(), size).is_err());
            assert!(unpack(&packed, size + 1).is_err());
            assert!(size == 0 || unpack(&packed, size - 1).is_err());
        }
    }

    #[test]
    fn models_beyond_the_bounds_are_refused() {
        let packed = pack(b"text", ORDER).unwrap();
        for (at, value) in [(0, 1), (0, 17), (1, 15), (1, 25), (1, 32)] {
            let mut bad = packed.clone();
            bad[at] = value;
            assert!(unpack(&bad, 4).is_err(), "byte {at}: {value}");
        }
    }
}
