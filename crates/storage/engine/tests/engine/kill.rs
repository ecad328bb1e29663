//! Real kill -9 under 50 committers: acknowledged commits are in the log, and the log has no hole.
//!
//! The killed process is this test's own program, started again with BINLOGZ_KILL_DIR. It reports each
//! acknowledged commit on standard error, which outlives it. BINLOGZ_KILLS=N sets the number of kills under
//! each policy, BINLOGZ_KILL_MILLIS the longest life of each process.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::ServerUuid;
use binlogz_engine::{Engine, EngineOptions, VariableValue};
use binlogz_store::{BinlogStore, FileStorage, StoreOptions};
use binlogz_testkit::random::Random;
use binlogz_testkit::{mutate, setting};

const UUID: ServerUuid = ServerUuid(*b"it will be kill-");
const COMMITTERS: usize = 50;
const KILLS: u64 = 2;
const MILLIS: u64 = 300;
/// Under policy 0 a second may be lost; more if the machine is as busy as in tests.
const LOSS_MAX: Duration = Duration::from_secs(10);

/// The process to be killed; does nothing unless it was started as that.
#[test]
fn committers() {
    let Ok(dir) = std::env::var("BINLOGZ_KILL_DIR") else { return };
    let variables = [
        ("flush_log_at_commit", VariableValue::Integer(setting("BINLOGZ_KILL_POLICY", 1) as i64)),
        ("binlog_transaction_compression", VariableValue::Text("ON")),
        ("max_binlog_size", VariableValue::Integer(256 << 10)),
    ];
    let storage = FileStorage::open(Path::new(&dir)).unwrap();
    let options = EngineOptions { variables: &variables, ..EngineOptions::new(UUID, 1) };
    let (engine, _) = Engine::open(Arc::new(storage), options).unwrap();
    thread::scope(|scope| {
        for _ in 0..COMMITTERS {
            scope.spawn(|| {
                let mut session = engine.session();
                loop {
                    session
                        .statement("shop", "INSERT INTO item VALUES ('something to be found again')")
                        .unwrap();
                    let gtid = session.commit().unwrap().gtid.unwrap();
                    let line = format!("acknowledged {}\n", gtid.gno());
                    std::io::stderr().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

fn start(dir: &Path, policy: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["kill::committers", "--exact", "--nocapture", "--test-threads=1"])
        .env("BINLOGZ_KILL_DIR", dir)
        .env("BINLOGZ_KILL_POLICY", policy.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Lets it commit for a while, and kills it: returns the acknowledged commits, and when each was acknowledged.
fn kill_after(mut child: Child, life: Duration) -> (BTreeMap<u64, Instant>, Instant) {
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let (begun, has_begun) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut acknowledged = BTreeMap::new();
        for line in stderr.lines() {
            // The last line may be torn: a number that is cut is another commit's, or none.
            let Ok(line) = line else { break };
            match line.strip_prefix("acknowledged ").map(str::parse) {
                Some(Ok(number)) => {
                    acknowledged.insert(number, Instant::now());
                    // Nothing waits for more than the first.
                    let _ = begun.send(());
                }
                _ => eprintln!("{line}"),
            }
        }
        acknowledged
    });
    has_begun.recv_timeout(Duration::from_secs(120)).expect("a commit within two minutes");
    thread::sleep(life);
    child.kill().unwrap();
    let killed = Instant::now();
    child.wait().unwrap();
    (reader.join().unwrap(), killed)
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    if std::env::var("BINLOGZ_KILL_DIR").is_ok() {
        return;
    }
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    let mut all = 0;
    for policy in [1, 2, 0] {
        let dir = tempfile::tempdir().unwrap();
        for kill in 0..setting("BINLOGZ_KILLS", KILLS) {
            let life = random.below(setting("BINLOGZ_KILL_MILLIS", MILLIS) as usize) as u64;
            let (acknowledged, killed) = kill_after(start(dir.path(), policy), Duration::from_millis(life));
            let what = format!("SEED={seed} policy {policy} kill {kill}");
            let storage = FileStorage::open(dir.path()).unwrap();
            let opened = BinlogStore::open(Arc::new(storage), StoreOptions::default());
            let (_store, report) = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
            let held = report.gtids.intervals(&UUID.into()).unwrap_or_default();
            assert!(held.len() <= 1, "{what}: a hole in {}", report.gtids);
            let end = held.first().map_or(1, |interval| interval.end());
            assert!(held.first().is_none_or(|interval| interval.start() == 1), "{what}");
            let lost: Vec<_> = acknowledged.range(end..).collect();
            match policy {
                0 => assert!(lost.iter().all(|(_, when)| killed.duration_since(**when) < LOSS_MAX), "{what}"),
                _ => assert!(
                    lost.is_empty(),
                    "{what}: lost {} of {}: {report}",
                    lost.len(),
                    acknowledged.len()
                ),
            }
            all += acknowledged.len();
        }
    }
    println!("{all} commits acknowledged");
}
