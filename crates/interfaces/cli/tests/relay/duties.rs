//! The relay's threads, on a real server: if one can't be started, or ends, health is not green while nothing is
//! received.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};
use binlogz_testkit::faults::{Call, CallFault, FaultRule, FaultShim};
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

const CLIENTS: usize = 60;

/// Ends the relay's connection at the source; it comes again.
fn cut(source: &MysqlSandbox) {
    let dump = "SELECT id FROM performance_schema.processlist WHERE command LIKE 'Binlog Dump%'";
    for id in source.sql(dump).unwrap().lines() {
        // It may be gone already.
        let _ = source.sql(&format!("KILL {id}"));
    }
}

/// Connects and says nothing.
fn knock(relay: &Relay) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

#[test]
fn threads_that_can_not_be_had_stop_nothing_for_good_and_are_told_of() {
    let mysql = require_tool!(Tool::Mysql);
    let Some(shim) = FaultShim::require() else { return };
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)").unwrap();
    let insert = "INSERT INTO d.t (body) VALUES (REPEAT('plain ', 1000))";
    let mut faults = shim.faults(&folder.path("faults"), 1).unwrap();
    let configuration =
        Configuration::of([url(&source)]).store("store = \"compressed\"").account("reader", "");
    let mut relay = configuration.environment(faults.env()).start(&folder);
    relay.has_gtids_of(&source);
    assert_eq!(relay.get("/healthz"), (200, "ok\n".into()));
    assert_eq!(relay.metric("binlogz_relay_duty_up{duty=\"store\"}"), 1.0);
    assert_eq!(relay.metric("binlogz_relay_duty_up{duty=\"receive\"}"), 1.0);

    // Once: the next connection finds the limit reached, the one after that does not.
    faults.set(&[FaultRule::new(Call::Thread, CallFault::TRY_AGAIN).count(1)]).unwrap();
    cut(&source);
    source.sql(insert).unwrap();
    relay.has_gtids_of(&source);
    assert_eq!(faults.failed().unwrap(), [1]);
    relay.wait_for("health", |relay| (relay.get("/healthz").0 == 200).then_some(()));

    // For longer: nothing is received, and health says so.
    faults.set(&[FaultRule::new(Call::Thread, CallFault::TRY_AGAIN)]).unwrap();
    let mut clients: Vec<_> = (0..CLIENTS).map(|_| knock(&relay)).collect();
    for client in &mut clients {
        let mut told = Vec::new();
        client.read_to_end(&mut told).unwrap();
        let told = String::from_utf8_lossy(&told);
        assert!(told.contains("Can't create a new thread (errno 11)"), "{told}");
    }
    cut(&source);
    source.sql(insert).unwrap();
    let why = relay.wait_for("a red health", |relay| {
        let (code, why) = relay.get("/healthz");
        (code == 503).then_some(why)
    });
    assert!(why.contains("store-worker") && why.contains("duty receive: up"), "{why}");
    assert!(why.contains("duty store: down"), "{why}");
    assert_eq!(relay.get("/readyz").0, 200);
    assert_eq!(relay.metric("binlogz_relay_duty_up{duty=\"store\"}"), 0.0);
    assert_eq!(relay.metric("binlogz_relay_healthy"), 0.0);
    relay.wait_for("a lag", |relay| (relay.status()["source"]["lag_seconds"].as_u64()? > 1).then_some(()));
    // It stays red however often it is tried again.
    for _ in 0..50 {
        assert_eq!(relay.get("/healthz").0, 503);
    }
    let shown = folder.run(["relay", "status", &format!("--http={}", relay.http)]);
    assert_eq!(shown.code, Some(1), "{}", shown.text());
    assert!(shown.text().contains("trouble   "), "{}", shown.text());

    // Room again: everything goes on without a restart.
    faults.clear().unwrap();
    relay.has_gtids_of(&source);
    relay.wait_for("health", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    assert_eq!(relay.sql(mysql, "reader", &["--ssl-mode=DISABLED"], "SELECT 1").unwrap(), "1\n");
}

#[test]
fn health_is_answered_among_idle_connections_and_to_nobody_elses_page() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let mut relay = Configuration::of([url(&source)]).account("reader", "").start(&folder);
    relay.has_all_of(&source);
    let _idle: Vec<_> = (0..200).map(|_| TcpStream::connect(&relay.http).unwrap()).collect();
    assert_eq!(relay.get("/healthz"), (200, "ok\n".into()));
    let verbose = relay.get("/healthz?verbose").1;
    for duty in ["accept", "http", "receive", "sync", "watch"] {
        assert!(verbose.contains(&format!("duty {duty}: up")), "{verbose}");
    }
    for (host, code) in [("attacker.example:80", "403"), ("localhost", "200"), ("[::1]:1", "200")] {
        let mut stream = TcpStream::connect(&relay.http).unwrap();
        write!(stream, "GET /status.json HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {code} ")), "{host}: {answer}");
        assert_eq!(answer.contains("gtid_executed"), code == "200", "{answer}");
    }
}

#[test]
fn lag_counts_from_the_last_moment_at_which_the_relay_was_level() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql.sandbox().start().unwrap();
    let mut relay = Configuration::of([url(&source)]).account("reader", "").start(&folder);
    relay.has_all_of(&source);
    // An event that says it is old: the source is idle, and all that it has is here.
    source.sql("SET TIMESTAMP = UNIX_TIMESTAMP() - 100000; CREATE DATABASE d").unwrap();
    relay.has_all_of(&source);
    let lag = |relay: &Relay| relay.status()["source"]["lag_seconds"].as_u64();
    relay.wait_for("level", |relay| (lag(relay) == Some(0)).then_some(()));
    source.kill();
    relay.wait_for("lag", |relay| lag(relay).filter(|lag| *lag >= 3));
    assert!(lag(&relay).unwrap() < 50_000, "{}", relay.status()["source"]);
    assert_eq!(relay.get("/healthz").0, 200, "the source can't be reached: nothing is wrong here");
    assert!(relay.status()["source"]["error"].is_string());
}
