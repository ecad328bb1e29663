//! Where stored files are cut for the uncompressed form: a file of that form ends with the transaction with which it
//! has a limit's bytes (1 GiB).
//!
//! ```text
//! stored         │ transactions … 0.3 GiB │ … 0.5 GiB │ … to the end │
//! uncompressed   │ 1 GiB and some         │ the same  │ the rest     │
//! ```
//!
//! We count bytes from the headers: those after GTID events, without checksums, and for a payload the size it
//! declares. So a transaction counts the same whether it is stored compressed or not, and nothing need be expanded. A
//! cut is before the first transaction that finds the limit reached. It depends on the stored bytes alone. (A
//! source's own files are no longer than that, so a file stored plain is never cut.)
//!
//! We find cuts by reading a stored file's headers, when the number of a later file is needed. The cuts of closed files
//! are saved:
//!
//! ```text
//! relay.cuts
//! binlogz-relay cuts 1 LIMIT WHOLE-BEFORE
//! file NUMBER CRC                        a stored file that is closed, CRC-32 of its format description
//! cut OFFSET TIME SEQUENCE-NUMBER GTIDS  a cut in it: before which transaction, and the GTIDs of all before it
//! checksum CRC                           of all before
//! ```
//!
//! The file can be deleted: missing or damaged cuts are found again.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use binlogz_binlog::checksum::crc32;
use binlogz_binlog::gtid::GtidSet;
use binlogz_store::{BinlogStore, FileNumber, Storage, storage};

use crate::checkpoints::head_crc;
use crate::error::{Error, Result};
use crate::groups::{EventGroup, GroupWalker};
use crate::numbers::KeptNumbers;
use crate::small_files::small_file;
use crate::stored_format::StoredHead;

pub(crate) const NAME: &str = "relay.cuts";
const TITLE: &str = "binlogz-relay cuts 1";
/// A larger file is not read; no more is written, whatever GTIDs the source has.
const SIZE_MAX: u64 = 64 << 20;
const CHECKSUM_LINE_SIZE: usize = "checksum 01234567\n".len();

/// Where an uncompressed file begins within a stored one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileCut {
    /// The offset of the first transaction after the cut, in the stored file.
    pub(crate) stored: u64,
    /// The timestamp of that transaction's first event.
    pub(crate) timestamp: u32,
    /// The sequence number of the transaction before it; 0 if transactions have none.
    pub(crate) clock: i64,
    /// GTIDs of all transactions before it in the stored file.
    pub(crate) gtids: GtidSet,
}

/// The known cuts of a stored file.
#[derive(Debug, Clone, Default)]
struct KnownCuts {
    head: u32,
    cuts: Vec<FileCut>,
    /// How far it was read.
    to: u64,
    /// Bytes counted since the last cut.
    counted: u64,
    gtids: GtidSet,
    /// Nothing will be added to it.
    is_whole: bool,
    /// The version of the file in which they were found again; empty: none.
    version: String,
}

impl KnownCuts {
    fn step(&mut self, group: &EventGroup, limit: u64) {
        if group.first.event_type.is_gtid() {
            if self.counted >= limit {
                self.counted = 0;
                self.cuts.push(FileCut {
                    stored: group.begin,
                    timestamp: group.first.timestamp,
                    clock: (group.sequence_number - 1).max(0),
                    gtids: self.gtids.clone(),
                });
            }
            self.counted = self.counted.saturating_add(group.expanded_size);
            if let Some(gtid) = group.gtid {
                self.gtids.add(gtid);
            }
        }
        self.to = group.end;
    }
}

/// The cuts of all files of a log.
#[derive(Debug)]
pub struct Cuts {
    storage: Arc<dyn Storage>,
    numbers: Mutex<KeptNumbers>,
    limit: u64,
    whole_before: FileNumber,
    files: Mutex<BTreeMap<FileNumber, Arc<Mutex<KnownCuts>>>>,
    has_news: AtomicBool,
    saving: Mutex<()>,
}

impl Cuts {
    /// The saved cuts of this log.
    pub(crate) fn open(storage: Arc<dyn Storage>, numbers: KeptNumbers, store: &BinlogStore) -> Self {
        let KeptNumbers { limit, whole_before, .. } = numbers;
        // Anything unreadable is found again.
        let text = small_file(storage.as_ref(), NAME, SIZE_MAX).ok().flatten();
        let mut files = text.and_then(|text| decode(&text, limit, whole_before)).unwrap_or_default();
        // Another file of the same name has other cuts.
        let first = store.logs().ok().and_then(|logs| logs.first().map(|log| log.number));
        let first = first.or(numbers.first.map(|(file, _)| file));
        files.retain(|number, known| {
            // For purged files, the archive has the only file of that name.
            first.is_some_and(|first| *number < first)
                || StoredHead::read(store, *number).is_ok_and(|head| head_crc(&head.event) == known.head)
        });
        let files = files.into_iter().map(|(number, known)| (number, Arc::new(Mutex::new(known)))).collect();
        Cuts {
            storage,
            numbers: Mutex::new(numbers),
            limit,
            whole_before,
            files: Mutex::new(files),
            has_news: AtomicBool::new(false),
            saving: Mutex::default(),
        }
    }

    /// An uncompressed file ends after this many bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// A stored file, and the number of its first uncompressed file.
    pub(crate) fn first(&self) -> Option<(FileNumber, FileNumber)> {
        self.numbers.lock().first
    }

    /// Saves this one permanently instead.
    pub(crate) fn set_first(&self, first: (FileNumber, FileNumber)) -> Result<()> {
        let mut numbers = self.numbers.lock();
        let new = KeptNumbers { first: Some(first), ..*numbers };
        if new != *numbers {
            new.write(&self.storage)?;
            *numbers = new;
        }
        Ok(())
    }

    /// The cuts in the durable part of a file.
    pub(crate) fn of(&self, store: &BinlogStore, file: FileNumber) -> Result<Vec<FileCut>> {
        self.look(store, file, |_| false, |known| known.cuts.clone())
    }

    pub(crate) fn count(&self, store: &BinlogStore, file: FileNumber) -> Result<u32> {
        self.look(store, file, |_| false, |known| known.cuts.len() as u32)
    }

    /// Whether there is a cut before the durable transaction that begins here.
    pub fn is_at(&self, store: &BinlogStore, file: FileNumber, stored: u64) -> Result<bool> {
        let is_at = |known: &KnownCuts| known.cuts.binary_search_by_key(&stored, |cut| cut.stored).is_ok();
        self.look(store, file, |known| known.to > stored, is_at)
    }

    /// Finds the known cuts of a file again, once for each version of it that has fewer values: each is before the transaction before which it was.
    ///
    /// # Errors
    ///
    /// A file that can't be read, or has transactions without GTIDs.
    pub fn find_again(&self, store: &BinlogStore, file: FileNumber, version: &str) -> Result<()> {
        let Some(known) = self.files.lock().get(&file).map(Arc::clone) else { return Ok(()) };
        let mut known = known.lock();
        if known.cuts.is_empty() || known.version == version {
            return Ok(());
        }
        let head = StoredHead::read(store, file)?;
        let mut walker = GroupWalker::new(store.reader(file, head.end())?, head.framing(), head.end());
        let mut gtids = GtidSet::new();
        let mut found = 0;
        while let Some(group) = walker.next_group()? {
            let (true, Some(gtid)) = (group.first.event_type.is_gtid(), group.gtid) else { continue };
            if let Some(cut) = known.cuts.get_mut(found).filter(|cut| cut.gtids == gtids) {
                cut.stored = group.begin;
                found += 1;
            }
            gtids.add(gtid);
        }
        if found < known.cuts.len() {
            return Err(Error::Refused(format!(
                "{}: values were erased from it in the archive, and where its uncompressed files begin can't be found again without GTIDs",
                store.names().log(file)
            )));
        }
        version.clone_into(&mut known.version);
        self.has_news.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Reads the headers that were not read yet, unless enough is known.
    fn look<T>(
        &self,
        store: &BinlogStore,
        file: FileNumber,
        is_enough: impl Fn(&KnownCuts) -> bool,
        look: impl FnOnce(&KnownCuts) -> T,
    ) -> Result<T> {
        if file < self.whole_before {
            return Ok(look(&KnownCuts::default()));
        }
        let known = Arc::clone(self.files.lock().entry(file).or_default());
        let mut known = known.lock();
        if known.is_whole || is_enough(&known) {
            return Ok(look(&known));
        }
        let closed = store.positions().is_some_and(|now| now.durable.file > file);
        let head = StoredHead::read(store, file)?;
        known.head = head_crc(&head.event);
        let begin = known.to.max(head.end());
        let mut walker = GroupWalker::new(store.reader(file, begin)?, head.framing(), begin);
        let is_sound = loop {
            match walker.next_group() {
                Ok(Some(group)) => known.step(&group, self.limit),
                Ok(None) => break true,
                // No reader gets past the damage; later files have their numbers all the same.
                Err(Error::Binlog(_) | Error::Payload(_)) => break false,
                Err(error) => return Err(error),
            }
        };
        if closed && is_sound {
            known.is_whole = true;
            self.has_news.store(true, Ordering::Relaxed);
        }
        Ok(look(&known))
    }

    /// Saves the cuts of closed files.
    pub(crate) fn keep(&self) {
        if self.has_news.swap(false, Ordering::Relaxed) {
            // Anything not written is found again.
            let _ = self.save();
        }
    }

    fn save(&self) -> std::io::Result<()> {
        let _alone = self.saving.lock();
        let files: Vec<_> =
            self.files.lock().iter().map(|(number, known)| (*number, Arc::clone(known))).collect();
        let files = files.iter().filter_map(|(number, known)| {
            // A file that is being read is not complete.
            let known = known.try_lock()?;
            known.is_whole.then(|| (*number, known.clone()))
        });
        let text = encode(files, self.limit, self.whole_before);
        storage::replace_unsynced(self.storage.as_ref(), NAME, text.as_bytes())
    }
}

fn title(limit: u64, whole_before: FileNumber) -> String {
    format!("{TITLE} {limit} {}", whole_before.0)
}

fn encode(
    files: impl Iterator<Item = (FileNumber, KnownCuts)>,
    limit: u64,
    whole_before: FileNumber,
) -> String {
    let mut text = title(limit, whole_before) + "\n";
    for (number, known) in files {
        let before = text.len();
        // Writing to a string does not fail.
        let _ = writeln!(text, "file {} {:08x}", number.0, known.head);
        for FileCut { stored, timestamp, clock, gtids } in &known.cuts {
            let _ = writeln!(text, "cut {stored} {timestamp} {clock} {gtids}");
        }
        if text.len() + CHECKSUM_LINE_SIZE > SIZE_MAX as usize {
            // A cut that does not fit is found again.
            text.truncate(before);
        }
    }
    let checksum = crc32(text.as_bytes());
    text + &format!("checksum {checksum:08x}\n")
}

fn decode(text: &str, limit: u64, whole_before: FileNumber) -> Option<BTreeMap<FileNumber, KnownCuts>> {
    let (body, checksum) = text.strip_suffix('\n')?.rsplit_once("checksum ")?;
    // As it is written, digit by digit: another spelling of the number is damage too.
    if checksum != format!("{:08x}", crc32(body.as_bytes())) {
        return None;
    }
    let mut lines = body.lines();
    if lines.next()? != title(limit, whole_before) {
        return None;
    }
    let mut files = BTreeMap::new();
    for line in lines {
        if let Some(file) = line.strip_prefix("file ") {
            let (number, head) = file.split_once(' ')?;
            let head = u32::from_str_radix(head, 16).ok()?;
            let known = KnownCuts { head, is_whole: true, ..KnownCuts::default() };
            files.insert(FileNumber(number.parse().ok()?), known);
            continue;
        }
        let mut fields = line.strip_prefix("cut ")?.splitn(4, ' ');
        let cut = FileCut {
            stored: fields.next()?.parse().ok()?,
            timestamp: fields.next()?.parse().ok()?,
            clock: fields.next()?.parse().ok()?,
            gtids: fields.next()?.parse().ok()?,
        };
        files.last_entry()?.get_mut().cuts.push(cut);
    }
    Some(files)
}

#[cfg(test)]
mod tests {
    use binlogz_store::{MemoryStorage, Position, StoreOptions};
    use binlogz_testkit::builder::{LogBuilder, Release, transaction_events};

    use super::*;

    const UUID: &str = "1410447f-e54d-11f1-848d-02fc00000001";
    const FILE: FileNumber = FileNumber(1);

    /// A store whose only file is closed and has these bytes.
    fn lent(log: &[u8]) -> BinlogStore {
        let files = MemoryStorage::new();
        storage::replace(&files, "binlog.000001", log).unwrap();
        let (store, _) = BinlogStore::open(Arc::new(MemoryStorage::new()), StoreOptions::default()).unwrap();
        store.ended_at(Position { file: FileNumber(2), offset: 4 });
        store.lend(FILE, Arc::new(files), "binlog.000001");
        store
    }

    /// A log of transactions with values of these sizes, and where they begin.
    fn log_of(sizes: &[usize]) -> (Vec<u8>, Vec<u64>) {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        let mut begins = Vec::new();
        for size in sizes {
            begins.push(log.offset());
            log.transaction(&[&vec![b'x'; *size]]);
        }
        (log.take(), begins)
    }

    #[test]
    fn cuts_are_found_again_before_the_same_transactions() {
        let (log, begins) = log_of(&[900; 12]);
        let whole = lent(&log);
        let cuts = Cuts::open(Arc::new(MemoryStorage::new()), KeptNumbers::new(2500), &whole);
        let before = cuts.of(&whole, FILE).unwrap();
        assert!(before.len() > 2, "{before:?}");
        let (log, moved) = log_of(&[900, 0, 900, 900, 0, 0, 900, 900, 900, 0, 900, 900]);
        let left = lent(&log);
        cuts.find_again(&left, FILE, "erased").unwrap();
        let after = cuts.of(&left, FILE).unwrap();
        assert_eq!(after.len(), before.len());
        for (before, after) in before.iter().zip(&after) {
            let transaction = begins.iter().position(|begin| *begin == before.stored).unwrap();
            assert_eq!((after.stored, &after.gtids), (moved[transaction], &before.gtids));
        }
        // Of the same version they are known, wherever they would be.
        cuts.find_again(&whole, FILE, "erased").unwrap();
        assert_eq!(cuts.of(&left, FILE).unwrap(), after);

        let mut anonymous = LogBuilder::new(Release::MYSQL_9_7);
        for _ in 0..12 {
            anonymous.transaction_without_gtid(&transaction_events(&[&[b'x'; 900]]));
        }
        let refused = cuts.find_again(&lent(&anonymous.take()), FILE, "erased again").unwrap_err();
        let expected = "binlog.000001: values were erased from it in the archive, and where its uncompressed files begin can't be found";
        assert!(refused.to_string().contains(expected), "{refused}");
    }

    #[test]
    fn what_is_remembered_comes_back_whole_or_not_at_all() {
        let cut = |stored: u64, gtids: &str| FileCut {
            stored,
            timestamp: 1_700_000_000,
            clock: 4711,
            gtids: gtids.parse().unwrap(),
        };
        let cuts = vec![cut(1 << 30, &format!("{UUID}:1-3:tag:5")), cut(1 << 31, "")];
        let known = KnownCuts { head: 7, cuts, is_whole: true, ..KnownCuts::default() };
        let files =
            [(FileNumber(5), known.clone()), (FileNumber(6), KnownCuts { cuts: vec![], ..known.clone() })];
        let text = encode(files.clone().into_iter(), 9, FileNumber(2));
        let read = |text: &str| decode(text, 9, FileNumber(2));
        let back = read(&text).unwrap();
        for (number, known) in &files {
            let back = back.get(number).unwrap();
            assert!(back.is_whole && back.cuts == known.cuts && back.head == known.head, "{text}");
        }
        assert!(decode(&text, 8, FileNumber(2)).is_none() && decode(&text, 9, FileNumber(3)).is_none());
        // A source with very many GTIDs: what is written can be read, with everything that fits.
        let mut huge = GtidSet::new();
        let tsid =
            binlogz_binlog::gtid::Tsid::from(UUID.parse::<binlogz_binlog::gtid::ServerUuid>().unwrap());
        for n in 0..1_000_000 {
            let gno = i64::MAX as u64 - 3_000_000 + 2 * n;
            huge.add(binlogz_binlog::gtid::Gtid::new(tsid, gno).unwrap());
        }
        let large = KnownCuts { cuts: vec![FileCut { gtids: huge, ..cut(7, "") }], ..known.clone() };
        let many = (0..4).map(|n| (FileNumber(n), large.clone())).chain([(FileNumber(9), known.clone())]);
        let long = encode(many, 9, FileNumber(2));
        assert!(long.len() as u64 <= SIZE_MAX && long.len() as u64 > SIZE_MAX / 2, "{}", long.len());
        let numbers: Vec<u64> = read(&long).unwrap().into_keys().map(|file| file.0).collect();
        assert_eq!(numbers, [0, 1, 2, 9]);
        for cut in 0..text.len() {
            assert!(read(text.get(..cut).unwrap()).is_none(), "cut at {cut}");
            for bit in 0..8 {
                let mut flipped = text.clone().into_bytes();
                flipped[cut] ^= 1 << bit;
                // As a file is read.
                let flipped = String::from_utf8_lossy(&flipped);
                assert!(read(&flipped).is_none(), "bit {bit} flipped at {cut}");
            }
        }
    }
}
