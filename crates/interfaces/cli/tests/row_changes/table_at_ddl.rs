//! `table-at` after DDL: a table is followed under its names, and its columns to where they stand now. What can't be followed is refused,
//! and the statement is named with its place.

use std::fs::File;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

/// The table of the moment, and others beside it.
const BEGIN: &str = "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop;
     CREATE TABLE orders (id INT PRIMARY KEY, paid INT, owed INT, note VARCHAR(9), twice INT AS (paid * 2), UNIQUE KEY (owed), KEY (note));
     CREATE TABLE other (id INT PRIMARY KEY, paid INT, owed INT, note VARCHAR(9));
     INSERT INTO orders (id, paid, owed, note) VALUES (1, 100, 5, 'a'), (2, 7, 8, 'b'), (3, 9, 10, NULL), (4, 11, 12, 'd');
     INSERT INTO other VALUES (1, -1, -2, 'other')";

/// Statements between changes, and the table's name and columns after them.
const KNOWN: [(&str, &str, &str); 11] = [
    (
        "ALTER TABLE orders ADD more INT DEFAULT 7 FIRST, ADD UNIQUE KEY late (note, owed)",
        "orders",
        "paid owed note",
    ),
    ("ALTER TABLE orders RENAME COLUMN owed TO note, RENAME COLUMN note TO owed", "orders", "paid note owed"),
    ("RENAME TABLE orders TO orders_old", "orders_old", "paid owed note"),
    ("RENAME TABLE orders TO orders_old, other TO orders", "orders_old", "paid owed note"),
    (
        "RENAME TABLE orders TO old; ALTER TABLE old RENAME COLUMN owed TO due; ALTER TABLE other RENAME TO orders",
        "old",
        "paid due note",
    ),
    // As gh-ost and pt-online-schema-change do it, where they keep the table.
    (
        "CREATE TABLE _orders_gho LIKE orders; ALTER TABLE _orders_gho ADD more INT; INSERT INTO _orders_gho (id, paid, owed) SELECT id, \
         paid, owed FROM orders; RENAME TABLE orders TO _orders_del, _orders_gho TO orders",
        "_orders_del",
        "paid owed note",
    ),
    (
        "CREATE TABLE away LIKE orders; DROP TABLE away; CREATE INDEX i ON orders (paid); DROP INDEX note ON orders",
        "orders",
        "paid owed note",
    ),
    (
        "ALTER TABLE orders RENAME INDEX owed TO due, ALTER paid SET DEFAULT 5, COMMENT 'x'",
        "orders",
        "paid owed note",
    ),
    (
        "ALTER TABLE orders ADD a INT, ADD b INT AS (a + 1), ADD CHECK (a > 0), ADD KEY (a, paid)",
        "orders",
        "paid owed note",
    ),
    ("RENAME TABLE orders TO other2, other TO orders, other2 TO other", "other", "paid owed note"),
    (
        "ALTER TABLE orders ADD more INT; ALTER TABLE orders DROP INDEX owed, ADD UNIQUE KEY (more)",
        "orders",
        "paid owed note",
    ),
];

/// Statements that can't be taken back, and what is said of them.
const UNKNOWN: [(&str, i32, &str); 11] = [
    (
        "ALTER TABLE orders MODIFY owed INT AFTER id",
        2,
        "what shop.orders was before isn't known: ALTER TABLE orders MODIFY",
    ),
    (
        "ALTER TABLE orders MODIFY paid BIGINT",
        2,
        "what the column paid of shop.orders had before isn't known: ALTER TABLE",
    ),
    (
        "ALTER TABLE orders CONVERT TO CHARACTER SET gbk",
        2,
        "what the column note of shop.orders had before isn't known",
    ),
    (
        "ALTER TABLE orders DROP COLUMN note",
        2,
        "what shop.orders was before isn't known: ALTER TABLE orders DROP COLUMN note",
    ),
    (
        "ALTER TABLE orders DROP PRIMARY KEY, DROP KEY owed, ADD PRIMARY KEY (id)",
        2,
        "has no key of whole columns",
    ),
    ("TRUNCATE TABLE orders", 2, "which can't be taken back (shop.orders): TRUNCATE TABLE orders"),
    ("DROP TABLE orders", 2, "which can't be taken back (shop.orders): DROP TABLE `orders`"),
    (
        "DROP TABLE orders; CREATE TABLE orders (id INT PRIMARY KEY)",
        2,
        "which can't be taken back (shop.orders): DROP TABLE",
    ),
    (
        "ALTER TABLE orders DROP KEY owed; CREATE TABLE parts LIKE orders; ALTER TABLE parts PARTITION BY RANGE (id) (PARTITION p VALUES \
         LESS THAN (100)); ALTER TABLE parts EXCHANGE PARTITION p WITH TABLE orders",
        2,
        "which can't be taken back (shop.orders): ALTER TABLE parts",
    ),
    (
        "CREATE TABLE IF NOT EXISTS orders (id INT)",
        2,
        "what shop.orders was before isn't known: CREATE TABLE IF NOT EXISTS",
    ),
    (
        "DROP DATABASE shop; CREATE DATABASE shop",
        2,
        "what shop.orders was before isn't known: DROP DATABASE shop",
    ),
];

fn table_at(folder: &Folder, server: &MysqlSandbox, table: &str, at: &str, more: &[&str]) -> Ran {
    let place = place_of(server);
    let front = ["table-at", table, "--at", at, "--no-defaults", "--user=root", "--server", &place];
    folder.run(front.iter().chain(more))
}

fn rows(server: &MysqlSandbox, table: &str) -> Result<String> {
    server.sql(&format!("SELECT id, paid, owed, note, twice FROM {table} ORDER BY id"))
}

#[test]
fn a_table_is_followed_through_statements_that_came_later() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    for (number, (statements, now, columns)) in KNOWN.iter().enumerate() {
        let metadata = if number % 2 == 0 { "MINIMAL" } else { "FULL" };
        server.sql(&format!("SET GLOBAL binlog_row_metadata = {metadata}; {BEGIN}"))?;
        // CREATE TABLE is in a log that isn't read.
        server.flush_binary_logs()?;
        server.sql("INSERT INTO shop.other (id) VALUES (99)")?;
        let (moment, expected) = (last_gtid(&server)?, rows(&server, "shop.orders")?);
        let columns: Vec<&str> = columns.split(' ').collect();
        server.sql(&format!(
            "USE shop; UPDATE orders SET paid = paid + 1 WHERE id = 1; DELETE FROM orders WHERE id = 2; INSERT INTO orders (id, paid) \
             VALUES (20, 1); {statements}; UPDATE {now} SET {} = 77 WHERE id = 3; UPDATE {now} SET {} = 'z' WHERE id = 20; DELETE FROM \
             {now} WHERE id = 1; INSERT INTO {now} (id) VALUES (2)",
            columns[0], columns[2]
        ))?;
        // From the server's own logs and from files, as SQL and into a table.
        let logs = server.binlogs()?;
        let files: Vec<&str> = logs.iter().filter_map(|log| log.to_str()).collect();
        server.sql("DROP DATABASE IF EXISTS past; CREATE DATABASE past")?;
        let script = table_at(&folder, &server, "shop.orders", &moment, &[]);
        assert_eq!(script.code, Some(0), "{statements}: {}", script.stderr);
        let path = folder.put("past.sql", &script.stdout);
        let ran = server.client().arg("past").stdin(File::open(path).unwrap()).output().unwrap();
        assert!(
            ran.status.success(),
            "{statements}: {}{}",
            String::from_utf8_lossy(&ran.stderr),
            script.text()
        );
        assert_eq!(rows(&server, "past.orders")?, expected, "{statements}");
        let into = [&["--into", "past.copy"][..], &files].concat();
        let into = table_at(&folder, &server, "shop.orders", &moment, &into);
        assert_eq!(into.code, Some(0), "{statements}: {}", into.stderr);
        assert_eq!(rows(&server, "past.copy")?, expected, "{statements}");
        let names = |table: &str| {
            server.sql(&format!(
                "SELECT column_name, column_type, is_nullable FROM information_schema.columns WHERE table_schema = 'past' AND table_name = \
                 '{table}' ORDER BY ordinal_position"
            ))
        };
        let then = "id\tint\tNO\npaid\tint\tYES\nowed\tint\tYES\nnote\tvarchar(9)\tYES\ntwice\tint\tYES";
        for table in ["orders", "copy"] {
            assert_eq!(names(table)?.trim(), then, "{statements}: {table}");
        }
        let is_altered = statements.contains("ALTER TABLE orders") || statements.contains("ALTER TABLE old");
        let said = script.stderr.contains("was altered since the moment: its columns are those of then");
        assert!(said || !is_altered, "{statements}: {}", script.stderr);
        // What is there now didn't exist then.
        let csv = table_at(&folder, &server, "shop.orders", &moment, &["--format", "csv"]);
        assert!(csv.text().starts_with("id,paid,owed,note\n"), "{statements}: {}", csv.text());
    }
    Ok(())
}

#[test]
fn what_can_not_be_followed_is_refused_with_the_statement_and_its_place() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    for (statements, code, line) in UNKNOWN {
        server.sql(BEGIN)?;
        server.flush_binary_logs()?;
        server.sql("INSERT INTO shop.other (id) VALUES (99)")?;
        let moment = last_gtid(&server)?;
        server.sql(&format!("USE shop; UPDATE orders SET paid = 6 WHERE id = 1; {statements}"))?;
        let ran = table_at(&folder, &server, "shop.orders", &moment, &[]);
        assert_eq!((ran.code, ran.text()), (Some(code), ""), "{statements}: {}", ran.stderr);
        assert!(ran.stderr.contains(line), "{statements}: {}", ran.stderr);
        let uuid = server.server_uuid()?;
        assert!(
            ran.stderr.contains(&format!(", {uuid}:")) || line.contains("key"),
            "{statements}: {}",
            ran.stderr
        );
    }
    // There was no such table.
    server.sql(BEGIN)?;
    let moment = last_gtid(&server)?;
    server.sql("USE shop; CREATE TABLE late (id INT PRIMARY KEY); INSERT INTO late VALUES (1); RENAME TABLE late TO later")?;
    for (table, line) in [
        ("shop.late", "this statement made shop.late, which didn't exist at the moment: CREATE TABLE late"),
        ("shop.later", "this statement made shop.later, which didn't exist at the moment: RENAME TABLE late"),
    ] {
        let ran = table_at(&folder, &server, table, &moment, &[]);
        assert_eq!((ran.code, ran.text()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
    }
    let none = table_at(&folder, &server, "shop.none", &moment, &[]);
    assert_eq!(none.code, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("shop.none is not on the server"), "{}", none.stderr);
    Ok(())
}

/// With CREATE TABLE in the logs, moved columns and columns that were defined again are known too.
#[test]
fn columns_that_move_are_known_where_the_logs_have_create_table() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    for (statement, is_known) in [
        ("ALTER TABLE orders MODIFY owed INT AFTER id", true),
        ("ALTER TABLE orders CHANGE note text VARCHAR(9) FIRST", true),
        ("ALTER TABLE orders MODIFY owed INT FIRST, MODIFY paid INT COMMENT 'x', ADD more INT FIRST", true),
        ("ALTER TABLE orders MODIFY paid INT NOT NULL DEFAULT 0", false),
        ("ALTER TABLE orders MODIFY note VARCHAR(10)", false),
        ("ALTER TABLE orders MODIFY note VARCHAR(9) CHARACTER SET gbk", false),
        ("ALTER TABLE orders DROP COLUMN paid, ADD COLUMN paid INT AFTER id", false),
    ] {
        server.flush_binary_logs()?;
        server.sql(
            "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT, paid INT, owed INT, note VARCHAR(9), \
             PRIMARY KEY (id)); INSERT INTO orders VALUES (1, 100, 5, 'a'), (2, 7, 8, 'b'), (3, 9, 10, 'c')",
        )?;
        let all = "SELECT * FROM {} ORDER BY id";
        let (moment, expected) = (last_gtid(&server)?, server.sql(&all.replace("{}", "shop.orders"))?);
        server.sql(&format!(
            "USE shop; UPDATE orders SET owed = 6 WHERE id = 1; {statement}; UPDATE orders SET owed = 9 WHERE id < 3"
        ))?;
        let ran = table_at(&folder, &server, "shop.orders", &moment, &["--into", "shop.past"]);
        assert_eq!(ran.code, Some(if is_known { 0 } else { 2 }), "{statement}: {}{}", ran.text(), ran.stderr);
        match is_known {
            true => assert_eq!(server.sql(&all.replace("{}", "shop.past"))?, expected, "{statement}"),
            false => {
                assert!(ran.stderr.contains("a statement changed the table"), "{statement}: {}", ran.stderr)
            }
        }
    }
    Ok(())
}
