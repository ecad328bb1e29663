//! Undo, redo and the life of rows over a log of MySQL 9.7.4 (`sample/`), compared with files beside this one. It needs no
//! server: those that apply such scripts to one are in the command line's tests.
//!
//! Run with `UPDATE_GOLDEN=1` to write the files anew. Of a script only statements and comments are compared; what guards
//! a DELETE is one statement of a hundred lines.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use binlogz_flow::Input;
use binlogz_row_changes::{Direction, Life, LifeFormat, Range, RowSelection, Script, ScriptForm};
use binlogz_schema::SchemaFile;
use binlogz_testkit::assert_golden;

const TABLES: [&str; 6] = ["account", "document", "numbers", "times", "strings", "parts"];
const LOG: &str = "binlog.000006";
/// The same work on a server that compresses transactions.
const COMPRESSED_LOG: &str = "compressed-binlog.000006";
const WHOLE: Range = Range { start: 0, stop: u64::MAX };

#[test]
fn undo_and_redo_of_a_table_are_what_they_were() {
    for table in TABLES {
        for direction in [Direction::Undo, Direction::Redo] {
            let name = if direction == Direction::Undo { "undo" } else { "redo" };
            assert_golden(&golden(&format!("{name}-{table}.sql")), &script(LOG, table, direction));
        }
    }
}

#[test]
fn a_compressed_log_gives_the_statements_of_the_plain_one() {
    for table in TABLES {
        for direction in [Direction::Undo, Direction::Redo] {
            let plain = script(LOG, table, direction);
            let compressed = script(COMPRESSED_LOG, table, direction);
            assert!(!statements(&plain).is_empty(), "{table}");
            assert_eq!(statements(&plain), statements(&compressed), "{table}");
        }
    }
}

#[test]
fn the_life_of_rows_is_what_it_was() {
    assert_golden(&golden("rows-account.txt"), &life("account", LifeFormat::Text));
    assert_golden(&golden("rows-account-first.txt"), &first_of_life("account", LifeFormat::Text, 2));
    assert_golden(&golden("rows-numbers.jsonl"), &life("numbers", LifeFormat::Json));
    assert_golden(&golden("rows-times.csv"), &life("times", LifeFormat::Csv));
}

#[test]
fn programs_get_all_changes_however_many_people_are_shown() {
    for format in [LifeFormat::Json, LifeFormat::Csv] {
        assert_eq!(first_of_life("account", format, 2), life("account", format));
    }
    // As many as there are.
    let all = life("account", LifeFormat::Text);
    let changes = all.matches("\n\n").count() as u64 + 1;
    assert!(changes > 5, "{all}");
    assert_eq!(first_of_life("account", LifeFormat::Text, changes), all);
}

fn script(log: &str, table: &str, direction: Direction) -> String {
    let (selection, schema) = (selection(table), schema());
    let mut script = Script::new(&selection, Some(&schema), (direction, ScriptForm::Sql), false);
    let (ran, _) = script.read(open(log), LOG, WHOLE, 2, &mut |_| ()).unwrap();
    assert!(ran.unread.is_empty(), "{:?}", ran.unread);
    let mut out = Vec::new();
    script.write(&mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let is_kept = |line: &&str| line.starts_with("-- ") || is_statement(line);
    text.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

fn is_statement(line: &str) -> bool {
    ["INSERT ", "UPDATE ", "DELETE "].iter().any(|verb| line.starts_with(verb))
}

fn statements(script: &str) -> Vec<&str> {
    script.lines().filter(|line| is_statement(line)).collect()
}

fn life(table: &str, format: LifeFormat) -> String {
    first_of_life(table, format, u64::MAX)
}

fn first_of_life(table: &str, format: LifeFormat, shown_max: u64) -> String {
    let (selection, schema) = (selection(table), schema());
    let mut out = Vec::new();
    let life = Life::new(&selection, Some(&schema), None, format, &mut out).unwrap();
    let mut life = life.with_shown_max(shown_max);
    let (ran, _) = life.read(open(LOG), LOG, WHOLE, 2, &mut |_| ()).unwrap();
    assert!(ran.unread.is_empty(), "{:?}", ran.unread);
    life.finish().unwrap();
    String::from_utf8(out).unwrap()
}

fn selection(table: &str) -> RowSelection {
    RowSelection { tables: vec![("mix".to_owned(), table.to_owned())], ..RowSelection::default() }
}

fn schema() -> SchemaFile {
    SchemaFile::parse(&fs::read_to_string(golden("schema.sql")).unwrap()).unwrap()
}

fn open(log: &str) -> Input {
    Input::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sample").join(log)).unwrap()
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}
