//! A generator of logs from real servers: every column type with values at its bounds, with a key, with itself in the key,
//! and without one, under every row image and row metadata, in transactions of random sizes. Every reader must deliver all
//! rows, or name what it doesn't (exit code 1): what the lines and messages say is compared with the server's own
//! tables. (Issue 42.)
//!
//! A run prints its seed, and `SEED=N` repeats it. `scripts/soak/real-logs.sh` goes through all settings of all servers:
//! REAL_LOGS=all.

mod lines;
mod types;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use binlogz_testkit::random::Random;
use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, Result, SandboxServer, Tool, require_tool, setting};

use crate::common::{Folder, Ran};
use lines::State;
use types::{Flavour, Kind};

/// How rows are logged.
#[derive(Clone, Copy, Debug)]
struct Logging {
    image: &'static str,
    /// Empty: the server has no such setting.
    metadata: &'static str,
    compressed: bool,
}

/// A table with a column of a kind.
struct Table {
    name: String,
    kind: Kind,
    definition: String,
    /// How many of its rows were inserted, updated and deleted.
    changes: [u64; 3],
}

fn is_whole() -> bool {
    std::env::var("REAL_LOGS").is_ok_and(|value| value == "all")
}

fn seed() -> u64 {
    let seed = setting("SEED", u64::from(std::process::id()));
    println!("SEED={seed}");
    seed
}

/// The settings of a server, of which a short run takes some.
fn loggings(flavour: Flavour, seed: u64) -> Vec<Logging> {
    let images = ["FULL", "MINIMAL", "NOBLOB"];
    let metadata: &[&str] = match flavour {
        Flavour::Mysql56 => &[""],
        Flavour::Mysql80 | Flavour::Mysql97 => &["MINIMAL", "FULL"],
        Flavour::Mariadb => &["NO_LOG", "MINIMAL", "FULL"],
    };
    let compressed: &[bool] = if flavour == Flavour::Mysql56 { &[false] } else { &[false, true] };
    let mut all = Vec::new();
    for &compressed in compressed {
        for &metadata in metadata {
            all.extend(images.map(|image| Logging { image, metadata, compressed }));
        }
    }
    if is_whole() {
        return all;
    }
    let mut random = Random::new(seed);
    let other = random.below(all.len());
    let is_whole_image =
        |logging: &Logging| logging.image == "FULL" && Some(&logging.metadata) == metadata.last();
    let chosen = match flavour {
        Flavour::Mysql56 => vec![other],
        // Whole images once, with all metadata there are; and one other of all settings.
        Flavour::Mysql80 | Flavour::Mysql97 => vec![all.iter().position(is_whole_image).unwrap_or(0), other],
        // The second half is compressed.
        Flavour::Mariadb => vec![all.len() / 2 + other / 2],
    };
    chosen.into_iter().map(|index| all[index]).collect()
}

#[test]
fn every_row_of_mysql_is_delivered_or_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    run(&server, Flavour::Mysql97)
}

#[test]
fn every_row_of_mysql_5_6_without_gtids_is_delivered_or_named() -> Result<()> {
    require_tool!(Tool::Mysql56);
    require_tool!(Tool::Mariadb);
    let server = Mysql56Sandbox::start(&[("gtid-mode", "OFF"), ("enforce-gtid-consistency", "OFF")])?;
    run(&server, Flavour::Mysql56)
}

#[test]
fn every_row_of_mariadb_10_11_is_delivered_or_named() -> Result<()> {
    require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[("binlog-format", "ROW")])?;
    run(&server, Flavour::Mariadb)
}

#[test]
fn every_row_of_mariadb_11_4_is_delivered_or_named() -> Result<()> {
    require_tool!(Tool::Mariadb114);
    let server = MariadbSandbox::start_version(Tool::Mariadb114, &[("binlog-format", "ROW")])?;
    run(&server, Flavour::Mariadb)
}

#[test]
#[ignore = "needs MySQL 8.0.33, a download of 550 MB: scripts/soak/real-logs.sh"]
fn every_row_of_mysql_8_0_is_delivered_or_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql80);
    let server = mysql.sandbox().start()?;
    run(&server, Flavour::Mysql80)
}

fn run(server: &SandboxServer, flavour: Flavour) -> Result<()> {
    let seed = seed();
    for (number, logging) in loggings(flavour, seed).into_iter().enumerate() {
        println!("{flavour:?} {logging:?}");
        let database = format!("d{number}");
        one(server, flavour, logging, &database, &mut Random::new(seed + number as u64))?;
    }
    Ok(())
}

/// One log with all types.
fn one(
    server: &SandboxServer,
    flavour: Flavour,
    logging: Logging,
    database: &str,
    random: &mut Random,
) -> Result<()> {
    let mut tables = tables(flavour);
    let mut definitions = format!("SET sql_mode = ''; CREATE DATABASE {database}; USE {database};\n");
    tables.iter().for_each(|table| definitions.push_str(&table.definition));
    server.sql(&definitions)?;
    server.flush_binary_logs()?;
    let settings = settings(flavour, logging);
    server.sql(&settings)?;
    change(server, database, &mut tables, random)?;
    let log = server.flush_binary_logs()?;
    let folder = Folder::new();
    std::fs::copy(&log, folder.path("log")).unwrap();
    let schema = folder.put("schema.sql", schema(server, database, &tables)?);
    let readers = Readers { folder: &folder, schema: &schema, tables: &tables, database };
    readers.lines(server, flavour, logging)?;
    readers.counts();
    readers.messages(logging);
    readers.rows(random);
    if matches!(flavour, Flavour::Mysql97 | Flavour::Mysql80) && logging.image == "FULL" {
        readers.undo_and_redo(server)?;
    }
    server.sql(&format!("DROP DATABASE {database}"))?;
    Ok(())
}

fn settings(flavour: Flavour, logging: Logging) -> String {
    let mut sql = format!("SET GLOBAL binlog_row_image = {};", logging.image);
    if !logging.metadata.is_empty() {
        let _ = write!(sql, "SET GLOBAL binlog_row_metadata = {};", logging.metadata);
    }
    let on = if logging.compressed { "ON" } else { "OFF" };
    match flavour {
        Flavour::Mysql56 => {}
        Flavour::Mysql80 | Flavour::Mysql97 => {
            let _ = write!(sql, "SET GLOBAL binlog_transaction_compression = {on};");
        }
        Flavour::Mariadb => {
            let _ = write!(sql, "SET GLOBAL log_bin_compress = {on}, GLOBAL log_bin_compress_min_len = 10;");
        }
    }
    sql
}

/// Tables for each kind of column: with a key of its own, with the column in the key, without a key.
fn tables(flavour: Flavour) -> Vec<Table> {
    let mut tables = Vec::new();
    for (number, kind) in types::of(flavour).into_iter().enumerate() {
        for (letter, key) in [("k", ", PRIMARY KEY (id)"), ("v", ", PRIMARY KEY (v, id)"), ("n", "")] {
            if letter == "v" && !kind.is_key {
                continue;
            }
            let name = format!("t{number:03}{letter}");
            let definition = format!(
                "CREATE TABLE {name} (id INT NOT NULL, v {}, w INT{key}) ENGINE=InnoDB;\n",
                kind.definition
            );
            tables.push(Table { name, kind: kind.clone(), definition, changes: [0; 3] });
        }
    }
    tables
}

/// Makes the changes, in transactions of several tables, and counts them as the server does.
fn change(server: &SandboxServer, database: &str, tables: &mut [Table], random: &mut Random) -> Result<()> {
    // What is still to be done with each table, the last first.
    let mut left: Vec<(usize, Vec<(usize, String)>)> =
        tables.iter().enumerate().map(|(index, table)| (index, statements(table))).collect();
    let mut sql = format!("SET sql_mode = '', time_zone = '+00:00'; USE {database};\n");
    let mut kinds = Vec::new();
    while !left.is_empty() {
        sql.push_str("BEGIN;\n");
        for _ in 0..1 + random.below(12) {
            if left.is_empty() {
                break;
            }
            let chosen = random.below(left.len());
            let Some((kind, statement)) = left[chosen].1.pop() else {
                left.swap_remove(chosen);
                continue;
            };
            let _ = writeln!(sql, "{statement};\nSELECT ROW_COUNT();");
            kinds.push((left[chosen].0, kind));
        }
        sql.push_str("COMMIT;\n");
    }
    let counts = server.sql(&sql)?;
    let counts: Vec<u64> = counts.lines().map(|line| line.parse().expect("a count of rows")).collect();
    assert_eq!(counts.len(), kinds.len());
    for ((table, kind), count) in kinds.into_iter().zip(counts) {
        tables[table].changes[kind] += count;
    }
    Ok(())
}

/// The statements for a table with what each does (0 inserts, 1 updates, 2 deletes), the last first.
fn statements(table: &Table) -> Vec<(usize, String)> {
    let (name, values) = (&table.name, &table.kind.values);
    let mut rows: Vec<String> =
        values.iter().enumerate().map(|(id, value)| format!("({id}, {value}, {id})")).collect();
    let null = if table.name.ends_with('v') { "DEFAULT" } else { "NULL" };
    rows.push(format!("({}, {null}, NULL)", values.len()));
    let (half, rest) = rows.split_at(rows.len() / 2);
    let mut statements = vec![];
    for rows in [half, rest] {
        statements.push((0, format!("INSERT INTO {name} VALUES {}", rows.join(", "))));
    }
    for id in 0..values.len() {
        let value = &values[(id + 1) % values.len()];
        statements.push((1, format!("UPDATE {name} SET v = {value} WHERE id = {id}")));
    }
    statements.push((1, format!("UPDATE {name} SET w = w + 1 WHERE id % 2 = 0 AND w IS NOT NULL")));
    statements.push((2, format!("DELETE FROM {name} WHERE id % 3 = 1")));
    statements.reverse();
    statements
}

/// The tables as the server writes them.
fn schema(server: &SandboxServer, database: &str, tables: &[Table]) -> Result<String> {
    let mut sql = String::new();
    for table in tables {
        let _ = writeln!(sql, "SHOW CREATE TABLE {database}.{};", table.name);
    }
    let mut schema = format!("USE {database};\n");
    for line in server.sql(&sql)?.lines() {
        let (_, definition) = line.split_once('\t').expect("two columns");
        // The client writes line ends and backslashes as letters.
        let _ = writeln!(schema, "{};", definition.replace("\\n", "\n").replace("\\\\", "\\"));
    }
    Ok(schema)
}

struct Readers<'a> {
    folder: &'a Folder,
    schema: &'a Path,
    tables: &'a [Table],
    database: &'a str,
}

impl Readers<'_> {
    /// Runs a reader; its exit code must be 0, or 1 with the names of what it doesn't deliver.
    #[track_caller]
    fn run(&self, args: &[&str]) -> Ran {
        let ran = self.folder.run(args);
        assert!(matches!(ran.code, Some(0 | 1)), "{args:?}: {}", ran.stderr);
        ran
    }

    /// Whether a reader named a table of which it doesn't deliver all.
    fn is_named(&self, ran: &Ran, table: &Table) -> bool {
        ran.code == Some(1)
            && (ran.stderr.contains(&table.name)
                || ran.text().contains(&format!("not decoded: {}", table.name)))
    }

    /// JSON lines: the counts, and the state that they make is the server's.
    fn lines(&self, server: &SandboxServer, flavour: Flavour, logging: Logging) -> Result<()> {
        let ran = self.run(&["dump", "--format", "jsonl", "log"]);
        let mut state = State::default();
        for line in ran.text().lines() {
            state.take(&serde_json::from_str(line).unwrap());
        }
        let knows = flavour == Flavour::Mysql97
            || flavour == Flavour::Mysql80
            || (flavour == Flavour::Mariadb && logging.metadata != "NO_LOG");
        let names = logging.metadata == "FULL";
        let mut differing = Vec::new();
        for table in self.tables {
            let expected = lines::expected(server, self.database, table, knows, names)?;
            let found = state.table(self.database, &table.name);
            let counts = found.map_or([0; 3], |found| found.changes);
            let is_same = counts == table.changes
                && found.is_some_and(|found| lines::is_same(&found.rows, &expected, table.kind.class, knows));
            if !is_same && !self.is_named(&ran, table) {
                differing.push(format!(
                    "{} {}: {counts:?} for {:?}: {:?} for {expected:?}",
                    table.name,
                    table.kind.definition,
                    table.changes,
                    found.map(|found| &found.rows)
                ));
            }
        }
        assert!(differing.is_empty(), "{}", shortened(&differing));
        Ok(())
    }

    /// `stats` and `verify` count every row.
    fn counts(&self) {
        let ran = self.run(&["stats", "--format", "json", "log"]);
        let stats: serde_json::Value = serde_json::from_str(ran.text()).unwrap();
        for table in self.tables {
            let counts = lines::counted(&stats, self.database, &table.name);
            assert!(
                counts == table.changes || self.is_named(&ran, table),
                "{} {}: {counts:?} for {:?}",
                table.name,
                table.kind.definition,
                table.changes
            );
        }
        let all: u64 = self.tables.iter().flat_map(|table| table.changes).sum();
        let mut findings = BTreeMap::new();
        for jobs in ["1", "2", "7"] {
            let ran = self.run(&["verify", "--format", "json", "--jobs", jobs, "log"]);
            let verdict: serde_json::Value = serde_json::from_str(ran.text()).unwrap();
            let file = &verdict["files"][0];
            let is_whole = file["ok"] == true && file["rows"] == all;
            assert!(is_whole || ran.code == Some(1) && file["not_decoded"] != 0, "{all} rows: {verdict}");
            findings.insert(file["rows"].to_string(), jobs);
        }
        assert_eq!(findings.len(), 1, "{findings:?}");
    }

    /// The messages of other programs: one for each row.
    fn messages(&self, logging: Logging) {
        for format in ["debezium", "maxwell", "canal"] {
            let schema = self.schema.display().to_string();
            let ran = self.folder.run(["dump", "--format", format, "--schema", &schema, "log"]);
            // They need all columns of a row, and say so.
            if logging.image != "FULL" && ran.stderr.contains("binlog_row_image=FULL") {
                assert_ne!(ran.code, Some(0), "{format}: {}", ran.stderr);
                continue;
            }
            assert!(matches!(ran.code, Some(0 | 1)), "{format}: {}", ran.stderr);
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for line in ran.text().lines() {
                let message: serde_json::Value = serde_json::from_str(line).unwrap();
                let (table, rows) = lines::message(format, &message);
                *counts.entry(table).or_default() += rows;
            }
            for table in self.tables {
                let (count, all) =
                    (counts.get(&table.name).copied().unwrap_or(0), table.changes.iter().sum::<u64>());
                // Debezium writes an update of a key as a delete and a create.
                let twice = format == "debezium" && table.name.ends_with('v');
                let is_all = count == all || (twice && (all..=all + table.changes[1]).contains(&count));
                assert!(
                    is_all || self.is_named(&ran, table),
                    "{format}: {} {}: {count} for {all}: {}",
                    table.name,
                    table.kind.definition,
                    ran.stderr
                );
            }
        }
    }

    /// `rows` of some tables.
    fn rows(&self, random: &mut Random) {
        let schema = self.schema.display().to_string();
        for _ in 0..if is_whole() { 50 } else { 4 } {
            let table = &self.tables[random.below(self.tables.len())];
            let name = format!("{}.{}", self.database, table.name);
            let ran = self.run(&["rows", &name, "--format", "json", "--schema", &schema, "log"]);
            let (count, all) = (ran.text().lines().count() as u64, table.changes.iter().sum::<u64>());
            assert!(count == all || self.is_named(&ran, table), "{name}: {count} for {all}: {}", ran.stderr);
        }
    }

    /// The script of `undo` empties every table, that of `redo` makes them again.
    fn undo_and_redo(&self, server: &SandboxServer) -> Result<()> {
        let after = server.checksum_tables(self.database)?;
        let schema = self.schema.display().to_string();
        for verb in ["undo", "redo"] {
            let ran = self.run(&[verb, "--schema", &schema, "log"]);
            let named: Vec<_> = self.tables.iter().filter(|table| self.is_named(&ran, table)).collect();
            server.sql_file(&self.folder.put("script.sql", &ran.stdout))?;
            if verb == "undo" {
                let counts = self.tables.iter().map(|table| {
                    format!("SELECT '{}', COUNT(*) FROM {}.{};", table.name, self.database, table.name)
                });
                for line in server.sql(&counts.collect::<String>())?.lines() {
                    let (name, count) = line.split_once('\t').expect("two columns");
                    let is_named = named.iter().any(|table| table.name == name);
                    assert!(count == "0" || is_named, "undo: {line}: {}", ran.stderr);
                }
            } else if named.is_empty() {
                let differing: Vec<_> = server
                    .checksum_tables(self.database)?
                    .into_iter()
                    .zip(&after)
                    .filter(|(now, then)| now != *then)
                    .map(|(now, _)| now.0)
                    .collect();
                assert_eq!(differing, [""; 0], "redo");
            }
        }
        Ok(())
    }
}

fn shortened(lines: &[String]) -> String {
    let short = |line: &String| line.chars().take(600).collect::<String>();
    format!("{} differ:\n{}", lines.len(), lines.iter().take(12).map(short).collect::<Vec<_>>().join("\n"))
}
