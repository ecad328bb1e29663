//! Every call that a store makes to its disk fails: once, or until the fault is fixed. The process carries on
//! with the same store.
//!
//! After each error the store still has the durable transactions, and says so. Once reopened it carries on, and ends with
//! the same bytes as a run without errors.

use binlogz_store::{BinlogStore, Error, FileNumber, Storage, storage};
use binlogz_testkit::disk::{DiskFault, SimulatedDisk};
use binlogz_testkit::mutate;
use binlogz_testkit::random::Random;

use crate::common::{gtids, head, numbers, open, transaction};

const FAULTS: [DiskFault; 4] = [DiskFault::Eio, DiskFault::Enospc, DiskFault::Emfile, DiskFault::ShortWrite];
const FILE_SIZE_MAX: u64 = 1 << 20;

/// One step; each can be done again after an error.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The transactions up to this one, each of this size, in one write.
    Append(u64, usize),
    /// The transactions up to this one, each of this size, in several writes.
    Extend(u64, usize),
    Sync,
    Begin(u64),
    PurgeBefore(u64),
    PutBack(u64),
}

const STEPS: [Step; 16] = [
    Step::Begin(1),
    Step::Append(1, 30),
    Step::Sync,
    Step::Append(4, 300),
    Step::Begin(2),
    Step::Extend(7, 700),
    Step::Sync,
    Step::Append(8, 10),
    Step::Begin(3),
    Step::PurgeBefore(2),
    Step::Append(10, 900),
    Step::Begin(4),
    Step::PutBack(1),
    Step::Extend(13, 100),
    Step::PurgeBefore(3),
    Step::Sync,
];

#[derive(Debug, Default)]
struct Run {
    appended: u64,
    /// The last transaction that a sync or a rotation reported as durable.
    durable: u64,
    /// The first file, as it was before it was purged.
    purged: Vec<u8>,
}

fn appended(from: u64, to: u64, size: usize) -> Vec<Vec<u8>> {
    (from + 1..=to).map(|gno| transaction(gno, size)).collect()
}

impl Run {
    fn step(&mut self, store: &BinlogStore, step: Step) -> Result<(), Error> {
        let last = store.positions().map_or(0, |now| now.written.file.0);
        match step {
            Step::Append(to, size) if to > self.appended => {
                let bytes = appended(self.appended, to, size).concat();
                let mut writer = store.writer()?;
                self.appended = to;
                writer.append(&bytes)?;
            }
            Step::Extend(to, size) if to > self.appended => {
                let parts = appended(self.appended, to, size);
                let mut writer = store.writer()?;
                self.appended = to;
                for part in parts {
                    let (first, second) = part.split_at(part.len() / 3);
                    writer.extend(first)?;
                    writer.extend(second)?;
                }
                writer.publish()?;
            }
            Step::Append(..) | Step::Extend(..) => {}
            Step::Sync => {
                store.sync()?;
                self.durable = self.appended;
            }
            Step::Begin(file) if file > last => {
                store.writer()?.begin_file(FileNumber(file), &head(&gtids(self.appended)), None)?;
                self.durable = self.appended;
            }
            Step::Begin(_) => self.durable = self.appended,
            Step::PurgeBefore(file) => {
                if self.purged.is_empty() {
                    let mut bytes = Vec::new();
                    let mut reader = store.reader(FileNumber(1), 0)?;
                    let read = std::io::Read::read_to_end(&mut reader, &mut bytes);
                    read.map_err(|source| Error::Io { operation: "read", file: "1".into(), source })?;
                    self.purged = bytes;
                }
                store.purge_before(FileNumber(file))?;
            }
            Step::PutBack(file) => {
                if store.logs()?.first().is_some_and(|first| first.number.0 > file) {
                    store.put_back(FileNumber(file), &mut |out| out.write_all(&self.purged))?;
                }
            }
        }
        Ok(())
    }

    /// The store serves all that is durable, without gaps, and lists no missing file.
    fn check(&self, store: &BinlogStore, what: &str) {
        let logs = store.logs().unwrap_or_else(|error| panic!("{what}: {error}"));
        let Some(now) = store.positions() else {
            assert!(logs.is_empty() && self.durable == 0, "{what}: {logs:?}");
            return;
        };
        assert_eq!(logs.last().map(|log| log.number), Some(now.durable.file), "{what}: a file too many");
        let seen = numbers(store);
        if let (Some(first), Some(last)) = (seen.first(), seen.last()) {
            assert_eq!(seen, (*first..=*last).collect::<Vec<_>>(), "{what}");
            assert!((self.durable..=self.appended).contains(last), "{what}: ends with {last}: {self:?}");
        } else {
            assert_eq!(self.durable, 0, "{what}");
        }
        for log in &logs {
            store.previous_gtids(log.number).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }

    /// After an error: checks the transactions served meanwhile, and that the store carries on once the fault is gone.
    fn mend(&mut self, disk: &SimulatedDisk, store: &BinlogStore, what: &str) {
        let before = store.positions();
        if store.refuses_since().is_some() {
            assert!(matches!(store.writer().map(drop), Err(Error::Latched { .. })), "{what}");
            assert!(matches!(store.sync(), Err(Error::Latched { .. })), "{what}");
            if let Err(error) = store.reopen() {
                assert!(error.may_pass() && store.refuses_since().is_some(), "{what}: {error}");
            }
        }
        let now = store.positions();
        assert!(now.map(|now| now.durable) >= before.map(|now| now.durable), "{what}");
        disk.cure();
        self.check(store, what);
        let reopened = store.reopen().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(store.refuses_since().is_none());
        self.check(store, what);
        if reopened.is_some() {
            let now = store.positions();
            assert_eq!(now.map(|now| now.written), now.map(|now| now.durable), "{what}: {reopened:?}");
        }
        // Bytes that were appended but not synced may be gone; after recovery, all that are there are durable.
        let writer = store.writer().unwrap();
        let written = store.positions().map_or(0, |_| held(store, writer.position().is_some()));
        drop(writer);
        self.appended = written.max(self.durable);
    }
}

/// The last written transaction.
fn held(store: &BinlogStore, in_use: bool) -> u64 {
    if in_use {
        store.sync().unwrap();
    }
    numbers(store).last().copied().unwrap_or(0)
}

fn files(disk: &SimulatedDisk) -> Vec<(String, Vec<u8>)> {
    let read = |name: String| {
        let file = disk.open(&name, false).unwrap();
        (name, storage::read_all(file.as_ref(), FILE_SIZE_MAX).unwrap())
    };
    // The watermark's writes and the copies of torn tails depend on the errors themselves.
    let is_the_logs =
        |name: &String| ![".durable", ".torn-", ".cut-"].iter().any(|other| name.contains(other));
    disk.list().unwrap().into_iter().filter(is_the_logs).map(read).collect()
}

/// Stores one more transaction, and the power fails: whatever was visible after the store recovered, and was
/// built on, must be durable.
fn crash_behind_one_more(disk: &SimulatedDisk, store: &BinlogStore, run: &mut Run, seed: u64, what: &str) {
    let next = run.appended + 1;
    if store.writer().unwrap().position().is_none() {
        let file = store.positions().map_or(1, |now| now.written.file.0 + 1);
        run.step(store, Step::Begin(file)).unwrap();
    }
    run.step(store, Step::Append(next, 20)).unwrap();
    run.step(store, Step::Sync).unwrap();
    let logs = store.logs().unwrap();
    disk.crash(&mut Random::new(seed));
    let (store, report) = open(disk.clone()).unwrap_or_else(|error| panic!("{what}, one more: {error}"));
    assert_eq!(report.gtids, gtids(next), "{what}, one more: {report}");
    let found = store.logs().unwrap();
    assert_eq!(found.last(), logs.last(), "{what}, one more");
}

/// Does all steps, or all up to the first error and a few more. Returns the number of errors.
fn run(disk: &SimulatedDisk, crash: Option<u64>, what: &str) -> usize {
    let mut errors = 0;
    let mut again = |error: Error, what: &str| {
        assert!(error.may_pass(), "{what}: {error}");
        errors += 1;
        assert!(errors < 10, "{what}: {error}");
    };
    let store = loop {
        match open(disk.clone()) {
            Ok((store, _)) => break store,
            Err(error) => again(error, what),
        }
        disk.cure();
    };
    let mut run = Run::default();
    for step in STEPS {
        let what = format!("{what}, {step:?}");
        while let Err(error) = run.step(&store, step) {
            let what = format!("{what}: {error}");
            again(error, &what);
            run.mend(disk, &store, &what);
            if let Some(seed) = crash {
                crash_behind_one_more(disk, &store, &mut run, seed, &what);
                return errors;
            }
        }
    }
    disk.cure();
    run.check(&store, what);
    errors
}

#[test]
fn after_any_error_the_store_serves_what_is_durable_and_goes_on_by_itself() {
    let seed = mutate::seed();
    let whole = SimulatedDisk::new();
    assert_eq!(run(&whole, None, "nothing"), 0);
    let (calls, expected) = (whole.calls(), files(&whole));
    assert!(calls > 150, "{calls}");
    let mut met = [0; FAULTS.len()];
    for at in 0..calls {
        for (fault, met) in FAULTS.into_iter().zip(&mut met) {
            for lasts in [false, true] {
                let what = format!("SEED={seed} {fault:?} at call {at}, lasts: {lasts}");
                let disk = SimulatedDisk::new();
                disk.trouble_at(at, fault, lasts);
                *met += run(&disk, None, &what);
                disk.cure();
                assert!(files(&disk) == expected, "{what}: other bytes");
                disk.crash(&mut Random::new(seed ^ at));
                let last = expected.iter().rposition(|(name, _)| name.starts_with("binlog.0"));
                let closed = |all: &[(String, Vec<u8>)]| all[..last.unwrap()].to_vec();
                assert!(closed(&files(&disk)) == closed(&expected), "{what}: other bytes after a crash");
                let (store, report) = open(disk).unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(report.gtids, gtids(13), "{what}");
                assert_eq!(numbers(&store), (9..=13).collect::<Vec<_>>(), "{what}");
                let disk = SimulatedDisk::new();
                disk.trouble_at(at, fault, lasts);
                run(&disk, Some(seed ^ at), &what);
            }
        }
    }
    println!("{calls} calls, errors met: {met:?}");
    assert!(met.iter().all(|met| *met > 10), "{met:?}");
}

#[test]
fn a_rotation_without_descriptors_changes_nothing_and_works_later() {
    let disk = SimulatedDisk::new();
    let (store, _) = open(disk.clone()).unwrap();
    let mut run = Run::default();
    for step in &STEPS[..4] {
        run.step(&store, *step).unwrap();
    }
    let before = store.positions();
    disk.trouble_at(disk.calls(), DiskFault::Emfile, true);
    for _ in 0..3 {
        let error = run.step(&store, Step::Begin(2)).unwrap_err();
        assert!(error.is_transient(), "{error}");
        assert_eq!((store.refuses_since(), store.positions()), (None, before));
    }
    disk.cure();
    run.check(&store, "no descriptors");
    // The file is still open, and the rotation works.
    run.step(&store, Step::Append(5, 10)).unwrap();
    run.step(&store, Step::Begin(2)).unwrap();
    run.check(&store, "descriptors again");
    assert_eq!(numbers(&store), [1, 2, 3, 4, 5]);
}

#[test]
fn a_transaction_that_is_given_up_is_never_seen() {
    let disk = SimulatedDisk::new();
    let (store, _) = open(disk.clone()).unwrap();
    let mut run = Run::default();
    for step in &STEPS[..3] {
        run.step(&store, *step).unwrap();
    }
    let durable = store.positions().unwrap().durable;
    let mut writer = store.writer().unwrap();
    writer.extend(&transaction(2, 5000)[..4000]).unwrap();
    assert_eq!(store.positions().unwrap().written, durable);
    assert_eq!(store.sync().unwrap(), Some(durable), "a sync does not count a part");
    assert!(matches!(writer.seal(), Err(Error::Misuse { .. })));
    drop(writer);
    let error = store.writer().map(drop).unwrap_err().to_string();
    assert!(error.ends_with("a transaction was written in part, and given up"), "{error}");
    let report = store.reopen().unwrap().unwrap();
    assert_eq!(report.cut.map(|cut| cut.size), Some(4000));
    run.check(&store, "reopened");
    assert_eq!(store.reopen().unwrap(), None, "nothing to do");
    run.step(&store, Step::Append(2, 5)).unwrap();
    store.sync().unwrap();
    assert_eq!(numbers(&store), [1, 2]);
}
