//! `undo --all --until` over DDL since the moment: it is named with exit code 1, never passed over.

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::Folder;
use crate::rewind::rewound_in_place;
use crate::table_at::last_gtid;

/// Statements in a database `d`, and whether the rows of its table `t` depend on them.
const STATEMENTS: [(&str, bool); 12] = [
    ("ALTER TABLE d.t ADD COLUMN c INT", true),
    ("ALTER TABLE d.t DROP PRIMARY KEY", true),
    ("ALTER TABLE d.t MODIFY v BIGINT", true),
    ("ALTER TABLE d.t TRUNCATE PARTITION p0", true),
    ("CREATE INDEX i ON d.t (v)", false),
    ("TRUNCATE TABLE d.t", true),
    ("DROP TABLE d.t", true),
    ("RENAME TABLE d.t TO d.u", true),
    ("USE d; RENAME TABLE t TO u", true),
    ("CREATE TABLE d.u AS SELECT * FROM d.t", false),
    ("CREATE TABLE d.u (id INT PRIMARY KEY)", false),
    ("DROP DATABASE d", true),
];

#[test]
fn ddl_since_the_moment_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    // One that stays: an account that sees no tables at all is refused for that.
    server.sql("CREATE DATABASE kept; CREATE TABLE kept.t (id INT PRIMARY KEY)")?;
    for (ddl, is_of_table) in STATEMENTS {
        // The log has it with other quotes.
        let words =
            ddl.strip_prefix("USE d; ").unwrap_or(ddl).split(' ').take(2).collect::<Vec<_>>().join(" ");
        for options in [&["--table", "d.*"][..], &["--table", "d.t"], &[]] {
            let until = changed(&server, ddl)?;
            let ran = rewound_in_place(&folder, &server, &until, options);
            let said = format!("{}{}", ran.text(), ran.stderr);
            if is_of_table || options != ["--table", "d.t"] {
                // A table that isn't there is refused before anything is changed.
                let is_named = match ran.code {
                    Some(1) => said.contains(&format!("not undone, a statement: {words}")),
                    Some(2) => ran.stderr.contains("d.t"),
                    _ => false,
                };
                assert!(is_named, "{ddl} {options:?}: {:?}: {said}", ran.code);
            } else {
                assert_eq!(ran.code, Some(0), "{ddl} {options:?}: {said}");
                assert_eq!(server.sql("SELECT * FROM d.t")?, "1\t10\n2\t20\n", "{ddl}");
            }
            server.sql("DROP DATABASE IF EXISTS d")?;
        }
    }
    Ok(())
}

/// A table, changes, DDL and more changes; the moment before the first of them.
fn changed(server: &MysqlSandbox, ddl: &str) -> Result<String> {
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (100));
         INSERT INTO d.t VALUES (1, 10), (2, 20)",
    )?;
    let until = last_gtid(server)?;
    server.sql(&format!("UPDATE d.t SET v = v + 1; {ddl}"))?;
    Ok(until)
}

/// Statements that leave rows alone are nothing to name.
#[test]
fn statements_that_leave_rows_alone_are_not_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let until = changed(
        &server,
        "ANALYZE TABLE d.t; OPTIMIZE TABLE d.t; CREATE USER somebody; GRANT SELECT ON d.* TO somebody; UPDATE d.t SET v = 7",
    )?;
    let ran = rewound_in_place(&folder, &server, &until, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    assert_eq!(server.sql("SELECT * FROM d.t")?, "1\t10\n2\t20\n");
    Ok(())
}

/// A statement as text may have changed any table by a view.
#[test]
fn statements_as_text_are_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let until = changed(
        &server,
        "CREATE DATABASE other; CREATE VIEW other.seen AS SELECT * FROM d.t; USE other; SET binlog_format = 'STATEMENT'; UPDATE other.seen SET v = 5",
    )?;
    for options in [&["--table", "d.*"][..], &["--table", "d.t"], &[]] {
        let ran = rewound_in_place(&folder, &server, &until, options);
        let said = format!("{}{}", ran.text(), ran.stderr);
        assert_eq!(ran.code, Some(1), "{options:?}: {said}");
        assert!(said.contains("UPDATE other.seen SET v = 5"), "{options:?}: {said}");
    }
    Ok(())
}
