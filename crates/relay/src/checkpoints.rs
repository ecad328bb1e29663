//! The index of positions: places between the transactions of a stored file, and where each of them is in every form, as
//! far as somebody went by. A request begins at the nearest one instead of at the beginning of the file.
//!
//! Places are functions of the stored bytes: the end of each transaction that reaches over a multiple of
//! [`SPACING`]. Whoever goes through a file, to receive, to serve or to look something up, notes what it saw. What is
//! lost or damaged is therefore found again; nothing here is needed to be right, only to be quick.
//!
//! ```text
//! BASE.NNNNNN.places
//! size field
//!    8 magic            "binlogz\x01"
//!    4 head             CRC-32 of the stored file's format description, not in use
//!    4 count
//!      of each:
//!    8 stored           offset in the stored file
//!    8 committed        of the transaction that ends there, microseconds since 1970
//! 3x 8 positions        received, compressed, uncompressed; all ones: not known
//!    4 size
//!    n gtids            of the transactions since the place before, as in a previous GTIDs event
//!    4 checksum         CRC-32 of all before
//! ```

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use binlogz_binlog::HeaderFlags;
use binlogz_binlog::checksum::crc32;
use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_binlog::put::Put;
use binlogz_store::{FileNumber, Storage, storage};

use crate::form::Form;
use crate::relay::lock;

/// Bytes of the stored file between places: what a request may have to read in vain.
pub(crate) const SPACING: u64 = 1 << 20;
const MAGIC: &[u8; 8] = b"binlogz\x01";
const WHAT: &str = "index of positions";
const UNKNOWN: u64 = u64::MAX;
const SUFFIX: &str = ".places";
/// A file of 4 GiB has 4,096 places; this leaves each a kilobyte of GTIDs and more.
const SIZE_MAX: u64 = 64 << 20;
/// Files whose places stay in memory though nobody uses them.
const OPEN_MAX: usize = 16;
/// News after which the index is written again, while a file is still in use.
const NEWS_MAX: usize = 64;

/// Where to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Start {
    /// In the stored file.
    pub(crate) stored: u64,
    /// In the form.
    pub(crate) at: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Checkpoint {
    committed: u64,
    at: [Option<u64>; 3],
    /// Since the one before.
    gtids: GtidSet,
}

/// The places of one file.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    storage: Arc<dyn Storage>,
    name: String,
    /// Of the file's format description: another file of the same name has other places.
    head: u32,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// By the stored offset.
    places: BTreeMap<u64, Checkpoint>,
    /// Noted since it was written.
    news: usize,
}

/// Whether a place is at the end of this transaction.
pub(crate) fn is_place(begin: u64, end: u64) -> bool {
    begin / SPACING != end / SPACING
}

impl Checkpoints {
    /// Those that were kept of a file that begins with this format description; an index that is damaged or another
    /// file's counts as none.
    fn open(storage: Arc<dyn Storage>, name: String, head: &[u8]) -> Self {
        let head = head_crc(head);
        let file = storage.open(&name, false).ok();
        let bytes = file.and_then(|file| storage::read_all(file.as_ref(), SIZE_MAX).ok());
        let kept = bytes.and_then(|bytes| decode(&bytes, head));
        let inner = Inner { places: kept.unwrap_or_default(), news: 0 };
        Checkpoints { storage, name, head, inner: Mutex::new(inner) }
    }

    /// The last place at or before a position of a form.
    pub(crate) fn before(&self, form: Form, position: u64) -> Option<Start> {
        let inner = lock(&self.inner);
        inner.places.iter().rev().find_map(|(stored, place)| {
            let at = place.at(form)?;
            (at <= position).then_some(Start { stored: *stored, at })
        })
    }

    /// The last place in front of which there is nothing that is not in `has`.
    pub(crate) fn behind_gtids(&self, form: Form, has: &GtidSet) -> Option<Start> {
        let inner = lock(&self.inner);
        inner
            .places
            .iter()
            .take_while(|(_, place)| place.gtids.is_subset(has))
            .filter_map(|(stored, place)| Some(Start { stored: *stored, at: place.at(form)? }))
            .last()
    }

    /// What is at the end of a transaction where [`is_place`] holds. `gtids`: of all transactions since the place before.
    pub(crate) fn note(&self, form: Form, stored: u64, at: u64, committed: u64, gtids: &GtidSet) {
        let mut inner = lock(&self.inner);
        let place = inner.places.entry(stored).or_insert_with(|| Checkpoint {
            committed,
            gtids: gtids.clone(),
            ..Checkpoint::default()
        });
        if place.set(form, at) {
            inner.news += 1;
        }
    }

    /// Forgets everything: a place was found to be none.
    pub(crate) fn forget(&self) {
        *lock(&self.inner) = Inner::default();
    }

    /// Writes what is new, as far as the file is durable. `now`: also if it is little.
    pub(crate) fn save(&self, durable: u64, now: bool) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        if inner.news == 0 || (!now && inner.news < NEWS_MAX) {
            return Ok(());
        }
        // What a crash damages is found again.
        let bytes = encode(&inner.places, self.head, durable);
        storage::replace_unsynced(self.storage.as_ref(), &self.name, &bytes)?;
        inner.news = 0;
        Ok(())
    }
}

impl Checkpoint {
    fn at(&self, form: Form) -> Option<u64> {
        self.at.get(form as usize).copied().flatten()
    }

    fn set(&mut self, form: Form, at: u64) -> bool {
        match self.at.get_mut(form as usize) {
            Some(place) => place.replace(at) != Some(at),
            None => false,
        }
    }
}

/// Of a format description; whether the file is in use changes nothing.
fn head_crc(head: &[u8]) -> u32 {
    let mut head = head.to_vec();
    if let Some(flags) = head.get_mut(FLAGS_OFFSET) {
        *flags &= !(HeaderFlags::IN_USE.0 as u8);
    }
    crc32(&head)
}

fn encode(places: &BTreeMap<u64, Checkpoint>, head: u32, durable: u64) -> Vec<u8> {
    let count = places.range(..=durable).count();
    let mut out = MAGIC.to_vec();
    out.put_u32(head);
    out.put_u32(count as u32);
    for (stored, place) in places.range(..=durable) {
        out.put_u64(*stored);
        out.put_u64(place.committed);
        for at in place.at {
            out.put_u64(at.unwrap_or(UNKNOWN));
        }
        let mut gtids = Vec::new();
        place.gtids.encode(place.gtids.format(), &mut gtids);
        out.put_u32(gtids.len() as u32);
        out.put(&gtids);
    }
    let checksum = crc32(&out);
    out.put_u32(checksum);
    out
}

fn decode(bytes: &[u8], head: u32) -> Option<BTreeMap<u64, Checkpoint>> {
    let (covered, checksum) = bytes.split_last_chunk::<4>()?;
    if crc32(covered) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let mut cursor = Cursor::new(covered, WHAT);
    let known = cursor.array::<8>("magic").ok()? == *MAGIC && cursor.u32("head").ok()? == head;
    let count = known.then(|| cursor.u32("count").ok())??;
    let mut places = BTreeMap::new();
    let mut last = [0; 4];
    for _ in 0..count {
        let stored = cursor.u64("stored").ok()?;
        let committed = cursor.u64("committed").ok()?;
        let mut at = [None; 3];
        for (place, last) in at.iter_mut().zip(last.iter_mut()) {
            let position = cursor.u64("position").ok()?;
            *place = (position != UNKNOWN).then_some(position);
            if place.is_some_and(|at| at <= *last) {
                return None;
            }
            *last = place.unwrap_or(*last);
        }
        let size = cursor.u32("size").ok()?;
        let (gtids, _) = GtidSet::decode(cursor.bytes(size as usize, "gtids").ok()?).ok()?;
        if places.last_key_value().is_some_and(|(before, _)| *before >= stored) {
            return None;
        }
        places.insert(stored, Checkpoint { committed, at, gtids });
    }
    cursor.finish().ok()?;
    Some(places)
}

/// The places of all files.
#[derive(Debug)]
pub(crate) struct Indexes {
    storage: Arc<dyn Storage>,
    files: Mutex<BTreeMap<FileNumber, Arc<Checkpoints>>>,
}

impl Indexes {
    /// Those that are kept beside the files of a directory.
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Self {
        Indexes { storage, files: Mutex::default() }
    }

    /// Those of a file of this name that begins with this format description.
    pub(crate) fn of(&self, number: FileNumber, name: &str, head: &[u8]) -> Arc<Checkpoints> {
        let mut files = lock(&self.files);
        if files.len() >= OPEN_MAX && !files.contains_key(&number) {
            // Those that nobody uses now. What can't be written is found again.
            files.retain(|_, places| {
                Arc::strong_count(places) > 1 || places.save(u64::MAX - 1, true).is_err()
            });
        }
        let opened = files.entry(number).or_insert_with(|| {
            Arc::new(Checkpoints::open(Arc::clone(&self.storage), format!("{name}{SUFFIX}"), head))
        });
        Arc::clone(opened)
    }

    /// Removes those of files that are gone.
    pub(crate) fn keep_only(&self, present: &[String]) {
        for name in self.storage.list().unwrap_or_default() {
            if name.strip_suffix(SUFFIX).is_some_and(|log| !present.iter().any(|name| name == log)) {
                // One that stays is in nobody's way.
                let _ = self.storage.remove(&name);
            }
        }
    }
}

/// A transaction that somebody went by.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) stored: Range<u64>,
    pub(crate) gtid: Option<Gtid>,
    pub(crate) committed: u64,
}

/// Collects GTIDs from place to place, for whoever goes through a file in one form.
#[derive(Debug, Default)]
pub(crate) struct Noting {
    gtids: GtidSet,
}

impl Noting {
    /// A transaction that began with a GTID event ends here.
    pub(crate) fn transaction(&mut self, places: &Checkpoints, form: Form, seen: &Seen, at: u64) {
        if let Some(gtid) = seen.gtid {
            self.gtids.add(gtid);
        }
        if is_place(seen.stored.start, seen.stored.end) {
            places.note(form, seen.stored.end, at, seen.committed, &self.gtids);
            self.gtids = GtidSet::new();
        }
    }

    /// The file, which is closed, ends here.
    pub(crate) fn end(&mut self, places: &Checkpoints, form: Form, stored: u64, at: u64) {
        places.note(form, stored, at, 0, &std::mem::take(&mut self.gtids));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::*;

    fn gtids(text: &str) -> GtidSet {
        text.parse().unwrap()
    }

    const UUID: &str = "1410447f-e54d-11f1-848d-02fc00000001";

    const HEAD: &[u8] = &[0; 100];
    const NAME: &str = "binlog.000001.places";

    fn open(storage: &MemoryStorage, head: &[u8]) -> Checkpoints {
        Checkpoints::open(Arc::new(storage.clone()), NAME.to_owned(), head)
    }

    fn filled(storage: &MemoryStorage) -> Checkpoints {
        let places = open(storage, HEAD);
        for n in 1..=3u64 {
            let gtids = gtids(&format!("{UUID}:{}-{}", n * 10, n * 10 + 9));
            places.note(Form::Received, n << 20, n * 1000, n, &gtids);
            places.note(Form::Uncompressed, n << 20, n * 5000, n, &gtids);
        }
        places
    }

    #[test]
    fn a_request_begins_at_the_nearest_place() {
        let storage = MemoryStorage::new();
        let check = |places: &Checkpoints| {
            let start = |n: u64, at| Some(Start { stored: n << 20, at });
            assert_eq!(places.before(Form::Received, 999), None);
            assert_eq!(places.before(Form::Received, 1000), start(1, 1000));
            assert_eq!(places.before(Form::Uncompressed, 14_999), start(2, 10_000));
            assert_eq!(places.before(Form::Uncompressed, u64::MAX - 1), start(3, 15_000));
            assert_eq!(places.before(Form::Compressed, 1000), None);
            let behind = |text: &str| places.behind_gtids(Form::Received, &gtids(text));
            assert_eq!(behind(""), None);
            assert_eq!(behind(&format!("{UUID}:10-29")), start(2, 2000));
            assert_eq!(behind(&format!("{UUID}:10-28")), start(1, 1000));
            assert_eq!(behind(&format!("{UUID}:1-9:20-100")), None);
        };
        let places = filled(&storage);
        check(&places);
        places.save(u64::MAX - 1, true).unwrap();
        check(&open(&storage, HEAD));
        // A file that was closed since has the same places.
        let in_use = [&HEAD[..FLAGS_OFFSET], &[1], &HEAD[FLAGS_OFFSET + 1..]].concat();
        check(&open(&storage, &in_use));
        assert_eq!(open(&storage, b"other").before(Form::Received, 9999), None);
        // What is not durable is not kept.
        places.note(Form::Compressed, 3 << 20, 7, 3, &GtidSet::new());
        places.save(2 << 20, true).unwrap();
        let kept = open(&storage, HEAD);
        assert_eq!(kept.before(Form::Received, 9999).unwrap().at, 2000);
    }

    #[test]
    fn what_is_damaged_counts_as_none() {
        let storage = MemoryStorage::new();
        let places = filled(&storage);
        places.save(u64::MAX - 1, true).unwrap();
        let file = storage.open(NAME, false).unwrap();
        let whole = storage::read_all(file.as_ref(), SIZE_MAX).unwrap();
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut], head_crc(HEAD)).is_none(), "cut at {cut}");
            let mut flipped = whole.clone();
            flipped[cut] ^= 1;
            assert!(decode(&flipped, head_crc(HEAD)).is_none(), "flipped at {cut}");
        }
        // A checksum that fits does not help.
        let longer = |mut bytes: Vec<u8>| {
            bytes.truncate(bytes.len() - 4);
            bytes.push(0);
            let checksum = crc32(&bytes);
            bytes.extend(checksum.to_le_bytes());
            bytes
        };
        assert!(decode(&longer(whole.clone()), head_crc(HEAD)).is_none());
        assert!(decode(&whole, head_crc(HEAD)).is_some());
    }
}
