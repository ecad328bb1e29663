//! A cluster of real processes that loses an executor while it runs a query.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Ran, SHAPES, sql};

/// A join whose second half takes some seconds, after all logs are read.
const JOIN: &str = r#"SELECT a."table", count(*) AS pairs, sum(a."row" + b."row") AS rows FROM changes a JOIN changes b
    ON a.schema = b.schema AND a.operation = b.operation AND a."offset" % 61 = b."offset" % 61 GROUP BY 1 ORDER BY 1"#;
/// How long a cluster may take for what it does at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed at the end.
struct Process {
    child: Child,
    told: PathBuf,
}

impl Process {
    fn start(folder: &Path, name: &str, args: &[&str]) -> Self {
        let told = folder.join(name);
        let mut command = sql(args);
        command.env("TMPDIR", folder).stdout(Stdio::null()).stderr(File::create(&told).unwrap());
        Process { child: command.spawn().unwrap(), told }
    }

    fn executor(folder: &Path, name: &str, scheduler: &str) -> Self {
        let (results, tasks) = (free_port(), free_port());
        let args =
            ["executor", "--scheduler", scheduler, "--port", &results, "--task-port", &tasks, "--jobs", "2"];
        let executor = Process::start(folder, name, &args);
        await_port(&results);
        executor
    }

    /// How many parts of logs it has read.
    fn readings(&self) -> usize {
        fs::read_to_string(&self.told).unwrap().lines().filter(|line| line.contains(" rows in ")).count()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> String {
    binlogz_testkit::server::free_port().unwrap().to_string()
}

fn await_port(port: &str) {
    let begin = Instant::now();
    while TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(begin.elapsed() < PATIENCE, "nothing listens on {port}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_query_that_loses_an_executor_is_repeated_and_gives_the_same_answer() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let port = free_port();
    let scheduler = format!("127.0.0.1:{port}");
    let scheduler_process = Process::start(folder, "scheduler", &["scheduler", "--listen", &scheduler]);
    await_port(&port);
    let stays = Process::executor(folder, "stays", &scheduler);
    let mut lost = Process::executor(folder, "lost", &scheduler);
    let ask = || {
        let mut command =
            sql(["--format", "csv", "--cluster", &scheduler, "--task-size", "1", "--partitions", "4", JOIN]);
        command.arg(&SHAPES.archive);
        command
    };
    let expected = Ran::from(ask().output().unwrap()).ok();
    let readings = || stays.readings() + lost.readings();
    let once = readings();
    assert!(stays.readings() > 0 && lost.readings() > 0, "both read");

    // All is read a second time: what is left is the join, on both.
    let asking = ask().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while readings() < 2 * once {
        assert!(begin.elapsed() < PATIENCE, "{} of {}", readings(), 2 * once);
        thread::sleep(Duration::from_millis(5));
    }
    // What was read is passed on, and the join begins.
    thread::sleep(Duration::from_millis(700));
    lost.child.kill().unwrap();
    assert_eq!(Ran::from(asking.wait_with_output().unwrap()).ok(), expected);
    let told = fs::read_to_string(&scheduler_process.told).unwrap();
    assert!(told.contains("an executor is lost, the query "), "{told}");
}
