//! Codes bytes without any known structure, through zstd or PPMd: by what a byte less may cost, see [`crate::codec::cost`].
//!
//! PPMd wins on text, zstd on bytes that repeat over long distances and on those that hardly compress. All of few bytes are tried with both;
//! of more, zstd's fast level on all and samples say what the others would make of them.

use crate::codec::cost::{CodeTime, Price};
use crate::codec::phrases::ReplacedText;
use crate::codec::{Level, ppmd, zstd};
use crate::error::Result;

/// The method that coded some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coder {
    Zstd,
    Ppmd,
}

/// What bytes are, as far as it's known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteContent {
    /// Text, documents, or anything.
    Any,
    /// Binary values of one length: hashes, UUIDs, bitmaps, long decimals. PPMd takes its longest on them and saves least.
    FixedBinary,
}

/// Up to this many bytes all is tried.
const WHOLE_MAX: usize = 128 << 10;
/// Bytes looked at, in each of two places, of more.
const SAMPLE: usize = 16 << 10;
/// Bytes looked at to choose between PPMd's models, where there are so many times as many.
const MODEL_SAMPLE: usize = 64 << 10;
const MODEL_SHARE: usize = 6;
/// The quick model must cost less by one part in this many.
const MODEL_MARGIN: u64 = 64;
/// Bytes of which zstd's fast level saves less than one in this many are noise.
const NOISE: usize = 64;

/// Codes bytes.
pub(crate) fn pack(bytes: &[u8], content: ByteContent, level: Level) -> Result<(Coder, Vec<u8>)> {
    let Some(price) = Price::of(level) else { return pack_smallest(bytes) };
    let with_ppmd = level != Level::Fast && content == ByteContent::Any;
    if bytes.len() > WHOLE_MAX {
        return pack_many(bytes, with_ppmd, price);
    }
    let by_zstd = zstd::pack(bytes, zstd::Effort::Medium)?;
    if with_ppmd {
        let (time, by_ppmd) = pack_text(bytes, price)?;
        let cost = price.cost(time, bytes.len(), by_ppmd.len());
        if cost < price.cost(CodeTime::ZSTD_MEDIUM, bytes.len(), by_zstd.len()) {
            return Ok((Coder::Ppmd, by_ppmd));
        }
    }
    Ok((Coder::Zstd, by_zstd))
}

/// Codes bytes as small as possible.
fn pack_smallest(bytes: &[u8]) -> Result<(Coder, Vec<u8>)> {
    let mut by_ppmd = ppmd::pack(bytes, ppmd::ORDER)?;
    let mut others = vec![ppmd::pack(bytes, ppmd::ORDER_LONG)?, ppmd::pack_quick(bytes)?];
    if let Some(replaced) = ReplacedText::of(bytes) {
        others.push(ppmd::pack_replaced(&replaced, ppmd::ORDER_PHRASES)?);
    }
    // Of words in no order the shortest is the smallest.
    for other in others {
        if other.len() < by_ppmd.len() {
            by_ppmd = other;
        }
    }
    let by_zstd = zstd::pack(bytes, zstd::Effort::Most)?;
    Ok(if by_ppmd.len() < by_zstd.len() { (Coder::Ppmd, by_ppmd) } else { (Coder::Zstd, by_zstd) })
}

/// Codes more bytes than all methods are tried on.
fn pack_many(bytes: &[u8], with_ppmd: bool, price: Price) -> Result<(Coder, Vec<u8>)> {
    let count = bytes.len();
    let quick = zstd::pack(bytes, zstd::Effort::Quick)?;
    if quick.len() > count - count / NOISE {
        return Ok((Coder::Zstd, quick));
    }
    let quick_cost = price.cost(CodeTime::ZSTD_QUICK, count, quick.len());
    let sample = sample(bytes);
    let expected =
        ExpectedSizes { whole: quick.len(), sample: zstd::pack(&sample, zstd::Effort::Quick)?.len() };
    let medium = expected.of(zstd::pack(&sample, zstd::Effort::Medium)?.len());
    let medium_cost = price.cost(CodeTime::ZSTD_MEDIUM, count, medium);
    if with_ppmd {
        let (time, sample) = pack_text(&sample, price)?;
        let least = medium_cost.min(quick_cost);
        if price.cost(time, count, expected.of(sample.len())) < least {
            let (time, packed) = pack_text(bytes, price)?;
            // Long repetitions don't show in a sample.
            if price.cost(time, count, packed.len()) < least {
                return Ok((Coder::Ppmd, packed));
            }
        }
    }
    if medium_cost < quick_cost {
        let packed = zstd::pack(bytes, zstd::Effort::Medium)?;
        if packed.len() < quick.len() {
            return Ok((Coder::Zstd, packed));
        }
    }
    Ok((Coder::Zstd, quick))
}

/// Codes bytes by PPMd, with phrases replaced if there are any; says by which of its models.
fn pack_text(bytes: &[u8], price: Price) -> Result<(CodeTime, Vec<u8>)> {
    let Some(replaced) = ReplacedText::of(bytes) else {
        return Ok((CodeTime::PPMD, ppmd::pack_quick(bytes)?));
    };
    let (time, order) = phrases_model(&replaced.bytes, price)?;
    Ok((time, ppmd::pack_replaced(&replaced, order)?))
}

/// The model of a text with phrases replaced: the one that looks back less far, if a sample says that the other isn't worth its time.
fn phrases_model(replaced: &[u8], price: Price) -> Result<(CodeTime, u8)> {
    let usual = (CodeTime::PPMD_PHRASES, ppmd::ORDER_PHRASES);
    let quick = (CodeTime::PPMD_PHRASES_QUICK, ppmd::ORDER_PHRASES_QUICK);
    if replaced.len() < MODEL_SAMPLE * MODEL_SHARE {
        return Ok(usual);
    }
    let start = (replaced.len() - MODEL_SAMPLE) / 2;
    let sample = replaced.get(start..start + MODEL_SAMPLE).unwrap_or_default();
    let cost = |(time, order): (CodeTime, u8)| -> Result<u64> {
        Ok(price.cost(time, sample.len(), ppmd::sample_size(sample, order)?))
    };
    // The usual model gains more by what follows the sample.
    let by_quick = cost(quick)?;
    Ok(if by_quick + by_quick / MODEL_MARGIN < cost(usual)? { quick } else { usual })
}

/// What zstd's fast level makes of all bytes and of a sample: others make as much more or less of all as of the sample.
struct ExpectedSizes {
    whole: usize,
    sample: usize,
}

impl ExpectedSizes {
    /// The size of all bytes' code, if the sample's takes so much.
    fn of(&self, sample: usize) -> usize {
        self.whole * sample / self.sample.max(1)
    }
}

/// Unpacks bytes whose unpacked size is known.
pub(crate) fn unpack(coder: Coder, packed: &[u8], size: usize) -> Result<Vec<u8>> {
    match coder {
        Coder::Zstd => zstd::unpack(packed, size),
        Coder::Ppmd => ppmd::unpack(packed, size),
    }
}

/// Two parts of the bytes.
fn sample(bytes: &[u8]) -> Vec<u8> {
    let third = bytes.len() / 3;
    let part = |start: usize| bytes.get(start..(start + SAMPLE).min(bytes.len())).unwrap_or_default();
    [part(third), part(third * 2)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(bytes: &[u8]) -> (Coder, usize) {
        let [fast, default, max] = [Level::Fast, Level::Default, Level::Max].map(|level| {
            let (coder, packed) = pack(bytes, ByteContent::Any, level).unwrap();
            assert!(unpack(coder, &packed, bytes.len()).unwrap() == bytes);
            (coder, packed.len())
        });
        assert_eq!(fast.0, Coder::Zstd);
        // zstd's levels differ by a few bytes in either direction where nothing is to be gained.
        let slack = fast.1 / 1000 + 8;
        assert!(max.1 <= default.1 + slack && default.1 <= fast.1 + slack, "{fast:?} {default:?} {max:?}");
        default
    }

    /// Numbers as random as a small generator makes them.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 40
    }

    /// So many words, of so many different ones.
    fn text(state: &mut u64, different: usize, count: usize) -> String {
        let words: Vec<String> = (0..different).map(|_| format!("{:x} ", random(state) % 4096)).collect();
        (0..count).map(|_| words[random(state) as usize % words.len()].as_str()).collect()
    }

    #[test]
    fn each_is_used_for_what_it_is_better_at() {
        let mut state = 1u64;
        // More than are tried as a whole, and fewer.
        for count in [60_000, 10_000] {
            let text = text(&mut state, 300, count);
            assert_eq!(round(text.as_bytes()).0, Coder::Ppmd);
            let (coder, _) = pack(text.as_bytes(), ByteContent::FixedBinary, Level::Default).unwrap();
            assert_eq!(coder, Coder::Zstd);
            let (coder, _) = pack(text.as_bytes(), ByteContent::FixedBinary, Level::Max).unwrap();
            assert_eq!(coder, Coder::Ppmd);
        }
        let noise: Vec<u8> = (0..100_000).map(|_| random(&mut state) as u8).collect();
        let (coder, size) = round(&noise.repeat(3));
        assert_eq!(coder, Coder::Zstd);
        assert!(size < 101_000, "{size}");
        assert_eq!(round(&noise).0, Coder::Zstd);
        round(b"");
        round(b"x");
    }

    #[test]
    fn what_ppmd_saves_little_of_is_left_to_zstd() {
        // Positions of six decimals, of vehicles in any order: PPMd saves a tenth, and takes twenty times as long.
        let mut state = 5u64;
        let mut places = [(13_400_000u64, 52_500_000u64); 40];
        let mut doubles = Vec::new();
        for _ in 0..20_000 {
            let place = &mut places[random(&mut state) as usize % 40];
            place.0 += random(&mut state) % 1000;
            place.1 += random(&mut state) % 1000;
            doubles.extend_from_slice(&(place.0 as f64 / 1e6).to_le_bytes());
            doubles.extend_from_slice(&(place.1 as f64 / 1e6).to_le_bytes());
        }
        let by_zstd = zstd::pack(&doubles, zstd::Effort::Medium).unwrap().len();
        let by_ppmd = ppmd::pack_quick(&doubles).unwrap().len();
        assert!(by_ppmd < by_zstd, "{by_ppmd} {by_zstd}");
        assert_eq!(pack(&doubles, ByteContent::Any, Level::Default).unwrap().0, Coder::Zstd);
    }

    #[test]
    fn long_repetitions_that_no_sample_shows_are_left_to_zstd() {
        let mut state = 9u64;
        let text = text(&mut state, 30, 60_000).repeat(11);
        let (coder, packed) = pack(text.as_bytes(), ByteContent::Any, Level::Default).unwrap();
        assert_eq!(coder, Coder::Zstd);
        assert!(packed.len() < text.len() / 11 / 2, "{}", packed.len());
    }
}
