//! `--exits`: masked logs of a real server are applied by another one with keys and joins intact, and no planted value is in any
//! byte that leaves, whatever the format, the row metadata and the row images.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};

/// What every value that may not leave contains; dates and numbers have texts of their own.
const PLANTED: [&str; 4] = ["planted", "1961-07", "987654321", "706c616e746564"];

const POLICY: &str = r#"
key_file = "key"
[[table]]
name = "shop.customers"
[table.columns]
id = "hash"
email = "hash"
name = { mask = "partial", first = 1 }
born = "year"
kind = "hash"
doc = { mask = "json", paths = { "$.plan" = "keep", "$.who" = "hash" } }
secret = "null"
n = "hash"
place = { mask = "fixed", value = "nowhere" }
[[table]]
name = "shop.orders"
[table.columns]
customer = "hash"
email = "hash"
note = "null"
[[table]]
name = "shop.audit*"
leave_out = true
"#;

const TABLES: &str = "CREATE DATABASE shop; USE shop;
CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, email VARCHAR(100) NOT NULL COMMENT 'planted', name VARCHAR(40), born DATE,
  kind ENUM('planted one', 'other'), doc JSON, secret TEXT, n DECIMAL(15,3) DEFAULT 0, place VARCHAR(20) CHARACTER SET utf16, plain INT DEFAULT 7,
  UNIQUE KEY (email)) /* planted */;
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer INT, email VARCHAR(100), note VARCHAR(50), total INT,
  FOREIGN KEY (customer) REFERENCES customers (id), FOREIGN KEY (email) REFERENCES customers (email));
CREATE TABLE audit_log (id INT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(200));
CREATE TRIGGER after_insert AFTER INSERT ON customers FOR EACH ROW INSERT INTO audit_log (what) VALUES (CONCAT('planted ', NEW.email));
CREATE VIEW v AS SELECT 'planted' AS word;
CREATE USER planted IDENTIFIED BY 'planted';
";

const CHANGES: &str = "USE shop;
INSERT INTO customers (email, name, born, kind, doc, secret, n, place) VALUES
  ('planted1@x', 'planted', '1961-07-23', 1, '{\"plan\": \"gold\", \"who\": \"planted\", \"age\": [\"planted\"]}', 'planted', 987654321.125, 'planted'),
  ('planted2@x', 'planted', '1961-07-24', 2, '{\"plan\": \"tin\", \"who\": \"planted\", \"long\": \"planted planted planted planted planted\"}', 'planted', -987654321.125, 'planted'),
  ('planted3@x', NULL, NULL, NULL, NULL, NULL, 0, NULL);
INSERT INTO orders (customer, email, note, total) SELECT id, email, 'planted', 5 FROM customers;
INSERT INTO orders (customer, email, note, total) SELECT id, email, 'planted', 6 FROM customers;
BEGIN; SAVEPOINT planted; UPDATE customers SET name = 'planted too', secret = 'planted'; ROLLBACK TO planted; COMMIT;
UPDATE customers SET doc = JSON_SET(doc, '$.plan', 'lead', '$.age', 'planted') WHERE id < 3;
UPDATE customers SET name = 'planted again', plain = plain + 1 WHERE email = 'planted1@x';
UPDATE orders SET total = 9 WHERE email = 'planted2@x';
XA START 'planted'; INSERT INTO orders (customer, email, note, total) VALUES (1, 'planted1@x', 'planted', 1); XA END 'planted'; XA PREPARE 'planted';
XA COMMIT 'planted';
ALTER TABLE customers ADD COLUMN later VARCHAR(10) DEFAULT 'kept' AFTER plain;
INSERT INTO customers (email, name, secret) VALUES ('planted4@x', 'planted', 'planted');
DELETE FROM orders WHERE email = 'planted3@x'; DELETE FROM customers WHERE email = 'planted3@x';
DELETE audit_log, orders FROM audit_log JOIN orders ON orders.total = 1 AND audit_log.id = 1;
";

/// How the source logs.
const SETTINGS: [&str; 3] = [
    "SET GLOBAL binlog_row_metadata = MINIMAL, GLOBAL binlog_row_image = FULL, GLOBAL binlog_row_value_options = PARTIAL_JSON",
    "SET GLOBAL binlog_row_metadata = FULL, GLOBAL binlog_row_image = NOBLOB, GLOBAL binlog_row_value_options = '', GLOBAL binlog_transaction_compression = ON",
    "SET GLOBAL binlog_row_metadata = MINIMAL, GLOBAL binlog_row_image = MINIMAL, GLOBAL binlog_rows_query_log_events = ON",
];

fn put_policy(folder: &Folder, text: &str) -> PathBuf {
    folder.put_secret("key", "a key of the tests, which is no secret");
    folder.put("exits.toml", text)
}

/// Writes the masked form of a log.
fn masked(folder: &Folder, command: &str, log: &Path, to: &str) -> Ran {
    folder.run(
        [command, "--exits", "exits.toml", "--force", "--output", to]
            .map(AsRef::as_ref)
            .into_iter()
            .chain([log.as_os_str()]),
    )
}

fn assert_clean(what: &str, bytes: &[u8]) {
    for planted in PLANTED {
        let is_there =
            bytes.windows(planted.len()).any(|window| window.eq_ignore_ascii_case(planted.as_bytes()));
        assert!(!is_there, "{what} has {planted}");
    }
}

/// Applies a log with its GTIDs.
fn apply(server: &MysqlSandbox, log: &Path) -> Result<()> {
    server.sql("RESET BINARY LOGS AND GTIDS")?;
    let options = ["--no-defaults", "--verify-binlog-checksum"].map(AsRef::as_ref);
    let printed = server.installed().run("mysqlbinlog", options.into_iter().chain([log.as_os_str()]))?;
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let script = log.with_extension("sql");
    fs::write(&script, printed.stdout).unwrap();
    let ran = server.client().stdin(File::open(script).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(())
}

/// Facts that masks leave as they are.
const FACTS: &str = "SELECT COUNT(*), COUNT(DISTINCT email), COUNT(DISTINCT id), SUM(plain), COUNT(name), COUNT(DISTINCT n) FROM shop.customers;
SELECT COUNT(*), SUM(total) FROM shop.orders o JOIN shop.customers c ON c.id = o.customer JOIN shop.customers d ON d.email = o.email;
SELECT COUNT(*) FROM shop.customers WHERE doc->>'$.plan' = 'lead'";

#[test]
fn a_masked_log_is_applied_and_holds_no_planted_value() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let (source, target) = (mysql.sandbox().start()?, mysql.sandbox().start()?);
    for settings in SETTINGS {
        let folder = Folder::new();
        put_policy(&folder, POLICY);
        source.sql(&format!("{settings}; DROP DATABASE IF EXISTS shop; DROP USER IF EXISTS planted; RESET BINARY LOGS AND GTIDS"))?;
        source.sql(TABLES)?;
        source.sql(CHANGES)?;
        let log = source.flush_binary_logs()?;
        let source_has = source.sql("SELECT @@global.gtid_executed")?;
        for command in ["expand", "compress"] {
            let ran = masked(&folder, command, &log, "masked");
            println!("{settings} {command}: {}", ran.stderr);
            let documents = ran.stderr.lines().filter(|line| line.starts_with("binlogz: left out, ")).count();
            // Without the whole document before, a difference can't be masked.
            assert_eq!(ran.code, Some(i32::from(documents > 0)), "{}", ran.stderr);
            assert_clean(command, &fs::read(folder.path("masked")).unwrap());
            let plain = folder.run(["expand", "--force", "--output", "plain", "masked"]);
            assert_eq!(plain.code, Some(0), "{}", plain.stderr);
            assert_clean("payloads", &fs::read(folder.path("plain")).unwrap());
            target.sql("DROP DATABASE IF EXISTS shop")?;
            apply(&target, &folder.path("masked"))?;
            assert_eq!(target.sql("SELECT @@global.gtid_executed")?, source_has, "{settings} {command}");
            assert_eq!(target.sql(FACTS)?, source.sql(FACTS)?, "{settings} {command}");
        }
        for format in ["sql", "jsonl", "debezium", "maxwell", "canal"] {
            let format = format!("--format={format}");
            let options = ["dump", "--no-defaults", "--exits=exits.toml", "-vv", &format].map(AsRef::as_ref);
            let ran = folder.run(options.into_iter().chain([log.as_os_str()]));
            println!("{format}: {}", ran.stderr);
            assert_clean(&format, &ran.stdout);
            assert_clean(&format, ran.stderr.as_bytes());
        }
    }
    Ok(())
}
