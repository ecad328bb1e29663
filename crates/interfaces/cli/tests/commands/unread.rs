//! Issue 42, items 1 to 3: changes that can't be read are named by every command, which goes on and ends with exit code 1.

use crate::common::Folder;
use binlogz_binlog::EventType;
use binlogz_binlog::event::{Incident, IncidentEvent};
use binlogz_testkit::builder::{LogBuilder, Release};
use binlogz_testkit::corpus::mariadb;

/// Commands that read changes, with their log last; what each shows of a row change.
const READERS: [(&[&str], &str); 7] = [
    (&["dump", "--format=jsonl"], "\"type\":\"insert\""),
    // The builder's tables have no names of columns, which these formats need.
    (&["dump", "--format=debezium"], ""),
    (&["dump", "--format=maxwell"], ""),
    (&["stats"], "t"),
    (&["verify"], ""),
    (&["undo"], "3 rows"),
    (&["redo"], "3 rows"),
];

#[test]
fn compressed_rows_of_mariadb_are_in_every_output() {
    let folder = Folder::new();
    folder.put("maria", mariadb("compressed.000001"));
    let lines = folder.run(["dump", "--format=jsonl", "maria"]);
    assert_eq!(lines.code, Some(0), "{}", lines.stderr);
    let count = |text: &str, what: &str| text.matches(what).count();
    let kinds =
        ["insert", "update", "delete"].map(|kind| count(lines.text(), &format!("\"type\":\"{kind}\"")));
    assert_eq!(kinds, [4, 5, 4]);
    assert!(lines.text().contains("alter table t add column a_long_column_name"), "{}", lines.text());

    let text = folder.run(["dump", "-v", "maria"]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    let kinds = ["INSERT INTO", "UPDATE", "DELETE FROM"]
        .map(|kind| count(text.text(), &format!("### {kind} `d`.`t`")));
    assert_eq!(kinds, [4, 5, 4]);
    assert!(text.text().contains("alter table t add column a_long_column_name"));

    let verified = folder.run(["verify", "--format=json", "maria"]);
    assert_eq!(verified.code, Some(0), "{}", verified.text());
    assert!(verified.text().contains("\"rows\": 13"), "{}", verified.text());

    // The DDL that was compressed is named, as a plain one is.
    let undone = folder.run(["undo", "maria"]);
    assert_eq!(undone.code, Some(1));
    assert!(undone.text().contains("alter table t add column a_long_column_name"), "{}", undone.text());
}

#[test]
fn an_incident_and_an_unknown_event_are_named_by_every_reader() {
    let incident =
        IncidentEvent { incident: Incident::LOST_EVENTS, message: b"no disk", inner_checksum: None };
    let mut builder = LogBuilder::new(Release { types: 120, ..Release::MYSQL_9_7 });
    builder.transaction(&[b"one"]);
    builder.event(EventType::INCIDENT, &incident.encode().unwrap());
    builder.transaction(&[b"two"]);
    builder.event(EventType(99), b"tomorrow");
    builder.transaction(&[b"three"]);
    let folder = Folder::new();
    folder.put("log", builder.take());
    for (command, shows) in READERS {
        let ran = folder.run(command.iter().chain(&["log"]));
        assert_eq!(ran.code, Some(1), "{command:?}: {}", ran.stderr);
        let told = format!("{}{}", ran.text(), ran.stderr);
        assert!(told.contains("the server lost changes here (LOST_EVENTS: no disk)"), "{command:?}: {told}");
        assert!(told.contains("type 0x63 event: "), "{command:?}: {told}");
        assert!(ran.text().contains(shows), "it goes on: {command:?}: {}", ran.text());
    }
    // The text shows the incident as mysqlbinlog's does.
    let text = folder.run(["dump", "-v", "log"]);
    assert_eq!(text.code, Some(1), "{}", text.stderr);
    assert!(text.text().contains("# Incident: LOST_EVENTS"), "{}", text.text());
    assert!(
        !text.stderr.contains("lost changes") && text.stderr.contains("type 0x63 event: "),
        "{}",
        text.stderr
    );
}

#[test]
fn what_was_not_asked_for_is_not_complained_of() {
    let mut builder = LogBuilder::new(Release { types: 120, ..Release::MYSQL_9_7 });
    builder.transaction(&[b"one"]);
    let end = builder.offset();
    builder.event(EventType(99), b"tomorrow");
    builder.transaction(&[b"two"]);
    let folder = Folder::new();
    folder.put("log", builder.take());
    let stop = format!("--stop-position={end}");
    for command in [&["dump", "-v"][..], &["dump", "--format=jsonl"], &["undo"]] {
        let ran = folder.run(command.iter().copied().chain([stop.as_str(), "log"]));
        // `undo` leaves rows of tables whose columns have no names.
        assert!(ran.code == Some(0) || command[0] == "undo", "{command:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("type 0x63 event"), "{command:?}: {}", ran.stderr);
    }
}

#[test]
fn tables_that_can_be_read_come_out_beside_one_that_cannot() {
    let folder = Folder::new();
    folder.put("old", mariadb("old-temporals.000001"));
    let ran = folder.run(["dump", "--format=jsonl", "old"]);
    assert_eq!(ran.code, Some(1));
    for table in ["o.o2", "o.o6"] {
        let named = ran.stderr.lines().filter(|line| line.contains(&format!(" event of {table}: "))).count();
        assert_eq!(named, 1, "{table}: {}", ran.stderr);
    }
    assert_eq!(ran.text().matches("\"type\":\"insert\"").count(), 3, "{}", ran.text());
    let one = folder.run(["dump", "--format=jsonl", "--table=o.plain", "old"]);
    assert_eq!((one.code, one.stderr.as_str()), (Some(0), ""));
}
