//! binlogz between other programs: standard input and output, readers that go away, bytes that never come.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Folder, Ran, sample, wait_for};

/// More than enough for anything that does not hang.
const LIMIT: Duration = Duration::from_secs(30);

#[test]
fn logs_go_through_pipes_and_the_report_goes_to_stderr() {
    let folder = Folder::new();
    let log = sample("plain", "binlog.000004");
    let small = folder.run_with(["compress", "--output", "-", "-"], &log);
    assert_eq!(
        small.stderr,
        "\
Compressed
  file            bytes before  bytes after  saved %  transactions  compressed
  standard input      77.0 KiB     34.0 KiB     55.8            45          45
"
    );
    let back = folder.run_with(["expand", "--format", "json", "--output", "-", "-"], &small.stdout);
    assert!(back.stdout == log);
    assert!(back.stderr.starts_with("{\n  \"command\": \"expand\""), "{}", back.stderr);
    folder.run_with(["verify", "-"], &small.stdout).is(
        0,
        "\
Verified
  file            answer     bytes  events  rows  transactions  compressed
  standard input  ok      34.0 KiB     543   180            45          45
",
        "",
    );
    folder.put("log", &log);
    folder.run_with(["verify", "--same", "log", "--", "-"], &small.stdout).is(
        0,
        "same: 45 transactions, 495 events\n",
        "",
    );
    let rows = folder.run_with(["events", "--limit", "1", "-"], &log);
    assert!(rows.text().ends_with("Server ver: 9.7.4-2, Binlog ver: 4\n"), "{}", rows.text());
    assert!(folder.names() == ["log"]);
}

#[test]
fn standard_input_may_be_a_file() {
    let folder = Folder::new();
    let log = folder.sample("plain", "binlog.000009");
    let stdin = std::fs::File::open(folder.path("binlog.000009")).unwrap();
    let ran: Ran = folder.binlogz(["expand", "--output", "-", "-"]).stdin(stdin).output().unwrap().into();
    assert!(ran.stdout == log);
}

#[test]
fn a_large_transaction_comes_through_a_pipe() {
    let folder = Folder::new();
    // 40 MB in one transaction: it is not held in memory.
    let log = std::fs::read(binlogz_testkit::corpus::path("binlog.000002")).unwrap();
    let plain = folder.run_with(["expand", "--output", "-", "-"], &log);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    folder.put("log", &log);
    folder.run(["expand", "--output", "from_file", "log"]);
    assert!(plain.stdout == folder.read("from_file"));
    let small = folder.run_with(["compress", "--output", "-", "-"], &plain.stdout);
    folder.put("small", &small.stdout);
    folder.run(["compress", "--output", "small_from_file", "from_file"]);
    assert!(small.stdout == folder.read("small_from_file"));
}

#[test]
fn a_reader_that_goes_away_is_a_quiet_success() {
    let folder = Folder::new();
    // Their output is longer than a pipe holds.
    folder.sample("plain", "binlog.000001");
    folder.sample("plain", "binlog.000005");
    for args in [
        &["expand", "--output", "-", "binlog.000001"][..],
        &["compress", "--level=1", "--output", "-", "binlog.000001"],
        &["events", "binlog.000005"],
    ] {
        let mut child = folder.spawn(args);
        let mut first = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let mut stderr = String::new();
        assert_eq!(wait_for(&mut child, LIMIT), Some(0), "{args:?}");
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(stderr, "", "{args:?}");
    }
    // A report whose reader is gone does not stop the work.
    let mut child = folder.spawn(["compress", "--output", "small", "binlog.000001"]);
    drop(child.stdout.take());
    assert_eq!(wait_for(&mut child, LIMIT), Some(0));
    assert!(!folder.read("small").is_empty());
}

/// Writes all bytes to a process and keeps its input open: the rest never comes.
fn feed_and_wait(child: &mut Child, bytes: Vec<u8>) -> thread::JoinHandle<ChildStdin> {
    let mut stdin = child.stdin.take().unwrap();
    thread::spawn(move || {
        // The process may end before it read all.
        let _ = stdin.write_all(&bytes);
        stdin
    })
}

/// Logs one after the other. Each is passed on when the next one begins, so with the last one a run waits for
/// more.
fn logs(count: usize) -> Vec<u8> {
    sample("plain", "binlog.000001").repeat(count)
}

#[test]
fn a_reader_that_goes_away_ends_a_run_whose_input_never_ends() {
    let folder = Folder::new();
    for jobs in ["1", "2"] {
        let mut child = folder.spawn(["expand", "--jobs", jobs, "--output", "-", "-"]);
        let input = feed_and_wait(&mut child, logs(3));
        let mut first = [0; 100];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        // Until the run waits for both.
        thread::sleep(Duration::from_millis(200));
        drop(stdout);
        assert_eq!(wait_for(&mut child, LIMIT), Some(0));
        drop(input.join().unwrap());
    }
}

#[test]
fn damage_ends_a_run_whose_input_never_ends() {
    let folder = Folder::new();
    let mut logs = logs(3);
    let damaged = logs.len() / 2;
    logs[damaged] ^= 1;
    for jobs in ["1", "2"] {
        for command in [
            &["compress", "--output", "small", "-", "--jobs", jobs][..],
            &["expand", "--output", "small", "-", "--jobs", jobs],
            &["verify", "-", "--jobs", jobs],
        ] {
            let mut child = folder.spawn(command);
            let input = feed_and_wait(&mut child, logs.clone());
            assert_eq!(wait_for(&mut child, LIMIT), Some(2), "{command:?}");
            drop(input.join().unwrap());
            assert_eq!(folder.names(), [""; 0], "{command:?}");
        }
    }
}

#[test]
fn a_difference_ends_a_comparison_whose_input_never_ends() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let mut child = folder.spawn(["verify", "--same", "binlog.000009", "--", "-"]);
    // A little more than is told at a time.
    let input = feed_and_wait(&mut child, logs(7));
    assert_eq!(wait_for(&mut child, LIMIT), Some(1));
    drop(input.join().unwrap());
}

#[test]
fn closed_standard_streams() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let binlogz = env!("CARGO_BIN_EXE_binlogz");
    for (script, code) in
        [("compress --output a binlog.000009 >&- 2>&-", 0), ("verify - <&-", 2), ("verify nothing 2>&-", 2)]
    {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("{binlogz} {script}")]).current_dir(folder.path("."));
        let output = shell.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let ran = Ran::from(output);
        assert_eq!(ran.code, Some(code), "{script}: {}", ran.stderr);
    }
    assert_eq!(folder.read("a").len(), 5857);
}
