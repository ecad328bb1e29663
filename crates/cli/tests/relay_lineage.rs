//! The source's log is another one than that which is kept: RESET, while the relay follows and while it is down; a data
//! directory that was put back. No byte of one log goes out under the coordinates of another.

mod common;

use std::fs;

use binlogz_testkit::{Installed, MysqlSandbox, Tool, require_tool};
use common::Folder;
use common::configured::{Relay, accounts, url};

const RESET: &str = "RESET BINARY LOGS AND GTIDS";

fn config(folder: &Folder, store: &str) -> String {
    let account = accounts(folder, &[("reader", "form = \"received\"")]);
    format!("[store]\ndir = \"kept\"\n{store}\n[listen]\naddress = \"127.0.0.1:0\"\n{account}")
}

fn follows(replica: &MysqlSandbox, relay: &Relay) {
    replica
        .sql(&format!(
            "STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={},
             SOURCE_USER='reader', SOURCE_PASSWORD='secret', SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=100,
             SOURCE_SSL=0, SOURCE_AUTO_POSITION=1; START REPLICA",
            relay.port
        ))
        .unwrap();
}

fn has_all(replica: &MysqlSandbox, source: &MysqlSandbox, relay: &Relay) {
    replica
        .wait_for_source(source)
        .unwrap_or_else(|error| panic!("{error}\n{}", fs::read_to_string(&relay.log).unwrap()));
    assert_eq!(replica.checksum_tables("d").unwrap(), source.checksum_tables("d").unwrap());
    assert_eq!(replica.gtid_executed().unwrap(), source.gtid_executed().unwrap());
}

/// A replica with nothing of its own.
fn empty(replica: &MysqlSandbox) {
    replica
        .sql("STOP REPLICA; RESET REPLICA; DROP DATABASE IF EXISTS d; RESET BINARY LOGS AND GTIDS")
        .unwrap();
}

/// What mysqlbinlog --raw makes of a file of the relay's.
fn fetch(mysql: &Installed, folder: &Folder, relay: &Relay, name: &str) -> Result<Vec<u8>, String> {
    let into = folder.path("fetched-");
    let mut fetch = mysql.command("mysqlbinlog");
    fetch
        .args(["--no-defaults", "-R", "--raw", "--host=127.0.0.1", "--user=reader"])
        .env("MYSQL_PWD", "secret");
    fetch.args([
        format!("--port={}", relay.port),
        format!("--result-file={}", into.display()),
        name.to_owned(),
    ]);
    let output = fetch.output().unwrap();
    match output.status.success() {
        true => Ok(fs::read(folder.path(&format!("fetched-{name}"))).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

fn rows(from: u32, count: u32) -> String {
    let row = |id: u32| format!("INSERT INTO d.t VALUES ({id}, REPEAT('row {id} ', 20));");
    (from..from + count).map(row).collect()
}

const TABLE: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT);";

/// Waits until the relay has all transactions of the source.
fn has_gtids_of(relay: &mut Relay, source: &MysqlSandbox) {
    let all = source.gtid_executed().unwrap();
    relay.wait_for("last transaction", |relay| {
        (relay.status()["log"]["gtid_executed"] == all.as_str()).then_some(())
    });
}

/// What the replica was refused with, once it was.
fn refused(replica: &MysqlSandbox, relay: &mut Relay) -> String {
    relay.wait_for("refusal", |_| {
        let status = replica.replica_status().unwrap();
        (status["Last_IO_Errno"] == "13114").then(|| status["Last_IO_Error"].clone())
    })
}

/// The kept files of a log are the beginning of the source's, or all of them.
fn is_kept(folder: &Folder, log: &str, source: &MysqlSandbox) {
    for file in source.binlogs().unwrap() {
        let kept = fs::read(folder.path(log).join(file.file_name().unwrap())).unwrap();
        let its = fs::read(&file).unwrap();
        // The source's says that it is in use until it is closed.
        assert!(kept.len() == its.len() && kept[25..] == its[25..], "{} in {log}", file.display());
    }
}

fn lineages(relay: &Relay) -> Vec<String> {
    let status = relay.status();
    let text = |log: &serde_json::Value| {
        format!("{} {} {}", log["lineage"], log["begun"].as_str().unwrap(), log["state"].as_str().unwrap())
    };
    status["lineages"].as_array().unwrap().iter().map(text).collect()
}

#[test]
fn a_source_that_is_reset_begins_a_new_log() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    let (old, new) = (mysql.sandbox().start().unwrap(), mysql.sandbox().start().unwrap());
    source.sql(&(TABLE.to_owned() + &rows(1, 20))).unwrap();
    let config = config(&folder, "");
    let mut relay = Relay::start(&folder, &[&url(&source)], &config);
    relay.has_all_of(&source);
    follows(&old, &relay);
    has_all(&old, &source, &relay);
    let first = fs::read(folder.path("kept/binlog.000001")).unwrap();

    // While the relay follows; the log is soon longer than it was, and has the replica's GTIDs for other transactions.
    source.sql(&format!("{RESET}; DROP DATABASE IF EXISTS d; {TABLE} {}", rows(101, 60))).unwrap();
    relay.has_all_of(&source);
    assert_eq!(lineages(&relay), ["1 first abandoned", "2 anew received"]);
    assert!(relay.get("/metrics").1.contains("binlogz_relay_lineage 2"), "{}", relay.get("/metrics").1);
    follows(&new, &relay);
    has_all(&new, &source, &relay);
    let refusal = refused(&old, &mut relay);
    assert!(refusal.contains("reset or lost, under GTIDs that are others'"), "{refusal}");
    let of_old = "SELECT COUNT(*), MAX(id) FROM d.t";
    assert_eq!(old.sql(of_old).unwrap().trim(), "20\t20");
    is_kept(&folder, "kept/lineage-2", &source);
    assert!(fs::read(folder.path("kept/binlog.000001")).unwrap() == first);

    // Both logs have this name: nobody gets anything under it. Other forms have names of their own.
    let denied = fetch(mysql, &folder, &relay, "binlog.000001").unwrap_err();
    assert!(
        denied.contains("of one that was kept before it") && denied.contains("binlog-u2.000001"),
        "{denied}"
    );
    let denied = fetch(mysql, &folder, &relay, "binlog-u.000001").unwrap_err();
    assert!(denied.contains("kept before this one") && denied.contains("binlog-u2.000001"), "{denied}");
    fetch(mysql, &folder, &relay, "binlog-u2.000001").unwrap();
    let same =
        folder.run(["verify", "--same", "kept/lineage-2/binlog.000001", "--", "fetched-binlog-u2.000001"]);
    assert_eq!(same.code, Some(0), "{} {}", same.text(), same.stderr);
    source.flush_binary_logs().unwrap();
    source.sql(&rows(201, 3)).unwrap();
    relay.has_all_of(&source);
    assert!(
        fetch(mysql, &folder, &relay, "binlog.000002").unwrap()[25..]
            == fs::read(source.datadir().join("binlog.000002")).unwrap()[25..]
    );

    // A replica that was built anew goes on; and a silent reset is noticed too.
    empty(&old);
    follows(&old, &relay);
    has_all(&old, &source, &relay);
    source.sql(&format!("{RESET}; INSERT INTO d.t VALUES (900, 'alone')")).unwrap();
    relay.has_all_of(&source);
    assert_eq!(lineages(&relay)[1..], ["2 anew abandoned", "3 anew received"]);
    is_kept(&folder, "kept/lineage-3", &source);
    assert!(refused(&new, &mut relay).contains("reset or lost"));

    // While the relay is down.
    drop(relay);
    source.sql(&format!("{RESET}; DROP DATABASE IF EXISTS d; {TABLE} {}", rows(1, 40))).unwrap();
    let mut relay = Relay::start(&folder, &[&url(&source)], &config);
    relay.has_all_of(&source);
    is_kept(&folder, "kept/lineage-4", &source);
    empty(&old);
    follows(&old, &relay);
    has_all(&old, &source, &relay);
}

#[test]
fn a_source_that_was_put_back_begins_a_new_log() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql.sandbox().start().unwrap();
    let (ahead, behind) = (mysql.sandbox().start().unwrap(), mysql.sandbox().start().unwrap());
    source.sql(&(TABLE.to_owned() + &rows(1, 20))).unwrap();
    let config = config(&folder, "store = \"compressed\"");
    let mut relay = Relay::start(&folder, &[&url(&source)], &config);
    has_gtids_of(&mut relay, &source);
    for replica in [&ahead, &behind] {
        follows(replica, &relay);
        has_all(replica, &source, &relay);
    }
    behind.sql("STOP REPLICA").unwrap();
    // A server that starts has another port.
    let restarted = |relay: Relay, source: &MysqlSandbox| {
        drop(relay);
        Relay::start(&folder, &[&url(source)], &config)
    };
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
        assert!(copied.success());
    };

    // A copy is made, the source goes on, and is put back to it.
    source.stop().unwrap();
    let saved = folder.path("saved");
    copy(&source.datadir(), &saved);
    source.start().unwrap();
    source.sql(&rows(101, 10)).unwrap();
    let mut relay = restarted(relay, &source);
    follows(&ahead, &relay);
    has_gtids_of(&mut relay, &source);
    has_all(&ahead, &source, &relay);
    source.stop().unwrap();
    fs::remove_dir_all(source.datadir()).unwrap();
    copy(&saved, &source.datadir());
    source.start().unwrap();
    source.sql(&rows(201, 30)).unwrap();
    let mut relay = restarted(relay, &source);
    has_gtids_of(&mut relay, &source);
    assert_eq!(lineages(&relay), ["1 first abandoned", "2 anew received"]);

    // Who has nothing but what both have goes on; who has more does not, though the source has its GTIDs.
    follows(&ahead, &relay);
    follows(&behind, &relay);
    has_all(&behind, &source, &relay);
    let refusal = refused(&ahead, &mut relay);
    assert!(refusal.contains("reset or lost, under GTIDs that are others'"), "{refusal}");
    assert_eq!(ahead.sql("SELECT COUNT(*), MAX(id) FROM d.t").unwrap().trim(), "30\t110");
    for name in ["binlog.000001", "binlog.000002", "binlog-z.000001"] {
        assert!(fetch(mysql, &folder, &relay, name).unwrap_err().contains("begin by GTID"), "{name}");
    }
}

#[test]
fn a_source_that_lost_its_end_does_not_have_what_a_replica_has() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let stranger = mysql.sandbox().start().unwrap();
    source.sql(&(TABLE.to_owned() + &rows(1, 3))).unwrap();
    let mut relay = Relay::start(&folder, &[&url(&source)], &config(&folder, ""));
    relay.has_all_of(&source);
    // It followed the source itself, so that the relay knows nothing of it.
    stranger.replicate_from(&source).unwrap();
    stranger.wait_for_source(&source).unwrap();
    stranger.sql("STOP REPLICA").unwrap();
    source.sql(&format!("{RESET}; DROP DATABASE d")).unwrap();
    drop(relay);
    let mut relay = Relay::start(&folder, &[&url(&source)], &config(&folder, ""));
    relay.has_all_of(&source);
    follows(&stranger, &relay);
    let refusal = refused(&stranger, &mut relay);
    assert!(refusal.contains("Replica has more GTIDs than the source has"), "{refusal}");
}
