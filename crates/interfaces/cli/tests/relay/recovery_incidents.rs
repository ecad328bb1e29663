//! `recover` over incidents, by which a server says that its log lacks changes.

use std::fs;
use std::path::Path;

use binlogz_binlog::EventType;
use binlogz_testkit::spliced::{events_of, incident_like, log_of, type_of};
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::recovery::{is_free, settings_of};

/// The log, with an incident before its fourth transaction, and one instead of what its sixth one did.
fn with_incidents(log: &[u8]) -> Vec<u8> {
    let mut with = Vec::new();
    let mut transaction = 0;
    for event in events_of(log) {
        let begins = type_of(event) == EventType::GTID;
        transaction += usize::from(begins);
        match (transaction, begins) {
            (4, true) => with.extend([incident_like(event), event.to_vec()]),
            (6, true) => with.extend([event.to_vec(), incident_like(event)]),
            (6, false) => {}
            _ => with.push(event.to_vec()),
        }
    }
    log_of(log, with)
}

fn recover(folder: &Folder, server: &MysqlSandbox, log: &Path, more: &[&str]) -> Ran {
    let to = format!("root@{}", server.socket().display());
    let mut command = folder.binlogz(["recover", "--no-defaults", "--work-dir", ".", "--to", &to]);
    command.args(more).arg("--from").arg(log).output().unwrap().into()
}

#[test]
fn recovery_crosses_an_incident_only_where_it_is_told_to() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let fresh = || {
        let server = mysql.sandbox().start().unwrap();
        server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
        server
    };
    let source = fresh();
    source.sql("CREATE DATABASE w; CREATE TABLE w.t (id INT PRIMARY KEY)").unwrap();
    for id in 3..=10 {
        source.sql(&format!("INSERT INTO w.t VALUES ({id})")).unwrap();
    }
    let uuid = source.server_uuid().unwrap();
    let log = source.flush_binary_logs().unwrap();
    let name = log.file_name().unwrap().to_str().unwrap();
    let log = folder.put(name, with_incidents(&fs::read(&log).unwrap()));
    let ids = |server: &MysqlSandbox| server.sql("SELECT GROUP_CONCAT(id ORDER BY id) FROM w.t").unwrap();

    let server = fresh();
    let settings = settings_of(&server);
    let named = |ran: &Ran, count: usize| {
        let line = "Incident event: the server lost changes here (LOST_EVENTS: no disk)";
        let lines = ran.stderr.lines().filter(|told| told.contains(line) && told.contains(name));
        assert_eq!((ran.code, lines.count()), (Some(1), count), "{}{}", ran.text(), ran.stderr);
    };
    for more in [&["--check"][..], &[]] {
        let ran = recover(&folder, &server, &log, more);
        // Two alike have one line.
        named(&ran, 1);
        assert!(ran.stderr.contains("(and 1 more like it)"), "{}", ran.stderr);
        assert!(ran.stderr.contains("nothing is changed: the logs lack changes"), "{}", ran.stderr);
        assert_eq!(server.gtid_executed().unwrap().trim(), "");
        is_free(&server, &settings);
    }

    // Up to the first of them nothing is missing.
    let third = format!("{uuid}:3");
    recover(&folder, &server, &log, &["--until-gtid", &third]).is_done();
    assert_eq!(ids(&server), "3\n");

    // Over the first alone; then the server is as a backup that was made between the two.
    let fifth = format!("{uuid}:5");
    named(&recover(&folder, &server, &log, &["--until-gtid", &fifth]), 1);
    named(&recover(&folder, &server, &log, &["--until-gtid", &fifth, "--over-incidents"]), 1);
    assert_eq!(ids(&server), "3,4,5\n");
    let ran = recover(&folder, &server, &log, &["--check"]);
    named(&ran, 1);
    assert!(!ran.stderr.contains("more like it"), "{}", ran.stderr);

    named(&recover(&folder, &server, &log, &["--over-incidents"]), 1);
    assert_eq!(ids(&server), "3,4,5,7,8,9,10\n");
    assert_eq!(server.gtid_executed().unwrap().trim(), format!("{uuid}:1-10"));
    is_free(&server, &settings);
    recover(&folder, &server, &log, &[]).is_done();

    // A drill ends before it compares anything, unless it may cross them: then the lost row shows in its table.
    let drill = |more: &[&str]| -> Ran {
        let from = format!("root@{}", source.socket().display());
        let mut command =
            folder.binlogz(["recover", "--no-defaults", "--work-dir", ".", "--verify", "--source", &from]);
        command.args(more).arg("--from").arg(&log).output().unwrap().into()
    };
    let ran = drill(&[]);
    named(&ran, 1);
    assert!(!ran.text().contains("tables are equal"), "{}", ran.text());
    let ran = drill(&["--over-incidents"]);
    named(&ran, 1);
    assert!(ran.text().contains("w.t: differs: source "), "{}", ran.text());
    assert!(ran.text().ends_with("0 of 1 tables are equal\n"), "{}", ran.text());
}
