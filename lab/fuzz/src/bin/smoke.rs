//! Feeds each target with mutations of the corpus: needs no fuzzer. `SEED=N` repeats a run.
//!
//! usage: smoke [RUNS of each target, by default 20000]

use binlogz_fuzz::TARGETS;
use binlogz_fuzz::seeds::feed;
use binlogz_testkit::{corpus, mutate};

const RUNS: u64 = 20_000;

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let seed = mutate::seed();
    let logs: Vec<_> = corpus::binlogs().iter().map(|log| log.read()).collect();
    for target in TARGETS {
        let seeds = feed(target, &logs, seed, runs);
        println!("{}: {runs} runs from {seeds} seeds, SEED={seed}", target.0);
    }
}
