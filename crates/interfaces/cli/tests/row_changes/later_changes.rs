//! Changes of the chosen rows that came later and weren't chosen are named: a script would lose them.

use std::fs;

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::table_at::last_gtid;
use binlogz_testkit::{Result, Tool, require_tool};

/// The lines that name them.
fn named(ran: &Ran) -> Vec<String> {
    let lines = ran.text().lines().filter(|line| line.starts_with("-- changed again later"));
    lines.map(str::to_owned).collect()
}

#[test]
fn later_changes_of_the_same_rows_are_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for metadata in ["FULL", "MINIMAL"] {
        let server = mysql.sandbox().option("binlog_row_metadata", metadata).start()?;
        let folder = Folder::new();
        server.sql(
            "CREATE DATABASE mid; USE mid; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT); CREATE TABLE o LIKE t;
             CREATE TABLE bare (v INT); INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4), (5, 'e', 5);
             INSERT INTO bare VALUES (1), (2)",
        )?;
        server.flush_binary_logs()?;
        server.sql("USE mid; UPDATE t SET n = n + 10 WHERE id <> 5; UPDATE bare SET v = v + 10")?;
        let first = server.gtid_executed()?;
        server.sql(
            "USE mid; UPDATE t SET n = 0 WHERE id = 5; INSERT INTO o VALUES (1, 'other', 1); DELETE FROM t WHERE id = 1;
             BEGIN; UPDATE t SET v = 'later' WHERE id IN (2, 5); UPDATE t SET id = 40 WHERE id = 4; COMMIT;
             UPDATE bare SET v = 20 WHERE v = 12",
        )?;
        let log = server.flush_binary_logs()?;
        let name = log.file_name().unwrap().to_str().unwrap();
        let (uuid, last) = first.trim().rsplit_once('-').unwrap();
        let uuid = uuid.split(':').next().unwrap();
        let last: u64 = last.parse().unwrap();
        let schema = folder.put(
            "mid.sql",
            "USE mid; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), n INT); CREATE TABLE bare (v INT);",
        );
        let schema = format!("--schema={}", schema.display());
        let undo = |gtids: String, more: &[&str]| {
            let options = ["undo", "--gtids", &gtids, &schema];
            folder.run(options.iter().chain(more).map(AsRef::as_ref).chain([log.as_os_str()]))
        };
        let ran = undo(format!("{uuid}:{}", last - 1), &[]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let lines = named(&ran);
        let by = |gno: u64, rows: &str| {
            format!(
                "-- changed again later, which this would lose: {rows} of mid.t by {uuid}:{gno}, {name} at "
            )
        };
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines[0].starts_with(&by(last + 3, "1 row")), "{lines:#?}");
        assert!(lines[1].starts_with(&by(last + 4, "2 rows")), "{lines:#?}");
        assert!(ran.stderr.contains("3 changes of rows that are undone came later"), "{}", ran.stderr);
        // Without a key a row is all its columns.
        let lines = named(&undo(format!("{uuid}:{last}"), &[]));
        assert!(lines.len() == 1 && lines[0].contains("1 row of mid.bare by "), "{lines:#?}");
        // All of them together lose nothing; nor does the last one.
        let all = undo(format!("{uuid}:{}-{}", last - 1, last + 5), &[]);
        assert_eq!(named(&all), [""; 0]);
        let one = undo(format!("{uuid}:{}", last + 4), &[]);
        assert_eq!((one.code, named(&one).len()), (Some(0), 0), "{}", one.stderr);
        // A row that isn't chosen may be changed.
        let where_three = undo(format!("{uuid}:{}", last - 1), &["--where", "@1 = 3"]);
        assert_eq!((where_three.code, named(&where_three).len()), (Some(0), 0), "{}", where_three.stderr);
        let where_two = undo(format!("{uuid}:{}", last - 1), &["--where", "@1 = 2"]);
        assert_eq!((where_two.code, named(&where_two).len()), (Some(1), 1), "{}", where_two.stderr);
        // In an archive only parts are read.
        let options = ["archive", "create", "--to", "arc"].map(AsRef::as_ref);
        folder.run(options.into_iter().chain([log.as_os_str()])).is_done();
        let archived = folder.run(["undo", "--gtids", &format!("{uuid}:{}", last - 1), &schema, "arc"]);
        assert_eq!(named(&archived), named(&ran));
        fs::remove_dir_all(folder.path("arc")).unwrap();
    }
    Ok(())
}

/// Found by the model: what an INSERT under MINIMAL leaves to defaults, its image doesn't have, so that alone doesn't tell which row of a
/// table without a key it made.
#[test]
fn a_later_change_of_a_row_without_a_key_is_named_though_its_insert_left_defaults_out() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_image", "MINIMAL").start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE mid; CREATE TABLE mid.bare (a INT DEFAULT 7, b INT, c VARCHAR(9) DEFAULT 'x')",
    )?;
    server.flush_binary_logs()?;
    let mut gtids = Vec::new();
    for change in [
        "INSERT INTO bare (b) VALUES (1)",
        "INSERT INTO bare (b) VALUES (2)",
        "UPDATE bare SET a = 8 WHERE b = 1",
    ] {
        server.sql(&format!("USE mid; {change}"))?;
        gtids.push(last_gtid(&server)?);
    }
    let log = server.flush_binary_logs()?;
    let log = log.to_str().unwrap();
    let place = place_of(&server);
    for (number, code, is_named) in [(0, 1, true), (1, 0, false), (2, 0, false)] {
        let gtid = &gtids[number];
        let ran =
            folder.run(["undo", "--gtids", gtid, "--no-defaults", "--user=root", "--schema", &place, log]);
        let lines = named(&ran);
        assert_eq!((ran.code, lines.len()), (Some(code), usize::from(is_named)), "{gtid}: {}", ran.text());
        assert!(
            lines.iter().all(|line| line.contains("1 row of mid.bare by ") && line.contains(&gtids[2])),
            "{lines:?}"
        );
    }
    Ok(())
}

/// Found by the model: the same of a key's column, whose default the image of the INSERT lacks.
#[test]
fn a_later_change_is_named_though_the_insert_left_a_column_of_the_key_to_its_default() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for metadata in ["FULL", "MINIMAL"] {
        let server = mysql
            .sandbox()
            .option("binlog_row_image", "MINIMAL")
            .option("binlog_row_metadata", metadata)
            .start()?;
        let folder = Folder::new();
        server.sql(
            "CREATE DATABASE mid; CREATE TABLE mid.two (a INT, b INT NOT NULL DEFAULT 7, c INT, PRIMARY KEY (a, b))",
        )?;
        server.flush_binary_logs()?;
        let mut gtids = Vec::new();
        for change in [
            "INSERT INTO two (a) VALUES (1)",
            "INSERT INTO two (a) VALUES (2)",
            "UPDATE two SET b = 8 WHERE a = 1",
        ] {
            server.sql(&format!("USE mid; {change}"))?;
            gtids.push(last_gtid(&server)?);
        }
        let log = server.flush_binary_logs()?;
        let log = log.to_str().unwrap();
        let place = place_of(&server);
        for (number, code, count) in [(0, 1, 1), (1, 0, 0), (2, 0, 0)] {
            let gtid = &gtids[number];
            let options = ["undo", "--gtids", gtid, "--no-defaults", "--user=root", "--schema", &place, log];
            let ran = folder.run(options);
            let lines = named(&ran);
            assert_eq!((ran.code, lines.len()), (Some(code), count), "{metadata} {gtid}: {}", ran.text());
        }
    }
    Ok(())
}
