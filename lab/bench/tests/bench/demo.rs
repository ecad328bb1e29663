//! `binlogz demo` to its end, and ended by Ctrl-C: it leaves neither a process nor a file.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use binlogz_testkit::tool::skip;
use binlogz_testkit::{Tool, require_tool};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Folder, PROGRAM, terminal};

/// Two busy cores, and more.
const PATIENCE: Duration = Duration::from_secs(120);

/// Columns of a terminal that nobody made wider.
const COLUMNS: usize = 80;

/// Whether the program is built that the demo shows: `cargo test -p binlogz-bench` alone doesn't build it.
fn binlogz_is_beside() -> bool {
    let is_there = Path::new(PROGRAM).with_file_name("binlogz").exists();
    if !is_there {
        skip("binlogz isn't built, which the demo shows: cargo build --package binlogz");
    }
    is_there
}

/// Processes whose command names this folder, as servers, relay and guards do.
fn processes(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").unwrap().flatten() {
        // Gone meanwhile, or none.
        let Ok(command) = fs::read(process.path().join("cmdline")) else { continue };
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(folder) {
            found.push(command);
        }
    }
    found
}

/// Processes that end after the demo have ended, and all files are gone.
#[track_caller]
fn leaves_nothing(temporary: &Path) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let files: Vec<_> = fs::read_dir(temporary).unwrap().map(|entry| entry.unwrap().path()).collect();
        let processes = processes(temporary);
        if files.is_empty() && processes.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "left: {files:?}, {processes:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn it_ends_with_a_restored_row_and_leaves_nothing() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    if !binlogz_is_beside() {
        return;
    }
    let folder = Folder::new();
    let temporary = folder.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let Some(text) = terminal::shown(&folder, COLUMNS, "demo --once", &[("TMPDIR", &temporary)]) else {
        return;
    };
    let drawn = text;
    let text = drawn.replace('\r', "");
    for expected in [
        "Last_Error: Relay log read failure: Could not parse relay log event entry.",
        "mariadb> SELECT COUNT(*) FROM shop.orders\n  500\n",
        "source    127.0.0.1:",
        "\"before\":{\"id\":42,\"customer\":\"customer 42\"",
        "INSERT INTO `shop`.`orders`",
        "mariadb> SELECT id, customer FROM shop.orders WHERE id = 42\n  42\tcustomer 42\n",
        "binlog.000001 is archived",
    ] {
        assert!(text.contains(expected), "{expected:?} is not in\n{text}");
    }
    // Commands and statements to paste are not broken, nor what dump, undo and the relay's log print.
    const WHOLE: [&str; 7] = ["$ ", "mysql> ", "mariadb> ", "-- ", "{\"", "INSERT INTO ", "binlogz: "];
    let is_whole = |line: &String| {
        let line = line.trim_start();
        WHOLE.iter().any(|begin| line.starts_with(begin)) || !line.contains(' ')
    };
    let wider: Vec<_> = terminal::wider(&drawn, COLUMNS).into_iter().filter(|line| !is_whole(line)).collect();
    assert!(wider.is_empty(), "{wider:#?}");
    // At the source after the undo, and in the restored server.
    let order = "mysql> SELECT id, customer FROM shop.orders WHERE id = 42\n  42\tcustomer 42\n";
    assert_eq!(text.matches(order).count(), 2, "{text}");
    leaves_nothing(&temporary);
}

#[test]
fn ctrl_c_leaves_nothing() {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    if !binlogz_is_beside() {
        return;
    }
    let folder = Folder::new();
    let temporary = folder.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let mut command = folder.binlogz(["demo"]);
    let mut demo = command.env("TMPDIR", &temporary).stdout(Stdio::piped()).spawn().unwrap();
    // A source, a replica and the relay are up by then.
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let said: Vec<_> = lines.by_ref().take_while(|line| !line.contains("status on http://")).collect();
    assert!(processes(&temporary).len() >= 4, "{said:?}, {:?}", processes(&temporary));
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    lines.for_each(drop);
    assert_eq!(demo.wait().unwrap().signal(), Some(2), "{said:?}");
    leaves_nothing(&temporary);
}
