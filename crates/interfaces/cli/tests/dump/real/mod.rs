//! A generator of logs from real servers: every column type with values at its bounds, with a key, with itself in the key,
//! and without one, under every row image and row metadata, in transactions of random sizes. Every reader must deliver all
//! rows, or name what it doesn't (exit code 1): what the lines and messages say is compared with the server's own
//! tables. (Issue 42.)
//!
//! A run prints its seed, and `SEED=N` repeats it. `scripts/soak/real-logs.sh` goes through all settings of all servers:
//! REAL_LOGS=all. SQL reads such logs in the tests of binlogz-sql.

mod generator;
mod lines;
mod types;

use std::collections::BTreeMap;
use std::path::Path;

use binlogz_testkit::random::Random;
use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, Result, SandboxServer, Tool, require_tool};

use crate::common::{Folder, Ran};
use generator::{Logging, Table, each_log, is_whole};
use lines::State;
use types::Flavour;

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
    each_log(server, flavour, |log, random| {
        let folder = Folder::new();
        std::fs::copy(&log.path, folder.path("log")).unwrap();
        let schema = folder.put("schema.sql", &log.schema);
        let readers =
            Readers { folder: &folder, schema: &schema, tables: &log.tables, database: &log.database };
        readers.lines(server, flavour, log.logging)?;
        readers.counts();
        readers.messages(log.logging);
        readers.rows(random);
        if matches!(flavour, Flavour::Mysql97 | Flavour::Mysql80) && log.logging.image == "FULL" {
            readers.undo_and_redo(server)?;
        }
        Ok(())
    })
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
