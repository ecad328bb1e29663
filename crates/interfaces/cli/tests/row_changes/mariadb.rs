//! What MariaDB logs otherwise than MySQL: collations beside geometry columns, ALTER TABLE in two phases, foreign keys at columns.

use std::thread;

use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, Result, SandboxServer, Tool, require_tool};
use serde_json::Value;

use crate::common::{Folder, Ran};

/// The rows of a log as JSON lines: the images after each change.
fn images_after(folder: &Folder, log: &str) -> Vec<Value> {
    let ran = folder.run(["dump", "--no-defaults", "--no-login-paths", "--format=jsonl", log]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{log}");
    let lines = ran.text().lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line.get("after").cloned()).collect()
}

#[test]
fn texts_beside_a_geometry_column_are_texts() -> Result<()> {
    for tool in [Tool::Mariadb, Tool::Mariadb114] {
        require_tool!(tool);
        for metadata in ["FULL", "MINIMAL"] {
            let options =
                [("binlog-format", "ROW"), ("log-bin", "binlog"), ("binlog-row-metadata", metadata)];
            let server = MariadbSandbox::start_version(tool, &options)?;
            let folder = Folder::new();
            // By MySQL's rules the first of the texts would be binary.
            server.sql(
                "CREATE DATABASE shop; USE shop;
                 CREATE TABLE g (id INT PRIMARY KEY, p GEOMETRY, a TEXT, b TEXT) CHARSET utf8mb4;
                 INSERT INTO g VALUES (1, POINT(1, 2), 'ä', 'ö'), (2, NULL, 'ü', 'b');
                 SET SESSION binlog_row_image = MINIMAL; UPDATE g SET b = 'c' WHERE id = 1; DELETE FROM g WHERE id = 2",
            )?;
            let log = server.flush_binary_logs()?;
            let path = log.to_str().unwrap();
            let images = images_after(&folder, path);
            assert_eq!((&images[0]["a"], &images[0]["b"]), (&"ä".into(), &"ö".into()), "{metadata}");
            assert_eq!((&images[1]["a"], &images[1]["b"]), (&"ü".into(), &"b".into()), "{metadata}");
            // Of an archive, too, whose index has no more than the table map.
            folder.run(["archive", "create", "--to", "arc", path]).is_done();
            let name = format!("arc/{}", log.file_name().unwrap().to_str().unwrap());
            assert_eq!(images_after(&folder, &name), images);
            // An image that lacks columns is rebuilt of the earlier one.
            let definition =
                "CREATE TABLE g (id INT PRIMARY KEY, p GEOMETRY, a TEXT, b TEXT) CHARSET utf8mb4";
            let schema = folder.put("schema.sql", format!("USE shop; {definition};"));
            let script =
                folder.run(["undo", "--table", "shop.g", "--schema", schema.to_str().unwrap(), path]);
            assert!(script.text().contains("'ü', 'b')"), "{metadata}: {}\n{}", script.text(), script.stderr);
        }
    }
    Ok(())
}

/// How many transactions `incident` looked at.
fn transactions(incident: &Ran) -> String {
    let words: Vec<_> = incident.text().split_whitespace().collect();
    let place = words.iter().position(|word| word.starts_with("transactions")).unwrap();
    words[place - 1].to_owned()
}

/// Inserts the next rows, each in a transaction of its own.
fn insert(server: &SandboxServer, last: &mut usize, count: usize) -> Result<()> {
    for _ in 0..count {
        *last += 1;
        server.sql(&format!("INSERT INTO shop.two (id, a, b) VALUES ({last}, -{last}, 2 * {last})"))?;
    }
    Ok(())
}

/// A statement that MariaDB logs where it starts, and again where it commits or is rolled back, changes the table where it commits.
#[test]
fn an_alter_in_two_phases_counts_where_it_commits() -> Result<()> {
    require_tool!(Tool::Mariadb);
    let options = [
        ("binlog-format", "ROW"),
        ("log-bin", "binlog"),
        ("binlog-row-metadata", "MINIMAL"),
        ("binlog-alter-two-phase", "ON"),
    ];
    let server = MariadbSandbox::start(&options)?;
    let folder = Folder::new();
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.two (id INT PRIMARY KEY, a INT, b INT)")?;
    // Enough that an ALTER takes a while.
    server.sql("SET sql_log_bin = 0; USE shop; INSERT INTO two SELECT seq, -1, 0 FROM seq_1001_to_150000")?;
    let mut last = 0;
    insert(&server, &mut last, 2)?;
    let rolled_back = "ALTER TABLE shop.two MODIFY b INT FIRST, ADD UNIQUE KEY (a)";
    assert!(server.sql(rolled_back).is_err(), "there are equal values");
    insert(&server, &mut last, 2)?;
    thread::scope(|scope| -> Result<()> {
        let alter = "ALTER TABLE shop.two MODIFY b INT FIRST, ADD c INT, ALGORITHM=INPLACE, LOCK=NONE";
        let altering = scope.spawn(|| server.sql(alter));
        while !altering.is_finished() {
            insert(&server, &mut last, 1)?;
        }
        altering.join().unwrap().map(drop)
    })?;
    insert(&server, &mut last, 2)?;
    server.sql("ALTER TABLE shop.two ADD d INT FIRST; ALTER TABLE shop.two DROP c")?;
    insert(&server, &mut last, 2)?;
    let log = server.flush_binary_logs()?;
    let events =
        server.sql(&format!("SHOW BINLOG EVENTS IN '{}'", log.file_name().unwrap().to_str().unwrap()))?;
    for step in ["START ALTER", "COMMIT ALTER", "ROLLBACK ALTER"] {
        assert!(events.contains(step), "{step}: {events}");
    }
    let images = images_after(&folder, log.to_str().unwrap());
    assert_eq!(images.len(), last);
    for (number, image) in (1_i64..).zip(&images) {
        let read = ["id", "a", "b"].map(|name| image[name].as_i64());
        assert_eq!(read, [Some(number), Some(-number), Some(2 * number)], "{image}\n{events}");
    }
    Ok(())
}

/// REFERENCES at a column is a foreign key for MariaDB, and nothing for MySQL before 9.0.
#[test]
fn a_foreign_key_at_a_column_counts_where_the_server_has_it() -> Result<()> {
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW"), ("log-bin", "binlog")])?;
    let mysql = Mysql56Sandbox::start(&[])?;
    let servers: [(&SandboxServer, &str, i32); 2] = [(&mariadb, "0\n", 1), (&mysql, "1\n", 0)];
    for (server, left, code) in servers {
        let folder = Folder::new();
        let tables = "CREATE TABLE p (id INT PRIMARY KEY); CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE \
                      CASCADE) ENGINE=InnoDB;";
        server.sql(&format!(
            "CREATE DATABASE shop; USE shop; {tables} INSERT INTO p VALUES (1); INSERT INTO c VALUES (10, 1)"
        ))?;
        server.flush_binary_logs()?;
        server.sql("DELETE FROM shop.p")?;
        assert_eq!(server.sql("SELECT COUNT(*) FROM shop.c")?, left);
        let log = server.flush_binary_logs()?;
        let schema = folder.put("schema.sql", format!("USE shop; {tables}"));
        let schema = schema.to_str().unwrap();
        let ran = folder.run(["undo", "--table", "shop.p", "--schema", schema, log.to_str().unwrap()]);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        let said = "foreign key of the column p: rows of shop.c that the server changed with 1 row of shop.p are in no log";
        assert_eq!(ran.stderr.contains(said), code == 1, "{}", ran.stderr);
        // Which of both a server does isn't known before its log is read.
        let ran = folder.run(["undo", "--cascades", schema, log.to_str().unwrap()]);
        assert!(ran.stderr.contains("has REFERENCES at the column p of c"), "{}", ran.stderr);
    }
    Ok(())
}

/// `rows`, `undo`, `redo` and `incident` of a server say what they say of its files, and the script of `undo` takes the changes back.
#[test]
fn logs_that_the_server_sends_are_its_files() -> Result<()> {
    require_tool!(Tool::Mariadb);
    let options = [("binlog-format", "ROW"), ("log-bin", "binlog"), ("log-bin-compress", "ON")];
    let server = MariadbSandbox::start(&options)?;
    let folder = Folder::new();
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.two (id INT PRIMARY KEY, a INT, b INT)")?;
    let mut last = 0;
    insert(&server, &mut last, 3)?;
    let before = server.sql("SELECT * FROM shop.two ORDER BY id")?;
    server.flush_binary_logs()?;
    server.sql("UPDATE shop.two SET b = 7; DELETE FROM shop.two WHERE id = 2")?;
    insert(&server, &mut last, 1)?;
    server.flush_binary_logs()?;
    let place = server.socket().display().to_string();
    let from_server = ["--no-defaults", "--user=root", "--server", &place];
    let names = ["binlog.000001", "binlog.000002"];
    for log in server.binlogs()? {
        folder.put(log.file_name().unwrap().to_str().unwrap(), std::fs::read(&log).unwrap());
    }
    for command in [
        &["rows", "shop.two"][..],
        &["rows", "shop.two", "--format=json"],
        &["undo", "--table=shop.two"],
        &["redo", "--table=shop.two"],
    ] {
        let with_columns = ["--no-defaults", "--user=root", "--schema", &place];
        let file = folder.run([command, &with_columns, &names].concat());
        let sent = folder.run([command, &from_server, &names].concat());
        assert!(
            !sent.stdout.is_empty() && sent.code == file.code,
            "{command:?}: {} {}",
            sent.stderr,
            file.stderr
        );
        assert_eq!(sent.text(), file.text(), "{command:?}");
    }
    let sent = folder.run([&["incident"], &from_server[..], &names].concat());
    let file = folder.run([&["incident"], &names[..]].concat());
    assert_eq!((transactions(&sent), sent.code), (transactions(&file), file.code), "{}", sent.text());

    let script = folder.run([&["undo", "--table=shop.two"], &from_server[..], &names[1..]].concat());
    assert_eq!(script.code, Some(0), "{}", script.stderr);
    server.sql(script.text())?;
    assert_eq!(server.sql("SELECT * FROM shop.two ORDER BY id")?, before);
    Ok(())
}
