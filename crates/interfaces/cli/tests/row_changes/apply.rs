//! `undo --apply`: conflicts, kills, refusals, on real servers.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::table_at::number;

const TABLES: &str = "CREATE DATABASE shop; USE shop;
    CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20), note TEXT, twice INT AS (id * 2) STORED);
    CREATE TABLE events (what VARCHAR(20), count INT);";

/// The arguments of an undo of `log` on the server.
fn undo(server: &MysqlSandbox, more: &[&str], log: &Path) -> Vec<String> {
    let place = place_of(server);
    let mut args = ["undo", "--no-defaults", "--user=root", "--apply", &place].map(str::to_owned).to_vec();
    args.extend(more.iter().map(|&more| more.to_owned()));
    args.push(log.display().to_string());
    args
}

/// The table's contents, row by row.
fn rows(server: &MysqlSandbox, table: &str) -> Result<BTreeMap<String, String>> {
    let rows = server.sql(&format!("SELECT * FROM shop.{table} ORDER BY 1"))?;
    Ok(rows
        .lines()
        .filter_map(|row| row.split_once('\t'))
        .map(|(key, rest)| (key.into(), rest.into()))
        .collect())
}

fn conflicts(ran: &Ran) -> Vec<String> {
    ran.text().lines().filter_map(|line| line.trim().strip_prefix("conflict: ")).map(str::to_owned).collect()
}

#[test]
fn rows_that_somebody_changed_are_reported_and_left() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    server.sql(
        "USE shop; INSERT INTO orders (id, state, note) VALUES (1, 'a', 'n'), (2, 'b', 'n'), (3, 'c', 'n'), (4, 'd', 'n'),
         (5, 'e', 'n'); INSERT INTO events VALUES ('x', 1), ('x', 1), ('y', 2)",
    )?;
    let before = rows(&server, "orders")?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; UPDATE orders SET state = 'changed' WHERE id IN (1, 2); DELETE FROM orders WHERE id IN (3, 4);
         INSERT INTO orders (id, state, note) VALUES (6, 'f', 'n'), (7, 'g', 'n'); DELETE FROM events LIMIT 1;
         UPDATE events SET count = 3 WHERE what = 'y'",
    )?;
    let log = server.flush_binary_logs()?;
    let after = server.checksum_tables("shop")?;

    let dry = folder.run(undo(&server, &[], &log));
    dry.is_done();
    assert!(dry.text().contains("shop.orders: rows that would be 2 inserted, 2 updated, 2 deleted; 0 of them overwritten; 0 conflicts\n"), "{}", dry.text());
    assert!(dry.text().ends_with("dry run: nothing is undone; --execute does it\n"), "{}", dry.text());
    assert_eq!(server.checksum_tables("shop")?, after);

    // One of each kind is changed by somebody else, and the row without a key.
    server.sql(
        "USE shop; UPDATE orders SET note = 'mine' WHERE id = 1; INSERT INTO orders (id, state, note) VALUES (3, 'mine', '');
         UPDATE orders SET note = 'mine' WHERE id = 6; UPDATE events SET count = 4 WHERE what = 'y'",
    )?;
    for execute in [&[][..], &["--execute"]] {
        let ran = folder.run(undo(&server, execute, &log));
        assert_eq!(ran.code, Some(1));
        assert_eq!(ran.stderr, "binlogz: warning: 4 rows in conflict; the output names each\n");
        let told = conflicts(&ran);
        let parts = [
            "UPDATE of a row in shop.events: `what` = 'y', `count` = 2: its table has no key, so whether this was done already can't be told: an equal row was changed in the same way by ",
            "INSERT of a row in shop.orders: `id` = 6: the log left `id` = 6 AND CAST(`state` AS BINARY) = 'f' AND CAST(`note` AS BINARY) = 'n' AND `twice` = 12; now it is id = '6', state = 'f', note = 'mine', twice = '12'",
            "DELETE of a row in shop.orders: `id` = 3: the log left no such row; now it is id = '3', state = 'mine', note = '', twice = '6'; the server says: Duplicate entry '3' for key 'orders.PRIMARY'",
            "UPDATE of a row in shop.orders: `id` = 1: the log left `id` = 1 AND",
        ];
        assert_eq!(told.len(), parts.len(), "{told:#?}");
        for (told, part) in told.iter().zip(parts) {
            assert!(told.starts_with(part), "{told}");
        }
    }
    let again = folder.run(undo(&server, &["--execute"], &log));
    let lines: Vec<_> = again.text().lines().map(str::to_owned).collect();
    assert_eq!(
        lines.last().map(|line| &**line),
        Some("nothing is undone by this run: each row is in conflict")
    );
    let now = rows(&server, "orders")?;
    let expected = [
        ("1", "changed\tmine\t2"),
        ("2", "b\tn\t4"),
        ("3", "mine\t\t6"),
        ("4", "d\tn\t8"),
        ("5", "e\tn\t10"),
        ("6", "f\tmine\t12"),
    ];
    assert_eq!(now, expected.map(|(key, rest)| (key.to_owned(), rest.to_owned())).into());

    let only = ["--execute", "--table", "shop.orders", "--on-conflict", "overwrite"];
    let over = folder.run(undo(&server, &only, &log));
    // A row that already is as it should be is a conflict too: nothing tells it from somebody's change.
    assert!(over.text().contains("4 of them overwritten"), "{}", over.text());
    // Of an updated row, only the columns that the change had changed.
    let mut expected = before;
    expected.insert("1".to_owned(), "a\tmine\t2".to_owned());
    assert_eq!(rows(&server, "orders")?, expected);
    Ok(())
}

#[test]
fn a_run_that_is_killed_goes_on_with_its_journal() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    // Without a key a row that is inserted twice would stay: nothing but the journal tells.
    let numbers: Vec<String> = (0..3000).map(|number| format!("('row', {number})")).collect();
    server.sql(&format!("INSERT INTO shop.events VALUES {}", numbers.join(", ")))?;
    let before = server.checksum_tables("shop")?;
    server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.events")?;
    let log = server.flush_binary_logs()?;
    let journal = folder.path("journal");
    let options = ["--execute", "--batch", "10", "--journal", journal.to_str().unwrap()];
    let lines = || std::fs::read_to_string(&journal).unwrap_or_default().lines().count();
    let mut kills = 0;
    for _ in 0..6 {
        let begin = lines();
        let mut run = folder
            .binlogz(undo(&server, &options, &log))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Instant::now();
        // Some batches later, wherever that is between two of its steps.
        while lines() < begin + 20
            && run.try_wait().unwrap().is_none()
            && started.elapsed() < Duration::from_secs(120)
        {
            sleep(Duration::from_millis(2));
        }
        run.kill().unwrap();
        kills += u64::from(run.wait().unwrap().code().is_none());
    }
    assert!(kills > 0, "it was never killed in time");
    let last = folder.run(undo(&server, &options, &log));
    assert_eq!((last.code, &*last.stderr), (Some(0), ""), "{}", last.text());
    assert!(last.text().contains("rows were done by earlier runs with this journal"), "{}", last.text());
    assert_eq!(server.checksum_tables("shop")?, before);

    // All is done: once more does nothing. Other changes don't go on with this journal.
    let again = folder.run(undo(&server, &options, &log));
    assert!(again.text().ends_with("undone in 0 transactions\n"), "{}", again.text());
    let other = folder.run(undo(
        &server,
        &["--execute", "--batch", "11", "--journal", journal.to_str().unwrap()],
        &log,
    ));
    assert!(other.stderr.contains("journal: is of other changes"), "{}", other.stderr);
    assert_eq!((other.code, server.checksum_tables("shop")?), (Some(2), before));
    Ok(())
}

#[test]
fn an_undo_is_undone_by_what_it_tells() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    for gtids in ["ON", "OFF"] {
        let server =
            mysql.sandbox().option("gtid_mode", gtids).option("enforce_gtid_consistency", "ON").start()?;
        server.sql(TABLES)?;
        server.sql("USE shop; INSERT INTO orders (id, state) VALUES (1, 'a'), (2, 'b'), (3, 'c')")?;
        server.flush_binary_logs()?;
        server.sql("UPDATE shop.orders SET state = 'x'; DELETE FROM shop.orders WHERE id = 2")?;
        let log = server.flush_binary_logs()?;
        let after = server.checksum_tables("shop")?;
        let done = folder.run(undo(&server, &["--execute", "--batch", "2"], &log));
        done.is_done();
        assert_ne!(server.checksum_tables("shop")?, after);
        server.sql("INSERT INTO shop.orders (id) VALUES (100)")?;
        let log = server.flush_binary_logs()?;
        let told = done.text().lines().last().unwrap_or_default();
        let options: Vec<&str> = match told.strip_prefix("GTIDs: ") {
            Some(rest) => vec!["--gtids", rest.split_once(';').map_or(rest, |(gtids, _)| gtids)],
            None => told.split(' ').skip(2).take(4).collect(),
        };
        assert_eq!(told.starts_with("GTIDs: "), gtids == "ON", "{told}");
        folder.run(undo(&server, &[&options[..], &["--execute"]].concat(), &log)).is_done();
        server.sql("DELETE FROM shop.orders WHERE id = 100")?;
        assert_eq!(server.checksum_tables("shop")?, after, "{told}");
    }
    Ok(())
}

#[test]
fn what_the_server_does_not_take_is_refused_before_anything_is_changed() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    server.sql("INSERT INTO shop.orders (id, state) VALUES (1, 'a'), (2, 'b')")?;
    server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.orders")?;
    let log = server.flush_binary_logs()?;
    let refused = |line: &str| -> Result<()> {
        let ran = folder.run(undo(&server, &["--execute"], &log));
        assert_eq!(ran.code, Some(2), "{}", ran.text());
        assert!(ran.stderr.contains(line), "{}", ran.stderr);
        Ok(())
    };
    server.sql("CREATE TRIGGER shop.t BEFORE INSERT ON shop.orders FOR EACH ROW SET NEW.note = 'x'")?;
    refused(
        "shop.orders has triggers, which would run for each row: t; --format binlog runs none; nothing is applied",
    )?;
    server.sql("DROP TRIGGER shop.t; ALTER TABLE shop.orders ENGINE = MyISAM")?;
    refused(
        "shop.orders has the engine MyISAM, which has no transactions; --format sql writes statements; nothing is applied",
    )?;
    server.sql("ALTER TABLE shop.orders ENGINE = InnoDB, ADD CHECK (id <> 1)")?;
    // The second row of the batch: the first is taken back.
    refused("its batch is rolled back, those before it stay")?;
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.orders")?.trim(), "0");
    // Columns that don't fit are named, and left.
    server.sql("ALTER TABLE shop.orders DROP COLUMN note")?;
    let unfit = folder.run(undo(&server, &["--execute"], &log));
    assert_eq!(unfit.code, Some(1));
    assert!(unfit.text().contains("--schema doesn't fit: it has 3 columns, the log 4"), "{}", unfit.text());
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.orders")?.trim(), "0");
    server.sql("DROP TABLE shop.orders")?;
    refused("shop.orders is not on the server")?;
    for (options, line) in [
        (&["undo", "--compress", "x"][..], "--compress is for --format binlog"),
        (&["undo", "--format", "binlog", "x"], "--format binlog needs --output, a file or - for a pipe"),
        (
            &["undo", "--host", "x", "x"],
            "a server is given, but neither --server nor --apply nor --schema needs one",
        ),
    ] {
        folder.run(options).fails(line);
    }
    Ok(())
}

/// Rows of the table beside which others write.
const SHARED_ROWS: i64 = 6000;

#[test]
fn no_row_of_a_concurrent_writer_is_lost() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql
        .sandbox()
        .option("binlog_row_metadata", "FULL")
        .option("sync_binlog", "0")
        .option("innodb_flush_log_at_trx_commit", "0")
        .start()?;
    let folder = Folder::new();
    // The writer notes each row that it changed or added, in the same transaction.
    server.sql(&format!(
        "CREATE DATABASE w; USE w; CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20)); CREATE TABLE other LIKE t;
         CREATE TABLE mine (id INT PRIMARY KEY);
DELIMITER //
         CREATE PROCEDURE change_rows() BEGIN DECLARE n, i INT DEFAULT 0;
           WHILE n < 3000 DO SET n = n + 1, i = FLOOR(RAND() * {SHARED_ROWS}); BEGIN DECLARE CONTINUE HANDLER FOR 1062, 1213, 1205 BEGIN END;
             START TRANSACTION; UPDATE t SET v = 'mine' WHERE id = i AND v <> 'mine';
             IF ROW_COUNT() = 1 THEN INSERT INTO mine VALUES (i); END IF; COMMIT; END; END WHILE; END //
         CREATE PROCEDURE add_rows() BEGIN DECLARE n, i INT DEFAULT 0;
           WHILE n < 3000 DO SET n = n + 1, i = FLOOR(RAND() * {SHARED_ROWS}); BEGIN DECLARE CONTINUE HANDLER FOR 1062, 1213, 1205 BEGIN END;
             START TRANSACTION; INSERT IGNORE INTO t VALUES (i, 'mine');
             IF ROW_COUNT() = 1 THEN INSERT INTO mine VALUES (i); END IF; COMMIT; END; END WHILE; END //
         CREATE PROCEDURE one_by_one(what VARCHAR(10)) BEGIN DECLARE i INT DEFAULT 0;
           WHILE i < {SHARED_ROWS} DO CASE what WHEN 'insert' THEN INSERT INTO t VALUES (i, CONCAT('row ', i));
             WHEN 'update' THEN UPDATE t SET v = CONCAT('new ', i) WHERE id = i; WHEN 'delete' THEN DELETE FROM t WHERE id = i;
             ELSE START TRANSACTION; UPDATE t SET v = CONCAT('new ', i) WHERE id = i; INSERT INTO other VALUES (i, 'x'); COMMIT; END CASE;
             SET i = i + 1; END WHILE; END //",
    ))?;
    let fill = format!(
        "USE w; SET SESSION cte_max_recursion_depth = 20000; INSERT INTO t WITH RECURSIVE s (i) AS (SELECT 0 UNION ALL SELECT i + 1
         FROM s WHERE i < {SHARED_ROWS} - 1) SELECT i, CONCAT('row ', i) FROM s"
    );
    let count = |query: &str| -> Result<i64> { Ok(server.sql(query)?.trim().parse().unwrap()) };
    let first = number("SEED").unwrap_or(1);
    for seed in first..first + number("BINLOGZ_WRITER_SEEDS").unwrap_or(1) {
        println!("SEED={seed}");
        for (change, procedure, rows_left) in [
            (&*fill, "change_rows", 0),
            ("DELETE FROM w.t", "add_rows", SHARED_ROWS),
            ("CALL w.one_by_one('insert')", "change_rows", 0),
            ("CALL w.one_by_one('delete')", "add_rows", SHARED_ROWS),
            ("CALL w.one_by_one('update')", "change_rows", SHARED_ROWS),
            ("CALL w.one_by_one('both')", "change_rows", SHARED_ROWS),
        ] {
            let is_update = change.contains("'update'") || change.contains("'both'");
            server.sql("TRUNCATE w.t; TRUNCATE w.mine; TRUNCATE w.other")?;
            if rows_left > 0 {
                server.sql(&fill)?;
            }
            server.flush_binary_logs()?;
            server.sql(change)?;
            let log = server.flush_binary_logs()?;
            let options = ["--execute", "--batch", "300", "--table", "w.t", "--table", "w.other"];
            let writing =
                format!("SET rand_seed1 = {seed} * 7919, rand_seed2 = {seed} * 104729; CALL w.{procedure}()");
            let ran = std::thread::scope(|scope| {
                let writer = scope.spawn(|| server.sql(&writing));
                let ran = folder.run(undo(&server, &options, &log));
                writer.join().unwrap().map(|_| ran)
            })?;
            let mine = count("SELECT COUNT(*) FROM w.mine")?;
            assert!(mine > 0, "the writer changed nothing meanwhile");
            assert_eq!(
                count("SELECT COUNT(*) FROM w.t JOIN w.mine USING (id) WHERE v = 'mine'")?,
                mine,
                "{change}"
            );
            // All others went back.
            assert_eq!(
                count("SELECT COUNT(*) FROM w.t WHERE v = CONCAT('row ', id)")? + mine,
                rows_left.max(mine),
                "{change}: {}",
                ran.stderr
            );
            assert_eq!(count("SELECT COUNT(*) FROM w.other")?, 0, "{change}");
            let told = conflicts(&ran).len() as i64;
            // A row that was changed after it had gone back is none.
            let is_told = if is_update { (1..=mine).contains(&told) } else { told == mine };
            assert!(is_told, "{change}: {told} conflicts, {mine} rows of the writer: {}", ran.stderr);
        }
    }
    Ok(())
}

#[test]
fn what_was_done_already_to_a_table_without_a_key_is_not_done_again() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    server.sql("USE shop; INSERT INTO events VALUES ('x', 1), ('y', 1), ('z', 1)")?;
    let state = || server.sql("SELECT * FROM shop.events ORDER BY what, count");
    for (change, others) in [
        // An equal row of somebody else, before the undo or after it.
        ("INSERT INTO events VALUES ('mine', 1)", "INSERT INTO events VALUES ('mine', 1)"),
        ("DELETE FROM events WHERE what = 'x'", "DO 0"),
        ("UPDATE events SET count = 2 WHERE what = 'y'", "INSERT INTO events VALUES ('y', 2)"),
    ] {
        server.flush_binary_logs()?;
        server.sql(&format!("USE shop; {change}"))?;
        let log = server.flush_binary_logs()?;
        server.sql(&format!("USE shop; {others}"))?;
        let first = folder.run(undo(&server, &["--execute"], &log));
        first.is_done();
        let undone = state()?;
        for execute in [&[][..], &["--execute"]] {
            let again = folder.run(undo(&server, execute, &log));
            assert_eq!(again.code, Some(1), "{change}: {}", again.text());
            let told = conflicts(&again);
            let gtids = first.text().lines().last().unwrap().strip_prefix("GTIDs: ").unwrap();
            let gtid = gtids.split(';').next().unwrap();
            let part = format!(
                "its table has no key, so whether this was done already can't be told: an equal row was changed in the same way by {gtid}, "
            );
            assert!(told.len() == 1 && told[0].contains(&part), "{change}: {told:#?}");
            assert_eq!(state()?, undone, "{change}");
        }
        // A user who knows better can override it.
        folder.run(undo(&server, &["--execute", "--on-conflict", "overwrite"], &log));
        assert_ne!(state()?, undone, "{change}");
    }
    // The server's later logs are gone: it can't be told.
    server.flush_binary_logs()?;
    server.sql("INSERT INTO shop.events VALUES ('w', 1)")?;
    let log = server.flush_binary_logs()?;
    let copy = folder.put("copy", std::fs::read(&log).unwrap());
    server.sql("INSERT INTO shop.events VALUES ('w', 1)")?;
    server.flush_binary_logs()?;
    server.sql("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")?;
    let ran = folder.run(undo(&server, &["--execute"], &copy));
    let told = conflicts(&ran);
    assert!(
        told.len() == 1 && told[0].contains("its logs begin later than those that were read end"),
        "{told:#?} {}",
        ran.stderr
    );
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.events WHERE what = 'w'")?.trim(), "2");
    Ok(())
}

#[test]
fn nothing_is_committed_on_a_replica_unless_that_is_said() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().start()?;
    let replica = mysql.sandbox().option("read_only", "ON").start()?;
    let folder = Folder::new();
    source.sql(TABLES)?;
    source.sql("INSERT INTO shop.orders (id, state) VALUES (1, 'a'), (2, 'b')")?;
    source.flush_binary_logs()?;
    source.sql("DELETE FROM shop.orders")?;
    let log = source.flush_binary_logs()?;
    replica.replicate_from(&source)?;
    replica.wait_for_source(&source)?;
    let executed = replica.gtid_executed()?;

    let refused = "the server replicates from 127.0.0.1, which would lack the changes (errant GTIDs)";
    let dry = folder.run(undo(&replica, &[], &log));
    dry.is_done();
    assert!(dry.text().starts_with(&format!("--execute would be refused: {refused}\n")), "{}", dry.text());
    let is_refused = || -> Result<()> {
        let ran = folder.run(undo(&replica, &["--execute"], &log));
        assert_eq!(ran.code, Some(2), "{}", ran.text());
        assert!(
            ran.stderr.contains(&format!("{refused}; --on-replica applies them nevertheless")),
            "{}",
            ran.stderr
        );
        assert_eq!(replica.gtid_executed()?, executed);
        Ok(())
    };
    is_refused()?;
    // It may go on later.
    replica.sql("STOP REPLICA")?;
    is_refused()?;
    folder.run(undo(&replica, &["--execute", "--on-replica"], &log)).is_done();
    assert_eq!(replica.sql("SELECT COUNT(*) FROM shop.orders")?.trim(), "2");
    // The source has none of that.
    folder.run(undo(&source, &["--execute"], &log)).is_done();
    Ok(())
}

/// A server may take backslashes for ordinary characters and double quotes for those of names.
#[test]
fn a_table_is_found_whatever_the_servers_sql_mode() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("sql-mode", "NO_BACKSLASH_ESCAPES,ANSI_QUOTES").start()?;
    let folder = Folder::new();
    let table = r"shop.`a\b'c`";
    server.sql(&format!(
        r"CREATE DATABASE shop; CREATE TABLE {table} (id INT PRIMARY KEY, v TEXT); INSERT INTO {table} VALUES (1, 'x\y')"
    ))?;
    server.flush_binary_logs()?;
    let values = || server.sql(&format!("SELECT id, HEX(v) FROM {table}"));
    let before = values()?;
    server.sql(&format!("DELETE FROM {table}"))?;
    let log = server.flush_binary_logs()?;
    folder.run(undo(&server, &["--execute"], &log)).is_done();
    assert_eq!(values()?, before);
    Ok(())
}

#[test]
fn a_redo_compares_only_what_was_logged() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql
        .sandbox()
        .option("binlog_row_metadata", "FULL")
        .option("binlog_row_image", "MINIMAL")
        .start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; INSERT INTO orders (id, state) VALUES (1, 'a'), (2, 'b'), (3, 'c'); UPDATE orders SET state = 'x' WHERE id = 1;
         UPDATE orders SET id = 9, note = 'n' WHERE id = 2; DELETE FROM orders WHERE id = 3",
    )?;
    let log = server.flush_binary_logs()?;
    let after = server.checksum_tables("shop")?;
    server.sql("DELETE FROM shop.orders")?;
    let mut args = undo(&server, &["--execute"], &log);
    args[0] = "redo".to_owned();
    let ran = folder.run(args);
    assert_eq!(conflicts(&ran), Vec::<String>::new());
    ran.is_done();
    assert_eq!(server.checksum_tables("shop")?, after);
    Ok(())
}

#[test]
fn messages_are_no_larger_than_the_server_takes() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("max_allowed_packet", "65536").start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    let numbers = "WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 120)";
    // Of the last rows a statement alone is nearly as large as the server takes.
    server.sql(&format!(
        "INSERT INTO shop.orders (id, note) {numbers} SELECT i, REPEAT(CHAR(64 + i % 26), IF(i > 115, 60000, 40 * i)) FROM s"
    ))?;
    let before = server.checksum_tables("shop")?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; UPDATE orders SET note = REPEAT('u', 3000) WHERE id <= 60; DELETE FROM orders WHERE id > 30;
         INSERT INTO orders (id, note) SELECT id + 200, REPEAT('i', 5000) FROM orders",
    )?;
    let log = server.flush_binary_logs()?;
    for execute in [&[][..], &["--execute"]] {
        let ran = folder.run(undo(&server, execute, &log));
        ran.is_done();
        assert_eq!(conflicts(&ran), Vec::<String>::new());
    }
    assert_eq!(server.checksum_tables("shop")?, before);
    Ok(())
}

#[test]
fn a_lock_that_is_not_given_names_the_row() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("innodb_lock_wait_timeout", "1").start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    server.sql("USE shop; INSERT INTO orders (id, state) VALUES (1, 'a'), (2, 'b'), (3, 'c')")?;
    server.flush_binary_logs()?;
    server.sql("UPDATE shop.orders SET state = 'x'")?;
    let log = server.flush_binary_logs()?;
    let after = server.checksum_tables("shop")?;
    let ran = std::thread::scope(|scope| -> Result<Ran> {
        let holder = scope.spawn(|| {
            server.sql("BEGIN; SELECT * FROM shop.orders WHERE id = 2 FOR UPDATE; DO SLEEP(20), 'holder'")
        });
        let held = "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'DO SLEEP(20)%'";
        while server.sql(held)?.trim() != "1" {
            sleep(Duration::from_millis(20));
        }
        let ran = folder.run(undo(&server, &["--execute"], &log));
        let kill =
            "SELECT CONCAT('KILL ', id) FROM information_schema.processlist WHERE info LIKE 'DO SLEEP(20)%'";
        server.sql(&server.sql(kill)?)?;
        let _ = holder.join();
        Ok(ran)
    })?;
    let named = "UPDATE of a row in shop.orders: `id` = 2, or a row soon after it: ";
    assert!(ran.stderr.contains(named) && ran.stderr.contains("Lock wait timeout"), "{}", ran.stderr);
    assert_eq!((ran.code, server.checksum_tables("shop")?), (Some(2), after));
    Ok(())
}

/// Stands between a client and the server: commands that begin so get an error instead of passing, after the first few of them.
fn refusing(server: &MysqlSandbox, folder: &Folder, begin: &'static [u8], passing: usize) -> PathBuf {
    let path = folder.path("proxy");
    let listener = UnixListener::bind(&path).unwrap();
    let place = server.socket().to_owned();
    spawn(move || {
        for client in listener.incoming() {
            let (mut client, mut server) = (client.unwrap(), UnixStream::connect(&place).unwrap());
            let (mut to_client, mut from_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            spawn(move || io::copy(&mut from_server, &mut to_client));
            spawn(move || refuse(&mut client, &mut server, begin, passing));
        }
    });
    path
}

/// Carries packets, until one side is gone.
fn refuse(
    client: &mut UnixStream,
    server: &mut UnixStream,
    begin: &[u8],
    mut passing: usize,
) -> io::Result<()> {
    const REFUSED: &[u8] = b"\x18\0\0\x01\xff\x17\x04#08S01not by this way";
    loop {
        let mut header = [0; 4];
        client.read_exact(&mut header)?;
        let mut packet = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
        client.read_exact(&mut packet)?;
        if header[3] == 0 && packet.starts_with(begin) {
            if passing == 0 {
                client.write_all(REFUSED)?;
                continue;
            }
            passing -= 1;
        }
        server.write_all(&[&header[..], &packet].concat())?;
    }
}

#[test]
fn a_way_that_takes_one_statement_at_a_time_gets_one_at_a_time() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    server.sql("USE shop; INSERT INTO orders (id, state) VALUES (1, 'a'), (2, 'b'), (3, 'c')")?;
    let before = server.checksum_tables("shop")?;
    server.flush_binary_logs()?;
    server.sql("UPDATE shop.orders SET state = 'x'; DELETE FROM shop.orders WHERE id = 2")?;
    let log = server.flush_binary_logs()?;
    let proxy = refusing(&server, &folder, b"\x1b", 0);
    for execute in [&[][..], &["--execute"]] {
        let mut args = undo(&server, execute, &log);
        args[4] = proxy.display().to_string();
        folder.run(args).is_done();
    }
    assert_eq!(server.checksum_tables("shop")?, before);
    Ok(())
}

#[test]
fn a_refused_message_does_not_take_back_the_one_before_it() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(TABLES)?;
    let rows: Vec<String> = (0..900).map(|id| format!("({id}, 'a')")).collect();
    server.sql(&format!("INSERT INTO shop.orders (id, state) VALUES {}", rows.join(", ")))?;
    server.flush_binary_logs()?;
    server.sql("DELETE FROM shop.orders")?;
    let log = server.flush_binary_logs()?;
    let proxy = refusing(&server, &folder, b"\x03SAVEPOINT binlogz_rows", 3);
    let mut args = undo(&server, &["--execute"], &log);
    args[4] = proxy.display().to_string();
    let ran = folder.run(args);
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    let parts = ["not by this way", "DELETE of a row in shop.orders: `id` = ", "its batch is rolled back"];
    assert!(parts.iter().all(|part| ran.stderr.contains(part)), "{}", ran.stderr);
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.orders")?.trim(), "0");
    Ok(())
}
