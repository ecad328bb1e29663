//! Answers on a terminal: no wider than it is, with all that they have without one; progress there alone.

use std::path::Path;
use std::process::Command;

use binlogz_testkit::tool::skip;

use crate::common::{SHAPES, ask, schema, sql, without_names_told};

/// All that the program shows on a terminal of this many columns; `None`: there is no `script`.
#[track_caller]
fn shown(columns: usize, arguments: &str) -> Option<String> {
    shown_without_schema(columns, &format!("{arguments} --schema '{}'", schema().display()))
}

/// The same without a schema: with one, a log that is given many times is warned of, with exit code 1.
fn shown_without_schema(columns: usize, arguments: &str) -> Option<String> {
    if !Path::new("/usr/bin/script").exists() {
        skip("script is not here, which makes a terminal");
        return None;
    }
    let program = env!("CARGO_BIN_EXE_binlogz-sql");
    let logs: Vec<_> = SHAPES.plain.iter().map(|log| format!("'{}'", log.display())).collect();
    let line = format!("stty cols {columns} rows 50; exec {program} {arguments} {}", logs.join(" "));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    script.env_remove("COLUMNS").env("SHELL", "/bin/sh").env("TERM", "xterm").env("TZ", "UTC");
    let output = script.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments}: {text}");
    Some(text)
}

/// The lines of a text from a terminal, each drawing for itself, without codes, and without the one that says how names of columns are got.
fn lines(text: &str) -> Vec<String> {
    let without_codes = |line: &str| {
        let mut parts = line.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        let end = |part: &str| part.find(|c: char| c.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        parts.fold(first, |text, part| text + part.get(end(part)..).unwrap_or_default())
    };
    let lines = text.split(['\n', '\r']).map(without_codes);
    lines.filter(|line| !line.is_empty() && without_names_told(line) == *line).collect()
}

/// Wider than any terminal, with long values, and one that fits.
const WIDE: &str = "SELECT * FROM transactions ORDER BY log, position LIMIT 3";
const LONG: &str = "SELECT repeat('long ', 60) AS value, 1 AS a_column_with_a_name_that_is_longer_than_most_of_them, '' AS none";
const SHORT: &str = "SELECT operation, count(*) AS rows FROM changes GROUP BY 1 ORDER BY 1";

#[test]
fn no_answer_is_wider_than_the_terminal() {
    for columns in [80, 120] {
        for statement in [WIDE, LONG, SHORT, "SHOW TABLES", "SELECT 1 AS one WHERE false"] {
            let Some(text) = shown(columns, &format!("--quiet \"{statement}\"")) else { return };
            let lines = lines(&text);
            let wider: Vec<_> = lines.iter().filter(|line| line.chars().count() > columns).collect();
            assert!(wider.is_empty(), "{columns} columns, {statement}: {wider:#?}");
            assert!(lines.iter().any(|line| line.ends_with("row)") || line.ends_with("rows)")), "{text}");
        }
    }
}

#[test]
fn a_wide_answer_has_a_line_for_each_column_and_leaves_nothing_out() {
    let Some(text) = shown(80, &format!("--quiet \"{WIDE}\"")) else { return };
    let told = lines(&text).join("\n");
    assert!(
        told.starts_with("row 1\n  log ") && told.contains("\nrow 3\n") && told.ends_with("\n(3 rows)"),
        "{told}"
    );
    let whole: String = told.split_whitespace().collect();
    let csv = ask(WIDE, &SHAPES.plain).ok();
    for cell in csv.lines().flat_map(|line| line.split(',')) {
        let cell: String = cell.trim_matches('"').split_whitespace().collect();
        assert!(whole.contains(&cell), "{cell:?} is not in\n{told}");
    }
    // One that fits is a table.
    let Some(text) = shown(80, &format!("--quiet \"{SHORT}\"")) else { return };
    assert!(lines(&text)[0].starts_with("operation"), "{text}");
    // Without a terminal lines are as long as they have to be.
    let mut piped = sql([WIDE]);
    let piped = String::from_utf8(piped.args(&SHAPES.plain).output().unwrap().stdout).unwrap();
    assert!(piped.lines().count() == 6 && piped.lines().take(5).all(|line| line.len() > 120), "{piped}");
}

#[test]
fn a_sign_of_life_is_on_a_terminal_alone() {
    let folder = tempfile::tempdir().unwrap();
    let to = |name: &str| format!("export --to {}", folder.path().join(name).display());
    // Long enough for a first drawing.
    let slow = "\"SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 10000) b WHERE a.value + b.value = 1\"";
    for (arguments, sign) in [(slow.to_owned(), "asking the logs"), (to("one"), "exporting")] {
        let Some(text) = shown(80, &arguments) else { return };
        assert!(text.contains(sign), "{arguments}: {text}");
        assert!(lines(&text).iter().all(|line| line.chars().count() <= 80), "{text}");
        let quiet = shown(80, &format!("{} --quiet", arguments.replace("one", "two"))).unwrap();
        assert!(!quiet.contains(sign), "{arguments} --quiet: {quiet}");
    }
    for (name, options, size) in [("three", &["-v"][..], " KiB\n"), ("four", &["--bytes", "-v"], " bytes\n")]
    {
        let mut piped = sql(["export", "--to"]);
        let ran = piped.arg(folder.path().join(name)).args(options).args(&SHAPES.plain).output().unwrap();
        let (out, told) = (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
        assert!(out.starts_with("run 1: ") && out.ends_with(size), "{out}");
        let told = without_names_told(&told);
        assert!(told.starts_with("binlogz-sql: exporting: ") && told.ends_with(" s\n"), "{told:?}");
        assert!(told.contains("iB, ") && told.contains("iB/s, "), "{told:?}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn progress_tells_how_far_it_is_and_how_much_longer_it_takes() {
    let folder = tempfile::tempdir().unwrap();
    // Often enough for several drawings.
    let logs = format!("'{}' ", SHAPES.plain.first().unwrap().display()).repeat(400);
    let counted = format!("\"SELECT count(*) FROM changes WHERE before LIKE '%a%b%c%'\" {logs}");
    let exported = format!("export --to {} {logs}", folder.path().display());
    for (arguments, name) in [(counted, "asking the logs "), (exported, "exporting ")] {
        let Some(text) = shown_without_schema(100, &arguments) else { return };
        let is_bar = |line: &&String| {
            line.starts_with(name)
                && line.contains("iB/")
                && line.contains("iB/s, ")
                && line.ends_with(" left")
        };
        let lines = lines(&text);
        assert!(lines.iter().filter(is_bar).count() > 1, "{arguments}: {text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    }
}

#[test]
fn mistakes_are_told_with_the_way_on() {
    assert_eq!(
        ask("SELECT * FROM transaction", &SHAPES.plain).failure(),
        "there is no table binlog.transaction, expected transactions, changes, events, or one that SHOW TABLES lists"
    );
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    std::fs::write(&text, "no log").unwrap();
    let mut serve = sql(["serve", "--listen", "127.0.0.1:0"]);
    let served = serve.arg(&text).output().unwrap();
    let told = String::from_utf8(served.stderr).unwrap();
    let said =
        format!("{}: not a binary log: it begins with 6e 6f 20 6c, expected fe 62 69 6e\n", text.display());
    assert_eq!((served.status.code(), told), (Some(2), format!("binlogz-sql: {said}")));
}
