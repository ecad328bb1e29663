//! Law 7: the bytes written depend only on the bytes read, and not on the number of threads, the size of batches, what
//! spills, or the pieces in which the input comes.

use binlogz_flow::{BatchSize, Memory, Rewrite, Rewriter};
use binlogz_testkit::{RealBinlog, corpus, real};

use super::support::{
    Pieces, compress, compression, expand, is_soak, options, places, rewritten, run, same, stream,
};

const ALL: [fn() -> Rewrite; 3] = [|| Rewrite::Expand, || compression(3), || Rewrite::Recompress(options(5))];

/// Whether a log is small enough to go through many times.
fn is_small(file: &RealBinlog) -> bool {
    !file.name.contains("levels") && !file.name.ends_with("binlog.000002")
}

/// Real logs that are small enough to go through many times. Of the workloads, which are most of their bytes, those at levels 1 and 19
/// are left to `make soak`: they differ from level 3 in payloads alone.
fn small_logs() -> Vec<RealBinlog> {
    let mut files = real::every_binlog();
    let is_left = |name: &str| name.starts_with("workloads/level1") && !is_soak();
    files.retain(|file| is_small(file) && !is_left(&file.name));
    files
}

/// The numbers of workers that are compared with one. Logs that expand to tens of megabytes are most of the time: of them three
/// alone, and all in `make soak`.
fn several_workers(file: &RealBinlog) -> &'static [usize] {
    if is_small(file) || is_soak() { &[2, 3, 5] } else { &[3] }
}

#[test]
fn any_number_of_workers() {
    for file in real::every_binlog() {
        let log = file.read();
        for how in ALL {
            let (one, summary) = run(places(&log), how(), 1).expect("a real log");
            for &workers in several_workers(&file) {
                let (several, of_several) = run(places(&log), how(), workers).expect("a real log");
                same(&file.name, &format!("{workers} workers"), &several, &one);
                assert_eq!(of_several.tally, summary.tally, "{}", file.name);
            }
        }
    }
}

#[test]
fn any_size_of_batches_and_no_memory_for_what_they_become() {
    // Everything too large for a batch, then batches of one transaction, then of a few.
    let sizes = [(1, 1), (1, 100_000), (3000, 10_000)];
    for (number, file) in small_logs().into_iter().enumerate() {
        let log = file.read();
        for (turn, how) in ALL.into_iter().enumerate() {
            let expected = rewritten(&log, how());
            for (place, (target, max)) in sizes.into_iter().enumerate() {
                let mut inputs = [places(&log), stream(Pieces::new(&log, 5000))];
                // In turn; both in `make soak`.
                inputs.rotate_left((number + turn + place) % 2);
                let count = if is_soak() { 2 } else { 1 };
                for input in inputs.into_iter().take(count) {
                    let memory = Memory::new(2, BatchSize { target, max }, 0);
                    let mut out = Vec::new();
                    Rewriter::new(how()).memory(&memory).run(input, &mut out).expect("a real log");
                    same(&file.name, &format!("batches of {target} to {max} bytes"), &out, &expected);
                }
            }
        }
    }
}

#[test]
fn a_pipe_gives_what_a_file_gives() {
    for file in real::every_binlog() {
        let log = file.read();
        for how in ALL {
            let (piped, _) = run(stream(Pieces::new(&log, 64 << 10)), how(), 2).expect("a real log");
            same(&file.name, "through a pipe", &piped, &rewritten(&log, how()));
        }
    }
}

#[test]
fn one_byte_at_a_time() {
    for file in small_logs() {
        let log = file.read();
        if log.len() > 10_000 {
            continue;
        }
        for how in ALL {
            let (fed, _) = run(stream(Pieces::new(&log, 1)), how(), 2).expect("a real log");
            same(&file.name, "byte by byte", &fed, &rewritten(&log, how()));
        }
    }
}

#[test]
fn logs_one_behind_the_other_are_rewritten_one_behind_the_other() {
    let files: Vec<_> = corpus::samples().iter().map(RealBinlog::read).collect();
    let all = files.concat();
    let each = |how: fn() -> Rewrite| files.iter().flat_map(|log| rewritten(log, how())).collect::<Vec<_>>();
    for how in ALL {
        same("samples", "concatenated", &rewritten(&all, how()), &each(how));
        let (piped, _) = run(stream(Pieces::new(&all, 4099)), how(), 3).expect("samples");
        same("samples", "concatenated, through a pipe", &piped, &each(how));
    }
    same("samples", "concatenated, and back", &expand(&compress(&all, 3)), &expand(&all));
}
