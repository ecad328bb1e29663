//! Crashes and failures at every operation of a simulated disk. BINLOGZ_CRASHES=N does N random runs.

use binlogz_binlog::gtid::GtidSet;
use binlogz_store::{BinlogStore, Error, FileNumber};
use binlogz_testkit::disk::{DiskFault, SimulatedDisk};
use binlogz_testkit::random::Random;
use binlogz_testkit::{mutate, setting};

use crate::common::{gtids, numbers, open, rotate, transaction};

/// Random runs in `make test`; scripts/soak/store.sh does 1,000 and more.
const CRASHES: u64 = 150;

/// The steps that a run has done so far.
#[derive(Debug, Default)]
struct Model {
    /// The last transaction handed to the store.
    appended: u64,
    /// The last transaction that a sync or a rotation made durable.
    durable: u64,
    /// Everything up to here may have been purged.
    purged: u64,
}

impl Model {
    fn append(&mut self, store: &BinlogStore, size: usize, group: u64) -> Result<(), Error> {
        let mut bytes = Vec::new();
        for gno in self.appended + 1..=self.appended + group {
            bytes.extend(transaction(gno, size));
        }
        self.appended += group;
        store.writer()?.append(&bytes).map(drop)
    }

    fn sync(&mut self, store: &BinlogStore) -> Result<(), Error> {
        store.sync()?;
        self.durable = self.appended;
        Ok(())
    }

    fn rotate(&mut self, store: &BinlogStore) -> Result<(), Error> {
        rotate(store, &gtids(self.appended))?;
        self.durable = self.appended;
        Ok(())
    }

    fn purge(&mut self, store: &BinlogStore) -> Result<(), Error> {
        let Some(now) = store.positions() else { return Ok(()) };
        self.purged = self.appended;
        let oldest_kept = FileNumber(now.written.file.0.saturating_sub(1).max(1));
        match store.purge_before(oldest_kept) {
            Err(Error::Unfit { .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    /// Opens the store after a crash or an error: all durable transactions are there, without gaps.
    fn check(&mut self, disk: &SimulatedDisk, what: &str) -> BinlogStore {
        let (store, report) = open(disk.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(report.damage.is_none(), "{what}: the watermark was beyond what was durable: {report}");
        let last = self.held(&report.gtids, what);
        assert!(
            last >= self.durable,
            "{what}: {} was durable, the log ends with {last}: {report}",
            self.durable
        );
        assert!(last <= self.appended, "{what}");
        let seen = numbers(&store);
        let first = seen.first().copied().unwrap_or(last + 1);
        assert!(first <= self.purged + 1, "{what}: begins with {first}, {self:?}: {report}");
        assert_eq!(seen, (first..=last).collect::<Vec<_>>(), "{what}: {report}");
        // All visible bytes are durable now: recovery made them so.
        (self.appended, self.durable) = (last, last);
        store
    }

    fn held(&self, found: &GtidSet, what: &str) -> u64 {
        let last = (0..=self.appended).rev().find(|last| gtids(*last) == *found);
        last.unwrap_or_else(|| panic!("{what}: a hole in {found}"))
    }
}

/// The run in which each operation fails once: rotations, a purge, groups with and without sync.
fn fixed_run(store: &BinlogStore, model: &mut Model) -> Result<(), Error> {
    model.rotate(store)?;
    for round in 0..3 {
        model.append(store, 30, 1)?;
        model.sync(store)?;
        model.append(store, 900, 3)?;
        model.append(store, 10, 2)?;
        if round > 0 {
            model.sync(store)?;
        }
        model.rotate(store)?;
        model.purge(store)?;
    }
    model.append(store, 2000, 2)
}

#[test]
fn every_operation_may_be_the_last_or_fail() {
    let seed = mutate::seed();
    let whole = SimulatedDisk::new();
    fixed_run(&open(whole.clone()).unwrap().0, &mut Model::default()).unwrap();
    let operations = whole.operations();
    assert!(operations > 60, "{operations}");
    for at in 0..operations {
        for fault in [DiskFault::Crash, DiskFault::Eio, DiskFault::Enospc] {
            let what = format!("SEED={seed} {fault:?} at operation {at}");
            let mut random = Random::new(seed ^ at);
            let disk = SimulatedDisk::new();
            disk.fail_at(at, fault);
            let mut model = Model::default();
            match open(disk.clone()) {
                Err(_) => {}
                Ok((store, _)) => {
                    let error = fixed_run(&store, &mut model).expect_err(&what);
                    assert!(!matches!(error, Error::Latched { .. }), "{what}: {error}");
                    // If nothing was written yet, the same call may be tried again.
                    if !matches!(error, Error::Io { operation: "create", .. }) {
                        let error = store.writer().map(drop).expect_err(&what);
                        assert!(matches!(error, Error::Latched { .. }), "{what}: {error}");
                        assert!(matches!(store.sync(), Err(Error::Latched { .. })), "{what}");
                    }
                }
            }
            if fault == DiskFault::Crash {
                assert!(disk.is_stopped());
                disk.crash(&mut random);
            } else {
                // The process opens it again, then the power fails: everything that was visible must still be
                // there.
                disk.reopen();
                drop(model.check(&disk, &what));
                disk.crash(&mut random);
            }
            let store = model.check(&disk, &what);
            model.rotate(&store).unwrap();
            model.append(&store, 20, 2).unwrap();
            model.sync(&store).unwrap();
            drop(store);
            disk.crash(&mut random);
            model.check(&disk, &what);
        }
    }
}

#[test]
fn random_runs_survive_crash_after_crash() {
    let seed = mutate::seed();
    let runs = setting("BINLOGZ_CRASHES", CRASHES);
    let mut in_recovery = 0;
    for run in 0..runs {
        let mut random = Random::new(seed.wrapping_add(run));
        let disk = SimulatedDisk::new();
        let mut model = Model::default();
        for life in 0..4 {
            let what = format!("SEED={} life {life}", seed.wrapping_add(run));
            disk.fail_at(disk.operations() + random.below(60) as u64, DiskFault::Crash);
            match open(disk.clone()) {
                // It crashed during recovery.
                Err(_) => in_recovery += 1,
                Ok((store, report)) => {
                    assert!(report.damage.is_none(), "{what}: {report}");
                    let last = model.held(&report.gtids, &what);
                    assert!(last >= model.durable, "{what}");
                    (model.appended, model.durable) = (last, last);
                    random_life(&store, &mut model, &mut random);
                }
            }
            disk.crash(&mut random);
        }
        model.check(&disk, &format!("SEED={} at last", seed.wrapping_add(run)));
    }
    assert!(in_recovery > 0, "no crash met a recovery");
}

/// Performs random operations until the disk stops or the run is long enough.
fn random_life(store: &BinlogStore, model: &mut Model, random: &mut Random) {
    if model.rotate(store).is_err() {
        return;
    }
    for _ in 0..30 {
        let done = match random.below(10) {
            0 => model.rotate(store),
            1 => model.purge(store),
            2..=4 => model.sync(store),
            _ => model.append(store, random.below(3000), 1 + random.below(4) as u64),
        };
        if done.is_err() {
            return;
        }
    }
}

#[test]
fn a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::new();
    let (store, _) = open(disk.clone()).unwrap();
    let mut model = Model::default();
    model.rotate(&store).unwrap();
    disk.set_capacity(Some(20_000));
    let full = loop {
        if let Err(error) = model.append(&store, 500, 1).and_then(|()| model.sync(&store)) {
            break error;
        }
    };
    assert!(matches!(full, Error::Io { operation: "write", .. }), "{full}");
    assert!(model.durable > 20, "{model:?}");
    drop(store);
    disk.reopen();
    // It opens on the full disk, and refuses what does not fit.
    let store = model.check(&disk, "full");
    assert!(model.append(&store, 5000, 1).is_err());
    model.appended -= 1;
    drop(store);
    disk.reopen();
    disk.set_capacity(None);
    let store = model.check(&disk, "room again");
    model.append(&store, 500, 1).unwrap();
    model.sync(&store).unwrap();
    drop(store);
    disk.crash(&mut Random::new(1));
    model.check(&disk, "at last");
}

#[test]
fn after_a_lost_sync_the_log_opens_or_says_why_not() {
    let seed = mutate::seed();
    let whole = SimulatedDisk::new();
    fixed_run(&open(whole.clone()).unwrap().0, &mut Model::default()).unwrap();
    let mut opened = 0;
    for at in 0..whole.operations() {
        let disk = SimulatedDisk::new();
        disk.fail_at(at, DiskFault::LostSync);
        let (store, _) = open(disk.clone()).unwrap();
        fixed_run(&store, &mut Model::default()).unwrap();
        drop(store);
        disk.crash(&mut Random::new(seed ^ at));
        // The only promise on such a disk is that its content is read, or refused in one line.
        match open(disk) {
            Ok(_) => opened += 1,
            Err(error) => assert!(!error.to_string().contains('\n'), "SEED={seed} {at}: {error}"),
        }
    }
    assert!(opened > whole.operations() / 2, "{opened}");
}
