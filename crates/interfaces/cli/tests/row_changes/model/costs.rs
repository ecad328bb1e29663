//! Where the model's time goes: how often each kind of work was done, and how long it took altogether.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

static COSTS: Mutex<BTreeMap<String, (usize, Duration)>> = Mutex::new(BTreeMap::new());

/// Does some work, and counts it.
pub(super) fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let begin = Instant::now();
    let done = work();
    let mut costs = COSTS.lock().unwrap();
    let (count, time) = costs.entry(what.to_owned()).or_default();
    *count += 1;
    *time += begin.elapsed();
    done
}

/// Prints what a seed took on average, the dearest first.
pub(super) fn print(seeds: u64) {
    let costs = COSTS.lock().unwrap();
    let mut sorted: Vec<_> = costs.iter().collect();
    sorted.sort_by_key(|(_, (_, time))| std::cmp::Reverse(*time));
    for (what, (count, time)) in sorted {
        let seeds = seeds as f64;
        println!("{:7.3} s a seed: {what}, {:.1} times", time.as_secs_f64() / seeds, *count as f64 / seeds);
    }
}
