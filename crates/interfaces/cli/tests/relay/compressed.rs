//! Compressed connections, between relay and source and between clients and the relay, on real servers: with acknowledgements,
//! events larger than a packet, and a network that is cut.

use crate::common::Folder;
use crate::common::proxy::cutting;
use crate::common::relay::{Configuration, is_kept, url};
use binlogz_testkit::{MysqlSandbox, Tool, mutate, require_tool};

/// Connections that are cut.
const CUTS: u64 = 12;

/// Waits for every transaction until the relay has acknowledged it.
fn wait_for_acknowledgements(source: &MysqlSandbox) {
    source
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';
             SET GLOBAL rpl_semi_sync_source_timeout = 600000, GLOBAL rpl_semi_sync_source_enabled = ON",
        )
        .unwrap();
}

/// A figure of the source's semi-synchronous replication.
fn number(source: &MysqlSandbox, name: &str) -> u64 {
    let status = source.sql(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_source_{name}'")).unwrap();
    status.split_whitespace().last().unwrap().parse().unwrap()
}

/// The source's account of the session that the relay reads its log with.
fn session(source: &MysqlSandbox) -> String {
    let status = "SELECT variable_value FROM performance_schema.status_by_thread s \
                  JOIN performance_schema.threads t USING (thread_id) \
                  WHERE processlist_command LIKE 'Binlog Dump%' AND variable_name IN \
                  ('Compression', 'Compression_algorithm', 'Compression_level') ORDER BY variable_name";
    source.sql(status).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn compressed_packets_carry_the_same_log_and_its_acknowledgements() {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().option("max-allowed-packet", "64M").start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGBLOB)")
        .unwrap();
    wait_for_acknowledgements(&source);
    for (keys, said, over) in [
        ("compression_algorithms = \"zlib\"", "ON zlib 6", "zlib"),
        ("compression_algorithms = \"zstd\"", "ON zstd 3", "zstd"),
        ("compression_algorithms = \"zlib,zstd,uncompressed\"", "ON zlib 6", "zlib"),
        (
            "compression_algorithms = \"zstd\"\nzstd_compression_level = 7\nssl_mode = \"disabled\"\nget_server_public_key = true",
            "ON zstd 7",
            "zstd",
        ),
    ] {
        let folder = Folder::new();
        let keys = format!("{keys}\nsemi_sync = true");
        let mut relay = Configuration::of([url(&source)]).source(keys).start(&folder);
        relay.wait_for("source", |relay| (relay.phase() == "receiving").then_some(()));
        relay.wait_for("session", |_| {
            (number(&source, "clients") == 1 && session(&source) == said).then_some(())
        });
        // Each is committed once the relay has acknowledged it; many are in flight after the acknowledged
        // one.
        let small = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 1 + RAND() * 30));\n".repeat(50);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| source.sql(&small).unwrap());
            }
        });
        source
            .sql(
                "INSERT INTO d.t (body) VALUES (REPEAT('larger than a packet ', 900000)), ('and one more');
                 INSERT INTO d.t (body) VALUES (RANDOM_BYTES(1000)), (REPEAT(RANDOM_BYTES(1000), 17000));
                 INSERT INTO d.t (body) VALUES ('last')",
            )
            .unwrap();
        relay.has_all_of(&source);
        is_kept(&source, &folder.path("kept"));
        assert_eq!(relay.status()["errors"].as_object().unwrap().len(), 0, "{}", relay.said());
        let messages = relay.messages();
        assert!(messages.iter().any(|line| line.ends_with(&format!(", over {over}"))), "{messages:?}");
    }
    // A group of commits, of at most four sessions, counts once.
    assert!(number(&source, "yes_tx") >= 4 * 50, "{} acknowledged", number(&source, "yes_tx"));
    assert_eq!(number(&source, "no_tx"), 0, "committed without an acknowledgement");
}

/// Clients that allow nothing else, over TLS and without.
#[test]
fn the_relay_serves_compressed_packets_as_its_source_does() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().option("max-allowed-packet", "64M").start().unwrap();
    let insert = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 1 + RAND() * 30));";
    source
        .sql(&format!(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGBLOB);
             CREATE USER app IDENTIFIED BY 'secret'; GRANT ALL ON *.* TO app; {}
             INSERT INTO d.t (body) VALUES (REPEAT('larger than a packet ', 900000))",
            insert.repeat(50)
        ))
        .unwrap();
    let mut relay = Configuration::of([url(&source)])
        .listen("forward_sql = true\nsemi_sync = true")
        .account("app", "form = \"received\"")
        .start(&folder);
    relay.has_all_of(&source);
    let first = source.binlogs().unwrap().remove(0);
    source.flush_binary_logs().unwrap();
    relay.has_all_of(&source);

    let replica = mysql.sandbox().option("max-allowed-packet", "64M").start().unwrap();
    replica
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so';
             SET GLOBAL rpl_semi_sync_replica_enabled = ON",
        )
        .unwrap();
    for (algorithm, options) in [
        ("zlib", ["--ssl-mode=disabled", "--get-server-public-key"]),
        ("zstd", ["--ssl-mode=required", "--zstd-compression-level=7"]),
    ] {
        let only = format!("--compression-algorithms={algorithm}");
        let large = "--max-allowed-packet=64M";
        let options = [&[only.as_str(), large], options.as_slice()].concat();
        // Its own answers, and those of the source.
        let asked = "SELECT @@server_id; SHOW BINARY LOGS; SELECT LENGTH(body) FROM d.t; SELECT MAX(body) FROM d.t; SELECT 1";
        let compressed = relay.sql(mysql, "app", &options, asked).unwrap();
        assert!(compressed == relay.sql(mysql, "app", &[large], asked).unwrap(), "{algorithm}");
        let into = folder.path(algorithm);
        let options: Vec<_> = options.into_iter().filter(|option| *option != large).collect();
        let fetched = relay.fetch(mysql, "app", &into, &options, &["binlog.000001"]).unwrap();
        assert!(std::fs::read(&fetched[0]).unwrap() == std::fs::read(&first).unwrap(), "{algorithm}");

        relay.replicates_to(
            &replica,
            "app",
            &format!(
                "SOURCE_AUTO_POSITION=1, SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_COMPRESSION_ALGORITHMS='{algorithm}'"
            ),
        );
        relay.brings(&source, &replica, &["d"]);
        // It acknowledges what comes from now on, and what follows an acknowledgement comes too.
        source.sql(&insert.repeat(20)).unwrap();
        source.sql("INSERT INTO d.t (body) VALUES (REPEAT('larger than a packet ', 900000))").unwrap();
        relay.brings(&source, &replica, &["d"]);
        relay.wait_for("acknowledgements", |relay| {
            let status = relay.status();
            let replica = status["replicas"].as_array()?.first()?.clone();
            (replica["acknowledgements"].as_u64()? > 0).then_some(())
        });
    }
    assert_eq!(relay.status()["errors"].as_object().unwrap().len(), 0, "{}", relay.said());
    let mut refused = relay.client(mysql, "mysql", "app");
    refused.args(["--compression-algorithms=zstd", "--password=wrong", "--execute=SELECT 1"]);
    let refused = String::from_utf8(refused.output().unwrap().stderr).unwrap();
    assert!(refused.contains("1045"), "{refused}");
}

#[test]
fn a_compressed_connection_that_is_cut_loses_nothing() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().option("max-allowed-packet", "64M").start().unwrap();
    let seed = mutate::seed();
    println!("SEED={seed}");
    // What hardly shrinks: cuts by the number of bytes fall into it.
    let rows = "INSERT INTO d.t (body) VALUES (RANDOM_BYTES(1000));\n".repeat(150);
    source
        .sql(&format!(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGBLOB); {rows}
             SET cte_max_recursion_depth = 30000;
             INSERT INTO d.t (body) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
                 SELECT RANDOM_BYTES(1000) FROM n; {rows}"
        ))
        .unwrap();
    wait_for_acknowledgements(&source);
    let (port, count) = cutting(source.port(), seed, CUTS);
    let broken = format!("mysql://repl@127.0.0.1:{port}");
    // Named often, it is tried again at once.
    let keys = "compression_algorithms = \"zstd\"\nsemi_sync = true";
    let mut relay = Configuration::of(vec![broken; CUTS as usize]).source(keys).start(&folder);
    // Committed once it is acknowledged, whatever is cut meanwhile.
    source.sql(&"INSERT INTO d.t (body) VALUES (RANDOM_BYTES(1000));\n".repeat(50)).unwrap();
    relay.has_all_of(&source);
    assert!(count.load(std::sync::atomic::Ordering::SeqCst) >= CUTS, "cut often enough");
    is_kept(&source, &folder.path("kept"));
    assert_eq!(relay.status()["log"]["gtid_executed"].as_str().unwrap(), source.gtid_executed().unwrap());
}
