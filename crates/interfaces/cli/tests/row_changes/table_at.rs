//! `table-at`: the table as it was at a GTID has the checksum that it had then. If it can't be told, the command refuses.
//!
//! `BINLOGZ_TABLE_AT_MOMENTS` says at how many moments; `scripts/soak/table-at.sh` takes 100. `SEED=N` is the workload's.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::round_trip::place_of;
use crate::workload::Workload;

const MOMENTS: usize = 3;
/// The tables of the workload that have a key.
pub(crate) const TABLES: [&str; 5] = ["t0", "t1", "t3", "parent", "child"];

/// The arguments of a run for `d.TABLE`.
fn table_at(server: &MysqlSandbox, table: &str, at: &str, more: &[&str]) -> Vec<String> {
    let place = place_of(server);
    let front = ["table-at", table, "--at", at, "--no-defaults", "--user=root", "--server", &place];
    front.iter().chain(more).map(|&arg| arg.to_owned()).collect()
}

pub(crate) fn last_gtid(server: &MysqlSandbox) -> Result<String> {
    let executed = server.gtid_executed()?;
    let last = executed.trim().rsplit([':', '-']).next().unwrap_or_default().to_owned();
    Ok(format!("{}:{last}", server.server_uuid()?))
}

fn checksum(server: &MysqlSandbox, table: &str) -> Result<String> {
    Ok(server
        .sql(&format!("CHECKSUM TABLE {table}"))?
        .split_whitespace()
        .last()
        .unwrap_or_default()
        .to_owned())
}

pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// A moment, and the checksums of the tables then.
struct Kept {
    gtid: String,
    checksums: Vec<String>,
}

#[test]
fn a_table_is_as_it_was_at_any_gtid() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let seed = number("SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let moments = number("BINLOGZ_TABLE_AT_MOMENTS").map_or(MOMENTS, |number| number as usize);
    println!("SEED={seed}");
    let settings = [("binlog_row_value_options", "PARTIAL_JSON"), ("binlog_transaction_compression", "ON")];
    let mut builder = mysql.sandbox();
    for (name, value) in settings.iter().filter(|_| seed.is_multiple_of(2)) {
        builder = builder.option(name, value);
    }
    let server = builder.start()?;
    let folder = Folder::new();
    let mut workload = Workload::new(seed);
    server.sql(&workload.begin("d"))?;
    server.sql("CREATE DATABASE scratch")?;
    let mut kept = Vec::new();
    for _ in 0..moments {
        let checksums = TABLES.iter().map(|table| checksum(&server, &format!("d.{table}")));
        kept.push(Kept { gtid: last_gtid(&server)?, checksums: checksums.collect::<Result<_>>()? });
        let changes = folder.put("changes.sql", workload.run("d", 20));
        server.client().arg("--force").stdin(File::open(changes).unwrap()).output().unwrap();
        server.flush_binary_logs()?;
    }
    let logs: Vec<PathBuf> = server.binlogs()?;
    let files: Vec<&str> = logs.iter().filter_map(|log| log.to_str()).collect();
    let under_load = load(&server, moments > MOMENTS);
    for (number, Kept { gtid, checksums }) in kept.iter().enumerate() {
        for (place, (table, expected)) in TABLES.iter().zip(checksums).enumerate() {
            let what = format!("SEED={seed}: {table} at {gtid}");
            let name = format!("d.{table}");
            // From the server's own logs and from files, into a table and as SQL.
            let from: &[&str] =
                if (number + place).is_multiple_of(2) || under_load.is_some() { &[] } else { &files };
            let into =
                folder.run(table_at(&server, &name, gtid, &[&["--into", "scratch.past"], from].concat()));
            assert_eq!((into.code, &*into.stderr), (Some(0), ""), "{what}");
            assert!(into.text().starts_with("scratch.past: "), "{what}: {}", into.text());
            assert_eq!(&checksum(&server, "scratch.past")?, expected, "{what}");
            // A script costs as much again: each table once, in turn.
            if place == number % TABLES.len() {
                let script = folder.run(table_at(&server, &name, gtid, from));
                assert_eq!((script.code, &*script.stderr), (Some(0), ""), "{what}");
                let path = folder.put("past.sql", &script.stdout);
                let ran = server.client().arg("scratch").stdin(File::open(path).unwrap()).output().unwrap();
                assert!(ran.status.success(), "{what}: {}", String::from_utf8_lossy(&ran.stderr));
                same_rows(&server, table, &what)?;
                server.sql(&format!("DROP TABLE scratch.{table}"))?;
            }
            server.sql("DROP TABLE scratch.past")?;
        }
    }
    if let Some(mut load) = under_load {
        load.kill().unwrap();
        load.wait().unwrap();
    }
    assert_eq!(server.sql("SHOW TABLES FROM scratch")?, "", "nothing unfinished is left");
    Ok(())
}

/// Changes that go on while tables are read: none of them at the moments.
fn load(server: &MysqlSandbox, is_wanted: bool) -> Option<std::process::Child> {
    let mut changes = String::from("USE d;");
    for number in 0..200_000 {
        let id = number % 61;
        changes +=
            &format!("UPDATE t0 SET id = id + 100 WHERE id = {id}; DELETE FROM t0 WHERE id = {id} + 60; ");
        changes +=
            &format!("INSERT IGNORE INTO parent VALUES ({number}, 'x'); DELETE FROM t1 WHERE id = {id};\n");
        // As fast as it can, it would write most of what each run has to read.
        changes += "DO SLEEP(0.02);\n";
    }
    is_wanted.then(|| {
        let mut client = server.client();
        let mut child = client.arg("--force").stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::spawn(move || stdin.write_all(changes.as_bytes()).ok());
        child
    })
}

/// The text of every row. A script can't say that a number in JSON is a DECIMAL.
pub(crate) fn rows(server: &MysqlSandbox, table: &str) -> Result<Vec<String>> {
    let text = server.sql(&format!("SET time_zone = '+00:00'; SELECT * FROM {table}"))?;
    let mut lines: Vec<String> =
        text.replace("\"n\": 1.50", "\"n\": 1.5").lines().map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

/// The text of every row is the same in both tables.
fn same_rows(server: &MysqlSandbox, table: &str, what: &str) -> Result<()> {
    let (script, past) = (rows(server, &format!("scratch.{table}"))?, rows(server, "scratch.past")?);
    assert_eq!(script.len(), past.len(), "{what}: as SQL");
    for (script, past) in script.iter().zip(&past) {
        assert_eq!(script, past, "{what}: as SQL");
    }
    Ok(())
}

/// Without GTIDs nothing in a log tells what came before it but its number.
#[test]
fn a_moment_before_logs_that_a_server_without_gtids_has_purged_is_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("gtid-mode", "OFF").start()?;
    // Of the second in which the first log begins nothing is told.
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1); DO SLEEP(1.1)",
    )?;
    let moment = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?;
    server.sql("DO SLEEP(1.1); INSERT INTO d.t VALUES (2)")?;
    server.flush_binary_logs()?;
    server.sql("DO SLEEP(1.1); INSERT INTO d.t VALUES (3)")?;
    let last = server.position()?.0;
    let folder = Folder::new();
    let at = format!("{}Z", moment.trim().replace(' ', "T"));
    let args = table_at(&server, "d.t", &at, &["--format", "csv"]);
    assert_eq!(folder.run(&args).text().lines().count(), 2);
    server.sql(&format!("PURGE BINARY LOGS TO '{last}'"))?;
    let ran = folder.run(&args);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("the logs begin later"), "{}", ran.stderr);
    Ok(())
}

/// The head of a log has the time at which the statement began that made the server change logs. Others commit meanwhile.
#[test]
fn a_change_after_the_time_of_a_log_but_before_its_begin_is_taken_back() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(
        "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1); DO SLEEP(1.2)",
    )?;
    let moment = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?;
    server.sql(
        "INSERT INTO d.t VALUES (2); SET timestamp = UNIX_TIMESTAMP() - 5; FLUSH BINARY LOGS; SET timestamp = DEFAULT; \
         INSERT INTO d.t VALUES (3)",
    )?;
    let folder = Folder::new();
    let at = format!("{}Z", moment.trim().replace(' ', "T"));
    let args = table_at(&server, "d.t", &at, &["--format", "csv"]);
    let rows = folder.run(&args);
    assert_eq!(rows.text().lines().collect::<Vec<_>>(), ["id", "1"], "{}", rows.stderr);
    let last = server.position()?.0;
    server.sql(&format!("PURGE BINARY LOGS TO '{last}'"))?;
    let ran = folder.run(&args);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("changes that came between may be in an earlier log"), "{}", ran.stderr);
    Ok(())
}

#[test]
fn a_moment_before_the_first_log_is_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1)")?;
    let moment = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?;
    server.sql(
        "INSERT INTO d.t VALUES (2); DO SLEEP(1.2); RESET BINARY LOGS AND GTIDS; INSERT INTO d.t VALUES (3)",
    )?;
    let at = format!("{}Z", moment.trim().replace(' ', "T"));
    let ran = Folder::new().run(table_at(&server, "d.t", &at, &["--format", "csv"]));
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("the first log begins after the moment"), "{}", ran.stderr);
    Ok(())
}

/// Sets GTIDs on or off, as a running server does it.
fn set_gtid_modes(server: &MysqlSandbox, modes: &[&str]) -> Result<()> {
    modes.iter().try_for_each(|mode| server.sql(&format!("SET GLOBAL gtid_mode = {mode}")).map(drop))
}

/// The paths of all logs that a server has closed.
fn closed_logs(server: &MysqlSandbox) -> Result<Vec<PathBuf>> {
    let last = server.flush_binary_logs()?;
    let names = server.sql("SHOW BINARY LOGS")?;
    let paths = names.lines().filter_map(|line| Some(last.with_file_name(line.split('\t').next()?)));
    Ok(paths.filter(|path| *path <= last).collect())
}

/// Transactions without GTIDs leave no gap in a GTID set, and logs that have only such ones nothing before them by which to tell.
#[test]
fn files_among_which_one_without_gtids_is_missing_are_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().option("gtid-mode", "OFF").start()?;
    server.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, v INT); INSERT INTO d.t VALUES (1, 1), (2, 2), (3, 3); DO SLEEP(1.2)")?;
    let early = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?;
    server.sql(
        "UPDATE d.t SET v = 4 WHERE id = 1; SET timestamp = UNIX_TIMESTAMP() - 5; FLUSH BINARY LOGS; SET timestamp = DEFAULT; UPDATE d.t SET v = 5 \
         WHERE id = 2; DO SLEEP(1.2)",
    )?;
    let late = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?;
    server.flush_binary_logs()?;
    server.sql("UPDATE d.t SET v = 6 WHERE id = 3")?;
    set_gtid_modes(&server, &["OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"])?;
    server.sql("UPDATE d.t SET v = 7 WHERE id = 3")?;
    set_gtid_modes(&server, &["ON_PERMISSIVE", "OFF_PERMISSIVE"])?;
    server.sql("UPDATE d.t SET v = 8 WHERE id = 1")?;
    let without_gtids = server.flush_binary_logs()?;
    set_gtid_modes(&server, &["ON_PERMISSIVE", "ON"])?;
    server.sql("UPDATE d.t SET v = 9 WHERE id = 3")?;
    let logs = closed_logs(&server)?;
    let folder = Folder::new();
    let ran = |moment: &str, logs: &[&PathBuf]| {
        let at = format!("{}Z", moment.trim().replace(' ', "T"));
        let mut args = table_at(&server, "d.t", &at, &["--format", "csv"]);
        args.extend(logs.iter().map(|log| log.to_str().unwrap().to_owned()));
        folder.run(&args)
    };
    let all: Vec<&PathBuf> = logs.iter().collect();
    for (moment, rows) in [(&early, ["1,1", "2,2", "3,3", "id,v"]), (&late, ["1,4", "2,5", "3,3", "id,v"])] {
        let told = ran(moment, &all);
        let mut lines: Vec<&str> = told.text().lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, rows, "{}", told.stderr);
    }
    // A later log has an earlier time: its begin is told by the end of the one before it.
    let paths: Vec<&str> = all.iter().map(|log| log.to_str().unwrap()).collect();
    folder.run(["archive", "create", "--to", "arc"].iter().chain(&paths)).is_done();
    for logs in [&paths[..], &["arc"]] {
        let rows = folder.run(["rows", "d.t"].iter().chain(logs));
        assert_eq!(rows.code, Some(0), "{}", rows.stderr);
    }
    let without_first = ran(&early, &all[1..]);
    assert_eq!((without_first.code, &*without_first.stdout), (Some(1), &b""[..]), "{}", without_first.stderr);
    assert!(without_first.stderr.contains("may be in an earlier log"), "{}", without_first.stderr);
    // The first one has none before it either, the second one is between logs with GTIDs.
    for missing in [&logs[2], &without_gtids] {
        let gap = ran(&late, &all.iter().copied().filter(|log| *log != missing).collect::<Vec<_>>());
        assert_eq!((gap.code, &*gap.stdout), (Some(2), &b""[..]), "{}", gap.stderr);
        let line = format!(": after that came {}\n", missing.file_name().unwrap().display());
        assert!(gap.stderr.ends_with(&line), "{line}: {}", gap.stderr);
    }
    Ok(())
}

#[test]
fn what_cannot_be_told_is_refused_with_its_place() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(
        "CREATE DATABASE shop; USE shop; CREATE TABLE orders (id INT PRIMARY KEY, state VARCHAR(20), note TEXT);
         CREATE TABLE notes (text VARCHAR(20), UNIQUE KEY (text)); CREATE TABLE old (id INT PRIMARY KEY) ENGINE = MyISAM;
         INSERT INTO orders VALUES (1, 'new', NULL), (2, '', 'a,\"b\"'); INSERT INTO old VALUES (1);",
    )?;
    let moment = last_gtid(&server)?;
    let mut logs = Vec::new();
    for state in ["paid", "sent", "gone"] {
        server.sql(&format!(
            "UPDATE shop.orders SET state = '{state}'; INSERT INTO shop.notes VALUES ('{state}')"
        ))?;
        logs.push(server.flush_binary_logs()?);
    }
    let run = |table: &str, at: &str, more: &[&str]| folder.run(table_at(&server, table, at, more));
    let csv = run("shop.orders", &moment, &["--format", "csv"]);
    csv.is_done();
    let mut lines: Vec<&str> = csv.text().lines().collect();
    lines[1..].sort_unstable();
    assert_eq!(lines, ["id,state,note", "1,new,", "2,\"\",\"a,\"\"b\"\"\""]);

    let all: Vec<&str> = logs.iter().filter_map(|log| log.to_str()).collect();
    run("shop.orders", &moment, &all).is_done();
    let refused = |ran: Ran, code: i32, line: &str| {
        assert_eq!((ran.code, ran.text()), (Some(code), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains(line), "{}: {line}", ran.stderr);
    };
    let name = |at: usize| logs[at].file_name().unwrap().to_str().unwrap();
    let gap = format!("{} doesn't follow {}: the logs lack ", name(2), name(0));
    refused(run("shop.orders", &moment, &[all[0], all[2]]), 2, &gap);
    refused(run("shop.orders", &moment, &all[..2]), 2, "which the server has executed");
    let uuid = server.server_uuid()?;
    refused(run("shop.orders", &moment, &all[1..]), 1, "this transaction stands before the logs");
    refused(run("shop.orders", &format!("{uuid}:999"), &[]), 1, "this transaction is not in the logs");
    refused(run("shop.orders", "2001-01-01 00:00:00", &all[1..]), 1, "the logs begin later, at ");
    refused(run("shop.orders", "2199-01-01 00:00:00", &[]), 2, "is in the future");
    refused(run("shop.orders", "someday", &[]), 2, "or a GTID");
    refused(
        run("shop.notes", &moment, &[]),
        2,
        "shop.notes has no primary key, and no unique key of whole columns",
    );
    refused(run("shop.old", &moment, &[]), 2, "shop.old has the engine MyISAM, which has no transactions");
    refused(run("shop.none", &moment, &[]), 2, "shop.none is not on the server");
    refused(run("mysql.user", &moment, &[]), 2, "mysql.user is a table of the server itself");
    let likely = "shop.order is not on the server, or this account may not see it; there is shop.orders\n";
    refused(run("shop.order", &moment, &[]), 2, likely);
    refused(run("shop.orders", &moment, &["--into", "shop.notes"]), 2, "there is such a table");

    server.sql("SET binlog_row_image = MINIMAL; UPDATE shop.orders SET state = 'x' WHERE id = 1")?;
    let minimal = last_gtid(&server)?;
    // The earlier change tells it.
    run("shop.orders", &moment, &[]).is_done();
    let before = format!("{uuid}:{}", minimal.rsplit(':').next().unwrap().parse::<u64>().unwrap() - 1);
    let line = format!("{minimal}: UPDATE of the row of key (1): the logged image lacks state, note");
    refused(run("shop.orders", &before, &["--into", "shop.past"]), 2, &line);
    // What it was is known from what it is.
    server.sql("ALTER TABLE shop.orders ADD more INT FIRST; UPDATE shop.orders SET more = 7")?;
    assert!(run("shop.orders", &minimal, &["--format", "csv"]).text().starts_with("id,state,note\n"));
    server.sql("ALTER TABLE shop.orders MODIFY note VARCHAR(100)")?;
    let line = format!("{}: a statement changed the table, which can't be taken back: ", last_gtid(&server)?);
    refused(run("shop.orders", &minimal, &[]), 2, &line);
    assert_eq!(
        server.sql("SHOW TABLES FROM shop")?.split_whitespace().collect::<Vec<_>>(),
        ["notes", "old", "orders"]
    );

    // A transaction that was prepared before the moment and committed after it.
    server.sql("XA START 'a'; INSERT INTO shop.orders (id) VALUES (7); XA END 'a'; XA PREPARE 'a'")?;
    server.sql("CREATE TABLE shop.other (id INT)")?;
    let between = last_gtid(&server)?;
    server.sql("XA COMMIT 'a'")?;
    refused(
        run("shop.orders", &between, &[]),
        2,
        "had changed the table at that moment, and was committed later",
    );
    run("shop.orders", &last_gtid(&server)?, &[]).is_done();
    Ok(())
}
