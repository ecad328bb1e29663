//! Durable bytes are never cut: damage there is reported, read around and repaired. A tail that is cut is kept beside
//! the log.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use binlogz_store::{
    BinlogStore, Damage, Error, FileNumber, MemoryStorage, RecoveryReport, Storage, StoreOptions,
};
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::mutate;
use binlogz_testkit::random::Random;

use crate::common::{gtids, head, numbers, open, rotate, transaction};

const LOG: &str = "binlog.000001";

fn bytes_of(storage: &dyn Storage, name: &str) -> Vec<u8> {
    let file = storage.open(name, false).unwrap();
    let mut bytes = vec![0; file.size().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn put(storage: &dyn Storage, name: &str, bytes: &[u8]) {
    let file = storage.open(name, false).unwrap();
    file.set_size(0).unwrap();
    file.write_at(0, bytes).unwrap();
}

fn flip(storage: &dyn Storage, name: &str, offset: u64) {
    let file = storage.open(name, false).unwrap();
    let mut byte = [0];
    file.read_at(offset, &mut byte).unwrap();
    file.write_at(offset, &[byte[0] ^ 0x10]).unwrap();
}

/// A file in use with five durable transactions; returns where each ends.
fn durable() -> (MemoryStorage, Vec<u64>) {
    let storage = MemoryStorage::new();
    let (store, _) = open(storage.clone()).unwrap();
    rotate(&store, &gtids(0)).unwrap();
    let mut ends = vec![store.positions().unwrap().written.offset];
    for gno in 1..=5 {
        ends.push(store.writer().unwrap().append(&transaction_at(gno, ends[ends.len() - 1])).unwrap().offset);
        store.sync().unwrap();
    }
    (storage, ends)
}

/// A transaction whose events record their own positions, as in every stored log.
fn transaction_at(gno: u64, mut offset: u64) -> Vec<u8> {
    let mut bytes = transaction(gno, 30);
    let mut begin = 0;
    while begin < bytes.len() {
        let size = u32::from_le_bytes(bytes[begin + 9..begin + 13].try_into().unwrap()) as usize;
        offset += size as u64;
        bytes[begin + 13..begin + 17].copy_from_slice(&(offset as u32).to_le_bytes());
        let checksum = binlogz_binlog::checksum::crc32(&bytes[begin..begin + size - 4]);
        bytes[begin + size - 4..begin + size].copy_from_slice(&checksum.to_le_bytes());
        begin += size;
    }
    bytes
}

fn copy_of(storage: &MemoryStorage) -> MemoryStorage {
    let copy = MemoryStorage::new();
    for name in storage.list().unwrap() {
        copy.open(&name, true).unwrap().write_at(0, &bytes_of(storage, &name)).unwrap();
    }
    copy
}

/// The bytes that can be read from an offset on, and why reading stops there.
fn readable(store: &BinlogStore, offset: u64) -> (Vec<u8>, Option<String>) {
    let mut bytes = Vec::new();
    let ended = store.reader(FileNumber(1), offset).unwrap().read_to_end(&mut bytes);
    (bytes, ended.err().map(|error| error.to_string()))
}

fn damage_of(report: &RecoveryReport) -> &Damage {
    report.damage.as_ref().unwrap_or_else(|| panic!("no damage: {report}"))
}

#[test]
fn no_flipped_byte_of_what_was_durable_makes_recovery_cut() {
    let (whole, ends) = durable();
    let bytes = bytes_of(&whole, LOG);
    for at in 0..bytes.len() as u64 {
        let storage = copy_of(&whole);
        flip(&storage, LOG, at);
        let damaged = bytes_of(&storage, LOG);
        let (store, report) = open(storage.clone()).unwrap();
        let names = storage.list().unwrap();
        assert!(bytes_of(&storage, LOG) == damaged, "byte {at}: the file was changed");
        assert!(report.cut.is_none() && report.is_alarming(), "byte {at}: {report}");
        let damage = damage_of(&report);
        let [hole] = damage.holes.as_slice() else { panic!("byte {at}: {damage}") };
        assert!(hole.from <= at && at < hole.to, "byte {at}: {damage}");
        // At most one transaction is lost, and its neighbours tell which one.
        let lost = ends.iter().position(|end| at < *end).unwrap() as u64;
        let mut left = gtids(5);
        if lost > 0 {
            left.subtract(&format!("{}:{lost}", crate::common::UUID).parse().unwrap());
            if lost < 5 {
                let known = hole.lost.as_ref().map(ToString::to_string);
                assert_eq!(known, Some(format!("{}:{lost}", crate::common::UUID)), "byte {at}");
            }
        }
        assert_eq!(report.gtids, left, "byte {at}: {report}");

        // The whole part is read, and not a byte of the rest.
        let error = store.writer().map(drop).unwrap_err();
        assert!(matches!(error, Error::Refusing { .. }) && error.to_string().contains(LOG), "{error}");
        let (before, ended) = readable(&store, 0);
        assert!(before == bytes[..hole.from as usize], "byte {at}");
        assert!(ended.unwrap().starts_with(&format!("{LOG} is damaged from {} to {}", hole.from, hole.to)));
        let (after, ended) = readable(&store, hole.to);
        assert!(after == bytes[hole.to as usize..] && ended.is_none(), "byte {at}");
        assert_eq!(store.positions().unwrap().durable.offset, ends[5]);
        // It stays damaged until it is repaired.
        drop(store);
        let (store, again) = open(storage.clone()).unwrap();
        assert_eq!(again, report);

        let (from, to) = (hole.from as usize, hole.to as usize);
        assert!(store.repair(&mut &bytes[from..to - 1]).is_err());
        assert!(store.repair(&mut &[&bytes[from..to], &[0]].concat()[..]).is_err());
        let repaired = store.repair(&mut &bytes[from..to]).unwrap();
        assert!(repaired.report.damage.is_none() && store.damage().is_none(), "byte {at}");
        assert!(bytes_of(&storage, LOG) == bytes && bytes_of(&storage, &repaired.kept_as) == damaged);
        assert_eq!(storage.list().unwrap().len(), names.len() + 1);
        store.writer().unwrap().append(&transaction_at(6, ends[5])).unwrap();
        store.sync().unwrap();
        assert_eq!(numbers(&store), [1, 2, 3, 4, 5, 6]);
    }
}

#[test]
fn a_file_that_lost_its_end_or_was_closed_is_never_cut() {
    let (whole, ends) = durable();
    let bytes = bytes_of(&whole, LOG);
    for size in ends[0]..ends[5] {
        let storage = copy_of(&whole);
        put(&storage, LOG, &bytes[..size as usize]);
        let (store, report) = open(storage.clone()).unwrap();
        let damage = damage_of(&report);
        let from = *ends.iter().filter(|end| **end <= size).max().unwrap();
        assert_eq!((damage.holes[0].from, damage.holes[0].to), (from, ends[5]), "cut at {size}: {damage}");
        store.repair(&mut &bytes[from as usize..]).unwrap();
        assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
    }
    let (store, _) = open(whole.clone()).unwrap();
    store.writer().unwrap().seal().unwrap();
    drop(store);
    flip(&whole, LOG, ends[2] + 30);
    // How far it was durable makes no difference here.
    whole.remove("binlog.durable").unwrap();
    let (_, report) = open(whole).unwrap();
    assert_eq!(damage_of(&report).holes[0].from, ends[2]);
}

#[test]
fn several_damaged_places_are_repaired_one_after_the_other() {
    let (storage, ends) = durable();
    let bytes = bytes_of(&storage, LOG);
    for at in [ends[0] + 5, ends[2] + 70, ends[4] + 12] {
        flip(&storage, LOG, at);
    }
    let (store, report) = open(storage.clone()).unwrap();
    let holes: Vec<_> = damage_of(&report).holes.iter().map(|hole| (hole.from, hole.to)).collect();
    assert_eq!(holes, [(ends[0], ends[1]), (ends[2], ends[3]), (ends[4], ends[5])]);
    for (left, (from, to)) in holes.iter().enumerate().map(|(done, hole)| (holes.len() - 1 - done, hole)) {
        let repaired = store.repair(&mut &bytes[*from as usize..*to as usize]).unwrap();
        assert_eq!(repaired.report.damage.map_or(0, |damage| damage.holes.len()), left);
        assert_eq!(store.writer().is_ok(), left == 0);
    }
    assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
    // Wrong bytes repair nothing.
    drop(store);
    flip(&storage, LOG, ends[1] + 40);
    let damaged = bytes_of(&storage, LOG);
    let (store, _) = open(storage.clone()).unwrap();
    let error = store.repair(&mut &damaged[ends[1] as usize..ends[2] as usize]).unwrap_err().to_string();
    assert!(error.contains("is damaged from") && store.damage().is_some(), "{error}");
}

#[test]
fn a_tail_that_is_cut_is_kept_beside() {
    let (storage, ends) = durable();
    let bytes = bytes_of(&storage, LOG);
    let torn = |tail: &[u8]| {
        put(&storage, LOG, &[&bytes, tail].concat());
        let (store, report) = open(storage.clone()).unwrap();
        assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
        let cut = report.cut.clone().unwrap();
        assert_eq!((cut.offset, cut.size), (ends[5], tail.len() as u64));
        let kept_as = cut.kept_as.clone().unwrap();
        assert!(bytes_of(&storage, &kept_as) == tail);
        (report, kept_as)
    };
    let next = transaction_at(6, ends[5]);
    let (report, first) = torn(&next[..40]);
    assert_eq!((report.is_alarming(), first), (false, format!("{LOG}.torn-{}", ends[5])));
    let behind = transaction_at(7, ends[5] + next.len() as u64);
    let mut tail = [next, behind].concat();
    tail[50] ^= 1;
    for name in ["", "-2"] {
        let (report, kept_as) = torn(&tail);
        assert_eq!((report.is_alarming(), kept_as), (true, format!("{LOG}.cut-{}{name}", ends[5])));
        assert!(report.to_string().contains("whole transactions in them: 1"), "{report}");
    }
    let (_, last) = torn(&tail[..60]);
    let copies = |storage: &MemoryStorage| -> Vec<String> {
        storage.list().unwrap().into_iter().filter(|name| name.starts_with("binlog.000001.")).collect()
    };
    let cut = |name: &str| format!("{LOG}.cut-{}{name}", ends[5]);
    assert_eq!(copies(&storage), [cut(""), cut("-2"), last]);
    // The copies are removed with their log.
    let (store, _) = open(storage.clone()).unwrap();
    rotate(&store, &gtids(5)).unwrap();
    store.purge_before(FileNumber(2)).unwrap();
    assert!(copies(&storage).is_empty());
}

#[test]
fn a_transaction_that_its_source_never_ended_is_no_damage() {
    let (storage, ends) = durable();
    let (store, _) = open(storage.clone()).unwrap();
    let next = transaction_at(6, ends[5]);
    // The first event alone: appended, durable, and never part of anything whole.
    let first = u32::from_le_bytes(next[9..13].try_into().unwrap()) as usize;
    store.writer().unwrap().append(&next[..first]).unwrap();
    store.sync().unwrap();
    drop(store);
    for _ in 0..2 {
        let (store, report) = open(storage.clone()).unwrap();
        assert!(report.damage.is_none(), "{report}");
        assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn a_watermark_that_is_missing_protects_nothing_and_one_that_is_damaged_everything() {
    let (whole, ends) = durable();
    let storage = copy_of(&whole);
    storage.remove("binlog.durable").unwrap();
    flip(&storage, LOG, ends[3] + 30);
    // As with a log kept by an earlier version: the tail is cut as before, loudly, and with a copy.
    let (_, report) = open(storage.clone()).unwrap();
    let cut = report.cut.clone().unwrap();
    assert_eq!((cut.offset, cut.transactions, report.is_alarming()), (ends[3], 1, true));
    assert!(storage.list().unwrap().contains(&"binlog.durable".to_owned()));

    let storage = copy_of(&whole);
    put(&storage, "binlog.durable", &[b'x'; 1024]);
    let (_, report) = open(storage.clone()).unwrap();
    assert!(report.damage.is_none());
    put(&storage, "binlog.durable", &[b'x'; 1024]);
    flip(&storage, LOG, ends[3] + 30);
    let (_, report) = open(storage).unwrap();
    assert_eq!(damage_of(&report).holes[0].from, ends[3]);

    // A file that the index no longer lists.
    let storage = copy_of(&whole);
    let (store, _) = open(storage.clone()).unwrap();
    rotate(&store, &gtids(5)).unwrap();
    drop(store);
    put(&storage, "binlog.index", b"./binlog.000001\n");
    let durable = bytes_of(&storage, "binlog.000002");
    storage.remove("binlog.000002").unwrap();
    let error = open(storage.clone()).unwrap_err().to_string();
    assert!(error.starts_with("binlog.index: it ends with binlog.000001, expected the file"), "{error}");
    assert!(!durable.is_empty() && head(&gtids(5)).len() == durable.len());
}

/// A position that a sync has returned for is never above the watermark: after a crash of the process, and
/// after one of the system if the watermark was synced.
#[test]
fn the_watermark_is_what_is_durable() {
    let seed = mutate::seed();
    for run in 0..60 {
        let random = &mut Random::new(seed.wrapping_add(run));
        let what = format!("SEED={}", seed.wrapping_add(run));
        let disk = SimulatedDisk::new();
        let each = random.below(2) == 0;
        let interval = if each { Duration::ZERO } else { Duration::MAX };
        let options = StoreOptions { watermark_interval: interval, ..StoreOptions::default() };
        let open = || BinlogStore::open(Arc::new(disk.clone()), options.clone()).unwrap();
        let (store, _) = open();
        rotate(&store, &gtids(0)).unwrap();
        let (mut last, mut durable) = (0, 0);
        for _ in 0..5 + random.below(20) {
            match random.below(4) {
                0 => {
                    store.sync().unwrap();
                    durable = last;
                }
                1 if random.below(4) == 0 => {
                    rotate(&store, &gtids(last)).unwrap();
                    durable = last;
                }
                _ => {
                    last += 1;
                    let at = store.positions().unwrap().written.offset;
                    store.writer().unwrap().append(&transaction_at(last, at)).unwrap();
                }
            }
        }
        let end = store.positions().unwrap().durable;
        drop(store);
        // Either all unsynced bytes are gone, or they are all there.
        let is_crash = random.below(2) == 0;
        if is_crash {
            disk.crash(random);
        } else {
            disk.reopen();
        }
        let name = format!("binlog.{}", end.file);
        let at = random.below(end.offset as usize) as u64;
        let protected = each || !is_crash;
        if protected {
            flip(&disk, &name, at);
        }
        let size = bytes_of(&disk, &name).len();
        let (store, report) = open();
        match protected {
            true => {
                let damage = damage_of(&report);
                assert!(
                    damage.hole_at(at).is_some() && bytes_of(&disk, &name).len() == size,
                    "{what}: {report}"
                );
            }
            // Never beyond what is durable: a crash is not damage.
            false => {
                assert!(report.damage.is_none(), "{what}: {report}");
                assert!(numbers(&store).len() as u64 >= durable, "{what}: {report}");
            }
        }
    }
}
