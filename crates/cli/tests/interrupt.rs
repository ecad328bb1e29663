//! An interrupted run leaves nothing behind and dies of the signal, as its caller expects.

mod common;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use common::{Folder, sample};

#[test]
fn every_signal_that_ends_a_run() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let folder = Folder::new();
        let mut child = folder.spawn(["compress", "--positions", "map", "--output", "small", "-"]);
        // It waits for the rest of its input.
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&sample("plain", "binlog.000001").repeat(40)).unwrap();
        let start = Instant::now();
        while folder.names().len() < 2 {
            assert!(start.elapsed() < Duration::from_secs(60), "no temporary files: {:?}", folder.names());
            thread::sleep(Duration::from_millis(5));
        }
        let kill = Command::new("kill").args(["-s", name, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(number), "{status}");
        assert_eq!(folder.names(), [""; 0], "SIG{name}");
    }
}

#[test]
fn a_restore_that_is_interrupted_leaves_nothing() {
    let folder = Folder::new();
    folder.sample("plain", "binlog.000004");
    folder.run(["archive", "create", "--to", "arc", "binlog.000004"]).is_done();
    // It waits until something is written there, which never happens.
    let segment = folder.segment("arc");
    std::fs::remove_file(&segment).unwrap();
    assert!(Command::new("mkfifo").arg(&segment).status().unwrap().success());
    let mut child = folder.spawn(["archive", "restore", "--to", "back", "arc"]);
    let left = || std::fs::read_dir(folder.path("back")).map_or(0, Iterator::count);
    let start = Instant::now();
    while left() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no temporary file");
        thread::sleep(Duration::from_millis(5));
    }
    let kill = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert_eq!(left(), 0);
}
