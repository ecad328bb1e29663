//! Whatever leaves by `--exits` is searched for planted values: every type of column, three policies, logs of MySQL and MariaDB, with
//! names of columns in the log and without; files, standard output and error, and temporary files.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use binlogz_binlog::row::CellContent;
use binlogz_flow::{Input, RowChanges};
use binlogz_testkit::{MariadbSandbox, Result, SandboxServer, Tool, require_tool};

use crate::common::{Folder, Ran};

/// What texts of the values contain; base64 has a text at one of three places.
const PLANTED: [&str; 13] = [
    "planted",
    "cGxhbnRlZ",
    "BsYW50ZW",
    "wbGFudGVk",
    "706c616e746564",
    "987654321",
    "7777777",
    "12345678901234567890",
    "1961-07",
    "1991-07",
    ":34:56.789",
    ":45:56.789",
    "98.765432",
];
/// Values of fewer bytes that tell something are found by accident.
const NEEDLE_SIZE: usize = 6;

/// All types that both servers have; the values are in their order.
const COLUMNS: &str = "id BIGINT PRIMARY KEY, t TINYINT, s SMALLINT, m MEDIUMINT, i INT UNSIGNED, l BIGINT UNSIGNED, n DECIMAL(40,10), f FLOAT,
  d DOUBLE, b BIT(40), y YEAR, dt DATE, tm TIME(6), dtm DATETIME(6), ts TIMESTAMP(6) NULL, c CHAR(40), v VARCHAR(300) COMMENT 'planted',
  bn BINARY(20), vb VARBINARY(40), tx TEXT, bl LONGBLOB, u VARCHAR(40) CHARACTER SET utf16, e ENUM('planted one', 'planted two'),
  st SET('planted a', 'planted b'), j JSON, g GEOMETRY";
const VALUES: &str = "77, 7777, 7777777, 987654321, 9876543210123456789, 12345678901234567890.9876543210, 9876.5, 987654.321987, b'1011101110111011101110111011101110111011',
  1961, '1961-07-23', '123:45:56.789012', '1961-07-23 12:34:56.789012', '1991-07-23 12:34:56.789012', 'planted char', 'planted varchar',
  'planted binary', 'planted varbinary', 'planted text', REPEAT('planted blob ', 30), 'planted utf16', 2, 3,
  '{\"plan\": \"gold\", \"who\": \"planted\", \"n\": 987654321, \"all\": [\"planted\", {\"planted\": 7777777}]}', ST_GeomFromText('POINT(98.7654321 12.3456789)')";

const CHANGES: &str = "INSERT INTO everything SELECT 9876543210 + id, VALUES FROM (SELECT 1 AS id UNION SELECT 2 UNION SELECT 3) numbers;
INSERT INTO everything (id, v) VALUES (9876543219, NULL);
UPDATE everything SET v = CONCAT(v, ' again'), i = i + 1, j = JSON_SET(j, '$.who', 'planted anew') WHERE id = 9876543211;
BEGIN; SAVEPOINT planted; DELETE FROM everything WHERE id = 9876543212; INSERT INTO everything (id, tx) VALUES (9876543213, 'planted') ON DUPLICATE KEY UPDATE tx = 'planted';
COMMIT;
ALTER TABLE everything ADD later VARCHAR(20) DEFAULT 'planted';
UPDATE everything SET later = 'planted' WHERE id = 9876543211;
CREATE TABLE orders (id INT PRIMARY KEY, parent BIGINT, FOREIGN KEY (parent) REFERENCES everything (id));
INSERT INTO orders VALUES (1, 9876543211);
CREATE VIEW v AS SELECT 'planted';
XA START 'planted'; UPDATE everything SET tx = 'planted xa' WHERE id = 9876543211; XA END 'planted'; XA PREPARE 'planted'; XA COMMIT 'planted';
DELETE FROM orders;
DELETE FROM everything;";

/// By none of these may a value leave.
fn policies(json: &str) -> [(&'static str, String); 3] {
    let hash = format!("other_columns = \"hash\"\ncolumns.g = \"leave-out\"\ncolumns.j = {json}");
    let null = "other_columns = \"null\"\ncolumns.id = \"hash\"\ncolumns.parent = \"hash\"".to_owned();
    let mixed = "other_columns = \"leave-out\"\ncolumns.id = \"hash\"\ncolumns.parent = \"hash\"\n\
        columns.dt = \"year\"\ncolumns.dtm = \"year\"\ncolumns.ts = \"year\"\ncolumns.tm = { mask = \"fixed\", value = \"01:02:03\" }\n\
        columns.n = { mask = \"fixed\", value = \"1.5\" }\ncolumns.e = { mask = \"fixed\", value = \"1\" }\ncolumns.b = { mask = \"fixed\", value = 5 }\n\
        columns.c = { mask = \"partial\" }\ncolumns.v = { mask = \"partial\", last = 2 }\ncolumns.u = { mask = \"partial\", first = 1 }\n\
        columns.bl = { mask = \"fixed\", value = \"-\" }\ncolumns.d = { mask = \"fixed\", value = 2.5 }\ncolumns.j = \"null\""
        .to_owned();
    [("hash", hash), ("null", null), ("mixed", mixed)]
}

/// Puts a policy of all tables.
fn put_policy(folder: &Folder, rules: &str) {
    folder.put_secret("key", "a key of the tests, which is no secret");
    folder.put("exits.toml", format!("key_file = \"key\"\n[[table]]\nname = \"shop.*\"\n{rules}\n"));
}

/// A log of the server with the planted values.
fn planted_log(server: &SandboxServer, settings: &str, json_type: &str) -> Result<PathBuf> {
    server.sql(&format!("{settings}; DROP DATABASE IF EXISTS shop; FLUSH BINARY LOGS"))?;
    let columns = COLUMNS.replace("j JSON", &format!("j {json_type}"));
    server
        .sql(&format!("CREATE DATABASE shop; USE shop; CREATE TABLE everything ({columns}) /* planted */"))?;
    server.sql(&format!("USE shop; {}", CHANGES.replace("VALUES FROM", &format!("{VALUES} FROM"))))?;
    server.flush_binary_logs()
}

/// Values of rows, as the log has them, that are long enough to be found.
fn needles(log: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut needles = BTreeSet::new();
    for change in RowChanges::new(Input::Places(Arc::new(log.to_vec()))) {
        let change = change.unwrap();
        let row = change.row();
        for cell in [row.before, row.after].into_iter().flatten().flat_map(|image| image.cells()) {
            if let CellContent::Value(bytes) = cell.content {
                needles.insert(bytes.to_vec());
            }
        }
    }
    needles.retain(|needle| {
        needle.iter().filter(|byte| !matches!(byte, 0 | 0xff | b' ')).count() >= NEEDLE_SIZE
    });
    assert!(needles.len() > 15, "{}", needles.len());
    needles
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
}

#[track_caller]
fn assert_clean(what: &str, bytes: &[u8]) {
    let leak = PLANTED.iter().find(|planted| contains(bytes, planted.as_bytes()));
    assert_eq!(leak, None, "{what}");
}

/// The masked rows that a run tells of.
#[track_caller]
fn assert_masked(what: &str, ran: &Ran) {
    assert!(matches!(ran.code, Some(0 | 1)), "{what}: {}", ran.stderr);
    assert!(
        ran.stderr.contains(" rows masked") && !ran.stderr.contains(" 0 rows masked"),
        "{what}: {}",
        ran.stderr
    );
    assert_clean(what, ran.stderr.as_bytes());
}

/// Searches all that leaves of a log by a policy.
fn search(shown: &str, log: &Path, rules: &str, needles: &BTreeSet<Vec<u8>>) {
    let folder = Folder::new();
    put_policy(&folder, rules);
    for command in ["expand", "compress"] {
        let what = format!("{shown} {command}");
        let args = [command, "--exits", "exits.toml", "--output", command].map(AsRef::as_ref);
        let ran = folder.run(args.into_iter().chain([log.as_os_str()]));
        assert_masked(&what, &ran);
        assert_clean(&what, &ran.stdout);
        assert_clean(&what, &folder.read(command));
        let plain = folder.run(["expand", "--output", &format!("plain-{command}"), command]);
        assert_eq!(plain.code, Some(0), "{what}: {}", plain.stderr);
        let plain = folder.read(&format!("plain-{command}"));
        assert_clean(&what, &plain);
        let leak = needles
            .iter()
            .find(|needle| plain.windows(needle.len()).any(|window| window == needle.as_slice()));
        assert_eq!(leak, None, "{what}");
    }
    for format in ["sql", "jsonl", "debezium", "maxwell", "canal"] {
        let what = format!("{shown} dump {format}");
        let format = format!("--format={format}");
        let args = ["dump", "--no-defaults", "--exits=exits.toml", "-vv", &format].map(AsRef::as_ref);
        let ran = folder.run(args.into_iter().chain([log.as_os_str()]));
        assert_clean(&what, &ran.stdout);
        assert_clean(&what, ran.stderr.as_bytes());
    }
    for format in ["text", "json", "csv"] {
        let what = format!("{shown} rows {format}");
        let args = ["rows", "shop.everything", "--all", "--exits", "exits.toml", "--format", format];
        let ran = folder.run(args.map(AsRef::as_ref).into_iter().chain([log.as_os_str()]));
        assert_masked(&what, &ran);
        assert_clean(&what, &ran.stdout);
        assert!(ran.text().matches("everything").count() > 5, "{what}: {}", ran.text());
    }
    for name in folder.names().iter().filter(|name| !matches!(&***name, "key" | "exits.toml")) {
        assert_clean(&format!("{shown} {name}"), &folder.read(name));
    }
}

#[test]
fn nothing_planted_leaves() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let _ = require_tool!(Tool::Mariadb);
    let mysql = mysql.sandbox().start()?;
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW"), ("binlog-annotate-row-events", "ON")])?;
    let notes = "SET GLOBAL binlog_rows_query_log_events = ON";
    let document = r#"{ mask = "json", paths = { "$.plan" = "keep", "$.who" = "hash" } }"#;
    for (name, server, settings, (json_type, json)) in [
        ("9.7.4 FULL", &*mysql, format!("{notes}, GLOBAL binlog_row_metadata = FULL"), ("JSON", document)),
        (
            "9.7.4 MINIMAL",
            &*mysql,
            format!("{notes}, GLOBAL binlog_row_metadata = MINIMAL"),
            ("JSON", document),
        ),
        // JSON is text there.
        (
            "10.11 FULL",
            &*mariadb,
            "SET GLOBAL binlog_row_metadata = FULL".to_owned(),
            ("LONGTEXT", "\"hash\""),
        ),
        ("10.11", &*mariadb, "SET GLOBAL binlog_row_metadata = NO_LOG".to_owned(), ("LONGTEXT", "\"hash\"")),
    ] {
        let log = planted_log(server, &settings, json_type)?;
        let bytes = fs::read(&log).unwrap();
        assert!(contains(&bytes, b"planted"));
        let needles = needles(&bytes);
        for (policy, rules) in policies(json) {
            search(&format!("{name} {policy}"), &log, &rules, &needles);
        }
    }
    Ok(())
}

/// A transaction that doesn't fit into memory waits in a file without a name, which is read here while it is there.
#[test]
fn temporary_files_have_nothing_planted() -> Result<()> {
    let server = require_tool!(Tool::Mysql).sandbox().start()?;
    server.sql("SET GLOBAL binlog_row_metadata = FULL")?;
    server.sql("DROP DATABASE IF EXISTS shop; CREATE DATABASE shop; USE shop; CREATE TABLE big (id INT PRIMARY KEY, v LONGTEXT); FLUSH BINARY LOGS")?;
    let rows = (1..=12).map(|id| format!("INSERT INTO shop.big VALUES ({id}, REPEAT('planted ', 130000))"));
    server.sql(&format!("BEGIN; {}; COMMIT", rows.collect::<Vec<_>>().join("; ")))?;
    let log = server.flush_binary_logs()?;
    let folder = Folder::new();
    put_policy(&folder, "columns.v = { mask = \"partial\", last = 1 }");
    let args = ["expand", "--exits", "exits.toml", "--output", "masked"].map(AsRef::as_ref);
    let mut command = folder.binlogz(args.into_iter().chain([log.as_os_str()]));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        for bytes in nameless_files(child.id()) {
            most = most.max(bytes.len());
            assert!(!has_planted(&bytes));
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(most > 1 << 20, "{most}");
    let masked = folder.read("masked");
    assert!(masked.len() > 10 << 20 && !has_planted(&masked) && has_planted(&fs::read(log).unwrap()));
    Ok(())
}

/// Whether many bytes have the planted word.
fn has_planted(bytes: &[u8]) -> bool {
    bytes.split(|byte| *byte == b'p').any(|part| part.starts_with(b"lanted"))
}

/// The files without a name that a process has open.
fn nameless_files(process: u32) -> Vec<Vec<u8>> {
    let Ok(open) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    let nameless = open.flatten().map(|entry| entry.path()).filter(|path| {
        fs::read_link(path).is_ok_and(|target| target.to_string_lossy().ends_with(" (deleted)"))
    });
    let mut all = Vec::new();
    for path in nameless {
        let mut bytes = Vec::new();
        if File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).is_ok() {
            all.push(bytes);
        }
    }
    all
}
