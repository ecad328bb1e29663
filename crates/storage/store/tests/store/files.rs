//! Files, index, positions, purge and the lock, over a real directory and in memory.

use std::io::Read;
use std::time::Duration;

use binlogz_store::{
    Error, FileNumber, FileStorage, Lineage, MemoryStorage, Position, Storage, StoreOptions,
};

use crate::common::{EVENTS, gtids, head, numbers, open, rotate, transaction};

fn is_kept_in_ordinary_files(storage: impl Storage + Clone + 'static) {
    let (store, report) = open(storage.clone()).unwrap();
    assert_eq!((report.end, store.positions()), (None, None));
    rotate(&store, &gtids(0)).unwrap();
    store.writer().unwrap().append(&transaction(1, 10)).unwrap();
    rotate(&store, &gtids(1)).unwrap();
    let end = store.writer().unwrap().append(&transaction(2, 100_000)).unwrap();
    assert_eq!(end.file, FileNumber(2));
    let mut writer = store.writer().unwrap();
    let end = writer.append(&EVENTS.stop(end.offset)).unwrap();
    writer.seal().unwrap();
    assert_eq!(writer.position(), None);
    assert!(matches!(writer.append(b"x"), Err(Error::Misuse { .. })));
    drop(writer);
    let now = store.positions().unwrap();
    assert_eq!((now.written, now.durable), (end, end));
    drop(store);

    let mut names = storage.list().unwrap();
    names.retain(|name| name != "binlogz.lock");
    assert_eq!(names, ["binlog.000001", "binlog.000002", "binlog.durable", "binlog.index", "binlog.store"]);
    let (store, report) = open(storage).unwrap();
    assert_eq!(report.to_string(), "file 000002 was closed; transactions in it: 1");
    assert!(report.closed && !report.was_in_use);
    assert_eq!(report.gtids, gtids(2));
    assert_eq!(numbers(&store), [1, 2]);
    assert_eq!(store.previous_gtids(FileNumber(2)).unwrap(), gtids(1));
    assert_eq!(store.writer().unwrap().position(), None, "a closed file is not appended to");
    rotate(&store, &report.gtids).unwrap();
    assert_eq!(store.logs().unwrap().len(), 3);
}

/// A directory can be open only once; this hands it out repeatedly.
#[derive(Debug, Clone)]
struct Reopened(std::path::PathBuf);

impl Storage for Reopened {
    fn list(&self) -> std::io::Result<Vec<String>> {
        self.open().list()
    }
    fn open(
        &self,
        name: &str,
        create: bool,
    ) -> std::io::Result<std::sync::Arc<dyn binlogz_store::StorageFile>> {
        self.open().open(name, create)
    }
    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.open().rename(from, to)
    }
    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.open().remove(name)
    }
    fn sync_names(&self) -> std::io::Result<()> {
        self.open().sync_names()
    }
}

impl Reopened {
    fn open(&self) -> FileStorage {
        FileStorage::open(&self.0).unwrap()
    }
}

#[test]
fn a_log_is_kept_in_ordinary_files() {
    is_kept_in_ordinary_files(MemoryStorage::new());
    let dir = tempfile::tempdir().unwrap();
    is_kept_in_ordinary_files(Reopened(dir.path().to_owned()));
    let index = std::fs::read_to_string(dir.path().join("binlog.index")).unwrap();
    assert_eq!(index, "./binlog.000001\n./binlog.000002\n./binlog.000003\n");
    let last = std::fs::read(dir.path().join("binlog.000003")).unwrap();
    assert_eq!(last, head(&gtids(2)));
}

#[test]
fn a_directory_has_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let first = FileStorage::open(dir.path()).unwrap();
    let error = FileStorage::open(dir.path()).unwrap_err();
    assert_eq!(error.to_string(), format!("{}: another process uses this store", dir.path().display()));
    drop(first);
    FileStorage::open(dir.path()).unwrap();
}

#[test]
fn readers_see_what_is_durable_and_no_more() {
    let (store, _) = open(MemoryStorage::new()).unwrap();
    rotate(&store, &gtids(0)).unwrap();
    let start = store.positions().unwrap().durable;
    let bytes = transaction(1, 50);
    let end = store.writer().unwrap().append(&bytes).unwrap();
    assert_eq!(store.positions().unwrap().written, end);
    assert_eq!(store.positions().unwrap().durable, start);
    let mut reader = store.reader(FileNumber(1), start.offset).unwrap();
    let mut seen = Vec::new();
    reader.read_to_end(&mut seen).unwrap();
    assert!(seen.is_empty(), "not durable yet");
    let waited = store.wait_durable_beyond(Some(start), Duration::ZERO).unwrap();
    assert_eq!(waited.durable, start);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| store.wait_durable_beyond(Some(start), Duration::from_secs(60)));
        assert_eq!(store.sync().unwrap(), Some(end));
        assert_eq!(waiter.join().unwrap().unwrap().durable, end);
    });
    reader.read_to_end(&mut seen).unwrap();
    assert_eq!(seen, bytes);
    // A file that a rotation closed is durable to its end.
    rotate(&store, &gtids(1)).unwrap();
    reader.read_to_end(&mut seen).unwrap();
    assert_eq!(seen.len(), bytes.len() + EVENTS.rotate(end.offset, "binlog.000002").len());
}

#[test]
fn purging_removes_the_oldest_and_readers_go_on() {
    let storage = MemoryStorage::new();
    let (store, _) = open(storage.clone()).unwrap();
    for gno in 1..=4 {
        rotate(&store, &gtids(gno - 1)).unwrap();
        store.writer().unwrap().append(&transaction(gno, 10)).unwrap();
    }
    store.sync().unwrap();
    let mut reader = store.reader(FileNumber(1), 0).unwrap();
    assert_eq!(store.purge_before(FileNumber(3)).unwrap(), ["binlog.000001", "binlog.000002"]);
    assert!(store.purge_before(FileNumber(3)).unwrap().is_empty());
    let mut seen = Vec::new();
    reader.read_to_end(&mut seen).unwrap();
    assert!(seen.ends_with(b"binlog.000002") || seen.len() > 200);
    assert!(store.reader(FileNumber(1), 0).is_err());
    assert!(store.purge_before(FileNumber(9)).is_err());
    assert_eq!(numbers(&store), [3, 4]);
    assert_eq!(store.previous_gtids(FileNumber(3)).unwrap(), gtids(2));
    drop(store);
    let (store, report) = open(storage).unwrap();
    assert_eq!((numbers(&store), report.gtids), (vec![3, 4], gtids(4)));
}

#[test]
fn numbers_only_rise_and_may_leap() {
    let (store, _) = open(MemoryStorage::new()).unwrap();
    let mut writer = store.writer().unwrap();
    let begun = writer.begin_file(FileNumber(41), &head(&gtids(0)), None).unwrap();
    assert_eq!(begun, Position { file: FileNumber(41), offset: head(&gtids(0)).len() as u64 });
    for number in [0, 1, 41, 0x8000_0000] {
        assert!(writer.begin_file(FileNumber(number), &head(&gtids(0)), None).is_err(), "{number}");
    }
    writer.begin_file(FileNumber(50), &head(&gtids(0)), None).unwrap();
    assert!(writer.begin_file(FileNumber(51), b"short", None).is_err());
    drop(writer);
    // A refusal caused by the caller does not latch the store.
    store.writer().unwrap().append(&transaction(1, 1)).unwrap();
}

#[test]
fn another_lineage_is_refused() {
    let storage = MemoryStorage::new();
    open(storage.clone()).unwrap();
    let lineage = Lineage { source: None, number: 2 };
    let options = StoreOptions { lineage, ..StoreOptions::default() };
    let error = binlogz_store::BinlogStore::open(std::sync::Arc::new(storage), options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "binlog.store: the store holds the log of no server, lineage 1, expected the source and lineage asked for"
    );
}
