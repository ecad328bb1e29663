//! Foreign keys of the SQL layer (9.6 and later), whose changes are in the log: nothing is left without the row that it
//! refers to, no cascade is made twice, and none takes rows that others added.

use std::fs::File;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::cascades::{CHANGES, FAMILY, rows};
use crate::common::{Folder, Ran};
use crate::round_trip::{place_of, schema_of, through_mysqlbinlog};
use crate::table_at::last_gtid;

/// Runs a script; the mysql client's error, or nothing.
fn apply(server: &MysqlSandbox, folder: &Folder, script: &Ran) -> String {
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    assert_eq!(ran.status.success(), ran.stderr.is_empty());
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

#[test]
fn a_cascade_is_taken_back_whole_and_made_once() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(FAMILY)?;
    server.flush_binary_logs()?;
    let before = rows(&server)?;
    server.sql(CHANGES)?;
    server.sql("UPDATE shop.node SET up = NULL WHERE id = 7; DELETE FROM shop.child WHERE id = 4")?;
    let log = server.flush_binary_logs()?;
    let after = rows(&server)?;
    let log = folder.put("log", std::fs::read(log).unwrap());
    let log = log.to_str().unwrap();
    let place = place_of(&server);
    for (verb, state) in [("undo", &before), ("redo", &after)] {
        let script = folder.run([verb, log]);
        script.is_done();
        assert_eq!(apply(&server, &folder, &script), "", "{}", script.text());
        assert_eq!(&rows(&server)?, state, "{verb} as SQL: {}", script.text());
    }
    // What was undone and made again in a table without a key isn't undone once more: the server is to know nothing of it.
    server.sql("RESET BINARY LOGS AND GTIDS")?;
    for (verb, state) in [("undo", &before), ("redo", &after)] {
        let ran = folder.run([
            verb,
            "--no-defaults",
            "--user=root",
            "--apply",
            &place,
            "--execute",
            "--batch",
            "2",
            log,
        ]);
        ran.is_done();
        assert_eq!(&rows(&server)?, state, "{verb} applied: {}", ran.text());
    }
    for (verb, state) in [("undo", &before), ("redo", &after)] {
        folder.run([verb, "--format", "binlog", "--output", verb, log]).is_done();
        through_mysqlbinlog(&server, &folder.path(verb))?;
        assert_eq!(&rows(&server)?, state, "{verb} as a log");
    }
    Ok(())
}

/// Found by the model: a server that applies the two events of a REPLACE deletes the children, which the REPLACE itself left alone.
#[test]
fn the_children_of_a_replaced_row_stay() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(FAMILY)?;
    server.flush_binary_logs()?;
    let before = rows(&server)?;
    server.sql("USE shop; REPLACE INTO parent VALUES (1, 'z'), (3, 'y'), (90, 'new'); DELETE FROM parent WHERE id = 5")?;
    let log = server.flush_binary_logs()?;
    let after = rows(&server)?;
    let log = log.to_str().unwrap();
    let place = place_of(&server);
    let account = ["--no-defaults", "--user=root"];
    for (verb, state) in [("undo", &before), ("redo", &after)] {
        let front = [verb, "--format", "binlog", "--output", verb, "--schema", &place];
        folder.run([&front[..], &account, &[log]].concat()).is_done();
        through_mysqlbinlog(&server, &folder.path(verb))?;
        assert_eq!(&rows(&server)?, state, "{verb} as a log");
    }
    // The log alone doesn't tell the keys.
    let ran = folder.run(["redo", "--format", "binlog", "--output", "unknown", log]);
    assert_eq!(ran.code, Some(1), "{}{}", ran.text(), ran.stderr);
    assert!(ran.stderr.contains("2 rows that a REPLACE may have replaced"), "{}", ran.stderr);
    Ok(())
}

/// Two tables that refer to `parent`, by its primary key and by another one.
const TWO_KEYS: &str = "CREATE DATABASE d; USE d;
    CREATE TABLE parent (id INT PRIMARY KEY, code INT UNIQUE, text INT);
    CREATE TABLE by_id (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE);
    CREATE TABLE by_code (id INT PRIMARY KEY, code INT, FOREIGN KEY (code) REFERENCES parent (code) ON DELETE CASCADE);
    CREATE TABLE audit (id INT PRIMARY KEY AUTO_INCREMENT, text INT);
    INSERT INTO parent VALUES (1, 5, 1), (2, 6, 1), (3, 7, 1); INSERT INTO by_id VALUES (10, 1), (20, 2), (30, 3);";

/// Rows of the two tables that refer to nothing.
const ORPHANS: &str = "SELECT COUNT(*) FROM d.by_id LEFT JOIN d.parent ON by_id.parent = parent.id WHERE parent.id IS NULL
    UNION ALL SELECT COUNT(*) FROM d.by_code LEFT JOIN d.parent ON by_code.code = parent.code WHERE parent.id IS NULL";

#[test]
fn a_row_that_is_deleted_for_good_takes_its_children_along() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    let trigger =
        "CREATE TRIGGER t AFTER DELETE ON d.parent FOR EACH ROW INSERT INTO d.audit (text) VALUES (OLD.id);";
    // A trigger, the changes, options that choose some of them, and whether the report names a row.
    for (name, prepared, changes, more, is_named) in [
        (
            "a trigger",
            trigger,
            "BEGIN; DELETE FROM parent WHERE id = 1; INSERT INTO parent VALUES (70, 70, 1); COMMIT",
            &[][..],
            false,
        ),
        (
            "one row of two",
            "",
            "BEGIN; DELETE FROM parent WHERE id < 3; INSERT INTO parent VALUES (70, 70, 1); COMMIT",
            &["--where", "id IN (1, 70)"],
            false,
        ),
        ("another key", "", "REPLACE INTO parent VALUES (70, 5, 1)", &[], true),
        ("two rows", "", "REPLACE INTO parent VALUES (1, 7, 1)", &[], true),
    ] {
        server.sql(&format!("DROP DATABASE IF EXISTS d; {TWO_KEYS} {prepared}"))?;
        server.flush_binary_logs()?;
        server.sql(&format!("USE d; {changes}"))?;
        let log = server.flush_binary_logs()?;
        // As before the changes.
        server.sql(&format!("DROP DATABASE IF EXISTS d; {TWO_KEYS}"))?;
        let front = ["redo", "--format", "binlog", "--force", "--output", "redo", "--table", "d.parent"];
        let ran = folder.run([&front[..], more, &[log.to_str().unwrap()]].concat());
        // Children went with it, which aren't of the chosen table.
        assert_eq!(ran.code, Some(1), "{name}: {}{}", ran.text(), ran.stderr);
        assert!(ran.stderr.contains("which aren't redone: d."), "{name}: {}", ran.stderr);
        assert_eq!(ran.text().contains("a REPLACE may have left rows"), is_named, "{name}: {}", ran.text());
        through_mysqlbinlog(&server, &folder.path("redo"))?;
        assert_eq!(server.sql(ORPHANS)?, "0\n0\n", "{name}");
    }
    Ok(())
}

#[test]
fn no_row_comes_back_without_the_one_it_refers_to() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(FAMILY)?;
    server.sql(
        "USE shop; CREATE TABLE wage (id INT PRIMARY KEY); CREATE TABLE pay (id INT PRIMARY KEY, wage INT, FOREIGN KEY (wage) \
         REFERENCES wage (id)); INSERT INTO wage VALUES (1); INSERT INTO pay VALUES (10, 1)",
    )?;
    server.flush_binary_logs()?;
    // Row by row, and by a cascade.
    server.sql("USE shop; DELETE FROM pay; DELETE FROM wage; DELETE FROM parent WHERE id = 1")?;
    let log = server.flush_binary_logs()?;
    let log = log.to_str().unwrap();
    let place = place_of(&server);
    let after = rows(&server)?;
    for (table, error) in [
        ("shop.pay", "a foreign key constraint fails"),
        ("shop.child", "rows came back without the rows that their foreign keys refer to"),
    ] {
        let script = folder.run(["undo", "--table", table, log]);
        let has_more = table == "shop.child";
        assert_eq!(script.code, Some(i32::from(has_more)), "{table}: {}", script.stderr);
        assert_eq!(script.stderr.contains("shop.parent (1 row)"), has_more, "{table}: {}", script.stderr);
        let told = apply(&server, &folder, &script);
        assert!(told.contains(error), "{table}: {told}{}", script.text());
        assert_eq!(rows(&server)?, after, "{table}");
        assert_eq!(server.sql("SELECT COUNT(*) FROM shop.pay")?.trim(), "0");
        for execute in [&[][..], &["--execute"]] {
            let front = ["undo", "--no-defaults", "--user=root", "--table", table, "--apply", &place];
            let ran = folder.run(front.iter().chain(execute).chain(&[log]));
            assert_ne!(ran.code, Some(0), "{table}: {}", ran.text());
            assert_eq!(rows(&server)?, after, "{table}");
        }
    }
    Ok(())
}

#[test]
fn no_cascade_takes_rows_that_others_added() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(FAMILY)?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; INSERT INTO parent VALUES (50, 'new'); UPDATE parent SET id = 204 WHERE id = 4;
         DELETE FROM parent WHERE id = 5",
    )?;
    let log = server.flush_binary_logs()?;
    let log = log.to_str().unwrap();
    // 5 is taken by somebody else's row, which has a child: it isn't overwritten.
    server.sql(
        "USE shop; INSERT INTO parent VALUES (5, 'mine'); INSERT INTO child VALUES (500, 50, NULL, 'mine'), (501, 204, 204, 'mine'),
         (502, 5, NULL, 'mine')",
    )?;
    let now = rows(&server)?;
    let place = place_of(&server);
    let table = ["--table", "shop.parent"];
    for more in [&[][..], &["--execute"], &["--execute", "--on-conflict", "overwrite"]] {
        let front = ["undo", "--no-defaults", "--user=root", "--apply", &place];
        let ran = folder.run(front.iter().chain(&table).chain(more).chain(&[log]));
        assert_eq!(ran.code, Some(1), "{more:?}: {}{}", ran.text(), ran.stderr);
        assert_eq!(rows(&server)?, now, "{more:?}: {}", ran.text());
        assert!(
            ran.text().contains(
                "rows of shop.child refer to it: 1, which foreign key one (ON DELETE CASCADE) would delete"
            ),
            "{}",
            ran.text()
        );
        assert!(ran.text().contains("(ON UPDATE "), "{}", ran.text());
    }
    Ok(())
}

/// Where InnoDB carries foreign keys out itself, the log has no rows of it: a table that may have been changed like that is named, and
/// no other.
#[test]
fn a_change_that_foreign_keys_carried_on_below_the_log_is_named_by_table_at() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (native, code) in [("ON", 1), ("OFF", 0)] {
        let server = mysql.sandbox().option("innodb_native_foreign_keys", native).start()?;
        server.sql(
            "CREATE DATABASE f; USE f; CREATE TABLE g (id INT PRIMARY KEY, x INT);
             CREATE TABLE p (id INT PRIMARY KEY, x INT, g INT, FOREIGN KEY (g) REFERENCES g (id) ON DELETE CASCADE);
             CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
             INSERT INTO g VALUES (1, 0), (2, 0); INSERT INTO p VALUES (1, 0, 1), (2, 0, 1), (3, 0, 2), (4, 0, NULL);
             INSERT INTO c VALUES (10, 1), (20, 2), (30, 3), (40, 4);
             CREATE TABLE s (id INT PRIMARY KEY, up INT, x INT, FOREIGN KEY (up) REFERENCES s (id) ON DELETE CASCADE);
             INSERT INTO s VALUES (1, NULL, 0), (2, 1, 0), (3, 2, 0);
             CREATE USER half; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO half; GRANT SELECT ON f.c TO half;
             GRANT CREATE TEMPORARY TABLES ON f.* TO half",
        )?;
        let (folder, place) = (Folder::new(), place_of(&server));
        let table_at = |user: &str, table: &str, at: &str| {
            let ran = ["table-at", table, "--at", at, "--no-defaults", "--user", user, "--server", &place];
            folder.run(ran)
        };
        let start = last_gtid(&server)?;
        server.sql("UPDATE f.s SET x = 1; INSERT INTO f.s VALUES (4, 3, 0)")?;
        let ran = table_at("root", "f.s", &start);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{native}");
        // Whether anything was deleted from a parent that it may not see, it can't say.
        let ran = table_at("half", "f.c", &start);
        assert_eq!(ran.code, Some(code), "{native}: {}", ran.stderr);
        assert_eq!(
            ran.stderr.contains("refers to f.p, which the account may not see"),
            code == 1,
            "{}",
            ran.stderr
        );
        server.sql("UPDATE f.p SET x = 1; UPDATE f.g SET x = 2; INSERT INTO f.p VALUES (5, 0, 2); DELETE FROM f.c WHERE id = 40")?;
        let ran = table_at("root", "f.c", &start);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{native}");
        for (table, change) in [
            ("f.c", "DELETE FROM f.p WHERE id = 1"),
            ("f.c", "UPDATE f.p SET id = 22 WHERE id = 2"),
            ("f.c", "DELETE FROM f.g WHERE id = 2"),
            ("f.s", "DELETE FROM f.s WHERE id = 1"),
        ] {
            let before = last_gtid(&server)?;
            server.sql(change)?;
            let ran = table_at("root", table, &before);
            assert_eq!(ran.code, Some(code), "{native}: {change}: {}", ran.stderr);
            let is_named = ran.stderr.contains("foreign keys changed below the log")
                && ran.stderr.contains(&last_gtid(&server)?);
            assert_eq!(is_named, code == 1, "{native}: {change}: {}", ran.stderr);
        }
        if code == 0 {
            let ran = table_at("root", "f.c", &start);
            for row in ["(10, 1)", "(20, 2)", "(30, 3)", "(40, 4)"] {
                assert!(ran.text().contains(row), "{row}: {}", ran.text());
            }
        }
    }
    Ok(())
}

/// A parent that had another name when its row was deleted is still the parent; another table that has its name since isn't.
#[test]
fn a_renamed_parent_is_followed_below_the_log() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (native, code) in [("ON", 1), ("OFF", 0)] {
        let server = mysql.sandbox().option("innodb_native_foreign_keys", native).start()?;
        server.sql(
            "CREATE DATABASE f; USE f; CREATE TABLE p (id INT PRIMARY KEY, x INT); INSERT INTO p VALUES (1, 0), (2, 0), (3, 0);
             CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
             INSERT INTO c VALUES (10, 1), (20, 2), (30, 3); RESET BINARY LOGS AND GTIDS",
        )?;
        let (folder, place) = (Folder::new(), place_of(&server));
        server.sql(
            "USE f; UPDATE c SET p = 2 WHERE id = 10; DELETE FROM p WHERE id = 1; DELETE FROM p WHERE id = 2;
             RENAME TABLE p TO q; CREATE TABLE p LIKE q; INSERT INTO p VALUES (9, 9); DELETE FROM p WHERE id = 9",
        )?;
        let note = "changed with 2 rows of f.q are in no log";
        for command in [&["rows", "f.c"][..], &["undo", "--table", "f.c"]] {
            let ran = folder.run([command, &["--no-defaults", "--user=root", "--server", &place]].concat());
            assert_eq!(ran.stderr.contains(note), code == 1, "{native}: {command:?}: {}", ran.stderr);
            // Where they are in the log, undo names the rows of f.p that were deleted with them.
            let expected = if command[0] == "undo" { 1 } else { code };
            assert_eq!(ran.code, Some(expected), "{native}: {command:?}: {}", ran.stderr);
        }
    }
    Ok(())
}

/// Tables of which `c` refers to `p`.
const PARENT_AND_CHILD: &str = "CREATE TABLE p (id INT PRIMARY KEY, x INT); CREATE TABLE other (id INT PRIMARY KEY);
    CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT cp FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
    INSERT INTO p VALUES (1, 0), (2, 0), (3, 0); INSERT INTO c VALUES (10, 1), (20, 2), (30, 3)";

/// A foreign key that a statement in the logs took away carried changes on before it: it is followed where its text is known, and named in
/// any case.
#[test]
fn a_foreign_key_that_the_logs_took_away_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let (delete, update) = ("DELETE FROM p WHERE id = 1", "UPDATE p SET x = 1 WHERE id = 1");
    for (native, is_below) in [("ON", true), ("OFF", false)] {
        let server = mysql.sandbox().option("innodb_native_foreign_keys", native).start()?;
        let (folder, place) = (Folder::new(), place_of(&server));
        // Whether the logs have the CREATE TABLE, and whether the statement is named of the child and of the parent.
        for (is_text_known, change, statement, is_named) in [
            (true, delete, "ALTER TABLE c DROP FOREIGN KEY cp", [true, true]),
            (false, delete, "ALTER TABLE c DROP FOREIGN KEY cp", [true, true]),
            (false, delete, "ALTER TABLE c DROP CONSTRAINT cp", [true, true]),
            (true, delete, "DROP TABLE `c`", [true, true]),
            (false, delete, "DROP TABLE `c`", [true, true]),
            // Nothing was carried on, or not by a key that is gone.
            (true, update, "ALTER TABLE c DROP FOREIGN KEY cp", [false, false]),
            // Which table was the parent isn't known, but that it isn't a key of `p` that was changed.
            (false, update, "ALTER TABLE c DROP FOREIGN KEY cp", [true, false]),
            (true, delete, "DROP TABLE `other`", [false, false]),
        ] {
            let clear = "RESET BINARY LOGS AND GTIDS";
            let [first, second] = if is_text_known { [clear, "DO 0"] } else { ["DO 0", clear] };
            server.sql(&format!(
                "DROP DATABASE IF EXISTS f; CREATE DATABASE f; USE f; {first}; {PARENT_AND_CHILD}; {second};
                 INSERT INTO c VALUES (40, 2); {change}; {statement}; DELETE FROM p WHERE id = 3"
            ))?;
            let name = format!("{native}: {is_text_known}: {change}: {statement}");
            for (command, is_named) in [
                (&["rows", "f.c"][..], is_named[0]),
                (&["undo", "--table", "f.c"], is_named[0]),
                (&["undo", "--table", "f.p"], is_named[1]),
                (&["redo", "--table", "f.p"], is_named[1]),
            ] {
                let account = ["--no-defaults", "--user=root", "--server", &place];
                let ran = folder.run([command, &account].concat());
                let is_of_statement =
                    |line: &&str| line.contains("a statement took away") && line.contains(statement);
                let lines: Vec<_> = ran.stderr.lines().filter(is_of_statement).collect();
                let is_expected = is_named && is_below;
                assert_eq!(lines.len(), usize::from(is_expected), "{name}: {command:?}: {}", ran.stderr);
                if is_expected {
                    assert_eq!(ran.code, Some(1), "{name}: {command:?}");
                    assert!(lines[0].contains("with 1 row "), "{name}: {command:?}: {}", lines[0]);
                    assert_eq!(lines[0].contains("aren't known"), !is_text_known, "{name}: {}", lines[0]);
                } else if command[0] == "rows" && statement != "DROP TABLE `other`" {
                    // Of a table that is gone and was made before the logs, nobody knows the columns.
                    let said = ran
                        .stderr
                        .lines()
                        .filter(|line| !line.contains("the log has no column names for f.c"));
                    assert_eq!((ran.code, said.count()), (Some(0), 0), "{name}: {command:?}: {}", ran.stderr);
                }
            }
        }
    }
    Ok(())
}

/// Statements after the moment gave a parent another name or other places for its columns, or took a foreign key away.
#[test]
fn what_foreign_keys_of_the_moment_did_below_the_log_is_named_by_table_at() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (native, code) in [("ON", 1), ("OFF", 0)] {
        let server = mysql.sandbox().option("innodb_native_foreign_keys", native).start()?;
        server.sql(
            "CREATE DATABASE f; USE f; CREATE TABLE p (id INT PRIMARY KEY, x INT);
             CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT cp FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE);
             INSERT INTO p VALUES (1, 0), (2, 0), (3, 0); INSERT INTO c VALUES (10, 1), (20, 2), (30, 3)",
        )?;
        let (folder, place) = (Folder::new(), place_of(&server));
        let mut rows = vec!["(10, 1)", "(20, 2)", "(30, 3)"];
        for (change, statement, is_key_gone) in [
            (
                "DELETE FROM f.p WHERE id = 1",
                "RENAME TABLE f.p TO f.between_them, f.between_them TO f.q",
                false,
            ),
            ("UPDATE f.q SET id = 22 WHERE id = 2", "ALTER TABLE f.q ADD first_one INT FIRST", false),
            ("DELETE FROM f.q WHERE id = 3", "ALTER TABLE f.c DROP FOREIGN KEY cp", true),
        ] {
            let before = last_gtid(&server)?;
            server.sql(change)?;
            let changed = last_gtid(&server)?;
            server.sql(statement)?;
            let args =
                ["table-at", "f.c", "--at", &before, "--no-defaults", "--user=root", "--server", &place];
            let ran = folder.run(args);
            assert_eq!(ran.code, Some(code), "{native}: {statement}: {}", ran.stderr);
            let named = if is_key_gone { statement } else { &changed };
            let is_named = ran.stderr.contains("below the log") && ran.stderr.contains(named);
            assert_eq!(is_named, code == 1, "{native}: {statement}: {}", ran.stderr);
            if code == 0 {
                rows.iter().for_each(|row| assert!(ran.text().contains(row), "{statement}: {}", ran.text()));
            }
            // The row of this change is gone, or has another parent.
            rows.remove(0);
        }
    }
    Ok(())
}

/// Tables of which `c` and `d` refer to `p`, by a unique key and by an index of another kind.
const OTHER_INDEXES: &str = "CREATE TABLE p (id INT PRIMARY KEY, u INT NOT NULL UNIQUE, x INT NOT NULL, y INT NOT NULL, KEY (x));
    CREATE TABLE c (id INT PRIMARY KEY, u INT, CONSTRAINT cu FOREIGN KEY (u) REFERENCES p (u) ON UPDATE CASCADE);
    CREATE TABLE d (id INT PRIMARY KEY, x INT, CONSTRAINT dx FOREIGN KEY (x) REFERENCES p (x) ON UPDATE CASCADE);
    INSERT INTO p VALUES (1, 1, 1, 1), (2, 2, 2, 2); INSERT INTO c VALUES (10, 1); INSERT INTO d VALUES (10, 1)";
/// Another table takes the place of `p`, with its columns in another order.
const REPLACED: &str = "SET foreign_key_checks = 0;
    CREATE TABLE n (id INT PRIMARY KEY, y INT NOT NULL, x INT NOT NULL, u INT NOT NULL UNIQUE, KEY (x));
    INSERT INTO n (id, u, x, y) SELECT id, u, x, y FROM p; DROP TABLE p; RENAME TABLE n TO p; SET foreign_key_checks = 1";
const UNIQUE_CHANGED: &str = "UPDATE p SET u = 10 WHERE id = 1";

/// Rows of parents whose keys, columns or tables are others since, on a server that carries changes on below the log, or not.
fn parents_of_another_time_are_named(server: &MysqlSandbox, is_below: bool) -> Result<()> {
    let (folder, place) = (Folder::new(), place_of(server));
    let drop = "ALTER TABLE c DROP FOREIGN KEY cu";
    let taken = "a statement took away";
    let of_now = "foreign key cu: rows of f.c that the server changed with 1 row of f.p";
    // Metadata, whether the logs have the CREATE TABLE, the table that is asked for, the statements, and what is named.
    for (metadata, is_text_known, table, statements, note) in [
        ("MINIMAL", false, "p", format!("{UNIQUE_CHANGED}; {drop}; ALTER TABLE p DROP INDEX u"), Some(taken)),
        (
            "FULL",
            false,
            "p",
            format!("{UNIQUE_CHANGED}; DROP TABLE c; ALTER TABLE p DROP INDEX u"),
            Some(taken),
        ),
        (
            "MINIMAL",
            false,
            "p",
            "UPDATE p SET x = 10; ALTER TABLE d DROP FOREIGN KEY dx".to_owned(),
            Some(taken),
        ),
        (
            "MINIMAL",
            false,
            "p",
            format!(
                "{UNIQUE_CHANGED}; RENAME TABLE c TO e; ALTER TABLE e DROP FOREIGN KEY cu; ALTER TABLE p DROP INDEX u"
            ),
            Some(taken),
        ),
        (
            "MINIMAL",
            false,
            "p",
            format!(
                "{UNIQUE_CHANGED}; {drop}; ALTER TABLE c ADD CONSTRAINT cu FOREIGN KEY (u) REFERENCES p (u)"
            ),
            Some(taken),
        ),
        ("MINIMAL", false, "p", format!("UPDATE p SET y = 10; {drop}"), None),
        // The columns stood elsewhere, or had each other's names.
        (
            "MINIMAL",
            false,
            "c",
            format!("{UNIQUE_CHANGED}; ALTER TABLE p MODIFY y INT NOT NULL AFTER id"),
            Some(of_now),
        ),
        (
            "FULL",
            false,
            "c",
            format!("{UNIQUE_CHANGED}; ALTER TABLE p RENAME COLUMN u TO y, RENAME COLUMN y TO u"),
            Some(of_now),
        ),
        (
            "FULL",
            false,
            "c",
            "UPDATE p SET y = 10; ALTER TABLE p RENAME COLUMN u TO y, RENAME COLUMN y TO u".to_owned(),
            None,
        ),
        ("MINIMAL", false, "c", format!("{UNIQUE_CHANGED}; {REPLACED}"), Some(of_now)),
        ("FULL", true, "c", format!("{REPLACED}; {UNIQUE_CHANGED}; {REPLACED}; {drop}"), Some(taken)),
    ] {
        let clear = "RESET BINARY LOGS AND GTIDS";
        let clear = if server.sql("SELECT VERSION()")?.starts_with('8') { "RESET MASTER" } else { clear };
        let [first, second] = if is_text_known { [clear, "DO 0"] } else { ["DO 0", clear] };
        server.sql(&format!(
            "SET GLOBAL binlog_row_metadata = {metadata}; DROP DATABASE IF EXISTS f; CREATE DATABASE f; USE f; {first}; {OTHER_INDEXES};
             {second}; {statements}; INSERT INTO d (id) VALUES (20)"
        ))?;
        let schema = schema_of(server, &folder, "f")?;
        let schema = format!("--schema={}", schema.display());
        let account = ["--no-defaults", "--user=root", "--server", &place, &schema];
        let asked = format!("f.{table}");
        let command = if table == "c" { vec!["rows", &asked] } else { vec!["undo", "--table", &asked] };
        let ran = folder.run(command.iter().chain(&account));
        let words = note.unwrap_or("foreign key");
        let is_named = is_below && note.is_some();
        assert_eq!(ran.stderr.contains(words), is_named, "{is_below}: {statements}: {}", ran.stderr);
        assert!(ran.code == Some(1) || !is_named, "{is_below}: {statements}: {}", ran.stderr);
    }
    Ok(())
}

#[test]
fn parents_are_those_of_the_time_of_their_rows() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (native, is_below) in [("ON", true), ("OFF", false)] {
        let server = mysql
            .sandbox()
            .option("innodb_native_foreign_keys", native)
            .option("restrict_fk_on_non_standard_key", "OFF")
            .start()?;
        parents_of_another_time_are_named(&server, is_below)?;
    }
    Ok(())
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/undo.sh runs it"]
fn cascades_from_parents_of_another_time_are_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql80);
    parents_of_another_time_are_named(&mysql.sandbox().start()?, true)
}

/// A parent that took another one's place has columns of its own, and may lack a foreign key that that one had.
#[test]
fn a_parent_that_was_replaced_is_named_by_table_at() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (native, code) in [("ON", 1), ("OFF", 0)] {
        let server = mysql
            .sandbox()
            .option("innodb_native_foreign_keys", native)
            .option("restrict_fk_on_non_standard_key", "OFF")
            .start()?;
        let (folder, place) = (Folder::new(), place_of(&server));
        let grandparent = "CREATE TABLE g (id INT PRIMARY KEY); INSERT INTO g VALUES (1);
             ALTER TABLE p ADD g INT, ADD CONSTRAINT pg FOREIGN KEY (g) REFERENCES g (id) ON DELETE CASCADE; UPDATE p SET g = 1 WHERE id = 2;
             ALTER TABLE c ADD p INT, ADD CONSTRAINT cp FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE; INSERT INTO c VALUES (20, NULL, 2)";
        for (prepared, change, named) in [
            ("DO 0", UNIQUE_CHANGED, UNIQUE_CHANGED),
            (grandparent, "DELETE FROM g WHERE id = 1", "DROP TABLE"),
        ] {
            server.sql(&format!(
                "DROP DATABASE IF EXISTS f; CREATE DATABASE f; USE f; {OTHER_INDEXES}; {prepared}; INSERT INTO d (id) VALUES (20)"
            ))?;
            let before = last_gtid(&server)?;
            server.sql(&format!("USE f; {change}"))?;
            let changed = last_gtid(&server)?;
            server.sql(&format!("USE f; {REPLACED}"))?;
            let ran = folder.run([
                "table-at",
                "f.c",
                "--at",
                &before,
                "--no-defaults",
                "--user=root",
                "--server",
                &place,
            ]);
            assert_eq!(ran.code, Some(code), "{native}: {change}: {}", ran.stderr);
            let words = if named == change { &*changed } else { named };
            let is_named = ran.stderr.contains("below the log") && ran.stderr.contains(words);
            assert_eq!(is_named, code == 1, "{native}: {change}: {}", ran.stderr);
        }
    }
    Ok(())
}

/// Only what a rule carries on is named: not the changes that a rule refuses, nor those of other columns, wherever an ALTER moved them, nor
/// what came before a key was there.
#[test]
fn what_foreign_keys_do_not_carry_on_is_not_named_by_table_at() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("innodb_native_foreign_keys", "ON").start()?;
    server.sql(
        "CREATE DATABASE f; USE f; CREATE TABLE p (id INT PRIMARY KEY, code INT NOT NULL UNIQUE, x INT, kind ENUM('a', 'b'));
         CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT some CHECK (p > 0), FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
         CREATE TABLE d (id INT PRIMARY KEY, code INT, FOREIGN KEY (code) REFERENCES p (code) ON UPDATE CASCADE);
         CREATE TABLE e (id INT PRIMARY KEY, p INT);
         CREATE TABLE s (id INT PRIMARY KEY, own INT NOT NULL UNIQUE, up INT, x INT, FOREIGN KEY (up) REFERENCES s (own) ON UPDATE CASCADE);
         INSERT INTO p SELECT n, n + 100, 0, 'a' FROM (WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9) SELECT n \
         FROM n) n;
         INSERT INTO c VALUES (10, 1), (20, 2); INSERT INTO d VALUES (10, 101), (20, 102); INSERT INTO e VALUES (10, 1), (20, 2);
         INSERT INTO s VALUES (1, 11, NULL, 0), (2, 12, 11, 0)",
    )?;
    let (folder, place) = (Folder::new(), place_of(&server));
    for (table, statements, is_named) in [
        (
            "f.c",
            "UPDATE p SET x = 1, kind = 'b'; ALTER TABLE p ADD early INT FIRST, ALGORITHM=COPY; UPDATE p SET x = 2",
            false,
        ),
        (
            "f.d",
            "UPDATE p SET early = 1; ALTER TABLE p ADD later INT FIRST; UPDATE p SET early = 2, later = 3",
            false,
        ),
        ("f.d", "DELETE FROM p WHERE id = 3", false),
        ("f.c", "UPDATE p SET id = 40 WHERE id = 4", false),
        ("f.c", "ALTER TABLE c DROP CONSTRAINT some", false),
        ("f.s", "UPDATE s SET x = 1; DELETE FROM s WHERE id = 2", false),
        (
            "f.e",
            "DELETE FROM p WHERE id = 5; ALTER TABLE e ADD CONSTRAINT ep FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE; UPDATE p SET \
             x = 3",
            false,
        ),
        ("f.e", "DELETE FROM p WHERE id = 6", true),
        ("f.d", "UPDATE p SET code = 77 WHERE id = 7; ALTER TABLE p DROP COLUMN later", true),
        ("f.d", "SET binlog_row_image = MINIMAL; UPDATE p SET code = 78 WHERE id = 7", true),
        ("f.s", "UPDATE s SET own = 13 WHERE id = 1", true),
    ] {
        let before = last_gtid(&server)?;
        server.sql(&format!("USE f; {statements}"))?;
        let args = ["table-at", table, "--at", &before, "--no-defaults", "--user=root", "--server", &place];
        let ran = folder.run(args);
        assert_eq!(ran.code, Some(i32::from(is_named)), "{statements}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains("below the log"), is_named, "{statements}: {}", ran.stderr);
        let is_copied = ran.text().contains("INSERT INTO");
        assert!(is_copied, "{statements}: {}", ran.text());
    }
    Ok(())
}

/// Where the log has no names of columns, the server's tables tell which columns of a parent a key refers to.
#[test]
fn changes_of_a_parents_other_columns_are_not_named_by_rows() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("innodb_native_foreign_keys", "ON").start()?;
    server.sql(
        "CREATE DATABASE o; USE o; CREATE TABLE p (x INT, id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES \
         p (id) ON UPDATE CASCADE); INSERT INTO p VALUES (0, 1), (0, 2); INSERT INTO c VALUES (10, 1), (20, 2); UPDATE p SET x = 1; ALTER TABLE p ADD \
         early INT FIRST; UPDATE p SET x = 2",
    )?;
    let (folder, place) = (Folder::new(), place_of(&server));
    let of_child = ["--no-defaults", "--user=root", "--server", &place];
    // No undo takes back the CREATE TABLE.
    let told = "0 rows and 1 statement not undone";
    for (command, code, told, answer) in
        [(&["rows", "o.c"][..], 0, "", "INSERT"), (&["undo", "--table", "o.c"][..], 1, told, "DELETE")]
    {
        let ran = folder.run(command.iter().chain(&of_child));
        let (text, error) = (ran.text(), &ran.stderr);
        assert_eq!((ran.code, text.contains(answer)), (Some(code), true), "{command:?}: {error}\n{text}");
        assert!(error.contains(told) && !error.contains("o.p"), "{command:?}: {error}");
        assert!(!text.contains("o.p"), "{command:?}: {text}");
    }
    server.sql("UPDATE o.p SET id = 3 WHERE id = 1")?;
    let ran = folder.run(["rows", "o.c"].iter().chain(&of_child));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("rows of o.c that the server changed with 1 row of o.p"), "{}", ran.stderr);
    Ok(())
}

/// An account that may not see all tables doesn't see all foreign keys: that is said where rows were deleted, or keys changed, below the log.
#[test]
fn an_account_that_may_not_see_all_tables_is_told_so_where_it_matters() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (native, is_below) in [("ON", true), ("OFF", false)] {
        let server = mysql.sandbox().option("innodb_native_foreign_keys", native).start()?;
        server.sql(
            "CREATE DATABASE f; CREATE DATABASE secret; USE f; CREATE TABLE p (id INT PRIMARY KEY, x INT);
             CREATE TABLE secret.c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES f.p (id) ON DELETE CASCADE);
             CREATE TABLE d (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
             INSERT INTO p VALUES (1, 0), (2, 0), (3, 0); INSERT INTO secret.c VALUES (10, 1);
             CREATE USER half; GRANT SELECT ON f.* TO half; GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO half;
             CREATE ROLE reader; GRANT SELECT ON *.* TO reader; CREATE USER whole; GRANT reader TO whole; SET DEFAULT ROLE ALL TO whole;
             GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO whole; RESET BINARY LOGS AND GTIDS",
        )?;
        let (folder, place) = (Folder::new(), place_of(&server));
        let undo = |user: &str, more: &[&str]| {
            let account = ["--no-defaults", "--user", user, "--server", &place];
            folder.run([&["undo", "--table", "f.p"], &account[..], more].concat())
        };
        server.sql("UPDATE f.p SET x = 1 WHERE id = 1; INSERT INTO f.p VALUES (4, 0)")?;
        for user in ["half", "whole"] {
            let ran = undo(user, &[]);
            assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{native} {user}");
        }
        server.sql("DELETE FROM f.p WHERE id = 1")?;
        let said = "the account may not see all tables, nor their foreign keys: rows of others that the server changed with 1 row may be in no log";
        for more in [&[][..], &["--cascades", &place]] {
            let ran = undo("half", more);
            // Where they are in the log, their rows are those of another table, which isn't chosen.
            assert_eq!(ran.code, Some(1), "{native}: {}", ran.stderr);
            assert_eq!(ran.stderr.contains(said), is_below, "{native}: {}", ran.stderr);
        }
        let ran = undo("whole", &[]);
        assert!(!ran.stderr.contains("may not see all"), "{native}: {}", ran.stderr);
        assert_eq!(ran.stderr.contains("rows of secret.c"), is_below, "{native}: {}", ran.stderr);
    }
    Ok(())
}
