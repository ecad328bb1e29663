//! Sandboxed servers do what tests rely on: start, crash, replicate, and leave no files or processes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::server::ReplicaStart;
use binlogz_testkit::{MariadbSandbox, MysqlSandbox, Result, Tool, require_tool};

const CHANGES: &str = "\
CREATE DATABASE shop; USE shop;
CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), price DECIMAL(10,2));
INSERT INTO item (name, price) VALUES ('tea', 3.20), ('coffee', 4.10);
UPDATE item SET price = price + 1;
DELETE FROM item WHERE name = 'tea';
";

#[test]
fn a_replica_ends_with_its_sources_tables() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().compression(3).start()?;
    let replica = mysql.sandbox().start()?;
    source.sql(CHANGES)?;
    replica.replicate_from(&source)?;
    replica.wait_for_source(&source)?;

    let checksums = source.checksum_tables("shop")?;
    assert_eq!(checksums.len(), 1);
    assert_eq!(replica.checksum_tables("shop")?, checksums);
    replica.sql("DELETE FROM shop.item")?;
    assert_ne!(replica.checksum_tables("shop")?, checksums);
    Ok(())
}

#[test]
fn a_replica_without_gtids_follows_by_position() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let start = || mysql.sandbox().option("gtid-mode", "OFF").start();
    let (source, replica) = (start()?, start()?);
    source.sql(CHANGES)?;
    replica.replicate_from_port(source.port(), ReplicaStart::Position("binlog.000001".into(), 4))?;
    replica.wait_for_source(&source)?;
    assert_eq!(replica.checksum_tables("shop")?, source.checksum_tables("shop")?);
    Ok(())
}

#[test]
fn files_can_be_handed_over_as_binary_logs_or_relay_logs() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let mut first = mysql.sandbox().start()?;
    first.sql(CHANGES)?;
    first.flush_binary_logs()?;
    first.sql("INSERT INTO shop.item (name, price) VALUES ('milk', 1.5)")?;
    let checksums = first.checksum_tables("shop")?;
    let executed = first.gtid_executed()?;
    first.kill(); // the last file has no end then
    let logs = first.binlogs()?;

    let source = mysql.sandbox().binlogs(&logs).start()?;
    assert_eq!(source.gtid_executed()?, executed);
    let replica = mysql.sandbox().start()?;
    replica.replicate_from(&source)?;
    replica.wait_for_source(&source)?;
    assert_eq!(replica.checksum_tables("shop")?, checksums);

    let mut replica = mysql.sandbox().start()?;
    replica.apply_relay_logs(&logs)?;
    assert_eq!(replica.gtid_executed()?, executed);
    assert_eq!(replica.checksum_tables("shop")?, checksums);
    Ok(())
}

#[test]
fn mariadb_follows_until_the_first_compressed_transaction() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    let source = mysql.sandbox().readable_by_mariadb().start()?;
    source.sql(CHANGES)?;
    let replica = MariadbSandbox::start(&[])?;
    replica.replicate_from_port(source.port(), "binlog.000001", 4)?;
    let (file, offset) = source.position()?;
    replica.wait_for_position(&file, offset)?;
    assert_eq!(replica.checksum_tables("shop")?, source.checksum_tables("shop")?);

    source.sql("SET binlog_transaction_compression = ON; INSERT INTO shop.item (name) VALUES ('milk')")?;
    let (file, offset) = source.position()?;
    let error = replica.wait_for_position(&file, offset).expect_err("it can't read that").to_string();
    assert!(error.contains("Could not parse relay log event entry"), "{error}");
    Ok(())
}

#[test]
fn a_failing_statement_says_why() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    let error = server.sql("SELECT * FROM mysql.nothing").expect_err("there is no such table").to_string();
    assert!(error.contains("ERROR 1146"), "{error}");
    Ok(())
}

#[test]
fn a_killed_server_recovers() -> Result<()> {
    let mut server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql(CHANGES)?;
    let (pid, dir) = (server.pid().expect("it runs"), server.datadir());
    server.kill();
    assert!(!is_alive(pid));
    server.start()?;
    assert_eq!(server.sql("SELECT name FROM shop.item")?, "coffee\n");
    let pid = server.pid().expect("it runs");
    drop(server);
    assert!(!is_alive(pid));
    assert!(!dir.exists());
    Ok(())
}

#[test]
fn encrypted_logs_begin_with_their_own_magic() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().encrypted().start()?;
    server.sql(CHANGES)?;
    let log = server.flush_binary_logs()?;
    assert!(fs::read(log).expect("readable").starts_with(b"\xfdbin"));
    assert!(server.keyring().exists());
    Ok(())
}

#[test]
fn a_test_without_its_server_says_so_and_passes_unless_it_must_run() {
    let empty = tempfile::tempdir().expect("temporary directory");
    let run = |required: &str| {
        Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "server::a_failing_statement_says_why"])
            .envs([("BINLOGZ_NO_INSTALL", "1"), ("BINLOGZ_REQUIRE_SERVERS", required)])
            .env("BINLOGZ_CACHE", empty.path())
            .env_remove("MYSQL_BASEDIR")
            .output()
            .expect("this test again")
    };
    let skipped = run("0");
    assert!(skipped.status.success());
    let said = String::from_utf8_lossy(&skipped.stderr).into_owned();
    assert!(
        said.contains("SKIPPED: server::a_failing_statement_says_why: get-tool: mysql isn't installed"),
        "{said}"
    );
    assert!(!run("1").status.success());
}

/// The environment variable that makes [`a_server_dies_with_a_process_that_was_killed`] act as the killed
/// process.
const VICTIM: &str = "BINLOGZ_TEST_VICTIM";

#[test]
fn a_server_dies_with_a_process_that_was_killed() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    if let Some(report) = std::env::var_os(VICTIM) {
        let server: MysqlSandbox = mysql.sandbox().start()?;
        let said = format!("{} {}", server.pid().expect("it runs"), server.datadir().display());
        fs::write(report, said).expect("writable");
        std::thread::sleep(Duration::from_secs(600));
        return Ok(());
    }
    let dir = tempfile::tempdir().expect("temporary directory");
    let report = dir.path().join("report");
    let mut victim = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "server::a_server_dies_with_a_process_that_was_killed"])
        .env(VICTIM, &report)
        .stdout(Stdio::null())
        .spawn()
        .expect("this test again");
    let said = eventually(|| fs::read_to_string(&report).ok().filter(|said| said.contains('/')));
    let (pid, datadir) = said.split_once(' ').expect("pid and directory");
    let pid = pid.parse().expect("a pid");
    assert!(is_alive(pid));
    victim.kill().expect("a child");
    victim.wait().expect("a child");
    eventually(|| (!is_alive(pid) && !Path::new(datadir).exists()).then_some(()));
    Ok(())
}

fn is_alive(pid: u32) -> bool {
    // A zombie, killed but not yet reaped by its new parent, has no memory any more.
    fs::read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|pages| !pages.starts_with("0 "))
}

fn eventually<T>(probe: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < deadline, "it did not happen in time");
        std::thread::sleep(Duration::from_millis(50));
    }
}
