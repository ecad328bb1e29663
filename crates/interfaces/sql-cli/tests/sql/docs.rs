//! The pages are true: the ten questions run, and the reference has the program's own help. Options of `binlogz sql` that
//! `export` and `serve` have too, by the same words, stand only on its page; the helps of these name them.

use std::fs;

use binlogz_testkit::ordinary::{
    MISTAKE, ORDINARY_SHOP, ORDINARY_ZONE, after_the_backup, before_the_backup, ordinary_server,
};
use binlogz_testkit::{InstalledTool, Tool, require_tool};

use crate::common::{SHAPES, root, schema, sql};

/// Where the references have the help.
const HELPS: &[(&str, &[&str], &str)] = &[
    ("sql.md", &["--help"], "<!-- binlogz-sql --help -->\n```text\n"),
    #[cfg(feature = "serve")]
    ("sql-serve.md", &["serve", "--help"], "<!-- binlogz-sql serve --help -->\n```text\n"),
    ("export.md", &["export", "--help"], "<!-- binlogz-sql export --help -->\n```text\n"),
];

#[test]
fn the_ten_questions_are_answered_in_every_shape() {
    let page = page();
    let questions = questions(&page);
    // Bytes in the log, and sums that have the same place, differ between a log and its compressed twin.
    let same: Vec<_> = questions.iter().filter(|text| !text.contains("not_compressed")).copied().collect();
    assert_eq!(same.len(), 9);
    let out = SHAPES.same(&same.join("\n"));
    assert!(out.contains("schema,table,operation,rows\n"), "{out}");
    let output = sql(["-f", "-", "--format", "json", "--schema"])
        .arg(schema())
        .args(&SHAPES.plain)
        .stdin(question(&questions))
        .output();
    let output = output.unwrap();
    assert!(output.status.success() && !output.stdout.is_empty(), "{output:?}");
}

fn page() -> String {
    fs::read_to_string(root().join("docs/guides/sql.md")).unwrap()
}

fn questions(page: &str) -> Vec<&str> {
    let questions = page.split("\n```sql\n").skip(1).map(|rest| rest.split_once("\n```\n").unwrap().0);
    let questions: Vec<_> = questions.collect();
    assert_eq!(questions.len(), 10);
    questions
}

/// What the questions ask about beside the shop.
const SALARIES: &str = "CREATE DATABASE employees; USE employees;
    CREATE TABLE salaries (emp_no INT NOT NULL, salary DECIMAL(10,2) NOT NULL, from_date DATE NOT NULL, PRIMARY KEY (emp_no, from_date));
    INSERT INTO salaries VALUES (10001, 60117.50, '1986-06-26'), (10002, 65828, '1996-08-03');
    UPDATE salaries SET salary = salary + 10.25;";

/// Its logs have no names of columns, and the last is in use.
fn are_answered_on_an_ordinary_server(mysql: &'static InstalledTool) {
    let server = ordinary_server(mysql).start().unwrap();
    for statements in [ORDINARY_SHOP, &before_the_backup(), &after_the_backup(), SALARIES, MISTAKE] {
        server.sql(statements).unwrap();
    }
    let logs = server.binlogs().unwrap();
    let place = format!("repl@127.0.0.1:{}", server.port());
    let page = page();
    let mut command = sql(["-f", "-", "--format", "csv", "--schema", &place]);
    command.args(&logs).env("TZ", ORDINARY_ZONE).env("MYSQL_PWD", "repl");
    let answers = command.stdin(question(&questions(&page))).output().unwrap();
    let out = String::from_utf8(answers.stdout).unwrap();
    let error = String::from_utf8(answers.stderr).unwrap();
    assert!(answers.status.success() && error.is_empty(), "{out}\n{error}");
    for expected in [
        "\nshop,orders,update,68\n",          // 1
        ",60117.50,60127.75,",                // 5
        ",2,20.50\n",                         // 6
        "\nshop,orders,status,46\n",          // 7
        "\nshop,orders,\"{\"\"id\"\":42}\",", // 10
    ] {
        assert!(out.contains(expected), "{expected:?} is not in\n{out}");
    }

    let folder = tempfile::tempdir().unwrap();
    let export = "binlogz export --to lake --schema repl@db1 /var/lib/mysql/binlog.0000*\n";
    assert!(page.contains(export), "the page has another command");
    let mut command = sql(["export", "--to", "lake", "--schema", &place]);
    command.args(&logs).current_dir(folder.path()).env("MYSQL_PWD", "repl");
    let exported = command.output().unwrap();
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let files = crate::export::files(&folder.path().join("lake/shop/orders"));
    let written = fs::read(&files[0]).unwrap();
    assert!(written.windows(7).any(|bytes| bytes == b"channel"), "the file has no names");
}

#[test]
fn the_ten_questions_are_answered_on_an_ordinary_server() {
    are_answered_on_an_ordinary_server(require_tool!(Tool::Mysql));
}

#[test]
#[ignore = "MySQL 8.0.33 is 550 MB: scripts/soak/undo.sh runs it"]
fn the_ten_questions_are_answered_on_an_ordinary_8_0() {
    are_answered_on_an_ordinary_server(require_tool!(Tool::Mysql80));
}

/// All questions as standard input.
fn question(questions: &[&str]) -> fs::File {
    use std::io::{Seek, Write};
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(questions.join("\n").as_bytes()).unwrap();
    file.rewind().unwrap();
    file
}

#[test]
fn the_references_have_the_help() {
    for &(page, arguments, mark) in HELPS {
        let output = sql(arguments).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        let help =
            if ["sql-serve.md", "export.md"].contains(&page) { without_those_of_sql(&help) } else { help };
        let path = root().join("docs/reference").join(page);
        let there = fs::read_to_string(&path).unwrap();
        let (before, rest) = there.split_once(mark).unwrap();
        let (_, after) = rest.split_once("```\n").unwrap();
        let anew = format!("{before}{mark}{help}```\n{after}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&path, &anew).unwrap();
            continue;
        }
        assert!(anew == there, "{page}: UPDATE_DOCS=1 cargo test -p binlogz-sql docs");
    }
}

/// A help without the options that `binlogz sql` has too, and their names.
fn without_those_of_sql(help: &str) -> String {
    let output = sql(["--help"]).output().unwrap();
    let of_sql = String::from_utf8(output.stdout).unwrap();
    let of_sql: Vec<String> = paragraphs(&of_sql).iter().map(|option| words(option)).collect();
    let (mut kept, mut named) = (String::new(), Vec::new());
    for part in paragraphs(help) {
        let words = words(&part);
        match words.starts_with('-') && of_sql.contains(&words) {
            true => {
                named.extend(words.split([' ', '[']).find(|word| word.starts_with("--")).map(String::from))
            }
            false => kept.push_str(&part),
        }
    }
    assert!(named.len() > 3, "{named:?}");
    format!("{}\n\nAs in binlogz sql: {}\n", kept.trim_end(), named.join(" "))
}

/// The options of a help with their explanations, and what stands before them, each with the lines of its own.
fn paragraphs(help: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for line in help.lines() {
        if line.starts_with("  -") || line.starts_with("      -") {
            found.push(String::new());
        }
        if let Some(last) = found.last_mut() {
            last.push_str(line.trim_end());
            last.push('\n');
        }
    }
    found
}

fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
