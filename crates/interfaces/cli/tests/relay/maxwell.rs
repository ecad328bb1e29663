//! Maxwell 1 with one host, the relay: it writes its schema and positions there, reads the log there, and misses no row of a source
//! with `binlog_row_metadata = FULL`, whose table maps its connector can't read. The accounts are those of the guide.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use binlogz_testkit::tool::skip;
use binlogz_testkit::{Tool, require_tool};
use serde_json::Value;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, Running, url};

const PATIENCE: Duration = Duration::from_secs(90);

const ACCOUNT: &str = "\
CREATE USER maxwell@'%' IDENTIFIED BY 'secret';
GRANT SELECT ON shop.* TO maxwell@'%';
GRANT REPLICATION SLAVE, REPLICATION CLIENT, RELOAD, SHOW DATABASES ON *.* TO maxwell@'%';
GRANT ALL ON maxwell.* TO maxwell@'%';
CREATE DATABASE shop;
CREATE TABLE shop.t (id INT UNSIGNED PRIMARY KEY, word VARCHAR(20), size ENUM('small', 'large'));
CREATE TABLE shop.wide (a INT PRIMARY KEY, b VARCHAR(3), c VARCHAR(3), d VARCHAR(3), e VARCHAR(3), f VARCHAR(3), g VARCHAR(3), h VARCHAR(3), i VARCHAR(3));
";
const KEYS: &str = "\
reads = \"maxwell-1\"
ignore_tables = [\"maxwell.bootstrap\", \"maxwell.columns\", \"maxwell.databases\", \"maxwell.schemas\", \"maxwell.tables\"]";

/// The program in `scripts/compat/clients/maxwell-own`, built on the first use.
fn program() -> Option<PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/get-tool.sh");
    let built = Command::new(script).arg("compat-maxwell-own").output().unwrap();
    if !built.status.success() {
        skip(String::from_utf8_lossy(&built.stderr).trim());
        return None;
    }
    Some(Path::new(String::from_utf8(built.stdout).unwrap().trim()).join("bin/follow"))
}

/// Follows until this row comes, and is killed when it is dropped; each row as `TYPE TABLE DATA`.
fn rows_until(program: &Path, relay: &Relay, place: &[&str], last: &str) -> (Vec<String>, Running) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new(program);
    command.args([&relay.port.to_string(), "secret"]).args(place);
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
    while rows.last().is_none_or(|row| row != last) {
        let left = deadline.saturating_duration_since(Instant::now());
        let line = lines.recv_timeout(left).unwrap_or_else(|error| {
            let said = std::fs::read_to_string(log.path()).unwrap();
            panic!("{error}: {rows:?}\n{said}\n{}", relay.said())
        });
        let row: Value = serde_json::from_str(&line).unwrap();
        let word = |key: &str| row[key].as_str().unwrap().to_owned();
        rows.push(format!("{} {} {}", word("type"), word("table"), row["data"]));
    }
    (rows, running)
}

#[test]
#[ignore = "Maxwell and its libraries are 50 MB: scripts/soak/maxwell.sh"]
fn maxwell_has_one_host_and_misses_no_row() {
    let mysql = require_tool!(Tool::Mysql);
    let Some(program) = program() else { return };
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-row-metadata", "FULL").start().unwrap();
    source.sql(ACCOUNT).unwrap();
    // It reads the tables as they are now, and stops where it meets their CREATE TABLE again.
    source.flush_binary_logs().unwrap();
    let mut relay = Configuration::of([url(&source)])
        .listen("forward_sql = true\nread_only = \"source\"")
        .account("maxwell", KEYS)
        .start(&folder);
    relay.has_all_of(&source);
    source
        .sql(
            "INSERT INTO shop.t VALUES (1, 'one', 'small'), (4294967295, 'two', 'large');
             INSERT INTO shop.wide (a, b, i) VALUES (1, 'x', 'y');
             UPDATE shop.t SET word = 'zwei' WHERE id > 1; DELETE FROM shop.t WHERE id = 1",
        )
        .unwrap();
    let last = r#"delete t {"id":1,"size":"small","word":"one"}"#;
    let (rows, running) = rows_until(&program, &relay, &["binlog-u.000002:4"], last);
    assert_eq!(
        rows,
        [
            r#"insert t {"id":1,"size":"small","word":"one"}"#,
            r#"insert t {"id":4294967295,"size":"large","word":"two"}"#,
            r#"insert wide {"a":1,"b":"x","c":null,"d":null,"e":null,"f":null,"g":null,"h":null,"i":"y"}"#,
            r#"update t {"id":4294967295,"size":"large","word":"zwei"}"#,
            last,
        ]
    );
    relay.wait_for("Maxwell's position", |_| {
        let kept = source.sql("SELECT binlog_file FROM maxwell.positions").unwrap();
        (kept == "binlog-u.000002\n").then_some(())
    });
    drop(running);
    // Killed, it goes on where its own table says; a row may come twice then, as from a server.
    source
        .sql(
            "ALTER TABLE shop.t ADD price DECIMAL(5,2); INSERT INTO shop.t VALUES (7, 'seven', 'large', 1.5)",
        )
        .unwrap();
    let more = r#"insert t {"id":7,"price":1.5,"size":"large","word":"seven"}"#;
    let (again, _) = rows_until(&program, &relay, &[], more);
    let new = again.iter().filter(|row| !rows.contains(row)).collect::<Vec<_>>();
    assert_eq!(new, [more], "{again:?}");
}
