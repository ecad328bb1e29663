//! Purged files restored from the archive, one at a time, for clients that read them. They are not part of the log:
//! the index does not list them, and the relay removes them when it starts.
//!
//! ```text
//! binlog.000007.brought-back     beside the log; readers find it under the file's number (binlogz_store::lending)
//! ```
//!
//! Their total size is bounded by a budget. Each is kept while someone reads it, and then until its room is needed
//! for another, the least recently used first. A reader holds one file at a time, so every archive can be read
//! completely in the room of its largest file. A reader that finds no room waits for a while, and then has to
//! reconnect. A file from which values were erased meanwhile is restored anew, once nobody reads what it was. The relay's
//! housekeeping finds the files in the archive.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_store::FileNumber;
use binlogz_store::storage::FileWriter;

use crate::brought_back_names::brought_back_name;
use crate::error::{Error, Result};
use crate::lineage_log::LineageLog;
use crate::lineages::Lineages;

/// Unread files stay this long: the client that needed one may have to reconnect.
const STAYS: Duration = Duration::from_secs(300);
/// How long a reader waits for room. Replicas give up a connection that is silent for a minute.
const WAIT_MAX: Duration = Duration::from_secs(30);
const WRITE_SIZE: usize = 1 << 20;

/// How much may be brought back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BringBack {
    /// Bytes of all files together.
    pub bytes_max: u64,
    /// Bytes to leave free on the file system of the relay's directory.
    pub free_min: u64,
}

impl Default for BringBack {
    fn default() -> Self {
        BringBack { bytes_max: BringBack::BYTES_MAX, free_min: BringBack::FREE_MIN }
    }
}

impl BringBack {
    /// Four of the largest files that servers write unless a transaction is larger (`max_binlog_size`).
    pub const BYTES_MAX: u64 = 4 << 30;
    /// The log being received needs room too.
    pub const FREE_MIN: u64 = 1 << 30;
}

/// The log's number, and the file.
type Key = (u64, FileNumber);

/// The files that are present or being restored.
#[derive(Debug)]
pub struct BroughtBack {
    limits: BringBack,
    wait_max: Duration,
    state: Mutex<BroughtBackState>,
    changed: Condvar,
    /// Held while restoring a file, which takes CPU and memory.
    restoring: Mutex<()>,
}

#[derive(Debug, Default)]
struct BroughtBackState {
    files: BTreeMap<Key, Entry>,
    bytes: u64,
}

#[derive(Debug)]
struct Entry {
    version: String,
    size: u64,
    readers: usize,
    is_whole: bool,
    last_used: Instant,
}

impl Entry {
    /// Whether it is what the file was before.
    fn is_former(&self, version: &str) -> bool {
        self.is_whole && self.version != version
    }
}

/// A reader's hold on a file, which stays until this is dropped.
#[derive(Debug)]
pub struct FileLease {
    of: Arc<BroughtBack>,
    key: Key,
}

impl Drop for FileLease {
    fn drop(&mut self) {
        if let Some(entry) = self.of.state.lock().files.get_mut(&self.key) {
            entry.readers = entry.readers.saturating_sub(1);
            entry.last_used = Instant::now();
        }
        self.of.changed.notify_all();
    }
}

/// A purged file, and the context that a lease needs.
pub struct PurgedFile<'a> {
    /// All logs: other files may have to make room.
    pub lineages: &'a Lineages,
    /// The log that it belongs to.
    pub kept: &'a LineageLog,
    /// Its number.
    pub number: FileNumber,
    /// Tells its bytes from others that it may have had ([`ClosedLog::version`](crate::ClosedLog::version)).
    pub version: &'a str,
}

impl BroughtBack {
    /// None is there yet.
    pub fn new(limits: BringBack) -> BroughtBack {
        BroughtBack {
            limits,
            wait_max: WAIT_MAX,
            state: Mutex::default(),
            changed: Condvar::new(),
            restoring: Mutex::default(),
        }
    }

    /// Bytes of all files that are present or being restored.
    pub fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Restores a file of `size` bytes, unless it is present; `write` supplies its bytes. It stays while the lease
    /// lives.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a file that is larger than the budget; other errors if the reader should try again.
    pub fn lease(
        self: &Arc<Self>,
        place: &PurgedFile<'_>,
        size: u64,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<FileLease> {
        let key = (place.kept.number, place.number);
        let name = place.kept.store.names().log(place.number);
        if size > self.limits.bytes_max {
            return Err(Error::Refused(format!(
                "{name} was purged and has {size} bytes: at most {} may come back from the archive at a time \
                 (bring_back_max_bytes of [archive] in the relay's configuration)",
                self.limits.bytes_max
            )));
        }
        let until = Instant::now() + self.wait_max;
        let mut state = self.state.lock();
        loop {
            let is_former = state.files.get(&key).is_some_and(|entry| entry.is_former(place.version));
            if is_former && state.files.get(&key).is_some_and(|entry| entry.readers == 0) {
                remove(&mut state, place.lineages, key)?;
                continue;
            }
            if let Some(entry) = state.files.get_mut(&key).filter(|entry| entry.is_whole && !is_former) {
                entry.readers += 1;
                return Ok(FileLease { of: Arc::clone(self), key });
            }
            // Another reader may be restoring it, or reading what it was.
            if !state.files.contains_key(&key) && self.has_room(&mut state, place.lineages, size)? {
                break;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(match is_former {
                    true => self.still_read(&name),
                    false => self.no_room(&name, size, &state),
                });
            }
            self.changed.wait_for(&mut state, left);
        }
        let last_used = Instant::now();
        let version = place.version.to_owned();
        state.files.insert(key, Entry { version, size, readers: 1, is_whole: false, last_used });
        state.bytes += size;
        drop(state);
        // Releases the room if the file is not completed.
        let coming = ComingFile { of: self, key };
        self.bring(place.kept, place.number, &name, write)?;
        std::mem::forget(coming);
        if let Some(entry) = self.state.lock().files.get_mut(&key) {
            entry.is_whole = true;
        }
        self.changed.notify_all();
        Ok(FileLease { of: Arc::clone(self), key })
    }

    /// Makes room for this many bytes, if possible.
    fn has_room(&self, state: &mut BroughtBackState, lineages: &Lineages, size: u64) -> Result<bool> {
        loop {
            let coming: u64 =
                state.files.values().filter(|entry| !entry.is_whole).map(|entry| entry.size).sum();
            let free = lineages.free_space().map_err(Error::io("look for free space"))?;
            let leaves_enough =
                free.is_none_or(|free| free >= self.limits.free_min.saturating_add(size + coming));
            if leaves_enough && state.bytes + size <= self.limits.bytes_max {
                return Ok(true);
            }
            let unused = state.files.iter().filter(|(_, entry)| entry.readers == 0 && entry.is_whole);
            let Some((key, _)) = unused.min_by_key(|(_, entry)| entry.last_used) else { return Ok(false) };
            let key = *key;
            remove(state, lineages, key)?;
        }
    }

    fn still_read(&self, name: &str) -> Error {
        Error::io(format!("bring {name} back from the archive"))(io::Error::other(format!(
            "others read it as it was before values were erased from it, for {:?} now; the client has to come again",
            self.wait_max
        )))
    }

    fn no_room(&self, name: &str, size: u64, state: &BroughtBackState) -> Error {
        let doing = format!("bring {name} back from the archive");
        Error::io(doing)(io::Error::other(format!(
            "no room for its {size} bytes within {:?}: {} of {} bytes are taken by files that others read, and {} are \
             to stay free on the file system; the client has to come again",
            self.wait_max, state.bytes, self.limits.bytes_max, self.limits.free_min
        )))
    }

    fn bring(
        &self,
        kept: &LineageLog,
        number: FileNumber,
        log: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> Result<()> {
        let storage = kept.storage.as_ref();
        let name = brought_back_name(log);
        let _alone = self.restoring.lock();
        let mut put = || {
            if storage.list()?.contains(&name) {
                storage.remove(&name)?;
            }
            let file = FileWriter::new(storage.open(&name, true)?);
            let mut out = io::BufWriter::with_capacity(WRITE_SIZE, file);
            write(&mut out)?;
            // Not synced: after a crash of the system it is removed.
            out.flush()
        };
        if let Err(error) = put() {
            // A leftover is removed at the next start.
            let _ = storage.remove(&name);
            return Err(Error::io(format!("bring {log} back from the archive"))(error));
        }
        kept.store.lend(number, Arc::clone(&kept.storage), &name);
        Ok(())
    }

    /// Removes files that have been unused for a while.
    pub fn sweep(&self, lineages: &Lineages) -> Result<()> {
        let mut state = self.state.lock();
        let is_old =
            |entry: &Entry| entry.readers == 0 && entry.is_whole && entry.last_used.elapsed() >= STAYS;
        let old: Vec<Key> =
            state.files.iter().filter(|(_, entry)| is_old(entry)).map(|(key, _)| *key).collect();
        old.into_iter().try_for_each(|key| remove(&mut state, lineages, key))
    }
}

/// A file being restored, removed again unless it is completed.
struct ComingFile<'a> {
    of: &'a BroughtBack,
    key: Key,
}

impl Drop for ComingFile<'_> {
    fn drop(&mut self) {
        let mut state = self.of.state.lock();
        if let Some(entry) = state.files.remove(&self.key) {
            state.bytes -= entry.size;
        }
        drop(state);
        self.of.changed.notify_all();
    }
}

fn remove(state: &mut BroughtBackState, lineages: &Lineages, key: Key) -> Result<()> {
    let (lineage, number) = key;
    if let Some(kept) = lineages.all().into_iter().find(|kept| kept.number == lineage) {
        let log = kept.store.names().log(number);
        match kept.storage.remove(&brought_back_name(&log)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::io(format!("remove {}", brought_back_name(&log)))(error));
            }
            _ => kept.store.take_back(number),
        }
        kept.forget_places(number, &log);
    }
    if let Some(entry) = state.files.remove(&key) {
        state.bytes -= entry.size;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use binlogz_store::{MemoryStorage, Storage};

    use super::*;
    use crate::brought_back_names::{SUFFIX, remove_brought_back};
    use crate::disk::Disk;

    #[derive(Debug, Clone)]
    struct InMemory {
        storage: MemoryStorage,
        free: Arc<AtomicU64>,
    }

    impl Disk for InMemory {
        fn has(&self, _: &str) -> bool {
            false
        }

        fn take(&self, _: Option<&str>) -> Result<Arc<dyn Storage>> {
            Ok(Arc::new(self.storage.clone()))
        }

        fn free_space(&self) -> io::Result<Option<u64>> {
            Ok(Some(self.free.load(Ordering::Relaxed)))
        }
    }

    /// A log without files, and the files brought back for it.
    struct Test {
        disk: InMemory,
        lineages: Lineages,
        kept: Arc<LineageLog>,
        brought_back: Arc<BroughtBack>,
    }

    fn test(bytes_max: u64) -> Test {
        let disk = InMemory { storage: MemoryStorage::new(), free: Arc::new(AtomicU64::new(1000)) };
        let lineages = Lineages::open(Arc::new(disk.clone()), None, 1 << 30, |_, _| {}).unwrap();
        let source = "1410447f-e54d-11f1-848d-02fc00000001".parse().unwrap();
        let (kept, _) = lineages.begin("binlog", source).unwrap();
        let limits = BringBack { bytes_max, free_min: 100 };
        let wait_max = Duration::from_millis(20);
        let brought_back = Arc::new(BroughtBack { wait_max, ..BroughtBack::new(limits) });
        Test { disk, lineages, kept, brought_back }
    }

    impl Test {
        fn lease(&self, number: u64, size: usize) -> Result<FileLease> {
            self.lease_version(number, size, "")
        }

        fn lease_version(&self, number: u64, size: usize, version: &str) -> Result<FileLease> {
            let number = FileNumber(number);
            let place = PurgedFile { lineages: &self.lineages, kept: &self.kept, number, version };
            self.brought_back
                .lease(&place, size as u64, &mut |out| out.write_all(&vec![number.0 as u8; size]))
        }

        fn there(&self) -> Vec<u64> {
            let names = self.disk.storage.list().unwrap();
            let number = |name: &String| self.kept.store.names().number(name.strip_suffix(SUFFIX)?);
            names.iter().filter_map(number).map(|number| number.0).collect()
        }
    }

    #[test]
    fn the_one_that_was_not_used_for_longest_makes_room() {
        let test = test(100);
        for number in [1, 2, 1] {
            test.lease(number, 40).unwrap();
        }
        assert_eq!((test.there(), test.brought_back.bytes()), (vec![1, 2], 80));
        test.lease(3, 40).unwrap();
        assert_eq!((test.there(), test.brought_back.bytes()), (vec![1, 3], 80));
        // They were used recently.
        test.brought_back.sweep(&test.lineages).unwrap();
        assert_eq!(test.there(), [1, 3]);
        remove_brought_back(&test.disk.storage).unwrap();
        assert!(test.there().is_empty());
    }

    #[test]
    fn a_file_that_is_read_stays_and_others_wait_for_their_turn() {
        let test = test(100);
        let first = test.lease(1, 60).unwrap();
        let also = test.lease(1, 60).unwrap();
        let error = test.lease(2, 60).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().contains("60 of 100 bytes are taken by files that others read"), "{error}");
        assert_eq!(test.there(), [1]);
        drop((first, also));
        test.lease(2, 60).unwrap();
        assert_eq!(test.there(), [2]);
    }

    #[test]
    fn a_file_of_another_version_takes_the_place_of_one_that_nobody_reads() {
        let test = test(100);
        let size =
            || test.disk.storage.open(&brought_back_name("binlog.000001"), false).unwrap().size().unwrap();
        let former = test.lease_version(1, 40, "with values").unwrap();
        let error = test.lease_version(1, 30, "without").unwrap_err();
        assert!(error.to_string().contains("others read it as it was before values were erased"), "{error}");
        assert_eq!(size(), 40);
        drop(former);
        test.lease_version(1, 30, "without").unwrap();
        assert_eq!((size(), test.brought_back.bytes()), (30, 30));
    }

    #[test]
    fn what_is_larger_than_the_budget_is_refused_with_its_size() {
        let error = test(100).lease(7, 101).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error}");
        assert!(
            error.to_string().contains("binlog.000007 was purged and has 101 bytes: at most 100"),
            "{error}"
        );
    }

    #[test]
    fn so_much_stays_free_on_the_disk() {
        let test = test(1000);
        test.disk.free.store(159, Ordering::Relaxed);
        let error = test.lease(1, 60).unwrap_err();
        assert!(error.to_string().contains("100 are to stay free"), "{error}");
        test.disk.free.store(160, Ordering::Relaxed);
        test.lease(1, 60).unwrap();
    }

    #[test]
    fn one_that_can_not_be_restored_leaves_nothing() {
        let test = test(100);
        let number = FileNumber(1);
        let place = PurgedFile { lineages: &test.lineages, kept: &test.kept, number, version: "" };
        let mut write = |out: &mut dyn Write| out.write_all(b"half").and(Err(io::Error::other("SHA-256")));
        assert!(test.brought_back.lease(&place, 60, &mut write).is_err());
        assert!(test.kept.store.reader(FileNumber(1), 0).is_err());
        assert_eq!((test.there(), test.brought_back.bytes()), (vec![], 0));
    }
}
