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
//!    4 head             CRC-32 of the stored file's format description
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
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use binlogz_binlog::checksum::crc32;
use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::gtid::{Gtid, GtidSet};
use binlogz_binlog::put::Put;
use binlogz_store::FileNumber;

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
    path: PathBuf,
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
    fn open(path: PathBuf, head: &[u8]) -> Self {
        let head = crc32(head);
        let kept = fs::metadata(&path)
            .ok()
            .filter(|file| file.len() <= SIZE_MAX)
            .and_then(|_| decode(&fs::read(&path).ok()?, head));
        let inner = Inner { places: kept.unwrap_or_default(), news: 0 };
        Checkpoints { path, head, inner: Mutex::new(inner) }
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
        let new = self.path.with_extension("places.new");
        fs::write(&new, encode(&inner.places, self.head, durable))?;
        // Not synced: what a crash damages is found again.
        fs::rename(&new, &self.path)?;
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
    directory: PathBuf,
    files: Mutex<BTreeMap<FileNumber, Arc<Checkpoints>>>,
}

impl Indexes {
    /// Those that are kept beside the files of a directory.
    pub(crate) fn new(directory: &Path) -> Self {
        Indexes { directory: directory.to_owned(), files: Mutex::default() }
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
            Arc::new(Checkpoints::open(self.directory.join(format!("{name}{SUFFIX}")), head))
        });
        Arc::clone(opened)
    }

    /// Removes those of files that are gone.
    pub(crate) fn keep_only(&self, present: &[String]) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.strip_suffix(SUFFIX).is_some_and(|log| !present.iter().any(|name| name == log)) {
                // One that stays is in nobody's way.
                let _ = fs::remove_file(entry.path());
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
    use super::*;

    fn gtids(text: &str) -> GtidSet {
        text.parse().unwrap()
    }

    const UUID: &str = "1410447f-e54d-11f1-848d-02fc00000001";

    fn filled(folder: &Path) -> Checkpoints {
        let places = Checkpoints::open(folder.join("binlog.000001.places"), b"head");
        for n in 1..=3u64 {
            let gtids = gtids(&format!("{UUID}:{}-{}", n * 10, n * 10 + 9));
            places.note(Form::Received, n << 20, n * 1000, n, &gtids);
            places.note(Form::Uncompressed, n << 20, n * 5000, n, &gtids);
        }
        places
    }

    #[test]
    fn a_request_begins_at_the_nearest_place() {
        let folder = tempfile::tempdir().unwrap();
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
        let places = filled(folder.path());
        check(&places);
        places.save(u64::MAX - 1, true).unwrap();
        check(&Checkpoints::open(places.path.clone(), b"head"));
        assert_eq!(Checkpoints::open(places.path.clone(), b"other").before(Form::Received, 9999), None);
        // What is not durable is not kept.
        places.note(Form::Compressed, 3 << 20, 7, 3, &GtidSet::new());
        places.save(2 << 20, true).unwrap();
        let kept = Checkpoints::open(places.path.clone(), b"head");
        assert_eq!(kept.before(Form::Received, 9999).unwrap().at, 2000);
    }

    #[test]
    fn what_is_damaged_counts_as_none() {
        let folder = tempfile::tempdir().unwrap();
        let places = filled(folder.path());
        places.save(u64::MAX - 1, true).unwrap();
        let whole = fs::read(&places.path).unwrap();
        for cut in 0..whole.len() {
            assert!(decode(&whole[..cut], crc32(b"head")).is_none(), "cut at {cut}");
            let mut flipped = whole.clone();
            flipped[cut] ^= 1;
            assert!(decode(&flipped, crc32(b"head")).is_none(), "flipped at {cut}");
        }
        // A checksum that fits does not help.
        let longer = |mut bytes: Vec<u8>| {
            bytes.truncate(bytes.len() - 4);
            bytes.push(0);
            let checksum = crc32(&bytes);
            bytes.extend(checksum.to_le_bytes());
            bytes
        };
        assert!(decode(&longer(whole.clone()), crc32(b"head")).is_none());
        assert!(decode(&whole, crc32(b"head")).is_some());
    }
}
