//! The position index: checkpoints between the transactions of a stored file, with their position in each form as far
//! as someone has walked the file. A request starts at the nearest checkpoint instead of at the beginning of the
//! file.
//!
//! Checkpoints are functions of the stored bytes: the end of each transaction that reaches over a multiple of
//! [`SPACING`]. Every walk through a file, to receive, serve or look something up, notes the checkpoints it passes. So
//! anything lost or damaged is found again; correctness never depends on this index, only speed.

mod bytes;
mod noting;

use parking_lot::Mutex;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use binlogz_binlog::HeaderFlags;
use binlogz_binlog::checksum::crc32;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_store::{FileNumber, Position, Storage, storage};

use self::noting::CollectionStart;
pub use self::noting::{GtidCollector, SeenTransaction};
use crate::form::Form;

/// Bytes of the stored file between checkpoints: a request may have to read and skip this much.
pub(crate) const SPACING: u64 = 1 << 20;
const SUFFIX: &str = ".places";
/// A file of 4 GiB has 4,096 checkpoints; this leaves each more than a kilobyte for GTIDs. Anything beyond it is not
/// written.
const SIZE_MAX: u64 = 64 << 20;
/// How many unused files' checkpoints stay in memory.
const OPEN_MAX: usize = 16;
/// The index of a file in use is written again after this many changes.
const NEWS_MAX: usize = 64;

/// A checkpoint's position counts within a file of the form; a stored file may be several of those.
const PART_SHIFT: u32 = 40;
const POSITION_MAX: u64 = (1 << PART_SHIFT) - 1;

/// A position in a part of a stored file, as the index encodes it.
pub fn in_part(part: u32, position: u64) -> u64 {
    (u64::from(part) << PART_SHIFT) + position.min(POSITION_MAX)
}

/// Where to begin reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartOffsets {
    /// Offset in the stored file.
    pub stored: u64,
    /// Position in the form.
    pub at: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Checkpoint {
    committed: u64,
    at: [Option<u64>; 3],
    /// GTIDs of all transactions since the previous checkpoint; `None` if no walk has collected them.
    gtids: Option<GtidSet>,
}

/// The checkpoints of a stored file, in every form.
#[derive(Debug)]
pub struct Checkpoints {
    storage: Arc<dyn Storage>,
    name: String,
    /// CRC of the file's format description: another file of the same name has other checkpoints.
    head: u32,
    inner: Mutex<CheckpointMap>,
}

#[derive(Debug, Default)]
struct CheckpointMap {
    places: BTreeMap<u64, Checkpoint>,
    /// Number of changes since the index was written.
    news: usize,
}

/// Whether there is a checkpoint at the end of this transaction.
pub(crate) fn is_place(begin: u64, end: u64) -> bool {
    begin / SPACING != end / SPACING
}

impl Checkpoints {
    /// Opens the stored index of a file that begins with this format description. A damaged index, or another file's,
    /// counts as none.
    fn open(storage: Arc<dyn Storage>, name: String, head: &[u8]) -> Self {
        let head = head_crc(head);
        let file = storage.open(&name, false).ok();
        let bytes = file.and_then(|file| storage::read_all(file.as_ref(), SIZE_MAX).ok());
        let kept = bytes.and_then(|bytes| bytes::decode(&bytes, head));
        let inner = CheckpointMap { places: kept.unwrap_or_default(), news: 0 };
        Checkpoints { storage, name, head, inner: Mutex::new(inner) }
    }

    /// The last checkpoint at or before a position of a form; see [`in_part`].
    pub fn before(&self, form: Form, position: u64) -> Option<StartOffsets> {
        let inner = self.inner.lock();
        inner.places.iter().rev().find_map(|(stored, place)| {
            let at = place.at(form)?;
            (at <= position).then_some(StartOffsets { stored: *stored, at })
        })
    }

    /// The last checkpoint such that every transaction before it is in `has`.
    pub fn behind_gtids(&self, form: Form, has: &GtidSet) -> Option<StartOffsets> {
        let inner = self.inner.lock();
        inner
            .places
            .iter()
            .take_while(|(_, place)| place.gtids.as_ref().is_some_and(|gtids| gtids.is_subset(has)))
            .filter_map(|(stored, place)| Some(StartOffsets { stored: *stored, at: place.at(form)? }))
            .last()
    }

    /// Notes the end of a transaction where [`is_place`] holds. `gtids`: those of all transactions since `since`.
    ///
    /// The notes are valid only if they start at the previous checkpoint in the index: a request by GTIDs skips the
    /// transactions of earlier checkpoints, so no GTID between two checkpoints may be missing.
    fn note(&self, form: Form, stored: u64, at: u64, committed: u64, since: CollectionStart, gtids: GtidSet) {
        let mut inner = self.inner.lock();
        let before = inner.places.range(..stored).next_back().map(|(before, _)| *before);
        let is_joined = match since {
            CollectionStart::Beginning => before.is_none(),
            CollectionStart::Place(place) => before == Some(place),
            CollectionStart::Unknown => false,
        };
        let place =
            inner.places.entry(stored).or_insert_with(|| Checkpoint { committed, ..Checkpoint::default() });
        let mut is_news = place.set(form, at);
        if is_joined && place.gtids.is_none() {
            place.gtids = Some(gtids);
            is_news = true;
        }
        inner.news += usize::from(is_news);
    }

    /// Forgets everything, after a checkpoint turned out to be wrong.
    pub fn forget(&self) {
        *self.inner.lock() = CheckpointMap::default();
    }

    /// Forgets checkpoints after an offset of the stored file: it was truncated, and other bytes may follow.
    fn forget_behind(&self, stored: u64) {
        self.inner.lock().places.retain(|place, _| *place <= stored);
    }

    /// Writes changes, as far as the file is durable. `now`: even if there are few.
    pub fn save(&self, durable: u64, now: bool) -> io::Result<()> {
        let mut inner = self.inner.lock();
        if inner.news == 0 || (!now && inner.news < NEWS_MAX) {
            return Ok(());
        }
        // If a crash damages the file, it is rebuilt.
        let bytes = bytes::encode(&inner.places, self.head, durable);
        storage::replace_unsynced(self.storage.as_ref(), &self.name, &bytes)?;
        inner.news = 0;
        Ok(())
    }
}

impl StartOffsets {
    /// With positions counted within this part; `None` if it is in another one.
    pub fn within(self, part: u32) -> Option<StartOffsets> {
        let at = self.at.checked_sub(in_part(part, 0)).filter(|at| *at <= POSITION_MAX)?;
        Some(StartOffsets { at, ..self })
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

/// CRC of a format description; the in-use flag does not affect it.
pub(crate) fn head_crc(head: &[u8]) -> u32 {
    let mut head = head.to_vec();
    if let Some(flags) = head.get_mut(FLAGS_OFFSET) {
        *flags &= !(HeaderFlags::IN_USE.0 as u8);
    }
    crc32(&head)
}

/// The checkpoints of all files of a log.
#[derive(Debug)]
pub struct Indexes {
    storage: Arc<dyn Storage>,
    files: Mutex<BTreeMap<FileNumber, Arc<Checkpoints>>>,
}

impl Indexes {
    /// The indexes stored beside the files of a directory.
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Indexes { storage, files: Mutex::default() }
    }

    /// The index of a file of this name that begins with this format description.
    pub fn of(&self, number: FileNumber, name: &str, head: &[u8]) -> Arc<Checkpoints> {
        let mut files = self.files.lock();
        if files.len() >= OPEN_MAX && !files.contains_key(&number) {
            // Drops unused ones. If one can't be written, it is rebuilt later.
            files.retain(|_, places| {
                Arc::strong_count(places) > 1 || places.save(u64::MAX - 1, true).is_err()
            });
        }
        let opened = files.entry(number).or_insert_with(|| {
            Arc::new(Checkpoints::open(Arc::clone(&self.storage), format!("{name}{SUFFIX}"), head))
        });
        Arc::clone(opened)
    }

    /// Removes the index of a file that is gone.
    pub fn remove(&self, number: FileNumber, name: &str) {
        self.files.lock().remove(&number);
        // There may be none; a leftover does no harm.
        let _ = self.storage.remove(&format!("{name}{SUFFIX}"));
    }

    /// The log was truncated here: checkpoints after that were never durable.
    pub(crate) fn forget_behind(&self, end: Position) {
        for (number, places) in &*self.files.lock() {
            match number.cmp(&end.file) {
                Ordering::Less => {}
                Ordering::Equal => places.forget_behind(end.offset),
                Ordering::Greater => places.forget(),
            }
        }
    }

    /// Forgets the index of a file, and removes its stored copy.
    pub(crate) fn discard(&self, number: FileNumber, name: &str) {
        if let Some(places) = self.files.lock().get(&number) {
            places.forget();
        }
        // If it can't be removed, the old one remains: checkpoints are checked before they are used.
        let _ = self.storage.remove(&format!("{name}{SUFFIX}"));
    }

    /// Removes the indexes of files that are gone.
    pub(crate) fn keep_only(&self, present: &[String]) {
        for name in self.storage.list().unwrap_or_default() {
            if name.strip_suffix(SUFFIX).is_some_and(|log| !present.iter().any(|name| name == log)) {
                // A leftover does no harm.
                let _ = self.storage.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use binlogz_store::MemoryStorage;

    use super::bytes::decode;
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

    /// Notes a checkpoint with GTIDs since the previous one, if there is one.
    fn note(places: &Checkpoints, form: Form, stored: u64, at: u64, gtids: &GtidSet) {
        let before = places.inner.lock().places.range(..stored).next_back().map(|(before, _)| *before);
        let since = before.map_or(CollectionStart::Beginning, CollectionStart::Place);
        places.note(form, stored, at, 1, since, gtids.clone());
    }

    fn filled(storage: &MemoryStorage) -> Checkpoints {
        let places = open(storage, HEAD);
        for n in 1..=3u64 {
            let gtids = gtids(&format!("{UUID}:{}-{}", n * 10, n * 10 + 9));
            note(&places, Form::Received, n << 20, n * 1000, &gtids);
            note(&places, Form::Uncompressed, n << 20, n * 5000, &gtids);
        }
        places
    }

    #[test]
    fn a_request_begins_at_the_nearest_place() {
        let storage = MemoryStorage::new();
        let check = |places: &Checkpoints| {
            let start = |n: u64, at| Some(StartOffsets { stored: n << 20, at });
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
        // The same file, closed since, has the same checkpoints.
        let in_use = [&HEAD[..FLAGS_OFFSET], &[1], &HEAD[FLAGS_OFFSET + 1..]].concat();
        check(&open(&storage, &in_use));
        assert_eq!(open(&storage, b"other").before(Form::Received, 9999), None);
        // Only durable checkpoints are stored.
        note(&places, Form::Compressed, 3 << 20, 7, &GtidSet::new());
        places.save(2 << 20, true).unwrap();
        let kept = open(&storage, HEAD);
        assert_eq!(kept.before(Form::Received, 9999).unwrap().at, 2000);
    }

    fn seen(number: u64) -> SeenTransaction {
        SeenTransaction {
            stored: (number << 20) - 5..(number << 20) + 5,
            gtid: Some(format!("{UUID}:{number}").parse().unwrap()),
            committed: 1,
        }
    }

    #[test]
    fn who_began_between_places_tells_no_transactions() {
        let storage = MemoryStorage::new();
        let places = filled(&storage);
        let has = gtids(&format!("{UUID}:4-39"));
        let behind = |form| places.behind_gtids(form, &has).map(|start| start.stored);
        let mut noting = GtidCollector::between_places();
        noting.transaction(&places, Form::Compressed, &seen(4), 400);
        noting.transaction(&places, Form::Compressed, &seen(5), 500);
        noting.transaction(&places, Form::Received, &seen(6), 6000);
        let at = |position| places.before(Form::Compressed, position).map(|start| start.at);
        assert_eq!([at(399), at(400), at(9999)], [None, Some(400), Some(500)]);
        // A client with the transactions of 4 checkpoints must not start after the third: we don't know what is
        // between it and the fourth.
        assert_eq!(behind(Form::Received), Some(3 << 20));
        assert_eq!(behind(Form::Compressed), None);
        // The same after a restart. Then a walk sees everything, from the third checkpoint on.
        places.save(u64::MAX - 1, true).unwrap();
        let places = open(&storage, HEAD);
        let behind = |form| places.behind_gtids(form, &has).map(|start| start.stored);
        assert_eq!(behind(Form::Compressed), None);
        let mut noting = GtidCollector::at_place(3 << 20);
        noting.transaction(&places, Form::Compressed, &seen(4), 400);
        assert_eq!(behind(Form::Compressed), Some((5 << 20) + 5));
    }

    #[test]
    fn what_was_missed_is_not_claimed() {
        let storage = MemoryStorage::new();
        let places = open(&storage, HEAD);
        let has = gtids(&format!("{UUID}:1-2:4-9"));
        let behind = || places.behind_gtids(Form::Received, &has).map(|start| start.stored >> 20);
        let mut noting = GtidCollector::default();
        noting.transaction(&places, Form::Received, &seen(1), 1000);
        noting.transaction(&places, Form::Received, &seen(2), 2000);
        // The third one was not seen: a client that lacks it must get it.
        noting.missed();
        noting.transaction(&places, Form::Received, &seen(4), 4000);
        noting.transaction(&places, Form::Received, &seen(5), 5000);
        assert_eq!(behind(), Some(2));
        // Nor by a walk that begins at a checkpoint that the index has forgotten.
        places.forget();
        noting.transaction(&places, Form::Received, &seen(6), 6000);
        assert_eq!(behind(), None);
    }

    #[test]
    fn positions_count_within_a_part() {
        let storage = MemoryStorage::new();
        let places = filled(&storage);
        note(&places, Form::Uncompressed, 7 << 20, in_part(1, 77), &GtidSet::new());
        let found = |part: u32, position| {
            places.before(Form::Uncompressed, in_part(part, position)).and_then(|start| start.within(part))
        };
        assert_eq!(found(0, u64::MAX).unwrap().at, 15_000);
        assert_eq!(found(1, u64::MAX), Some(StartOffsets { stored: 7 << 20, at: 77 }));
        assert_eq!((found(1, 76), found(2, u64::MAX)), (None, None));
    }

    #[test]
    fn whatever_gtids_a_source_has_the_index_can_be_read_back() {
        let storage = MemoryStorage::new();
        let places = open(&storage, HEAD);
        let tsid =
            binlogz_binlog::gtid::Tsid::from(UUID.parse::<binlogz_binlog::gtid::ServerUuid>().unwrap());
        let huge: GtidSet =
            (1..500_000).map(|n| binlogz_binlog::gtid::Gtid::new(tsid, 2 * n).unwrap()).collect();
        for n in 1..=12 {
            note(&places, Form::Received, n << 20, n * 1000, &huge);
        }
        places.save(u64::MAX - 1, true).unwrap();
        let size = storage.open(NAME, false).unwrap().size().unwrap();
        assert!(size <= SIZE_MAX && size > SIZE_MAX / 2, "{size}");
        let found = open(&storage, HEAD).before(Form::Received, u64::MAX).unwrap();
        assert_eq!(found, StartOffsets { stored: 8 << 20, at: 8000 }, "as many as fit");
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
            for bit in 0..8 {
                let mut flipped = whole.clone();
                flipped[cut] ^= 1 << bit;
                assert!(decode(&flipped, head_crc(HEAD)).is_none(), "bit {bit} flipped at {cut}");
            }
        }
        // Even with a matching checksum.
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
