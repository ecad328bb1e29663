//! `undo`, `redo` and `rows` over the logs that a server sends give the same as over its files.

use binlogz_testkit::{Result, Tool, require_tool};

use crate::common::Folder;
use crate::round_trip::place_of;
use crate::table_at::last_gtid;

#[test]
fn a_servers_logs_are_read_as_its_files_are() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(10));
         CREATE TABLE items (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES orders (id) ON DELETE CASCADE);
         INSERT INTO orders VALUES (1, 'new'), (2, 'new'), (3, 'new'); INSERT INTO items VALUES (7, 1), (8, 2);",
    )?;
    server.flush_binary_logs()?;
    server
        .sql("SET binlog_transaction_compression = ON; UPDATE shop.orders SET state = 'paid' WHERE id < 3")?;
    server.flush_binary_logs()?;
    // More than the connection's buffers and a batch hold.
    server.sql("INSERT INTO shop.orders VALUES (4, 'new'); CREATE TABLE shop.big (id INT PRIMARY KEY, text LONGTEXT)")?;
    server.sql(
        "INSERT INTO shop.big VALUES (1, REPEAT('x', 12000000)); DELETE FROM shop.orders WHERE id = 1",
    )?;
    let last = last_gtid(&server)?;
    let place = place_of(&server);
    let logs = server.binlogs()?;
    let paths: Vec<&str> = logs.iter().filter_map(|log| log.to_str()).collect();
    let names: Vec<&str> = paths.iter().filter_map(|path| path.rsplit('/').next()).collect();
    let account = ["--no-defaults", "--user=root"];
    let from = |command: &[&str], logs: &[&str]| folder.run([command, &account, logs].concat());
    let of_files = |command: &[&str], logs: &[&str]| from(&[command, &["--schema", &place]].concat(), logs);
    let of_server = |command: &[&str], logs: &[&str]| from(&[command, &["--server", &place]].concat(), logs);

    for command in [
        &["undo", "--table", "shop.orders"][..],
        &["redo", "--operation", "insert"],
        &["rows", "shop.orders", "--where", "id = 1", "--format", "json"],
        &["undo", "--gtids", &last],
        &["undo", "--gtids", &last, "--cascades", &place],
    ] {
        let (expected, ran) = (of_files(command, &paths), of_server(command, &[]));
        assert!(ran.text().contains("shop"), "{command:?}: {}", ran.stderr);
        assert_eq!((ran.code, ran.stdout, ran.stderr), (expected.code, expected.stdout, expected.stderr));
    }
    // The server is named once.
    server.sql("CREATE VIEW shop.seen AS SELECT * FROM shop.orders")?;
    of_files(&["rows", "shop.seen"], &paths)
        .fails(&format!("{place}: `shop`.`seen` is a view there, expected a table"));
    from(&["undo", "--schema", "127.0.0.1:1"], &paths)
        .fails("connect to 127.0.0.1:1: Connection refused (os error 111)");
    // By name, and by the options that other commands have.
    let command = ["rows", "shop.orders", "--stop-position", "200"];
    let (expected, ran) = (of_files(&command, &paths[1..2]), of_server(&command, &names[1..2]));
    assert_eq!((ran.code, ran.stdout, ran.stderr), (expected.code, expected.stdout, expected.stderr));
    let args = ["rows", "shop.orders", "-S", &place, "--start-datetime", "2001-01-01 00:00:00"];
    assert!(from(&args, &[]).text().contains("'new' → 'paid'"));

    // A table that has another name now: the logs say which.
    server.sql("RENAME TABLE shop.items TO shop.parts")?;
    let rows = ["rows", "shop.items", "--operation", "insert"];
    let logs = server.binlogs()?;
    let all: Vec<&str> = logs.iter().filter_map(|log| log.to_str()).collect();
    let renamed = of_files(&rows, &all);
    assert!(renamed.stderr.contains("has no table `shop`.`items` now"), "{}", renamed.stderr);
    assert!(renamed.text().contains("parent"), "{}: {}", renamed.text(), renamed.stderr);
    assert_eq!(renamed.code, Some(0));

    let (first, end) = (names[0], names[names.len() - 1]);
    of_server(&["undo"], &["binlog.9"])
        .fails(&format!("{place}: has no binary log binlog.9; its logs are {first} to {end}"));
    of_server(&["undo", "--start-position", "4"], &[])
        .fails("--start-position and --stop-position need the names of the server's logs that they are for");
    let purged = format!("PURGE BINARY LOGS TO '{}'", names[1]);
    server.sql(&purged)?;
    of_server(&["rows", "shop.orders"], &names[..1])
        .fails(&format!("{place}: has no binary log {first}; its logs are {} to {end}", names[1]));
    Ok(())
}
