//! Later changes of chosen rows that no log has, since foreign keys carried on below it what transactions that weren't chosen did to other
//! rows: they are named, as far as keys and images tell.

use std::path::PathBuf;

use binlogz_testkit::{InstalledTool, MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

const TABLES: &str = "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(9));
    CREATE TABLE orders (id INT PRIMARY KEY, customer INT,
        CONSTRAINT of_customer FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE ON UPDATE CASCADE);
    CREATE TABLE makers (code VARCHAR(9) PRIMARY KEY, name VARCHAR(9));
    CREATE TABLE items (id INT PRIMARY KEY, ord INT, maker VARCHAR(9), n INT DEFAULT 5,
        CONSTRAINT of_order FOREIGN KEY (ord) REFERENCES orders (id) ON DELETE CASCADE,
        CONSTRAINT of_maker FOREIGN KEY (maker) REFERENCES makers (code) ON DELETE SET NULL ON UPDATE CASCADE);";
const ROWS: &str = "INSERT INTO customers VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO orders VALUES (10, 1), (20, 2), (30, 3), (40, NULL);
    INSERT INTO makers VALUES ('m1', ''), ('m2', ''), ('m3', ''), ('m9', '')";

/// Servers since 9.6 log what foreign keys change, unless this is on.
const NATIVE: (&str, &str) = ("innodb_native_foreign_keys", "ON");

/// Runs statements, one transaction each; their GTIDs, and the log.
fn transactions(server: &MysqlSandbox, statements: &[&str]) -> Result<(Vec<String>, PathBuf)> {
    let mut gtids = Vec::new();
    for statement in statements {
        server.sql(&format!("USE shop; {statement}"))?;
        gtids.push(last_gtid(server)?);
    }
    Ok((gtids, server.flush_binary_logs()?))
}

fn named(ran: &Ran) -> Vec<String> {
    let is_named = |line: &&str| line.contains("changed again later") || line.contains("changed later below");
    ran.text().lines().filter(is_named).map(str::to_owned).collect()
}

#[test]
fn rows_that_later_cascades_changed_below_the_log_are_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    are_named(mysql, &[NATIVE])
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/undo.sh runs it"]
fn rows_that_later_cascades_changed_on_8_0_are_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql80);
    are_named(mysql, &[])
}

fn are_named(mysql: &'static InstalledTool, options: &[(&str, &str)]) -> Result<()> {
    for image in ["FULL", "MINIMAL"] {
        let sandbox = mysql.sandbox().option("binlog_row_image", image);
        let sandbox = options.iter().fold(sandbox, |sandbox, (name, value)| sandbox.option(name, value));
        let server = sandbox.start()?;
        server.sql(&format!("CREATE DATABASE shop; USE shop; {TABLES} {ROWS}"))?;
        server.flush_binary_logs()?;
        let (gtids, log) = transactions(
            &server,
            &[
                "INSERT INTO items (id, ord, maker) VALUES (1, 10, 'm1'), (2, 10, 'm2'), (3, 20, 'm2'), (4, 40, NULL), (5, 40, 'm3')",
                "UPDATE items SET maker = 'm9' WHERE id = 5",
                "DELETE FROM makers WHERE code = 'm3'",
                "UPDATE makers SET name = 'other'",
                "DELETE FROM makers WHERE code = 'M1'",
                "UPDATE makers SET code = 'm20' WHERE code = 'm2'",
                "DELETE FROM customers WHERE id IN (2, 3)",
                "DELETE FROM orders WHERE id = 10",
            ],
        )?;
        let folder = Folder::new();
        let place = place_of(&server);
        let name = log.file_name().unwrap().to_str().unwrap();
        let undo = |chosen: &[&String], more: &[&str]| {
            let set = chosen.iter().map(|gtid| gtid.as_str()).collect::<Vec<_>>().join(",");
            let options = ["undo", "--no-defaults", "--user=root", "--gtids", &set];
            folder.run(options.iter().chain(more).map(AsRef::as_ref).chain([log.as_os_str()]))
        };
        let dump = folder.put("shop.sql", format!("USE shop; {TABLES}"));
        let schemas = [&*place, dump.to_str().unwrap()];
        for schema in schemas {
            let ran = undo(&[&gtids[0], &gtids[1]], &["--schema", schema]);
            assert_eq!(ran.code, Some(1), "{image}: {}", ran.stderr);
            let mut lines = named(&ran);
            let all = lines.len();
            // The image before the chosen UPDATE lacks what its row referred to, so that counts still.
            lines.retain(|line| image == "FULL" || !line.contains(&gtids[2]));
            assert_eq!(all, lines.len() + usize::from(image == "MINIMAL"), "{image}: {lines:#?}");
            let by = |gtid: &str, rows: &str, key: &str| {
                (
                    format!(
                        "-- changed again later, which this would lose: {rows} of shop.items by {gtid}, {name} at "
                    ),
                    format!(", below the log through foreign key {key}"),
                )
            };
            let expected = [
                by(&gtids[4], "1 row", "of_maker"),
                by(&gtids[5], "2 rows", "of_maker"),
                by(&gtids[7], "2 rows", "of_order"),
            ];
            assert_eq!(lines.len(), 4, "{image}: {lines:#?}");
            for (line, (begin, end)) in lines.iter().zip(&expected) {
                assert!(line.starts_with(begin) && line.ends_with(end), "{image}: {lines:#?}");
            }
            assert!(
                lines[3].contains("rows of shop.items may have been changed later below the log")
                    && lines[3]
                        .contains("through foreign key of_order, with 2 rows of shop.customers; the first: ")
                    && lines[3].contains(&gtids[6]),
                "{image}: {lines:#?}"
            );
            // Of images that lack columns a row is left, and that is said instead.
            assert!(
                image == "MINIMAL" || ran.stderr.contains("7 changes of rows that are undone came later"),
                "{}",
                ran.stderr
            );
        }
        // The same with cascades taken back, and from an archive, of which only parts are read.
        let cascades = undo(&[&gtids[0], &gtids[1]], &["--cascades", &place]);
        let count = if image == "FULL" { 4 } else { 5 };
        assert_eq!((cascades.code, named(&cascades).len()), (Some(1), count), "{}", cascades.stderr);
        let options = ["archive", "create", "--to", "arc"].map(AsRef::as_ref);
        folder.run(options.into_iter().chain([log.as_os_str()])).is_done();
        let set = format!("{},{}", gtids[0], gtids[1]);
        let archived = folder.run(["undo", "--gtids", &set, "--schema", dump.to_str().unwrap(), "arc"]);
        assert_eq!((archived.code, named(&archived).len()), (Some(1), count), "{}", archived.text());
        // What is chosen itself isn't later, and the last of all has nothing after it.
        let all = undo(&gtids.iter().collect::<Vec<_>>(), &["--schema", &place]);
        assert_eq!((all.code, named(&all).len()), (Some(1), 0), "{}", all.text());
        let last = undo(&[&gtids[7]], &["--schema", &place]);
        assert_eq!(named(&last), [""; 0], "{}", last.text());
        // A row that none of them reaches.
        let four = undo(&[&gtids[0]], &["--schema", &place, "--where", "id = 4", "--table", "shop.items"]);
        let only_possible = named(&four).iter().all(|line| line.contains("may have been changed"));
        assert!(only_possible, "{}", four.text());
        std::fs::remove_dir_all(folder.path("arc")).unwrap();
    }
    Ok(())
}

/// The statements in the logs tell the keys, too.
#[test]
fn keys_that_ddl_in_the_logs_tells_name_later_cascades() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option(NATIVE.0, NATIVE.1).start()?;
    server.sql("CREATE DATABASE shop")?;
    server.flush_binary_logs()?;
    server.sql(&format!("USE shop; {TABLES} {ROWS}"))?;
    let (gtids, log) = transactions(
        &server,
        &[
            "INSERT INTO items (id, ord, maker) VALUES (1, 10, 'm1')",
            "DELETE FROM makers WHERE code = 'm2'",
            "DELETE FROM makers WHERE code = 'm1'",
        ],
    )?;
    let folder = Folder::new();
    let undo = |gtid: &str| folder.run(["undo".as_ref(), "--gtids".as_ref(), gtid.as_ref(), log.as_os_str()]);
    let ran = undo(&gtids[0]);
    let lines = named(&ran);
    assert_eq!((ran.code, lines.len()), (Some(1), 1), "{}", ran.text());
    assert!(
        lines[0].contains("1 row of shop.items by ") && lines[0].contains(&gtids[2]),
        "{lines:?} {}",
        ran.stderr
    );
    let last = undo(&gtids[2]);
    assert!(last.stderr.contains("foreign key of_maker: rows of shop.items"), "{}", last.stderr);
    Ok(())
}

/// A table that refers to itself: what refers to a deleted row by way of others isn't in the log.
#[test]
fn rows_of_a_tree_may_have_gone_with_later_ones() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option(NATIVE.0, NATIVE.1).start()?;
    server.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE tree (id INT PRIMARY KEY, up INT, n INT,
         CONSTRAINT of_tree FOREIGN KEY (up) REFERENCES tree (id) ON DELETE CASCADE);
         INSERT INTO tree VALUES (1, NULL, 0), (2, 1, 0), (3, 2, 0), (9, NULL, 0)",
    )?;
    server.flush_binary_logs()?;
    let (gtids, log) = transactions(
        &server,
        &[
            "UPDATE tree SET n = 1 WHERE id = 3",
            "UPDATE tree SET n = 1 WHERE id = 9",
            "DELETE FROM tree WHERE id = 1",
        ],
    )?;
    let folder = Folder::new();
    let place = place_of(&server);
    for (gtid, code, count) in [(&gtids[0], 1, 1), (&gtids[1], 0, 0)] {
        let options = ["undo", "--no-defaults", "--user=root", "--gtids", gtid, "--schema", &place];
        let ran = folder.run(options.iter().map(AsRef::as_ref).chain([log.as_os_str()]));
        let lines = named(&ran);
        assert_eq!((ran.code, lines.len()), (Some(code), count), "{} {lines:?}", ran.stderr);
        assert!(lines.iter().all(|line| line.contains("through foreign key of_tree")), "{lines:?}");
    }
    Ok(())
}
