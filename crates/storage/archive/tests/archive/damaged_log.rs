//! A log with a damaged byte is not archived as a whole log, whichever byte it is; what is whole before it can be.

use std::sync::Arc;

use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::storage::ArchiveFolder;
use binlogz_archive::{Error, restore};
use binlogz_binlog::EventHeader;
use binlogz_binlog::header::FLAGS_OFFSET;
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};

const NAME: &str = "binlog.000001";
/// The lowest bit of this byte says that the log is in use. No checksum covers it.
const IN_USE_AT: usize = binlogz_binlog::MAGIC.len() + FLAGS_OFFSET;

/// A log, and where each transaction begins.
fn log() -> (Vec<u8>, Vec<usize>) {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let mut begins = vec![log.offset() as usize];
    log.transaction(&[&[1; 40], b"more"]);
    begins.push(log.offset() as usize);
    log.payload(&PayloadBody::zstd(&inner_transaction(&[&[2; 60]])));
    begins.push(log.offset() as usize);
    log.transaction(&[&[3; 20]]);
    (log.take(), begins)
}

/// Where each event begins, and its size.
fn events(log: &[u8]) -> Vec<(usize, usize)> {
    let mut events = Vec::new();
    let mut at = binlogz_binlog::MAGIC.len();
    while at < log.len() {
        let size = EventHeader::decode(&log[at..]).unwrap().event_size as usize;
        events.push((at, size));
        at += size;
    }
    events
}

#[test]
fn a_log_with_a_flipped_byte_is_refused_and_its_place_told() {
    let (log, _) = log();
    let dir = tempfile::tempdir().unwrap();
    let storage = ArchiveFolder::new(dir.path());
    for (event, size) in events(&log) {
        for at in event..event + size {
            let mut bad = log.clone();
            bad[at] ^= 2 << (at % 7);
            let mut told = |_: &_| panic!("byte {at} was archived");
            let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
            let error = creator.add(NAME, Arc::new(bad)).unwrap_err();
            let Error::Torn(place) = &error else { panic!("byte {at}: {error}") };
            assert_eq!(place.offset(), Some(event as u64), "byte {at}: {error}");
            creator.finish().unwrap();
        }
    }
    assert!(Manifest::read(&storage).unwrap().is_none());
}

#[test]
fn the_transactions_before_the_damage_are_kept_as_a_part_which_the_whole_log_replaces() {
    let (log, begins) = log();
    let dir = tempfile::tempdir().unwrap();
    let storage = ArchiveFolder::new(dir.path());
    let back = || {
        let manifest = Manifest::read(&storage).unwrap().unwrap();
        let mut back = Vec::new();
        restore::whole(&storage, &manifest.files[0], &mut back, 1).unwrap();
        (back, manifest.files[0].active_size)
    };
    for (damaged, whole) in [(begins[1] + 30, begins[1]), (begins[2] + 30, begins[2])] {
        let mut bad = log.clone();
        bad[damaged] ^= 4;
        let mut told = |_: &_| {};
        let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
        creator.add_active(NAME, Arc::new(bad.clone()), None).unwrap();
        creator.finish().unwrap();
        bad[IN_USE_AT] |= 1;
        assert_eq!(back(), (bad[..whole].to_vec(), Some(whole as u64)));
    }
    let mut told = |_: &_| {};
    let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
    creator.add(NAME, Arc::new(log.clone())).unwrap();
    creator.finish().unwrap();
    assert_eq!(back(), (log, None));
}
