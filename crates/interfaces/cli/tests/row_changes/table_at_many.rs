//! `table-at` of several tables and of a whole database: all as they were at one moment, while writers go on.

use std::fs::File;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::Duration;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

const BEGIN: &str = "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, state INT);
     CREATE TABLE items (id INT AUTO_INCREMENT PRIMARY KEY, order_id INT NOT NULL, n INT, FOREIGN KEY (order_id) REFERENCES orders (id) ON
     DELETE CASCADE ON UPDATE CASCADE); CREATE TABLE notes (id INT PRIMARY KEY, text VARCHAR(9)); INSERT INTO notes VALUES (1, 'a'), (2, 'b')";

/// A client that makes, changes and deletes orders with their items, each in one transaction.
fn writer(server: &MysqlSandbox, number: usize) -> Child {
    let mut changes = String::from("USE shop;\n");
    for round in 0..50_000 {
        let id = round * 2 + number;
        changes += &format!(
            "BEGIN; INSERT INTO orders (id, state) VALUES ({id}, 0); INSERT INTO items (order_id, n) VALUES ({id}, 1), ({id}, 2); COMMIT;\n\
             UPDATE orders SET state = state + 1 WHERE id = {};\nDELETE FROM orders WHERE id = {};\nUPDATE items SET n = n + 1 WHERE \
             order_id = {};\nDO SLEEP(0.01);\n",
            id - id % 10,
            id.saturating_sub(20),
            id.saturating_sub(6)
        );
    }
    let mut child =
        server.client().arg("--force").stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::spawn(move || stdin.write_all(changes.as_bytes()).ok());
    child
}

/// The rows of three tables and the last transaction, while nobody commits.
fn state(server: &MysqlSandbox) -> Result<(String, Vec<String>)> {
    let text = server.sql(&format!(
        "FLUSH TABLES WITH READ LOCK; SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', ''); {} UNLOCK TABLES",
        select("shop")
    ))?;
    let (gtids, rows) = text.split_once('\n').unwrap();
    let (uuid, last) = gtids.trim().rsplit_once(['-', ':']).unwrap();
    Ok((format!("{}:{last}", uuid.split(':').next().unwrap()), rows.lines().map(str::to_owned).collect()))
}

/// All rows of the three tables of a database.
fn select(database: &str) -> String {
    ["orders", "items", "notes"]
        .iter()
        .map(|table| format!("SELECT '{table}', t.* FROM {database}.{table} t ORDER BY id;"))
        .collect()
}

fn rows(server: &MysqlSandbox, database: &str) -> Result<Vec<String>> {
    Ok(server.sql(&select(database))?.lines().map(str::to_owned).collect())
}

#[test]
fn tables_are_as_they_were_at_one_moment_while_writers_go_on() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(BEGIN)?;
    let mut writers = [writer(&server, 0), writer(&server, 1)];
    std::thread::sleep(Duration::from_millis(1500));
    let (moment, expected) = state(&server)?;
    assert!(expected.len() > 20, "{expected:?}");
    let place = place_of(&server);
    let run = |tables: &[&str], more: &[&str]| -> Ran {
        let front = ["table-at", "--at", &moment, "--no-defaults", "--user=root", "--server", &place];
        folder.run(front.iter().chain(more).chain(&["--"]).chain(tables))
    };
    let all = ["shop.orders", "shop.items", "shop.notes"];
    std::thread::sleep(Duration::from_millis(500));
    server.sql("CREATE DATABASE past; CREATE DATABASE script; CREATE DATABASE whole")?;
    let into = run(&all, &["--into", "past"]);
    assert_eq!((into.code, &*into.stderr), (Some(0), ""));
    assert_eq!(into.text().lines().count(), 3, "{}", into.text());
    assert_eq!(rows(&server, "past")?, expected);

    // A database has the tables of the moment, by the names that they had.
    server.sql("USE shop; CREATE TABLE late (id INT PRIMARY KEY); RENAME TABLE notes TO remarks; ALTER TABLE orders ADD more INT FIRST")?;
    let script = run(&["shop.*"], &[]);
    assert_eq!(script.code, Some(0), "{}", script.stderr);
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().arg("script").stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(rows(&server, "script")?, expected);
    let tables = |database: &str| server.sql(&format!("SHOW TABLES FROM {database}"));
    assert_eq!(tables("script")?.split_whitespace().collect::<Vec<_>>(), ["items", "notes", "orders"]);
    let whole = run(&["shop.*"], &["--into", "whole"]);
    assert_eq!(whole.code, Some(0), "{}", whole.stderr);
    assert_eq!(rows(&server, "whole")?, expected);
    for writer in &mut writers {
        writer.kill().unwrap();
        writer.wait().unwrap();
    }

    // A file for each table.
    std::fs::create_dir(folder.path("csv")).unwrap();
    let csv = run(&all, &["--format", "csv", "--output", "csv"]);
    assert_eq!((csv.code, csv.text()), (Some(0), ""), "{}", csv.stderr);
    let lines = |name: &str| std::fs::read_to_string(folder.path("csv").join(name)).unwrap().lines().count();
    let count = |table: &str| expected.iter().filter(|row| row.starts_with(table)).count() + 1;
    for table in ["orders", "items", "notes"] {
        assert_eq!(lines(&format!("{table}.csv")), count(table), "{table}");
    }
    // None of them, if one is there.
    std::fs::remove_file(folder.path("csv/orders.csv")).unwrap();
    let again = run(&all, &["--format", "csv", "--output", "csv"]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("items.csv: exists already"), "{}", again.stderr);
    assert!(!folder.path("csv/orders.csv").exists());
    for (tables, more, line) in [
        (&all[..], &["--format", "csv"][..], "--format csv of several tables needs --output FOLDER"),
        (&all, &["--into", "past.one"], "--into DB.TABLE is for one table"),
        (&all, &["--into", "past"], "there is such a table"),
        (&["shop.orders", "past.orders"], &[], "have one name: ask for one after the other"),
        (&["none.*"], &[], "none had no tables"),
        (&["shop.orders", "shop.none"], &[], "shop.none is not on the server"),
    ] {
        let ran = run(tables, more);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(line), "{}: {line}", ran.stderr);
    }
    // One of them lost.
    server.sql("CREATE DATABASE gone; DROP TABLE shop.remarks")?;
    let lost = run(&["shop.*"], &["--into", "gone"]);
    assert_eq!((lost.code, lost.text()), (Some(2), ""));
    assert!(lost.stderr.contains("(shop.notes): DROP TABLE"), "{}", lost.stderr);
    assert_eq!(server.sql("SHOW TABLES FROM gone")?, "");
    Ok(())
}

#[test]
fn the_table_that_can_not_be_told_is_named_and_nothing_is_left() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql("CREATE DATABASE past; CREATE DATABASE shop; USE shop; CREATE TABLE a (id INT PRIMARY KEY, x INT); CREATE TABLE b LIKE a;
         INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO b SELECT * FROM a; CREATE VIEW v AS SELECT * FROM a")?;
    let place = place_of(&server);
    let run = |at: &str, tables: &[&str], more: &[&str]| -> Ran {
        let front = ["table-at", "--at", at, "--no-defaults", "--user=root", "--server", &place];
        folder.run(front.iter().chain(more).chain(&["--"]).chain(tables))
    };
    let refused = |at: &str, line: &str| -> Result<()> {
        for tables in [&["shop.*"][..], &["shop.a", "shop.b"]] {
            let ran = run(at, tables, &["--into", "past"]);
            assert_eq!((ran.code, ran.text()), (Some(2), ""), "{tables:?}: {}", ran.stderr);
            assert!(ran.stderr.contains(line), "{tables:?}: {}", ran.stderr);
        }
        assert_eq!(server.sql("SHOW TABLES FROM past")?, "");
        Ok(())
    };
    let first = last_gtid(&server)?;
    server.sql("UPDATE shop.a SET x = 0; UPDATE shop.b SET x = 0; SET binlog_format = STATEMENT; UPDATE shop.b SET x = 5")?;
    refused(&first, "shop.b: binlog.0")?;
    refused(&first, "a statement changed the table, which can't be taken back: UPDATE shop.b SET x = 5")?;

    // Tables that came later don't matter, whatever they are like, even with the name of one elsewhere.
    let second = last_gtid(&server)?;
    server.sql("UPDATE shop.a SET x = 9; CREATE DATABASE others; CREATE TABLE others.a (id INT PRIMARY KEY, x INT); CREATE TABLE shop.c (x INT);
         INSERT INTO others.a VALUES (1, 1); INSERT INTO shop.c VALUES (1)")?;
    let later = run(&second, &["shop.*", "others.*"], &[]);
    assert_eq!(later.code, Some(2), "{}", later.text());
    assert!(later.stderr.contains("others had no tables"), "{}", later.stderr);
    let later = run(&second, &["shop.*"], &["--into", "past"]);
    assert_eq!((later.code, later.text().lines().count()), (Some(0), 2), "{}", later.stderr);
    assert_eq!(
        server.sql("SELECT * FROM past.a; SELECT * FROM past.b; SHOW TABLES FROM past")?,
        "1\t0\n2\t0\n1\t5\n2\t5\na\nb\n"
    );

    // One without a key was there.
    let third = last_gtid(&server)?;
    let ran = run(&third, &["shop.*"], &[]);
    assert_eq!((ran.code, ran.text()), (Some(2), ""));
    assert!(ran.stderr.contains("shop.c has no primary key"), "{}", ran.stderr);
    assert!(ran.stderr.contains("told apart; --ignore-table leaves it out"), "{}", ran.stderr);
    let ran = run(&third, &["shop.*"], &["--ignore-table", "shop.c", "--format", "binlog", "--output", "-"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = run(&third, &["shop.a"], &["--ignore-table", "shop.c"]);
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    assert!(ran.stderr.contains("--ignore-table shop.c: expected 'shop.*'"), "{}", ran.stderr);
    // All of them were.
    server.sql("DROP DATABASE others; DROP TABLE shop.c")?;
    let fourth = last_gtid(&server)?;
    server.sql("DROP DATABASE shop; CREATE DATABASE shop; CREATE TABLE shop.a (id INT PRIMARY KEY)")?;
    let ran = run(&fourth, &["shop.*"], &[]);
    assert_eq!((ran.code, ran.text()), (Some(2), ""));
    assert!(ran.stderr.contains("DROP DATABASE shop"), "{}", ran.stderr);
    Ok(())
}

/// A swap of two parents, one of which can't be referred to; a column and a child with other names.
const SWAPPED: &str =
    "USE shop; RENAME TABLE p TO x, q TO p, x TO q; ALTER TABLE q RENAME COLUMN id TO number;
     RENAME TABLE c TO later.d; CREATE TABLE c (id INT PRIMARY KEY)";

#[test]
fn foreign_keys_refer_to_tables_and_columns_by_their_names_of_then() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE shop; CREATE DATABASE later; CREATE DATABASE script; USE shop; CREATE TABLE p (id INT PRIMARY KEY);
         CREATE TABLE q (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2;
         CREATE TABLE c (id INT PRIMARY KEY, p INT, up INT, CONSTRAINT first FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE,
         CONSTRAINT second FOREIGN KEY (up) REFERENCES c (id));
         INSERT INTO p VALUES (1), (2); INSERT INTO q VALUES (3); INSERT INTO c VALUES (1, 1, NULL), (2, 2, 1)",
    )?;
    let keys = |database: &str| {
        server.sql(&format!(
            "SELECT constraint_name, table_name, column_name, referenced_table_schema = '{database}', referenced_table_name, referenced_column_name \
             FROM information_schema.key_column_usage WHERE table_schema = '{database}' AND referenced_table_name IS NOT NULL ORDER BY 1"
        ))
    };
    let (moment, keys_then) = (last_gtid(&server)?, keys("shop")?);
    server.sql(SWAPPED)?;
    server.sql("INSERT INTO shop.q VALUES (7); INSERT INTO later.d VALUES (3, 7, 1); DELETE FROM shop.q WHERE number = 2")?;
    let place = place_of(&server);
    for tables in [&["shop.*"][..], &["shop.p", "shop.c"]] {
        let front = ["table-at", "--at", &moment, "--no-defaults", "--user=root", "--server", &place];
        let script = folder.run(front.iter().chain(tables));
        assert_eq!(script.code, Some(0), "{}", script.stderr);
        let path = folder.put("script.sql", &script.stdout);
        server.sql("DROP DATABASE script; CREATE DATABASE script")?;
        let ran = server.client().arg("script").stdin(File::open(path).unwrap()).output().unwrap();
        assert!(ran.status.success(), "{}{}", String::from_utf8_lossy(&ran.stderr), script.text());
        assert_eq!(keys("script")?, keys_then, "{}", script.text());
        let rows = server.sql("SELECT * FROM script.p ORDER BY 1; SELECT * FROM script.c ORDER BY 1")?;
        assert_eq!(rows, "1\n2\n1\t1\tNULL\n2\t2\t1\n");
    }
    Ok(())
}
