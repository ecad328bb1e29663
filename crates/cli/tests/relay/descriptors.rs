//! A relay whose descriptors clients try to use up, on real servers: the log goes on, and is served afterwards.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::Folder;
use crate::common::relay::{Configuration, is_kept, url};
use binlogz_testkit::{Tool, require_tool};

const DESCRIPTORS_MAX: u32 = 256;
const CONNECTIONS: usize = 300;
const ROTATIONS: usize = 8;

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

/// Ends the connections also when the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
