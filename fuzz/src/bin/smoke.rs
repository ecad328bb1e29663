//! Feeds each target with mutations of the corpus: needs no fuzzer. `SEED=N` repeats a run.
//!
//! usage: smoke [RUNS of each target, by default 20000]

use binlogz_binlog::{EventReader, EventType};
use binlogz_fuzz::TARGETS;
use binlogz_testkit::{corpus, mutate};

const RUNS: u64 = 20_000;
/// Larger seeds would be most of the time.
const SEED_SIZE_MAX: usize = 20_000;

fn main() {
    let runs = std::env::args().nth(1).and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    let seed = mutate::seed();
    let logs: Vec<_> = corpus::binlogs().iter().map(|log| log.read()).collect();
    for (name, target) in TARGETS {
        let mut seeds: Vec<_> = logs.iter().flat_map(|log| seeds(name, log)).collect();
        seeds.retain(|seed| seed.len() <= SEED_SIZE_MAX);
        assert!(!seeds.is_empty(), "the corpus has nothing for {name}");
        for index in 0..runs {
            let original = &seeds[index as usize % seeds.len()];
            let (bytes, what) = mutate::mutate(original, seed, index);
            if let Err(panic) = std::panic::catch_unwind(|| target(&bytes)) {
                eprintln!("{name}: {what} of seed {}", index as usize % seeds.len());
                std::panic::resume_unwind(panic);
            }
        }
        println!("{name}: {runs} runs from {} seeds, SEED={seed}", seeds.len());
    }
}

/// What of a log is an input of this target.
fn seeds(target: &str, log: &[u8]) -> Vec<Vec<u8>> {
    if target == "frame" {
        return vec![log.to_vec()];
    }
    let mut seeds = Vec::new();
    let mut reader = EventReader::new(log);
    while let Ok(Some((_, frame))) = reader.next_event() {
        let event_type = frame.event_type();
        match target {
            "event" => seeds.push([&[event_type.0], frame.body()].concat()),
            "gtid_set" if event_type == EventType::PREVIOUS_GTIDS => {
                seeds.push(frame.body().to_vec());
                let set = binlogz_binlog::gtid::GtidSet::decode(frame.body()).expect("a real set").0;
                seeds.push(set.to_string().into_bytes());
            }
            "table_map" if event_type == EventType::TABLE_MAP => seeds.push(frame.body().to_vec()),
            "payload" if event_type == EventType::TRANSACTION_PAYLOAD => seeds.push(frame.body().to_vec()),
            _ => {}
        }
    }
    seeds
}
