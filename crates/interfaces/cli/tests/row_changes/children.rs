//! A script stops before a DELETE by which a foreign key would delete or change rows that others added since.

use std::fs::File;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};

/// Runs a script; the mysql client's error, or nothing.
fn run(server: &MysqlSandbox, folder: &Folder, script: &Ran) -> String {
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    assert_eq!(ran.status.success(), ran.stderr.is_empty());
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

const TABLES: &str = "CREATE DATABASE f; USE f;
     CREATE TABLE p (id INT PRIMARY KEY, a VARCHAR(20) UNIQUE);
     CREATE TABLE `c``{}` (id INT PRIMARY KEY, `p p` INT, FOREIGN KEY (`p p`) REFERENCES p (id) ON DELETE CASCADE);
     CREATE TABLE n (id INT PRIMARY KEY, a VARCHAR(20), FOREIGN KEY (a) REFERENCES p (a) ON DELETE SET NULL);
     CREATE TABLE s (id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES s (id) ON DELETE CASCADE)";

#[test]
fn rows_that_others_added_stop_the_script() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    server.flush_binary_logs()?;
    // More rows than one check is for; a quote, a backslash and letters beyond ASCII in conditions.
    let more: Vec<String> = (100..250).map(|id| format!("({id}, 'x{id}')")).collect();
    server.sql(&format!(
        "USE f; BEGIN; INSERT INTO p VALUES (1, 'o''x'), (2, 'back\\\\é'), {}; INSERT INTO `c``{{}}` VALUES (1, 1);
         INSERT INTO s VALUES (1, NULL), (2, 1), (3, 2); COMMIT",
        more.join(", ")
    ))?;
    let log = server.flush_binary_logs()?;
    let script = folder.run(["undo".as_ref(), log.as_os_str()]);
    script.is_done();
    let state = || -> Result<String> {
        server.sql("SELECT * FROM f.p; SELECT * FROM f.`c``{}`; SELECT * FROM f.n; SELECT * FROM f.s")
    };
    for (added, gone, table) in [
        ("INSERT INTO `c``{}` VALUES (9, 2)", "DELETE FROM `c``{}` WHERE id = 9", "f.c`{}"),
        ("INSERT INTO n VALUES (9, 'back\\\\é')", "DELETE FROM n", "f.n"),
        ("INSERT INTO n VALUES (9, 'x249')", "DELETE FROM n", "f.n"),
        ("INSERT INTO s VALUES (9, 3)", "DELETE FROM s WHERE id = 9", "f.s"),
    ] {
        server.sql(&format!("USE f; {added}"))?;
        let before = state()?;
        let error = run(&server, &folder, &script);
        let named = format!("rows refer to it: {table}");
        assert!(
            error.contains("out of range") && error.contains(&named.replace('`', "``")),
            "{added}: {error}"
        );
        assert_eq!(state()?, before, "{added}");
        server.sql(&format!("USE f; {gone}"))?;
    }
    assert_eq!(run(&server, &folder, &script), "");
    assert_eq!(state()?, "");
    // The settings are those from before.
    assert!(script.text().contains("group_concat_max_len = @binlogz_group_concat_max_len"));
    Ok(())
}

#[test]
fn a_foreign_key_that_came_later_counts_too() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql("CREATE DATABASE f; CREATE TABLE f.p (id INT PRIMARY KEY)")?;
    server.flush_binary_logs()?;
    server.sql("INSERT INTO f.p VALUES (1)")?;
    let log = server.flush_binary_logs()?;
    let script = folder.run(["undo".as_ref(), log.as_os_str()]);
    server.sql(
        "CREATE TABLE f.late (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES f.p (id) ON DELETE CASCADE);
         INSERT INTO f.late VALUES (1, 1)",
    )?;
    let error = run(&server, &folder, &script);
    assert!(error.contains("rows refer to it: f.late"), "{error}");
    assert_eq!(server.sql("SELECT id FROM f.late")?, "1\n");
    Ok(())
}
