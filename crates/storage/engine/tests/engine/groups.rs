//! Many sessions at once: groups, order, policies.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::thread;

use binlogz_engine::{Engine, VariableValue};
use binlogz_store::{FileStorage, MemoryStorage};

use crate::common::{ON, UUID, clocks, events, insert, open};

/// Commits this often with this many sessions; returns the GTIDs they got, in no order.
fn commit_in_parallel(engine: &Engine, sessions: usize, each: usize) -> BTreeSet<u64> {
    let start = Barrier::new(sessions);
    thread::scope(|scope| {
        let committer = || {
            let mut session = engine.session();
            start.wait();
            (0..each)
                .map(|_| {
                    insert(&mut session, 200);
                    session.commit().unwrap().gtid.unwrap().gno()
                })
                .collect::<Vec<_>>()
        };
        let committers: Vec<_> = (0..sessions).map(|_| scope.spawn(committer)).collect();
        committers.into_iter().flat_map(|committer| committer.join().unwrap()).collect()
    })
}

#[test]
fn every_commit_is_logged_once_whatever_the_policy() {
    for policy in 0..=2 {
        for compression in ["OFF", "ON"] {
            let dir = tempfile::tempdir().unwrap();
            let storage = FileStorage::open(dir.path()).unwrap();
            let variables = [
                ("flush_log_at_commit", VariableValue::Integer(policy)),
                (ON.0, VariableValue::Text(compression)),
                ("max_binlog_size", VariableValue::Integer(64 << 10)),
            ];
            let engine = open(storage, &variables);
            let told = commit_in_parallel(&engine, 20, 30);
            assert_eq!(told, (1..=600).collect());
            let (groups, syncs) = engine.group_figures();
            assert!(groups <= 600 && syncs <= groups + 1, "{groups} groups, {syncs} syncs");
            engine.flush().unwrap();
            let now = engine.store().positions().unwrap();
            assert_eq!(now.written, now.durable);
            for (file, clocks) in clocks(engine.store()).iter().enumerate() {
                for (place, (last_committed, sequence)) in clocks.iter().enumerate() {
                    assert_eq!(*sequence, place as i64 + 1, "file {file}");
                    assert!(last_committed < sequence, "file {file}");
                }
            }
            let logged: usize = events(engine.store())
                .iter()
                .map(|events| events.iter().filter(|event| event.is_gtid()).count())
                .sum();
            assert_eq!(logged, 600);
            assert_eq!(engine.gtid_executed().to_string(), format!("{UUID}:1-600"));
            engine.close().unwrap();
        }
    }
}

#[test]
fn a_group_waits_for_as_many_as_it_is_told_to() {
    // So long that only the count can end the wait.
    let variables = [
        ("binlog_group_commit_sync_delay", VariableValue::Integer(1_000_000)),
        ("binlog_group_commit_sync_no_delay_count", VariableValue::Integer(8)),
    ];
    // The longest delay is a second: on a machine that is very busy eight threads may not make it in time.
    let engine = (0..20).find_map(|_| {
        let engine = open(MemoryStorage::new(), &variables);
        commit_in_parallel(&engine, 8, 1);
        (engine.group_figures().1 == 1).then_some(engine)
    });
    let engine = engine.expect("eight sessions, one sync");
    // With one session the delay passes, and it commits.
    commit_in_parallel(&engine, 1, 1);
    assert_eq!(engine.group_figures().1, 2);
}

#[test]
fn sync_binlog_counts_groups() {
    let engine = open(MemoryStorage::new(), &[("sync_binlog", VariableValue::Integer(3))]);
    let mut session = engine.session();
    let mut commit = || {
        insert(&mut session, 5);
        session.commit().unwrap();
        engine.store().positions().unwrap()
    };
    let durable: Vec<bool> = (0..6).map(|_| commit()).map(|now| now.durable == now.written).collect();
    assert_eq!(durable, [false, false, true, false, false, true]);
    engine.set_global("sync_binlog", VariableValue::Integer(0)).unwrap();
    insert(&mut session, 5);
    session.commit().unwrap();
    let now = engine.store().positions().unwrap();
    assert!(now.durable < now.written);
}

#[test]
fn sessions_move_between_threads_and_variables_change_under_them() {
    let engine = Arc::new(open(MemoryStorage::new(), &[ON]));
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let changer = {
        let (engine, stop) = (Arc::clone(&engine), Arc::clone(&stop));
        thread::spawn(move || {
            let mut round = 0;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                engine.set_global("flush_log_at_commit", VariableValue::Integer(round % 3)).unwrap();
                engine.set_global("sync_binlog", VariableValue::Integer(round % 2)).unwrap();
                engine.set_global("binlog_checksum", VariableValue::Integer(round % 2)).unwrap();
                engine.purge_all_but_last();
                round += 1;
                thread::yield_now();
            }
        })
    };
    let mut session = engine.session();
    for _ in 0..20 {
        session = thread::spawn(move || {
            for _ in 0..10 {
                insert(&mut session, 100);
                session.commit().unwrap();
            }
            session
        })
        .join()
        .unwrap();
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    changer.join().unwrap();
    assert_eq!(engine.gtid_executed().to_string(), format!("{UUID}:1-200"));
}

trait Purge {
    fn purge_all_but_last(&self);
}

impl Purge for Engine {
    fn purge_all_but_last(&self) {
        let last = self.store().positions().unwrap().written.file;
        self.store().purge_before(last).unwrap();
    }
}
