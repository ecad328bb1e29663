//! Lines of logs without names: each row has the columns that its table had at its place, by `--schema` and the statements of
//! the logs, or the statement after which they aren't known is named.
//!
//! `SEED=N` begins at N, `BINLOGZ_ALTERED` says how many seeds.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use binlogz_testkit::altered_tables::{AlteredLogs, altered_logs};
use binlogz_testkit::{MysqlSandbox, Result, Tool, mutate, require_tool, setting};
use serde_json::Value;

use crate::common::{Folder, Ran};

const FORMATS: [&str; 4] = ["jsonl", "debezium", "maxwell", "canal"];

/// Logs of a table whose rows were logged before and after a statement that moves a column: one that makes it, one with the
/// first rows, one with the statement and later rows.
fn moved(server: &MysqlSandbox, statement: &str) -> Result<[PathBuf; 3]> {
    server.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop")?;
    server.flush_binary_logs()?;
    server.sql(
        "USE shop; CREATE TABLE t (id INT PRIMARY KEY, paid INT, owed INT, state ENUM('new','old'));
         CREATE TABLE still (id INT PRIMARY KEY, word TEXT)",
    )?;
    let made = server.flush_binary_logs()?;
    server.sql("USE shop; INSERT INTO t VALUES (1, 100, 5, 'old'); INSERT INTO still VALUES (1, 'w')")?;
    let before = server.flush_binary_logs()?;
    server.sql(&format!("USE shop; {statement}; INSERT INTO t (id, owed, paid) VALUES (2, 6, 200)"))?;
    Ok([made, before, server.flush_binary_logs()?])
}

fn dump(folder: &Folder, format: &str, more: &[&OsStr], logs: &[PathBuf]) -> Ran {
    let format = format!("--format={format}");
    let front = ["dump", "--no-defaults", "--no-login-paths", "--user=root", &format].map(OsStr::new);
    let logs = logs.iter().map(|log| log.as_os_str());
    folder.run(front.into_iter().chain(more.iter().copied()).chain(logs))
}

fn schema(server: &MysqlSandbox) -> OsString {
    let mut option = OsString::from("--schema=");
    option.push(server.socket());
    option
}

/// The images of rows, in the order of the lines: `before`, then `after`.
fn images(format: &str, text: &str) -> Vec<Value> {
    let values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut images = Vec::new();
    for value in values {
        match format {
            "maxwell" => images.push(value["data"].clone()),
            "canal" if value["isDdl"] == Value::Bool(false) => {
                images.extend(value["data"].as_array().cloned().unwrap_or_default());
            }
            _ => images.extend(["before", "after"].map(|name| value[name].clone())),
        }
    }
    images.retain(|image| !image.is_null());
    images
}

fn number(image: &Value, column: &str) -> Option<i64> {
    let value = &image[column];
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

#[test]
fn rows_from_before_an_alter_have_the_columns_of_their_time() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let schema = schema(&server);
    for statement in [
        "ALTER TABLE t MODIFY owed INT AFTER id",
        "ALTER TABLE t RENAME COLUMN paid TO owed, RENAME COLUMN owed TO paid",
        "CREATE TABLE n LIKE t; ALTER TABLE n MODIFY owed INT AFTER id; RENAME TABLE t TO o, n TO t",
    ] {
        let logs = moved(&server, statement)?;
        // Where the old column stood isn't told; of a swap, the old table is still there.
        let is_told_by_now = !statement.starts_with("ALTER TABLE t MODIFY");
        for format in FORMATS {
            // What moved is told by the log that makes the table, or backward from now.
            let with_creation = dump(&folder, format, &[&schema], &logs);
            let from_now = dump(&folder, format, &[&schema], &logs[1..]);
            let without = dump(&folder, format, &[], &logs);
            for (ran, is_known) in [(&with_creation, true), (&from_now, is_told_by_now), (&without, true)] {
                if is_known {
                    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{statement} {format}");
                    let images = images(format, ran.text());
                    assert_eq!(images.len(), 3, "{}", ran.text());
                    assert_eq!(number(&images[0], "paid"), Some(100), "{statement} {format}: {}", images[0]);
                    assert_eq!(number(&images[0], "owed"), Some(5), "{statement} {format}: {}", images[0]);
                    assert_eq!(number(&images[2], "paid"), Some(200), "{statement} {format}: {}", images[2]);
                    if format != "canal" {
                        assert_eq!(images[0]["state"], "old", "{statement} {format}");
                    }
                } else {
                    assert_eq!(ran.code, Some(1), "{statement} {format}");
                    let names = ran.stderr.contains("shop.t") && ran.stderr.contains(".0000");
                    assert!(names && ran.stderr.matches("ERROR").count() == 1, "{}", ran.stderr);
                    assert!(ran.stderr.contains(statement), "{statement}: {}", ran.stderr);
                    if format == "jsonl" {
                        let images = images(format, ran.text());
                        assert_eq!(images[0]["@2"], 100, "{}", images[0]);
                        assert_eq!(images[1]["word"], "w");
                        assert_eq!(images[2]["paid"], 200);
                    }
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_pipe_has_names_up_to_a_statement_that_may_change_them() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let schema = schema(&server);
    let logs = moved(&server, "ALTER TABLE t MODIFY owed INT AFTER id")?;
    for format in FORMATS {
        let later = fs::read(&logs[2]).unwrap();
        let format_option = format!("--format={format}");
        let front = ["dump", "--no-defaults", "--no-login-paths", "--user=root", &format_option];
        let arguments = front.map(OsStr::new).into_iter().chain([schema.as_os_str(), OsStr::new("-")]);
        let ran = folder.run_with(arguments, &later);
        assert_eq!(ran.code, Some(1), "{format}: {}", ran.text());
        assert!(ran.stderr.contains("ALTER TABLE t MODIFY"), "{format}: {}", ran.stderr);
        // Without the statement there is no doubt.
        let arguments = front.map(OsStr::new).into_iter().chain([schema.as_os_str(), OsStr::new("-")]);
        let ran = folder.run_with(arguments, &fs::read(&logs[1]).unwrap());
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{format}");
        // A log that makes its table needs no schema.
        let arguments = front.map(OsStr::new).into_iter().chain([OsStr::new("-")]);
        server.sql("USE shop; CREATE TABLE piped (id INT PRIMARY KEY, b INT); INSERT INTO piped VALUES (1, 2); ALTER TABLE piped MODIFY b INT FIRST; INSERT INTO piped VALUES (4, 3); DROP TABLE piped")?;
        let ran = folder.run_with(arguments, &fs::read(server.flush_binary_logs()?).unwrap());
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{format}");
        let images = images(format, ran.text());
        let numbers: Vec<_> = images.iter().map(|image| (number(image, "id"), number(image, "b"))).collect();
        assert_eq!(numbers, [(Some(1), Some(2)), (Some(3), Some(4))], "{format}");
    }
    Ok(())
}

#[test]
fn a_log_of_a_gap_tells_nothing_of_later_ones() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let [made, _, later] = moved(&server, "SET @x = 1")?;
    let ran = dump(&folder, "jsonl", &[], &[made, later]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert_eq!(images("jsonl", ran.text())[0]["@1"], 2);
    Ok(())
}

/// Where statements after the rows can't be seen, the names of now are named as such.
#[test]
fn names_of_now_are_told_where_later_statements_are_not_seen() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let option = schema(&server);
    let [_, before, _] = moved(&server, "ALTER TABLE t MODIFY owed INT AFTER id")?;
    server.sql("INSERT INTO shop.t VALUES (3, 7, 300, 'new')")?;
    let last = server.flush_binary_logs()?;
    server.sql(
        "INSERT INTO shop.t VALUES (4, 8, 400, 'new'); SET timestamp = UNIX_TIMESTAMP() + 86400; INSERT INTO shop.t VALUES (5, 9, 500, 'new')",
    )?;
    let late = server.flush_binary_logs()?;
    let stop = server.sql("SELECT NOW() + INTERVAL 1 HOUR")?;
    let is_named = |ran: &Ran, why: &str| {
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let line = "the columns have the names that --schema gives them now, and may have had others here: ";
        assert!(ran.stderr.contains(line) && ran.stderr.contains("shop.t"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(why) && ran.stderr.matches("ERROR").count() == 1,
            "{why}: {}",
            ran.stderr
        );
    };
    for format in FORMATS {
        // The log in between has the statement.
        let ran = dump(&folder, format, &[&option], &[before.clone(), last.clone()]);
        is_named(&ran, ".0000");
        assert_eq!(images(format, ran.text()).len(), 3);
        let ran = dump(&folder, format, &[&option], std::slice::from_ref(&last));
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{format}");

        // A pipe of which not everything is read.
        let format_option = format!("--format={format}");
        let front = ["dump", "--no-defaults", "--no-login-paths", "--user=root", &format_option];
        let bytes = fs::read(&late).unwrap();
        let stop = format!("--stop-datetime={}", stop.trim());
        let arguments =
            front.map(OsStr::new).into_iter().chain([&*option, OsStr::new(&stop), OsStr::new("-")]);
        is_named(&folder.run_with(arguments, &bytes), "--stop-");

        // A server's log, after which it has others.
        let name = |log: &PathBuf| PathBuf::from(log.file_name().unwrap());
        let mut socket = OsString::from("--socket=");
        socket.push(server.socket());
        let remote = ["--read-from-remote-server".as_ref(), &*socket, &*option];
        let ran = dump(&folder, format, &remote, &[name(&before)]);
        is_named(&ran, "the server has logs after");
        // The one that is written.
        let current = server.sql("SHOW BINARY LOG STATUS")?;
        let current = PathBuf::from(current.split('\t').next().unwrap());
        server.sql("INSERT INTO shop.still VALUES (UUID_SHORT() % 1000000, 'x')")?;
        let ran = dump(&folder, format, &remote, &[current]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{format}");
    }
    Ok(())
}

/// Compares a row with the one that has all metadata: whether everything is known. A member by number is named as not known.
fn is_known(ours: &Value, theirs: &Value, ran: &Ran, place: &str) -> bool {
    let (own, other) = (ours.as_object().unwrap(), theirs.as_object().unwrap());
    if own.keys().any(|name| name.starts_with('@')) {
        return false;
    }
    let is_number =
        |name: &String| ours[name].is_number() && !theirs[name].is_number() && !theirs[name].is_null();
    let (numbers, others): (Vec<_>, Vec<_>) = own.keys().partition(|name| is_number(name));
    for name in &others {
        assert_eq!(ours[*name], theirs[*name], "{place} {name}");
    }
    assert_eq!(own.len(), other.len(), "{place}");
    for name in &numbers {
        let is_named = ran
            .stderr
            .lines()
            .any(|line| line.contains("the definition of ") && line.contains(name.as_str()));
        assert!(is_named && ran.code == Some(1), "{place} {name}: {}", ran.stderr);
    }
    numbers.is_empty()
}

/// Compares rows of logs without names with the same rows of logs with names; how many were known.
fn compare(format: &str, ran: &Ran, named: &Ran, seed: u64) -> (usize, usize) {
    let (ours, theirs) = (images(format, ran.text()), images(format, named.text()));
    let mut known = 0;
    for (number, (image, named)) in ours.iter().zip(&theirs).enumerate() {
        let place = format!("SEED={seed} {format} image {number}");
        known += usize::from(is_known(image, named, ran, &place));
    }
    if ran.code == Some(0) {
        assert_eq!(ours.len(), theirs.len(), "SEED={seed} {format}");
    }
    (known, theirs.len())
}

#[test]
fn names_are_those_that_the_server_logs_with_all_metadata() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let schema = schema(&server);
    let first = mutate::seed();
    let mut shares = [(0, 0); 3];
    for seed in first..first + setting("BINLOGZ_ALTERED", 1) {
        let AlteredLogs { minimal, creation, full } = altered_logs(&server, seed)?;
        let all: Vec<_> = [creation].into_iter().chain(minimal.clone()).collect();
        for format in FORMATS {
            let named = dump(&folder, format, &[], &full);
            assert_eq!((named.code, &*named.stderr), (Some(0), ""), "SEED={seed}");
            for (share, (more, logs)) in shares.iter_mut().zip([
                (&[schema.as_os_str()][..], &all),
                (&[schema.as_os_str()], &minimal),
                (&[], &all),
            ]) {
                let ran = dump(&folder, format, more, logs);
                let (known, count) = compare(format, &ran, &named, seed);
                if format == "jsonl" {
                    *share = (share.0 + known, share.1 + count);
                    // Without a schema names are a gift.
                    let is_told = more.is_empty() || known == count || ran.code == Some(1);
                    assert!(is_told, "SEED={seed}: {known} of {count} known");
                }
            }
        }
    }
    println!(
        "known: from the creation on with now {:?}, from now {:?}, forward {:?}",
        shares[0], shares[1], shares[2]
    );
    assert!(shares[0].0 * 10 >= shares[0].1 * 5, "SEED={first}: {shares:?}");
    Ok(())
}

/// The server moves a column to and fro while its log is printed: each row has the columns of its place, or the statement is named since
/// which they aren't known.
#[test]
fn a_log_in_use_has_the_columns_of_each_place() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let schema = schema(&server);
    server.sql(
        "CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, paid INT, owed INT)",
    )?;
    let insert = "INSERT INTO shop.t (paid, owed) VALUES (100, 5)";
    let moves = format!(
        "{insert}; ALTER TABLE shop.t MODIFY owed INT FIRST, ALGORITHM=COPY; {insert}; ALTER TABLE shop.t MODIFY owed INT AFTER paid, \
         ALGORITHM=COPY;"
    );
    let log = server.binlogs()?.pop().unwrap();
    let is_over = AtomicBool::new(false);
    let runs: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                server.sql(&moves.repeat(5)).unwrap();
            }
        });
        let logs = std::slice::from_ref(&log);
        let runs = (0..RUNS_BESIDE).map(|_| dump(&folder, "jsonl", &[&schema], logs)).collect();
        is_over.store(true, Ordering::Relaxed);
        runs
    });
    let mut exact = 0;
    for ran in &runs {
        let rows = images("jsonl", ran.text());
        let known = rows.iter().filter(|row| row["paid"].is_number());
        assert_eq!(
            known.clone().find(|row| row["paid"] != 100 || row["owed"] != 5),
            None,
            "of {}",
            rows.len()
        );
        match ran.code {
            Some(0) => {
                exact += 1;
                assert_eq!((known.count(), &*ran.stderr), (rows.len(), ""));
            }
            code => {
                assert_eq!(code, Some(1), "{}", ran.stderr);
                let is_named = ran.stderr.contains("ALTER TABLE shop.t MODIFY");
                assert!(is_named || ran.stderr.contains("try again"), "{}", ran.stderr);
            }
        }
    }
    println!("{exact} of {RUNS_BESIDE} exact");
    server.flush_binary_logs()?;
    let ran = dump(&folder, "jsonl", &[&schema], std::slice::from_ref(&log));
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    Ok(())
}

/// How often a log is printed while it is written.
const RUNS_BESIDE: usize = 12;
