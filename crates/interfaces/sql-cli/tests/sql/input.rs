//! Inputs other than files: encrypted logs, logs in an archive, a log in use.

use std::fs;

use binlogz_testkit::corpus;

use crate::common::{Ran, SHAPES, ask, sql};

const COUNT: &str = "SELECT count(*) AS rows FROM changes";

#[test]
fn an_encrypted_log_is_read_with_its_keyring() {
    let statement = "SELECT count(*) AS events, sum(size) AS bytes FROM events";
    let plain = ask(statement, &[corpus::path("encrypted-binlog.000001.plain")]).ok();
    let encrypted = corpus::path("encrypted-binlog.000001");
    let keyring = corpus::path("keyring.json");
    let mut command = sql(["--format", "csv", "--keyring"]);
    let ran: Ran = command.arg(keyring).arg(statement).arg(&encrypted).output().unwrap().into();
    assert_eq!(ran.ok(), plain);
    let without = ask(statement, std::slice::from_ref(&encrypted)).failure();
    assert!(without.ends_with("--keyring FILE names it"), "{without}");
}

#[test]
fn one_log_of_an_archive_is_one_log() {
    let alone = ask(COUNT, &[SHAPES.archive.join("binlog.000002")]).ok();
    assert_eq!(alone, ask(COUNT, std::slice::from_ref(&SHAPES.plain[1])).ok());
}

#[test]
fn a_log_in_use_ends_with_its_last_event_and_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(&SHAPES.plain[1]).unwrap();
    // The flag of a log that its server has open.
    bytes[4 + 17] |= 1;
    let path = folder.path().join("binlog.000002");
    fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
    let ran = ask(COUNT, std::slice::from_ref(&path));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.error.starts_with("binlogz-sql: warning: "), "{}", ran.error);
    assert!(ran.error.contains("binlog.000002 at "), "{}", ran.error);
    assert_eq!(ran.error.lines().count(), 1);
}
