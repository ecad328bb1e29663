//! Codes a string as its difference from an older one: a document that was changed in part.
//!
//! ```text
//! longer  varint  its length minus that of the older one, signed
//! behind  varint  bytes at its end that are those at the end of the older one
//! for each run of other bytes before those:
//!   same  varint  bytes that are those at the same place of the older one
//!   run   varint  bytes of the run
//!         run     the bytes; up to two are differences to those at the same place of the older one, 0 beyond its end
//! ```
//!
//! After the last run the bytes are the same. Short runs are mostly offsets in a header, which all moved by as much.

use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

/// Shorter strings are coded whole.
const SIZE_MIN: usize = 32;
/// The difference must take less than one byte for this many of the string.
const GAIN: usize = 4;
/// Runs up to this length are differences.
const SHORT_RUN: usize = 2;

/// The difference of `new` from `old`, if it is worth it.
pub(crate) fn of(old: &[u8], new: &[u8]) -> Option<Vec<u8>> {
    if new.len() < SIZE_MIN || old.len() < SIZE_MIN {
        return None;
    }
    let size_max = new.len() / GAIN;
    let behind = new.iter().rev().zip(old.iter().rev()).take_while(|(new, old)| new == old).count();
    let front = new.get(..new.len() - behind)?;
    let mut out = Vec::new();
    varint::put_signed(&mut out, new.len() as i64 - old.len() as i64);
    varint::put(&mut out, behind as u64);
    let is_same = |at: usize| at < front.len() && old.get(at) == front.get(at);
    let mut at = 0;
    while at < front.len() && out.len() <= size_max {
        let begin = at;
        while is_same(at) {
            at += 1;
        }
        let start = at;
        while at < front.len() && !(is_same(at) && is_same(at + 1)) {
            at += 1;
        }
        if start == at {
            break;
        }
        varint::put(&mut out, (start - begin) as u64);
        varint::put(&mut out, (at - start) as u64);
        let run = front.get(start..at)?;
        if run.len() <= SHORT_RUN {
            out.extend(run.iter().zip(start..).map(|(byte, at)| byte.wrapping_sub(byte_of(old, at))));
        } else {
            out.extend_from_slice(run);
        }
    }
    (out.len() <= size_max).then_some(out)
}

fn byte_of(old: &[u8], at: usize) -> u8 {
    old.get(at).copied().unwrap_or_default()
}

/// The string of at most `size_max` bytes that differs so from `old`.
pub(crate) fn apply(old: &[u8], difference: &[u8], size_max: usize) -> Result<Vec<u8>> {
    let mut from = Taker::new(difference);
    let longer = from.signed()?;
    let size = (old.len() as i64)
        .checked_add(longer)
        .and_then(|size| usize::try_from(size).ok())
        .filter(|&size| size <= size_max)
        .ok_or_else(|| {
            Error::damaged("difference", format!("a string {longer} bytes longer"), "one that has room")
        })?;
    let behind = from.at_most(size.min(old.len()) as u64, "bytes at the end")?;
    let front = size - behind;
    let mut out = Vec::with_capacity(size);
    while from.left() > 0 {
        let same = from.at_most((front - out.len()) as u64, "same bytes")?;
        copy(old, same, &mut out)?;
        let run = from.at_most((front - out.len()) as u64, "bytes of a run")?;
        let bytes = from.take(run)?;
        match run {
            0..=SHORT_RUN => {
                let start = out.len();
                let bytes = bytes.iter().zip(start..);
                out.extend(bytes.map(|(byte, at)| byte.wrapping_add(byte_of(old, at))));
            }
            _ => out.extend_from_slice(bytes),
        }
    }
    let same = front - out.len();
    copy(old, same, &mut out)?;
    out.extend_from_slice(old.get(old.len() - behind..).unwrap_or_default());
    Ok(out)
}

/// Appends as many bytes of the older string, from the same place on.
fn copy(old: &[u8], count: usize, out: &mut Vec<u8>) -> Result<()> {
    let same = old.get(out.len().min(old.len())..).and_then(|rest| rest.get(..count)).ok_or_else(|| {
        Error::damaged("difference", "bytes beyond the end of the older string", "bytes that it has")
    })?;
    out.extend_from_slice(same);
    Ok(())
}

#[cfg(test)]
mod tests {
    use binlogz_testkit::mutate::{mutate, seed};

    use super::*;

    #[test]
    fn changed_strings_come_back_and_take_little() {
        let original: Vec<u8> = (0..500u32).map(|at| (at * at % 251) as u8).collect();
        let seed = seed();
        let mut differences = 0;
        for index in 0..2000 {
            let (old, _) = mutate(&original, seed, index);
            let (new, what) = mutate(&old, seed, index + 1000);
            if let Some(difference) = of(&old, &new) {
                assert!(difference.len() <= new.len() / GAIN, "{what}");
                assert!(apply(&old, &difference, new.len()).unwrap() == new, "{what}");
                assert!(apply(&old, &difference, new.len() - 1).is_err(), "{what}");
                differences += 1;
            }
        }
        assert!(differences > 500, "{differences}");
        let old = b"{offsets 10 20 30 40} one two three four five six seven".to_vec();
        let new = b"{offsets 10 21 31 41} one twos three four five six seven".to_vec();
        let difference = of(&old, &new).unwrap();
        assert!(difference.len() <= 14 && apply(&old, &difference, 100).unwrap() == new, "{difference:?}");
        assert_eq!(of(&old, &old).map(|same| same.len()), Some(2));
        assert_eq!(of(b"short", b"shorter"), None);
    }

    #[test]
    fn damaged_differences_are_errors_or_other_strings_and_never_a_panic() {
        let old: Vec<u8> = (0..200).collect();
        let mut new = old.clone();
        new.splice(100..104, *b"other bytes");
        new[20] += 1;
        let difference = of(&old, &new).unwrap();
        for at in 0..difference.len() {
            let _ = apply(&old, &difference[..at], 1000);
            for flip in [1, 0x55, 0x80, 0xff] {
                let mut bad = difference.clone();
                bad[at] ^= flip;
                let _ = apply(&old, &bad, 1000);
                let _ = apply(&[], &bad, 1000);
            }
        }
    }
}
