//! Tables on a terminal: no wider than it is, with all that they have without one.

use std::path::Path;
use std::process::Command;

use crate::common::Folder;

/// What the command prints on a terminal of this many columns, without what is gone at its end.
fn on_terminal(folder: &Folder, columns: usize, command: &str) -> Option<String> {
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("SKIPPED: script is not here, which makes a terminal");
        return None;
    }
    let binlogz = env!("CARGO_BIN_EXE_binlogz");
    let line = format!("stty cols {columns} rows 50; exec {binlogz} {command} 2>/dev/null");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder.path(""));
    let output = script.env_remove("COLUMNS").env("SHELL", "/bin/sh").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    assert!(output.status.success(), "{command}: {text}");
    Some(text)
}

fn folder() -> Folder {
    let folder = Folder::new();
    for name in ["binlog.000001", "binlog.000004", "binlog.000006", "binlog.000009"] {
        let bytes = folder.sample("plain", name);
        folder.put(&format!("var/lib/mysql/{name}"), bytes);
    }
    folder
}

#[test]
fn no_table_is_wider_than_the_terminal() {
    let folder = folder();
    folder.run(["archive", "create", "--to", "kept", "binlog.000001", "binlog.000004"]).is_done();
    for columns in [80, 120] {
        for command in [
            "stats var/lib/mysql/binlog.000001 var/lib/mysql/binlog.000004 var/lib/mysql/binlog.000006",
            "stats --by table binlog.000006",
            "advise --budget 2s var/lib/mysql/binlog.000006 binlog.000001",
            "compress --force --output . var/lib/mysql/binlog.000001 var/lib/mysql/binlog.000004",
            "archive list kept",
        ] {
            let Some(text) = on_terminal(&folder, columns, command) else { return };
            assert!(text.lines().count() > 2, "{command}: {text}");
            for line in text.lines() {
                assert!(line.chars().count() <= columns, "{columns} columns, {command}: {line:?}\n{text}");
            }
        }
    }
}

#[test]
fn nothing_is_left_out_on_a_narrow_terminal() {
    let folder = folder();
    let command = "stats --by file binlog.000001 binlog.000004 binlog.000006 binlog.000009";
    let Some(narrow) = on_terminal(&folder, 80, command) else { return };
    let ran = folder.run(command.split(' '));
    for cell in ran.text().lines().skip(2).flat_map(|line| line.split("  ")) {
        assert!(narrow.contains(cell.trim()), "{cell:?} is not in\n{narrow}");
    }
}
