//! The choice of changes, and those that can't be undone: named, with exit code 1.

use binlogz_testkit::{Result, Tool, require_tool};

use crate::common::{Folder, Ran};

/// The statements and the notes about rows and statements that are left, without the session's settings.
fn body(script: &Ran) -> Vec<String> {
    let is_body = |line: &&str| {
        ["INSERT", "UPDATE", "DELETE", "-- not", "-- was"].iter().any(|front| line.starts_with(front))
    };
    script.text().lines().filter(is_body).map(str::to_owned).collect()
}

#[test]
fn rows_are_chosen_and_the_rest_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE orders (id INT PRIMARY KEY, state ENUM('new','paid'), total DECIMAL(8,2), at TIMESTAMP NULL);
         CREATE TABLE notes (text VARCHAR(20));",
    )?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; INSERT INTO orders VALUES (1, 'new', 1.50, NULL), (2, 'paid', 20, NULL), (3, 'PAID', -3, NULL);
         UPDATE orders SET state = 'paid' WHERE id = 1;
         BEGIN; DELETE FROM orders WHERE id > 1; INSERT INTO notes VALUES ('it''s'); COMMIT;",
    )?;
    let log = server.flush_binary_logs()?;
    let log = log.as_os_str();
    let undo = |options: &[&str]| folder.run(options.iter().map(AsRef::as_ref).chain([log]));

    let all = undo(&["undo"]);
    all.is_done();
    assert_eq!(
        body(&all),
        [
            "DELETE FROM `shop`.`notes` WHERE CAST(`text` AS BINARY) = 'it''s' LIMIT 1;",
            "INSERT INTO `shop`.`orders` (`id`, `state`, `total`, `at`) VALUES (3, 'paid', -3.00, NULL);",
            "INSERT INTO `shop`.`orders` (`id`, `state`, `total`, `at`) VALUES (2, 'paid', 20.00, NULL);",
            "UPDATE `shop`.`orders` SET `state` = 'new', `at` = NULL WHERE `id` = 1 AND `state` = 2 AND `total` = 1.50 AND `at` IS NULL;",
            "DELETE FROM `shop`.`orders` WHERE `id` = 3 AND `state` = 2 AND `total` = -3.00 AND `at` IS NULL;",
            "DELETE FROM `shop`.`orders` WHERE `id` = 2 AND `state` = 2 AND `total` = 20.00 AND `at` IS NULL;",
            "DELETE FROM `shop`.`orders` WHERE `id` = 1 AND `state` = 1 AND `total` = 1.50 AND `at` IS NULL;",
        ]
    );
    let redo = undo(&["redo", "--operation", "delete", "--operation", "update"]);
    redo.is_done();
    assert_eq!(
        body(&redo),
        [
            "UPDATE `shop`.`orders` SET `state` = 'paid', `at` = NULL WHERE `id` = 1 AND `state` = 1 AND `total` = 1.50 AND `at` IS NULL;",
            "DELETE FROM `shop`.`orders` WHERE `id` = 2 AND `state` = 2 AND `total` = 20.00 AND `at` IS NULL;",
            "DELETE FROM `shop`.`orders` WHERE `id` = 3 AND `state` = 2 AND `total` = -3.00 AND `at` IS NULL;",
        ]
    );
    let count = |options: &[&str]| body(&undo(&[&["undo"], options].concat())).len();
    assert_eq!(count(&["--table", "shop.notes"]), 1);
    assert_eq!(
        count(&["--table", "shop.orders", "--where", "before.state = 'paid' AND after.id IS NULL"]),
        2
    );
    assert_eq!(count(&["--table", "shop.orders", "--where", "total > 1.5 OR id IN (3)"]), 4);
    assert_eq!(count(&["--table", "shop.orders", "--where", "NOT (id BETWEEN 2 AND 3)"]), 2);
    assert_eq!(count(&["--table", "shop.notes", "--where", "@1 LIKE 'IT_s'"]), 1);
    let uuid = server.server_uuid()?;
    let first: u64 = {
        let executed = server.gtid_executed()?;
        executed.trim().rsplit([':', '-']).next().and_then(|last| last.parse().ok()).unwrap_or(0)
    };
    if first > 0 {
        assert_eq!(count(&["--gtids", &format!("{uuid}:{first}")]), 3);
        assert_eq!(count(&["--stop-before-gtid", &format!("{uuid}:{first}")]), 4);
    }

    let none =
        undo(&["undo", "--start-datetime", "2001-01-01 00:00:00", "--stop-datetime", "2001-01-01 01:00:00"]);
    assert_eq!(none.code, Some(1));
    assert!(
        none.stderr.contains("nothing is undone: no transaction in the logs is one of those chosen"),
        "{}",
        none.stderr
    );
    undo(&["undo", "--where", "id = 1"])
        .fails("--where: shop.notes has no column id; --table chooses the tables");

    // A table that is changed afterwards is a border; images without their columns are left, unless earlier ones have them.
    server.sql("USE shop; INSERT INTO orders VALUES (8, 'new', 1, NULL)")?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; SET binlog_row_image = MINIMAL; INSERT INTO orders VALUES (9, 'new', 1, NULL);
         UPDATE orders SET total = 2; DELETE FROM orders; INSERT INTO notes VALUES ('x');
         ALTER TABLE notes ADD more INT; INSERT INTO notes VALUES ('y', 1);",
    )?;
    let log = server.flush_binary_logs()?;
    let args = ["undo".as_ref(), log.as_os_str()];
    let script = folder.run(args);
    assert_eq!(script.code, Some(1));
    assert_eq!(script.stderr, "binlogz: warning: 5 rows and 1 statement not undone; the output names each\n");
    let lines = body(&script);
    let parts = [
        "DELETE FROM `shop`.`notes` WHERE CAST(`text` AS BINARY) = 'y' AND `more` = 1 LIMIT 1;",
        "-- not undone, a statement: ALTER TABLE notes ADD more INT (in shop)",
        "its table was changed after it",
        "INSERT INTO `shop`.`orders` (`id`, `state`, `total`, `at`) VALUES (9, 'new', 2.00, NULL);",
        "DELETE of a row in shop.orders: the logged image lacks state, at",
        "DELETE of a row in shop.orders: the logged image lacks state, at",
        "UPDATE `shop`.`orders` SET `total` = 1.00, `at` = NULL WHERE `id` = 9 AND `state` = 1 AND `total` = 2.00 AND `at` IS NULL;",
        "UPDATE of a row in shop.orders: the logged image lacks total",
        "UPDATE of a row in shop.orders: the logged image lacks total",
        "DELETE FROM `shop`.`orders` WHERE `id` = 9 AND `state` = 1 AND `total` = 1.00 AND `at` IS NULL;",
    ];
    assert_eq!(lines.len(), parts.len(), "{lines:#?}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.contains(part), "{line}");
    }
    let args = ["undo".as_ref(), "--across-ddl".as_ref(), log.as_os_str()];
    let across = body(&folder.run(args));
    assert!(across[2].starts_with("DELETE FROM `shop`.`notes` WHERE"), "{across:#?}");

    // A schema of another table is refused, row by row.
    let other =
        folder.put("other.sql", "CREATE TABLE `orders` (`id` int); CREATE TABLE notes (a int, b int);");
    let args = ["undo".as_ref(), "--schema".as_ref(), other.as_os_str(), log.as_os_str()];
    let unfit = folder.run(args);
    assert_eq!(unfit.code, Some(1));
    assert!(unfit.text().contains("--schema doesn't fit: it has 1 columns, the log 4"), "{}", unfit.text());
    Ok(())
}

/// The option that tells the columns of the samples' tables.
fn sbtest(folder: &Folder) -> String {
    let columns = "(id INT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60))";
    let tables: String = (1..=20).map(|number| format!("CREATE TABLE sbtest{number} {columns};\n")).collect();
    format!("--schema={}", folder.put("sbtest.sql", format!("USE sbtest;\n{tables}")).display())
}

#[test]
fn without_names_rows_are_left_and_named() {
    let folder = Folder::new();
    folder.sample("compressed", "binlog.000005");
    folder.sample("compressed", "binlog.000002");
    let schema = sbtest(&folder);
    let deleted = folder.run(["undo", "--operation", "delete", &schema, "binlog.000005"]);
    deleted.is_done();
    assert!(
        body(&deleted).iter().all(|line| line.contains(" (`id`, `k`, `c`, `pad`) VALUES (")),
        "{}",
        deleted.text()
    );
    for (operation, log) in [("delete", "binlog.000005"), ("update", "binlog.000002")] {
        let left = folder.run(["undo", "--operation", operation, log]);
        assert_eq!(left.code, Some(1));
        let lines = body(&left);
        let why = "the log has no column names (binlog_row_metadata=FULL writes them; --schema tells them, from a file or a server); the row has @1 = ";
        assert!(!lines.is_empty() && lines.iter().all(|line| line.contains(why)), "{lines:#?}");
    }
    folder
        .run(["undo", "--where", "id = 1", "binlog.000005"])
        .fails("--where: the log has no column names for sbtest.sbtest1 (binlog_row_metadata=FULL writes them; --schema tells \
                them, from a file or a server); @3 is the third column");
}

#[test]
fn a_pipe_an_archive_and_any_number_of_threads_give_the_same() {
    let folder = Folder::new();
    let bytes = folder.sample("compressed", "binlog.000005");
    let schema = sbtest(&folder);
    let select = ["undo", "--operation", "delete", &schema];
    let run = |more: &[&str]| folder.run(select.iter().chain(more));
    let plain = run(&["binlog.000005"]);
    assert_eq!(run(&["--jobs", "1", "binlog.000005"]).stdout, plain.stdout);
    folder.run(["archive", "create", "--to", "archive", "binlog.000005"]);
    assert_eq!(body(&run(&["archive"])), body(&plain));
    let piped = folder.run_with(select.iter().chain(&["-"]), &bytes);
    assert_eq!(body(&piped), body(&plain));
}

#[test]
fn logs_that_do_not_follow_each_other_are_refused() {
    let folder = Folder::new();
    for name in ["binlog.000002", "binlog.000004", "binlog.000005"] {
        folder.sample("compressed", name);
    }
    let schema = sbtest(&folder);
    let undo = |more: &[&str]| folder.run(["undo", "--operation", "delete", &schema].iter().chain(more));
    // Rows of these keys are inserted again, which is told too.
    let is_read = |ran: Ran| {
        assert!(
            ran.code == Some(1) && ran.stderr.contains("came later and were not chosen"),
            "{}",
            ran.stderr
        );
        assert!(ran.text().contains("\nINSERT INTO"), "{}", ran.text());
    };
    is_read(undo(&["binlog.000004", "binlog.000005"]));
    for verb in ["undo", "redo"] {
        let gap = folder.run([verb, "binlog.000002", "binlog.000004"]);
        assert_eq!((gap.code, gap.text()), (Some(2), ""));
        let line = "binlogz: binlog.000004 doesn't follow binlog.000002: the logs lack ";
        assert!(gap.stderr.starts_with(line), "{}", gap.stderr);
    }
    for logs in [["binlog.000005", "binlog.000004"], ["binlog.000005", "binlog.000005"]] {
        let order = undo(&logs);
        assert_eq!((order.code, order.text()), (Some(2), ""));
        let line = format!("binlogz: {} doesn't follow {}: it comes before ", logs[1], logs[0]);
        assert!(order.stderr.starts_with(&line), "{}", order.stderr);
    }
    // Of the transactions chosen none is missing.
    let events =
        folder.run(["rows", "sbtest.sbtest1", "--operation", "delete", "--format", "json", "binlog.000005"]);
    let row: serde_json::Value = serde_json::from_str(events.text().lines().next().unwrap()).unwrap();
    undo(&["--gtids", row["gtid"].as_str().unwrap(), "binlog.000002", "binlog.000005"]).is_done();
}

#[test]
fn a_trigger_that_may_run_again_is_told() {
    let folder = Folder::new();
    let log = folder.put("trigger.binlog", include_bytes!("trigger.binlog"));
    let undo = |more: &[&str]| folder.run(["undo"].iter().chain(more).chain(&[log.to_str().unwrap()]));
    let line = "one statement changed rows of c_trigger.t and c_trigger.log: if a trigger did that, the script ends before it";
    let script = undo(&[]);
    assert_eq!(script.code, Some(0), "{}", script.stderr);
    assert!(
        script.stderr.contains(line) && script.text().contains(line),
        "{}{}",
        script.text(),
        script.stderr
    );
    let log_form = undo(&["--format", "binlog", "--output", "undo.log"]);
    assert_eq!((log_form.code, &*log_form.stderr), (Some(0), ""));
}
