//! An object that is read by ranges, with few requests: its end comes when it is opened, and small ranges near each other
//! come together. A request's delay costs more than the bytes between two blocks. Requests for ranges far apart run at
//! the same time; [`super::ahead`] decides which ranges are requested together.

use std::ops::Range;

use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStoreExt};
use parking_lot::Mutex;

use super::ahead::{self, NextRead, RangeRequest, ReadAhead};
use crate::error::{Error, Result};
use crate::storage::ReadRange;
use crate::storage::object_storage::Bucket;

/// Bytes at an object's end that are read along with its size: enough for most indexes, and for the last two chunks of an
/// encrypted object, since the last may have few bytes of the index.
const TAIL_SIZE: u64 = 132 << 10;

/// An object that is read by ranges.
pub(super) struct StoredObject {
    bucket: Bucket,
    path: Path,
    size: u64,
    /// The bytes at its end, and where they begin.
    tail: Vec<u8>,
    tail_at: u64,
    /// Never locked while a request is on its way.
    ahead: Mutex<ReadAhead>,
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
            let size = got.meta.size;
            let tail_at = got.range.start;
            Ok((size, tail_at, got.bytes().await?.to_vec()))
        });
        let (size, tail_at, tail) = got.map_err(|error: object_store::Error| bucket.unread(&path, &error))?;
        Ok(StoredObject { bucket: bucket.clone(), path, size, tail, tail_at, ahead: Mutex::default() })
    }

    fn fetch(&self, range: Range<u64>) -> object_store::Result<Vec<u8>> {
        let got = self.bucket.runtime.block_on(self.bucket.store.get_range(&self.path, range));
        got.map(Vec::from)
    }

    /// The answer to a request, which others may wait for, too.
    fn answer<'r>(&self, request: &'r RangeRequest) -> &'r object_store::Result<Vec<u8>> {
        let answer = request.answer(|range| self.fetch(range));
        self.ahead.lock().trim();
        answer
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
        if let Some(bytes) = ahead::part(&(self.tail_at..self.size), &self.tail, &range) {
            return Ok(bytes);
        }
        loop {
            let next = self.ahead.lock().request(&range, self.tail_at);
            let request = match next {
                NextRead::Take(request) => request,
                NextRead::Wait(oldest) => {
                    // Its error is its readers'.
                    let _ = self.answer(&oldest);
                    continue;
                }
            };
            let bytes =
                self.answer(&request).as_ref().map_err(|error| self.bucket.unread(&self.path, error))?;
            return request.part(bytes, &range).ok_or_else(|| {
                Error::unexpected(
                    "answer",
                    format!("{} bytes", bytes.len()),
                    format!("{} bytes", request.size()),
                )
            });
        }
    }

    fn forget(&self) {
        self.ahead.lock().forget();
    }

    fn expect(&self, ranges: &[Range<u64>]) {
        let within = ranges.iter().filter(|range| range.start < range.end && range.end <= self.size);
        self.ahead.lock().expect(within.cloned());
    }
}
