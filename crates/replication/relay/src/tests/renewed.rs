//! Numbers of uncompressed files over a relay's life: with a log from an earlier version, and after each of its files is
//! lost.

use std::sync::Arc;

use binlogz_relay_log::{Form, FormFile, FoundFile, LineageLog};
use binlogz_store::{FileNumber, Storage};
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{Known, OneDisk, options, put_all_back, receive};
use super::open_source;
use super::simulated::SourceLog;
use crate::source::RelaySource;

/// The files beside a log that can be made again.
const CUTS: &str = "relay.cuts";
const NUMBERS: &str = "relay.numbers";

fn open(disk: &SimulatedDisk, random: &mut Random, uncompressed_file_size: u64) -> RelaySource {
    let options = crate::options::SourceOptions { uncompressed_file_size, ..options(random) };
    open_source(options, Arc::new(OneDisk(disk.clone()))).unwrap()
}

/// How many uncompressed files each stored file is; their names lead back to them.
fn counts(kept: &LineageLog) -> Vec<usize> {
    let mut number = None;
    let mut count = |file| {
        let parts: Vec<_> = kept.parts_of(Form::Uncompressed, file).unwrap().collect();
        for part in &parts {
            let found = kept.number_of(Form::Uncompressed, *part).unwrap();
            assert_eq!(kept.find(Form::Uncompressed, found).unwrap(), FoundFile::File(*part));
            assert!(number.is_none_or(|number: FileNumber| number.next() == found));
            number = Some(found);
        }
        parts.len()
    };
    kept.store.logs().unwrap().into_iter().map(|log| count(log.number)).collect()
}

/// Receives, so far; nothing stays purged.
fn fill(relay: &RelaySource, source: &SourceLog, random: &mut Random, pieces: usize) -> Arc<LineageLog> {
    let mut known = Known::default();
    receive(relay, source, random, &mut known, pieces).unwrap();
    relay.intake.sync().unwrap();
    let kept = relay.intake.lineages.served().unwrap();
    put_all_back(relay, &kept, &mut known);
    kept
}

#[test]
fn what_was_served_whole_stays_whole_and_purged_files_keep_their_numbers() {
    let random = &mut Random::new(7);
    let source = SourceLog::new(random, false);
    let disk = SimulatedDisk::new();
    let relay = open(&disk, random, 1000);
    let kept = fill(&relay, &source, random, usize::MAX);
    let cut = counts(&kept);
    assert!(cut.iter().all(|count| *count > 1), "{cut:?}");
    let second = FormFile::first_of(FileNumber(2));
    let number = kept.number_of(Form::Uncompressed, second).unwrap();
    assert_eq!(number.0, 1 + cut[0] as u64);
    drop((kept, relay));

    // The size in the configuration is that of new logs.
    let relay = open(&disk, random, 2000);
    assert_eq!(counts(&relay.intake.lineages.served().unwrap()), cut);
    drop(relay);
    disk.remove(CUTS).unwrap();
    let relay = open(&disk, random, 1000);
    assert_eq!(counts(&relay.intake.lineages.served().unwrap()), cut);
    drop(relay);

    // Without this file it is a log from an earlier version.
    let whole = SimulatedDisk::new();
    let relay = open(&whole, random, 1000);
    let kept = fill(&relay, &source, random, 20);
    let there = kept.store.logs().unwrap().len();
    assert!(there < source.files.len());
    drop((kept, relay));
    whole.remove(NUMBERS).unwrap();
    let relay = open(&whole, random, 1000);
    let kept = fill(&relay, &source, random, usize::MAX);
    let renewed = counts(&kept);
    assert_eq!(renewed[..there], vec![1; there], "{renewed:?}");
    assert_eq!(renewed[there..], cut[there..], "what begins behind it is cut");
    drop((kept, relay));

    // Purged: the others keep their numbers, also when what can be found again is lost.
    let relay = open(&disk, random, 1000);
    relay.intake.lineages.served().unwrap().purge_before(FileNumber(2)).unwrap();
    drop(relay);
    disk.remove(CUTS).unwrap();
    let relay = open(&disk, random, 1000);
    let kept = relay.intake.lineages.served().unwrap();
    assert_eq!(counts(&kept), cut[1..]);
    assert_eq!(kept.number_of(Form::Uncompressed, second).unwrap(), number);
    let gone = kept.find(Form::Uncompressed, FileNumber(1)).unwrap();
    assert_eq!(gone, FoundFile::Purged(FileNumber(1)));
}
