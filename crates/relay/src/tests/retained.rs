//! Retention over a disk that refuses for a moment.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlogz_store::{Storage, StorageFile};
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;

use super::crashes::{Known, options, receive};
use super::open_source;
use super::simulated::SourceLog;
use crate::error::Result;
use crate::housekeeping::retention::{self, Retention};
use crate::log::disk::Disk;
use crate::options::SourceOptions;

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

    fn take(&self, _: Option<&str>) -> Result<Arc<dyn Storage>> {
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
