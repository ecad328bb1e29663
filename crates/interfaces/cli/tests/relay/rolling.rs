//! Rolling upgrades: an earlier binlogz and this one take turns on one directory, under load and with replicas. None is lost, and
//! each transaction arrives once. scripts/soak/rolling.sh builds the earlier one.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use binlogz_binlog::event::AnyGtidEvent;
use binlogz_source::{ConnectOptions, DumpOptions, Password, PasswordOption, RemoteLog};
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};

const ACCOUNT: &str = "reader";

/// A reader by file and position, as a client without GTIDs: each transaction's number, in the order in which they came.
#[derive(Default)]
struct Reader {
    numbers: Mutex<Vec<u64>>,
    is_over: AtomicBool,
}

impl Reader {
    /// Reads files of this name's form, and goes on at the end of the last whole transaction whenever the connection ends.
    fn read(&self, port: u16, first: &str, server_id: u32) {
        let mut place = (first.to_owned(), 4);
        while !self.is_over.load(Ordering::Acquire) {
            // The relay has gone, and comes back.
            let _ = self.read_once(port, &mut place, server_id);
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn read_once(
        &self,
        port: u16,
        place: &mut (String, u64),
        server_id: u32,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let mut connect = ConnectOptions::new("reader");
        connect.set_url(&format!("mysql://{ACCOUNT}@127.0.0.1:{port}"))?;
        connect.password = PasswordOption::Given(Password::new("secret"));
        let dump =
            DumpOptions { server_id, non_blocking: false, ..DumpOptions::to_the_end(&place.0, place.1) };
        let mut log = RemoteLog::open(&connect, dump)?;
        let mut open = None;
        while let Some(event) = log.next_event()? {
            let name = String::from_utf8_lossy(event.name).into_owned();
            if name != place.0 {
                *place = (name, 4);
            }
            if event.header.event_type.is_gtid() {
                let told = AnyGtidEvent::decode_frame(&event.frame()?.unchecked()?)?;
                open = told.as_ref().and_then(AnyGtidEvent::gtid).map(|gtid| gtid.gno());
            }
            // Each transaction here is one INSERT, which ends with Xid, or one statement that defines something.
            let is_end = matches!(event.header.event_type, binlogz_binlog::EventType::XID)
                || matches!(event.header.event_type, binlogz_binlog::EventType::TRANSACTION_PAYLOAD);
            if is_end && let Some(number) = open.take() {
                self.numbers.lock().unwrap().push(number);
                place.1 = event.offset + u64::from(event.header.event_size);
            }
        }
        Ok(())
    }

    /// Each number after the first that came is the one after it.
    fn check(&self, last: u64, what: &str) {
        let numbers = self.numbers.lock().unwrap();
        let first = *numbers.first().unwrap();
        let wrong = numbers.iter().zip(first..).find(|(came, expected)| **came != *expected);
        assert_eq!(wrong, None, "{what}: missing or twice");
        assert_eq!(numbers.last(), Some(&last), "{what}");
    }
}

/// Tells the load and the readers that all is over, in a panic too: the scope waits for them before it passes the panic on.
struct EndAll<'a> {
    has_ended: &'a AtomicBool,
    readers: [&'a Reader; 2],
}

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Release);
        for reader in self.readers {
            reader.is_over.store(true, Ordering::Release);
        }
    }
}

fn last_number(source: &MysqlSandbox) -> u64 {
    let all = source.gtid_executed().unwrap();
    all.trim().rsplit([':', '-']).next().unwrap().parse().unwrap()
}

#[test]
#[ignore = "needs an earlier binlogz; scripts/soak/rolling.sh"]
fn an_earlier_relay_and_this_one_take_turns_and_lose_nothing() {
    let mysql = require_tool!(Tool::Mysql);
    let earlier =
        PathBuf::from(std::env::var_os("BINLOGZ_EARLIER").expect("BINLOGZ_EARLIER: a binlogz of before"));
    let rounds: usize = std::env::var("BINLOGZ_ROUNDS").map_or(4, |text| text.parse().unwrap());
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    let (by_gtid, by_position) = (mysql.sandbox().start().unwrap(), mysql.sandbox().start().unwrap());
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)").unwrap();
    // Stored plain or compressed in turn, cut into several uncompressed files: every file of the relay's own has content.
    let configuration = Configuration::of([url(&source)])
        .store("store = \"compressed\"\nuncompressed_file_size = \"256K\"\nmax_bytes = \"24M\"")
        .account(ACCOUNT, "form = \"received\"")
        .account("expanded", "form = \"uncompressed\"")
        .ports(reserved_port(), reserved_port());
    let program = |round: usize| round.is_multiple_of(2).then_some(earlier.as_path());
    let mut relay = configuration.run_by(program(0)).start(&folder);
    relay.has_all_of(&source);
    relay.replicates_to(&by_gtid, "expanded", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    relay.replicates_to(
        &by_position,
        ACCOUNT,
        "SOURCE_SSL=0, SOURCE_AUTO_POSITION=0, SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4",
    );
    let port = relay.port;
    let (received, expanded) = (Reader::default(), Reader::default());
    let has_ended = AtomicBool::new(false);
    let mut versions = Vec::new();
    thread::scope(|scope| {
        let _end = EndAll { has_ended: &has_ended, readers: [&received, &expanded] };
        let readers = [(&received, "binlog.000001", 901), (&expanded, "binlog-u.000001", 902)]
            .map(|(reader, first, id)| scope.spawn(move || reader.read(port, first, id)));
        let writing = scope.spawn(|| {
            while !has_ended.load(Ordering::Acquire) {
                let rows = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 60));\n".repeat(400);
                source.sql(&(rows + "FLUSH BINARY LOGS")).unwrap();
            }
        });
        let mut turns = |mut relay: Relay| {
            for round in 0..rounds {
                thread::sleep(Duration::from_secs(4));
                assert!(!writing.is_finished(), "the load has ended: its cause stands above");
                for replica in [&by_gtid, &by_position] {
                    // None has had to be started again.
                    replica.wait_for_connection().unwrap();
                }
                versions.push(relay.status()["version"].as_str().unwrap().to_owned());
                // As a package that is upgraded ends it, or as a crash does.
                relay.kill();
                relay = configuration.run_by(program(round + 1)).start(&folder);
            }
            relay
        };
        let mut last = turns(relay);
        has_ended.store(true, Ordering::Release);
        writing.join().unwrap();
        last.has_all_of(&source);
        for replica in [&by_gtid, &by_position] {
            last.brings(&source, replica, &["d"]);
            replica.wait_for_connection().unwrap();
        }
        let number = last_number(&source);
        last.wait_for("last transaction at the readers", |_| {
            let has = |reader: &Reader| reader.numbers.lock().unwrap().last() == Some(&number);
            (has(&received) && has(&expanded)).then_some(())
        });
        for reader in [&received, &expanded] {
            reader.is_over.store(true, Ordering::Release);
        }
        // Their connections end with it.
        drop(last);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        received.check(number, "received");
        expanded.check(number, "uncompressed");
        println!("{rounds} turns, {number} transactions, versions {versions:?}");
    });
    for name in ["relay.numbers", "relay.uuid", "relay.replicas", "binlog.store", "binlog.durable"] {
        assert!(folder.path("kept").join(name).exists(), "{name}: {:?}", folder.names());
    }
}
