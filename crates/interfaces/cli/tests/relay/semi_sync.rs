//! Semi-synchronous replicas of the relay, on real servers: they acknowledge in every form, the relay waits
//! for them before it acknowledges to the source, and a killed one holds nothing up.

use std::time::Duration;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};
use binlogz_binlog::gtid::GtidSet;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

/// One that acknowledges, with the relay as its source.
fn replica(mysql: &'static InstalledTool, relay: &Relay, form: &str, tls: u8) -> MysqlSandbox {
    let replica = mysql.sandbox().start().unwrap();
    replica
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so';
             SET GLOBAL rpl_semi_sync_replica_enabled = ON",
        )
        .unwrap();
    let start = format!("SOURCE_SSL={tls}, SOURCE_LOG_FILE='binlog{form}.000001', SOURCE_LOG_POS=4");
    relay.replicates_to(&replica, "reader", &start);
    replica
}

/// The relay has another port: it goes on there.
fn follow(replica: &MysqlSandbox, relay: &Relay) {
    let status = replica.replica_status().unwrap();
    let (file, position) = (&status["Relay_Source_Log_File"], &status["Exec_Source_Log_Pos"]);
    let start = format!("SOURCE_SSL=1, SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={position}");
    relay.replicates_to(replica, "reader", &start);
}

/// How many replicas have all of this in their relay logs.
fn have_received(replicas: &[&MysqlSandbox], committed: &str) -> usize {
    let committed: GtidSet = committed.parse().unwrap();
    let received = |replica: &&&MysqlSandbox| {
        let set = replica
            .sql("SELECT received_transaction_set FROM performance_schema.replication_connection_status")
            .unwrap();
        let received: GtidSet = set.trim().replace("\\n", "").parse().unwrap();
        committed.is_subset(&received)
    };
    replicas.iter().filter(received).count()
}

#[test]
fn the_source_commits_what_replicas_of_the_relay_have() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("max-allowed-packet", "64M").start().unwrap();
    source
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGBLOB);
             INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';
             SET GLOBAL rpl_semi_sync_source_timeout = 600000",
        )
        .unwrap();
    let pem = |name: &str| source.datadir().join(name).display().to_string();
    let configuration = Configuration::of([url(&source)])
        .store("store = \"compressed\"")
        .listen(format!(
            "semi_sync = true\nssl_cert = {:?}\nssl_key = {:?}",
            pem("server-cert.pem"),
            pem("server-key.pem")
        ))
        .account("reader", "");
    let waits = |count: u32, timeout: u32| {
        let keys = format!("semi_sync = true\nwait_for_replicas = {count}\nwait_timeout_ms = {timeout}");
        configuration.clone().source(keys)
    };
    let mut relay = waits(2, 600_000).start(&folder);
    relay.has_all_of(&source);
    let received = replica(mysql, &relay, "", 0);
    let compressed = replica(mysql, &relay, "-z", 0);
    let mut uncompressed = replica(mysql, &relay, "-u", 1);
    let are_there = |relay: &mut Relay, count: usize| {
        relay.wait_for("semi-synchronous replicas", |relay| {
            let status = relay.status();
            let replicas = status["replicas"].as_array()?;
            let durable = &status["log"]["durable"];
            let up_to_date = replicas.iter().filter(|replica| {
                replica["semi_sync"] == true
                    && replica["acknowledged"]["file"] == durable["file"]
                    && replica["acknowledged"]["position"].as_u64() == durable["position"].as_u64()
            });
            (up_to_date.count() == count).then_some(())
        });
    };
    // Earlier transactions count as acknowledged once they have them.
    are_there(&mut relay, 3);
    for replica in [&received, &compressed, &uncompressed] {
        let status = replica.sql("SHOW STATUS LIKE 'Rpl_semi_sync_replica_status'").unwrap();
        assert!(status.trim().ends_with("ON"), "{status}");
    }

    // From here on a commit waits for the relay, and the relay for two replicas.
    source.sql("SET GLOBAL rpl_semi_sync_source_enabled = ON").unwrap();
    let rows = |on: &str, count: usize| {
        let row = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 1 + RAND() * 30));\n";
        format!("SET binlog_transaction_compression = {on};\n{}", row.repeat(count))
    };
    let all = [&received, &compressed, &uncompressed];
    for on in ["ON", "OFF"] {
        for statement in [
            rows(on, 20),
            format!(
                "SET binlog_transaction_compression = {on}; INSERT INTO d.t (body) VALUES (REPEAT('large ', 3000000))"
            ),
            "ALTER TABLE d.t COMMENT = 'changed'; FLUSH BINARY LOGS; DELETE FROM d.t LIMIT 3".to_owned(),
        ] {
            source.sql(&statement).unwrap();
            let committed = source.gtid_executed().unwrap();
            assert!(have_received(&all, &committed) >= 2, "{committed} is committed");
        }
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| source.sql(&rows(on, 30)).unwrap());
            }
        });
    }
    are_there(&mut relay, 3);
    let status = relay.status();
    assert_eq!(status["source"]["replicas_waited_for"], 2, "{status}");
    for replica in status["replicas"].as_array().unwrap() {
        assert!(replica["acknowledgements"].as_u64().unwrap() > 50, "{replica}");
    }
    assert!(relay.get("/metrics").1.contains("binlogz_relay_replica_acknowledgements_total{"));
    assert!(relay.get("/").1.contains("acknowledged"));
    let shown = folder.run(["relay", "status", &format!("--http={}", relay.http)]);
    let text = shown.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(", acknowledged binlog.00000"), "{text}");

    // One is killed under load: two are left, and nothing waits.
    std::thread::scope(|scope| {
        let load = scope.spawn(|| source.sql(&rows("ON", 200)).unwrap());
        std::thread::sleep(Duration::from_millis(300));
        uncompressed.kill();
        load.join().unwrap();
    });
    let committed = source.gtid_executed().unwrap();
    assert_eq!(have_received(&[&received, &compressed], &committed), 2);
    uncompressed.start().unwrap();
    // It may have begun before the plugin was there.
    uncompressed.sql("SET GLOBAL rpl_semi_sync_replica_enabled = ON; STOP REPLICA; START REPLICA").unwrap();
    are_there(&mut relay, 3);

    // Too few: the relay goes on without them after the time-out, and waits again once they have caught up.
    let all = [&received, &compressed, &uncompressed];
    all.iter().for_each(|replica| replica.wait_for_source(&source).unwrap());
    drop(relay);
    let mut relay = waits(3, 1000).start(&folder);
    [&received, &compressed].iter().for_each(|replica| follow(replica, &relay));
    are_there(&mut relay, 2);
    source.sql(&rows("ON", 5)).unwrap();
    let status = relay.status();
    assert_eq!(
        (&status["errors"]["replicas"], &status["source"]["replicas_waited_for"]),
        (&1.into(), &0.into())
    );
    follow(&uncompressed, &relay);
    are_there(&mut relay, 3);
    source.sql(&rows("ON", 5)).unwrap();
    relay.wait_for("all three again", |relay| {
        source.sql(&rows("ON", 1)).unwrap();
        (relay.status()["source"]["replicas_waited_for"] == 3).then_some(())
    });

    let number = |name: &str| -> u64 {
        let status = source.sql(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_source_{name}'")).unwrap();
        status.split_whitespace().last().unwrap().parse().unwrap()
    };
    assert_eq!(number("no_tx"), 0, "committed without an acknowledgement");
    assert!(number("yes_tx") > 100);
    for replica in all {
        relay.brings(&source, replica, &["d"]);
    }
}
