//! `undo --all --until`, where it must not end in silence: conflicts of rows that go back as two changes, rows that foreign keys changed below
//! the log, names that nothing has, logs with a gap, moments within the second of a log's begin.

use binlogz_testkit::{Mysql56Sandbox, Result, Tool, require_tool};

use crate::cascades::FAMILY;
use crate::common::Folder;
use crate::rewind::{SHOP, now, rewound, rewound_in_place};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

/// The second at which a log begins that is made after `SET timestamp = 1700000000`.
const BEGIN: &str = "2023-11-14T22:13:20";

/// A row gets its earlier values by two changes where a unique value or the key was another one: if those are taken by now, it must not stay away.
#[test]
fn a_row_whose_earlier_values_are_taken_stays() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE d; USE d; CREATE TABLE taken (id INT PRIMARY KEY, name VARCHAR(10) UNIQUE, n INT NOT NULL DEFAULT 0);
         CREATE TABLE changed LIKE taken; CREATE TABLE moved (id INT PRIMARY KEY, n INT);
         INSERT INTO taken (id, name) VALUES (1, 'a'), (2, 'b'), (3, 'c'); INSERT INTO changed SELECT * FROM taken;
         INSERT INTO moved VALUES (1, 1), (2, 2)",
    )?;
    let until = last_gtid(&server)?;
    server.sql(
        "USE d; UPDATE taken SET name = 'x' WHERE id = 1; UPDATE taken SET n = 1 WHERE id > 1; UPDATE changed SET name = 'x' WHERE id = 1;
         UPDATE changed SET n = 1 WHERE id > 1; UPDATE moved SET id = 9 WHERE id = 1",
    )?;
    server.flush_binary_logs()?;
    let logs = server.binlogs()?;
    let logs: Vec<&str> = logs[..logs.len() - 1].iter().map(|log| log.to_str().unwrap()).collect();
    server.sql(
        "USE d; INSERT INTO taken (id, name) VALUES (50, 'a'); UPDATE changed SET n = 7 WHERE id = 1; INSERT INTO moved VALUES (1, 100)",
    )?;
    let place = place_of(&server);
    let run = |table: &str, more: &[&str]| {
        let front = ["undo", "--no-defaults", "--user=root", "--all", "--until", &until, "--batch=1"];
        folder.run([&front, &["--apply", &place, "--table", table][..], more, &logs].concat())
    };
    let rows = |table: &str| server.sql(&format!("SELECT * FROM {table} ORDER BY id"));
    for table in ["d.taken", "d.moved"] {
        let before = rows(table)?;
        let dry = run(table, &[]);
        assert_eq!(dry.code, Some(1), "{table}: {}", dry.stderr);
        assert!(dry.text().contains("--execute would end here: conflict: "), "{table}: {}", dry.text());
        let ran = run(table, &["--execute"]);
        assert_eq!(ran.code, Some(2), "{table}: {}", ran.text());
        assert!(ran.stderr.contains("so the run ends: its batch is rolled back"), "{table}: {}", ran.stderr);
        assert_eq!(rows(table)?, before);
    }
    // One that others changed meanwhile was not deleted: the others go back.
    let ran = run("d.changed", &["--execute"]);
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.stderr.contains("2 rows in conflict"), "{}", ran.stderr);
    assert_eq!(rows("d.changed")?, "1\tx\t7\n2\tb\t0\n3\tc\t0\n");
    // A kill between the two changes must not leave it away either: they are one transaction.
    server.sql("DELETE FROM d.taken WHERE id = 50")?;
    let ran = run("d.taken", &["--execute"]);
    assert!(ran.text().contains("undone in 1 transaction\n"), "{}", ran.text());
    assert_eq!(rows("d.taken")?, "1\ta\t0\n2\tb\t0\n3\tc\t0\n");
    Ok(())
}

/// MySQL 9.7.4 ignores the UPDATE of a parent, but not what one of its foreign keys had carried on before the other one refused it: a child is left
/// without its parent. A row that was so at the moment isn't made so again.
#[test]
fn a_row_that_had_no_parent_at_the_moment_is_told() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE d; USE d; CREATE TABLE parent (id INT PRIMARY KEY); CREATE TABLE child (id INT PRIMARY KEY, parent INT, mate INT,
           FOREIGN KEY (parent) REFERENCES parent (id) ON UPDATE CASCADE, FOREIGN KEY (mate) REFERENCES parent (id));
         INSERT INTO parent VALUES (1), (6); INSERT INTO child VALUES (1, 6, NULL), (2, 1, 6); UPDATE IGNORE parent SET id = 7 WHERE id = 6",
    )?;
    assert_eq!(
        server.sql("SELECT * FROM d.child, d.parent p WHERE parent = 7 AND p.id = 6")?,
        "1\t7\tNULL\t6\n"
    );
    let until = last_gtid(&server)?;
    server.sql("DELETE FROM d.child WHERE id = 1; INSERT INTO d.parent VALUES (50)")?;
    let now = server.checksum_tables("d")?;
    let ran = rewound_in_place(&folder, &server, &until, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    let line = "1 row of tables with foreign keys would be left without the rows that they refer to";
    assert!(ran.stderr.contains(line), "{}", ran.stderr);
    assert_eq!(server.checksum_tables("d")?, now);
    Ok(())
}

#[test]
fn rows_that_foreign_keys_may_have_changed_below_the_log_are_named() -> Result<()> {
    require_tool!(Tool::Mysql56);
    let server = Mysql56Sandbox::start(&[])?;
    let folder = Folder::new();
    server.sql(FAMILY)?;
    let executed = server.sql("SELECT @@GLOBAL.gtid_executed")?;
    let (uuid, numbers) = executed.trim().split_once(':').unwrap();
    let until = format!("{uuid}:{}", numbers.rsplit('-').next().unwrap());
    server.sql("DELETE FROM shop.parent WHERE id = 1")?;
    let last = server.flush_binary_logs()?;
    let logs: Vec<_> = server.binlogs()?.into_iter().filter(|log| *log <= last).collect();
    let logs: Vec<&str> = logs.iter().map(|log| log.to_str().unwrap()).collect();
    let front = ["undo", "--no-defaults", "--user=root", "--all", "--until", &until, "--format=binlog"];
    let ran = folder.run([&front, &["--output=log"][..], &logs].concat());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("1 transaction on account of which foreign keys may have changed rows that are not in the log (--schema tells): such rows aren't undone; the first is "),
        "{}",
        ran.stderr
    );
    Ok(())
}

#[test]
fn a_table_that_nothing_has_is_named_without_a_schema_too() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(SHOP)?;
    let until = last_gtid(&server)?;
    server.sql("INSERT INTO shop.bag VALUES ('brief'); DELETE FROM shop.bag WHERE what = 'brief'")?;
    let log = server.flush_binary_logs()?;
    let run = |table: &str| {
        folder.run(["undo", "--all", "--until", &until, "--table", table, log.to_str().unwrap()])
    };
    for table in ["shop.bgg", "shpo.*"] {
        let ran = run(table);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(&format!("--table {table}: the logs have no row of it")),
            "{}",
            ran.stderr
        );
    }
    // Rows that came and went are rows.
    for table in ["shop.bag", "shop.*"] {
        let ran = run(table);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    Ok(())
}

#[test]
fn named_logs_of_a_server_follow_one_another() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("gtid-mode", "OFF").start()?;
    let folder = Folder::new();
    server.sql(&format!("{SHOP} DO SLEEP(1.2)"))?;
    let until = now(&server)?;
    for text in ["one", "two", "three"] {
        server.sql(&format!("INSERT INTO shop.bag VALUES ('{text}')"))?;
        server.flush_binary_logs()?;
    }
    let logs = server.binlogs()?;
    let names: Vec<&str> =
        logs[logs.len() - 4..].iter().map(|log| log.file_name().unwrap().to_str().unwrap()).collect();
    let [one, two, three, last] = names[..] else { panic!("{names:?}") };
    let place = place_of(&server);
    for (named, found, expected) in [
        ([one, three], format!("{three} is named after {one}"), two),
        ([two, one], format!("{one} is named after {two}"), three),
    ] {
        let line = format!("{found}, expected {expected}, the log after it");
        for ran in [
            rewound(&folder, &server, &until, &named),
            folder.run(
                ["undo", "--no-defaults", "--user=root", "--table", "shop.bag", "--server", &place]
                    .iter()
                    .chain(&named),
            ),
        ] {
            assert_eq!(ran.code, Some(2), "{}", ran.text());
            assert!(ran.stderr.contains(&line), "{line}: {}", ran.stderr);
        }
    }
    let ran = rewound(&folder, &server, &until, &[one, two]);
    assert!(
        ran.stderr
            .contains(&format!("its logs after {two}, up to {last}, aren't read: what they changed stays")),
        "{}",
        ran.stderr
    );
    assert!(ran.text().contains("'two'") && !ran.text().contains("'three'"), "{}", ran.text());
    Ok(())
}

#[test]
fn an_empty_log_without_gtids_may_not_be_the_first() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("gtid-mode", "OFF").start()?;
    server.sql("SET timestamp = 1700000000; FLUSH BINARY LOGS")?;
    let last = server.binlogs()?.pop().unwrap();
    let until = format!("{BEGIN}.5Z").replace(":20.", ":21.");
    let ran = Folder::new().run(["undo", "--all", "--until", &until, last.to_str().unwrap()]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(
            "have no transaction of before the moment: changes that came between may be in an earlier log"
        ),
        "{}",
        ran.stderr
    );
    Ok(())
}

#[test]
fn a_moment_within_the_second_of_the_first_log_is_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(SHOP)?;
    server.sql(
        "SET timestamp = 1700000000; RESET BINARY LOGS AND GTIDS; SET timestamp = DEFAULT; INSERT INTO shop.bag VALUES ('late')",
    )?;
    let ran = rewound_in_place(&Folder::new(), &server, &format!("{BEGIN}.5Z"), &[]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("the first log begins within this second"), "{}", ran.stderr);
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.bag")?, "3\n");
    Ok(())
}
