//! The source dies, another server takes its place: the relay's replicas go on, and a new one is built from the relay alone.

mod common;

use binlogz_testkit::{Tool, require_tool};
use common::Folder;
use common::relay::{Configuration, url};

const BY_GTID: &str = "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1";

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
    let configuration = Configuration::of([url(&first), url(&second)]).account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&first);
    relay.replicates_to(&replica, "reader", BY_GTID);
    first.sql(&insert("before")).unwrap();
    relay.brings(&first, &replica, &["d"]);
    second.wait_for_source(&first).unwrap();
    second.flush_binary_logs().unwrap();

    // The source is gone for good.
    first.kill();
    second.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
    second.sql(&insert("after")).unwrap();
    second.flush_binary_logs().unwrap();
    second.sql(&insert("later")).unwrap();
    relay.brings(&second, &replica, &["d"]);
    let status = relay.status();
    assert_eq!(status["source"]["server"], format!("127.0.0.1:{}", second.port()), "{status}");
    assert_eq!(status["log"]["source_uuid"].as_str().unwrap(), second.server_uuid().unwrap());

    // A replica that has nothing gets all of it, the old log first.
    let new = mysql.sandbox().start().unwrap();
    relay.replicates_to(&new, "reader", BY_GTID);
    relay.brings(&second, &new, &["d"]);

    // Under a name that both servers have, nobody gets anything.
    let first_file = relay.status()["log"]["first_file"].as_str().unwrap().to_owned();
    assert!(relay.fetch(mysql, "reader", &folder.path("fetched"), &[], &["binlog.000001"]).is_err());
    assert_ne!(first_file, "binlog.000001", "it begins with what the old log lacks");

    // All of it survives a restart; the one that was followed comes back behind, and is not followed.
    drop(relay);
    first.start().unwrap();
    second.sql(&insert("at last")).unwrap();
    let mut relay = configuration.with_servers([url(&first), url(&second)]).start(&folder);
    relay.has_all_of(&second);
    let status = relay.status();
    assert_eq!(status["log"]["gtid_executed"].as_str().unwrap(), second.gtid_executed().unwrap());
    assert!(status["last_errors"][0]["text"].as_str().unwrap().contains("lacks transactions"), "{status}");
}
