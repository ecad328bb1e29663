//! Every fuzz target takes mutations of real logs; `make soak` does the same for longer.

// The targets say why they don't fail; a test may panic.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used)]
// They are public in the crate of the fuzzer.
#![allow(unreachable_pub)]

use binlogz_testkit::{corpus, mutate};

#[path = "../../../fuzz/src/lib.rs"]
mod fuzz;

/// Runs of each target: enough to show that it works at all.
const RUNS: u64 = 1000;
/// Runs of targets that compress or unpack each time, which takes long in a debug build.
const SLOW_RUNS: u64 = 100;
const SLOW: [&str; 4] = ["payload", "rows", "archive_block", "archive_object"];
/// As many logs of the corpus are packed for the targets of archives.
const ARCHIVED_LOGS: usize = 1;

#[test]
fn every_fuzz_target_takes_mutations_of_real_logs() {
    let seed = mutate::seed();
    let logs: Vec<_> = corpus::binlogs().iter().map(|log| log.read()).collect();
    for target in fuzz::TARGETS {
        let begin = std::time::Instant::now();
        let runs = if SLOW.contains(&target.0) { SLOW_RUNS } else { RUNS };
        let logs = if target.0.starts_with("archive_") { &logs[..ARCHIVED_LOGS] } else { &logs };
        let seeds = fuzz::seeds::feed(target, logs, seed, runs);
        println!("{}: {runs} runs from {seeds} seeds, {:.1?}", target.0, begin.elapsed());
    }
}

#[test]
fn every_fuzz_target_is_one_of_cargo_fuzz() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/fuzz_targets");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    // That of SQL is fed by a test of binlogz-sql, which links DataFusion already.
    let names = fuzz::TARGETS.iter().map(|(name, _)| *name).chain(["sql"]);
    let mut names: Vec<_> = names.map(|name| format!("{name}.rs")).collect();
    names.sort();
    assert_eq!(files, names);
}
