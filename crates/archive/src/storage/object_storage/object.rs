//! An object that is read by ranges, with few requests: its end comes when it is opened, and small ranges near each other come
//! together. A request's delay costs more than the bytes between two blocks.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt};

use crate::error::{Error, Result};
use crate::storage::ReadRange;
use crate::storage::object_storage::Bucket;

/// Bytes at an object's end that are read along with its size: enough for most indexes.
const TAIL_SIZE: u64 = 64 << 10;
/// The most bytes read ahead in one request.
const AHEAD_MAX: u64 = 1 << 20;
/// The first reading ahead; each further one doubles.
const AHEAD_MIN: u64 = 128 << 10;
/// Ranges with more bytes between them are not near each other.
const GAP_MAX: u64 = 128 << 10;
/// Ranges of more bytes come alone: several of them may be read at once.
const SMALL_MAX: u64 = 256 << 10;
/// Windows that are kept: workers that take ranges in turn may be one window apart.
const WINDOWS: usize = 2;

const _: () = assert!(AHEAD_MIN < AHEAD_MAX && GAP_MAX + SMALL_MAX <= AHEAD_MAX);

/// An object that is read by ranges.
pub(super) struct StoredObject {
    bucket: Bucket,
    path: Path,
    size: u64,
    tail: Window,
    ahead: Mutex<Ahead>,
}

/// Bytes that were read, from an offset.
struct Window {
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    fn get(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let from = usize::try_from(range.start.checked_sub(self.at)?).ok()?;
        let size = usize::try_from(range.end - range.start).ok()?;
        Some(self.bytes.get(from..)?.get(..size)?.to_vec())
    }
}

/// What was read, and what will be.
#[derive(Default)]
struct Ahead {
    /// The newest last.
    windows: VecDeque<Window>,
    /// Ranges that will be read, those near each other as one.
    expected: Vec<Range<u64>>,
    /// Bytes to read in the next request, if that goes on where this one ended.
    next: u64,
}

impl Ahead {
    fn get(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        self.windows.iter().find_map(|window| window.get(range))
    }

    fn put(&mut self, window: Window) {
        if self.windows.len() == WINDOWS {
            self.windows.pop_front();
        }
        self.windows.push_back(window);
    }

    /// The bytes to ask for to get a range that isn't at hand; `None`: alone, since nothing is known to be wanted beside it.
    fn plan(&mut self, range: &Range<u64>, end: u64) -> Option<Range<u64>> {
        let expected = self.expected.iter().find(|all| all.start <= range.start && range.end <= all.end);
        let before =
            self.windows.back().filter(|window| (window.at..=window.end() + GAP_MAX).contains(&range.start));
        match (expected, before) {
            (None, None) => None,
            (Some(expected), None) => Some(expected.clone()),
            (expected, Some(before)) => {
                // A worker may be ahead of the one that reads what lies between.
                let start = range.start.min(before.end());
                let size = self.next.clamp(AHEAD_MIN, AHEAD_MAX);
                self.next = size * 2;
                let to = range.end.max((start + size).min(end));
                Some(start..expected.map_or(to, |expected| to.max(expected.end)))
            }
        }
    }
}

/// Ranges near each other as one, if that isn't too large.
fn together(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut all: Vec<Range<u64>> = Vec::new();
    for range in ranges.iter().filter(|range| range.end - range.start <= SMALL_MAX) {
        match all.last_mut() {
            Some(last)
                if (last.start..=last.end + GAP_MAX).contains(&range.start)
                    && range.end.saturating_sub(last.start) <= AHEAD_MAX =>
            {
                last.end = last.end.max(range.end);
            }
            _ => all.push(range.clone()),
        }
    }
    all
}

impl StoredObject {
    pub(super) fn open(bucket: &Bucket, path: Path) -> Result<Self> {
        let got = bucket.runtime.block_on(async {
            let tail = match bucket.has_suffixes {
                true => GetRange::Suffix(TAIL_SIZE),
                false => {
                    let size = bucket.store.head(&path).await?.size;
                    if size == 0 {
                        return Ok((0, 0, Vec::new()));
                    }
                    GetRange::Bounded(size.saturating_sub(TAIL_SIZE)..size)
                }
            };
            let tail = GetOptions::new().with_range(Some(tail));
            let got = bucket.store.get_opts(&path, tail).await?;
            let (size, tail_at) = (got.meta.size, got.range.start);
            Ok((size, tail_at, got.bytes().await?.to_vec()))
        });
        let (size, at, bytes) = got.map_err(|error: object_store::Error| bucket.unread(&path, &error))?;
        let tail = Window { at, bytes };
        Ok(StoredObject { bucket: bucket.clone(), path, size, tail, ahead: Mutex::default() })
    }

    fn fetch(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let size = range.end - range.start;
        let got = self.bucket.runtime.block_on(self.bucket.store.get_range(&self.path, range));
        let bytes = got.map_err(|error| self.bucket.unread(&self.path, &error))?;
        match bytes.len() as u64 == size {
            true => Ok(bytes.to_vec()),
            false => {
                Err(Error::unexpected("answer", format!("{} bytes", bytes.len()), format!("{size} bytes")))
            }
        }
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadRange for StoredObject {
    fn size(&self) -> Result<u64> {
        Ok(self.size)
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        let found = self.size.saturating_sub(offset);
        if size as u64 > found {
            return Err(Error::unexpected(
                "object",
                format!("{found} bytes long from there"),
                format!("{size} bytes"),
            ));
        }
        let range = offset..offset + size as u64;
        if let Some(bytes) = self.tail.get(&range) {
            return Ok(bytes);
        }
        if size as u64 > SMALL_MAX {
            return self.fetch(range);
        }
        let mut ahead = self.ahead();
        if let Some(bytes) = ahead.get(&range) {
            return Ok(bytes);
        }
        let Some(all) = ahead.plan(&range, self.tail.at) else {
            drop(ahead);
            let bytes = self.fetch(range)?;
            self.ahead().put(Window { at: offset, bytes: bytes.clone() });
            return Ok(bytes);
        };
        // Others wait: what they want is likely to be in it.
        let window = Window { at: all.start, bytes: self.fetch(all)? };
        let bytes = window.get(&range);
        ahead.put(window);
        bytes.ok_or_else(|| Error::unexpected("answer", "other bytes", format!("{size} bytes from {offset}")))
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        let within = ranges.iter().filter(|range| range.start < range.end && range.end <= self.size);
        self.ahead().expected = together(&within.cloned().collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_near_each_other_come_together() {
        let kib = |from: u64, to: u64| from << 10..to << 10;
        let near = [kib(0, 30), kib(31, 60), kib(180, 200)];
        assert_eq!(together(&near), [kib(0, 200)]);
        assert_eq!(together(&[kib(0, 30), kib(159, 160)]), [kib(0, 30), kib(159, 160)], "a gap");
        assert_eq!(
            together(&[kib(0, 30), kib(31, 288), kib(288, 300)]),
            [kib(0, 30), kib(288, 300)],
            "a large one"
        );
        let many: Vec<_> = (0..10).map(|number| kib(number * 200, number * 200 + 200)).collect();
        assert_eq!(together(&many), [kib(0, 1000), kib(1000, 2000)], "no more than may be read at once");
    }

    #[test]
    fn reading_on_reads_ahead_and_reading_elsewhere_does_not() {
        let mut ahead = Ahead::default();
        let end = 10 << 20;
        assert_eq!(ahead.plan(&(100..200), end), None);
        ahead.put(Window { at: 100, bytes: vec![1; 100] });
        assert_eq!(ahead.plan(&(5 << 20..6 << 20), end), None);
        // The range also covers what another worker reads in between.
        assert_eq!(ahead.plan(&(300..400), end), Some(200..200 + AHEAD_MIN));
        assert_eq!(ahead.plan(&(300..400), end), Some(200..200 + 2 * AHEAD_MIN));
        for _ in 0..5 {
            ahead.plan(&(300..400), end);
        }
        assert_eq!(ahead.plan(&(300..400), end), Some(200..200 + AHEAD_MAX));
        assert_eq!(ahead.plan(&(300..400), 350), Some(200..400), "the tail is at hand");
        assert_eq!(ahead.plan(&(99..400), end), None);
        ahead.put(Window { at: 0, bytes: vec![2; 5] });
        assert_eq!((ahead.get(&(120..121)), ahead.get(&(4..6))), (Some(vec![1]), None));
        ahead.expected = std::iter::once(1 << 20..2 << 20).collect();
        assert_eq!(ahead.plan(&((1 << 20) + 5..(1 << 20) + 9), end), Some(1 << 20..2 << 20));
    }
}
