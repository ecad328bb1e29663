//! Rows that were logged before their table got other columns, or before another table got its name: the statements in the logs
//! tell what it was. Where they don't, the rows are left out, and the statement is named.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;

/// A table with default metadata, whose row is deleted in a log of its own.
fn deleted(server: &MysqlSandbox) -> Result<PathBuf> {
    server.sql(
        "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop;
         CREATE TABLE orders (id INT PRIMARY KEY, paid INT, owed INT); INSERT INTO orders VALUES (1, 100, 5), (2, 7, 8);
         CREATE TABLE other (id INT PRIMARY KEY, paid INT, owed INT); INSERT INTO other VALUES (1, 100, 5);
         CREATE TABLE parts (id INT PRIMARY KEY, paid INT, owed INT) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (100))",
    )?;
    server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.orders WHERE id = 1")?;
    server.flush_binary_logs()
}

fn undo(folder: &Folder, more: &[&str], log: &Path) -> Ran {
    let front = ["undo", "--no-defaults", "--user=root", "--table", "shop.orders"];
    folder.run(front.iter().chain(more).map(AsRef::as_ref).chain([log.as_os_str()]))
}

#[test]
fn rows_from_before_their_table_was_changed_are_left_and_the_statement_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let place = place_of(&server);
    for (statement, is_left) in [
        ("ALTER TABLE orders MODIFY owed INT AFTER id", true),
        ("ALTER TABLE orders DROP COLUMN paid, ADD COLUMN paid INT", true),
        ("ALTER TABLE orders ADD COLUMN more INT FIRST, DROP COLUMN owed", true),
        ("ALTER TABLE orders ADD COLUMN more INT FIRST; TRUNCATE TABLE orders", true),
        ("RENAME TABLE orders TO old, other TO orders", true),
        ("RENAME TABLE orders TO old; ALTER TABLE other RENAME TO orders", true),
        ("ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE orders", true),
        ("DROP TABLE orders; CREATE TABLE orders (id INT PRIMARY KEY, owed INT, paid INT)", true),
        (
            "CREATE TABLE copy LIKE orders; CREATE VIEW v AS SELECT * FROM orders; CREATE INDEX i ON orders (paid)",
            false,
        ),
        ("CREATE TRIGGER t BEFORE DELETE ON orders FOR EACH ROW SET @x = 1", false),
    ] {
        let log = deleted(&server)?;
        server.sql(&format!("USE shop; {statement}"))?;
        server.flush_binary_logs()?;
        let ran = undo(&folder, &["--schema", &place], &log);
        let expected = if is_left { 1 } else { 0 };
        assert_eq!(ran.code, Some(expected), "{statement}: {}{}", ran.text(), ran.stderr);
        assert_eq!(ran.text().contains("\nINSERT INTO"), !is_left, "{statement}: {}", ran.text());
        if is_left {
            let names = ran.text().contains("its table was changed after it (");
            assert!(names, "{statement}: {}", ran.text());
            let before = server.checksum_tables("shop")?;
            let applied = undo(&folder, &["--apply", &place, "--execute"], &log);
            assert_eq!(applied.code, Some(1), "{statement}: {}{}", applied.text(), applied.stderr);
            assert_eq!(server.checksum_tables("shop")?, before, "{statement}");
        }
        // Without names, values have only their places.
        let blind = undo(&folder, &[], &log);
        assert_eq!(blind.code, Some(1), "{}", blind.text());
        assert!(blind.text().contains("the log has no column names"), "{}", blind.text());
    }
    Ok(())
}

/// Statements, and whether the log with CREATE TABLE is needed to know what they did.
const KNOWN: [(bool, &str); 10] = [
    (false, "ALTER TABLE orders RENAME COLUMN paid TO owed, RENAME COLUMN owed TO paid"),
    (false, "ALTER TABLE orders ADD COLUMN more INT DEFAULT 7 FIRST, ADD again INT AFTER id"),
    (false, "ALTER TABLE orders ADD x INT; ALTER TABLE orders RENAME COLUMN paid TO y, ENGINE=InnoDB"),
    (false, "RENAME TABLE orders TO away; ALTER TABLE away ADD x INT AFTER id; RENAME TABLE away TO orders"),
    (true, "ALTER TABLE orders MODIFY owed INT AFTER id"),
    (true, "ALTER TABLE orders DROP COLUMN paid, ADD COLUMN paid INT"),
    (true, "ALTER TABLE orders ADD COLUMN more INT FIRST, DROP COLUMN owed"),
    (true, "ALTER TABLE orders CHANGE owed debt BIGINT FIRST, MODIFY paid INT AFTER debt"),
    (true, "ALTER TABLE orders DROP COLUMN owed; ALTER TABLE orders RENAME COLUMN paid TO owed"),
    (true, "SET sql_mode = 'ANSI_QUOTES'; ALTER TABLE \"orders\" MODIFY owed INT AFTER id"),
];

/// The last transactions of a server, so many.
fn last_gtids(server: &MysqlSandbox, count: u64) -> Result<String> {
    let executed = server.sql("SELECT @@GLOBAL.gtid_executed")?;
    let (uuid, last) = executed.trim().rsplit_once(['-', ':']).unwrap();
    let (uuid, last) = (uuid.split(':').next().unwrap(), last.parse::<u64>().unwrap());
    Ok(format!("{uuid}:{}-{last}", last + 1 - count))
}

#[test]
fn rows_from_before_a_statement_whose_effect_is_known_are_taken_back() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let place = place_of(&server);
    let rows = |database: &str| server.sql(&format!("SELECT * FROM {database}.orders ORDER BY id"));
    for (from_create, statement) in KNOWN {
        let of_deleted = deleted(&server)?;
        server.sql(
            "USE shop; UPDATE orders SET owed = 9, paid = paid + 1; INSERT INTO orders VALUES (3, 3, 3)",
        )?;
        let of_others = server.flush_binary_logs()?;
        let gtids = last_gtids(&server, 3)?;
        server.sql(&format!("USE shop; {statement}"))?;
        // The same without the changes.
        server.sql(&format!(
            "DROP DATABASE IF EXISTS truth; CREATE DATABASE truth; USE truth;
             CREATE TABLE orders (id INT PRIMARY KEY, paid INT, owed INT); INSERT INTO orders VALUES (1, 100, 5), (2, 7, 8);
             {statement}"
        ))?;
        let with_create = of_deleted.with_extension(format!(
            "{:06}",
            of_deleted.extension().unwrap().to_str().unwrap().parse::<u64>().unwrap() - 1
        ));
        let mut logs = vec![of_deleted, of_others];
        if from_create {
            logs.insert(0, with_create);
        }
        let mut args: Vec<OsString> =
            ["undo", "--no-defaults", "--user=root", "--table", "shop.orders", "--schema", &place]
                .map(OsString::from)
                .into();
        args.extend(["--gtids", &gtids].map(OsString::from));
        args.extend(logs.iter().map(OsString::from));
        let ran = folder.run(&args);
        assert_eq!(ran.code, Some(0), "{statement}: {}{}", ran.text(), ran.stderr);
        let path = folder.put("undo.sql", &ran.stdout);
        server.sql_file(&path).unwrap_or_else(|error| panic!("{statement}: {error}: {}", ran.text()));
        assert_eq!(rows("shop")?, rows("truth")?, "{statement}: {}", ran.text());
        // Without the log that has CREATE TABLE, nothing tells where a column was.
        if from_create {
            let fewer: Vec<_> = args.iter().filter(|arg| *arg != logs[0].as_os_str()).collect();
            let ran = folder.run(fewer);
            assert_eq!(ran.code, Some(1), "{statement}: {}{}", ran.text(), ran.stderr);
            assert!(ran.text().contains("its table was changed after it ("), "{statement}: {}", ran.text());
        }
    }
    Ok(())
}

#[test]
fn a_stop_does_not_hide_what_changed_the_table_later() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    deleted(&server)?;
    server.sql("DELETE FROM shop.orders WHERE id = 2")?;
    let gtid = server.sql("SELECT @@GLOBAL.gtid_executed")?;
    let (uuid, last) = gtid.trim().rsplit_once(['-', ':']).unwrap();
    let uuid = uuid.split(':').next().unwrap();
    server.sql("ALTER TABLE shop.orders MODIFY owed BIGINT AFTER id")?;
    let log = server.flush_binary_logs()?;
    let next: u64 = last.parse::<u64>().unwrap() + 1;
    for stop in [
        ["--stop-before-gtid".to_owned(), format!("{uuid}:{next}")],
        ["--gtids".to_owned(), format!("{uuid}:{last}")],
    ] {
        let ran = undo(&folder, &stop.each_ref().map(String::as_str), &log);
        assert_eq!(ran.code, Some(1), "{stop:?}: {}{}", ran.text(), ran.stderr);
        assert!(ran.text().contains("ALTER TABLE shop.orders MODIFY owed"), "{stop:?}: {}", ran.text());
    }
    Ok(())
}

#[test]
fn a_table_that_took_the_name_of_another_is_not_shown_as_it() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let place = place_of(&server);
    for (statement, is_there) in [
        ("ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE orders", false),
        ("DROP TABLE orders; ALTER TABLE other RENAME TO orders", false),
        ("RENAME TABLE orders TO old; ALTER TABLE other RENAME TO orders", true),
        ("RENAME TABLE orders TO old; ALTER TABLE other RENAME shop.orders", true),
    ] {
        deleted(&server)?;
        let gtid = server.sql("SELECT @@GLOBAL.gtid_executed")?;
        let (uuid, last) = gtid.trim().rsplit_once(['-', ':']).unwrap();
        let at = format!("{}:{last}", uuid.split(':').next().unwrap());
        server.sql(&format!("USE shop; {statement}"))?;
        let ran = folder.run([
            "table-at",
            "--no-defaults",
            "--user=root",
            "shop.orders",
            "--at",
            &at,
            "--server",
            &place,
            "--format=csv",
        ]);
        match is_there {
            // By the name that it has now.
            true => assert_eq!((ran.code, ran.text()), (Some(0), "id,paid,owed\n2,7,8\n"), "{}", ran.stderr),
            false => {
                assert_eq!(ran.code, Some(2), "{statement}: {}", ran.text());
                assert!(ran.stderr.contains("a statement changed the table"), "{statement}: {}", ran.stderr);
            }
        }
    }
    Ok(())
}

#[test]
fn names_that_may_be_of_other_columns_are_told_where_rows_are_shown_and_chosen() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    deleted(&server)?;
    server.sql("DELETE FROM shop.orders WHERE id = 2")?;
    server
        .sql("ALTER TABLE shop.orders MODIFY owed INT AFTER id; INSERT INTO shop.orders VALUES (9, 1, 2)")?;
    let log = server.flush_binary_logs()?;
    let schema =
        folder.put("after.sql", "USE shop; CREATE TABLE orders (id INT PRIMARY KEY, owed INT, paid INT);");
    let schema = format!("--schema={}", schema.display());
    let run = |args: &[&str], log: &Path| folder.run(args.iter().map(AsRef::as_ref).chain([log.as_os_str()]));
    let shown = run(&["rows", "shop.orders", &schema, "--format=json"], &log);
    assert_eq!(shown.code, Some(1), "{}", shown.stderr);
    let told = "shop.orders was changed after its first rows here (";
    let statement = ": ALTER TABLE shop.orders MODIFY owed INT AFTER id)";
    let is_told = |ran: &Ran| ran.stderr.contains(told) && ran.stderr.contains(statement);
    assert!(is_told(&shown), "{}", shown.stderr);
    // The statement comes after what is asked for.
    let gtid = server.sql("SELECT @@GLOBAL.gtid_executed")?;
    let (uuid, last) = gtid.trim().rsplit_once(['-', ':']).unwrap();
    let (uuid, last) = (uuid.split(':').next().unwrap(), last.parse::<u64>().unwrap());
    let stop = format!("--stop-before-gtid={uuid}:{}", last - 1);
    let shown = run(&["rows", "shop.orders", &schema, &stop], &log);
    assert!(shown.code == Some(1) && is_told(&shown), "{}", shown.stderr);
    // Rows after it are as the names say.
    let after = format!("--gtids={uuid}:{last}");
    run(&["rows", "shop.orders", &schema, &after], &log).is_done();
    // No row meets the condition, by these names; by those of then one does.
    let chosen = run(&["undo", "--table=shop.orders", &schema, "--where", "paid = 7"], &log);
    assert!(chosen.code == Some(1) && is_told(&chosen), "{}", chosen.stderr);
    assert!(chosen.stderr.contains("--where: shop.orders was changed"), "{}", chosen.stderr);
    Ok(())
}

#[test]
fn rows_are_shown_with_the_columns_of_their_time() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let place = place_of(&server);
    for (statements, expected) in [
        (
            // As gh-ost does it.
            "CREATE TABLE _orders_gho LIKE orders; ALTER TABLE _orders_gho ADD x INT AFTER id, RENAME COLUMN paid TO cash;
             INSERT INTO _orders_gho (id, cash, owed) SELECT * FROM orders; RENAME TABLE orders TO _orders_del, _orders_gho TO orders;
             DROP TABLE _orders_del; UPDATE orders SET owed = 1",
            [vec!["id", "paid", "owed"], vec!["id", "x", "cash", "owed"]],
        ),
        (
            "ALTER TABLE orders RENAME COLUMN paid TO owed, RENAME COLUMN owed TO paid; UPDATE orders SET owed = 1",
            [vec!["id", "paid", "owed"], vec!["id", "owed", "paid"]],
        ),
        (
            "ALTER TABLE orders MODIFY owed VARCHAR(9) FIRST, DROP COLUMN paid; UPDATE orders SET owed = 1",
            [vec!["id", "paid", "owed"], vec!["owed", "id"]],
        ),
    ] {
        let deleted = deleted(&server)?;
        server.sql(&format!("USE shop; {statements}"))?;
        let after = server.flush_binary_logs()?;
        let extension = deleted.extension().unwrap().to_str().unwrap();
        let created = deleted.with_extension(format!("{:06}", extension.parse::<u64>().unwrap() - 1));
        let shown = |logs: &[&PathBuf]| {
            let front = ["rows", "--no-defaults", "--user=root", "shop.orders", "--format=json", "--schema", &place];
            folder.run(front.iter().map(AsRef::as_ref).chain(logs.iter().map(|log| log.as_os_str())))
        };
        let ran = shown(&[&created, &deleted, &after]);
        assert_eq!(ran.code, Some(0), "{statements}: {}{}", ran.text(), ran.stderr);
        let columns = |line: &str, image: &str| -> Vec<String> {
            let (_, object) = line.split_once(&format!("\"{image}\":{{")).unwrap();
            let object = object.split('}').next().unwrap();
            object.split(',').map(|field| field.split('"').nth(1).unwrap().to_owned()).collect()
        };
        let text = ran.text();
        let of = |operation: &str| text.lines().rfind(|line| line.contains(operation)).unwrap().to_owned();
        let found = [columns(&of("\"delete\""), "before"), columns(&of("\"update\""), "before")];
        assert_eq!(found, expected, "{statements}: {}", ran.text());
        // What a dropped or moved column was isn't known without the beginning.
        let ran = shown(&[&deleted, &after]);
        let is_known = !statements.contains("DROP COLUMN");
        assert_eq!(ran.code, Some(if is_known { 0 } else { 1 }), "{statements}: {}{}", ran.text(), ran.stderr);
        assert_eq!(ran.stderr.contains("was changed after its first rows here ("), !is_known, "{}", ran.stderr);
    }
    Ok(())
}

/// The statements in the logs make another table of it than the file has: its names would go to other columns.
#[test]
fn a_schema_that_the_logs_contradict_names_no_columns() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let schema = "CREATE TABLE shop.orders (id INT PRIMARY KEY, paid INT, owed INT);";
    folder.put("old.sql", schema);
    server
        .sql(&format!("CREATE DATABASE shop; {schema} ALTER TABLE shop.orders MODIFY owed INT AFTER id"))?;
    server.sql("INSERT INTO shop.orders (id, paid, owed) VALUES (1, 100, 5); DELETE FROM shop.orders")?;
    let log = server.flush_binary_logs()?;
    let contradicted = "--schema has another table than the statements in the logs make of it (";
    let ran = undo(&folder, &["--schema", "old.sql", "--operation", "delete"], &log);
    assert_eq!(ran.code, Some(1), "{}{}", ran.text(), ran.stderr);
    assert!(ran.text().contains(contradicted) && !ran.text().contains("\nINSERT INTO"), "{}", ran.text());
    let args = ["rows", "--no-defaults", "shop.orders", "--schema", "old.sql"];
    let ran = folder.run(args.iter().map(AsRef::as_ref).chain([log.as_os_str()]));
    assert_eq!(ran.code, Some(1), "{}{}", ran.text(), ran.stderr);
    assert!(ran.stderr.contains(contradicted), "{}", ran.stderr);
    Ok(())
}

/// A name may have a line break, and what follows it must not run.
#[test]
fn names_with_line_breaks_stay_in_their_comments() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE shop; CREATE DATABASE `mine\nDROP DATABASE shop;-- x`; USE `mine\nDROP DATABASE shop;-- x`;
         CREATE TABLE `a\nDROP DATABASE shop;-- x` (id INT PRIMARY KEY); CREATE TABLE b (id INT PRIMARY KEY)",
    )?;
    server.flush_binary_logs()?;
    server.sql(
        "USE `mine\nDROP DATABASE shop;-- x`; INSERT INTO `a\nDROP DATABASE shop;-- x` VALUES (1); INSERT INTO b VALUES (1);
         UPDATE b SET id = 2; ALTER TABLE `a\nDROP DATABASE shop;-- x` ADD x INT FIRST; CREATE TABLE c (id INT)",
    )?;
    let log = server.flush_binary_logs()?;
    for command in ["undo", "redo"] {
        for more in [&[][..], &["--operation", "insert"]] {
            let args = [&[command, "--no-defaults"][..], more].concat();
            let ran = folder.run(args.iter().map(AsRef::as_ref).chain([log.as_os_str()]));
            let text = ran.text();
            assert!(text.contains("\n-- DROP DATABASE shop;"), "{text}");
            assert!(!text.lines().any(|line| line.starts_with("DROP")), "{text}");
        }
    }
    Ok(())
}
