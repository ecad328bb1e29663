//! MariaDB's REPLACE, INSERT … ON DUPLICATE KEY UPDATE and LOAD DATA … REPLACE under binlog_row_image MINIMAL and NOBLOB: `undo`, `redo` and
//! `rows` are exact, or name what isn't known. Cases are generated, and compared with the server.
//!
//! `REPLACE_SEEDS` says how many seeds, `SEED=N` begins at N, `REPLACE_SERVER=11.4` takes that version.

use std::collections::BTreeMap;
use std::fs::File;

use binlogz_testkit::random::Random;
use binlogz_testkit::{MariadbSandbox, Result, SandboxServer, Tool, require_tool, setting};
use serde_json::Value;

use crate::common::{Folder, Ran};

const SEEDS: u64 = 10;
/// Columns, their keys among them, and a table that a trigger fills.
const TABLES: &str = "CREATE DATABASE w; USE w;
     CREATE TABLE t (id INT PRIMARY KEY, a INT UNIQUE, b INT DEFAULT 7, c VARCHAR(20) DEFAULT 'it''s', n INT NOT NULL, d INT, x BLOB, e INT DEFAULT (1 + 1));
     CREATE TABLE u (id INT PRIMARY KEY, b INT DEFAULT 5, c VARCHAR(9) DEFAULT 'x', g INT AS (b + 1) STORED);
     CREATE TABLE k (v INT DEFAULT 3, k INT NOT NULL UNIQUE, w INT);
     CREATE TABLE l (id INT PRIMARY KEY, b INT DEFAULT 3, c INT);
     CREATE TABLE s (id INT PRIMARY KEY);
     CREATE TRIGGER fill AFTER INSERT ON s FOR EACH ROW REPLACE INTO l (id, c) VALUES (NEW.id % 3, NEW.id);
     CREATE PROCEDURE put(i INT) REPLACE INTO u (id, b) VALUES (i, i);
     INSERT INTO t (id, a, b, c, n, d, x) VALUES (1, 11, 100, 'one', 5, 9, 'xx'), (2, 12, 200, 'two', 5, 9, NULL), (3, 13, 300, 'three', 5, 9, 'y');
     INSERT INTO u (id, b, c) VALUES (1, 8, 'u1'), (2, 9, 'u2'); INSERT INTO k VALUES (8, 1, 8), (9, 2, 9); INSERT INTO l VALUES (0, 9, 9), (1, 9, 9);";
/// What is compared: all that the statements give values.
const STATE: [(&str, &str); 4] =
    [("t", "id, a, b, c, n, d, HEX(x), e"), ("u", "id, b, c"), ("k", "v, k, w"), ("l", "id, b, c")];

fn state(server: &SandboxServer) -> Result<Vec<String>> {
    STATE
        .iter()
        .map(|(table, columns)| server.sql(&format!("SELECT {columns} FROM w.{table} ORDER BY 1, 2, 3")))
        .collect()
}

/// Random statements; what they load is in a file.
fn statements(random: &mut Random, file: &str) -> String {
    let mut number = |most: usize| random.below(most) + 1;
    let (id, a, value) = (number(4), 10 + number(4), number(50));
    match number(12) {
        1 => format!("REPLACE INTO t (id, a, n) VALUES ({id}, {a}, {value})"),
        2 => format!("REPLACE t SET id = {id}, n = {value}, b = DEFAULT"),
        3 => format!("REPLACE INTO t (id, a, n, c) SELECT id, a, n + 1, c FROM t WHERE id = {id}"),
        4 => format!(
            "INSERT INTO t (id, a, n) VALUES ({id}, {a}, {value}) ON DUPLICATE KEY UPDATE d = {value}, b = DEFAULT(b)"
        ),
        5 => format!(
            "INSERT INTO u (id, b) VALUES ({id}, {value}) ON DUPLICATE KEY UPDATE id = id + 10, c = 'o\\'dd'"
        ),
        6 => format!("REPLACE INTO u (id) VALUES ({id}), ({})", id + 1),
        7 => format!("REPLACE INTO k (k, w) VALUES ({id}, {value})"),
        8 => format!("UPDATE u SET id = id, c = 'same' WHERE id = {id}"),
        9 => format!("CALL put({id})"),
        10 => format!("LOAD DATA INFILE '{file}' REPLACE INTO TABLE t FIELDS TERMINATED BY ',' (id, a, n)"),
        11 => format!("INSERT IGNORE INTO s VALUES ({})", 3 * value + id),
        _ => format!("UPDATE t SET n = n + 1, x = 'zz' WHERE id = {id}; DELETE FROM k WHERE k = {id}"),
    }
}

/// Applies a script as a person would.
fn apply(server: &SandboxServer, folder: &Folder, script: &Ran) -> Result<()> {
    let path = folder.put("script.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}\n{}", String::from_utf8_lossy(&ran.stderr), script.text());
    Ok(())
}

/// The rows that are there at the end, by what `rows` says of a table with this key: the columns that have values.
fn last_rows(ran: &Ran, key: &str) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    for line in ran.text().lines() {
        let change: Value = serde_json::from_str(line).unwrap();
        if let Some(before) = change["before"].as_object() {
            rows.remove(&before[key].to_string());
        }
        if let Some(after) = change["after"].as_object() {
            rows.insert(after[key].to_string(), change["after"].clone());
        }
    }
    rows
}

/// `rows` tells each row as it is at the end.
fn rows_are_as_the_server_has_them(server: &SandboxServer, ran: &Ran) -> Result<()> {
    let rows = last_rows(ran, "id");
    let there = server.sql("SELECT id, a, b, c, n, d FROM w.t ORDER BY id")?;
    assert_eq!(rows.len(), there.lines().count(), "{there}{}", ran.text());
    for line in there.lines() {
        let cells: Vec<_> = line.split('\t').collect();
        let row = &rows[cells[0]];
        for (name, cell) in ["id", "a", "b", "c", "n", "d"].iter().zip(&cells) {
            let shown = match &row[name] {
                Value::Null => "NULL".to_owned(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(&shown, cell, "{name} of {line}: {row}");
        }
    }
    Ok(())
}

/// How a seed ended.
enum SeedEnd {
    Equal,
    Named,
}

fn there_and_back(server: &SandboxServer, seed: u64) -> Result<SeedEnd> {
    let mut random = Random::new(seed);
    let folder = Folder::new();
    let file = folder.put("rows.csv", "1,14,70\n3,11,71\n");
    let image = ["MINIMAL", "MINIMAL", "NOBLOB"][random.below(3)];
    let annotates = random.below(5) > 0;
    server.sql("DROP DATABASE IF EXISTS w; FLUSH BINARY LOGS")?;
    server.sql(&format!("SET SESSION binlog_row_image = {image}; {TABLES}"))?;
    let begin = server.sql("SHOW MASTER STATUS")?;
    let begin = begin.split('\t').nth(1).unwrap().to_owned();
    let before = state(server)?;
    let mut text = format!(
        "USE w; SET SESSION binlog_row_image = {image}, SESSION binlog_annotate_row_events = {};",
        u8::from(annotates)
    );
    for _ in 0..6 {
        text += &format!("{};", statements(&mut random, file.to_str().unwrap()));
    }
    println!("{text}");
    // A key that is there already is an error of the statement, and changes nothing.
    let mut client = server.client();
    client.args(["--force", "-e", &text]).output().unwrap();
    let after = state(server)?;
    let log = server.flush_binary_logs()?;
    let log = log.to_str().unwrap();
    let place = format!("127.0.0.1:{}", server.port());
    let run = |words: &[&str]| {
        folder.run([words, &["--no-defaults", "--user=root", "--schema", &place, log]].concat())
    };
    let rows = run(&["rows", "w.t", "--all", "--format=json"]);
    if rows.code == Some(0) {
        rows_are_as_the_server_has_them(server, &rows)?;
    }
    let [undo, redo] = ["undo", "redo"].map(|verb| run(&[verb, "--start-position", &begin]));
    let is_known = undo.code == Some(0) && redo.code == Some(0);
    if !is_known {
        for ran in [&undo, &redo] {
            let said = ran.text().lines().filter(|line| line.contains("MariaDB") || line.contains("lacks"));
            println!("{}{}", ran.stderr, said.collect::<Vec<_>>().join("\n"));
        }
        for ran in [&undo, &redo] {
            assert!(
                ran.code == Some(0) || ran.text().contains("-- ") && !ran.stderr.is_empty(),
                "{}",
                ran.text()
            );
        }
        // A statement that is there fits: taken back as far as it goes, nothing else fails.
        return Ok(SeedEnd::Named);
    }
    // It would run again, so the script ends before that.
    server.sql("DROP TRIGGER w.fill")?;
    apply(server, &folder, &undo)?;
    assert_eq!(state(server)?, before, "undo of\n{text}\n{}", undo.text());
    apply(server, &folder, &redo)?;
    assert_eq!(state(server)?, after, "redo of\n{text}\n{}", redo.text());
    Ok(SeedEnd::Equal)
}

#[test]
fn what_a_replace_left_to_defaults_comes_back_or_is_named() -> Result<()> {
    let tool = match std::env::var("REPLACE_SERVER").as_deref() {
        Ok("11.4") => Tool::Mariadb114,
        _ => Tool::Mariadb,
    };
    require_tool!(tool);
    let options = [("binlog-format", "ROW"), ("log-bin", "binlog"), ("binlog-row-metadata", "FULL")];
    let server = MariadbSandbox::start_version(tool, &options)?;
    let (first, count) = (setting("SEED", 1), setting("REPLACE_SEEDS", SEEDS));
    let (mut equal, mut named) = (0, 0);
    for seed in first..first + count {
        println!("SEED={seed}");
        match there_and_back(&server, seed)? {
            SeedEnd::Equal => equal += 1,
            SeedEnd::Named => named += 1,
        }
    }
    println!("{equal} equal, {named} named");
    // Only what a trigger did, and sessions without annotations.
    assert!(2 * equal >= named, "{equal} equal, {named} named");
    Ok(())
}
