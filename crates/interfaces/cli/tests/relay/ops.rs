//! The relay in operation, on real servers: watched, controlled, and among hostile peers.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, Running, url};
use binlogz_testkit::browser::assert_readable;
use binlogz_testkit::tool::require;
use binlogz_testkit::{Tool, require_tool, setting};

#[test]
fn what_happens_is_seen_and_can_be_steered() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    // A file that no buffer between relay and client holds, and some more.
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)")
        .unwrap();
    let large = "INSERT INTO d.t (body) VALUES (REPEAT('large ', 1000000));\n".repeat(6);
    source
        .sql(&format!(
            "SET binlog_transaction_compression = OFF; {large}
             SET binlog_transaction_compression = ON; FLUSH BINARY LOGS;
             INSERT INTO d.t (body) VALUES (REPEAT('small ', 300)); FLUSH BINARY LOGS; DELETE FROM d.t",
        ))
        .unwrap();
    let pem = |name: &str| source.datadir().join(name).display().to_string();
    let (certificate, key) = (pem("server-cert.pem"), pem("server-key.pem"));
    let configuration = Configuration::of([url(&source)])
        .listen(format!("ssl_cert = {certificate:?}\nssl_key = {key:?}"))
        .account("boss", "admin = true\nform = \"received\"")
        .account("reader", "form = \"uncompressed\"\nconnections_max = 1")
        .account("safe", "require_tls = true")
        .account("elsewhere", "from = [\"10.0.0.0/8\"]");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    assert_eq!(relay.get("/readyz"), (200, "ok\n".into()));
    assert_eq!(relay.get("/healthz"), (200, "ok\n".into()));
    assert_eq!(relay.get("/nothing").0, 404);
    assert_eq!(relay.phase(), "receiving");

    // Accounts.
    let plain = ["--ssl-mode=DISABLED"];
    assert_eq!(relay.sql(mysql, "boss", &plain, "SELECT 1").unwrap(), "1\n");
    let tls = ["--ssl-mode=REQUIRED"];
    assert_eq!(relay.sql(mysql, "safe", &tls, "SELECT 1").unwrap(), "1\n");
    for (user, code) in [("safe", "3159"), ("elsewhere", "1045"), ("repl", "1045")] {
        let refused = relay.sql(mysql, user, &plain, "SELECT 1").unwrap_err();
        assert!(refused.contains(&format!("ERROR {code}")), "{user}: {refused}");
    }

    // Somebody who does not read what it is sent.
    let mut slow = relay.mysqlbinlog(mysql, "reader");
    slow.args(["--stop-never", "binlog-u.000001"]);
    let slow = Running(slow.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let replica = relay.wait_for("slow reader", |relay| {
        let replica = relay.status()["replicas"][0].clone();
        (replica["bytes"].as_u64()? > 0).then_some(replica)
    });
    assert_eq!((&replica["user"], &replica["form"]), (&"reader".into(), &"uncompressed".into()));
    let refused = relay.sql(mysql, "reader", &plain, "SELECT 1").unwrap_err();
    assert!(refused.contains("ERROR 1226"), "{refused}");

    // The counters count the files that are there.
    let (_, metrics) = relay.get("/metrics");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let (_, position) = source.position().unwrap();
    assert_eq!(relay.metric("binlogz_relay_durable_position"), position as f64);
    assert_eq!(relay.metric("binlogz_relay_durable_file"), 3.0);
    assert_eq!(relay.metric("binlogz_relay_source_up"), 1.0);
    assert!(relay.metric("binlogz_relay_received_bytes_total") > 36e6, "{metrics}");
    assert!(relay.metric("binlogz_relay_sync_duration_seconds_count") > 0.0);
    assert!(relay.metric("binlogz_relay_replica_lag_bytes") > 1e6, "{metrics}");
    assert!(relay.metric("binlogz_relay_errors_total") >= 3.0, "{metrics}");
    let address = format!("--http={}", relay.http);
    let shown = folder.run(["relay", "status", &address]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.text().contains(&format!("durable   binlog.000003 at {position}\n")), "{}", shown.text());
    assert!(shown.text().contains("(reader from 127.0.0.1:"), "{}", shown.text());
    let page = relay.get("/").1;
    assert!(page.contains("Following 127.0.0.1") && page.contains("reader"), "{page}");
    if let Some(chromium) = require(Tool::Chromium) {
        assert_readable(chromium, &[("relay-reader", page)]);
    }

    // Stopped and started, by who may.
    let refused = relay.sql(mysql, "safe", &tls, "STOP REPLICA").unwrap_err();
    assert!(refused.contains("ERROR 1227"), "{refused}");
    relay.sql(mysql, "boss", &plain, "STOP REPLICA IO_THREAD").unwrap();
    relay.wait_for("stop", |relay| (relay.phase() == "stopped").then_some(()));
    source.sql("INSERT INTO d.t (body) VALUES ('while stopped')").unwrap();
    assert_eq!(relay.sql(mysql, "boss", &plain, "SHOW BINARY LOGS").unwrap().lines().count(), 3);
    assert_eq!(relay.status()["log"]["durable"]["position"], position, "it was received all the same");
    relay.sql(mysql, "boss", &plain, "START REPLICA").unwrap();
    relay.has_all_of(&source);

    // A file that somebody reads is not purged, unless that is asked for.
    let files = |relay: &Relay| relay.sql(mysql, "boss", &plain, "SHOW BINARY LOGS").unwrap();
    let purge = "PURGE BINARY LOGS TO 'binlog-u.000003'";
    assert!(relay.sql(mysql, "safe", &tls, purge).unwrap_err().contains("ERROR 1227"));
    relay.sql(mysql, "boss", &plain, purge).unwrap();
    assert!(files(&relay).starts_with("binlog.000001"), "{}", files(&relay));
    let missing = relay.sql(mysql, "boss", &plain, "PURGE BINARY LOGS TO 'binlog.000009'").unwrap_err();
    assert!(missing.contains("ERROR 1373"), "{missing}");
    let before = "PURGE BINARY LOGS BEFORE";
    relay.sql(mysql, "boss", &plain, &format!("{before} '2020-01-01 00:00:00'")).unwrap();
    assert!(
        relay.sql(mysql, "boss", &plain, &format!("{before} 'noon'")).unwrap_err().contains("ERROR 1525")
    );
    relay.sql(mysql, "boss", &plain, &format!("SET @binlogz_force = 1; {purge}")).unwrap();
    assert!(files(&relay).starts_with("binlog.000003"), "{}", files(&relay));
    // A client that leaves is not an error.
    let errors = relay.status()["errors"].clone();
    drop(slow);
    relay.wait_for("the reader's end", |relay| {
        relay.messages().iter().any(|line| line.contains("the client has left")).then_some(())
    });
    assert_eq!(relay.status()["errors"], errors);

    // By size, and by age: never the file that is received.
    source.sql("FLUSH BINARY LOGS; INSERT INTO d.t (body) VALUES ('more')").unwrap();
    relay.has_all_of(&source);
    drop(relay);
    let mut relay = configuration.store("max_bytes = \"1\"").start(&folder);
    relay.wait_for("purge", |relay| files(relay).starts_with("binlog.000004").then_some(()));
    relay.has_all_of(&source);
    assert!(!relay.said().contains("secret"));
}

#[test]
fn the_page_tells_a_dead_source_from_a_live_one() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY)").unwrap();
    let mut relay = Configuration::of([url(&source)]).archive().start(&folder);
    relay.has_all_of(&source);
    let shows = |relay: &mut Relay, word: &str, lead: &str| {
        relay.wait_for(word, |relay| {
            let page = relay.get("/").1;
            (page.contains(word) && page.contains(lead)).then_some(page)
        })
    };
    let up = shows(&mut relay, "</i> Live</span>", "<section class=\"lead good\">");
    source.stop().unwrap();
    let down = shows(&mut relay, "</i> Source down</span>", "<section class=\"lead bad\">");
    assert!(down.contains("<h2>What to do</h2>") && down.contains("mysqladmin --host=127.0.0.1"), "{down}");
    assert!(!down.contains("CHANGE REPLICATION SOURCE") && !down.contains("</i> Live</span>"));
    assert!(up.contains("<h2>The archive</h2>") && up.contains("<dt>place</dt><dd>arc</dd>"), "{up}");
    if let Some(chromium) = require(Tool::Chromium) {
        assert_readable(chromium, &[("relay-real-up", up), ("relay-real-down", down)]);
    }
}

#[test]
fn a_first_replica_follows_by_what_the_page_says() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY); INSERT INTO d.t VALUES (1), (2)")
        .unwrap();
    let mut relay = Configuration::of([url(&source)]).start(&folder);
    relay.has_all_of(&source);
    let statements = relay.wait_for("statements", |relay| {
        let page = relay.get("/").1;
        let (_, code) = page.split_once("<code>CHANGE REPLICATION SOURCE TO\n")?;
        Some(format!("CHANGE REPLICATION SOURCE TO\n{}", code.split_once("</code>")?.0))
    });
    let statements = statements.replace("&#39;", "'");
    let account = statements.replace("'USER'", "'repl'").replace("'PASSWORD'", "'repl'");
    let replica = mysql.sandbox().start().unwrap();
    replica.sql(&account).unwrap();
    replica.wait_for_source(&source).unwrap();
    assert_eq!(replica.sql("SELECT COUNT(*) FROM d.t").unwrap(), "2\n");
    // With a replica nobody needs it, also once that has left.
    let shown = |relay: &mut Relay| relay.get("/").1.contains("CHANGE REPLICATION SOURCE");
    assert!(!shown(&mut relay));
    replica.sql("STOP REPLICA").unwrap();
    relay.wait_for("the replica's end", |relay| {
        (relay.status()["replicas"] == serde_json::json!([])).then_some(())
    });
    assert!(!shown(&mut relay));
}

/// Hostile connections, as a client of the relay sees them.
fn knock(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// All that comes until the end; a reset is an end too.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}

#[test]
fn hostile_peers_leave_room_for_the_others() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source.sql("CREATE DATABASE d").unwrap();
    let configuration = Configuration::of([url(&source)]).listen("connections_max = 3").account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let served = |relay: &Relay, when: &str| {
        let answer = relay.sql(mysql, "reader", &["--ssl-mode=DISABLED"], "SELECT @@GLOBAL.gtid_mode");
        assert_eq!(answer.as_deref(), Ok("ON\n"), "{when}");
    };

    // Thousands of connections (`scripts/soak/relay.sh` sets more), the last of them open and silent, or a byte at a time.
    let mut open = std::collections::VecDeque::new();
    for number in 0..setting("BINLOGZ_RELAY_CONNECTIONS", 2000) {
        let mut stream = knock(&relay);
        if number % 3 == 0 {
            let _ = stream.write_all(&[1]);
        }
        open.push_back(stream);
        if open.len() > 400 {
            open.pop_front();
        }
    }
    served(&relay, "among silent ones");
    let status = relay.status();
    assert!(status["clients"]["turned_away"].as_u64().unwrap() > 200, "{status}");
    assert!(status["clients"]["logging_in"].as_u64().unwrap() <= 128, "{status}");
    for stream in &mut open {
        // A client that was sent away can't be written to.
        let _ = stream.write_all(&[0]);
    }
    served(&relay, "among slow ones");

    // Packets: larger than any login, cut, out of order, empty, nothing but noise.
    let large = [&[0xff, 0xff, 0xff, 1][..], &[0x41; 100_000]].concat();
    let cut = [0x20, 0, 0, 1, 5];
    let noise: Vec<u8> =
        (0..4000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (what, bytes) in [
        ("large", large.as_slice()),
        ("cut", &cut),
        ("out of order", &[1, 0, 0, 9, 0]),
        ("empty", &[0, 0, 0, 1]),
        ("noise", &noise),
        ("http", b"GET / HTTP/1.1\r\n\r\n"),
    ] {
        let mut stream = knock(&relay);
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let answer = rest(stream);
        assert!(!answer.windows(5).any(|window| window == b"\x07\0\0\x02\0"), "{what}: logged in");
        served(&relay, what);
    }
    drop(open);

    // After login: there is room for three, including those that know the password, and unknown statements are
    // refused.
    let reader = |relay: &Relay| {
        let mut dump = relay.mysqlbinlog(mysql, "reader");
        dump.args(["--stop-never", "--raw", "binlog.000001"]);
        spawn_in(&folder, dump)
    };
    let readers: Vec<_> = (0..3).map(|_| reader(&relay)).collect();
    relay.wait_for("three readers", |relay| (relay.status()["clients"]["logged_in"] == 3).then_some(()));
    let refused = relay.sql(mysql, "reader", &[], "SELECT 1").unwrap_err();
    assert!(refused.contains("Too many connections"), "{refused}");
    drop(readers);
    relay.wait_for("room", |relay| (relay.status()["clients"]["logged_in"] == 0).then_some(()));
    for statement in ["SELECT SLEEP(1)", "BINLOG 'x'", "PURGE BINARY LOGS TO", "SHOW TABLES"] {
        assert!(relay.sql(mysql, "reader", &[], statement).is_err(), "{statement}");
    }
    served(&relay, "at the end");
    // The status port refuses garbage too.
    let mut garbage = TcpStream::connect(&relay.http).unwrap();
    garbage.write_all(&noise).unwrap();
    assert!(rest(garbage).starts_with(b"HTTP/1.1 400"));
    assert_eq!(relay.get("/healthz").0, 200);
}

fn spawn_in(folder: &Folder, mut command: Command) -> Running {
    static COUNT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let place = folder.path(&format!("out{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
    fs::create_dir_all(&place).unwrap();
    // Replicas without a uuid are told apart by their server ids.
    command
        .arg(format!("--connection-server-id={}", 1000 + COUNT.load(std::sync::atomic::Ordering::Relaxed)));
    Running(command.current_dir(place).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

#[test]
fn status_says_that_the_source_is_down() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql.sandbox().start().unwrap();
    let mut relay = Configuration::of([url(&source)]).start(&folder);
    relay.has_gtids_of(&source);
    let address = format!("--http={}", relay.http);
    assert_eq!(folder.run(["relay", "status", &address]).code, Some(0));

    source.kill();
    relay.wait_for("the source's end", |relay| (relay.phase() != "receiving").then_some(()));
    let shown = folder.run(["relay", "status", &address]);
    let place = format!("source    127.0.0.1:{} is down: ", source.port());
    assert!(shown.text().starts_with(&place), "{}", shown.text());
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(1), ""));
}
