//! Where results may go, what they may replace, and that they appear whole or not at all.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::common::{Folder, Ran, sample};

/// A folder with `binlog.000009` and another file in its output's place.
fn occupied() -> Folder {
    let folder = Folder::with_sample("plain", "binlog.000009");
    folder.put("small", "precious");
    folder
}

#[test]
fn nothing_is_replaced_without_force() {
    let folder = occupied();
    let before = folder.names();
    folder
        .run(["compress", "--output", "small", "binlog.000009"])
        .fails("small: exists already; --force replaces it");
    folder
        .run(["compress", "--positions", "small", "--output", "x", "binlog.000009"])
        .fails("small: exists already; --force replaces it");
    assert_eq!(folder.read("small"), b"precious");
    assert_eq!(folder.names(), before);
    let ran = folder.run(["compress", "--force", "--output", "small", "binlog.000009"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(folder.read("small").len(), 5857);
    assert_eq!(folder.names(), before);
}

#[test]
fn nothing_is_replaced_that_came_while_the_log_was_done() {
    let folder = Folder::new();
    let log = sample("plain", "binlog.000009");
    let mut child = folder.spawn(["compress", "--output", "small", "-"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&log).unwrap();
    while folder.names().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    folder.put("small", "precious");
    drop(stdin);
    Ran::from(child.wait_with_output().unwrap()).fails("small: exists already; --force replaces it");
    assert_eq!(folder.read("small"), b"precious");
    assert_eq!(folder.names(), ["small"]);
}

#[test]
fn a_link_that_leads_nowhere_is_something_too() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    symlink("nowhere", folder.path("link")).unwrap();
    folder
        .run(["compress", "--output", "link", "binlog.000009"])
        .fails("link: exists already; --force replaces it");
}

#[test]
fn an_input_is_never_written_over() {
    let folder = occupied();
    let log = folder.read("binlog.000009");
    fs::hard_link(folder.path("binlog.000009"), folder.path("hard")).unwrap();
    symlink("binlog.000009", folder.path("soft")).unwrap();
    for output in ["binlog.000009", "./binlog.000009", "hard", "soft"] {
        folder
            .run(["compress", "--force", "--output", output, "binlog.000009"])
            .fails(&format!("{output}: is an input; a log is never written over"));
        folder
            .run(["compress", "--force", "--positions", output, "--output", "x", "binlog.000009"])
            .fails(&format!("{output}: is an input; a log is never written over"));
    }
    folder
        .run(["compress", "--force", "--output", ".", "binlog.000009"])
        .fails("./binlog.000009: is an input; a log is never written over");
    folder
        .run(["compress", "--positions", "x", "--output", "x", "binlog.000009"])
        .fails("x: is the output, too; --positions needs a file of its own");
    assert!(folder.read("binlog.000009") == log);
}

#[test]
fn a_servers_own_log_is_never_replaced() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    folder.put("data/binlog.000009", "live");
    folder.put("data/other", "not listed");
    folder.put("data/binlog.index", "./binlog.000008\n./binlog.000009\n");
    for args in
        [&["compress", "--force", "--output", "data"][..], &["expand", "--output", "data/binlog.000009"]]
    {
        folder.run(args.iter().chain(&["binlog.000009"])).fails(
            "data/binlog.000009: data/binlog.index lists it: a server's own log is never replaced, not even with \
             --force",
        );
    }
    assert_eq!(folder.read("data/binlog.000009"), b"live");
    let ran = folder.run(["compress", "--force", "--output", "data/other", "binlog.000009"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn places_that_can_not_be() {
    let folder = Folder::with_sample("plain", "binlog.000005");
    folder.sample("plain", "binlog.000009");
    folder.put("copy/binlog.000009", "x");
    fs::create_dir(folder.path("out")).unwrap();
    fs::create_dir(folder.path("out/binlog.000009")).unwrap();
    folder
        .run(["compress", "--output", "nodir", "binlog.000005", "binlog.000009"])
        .fails("nodir: there is no such folder; mkdir nodir makes it");
    folder
        .run(["compress", "--output", "nodir/", "binlog.000009"])
        .fails("nodir/: there is no such folder; mkdir nodir/ makes it");
    folder
        .run(["compress", "--output", "no/dir/small", "binlog.000009"])
        .fails("no/dir/small: there is no folder no/dir; mkdir -p no/dir makes it");
    folder
        .run(["compress", "--output", "copy/binlog.000009", "binlog.000005", "binlog.000009"])
        .fails("copy/binlog.000009: is no folder, expected one for 2 logs");
    folder
        .run(["compress", "--output", "-", "binlog.000005", "binlog.000009"])
        .fails("standard output: can't take 2 logs, expected one; a folder takes many");
    folder
        .run(["compress", "--output", "out", "binlog.000009", "copy/binlog.000009"])
        .fails("out/binlog.000009: two logs of this name would go there");
    folder
        .run(["compress", "--output", "out", "-"])
        .fails("standard input: has no file name to keep; --output must be a file");
    folder
        .run(["compress", "--output", "out", "binlog.000009"])
        .fails("out/binlog.000009: is a folder, expected a file");
    folder
        .run(["compress", "--output", "none/small", "binlog.000009"])
        .fails("none/small: there is no folder none; mkdir -p none makes it");
    folder
        .run(["compress", "--output", "binlog.000005/small", "binlog.000009"])
        .fails("binlog.000005/small: Not a directory (os error 20)");
    assert_eq!(folder.names(), ["binlog.000005", "binlog.000009", "copy", "out"]);
}

#[test]
fn devices_are_written_as_they_are() {
    let folder = Folder::with_sample("plain", "binlog.000005");
    let ran = folder.run(["compress", "--output", "/dev/null", "binlog.000005"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.text().contains("114.0 KiB"), "{}", ran.text());
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_full_disk() {
    let folder = Folder::with_sample("plain", "binlog.000005");
    folder
        .run(["compress", "--output", "/dev/full", "binlog.000005"])
        .fails("/dev/full: write: No space left on device (os error 28)");
    folder
        .run(["compress", "--positions", "/dev/full", "--output", "small", "binlog.000005"])
        .fails("/dev/full: write: No space left on device (os error 28)");
    let full = |args: &[&str]| -> Ran {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        folder.binlogz(args).stdout(full).stderr(Stdio::piped()).output().unwrap().into()
    };
    full(&["expand", "--output", "-", "binlog.000005"])
        .fails("standard output: write: No space left on device (os error 28)");
    full(&["events", "binlog.000005"]).fails("standard output: write: No space left on device (os error 28)");
    full(&["verify", "binlog.000005"]).fails("standard output: write: No space left on device (os error 28)");
    assert_eq!(folder.names(), ["binlog.000005"]);
    full(&["compress", "--output", "small", "binlog.000005"])
        .fails("write the report: No space left on device (os error 28)");
    // The log was done by then.
    assert_eq!(folder.names(), ["binlog.000005", "small"]);
}

#[test]
fn a_file_beyond_the_size_limit_of_the_user() {
    let folder = Folder::with_sample("plain", "binlog.000005");
    let binlogz = env!("CARGO_BIN_EXE_binlogz");
    // 8 blocks of 512 bytes or a kilobyte: less than the 116 kB that are to be written. The signal that comes
    // with it is ignored, so that a write fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f 8; exec {binlogz} compress --output small binlog.000005");
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder.path("."))
        .output()
        .unwrap();
    Ran::from(output).fails("small: write: File too large (os error 27)");
    assert_eq!(folder.names(), ["binlog.000005"]);
}

#[test]
fn no_room_for_temporary_files() {
    let folder = Folder::new();
    // 40 MB in one transaction: more than is kept in memory.
    let log = fs::read(binlogz_testkit::corpus::path("binlog.000002")).unwrap();
    folder.put("log", log);
    for workers in ["1", "2"] {
        let ran: Ran = folder
            .binlogz(["expand", "--jobs", workers, "--output", "plain", "log"])
            .env("TMPDIR", "/nonexistent")
            .output()
            .unwrap()
            .into();
        assert_eq!(ran.code, Some(2));
        assert!(
            ran.stderr.starts_with(
                "binlogz: log: spill to a temporary file in /nonexistent (TMPDIR names another place): No such file"
            ),
            "{}",
            ran.stderr
        );
        assert_eq!(folder.names(), ["log"]);
    }
}
