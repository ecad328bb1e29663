//! mysql-binlog-connector-java, which Debezium, Maxwell and Flink CDC are built on, behind the relay: every row once, and a
//! GTID set with which it can begin again. Straight from a source that compresses, its set lacks transactions (`make compat`).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use binlogz_testkit::tool::skip;
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, Running, url};

const PATIENCE: Duration = Duration::from_secs(180);

const BEGINNING: &str = "CREATE DATABASE compat; CREATE TABLE compat.t (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(40), price DECIMAL(10,2), at DATETIME)";

/// Transactions of one row, and one of many.
fn write(source: &MysqlSandbox) {
    let one = "INSERT INTO compat.t (word, price, at) VALUES ('ßé😀', 1.5, '2026-11-22 01:02:03');";
    let many = "INSERT INTO compat.t (word, price) SELECT CONCAT('word ', a.id), b.id FROM compat.t a, compat.t b LIMIT 100;";
    source.sql(&format!("SET NAMES utf8mb4; {}{many}", one.repeat(10))).unwrap();
}

/// The program of `scripts/compat/clients/java`, built on the first use.
fn connector() -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/get-tool.sh");
    let built = Command::new(script).arg("compat-java").output().unwrap();
    if !built.status.success() {
        skip(String::from_utf8_lossy(&built.stderr).trim());
        return None;
    }
    Some(Path::new(String::from_utf8(built.stdout).unwrap().trim()).join("bin/connector"))
}

/// Runs it from a place, until it has delivered so many rows and says where to go on; then kills it.
fn rows_from(connector: &Path, relay: &Relay, by: &str, place: &mut String, count: usize) -> Vec<String> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(connector);
    command.args([&relay.port.to_string(), "cdc", "secret", by, place]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.reopen().unwrap());
    let mut running = Running(command.spawn().unwrap());
    let printed = running.0.stdout.take().unwrap();
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(printed).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let deadline = Instant::now() + PATIENCE;
    let mut rows = Vec::new();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).unwrap_or_else(|error| {
            let said = std::fs::read_to_string(log.path()).unwrap();
            panic!("{error}: {} of {count} rows by {by}\n{said}\n{}", rows.len(), relay.said())
        });
        match line.split_once(' ').unwrap() {
            ("row", row) => rows.push(row.to_owned()),
            (_, now) => now.clone_into(place),
        }
        if rows.len() >= count && line.starts_with("at ") {
            return rows;
        }
    }
}

#[test]
fn the_java_connector_delivers_every_row_once_and_begins_again_by_gtid_and_by_position() {
    let mysql = require_tool!(Tool::Mysql);
    let Some(connector) = connector() else { return };
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source.sql(BEGINNING).unwrap();
    write(&source);
    let configuration = Configuration::of([url(&source)]).account("cdc", "form = \"uncompressed\"");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);

    let of_source =
        || source.sql("SET NAMES utf8mb4; SELECT id, word, price, at FROM compat.t ORDER BY id").unwrap();
    let mut by_gtid = (Vec::new(), format!("{}:1", source.server_uuid().unwrap()));
    let mut by_position = (Vec::new(), "binlog-u.000001:4".to_owned());
    for _ in 0..2 {
        let expected: Vec<String> = of_source().lines().map(str::to_owned).collect();
        for (by, (rows, place)) in [("gtid", &mut by_gtid), ("position", &mut by_position)] {
            let more = rows_from(&connector, &relay, by, place, expected.len() - rows.len());
            rows.extend(more);
            assert_eq!(*rows, expected, "by {by}");
        }
        assert_eq!(by_gtid.1, source.gtid_executed().unwrap());
        write(&source);
        relay.has_all_of(&source);
    }
}
