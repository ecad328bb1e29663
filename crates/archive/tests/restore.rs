//! What goes into an archive comes out of it: real logs, cut and damaged ones, blocks of every size.
//!
//! `ARCHIVE_LOG_SIZE_MAX` and `ARCHIVE_MUTATIONS` make the tests long: see scripts/soak/archive.sh.

use std::sync::Arc;

use binlogz_archive::create::{self, Created};
use binlogz_archive::cut::Cutter;
use binlogz_archive::folder::{Folder, Storage};
use binlogz_archive::manifest::Manifest;
use binlogz_archive::object::{self, Object, ReadRange};
use binlogz_archive::{Result, check, restore};
use binlogz_testkit::{corpus, mutate, real};

/// Bytes of a log that is archived in a short test: this is a debug build.
const LOG_SIZE_MAX: usize = 32_000;
const MUTATIONS: usize = 200;

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}")))
}

/// An object in memory.
struct Bytes(Vec<u8>);

impl ReadRange for Bytes {
    fn size(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>> {
        Ok(self.0.get(offset as usize..).and_then(|bytes| bytes.get(..size)).unwrap_or_default().to_vec())
    }
}

/// Packs a log and gives what the object holds.
fn packed(log: &[u8], block_size: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    object::write_cut(Cutter::with_size(log, block_size), &mut bytes, 2).unwrap();
    bytes
}

fn unpacked(bytes: &[u8]) -> Result<Vec<u8>> {
    let object = Object::open("object", Box::new(Bytes(bytes.to_vec())))?;
    let blocks = object.index.blocks.iter().map(|block| object.block(block));
    Ok(blocks.collect::<Result<Vec<_>>>()?.concat())
}

#[test]
fn every_real_log_comes_back() {
    let size_max = setting("ARCHIVE_LOG_SIZE_MAX", LOG_SIZE_MAX);
    let dir = tempfile::tempdir().unwrap();
    let archive = Folder::new(dir.path());
    let mut count = 0;
    for binlog in real::every_binlog() {
        let log = binlog.read();
        if log.len() > size_max {
            continue;
        }
        let name = binlog.name.replace('/', "-");
        let Created::Added(entry) = create::add(&archive, &name, Arc::new(log.clone()), 2).unwrap() else {
            panic!("{name} is new");
        };
        let mut back = Vec::new();
        restore::whole(&archive, &entry, &mut back, 2).unwrap();
        assert!(back == log, "{name}");
        count += 1;
    }
    assert!(count >= 15, "{count} logs");
    assert_eq!(Manifest::read(&archive).unwrap().unwrap().files.len(), count);
}

#[test]
fn blocks_of_every_size_come_back() {
    let log = std::fs::read(corpus::path("binlog.000002")).unwrap();
    for block_size in [64, 700, 5000, 1 << 20] {
        assert!(unpacked(&packed(&log, block_size)).unwrap() == log, "blocks of {block_size} bytes");
    }
}

#[test]
fn mutated_logs_come_back() {
    let seed = mutate::seed();
    let originals: Vec<_> = ["binlog.000001", "binlog.000005", "relay.000012", "binlog.000004"]
        .map(|name| std::fs::read(corpus::path(name)).unwrap())
        .into();
    for index in 0..setting("ARCHIVE_MUTATIONS", MUTATIONS) {
        let original = &originals[index % originals.len()];
        let (log, what) = mutate::mutate(original, seed, index as u64);
        let bytes = packed(&log, if index % 2 == 0 { 1000 } else { 1 << 20 });
        assert!(unpacked(&bytes).unwrap() == log, "{what}");
    }
}

#[test]
fn damaged_objects_are_errors_and_no_panics() {
    let seed = mutate::seed();
    let log = std::fs::read(corpus::path("binlog.000004")).unwrap();
    let bytes = packed(&log, 1000);
    for index in 0..setting("ARCHIVE_MUTATIONS", MUTATIONS) as u64 {
        let (bad, what) = mutate::mutate(&bytes, seed, index);
        assert!(bad == bytes || unpacked(&bad).map_or(true, |back| back == log), "{what}");
    }
}

#[test]
fn a_flipped_bit_is_named_with_its_transactions_and_the_rest_comes_back() {
    let log = std::fs::read(corpus::path("binlog.000002")).unwrap();
    let bytes = packed(&log, 2000);
    let object = Object::open("object", Box::new(Bytes(bytes.clone()))).unwrap();
    let bad = object.index.blocks.iter().position(|block| !block.gtids.is_empty()).unwrap();
    let entry = object.index.blocks[bad].clone();
    let mut damaged = bytes;
    damaged[entry.at as usize + 3] ^= 4;
    let object = Object::open("object", Box::new(Bytes(damaged))).unwrap();
    for (index, block) in object.index.blocks.iter().enumerate() {
        match object.block(block) {
            Ok(part) => assert!(part == log[block.offset as usize..][..block.size as usize] && index != bad),
            Err(error) => {
                let message = error.to_string();
                assert!(index == bad && message.contains(&entry.gtids.to_string()), "{message}");
                assert!(message.starts_with(&format!("object at {}: ", entry.at)), "{message}");
            }
        }
    }
}

#[test]
fn gaps_and_overlaps_between_logs_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Folder::new(dir.path());
    let problems = || check::check(&archive, &Manifest::read(&archive).unwrap().unwrap(), 1).unwrap();
    let add = |from: &str, name: &str| {
        let log = std::fs::read(corpus::path(from)).unwrap();
        create::add(&archive, name, Arc::new(log), 1).unwrap();
    };
    add("binlog.000003", "a.000003");
    assert!(problems().is_empty(), "{:?}", problems());
    add("binlog.000005", "a.000005");
    assert!(problems().iter().any(|line| line.starts_with("a.000005: gap: ")), "{:?}", problems());
    add("binlog.000005", "a.000006");
    assert!(problems().iter().any(|line| line.starts_with("a.000006: overlap: ")), "{:?}", problems());
}

#[test]
fn another_log_of_the_same_name_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let archive = Folder::new(dir.path());
    let read = |name| Arc::new(std::fs::read(corpus::path(name)).unwrap());
    create::add(&archive, "log", read("binlog.000004"), 1).unwrap();
    let again = create::add(&archive, "log", read("binlog.000004"), 1).unwrap();
    assert!(matches!(again, Created::Known(_)));
    let error = create::add(&archive, "log", read("binlog.000003"), 1).unwrap_err();
    assert!(error.to_string().starts_with("log: SHA-256 is "), "{error}");
}

#[test]
fn version_1_is_read() {
    let fixture = Folder::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/version-1"));
    let manifest = Manifest::read(&fixture).unwrap().unwrap();
    assert_eq!(manifest.files.len(), 2);
    for file in &manifest.files {
        let mut log = Vec::new();
        restore::whole(&fixture, file, &mut log, 1).unwrap();
        assert!(log == std::fs::read(corpus::path(&file.name)).unwrap(), "{}", file.name);
    }
    assert!(fixture.get("none").is_err());
}
