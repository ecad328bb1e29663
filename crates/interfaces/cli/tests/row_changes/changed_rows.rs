//! A script ends at a row that isn't as the log left it, on MySQL and MariaDB, and changes nothing of that transaction.

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
