//! The fuzz target of statements takes real ones that were damaged, and such as a seed makes, in a process of its own: what ends that process,
//! grows in it or keeps it busy is seen here. `SQL_FUZZ_RUNS` makes a run longer, `SEED` repeats it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use binlogz_testkit::setting;

#[path = "../../../../../lab/fuzz/src/sql.rs"]
mod target;

/// The seed of a run beside the other tests: soak takes others.
const SEED: u64 = 99;
/// Statements of a run, beside the other tests.
const RUNS: u64 = 120;
/// The time of a statement, of a debug build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn no_statement_of_a_fuzzer_ends_the_process_grows_in_it_or_has_no_end() {
    let (seed, runs) = (setting("SEED", SEED), setting("SQL_FUZZ_RUNS", RUNS));
    let mut fed = Command::new(std::env::current_exe().unwrap());
    fed.args(["--exact", "--ignored", "--nocapture", "fuzz::statements_in_this_process"]);
    fed.env("SEED", seed.to_string()).env("SQL_FUZZ_RUNS", runs.to_string());
    let mut fed = fed.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdout, mut stderr) = (fed.stdout.take().unwrap(), fed.stderr.take().unwrap());
    let error = thread::spawn(move || {
        let mut error = Vec::new();
        stderr.read_to_end(&mut error).unwrap();
        String::from_utf8_lossy(&error).into_owned()
    });
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || BufReader::new(stdout).lines().try_for_each(|line| sender.send(line.unwrap())));
    let (mut last, mut is_late) = (None, false);
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) => last = line.strip_prefix("statement ").map_or(last, |index| index.parse().ok()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                is_late = true;
                fed.kill().unwrap();
                break;
            }
        }
    }
    let (ended, error) = (fed.wait().unwrap(), error.join().unwrap());
    let what = last.map(|index| target::input(seed, index).1);
    assert!(!is_late, "{what:?} takes longer than {PATIENCE:?}");
    assert!(ended.success(), "{what:?}: signal {:?}: {error}", ended.signal());
    assert_eq!(last, Some(runs - 1), "{error}");
}

#[test]
#[ignore = "the test above starts it"]
fn statements_in_this_process() {
    let seed = setting("SEED", SEED);
    for index in 0..setting("SQL_FUZZ_RUNS", RUNS) {
        // On its way before whatever happens next.
        let mut out = std::io::stdout();
        writeln!(out, "statement {index}").and_then(|()| out.flush()).unwrap();
        target::sql(&target::input(seed, index).0);
    }
}
