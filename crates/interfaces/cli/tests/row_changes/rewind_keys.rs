//! `undo --all --until` of tables with keys of all sorts, whose values change, go round and come back.

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::Folder;
use crate::rewind::{rewound, rewound_in_place};
use crate::round_trip::through_mysqlbinlog;
use crate::table_at::last_gtid;

/// Tables, and the rows that they have at the moment.
const TABLES: &str = "CREATE DATABASE k; USE k;
CREATE TABLE spelt (word VARCHAR(10) PRIMARY KEY, n INT);
CREATE TABLE swapped (id INT PRIMARY KEY, a INT, b INT, UNIQUE KEY (a), UNIQUE KEY (b));
CREATE TABLE derived (id INT PRIMARY KEY, v VARCHAR(20), doubled INT AS (id * 2) STORED, loud VARCHAR(20) AS (UPPER(v)) VIRTUAL, UNIQUE KEY ((LOWER(v))));
SET sql_generate_invisible_primary_key = 1; CREATE TABLE unseen (v INT); SET sql_generate_invisible_primary_key = 0;
CREATE TABLE keyless (a INT, b VARCHAR(10));
CREATE TABLE halved (a INT, b INT, UNIQUE KEY (a, b));
INSERT INTO spelt VALUES ('a', 1), ('b', 2), ('ss', 3);
INSERT INTO swapped VALUES (1, 10, 100), (2, 20, 200), (3, NULL, NULL), (4, NULL, 400);
INSERT INTO derived (id, v) VALUES (1, 'One'), (2, 'Two');
INSERT INTO unseen VALUES (1), (1), (2);
INSERT INTO keyless VALUES (1, 'x'), (1, 'x'), (NULL, NULL), (2, 'y');
INSERT INTO halved VALUES (1, NULL), (1, NULL), (1, 2);";

const CHANGES: &str = "USE k;
UPDATE spelt SET word = 'A' WHERE word = 'a'; UPDATE spelt SET word = 'B', n = 5 WHERE word = 'b'; DELETE FROM spelt WHERE n = 3; INSERT INTO spelt VALUES ('SS', 3), ('c', 9);
UPDATE swapped SET a = 15 WHERE id = 1; UPDATE swapped SET a = 10 WHERE id = 2; UPDATE swapped SET a = 20 WHERE id = 1;
UPDATE swapped SET id = 9 WHERE id = 1; UPDATE swapped SET id = 1 WHERE id = 2; UPDATE swapped SET id = 2 WHERE id = 9; UPDATE swapped SET b = NULL; UPDATE swapped SET b = id * 100;
UPDATE derived SET v = 'x' WHERE id = 1; UPDATE derived SET v = 'ONE' WHERE id = 2; UPDATE derived SET v = 'TWO' WHERE id = 1; UPDATE derived SET id = id + 10 ORDER BY id DESC;
DELETE FROM unseen WHERE v = 1 LIMIT 1; INSERT INTO unseen VALUES (1), (3); UPDATE unseen SET v = v + 1;
DELETE FROM keyless WHERE a = 1 LIMIT 1; INSERT INTO keyless VALUES (2, 'y'), (NULL, 'x'); UPDATE keyless SET b = 'z' WHERE a = 2 LIMIT 1; UPDATE keyless SET a = 0 WHERE a IS NULL;
DELETE FROM halved WHERE b IS NULL LIMIT 1; UPDATE halved SET b = 7 WHERE b = 2; INSERT INTO halved VALUES (1, 2), (NULL, 2);";

/// Families: keys that are carried on, set to NULL, and refer to their own table.
const FAMILIES: &str = "USE k;
CREATE TABLE head (id INT PRIMARY KEY, v INT);
CREATE TABLE limb (id INT PRIMARY KEY, head INT, FOREIGN KEY (head) REFERENCES head (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE toe (id INT PRIMARY KEY, limb INT, boss INT, FOREIGN KEY (limb) REFERENCES limb (id) ON DELETE SET NULL ON UPDATE SET NULL, FOREIGN KEY (boss) REFERENCES toe (id) ON DELETE CASCADE);
INSERT INTO head VALUES (1, 1), (2, 2), (3, 3); INSERT INTO limb VALUES (10, 1), (11, 1), (20, 2), (30, 3); INSERT INTO toe VALUES (100, 10, NULL), (101, 11, 100), (200, 20, 100), (300, 30, 200);";

const FAMILY_CHANGES: &str = "USE k;
UPDATE head SET id = 7 WHERE id = 1; UPDATE head SET v = 5; UPDATE limb SET id = 12 WHERE id = 10; DELETE FROM head WHERE id = 2; INSERT INTO head VALUES (1, 0), (2, 0);
UPDATE limb SET head = 2 WHERE id = 11; DELETE FROM toe WHERE id = 200; DELETE FROM head WHERE id = 7; INSERT INTO toe VALUES (200, 30, NULL); UPDATE toe SET boss = 100 WHERE id = 200;";

#[test]
fn keys_of_all_sorts_change_and_swap() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(TABLES)?;
    server.sql(FAMILIES)?;
    for metadata in ["MINIMAL", "FULL"] {
        server.sql(&format!("SET GLOBAL binlog_row_metadata = {metadata}"))?;
        go_back(&server, &format!("{CHANGES} {FAMILY_CHANGES}"), &["--batch=3"])?;
    }
    Ok(())
}

/// Makes the changes, takes them back, and compares all tables with those of before.
fn go_back(server: &MysqlSandbox, changes: &str, options: &[&str]) -> Result<()> {
    let folder = Folder::new();
    let (until, were) = (last_gtid(server)?, server.checksum_tables("k")?);
    server.sql(changes)?;
    assert_ne!(server.checksum_tables("k")?, were);
    let ran = rewound_in_place(&folder, server, &until, options);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    assert_eq!(server.checksum_tables("k")?, were);
    Ok(())
}

/// A server before 9.6 logs nothing of what foreign keys do: it is named, and the rest goes back.
#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/undo.sh runs it"]
fn a_rewind_on_8_0_names_what_foreign_keys_did() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql80);
    let server = mysql.sandbox().start()?;
    server.sql(TABLES)?;
    go_back(&server, CHANGES, &["--batch=3"])?;
    server.sql(FAMILIES)?;
    let until = last_gtid(&server)?;
    server.sql("DELETE FROM k.head WHERE id = 2; UPDATE k.head SET v = 9")?;
    let ran = rewound_in_place(&Folder::new(), &server, &until, &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.stderr.contains("undo with --cascades, without --all, takes them back"), "{}", ran.stderr);
    Ok(())
}

/// Triggers would run again, so nothing is changed in place; a log runs none.
#[test]
fn tables_with_triggers_go_back_by_a_log() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE k; USE k; CREATE TABLE t (id INT PRIMARY KEY, v INT); CREATE TABLE noted (id INT AUTO_INCREMENT PRIMARY KEY, v INT);
         CREATE TRIGGER notes AFTER UPDATE ON t FOR EACH ROW INSERT INTO noted (v) VALUES (OLD.v); INSERT INTO t VALUES (1, 1), (2, 2)",
    )?;
    let (until, were) = (last_gtid(&server)?, server.checksum_tables("k")?);
    server.sql("UPDATE k.t SET v = v + 1; UPDATE k.t SET v = v + 1")?;
    let changed = server.checksum_tables("k")?;
    let ran = rewound_in_place(&folder, &server, &until, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    assert!(ran.stderr.contains("trigger"), "{}", ran.stderr);
    assert_eq!(server.checksum_tables("k")?, changed);
    // Rows of another table that a trigger changed are named.
    let ran = rewound(&folder, &server, &until, &["--table=k.t", "--format=binlog", "--output=part"]);
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.stderr.contains("k.noted (4 rows)"), "{}", ran.stderr);
    let ran = rewound(&folder, &server, &until, &["--format=binlog", "--output=log"]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    through_mysqlbinlog(&server, &folder.path("log"))?;
    assert_eq!(server.checksum_tables("k")?, were);
    Ok(())
}
