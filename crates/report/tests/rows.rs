//! Rows print as the real mysqlbinlog prints them: of every real log, and of tables of every type at
//! its limits.

mod limits;
#[path = "../examples/row_lines.rs"]
mod row_lines;

use std::path::Path;

use binlogz_report::mysqlbinlog::Verbosity;
use binlogz_testkit::random::Random;
use binlogz_testkit::{Installed, Tool, mutate, real, require_tool};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// What mysqlbinlog prints in the place of a GEOMETRY; it drops what follows in the event.
const GIVEN_UP: &str = "!! Don't know how to handle column type=255";

#[test]
fn every_real_log_prints_as_mysqlbinlog_prints_it() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let mut lines = 0;
    for binlog in real::every_binlog() {
        for verbosity in [Verbosity::Values, Verbosity::Types] {
            lines += compare(mysql, &binlog.path, verbosity)
                .map_err(|error| format!("{}: {error}", binlog.name))?;
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
        let lines = compare(mysql, &binlog, Verbosity::Types)?;
        assert!(lines > 20_000, "only {lines} lines were compared");
        let printed = lines_of(&binlog)?;
        for part in PARTS {
            assert!(printed.contains(part), "nothing printed {part}");
        }
    }
    Ok(())
}

/// What the statements must have led to; a server that logs otherwise would make the test an empty one.
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

/// Holds our lines against mysqlbinlog's; gives how many there were.
fn compare(mysql: &Installed, binlog: &Path, verbosity: Verbosity) -> Result<usize> {
    let option = if verbosity == Verbosity::Types { "-vv" } else { "-v" };
    let args = [option.as_ref(), "--base64-output=decode-rows".as_ref(), binlog.as_os_str()];
    let theirs = mysql.mysqlbinlog(args)?.stdout;
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
        && value.is_some_and(|value| value.starts_with("x'") || value.starts_with("NULL"))
}
