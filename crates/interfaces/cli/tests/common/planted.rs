//! Planted values of every column type, policies by which none of them may leave, and the search for them.

#![allow(dead_code, reason = "no test program uses all of it")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use binlogz_binlog::row::CellContent;
use binlogz_flow::{Input, RowChanges};
use binlogz_testkit::{Result, SandboxServer};

/// The key of the policies.
pub(crate) const KEY: &str = "a key of the tests, which is no secret";

/// What texts of the values contain; base64 has a text at one of three places.
pub(crate) const PLANTED: [&str; 13] = [
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
pub(crate) fn policies(json: &str) -> [(&'static str, String); 3] {
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

/// Further ones, which look at one class of types each.
pub(crate) fn policies_by_class(json: &str) -> [(&'static str, String); 7] {
    let numbers = ["t", "s", "m", "i", "l", "n", "f", "d", "b", "y"];
    [
        ("left out", with_keys("leave-out", "")),
        (
            "any case",
            with_keys(
                "leave-out",
                &each_of(&["c", "v", "tx", "u"], "{ mask = \"hash\", ignore_case = true }"),
            ),
        ),
        ("numbers", with_keys("null", &each_of(&numbers, "\"hash\""))),
        ("times", with_keys("leave-out", &each_of(&["dt", "tm", "dtm", "ts"], "\"hash\""))),
        ("bytes", with_keys("null", &each_of(&["bn", "vb", "bl"], "\"hash\""))),
        ("members", with_keys("leave-out", &each_of(&["e", "st"], "\"hash\""))),
        ("documents", with_keys("null", &format!("columns.j = {json}"))),
    ]
}

/// Rules by which joins hold, with this mask for columns that they don't name.
fn with_keys(others: &str, columns: &str) -> String {
    format!("other_columns = \"{others}\"\ncolumns.id = \"hash\"\ncolumns.parent = \"hash\"\n{columns}")
}

fn each_of(names: &[&str], mask: &str) -> String {
    names.iter().map(|name| format!("columns.{name} = {mask}\n")).collect()
}

/// A policy of all tables with these rules, which needs [`KEY`] in the file `key` beside it.
pub(crate) fn policy_of_all(rules: &str) -> String {
    format!("key_file = \"key\"\n[[table]]\nname = \"shop.*\"\n{rules}\n")
}

/// A log of the server with the planted values.
pub(crate) fn planted_log(server: &SandboxServer, settings: &str, json_type: &str) -> Result<PathBuf> {
    server.sql(&format!("{settings}; DROP DATABASE IF EXISTS shop; FLUSH BINARY LOGS"))?;
    for statements in planted_statements(json_type) {
        server.sql(&statements)?;
    }
    server.flush_binary_logs()
}

/// What makes a table of every type, and what changes it.
pub(crate) fn planted_statements(json_type: &str) -> [String; 2] {
    let columns = COLUMNS.replace("j JSON", &format!("j {json_type}"));
    [
        format!("CREATE DATABASE shop; USE shop; CREATE TABLE everything ({columns}) /* planted */"),
        format!("USE shop; {}", CHANGES.replace("VALUES FROM", &format!("{VALUES} FROM"))),
    ]
}

/// Values of rows, as the log has them, that are long enough to be found.
pub(crate) fn needles(log: &[u8]) -> BTreeSet<Vec<u8>> {
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

pub(crate) fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
}

#[track_caller]
pub(crate) fn assert_clean(what: &str, bytes: &[u8]) {
    let leak = PLANTED.iter().find(|planted| contains(bytes, planted.as_bytes()));
    assert_eq!(leak, None, "{what}");
}
