//! Issue 42: closed files of logs without checksums have sums beside them, so that flipped bytes are found and repaired.

use std::io::Read;

use binlogz_binlog::ChecksumAlgorithm;
use binlogz_store::{BinlogStore, FileHead, FileNumber, LogEvents, MemoryStorage, Storage};

use crate::common::{EVENTS, gtids, head, open, rotate, transaction};

const LOG: &str = "binlog.000001";
const SUMS: &str = "sums-binlog.000001";
const PLAIN_EVENTS: LogEvents = LogEvents { checksum: ChecksumAlgorithm::NONE, ..EVENTS };
/// Bytes of a block, as the file with the sums has it.
const BLOCK_SIZE: usize = 256 << 10;

fn bytes_of(storage: &dyn Storage, name: &str) -> Vec<u8> {
    let file = storage.open(name, false).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn flip(storage: &dyn Storage, name: &str, offset: usize) {
    let file = storage.open(name, false).unwrap();
    let mut byte = [0];
    file.read_at(offset as u64, &mut byte).unwrap();
    file.write_at(offset as u64, &[byte[0] ^ 0x10]).unwrap();
}

/// A transaction whose events have no checksums and record their own positions.
fn without_checksums(gno: u64, size: usize, mut offset: u64) -> Vec<u8> {
    let with = transaction(gno, size);
    let (mut bytes, mut begin) = (Vec::new(), 0);
    while begin < with.len() {
        let end = begin + u32::from_le_bytes(with[begin + 9..begin + 13].try_into().unwrap()) as usize;
        let mut event = with[begin..end - 4].to_vec();
        let event_size = event.len() as u32;
        offset += u64::from(event_size);
        event[9..13].copy_from_slice(&event_size.to_le_bytes());
        event[13..17].copy_from_slice(&(offset as u32).to_le_bytes());
        bytes.extend(event);
        begin = end;
    }
    bytes
}

fn begin(store: &BinlogStore) -> u64 {
    let mut writer = store.writer().unwrap();
    let next = writer.next_number();
    if let Some(end) = writer.position() {
        writer.append(&PLAIN_EVENTS.rotate(end.offset, &store.names().log(next))).unwrap();
    }
    let none = gtids(0);
    let head = FileHead { events: PLAIN_EVENTS, server_version: "9.7.4", created: 0, previous_gtids: &none };
    writer.begin_file(next, &head.encode(), None).unwrap().offset
}

/// A closed file of several blocks, and where each transaction ends. The store is opened again in the middle, or not.
fn closed(opened_again: bool) -> (MemoryStorage, BinlogStore, Vec<u64>) {
    let storage = MemoryStorage::new();
    let (mut store, _) = open(storage.clone()).unwrap();
    let mut ends = vec![begin(&store)];
    for gno in 1..=8 {
        let end = ends[ends.len() - 1];
        ends.push(store.writer().unwrap().append(&without_checksums(gno, 150_000, end)).unwrap().offset);
        store.sync().unwrap();
        if opened_again && gno == 4 {
            drop(store);
            store = open(storage.clone()).unwrap().0;
        }
    }
    begin(&store);
    (storage, store, ends)
}

fn readable(store: &BinlogStore) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = store.reader(FileNumber(1), 0).unwrap().read_to_end(&mut bytes);
    read.map(|_| bytes).map_err(|error| error.to_string())
}

#[test]
fn a_flipped_byte_of_a_log_without_checksums_is_found_and_repaired() {
    let (storage, store, ends) = closed(false);
    let whole = bytes_of(&storage, LOG);
    let examine = || store.examine(FileNumber(1), &mut |_| Ok(())).unwrap().1;
    assert_eq!(examine(), None);
    // In a block's middle, at the bounds of blocks, in the rotate event at the end; not in what frames events.
    let last = whole.len() - 1;
    for at in [BLOCK_SIZE - 1, BLOCK_SIZE, 400_000, 3 * BLOCK_SIZE + 5, last] {
        flip(&storage, LOG, at);
        let damage = examine().unwrap_or_else(|| panic!("byte {at}: nothing was found"));
        let [hole] = &damage.holes[..] else { panic!("byte {at}: {damage}") };
        let (from, to) = (hole.from as usize, hole.to as usize);
        assert!(from <= at && at < to, "byte {at}: {damage}");
        // In the first block the head is not whole either.
        assert!(from == 0 || ends.contains(&hole.from), "byte {at}: {damage}");
        assert!(to == whole.len() || ends.contains(&hole.to), "byte {at}: {damage}");
        assert!(hole.reason.contains(" give 0x") && hole.reason.contains(", expected 0x"), "{damage}");
        assert!(readable(&store).unwrap_err().starts_with("binlog.000001 is damaged from "), "byte {at}");
        // Bytes that aren't those repair nothing.
        let bad = bytes_of(&storage, LOG);
        assert!(store.repair_closed(FileNumber(1), &mut &bad[from..to]).is_err(), "byte {at}");
        let (_, left) = store.repair_closed(FileNumber(1), &mut &whole[from..to]).unwrap();
        assert_eq!((left, examine()), (None, None), "byte {at}");
        assert!(readable(&store).unwrap() == whole, "byte {at}");
    }
    // In the file's first bytes, and in several places at once.
    for places in [&[200][..], &[300_000, 900_000], &[BLOCK_SIZE + 9, 2 * BLOCK_SIZE + 9]] {
        places.iter().for_each(|at| flip(&storage, LOG, *at));
        let mut damage = examine();
        assert!(damage.is_some(), "{places:?}");
        while let Some(now) = damage {
            let hole = &now.holes[0];
            let bytes = &whole[hole.from as usize..hole.to as usize];
            damage = store.repair_closed(FileNumber(1), &mut &bytes[..]).unwrap().1;
        }
        assert!(readable(&store).unwrap() == whole, "{places:?}");
    }
}

#[test]
fn sums_are_made_of_what_was_written_before_the_store_was_opened_too() {
    let (begun_here, ..) = closed(false);
    let (opened_again, ..) = closed(true);
    assert!(bytes_of(&begun_here, LOG) == bytes_of(&opened_again, LOG));
    assert!(bytes_of(&begun_here, SUMS) == bytes_of(&opened_again, SUMS));
}

#[test]
fn a_closed_file_of_before_gets_its_sums_when_it_is_examined() {
    let (storage, store, _) = closed(false);
    let sums = bytes_of(&storage, SUMS);
    storage.remove(SUMS).unwrap();
    let examine = || store.examine(FileNumber(1), &mut |_| Ok(()));
    assert_eq!(examine().unwrap().1, None);
    assert!(bytes_of(&storage, SUMS) == sums);
    // Sums that are damaged themselves say nothing of the log.
    flip(&storage, SUMS, 60);
    let error = examine().unwrap_err().to_string();
    assert!(
        error.starts_with("sums-binlog.000001: bytes that are no sums, expected binlogz-sums 1"),
        "{error}"
    );
    storage.remove(SUMS).unwrap();
    storage.open(SUMS, true).unwrap().write_at(0, &sums).unwrap();
    // A file that was cut between events has another size.
    let size = bytes_of(&storage, LOG).len() as u64;
    let rotate = PLAIN_EVENTS.rotate(0, "binlog.000002").len() as u64;
    storage.open(LOG, false).unwrap().set_size(size - rotate).unwrap();
    let error = examine().unwrap_err().to_string();
    let found = format!("binlog.000001: {} bytes and not {size}, as when it was closed", size - rotate);
    assert!(error.starts_with(&found), "{error}");
}

#[test]
fn sums_go_with_their_log_and_only_logs_without_checksums_have_some() {
    let (storage, store, _) = closed(false);
    assert!(store.names().is_own(SUMS));
    store.purge_before(FileNumber(2)).unwrap();
    assert!(!storage.list().unwrap().iter().any(|name| name.starts_with(LOG)), "{:?}", storage.list());

    let storage = MemoryStorage::new();
    let (store, _) = open(storage.clone()).unwrap();
    rotate(&store, &gtids(0)).unwrap();
    store.writer().unwrap().append(&transaction(1, 10)).unwrap();
    store.writer().unwrap().begin_file(FileNumber(2), &head(&gtids(1)), None).unwrap();
    store.examine(FileNumber(1), &mut |_| Ok(())).unwrap();
    assert!(!storage.list().unwrap().contains(&SUMS.to_owned()));
}
