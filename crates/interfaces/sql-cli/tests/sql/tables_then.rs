//! Queries over logs without names: each row has the columns that its table had at its place, by `--schema` and the statements of
//! the logs, or the statement since which they aren't known is named.
//!
//! `SEED=N` begins at N, `BINLOGZ_ALTERED` says how many seeds.

use std::fs::File;
use std::path::{Path, PathBuf};

use binlogz_testkit::altered_tables::{AlteredLogs, altered_logs};
use binlogz_testkit::{MysqlSandbox, Result, Tool, mutate, require_tool, setting};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int32Type;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{Ran, archive_of, sql};
use crate::export::files;

/// Logs of a table whose columns are moved between its rows: one that makes it, one with rows, one with the statement and rows.
pub(crate) fn moved(server: &MysqlSandbox) -> Result<[PathBuf; 3]> {
    server.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop")?;
    server.flush_binary_logs()?;
    server
        .sql("USE shop; CREATE TABLE t (id INT PRIMARY KEY, paid INT, owed INT, state ENUM('new','old'))")?;
    let made = server.flush_binary_logs()?;
    server.sql("USE shop; INSERT INTO t VALUES (1, 100, 5, 'old')")?;
    let before = server.flush_binary_logs()?;
    server.sql(
        "USE shop; ALTER TABLE t MODIFY owed INT AFTER id; INSERT INTO t (id, owed, paid) VALUES (2, 6, 200)",
    )?;
    Ok([made, before, server.flush_binary_logs()?])
}

fn ask(schema: Option<&str>, statement: &str, logs: &[PathBuf]) -> Ran {
    let mut command = sql(["--format", "csv"]);
    command.args(schema.map(|schema| ["--schema", schema]).into_iter().flatten());
    command.arg(statement).args(logs).output().unwrap().into()
}

/// A column of the images after changes.
fn numbers(files: &[PathBuf], column: &str) -> Vec<i32> {
    let mut numbers = Vec::new();
    for path in files {
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        for batch in reader.build().unwrap() {
            let batch = batch.unwrap();
            let after = batch.column_by_name("after").unwrap().as_struct();
            let values = after.column_by_name(column).unwrap().as_primitive::<Int32Type>();
            numbers.extend(values.iter().flatten());
        }
    }
    numbers
}

#[test]
fn rows_from_before_an_alter_have_the_columns_of_their_time() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    for is_compressed in ["OFF", "ON"] {
        server.sql(&format!("SET GLOBAL binlog_transaction_compression = {is_compressed}"))?;
        check_moved(&server)?;
    }
    Ok(())
}

fn check_moved(server: &MysqlSandbox) -> Result<()> {
    let logs = moved(server)?;
    let place = format!("root@{}", server.socket().display());
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    archive_of(&logs, &archive);
    let expected = "1,100,5,old\n2,200,6,\n";
    let statement =
        "SELECT after.id AS i, after.paid AS p, after.owed AS o, after.state AS s FROM shop.t ORDER BY 1";
    for logs in [logs.to_vec(), vec![archive.clone()]] {
        let rows = ask(Some(&place), statement, &logs).ok();
        assert_eq!(rows, format!("i,p,o,s\n{expected}"));
        let json =
            ask(Some(&place), "SELECT key, after FROM changes WHERE key IS NOT NULL ORDER BY 1", &logs).ok();
        let first = json.lines().nth(1).unwrap().replace("\"\"", "\"");
        assert_eq!(first, "\"{\"id\":1}\",\"{\"id\":1,\"paid\":100,\"owed\":5,\"state\":\"old\"}\"");
        let one = ask(
            Some(&place),
            "SELECT after.id AS i FROM shop.t WHERE after.id = 1 AND after.owed = 5",
            &logs,
        );
        assert_eq!(one.ok(), "i\n1\n");
    }
    // Where the column stood before isn't told without the log that makes the table.
    let later = folder.path().join("later");
    archive_of(&logs[1..], &later);
    for logs in [logs[1..].to_vec(), vec![later]] {
        let ran =
            ask(Some(&place), "SELECT after.\"@2\" AS a, after.owed AS o FROM shop.t ORDER BY 1", &logs);
        assert_eq!((ran.code, &*ran.out), (Some(1), "a,o\n,6\n100,\n"), "{}", ran.error);
        let is_named =
            ran.error.contains("shop.t: ") && ran.error.contains("ALTER TABLE t MODIFY owed INT AFTER id");
        assert!(is_named && ran.error.lines().count() == 1, "{}", ran.error);
    }
    // A schema of another table.
    let other = folder.path().join("other.sql");
    std::fs::write(&other, "USE shop; CREATE TABLE t (id INT, paid INT)").unwrap();
    let packed = folder.path().join("packed");
    archive_of(&logs[1..2], &packed);
    for logs in [logs[1..2].to_vec(), vec![packed]] {
        let ran = ask(other.to_str(), "SELECT after.\"@2\" AS a FROM shop.t", &logs);
        assert_eq!((ran.code, &*ran.out), (Some(1), "a\n100\n"), "{}", ran.error);
        assert!(ran.error.contains("shop.t: ") && ran.error.lines().count() == 1, "{}", ran.error);
    }
    // A gap: the statements may not be all that there were.
    let gap = ask(Some(&place), statement, &[logs[0].clone(), logs[2].clone()]).failure();
    assert!(gap.contains("--schema needs logs that continue one another"), "{gap}");

    let to = folder.path().join("lake");
    let export = |logs: &[PathBuf], to: &Path| {
        let mut command = sql(["export", "--schema", &place, "--to"]);
        Ran::from(command.arg(to).args(logs).output().unwrap())
    };
    export(&logs, &to).ok();
    let exported = files(&to.join("shop/t"));
    assert_eq!([numbers(&exported, "paid"), numbers(&exported, "owed")], [[100, 200], [5, 6]]);
    let ran = export(&logs[1..], &folder.path().join("half"));
    assert!(ran.code == Some(1) && ran.error.contains("ALTER TABLE t MODIFY"), "{ran:?}");
    Ok(())
}

#[test]
fn names_are_those_that_the_server_logs_with_all_metadata() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let place = format!("root@{}", server.socket().display());
    let statement =
        "SELECT \"table\", operation, before, after FROM changes ORDER BY log, position, \"offset\", row";
    let first = mutate::seed();
    for seed in first..first + setting("BINLOGZ_ALTERED", 1) {
        let AlteredLogs { minimal, creation, full } = altered_logs(&server, seed)?;
        let all: Vec<_> = [creation].into_iter().chain(minimal.clone()).collect();
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("archive");
        archive_of(&all, &archive);
        let named = ask(None, statement, &full).ok();
        for logs in [all, minimal, vec![archive]] {
            let ran = ask(Some(&place), statement, &logs);
            assert_eq!(ran.out.lines().count(), named.lines().count(), "SEED={seed}");
            let mut unknown = 0;
            for (ours, theirs) in ran.out.lines().zip(named.lines()) {
                // Without a name, or a member by its number, of a column whose definition is named.
                let is_named = ours.contains("\"@") || ran.error.contains("the definition of ");
                assert!(ours == theirs || is_named, "SEED={seed}: {ours} {theirs}: {}", ran.error);
                unknown += usize::from(ours != theirs);
            }
            assert!(unknown == 0 || ran.code == Some(1), "SEED={seed}: {}", ran.error);
            assert!(ran.code == Some(0) || !ran.error.is_empty(), "SEED={seed}");
            println!("{unknown} of {} unknown", named.lines().count());
        }
    }
    Ok(())
}

#[test]
fn it_is_said_once_how_names_are_got_that_no_log_has() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let logs = moved(&server)?;
    let lacking = "binlogz-sql: warning: the log has no column names (binlog_row_metadata=FULL writes them; --schema tells them, \
                   from a file or a server): @1 is the first column\n";
    for (statement, said) in [
        ("SELECT after FROM changes", lacking),
        ("SELECT changed FROM changes UNION ALL SELECT changed FROM changes", lacking),
        ("SELECT after['@1'] FROM shop.t", lacking),
        ("SELECT count(*), max(table) FROM changes", ""),
    ] {
        let ran = ask(None, statement, &logs);
        assert_eq!((ran.code, &*ran.error), (Some(0), said), "{statement}: {}", ran.out);
    }
    let place = format!("root@{}", server.socket().display());
    let ran = ask(Some(&place), "SELECT after FROM changes", &logs);
    assert_eq!((ran.code, &*ran.error), (Some(0), ""), "{}", ran.out);
    Ok(())
}
