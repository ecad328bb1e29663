//! Tables on a terminal: no wider than it is, and with everything that they show without one.

use std::path::Path;
use std::process::Command;

use crate::common::{Folder, PROGRAM};

/// The command's output on a terminal of this many columns, without whatever is gone at its end.
fn on_terminal(folder: &Folder, columns: usize, command: &str) -> Option<String> {
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("SKIPPED: script is not here, which makes a terminal");
        return None;
    }
    let binlogz = env!("CARGO_BIN_EXE_binlogz");
    let line = format!("stty cols {columns} rows 50; exec {binlogz} {command} 2>/dev/null");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder.path(""));
    script.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("BINLOGZ_PAGER", "cat");
    let output = script.output().unwrap();
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

/// Formats that others define, line by line: mysqlbinlog, the mysql client, shells and man; and `rows`, a line for each value.
const NOT_OURS: [&str; 7] = ["dump", "undo", "redo", "rows", "completions", "man", "archive cat"];

/// Commands that ask a server or a relay: see `terminal_servers` and the tests of the demo, of bench and of SQL. Commands
/// that serve: see `terminal_serving`.
const ELSEWHERE: [&str; 13] = [
    "sql",
    "export",
    "table-at",
    "recover",
    "doctor",
    "bench",
    "demo",
    "archive serve",
    "relay run",
    "relay check-config",
    "relay status",
    "relay doctor",
    "relay reload",
];

/// A real run of each command that needs no server.
const RUNS: [&str; 35] = [
    "compress --force --output small var/lib/mysql/binlog.000001 var/lib/mysql/binlog.000004",
    "expand --force --output back small/binlog.000001 small/binlog.000004",
    "verify var/lib/mysql/binlog.000001 small/binlog.000004 binlog.index",
    "verify --same var/lib/mysql/binlog.000004 -- small/binlog.000004",
    "events binlog.000009",
    "events var/lib/mysql/binlog.000009 small/binlog.000004",
    "stats var/lib/mysql/binlog.000009 small/binlog.000004",
    "stats --by file small/binlog.000004",
    "advise --budget 1s var/lib/mysql/binlog.000004",
    "incident var/lib/mysql/binlog.000006",
    "archive create --to kept small/binlog.000001 small/binlog.000004",
    "archive list kept",
    "archive check kept",
    "archive restore --force --to restored kept",
    "archive cat kept",
    "dump binlog.000009",
    "undo binlog.000009",
    "redo binlog.000009",
    "fold --force --to folded binlog.000004",
    "relay init --force",
    "completions bash",
    "man archive create",
    "connection",
    "rows sbtest.sbtest1 --where \"@1>0\" binlog.000004",
    "rows mix.strings --where \"@1>0\" binlog.000006",
    "archive copy kept copied",
    "archive create --to copied binlog.000006",
    "archive erase --table mix.strings --where \"@1>0\" --rows copied",
    "archive merge --grace 0 copied",
    "archive merge --dry-run copied",
    "archive prune --keep 1d --dry-run copied",
    "archive list .",
    "archive remove --dry-run copied binlog.000001",
    "archive change-key --new-key-file new.key locked",
    "fleet --targets fleet.toml",
];

/// All commands that the help lists, with those below them.
pub(crate) fn commands(folder: &Folder) -> Vec<String> {
    let listed = |of: &str| -> Vec<String> {
        let ran = folder.run(["help"].into_iter().chain(of.split_whitespace()));
        let names = crate::common::help::listed(ran.text());
        names.into_iter().map(|name| format!("{of} {name}").trim().to_owned()).collect()
    };
    let commands = listed("");
    let below = ["archive", "relay"].into_iter().flat_map(listed);
    let commands: Vec<_> = commands.iter().cloned().chain(below).collect();
    assert!(commands.len() > 30, "{commands:?}");
    commands
}

/// A script that runs all of it: help in each form, and the real runs. A line of its own goes before each.
fn everything(folder: &Folder) -> String {
    // Programs of their own, beside this one where all are built; without them only `help` says something.
    let is_there = |command: &String| match command.as_str() {
        "sql" | "export" => Path::new(PROGRAM).with_file_name("binlogz-sql").exists(),
        "bench" | "demo" => Path::new(PROGRAM).with_file_name("binlogz-bench").exists(),
        _ => true,
    };
    let helps = commands(folder).into_iter().filter(is_there).flat_map(|command| {
        [format!("help {command}"), format!("{command} --help"), format!("{command} -h")]
    });
    let all: Vec<_> = helps.chain(RUNS.map(str::to_owned)).collect();
    let key = |command: &str| match command.starts_with("archive change-key") {
        true => "BINLOGZ_ARCHIVE_KEY_FILE=old.key ",
        false => "",
    };
    let line =
        |command: &String| format!("echo '@@ {command}'; {}binlogz {command} </dev/null\n", key(command));
    // By its name, as users call it.
    let folder = Path::new(env!("CARGO_BIN_EXE_binlogz")).parent().unwrap().display().to_string();
    let locked = "BINLOGZ_ARCHIVE_KEY_FILE=old.key binlogz archive create --to locked binlog.000009";
    let begin =
        format!("PATH={folder}:$PATH; mkdir -p small back; rm -rf copied locked; {locked} >/dev/null 2>&1\n");
    [begin].into_iter().chain(all.iter().map(line)).collect()
}

/// Puts the inputs that the runs need in addition to logs.
fn put_inputs(folder: &Folder) {
    folder.put("binlog.index", "./binlog.000001\n");
    folder.put_secret("old.key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    folder.put_secret("new.key", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=\n");
    folder.put(
        "fleet.toml",
        "[[archive]]\nto = \"kept\"\n[[relay]]\nname = \"the relay of the orders\"\nhttp = \"127.0.0.1:1\"\n",
    );
}

#[test]
fn every_command_is_run_on_a_terminal() {
    const GROUPS: [&str; 2] = ["archive", "relay"];
    let run = |command: &str| RUNS.iter().any(|line| format!("{line} ").starts_with(&format!("{command} ")));
    for command in commands(&Folder::new()).iter().filter(|command| !GROUPS.contains(&command.as_str())) {
        assert!(
            run(command) != ELSEWHERE.contains(&command.as_str()),
            "{command} is in none of the lists, or in both"
        );
    }
}

/// Without the codes for bold and colours.
pub(crate) fn without_codes(line: &str) -> String {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn no_command_is_wider_than_the_terminal() {
    let folder = folder();
    put_inputs(&folder);
    folder.put("all.sh", everything(&folder));
    for columns in [80, 120] {
        let line = format!("stty cols {columns} rows 50; sh all.sh 2>/dev/null");
        if !Path::new("/usr/bin/script").exists() {
            eprintln!("SKIPPED: script is not here, which makes a terminal");
            return;
        }
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder.path(""));
        script.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("BINLOGZ_PAGER", "cat").env("TERM", "xterm");
        let output = script.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).replace('\r', "");
        let parts: Vec<_> = text.split("@@ ").skip(1).collect();
        assert!(parts.len() > 100, "{text}");
        for part in parts {
            let (command, said) = part.split_once('\n').unwrap();
            assert!(!said.is_empty(), "{columns} columns: {command} says nothing");
            let is_help =
                command.starts_with("help ") || command.ends_with(" -h") || command.ends_with(" --help");
            // Help of dump has mysqlbinlog's layout.
            if command.contains("dump") || !is_help && NOT_OURS.iter().any(|name| command.starts_with(name)) {
                continue;
            }
            for line in said.lines().map(without_codes) {
                let is_too_wide = line.chars().count() > columns;
                assert!(!is_too_wide, "{columns} columns, {command}: {line:?}\n{said}");
            }
        }
    }
}

#[test]
fn nothing_acts_on_what_is_no_terminal() {
    let folder = folder();
    put_inputs(&folder);
    folder.put("all.sh", everything(&folder));
    let output =
        Command::new("sh").arg("all.sh").current_dir(folder.path("")).env("TERM", "xterm").output().unwrap();
    // An archive's logs are bytes.
    let text: String = String::from_utf8_lossy(&output.stdout)
        .split("@@ ")
        .filter(|part| !part.starts_with("archive cat kept\n"))
        .collect();
    assert!(text.lines().count() > 1000, "{text}");
    for text in [&*text, &String::from_utf8_lossy(&output.stderr)] {
        let acting: Vec<_> = text.lines().filter(|line| line.contains(['\u{1b}', '\r', '\u{8}'])).collect();
        assert!(acting.is_empty(), "{acting:?}");
    }
}

#[test]
fn long_tables_go_through_a_pager_and_short_ones_do_not() {
    let folder = folder();
    if !Path::new("/usr/bin/script").exists() {
        eprintln!("SKIPPED: script is not here, which makes a terminal");
        return;
    }
    let shown = |command: &str, pager: &str| {
        let line = format!("stty cols 100 rows 12; exec {} {command}", env!("CARGO_BIN_EXE_binlogz"));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder.path(""));
        script.env_remove("COLUMNS").env_remove("BINLOGZ_PAGER").env("SHELL", "/bin/sh").env("PAGER", pager);
        let output = script.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    };
    let quiet = "--quiet stats binlog.000009";
    let plain = shown(quiet, "cat");
    assert!(!plain.contains("paged:") && plain.lines().count() > 12, "{plain}");
    let paged = shown(quiet, "sed s/^/paged:/");
    assert_eq!(paged, plain.lines().map(|line| format!("paged:{line}\n")).collect::<String>());
    assert_eq!(
        shown("--quiet stats --by size binlog.000009", "sed s/^/paged:/").matches("paged:").count(),
        0
    );
    assert!(shown("events binlog.000009", "sed s/^/paged:/").starts_with("paged:  Log_name"));
    // A user who has seen enough leaves it.
    assert_eq!(shown("events binlog.000004", "head -1").lines().count(), 1);
    let piped = folder.binlogz(["stats", "binlog.000009"]).env("PAGER", "sed s/^/paged:/").output().unwrap();
    assert!(!String::from_utf8(piped.stdout).unwrap().contains("paged:"));
}
