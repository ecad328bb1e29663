//! The relay's `[archive]`: closed files go there, none is purged before it is there, and replicas are served from there.

mod common;

use std::fs;

use binlogz_testkit::{Tool, require_tool};
use common::Folder;
use common::configured::{Relay, accounts, url};

#[test]
fn files_are_purged_once_they_are_archived_and_come_back_for_replicas() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT); FLUSH BINARY LOGS;
             INSERT INTO d.t (body) VALUES (REPEAT('one ', 300)); FLUSH BINARY LOGS; DELETE FROM d.t",
        )
        .unwrap();
    // No folder can be made where a file is.
    folder.put("arc", "in the way");
    let more = format!(
        "[store]\ndir = \"kept\"\nmax_bytes = \"1\"\n[archive]\nto = \"arc\"\n[listen]\naddress = \"127.0.0.1:0\"\n{}",
        accounts(&folder, &[("boss", "admin = true")])
    );
    let mut relay = Relay::start(&folder, &[&url(&source)], &more);
    relay.has_all_of(&source);
    let files = |relay: &Relay| {
        relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], "SHOW BINARY LOGS").unwrap_or_default()
    };
    relay.wait_for("complaint", |relay| {
        let log = fs::read_to_string(&relay.log).unwrap();
        log.contains("files that are not archived are not purged").then_some(())
    });
    let purge = "SET @binlogz_force = 1; PURGE BINARY LOGS TO 'binlog.000003'";
    relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], purge).unwrap();
    assert!(files(&relay).starts_with("binlog.000001"), "{}", files(&relay));

    fs::remove_file(folder.path("arc")).unwrap();
    relay.wait_for("purge", |relay| files(relay).starts_with("binlog.000003").then_some(()));
    folder.run(["archive", "check", "arc"]).is_done();
    folder.run(["archive", "restore", "--to", "back", "arc"]).is_done();
    for name in ["binlog.000001", "binlog.000002"] {
        let of_source = fs::read(source.datadir().join(name)).unwrap();
        assert!(folder.read(&format!("back/{name}")) == of_source, "{name}");
    }
    assert!(!folder.path("back/binlog.000003").exists());

    // A replica whose transactions begin in the archive is served from there, then from disk, then live.
    let replica = mysql.sandbox().start().unwrap();
    let port = relay.port;
    let follow = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='boss', \
         SOURCE_PASSWORD='secret', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1; START REPLICA"
    );
    replica.sql(&follow).unwrap();
    replica
        .wait_for_source(&source)
        .unwrap_or_else(|error| panic!("{error}\n{}", relay.messages().join("\n")));
    source.sql("INSERT INTO d.t (body) VALUES ('live')").unwrap();
    replica.wait_for_source(&source).unwrap();
    assert_eq!(replica.checksum_tables("d").unwrap(), source.checksum_tables("d").unwrap());
    assert_eq!(replica.gtid_executed().unwrap(), source.gtid_executed().unwrap());
    let messages = relay.messages();
    for name in ["binlog.000002", "binlog.000001"] {
        assert!(
            messages.iter().any(|line| line.starts_with(&format!("brought {name} back"))),
            "{messages:?}"
        );
    }
}
