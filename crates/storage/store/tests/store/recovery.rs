//! Recovery of files that are cut at every byte, damaged, half made, foreign.

use std::sync::Arc;

use binlogz_binlog::EventReader;
use binlogz_encryption::Keyring;
use binlogz_store::{BinlogStore, FileNumber, MemoryStorage, Storage, StoreOptions};
use binlogz_testkit::corpus;

use crate::common::{gtids, head, numbers, open, rotate, transaction};

fn bytes_of(storage: &MemoryStorage, name: &str) -> Vec<u8> {
    let file = storage.open(name, false).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn put(storage: &MemoryStorage, name: &str, bytes: &[u8]) {
    let _ = storage.remove(name);
    storage.open(name, true).unwrap().write_at(0, bytes).unwrap();
}

/// A log of one file in use with three transactions; returns where each ends.
fn in_use() -> (MemoryStorage, Vec<u64>) {
    let storage = MemoryStorage::new();
    let (store, _) = open(storage.clone()).unwrap();
    rotate(&store, &gtids(0)).unwrap();
    let mut ends = vec![store.positions().unwrap().written.offset];
    for gno in 1..=3 {
        ends.push(store.writer().unwrap().append(&transaction(gno, 30)).unwrap().offset);
    }
    (storage, ends)
}

#[test]
fn a_tail_cut_at_any_byte_is_cut_off_and_reported() {
    let (storage, ends) = in_use();
    let whole = bytes_of(&storage, "binlog.000001");
    for size in ends[0]..=whole.len() as u64 {
        put(&storage, "binlog.000001", &whole[..size as usize]);
        // The watermark of the previous round must not count in this one.
        storage.remove("binlog.durable").unwrap();
        let (store, report) = open(storage.clone()).unwrap();
        let kept = ends.iter().filter(|end| **end <= size).count() as u64 - 1;
        assert_eq!(report.transactions, kept, "{size}");
        assert_eq!(report.gtids, gtids(kept));
        assert!(report.was_in_use);
        let end = ends[kept as usize];
        assert_eq!(report.end.unwrap().offset, end);
        assert_eq!(
            report.cut.as_ref().map(|cut| (cut.offset, cut.size)),
            (size > end).then_some((end, size - end))
        );
        assert_eq!(numbers(&store), (1..=kept).collect::<Vec<_>>());
        // It continues at the cut.
        store.writer().unwrap().append(&transaction(kept + 1, 5)).unwrap();
        store.sync().unwrap();
        assert_eq!(numbers(&store).len() as u64, kept + 1);
    }
    put(&storage, "binlog.000001", &whole[..ends[1] as usize + 10]);
    storage.remove("binlog.durable").unwrap();
    let (_, report) = open(storage).unwrap();
    assert_eq!(
        report.to_string(),
        format!(
            "file 000001 was not closed; transactions in it: 1; binlog.000001 at {0}: 10 bytes were cut off and kept as \
             binlog.000001.torn-{0}: at {0}: the log ends inside an event: 19 bytes expected, 10 are there",
            ends[1]
        )
    );
}

#[test]
fn bytes_that_are_no_events_end_a_log_in_use() {
    let (storage, ends) = in_use();
    let whole = bytes_of(&storage, "binlog.000001");
    for at in (ends[1]..ends[2]).map(|at| at as usize) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        put(&storage, "binlog.000001", &damaged);
        let (_, report) = open(storage.clone()).unwrap();
        assert_eq!((report.transactions, report.end.unwrap().offset), (1, ends[1]), "byte {at}");
    }
    let hole = [&whole[..ends[1] as usize], &vec![0; 3000][..], &whole[ends[1] as usize..]].concat();
    put(&storage, "binlog.000001", &hole);
    let (_, report) = open(storage).unwrap();
    assert_eq!(report.gtids, gtids(1));
}

#[test]
fn a_closed_file_is_never_cut() {
    let (storage, ends) = in_use();
    let (store, _) = open(storage.clone()).unwrap();
    store.writer().unwrap().seal().unwrap();
    drop(store);
    let whole = bytes_of(&storage, "binlog.000001");
    put(&storage, "binlog.000001", &whole[..whole.len() - 1]);
    let (_, report) = open(storage.clone()).unwrap();
    let damage = report.damage.unwrap().to_string();
    assert!(
        damage.starts_with("binlog.000001 is damaged from ")
            && damage.contains("the log ends inside an event"),
        "{damage}"
    );
    assert!(ends[3] == whole.len() as u64);
    assert_eq!(bytes_of(&storage, "binlog.000001").len(), whole.len() - 1);
    put(&storage, "binlog.000001", b"no log");
    let (_, report) = open(storage).unwrap();
    let damage = report.damage.unwrap().to_string();
    assert_eq!(
        damage,
        "binlog.000001 is damaged from 0 to 6: not a binary log: it begins with 6e 6f 20 6c, expected fe 62 69 6e"
    );
}

#[test]
fn leftovers_go_and_what_no_crash_leaves_is_refused() {
    let (storage, _) = in_use();
    put(&storage, "binlog.000002", &head(&gtids(3))[..50]);
    put(&storage, "binlog.index.new", b"./bin");
    put(&storage, "binlog.index.bak", b"the user's own");
    let (_, report) = open(storage.clone()).unwrap();
    assert_eq!(report.removed, ["binlog.index.new", "binlog.000002"]);
    assert!(storage.list().unwrap().contains(&"binlog.index.bak".to_owned()));

    put(&storage, "binlog.000002", &[head(&gtids(3)), transaction(4, 1)].concat());
    let error = open(storage.clone()).unwrap_err().to_string();
    assert_eq!(error, "binlog.000002: the index does not list it, expected a file that is in the index");
    put(&storage, "binlog.index", b"./binlog.000001\n./binlog.000002\n./binlog.000003\n");
    let error = open(storage.clone()).unwrap_err().to_string();
    assert_eq!(
        error,
        "binlog.000003: the index lists it, and it is not there, expected every file of the index"
    );
    for (index, line) in
        [("./binlog.000002\n./binlog.000001\n", 2), ("\n", 1), ("binlog.000001\n../etc/passwd\n", 2)]
    {
        put(&storage, "binlog.index", index.as_bytes());
        let error = open(storage.clone()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("binlog.index: line {line} is ")), "{error}");
    }
}

#[test]
fn an_encrypted_log_is_a_log() {
    let keyring = Arc::new(Keyring::open(&corpus::encrypted().keyring).unwrap());
    let key = keyring.current_key(None).unwrap();
    let storage = MemoryStorage::new();
    let options = StoreOptions { keyring: Some(Arc::clone(&keyring)), ..StoreOptions::default() };
    let reopen = |options: &StoreOptions| BinlogStore::open(Arc::new(storage.clone()), options.clone());
    let (store, _) = reopen(&options).unwrap();
    store.writer().unwrap().begin_file(FileNumber(1), &head(&gtids(0)), Some(&key)).unwrap();
    for gno in 1..=3 {
        store.writer().unwrap().append(&transaction(gno, 500)).unwrap();
    }
    store.sync().unwrap();
    assert_eq!(numbers(&store), [1, 2, 3]);
    let listed = store.logs().unwrap();
    assert!(listed[0].encrypted);
    drop(store);
    let bytes = bytes_of(&storage, "binlog.000001");
    assert_eq!(listed[0].size, bytes.len() as u64);
    let decrypted = binlogz_encryption::DecryptingReader::new(&bytes[..], &keyring).unwrap();
    let mut events = EventReader::new(decrypted);
    let mut count = 0;
    while events.next_event().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 2 + 3 * 2);
    put(&storage, "binlog.000001", &bytes[..bytes.len() - 7]);
    let (_, report) = reopen(&options).unwrap();
    assert!(report.damage.is_some() && report.gtids == gtids(2), "{report}");
    storage.remove("binlog.durable").unwrap();
    let (store, report) = reopen(&options).unwrap();
    assert_eq!(numbers(&store), [1, 2]);
    drop(store);
    // The copy of what was cut opens with the same key: header and bytes are at their old offsets.
    let cut = report.cut.unwrap();
    let copy = bytes_of(&storage, &cut.kept_as.unwrap());
    assert!(copy.len() == bytes.len() - 7 && copy[..512] == bytes[..512]);
    assert!(copy[512 + cut.offset as usize..] == bytes[512 + cut.offset as usize..bytes.len() - 7]);
    let error = reopen(&StoreOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "binlog.000001: the log is encrypted, expected a plain log where no keyring is given");
}
