//! MariaDB as the relay's source: its log is stored and served as it is, to MariaDB's replicas by position and by GTID, and to clients that
//! read it.

use std::fs;
use std::process::Command;

use binlogz_testkit::{MariadbSandbox, SandboxServer, Tool, require_tool};

use crate::common::relay::{Configuration, Relay, reserved_port};
use crate::common::{Folder, Ran};

/// Rows, statements, several of them in a transaction, DDL, two domains.
const BEGIN: &str = "\
CREATE DATABASE shop;
CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, v TEXT, w INT DEFAULT 0);
INSERT INTO shop.t (v) VALUES ('a'), (REPEAT('b', 900));
SET SESSION binlog_format = STATEMENT;
BEGIN; INSERT INTO shop.t (v) VALUES ('c'); UPDATE shop.t SET w = w + 1; COMMIT;
SET SESSION binlog_format = ROW;
SET SESSION gtid_domain_id = 7;
BEGIN; INSERT INTO shop.t (v) VALUES ('d'); DELETE FROM shop.t WHERE id = 1; COMMIT;
FLUSH BINARY LOGS;
XA START 'x'; INSERT INTO shop.t (v) VALUES ('xa'); XA END 'x'; XA PREPARE 'x'; XA ROLLBACK 'x';
UPDATE shop.t SET w = w * 2";
const MORE: &str = "\
SET SESSION binlog_format = STATEMENT;
BEGIN; INSERT INTO shop.t (v) VALUES ('more'); UPDATE shop.t SET w = w + 3; COMMIT;
SET SESSION gtid_domain_id = 7, SESSION binlog_format = ROW;
INSERT INTO shop.t (v) SELECT CONCAT(v, id) FROM shop.t LIMIT 2";

fn source() -> MariadbSandbox {
    let options = [("binlog-format", "ROW"), ("log-bin-compress", "ON")];
    let source = MariadbSandbox::start(&options).unwrap();
    source.sql(BEGIN).unwrap();
    source
}

fn url(source: &SandboxServer) -> String {
    format!("mysql://repl@127.0.0.1:{}", source.port())
}

fn rows(server: &SandboxServer) -> String {
    server.sql("SELECT id, MD5(v), w FROM shop.t ORDER BY id").unwrap()
}

/// Points a replica at the relay; `start` says from where.
fn follow(replica: &SandboxServer, relay: &Relay, start: &str) {
    let change = format!(
        "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='reader', MASTER_PASSWORD='secret', MASTER_SSL=1, \
         MASTER_SSL_VERIFY_SERVER_CERT=0, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1, {start}; START SLAVE",
        relay.port
    );
    replica.sql(&change).unwrap();
}

/// Waits until a replica has every row of the source, once.
#[track_caller]
fn has_all(replica: &SandboxServer, source: &SandboxServer, relay: &mut Relay) {
    const IS_THERE: &str = "SELECT COUNT(*) FROM information_schema.tables WHERE table_name = 't'";
    let all = rows(source);
    relay.wait_for("rows in the replica", |_| {
        let status = replica.sql("SHOW SLAVE STATUS").unwrap();
        assert!(!status.contains("error 1236"), "{status}");
        (replica.sql(IS_THERE).unwrap() == "1\n" && rows(replica) == all).then_some(())
    });
}

/// Each stored file is the source's.
fn is_stored(folder: &Folder, source: &SandboxServer) {
    let mut logs = source.binlogs().unwrap();
    logs.pop();
    for log in logs {
        let name = log.file_name().unwrap().to_str().unwrap();
        let (here, mut there) = (fs::read(folder.path("kept").join(name)).unwrap(), fs::read(&log).unwrap());
        // Killed, the server leaves the file marked as in use.
        there[21] = here[21];
        assert!(here == there, "{name}");
    }
}

#[test]
fn mariadb_follows_by_position_and_by_gtid_through_restarts_of_relay_and_source() {
    let mariadb = require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mariadb114);
    let folder = Folder::new();
    let mut source = source();
    let configuration = Configuration::of([url(&source)])
        .account("reader", "admin = true")
        .ports(reserved_port(), reserved_port());
    let mut relay = configuration.start(&folder);

    let by_position = MariadbSandbox::start(&[("log-slave-updates", "ON")]).unwrap();
    let mut by_gtid = MariadbSandbox::start_version(Tool::Mariadb114, &[("gtid-strict-mode", "ON")]).unwrap();
    relay.wait_for("log", |relay| (relay.status()["log"]["files"] == 2).then_some(()));
    let from_begin = "MASTER_USE_GTID=no, MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4";
    follow(&by_position, &relay, from_begin);
    follow(&by_gtid, &relay, "MASTER_USE_GTID=slave_pos");
    for replica in [&by_position, &by_gtid] {
        has_all(replica, &source, &mut relay);
    }

    // In the middle of a file, of both domains; and again with nothing to send but heartbeats.
    for replica in [&by_position, &by_gtid] {
        replica.sql("STOP SLAVE").unwrap();
    }
    source.sql(MORE).unwrap();
    for replica in [&by_position, &by_gtid] {
        replica.sql("START SLAVE").unwrap();
        has_all(replica, &source, &mut relay);
    }
    std::thread::sleep(std::time::Duration::from_secs(3));

    relay.kill();
    source.sql(MORE).unwrap();
    source.flush_binary_logs().unwrap();
    source.sql(MORE).unwrap();
    let mut relay = configuration.start(&folder);
    for replica in [&by_position, &by_gtid] {
        has_all(replica, &source, &mut relay);
    }

    by_gtid.kill();
    source.kill();
    source.start().unwrap();
    by_gtid.start().unwrap();
    drop(relay);
    let mut relay = configuration.with_servers([url(&source)]).start(&folder);
    source.sql(MORE).unwrap();
    for replica in [&by_position, &by_gtid] {
        // Started again, it may follow by itself.
        let _ = replica.sql("START SLAVE");
        has_all(replica, &source, &mut relay);
    }
    is_stored(&folder, &source);
    let applied = by_gtid.sql("SELECT @@GLOBAL.gtid_slave_pos").unwrap();
    assert_eq!(applied, source.sql("SELECT @@GLOBAL.gtid_binlog_pos").unwrap());

    // The file that it read last is gone, and it lacks nothing of it: its GTIDs lead on.
    by_gtid.sql("STOP SLAVE").unwrap();
    source.flush_binary_logs().unwrap();
    let last = source.binlogs().unwrap().pop().unwrap();
    let last = last.file_name().unwrap().to_str().unwrap();
    source.sql(MORE).unwrap();
    has_all(&by_position, &source, &mut relay);
    let purge = format!("SET @binlogz_force = 1; PURGE BINARY LOGS TO '{last}'");
    let mut client = relay.client(mariadb, "mariadb", "reader");
    let purged: Ran = client.args(["--skip-ssl", "-e", &purge]).output().unwrap().into();
    assert_eq!((purged.code, purged.stderr.as_str()), (Some(0), ""));
    by_gtid.sql("START SLAVE").unwrap();
    has_all(&by_gtid, &source, &mut relay);
}

fn dump(folder: &Folder, relay: &Relay, arguments: &[&str]) -> Ran {
    let mut command = folder.mysqlbinlog(["--no-defaults", "--no-login-paths", "-h127.0.0.1", "-ureader"]);
    command.arg(format!("-P{}", relay.port)).args(arguments).env("MYSQL_PWD", "secret");
    command.output().unwrap().into()
}

/// What a program prints of the first log.
fn read(program: &mut Command) -> Ran {
    program.args(["-R", "binlog.000001"]).output().unwrap().into()
}

#[test]
fn clients_that_read_mariadbs_log_get_the_sources_bytes_and_others_are_told_why_not() {
    let mariadb = require_tool!(Tool::Mariadb);
    let folder = Folder::new();
    let source = source();
    let configuration = Configuration::of([url(&source)])
        .account("reader", "")
        .account("plain", "form = \"uncompressed\"")
        .account("nameless", "form = \"auto\"\nrow_metadata = \"none\"");
    let mut relay = configuration.start(&folder);
    relay.wait_for("second file", |relay| (relay.status()["log"]["files"] == 2).then_some(()));

    let ran = dump(&folder, &relay, &["--raw", "-R", "binlog.000001"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(folder.read("binlog.000001") == fs::read(source.binlogs().unwrap().remove(0)).unwrap());
    let mut theirs = relay.client(mariadb, "mariadb-binlog", "reader");
    let ran = read(theirs.arg("--skip-ssl"));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(ran.text().contains("#Q> INSERT INTO shop.t (v) VALUES ('a')"), "{}", ran.text());

    let ran = read(relay.client(mariadb, "mariadb-binlog", "plain").arg("--skip-ssl"));
    let why = "The source of this log is MariaDB: it is served as received";
    assert!(ran.code == Some(1) && ran.stderr.contains(why), "{}", ran.stderr);

    let ran = read(relay.client(mariadb, "mariadb-binlog", "nameless").arg("--skip-ssl"));
    let why = "metadata of tables can't be changed in it (row_metadata of the account)";
    assert!(ran.code == Some(1) && ran.stderr.contains(why), "{}", ran.stderr);

    let replica = MariadbSandbox::start(&[]).unwrap();
    replica.sql("SET GLOBAL gtid_slave_pos = '0-77-99,7-77-1'").unwrap();
    follow(&replica, &relay, "MASTER_USE_GTID=slave_pos");
    // It names the domains in any order.
    let why = ["requested to start from GTID ", "-77-", ", which is not in the master's binlog"];
    relay.wait_for("refusal", |_| {
        let status = replica.sql("SHOW SLAVE STATUS").unwrap();
        why.iter().all(|part| status.contains(part)).then_some(())
    });
    let database = "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = 'shop'";
    assert_eq!(replica.sql(database).unwrap(), "0\n", "nothing was sent");
}
