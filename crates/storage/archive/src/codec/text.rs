//! Codes bytes without any known structure, through zstd or PPMd: whichever is smaller.
//!
//! PPMd wins on text, zstd on bytes that repeat over long distances and on those that hardly compress. PPMd takes its
//! time, so samples decide whether it is tried.

use crate::codec::{Level, ppmd, zstd};
use crate::error::Result;

/// The method that coded some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Coder {
    Zstd,
    Ppmd,
}

/// Up to this many bytes both are tried.
const SMALL_MAX: usize = 16 << 10;
/// Bytes looked at, in each of two places, before PPMd is tried on all.
const SAMPLE: usize = 16 << 10;
/// PPMd must save two hundredths of a sample to be tried, as zstd's long matches don't show there.
const GAIN: usize = 50;
/// If it saves at least this part of a sample, it is compared with zstd's fast level only.
const GAIN_CLEAR: usize = 8;

/// Codes bytes.
pub(crate) fn pack(bytes: &[u8], level: Level) -> Result<(Coder, Vec<u8>)> {
    let by_zstd = |effort| zstd::pack(bytes, effort);
    match level {
        Level::Fast => return Ok((Coder::Zstd, by_zstd(zstd::Effort::Full)?)),
        Level::Max => {
            let mut by_ppmd = ppmd::pack(bytes, ppmd::ORDER)?;
            let longer = ppmd::pack(bytes, ppmd::ORDER_LONG)?;
            if longer.len() < by_ppmd.len() {
                by_ppmd = longer;
            }
            return Ok(smaller(by_zstd(zstd::Effort::Most)?, by_ppmd));
        }
        Level::Default if bytes.len() <= SMALL_MAX => {
            return Ok(smaller(by_zstd(zstd::Effort::Full)?, ppmd::pack(bytes, ppmd::ORDER)?));
        }
        Level::Default => {}
    }
    let sample = sample(bytes);
    let sample_zstd = zstd::pack(&sample, zstd::Effort::Full)?.len();
    let sample_ppmd = ppmd::pack(&sample, ppmd::ORDER)?.len();
    if sample_ppmd + sample_zstd / GAIN > sample_zstd {
        return Ok((Coder::Zstd, by_zstd(zstd::Effort::Full)?));
    }
    let packed = ppmd::pack(bytes, ppmd::ORDER)?;
    let clear = sample_ppmd + sample_zstd / GAIN_CLEAR < sample_zstd;
    if clear && by_zstd(zstd::Effort::Sample)?.len() > packed.len() + packed.len() / GAIN_CLEAR {
        return Ok((Coder::Ppmd, packed));
    }
    Ok(smaller(by_zstd(zstd::Effort::Full)?, packed))
}

/// Unpacks bytes whose unpacked size is known.
pub(crate) fn unpack(coder: Coder, packed: &[u8], size: usize) -> Result<Vec<u8>> {
    match coder {
        Coder::Zstd => zstd::unpack(packed, size),
        Coder::Ppmd => ppmd::unpack(packed, size),
    }
}

fn smaller(by_zstd: Vec<u8>, by_ppmd: Vec<u8>) -> (Coder, Vec<u8>) {
    if by_ppmd.len() < by_zstd.len() { (Coder::Ppmd, by_ppmd) } else { (Coder::Zstd, by_zstd) }
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
            let (coder, packed) = pack(bytes, level).unwrap();
            assert!(unpack(coder, &packed, bytes.len()).unwrap() == bytes);
            (coder, packed.len())
        });
        assert_eq!(fast.0, Coder::Zstd);
        // zstd's levels differ by a few bytes in either direction where nothing is to be gained.
        let slack = fast.1 / 1000 + 8;
        assert!(max.1 <= default.1 + slack && default.1 <= fast.1 + slack, "{fast:?} {default:?} {max:?}");
        default
    }

    #[test]
    fn each_is_used_for_what_it_is_better_at() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 40
        };
        let words: Vec<String> = (0..300).map(|_| format!("{:x} ", random() % 4096)).collect();
        let text: String = (0..40_000).map(|_| words[random() as usize % words.len()].as_str()).collect();
        assert_eq!(round(text.as_bytes()).0, Coder::Ppmd);
        let noise: Vec<u8> = (0..100_000).map(|_| random() as u8).collect();
        let (coder, size) = round(&noise.repeat(3));
        assert_eq!(coder, Coder::Zstd);
        assert!(size < 101_000, "{size}");
        round(b"");
        round(b"x");
    }
}
