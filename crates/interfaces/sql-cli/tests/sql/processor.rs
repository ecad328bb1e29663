//! The processor time of the processes that another one started, as `binlogz sql serve` does for each statement: what nobody waits for any more
//! uses none.
//!
//! On a busy machine a process may get little time. So none of its threads may be ready to run all the while, either.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A tick of Linux's clock for processes: USER_HZ is 100 on all machines.
const TICK: Duration = Duration::from_millis(10);
/// How long something may take to begin on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The processor time that idle threads may use in a second.
const IDLE: Duration = Duration::from_millis(250);
const SAMPLES: u32 = 20;

/// The fields of a process or thread that come after its name.
fn stat(path: &str) -> Option<Vec<String>> {
    let stat = fs::read_to_string(format!("{path}/stat")).ok()?;
    Some(stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn numbers_in(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// The processes that this one started, and that still live.
fn started_by(process: u32) -> Vec<u32> {
    let parent = process.to_string();
    let is_child = |id: &u32| stat(&format!("/proc/{id}")).is_some_and(|fields| fields[1] == parent);
    numbers_in("/proc").into_iter().filter(is_child).collect()
}

/// The processor time of each of them.
fn used_by_started(process: u32) -> HashMap<u32, Duration> {
    let used = started_by(process).into_iter().filter_map(|id| {
        let fields = stat(&format!("/proc/{id}"))?;
        let ticks: u32 = fields[11].parse::<u32>().ok()? + fields[12].parse::<u32>().ok()?;
        Some((id, TICK * ticks))
    });
    used.collect()
}

/// Their threads that run, or would if there was a processor for them.
fn ready(process: u32) -> BTreeSet<u32> {
    let threads = started_by(process).into_iter().flat_map(|id| numbers_in(&format!("/proc/{id}/task")));
    threads.filter(|id| stat(&format!("/proc/{id}")).is_some_and(|fields| fields[0] == "R")).collect()
}

/// How much they used since.
fn used_since(process: u32, before: &HashMap<u32, Duration>) -> Duration {
    let used = used_by_started(process).into_iter();
    used.map(|(id, now)| now.saturating_sub(before.get(&id).copied().unwrap_or_default())).sum()
}

/// Waits until one that it started works on something.
#[track_caller]
pub(crate) fn wait_until_busy(process: u32) {
    let (begun, before) = (Instant::now(), used_by_started(process));
    while used_since(process, &before) < 2 * IDLE {
        assert!(begun.elapsed() < PATIENCE, "it doesn't work on anything");
        sleep(Duration::from_millis(20));
    }
}

/// Waits until they use no processor for a second: the third at the latest.
#[track_caller]
pub(crate) fn assert_quiet_soon(process: u32, what: &str) {
    let mut told = Vec::new();
    for _ in 0..3 {
        let (before, mut always) = (used_by_started(process), ready(process));
        for _ in 0..SAMPLES {
            sleep(Duration::from_secs(1) / SAMPLES);
            let now = ready(process);
            always.retain(|thread| now.contains(thread));
        }
        let used = used_since(process, &before);
        told.push((used, always.len()));
        if used < IDLE && always.is_empty() {
            return;
        }
    }
    panic!("{what}: processor time and threads that were always ready, in three seconds: {told:?}");
}
