//! An interrupted run leaves no files and dies of the signal, as its caller expects.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_testkit::faults::{Call, CallFault, FaultRule, FaultShim};

use crate::common::{Folder, Ran, sample};

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
    let folder = Folder::with_sample("plain", "binlog.000004");
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

/// Files below a folder, hidden ones too.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn a_file_has_its_name_only_once_it_is_synced() {
    const EIO: i32 = 5;
    let Some(shim) = FaultShim::require() else { return };
    let folder = Folder::with_sample("plain", "binlog.000005");
    std::fs::create_dir(folder.path("out")).unwrap();
    let mut faults = shim.faults(&folder.path("faults"), 1).unwrap();
    let in_out = |fault| [FaultRule::new(Call::Sync, fault).below(&folder.path("out"))];
    let commands: [&[&str]; 3] = [
        &["compress", "--output", "out/small", "binlog.000005"],
        &["archive", "create", "--to", "out/arc", "binlog.000005"],
        &["advise", "--html", "out/page.html", "binlog.000005"],
    ];
    for command in commands {
        faults.set(&in_out(CallFault::Delay(Duration::from_secs(600)))).unwrap();
        let mut child = folder.binlogz(command).envs(faults.env()).stdout(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        while faults.matched().unwrap() == [0] {
            assert!(start.elapsed() < Duration::from_secs(60), "{command:?}: no sync");
            thread::sleep(Duration::from_millis(5));
        }
        let files = files_below(&folder.path("out"));
        let is_temporary =
            |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".binlogz-");
        assert!(files.len() == 1 && files.iter().all(is_temporary), "{command:?}: {files:?}");
        let kill = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        assert_eq!(child.wait().unwrap().signal(), Some(2), "{command:?}");
        assert!(files_below(&folder.path("out")).is_empty(), "{command:?}");

        faults.set(&in_out(CallFault::Errno(EIO))).unwrap();
        let ran: Ran = folder.binlogz(command).envs(faults.env()).output().unwrap().into();
        assert!(ran.code == Some(2) && ran.stderr.contains("Input/output error"), "{command:?}: {ran:?}");
        assert!(files_below(&folder.path("out")).is_empty(), "{command:?}");
    }
}
