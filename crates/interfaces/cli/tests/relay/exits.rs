//! Accounts of the relay with a policy, on real servers: what they read is searched for planted values, and masked replicas follow.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::time::{Duration, Instant};

use binlogz_testkit::random::Random;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, mutate, require_tool, setting};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};
use crate::planted::{KEY, assert_clean, contains, needles, planted_statements, policies, policy_of_all};

const EXITS: &str = "exits = \"exits.toml\"";
const DOCUMENT: &str = r#"{ mask = "json", paths = { "$.plan" = "keep", "$.who" = "hash" } }"#;
const PLAIN: &[&str] = &["--ssl-mode=disabled", "--get-server-public-key"];

fn put_policy(folder: &Folder, policy: &str) {
    folder.put_secret("key", KEY);
    folder.put("exits.toml", policy);
}

/// A source with planted values of all types. None is in the definition of a masked column: such a statement can't be masked.
fn planted_source(mysql: &'static InstalledTool, metadata: &str) -> MysqlSandbox {
    let source = mysql
        .sandbox()
        .compression(3)
        .option("binlog-rows-query-log-events", "ON")
        .option("binlog-row-metadata", metadata)
        .start()
        .unwrap();
    plant(&source);
    source
}

fn plant(source: &MysqlSandbox) {
    let [table, changes] = planted_statements("JSON");
    source.sql(&table).unwrap();
    source.sql(&changes.replace("DEFAULT 'planted'", "NULL")).unwrap();
}

fn configuration(source: &MysqlSandbox) -> Configuration {
    Configuration::of([url(source)])
        .listen("forward_sql = true\nform = \"uncompressed\"")
        .account("open", "")
        .account("staging", EXITS)
        .account("staging2", EXITS)
        .ports(reserved_port(), reserved_port())
}

/// Values of the source's rows, as its logs have them.
fn planted_values(folder: &Folder, source: &MysqlSandbox) -> BTreeSet<Vec<u8>> {
    let mut all = BTreeSet::new();
    for (number, log) in source.binlogs().unwrap().iter().enumerate() {
        let to = format!("source-{number}");
        let args = ["expand", "--output", &to].map(AsRef::as_ref);
        folder.run(args.into_iter().chain([log.as_os_str()])).is_done();
        let bytes = folder.read(&to);
        if contains(&bytes, b"planted") {
            all.extend(needles(&bytes));
            assert!(leak(&bytes, &all).is_some());
        }
    }
    assert!(!all.is_empty());
    all
}

/// No needle has less.
const FRONT_SIZE: usize = 6;

/// A value that is there.
fn leak<'v>(bytes: &[u8], values: &'v BTreeSet<Vec<u8>>) -> Option<&'v [u8]> {
    // By how they begin: an hour's values are too many to be looked for one by one.
    let mut by_front: HashMap<[u8; FRONT_SIZE], Vec<&[u8]>> = HashMap::new();
    for value in values {
        by_front.entry(*value.first_chunk().expect("needles are longer")).or_default().push(value);
    }
    (0..bytes.len()).find_map(|at| {
        let rest = &bytes[at..];
        by_front.get(rest.first_chunk::<FRONT_SIZE>()?)?.iter().find(|value| rest.starts_with(value)).copied()
    })
}

#[track_caller]
fn has_none_of(what: &str, bytes: &[u8], values: &BTreeSet<Vec<u8>>) {
    assert_clean(what, bytes);
    assert_eq!(leak(bytes, values), None, "{what}");
}

/// The names and sizes of the files that an account may read.
fn files(relay: &Relay, mysql: &'static InstalledTool, user: &str) -> Vec<(String, u64)> {
    let listed = relay.sql(mysql, user, PLAIN, "SHOW BINARY LOGS").unwrap();
    let rows = listed.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    rows.map(|row| (row[0].to_owned(), row[1].parse().unwrap())).collect()
}

fn fetched(
    relay: &Relay,
    mysql: &'static InstalledTool,
    folder: &Folder,
    into: &str,
    names: &[&str],
) -> Result<Vec<Vec<u8>>, String> {
    let paths = relay.fetch(mysql, "staging", &folder.path(into), PLAIN, names)?;
    Ok(paths.iter().map(|path| fs::read(path).unwrap()).collect())
}

#[test]
fn an_account_with_a_policy_reads_a_masked_log_alone() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    put_policy(&folder, &policy_of_all(&policies(DOCUMENT)[0].1));
    let source = planted_source(mysql, "MINIMAL");
    source.sql("CREATE USER open IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO open").unwrap();
    let configuration = configuration(&source);
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let values = planted_values(&folder, &source);
    let listed = files(&relay, mysql, "staging");
    let names: Vec<_> = listed.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.iter().all(|name| name.contains("-x")), "{names:?}");
    let masked = fetched(&relay, mysql, &folder, "masked", &names).unwrap();
    for ((name, size), bytes) in listed.iter().zip(&masked) {
        has_none_of(name, bytes, &values);
        assert_eq!(*size, bytes.len() as u64, "{name}");
        folder.run(["verify", &format!("masked/{name}")]).is_done();
    }
    let rows =
        folder.run(["rows", "shop.everything", "--all", &format!("masked/{}", names[names.len() - 1])]);
    assert!(rows.text().matches("everything").count() > 5, "{}{}", rows.text(), rows.stderr);

    // From a position in the middle on, the same bytes come.
    let last = names[names.len() - 1];
    let events = relay.sql(mysql, "staging", PLAIN, &format!("SHOW BINLOG EVENTS IN '{last}'")).unwrap();
    has_none_of("events", events.as_bytes(), &values);
    let gtids: Vec<_> = events.lines().filter(|line| line.contains("\tGtid\t")).collect();
    let middle = gtids[gtids.len() / 2].split('\t').nth(1).unwrap();
    let from_there =
        relay.sql(mysql, "staging", PLAIN, &format!("SHOW BINLOG EVENTS IN '{last}' FROM {middle}")).unwrap();
    assert!(events.ends_with(&from_there) && from_there.lines().count() * 3 > events.lines().count());
    let mut text = relay.mysqlbinlog(mysql, "staging");
    text.args(PLAIN).args(["-vv", "--start-position", middle, last]);
    let output = text.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    has_none_of("mysqlbinlog", &output.stdout, &values);

    // No other file, and nothing of the source.
    let [own, other] = ["binlog.000001", "binlog-u.000001"];
    for name in [own, other, "binlog-z.000001", "binlog-x00000000.000001"] {
        let refused = fetched(&relay, mysql, &folder, "refused", &[name]).unwrap_err();
        assert!(refused.contains("reads masked files alone"), "{name}: {refused}");
        let events = format!("SHOW BINLOG EVENTS IN '{name}'");
        let refused = relay.sql(mysql, "staging", PLAIN, &events).unwrap_err();
        assert!(refused.contains("Could not find target log"), "{name}: {refused}");
    }
    let open_last = files(&relay, mysql, "open").pop().unwrap().0;
    assert!(
        relay
            .sql(mysql, "open", PLAIN, &format!("SHOW BINLOG EVENTS IN '{open_last}'"))
            .unwrap()
            .contains("planted")
    );
    for statement in
        ["SELECT * FROM shop.everything", "SHOW CREATE TABLE shop.everything", "SELECT * FROM mysql.user"]
    {
        assert!(relay.sql(mysql, "open", PLAIN, statement).is_ok(), "{statement}");
        let refused = relay.sql(mysql, "staging", PLAIN, statement).unwrap_err();
        assert!(refused.contains("forward_sql") && !refused.contains("planted"), "{statement}: {refused}");
    }

    // A restart, and the other account with the policy, give the same bytes.
    relay.kill();
    relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let again = relay.fetch(mysql, "staging2", &folder.path("again"), PLAIN, &names).unwrap();
    for (path, before) in again.iter().zip(&masked) {
        assert!(fs::read(path).unwrap() == *before, "{}", path.display());
    }
    has_none_of("log of the relay", relay.said().as_bytes(), &values);
}

/// What can't be masked for certain ends the dump before it, with the table's name and no value; one that has it by GTID goes on.
#[test]
fn a_dump_ends_before_what_can_not_be_masked() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    put_policy(&folder, "key_file = \"key\"\n[[table]]\nname = \"shop.t\"\ncolumns.v = \"hash\"\n");
    let source = mysql.sandbox().compression(3).start().unwrap();
    source.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v VARCHAR(40)); INSERT INTO shop.t VALUES (1, 'planted')").unwrap();
    let mut relay = configuration(&source).start(&folder);
    source
        .sql("SET SESSION binlog_format = STATEMENT; UPDATE shop.t SET v = 'planted anew' WHERE id = 1")
        .unwrap();
    source.sql("INSERT INTO shop.t VALUES (2, 'planted')").unwrap();
    relay.has_all_of(&source);
    let listed = files(&relay, mysql, "staging");
    let name = listed[listed.len() - 1].0.as_str();
    let refused = fetched(&relay, mysql, &folder, "refused", &[name]).unwrap_err();
    let expected = "can't be masked for certain: statements that change rows can't be masked";
    assert!(refused.contains(expected) && !refused.contains("planted"), "{refused}");
    let executed = source.gtid_executed().unwrap();
    let (uuid, last) = executed.trim().rsplit_once("-").unwrap();
    let uuid = uuid.split(':').next().unwrap();
    let last: u64 = last.parse().unwrap();
    let mut text = relay.client(mysql, "mysqlbinlog", "staging");
    text.arg("--read-from-remote-source=BINLOG-DUMP-GTIDS");
    text.args(PLAIN).args(["-vv", &format!("--exclude-gtids={uuid}:{}", last - 1)]);
    let output = text.arg(name).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.matches("### INSERT INTO `shop`.`t`").count() == 2 && !text.contains("planted"), "{text}");
}

/// A replica that acknowledges what this account is sent.
fn acknowledging(mysql: &'static InstalledTool, relay: &Relay, user: &str) -> MysqlSandbox {
    let replica = mysql.sandbox().start().unwrap();
    replica
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so';
             SET GLOBAL rpl_semi_sync_replica_enabled = ON",
        )
        .unwrap();
    relay.replicates_to(&replica, user, "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1");
    replica
}

/// A masked replica acknowledges, and nobody takes it for a copy: the relay waits in vain for one, as if it weren't there.
#[test]
fn a_masked_replica_is_not_waited_for() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    put_policy(&folder, &policy_of_all(&policies(DOCUMENT)[0].1));
    let source = planted_source(mysql, "MINIMAL");
    source
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';
             SET GLOBAL rpl_semi_sync_source_timeout = 600000; SET GLOBAL rpl_semi_sync_source_enabled = ON",
        )
        .unwrap();
    let mut relay = Configuration::of([url(&source)])
        .source("semi_sync = true\nwait_for_replicas = 1\nwait_timeout_ms = 1500")
        .listen("semi_sync = true")
        .account("open", "form = \"uncompressed\"")
        .account("staging", EXITS)
        .account("part", "ignore_tables = [\"shop.orders\"]")
        .ports(reserved_port(), reserved_port())
        .start(&folder);
    relay.has_all_of(&source);
    let [masked, part] = ["staging", "part"].map(|user| acknowledging(mysql, &relay, user));
    let acknowledged = |relay: &mut Relay, user: &str, is_copy: bool| {
        relay.wait_for("acknowledgement", |relay| {
            let status = relay.status();
            let end = status["log"]["durable"]["position"].as_u64();
            let mut replicas = status["replicas"].as_array()?.iter();
            let replica = replicas.find(|replica| replica["user"] == user)?;
            assert_eq!(replica["is_copy"], is_copy, "{replica}");
            (replica["semi_sync"] == true && replica["acknowledged"]["position"].as_u64() == end)
                .then_some(())
        });
    };
    let next = Cell::new(9_876_540_000u64);
    let insert = || {
        next.set(next.get() + 1);
        let id = next.get();
        source.sql(&format!("INSERT INTO shop.everything (id, v) VALUES ({id}, 'planted')")).unwrap();
    };
    insert();
    [&masked, &part].iter().for_each(|replica| replica.wait_for_source(&source).unwrap());
    for user in ["staging", "part"] {
        acknowledged(&mut relay, user, false);
    }
    let status = relay.status();
    assert_eq!(
        (&status["errors"]["replicas"], &status["source"]["replicas_waited_for"]),
        (&1.into(), &0.into())
    );
    // One that is a copy is.
    let copy = acknowledging(mysql, &relay, "open");
    copy.wait_for_source(&source).unwrap();
    acknowledged(&mut relay, "open", true);
    relay.wait_for("the copy", |relay| {
        insert();
        (relay.status()["source"]["replicas_waited_for"] == 1).then_some(())
    });
    let doctor = folder.run(["relay", "doctor", "--config", "relay.toml"]);
    let told = doctor.text().split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "note account staging is sent a log masked by ",
        "is sent masked rows: it is no copy of the source, and wait_for_replicas doesn't count its acknowledgements",
        "is sent the rows of some tables: it is no copy",
    ] {
        assert!(told.contains(said), "{told}");
    }
    assert_eq!(told.matches("no copy").count(), 2, "{told}");
}

/// A replica that keeps everything it received.
fn replica(mysql: &'static InstalledTool) -> MysqlSandbox {
    mysql.sandbox().option("relay-log-purge", "OFF").start().unwrap()
}

/// Fails if one of the values is in what the replica received.
fn received_none_of(what: &str, replica: &MysqlSandbox, values: &BTreeSet<Vec<u8>>) {
    let mut size = 0;
    for log in replica.relay_logs().unwrap() {
        let bytes = fs::read(&log).unwrap();
        size += bytes.len();
        has_none_of(&format!("{what}: {}", log.display()), &bytes, values);
    }
    assert!(size > 10_000, "{what}: {size}");
}

const JOINED: &str = "SELECT COUNT(*), COUNT(DISTINCT e.id), COUNT(DISTINCT o.id) FROM shop.orders o JOIN shop.everything e ON e.id = o.parent";

/// Statements after those that leave the tables empty.
fn orders(random: &mut Random, count: usize) -> String {
    let mut statements = vec!["USE shop".to_owned()];
    for _ in 0..count {
        let id = 9_876_540_000 + random.below(500);
        let order = random.below(100_000);
        statements.push(match random.below(6) {
            0..3 => format!("INSERT IGNORE INTO everything (id, v, tx, j) VALUES ({id}, 'planted {id}', 'planted', '{{\"who\": \"planted\", \"plan\": \"gold\"}}')"),
            3 => format!("INSERT IGNORE INTO orders SELECT {order}, id FROM everything ORDER BY RAND() LIMIT 1"),
            4 => format!("UPDATE everything SET v = CONCAT('planted again ', {order}), j = JSON_SET(j, '$.n', {order}) WHERE id <= {id} ORDER BY id LIMIT 5"),
            _ => format!("DELETE FROM orders WHERE id < {order} ORDER BY id LIMIT 1"),
        });
    }
    statements.join(";\n")
}

/// Masked replicas, by GTID and by position, follow a source with each policy, while relay and replicas are killed: joins hold.
#[test]
#[ignore = "minutes: scripts/soak/exits.sh runs it"]
fn masked_replicas_follow_production() {
    let mysql = require_tool!(Tool::Mysql);
    let random = &mut Random::new(mutate::seed());
    for metadata in ["MINIMAL", "FULL"] {
        let source = planted_source(mysql, metadata);
        for (policy, rules) in policies(DOCUMENT) {
            follows(mysql, &format!("{metadata} {policy}"), &rules, &source, random);
        }
    }
}

fn follows(
    mysql: &'static InstalledTool,
    what: &str,
    rules: &str,
    source: &MysqlSandbox,
    random: &mut Random,
) {
    let folder = Folder::new();
    put_policy(&folder, &policy_of_all(rules));
    let configuration = configuration(source);
    let mut relay = configuration.start(&folder);
    relay.has_all_of(source);
    let first = files(&relay, mysql, "staging")[0].0.clone();
    let [mut by_gtid, mut by_position] = [replica(mysql), replica(mysql)];
    relay.replicates_to(&by_gtid, "staging", "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1");
    let start = format!(
        "SOURCE_LOG_FILE='{first}', SOURCE_LOG_POS=4, SOURCE_AUTO_POSITION=0, GET_SOURCE_PUBLIC_KEY=1"
    );
    relay.replicates_to(&by_position, "staging2", &start);
    for round in 0..4 {
        source.sql(&orders(random, 300)).unwrap();
        match round {
            0 => drop(source.flush_binary_logs().unwrap()),
            1 => {
                relay.kill();
                relay = configuration.start(&folder);
            }
            2 => {
                for replica in [&mut by_gtid, &mut by_position] {
                    replica.kill();
                    replica.start().unwrap();
                    replica.sql("START REPLICA").unwrap();
                }
            }
            _ => {}
        }
        for (name, replica) in [("by GTID", &by_gtid), ("by position", &by_position)] {
            replica.wait_for_source(source).unwrap_or_else(|error| {
                panic!(
                    "{what} {name}: {error}\n{}\n{}",
                    replica.sql("SHOW REPLICA STATUS").unwrap(),
                    relay.said()
                )
            });
            let joined = source.sql(JOINED).unwrap();
            assert_eq!(replica.sql(JOINED).unwrap(), joined, "{what} {name}");
            assert!(!joined.starts_with("0\t"), "{what}: {joined}");
        }
    }
    assert_eq!(by_gtid.gtid_executed().unwrap(), source.gtid_executed().unwrap(), "{what}");
    let values = planted_values(&folder, source);
    for replica in [&by_gtid, &by_position] {
        received_none_of(what, replica, &values);
    }
    has_none_of(what, relay.said().as_bytes(), &values);
    source.sql("DELETE FROM shop.orders; DELETE FROM shop.everything").unwrap();
}

/// A masked replica follows for so many seconds; each minute its joins are the source's.
#[test]
#[ignore = "an hour: scripts/soak/exits.sh runs it"]
fn a_masked_replica_follows_for_long() {
    let mysql = require_tool!(Tool::Mysql);
    let seconds: u64 = setting("BINLOGZ_EXITS_SECONDS", 60);
    let random = &mut Random::new(mutate::seed());
    let folder = Folder::new();
    put_policy(&folder, &policy_of_all(&policies(DOCUMENT)[0].1));
    let source = planted_source(mysql, "MINIMAL");
    let configuration = configuration(&source);
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let replica = replica(mysql);
    relay.replicates_to(&replica, "staging", "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1");
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut checks = 0;
    while Instant::now() < end {
        let next = end.min(Instant::now() + Duration::from_secs(60));
        let mut transactions = 0;
        while Instant::now() < next {
            source.sql(&orders(random, 100)).unwrap();
            transactions += 100;
        }
        replica.wait_for_source(&source).unwrap();
        assert_eq!(replica.sql(JOINED).unwrap(), source.sql(JOINED).unwrap());
        checks += 1;
        eprintln!("{checks}: {transactions} statements, joined {}", source.sql(JOINED).unwrap().trim());
        if checks % 10 == 3 {
            source.flush_binary_logs().unwrap();
        }
        if checks % 10 == 7 {
            relay.kill();
            relay = configuration.start(&folder);
        }
    }
    assert_eq!(replica.gtid_executed().unwrap(), source.gtid_executed().unwrap());
    received_none_of("an hour", &replica, &planted_values(&folder, &source));
}
