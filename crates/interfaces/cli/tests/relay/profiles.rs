//! Profiles of clients, with real servers: what an old replica or MariaDB can't know is left out, translated, or refused before
//! it; and the tables of an account.

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};
use crate::old_replicas::{both_follow, follow, for_old_replicas, mariadb_follows};
use binlogz_testkit::random::Random;
use binlogz_testkit::{Mysql56Sandbox, SandboxServer, Tool, mutate, require_tool};

/// Statements about accounts, as an administrator of today writes them; how many they are.
const ACCOUNTS: &str = "\
CREATE USER u1@'%' IDENTIFIED BY 'x';
GRANT SELECT ON a.* TO u1@'%';
CREATE ROLE r1;
GRANT r1 TO u1@'%';
SET DEFAULT ROLE r1 TO u1@'%';
ALTER USER u1@'%' ACCOUNT LOCK;
SET PASSWORD FOR u1@'%' = 'y';
REVOKE SELECT ON a.* FROM u1@'%';
RENAME USER u1@'%' TO u2@'%';
DROP ROLE r1;
DROP USER u2@'%';
CREATE USER u3;
";
const ACCOUNTS_COUNT: u64 = 12;

#[track_caller]
fn is_running(name: &str, server: &SandboxServer) {
    let status = server.sql("SHOW SLAVE STATUS").unwrap();
    assert!(status.contains("\tYes\tYes\t"), "{name}: {status}");
}

/// Waits until a statement has the same rows at a replica as at the source.
fn has_rows(relay: &mut Relay, source: &SandboxServer, (name, server): (&str, &SandboxServer), rows: &str) {
    let expected = source.sql(rows).unwrap();
    relay.wait_for(&format!("rows in {name}"), |_| {
        let status = server.sql("SHOW SLAVE STATUS").unwrap();
        let trouble = status.split('\t').find(|cell| cell.contains("rror '") || cell.contains("1236"));
        assert_eq!(trouble, None, "{name}");
        server.sql(rows).is_ok_and(|rows| rows == expected).then_some(())
    });
}

#[test]
fn statements_about_accounts_reach_only_replicas_that_can_run_them() {
    let mysql = require_tool!(Tool::Mysql);
    for tool in [Tool::Mariadb, Tool::Mariadb114, Tool::Mysql56] {
        require_tool!(tool);
    }
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source
        .sql("CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (1)")
        .unwrap();
    let mut relay = for_old_replicas(&source).account("new", "").start(&folder);
    relay.has_all_of(&source);
    let [by_gtid, by_position] = both_follow(&relay);
    let mariadbs = [Tool::Mariadb, Tool::Mariadb114].map(|version| mariadb_follows(version, &relay));
    let old: [(&str, &SandboxServer); 4] = [
        ("MySQL 5.6 by GTID", &by_gtid),
        ("MySQL 5.6 by position", &by_position),
        ("MariaDB 10.11", &mariadbs[0]),
        ("MariaDB 11.4", &mariadbs[1]),
    ];
    source.sql(ACCOUNTS).unwrap();
    source.sql("INSERT INTO a.t VALUES (2)").unwrap();
    for replica in old {
        has_rows(&mut relay, &source, replica, "SELECT id FROM a.t ORDER BY id");
        is_running(replica.0, replica.1);
        let accounts = "SELECT COUNT(*) FROM mysql.user WHERE User IN ('u1', 'u2', 'u3', 'r1')";
        assert_eq!(replica.1.sql(accounts).unwrap(), "0\n", "{}", replica.0);
    }
    by_gtid.wait_for_gtids(&source.gtid_executed().unwrap()).unwrap();
    let status = relay.status();
    let told = |key: &str| -> Vec<_> {
        status["replicas"].as_array().unwrap().iter().map(|replica| replica[key].clone()).collect()
    };
    assert_eq!(told("left_out_account_statements"), [ACCOUNTS_COUNT; 4]);
    let mut profiles =
        told("profile").iter().map(|name| name.as_str().unwrap().to_owned()).collect::<Vec<_>>();
    profiles.sort();
    assert_eq!(profiles, ["mariadb-10.2", "mariadb-11.4", "mysql-5.6", "mysql-5.6"]);
    let said = relay.said();
    for profile in ["mysql-5.6", "mariadb-10.2", "mariadb-11.4"] {
        assert!(said.contains(&format!("; profile {profile}")), "{said}");
    }
    let address = format!("--http={}", relay.http);
    let shown = String::from_utf8(folder.run(["relay", "status", &address]).stdout).unwrap();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(", mysql-5.6, uncompressed: "), "{shown}");
    assert!(words.contains(", 12 statements about accounts left out"), "{shown}");

    let replica = mysql.sandbox().start().unwrap();
    relay.replicates_to(&replica, "new", "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1");
    relay.brings(&source, &replica, &["a"]);
    assert_eq!(replica.sql("SELECT COUNT(*) FROM mysql.user WHERE User = 'u3'").unwrap(), "1\n");
}

#[test]
fn a_tagged_gtid_reaches_mariadb_as_one_it_ignores_and_ends_the_dump_of_mysql_before_8_3() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source
        .sql(
            "CREATE DATABASE a; CREATE TABLE a.t (id INT PRIMARY KEY); INSERT INTO a.t VALUES (1);
             SET gtid_next = 'AUTOMATIC:nightly'; INSERT INTO a.t VALUES (2); CREATE TABLE a.u (id INT PRIMARY KEY);
             SET gtid_next = 'AUTOMATIC'; INSERT INTO a.t VALUES (3); INSERT INTO a.u VALUES (4)",
        )
        .unwrap();
    let mut relay = for_old_replicas(&source).start(&folder);
    relay.has_all_of(&source);
    let mysql_5_6 = Mysql56Sandbox::start(&[]).unwrap();
    follow(&mysql_5_6, &relay, "MASTER_AUTO_POSITION=1");
    let mariadb = mariadb_follows(Tool::Mariadb, &relay);
    let rows = "SELECT id FROM a.t ORDER BY id; SELECT id FROM a.u ORDER BY id";
    has_rows(&mut relay, &source, ("MariaDB", &mariadb), rows);
    is_running("MariaDB", &mariadb);
    let told = relay.wait_for("the end of the dump", |_| {
        mysql_5_6.sql("SHOW SLAVE STATUS").ok().filter(|status| status.contains("1236"))
    });
    assert!(told.contains("has a GTID with a tag, which MySQL 5.6 can't read"), "{told}");
    relay.wait_for("what came before it", |_| {
        mysql_5_6.sql("SELECT id FROM a.t ORDER BY id").is_ok_and(|rows| rows == "1\n").then_some(())
    });
}

/// Tables that replicas have, others that they don't; statements that change both kinds, each way round.
const BOTH: &str = "\
CREATE DATABASE shop;
USE shop;
CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, note MEDIUMTEXT);
CREATE TABLE totals (id INT PRIMARY KEY, n INT);
CREATE TABLE secret (id INT PRIMARY KEY AUTO_INCREMENT, word VARCHAR(100));
CREATE TABLE lines_of (id INT PRIMARY KEY AUTO_INCREMENT, parent INT, FOREIGN KEY (parent) REFERENCES orders (id) ON DELETE CASCADE);
CREATE TRIGGER words AFTER INSERT ON orders FOR EACH ROW INSERT INTO shop.secret (word) VALUES (NEW.id);
CREATE TRIGGER sums AFTER UPDATE ON secret FOR EACH ROW INSERT INTO shop.totals VALUES (NEW.id, 1) ON DUPLICATE KEY UPDATE n = n + 1;
SET sql_log_bin = 0;
CREATE DATABASE other;
CREATE TABLE other.docs (id INT PRIMARY KEY AUTO_INCREMENT, doc JSON, picture LONGBLOB);
SET sql_log_bin = 1;
";
const BOTH_ROWS: &str =
    "SELECT id, SHA2(note, 256) FROM shop.orders ORDER BY id; SELECT id, n FROM shop.totals ORDER BY id";

/// A statement over some of these tables.
fn statement(random: &mut Random) -> String {
    let id = 1 + random.below(40);
    match random.below(11) {
        0..3 => {
            format!("INSERT INTO shop.orders (note) VALUES (REPEAT('{id}', {}))", 1 + random.below(3_000))
        }
        3 => format!("INSERT INTO other.docs (doc) VALUES ('{{\"a\": {id}}}'), ('[1, 2]')"),
        4 => format!("UPDATE shop.secret SET word = CONCAT('x', word) WHERE id <= {id}"),
        5 => format!(
            "UPDATE shop.orders o JOIN other.docs d ON o.id = d.id SET o.note = CONCAT(o.note, '+'), \
             d.doc = JSON_SET(d.doc, '$.b', {id}) WHERE o.id <= {id}"
        ),
        6 => format!(
            "UPDATE other.docs d JOIN shop.orders o ON o.id = d.id SET d.picture = REPEAT('p', {id}), o.note = 'y' \
             WHERE o.id > {id}"
        ),
        7 => "INSERT INTO shop.lines_of (parent) SELECT id FROM shop.orders WHERE id % 3 = 0".to_owned(),
        8 => format!("DELETE FROM shop.orders WHERE id = {id}"),
        9 => format!("DELETE o, d FROM shop.orders o JOIN other.docs d ON o.id = d.id WHERE o.id = {id}"),
        _ => {
            format!("BEGIN; DELETE FROM other.docs WHERE id = {id}; UPDATE shop.totals SET n = n + 1; COMMIT")
        }
    }
}

#[test]
fn an_account_gets_the_rows_of_its_tables_through_restarts_of_either_side() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-rows-query-log-events", "ON").start().unwrap();
    source.sql(BOTH).unwrap();
    let tables = "tables = [\"shop.*\"]\nignore_tables = [\"shop.secret\", \"*.lines_*\"]";
    let configuration = Configuration::of([url(&source)])
        .account("reader", tables)
        .account("new", tables)
        .ports(reserved_port(), reserved_port());
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let [mut by_gtid, mut by_position] = both_follow(&relay);
    let mut mariadb = mariadb_follows(Tool::Mariadb, &relay);
    let newest = mysql.sandbox().start().unwrap();
    relay.replicates_to(&newest, "new", "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1");

    let random = &mut Random::new(mutate::seed());
    for round in 0..3 {
        let statements: Vec<_> = (0..80).map(|_| statement(random)).collect();
        source.sql(&format!("USE shop; {}", statements.join(";\n"))).unwrap();
        if round == 1 {
            // Rows that are held, beside rows that are many.
            source
                .sql(
                    "INSERT INTO shop.orders (id, note) VALUES (1000, ''); INSERT INTO other.docs (id) VALUES (1000);
                     UPDATE shop.orders o JOIN other.docs d ON o.id = d.id SET o.note = REPEAT('n', 2000000),
                     d.picture = REPEAT('p', 12000000) WHERE o.id = 1000",
                )
                .unwrap();
            relay.kill();
            relay = configuration.start(&folder);
        }
        if round == 0 {
            source.flush_binary_logs().unwrap();
            for replica in [&mut by_gtid, &mut by_position] {
                replica.kill();
                replica.start().unwrap();
                replica.sql("START SLAVE").unwrap();
            }
            mariadb.kill();
            mariadb.start().unwrap();
            mariadb.sql("START SLAVE").unwrap();
        }
        let old: [(&str, &SandboxServer); 3] =
            [("MySQL 5.6 by GTID", &by_gtid), ("MySQL 5.6 by position", &by_position), ("MariaDB", &mariadb)];
        for replica in old {
            has_rows(&mut relay, &source, replica, BOTH_ROWS);
        }
        newest.wait_for_source(&source).unwrap();
        assert_eq!(newest.sql(BOTH_ROWS).unwrap(), source.sql(BOTH_ROWS).unwrap());
        let all = old.into_iter().chain([("MySQL 9.7", &*newest)]);
        for (name, server) in all {
            let left_out = "SELECT COUNT(*) FROM shop.secret; SELECT COUNT(*) FROM shop.lines_of";
            assert_eq!(server.sql(left_out).unwrap(), "0\n0\n", "{name}");
        }
    }
    assert_eq!(newest.gtid_executed().unwrap(), source.gtid_executed().unwrap());
    by_gtid.wait_for_gtids(&source.gtid_executed().unwrap()).unwrap();
    let status = relay.status();
    let replicas = status["replicas"].as_array().unwrap();
    assert!(
        replicas.len() == 4 && replicas.iter().all(|it| it["left_out_rows_events"].as_u64() > Some(0)),
        "{status}"
    );
}
