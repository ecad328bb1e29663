//! Retention, when the disk refuses calls for a moment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlogz_relay_log::Disk;
use binlogz_store::{Storage, StorageFile};
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{Known, OneDisk, options, receive};
use super::open_source;
use super::simulated::SourceLog;
use crate::housekeeping::ages::Clocks;
use crate::housekeeping::retention::{self, Retention};
use crate::options::SourceOptions;
use crate::receive::storing::StoredForm;
use crate::source::RelaySource;

/// A disk on which for a while no file can be opened: the process has too many.
#[derive(Debug, Clone)]
struct Refusing {
    disk: SimulatedDisk,
    refuses: Arc<AtomicBool>,
}

impl Disk for Refusing {
    fn has(&self, _: &str) -> bool {
        false
    }

    fn take(&self, _: Option<&str>) -> binlogz_relay_log::Result<Arc<dyn Storage>> {
        Ok(Arc::new(self.clone()))
    }
}

impl Storage for Refusing {
    fn list(&self) -> io::Result<Vec<String>> {
        self.disk.list()
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn StorageFile>> {
        match self.refuses.load(Ordering::Relaxed) {
            true => Err(io::Error::other("Too many open files")),
            false => self.disk.open(name, create),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.disk.remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.disk.sync_names()
    }
}

/// The source's files last so long.
const STEP: u64 = 3600;
/// When the first one begins.
const BEGAN: u64 = 1_700_000_000;

/// A relay, and clocks that a test sets.
struct Clocked {
    disk: SimulatedDisk,
    relay: Option<RelaySource>,
    /// Seconds by the monotonic clock, which starts at zero with each relay.
    passed: u64,
    started: Instant,
    wall: u64,
    source: u64,
    asked: Option<(u64, Instant)>,
}

impl Clocked {
    /// A relay that has received files of an hour each, of which the last ended just now.
    fn new(files: usize, max_age: u64) -> Clocked {
        let disk = SimulatedDisk::new();
        let now = BEGAN + files as u64 * STEP;
        let mut clocked = Clocked {
            disk,
            relay: None,
            passed: 0,
            started: Instant::now(),
            wall: now + 7,
            source: now,
            asked: None,
        };
        clocked.start(max_age);
        let source = SourceLog::hourly(files + 1, BEGAN, STEP);
        let relay = clocked.relay.as_ref().unwrap();
        receive(relay, &source, &mut Random::new(1), &mut Known::default(), usize::MAX).unwrap();
        relay.intake.sync().unwrap();
        assert_eq!(clocked.closed(), files);
        clocked
    }

    fn start(&mut self, max_age: u64) {
        let max_age = Some(Duration::from_secs(max_age));
        let retention = Retention { max_age, ..Retention::default() };
        let random = &mut Random::new(1);
        let options = SourceOptions { retention, storing: StoredForm::Received, ..options(random) };
        self.relay = None;
        let relay = open_source(options, Arc::new(OneDisk(self.disk.clone()))).unwrap();
        (self.relay, self.passed, self.asked) = (Some(relay), 0, None);
    }

    /// The relay connects to the source.
    fn connect(&mut self) {
        self.asked = Some((self.source, self.started + Duration::from_secs(self.passed)));
    }

    fn pass(&mut self, seconds: u64) {
        self.passed += seconds;
        self.wall += seconds;
        self.source += seconds;
    }

    /// One run of retention; how many files it purged.
    fn run(&self) -> usize {
        let monotonic = self.started + Duration::from_secs(self.passed);
        let clocks = Clocks { monotonic, wall: self.wall, source: self.asked };
        retention::apply_at(&self.relay.as_ref().unwrap().housekeeping, &clocks).len()
    }

    /// Runs every ten seconds for so long; how many files went.
    fn run_for(&mut self, seconds: u64) -> usize {
        (0..seconds / 10)
            .map(|_| {
                self.pass(10);
                self.run()
            })
            .sum()
    }

    fn closed(&self) -> usize {
        let kept = self.relay.as_ref().unwrap().intake.lineages.served().unwrap();
        kept.store.logs().unwrap().len() - 1
    }

    fn told(&self) -> Vec<String> {
        let relay = self.relay.as_ref().unwrap();
        let (counts, last) = relay.telemetry.meters.errors();
        assert_eq!(counts.get("clock").copied().unwrap_or(0) as usize, last.len(), "{last:?}");
        last.into_iter().map(|error| error.text).collect()
    }
}

#[test]
fn files_go_once_they_are_old_by_the_sources_times_and_no_sooner() {
    // Fourteen files of an hour each; those that ended more than ten hours ago go.
    let mut clocked = Clocked::new(14, 10 * STEP);
    assert_eq!(clocked.run(), 0, "the source was never asked: nothing is old");
    clocked.connect();
    assert_eq!(clocked.run(), 3, "those that were old when they came go at once");
    assert_eq!(clocked.run_for(10), 1, "the next is ten hours old");
    assert_eq!(clocked.run_for(STEP - 20), 0);
    assert_eq!(clocked.run_for(20), 1);
    assert_eq!(clocked.run_for(2 * STEP), 2);
    assert_eq!(clocked.told(), [""; 0]);
}

#[test]
fn no_jump_of_a_clock_purges_files_and_each_is_told() {
    const DAYS: u64 = 3 * 24 * 3600;
    for forward in [true, false] {
        let jumped = |clock: u64| if forward { clock + DAYS } else { clock - DAYS };
        // While it runs: this machine's clock.
        let mut clocked = Clocked::new(14, 20 * STEP);
        clocked.connect();
        assert_eq!(clocked.run_for(600), 0);
        clocked.wall = jumped(clocked.wall);
        assert_eq!(clocked.run_for(600), 0, "forward: {forward}");
        assert!(
            clocked.told().len() == 1 && clocked.told()[0].contains("this machine's clock"),
            "{:?}",
            clocked.told()
        );
        let troubles = || {
            let relay = clocked.relay.as_ref().unwrap();
            relay.watch.status(&Default::default()).unwrap().troubles
        };
        assert!(
            troubles()[0].starts_with("a clock has jumped: this machine's clock went by "),
            "{:?}",
            troubles()
        );
        // The source's, which is seen when it is asked again.
        let mut clocked = Clocked::new(14, 20 * STEP);
        clocked.connect();
        assert_eq!(clocked.run_for(600), 0);
        clocked.source = jumped(clocked.source);
        clocked.connect();
        assert_eq!(clocked.run_for(600), 0, "forward: {forward}");
        assert!(clocked.told()[0].contains("the source's clock"), "{:?}", clocked.told());
        // Files still go by what passes, whatever the clock of the source says now; put back, it keeps them for longer.
        let went = clocked.run_for(7 * STEP);
        assert_eq!(went, if forward { 1 } else { 0 });
        // While it is down: one of both.
        for of_source in [true, false] {
            let mut clocked = Clocked::new(14, 20 * STEP);
            clocked.connect();
            assert_eq!(clocked.run_for(600), 0);
            match of_source {
                true => clocked.source = jumped(clocked.source),
                false => clocked.wall = jumped(clocked.wall),
            }
            clocked.start(20 * STEP);
            assert_eq!(clocked.run(), 0);
            clocked.connect();
            assert_eq!(clocked.run_for(600), 0, "forward: {forward}, of the source: {of_source}");
            assert!(clocked.told()[0].contains("while the relay was down"), "{:?}", clocked.told());
        }
    }
}

#[test]
fn after_a_long_pause_a_run_purges_no_more_than_its_share() {
    let mut clocked = Clocked::new(16, 20 * STEP);
    clocked.connect();
    assert_eq!(clocked.run_for(600), 0);
    // Three days later, by all clocks: whether they are right nobody knows.
    (clocked.wall, clocked.source) = (clocked.wall + 72 * STEP, clocked.source + 72 * STEP);
    clocked.start(20 * STEP);
    clocked.connect();
    assert_eq!(clocked.run(), 2, "an eighth");
    assert_eq!(clocked.run_for(590), 0);
    assert_eq!(clocked.run_for(20), 1, "an eighth of what is left");
    assert_eq!(clocked.told(), [""; 0]);
    // An hour later nothing has been found wrong.
    clocked.run_for(STEP);
    assert_eq!(clocked.closed(), 0);
}

#[test]
fn retention_goes_on_after_an_error() {
    let random = &mut Random::new(3);
    let source = SourceLog::new(random, false);
    let refuses = Arc::new(AtomicBool::new(false));
    let disk = Refusing { disk: SimulatedDisk::new(), refuses: Arc::clone(&refuses) };
    let retention = Retention { max_bytes: Some(1), ..Retention::default() };
    let relay = open_source(SourceOptions { retention, ..options(random) }, Arc::new(disk)).unwrap();
    receive(&relay, &source, random, &mut Known::default(), usize::MAX).unwrap();
    relay.intake.sync().unwrap();
    let relay = Arc::new(relay);
    let kept = relay.intake.lineages.served().unwrap();
    assert!(kept.store.logs().unwrap().len() > 1);

    refuses.store(true, Ordering::Relaxed);
    let its = Arc::clone(&relay);
    // It never ends: the test's process takes it along.
    std::thread::spawn(move || retention::apply_every(&its.housekeeping, Duration::from_millis(1)));
    let deadline = Instant::now() + Duration::from_secs(120);
    let wait = |what: &str, found: &dyn Fn() -> bool| {
        while !found() {
            assert!(Instant::now() < deadline, "no {what}: {:?}", relay.telemetry.meters.errors());
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let complained =
        || relay.telemetry.meters.errors().1.iter().any(|error| error.text.contains("Too many open files"));
    wait("complaint", &complained);
    refuses.store(false, Ordering::Relaxed);
    wait("purge", &|| kept.store.logs().is_ok_and(|logs| logs.len() == 1));
}
