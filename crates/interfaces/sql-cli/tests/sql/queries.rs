//! Queries give the same answers over plain logs, compressed ones and archives, and agree with the rows themselves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Output;

use binlogz_flow::{Input, RowChanges};
use binlogz_testkit::corpus;

use crate::common::{Ran, SHAPES, ask, ask_pipe, sql};

const QUERIES: &str = include_str!("queries.sql");

/// Where those begin of which the brief test has a part.
const FURTHER: &str = "-- Further ones";

#[test]
fn queries_give_the_same_in_every_shape() {
    let (queries, further) = QUERIES.split_once(FURTHER).unwrap();
    let further: Vec<_> = further.lines().filter(|line| line.ends_with(';')).step_by(3).collect();
    assert!(further.len() > 8, "{further:?}");
    let out = SHAPES.same(&format!("{queries}{}", further.join("\n")));
    assert!(out.contains(&expected_counts()), "{out}");
    // What a join must not find: counts or clocks that differ.
    assert!(out.contains("\nraised\n1\n"), "{out}");
}

/// Rows by table and operation, as the iterator over row changes gives them.
fn expected_counts() -> String {
    let mut counts = BTreeMap::new();
    for path in &SHAPES.plain {
        for change in RowChanges::new(Input::open(path).unwrap()) {
            let change = change.unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let table = change.table();
            let operation = change.kind.operation();
            *counts.entry((text(&table.database), text(&table.table), operation)).or_insert(0) += 1;
        }
    }
    assert!(counts.len() > 20, "{counts:?}");
    let lines = counts
        .iter()
        .map(|((database, table, operation), rows)| format!("{database},{table},{operation},{rows}\n"));
    format!("schema,table,operation,rows\n{}", lines.collect::<String>())
}

#[test]
fn a_pipe_may_be_read_twice() {
    let log = &SHAPES.plain[1];
    let join = "SELECT count(*) FROM employees.salaries a JOIN changes b USING (\"offset\", \"row\")";
    let expected = ask(join, std::slice::from_ref(log)).ok();
    assert_ne!(expected, "count(*)\n0\n");
    assert_eq!(ask_pipe(join, &std::fs::read(log).unwrap()).ok(), expected);
}

#[test]
fn an_archive_is_read_in_part() {
    let metrics = |condition: &str| {
        let statement = format!("EXPLAIN ANALYZE SELECT count(\"offset\") FROM changes WHERE {condition}");
        let out = ask(&statement, std::slice::from_ref(&SHAPES.archive)).ok();
        let number = |name: &str| -> u64 {
            let (_, after) =
                out.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("no {name}: {out}"));
            let digits: String = after.chars().take_while(|c| c.is_ascii_digit()).collect();
            digits.parse().unwrap()
        };
        (number("blocks_read"), number("blocks_skipped"), number("logs_skipped"))
    };
    let plan = "EXPLAIN SELECT count(*) FROM changes";
    let plan = Ran::from(sql([plan]).arg(&SHAPES.archive).output().unwrap()).ok();
    assert!(
        plan.lines().count() > 6 && plan.lines().all(|line| line.len() < 200),
        "a line for each step: {plan}"
    );
    let (all, none_skipped, _) = metrics("operation <> 'x'");
    assert!(all > 20, "{all}");
    let gtid = "SELECT gtid FROM transactions WHERE log = 'binlog.000004' ORDER BY position DESC LIMIT 1";
    let gtid = ask(gtid, std::slice::from_ref(&SHAPES.archive)).ok();
    let gtid = gtid.lines().nth(1).unwrap();
    for (condition, most) in [
        ("schema = 'employees' AND \"table\" = 'titles'", all / 2),
        (&*format!("gtid = '{gtid}'"), 1),
        (&*format!("gtid_in('{gtid}', gtid)"), 1),
        ("operation = 'delete'", all / 2),
        // Of the parts of a transaction that is larger than a block little is known.
        ("committed_at > TIMESTAMP '2100-01-01 00:00:00'", all / 4),
        ("logged_at < TIMESTAMP '2000-01-01 00:00:00'", all / 4),
        ("schema IN ('nowhere', 'there')", all / 4),
    ] {
        let (read, skipped, _) = metrics(condition);
        assert!(read <= most, "{condition}: {read} of {all} blocks");
        assert_eq!(read + skipped, all + none_skipped, "{condition}");
    }
    let of_key = |condition: &str| {
        let count = |input: &[PathBuf], explain: &str| {
            let counted = "SELECT count(\"offset\") FROM sbtest.sbtest1";
            ask(&format!("{explain} {counted} WHERE {condition}"), input).ok()
        };
        let archive = std::slice::from_ref(&SHAPES.archive);
        assert_eq!(count(archive, ""), count(&SHAPES.plain, ""), "{condition}");
        let metrics = count(archive, "EXPLAIN ANALYZE");
        let (_, read) = metrics.split_once("blocks_read=").unwrap();
        read.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u64>().unwrap()
    };
    let any = of_key("operation <> 'x'");
    assert!(of_key("after['@1'] = 7") < any);
    assert!(of_key("coalesce(after['@1'], before['@1']) = 7") < any);
    assert!(of_key("after['@1'] > 1000000") < any);
    // No key, no less: not the column that the archive knows. A few values of it are searched for in the blocks.
    assert_eq!(of_key("after['@2'] < 8"), any);
    assert!(of_key("after['@2'] = 7") < any);
    let (_, _, logs) = metrics("log = 'binlog.000002'");
    assert_eq!(logs, 8);
}

#[test]
fn a_transaction_of_many_batches_is_one_with_any_number_of_threads() {
    // Two transactions of 38 MB, compressed.
    let log = corpus::path("binlog.000002");
    let statement = "SELECT count(*) AS changes, count(gtid) AS with_gtid, count(DISTINCT position) FROM changes; \
                     SELECT sum(inserted + updated + deleted) AS changes, max(events) > 100 AS large FROM transactions; \
                     SELECT count(*) AS wrong FROM (SELECT gtid, count(*) AS rows FROM changes GROUP BY gtid) c \
                     JOIN transactions t USING (gtid) WHERE c.rows <> t.inserted + t.updated + t.deleted";
    let run = |jobs: &str| -> String {
        let mut command = sql(["--format", "csv", "--jobs", jobs, statement]);
        Ran::from(command.arg(&log).output().unwrap()).ok()
    };
    let out = run("1");
    let lines: Vec<_> = out.lines().collect();
    let counts: Vec<_> = lines[1].split(',').collect();
    assert_eq!(counts[0], counts[1], "{out}");
    assert_eq!(lines[3], format!("{},true", counts[0]), "{out}");
    assert_eq!(lines[5], "0", "{out}");
    assert_eq!(run("3"), out);
}

#[test]
fn a_limit_ends_the_reading() {
    let folder = tempfile::tempdir().unwrap();
    let damaged = folder.path().join("binlog.000010");
    std::fs::write(&damaged, "no log").unwrap();
    let inputs = [SHAPES.plain[1].clone(), damaged];
    let out = ask("SELECT log, gtid FROM changes LIMIT 3", &inputs).ok();
    assert_eq!(out.lines().count(), 4, "{out}");
    ask("SELECT log, gtid FROM changes", &inputs).failure();
}

#[test]
fn every_format_has_the_rows() {
    let log = &SHAPES.plain[1];
    let statement = "SELECT 1 AS one, 'a\"b,c' || chr(10) AS text, NULL AS nothing";
    let run = |format: &str| {
        let output = sql(["--format", format, statement]).arg(log).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    let text = |format| String::from_utf8(run(format)).unwrap();
    assert_eq!(text("csv"), "one,text,nothing\n1,\"a\"\"b,c\n\",\n");
    assert_eq!(text("tsv"), "one\ttext\tnothing\n1\ta\"b,c\\n\tNULL\n");
    assert_eq!(text("json"), "{\"one\":1,\"text\":\"a\\\"b,c\\n\"}\n");
    assert_eq!(
        text("table"),
        "one  text    nothing\n---  ------  -------\n  1  a\"b,c\u{b7}  NULL\n(1 row)\n"
    );
    assert!(run("arrow").starts_with(&[0xff, 0xff, 0xff, 0xff]));
    let parquet = run("parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    // A file has one statement's rows, and one that fails is no file.
    let two: Ran = sql(["--format", "parquet", "CREATE VIEW v AS SELECT 1; SELECT * FROM v; SELECT 2"])
        .arg(log)
        .output()
        .map(|output| Output { stdout: Vec::new(), ..output }.into())
        .unwrap();
    assert_eq!(two.failure(), "a Parquet file holds the rows of one statement");
}
