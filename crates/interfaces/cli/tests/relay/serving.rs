//! Many replicas at once: a conversion for one serves the others, and memory stays within its bound.
//!
//! `scripts/soak/relay.sh` sets BINLOGZ_RELAY_REPLICAS higher.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};
use binlogz_binlog::EventType;
use binlogz_source::wire::session::{ClientProfile, DumpStart};
use binlogz_source::{ConnectOptions, DumpOptions, RemoteLog};
use binlogz_testkit::memory::peak_memory;
use binlogz_testkit::{MysqlSandbox, Tool, require_tool, setting};

/// Memory that the relay may take, in KiB.
const MEMORY_MAX: u64 = 64 << 10;
const MEMORY_PER_REPLICA: u64 = 256;
/// The forms, by the suffix of their names.
const FORMS: [&str; 3] = ["", "-z", "-u"];

fn replicas() -> usize {
    setting("BINLOGZ_RELAY_REPLICAS", 50)
}

fn connect(relay: &Relay) -> ConnectOptions {
    let mut options = ConnectOptions::new("replica");
    options.set_url(&format!("mysql://reader@127.0.0.1:{}", relay.port)).unwrap();
    options.set("password", Some("secret")).unwrap();
    options.set("ssl-mode", Some("DISABLED")).unwrap();
    options
}

/// The events of the first file in a form, as the client was sent them.
fn fetch(options: &ConnectOptions, form: &str) -> Vec<u8> {
    let mut dump = DumpOptions::to_the_end(&format!("binlog{form}.000001"), 4);
    dump.verify_checksums = true;
    let mut log = RemoteLog::open(options, dump).unwrap();
    let mut bytes = Vec::new();
    while let Some(piece) = log.next_piece().unwrap() {
        if piece.is_stored() && piece.name.ends_with(b".000001") {
            bytes.extend_from_slice(piece.bytes);
        }
    }
    bytes
}

/// About 2 MB of small transactions, compressed and not, and one that is larger than a replica's memory.
fn write(source: &MysqlSandbox) {
    let small = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 60));\n";
    source
        .sql(&format!(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT);\n{}
             SET binlog_transaction_compression = ON;\n{}
             INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 30000));
             SET binlog_transaction_compression = OFF;\n{} FLUSH BINARY LOGS",
            small.repeat(300),
            small.repeat(300),
            small.repeat(20)
        ))
        .unwrap();
}

#[test]
fn replicas_in_step_share_and_stay_within_memory() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    write(&source);
    let configuration =
        Configuration::of([url(&source)]).store("store = \"compressed\"").account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let original = fs::read(&source.binlogs().unwrap()[0]).unwrap();
    let options = connect(&relay);

    // One of each form, then many: what they get is the same, and nothing is converted again.
    let alone: Vec<Vec<u8>> = FORMS.iter().map(|form| fetch(&options, form)).collect();
    assert!(alone[0].ends_with(&original[1000..]), "the source's bytes");
    assert!(alone[1].len() < alone[0].len() && alone[0].len() < alone[2].len());
    const CONVERTED: &str = "binlogz_relay_blocks_converted_total";
    const SHARED: &str = "binlogz_relay_blocks_shared_total";
    let (made, before) = (relay.metric(CONVERTED) as u64, relay.metric(SHARED) as u64);
    assert!(made > 20, "{made} blocks");
    let count = replicas();
    thread::scope(|scope| {
        for number in 0..count {
            let (options, alone) = (&options, &alone);
            scope.spawn(move || {
                let form = number % FORMS.len();
                assert!(fetch(options, FORMS[form]) == alone[form], "replica {number}");
            });
        }
    });
    assert_eq!(relay.metric(CONVERTED) as u64, made);
    let shared = relay.metric(SHARED) as u64 - before;
    assert!(shared > made * count as u64 / FORMS.len() as u64 / 2, "{shared} of {made}");

    // They stay, and some do not read what they are sent.
    let (reached, end) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        for number in 0..count {
            let (options, reached, end) = (&options, &reached, &end);
            scope.spawn(move || {
                let start = DumpStart::Position {
                    name: format!("binlog{}.000001", FORMS[number % FORMS.len()]),
                    position: 4,
                };
                let dump = DumpOptions {
                    profile: ClientProfile::Mysqlbinlog,
                    server_id: 1000 + number as u32,
                    start,
                    non_blocking: false,
                    verify_checksums: false,
                };
                let mut log = RemoteLog::open(options, dump).unwrap();
                // The last transaction is in the next file.
                while let Some(piece) = log.next_piece().unwrap() {
                    let stalls = number % 10 == 9;
                    if stalls || (piece.name.ends_with(b".000002") && LAST.contains(&piece.header.event_type))
                    {
                        break;
                    }
                }
                reached.fetch_add(1, Ordering::SeqCst);
                while !end.load(Ordering::SeqCst) {
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        // Also if the test fails here.
        let _ends = AtTheEnd(&end);
        source.sql("INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 30))").unwrap();
        relay.wait_for("all replicas", |_| (reached.load(Ordering::SeqCst) == count).then_some(()));
        let connected = relay.status()["replicas"].as_array().unwrap().len();
        assert_eq!(connected, count);
    });
    is_left_alone_while_idle(&mut relay, &options);
    // Arenas of glibc's would double it.
    let environment = fs::read(format!("/proc/{}/environ", relay.child.id())).unwrap();
    assert!(environment.split(|byte| *byte == 0).any(|set| set == b"MALLOC_ARENA_MAX=1"));
    let most = peak_memory(relay.child.id()).unwrap();
    eprintln!("{count} replicas: {} MiB at most", most >> 10);
    assert!(most <= MEMORY_MAX + MEMORY_PER_REPLICA * count as u64, "{most} KiB");
}

/// Idle dumps sleep: nothing wakes them but the end of their connection, or another dump of the same replica.
fn is_left_alone_while_idle(relay: &mut Relay, options: &ConnectOptions) {
    // Long before one would look for itself.
    let soon = |begun: Instant| assert!(begun.elapsed() < Duration::from_secs(30), "not noticed");
    let connected = |relay: &Relay| relay.status()["replicas"].as_array().unwrap().len();
    let begun = Instant::now();
    relay.wait_for("departure of all", |relay| (connected(relay) == 0).then_some(()));
    soon(begun);

    let follow = |server_id: u32| {
        let start = DumpStart::Position { name: "binlog.000002".into(), position: 4 };
        let profile = ClientProfile::Mysqlbinlog;
        let dump = DumpOptions { profile, server_id, start, non_blocking: false, verify_checksums: false };
        let mut log = RemoteLog::open(options, dump).unwrap();
        // The dump begins with the first one that is asked for.
        log.next_piece().unwrap();
        log
    };
    let mut idle: Vec<RemoteLog> = (1..=10).map(follow).collect();
    relay.wait_for("all", |relay| (connected(relay) == idle.len()).then_some(()));
    thread::sleep(Duration::from_millis(1500));
    let before = switches_of_clients(relay);
    thread::sleep(Duration::from_secs(3));
    let woken = switches_of_clients(relay) - before;
    assert!(woken <= 3, "10 idle clients woke {woken} times in 3 s");

    let begun = Instant::now();
    let _again = follow(1);
    let ended = loop {
        match idle[0].next_piece() {
            Ok(Some(_)) => {}
            ended => break ended.map(drop),
        }
    };
    soon(begun);
    assert!(format!("{ended:?}").contains("same server_uuid/server_id"), "{ended:?}");
}

/// How often the threads of clients were waiting for something.
fn switches_of_clients(relay: &Relay) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{}/task", relay.child.id())).unwrap();
    let of_task = |task: PathBuf| {
        let status = fs::read_to_string(task.join("status")).unwrap_or_default();
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"));
        let is_client = field("Name").is_some_and(|name| name.starts_with("client "));
        let switches = field("voluntary_ctxt_switches").filter(|_| is_client);
        switches.map_or(0, |switches| switches.parse::<u64>().unwrap())
    };
    tasks.map(|task| of_task(task.unwrap().path())).sum()
}

/// Raises a flag when dropped.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// The events that end the last transaction, plain or compressed.
const LAST: [EventType; 2] = [EventType::XID, EventType::TRANSACTION_PAYLOAD];
