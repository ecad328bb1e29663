//! `dump -R` of MariaDB's logs: exactly what its files hold, whatever the server would leave out for clients that don't know its
//! events, and decrypted where the files are encrypted.

use std::fs;
use std::path::Path;

use binlogz_testkit::{MariadbSandbox, SandboxServer, Tool, require_tool};

use crate::common::{Folder, Ran};
use crate::remote::{ours, run, sent};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Row events with the statements that made them, one statement large enough to be compressed, two domains.
const WORK: &str = "\
CREATE DATABASE shop;
CREATE TABLE shop.item (id INT PRIMARY KEY, v TEXT);
INSERT INTO shop.item VALUES (1, 'a'), (2, REPEAT('b', 900));
SET gtid_domain_id = 7;
UPDATE shop.item SET v = 'c';
FLUSH BINARY LOGS;
DELETE FROM shop.item WHERE id = 1;
FLUSH BINARY LOGS";

fn name_of(log: &Path) -> String {
    log.file_name().unwrap().to_string_lossy().into_owned()
}

/// The offsets at which events begin, as either program prints them.
fn offsets(text: &str) -> Vec<u64> {
    let mut all: Vec<u64> =
        text.lines().filter_map(|line| line.strip_prefix("# at ")?.parse().ok()).collect();
    all.sort_unstable();
    all
}

/// Position and type of each line.
fn places(lines: &str) -> Vec<(u64, String)> {
    let place = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        (line["position"].as_u64().unwrap(), line["type"].as_str().unwrap().to_owned())
    };
    lines.lines().map(place).collect()
}

/// JSON lines of the log as the server sends it, and of the file of this name in the folder.
fn both(folder: &Folder, server: &SandboxServer, name: &str, more: &[&str]) -> (Ran, Ran) {
    let json = [&["--format=jsonl"], more].concat();
    let sent = run(ours(folder, server, &[json.as_slice(), &["-R", name]].concat()));
    sent.is_done();
    (sent, run(ours(folder, server, &[json.as_slice(), &[name]].concat())))
}

#[test]
fn a_log_that_mariadb_sends_is_its_file() -> Outcome {
    for (tool, compressed) in [(Tool::Mariadb, "ON"), (Tool::Mariadb114, "OFF")] {
        let installed = require_tool!(tool);
        let options = [
            ("binlog-format", "ROW"),
            ("binlog-checksum", "CRC32"),
            ("log-bin-compress", compressed),
            ("log-bin-compress-min-len", "10"),
        ];
        let server = MariadbSandbox::start_version(tool, &options)?;
        server.sql(WORK)?;
        // The server goes on writing to the last one, though nobody changes anything.
        let mut logs = server.binlogs()?;
        logs.pop();
        for log in logs {
            let (name, folder) = (name_of(&log), Folder::new());
            let ran = run(ours(&folder, &server, &["--raw", "-R", &name]));
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
            assert!(folder.read(&name) == sent(&log), "{tool:?} {compressed} {name}");
            let (sent, file) = both(&folder, &server, &name, &[]);
            assert_eq!(sent.text(), file.text(), "{tool:?} {compressed} {name}");
            // From the first event after the file's begin.
            let begin = sent.text().lines().find(|line| line.contains("\"type\":\"gtid\"")).map(|line| {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                format!("--start-position={}", line["position"])
            });
            let Some(begin) = begin else { continue };
            let (sent, file) = both(&folder, &server, &name, &[&begin]);
            // The first line of what is sent is the format description.
            assert!(sent.text().lines().skip(1).eq(file.text().lines()), "{}\n{}", sent.text(), file.text());
            if tool == Tool::Mariadb {
                let port = format!("-P{}", server.port());
                let theirs = installed
                    .command("mariadb-binlog")
                    .args(["--no-defaults", "-R", "-h127.0.0.1", "-urepl", &port, &name])
                    .env("MYSQL_PWD", "repl")
                    .output()?;
                let ours = run(ours(&folder, &server, &["-R", &name]));
                let theirs = String::from_utf8_lossy(&theirs.stdout);
                assert_eq!(offsets(ours.text()), offsets(&theirs), "{compressed} {name}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_log_that_mariadb_encrypts_is_sent_decrypted() -> Outcome {
    require_tool!(Tool::Mariadb);
    let folder = Folder::new();
    let keys = folder.put("keys", format!("1;{}\n", "5a".repeat(32)));
    let options = [
        ("binlog-format", "ROW"),
        ("plugin-load-add", "file_key_management"),
        ("file-key-management-filename", keys.to_str().unwrap()),
        ("encrypt-binlog", "ON"),
    ];
    let server = MariadbSandbox::start(&options)?;
    server.sql(WORK)?;
    let log = server.binlogs()?.into_iter().next().ok_or("no log")?;
    let name = name_of(&log);

    // The file can't be read, and is not taken for one that can.
    let encrypted = folder.put("encrypted.000001", fs::read(&log)?);
    let ran = folder.run(["verify", "encrypted.000001"]);
    let line = "binlogz: encrypted.000001 at 256: MariaDB encrypted the log from here on, expected plain events: its server \
                sends them decrypted (dump -R, dump -R --raw)\n";
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(2), line));
    for command in [&["events"][..], &["stats"], &["rows", "shop.item"], &["compress", "--output=out"]] {
        let ran = folder.run(command.iter().chain(&["encrypted.000001"]));
        let said = ran.stderr.contains(" at 256: MariaDB encrypted the log from here on");
        assert_eq!((ran.code, said), (Some(2), true), "{command:?}: {}", ran.stderr);
    }
    fs::remove_file(encrypted)?;

    let ran = run(ours(&folder, &server, &["--raw", "-R", &name]));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(folder.read(&name).len() as u64, fs::metadata(&log)?.len());
    folder.run(["verify", &name]).is_done();
    let (sent, file) = both(&folder, &server, &name, &[]);
    assert_eq!(sent.text(), file.text());
    assert!(file.text().contains("UPDATE shop.item SET v = 'c'"), "{}", file.text());
    // Before the first event asked for, the server sends that of the file's begin once more.
    let listed = server.sql(&format!("SHOW BINLOG EVENTS IN '{name}'"))?;
    for position in listed.lines().filter(|line| line.contains("\tGtid\t")) {
        let begin = format!("--start-position={}", position.split('\t').nth(1).unwrap());
        let (sent, file) = both(&folder, &server, &name, &[&begin]);
        // The file's DDL before it tells names of columns, too.
        assert_eq!(places(sent.text()).split_off(1), places(file.text()), "{begin}");
    }
    Ok(())
}

/// MariaDB has no transactions by MySQL's GTIDs: that is said before it is asked for them.
#[test]
fn transactions_by_mysqls_gtids_are_not_asked_for() -> Outcome {
    require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[])?;
    let folder = Folder::new();
    let by_gtids = ["--read-from-remote-source=BINLOG-DUMP-GTIDS", "binlog.000001"];
    let ran = run(ours(&folder, &server, &by_gtids));
    let why =
        "is asked for transactions by MySQL's GTIDs, which MariaDB doesn't have: ask for a log by its name\n";
    assert!(ran.code == Some(1) && ran.stderr.ends_with(why), "{:?} {}", ran.code, ran.stderr);
    Ok(())
}
