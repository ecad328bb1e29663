//! The source's log is no longer the one that is stored: RESET, while the relay follows and while it is down; a data
//! directory that was put back. No byte of one log goes out under the coordinates of another.

use std::fs;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, is_kept, url};
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

const RESET: &str = "RESET BINARY LOGS AND GTIDS";

fn configuration(source: &MysqlSandbox) -> Configuration {
    Configuration::of([url(source)]).account("reader", "form = \"received\"")
}

fn follows(replica: &MysqlSandbox, relay: &Relay) {
    relay.replicates_to(replica, "reader", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
}

/// A replica with nothing of its own.
fn empty(replica: &MysqlSandbox) {
    replica
        .sql("STOP REPLICA; RESET REPLICA; DROP DATABASE IF EXISTS d; RESET BINARY LOGS AND GTIDS")
        .unwrap();
}

/// A file of the relay's as mysqlbinlog fetches it, or why it does not.
fn fetch(mysql: &InstalledTool, folder: &Folder, relay: &Relay, name: &str) -> Result<Vec<u8>, String> {
    let fetched = relay.fetch(mysql, "reader", &folder.path("fetched"), &[], &[name])?;
    Ok(fs::read(&fetched[0]).unwrap())
}

fn rows(from: u32, count: u32) -> String {
    let row = |id: u32| format!("INSERT INTO d.t VALUES ({id}, REPEAT('row {id} ', 20));");
    (from..from + count).map(row).collect()
}

const TABLE: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT);";

/// The error that the replica was refused with, once it was.
fn refused(replica: &MysqlSandbox, relay: &mut Relay) -> String {
    relay.wait_for("refusal", |_| {
        let status = replica.replica_status().unwrap();
        (status["Last_IO_Errno"] == "13114").then(|| status["Last_IO_Error"].clone())
    })
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
    source.sql(&(TABLE.to_owned() + &rows(1, 19))).unwrap();
    source.flush_binary_logs().unwrap();
    source.sql(&rows(20, 1)).unwrap();
    let configuration = configuration(&source);
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    follows(&old, &relay);
    relay.brings(&source, &old, &["d"]);
    let first = fs::read(folder.path("kept/binlog.000001")).unwrap();

    // While the relay follows; the log is soon longer than it was, and has the replica's GTIDs for other transactions.
    source.sql(&format!("{RESET}; DROP DATABASE IF EXISTS d; {TABLE} {}", rows(101, 60))).unwrap();
    relay.has_all_of(&source);
    assert_eq!(lineages(&relay), ["1 first abandoned", "2 anew received"]);
    assert!(relay.get("/metrics").1.contains("binlogz_relay_lineage 2"), "{}", relay.get("/metrics").1);
    follows(&new, &relay);
    relay.brings(&source, &new, &["d"]);
    let refusal = refused(&old, &mut relay);
    assert!(refusal.contains("reset or lost, under GTIDs that are others'"), "{refusal}");
    let of_old = "SELECT COUNT(*), MAX(id) FROM d.t";
    assert_eq!(old.sql(of_old).unwrap().trim(), "20\t20");
    is_kept(&source, &folder.path("kept/lineage-2"));
    assert!(fs::read(folder.path("kept/binlog.000001")).unwrap() == first);

    // Both logs have this name: it is served to no replica. Other forms have names of their own.
    let denied = fetch(mysql, &folder, &relay, "binlog.000001").unwrap_err();
    assert!(
        denied.contains("of one that was kept before it") && denied.contains("binlog-u2.000001"),
        "{denied}"
    );
    let denied = fetch(mysql, &folder, &relay, "binlog-u.000001").unwrap_err();
    assert!(denied.contains("kept before this one") && denied.contains("binlog-u2.000001"), "{denied}");
    // After RESET there is no such number yet.
    let denied = fetch(mysql, &folder, &relay, "binlog.000002").unwrap_err();
    let whole = "binlog.000002 is a file of a log that was kept before this one, which has binlog.000001: begin by GTID, or \
                 with binlog-u2.000001";
    assert!(denied.contains(whole), "{denied}");
    fetch(mysql, &folder, &relay, "binlog-u2.000001").unwrap();
    let same =
        folder.run(["verify", "--same", "kept/lineage-2/binlog.000001", "--", "fetched/binlog-u2.000001"]);
    assert_eq!(same.code, Some(0), "{} {}", same.text(), same.stderr);
    // A name that the log before never had.
    source.flush_binary_logs().unwrap();
    source.flush_binary_logs().unwrap();
    source.sql(&rows(201, 3)).unwrap();
    relay.has_all_of(&source);
    assert!(
        fetch(mysql, &folder, &relay, "binlog.000003").unwrap()[25..]
            == fs::read(source.datadir().join("binlog.000003")).unwrap()[25..]
    );

    // A rebuilt replica continues; and a silent reset is noticed too.
    empty(&old);
    follows(&old, &relay);
    relay.brings(&source, &old, &["d"]);
    source.sql(&format!("{RESET}; INSERT INTO d.t VALUES (900, 'alone')")).unwrap();
    relay.has_all_of(&source);
    assert_eq!(lineages(&relay)[1..], ["2 anew abandoned", "3 anew received"]);
    is_kept(&source, &folder.path("kept/lineage-3"));
    assert!(refused(&new, &mut relay).contains("reset or lost"));

    // While the relay is down.
    drop(relay);
    source.sql(&format!("{RESET}; DROP DATABASE IF EXISTS d; {TABLE} {}", rows(1, 40))).unwrap();
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    is_kept(&source, &folder.path("kept/lineage-4"));
    empty(&old);
    follows(&old, &relay);
    relay.brings(&source, &old, &["d"]);
}

#[test]
fn a_source_that_was_put_back_begins_a_new_log() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql.sandbox().start().unwrap();
    let (ahead, behind) = (mysql.sandbox().start().unwrap(), mysql.sandbox().start().unwrap());
    source.sql(&(TABLE.to_owned() + &rows(1, 20))).unwrap();
    let configuration = configuration(&source).store("store = \"compressed\"");
    let mut relay = configuration.start(&folder);
    relay.has_gtids_of(&source);
    for replica in [&ahead, &behind] {
        follows(replica, &relay);
        relay.brings(&source, replica, &["d"]);
    }
    behind.sql("STOP REPLICA").unwrap();
    // A server that starts has another port.
    let restarted = |relay: Relay, source: &MysqlSandbox| {
        drop(relay);
        configuration.with_servers([url(source)]).start(&folder)
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
    relay.has_gtids_of(&source);
    relay.brings(&source, &ahead, &["d"]);
    source.stop().unwrap();
    fs::remove_dir_all(source.datadir()).unwrap();
    copy(&saved, &source.datadir());
    source.start().unwrap();
    source.sql(&rows(201, 30)).unwrap();
    let mut relay = restarted(relay, &source);
    relay.has_gtids_of(&source);
    assert_eq!(lineages(&relay), ["1 first abandoned", "2 anew received"]);

    // A replica that has only common transactions goes on; one that has more does not, though the source has its GTIDs.
    follows(&ahead, &relay);
    follows(&behind, &relay);
    relay.brings(&source, &behind, &["d"]);
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
    let configuration = configuration(&source);
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    // It followed the source itself, so that the relay knows nothing of it.
    stranger.replicate_from(&source).unwrap();
    stranger.wait_for_source(&source).unwrap();
    stranger.sql("STOP REPLICA").unwrap();
    source.sql(&format!("{RESET}; DROP DATABASE d")).unwrap();
    drop(relay);
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    follows(&stranger, &relay);
    let refusal = refused(&stranger, &mut relay);
    assert!(refusal.contains("Replica has more GTIDs than the source has"), "{refusal}");
}

#[test]
fn files_of_an_old_log_go_by_retention() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    let write = |from: u32| {
        source.sql(&format!("{} FLUSH BINARY LOGS; {}", rows(from, 20), rows(from + 20, 20))).unwrap();
    };
    let keeping = |store: &str| configuration(&source).store(store);
    source.sql(&format!("{TABLE} FLUSH BINARY LOGS")).unwrap();
    write(0);
    let mut relay = keeping("").start(&folder);
    relay.has_gtids_of(&source);
    drop(relay);
    source.sql(RESET).unwrap();
    write(100);
    let mut relay = keeping("max_bytes = \"1G\"").start(&folder);
    relay.has_gtids_of(&source);
    let files = |relay: &Relay| -> Vec<u64> {
        let status = relay.status();
        status["lineages"].as_array().unwrap().iter().map(|log| log["files"].as_u64().unwrap()).collect()
    };
    assert_eq!(
        (lineages(&relay), files(&relay)),
        (vec!["1 first abandoned".into(), "2 anew received".into()], vec![3, 2])
    );
    drop(relay);
    // As large as the new one and what stays of the old one: then closed files of the old one go, not those of the new.
    let size = |name: &str| fs::metadata(folder.path(name)).unwrap().len();
    let new = size("kept/lineage-2/binlog.000001") + size("kept/lineage-2/binlog.000002");
    let store = format!("max_bytes = \"{}\"", new + size("kept/binlog.000003"));
    let mut relay = keeping(&store).start(&folder);
    relay.wait_for("purge of the old log", |relay| (files(relay) == [1, 2]).then_some(()));
    assert!(folder.path("kept/binlog.000003").exists() && !folder.path("kept/binlog.000002").exists());
    relay.has_gtids_of(&source);
    drop(relay);
    let mut relay = keeping("max_bytes = \"1\"").start(&folder);
    relay.wait_for("purge of both", |relay| (files(relay) == [1, 1]).then_some(()));
    source.sql(&rows(200, 5)).unwrap();
    relay.has_gtids_of(&source);
}
