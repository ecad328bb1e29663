//! Answers to SQL over logs of MySQL 9.7.4 (`sample/`), compared with files beside this one. It needs no server: the same
//! questions beside a server's own answers are in `binlogz-sql`'s tests.
//!
//! `NAME.sql` is a statement, `NAME.txt` its rows as JSON lines. Run with `UPDATE_GOLDEN=1` to write the answers anew.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::{env, fs};

use binlogz_query::print::{RowPrinter, RowsFormat};
use binlogz_query::statements::statements;
use binlogz_query::{Logs, QueryEngine, QueryOptions};
use binlogz_testkit::assert_golden;

#[test]
fn answers_are_what_they_were() {
    let engine = engine();
    let mut questions: Vec<PathBuf> =
        fs::read_dir(root().join("tests/golden")).unwrap().map(|entry| entry.unwrap().path()).collect();
    questions.retain(|path| path.extension().is_some_and(|extension| extension == "sql"));
    questions.sort();
    assert!(questions.len() > 5, "{questions:?}");
    for question in questions {
        let sql = fs::read_to_string(&question).unwrap();
        assert_golden(&question.with_extension("txt"), &answer(&engine, &sql).expect(&sql));
    }
    engine.close();
}

#[test]
fn what_does_more_than_read_is_refused() {
    let engine = engine();
    for sql in
        ["COPY binlog.events TO 'x.csv'", "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'"]
    {
        assert!(answer(&engine, sql).is_err(), "{sql}");
    }
    engine.close();
}

fn engine() -> QueryEngine {
    let logs = ["binlog.000006", "binlog.000009"].map(|log| root().join("sample").join(log));
    let logs =
        Logs::new(logs.to_vec(), None, |line| assert!(line.ends_with(": @1 is the first column"), "{line}"))
            .unwrap();
    let options = QueryOptions { memory: 1 << 30, jobs: 2, temporary: env::temp_dir() };
    QueryEngine::new(logs, &options).unwrap()
}

fn answer(engine: &QueryEngine, sql: &str) -> binlogz_query::Result<String> {
    let mut out = Vec::new();
    let mut printer = RowPrinter::new(RowsFormat::Json, &mut out);
    for statement in statements(sql)? {
        engine.run(statement, &mut printer)?;
    }
    printer.finish()?;
    Ok(String::from_utf8(out).expect("JSON is UTF-8"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
