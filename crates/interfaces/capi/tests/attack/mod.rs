//! The library under programs that use it wrongly, and over logs that are damaged: no call crashes, reads freed memory,
//! or reports an end where the log goes on. With `VALGRIND` in the environment the programs run under it
//! (`scripts/soak/bindings.sh`).

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use binlogz_testkit::builder::{LogBuilder, Release, bomb};
use binlogz_testkit::{corpus, mutate};

use super::{library, path};

/// Damaged logs of a run; a soak names more.
const MUTANTS: u64 = 60;
/// Transactions of three rows that threads share.
const TRANSACTIONS: usize = 500;
/// A program under valgrind ends with it if something is wrong.
const VALGRIND_ERROR: &str = "--error-exitcode=99";
/// The address space of a program that meets a bomb, in KiB.
const BOMB_KIB: u64 = 2 << 20;

struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    fn build() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-std=c11", "-g", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"]);
        compiler.arg(folder.path().join("attack")).arg(path("tests/attack/attack.c"));
        compiler.arg("-I").arg(path("include")).arg("-L").arg(library()).arg("-lbinlogz");
        let done = compiler.output().unwrap();
        assert!(done.status.success(), "{compiler:?}: {}", String::from_utf8_lossy(&done.stderr));
        Program { folder }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let file = self.folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        file
    }

    fn command(&self) -> Command {
        let program = self.folder.path().join("attack");
        let mut command = match env::var_os("VALGRIND") {
            Some(valgrind) => {
                let mut command = Command::new(valgrind);
                command.args([
                    "--quiet",
                    "--leak-check=full",
                    "--errors-for-leak-kinds=definite",
                    VALGRIND_ERROR,
                ]);
                command.arg(program);
                command
            }
            None => Command::new(program),
        };
        command.env("LD_LIBRARY_PATH", library());
        command
    }
}

#[track_caller]
fn ran_well(mut command: Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let told = String::from_utf8_lossy(&stderr);
    assert!(status.success() && told.is_empty(), "{command:?}: {status}: {told}");
    String::from_utf8(stdout).unwrap()
}

fn log() -> PathBuf {
    corpus::path("binlog.000005")
}

/// The log with a bit flipped near its end.
fn damaged() -> Vec<u8> {
    let mut bytes = fs::read(log()).unwrap();
    *bytes.iter_mut().rev().nth(200).unwrap() ^= 1;
    bytes
}

#[test]
fn handles_that_are_not_open_cost_an_error_and_nothing_else() {
    let program = Program::build();
    let damaged = program.file("damaged", &damaged());
    let mut command = program.command();
    command.arg("misuse").arg(log()).arg(damaged).current_dir(program.folder.path());
    ran_well(command);
    assert!(!program.folder.path().join("out").exists());
}

#[test]
fn threads_that_share_a_handle_get_each_change_once_or_are_refused() {
    let program = Program::build();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for _ in 0..TRANSACTIONS {
        log.transaction(&[b"one", b"two", b"three"]);
    }
    let log = program.file("log", log.bytes());
    let mut command = program.command();
    command.arg("threads").arg(log).arg((3 * TRANSACTIONS).to_string());
    ran_well(command);
}

/// A seeded run: what is read of damaged logs is read without a crash, and `SEED=N` repeats it.
#[test]
fn damaged_logs_are_read_without_a_crash() {
    let program = Program::build();
    let seed = mutate::seed();
    let count = env::var("MUTANTS").ok().and_then(|count| count.parse().ok()).unwrap_or(MUTANTS);
    let originals: Vec<_> = ["binlog.000001", "binlog.000003", "binlog.000005"]
        .map(|name| fs::read(corpus::path(name)).unwrap())
        .into_iter()
        .collect();
    let mut done = Vec::new();
    let mut command = program.command();
    command.arg("read");
    for (number, original) in (0..count).zip(originals.iter().cycle()) {
        let (bytes, what) = mutate::mutate(original, seed, number);
        command.arg(program.file(&format!("mutant-{number}"), &bytes));
        done.push(what);
    }
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    let read = said.lines().count();
    assert!(status.success() && told.is_empty(), "{status}: {told}: after {read}: {:?}", done.get(read));
    assert_eq!(read, done.len());
}

/// 22 KB that are 512 MiB.
#[test]
fn a_payload_that_expands_to_anything_costs_no_more_than_was_allowed() {
    let program = Program::build();
    let log = program.file("bomb", &bomb(512 << 20));
    let limited = |what: &[&str]| {
        let mut command = Command::new("sh");
        let line = format!("ulimit -v {BOMB_KIB}; exec \"$0\" \"$@\"");
        command.arg("-c").arg(line).arg(program.folder.path().join("attack")).args(what);
        command.env("LD_LIBRARY_PATH", library());
        command
    };
    let name = log.to_str().unwrap();
    ran_well(limited(&["bomb", name, "1000000"]));
}
