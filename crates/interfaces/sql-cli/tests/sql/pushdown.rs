//! Queries that an archive answers without putting its logs together: counts by table, and columns of one table. The
//! answers equal those over plain logs, with archives of every version.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use binlogz_archive::format::Manifest;
use binlogz_archive::storage::{KeySource, Manner};
use binlogz_archive::{restore, storage};

use crate::common::{KEY_FILE, Ran, SHAPES, archive_in, archive_of, ask, root, sql};

/// Statements that need nothing but counts.
const COUNTS: [&str; 11] = [
    "SELECT schema, \"table\", operation, count(*) FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT count(*) FROM changes",
    "SELECT log, count(1) AS rows FROM changes GROUP BY log ORDER BY log",
    "SELECT operation, count(*) FROM changes WHERE schema <> 'sbtest' AND log > 'binlog.000002' GROUP BY 1 ORDER BY 1",
    "SELECT upper(schema) || '.' || \"table\" AS name, count(*) AS rows FROM changes WHERE operation = 'update' OR \"table\" LIKE \
     '%s' GROUP BY 1 HAVING count(*) > 3 ORDER BY 2 DESC, 1",
    "SELECT DISTINCT schema FROM changes ORDER BY 1",
    "SELECT operation IN ('insert', 'delete') AS whole, count(*), count(operation), count(nullif(operation, 'insert')) FROM \
     changes GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM changes WHERE \"table\" = 'nowhere'",
    "SELECT operation, count(*) FROM employees.salaries GROUP BY 1 ORDER BY 1",
    "SELECT s.name, c.rows FROM (SELECT \"table\", count(*) AS rows FROM changes GROUP BY 1) c JOIN (SELECT DISTINCT \"table\" AS \
     name FROM changes) s ON s.name = c.\"table\" ORDER BY 1",
    "SELECT operation, count(DISTINCT schema) FROM changes GROUP BY 1 ORDER BY 1",
];

/// Statements that need counts by transaction.
const BY_TRANSACTION: [&str; 8] = [
    "SELECT count(*) FROM changes WHERE committed_at > TIMESTAMP '2000-01-01 00:00:00'",
    "SELECT count(gtid) FROM changes",
    "SELECT date_trunc('minute', committed_at) AS minute, count(*) FROM changes GROUP BY 1 ORDER BY 1",
    "SELECT gtid, \"table\", operation, count(*) FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT log, applied_at, count(*), count(applied_at) FROM changes WHERE schema = 'employees' AND committed_at < TIMESTAMP \
     '2026-11-21 04:37:44' GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT gtid, count(*) FROM changes WHERE gtid_in('49fc2641-e565-11f1-8b9c-02fc00000001:3-9', gtid) AND operation = 'insert' GROUP \
     BY 1 ORDER BY 1",
    "SELECT gtid, count(*) FROM employees.salaries GROUP BY 1 ORDER BY 1",
    "SELECT committed_at, operation, count(*) FROM sbtest.sbtest1 WHERE operation <> 'insert' GROUP BY 1, 2 ORDER BY 1, 2",
];

/// A question about transactions.
const TRANSACTIONS: &str =
    "SELECT gtid, committed_at, bytes, thread_id, tables FROM transactions ORDER BY bytes DESC, gtid LIMIT 9";

/// Statements that need rows.
const ROWS: [&str; 3] = [
    "SELECT schema, count(*) FILTER (WHERE operation = 'insert') FROM changes GROUP BY 1 ORDER BY 1",
    "SELECT schema, operation, count(*) FROM changes GROUP BY ROLLUP (schema, operation) ORDER BY 1, 2",
    "SELECT count(*) FROM (SELECT * FROM changes LIMIT 7)",
];

/// The value of a metric.
pub(crate) fn metric(explained: &str, name: &str) -> u64 {
    let name = format!("{name}=");
    let values = explained.split(&name).skip(1);
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u64>().ok();
    values.filter_map(number).sum()
}

/// Runs statements, each with one row of its number before.
pub(crate) fn all(statements: &[&str], inputs: &[PathBuf], jobs: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("statements.sql");
    fs::write(&file, statements.join(";\n")).unwrap();
    let mut command = sql(["--format", "json", "--jobs", jobs, "--file"]);
    Ran::from(command.arg(&file).args(inputs).output().unwrap()).ok()
}

/// A join holds one side in memory: transactions, whichever the statement names first.
#[test]
fn a_join_holds_the_table_with_fewer_rows() {
    for tables in ["changes c JOIN transactions t", "transactions t JOIN changes c"] {
        let join = format!("SELECT count(t.thread_id), count(c.key) FROM {tables} ON t.gtid = c.gtid");
        for inputs in [&SHAPES.plain[..], std::slice::from_ref(&SHAPES.archive)] {
            let explained = ask(&format!("EXPLAIN {join}"), inputs).ok();
            let held = explained.split("LogScan").nth(1).unwrap().lines().next().unwrap().to_owned();
            assert!(held.contains("thread_id") && explained.contains("HashJoinExec"), "{explained}");
        }
    }
}

#[test]
fn counts_are_the_same_and_an_archive_tells_them() {
    let archive = std::slice::from_ref(&SHAPES.archive);
    let expected = all(&COUNTS, &SHAPES.plain, "2");
    assert!(expected.lines().count() > 60, "{expected}");
    for jobs in ["1", "3"] {
        assert_eq!(all(&COUNTS, &SHAPES.compressed, jobs), expected);
        assert_eq!(all(&COUNTS, archive, jobs), expected);
    }
    for statement in [COUNTS[0], COUNTS[1], COUNTS[3], COUNTS[5], COUNTS[7], COUNTS[8], COUNTS[9], COUNTS[10]]
    {
        let plan = ask(&format!("EXPLAIN ANALYZE {statement}"), archive).ok();
        assert!(plan.contains("CountScan"), "{statement}: {plan}");
        // But for the few whose events are larger than a block is here: they may hold anything.
        let (read, told) = (metric(&plan, "blocks_read"), metric(&plan, "blocks_told"));
        assert!(
            told > 0 || statement.contains("nowhere") || statement.contains("salaries"),
            "{statement}: {plan}"
        );
        assert!(read < 60, "{statement}: {plan}");
        assert!(statement.contains("JOIN") || read < 30, "{statement}: {plan}");
    }
    let expected = all(&BY_TRANSACTION, &SHAPES.plain, "2");
    assert!(expected.lines().count() > 100, "{expected}");
    assert_eq!(all(&BY_TRANSACTION, archive, "1"), expected);
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("archive");
    archive_of(&SHAPES.compressed, &compressed);
    assert_eq!(all(&BY_TRANSACTION, &[compressed], "2"), expected);
    for statement in BY_TRANSACTION {
        assert!(ask(&format!("EXPLAIN {statement}"), archive).ok().contains("CountScan"), "{statement}");
        assert!(
            !ask(&format!("EXPLAIN {statement}"), &SHAPES.plain).ok().contains("CountScan"),
            "{statement}"
        );
    }
    assert_eq!(all(&ROWS, archive, "2"), all(&ROWS, &SHAPES.plain, "2"));
    for statement in ROWS {
        let plan = ask(&format!("EXPLAIN {statement}"), archive).ok();
        assert!(!plan.contains("CountScan"), "{statement}: {plan}");
    }
}

/// The counts by table are those of the rows themselves, however they are counted.
#[test]
fn counts_are_those_of_the_rows() {
    for input in [&SHAPES.plain[..], &SHAPES.compressed, std::slice::from_ref(&SHAPES.archive)] {
        let by = |count: &str| {
            ask(&format!("SELECT schema, \"table\", operation, {count} AS rows FROM changes GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"), input).ok()
        };
        assert_eq!(by("count(*)"), by("count(\"offset\")"));
    }
}

/// The columns of all user tables that can be picked.
fn columns_of_tables(inputs: &[PathBuf]) -> Vec<String> {
    let columns = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_catalog = 'binlogz' AND table_schema NOT \
                   IN ('information_schema', 'binlog') ORDER BY 1, 2";
    let tables = ask(columns, inputs).ok();
    let tables = tables.lines().skip(1).map(|line| line.split_once(',').unwrap());
    let statements = tables.map(|(schema, table)| {
        let name = format!("\"{schema}\".\"{table}\"");
        format!(
            "SELECT '{name}' AS name, log, gtid, committed_at, applied_at, logged_at, server_id, \"row\", inside, operation, key, changed, \
             before, after FROM {name}"
        )
    });
    statements.collect()
}

#[test]
fn columns_of_one_table_are_the_same_and_alone_are_unpacked() {
    let archive = std::slice::from_ref(&SHAPES.archive);
    let statements = columns_of_tables(&SHAPES.plain);
    assert!(statements.len() > 15, "{statements:?}");
    let statements: Vec<_> = statements.iter().map(String::as_str).collect();
    let (expected, found) = (all(&statements, &SHAPES.plain, "2"), all(&statements, archive, "2"));
    for (expected, found) in expected.lines().zip(found.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
    let explained: Vec<_> =
        statements.iter().map(|statement| format!("EXPLAIN ANALYZE {statement}")).collect();
    let plans = all(&explained.iter().map(String::as_str).collect::<Vec<_>>(), archive, "2");
    let picked = plans.split("LogScan").skip(1).filter(|plan| metric(plan, "blocks_picked") > 0).count();
    // The others have logs with events that are larger than a block is here.
    assert!(picked > 8, "{picked} of {}", statements.len());
    // Conditions, limits, single fields.
    for statement in [
        "SELECT sum(after.emp_no), min(before.emp_no), count(*) FROM employees.salaries",
        "SELECT operation, sum(after.salary - before.salary) FROM employees.salaries WHERE operation = 'update' GROUP BY 1",
        "SELECT after.emp_no FROM employees.salaries WHERE after.salary > 60000 LIMIT 5",
        "SELECT date_trunc('second', committed_at), sum(after.salary) FROM employees.salaries GROUP BY 1 ORDER BY 1",
        "SELECT gtid, count(*) FROM employees.salaries WHERE logged_at > '2000-01-01' GROUP BY 1 ORDER BY 1",
        "SELECT before['id'], after['c'] FROM sbtest.sbtest1 WHERE after['id'] > 100 AND operation <> 'insert'",
        "SELECT \"row\", count(*), min(key), max(key) FROM employees.salaries GROUP BY 1 ORDER BY 1",
        "SELECT key, count(*) FROM sbtest.sbtest1 WHERE operation = 'delete' GROUP BY 1 ORDER BY 1",
        "SELECT changed, inside, count(*) FROM sbtest.sbtest1 GROUP BY 1, 2 ORDER BY 1, 2",
        "SELECT changed, key FROM employees.salaries",
    ] {
        let with_names = |inputs: &[PathBuf]| {
            let mut command = sql(["--format", "csv", "--schema"]);
            Ran::from(command.arg(crate::common::schema()).arg(statement).args(inputs).output().unwrap()).ok()
        };
        assert_eq!(with_names(archive), with_names(&SHAPES.plain), "{statement}");
    }
    let plan = "EXPLAIN ANALYZE SELECT changed, inside, before FROM sbtest.sbtest1";
    let picked = ask(plan, archive).ok();
    assert!(metric(&picked, "blocks_picked") > 0, "{picked}");
    // What only an event tells needs the events.
    let plan = "EXPLAIN ANALYZE SELECT \"offset\", after FROM employees.salaries";
    assert_eq!(metric(&ask(plan, archive).ok(), "blocks_picked"), 0);
}

/// Texts that are counted alone, and others.
#[test]
fn texts_that_are_only_counted_are_those_that_are_there() {
    let archive = std::slice::from_ref(&SHAPES.archive);
    // Statements, and whether the scan has columns that are only counted.
    let statements = [
        (
            "SELECT count(after.c), count(before.c), count(after.v), count(after.l1), count(after.u16), count(after.sj), count(after.e), \
             count(after.tb), count(after.vb), count(after.tx) FROM mix.strings",
            true,
        ),
        (
            "SELECT operation, count(after.v), count(before.v), count(*) FROM mix.strings GROUP BY 1 ORDER BY 1",
            true,
        ),
        ("SELECT count(after.v), max(after.v), count(after.tx) FROM mix.strings", true),
        (
            "SELECT count(after.c) FILTER (WHERE after.pad LIKE '%1%'), count(before.pad) FROM sbtest.sbtest1",
            true,
        ),
        (
            "SELECT count(c) FROM (SELECT after.c AS c, after.k AS k FROM sbtest.sbtest1 WHERE after.k > 100)",
            true,
        ),
        ("SELECT after.v, count(after.v) FROM mix.strings GROUP BY 1 ORDER BY 1", false),
        ("SELECT count(after.c), count(DISTINCT after.c) FROM sbtest.sbtest1", false),
        ("SELECT count(after.c) FROM sbtest.sbtest1 WHERE after.c > '5'", true),
        ("SELECT count(after.c || after.pad), count(after.c) FROM sbtest.sbtest1", false),
        // Some dates are NULL.
        ("SELECT count(after.d), count(after.dt0), count(after.t0), count(after.ts6) FROM mix.times", true),
        ("SELECT count(after.j), count(before.j), count(after.p) FROM mix.others", true),
    ];
    for (statement, is_counted) in statements {
        let asked = |statement: &str, inputs: &[PathBuf]| {
            let mut command = sql(["--format", "csv", "--schema"]);
            Ran::from(command.arg(crate::common::schema()).arg(statement).args(inputs).output().unwrap()).ok()
        };
        let expected = asked(statement, &SHAPES.plain);
        assert!(
            expected.lines().skip(1).any(|line| line.contains(['1', '2', '3', '4', '5'])),
            "{statement}: {expected}"
        );
        assert_eq!(asked(statement, archive), expected, "{statement}");
        let plan = asked(&format!("EXPLAIN {statement}"), archive);
        assert_eq!(plan.contains("counted=["), is_counted, "{statement}: {plan}");
    }
}

/// Documents that were changed in part are whole, and come from the columns of their blocks as others do.
#[test]
fn documents_are_picked() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = root().join("crates/storage/archive/tests/fixtures/version-9");
    let logs = restored(&fixture, &folder.path().join("logs"));
    let log = logs.into_iter().find(|log| log.to_str().unwrap().contains("partial-json")).unwrap();
    let archive = folder.path().join("archive");
    archive_of(std::slice::from_ref(&log), &archive);
    let statements = columns_of_tables(std::slice::from_ref(&log));
    for statement in statements {
        let expected = ask(&statement, std::slice::from_ref(&log)).ok();
        assert!(expected.lines().count() > 100, "{expected}");
        assert_eq!(ask(&statement, std::slice::from_ref(&archive)).ok(), expected);
        let plan = ask(&format!("EXPLAIN ANALYZE {statement}"), std::slice::from_ref(&archive)).ok();
        let (read, picked) = (metric(&plan, "blocks_read"), metric(&plan, "blocks_picked"));
        assert!(picked > 10 && picked == read, "{plan}");
    }
}

/// Tables of an archive that are asked for, of 50 in one.
const TABLES_MAX: usize = 4;

/// Archives of every version that there was: the logs in them, and the question for both.
#[test]
fn archives_of_every_version_answer_as_their_logs() {
    let folder = tempfile::tempdir().unwrap();
    for version in [1, 3, 5, 6, 8, 9, 11] {
        let archive = root().join(format!("crates/storage/archive/tests/fixtures/version-{version}"));
        let logs = restored(&archive, &folder.path().join(version.to_string()));
        let mut statements = vec![COUNTS[0].to_owned(), COUNTS[2].to_owned()];
        let of_transactions =
            "log, gtid, committed_at, logged_at, server_id, thread_id, events, bytes, inserted, tables";
        statements.push(format!("SELECT {of_transactions} FROM transactions"));
        let tables = columns_of_tables(&logs);
        let some = tables.len() / TABLES_MAX + 1;
        statements.extend(tables.into_iter().step_by(some));
        let statements: Vec<_> = statements.iter().map(String::as_str).collect();
        let expected = all(&statements, &logs, "2");
        assert!(expected.lines().count() > 100, "version {version}");
        assert!(all(&statements, std::slice::from_ref(&archive), "2") == expected, "version {version}");
        if version == 5 || version == 9 {
            // The same logs, archived today, in blocks that refer to each other.
            let today = folder.path().join(format!("{version}-today"));
            archive_of(&logs, &today);
            assert!(all(&statements, &[today], "2") == expected, "version {version}, archived again");
        }
    }
}

/// The key comes from the environment, as for every command. The index and its contents are encrypted too.
#[test]
fn an_encrypted_archive_tells_counts_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let (key, archive) = (folder.path().join("key"), folder.path().join("archive"));
    fs::write(&key, "07".repeat(32)).unwrap();
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let with_key = |statement: &str| {
        let mut command = sql(["--format", "csv", statement]);
        Ran::from(command.arg(&archive).env(KEY_FILE, &key).output().unwrap())
    };
    let storage =
        storage::with_key(&archive, Some(KeySource::File(key.clone())), &Manner::default()).unwrap();
    archive_in(&storage, &SHAPES.plain);
    let without = ask(COUNTS[0], std::slice::from_ref(&archive)).failure();
    assert!(without.contains("it is encrypted with the key "), "{without}");
    for statement in [COUNTS[0], COUNTS[3], COUNTS[4], COUNTS[9], BY_TRANSACTION[2], TRANSACTIONS, ROWS[0]] {
        assert_eq!(with_key(statement).ok(), ask(statement, &SHAPES.plain).ok(), "{statement}");
    }
    let plan = with_key(&format!("EXPLAIN ANALYZE {}", COUNTS[0])).ok();
    let (read, told) = (metric(&plan, "blocks_read"), metric(&plan, "blocks_told"));
    assert!(plan.contains("CountScan") && told > 100 && read < 30, "{plan}");
}

/// Restores the logs of an archive.
fn restored(archive: &Path, to: &Path) -> Vec<PathBuf> {
    fs::create_dir(to).unwrap();
    let storage = storage::at(archive).unwrap();
    let manifest = Manifest::read(&storage).unwrap().unwrap();
    let logs = manifest.files.iter().map(|file| {
        let path = to.join(&file.name);
        restore::whole(&storage, file, &mut File::create(&path).unwrap(), 1).unwrap();
        path
    });
    logs.collect()
}
