//! A relay's status, when nothing reaches its archive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_relay_log::BringBack;
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{Known, OneDisk, options, put_all_back, receive};
use super::open_source;
use super::simulated::SourceLog;
use crate::housekeeping::archiving::ArchiveOptions;
use crate::housekeeping::retention::purge_to;
use crate::options::SourceOptions;
use crate::source::RelaySource;

/// A relay with three closed files, whose archive nobody looks after.
fn relay(overdue: Duration) -> RelaySource {
    let random = &mut Random::new(1);
    let to = "/nowhere".into();
    let archive = Some(ArchiveOptions {
        to,
        plaintext: false,
        tables: binlogz_archive::chosen_tables::TableChoice::default(),
        bring_back: BringBack::default(),
        overdue,
        check: None,
    });
    let disk = Arc::new(OneDisk(SimulatedDisk::new()));
    let relay = open_source(SourceOptions { archive, ..options(random) }, disk).unwrap();
    let source = SourceLog::hourly(4, 1_700_000_000, 3600);
    let mut known = Known::default();
    receive(&relay, &source, random, &mut known, usize::MAX).unwrap();
    relay.intake.sync().unwrap();
    put_all_back(&relay, &relay.intake.lineages.served().unwrap(), &mut known);
    relay
}

fn troubles(relay: &RelaySource) -> Vec<String> {
    relay.watch.status(&Default::default()).unwrap().troubles
}

#[test]
fn closed_files_that_are_not_archived_in_time_make_health_red() {
    let late = relay(Duration::ZERO);
    let told = troubles(&late);
    assert_eq!(
        told,
        ["archiving to /nowhere is overdue: 3 closed files wait, and none was archived for 0 s"]
    );
    assert!(!late.watch.status(&Default::default()).unwrap().is_healthy());
    // All but one are there.
    let kept = late.intake.lineages.served().unwrap();
    let logs = kept.store.logs().unwrap();
    kept.archived.advance(logs[1].number, Instant::now());
    let told = troubles(&late);
    assert!(told[0].contains("is overdue: a closed file waits"), "{told:?}");
    kept.archived.advance(logs[2].number, Instant::now());
    assert_eq!(troubles(&late), [""; 0], "the file in use need not be there");
}

#[test]
fn archiving_that_fails_each_time_is_red_after_a_minute_and_says_why() {
    let failing = relay(ArchiveOptions::OVERDUE);
    assert_eq!(troubles(&failing), [""; 0], "they were closed just now");
    let kept = failing.intake.lineages.served().unwrap();
    let now = Instant::now();
    kept.archived.failed("archive /nowhere: permission denied", now - Duration::from_secs(59));
    assert_eq!(troubles(&failing), [""; 0]);
    kept.archived.idle(now);
    kept.archived.failed("archive /nowhere: permission denied", now - Duration::from_secs(76));
    kept.archived.failed("archive /nowhere: no room", now);
    assert_eq!(
        troubles(&failing),
        ["archiving to /nowhere has failed for 76 s, and 3 closed files wait: archive /nowhere: no room"]
    );
    let archive = failing.watch.status(&Default::default()).unwrap().archive.unwrap();
    assert_eq!((archive.waiting_files, archive.failing_seconds), (3, Some(76)));
}

#[test]
fn a_file_whose_selection_is_not_certain_stays_until_it_is_purged_by_force() {
    let relay = relay(ArchiveOptions::OVERDUE);
    let kept = relay.intake.lineages.served().unwrap();
    let logs = kept.store.logs().unwrap();
    let [_, doubtful, third, last] = &logs[..] else { panic!("{} files", logs.len()) };
    assert!(kept.archived.doubt(doubtful.number));
    kept.archived.advance(third.number, Instant::now());
    let left = |force| {
        purge_to(&relay.housekeeping, &kept, &last.name, force).unwrap();
        kept.store.logs().unwrap().first().unwrap().name.clone()
    };
    assert_eq!(left(false), doubtful.name);
    assert_eq!(left(true), last.name);
}
