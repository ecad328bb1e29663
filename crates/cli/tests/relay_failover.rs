//! The source dies, another server takes its place: the relay's replicas go on, and a new one is built from the relay alone.

mod common;

use std::fs;

use binlogz_testkit::{MysqlSandbox, Tool, require_tool};
use common::Folder;
use common::configured::{Relay, accounts, url};

fn follows(replica: &MysqlSandbox, relay: &Relay) {
    replica
        .sql(&format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={}, SOURCE_USER='reader',
             SOURCE_PASSWORD='secret', SOURCE_CONNECT_RETRY=1, SOURCE_RETRY_COUNT=100, SOURCE_SSL=0,
             SOURCE_AUTO_POSITION=1; START REPLICA",
            relay.port
        ))
        .unwrap();
}

fn has_all(replica: &MysqlSandbox, source: &MysqlSandbox, relay: &Relay) {
    replica
        .wait_for_source(source)
        .unwrap_or_else(|error| panic!("{error}\n{}", fs::read_to_string(&relay.log).unwrap()));
    assert_eq!(replica.checksum_tables("d").unwrap(), source.checksum_tables("d").unwrap());
    assert_eq!(replica.gtid_executed().unwrap(), source.gtid_executed().unwrap());
}

#[test]
fn another_server_takes_the_sources_place() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut first = mysql.sandbox().compression(3).start().unwrap();
    let second = mysql.sandbox().start().unwrap();
    let replica = mysql.sandbox().start().unwrap();
    let insert = |text: &str| format!("INSERT INTO d.t (body) VALUES (REPEAT('{text} ', 100)), ('{text}');");
    first.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)").unwrap();
    second.replicate_from(&first).unwrap();
    let more = format!(
        "[store]\ndir = \"kept\"\n[listen]\naddress = \"127.0.0.1:0\"\n{}",
        accounts(&folder, &[("reader", "")])
    );
    let servers = [url(&first), url(&second)];
    let mut relay = Relay::start(&folder, &[&servers[0], &servers[1]], &more);
    relay.has_all_of(&first);
    follows(&replica, &relay);
    first.sql(&insert("before")).unwrap();
    has_all(&replica, &first, &relay);
    second.wait_for_source(&first).unwrap();
    second.flush_binary_logs().unwrap();

    // The source is gone for good.
    first.kill();
    second.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
    second.sql(&insert("after")).unwrap();
    second.flush_binary_logs().unwrap();
    second.sql(&insert("later")).unwrap();
    has_all(&replica, &second, &relay);
    let status = relay.status();
    assert_eq!(status["source"]["server"], format!("127.0.0.1:{}", second.port()), "{status}");
    assert_eq!(status["log"]["source_uuid"].as_str().unwrap(), second.server_uuid().unwrap());

    // A replica that has nothing gets all of it, the old log first.
    let new = mysql.sandbox().start().unwrap();
    follows(&new, &relay);
    has_all(&new, &second, &relay);

    // Under a name that both servers have, nobody gets anything.
    let mut fetch = mysql.command("mysqlbinlog");
    fetch.args(["--no-defaults", "-R", "--host=127.0.0.1", "--user=reader"]).env("MYSQL_PWD", "secret");
    let first_file = relay.status()["log"]["first_file"].as_str().unwrap().to_owned();
    let fetched = fetch.args([format!("--port={}", relay.port), "binlog.000001".into()]).output().unwrap();
    assert!(!fetched.status.success());
    assert_ne!(first_file, "binlog.000001", "it begins with what the old log lacks");

    // All of it survives a restart; the one that was followed comes back behind, and is not followed.
    drop(relay);
    first.start().unwrap();
    second.sql(&insert("at last")).unwrap();
    let mut relay = Relay::start(&folder, &[&url(&first), &servers[1]], &more);
    relay.has_all_of(&second);
    let status = relay.status();
    assert_eq!(status["log"]["gtid_executed"].as_str().unwrap(), second.gtid_executed().unwrap());
    assert!(status["last_errors"][0]["text"].as_str().unwrap().contains("lacks transactions"), "{status}");
}
