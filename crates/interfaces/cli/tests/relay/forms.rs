//! One source, every form: the rows that each kind of client ends with.

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};
use binlogz_testkit::cdc::CdcClient;
use binlogz_testkit::workload::Workload;
use binlogz_testkit::{MysqlSandbox, Tool, require_tool, setting};

#[test]
fn a_client_that_loses_rows_gets_them_from_the_relay() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Cdc);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-row-metadata", "FULL").start().unwrap();
    source
        .sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)")
        .unwrap();
    // Nothing says a form.
    let mut relay = Relay::start(&folder, &source, &[]);
    relay.wait_for("log", |relay| {
        relay.sql(mysql, "repl", &[], "SHOW BINARY LOG STATUS").is_ok().then_some(())
    });
    let direct = CdcClient::follow(source.port(), 101).unwrap();
    let relayed = CdcClient::follow(relay.port, 102).unwrap();
    let dumps = "SELECT COUNT(*) FROM performance_schema.processlist WHERE COMMAND LIKE 'Binlog Dump%'";
    // The relay is a replica too.
    relay.wait_for("direct client", |_| (source.sql(dumps).unwrap().trim() == "2").then_some(()));
    relay.wait_for("client", |relay| relay.said().contains("(server id 102): binlog-u.000001").then_some(()));
    source.sql(&"INSERT INTO shop.t (body) VALUES (REPEAT('apples ', 100));\n".repeat(20)).unwrap();
    let count =
        |client: &CdcClient, name: &str| client.events().iter().filter(|event| *event == name).count();
    relay.wait_for("rows", |_| (count(&relayed, "WriteRowsEvent") == 20).then_some(()));
    // Both begin at the first file, which starts with the two statements.
    relay.wait_for("transactions", |_| (count(&direct, "GtidEvent") == 22).then_some(()));
    assert_eq!(count(&direct, "WriteRowsEvent"), 0, "directly every row is lost, without an error");
    // It goes on by name, in the form that the name says; a replica of 9.7 gets the source's own.
    let replica = mysql.sandbox().start().unwrap();
    relay.replicates_to(&replica, "repl", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    replica.wait_for_source(&source).unwrap();
    assert!(relay.said().contains(": binlog.000001 what is not in"), "{}", relay.said());
}

/// A client that stored a position at the source, and is then pointed at the relay. The default `form = "auto"` is made
/// for it: it asks for a file by a name that has the source's payloads.
#[test]
fn a_stored_position_does_not_lose_rows() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Cdc);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-row-metadata", "FULL").start().unwrap();
    source
        .sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)")
        .unwrap();
    source.sql(&"INSERT INTO shop.t (body) VALUES (REPEAT('apples ', 100));\n".repeat(5)).unwrap();
    let configuration = Configuration::of([url(&source)]);
    let configuration = configuration.account("reader", "").account("mirror", "form = \"received\"");
    let mut relay = configuration.start(&folder);
    relay.wait_for("log", |relay| {
        relay.sql(mysql, "reader", &[], "SHOW BINARY LOG STATUS").is_ok().then_some(())
    });
    let mut named = CdcClient::follow_file(relay.port, 101, ("reader", "secret"), "binlog.000001").unwrap();
    let refused = relay.wait_for("refusal", |_| named.trouble());
    assert!(refused.contains("1236") && refused.contains("binlog-u.000001"), "{refused}");
    assert!(named.events().is_empty(), "{:?}", named.events());
    // The name that it was told has the rows.
    let told = CdcClient::follow_file(relay.port, 102, ("reader", "secret"), "binlog-u.000001").unwrap();
    let rows = |client: &CdcClient| client.events().iter().filter(|name| *name == "WriteRowsEvent").count();
    relay.wait_for("rows", |_| (rows(&told) == 5).then_some(()));
    // mysqlbinlog reads payloads, binlogz too; neither is held back.
    let log = relay.client(mysql, "mysqlbinlog", "reader").args(["-R", "binlog.000001"]).output().unwrap();
    assert!(log.status.success(), "{}", String::from_utf8_lossy(&log.stderr));
    assert!(String::from_utf8_lossy(&log.stdout).contains("Transaction_Payload"));
    let port = format!("-P{}", relay.port);
    let mut dump =
        folder.binlogz(["dump", "--no-defaults", "-R", "-h127.0.0.1", "-ureader", &port, "binlog.000001"]);
    let dumped = dump.env("MYSQL_PWD", "secret").output().unwrap();
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    assert!(String::from_utf8_lossy(&dumped.stdout).contains("Transaction_Payload"));
    // An account that is told to have the source's bytes has them, whatever the client.
    let mirror = CdcClient::follow_file(relay.port, 103, ("mirror", "secret"), "binlog.000001").unwrap();
    relay.wait_for("mirror", |_| (mirror.events().len() >= 5).then_some(()));
    assert_eq!(rows(&mirror), 0);
}

#[test]
fn the_five_workloads_reach_replicas_in_every_form() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';
             SET GLOBAL rpl_semi_sync_source_timeout = 600000",
        )
        .unwrap();
    let relay = Relay::start(&folder, &source, &["--store", "compressed", "--semi-sync"]);
    let follow = |replica: MysqlSandbox, form: &str| {
        let start = format!("SOURCE_SSL=0, SOURCE_LOG_FILE='binlog{form}.000001', SOURCE_LOG_POS=4");
        relay.replicates_to(&replica, "repl", &start);
        replica
    };
    let workers = |number| mysql.sandbox().option("replica-parallel-workers", number);
    let received = follow(workers("4").start().unwrap(), "");
    let compressed = follow(workers("4").start().unwrap(), "-z");
    let uncompressed = follow(workers("1").start().unwrap(), "-u");
    let filtered = mysql.sandbox().option("replicate-wild-do-table", "sbtest.%").start().unwrap();
    let filtered = follow(filtered, "-z");
    // `scripts/soak/relay.sh` sets more.
    let scale = setting("BINLOGZ_RELAY_SCALE", 0.002);
    for (place, workload) in Workload::ALL.into_iter().enumerate() {
        // Half of them compressed, half of them acknowledged.
        let on = |bit: usize| if place % 2 == bit { "ON" } else { "OFF" };
        source
            .sql(&format!(
                "SET GLOBAL binlog_transaction_compression = {}, GLOBAL rpl_semi_sync_source_enabled = {}",
                on(0),
                on(1)
            ))
            .unwrap();
        workload.run(&source, scale).unwrap();
    }
    for replica in [&received, &compressed, &uncompressed, &filtered] {
        relay.brings(&source, replica, &["sbtest"]);
    }
    for replica in [&received, &compressed, &uncompressed] {
        relay.brings(&source, replica, &["employees"]);
    }
    assert!(filtered.sql("SELECT COUNT(*) FROM employees.salaries").is_err(), "left out by its filter");

    // The relay lists the events as the source does, from anywhere on.
    let mut checked = 0;
    for (from, limit) in [("", "LIMIT 300"), ("", "LIMIT 150, 40"), ("FROM 4", "LIMIT 3")] {
        let statement = format!("SHOW BINLOG EVENTS IN 'binlog.000001' {from} {limit}");
        let expected = source.sql(&statement).unwrap();
        assert_eq!(
            relay.sql(mysql, "repl", &[], &statement).unwrap().trim_end(),
            expected.trim_end(),
            "{statement}"
        );
        checked += expected.lines().count();
        if from.is_empty() && limit.starts_with("LIMIT 150") {
            let position = expected.lines().last().unwrap().split('\t').nth(4).unwrap();
            let statement = format!("SHOW BINLOG EVENTS IN 'binlog.000001' FROM {position} LIMIT 5");
            let expected = source.sql(&statement).unwrap();
            assert_eq!(relay.sql(mysql, "repl", &[], &statement).unwrap().trim_end(), expected.trim_end());
        }
    }
    assert!(checked > 300);
    for (statement, said) in [
        ("SHOW BINLOG EVENTS IN 'binlog.000099'", "Could not find target log"),
        ("SHOW BINLOG EVENTS FROM 5", "no event begins at 5"),
        ("SHOW BINLOG EVENTS FROM 200", "no event begins at 200"),
    ] {
        let refused = relay.sql(mysql, "repl", &[], statement).unwrap_err();
        assert!(refused.contains(said), "{refused}");
    }
    const SHOWN: [&str; 3] = ["--vertical", "--column-names", "--execute=SHOW REPLICA STATUS"];
    let output = relay.client(mysql, "mysql", "repl").args(SHOWN).output().unwrap();
    let status = String::from_utf8(output.stdout).unwrap();
    let names = |text: &str| -> Vec<String> {
        text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
    };
    let output = received.client().args(SHOWN).output().unwrap();
    let expected = String::from_utf8(output.stdout).unwrap().replace(",\n", ",");
    assert_eq!(names(&status.replace(",\n", ",")), names(&expected));
    assert!(
        status.contains("Replica_IO_Running: Yes") && status.contains(&source.server_uuid().unwrap()),
        "{status}"
    );
}
