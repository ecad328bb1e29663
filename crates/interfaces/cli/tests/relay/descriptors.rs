//! A relay whose descriptors clients try to use up, on real servers: the log goes on, and is served afterwards.

use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::Folder;
use crate::common::relay::{Configuration, Running, is_kept, url};
use binlogz_testkit::{Tool, require_tool};

const DESCRIPTORS_MAX: u32 = 256;
const CONNECTIONS: usize = 300;
const ROTATIONS: usize = 8;
/// Clients whose descriptors are counted.
const FEW: usize = 10;

#[test]
fn connections_never_take_the_descriptors_of_the_log() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, n INT)").unwrap();
    let configuration =
        Configuration::of([url(&source)]).account("reader", "admin = true\nform = \"received\"");
    let mut relay = configuration.open_files_max(DESCRIPTORS_MAX).start(&folder);
    relay.has_all_of(&source);
    let said = relay.messages().into_iter().find(|line| line.contains("RLIMIT_NOFILE"));
    assert!(said.is_some_and(|line| line.contains("the process may open 256 ")), "{}", relay.said());

    let done = AtomicBool::new(false);
    let port = relay.port;
    std::thread::scope(|scope| {
        // They never log in; as many as are ended come again.
        scope.spawn(|| {
            let mut open = std::collections::VecDeque::new();
            while !done.load(Ordering::Relaxed) {
                if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
                    open.push_back(stream);
                }
                if open.len() > CONNECTIONS {
                    open.pop_front();
                }
            }
        });
        let _stop = Stop(&done);
        for number in 0..ROTATIONS {
            source.sql(&format!("INSERT INTO d.t (n) VALUES ({number}); FLUSH BINARY LOGS")).unwrap();
            relay.has_all_of(&source);
            let status = relay.status();
            assert_eq!(status["errors"]["store"], serde_json::Value::Null, "{status}");
        }
        // Among all those, somebody with a password.
        let plain = ["--ssl-mode=DISABLED"];
        let logs = relay.sql(mysql, "reader", &plain, "SHOW BINARY LOGS").unwrap();
        assert_eq!(logs.lines().count(), ROTATIONS + 1, "{logs}");
    });

    // What the files say, and a dump by GTID, in the same process.
    let plain = ["--ssl-mode=DISABLED"];
    let (file, position) = source.position().unwrap();
    let status = relay.sql(mysql, "reader", &plain, "SHOW BINARY LOG STATUS").unwrap();
    assert!(status.starts_with(&format!("{file}\t{position}\t")), "{status}");
    assert!(status.trim_end().ends_with(&source.gtid_executed().unwrap()), "{status}");
    is_kept(&source, &folder.path("kept"));
    let replica = mysql.sandbox().start().unwrap();
    relay.replicates_to(&replica, "reader", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    source.sql("INSERT INTO d.t (n) VALUES (4711)").unwrap();
    relay.brings(&source, &replica, &["d"]);
    assert_eq!(relay.phase(), "receiving");
}

/// The limits count with this many descriptors (`DESCRIPTORS_LOGGING_IN`, `DESCRIPTORS_LOGGED_IN`).
#[test]
fn a_connection_has_one_descriptor_and_a_dump_two_more() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE d").unwrap();
    let mut relay = Configuration::of([url(&source)]).account("reader", "").start(&folder);
    relay.has_all_of(&source);
    let process = format!("/proc/{}/fd", relay.child.id());
    let open = || std::fs::read_dir(&process).unwrap().count();
    let before = open();
    let greeted: Vec<_> = (0..FEW)
        .map(|_| {
            let mut client = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
            // From here on its thread waits for an answer.
            assert!(client.read(&mut [0; 256]).unwrap() > 0);
            client
        })
        .collect();
    relay.wait_for("one descriptor a client", |_| (open() <= before + FEW).then_some(()));
    drop(greeted);
    relay.wait_for("end of all clients", |_| (open() <= before).then_some(()));

    // With TLS and without it: they wait at the log's end.
    for mode in ["--ssl-mode=REQUIRED", "--ssl-mode=DISABLED"] {
        let readers: Vec<_> = (0..FEW)
            .map(|number| {
                let mut reader = relay.mysqlbinlog(mysql, "reader");
                reader.args([
                    mode,
                    "--stop-never",
                    "--raw",
                    &format!("--result-file={number}-"),
                    "binlog.000001",
                ]);
                reader.arg(format!("--connection-server-id={}", 100 + number)).current_dir(folder.path(""));
                Running(reader.spawn().unwrap())
            })
            .collect();
        let has_come = |number: usize| {
            std::fs::metadata(folder.path(&format!("{number}-binlog.000001")))
                .is_ok_and(|file| file.len() > 100)
        };
        relay.wait_for("log at each reader", |_| (0..FEW).all(has_come).then_some(()));
        // A duty may have one open for a moment.
        relay.wait_for("three descriptors a reader", |_| (open() <= before + 3 * FEW).then_some(()));
        drop(readers);
        (0..FEW).for_each(|number| {
            std::fs::remove_file(folder.path(&format!("{number}-binlog.000001"))).unwrap()
        });
        relay.wait_for("end of all readers", |_| (open() <= before).then_some(()));
    }
}

/// Ends the connections also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
