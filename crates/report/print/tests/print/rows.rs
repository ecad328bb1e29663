//! Rows print as the real mysqlbinlog prints them: for every real log, and for tables of every type at its
//! limits.

use std::path::Path;

use binlogz_binlog::MAGIC;
use binlogz_print::mysqlbinlog::Verbosity;
use binlogz_testkit::random::Random;
use binlogz_testkit::{InstalledTool, MariadbSandbox, Tool, corpus, mutate, real, require_tool, tool};

use crate::{limits, row_lines};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// mysqlbinlog's line instead of a GEOMETRY; it drops the rest of the event.
const GIVEN_UP: &str = "!! Don't know how to handle column type=255";

#[test]
fn every_real_log_prints_as_mysqlbinlog_prints_it() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let mut lines = 0;
    for binlog in real::every_binlog() {
        for verbosity in [Verbosity::Values, Verbosity::Types] {
            let compared = compare(mysql, "mysqlbinlog", &binlog.path, verbosity);
            lines += compared.map_err(|error| format!("{}: {error}", binlog.name))?;
        }
    }
    assert!(lines > 10_000, "only {lines} lines were compared");
    Ok(())
}

#[test]
fn every_type_prints_as_mysqlbinlog_prints_it() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let seed = mutate::seed();
    for (metadata, level) in [("MINIMAL", None), ("FULL", Some(3))] {
        let mut builder = mysql
            .sandbox()
            .option("binlog-row-metadata", metadata)
            .option("binlog-rows-query-log-events", "ON")
            .option("max-allowed-packet", "64M");
        if let Some(level) = level {
            builder = builder.compression(level);
        }
        let server = builder.start()?;
        server.sql(&limits::statements(&mut Random::new(seed)))?;
        let binlog = server.flush_binary_logs()?;
        let lines = compare(mysql, "mysqlbinlog", &binlog, Verbosity::Types)?;
        assert!(lines > 20_000, "only {lines} lines were compared");
        let printed = lines_of(&binlog)?;
        for part in PARTS {
            assert!(printed.contains(part), "nothing printed {part}");
        }
    }
    Ok(())
}

/// MariaDB writes row events of version 1, which MySQL's mysqlbinlog no longer reads.
#[test]
fn rows_of_mariadb_print_as_its_own_mysqlbinlog_prints_them() -> Result<()> {
    let mariadb = require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[("log-bin", "binlog"), ("binlog-format", "ROW")])?;
    server.sql(
        "SET NAMES utf8mb4; CREATE DATABASE m; USE m;
         CREATE TABLE t (a TINYINT UNSIGNED, b BIGINT, c DECIMAL(20,5), f FLOAT, d DOUBLE, t TIME(3), dt DATETIME(6),
             ts TIMESTAMP(2) NULL, y YEAR, da DATE, e ENUM('x','y'), s SET('a','b'), v VARCHAR(300), c2 CHAR(255),
             tx TEXT, j JSON, bi BIT(12), i INET6, g POINT);
         INSERT INTO t VALUES (255, -5, -12345.67890, 1.5, 2.25, '-12:34:56.789', '2020-01-02 03:04:05.123456',
             '2020-01-02 03:04:05.12', 2020, '2020-02-29', 'y', 'a,b', 'vé', 'c', 'text', '{\"a\":1}',
             b'101010101010', '::1', POINT(1, 2));
         INSERT INTO t (a) VALUES (NULL);
         UPDATE t SET b = 7;
         DELETE FROM t;
         FLUSH LOGS;",
    )?;
    let mut lines = 0;
    for binlog in server.binlogs()? {
        lines += compare(mariadb, "mariadb-binlog", &binlog, Verbosity::Types)?;
    }
    assert_eq!(lines, 2 * (2 + 19) + 2 * (3 + 2 * 19) + 2 * (2 + 19));
    Ok(())
}

/// The logs of MySQL 5.0 to 9.0 that the server's own test suite ships: `BINLOGZ_STD_DATA` names a folder
/// that holds them.
#[test]
#[ignore = "needs the logs of the server's test suite: scripts/soak/std-data.sh"]
fn logs_of_older_servers_print_as_mysqlbinlog_prints_them() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let mut folders = vec![tool::std_data()];
    let mut lines = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path)?.starts_with(&MAGIC) && is_read_by(mysql, &path)? {
                let compared = compare(mysql, "mysqlbinlog", &path, Verbosity::Types);
                lines += compared.map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    assert!(lines > 100, "only {lines} lines were compared");
    Ok(())
}

/// Whether mysqlbinlog reads a log to its end and finds its checksums right.
fn is_read_by(mysql: &InstalledTool, binlog: &Path) -> Result<bool> {
    Ok(mysql.mysqlbinlog(["--verify-binlog-checksum".as_ref(), binlog.as_os_str()])?.status.success())
}

#[test]
fn damaged_logs_are_errors_or_lines() {
    let seed = mutate::seed();
    let mut whole = 0;
    for name in ["binlog.000001", "binlog.000004", "binlog.000005", "relay.000012"] {
        let original = std::fs::read(corpus::path(name)).unwrap();
        for index in 0..500 {
            let (log, _) = mutate::mutate(&original, seed, index);
            whole += usize::from(row_lines::each_event(&log[..], Verbosity::Types, |_| Ok(())).is_ok());
        }
    }
    assert!(whole > 0, "every damage was noticed, even where nothing is read");
}

/// The kinds of event that the statements must have led to; if a server logged otherwise, the test would test nothing.
const PARTS: [&str; 12] = [
    "=JSON_REPLACE(",
    "JSON_INSERT(",
    "JSON_ARRAY_INSERT(",
    "JSON_REMOVE(",
    " AS JSON)",
    "base64:type",
    "VALUES ()",
    "### Extra row info for partitioning: source_partition: ",
    "/* DECIMAL(65,30) meta=16670 ",
    "/* VECTOR(3) ",
    "/* SET(8 bytes) ",
    "/* STRING(1020) ",
];

fn lines_of(binlog: &Path) -> Result<String> {
    let mut lines = Vec::new();
    row_lines::each_event(std::fs::File::open(binlog)?, Verbosity::Types, |event| {
        lines.extend_from_slice(event);
        Ok(())
    })?;
    Ok(String::from_utf8_lossy(&lines).into_owned())
}

/// Compares our lines with mysqlbinlog's; returns how many there were.
fn compare(tool: &InstalledTool, program: &str, binlog: &Path, verbosity: Verbosity) -> Result<usize> {
    let option = if verbosity == Verbosity::Types { "-vv" } else { "-v" };
    let args = [option.as_ref(), "--base64-output=decode-rows".as_ref(), binlog.as_os_str()];
    let theirs = tool.run(program, args)?.stdout;
    let mut theirs = theirs.split(|&byte| byte == b'\n').filter(|line| line.starts_with(b"###"));
    let mut count = 0;
    let log = std::fs::File::open(binlog)?;
    let ended = row_lines::each_event(log, verbosity, |event| {
        for ours in event.split_inclusive(|&byte| byte == b'\n') {
            let ours = ours.strip_suffix(b"\n").unwrap_or(ours);
            count += 1;
            let their_line = theirs.next().unwrap_or(b"(no more lines)");
            if is_geometry_given_up(ours, their_line) {
                break;
            }
            if ours != their_line {
                let (ours, theirs) = (ours.escape_ascii(), their_line.escape_ascii());
                return Err(format!("line {count} differs:\nours   {ours}\ntheirs {theirs}").into());
            }
        }
        Ok(())
    });
    match ended {
        // The corpus has logs of servers that were killed.
        Err(error) if error.downcast_ref::<binlogz_binlog::Error>().is_some_and(|it| it.is_truncation()) => {}
        ended => ended?,
    }
    match theirs.next() {
        None => Ok(count),
        Some(line) => Err(format!("only they have, behind line {count}: {}", line.escape_ascii()).into()),
    }
}

/// Whether this is the geometry that mysqlbinlog can't print, and ours is one.
fn is_geometry_given_up(ours: &[u8], theirs: &[u8]) -> bool {
    let (ours, theirs) = (String::from_utf8_lossy(ours), String::from_utf8_lossy(theirs));
    let Some((column, behind)) = theirs.split_once('=') else { return false };
    let value = ours.strip_prefix(column).and_then(|rest| rest.strip_prefix('='));
    behind.starts_with(GIVEN_UP)
        && value.is_some_and(|value| value.starts_with('\'') || value.starts_with("NULL"))
}
