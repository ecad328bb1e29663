//! The scheduled check of archives: what it finds, tells and writes down, and what holds it up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_archive::create::Creator;
use binlogz_archive::format::Manifest;
use binlogz_archive::last_check::{self, LastChecks};
use binlogz_archive::presence::CheckDepth;
use binlogz_archive::storage;
use binlogz_relay_log::BringBack;
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{Known, OneDisk, options, receive};
use super::heard::Heard;
use super::open_source;
use super::simulated::SourceLog;
use crate::housekeeping::archiving::ArchiveOptions;
use crate::housekeeping::checking::{ArchiveCheckStatus, ArchiveChecker};
use crate::options::SourceOptions;
use crate::source::RelaySource;
use crate::time::now;

const WEEK: Duration = ArchiveOptions::CHECK;
const DAY: u64 = 24 * 3600;

/// A relay on a simulated disk, whose archive in a real folder has all four files of its log.
struct Archived {
    disk: SimulatedDisk,
    to: tempfile::TempDir,
    relay: RelaySource,
    overdue: Duration,
}

impl Archived {
    fn new(overdue: Duration) -> Archived {
        let disk = SimulatedDisk::new();
        let to = tempfile::tempdir().unwrap();
        let source = SourceLog::hourly(4, 1_700_000_000, 3600);
        for file in &source.files {
            let storage = storage::at(to.path()).unwrap();
            let mut told = |_: &_| {};
            let mut creator = Creator::new(&storage, 1, &mut told).unwrap();
            creator.add(&file.name, Arc::new(file.bytes.clone())).unwrap();
            creator.finish().unwrap();
        }
        let relay = start(&disk, to.path(), overdue);
        receive(&relay, &source, &mut Random::new(1), &mut Known::default(), usize::MAX).unwrap();
        relay.intake.sync().unwrap();
        let archived = Archived { disk, to, relay, overdue };
        archived.nothing_waits();
        archived
    }

    /// All closed files are archived.
    fn nothing_waits(&self) {
        let kept = self.relay.intake.lineages.served().unwrap();
        let last = kept.store.logs().unwrap().last().unwrap().number;
        kept.archived.advance(last, Instant::now());
    }

    fn start_again(&mut self) {
        self.relay = start(&self.disk, self.to.path(), self.overdue);
        self.nothing_waits();
    }

    /// A round at this time of a duty that was just started; the lines that were logged.
    fn round(&self, now: u64) -> Vec<String> {
        let options = self.relay.options.archive.clone().unwrap();
        let heard = Heard::default();
        heard.during(|| ArchiveChecker::new(&self.relay.housekeeping, &options, WEEK).round(now)).unwrap();
        heard.lines()
    }

    fn status(&self) -> ArchiveCheckStatus {
        let status = self.relay.watch.status(&Default::default()).unwrap();
        status.archive.unwrap().check.unwrap()
    }

    fn troubles(&self) -> Vec<String> {
        self.relay.watch.status(&Default::default()).unwrap().troubles
    }

    /// The object of a log.
    fn object(&self, log: &str) -> PathBuf {
        let manifest = Manifest::read(&storage::at(self.to.path()).unwrap()).unwrap().unwrap();
        let file = manifest.files.iter().find(|file| file.name == *log).unwrap();
        self.to.path().join("objects").join(file.objects[0].as_str())
    }

    /// What the archive itself has written down of checks.
    fn written_down(&self) -> LastChecks {
        LastChecks::read(&storage::at(self.to.path()).unwrap()).unwrap()
    }
}

fn start(disk: &SimulatedDisk, to: &Path, overdue: Duration) -> RelaySource {
    let archive = ArchiveOptions {
        to: to.to_owned(),
        plaintext: false,
        tables: binlogz_archive::chosen_tables::TableChoice::default(),
        bring_back: BringBack::default(),
        overdue,
        check: Some(WEEK),
    };
    let options = SourceOptions { archive: Some(archive), ..options(&mut Random::new(1)) };
    open_source(options, Arc::new(OneDisk(disk.clone()))).unwrap()
}

#[test]
fn what_is_damaged_in_an_archive_is_found_by_the_schedule_told_and_red_until_it_is_whole() {
    let mut archived = Archived::new(ArchiveOptions::OVERDUE);
    let path = archived.object("binlog.000002");
    let whole = fs::read(&path).unwrap();
    let began = now();
    for at in [whole.len() / 3, whole.len() / 2, whole.len() - 9] {
        let time = began + at as u64 * DAY * 8;
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        fs::write(&path, &damaged).unwrap();
        let told = archived.round(time);
        let found = archived.troubles();
        let begins = format!("the archive {} is not whole: binlog.000002: ", archived.to.path().display());
        assert!(found.len() == 1 && found[0].starts_with(&begins), "byte {at}: {found:?}");
        let why = found[0].split_once("is not whole: ").unwrap().1;
        let line = format!(
            "ERROR archive {}: {why}; it was found by checking the archive",
            archived.to.path().display()
        );
        assert_eq!(told, [line], "byte {at}");
        assert_eq!(archived.status().damaged_logs, 1);
        let check = archived.written_down();
        let check = check.damage().unwrap();
        assert_eq!((check.problems, check.time, check.depth), (1, time, CheckDepth::Content));
        // A restart makes it no better, and one line is enough.
        archived.start_again();
        assert_eq!(archived.round(time + 1), [""; 0]);
        assert_eq!(archived.troubles(), found);
        // Somebody brings back what was there.
        fs::write(&path, &whole).unwrap();
        let told = archived.round(time + 2);
        assert!(told.len() == 1 && told[0].contains("binlog.000002 is whole again"), "{told:?}");
        assert_eq!((archived.troubles(), archived.status().damaged_logs), (vec![], 0));
        assert_eq!(archived.written_down().damage(), None);
    }
    fs::remove_file(&path).unwrap();
    archived.round(began + DAY * 10_000_000);
    assert!(archived.troubles()[0].contains("binlog.000002: "), "{:?}", archived.troubles());
}

#[test]
fn everything_is_checked_once_a_week_unless_somebody_else_did_it() {
    let archived = Archived::new(ArchiveOptions::OVERDUE);
    let checked = || archived.status().checked_logs;
    let began = now();
    assert_eq!((checked(), archived.status().age_seconds), (0, None));
    archived.round(began);
    assert_eq!(checked(), 4);
    assert!(archived.status().age_seconds.unwrap() < 60);
    assert_eq!(archived.written_down().deepest().unwrap().time, began);
    archived.round(began + 7 * DAY - 1);
    assert_eq!(checked(), 4, "not before a week has passed");
    archived.round(began + 7 * DAY);
    assert_eq!(checked(), 8);
    // A clock that was put back keeps no check from beginning.
    archived.round(began - DAY);
    assert_eq!(checked(), 12);
    // As a cron job with `archive check` does.
    let storage = storage::at(archived.to.path()).unwrap();
    let manifest = Manifest::read(&storage).unwrap().unwrap();
    let then = std::time::UNIX_EPOCH + Duration::from_secs(began + 10 * DAY);
    last_check::note(&storage, &manifest, CheckDepth::Content, 0, then).unwrap();
    archived.round(began + 11 * DAY);
    assert_eq!(checked(), 12);
    archived.round(began + 17 * DAY);
    assert_eq!(checked(), 16);
    last_check::note(&storage, &manifest, CheckDepth::Presence, 0, then + WEEK * 3).unwrap();
    archived.round(began + 31 * DAY);
    assert_eq!(checked(), 20, "that objects are there says nothing of what is in them");
}

#[test]
fn a_check_that_is_long_overdue_is_red() {
    let archived = Archived::new(ArchiveOptions::OVERDUE);
    let began = now() - 15 * DAY;
    archived.round(began);
    let told = archived.troubles();
    assert!(told.len() == 1 && told[0].contains("was not checked for 1296"), "{told:?}");
    archived.round(now());
    assert_eq!(archived.troubles(), [""; 0]);
}

#[test]
fn an_archive_that_hangs_holds_up_nothing_else_and_is_told() {
    let archived = Archived::new(Duration::from_secs(1));
    let path = archived.object("binlog.000003");
    fs::rename(&path, path.with_extension("away")).unwrap();
    // Whoever opens it waits for a writer, as on a file system whose server does not answer.
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let told = archived.round(now());
    let [line] = &told[..] else { panic!("{told:?}") };
    assert!(line.contains("check binlog.000003: it has not ended within 1s, and is given up"), "{line}");
    assert_eq!(archived.status().damaged_logs, 0, "nobody has seen damage");
    std::thread::sleep(Duration::from_secs(1));
    let why = archived.troubles();
    let begins = format!("checking the archive {} has failed for ", archived.to.path().display());
    assert!(why.len() == 1 && why[0].starts_with(&begins), "{why:?}");
    // It answers again.
    fs::remove_file(&path).unwrap();
    fs::rename(path.with_extension("away"), &path).unwrap();
    archived.round(now());
    assert_eq!((archived.troubles(), archived.status().failing_seconds), (vec![], None));
}

#[test]
fn an_archive_that_can_not_be_reached_is_not_called_damaged() {
    let archived = Archived::new(Duration::from_millis(1));
    let away = archived.to.path().with_extension("away");
    fs::rename(archived.to.path(), &away).unwrap();
    fs::write(archived.to.path(), "in its place").unwrap();
    let told = archived.round(now());
    assert!(told.len() == 1 && told[0].contains("the archive is not checked meanwhile"), "{told:?}");
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(archived.status().damaged_logs, 0);
    assert!(archived.troubles()[0].contains("checking the archive "), "{:?}", archived.troubles());
    fs::remove_file(archived.to.path()).unwrap();
    fs::rename(&away, archived.to.path()).unwrap();
    archived.round(now());
    assert_eq!((archived.troubles(), archived.status().checked_logs), (vec![], 4));
}
