//! `undo --all --until` beside others: writers that go on, servers that have other transactions than the logs, MariaDB.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use binlogz_testkit::random::Random;
use binlogz_testkit::{MariadbSandbox, MysqlSandbox, Result, Tool, require_tool, setting};

use crate::common::Folder;
use crate::rewind::{SHOP, number};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

const ROWS: usize = 400;
/// Transactions of the run and of others between two kills.
const TRANSACTIONS: u64 = 60;

#[test]
#[allow(clippy::zombie_processes)] // where the test fails, its processes end with the server
fn writers_go_on_while_a_run_is_killed_and_resumed() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let seed = setting("SEED", 1);
    println!("SEED={seed}");
    let mut random = Random::new(seed);
    server.sql(&format!(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(20), n INT NOT NULL DEFAULT 0);
         INSERT INTO d.t (id, v) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) SELECT i, CONCAT('was ', i) FROM n"
    ))?;
    let until = last_gtid(&server)?;
    server.sql("UPDATE d.t SET n = n + 1; UPDATE d.t SET v = 'wrong'; UPDATE d.t SET n = n * 2")?;
    server.flush_binary_logs()?;
    let logs = server.binlogs()?;
    let logs: Vec<&str> = logs[..logs.len() - 1].iter().map(|log| log.to_str().unwrap()).collect();
    let place = place_of(&server);
    let front = ["undo", "--no-defaults", "--user=root", "--all", "--until", &until, "--apply", &place];
    let args = [&front[..], &["--execute", "--batch=2", "--journal=journal"], &logs[..]].concat();
    let mut written = BTreeMap::new();
    let mut writes = 0;
    for _ in 0..3 {
        let mut run = folder.binlogz(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let begun = number(&last_gtid(&server)?);
        // Its batches and others' changes by turns; each of theirs has another value.
        while number(&last_gtid(&server)?) < begun + TRANSACTIONS && run.try_wait().unwrap().is_none() {
            let id = 1 + random.below(ROWS);
            writes += 1;
            server.sql(&format!("UPDATE d.t SET v = 'mine {writes}' WHERE id = {id}"))?;
            written.insert(id, writes);
        }
        run.kill().unwrap();
        run.wait().unwrap();
    }
    let ran = folder.run(&args);
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.text().contains("rows were done by earlier runs with this journal"), "{}", ran.text());
    // Exactly those of others: neither its own transactions nor those of the runs before.
    let plural = if writes == 1 { "" } else { "s" };
    let line = format!("{writes} transaction{plural} came after the logs were read, and stay");
    assert!(ran.stderr.contains(&line), "{line}: {}", ran.stderr);
    let mut overwritten = 0;
    for line in server.sql("SELECT id, v, n FROM d.t ORDER BY id")?.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let id: usize = cells[0].parse().unwrap();
        match written.get(&id) {
            // As somebody left it: before or after the row went back.
            Some(write) => overwritten += usize::from(cells[1] != format!("mine {write}")),
            None => assert_eq!((cells[1], cells[2]), (&*format!("was {id}"), "0")),
        }
    }
    assert_eq!(overwritten, 0);
    Ok(())
}

/// Applies transactions of logs to a server, under their own GTIDs.
fn replay(server: &MysqlSandbox, logs: &[&Path], gtids: &str) -> Result<()> {
    let gtids = format!("--include-gtids={gtids}");
    let options = ["--no-defaults", "--verify-binlog-checksum", &gtids].map(AsRef::as_ref);
    let printed = server
        .installed()
        .run("mysqlbinlog", options.into_iter().chain(logs.iter().map(|log| log.as_os_str())))?;
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let folder = Folder::new();
    let script = folder.put("replayed.sql", printed.stdout);
    let ran = server.client().stdin(std::fs::File::open(script).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(())
}

/// Logs of one server, applied to another one that has less, or more.
#[test]
fn what_another_server_lacks_or_has_besides_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let (source, target) = (mysql.sandbox().start()?, mysql.sandbox().start()?);
    let folder = Folder::new();
    target.sql("RESET BINARY LOGS AND GTIDS")?;
    source.sql(SHOP)?;
    let until = last_gtid(&source)?;
    source.sql("USE shop; UPDATE jobs SET tries = 5 WHERE id = 1; UPDATE jobs SET tries = 0 WHERE id = 1")?;
    let now = last_gtid(&source)?;
    let log = source.flush_binary_logs()?;
    let uuid = until.split(':').next().unwrap();
    replay(&target, &[&log], &format!("{uuid}:1-{}", number(&now) - 1))?;
    let place = place_of(&target);
    let front =
        ["undo", "--no-defaults", "--user=root", "--all", "--until", &until, "--apply", &place, "--execute"];
    // Nothing is left to take back, but this server has another row.
    let ran = folder.run(front.iter().chain(&[log.to_str().unwrap()]));
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.stderr.contains(&format!("lacks 1 transaction of the logs: {now}")), "{}", ran.stderr);
    replay(&target, &[&log], &now)?;
    let ran = folder.run(front.iter().chain(&[log.to_str().unwrap()]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // A row that goes twice: somebody took one of two equal ones away, which may have been this one.
    source.sql("INSERT INTO shop.bag VALUES ('y')")?;
    let inserted = last_gtid(&source)?;
    let later = source.flush_binary_logs()?;
    replay(&target, &[&later], &inserted)?;
    target.sql("INSERT INTO shop.bag VALUES ('y'); DELETE FROM shop.bag WHERE what = 'y' LIMIT 1")?;
    let ran = folder.run(front.iter().chain(&[log.to_str().unwrap(), later.to_str().unwrap()]));
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.text().contains("an equal row was changed in the same way by"), "{}", ran.text());
    assert!(ran.stderr.contains("2 transactions came after the logs were read"), "{}", ran.stderr);
    assert_eq!(target.sql("SELECT COUNT(*) FROM shop.bag WHERE what = 'y'")?, "1\n");
    Ok(())
}

#[test]
fn logs_of_mariadb_are_refused() -> Result<()> {
    require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[("binlog-format", "ROW"), ("log-bin", "binlog")])?;
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); DO SLEEP(2.1)")?;
    let moment =
        format!("{}Z", server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?.trim().replace(' ', "T"));
    server.sql("INSERT INTO d.t VALUES (1)")?;
    let log = server.flush_binary_logs()?;
    let place = server.socket().display().to_string();
    for input in [&["--server", &place][..], &[log.to_str().unwrap()]] {
        let args = [
            "undo",
            "--no-defaults",
            "--user=root",
            "--all",
            "--until",
            &moment,
            "--apply",
            &place,
            "--execute",
        ];
        let ran = Folder::new().run(args.iter().chain(input));
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("the log is MariaDB's, expected one of MySQL"), "{}", ran.stderr);
    }
    assert_eq!(server.sql("SELECT COUNT(*) FROM d.t")?, "1\n");
    Ok(())
}
