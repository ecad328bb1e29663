//! A script ends at a row that isn't as the log left it, and at tables that don't take rows as they were logged, on MySQL and MariaDB.
//! It changes nothing of that transaction.

use std::fs::File;
use std::path::Path;

use binlogz_testkit::{MariadbSandbox, Result, SandboxServer, Tool, require_tool};

use crate::common::{Folder, Ran};

/// Runs a script; the client's error, or nothing.
fn run(server: &SandboxServer, folder: &Folder, script: &Ran) -> String {
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    assert_eq!(ran.status.success(), ran.stderr.is_empty());
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn a_row_that_somebody_changed_ends_the_script() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    ends(&*mysql.sandbox().start()?)?;
    ends(&*MariadbSandbox::start(&[("binlog-format", "ROW"), ("log-bin", "binlog")])?)
}

const SCHEMA: &str = "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT); CREATE TABLE bare (v INT)";

fn ends(server: &SandboxServer) -> Result<()> {
    let folder = Folder::new();
    let schema = folder.put("schema.sql", format!("USE f; {SCHEMA}"));
    let begin = format!("CREATE DATABASE f; USE f; {SCHEMA}; INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)");
    server.sql(&begin)?;
    let undo = |log: &Path| {
        let script = folder.run(["undo".as_ref(), "--schema".as_ref(), schema.as_os_str(), log.as_os_str()]);
        // That MariaDB has no compressed transactions is warned of.
        assert_eq!(script.code, Some(0), "{}", script.stderr);
        script
    };
    let state =
        || server.sql("SELECT id, v, n FROM f.t UNION ALL SELECT v, 'bare', 0 FROM f.bare ORDER BY 1, 2");

    // Others changed the row that is to be changed or deleted, another column of it, or deleted it.
    for (change, others) in [
        ("UPDATE t SET v = 'x'", "UPDATE t SET v = 'y' WHERE id = 1"),
        ("UPDATE t SET v = 'x'", "UPDATE t SET n = 9 WHERE id = 1"),
        ("INSERT INTO t VALUES (3, 'c', 3), (4, 'd', 4)", "UPDATE t SET n = 9 WHERE id = 3"),
        ("INSERT INTO t VALUES (3, 'c', 3), (4, 'd', 4)", "DELETE FROM t WHERE id = 3"),
        ("INSERT INTO bare VALUES (7), (8)", "UPDATE bare SET v = 9 WHERE v = 7"),
    ] {
        server.flush_binary_logs()?;
        let before = state()?;
        server.sql(&format!("USE f; {change}"))?;
        let script = undo(&server.flush_binary_logs()?);
        server.sql(&format!("USE f; {others}"))?;
        let now = state()?;
        let error = run(server, &folder, &script);
        assert!(error.contains("out of range") && error.contains("row_count() <> 1"), "{others}: {error}");
        assert_eq!(state()?, now, "{others}: nothing of the transaction is changed");
        server
            .sql("USE f; DELETE FROM bare; DELETE FROM t; INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2)")?;

        // As the log left it, the script runs; a second time it doesn't.
        server.sql(&format!("USE f; {change}"))?;
        assert_eq!(run(server, &folder, &script), "", "{change}");
        assert_eq!(state()?, before, "{change}");
        assert_ne!(run(server, &folder, &script), "", "{change}");
        assert_eq!(state()?, before, "{change}");
    }
    Ok(())
}

#[test]
fn triggers_and_generated_columns_end_the_script_before_its_first_change() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    is_unfit(&*mysql.sandbox().option("binlog_row_metadata", "FULL").start()?)?;
    let options = [("binlog-format", "ROW"), ("log-bin", "binlog"), ("binlog-row-metadata", "FULL")];
    is_unfit(&*MariadbSandbox::start(&options)?)
}

fn is_unfit(server: &SandboxServer) -> Result<()> {
    let folder = Folder::new();
    let table = "CREATE TABLE `or``ders` (id INT PRIMARY KEY, total INT, twice INT AS (total * 2) STORED)";
    server
        .sql(&format!("CREATE DATABASE shop; USE shop; CREATE TABLE other (id INT PRIMARY KEY); {table}"))?;
    server.sql("USE shop; INSERT INTO `or``ders` (id, total) VALUES (1, 10), (2, 20)")?;
    server.flush_binary_logs()?;
    server.sql("USE shop; DELETE FROM `or``ders`; INSERT INTO other VALUES (1)")?;
    let log = server.flush_binary_logs()?;
    let schema = folder.put("schema.sql", format!("USE shop; {table};"));
    let schema = format!("--schema={}", schema.display());
    let [bare, described] = [&[][..], &[&*schema]].map(|more: &[&str]| {
        let script = folder.run(["undo"].iter().chain(more).map(AsRef::as_ref).chain([log.as_os_str()]));
        assert_eq!(script.code, Some(0), "{}", script.stderr);
        script
    });
    let counts =
        || server.sql("SELECT (SELECT COUNT(*) FROM shop.`or``ders`), (SELECT COUNT(*) FROM shop.other)");

    let error = run(server, &folder, &bare);
    assert!(
        error.contains("shop.or`ders has the generated column twice: --schema tells which are"),
        "{error}"
    );
    assert_eq!(counts()?, "0\t1\n", "nothing is changed");
    server.sql("USE shop; CREATE TRIGGER log BEFORE INSERT ON `or``ders` FOR EACH ROW SET NEW.total = 0")?;
    let error = run(server, &folder, &described);
    assert!(
        error.contains("shop.or`ders has the trigger log, which would run: --format binlog runs none"),
        "{error}"
    );
    assert_eq!(counts()?, "0\t1\n", "nothing is changed");
    server.sql("DROP TRIGGER shop.log")?;
    assert_eq!(run(server, &folder, &described), "");
    assert_eq!(counts()?, "2\t0\n");
    assert_eq!(server.sql("SELECT total, twice FROM shop.`or``ders` ORDER BY id")?, "10\t20\n20\t40\n");
    Ok(())
}
