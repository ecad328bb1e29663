//! Statements logged as text that change a table without naming it: through a view, a trigger, a stored function or a foreign key.
//! `table-at` refuses each, and goes on over those that change nothing else; `undo --table` names them.

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

const TABLES: &str = "CREATE DATABASE d; USE d;
    CREATE TABLE parent (id INT PRIMARY KEY);
    CREATE TABLE between_them (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE);
    CREATE TABLE orders (id INT PRIMARY KEY, owed INT, b INT, FOREIGN KEY (b) REFERENCES between_them (id) ON DELETE CASCADE);
    CREATE TABLE source (id INT PRIMARY KEY);
    CREATE TABLE apart (id INT PRIMARY KEY, n INT);
    CREATE TABLE strict_parent (id INT PRIMARY KEY);
    CREATE TABLE strict_child (p INT, FOREIGN KEY (p) REFERENCES strict_parent (id));
    CREATE TABLE rest (id INT PRIMARY KEY);
    CREATE VIEW v AS SELECT * FROM orders;
    CREATE VIEW joined AS SELECT a.n, o.owed FROM apart a JOIN orders o ON o.id = a.id;
    CREATE TRIGGER t AFTER INSERT ON source FOR EACH ROW UPDATE orders SET owed = owed + NEW.id;
    CREATE FUNCTION f(x INT) RETURNS INT MODIFIES SQL DATA BEGIN UPDATE orders SET owed = x; RETURN x; END;;
    INSERT INTO parent VALUES (1), (2); INSERT INTO between_them VALUES (1, 1), (2, 2); INSERT INTO apart VALUES (1, 1);
    INSERT INTO orders VALUES (1, 100, 1), (2, 200, 2), (3, 300, NULL)";

fn run(folder: &Folder, server: &MysqlSandbox, user: &str, at: &str, more: &[&str]) -> Ran {
    let place = place_of(server);
    let arguments = ["table-at", "d.orders", "--at", at, "--no-defaults", "--user", user, "--server", &place];
    folder.run(arguments.iter().chain(more).copied())
}

/// What a script makes again, without its comments.
fn rows(script: &Ran) -> Vec<&str> {
    script.text().lines().filter(|line| line.starts_with('(') || line.starts_with("INSERT")).collect()
}

#[test]
fn a_table_changed_by_statements_that_name_others_is_not_told() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("log_bin_trust_function_creators", "ON").start()?;
    let folder = Folder::new();
    let (tables, rest) = TABLES.split_once("CREATE FUNCTION").unwrap();
    let (function, inserts) = rest.split_once(";;").unwrap();
    server.sql(tables)?;
    server.sql(&format!("USE d;\nDELIMITER //\nCREATE FUNCTION {function}//\nDELIMITER ;\nCREATE VIEW calling AS SELECT f(id + 40) AS x FROM rest; INSERT INTO rest VALUES (1);{inserts}"))?;

    let as_text = |text: &str| server.sql(&format!("USE d; SET SESSION binlog_format = STATEMENT; {text}"));
    for text in [
        "UPDATE v SET owed = 7 WHERE id = 1",
        "UPDATE joined SET owed = 8",
        "UPDATE apart a JOIN v ON v.id = a.id SET v.owed = 9",
        "INSERT INTO source VALUES (1)",
        "DELETE FROM parent WHERE id = 1",
        "INSERT INTO apart VALUES (f(4), 1)",
        "DELETE FROM v WHERE id = 2",
        "INSERT INTO apart SELECT x, 1 FROM calling",
    ] {
        let before = last_gtid(&server)?;
        as_text(text)?;
        let ran = run(&folder, &server, "root", &before, &[]);
        assert_eq!((ran.code, ran.text()), (Some(2), ""), "{text}: {}", ran.stderr);
        let gtid = last_gtid(&server)?;
        assert!(ran.stderr.contains(&gtid) && ran.stderr.contains(text), "{text}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("may have changed the table through a view, a trigger"),
            "{text}: {}",
            ran.stderr
        );
    }

    let logs: Vec<String> = server.binlogs()?.iter().map(|log| log.display().to_string()).collect();
    let undo = |table: &str| {
        folder.run(["undo", "--table", table].into_iter().chain(logs.iter().map(String::as_str)))
    };
    let ran = undo("d.orders");
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the chosen transactions have 8 statements on other tables, logged as text"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("UPDATE v SET owed = 7 WHERE id = 1"), "{}", ran.stderr);

    // These change nothing else, and the server says so.
    let before = last_gtid(&server)?;
    let expected = run(&folder, &server, "root", &before, &[]);
    expected.is_done();
    let expected = rows(&expected).join("\n");
    as_text(
        "INSERT INTO apart VALUES (10, 1), (11, 2); UPDATE apart SET n = n + 1 WHERE id > 9; DELETE FROM d.rest",
    )?;
    as_text("INSERT INTO strict_parent VALUES (1); INSERT INTO strict_child VALUES (1)")?;
    // Words that are names of views, also of information_schema, in DDL that runs no function.
    as_text(
        "CREATE TABLE parts (id INT PRIMARY KEY, session INT, v INT) PARTITION BY HASH (id) PARTITIONS 2; \
        ALTER TABLE parts PARTITION BY HASH (id) PARTITIONS 4",
    )?;
    let ran = run(&folder, &server, "root", &before, &[]);
    ran.is_done();
    assert_eq!(rows(&ran).join("\n"), expected);

    // An account that sees no triggers can't say so.
    server.sql("CREATE USER looker; GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT, CREATE TEMPORARY TABLES ON *.* TO looker; \
        GRANT ALL ON d.orders TO looker")?;
    let ran = run(&folder, &server, "looker", &before, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("INSERT INTO apart"), "{}", ran.stderr);

    // Whether the trigger was there at that statement isn't known.
    let before = last_gtid(&server)?;
    as_text("CREATE TRIGGER late AFTER INSERT ON rest FOR EACH ROW DELETE FROM orders WHERE id = NEW.id")?;
    as_text("INSERT INTO rest VALUES (3)")?;
    as_text("DROP TRIGGER late")?;
    let ran = run(&folder, &server, "root", &before, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("INSERT INTO rest VALUES (3)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("can't be told, for they were changed by"), "{}", ran.stderr);
    let passed = run(&folder, &server, "root", &before, &["--over-statements"]);
    assert_eq!(passed.code, Some(1), "{}", passed.stderr);
    assert!(
        passed.stderr.contains("--over-statements passed over 1 statement on other tables"),
        "{}",
        passed.stderr
    );
    Ok(())
}
