//! Replicas older than 8.0 that follow the relay: MySQL 5.6 by GTID and by position, through restarts of either side; and
//! the collations that they don't know.

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, client, reserved_port, url};
use crate::end_to_end::COMMON;
use binlogz_testkit::workload::sysbench;
use binlogz_testkit::{
    MariadbSandbox, Mysql56Sandbox, MysqlSandbox, SandboxServer, Tool, require_tool, setting,
};

const MORE: &str =
    "INSERT INTO shop.orders (customer, note) SELECT 'more', REPEAT(id, 50) FROM shop.orders LIMIT 3";

/// Every row of a table as a line.
fn rows(server: &SandboxServer) -> String {
    server.sql("SELECT id, customer, SHA2(note, 256), paid FROM shop.orders ORDER BY id").unwrap()
}

/// Points 5.6 at the relay; `start` says from where.
pub(crate) fn follow(replica: &Mysql56Sandbox, relay: &Relay, start: &str) {
    let user = if start.contains("MASTER_USER") { "" } else { "MASTER_USER='reader', " };
    replica
        .sql(&format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_PASSWORD='secret', \
             MASTER_CONNECT_RETRY=1, {user}{start}; START SLAVE",
            relay.port
        ))
        .unwrap();
}

/// Replicas of 5.6 that follow the relay from its beginning: by GTID, and by position.
pub(crate) fn both_follow(relay: &Relay) -> [Mysql56Sandbox; 2] {
    ["MASTER_AUTO_POSITION=1", "MASTER_LOG_FILE='binlog-u.000001', MASTER_LOG_POS=4"].map(|start| {
        let replica = Mysql56Sandbox::start(&[]).unwrap();
        follow(&replica, relay, start);
        replica
    })
}

/// A configuration of this source, whose old replicas log in as `reader`.
pub(crate) fn for_old_replicas(source: &MysqlSandbox) -> Configuration {
    Configuration::of([url(source)]).account("reader", "form = \"uncompressed\"")
}

#[track_caller]
fn has_all(replica: &Mysql56Sandbox, source: &MysqlSandbox, relay: &mut Relay) {
    let all = source.gtid_executed().unwrap();
    let probe = format!("SELECT GTID_SUBSET('{all}', @@GLOBAL.gtid_executed)");
    // It tries to connect again until the relay is back.
    relay.wait_for("transactions in MySQL 5.6", |_| (replica.sql(&probe).unwrap() == "1\n").then_some(()));
    assert_eq!(rows(replica), rows(source));
}

#[test]
fn mysql_5_6_follows_by_gtid_and_by_position_through_restarts_of_either_side() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).readable_by_mariadb().start().unwrap();
    source.sql(COMMON).unwrap();
    let configuration = for_old_replicas(&source).ports(reserved_port(), reserved_port());
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);

    let [mut by_gtid, mut by_position] = both_follow(&relay);
    for replica in [&by_gtid, &by_position] {
        has_all(replica, &source, &mut relay);
        // It knows a file's name from here on, and asks by GTID with as many NULs.
        replica.sql("STOP SLAVE; START SLAVE").unwrap();
    }
    source.sql(MORE).unwrap();
    source.flush_binary_logs().unwrap();
    source.sql(MORE).unwrap();
    for replica in [&by_gtid, &by_position] {
        has_all(replica, &source, &mut relay);
    }

    relay.kill();
    source.sql(MORE).unwrap();
    let mut relay = configuration.start(&folder);
    for replica in [&by_gtid, &by_position] {
        has_all(replica, &source, &mut relay);
    }

    for replica in [&mut by_gtid, &mut by_position] {
        replica.kill();
        replica.start().unwrap();
    }
    source.sql(MORE).unwrap();
    for replica in [&by_gtid, &by_position] {
        replica.sql("START SLAVE").unwrap();
        has_all(replica, &source, &mut relay);
    }
}

/// Statements that sessions of 8.0 and later write without thinking of collations, and some that do.
pub(crate) const COLLATIONS: &str = "\
CREATE DATABASE words COLLATE utf8mb4_0900_ai_ci;
USE words;
CREATE TABLE plain (id INT PRIMARY KEY, word VARCHAR(20));
CREATE TABLE named (id INT PRIMARY KEY, a VARCHAR(20) COLLATE utf8mb4_0900_as_cs COMMENT 'not COLLATE utf8mb4_0900_bin',
    b VARCHAR(40) CHARACTER SET utf8mb4 COLLATE 'utf8mb4_hr_0900_ai_ci', KEY (a))
    DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci /*!80016 COMMENT 'COLLATE x' */;
CREATE TABLE small (id INT PRIMARY KEY, a VARCHAR(20) COLLATE utf8mb3_bin) CHARACTER SET utf8mb3;
INSERT INTO plain VALUES (1, 'straße'), (2, '😀'), (3, 'Ярослав');
INSERT INTO named VALUES (1, 'a', 'đ'), (2, 'A ', '😀'), (3, NULL, 'COLLATE utf8mb4_0900_bin');
INSERT INTO small VALUES (1, 'ä');
SET SESSION binlog_format = STATEMENT;
SET @word = 'from a variable';
INSERT INTO plain VALUES (4, @word);
UPDATE named SET a = 'found' WHERE b = _utf8mb4'Đ' COLLATE utf8mb4_hr_0900_ai_ci;
SET SESSION binlog_format = ROW;
ALTER TABLE plain MODIFY word VARCHAR(30) COLLATE utf8mb4_0900_bin, ADD KEY (word);
UPDATE plain SET word = CONCAT(word, '!');
";
pub(crate) const WORDS: &str = "SELECT id, HEX(word) FROM words.plain ORDER BY id; SELECT id, HEX(a), HEX(b) FROM words.named \
                     ORDER BY id; SELECT id, HEX(a) FROM words.small ORDER BY id";

#[test]
fn replicas_of_before_8_0_follow_sessions_with_its_collations() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source.sql(COLLATIONS).unwrap();
    let mut relay = for_old_replicas(&source).account("as_it_is", "reads = \"other\"").start(&folder);
    relay.has_all_of(&source);
    let expected = source.sql(WORDS).unwrap();

    let by_gtid = Mysql56Sandbox::start(&[]).unwrap();
    let by_position = Mysql56Sandbox::start(&[]).unwrap();
    follow(&by_gtid, &relay, "MASTER_USER='as_it_is', MASTER_AUTO_POSITION=1");
    let all = source.gtid_executed().unwrap();
    let stopped = by_gtid.wait_for_gtids(&all).unwrap_err().to_string();
    assert!(stopped.contains("#255"), "{stopped}");
    by_gtid.sql("STOP SLAVE; RESET SLAVE ALL").unwrap();

    follow(&by_gtid, &relay, "MASTER_AUTO_POSITION=1");
    follow(&by_position, &relay, "MASTER_LOG_FILE='binlog-u.000001', MASTER_LOG_POS=4");
    for replica in [&by_gtid, &by_position] {
        replica.wait_for_gtids(&all).unwrap_or_else(|error| panic!("{error}\n{}", relay.said()));
        assert_eq!(replica.sql(WORDS).unwrap(), expected);
    }
    let collations = "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'words' AND \
                      COLLATION_NAME IS NOT NULL ORDER BY TABLE_NAME, COLUMN_NAME";
    assert_eq!(
        by_gtid.sql(collations).unwrap(),
        "a\tutf8mb4_bin\nb\tutf8mb4_croatian_ci\nword\tutf8mb4_bin\na\tutf8_bin\n"
    );

    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW")]).unwrap();
    mariadb
        .sql(&format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='reader', \
             MASTER_PASSWORD='secret', MASTER_USE_GTID=no, MASTER_LOG_FILE='binlog-u.000001', MASTER_LOG_POS=4; \
             START SLAVE",
            relay.port
        ))
        .unwrap();
    relay
        .wait_for("rows in MariaDB", |_| mariadb.sql(WORDS).is_ok_and(|rows| rows == expected).then_some(()));

    // A name that may be part of a text: that can't be told in this character set.
    source.sql("SET NAMES gbk; CREATE TABLE words.uncertain (a TEXT COLLATE utf8mb4_0900_bin)").unwrap();
    let all = source.gtid_executed().unwrap();
    let refused = by_gtid.wait_for_gtids(&all).unwrap_err().to_string();
    assert!(refused.contains("1236") && refused.contains("where it names utf8mb4_0900_bin"), "{refused}");
}

/// An application of today with 8.0's default collation, as far as 5.6 can apply it: tables, changes, DDL between them.
const SHOP: &str = "\
CREATE DATABASE shop COLLATE utf8mb4_0900_ai_ci;
USE shop;
CREATE TABLE customers (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(60), mail VARCHAR(80) COLLATE utf8mb4_0900_as_cs,
    since DATETIME(6), points DECIMAL(12, 3), KEY (name)) COLLATE=utf8mb4_0900_ai_ci;
CREATE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, customer INT, state ENUM('new', 'paid', 'sent'), note TEXT,
    picture BLOB, weight DOUBLE, at TIMESTAMP NULL, FOREIGN KEY (customer) REFERENCES customers (id)) ENGINE=InnoDB;
INSERT INTO customers (name, mail, since, points) VALUES ('Ярослав', 'y@x', '2026-01-02 03:04:05.678901', 1.5),
    ('straße', 'S@x', NULL, -7), ('😀 smith', 's@x', '1999-12-31 23:59:59', NULL);
INSERT INTO orders (customer, state, note, picture, weight, at) SELECT c.id, 1 + c.id % 3, REPEAT(c.name, d.id * 30),
    UNHEX(SHA2(d.mail, 256)), c.id / 7, '2026-11-22 01:02:03' FROM customers c, customers d;
ALTER TABLE orders ADD COLUMN country CHAR(2) NOT NULL DEFAULT 'de' COLLATE utf8mb4_0900_bin, ADD KEY (state, country);
UPDATE orders SET country = 'fr', note = CONCAT(note, 'é') WHERE id % 2 = 0;
ALTER TABLE customers MODIFY name VARCHAR(100) COLLATE utf8mb4_de_pb_0900_ai_ci, DROP KEY name, ADD UNIQUE KEY (mail);
CREATE TABLE archived LIKE orders;
INSERT INTO archived SELECT * FROM orders WHERE state = 'sent';
BEGIN;
DELETE FROM orders WHERE state = 'sent';
UPDATE customers SET points = points * 2;
COMMIT;
CREATE TABLE scratch (id INT PRIMARY KEY, a VARCHAR(10));
INSERT INTO scratch VALUES (1, 'x');
RENAME TABLE scratch TO rubbish;
TRUNCATE TABLE rubbish;
INSERT INTO rubbish VALUES (2, 'y');
CREATE VIEW paid AS SELECT id, note FROM orders WHERE state = 'paid';
DROP VIEW paid;
ALTER DATABASE shop COLLATE utf8mb4_0900_as_ci;
CREATE TABLE late (id INT PRIMARY KEY, a VARCHAR(20));
INSERT INTO late VALUES (1, 'ß'), (2, 'ss');
";
/// Statements that 5.6 does not know: it can't parse them, and no filter of its own keeps it from trying.
const NEWER: &str = "\
CREATE DATABASE newer;
USE newer;
CREATE TABLE items (id INT PRIMARY KEY AUTO_INCREMENT, price DECIMAL(10, 2), number INT,
    total DECIMAL(12, 2) GENERATED ALWAYS AS (price * number) STORED,
    shown VARCHAR(40) GENERATED ALWAYS AS (CONCAT(number, ' at ', price)) VIRTUAL, KEY (total));
INSERT INTO items (price, number) VALUES (1.25, 3), (9.99, 1), (0.10, 70);
UPDATE items SET number = number + 1 WHERE id > 1;
DELETE FROM items WHERE id = 1;
ALTER TABLE items ADD COLUMN half DECIMAL(12, 3) AS (total / 2) STORED;
INSERT INTO items (price, number) VALUES (3.50, 2);
CREATE TABLE done (id INT PRIMARY KEY);
";
/// Follows the relay by position, from the beginning.
pub(crate) fn mariadb_follows(version: Tool, relay: &Relay) -> MariadbSandbox {
    let replica = MariadbSandbox::start_version(version, &[("binlog-format", "ROW")]).unwrap();
    let tls = if version == Tool::Mariadb { "" } else { "MASTER_SSL=0, MASTER_SSL_VERIFY_SERVER_CERT=0, " };
    replica
        .sql(&format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='reader', MASTER_CONNECT_RETRY=1, {tls}\
             MASTER_PASSWORD='secret', MASTER_USE_GTID=no, MASTER_LOG_FILE='binlog-u.000001', MASTER_LOG_POS=4; \
             START SLAVE",
            relay.port
        ))
        .unwrap();
    replica
}

#[test]
fn older_replicas_have_the_same_tables_after_a_workload_with_the_collations_of_8_0() {
    let mysql = require_tool!(Tool::Mysql);
    for tool in [Tool::Mariadb, Tool::Mariadb114, Tool::Mysql56, Tool::Sysbench] {
        require_tool!(tool);
    }
    let events = format!("--events={}", setting("OLD_REPLICAS_EVENTS", 100));
    let rows = format!("--table-size={}", setting("OLD_REPLICAS_ROWS", 300));
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    let mut relay =
        Configuration::of([url(&source)]).account("reader", "older_collations = true").start(&folder);
    let mysql_5_6 = Mysql56Sandbox::start(&[]).unwrap();
    follow(&mysql_5_6, &relay, "MASTER_AUTO_POSITION=1");
    source.sql("CREATE DATABASE sbtest").unwrap();
    let load = ["oltp_read_write", "--tables=2", &rows];
    sysbench(&source, &[&load[..], &["prepare"]].concat()).unwrap();
    relay.has_all_of(&source);
    let mariadbs = [Tool::Mariadb, Tool::Mariadb114].map(|version| mariadb_follows(version, &relay));

    source.sql(SHOP).unwrap();
    let run = ["--threads=4", "--time=0", &events, "run"];
    sysbench(&source, &[&load[..], &run].concat()).unwrap();
    source.flush_binary_logs().unwrap();
    sysbench(&source, &[&["oltp_write_only"], &load[1..], &run].concat()).unwrap();
    source.sql("CREATE TABLE shop.done (id INT PRIMARY KEY)").unwrap();

    let replicas: [(&str, &SandboxServer); 3] =
        [("MySQL 5.6", &mysql_5_6), ("MariaDB 10.11", &mariadbs[0]), ("MariaDB 11.4", &mariadbs[1])];
    for (name, replica) in replicas {
        applies(&mut relay, name, replica, "shop.done");
        // With NULLs, MariaDB's CHECKSUM TABLE has another result than MySQL's for the same rows.
        let checked = if name == "MySQL 5.6" { &["sbtest", "shop"][..] } else { &["sbtest"] };
        for schema in checked {
            let expected = source.checksum_tables(schema).unwrap();
            assert!(expected.len() >= 2, "{schema}: {expected:?}");
            assert_eq!(replica.checksum_tables(schema).unwrap(), expected, "{schema} in {name}");
        }
        assert_eq!(row_hashes(replica, "shop"), row_hashes(&source, "shop"), "{name}");
    }
    mysql_5_6.sql("STOP SLAVE").unwrap();
    source.sql(NEWER).unwrap();
    let items = "SELECT * FROM newer.items ORDER BY id";
    for (name, replica) in replicas.into_iter().skip(1) {
        applies(&mut relay, name, replica, "newer.done");
        assert_eq!(replica.sql(items).unwrap(), source.sql(items).unwrap(), "{name}");
    }
    println!("{} is equal in all three", source.gtid_executed().unwrap().trim());
}

/// Each table of a schema, how many rows it has, and a hash over all of them, made by the server.
fn row_hashes(server: &SandboxServer, schema: &str) -> Vec<String> {
    let tables = server.sql(&format!(
        "SELECT TABLE_NAME, GROUP_CONCAT(CONCAT('IFNULL(`', COLUMN_NAME, '`, 0x00)') ORDER BY ORDINAL_POSITION) FROM \
         information_schema.COLUMNS WHERE TABLE_SCHEMA = '{schema}' GROUP BY TABLE_NAME ORDER BY TABLE_NAME"
    ));
    let hash = |line: &str| {
        let (table, columns) = line.split_once('\t').unwrap();
        let rows =
            format!("SELECT COUNT(*), BIT_XOR(CRC32(CONCAT_WS('|', {columns}))) FROM {schema}.{table}");
        format!("{table} {}", server.sql(&rows).unwrap())
    };
    tables.unwrap().lines().map(hash).collect()
}

/// Waits until a replica has this table.
fn applies(relay: &mut Relay, name: &str, replica: &SandboxServer, table: &str) {
    relay.wait_for(name, |_| {
        let status = replica.sql("SHOW SLAVE STATUS").unwrap();
        let stopped = status.split('\t').find(|cell| cell.contains("Error '"));
        assert_eq!(stopped, None, "{name}");
        replica.sql(&format!("SELECT * FROM {table}")).is_ok().then_some(())
    });
}

#[test]
fn clients_ask_for_more_than_statements() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let mut relay = Configuration::of([url(&source)]).account("reader", "").start(&folder);
    relay.has_all_of(&source);
    let output = client(mysql, "mysqladmin", relay.port, "reader", "secret").arg("status").output().unwrap();
    let [status, trouble] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert!(status.starts_with("Uptime: ") && status.contains("Threads: 1 "), "{status}{trouble}");
}

/// Since 8.0.21 one transaction, whose CREATE TABLE has an option that older servers don't know.
const OF_A_SELECT: &str = "\
CREATE DATABASE a;
CREATE TABLE a.t (id INT PRIMARY KEY, word VARCHAR(30));
INSERT INTO a.t VALUES (1, 'x'), (2, 'START TRANSACTION');
CREATE TABLE a.u AS SELECT * FROM a.t;
CREATE TABLE a.v (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2 AS SELECT id, word FROM a.t;
CREATE TABLE a.w AS SELECT * FROM a.t WHERE FALSE;
INSERT INTO a.u VALUES (3, 'z');
CREATE TABLE a.done (id INT PRIMARY KEY);
";

#[test]
fn a_table_made_of_a_select_arrives_or_stops_the_replica_with_the_reason() {
    let mysql = require_tool!(Tool::Mysql);
    for tool in [Tool::Mariadb, Tool::Mariadb114, Tool::Mysql56] {
        require_tool!(tool);
    }
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source.sql(OF_A_SELECT).unwrap();
    let mut relay =
        Configuration::of([url(&source)]).account("reader", "older_collations = true").start(&folder);
    relay.has_all_of(&source);
    for (name, version) in [("MariaDB 10.11", Tool::Mariadb), ("MariaDB 11.4", Tool::Mariadb114)] {
        let replica = mariadb_follows(version, &relay);
        applies(&mut relay, name, &replica, "a.done");
        for table in ["a.u", "a.v", "a.w"] {
            let rows = format!("SELECT * FROM {table} ORDER BY id");
            assert_eq!(replica.sql(&rows).unwrap(), source.sql(&rows).unwrap(), "{table} in {name}");
        }
    }
    // It would refuse a CREATE TABLE within a transaction (error 1778).
    let mysql_5_6 = Mysql56Sandbox::start(&[]).unwrap();
    follow(&mysql_5_6, &relay, "MASTER_AUTO_POSITION=1");
    let stopped = mysql_5_6.wait_for_gtids(&source.gtid_executed().unwrap()).unwrap_err().to_string();
    assert!(stopped.contains("1236") && stopped.contains("MySQL before that can't apply"), "{stopped}");
}

#[test]
fn a_column_of_json_stops_a_replica_that_has_none() {
    let mysql = require_tool!(Tool::Mysql);
    for tool in [Tool::Mariadb, Tool::Mariadb114, Tool::Mysql56] {
        require_tool!(tool);
    }
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source
        .sql(
            "CREATE DATABASE a; CREATE TABLE a.j (id INT PRIMARY KEY, doc JSON);
             INSERT INTO a.j VALUES (1, '{\"a\": [1, 2.5, null, \"x\"]}');
             UPDATE a.j SET doc = JSON_SET(doc, '$.a[0]', 7)",
        )
        .unwrap();
    let mut relay =
        Configuration::of([url(&source)]).account("reader", "older_collations = true").start(&folder);
    relay.has_all_of(&source);
    let mysql_5_6 = Mysql56Sandbox::start(&[]).unwrap();
    follow(&mysql_5_6, &relay, "MASTER_AUTO_POSITION=1");
    let mariadbs = [Tool::Mariadb, Tool::Mariadb114].map(|version| mariadb_follows(version, &relay));
    // 5.6 says so itself; MariaDB would stop and say nothing.
    let replicas: [(&SandboxServer, &str, &str); 3] = [
        (&mysql_5_6, "Last_SQL_Error", "near 'JSON)'"),
        (&mariadbs[0], "Last_IO_Error", "a.j has a column of type JSON"),
        (&mariadbs[1], "Last_IO_Error", "a.j has a column of type JSON"),
    ];
    for (replica, place, reason) in replicas {
        let error = relay.wait_for("reason", |_| {
            let status = replica.replica_status().unwrap();
            status.get(place).filter(|error| !error.is_empty()).cloned()
        });
        assert!(error.contains(reason), "{error}");
    }
}

/// Statements of a source: an XA transaction that is rolled back, one that is committed, a plain one.
const XA: &str = include_str!("xa.sql");

#[test]
fn what_an_xa_transaction_rolled_back_never_reaches_a_replica_that_would_keep_it() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    let mut relay = Configuration::of([url(&source)])
        .account("reader", "older_collations = true")
        .account("new", "")
        .start(&folder);
    let mysql_5_6 = Mysql56Sandbox::start(&[]).unwrap();
    follow(&mysql_5_6, &relay, "MASTER_AUTO_POSITION=1");
    source
        .sql(
            "CREATE DATABASE okdb; CREATE TABLE okdb.t (id INT PRIMARY KEY, note VARCHAR(20));
             INSERT INTO okdb.t VALUES (6000, 'before')",
        )
        .unwrap();
    relay.has_all_of(&source);
    let mariadb = mariadb_follows(Tool::Mariadb, &relay);
    let rows = "SELECT id FROM okdb.t ORDER BY id";
    let old: [(&str, &SandboxServer); 2] = [("MariaDB", &mariadb), ("MySQL 5.6", &mysql_5_6)];
    for (kind, server) in old {
        relay.wait_for(&format!("a row in {kind}"), |_| {
            server.sql(rows).is_ok_and(|rows| rows == "6000\n").then_some(())
        });
    }
    source.sql(XA).unwrap();
    assert_eq!(source.sql(rows).unwrap(), "6000\n6002\n6003\n");
    for (kind, server) in old {
        relay.wait_for(&format!("the last row in {kind}"), |_| {
            server.sql(rows).is_ok_and(|rows| rows.ends_with("6003\n")).then_some(())
        });
        assert_eq!(server.sql(rows).unwrap(), "6000\n6002\n6003\n", "{kind}");
    }
    // Those that know XA get it as it is.
    let replica = mysql.sandbox().start().unwrap();
    relay.replicates_to(&replica, "new", "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1");
    relay.brings(&source, &replica, &["okdb"]);
}
