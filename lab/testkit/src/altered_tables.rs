//! The same changes logged twice: with default metadata, where rows have no names, and with all metadata. Between them the
//! tables are altered, moved, swapped and made anew, at random.
//!
//! A command that tells names of the first logs must tell those of the second, or say that it doesn't know.

use std::path::PathBuf;

use crate::Result;
use crate::random::Random;
use crate::server::MysqlSandbox;

const TABLES: [&str; 3] = ["t", "u", "T2"];
const COLUMNS: [&str; 7] = ["a", "b", "`c c`", "d", "E", "f", "`after`"];
const TYPES: [&str; 11] = [
    "INT",
    "INT",
    "INT",
    "BIGINT UNSIGNED",
    "VARCHAR(20)",
    "VARCHAR(20) CHARACTER SET latin1",
    "ENUM('x','after y','é,)')",
    "ENUM(\"y\",'x ')",
    "SET('p','q')",
    "DECIMAL(10,2)",
    "VARBINARY(9)",
];
/// Statements between two rotations.
const LOG_STATEMENTS: usize = 25;
const LOGS: usize = 3;

/// Logs of the same changes.
#[derive(Debug)]
pub struct AlteredLogs {
    /// With `binlog_row_metadata=MINIMAL`. The tables were made before the first of them.
    pub minimal: Vec<PathBuf>,
    /// The log before them, in which the tables are made.
    pub creation: PathBuf,
    /// With `binlog_row_metadata=FULL`, also without the log before.
    pub full: Vec<PathBuf>,
}

/// Lets a server write them: in the database `shop`, which then is as at the end of either.
///
/// # Errors
///
/// A server that doesn't do what it did before.
pub fn altered_logs(server: &MysqlSandbox, seed: u64) -> Result<AlteredLogs> {
    let mut random = Random::new(seed);
    let mut logs: Vec<Vec<String>> = Vec::new();
    let begin = |metadata: &str| {
        server.sql(&format!(
            "SET GLOBAL binlog_row_metadata = {metadata}; DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop;
             CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, a INT, b INT, d ENUM('x','z'));
             CREATE TABLE u (id INT PRIMARY KEY AUTO_INCREMENT, b INT, a INT)"
        ))?;
        server.flush_binary_logs()
    };
    server.flush_binary_logs()?;
    let creation = begin("MINIMAL")?;
    let mut minimal = Vec::new();
    for _ in 0..LOGS {
        let mut done = Vec::new();
        while done.len() < LOG_STATEMENTS {
            let statement = statement(server, &mut random)?;
            if server.sql(&format!("USE shop; {statement}")).is_ok() {
                done.push(statement);
            }
        }
        logs.push(done);
        minimal.push(server.flush_binary_logs()?);
    }
    begin("FULL")?;
    let mut full = Vec::new();
    for statements in logs {
        for statement in statements {
            server.sql(&format!("USE shop; {statement}"))?;
        }
        full.push(server.flush_binary_logs()?);
    }
    server.sql("SET GLOBAL binlog_row_metadata = MINIMAL")?;
    Ok(AlteredLogs { minimal, creation, full })
}

fn one_of<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    words[random.below(words.len())]
}

fn statement(server: &MysqlSandbox, random: &mut Random) -> Result<String> {
    let table = one_of(random, &TABLES);
    let described = server.sql(&format!(
        "SELECT column_name, column_type FROM information_schema.columns WHERE table_schema = 'shop' AND BINARY table_name = '{table}' \
         ORDER BY ordinal_position"
    ))?;
    let columns: Vec<(&str, &str)> = described.lines().filter_map(|line| line.split_once('\t')).collect();
    let other = one_of(random, &TABLES);
    Ok(match random.below(20) {
        0..12 if !columns.is_empty() => rows(random, table, &columns),
        0..14 if columns.is_empty() => {
            let definitions: Vec<_> = (0..=random.below(4)).map(|_| definition(random)).collect();
            format!("CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, {})", definitions.join(", "))
        }
        12..17 => {
            let count = 1 + random.below(2);
            let actions: Vec<_> = (0..count).map(|_| action(random, &columns)).collect();
            format!("ALTER TABLE {table} {}", actions.join(", "))
        }
        17 => format!("RENAME TABLE {table} TO swapped, {other} TO {table}, swapped TO {other}"),
        18 => format!("ALTER TABLE {table} RENAME TO {other}"),
        _ if columns.is_empty() => format!("CREATE TABLE {table} LIKE {other}"),
        _ => format!("DROP TABLE {table}"),
    })
}

fn definition(random: &mut Random) -> String {
    format!("{} {}", one_of(random, &COLUMNS), one_of(random, &TYPES))
}

fn action(random: &mut Random, columns: &[(&str, &str)]) -> String {
    let (column, kind) = match columns.len() {
        0 | 1 => ("id", "int"),
        count => columns[1 + random.below(count - 1)],
    };
    let after = columns.get(random.below(columns.len().max(1))).map_or("id", |(name, _)| name);
    let target = match random.below(3) {
        0 => " FIRST".to_owned(),
        1 => format!(" AFTER `{after}`"),
        _ => String::new(),
    };
    match random.below(8) {
        0 | 1 => format!("ADD COLUMN {}{target}", definition(random)),
        2 => format!("DROP COLUMN `{column}`"),
        // The same type in another place: the log's types don't tell.
        3 | 4 => format!("MODIFY `{column}` {kind}{target}"),
        5 => format!("CHANGE `{column}` {} {kind}{target}", one_of(random, &COLUMNS)),
        6 => format!("RENAME COLUMN `{column}` TO {}", one_of(random, &COLUMNS)),
        _ => one_of(random, &["ADD INDEX (id)", "ENGINE=InnoDB", "COMMENT 'x, DROP a'"]).to_owned(),
    }
}

fn rows(random: &mut Random, table: &str, columns: &[(&str, &str)]) -> String {
    let name = |(name, _): &(&str, &str)| format!("`{name}`");
    let all: Vec<_> = columns.iter().filter(|(name, _)| *name != "id").collect();
    match random.below(6) {
        0 if !all.is_empty() => {
            let column = all[random.below(all.len())];
            format!("UPDATE {table} SET {} = {}", name(column), value(random, column.1))
        }
        1 => format!("DELETE FROM {table} ORDER BY id LIMIT 1"),
        _ => {
            let names: Vec<_> = all.iter().map(|column| name(column)).collect();
            let values: Vec<_> = all.iter().map(|(_, kind)| value(random, kind)).collect();
            format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", "))
        }
    }
}

fn value(random: &mut Random, kind: &str) -> String {
    let number = random.below(1000);
    match kind {
        _ if number.is_multiple_of(9) => "NULL".to_owned(),
        _ if kind.starts_with("enum") || kind.starts_with("set") => (1 + number % 2).to_string(),
        _ if kind.starts_with("var") => format!("'w{number}'"),
        _ => number.to_string(),
    }
}
