//! The output of `incident` over the samples, and its errors. What it prints stands in `incident/`; UPDATE_GOLDEN=1 writes it anew.

use std::fs;
use std::path::PathBuf;

use crate::common::{Folder, Ran};

/// One with rows, and one with statements.
const LOGS: [&str; 2] = ["binlog.000006", "binlog.000007"];

fn folder() -> Folder {
    let folder = Folder::with_sample("plain", LOGS[0]);
    folder.sample("plain", LOGS[1]);
    folder
}

fn run(args: &[&str]) -> Ran {
    let args = ["incident"].iter().chain(args).copied();
    folder().binlogz(args).env("TZ", "America/New_York").output().unwrap().into()
}

/// Compares the output with the file of this name.
fn is_golden(ran: &Ran, name: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/commands/incident").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, ran.text()).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!((ran.code, ran.text(), ran.stderr.as_str()), (Some(0), expected.as_str(), ""));
}

#[test]
fn the_worst_comes_first() {
    is_golden(&run(&[LOGS[0]]), "list.txt");
    is_golden(&run(&["--last", "365d", LOGS[0], LOGS[1]]), "list_of_two.txt");
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let args = ["--format", "json", "--last", "365d", LOGS[0], LOGS[1]];
    let one = run(&[&args[..], &["--jobs", "1"]].concat());
    let five = run(&[&args[..], &["--jobs", "5"]].concat());
    assert_eq!((one.code, one.text()), (Some(0), five.text()));
}

#[test]
fn json_for_machines() {
    is_golden(&run(&["--format", "json", "--last", "365d", "--top", "2", LOGS[0]]), "list.json");
}

#[test]
fn a_window_without_a_transaction_is_a_negative_answer() {
    let ran = run(&["--start-datetime", "2001-01-01 00:00", "--stop-datetime", "2001-01-02 00:00", LOGS[0]]);
    let said = "binlogz: warning: no transaction of these logs is in the window\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), said));
    assert!(ran.text().contains("none in the window"), "{}", ran.text());
}

#[test]
fn what_cant_be_is_refused() {
    let ran = run(&["--last", "1h", "--start-datetime", "2026-01-01 00:00", LOGS[0]]);
    assert_eq!(ran.code, Some(2));
    let ran = run(&["binlog.000042"]);
    assert_eq!((ran.code, ran.text()), (Some(2), ""));
    assert!(ran.stderr.starts_with("binlogz: binlog.000042: "), "{}", ran.stderr);
}
