//! A disk that is full, fails or crashes under concurrent commits: nothing acknowledged under policy 1 is
//! lost.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::thread;

use binlogz_engine::{Engine, EngineOptions, VariableValue};
use binlogz_testkit::disk::{DiskFault, SimulatedDisk};
use binlogz_testkit::mutate;
use binlogz_testkit::random::Random;

use crate::common::{ON, UUID, insert};

/// Commits with several sessions until the disk says no; the numbers that were acknowledged.
fn commit_until_it_fails(engine: &Engine, sessions: usize, each: usize) -> BTreeSet<u64> {
    let acknowledged = Mutex::new(BTreeSet::new());
    thread::scope(|scope| {
        for _ in 0..sessions {
            scope.spawn(|| {
                let mut session = engine.session();
                for _ in 0..each {
                    insert(&mut session, 300);
                    match session.commit() {
                        Ok(committed) => acknowledged.lock().unwrap().insert(committed.gtid.unwrap().gno()),
                        Err(_) => return,
                    };
                }
            });
        }
    });
    acknowledged.into_inner().unwrap()
}

fn try_open(disk: &SimulatedDisk, policy: i64) -> Result<(Engine, BTreeSet<u64>), binlogz_engine::Error> {
    let variables = [
        ("flush_log_at_commit", VariableValue::Integer(policy)),
        ("max_binlog_size", VariableValue::Integer(8192)),
        ON,
    ];
    let options = EngineOptions { variables: &variables, ..EngineOptions::new(UUID, 7) };
    let (engine, report) = Engine::open(std::sync::Arc::new(disk.clone()), options)?;
    let held = report.gtids.intervals(&UUID.into()).unwrap_or_default();
    assert!(held.len() <= 1, "a hole in {}", report.gtids);
    Ok((engine, held.iter().flat_map(|interval| interval.start()..interval.end()).collect()))
}

#[test]
fn what_was_acknowledged_survives_every_fault() {
    let seed = mutate::seed();
    for policy in [1, 2, 0] {
        for run in 0..40u64 {
            let mut random = Random::new(seed ^ (run << 8));
            let fault = [DiskFault::Crash, DiskFault::Eio, DiskFault::Enospc][random.below(3)];
            let disk = SimulatedDisk::new();
            let (engine, _) = try_open(&disk, policy).unwrap();
            disk.fail_at(disk.operations() + random.below(80) as u64, fault);
            let acknowledged = commit_until_it_fails(&engine, 5, 30);
            drop(engine);
            if fault == DiskFault::Crash {
                disk.crash(&mut random);
            } else {
                disk.reopen();
            }
            let what = format!("SEED={seed} policy {policy} run {run} {fault:?}");
            let (engine, held) = try_open(&disk, policy).unwrap_or_else(|error| panic!("{what}: {error}"));
            if policy == 1 {
                assert!(acknowledged.is_subset(&held), "{what}: {:?}", acknowledged.difference(&held));
            }
            // It goes on.
            assert_eq!(commit_until_it_fails(&engine, 2, 2).len(), 4, "{what}");
        }
    }
}

#[test]
fn a_full_disk_refuses_and_goes_on_when_there_is_room() {
    let disk = SimulatedDisk::new();
    let (engine, _) = try_open(&disk, 1).unwrap();
    disk.set_capacity(Some(30_000));
    let acknowledged = commit_until_it_fails(&engine, 4, 1000);
    assert!(acknowledged.len() > 50 && acknowledged.len() < 4000, "{}", acknowledged.len());
    let mut session = engine.session();
    insert(&mut session, 1);
    let error = session.commit().unwrap_err().to_string();
    assert!(
        error.starts_with("the store refuses writes until it is reopened, since an earlier error"),
        "{error}"
    );
    drop(engine);
    disk.reopen();
    assert!(try_open(&disk, 1).is_err(), "no room for a new file");
    disk.reopen();
    disk.set_capacity(None);
    let (engine, held) = try_open(&disk, 1).unwrap();
    assert!(acknowledged.is_subset(&held));
    assert_eq!(commit_until_it_fails(&engine, 2, 2).len(), 4);
}
