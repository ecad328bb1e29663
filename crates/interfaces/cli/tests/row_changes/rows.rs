//! `rows`: each change of a row, with everything known about it.

use binlogz_testkit::{Result, Tool, require_tool};

use crate::common::Folder;

#[test]
fn a_row_is_followed_from_insert_to_delete() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("binlog_row_metadata", "FULL").start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE orders (id INT PRIMARY KEY, state ENUM('new','paid'), total DECIMAL(8,2), note JSON);",
    )?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; SET binlog_rows_query_log_events = ON;
         INSERT INTO orders VALUES (1, 'new', 1.50, '{\"a\": 1}'), (42, 'new', 20, NULL);
         SET binlog_transaction_compression = ON;
         UPDATE orders SET state = 'paid' WHERE id = 42;
         SET binlog_row_image = MINIMAL; UPDATE orders SET total = 21 WHERE id = 42; SET binlog_row_image = FULL;
         ALTER TABLE orders ADD more INT DEFAULT 7, ALGORITHM = COPY;
         DELETE FROM orders;",
    )?;
    let log = server.flush_binary_logs()?;
    let name = log.file_name().unwrap().to_str().unwrap().to_owned();
    let rows = |options: &[&str]| {
        let front = ["rows", "shop.orders", "--where", "id = 42"];
        folder.run(front.iter().chain(options).map(AsRef::as_ref).chain([log.as_os_str()]))
    };
    let ran = rows(&[]);
    ran.is_done();
    let text = ran.text();
    let heads = [" INSERT shop.orders", " UPDATE shop.orders", " UPDATE shop.orders", " DELETE shop.orders"];
    let lines: Vec<&str> = text.lines().collect();
    let found = lines.iter().filter(|line| line.contains(" shop.orders")).collect::<Vec<_>>();
    let found: Vec<&&str> = found.into_iter().filter(|line| !line.starts_with("  ")).collect();
    assert_eq!(found.len(), heads.len(), "{text}");
    assert!(found.iter().zip(heads).all(|(line, head)| line.ends_with(head)), "{text}");
    for expected in [
        "  + state  'new'",
        "  * state  'new' → 'paid'",
        "    id     42",
        "  * total  20.00 (rebuilt) → 21.00",
        "  - more   7",
        "  - total  21.00",
        "  statement: UPDATE orders SET state = 'paid' WHERE id = 42",
    ] {
        assert!(lines.contains(&expected), "{expected}: {text}");
    }
    let uuid = server.server_uuid()?;
    assert!(text.contains(&format!("  GTID {uuid}:")) && text.contains(&format!(", {name} at ")), "{text}");

    let json = rows(&["--format", "json", "--operation", "update"]);
    json.is_done();
    let changed: Vec<serde_json::Value> =
        json.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(changed.len(), 2);
    assert_eq!(changed[0]["changed"], serde_json::json!(["state"]));
    assert_eq!(changed[0]["before"]["state"], "new");
    let whole = serde_json::json!({"id": 42, "state": "paid", "total": "21.00", "note": null});
    assert_eq!(changed[1]["after"], whole);
    let rebuilt = serde_json::json!({"before": ["state", "total", "note"], "after": ["id", "state", "note"]});
    assert_eq!(changed[1]["rebuilt"], rebuilt);
    assert_eq!(
        (&changed[0]["rebuilt"], &changed[1]["unknown"]),
        (&serde_json::Value::Null, &serde_json::Value::Null)
    );
    assert_eq!(changed[1]["ending"], "committed");

    let csv = rows(&["--format", "csv", "--operation", "delete"]);
    csv.is_done();
    let csv = csv.text();
    let deleted: Vec<&str> = csv.lines().skip(1).map(|line| line.split(",delete,").nth(1).unwrap()).collect();
    assert_eq!(deleted, ["id,42,,0", "state,'paid',,0", "total,21.00,,0", "note,NULL,,0", "more,7,,0"]);

    let args = ["rows", "shop.orders", "--where", "id = 43"];
    let none = folder.run(args.iter().map(AsRef::as_ref).chain([log.as_os_str()]));
    assert_eq!((none.code, none.stdout.len()), (Some(1), 0));
    assert!(none.stderr.contains("no such row was changed in these logs"), "{}", none.stderr);
    Ok(())
}

#[test]
fn of_many_changes_the_first_are_shown_and_all_are_counted() {
    let folder = Folder::new();
    folder.sample("plain", "binlog.000005");
    let rows = |options: &[&str]| {
        let ran = folder.run(["rows", "sbtest.sbtest1", "binlog.000005"].iter().chain(options));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        // People are told once how names are got.
        let is_told = ran.stderr.contains("the log has no column names for sbtest.sbtest1 ");
        assert_eq!(is_told, !options.contains(&"json"), "{}", ran.stderr);
        ran.text().to_owned()
    };
    let (first, all) = (rows(&[]), rows(&["--all"]));
    let changes = rows(&["--format", "json"]).lines().count();
    let heads = |text: &str| text.lines().filter(|line| line.ends_with(" sbtest.sbtest1")).count();
    assert_eq!((heads(&first), heads(&all)), (100, changes));
    let (shown, counted) = first.split_once(&format!("\n… {} more: --all\n\n", changes - 100)).unwrap();
    assert!(all.starts_with(shown), "{shown}");
    let counted: Vec<&str> = counted.lines().collect();
    assert!(counted[0].starts_with(&format!("{changes} changes in ")), "{counted:?}");
    assert!((3..=22).contains(&counted.len()), "{counted:?}");
    let gtid = all.split("GTID ").nth(1).unwrap().split(',').next().unwrap();
    assert!(counted[1].contains(&format!("  GTID {gtid}: ")), "{counted:?}");
}

#[test]
fn a_place_to_stop_at_that_is_not_there_is_an_error() {
    let folder = Folder::new();
    let size = folder.sample("compressed", "binlog.000005").len();
    let rows = |options: &[&str]| {
        folder.run(["rows", "sbtest.sbtest1"].iter().chain(options).chain(&["binlog.000005"]))
    };
    rows(&["--stop-position", &size.to_string(), "--format", "json"]).is_done();
    let absent = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23";
    for (option, value, why) in [
        ("--stop-position", "99999999", format!("the log ends at {size}")),
        ("--start-position", "99999999", format!("the log ends at {size}")),
        ("--stop-before-gtid", absent, "this transaction is not there".to_owned()),
    ] {
        let ran = rows(&[option, value]);
        assert_eq!((ran.code, &*ran.stderr), (Some(1), &*format!("binlogz: {option}={value}: {why}\n")));
    }
}
