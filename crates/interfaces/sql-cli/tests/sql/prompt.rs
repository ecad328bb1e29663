//! The prompt at a terminal; statements from a pipe; parameters.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use binlogz_testkit::tool::skip;
use serde_json::{Value, json};

use crate::common::{Ran, SHAPES, ask, root, schema, sql};

/// A pager that marks its lines; its user leaves it after 50 of them.
const PAGER: &str = "sed -e s/^/paged:/ -e 50q";

/// A session at a terminal; `None`: there is no Python to type.
#[track_caller]
fn typed(state: &Path, options: &[&str], steps: &Value) -> Option<String> {
    let schema = schema();
    let with_schema: Vec<_> = options.iter().copied().chain(["--schema", schema.to_str().unwrap()]).collect();
    typed_over(state, &with_schema, steps, &SHAPES.plain)
}

/// A prompt over these logs.
#[track_caller]
fn typed_over(state: &Path, options: &[&str], steps: &Value, logs: &[PathBuf]) -> Option<String> {
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("there is no python3");
        return None;
    }
    let script = root().join("crates/interfaces/sql-cli/tests/sql/prompt.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(steps.to_string()).arg(env!("CARGO_BIN_EXE_binlogz-sql")).args(options);
    command.args(logs);
    command.env("XDG_STATE_HOME", state).env("TMPDIR", state).env("BINLOGZ_PAGER", PAGER);
    let output = command.output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{out}\n{}", String::from_utf8_lossy(&output.stderr));
    Some(out)
}

#[test]
fn a_prompt_runs_statements_until_it_ends() {
    let state = tempfile::tempdir().unwrap();
    let prompt = json!({"wait": "binlogz> "});
    let steps = json!([
        prompt, "SELECT 40 + 2\n", "AS answer;\n", {"wait": "(1 row)"}, prompt, "SELEC 1;\n", {"wait": "binlogz-sql: "}, prompt,
        "\\timing\n", prompt, "\\format csv\n", prompt, "SELECT ';' AS \"a;b\";\n", {"wait": "Time: "}, prompt, "\\d\n",
        {"wait": "employees,salaries"}, prompt, "\\d employees.salaries\n", {"wait": "after.salary,Int32"}, prompt,
        // Completion: the one keyword, table and field that it can be.
        "SELECT count(*) FROM transac\t;\n", {"wait": "count(*)"}, prompt,
        "SELECT max(after.sal\t) AS most FROM employees.salaries;\n", {"wait": "max"}, prompt,
        // Ctrl-C drops what is written; on another line it stops what runs.
        "SELECT 'never", "\u{3}", prompt,
        "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b WHERE a.value + b.value = 1;\n",
        {"wait": "asking the logs"}, "\u{3}", {"wait": "stopped"}, prompt, "SELECT 'still here';\n", {"wait": "still here"}, prompt,
        "\\nonsense\n", {"wait": "there is no command"}, prompt, "\u{4}"
    ]);
    let Some(out) = typed(state.path(), &[], &steps) else { return };
    assert!(out.contains("Tables: transactions, changes, events, "), "{out}");
    assert!(out.contains("answer\n------\n    42\n(1 row)"), "{out}");
    assert!(out.contains("a;b\n;\n"), "{out}");
    assert!(out.contains("FROM transactions;"), "{out}");
    assert!(out.contains("max(after.salary) AS most"), "{out}");
    assert!(out.contains("binlogz-sql: the query was stopped"), "{out}");
    assert!(out.ends_with("exit 0\n"), "{out}");
    // Earlier statements are there again, for their owner alone; temporary files are gone.
    let history = state.path().join("binlogz/sql_history");
    assert_eq!(fs::metadata(&history).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = fs::read_to_string(&history).unwrap();
    assert!(kept.contains("still here") && !kept.contains("never"), "{kept}");
    assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1);
    let again = json!([prompt, "\u{1b}[A", {"wait": "nonsense"}, "\u{3}", prompt, "quit\n"]);
    assert!(typed(state.path(), &[], &again).unwrap().ends_with("exit 0\n"));
}

/// Joins that give many rows and none, with a condition and without; what makes many rows of one; rows without an end.
const ENDLESS: [&str; 6] = [
    "SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 10000000) b WHERE a.value + b.value = 1",
    "SELECT sum(a.value + b.value) FROM generate_series(1, 1000000) a, generate_series(1, 10000000) b",
    "SELECT count(*) FROM (SELECT value % 2 AS k FROM generate_series(1, 1000000)) a WHERE k IN (SELECT value % 2 FROM generate_series(1, 1000000))",
    "SELECT count(*) FROM (SELECT value % 2 AS k, value FROM generate_series(1, 1000000)) a JOIN (SELECT value % 2 AS k, value FROM \
     generate_series(1, 1000000)) b ON a.k = b.k AND a.value + b.value < 0",
    "SELECT count(*) FROM (SELECT unnest(range(100)) AS n FROM generate_series(1, 1000000000)) WHERE n < 0",
    "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT 1 - n FROM t) SELECT count(*) FROM t",
];

#[test]
fn what_was_stopped_at_the_prompt_uses_no_processor() {
    let state = tempfile::tempdir().unwrap();
    for jobs in ["1", "2"] {
        let mut steps = vec![json!({"wait": "binlogz> "})];
        for statement in ENDLESS {
            let stopped = [
                json!({"busy": 0.5}),
                json!("\u{3}"),
                json!({"wait": "the query was stopped"}),
                json!({"quiet": 0.25}),
            ];
            steps.push(json!(format!("{statement};\n")));
            steps.extend(stopped);
            steps.push(json!({"wait": "binlogz> "}));
        }
        steps.push(json!("quit\n"));
        let Some(out) = typed(state.path(), &["--quiet", "--jobs", jobs], &json!(steps)) else { return };
        assert!(out.ends_with("exit 0\n"), "{out}");
    }
}

#[test]
fn a_prompt_does_without_a_history() {
    let steps = json!([
        {"wait": "binlogz> "}, "SELECT $n + 1 AS next;\n", {"wait": "42"}, {"wait": "binlogz> "},
        "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 10000) b WHERE a.value + b.value = $n;\n",
        {"wait": "(1 row)"}, {"wait": "binlogz> "}, "exit;\n"
    ]);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("binlogz"), "a file where the folder would be").unwrap();
    let Some(out) = typed(folder.path(), &["--param", "n=41", "--quiet"], &steps) else { return };
    assert!(out.ends_with("exit 0\n") && !out.contains("asking the logs"), "{out}");
}

#[test]
fn a_prompt_has_the_manners_of_other_prompts() {
    let state = tempfile::tempdir().unwrap();
    let prompt = json!({"wait": "binlogz> "});
    let caret = |column: usize| json!({ "wait": format!("\n{}^\n", " ".repeat(column)) });
    let steps = json!([
        {"size": [24, 80]}, prompt, ".timer on\n", {"wait": "Timing is on."}, prompt, ".mode csv\n", {"wait": "Format: csv"}, prompt,
        // As in the mysql client, for this statement alone.
        "SELECT 1 AS a; SELECT 2 AS b, 'c' AS long\\G\n", {"wait": "\na\n1\n"}, {"wait": "\nrow 1\n  b     2\n  long  c\n(1 row)\n"},
        {"wait": "Time: "}, prompt, ".timer off\n", {"wait": "Timing is off."}, prompt,
        ".mode line\n", {"wait": "Format: line"}, prompt, "SELECT 7 AS seven;\n", {"wait": "\nrow 1\n  seven  7\n"}, prompt,
        ".mode tabs\n", {"wait": "Format: tsv"}, prompt, ".mode box\n", {"wait": "expected table, line, csv, tsv or json"}, prompt,
        ".mode table\n", prompt, ".tables\n", {"wait": "salaries"}, prompt,
        // What is wrong, and where.
        "SELECT 1\nFORM x y;\n", {"wait": "binlogz-sql: "}, {"wait": "\nLINE 2: FORM x y;"}, caret(13), prompt,
        "SELECT count(*), nothing FROM transactions;\n", {"wait": "\nLINE 1: "}, caret(25), prompt,
        "SELECT 1 FROM nowhere;\n", {"wait": "there is no table"}, {"wait": "\nLINE 1: "}, caret(22), prompt,
        // A statement of several lines comes back as a whole.
        "SELECT 40 +\n2 AS answer;\n", {"wait": "    42\n(1 row)"}, prompt, "\u{1b}[A\n", {"wait": "    42\n(1 row)"}, prompt,
        // Longer than the screen; longer than its user cares for; not.
        "SELECT value FROM generate_series(1, 30);\n", {"wait": "\npaged:   30\npaged:(30 rows)\n"}, prompt,
        "SELECT value FROM generate_series(1, 3000000);\n", {"wait": "\npaged:   48\n"}, prompt,
        "SELECT value FROM generate_series(1, 9);\n", {"wait": "\n    9\n(9 rows)\n"}, prompt,
        ".pager off\n", {"wait": "The pager is off."}, prompt,
        "SELECT value FROM generate_series(1, 31);\n", {"wait": "\n   31\n(31 rows)\n"}, prompt, ".quit\n"
    ]);
    // Progress of a busy machine would stand between lines.
    let Some(out) = typed(state.path(), &["--quiet"], &steps) else { return };
    assert!(out.ends_with("exit 0\n") && !out.contains("the reader of the output"), "{out}");
    // The next session has it too, as one statement.
    let up = "\u{1b}[A".repeat(7);
    let again =
        json!([prompt, up, {"wait": "AS answer;"}, "\n", {"wait": "    42\n(1 row)"}, prompt, "quit\n"]);
    assert!(typed(state.path(), &["--quiet"], &again).unwrap().ends_with("exit 0\n"));
}

#[test]
fn a_pipe_has_the_statements() {
    let ask = |text: &str| -> Ran {
        let mut command = sql(["--format", "csv"]);
        let command =
            command.args(&SHAPES.plain).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    };
    assert_eq!(ask("SELECT 1 AS a;\nSELECT 2 AS b").ok(), "a\n1\nb\n2\n");
    assert_eq!(ask("").failure(), "there is no statement");
    let both = Ran::from(sql(["-"]).output().unwrap()).failure();
    assert!(both.starts_with("standard input: is a log"), "{both}");
    let turned = Ran::from(sql(["binlog.000001", "SELECT 1"]).output().unwrap()).failure();
    assert!(turned.starts_with("binlog.000001: is an input, expected the statement first"), "{turned}");
}

#[test]
fn parameters_are_values_and_never_text() {
    let run = |options: &[&str], statement: &str| -> Ran {
        let mut command = sql(["--format", "csv", "--schema"]);
        command.arg(schema()).args(options).arg(statement).args(&SHAPES.plain).output().unwrap().into()
    };
    let literal = run(
        &[],
        "SELECT count(*) AS n FROM employees.salaries WHERE after.salary > 60000 AND operation = 'insert'",
    );
    let literal = literal.ok();
    assert_ne!(literal, "n\n0\n");
    let named =
        "SELECT count(*) AS n FROM employees.salaries WHERE after.salary > $least AND operation = $what";
    assert_eq!(run(&["--param", "least=60000", "--param", "what=insert"], named).ok(), literal);
    let numbered = named.replace("$least", "$1").replace("$what", "$2");
    assert_eq!(run(&["--param", "1=60000", "--param", "2=insert"], &numbered).ok(), literal);
    let marks = named.replace("$least", "?").replace("$what", "?");
    assert_eq!(run(&["--param", "$1=60000", "--param", "2=insert"], &marks).ok(), literal);
    // Moments and limits, and one in a subquery and twice.
    let since = "SELECT count(*) > 0 AS n FROM transactions WHERE committed_at >= $since";
    assert_eq!(run(&["--param", "since=2001-01-01 00:00:00"], since).ok(), "n\ntrue\n");
    assert_eq!(run(&["--param", "n=2"], "SELECT 1 AS a FROM changes LIMIT $n").ok(), "a\n1\n1\n");
    let nested = "SELECT $t AS t, (SELECT count(*) FROM changes WHERE \"table\" = $t) > 0 AS n";
    assert_eq!(run(&["--param", "t=salaries"], nested).ok(), "t,n\nsalaries,true\n");
    // It stays one text.
    let hostile = "x' OR '1' = '1";
    let found =
        run(&["--param", &format!("t={hostile}")], "SELECT count(*) AS n FROM changes WHERE \"table\" = $t");
    assert_eq!(found.ok(), "n\n0\n");
    assert_eq!(run(&["--param", "t='; DROP"], "SELECT $t AS t, '$t' AS text").ok(), "t,text\n'; DROP,$t\n");
    for (options, statement, expected) in [
        (&[] as &[&str], "SELECT $a", "parameter $a has no value, expected --param a=VALUE"),
        (&["--param", "a=1", "--param", "b=2"], "SELECT $a", "--param b: no statement has $b"),
        (&["--param", "a=1", "--param", "a=2"], "SELECT $a", "--param a is there twice"),
        (
            &["--param", "a=x"],
            "SELECT 1 FROM employees.salaries WHERE after.salary = $a",
            "parameter $a is 'x', expected a value of type Int32",
        ),
        (&["--param", "1=1"], "SELECT ?, ?", "parameter $2 has no value, expected --param 2=VALUE"),
    ] {
        assert_eq!(run(options, statement).failure(), expected, "{statement}");
    }
    let usage = Command::new(env!("CARGO_BIN_EXE_binlogz-sql"))
        .args(["--param", "a", "SELECT 1", "x"])
        .output()
        .unwrap();
    assert_eq!(usage.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&usage.stderr).contains("expected NAME=VALUE"));
}

#[test]
fn statements_only_read() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("out.csv");
    let target = target.display();
    let secret = folder.path().join("secret.csv");
    fs::write(&secret, "a\n1\n").unwrap();
    for (statement, what) in [
        (format!("COPY (SELECT 1 AS a) TO '{target}'"), "COPY"),
        (format!("EXPLAIN ANALYZE COPY changes TO '{target}' STORED AS CSV"), "COPY"),
        (format!("PREPARE p AS COPY changes TO '{target}'"), ""),
        (
            format!("CREATE EXTERNAL TABLE t (a INT) STORED AS CSV LOCATION '{}'", secret.display()),
            "CreateExternalTable",
        ),
        ("CREATE TABLE t AS SELECT 1 AS a".to_owned(), "CreateMemoryTable"),
        ("CREATE SCHEMA s".to_owned(), "CreateCatalogSchema"),
        ("DROP TABLE changes".to_owned(), "DropTable"),
        ("INSERT INTO changes SELECT * FROM changes".to_owned(), "I"),
        ("DELETE FROM changes".to_owned(), "D"),
        ("UPDATE changes SET log = ''".to_owned(), "U"),
        (format!("SELECT * FROM '{}'", secret.display()), ""),
    ] {
        let line = ask(&statement, &SHAPES.plain[..1]).failure();
        assert!(
            what.is_empty() || line.starts_with(what) && line.contains("only read"),
            "{statement}: {line}"
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let own = "CREATE VIEW v AS SELECT 1 AS a; SELECT * FROM v; SET datafusion.execution.batch_size = 100; SELECT 2 AS b";
    assert_eq!(ask(own, &SHAPES.plain[..1]).ok(), "a\n1\nb\n2\n");
}
