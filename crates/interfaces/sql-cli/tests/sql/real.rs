//! SQL over logs of real servers with every column type: all rows are in its tables, or the table that lacks some is named with exit code 1. The
//! generator is that of the other readers (`cli/tests/dump/real`); `SEED=N` repeats a run, and `scripts/soak/real-logs.sh` takes all settings.

#[path = "../../../cli/tests/dump/real/generator.rs"]
mod generator;
#[path = "../../../cli/tests/dump/real/types.rs"]
#[allow(dead_code)] // how values are compared is for the other readers
mod types;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use binlogz_testkit::random::Random;
use binlogz_testkit::{MariadbSandbox, Mysql56Sandbox, Result, SandboxServer, Tool, require_tool};

use crate::common::{Ran, archive_of, sql};
use generator::{RealLog, Table, each_log, is_whole};
use types::Flavour;

#[test]
fn every_row_of_mysql_is_in_its_tables_or_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    run(&server, Flavour::Mysql97)
}

#[test]
fn every_row_of_mysql_5_6_without_gtids_is_in_its_tables_or_named() -> Result<()> {
    require_tool!(Tool::Mysql56);
    require_tool!(Tool::Mariadb);
    let server = Mysql56Sandbox::start(&[("gtid-mode", "OFF"), ("enforce-gtid-consistency", "OFF")])?;
    run(&server, Flavour::Mysql56)
}

#[test]
fn every_row_of_mariadb_10_11_is_in_its_tables_or_named() -> Result<()> {
    require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[("binlog-format", "ROW")])?;
    run(&server, Flavour::Mariadb)
}

#[test]
fn every_row_of_mariadb_11_4_is_in_its_tables_or_named() -> Result<()> {
    require_tool!(Tool::Mariadb114);
    let server = MariadbSandbox::start_version(Tool::Mariadb114, &[("binlog-format", "ROW")])?;
    run(&server, Flavour::Mariadb)
}

#[test]
#[ignore = "needs MySQL 8.0.33, a download of 550 MB: scripts/soak/real-logs.sh"]
fn every_row_of_mysql_8_0_is_in_its_tables_or_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql80);
    let server = mysql.sandbox().start()?;
    run(&server, Flavour::Mysql80)
}

fn run(server: &SandboxServer, flavour: Flavour) -> Result<()> {
    each_log(server, flavour, |log, random| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.000001");
        fs::copy(&log.path, &path).unwrap();
        let schema = folder.path().join("schema.sql");
        fs::write(&schema, &log.schema).unwrap();
        let archive = folder.path().join("archive");
        archive_of(std::slice::from_ref(&path), &archive);
        for shape in [path, archive] {
            counts(log, &shape, &schema);
            tables(log, &shape, &schema, random);
        }
        Ok(())
    })
}

/// The rows of `changes` by table and operation, as they are counted, and as many as have an image.
fn counts(log: &RealLog, shape: &PathBuf, schema: &Path) {
    let by_table = |count: &str| {
        let statement = format!(
            "SELECT \"table\", operation, {count} FROM changes WHERE schema = '{}' GROUP BY 1, 2",
            log.database
        );
        let ran = asked(&statement, shape, schema);
        let mut counts: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        for line in ran.out.lines().skip(1) {
            let [table, operation, count] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
            counts.entry(table.to_owned()).or_default()[number(operation)] = count.parse().unwrap();
        }
        (ran, counts)
    };
    for count in ["count(*)", "count(coalesce(after, before))"] {
        let (ran, counts) = by_table(count);
        for table in &log.tables {
            let found = counts.get(&table.name).copied().unwrap_or_default();
            assert!(
                found == table.changes || is_named(&ran, table),
                "{count} of {} {} under {:?}: {found:?} for {:?}: {}",
                table.name,
                table.kind.definition,
                log.logging,
                table.changes,
                ran.error
            );
        }
    }
}

/// Tables of the server as tables of SQL: all of their columns are read.
fn tables(log: &RealLog, shape: &PathBuf, schema: &Path, random: &mut Random) {
    for _ in 0..if is_whole() { 30 } else { 3 } {
        let table = &log.tables[random.below(log.tables.len())];
        let statement = format!(
            "SELECT operation, count(*), count(after['v']), count(before['v']), count(after['w']) FROM {}.{} GROUP BY 1",
            log.database, table.name
        );
        let ran = asked(&statement, shape, schema);
        let mut found = [0; 3];
        for line in ran.out.lines().skip(1) {
            let mut cells = line.split(',');
            let operation = number(cells.next().unwrap());
            found[operation] = cells.next().unwrap().parse().unwrap();
        }
        assert!(
            found == table.changes || is_named(&ran, table),
            "{} {}: {found:?} for {:?}: {}",
            table.name,
            table.kind.definition,
            table.changes,
            ran.error
        );
    }
}

/// Runs a statement; its exit code must be 0, or 1 with the names of what isn't delivered.
#[track_caller]
fn asked(statement: &str, shape: &PathBuf, schema: &Path) -> Ran {
    let mut command = sql(["--format", "csv", "--schema"]);
    let ran = Ran::from(command.arg(schema).arg(statement).arg(shape).output().unwrap());
    assert!(matches!(ran.code, Some(0 | 1)), "{statement}: {}", ran.error);
    ran
}

fn number(operation: &str) -> usize {
    ["insert", "update", "delete"].iter().position(|name| *name == operation).expect("an operation")
}

/// Whether a table is named of which not all rows are there.
fn is_named(ran: &Ran, table: &Table) -> bool {
    ran.code == Some(1) && ran.error.contains(&table.name)
}
