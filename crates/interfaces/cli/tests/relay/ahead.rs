//! Clients that have more than the relay: if the source has it too, they wait and lose nothing; all others are refused in
//! the server's words.

use std::process::Command;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, client, url};
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

const TABLE: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT);";
const ROW: &str = "INSERT INTO d.t (body) VALUES ('a row');";
const BY_GTID: &str = "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1";
/// The source's error for a file that it doesn't have.
const NO_SUCH_FILE: &str = "Could not find first log file name in binary log index file";
/// The error of `Binlog_sender`.
const BEHIND_THE_END: &str = "Client requested source to start replication from position > file size";

fn configuration(source: &MysqlSandbox) -> Configuration {
    let configuration = Configuration::of([url(source)]).account("boss", "admin = true");
    configuration.account("reader", "form = \"received\"")
}

fn admin(relay: &Relay, mysql: &InstalledTool, statement: &str) {
    relay.sql(mysql, "boss", &["--ssl-mode=DISABLED", "--get-server-public-key"], statement).unwrap();
}

/// mysqlbinlog's error when it can't have the log that it asks for.
fn refusal(mut mysqlbinlog: Command) -> String {
    let output = mysqlbinlog.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{text}");
    text.lines().find(|line| line.contains("ERROR")).unwrap_or(&text).to_owned()
}

/// It has transactions of this server up to this number, and waits for more.
fn with_gtids(mut mysqlbinlog: Command, uuid: &str, last: u64) -> Command {
    mysqlbinlog.args(["--read-from-remote-source=BINLOG-DUMP-GTIDS", "--get-server-public-key"]);
    mysqlbinlog.args(["--stop-never", &format!("--exclude-gtids={uuid}:1-{last}"), "binlog.000001"]);
    mysqlbinlog
}

/// It waits for more after a position of a file.
fn from_position(mut mysqlbinlog: Command, name: &str, position: u64) -> Command {
    mysqlbinlog.args(["--read-from-remote-server", "--stop-never", "--get-server-public-key"]);
    mysqlbinlog.args([&format!("--start-position={position}"), name]);
    mysqlbinlog
}

#[test]
fn what_the_source_lacks_is_refused_as_the_source_does() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut source = mysql.sandbox().start().unwrap();
    let replica = mysql.sandbox().start().unwrap();
    let uuid = source.server_uuid().unwrap();
    source.sql(&(TABLE.to_owned() + ROW)).unwrap();
    let mut relay = configuration(&source).start(&folder);
    relay.has_all_of(&source);
    let its = |relay: &Relay| relay.client(mysql, "mysqlbinlog", "reader");
    let sources = || client(mysql, "mysqlbinlog", source.port(), "repl", "repl");

    replica.sql(&format!("RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '{uuid}:1-1000'")).unwrap();
    let refused = |relay: &mut Relay| {
        relay.wait_for("refusal", |_| {
            let status = replica.replica_status().unwrap();
            (status["Last_IO_Errno"] == "13114").then(|| status["Last_IO_Error"].clone())
        })
    };
    relay.replicates_to(&replica, "reader", BY_GTID);
    let told = refused(&mut relay);
    assert!(told.contains("Replica has more GTIDs than the source has"), "{told}");
    replica.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
    replica.replicate_from(&source).unwrap();
    assert_eq!(told, refused(&mut relay), "the source's words");

    for name in ["binlog.000001", "binlog-u.000001", "binlog-z.000001"] {
        let refused = refusal(from_position(its(&relay), name, 1_000_000));
        assert!(refused.contains(BEHIND_THE_END), "{name}: {refused}\n{}", relay.said());
    }
    assert!(refusal(from_position(sources(), "binlog.000001", 1_000_000)).contains(BEHIND_THE_END));
    assert!(refusal(from_position(sources(), "binlog.000099", 4)).contains(NO_SUCH_FILE));
    for name in ["binlog.000099", "binlog-u.000099", "binlog-z.000099"] {
        let refused = refusal(from_position(its(&relay), name, 4));
        assert!(refused.contains(NO_SUCH_FILE), "{name}: {refused}\n{}", relay.said());
    }
    assert!(refusal(with_gtids(its(&relay), &uuid, 1000)).contains("Replica has more GTIDs"));

    // Without a source nobody can tell. Error 1040 lets a replica come back, 1236 would end it for good.
    source.stop().unwrap();
    for client in [
        with_gtids(its(&relay), &uuid, 1000),
        from_position(its(&relay), "binlog.000001", 1_000_000),
        from_position(its(&relay), "binlog.000099", 4),
    ] {
        let refused = refusal(client);
        assert!(refused.contains("the source can't be asked: connect to 127.0.0.1"), "{refused}");
        assert!(refused.contains("may in a moment"), "{refused}");
    }
}

#[test]
fn a_replica_that_followed_the_source_further_loses_nothing() {
    goes_on_at_the_relay(0);
}

#[test]
fn nor_does_one_that_followed_it_into_a_file_that_is_not_here() {
    goes_on_at_the_relay(2);
}

/// Two replicas leave the source for the relay, which stopped so many files before.
fn goes_on_at_the_relay(files: usize) {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let by_gtid = mysql.sandbox().start().unwrap();
    let by_position = mysql.sandbox().start().unwrap();
    source.sql(TABLE).unwrap();
    let mut relay = configuration(&source).start(&folder);
    relay.has_all_of(&source);
    admin(&relay, mysql, "STOP REPLICA");
    for _ in 0..files {
        source.flush_binary_logs().unwrap();
    }
    source.sql(&ROW.repeat(5)).unwrap();
    for replica in [&by_gtid, &by_position] {
        replica.replicate_from(&source).unwrap();
        replica.wait_for_source(&source).unwrap();
        replica.sql("STOP REPLICA").unwrap();
    }
    let status = by_position.replica_status().unwrap();
    let (file, position) = (&status["Relay_Source_Log_File"], &status["Exec_Source_Log_Pos"]);
    relay.replicates_to(&by_gtid, "reader", BY_GTID);
    let place = format!("SOURCE_AUTO_POSITION=0, SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={position}");
    relay.replicates_to(&by_position, "reader", &format!("SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, {place}"));
    // Both are connected, or come again; neither has been refused for good.
    let waits = match files {
        0 => format!("from {position}"),
        _ => format!("{file} is not here after 10s: the source has it"),
    };
    relay.wait_for("requests", |relay| {
        let said = relay.said();
        (said.contains("what is not in") && said.contains(&waits)).then_some(())
    });
    source.sql(&ROW.repeat(3)).unwrap();
    admin(&relay, mysql, "START REPLICA");
    for replica in [&by_gtid, &by_position] {
        relay.brings(&source, replica, &["d"]);
        assert_eq!(replica.sql("SELECT COUNT(*) FROM d.t").unwrap().trim(), "8");
        assert_eq!(replica.replica_status().unwrap()["Last_IO_Errno"], "0");
    }
}
