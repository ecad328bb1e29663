//! Frequent phrases of a text, each replaced by a byte that is rare there: PPMd's time goes by symbols, so it takes half of it where words and the
//! frames of documents are one symbol each. A phrase is made of two shorter ones, again and again (byte pair encoding), by what is frequent in
//! a sample.
//!
//! ```text
//! escape  1       the byte before each byte that stands for itself, although it stands for a phrase or is this one
//! count   varint  of phrases, 0 to 128; each, by rising bytes:
//!   byte    1       which stands for it
//!   phrase  bytes   length, 2 to 32, and its bytes
//! size    varint  of the text with phrases replaced
//! ```

use crate::codec::varint::{self, Taker};
use crate::error::{Error, Result};

/// Texts of fewer bytes have none: finding and storing them costs more than it saves.
const TEXT_MIN: usize = 64 << 10;
const COUNT_MAX: usize = 128;
/// The most phrases that are made; some are used up by others, and left out.
const COUNT_MADE: usize = 96;
/// Bytes are rare if all together are at most one in so many, and each one in so many.
const RARE: usize = 128;
const RARE_EACH: usize = 512;
const LENGTH_MAX: usize = 32;
/// Bytes looked at to find phrases: one in so many, in so many parts, within bounds.
const SAMPLE_SHARE: usize = 8;
const SAMPLE_PARTS: usize = 4;
const SAMPLE_MIN: usize = 8 << 10;
const SAMPLE_MAX: usize = 64 << 10;
/// How often two symbols stand together in the sample, at least, to become one.
const PAIRS_MIN: u32 = 24;
/// The most that become one between two counts, if they are at least half as frequent as the first.
const MERGES_AT_ONCE: usize = 16;
/// A phrase that is used less often in the sample, after longer phrases have replaced parts of it, is dropped.
const USES_MIN: u32 = 8;
/// A text that keeps more than seven eighths of its symbols has no phrases worth the name.
const GAIN_EIGHTHS: usize = 7;

const BYTES: usize = 256;

/// Phrases, and the bytes that stand for them.
#[derive(Debug)]
pub(crate) struct Phrases {
    /// By byte; empty: it stands for itself.
    of: Vec<Vec<u8>>,
    escape: u8,
}

/// A text with its phrases replaced.
#[derive(Debug)]
pub(crate) struct ReplacedText {
    pub(crate) phrases: Phrases,
    pub(crate) bytes: Vec<u8>,
}

impl ReplacedText {
    /// `None`: no phrases are worth it.
    pub(crate) fn of(text: &[u8]) -> Option<ReplacedText> {
        let phrases = Phrases::of(text)?;
        let bytes = phrases.replace(text);
        (bytes.len() <= text.len() * GAIN_EIGHTHS / 8).then_some(ReplacedText { phrases, bytes })
    }
}

impl Phrases {
    /// `None`: none are worth it.
    fn of(text: &[u8]) -> Option<Phrases> {
        if text.len() < TEXT_MIN {
            return None;
        }
        let mut rare = rare_bytes(text);
        let mut phrases = Phrases { of: vec![Vec::new(); BYTES], escape: rare.pop()? };
        let mut is_rare = [false; BYTES];
        rare.iter().for_each(|&byte| mark(&mut is_rare, byte));
        let mut symbols = sample(text);
        symbols.retain(|&byte| !is_set(&is_rare, byte));
        let size = symbols.len();
        phrases.join_pairs(&mut symbols, rare);
        if symbols.len() > size * GAIN_EIGHTHS / 8 {
            return None;
        }
        let mut uses = [0u32; BYTES];
        for &symbol in &symbols {
            if let Some(uses) = uses.get_mut(usize::from(symbol)) {
                *uses += 1;
            }
        }
        for (phrase, uses) in phrases.of.iter_mut().zip(uses) {
            if uses < USES_MIN {
                phrase.clear();
            }
        }
        phrases.of.iter().any(|phrase| !phrase.is_empty()).then_some(phrases)
    }

    /// Joins the symbols of a sample that stand together most often, as long as there are bytes for them.
    fn join_pairs(&mut self, symbols: &mut Vec<u8>, rare: Vec<u8>) {
        let mut rare = rare.into_iter();
        let mut counts = vec![0u32; BYTES * BYTES];
        loop {
            let pairs = self.frequent_pairs(symbols, &mut counts);
            let Some(&(most, _)) = pairs.first() else { return };
            let mut joined = [None; BYTES];
            let mut is_taken = [false; BYTES];
            let mut done = 0;
            for (count, [one, next]) in pairs {
                if count * 2 < most || done == MERGES_AT_ONCE {
                    break;
                }
                if is_set(&is_taken, one) || is_set(&is_taken, next) {
                    continue;
                }
                let Some(byte) = rare.next() else { break };
                mark(&mut is_taken, one);
                mark(&mut is_taken, next);
                let phrase = [self.bytes_of(one), self.bytes_of(next)].concat();
                if let Some(of) = self.of.get_mut(usize::from(byte)) {
                    *of = phrase;
                }
                if let Some(joined) = joined.get_mut(usize::from(one)) {
                    *joined = Some((next, byte));
                }
                done += 1;
            }
            if done == 0 {
                return;
            }
            join(symbols, &joined);
        }
    }

    /// The pairs of symbols that are frequent and not too long, the most frequent first. `counts` is room for all pairs.
    fn frequent_pairs(&self, symbols: &[u8], counts: &mut [u32]) -> Vec<(u32, [u8; 2])> {
        counts.fill(0);
        for pair in symbols.windows(2) {
            if let &[one, next] = pair
                && let Some(count) = counts.get_mut(place_of([one, next]))
            {
                *count += 1;
            }
        }
        let pairs = counts.iter().enumerate().filter(|(_, count)| **count >= PAIRS_MIN);
        let pairs = pairs.map(|(pair, &count)| (count, [(pair >> 8) as u8, pair as u8]));
        let length = |byte: u8| self.of.get(usize::from(byte)).map_or(1, |phrase| phrase.len().max(1));
        let mut pairs: Vec<_> =
            pairs.filter(|(_, [one, next])| length(*one) + length(*next) <= LENGTH_MAX).collect();
        pairs.sort_unstable_by(|one, other| other.cmp(one));
        pairs
    }

    /// The bytes that a symbol stands for.
    fn bytes_of(&self, symbol: u8) -> Vec<u8> {
        match self.of.get(usize::from(symbol)) {
            Some(phrase) if !phrase.is_empty() => phrase.clone(),
            _ => vec![symbol],
        }
    }

    /// The text with the longest phrase at each place replaced.
    fn replace(&self, text: &[u8]) -> Vec<u8> {
        let starts = PhraseStarts::of(self);
        let mut replaced = Vec::with_capacity(text.len() / 2);
        let mut rest = text;
        while let Some((&byte, after)) = rest.split_first() {
            if let Some((symbol, left)) = starts.longest(rest) {
                replaced.push(symbol);
                rest = left;
                continue;
            }
            if self.needs_escape(byte) {
                replaced.push(self.escape);
            }
            replaced.push(byte);
            rest = after;
        }
        replaced
    }

    /// Whether a byte that stands for itself needs the escape before it.
    fn needs_escape(&self, byte: u8) -> bool {
        byte == self.escape || self.of.get(usize::from(byte)).is_some_and(|phrase| !phrase.is_empty())
    }

    /// The text of `size` bytes that was replaced.
    pub(crate) fn restore(&self, replaced: &[u8], size: usize) -> Result<Vec<u8>> {
        // With room for a phrase after its end: each is copied with what may follow it.
        let room = size.saturating_add(LENGTH_MAX);
        let mut text = Vec::new();
        text.try_reserve_exact(room).map_err(|_| {
            Error::damaged("size", format!("{size} bytes"), "a size that there is memory for")
        })?;
        text.resize(room, 0);
        let symbols = self.symbols();
        let mut at = 0;
        let mut is_itself = false;
        for &byte in replaced {
            let Some((bytes, length)) = symbols.get(usize::from(byte)) else { continue };
            let Some(place) = text.get_mut(at..).and_then(|text| text.first_chunk_mut()) else { break };
            if is_itself {
                (*place, is_itself) = ([byte; LENGTH_MAX], false);
                at += 1;
            } else {
                *place = *bytes;
                at += length;
                is_itself = *length == 0;
            }
        }
        if is_itself {
            return Err(Error::damaged("text with phrases", "an escape at its end", "a byte after it"));
        }
        text.truncate(size);
        if at == size { Ok(text) } else { Err(Error::unexpected("size of a text with phrases", at, size)) }
    }

    /// By byte: the bytes that it stands for, and how many; none for the escape.
    fn symbols(&self) -> Vec<([u8; LENGTH_MAX], usize)> {
        let symbol = |(phrase, byte): (&Vec<u8>, u8)| {
            let mut bytes = [byte; LENGTH_MAX];
            for (place, byte) in bytes.iter_mut().zip(phrase) {
                *place = *byte;
            }
            let length = if byte == self.escape { 0 } else { phrase.len().max(1) };
            (bytes, length)
        };
        self.of.iter().zip(0..=u8::MAX).map(symbol).collect()
    }

    /// Appends them, and the size of the text with phrases replaced.
    pub(crate) fn put(&self, replaced: usize, out: &mut Vec<u8>) {
        let phrases = self.of.iter().enumerate().filter(|(_, phrase)| !phrase.is_empty());
        out.push(self.escape);
        varint::put(out, phrases.clone().count() as u64);
        for (symbol, phrase) in phrases {
            out.push(symbol as u8);
            varint::put_bytes(out, phrase);
        }
        varint::put(out, replaced as u64);
    }

    /// Takes them, and the size of a text with phrases replaced that has at most `size` bytes.
    pub(crate) fn take(from: &mut Taker<'_>, size: usize) -> Result<(Phrases, usize)> {
        let mut phrases = Phrases { of: vec![Vec::new(); BYTES], escape: from.byte()? };
        let mut symbol_min = 0u16;
        for _ in 0..from.at_most(COUNT_MAX as u64, "count of phrases")? {
            let symbol = from.byte()?;
            if u16::from(symbol) < symbol_min || symbol == phrases.escape {
                let expected = format_args!("{symbol_min} or more, but {}", phrases.escape);
                return Err(Error::unexpected("byte of a phrase", symbol, expected));
            }
            symbol_min = u16::from(symbol) + 1;
            let phrase = from.bytes()?;
            if !(2..=LENGTH_MAX).contains(&phrase.len()) {
                return Err(Error::unexpected(
                    "length of a phrase",
                    phrase.len(),
                    format_args!("2 to {LENGTH_MAX}"),
                ));
            }
            if let Some(of) = phrases.of.get_mut(usize::from(symbol)) {
                *of = phrase.to_vec();
            }
        }
        Ok((phrases, from.at_most(size as u64, "size of a text with its phrases replaced")?))
    }
}

/// The place of a pair of bytes among all pairs.
fn place_of([one, next]: [u8; 2]) -> usize {
    usize::from(one) << 8 | usize::from(next)
}

/// Phrases by their first two bytes, the longest first.
struct PhraseStarts<'a> {
    /// Where those of two bytes begin in `phrases`.
    begins: Vec<u16>,
    phrases: Vec<PhraseStart<'a>>,
}

/// A phrase, to be compared by its first bytes.
struct PhraseStart<'a> {
    symbol: u8,
    /// The place of the first two bytes among all pairs.
    first: usize,
    /// The first eight bytes at most, as a number.
    word: u64,
    /// The bits of `word` that count, if the phrase is shorter.
    mask: u64,
    /// The bytes after the first eight.
    more: &'a [u8],
    length: usize,
}

impl<'a> PhraseStarts<'a> {
    fn of(phrases: &'a Phrases) -> Self {
        let start = |(phrase, symbol): (&'a Vec<u8>, u8)| {
            let first = place_of(*phrase.first_chunk()?);
            let (start, more) = phrase.split_at(phrase.len().min(WORD));
            let mask = u64::MAX >> (8 * (WORD - start.len()));
            Some(PhraseStart { symbol, first, word: word_of(start), mask, more, length: phrase.len() })
        };
        let mut starts: Vec<_> = phrases.of.iter().zip(0..=u8::MAX).filter_map(start).collect();
        starts.sort_by_key(|phrase| (phrase.first, std::cmp::Reverse(phrase.length)));
        let mut begins = vec![0; BYTES * BYTES + 1];
        let mut before = 0;
        for (pair, begin) in begins.iter_mut().enumerate() {
            *begin = before as u16;
            before += starts.iter().skip(before).take_while(|phrase| phrase.first == pair).count();
        }
        PhraseStarts { begins, phrases: starts }
    }

    /// The longest phrase with which a text begins, and the text after it.
    #[inline]
    fn longest<'t>(&self, text: &'t [u8]) -> Option<(u8, &'t [u8])> {
        let first = place_of(*text.first_chunk()?);
        let (begin, end) = (*self.begins.get(first)?, *self.begins.get(first + 1)?);
        if begin == end {
            return None;
        }
        let word = match text.first_chunk() {
            Some(word) => u64::from_le_bytes(*word),
            None => word_of(text),
        };
        let found = self.phrases.get(usize::from(begin)..usize::from(end))?.iter().find(|phrase| {
            word & phrase.mask == phrase.word
                && phrase.length <= text.len()
                && (phrase.more.is_empty() || text.get(WORD..phrase.length) == Some(phrase.more))
        })?;
        Some((found.symbol, text.get(found.length..)?))
    }
}

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// At most eight bytes as a number, the first one lowest.
fn word_of(bytes: &[u8]) -> u64 {
    bytes.iter().take(WORD).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

fn mark(set: &mut [bool; BYTES], byte: u8) {
    if let Some(is_in) = set.get_mut(usize::from(byte)) {
        *is_in = true;
    }
}

fn is_set(set: &[bool; BYTES], byte: u8) -> bool {
    set.get(usize::from(byte)).copied().unwrap_or_default()
}

/// The bytes that are rarest in a text, the rarest first.
fn rare_bytes(text: &[u8]) -> Vec<u8> {
    let mut counts = [0usize; BYTES];
    for &byte in text {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let mut bytes: Vec<_> = counts.into_iter().zip(0..=u8::MAX).collect();
    bytes.sort_unstable();
    let mut all = 0;
    let rare = bytes.into_iter().take(COUNT_MADE + 1).take_while(|(count, _)| {
        all += count;
        all <= text.len() / RARE && *count <= text.len() / RARE_EACH
    });
    rare.map(|(_, byte)| byte).collect()
}

/// Replaces each symbol by another one where a certain one follows: (the next, the other).
fn join(symbols: &mut Vec<u8>, joined: &[Option<(u8, u8)>; BYTES]) {
    let mut kept = Vec::with_capacity(symbols.len());
    let mut rest = symbols.as_slice();
    while let Some((&symbol, after)) = rest.split_first() {
        rest = after;
        match joined.get(usize::from(symbol)).copied().flatten() {
            Some((next, other)) if after.first() == Some(&next) => {
                kept.push(other);
                rest = after.get(1..).unwrap_or_default();
            }
            _ => kept.push(symbol),
        }
    }
    *symbols = kept;
}

/// Parts of a text, from its begin to its end.
fn sample(text: &[u8]) -> Vec<u8> {
    let part = (text.len() / SAMPLE_SHARE).clamp(SAMPLE_MIN, SAMPLE_MAX) / SAMPLE_PARTS;
    let between = text.len().saturating_sub(part) / (SAMPLE_PARTS - 1);
    let parts = (0..SAMPLE_PARTS).map(|number| number * between);
    parts.flat_map(|at| text.get(at..at + part).unwrap_or_default()).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(number: u64) -> String {
        let state = number.wrapping_mul(6_364_136_223_846_793_005) >> 33;
        let word = ["late", "paid", "sent", "lost"][state as usize % 4];
        format!("{{\"field\":\"state\",\"record\":{},\"old\":null,\"new\":\"{word}\"}},", state % 90_000)
    }

    fn text() -> Vec<u8> {
        (0..3000).map(document).collect::<String>().into_bytes()
    }

    #[test]
    fn frames_of_documents_become_few_symbols_and_come_back() {
        let text = text();
        let phrases = Phrases::of(&text).unwrap();
        let replaced = phrases.replace(&text);
        assert!(replaced.len() < text.len() / 4, "{} of {}", replaced.len(), text.len());
        assert!(phrases.restore(&replaced, text.len()).unwrap() == text);
        let mut packed = Vec::new();
        phrases.put(replaced.len(), &mut packed);
        let mut from = Taker::new(&packed);
        let (taken, size) = Phrases::take(&mut from, text.len()).unwrap();
        assert!(from.left() == 0 && size == replaced.len() && taken.of == phrases.of);
        for length in 0..packed.len() {
            assert!(Phrases::take(&mut Taker::new(&packed[..length]), text.len()).is_err(), "{length}");
        }
    }

    #[test]
    fn noise_and_short_texts_have_none() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 40
        };
        let noise: Vec<u8> = (0..50_000).map(|_| b' ' + (random() % 64) as u8).collect();
        assert!(Phrases::of(&noise).is_none());
        let all: Vec<u8> = (0..50_000).map(|_| random() as u8).collect();
        assert!(Phrases::of(&all).is_none());
        assert!(Phrases::of(&text()[..TEXT_MIN - 1]).is_none());
    }

    #[test]
    fn bytes_that_stand_for_themselves_come_back() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        let text = [&all, &text()[..], &all, &text(), &all].concat();
        let phrases = Phrases::of(&text).unwrap();
        let replaced = phrases.replace(&text);
        assert!(replaced.len() < text.len() / 4, "{} of {}", replaced.len(), text.len());
        assert!(phrases.restore(&replaced, text.len()).unwrap() == text);
    }

    #[test]
    fn phrases_that_no_packer_writes_are_refused() {
        let take = |packed: &[u8]| Phrases::take(&mut Taker::new(packed), 100).map(|(_, size)| size);
        assert_eq!(take(&[0, 2, 1, 2, b'a', b'b', 2, 2, b'c', b'd', 100]).unwrap(), 100);
        for (packed, what) in [
            (&[0, 2, 2, 2, b'a', b'b', 2, 2, b'c', b'd', 1][..], "the same byte twice"),
            (&[0, 1, 0, 2, b'a', b'b', 1], "the escape for a phrase"),
            (&[0, 1, 2, 1, b'a', 1], "a phrase of one byte"),
            (&[0, 1, 2, 33], "a phrase that is cut off"),
            (&[0, 1, 2, 2, b'a', b'b', 101], "a text larger than all"),
            (&[0, 129, 1, 1], "too many"),
        ] {
            assert!(take(packed).is_err(), "{what}");
        }
        let (phrases, _) = Phrases::take(&mut Taker::new(&[0, 1, 1, 2, b'a', b'b', 9]), 9).unwrap();
        assert_eq!(phrases.restore(&[1, b'c', 1], 5).unwrap(), b"abcab");
        assert_eq!(phrases.restore(&[0, 1, 0, 0], 2).unwrap(), [1, 0]);
        for (replaced, size) in [(&[1, b'c', 1][..], 4), (&[1, b'c', 1], 6), (&[1, 0], 2)] {
            assert!(phrases.restore(replaced, size).is_err(), "{replaced:?} {size}");
        }
    }
}
