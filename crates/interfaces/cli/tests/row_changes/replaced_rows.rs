//! Rows that a REPLACE deleted and inserted while others refer to them, and rows of a table that refers to itself, which a cascade deleted: servers
//! since 9.6 log both. `undo` and `redo` lead back and forth in all forms, or name what they can't do.

use std::fs::File;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::{place_of, through_mysqlbinlog};

/// A parent to which tables refer by each of its keys, in all ways.
const PARENTS: &str = "CREATE DATABASE d; USE d;
    CREATE TABLE parent (id INT PRIMARY KEY, code INT UNIQUE, text VARCHAR(10), note TEXT);
    CREATE TABLE kept (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE RESTRICT);
    CREATE TABLE kept_code (id INT PRIMARY KEY, code INT, FOREIGN KEY (code) REFERENCES parent (code) ON DELETE NO ACTION);
    CREATE TABLE gone (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE emptied (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE SET NULL);
    CREATE TABLE tree (id INT PRIMARY KEY, up INT, text INT, FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE);
    CREATE TABLE one (id INT PRIMARY KEY, other INT);
    CREATE TABLE other (id INT PRIMARY KEY, one INT, FOREIGN KEY (one) REFERENCES one (id) ON DELETE CASCADE);
    ALTER TABLE one ADD FOREIGN KEY (other) REFERENCES other (id) ON DELETE RESTRICT;
    INSERT INTO parent VALUES (1, 5, 'a', 'x'), (2, 6, 'b', 'y'), (3, 7, 'c', NULL), (4, 8, 'd', 'z'), (5, 9, 'e', 'e');
    INSERT INTO kept VALUES (10, 1), (11, 1), (20, 2); INSERT INTO kept_code VALUES (10, 5), (30, 7);
    INSERT INTO gone VALUES (10, 1), (30, 3), (40, 4); INSERT INTO emptied VALUES (10, 1), (40, 4);
    INSERT INTO tree VALUES (8, NULL, 0), (1, 8, 0), (12, 1, 0), (6, NULL, 0), (3, 8, 0), (20, 6, 0), (21, 20, 0), (5, 20, 0);
    INSERT INTO one VALUES (1, NULL), (2, NULL); INSERT INTO other VALUES (11, 1), (12, 2);
 INSERT INTO one VALUES (3, 12);";
const TABLES: &str = "d.parent, d.kept, d.kept_code, d.gone, d.emptied, d.tree, d.one, d.other";

/// Rows that refer to nothing.
const ORPHANS: &str =
    "SELECT COUNT(*) FROM d.kept c LEFT JOIN d.parent p ON c.parent = p.id WHERE p.id IS NULL
    UNION ALL SELECT COUNT(*) FROM d.kept_code c LEFT JOIN d.parent p ON c.code = p.code WHERE p.id IS NULL
    UNION ALL SELECT COUNT(*) FROM d.gone c LEFT JOIN d.parent p ON c.parent = p.id WHERE p.id IS NULL";

fn state(server: &MysqlSandbox) -> Result<String> {
    server.sql(&format!("CHECKSUM TABLE {TABLES}"))
}

/// Runs a script; the mysql client's error, or nothing.
fn apply(server: &MysqlSandbox, folder: &Folder, script: &Ran) -> String {
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

/// Goes back and forth by SQL, by `--apply` and as a binary log; forms that are refused by name are returned.
fn there_and_back(
    server: &MysqlSandbox,
    folder: &Folder,
    settings: &str,
    changes: &str,
) -> Result<Vec<String>> {
    server.sql(&format!("DROP DATABASE IF EXISTS d; {PARENTS}"))?;
    server.flush_binary_logs()?;
    let before = state(server)?;
    server.sql(&format!("USE d; {settings} {changes}"))?;
    let log = server.flush_binary_logs()?;
    let after = state(server)?;
    assert_ne!(before, after, "{changes}");
    let log = folder.put("log", std::fs::read(log).unwrap());
    let log = log.to_str().unwrap();
    let place = place_of(server);
    let account = ["--no-defaults", "--user=root"];
    let mut refused = Vec::new();
    for (verb, target) in [("undo", &before), ("redo", &after)] {
        let script = folder.run([&[verb, "--schema", &place][..], &account, &[log]].concat());
        if script.code != Some(0) {
            refused.push(format!("{verb} as SQL: {}", script.stderr));
            break;
        }
        let said = apply(server, folder, &script);
        assert_eq!(said, "", "{verb} of {settings} {changes}: {}", script.text());
        assert_eq!(&state(server)?, target, "{verb} of {settings} {changes}: {}", script.text());
    }
    for (verb, target) in [("undo", &before), ("redo", &after)] {
        let ran = folder.run([&[verb, "--apply", &place, "--execute"][..], &account, &[log]].concat());
        if ran.code != Some(0) {
            refused.push(format!("{verb} --apply: {}{}", ran.stderr, ran.text()));
            break;
        }
        assert_eq!(&state(server)?, target, "{verb} --apply of {settings} {changes}: {}", ran.text());
    }
    for (verb, target) in [("undo", &before), ("redo", &after)] {
        let front = [verb, "--format", "binlog", "--force", "--output", verb, "--schema", &place];
        let ran = folder.run([&front[..], &account, &[log]].concat());
        if ran.code != Some(0) {
            refused.push(format!("{verb} as a log: {}", ran.stderr));
            break;
        }
        through_mysqlbinlog(server, &folder.path(verb))?;
        assert_eq!(&state(server)?, target, "{verb} as a log of {settings} {changes}");
    }
    Ok(refused)
}

#[test]
fn a_replaced_row_goes_back_and_what_refers_to_it_stays() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let rows = folder.put("rows.csv", "1,5,q,q\n4,8,r,r\n50,50,s,s\n");
    let load = format!(
        "LOAD DATA LOCAL INFILE '{}' REPLACE INTO TABLE parent FIELDS TERMINATED BY ','",
        rows.display()
    );
    server.sql("SET GLOBAL local_infile = 1")?;
    // Changes, and whether a log of them is refused: a server that applied it would take along what refers to a key's earlier value.
    for (changes, is_log_refused) in [
        ("REPLACE INTO parent VALUES (1, 5, 'new', 'n')", false),
        (
            "REPLACE INTO parent VALUES (1, 5, 'new', 'n'), (90, 90, 'x', ''), (2, 6, 'z', NULL), (4, 8, 'y', 'w')",
            false,
        ),
        ("REPLACE INTO parent SELECT id, code, 'same', note FROM parent WHERE id < 5", false),
        (
            "INSERT INTO parent VALUES (1, 5, 'q', 'q') ON DUPLICATE KEY UPDATE text = 'dup', note = 'dup'",
            false,
        ),
        (
            "BEGIN; REPLACE INTO parent VALUES (1, 5, 'a1', 'n'); INSERT INTO kept VALUES (12, 1);
             REPLACE INTO parent VALUES (1, 5, 'a2', 'n'); COMMIT",
            false,
        ),
        ("REPLACE INTO tree VALUES (1, 8, 7)", false),
        (&*load, false),
        // A key becomes another one, and two rows become one.
        ("REPLACE INTO parent VALUES (2, 60, 'new', 'n')", true),
        ("REPLACE INTO parent VALUES (2, NULL, 'new', 'n')", true),
        ("REPLACE INTO parent VALUES (2, 7, 'two', 'n')", true),
        ("REPLACE INTO parent VALUES (70, 8, 'other', 'n')", true),
        ("REPLACE INTO parent VALUES (5, 8, 'other', 'n')", true),
    ] {
        let refused = there_and_back(&server, &folder, "", changes)?;
        assert!(
            refused.iter().all(|why| is_log_refused && why.contains("as a log")),
            "{changes}: {refused:?}"
        );
        // An image without the text can't give it back, and that is said; nothing else changes then.
        if changes.contains("90, 90") || changes.contains("2, 7") {
            let refused = there_and_back(&server, &folder, "SET binlog_row_image = NOBLOB;", changes)?;
            assert!(!refused.is_empty(), "{changes}");
        }
    }
    Ok(())
}

/// A row that is deleted without a check comes back, or nothing is changed.
#[test]
fn a_replaced_row_that_was_changed_since_is_left() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    // Changes, what came later, and what stays of it.
    for (changes, later) in [
        ("REPLACE INTO parent VALUES (1, 5, 'new', 'n')", "UPDATE parent SET text = 'later' WHERE id = 1"),
        // The row can't come back: its key is taken.
        (
            "REPLACE INTO parent VALUES (70, 8, 'new', 'n')",
            "INSERT INTO parent VALUES (4, 80, 'later', NULL)",
        ),
        // Something refers to the new one.
        ("REPLACE INTO parent VALUES (70, 8, 'new', 'n')", "INSERT INTO kept VALUES (70, 70)"),
        ("REPLACE INTO parent VALUES (70, 8, 'new', 'n')", "INSERT INTO gone VALUES (70, 70)"),
        ("REPLACE INTO parent VALUES (2, 80, 'new', 'n')", "INSERT INTO kept_code VALUES (70, 80)"),
    ] {
        server.sql(&format!("DROP DATABASE IF EXISTS d; {PARENTS}"))?;
        server.flush_binary_logs()?;
        server.sql(&format!("USE d; {changes}"))?;
        let log = server.flush_binary_logs()?;
        server.sql(&format!("USE d; {later}"))?;
        let now = state(&server)?;
        let place = place_of(&server);
        let options = ["--no-defaults", "--user=root", log.to_str().unwrap()];
        let script = folder.run([&["undo", "--schema", &place][..], &options].concat());
        assert_ne!(apply(&server, &folder, &script), "", "{changes}; {later}: {}", script.text());
        assert_eq!(state(&server)?, now, "{changes}; {later}: {}", script.text());
        let ran = folder.run([&["undo", "--apply", &place, "--execute"][..], &options].concat());
        assert_ne!(ran.code, Some(0), "{changes}; {later}: {}", ran.text());
        assert_eq!(server.sql(ORPHANS)?, "0\n0\n0\n", "{changes}; {later}: {}", ran.text());
    }
    Ok(())
}

#[test]
fn rows_that_a_cascade_deleted_in_their_own_table_come_back() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    for changes in [
        "DELETE FROM tree WHERE id = 8",
        "DELETE FROM tree WHERE id IN (6, 8)",
        "DELETE FROM tree",
        "BEGIN; DELETE FROM tree WHERE id = 12; UPDATE tree SET text = 1; DELETE FROM tree WHERE id = 8; COMMIT",
        "DELETE FROM one WHERE id = 1",
        "UPDATE one SET other = NULL; DELETE FROM one",
        "BEGIN; DELETE FROM one WHERE id = 3; DELETE FROM one WHERE id = 2; DELETE FROM tree WHERE id < 7; COMMIT",
    ] {
        let refused = there_and_back(&server, &folder, "", changes)?;
        assert!(refused.is_empty(), "{changes}: {refused:?}");
    }
    Ok(())
}
