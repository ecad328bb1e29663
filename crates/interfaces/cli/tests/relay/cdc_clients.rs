//! Clients of the relay, killed and begun again: every row once, and a place at which they can go on. They are
//! mysql-binlog-connector-java, which Debezium, Maxwell and Flink CDC are built on, go-mysql's syncer and mysql_async.
//! `make compat` tries all others. Straight from a source that compresses, the connector's GTID set lacks transactions.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use binlogz_testkit::ordinary::{
    MISTAKE, ORDINARY_SHOP, after_the_backup, before_the_backup, ordinary_server,
};
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

/// The tool that has a client, and its program.
const CLIENTS: [(&str, &str); 3] =
    [("compat-java", "connector"), ("compat-go", "compat"), ("compat-rust", "compat-rust")];

/// The program of a client in `scripts/compat/clients`, built on the first use.
fn program((tool, program): (&str, &str)) -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/get-tool.sh");
    let built = Command::new(script).arg(tool).output().unwrap();
    if !built.status.success() {
        skip(String::from_utf8_lossy(&built.stderr).trim());
        return None;
    }
    Some(Path::new(String::from_utf8(built.stdout).unwrap().trim()).join("bin").join(program))
}

/// Runs a client from a place, until it has delivered this many rows and says where to go on; then kills it.
fn rows_from(program: &Path, relay: &Relay, by: &str, place: &mut String, count: usize) -> Vec<String> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(program);
    // Go's program is a canal or a syncer.
    command.env("AS", "syncer").args([&relay.port.to_string(), "cdc", "secret", by, place]);
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
fn clients_deliver_every_row_once_and_begin_again_by_gtid_and_by_position() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    // Tables with triggers and cascades, ENUM and SET are in the same log.
    let source = ordinary_server(mysql).compression(3).start().unwrap();
    for statements in [ORDINARY_SHOP, &before_the_backup(), &after_the_backup(), MISTAKE, BEGINNING] {
        source.sql(statements).unwrap();
    }
    write(&source);
    let configuration = Configuration::of([url(&source)]).account("cdc", "form = \"uncompressed\"");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);

    let beginnings = [
        ("gtid", format!("{}:1", source.server_uuid().unwrap())),
        ("position", "binlog-u.000001:4".to_owned()),
    ];
    let mut followed = Vec::new();
    for client in CLIENTS {
        let Some(program) = program(client) else { return };
        followed.extend(beginnings.clone().map(|(by, place)| (program.clone(), by, place, Vec::new())));
    }
    for _ in 0..2 {
        let rows =
            source.sql("SET NAMES utf8mb4; SELECT id, word, price, at FROM compat.t ORDER BY id").unwrap();
        let expected: Vec<String> = rows.lines().map(str::to_owned).collect();
        for (program, by, place, rows) in &mut followed {
            let more = rows_from(program, &relay, by, place, expected.len() - rows.len());
            rows.extend(more);
            assert_eq!(*rows, expected, "{program:?} by {by}");
            if *by == "gtid" {
                assert_eq!(*place, source.gtid_executed().unwrap(), "{program:?}");
            }
        }
        write(&source);
        relay.has_all_of(&source);
    }
}
