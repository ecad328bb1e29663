//! Statistics equal the server's own, and are the same for any number of workers.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_figures::{FigureFormat, TableCell};
use binlogz_flow::{Input, Rewrite, Rewriter, events};
use binlogz_payload::statistics::COLUMNS;
use binlogz_stats::{FileStats, Stats, StatsCollector, StatsGrouping};
use binlogz_testkit::builder::{LogBuilder, PayloadBody, Release, inner_transaction};
use binlogz_testkit::workload::Workload;
use binlogz_testkit::{MysqlSandbox, Result, Tool, corpus, mixed, mutate, real, require_tool};

const TOGGLE: &str = include_str!("../../../../lab/testkit/sql/toggle.sql");
/// Columns of relay logs' rows that no file can give: when the replica received the transaction.
const QUEUED: [&str; 2] = ["FIRST_TRANSACTION_TIMESTAMP", "LAST_TRANSACTION_TIMESTAMP"];

fn count(stats: &mut Stats, name: &str, bytes: Vec<u8>, workers: usize) -> Option<String> {
    let size = bytes.len() as u64;
    let mut file = FileStats::new(5);
    let result = events::run(
        Input::Places(Arc::new(bytes)),
        workers,
        || Ok(StatsCollector::new(5, true, workers)),
        |collector, batch| Ok(collector.collect(batch)),
        |part| {
            file.add(part);
            Ok(())
        },
        &mut |_| {},
    );
    stats.add(name.to_owned(), size, file);
    result.err().map(|error| error.to_string())
}

fn json(stats: &Stats) -> String {
    let mut out = Vec::new();
    FigureFormat::Json.write(&stats.sections(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn any_number_of_workers_counts_the_same() {
    let mut all = [1, 2, 5].map(|workers| (workers, Stats::new(5)));
    for file in real::every_binlog() {
        let bytes = file.read();
        for (workers, all) in &mut all {
            let error = count(all, &file.name, bytes.clone(), *workers);
            assert_eq!(error, None, "{}", file.name);
        }
    }
    let [one, others @ ..] = all.map(|(_, stats)| json(&stats));
    assert!(others.iter().all(|other| *other == one));
}

#[test]
fn damaged_logs_are_counted_up_to_the_damage_or_refused() {
    let seed = mutate::seed();
    for (number, file) in corpus::binlogs().iter().enumerate() {
        let original = file.read();
        if original.len() > 200_000 {
            continue;
        }
        for index in 0..30 {
            let (bytes, what) = mutate::mutate(&original, seed, number as u64 * 1000 + index);
            let outcome = [1, 3].map(|workers| {
                let mut stats = Stats::new(5);
                (count(&mut stats, &file.name, bytes.clone(), workers), json(&stats))
            });
            let [one, three] = outcome;
            assert_eq!(one, three, "{} {what}", file.name);
        }
    }
}

/// Tables, transactions and rows, and bytes without compression.
fn tables(name: &str, bytes: Vec<u8>) -> Vec<Vec<TableCell>> {
    let mut stats = Stats::new(5);
    assert_eq!(count(&mut stats, name, bytes, 2), None);
    let rows = stats.section(StatsGrouping::Table).rows;
    rows.into_iter().map(|row| row.into_iter().take(7).collect()).collect()
}

#[test]
fn an_expanded_log_has_the_tables_of_the_compressed_one() {
    let mut compressed_tables = 0;
    for file in corpus::binlogs() {
        let bytes = file.read();
        let mut expanded = Vec::new();
        let input = Input::Places(Arc::new(bytes.clone()));
        Rewriter::new(Rewrite::Expand).workers(2).run(input, &mut expanded).unwrap();
        compressed_tables += usize::from(expanded != bytes);
        assert_eq!(tables(&file.name, expanded), tables(&file.name, bytes), "{}", file.name);
    }
    assert!(compressed_tables > 5);
}

/// The rows of the server's table, each cell as the client prints it.
fn server_rows(server: &MysqlSandbox) -> Result<Vec<Vec<String>>> {
    let rows = server.sql(
        "SET time_zone = '+00:00';
         SELECT * FROM performance_schema.binary_log_transaction_compression_stats;",
    )?;
    Ok(rows.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// The rows of the statistics of these files.
fn counted_rows(files: Vec<PathBuf>) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let mut stats = Stats::new(5);
    for file in files {
        let error = count(&mut stats, "log", fs::read(&file).unwrap(), 2);
        assert_eq!(error, None, "{}", file.display());
    }
    let section = stats.compression();
    let text = |cell: &TableCell| match cell {
        TableCell::Number(number) => number.to_string(),
        TableCell::Text(text) => text.clone(),
        TableCell::Moment(microseconds, digits) => digits.utc(*microseconds),
        TableCell::Decimal(..) => panic!("the server has no decimals"),
        TableCell::Null => "NULL".to_owned(),
    };
    let rows = section.rows.iter().map(|row| row.iter().map(text).collect()).collect();
    (section.columns.to_vec(), rows)
}

fn compare(server: &MysqlSandbox, log_type: &str, files: Vec<PathBuf>, what: &str) -> Result<()> {
    let mut expected = server_rows(server)?;
    expected.retain(|row| row[0] == log_type);
    assert!(!expected.is_empty(), "{what}: the server has counted nothing");
    let (columns, mut counted) = counted_rows(files);
    for (column, name) in columns.iter().enumerate() {
        if log_type == "RELAY" && QUEUED.contains(name) {
            for rows in [&mut expected, &mut counted] {
                rows.iter_mut().for_each(|row| row[column] = "not told".to_owned());
            }
        }
    }
    let named = |rows: &[Vec<String>]| {
        let row = |row: &Vec<String>| {
            columns.iter().zip(row).map(|(name, cell)| format!("{name}={cell}\n")).collect()
        };
        rows.iter().map(row).collect::<Vec<String>>().join("\n")
    };
    assert_eq!(named(&counted), named(&expected), "{what}, {log_type}");
    Ok(())
}

/// Checks that the tables of a source and its replica have the figures that we count in their files.
fn compare_pair(source: &MysqlSandbox, replica: &MysqlSandbox, what: &str) -> Result<()> {
    replica.wait_for_source(source)?;
    compare(source, "BINARY", source.binlogs()?, what)?;
    compare(replica, "RELAY", replica.relay_logs()?, what)?;
    compare(replica, "BINARY", replica.binlogs()?, what)
}

fn pair(version: Tool, level: Option<u32>) -> Result<(MysqlSandbox, MysqlSandbox)> {
    let sandbox = || version.find().map(|mysql| mysql.sandbox());
    let source = match level {
        Some(level) => sandbox()?.compression(level),
        None => sandbox()?,
    };
    let source = source.start()?;
    let replica = sandbox()?.option("relay-log-purge", "OFF").start()?;
    replica.replicate_from(&source)?;
    Ok((source, replica))
}

#[test]
fn the_five_workloads_are_counted_as_by_the_server() -> Result<()> {
    require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    for level in [None, Some(3)] {
        let (source, replica) = pair(Tool::Mysql, level)?;
        for workload in Workload::ALL {
            workload.run(&source, real::SMALL_SCALE)?;
            source.flush_binary_logs()?;
            compare_pair(&source, &replica, &format!("{} at level {level:?}", workload.name()))?;
        }
    }
    Ok(())
}

#[test]
fn a_mix_of_everything_is_counted_as_by_the_server() -> Result<()> {
    require_tool!(Tool::Mysql);
    for level in [None, Some(3)] {
        let (source, replica) = pair(Tool::Mysql, level)?;
        mixed::put_through(&source, true)?;
        source.sql(TOGGLE)?;
        compare_pair(&source, &replica, &format!("mix at level {level:?}"))?;
    }
    Ok(())
}

#[test]
fn mysql_8_0_counts_the_whole_payload_event() {
    let payload = PayloadBody::zstd(&inner_transaction(&[b"a value"]));
    let counted = |release| {
        let log = LogBuilder::new(release).payload(&payload).take();
        let mut stats = Stats::new(5);
        assert_eq!(count(&mut stats, "log", log, 2), None);
        let row = stats.compression().rows.remove(0);
        let column = |name| row[COLUMNS.iter().position(|column| *column == name).unwrap()].clone();
        assert_eq!(column("COMPRESSION_TYPE"), "ZSTD".into());
        column("COMPRESSED_BYTES_COUNTER")
    };
    let payload_size = payload.payload.len() as u64;
    assert_eq!(counted(Release::MYSQL_9_7), payload_size.into());
    let event_size = (HEADER_SIZE + payload.encode().len()) as u64;
    assert_eq!(counted(Release::MYSQL_8_0_20), event_size.into());
}

/// Sizes from a few bytes to several megabytes: the fields before a payload have other lengths then.
#[test]
#[ignore = "needs MySQL 8.0.33, a download of 550 MB"]
fn transactions_of_every_size_are_counted_as_by_mysql_8_0_33() -> Result<()> {
    require_tool!(Tool::Mysql80);
    for level in [None, Some(3)] {
        let (source, replica) = pair(Tool::Mysql80, level)?;
        source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, v LONGTEXT)")?;
        for characters in [1, 100, 10_000, 500_000, 1_800_000] {
            for value in [
                format!("REPEAT('a', {characters})"),
                format!("SUBSTR(REPEAT(UUID(), {characters}), 1, {characters})"),
            ] {
                source.sql(&format!("INSERT INTO d.t (v) VALUES ({value})"))?;
                compare_pair(&source, &replica, &format!("{characters} characters at level {level:?}"))?;
            }
        }
        // A replica compresses again only if it is told to.
        replica.sql("SET GLOBAL binlog_transaction_compression = ON; STOP REPLICA; START REPLICA")?;
        let other = if level.is_none() { "ON" } else { "OFF" };
        let switch = format!("SET SESSION binlog_transaction_compression = {other};");
        source
            .sql(&format!("UPDATE d.t SET v = CONCAT(v, id); {switch} UPDATE d.t SET v = CONCAT(v, id);"))?;
        compare_pair(&source, &replica, &format!("toggled at level {level:?}"))?;
    }
    Ok(())
}
