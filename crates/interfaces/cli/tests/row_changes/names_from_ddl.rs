//! Names of columns that come from the DDL in the logs themselves, where neither the events nor a schema have them; and what is said where nothing
//! tells them.

use std::fs::File;
use std::path::{Path, PathBuf};

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::{place_of, through_mysqlbinlog};

/// What `rows` says once of tables without names.
const UNNAMED: &str = "(binlog_row_metadata=FULL writes them; --schema tells them, from a file or a server): @1 is the first column";

fn log_of(server: &MysqlSandbox, statements: &str) -> Result<PathBuf> {
    server.flush_binary_logs()?;
    server.sql(statements)?;
    server.flush_binary_logs()
}

fn run(folder: &Folder, args: &[&str], log: &Path) -> Ran {
    folder.run(args.iter().copied().map(AsRef::as_ref).chain([log.as_os_str()]))
}

#[test]
fn ddl_in_the_logs_names_columns() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let log = log_of(
        &server,
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, paid INT, owed INT);
         INSERT INTO orders VALUES (1, 5, 100), (2, 6, 200); DELETE FROM orders WHERE id = 1;
         ALTER TABLE orders MODIFY owed INT AFTER id; UPDATE orders SET paid = 7",
    )?;
    let expected: String = [
        r#"null {"id":1,"paid":5,"owed":100}"#,
        r#"null {"id":2,"paid":6,"owed":200}"#,
        r#"{"id":1,"paid":5,"owed":100} null"#,
        r#"{"id":2,"owed":200,"paid":6} {"id":2,"owed":200,"paid":7}"#,
    ]
    .map(|line| format!("{line}\n"))
    .concat();
    let images = |ran: &Ran| -> String {
        let changes = ran.text().lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        changes.map(|change| format!("{} {}\n", change["before"], change["after"])).collect()
    };
    let rows = run(&folder, &["rows", "shop.orders", "--format", "json"], &log);
    assert_eq!((rows.code, &*rows.stderr), (Some(0), ""), "{}", rows.text());
    let sorted = |text: &str| -> Vec<Vec<u8>> {
        let sort = |line: &str| {
            let mut bytes = line.as_bytes().to_vec();
            bytes.sort_unstable();
            bytes
        };
        text.lines().map(sort).collect()
    };
    // The order of an object's fields is not that of the columns here.
    assert_eq!(sorted(&images(&rows)), sorted(&expected), "{}", rows.text());
    for (condition, count) in [("owed = 200", 2), ("after.paid = 7 AND before.paid = 6", 1)] {
        let chosen = run(&folder, &["rows", "shop.orders", "--where", condition, "--format", "json"], &log);
        assert_eq!((chosen.code, &*chosen.stderr), (Some(0), ""), "{condition}");
        assert_eq!(chosen.text().lines().count(), count, "{condition}: {}", chosen.text());
    }

    // What came before the ALTER goes back into the columns of now.
    let undone = run(&folder, &["undo", "--operation", "delete", "--operation", "update"], &log);
    assert!(
        undone.text().ends_with("; 0 rows and 3 statements not undone\n"),
        "{}{}",
        undone.text(),
        undone.stderr
    );
    let script = folder.put("undo.sql", &undone.stdout);
    let ran = server.client().stdin(File::open(script).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(server.sql("SELECT * FROM shop.orders ORDER BY id")?, "1\t100\t5\n2\t200\t6\n");
    let chosen = run(&folder, &["undo", "--where", "owed = 100", "--operation", "delete"], &log);
    assert!(
        chosen.text().contains("(`id`, `paid`, `owed`) VALUES (1, 5, 100)"),
        "{}{}",
        chosen.text(),
        chosen.stderr
    );
    assert!(chosen.text().contains("\n-- 1 row in 1 transaction; 0 rows and "), "{}", chosen.text());

    // A log without the CREATE TABLE tells no names, and a pipe is read once.
    let without = log_of(&server, "UPDATE shop.orders SET paid = 8 WHERE id = 2")?;
    let line = format!("binlogz: warning: the log has no column names for shop.orders {UNNAMED}\n");
    let unnamed = run(&folder, &["rows", "shop.orders"], &without);
    assert_eq!((unnamed.code, &*unnamed.stderr), (Some(0), &*line));
    assert!(unnamed.text().contains("@3"), "{}", unnamed.text());
    let piped = folder.run_with(["rows", "shop.orders", "-"], &std::fs::read(&log).unwrap());
    assert_eq!((piped.code, &*piped.stderr), (Some(0), &*line));
    Ok(())
}

#[test]
fn a_table_that_has_another_name_now_is_known_by_the_server() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let (folder, place) = (Folder::new(), place_of(&server));
    server.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, paid INT); CREATE TABLE gone (id INT PRIMARY KEY, x INT);
         RESET BINARY LOGS AND GTIDS; INSERT INTO orders VALUES (1, 5); INSERT INTO gone VALUES (1, 6); CREATE TABLE brief (id INT, y INT);
         INSERT INTO brief VALUES (1, 7); DELETE FROM orders; RENAME TABLE orders TO orders_old; DROP TABLE gone, brief",
    )?;
    let account = ["--no-defaults", "--user=root", "--server", &place];
    for (table, name, said) in [
        ("shop.orders", "paid", String::new()),
        ("shop.brief", "y", String::new()),
        // Nobody knows any more.
        (
            "shop.gone",
            "@2",
            format!("binlogz: warning: the log has no column names for shop.gone {UNNAMED}\n"),
        ),
    ] {
        let rows = folder.run([&["rows", table][..], &account].concat());
        assert_eq!((rows.code, &*rows.stderr), (Some(0), &*said), "{table}");
        assert!(rows.text().contains(&format!(" {name} ")), "{table}: {}", rows.text());
    }

    let log = server.flush_binary_logs()?;
    let schema = ["--no-defaults", "--user=root", "--schema", &place, "--table", "shop.orders"];
    let left = run(&folder, &[&["undo", "--operation", "delete"][..], &schema].concat(), &log);
    assert_eq!(left.code, Some(1), "{}", left.stderr);
    let why = "its table has another name, other rows or is gone since (RENAME TABLE orders TO orders_old), and the log has no column names; the \
               row has @1 = ";
    assert!(left.text().contains(why), "{}", left.text());
    Ok(())
}

#[test]
fn ddl_in_the_logs_names_columns_for_conditions_on_a_log() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let rows = "SELECT * FROM shop.orders ORDER BY id";
    for image in ["FULL", "MINIMAL"] {
        let log = log_of(
            &server,
            &format!(
                "DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; SET binlog_row_image = {image};
                 CREATE TABLE orders (id INT PRIMARY KEY, paid INT, owed INT);
                 INSERT INTO orders VALUES (1, 5, 100), (2, 6, 200), (3, 7, 100); DELETE FROM orders WHERE id < 3"
            ),
        )?;
        let front =
            ["undo", "--format", "binlog", "--force", "--output", "undo", "--operation", "delete", "--where"];
        let ran = run(&folder, &[&front[..], &["owed = 100"]].concat(), &log);
        let said = "binlogz: warning: 0 rows and 3 statements not undone; the output names each\n";
        assert_eq!((ran.code, &*ran.stderr), (Some(1), said), "{}", ran.text());
        through_mysqlbinlog(&server, &folder.path("undo"))?;
        assert_eq!(server.sql(rows)?, "1\t5\t100\n3\t7\t100\n", "{image}");
        // An image is of the table as it was.
        server
            .sql("USE shop; ALTER TABLE orders MODIFY owed INT AFTER id; DELETE FROM orders WHERE id = 3")?;
        server.flush_binary_logs()?;
        let logs = server.binlogs()?;
        let ran = folder.run(
            front
                .iter()
                .copied()
                .chain(["owed = 100"])
                .map(AsRef::as_ref)
                .chain(logs[logs.len() - 3..].iter().map(|log| log.as_os_str())),
        );
        assert_eq!(ran.code, Some(1), "{}{}", ran.text(), ran.stderr);
        assert!(ran.text().contains("its table was changed after it"), "{}{}", ran.text(), ran.stderr);
    }
    Ok(())
}
