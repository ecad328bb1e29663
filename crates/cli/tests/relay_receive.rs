//! How the relay receives, on real servers: over a network that breaks, onto a disk that is full, from any beginning.

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use binlogz_testkit::{MysqlSandbox, Tool, corpus, mutate, require_tool};
use common::Folder;
use common::configured::{Relay, accounts, url};

/// `scripts/soak/relay.sh` sets more.
fn cuts() -> u64 {
    std::env::var("BINLOGZ_RELAY_CUTS").map_or(24, |cuts| cuts.parse().unwrap())
}

/// Stands between relay and source: the first connections are cut after a random number of the source's bytes.
fn proxy(to: u16, seed: u64) -> (u16, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicU64::new(0));
    let counting = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", to)).unwrap());
            let number = counting.fetch_add(1, Ordering::SeqCst);
            // xorshift: small numbers cut logins, large ones the middle of what is larger than a packet.
            let mut random = (seed ^ (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1;
            for shift in [13, 7, 17] {
                random ^= if shift == 7 { random >> shift } else { random << shift };
            }
            let budget = match number % 4 {
                _ if number >= cuts() => u64::MAX,
                0 => random % 500,
                1 => random % 20_000,
                2 => random % 1_000_000,
                _ => (16 << 20) - 500_000 + random % 1_000_000,
            };
            let (from_client, to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || carry(from_client, to_server, u64::MAX));
            std::thread::spawn(move || carry(server, client, budget));
        }
    });
    (port, count)
}

/// So many bytes, then nothing in either direction.
fn carry(mut from: TcpStream, mut to: TcpStream, mut budget: u64) {
    let mut buffer = vec![0; 64 << 10];
    while budget > 0 {
        let room = usize::try_from(budget).unwrap_or(usize::MAX).min(buffer.len());
        match from.read(&mut buffer[..room]) {
            Ok(0) | Err(_) => break,
            Ok(count) if to.write_all(&buffer[..count]).is_err() => break,
            Ok(count) => budget -= count as u64,
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// What is kept is what the source has, file by file; the last one may be open.
fn is_kept(source: &MysqlSandbox, kept: &Path) {
    let plain = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        bytes[21] &= 0xfe; // whether it is in use
        bytes
    };
    for file in source.binlogs().unwrap() {
        let name = file.file_name().unwrap();
        assert!(plain(&file) == plain(&kept.join(name)), "{name:?} differs");
    }
}

#[test]
fn a_network_that_breaks_anywhere_loses_nothing() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("max-binlog-size", "1M").start().unwrap();
    let seed = mutate::seed();
    println!("SEED={seed}");
    let rows = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 500));\n".repeat(150);
    source
        .sql(&format!(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT);
             SET binlog_transaction_compression = OFF; {rows}
             INSERT INTO d.t (body) VALUES (REPEAT('larger than a packet ', 900000));
             SET binlog_transaction_compression = ON; {rows}"
        ))
        .unwrap();
    let (port, count) = proxy(source.port(), seed);
    let broken = format!("mysql://repl@127.0.0.1:{port}");
    // Named often, it is tried again at once.
    let servers = vec![broken.as_str(); 12];
    let more = "[store]\ndir = \"kept\"\n[listen]\naddress = \"127.0.0.1:0\"";
    let mut relay = Relay::start(&folder, &servers, more);
    relay.has_all_of(&source);
    assert!(count.load(Ordering::SeqCst) >= cuts(), "cut often enough");
    is_kept(&source, &folder.path("kept"));
    let status = relay.status();
    assert!(status["errors"]["source"].as_u64().unwrap() >= cuts() / 2, "{status}");
    assert_eq!(status["log"]["gtid_executed"].as_str().unwrap(), source.gtid_executed().unwrap());
}

#[test]
fn a_full_disk_stops_the_receiving_alone() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)")
        .unwrap();
    let more = format!(
        "[store]\ndir = \"kept\"\n[listen]\naddress = \"127.0.0.1:0\"\n{}",
        accounts(&folder, &[("reader", "admin = true")])
    );
    let mut relay = Relay::start_limited(&folder, &[&url(&source)], &more, Some(2048));
    relay.has_all_of(&source);
    source.sql(&"INSERT INTO d.t (body) VALUES (REPEAT('x', 500000));\n".repeat(8)).unwrap();
    relay.wait_for("failure", |relay| (relay.phase() == "failed").then_some(()));
    let (code, why) = relay.get("/healthz");
    assert!(code == 503 && why.contains("File too large"), "{code} {why}");
    assert_eq!(relay.get("/readyz").0, 200);
    assert!(relay.get("/metrics").1.contains("binlogz_relay_errors_total{kind=\"store\"} "));
    let shown = folder.run(["relay", "status", &format!("--http={}", relay.http)]);
    assert_eq!(shown.code, Some(1), "{}", shown.text());

    // What is durable is served, to new clients too.
    let durable = relay.status()["log"]["durable"]["position"].as_u64().unwrap();
    let mut fetch = mysql.command("mysqlbinlog");
    fetch.args(["--no-defaults", "-R", "--raw", "--host=127.0.0.1", "--user=reader", "binlog.000001"]);
    fetch.arg(format!("--port={}", relay.port)).env("MYSQL_PWD", "secret").current_dir(folder.path(""));
    let fetched = fetch.output().unwrap();
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    let (fetched, original) =
        (folder.read("binlog.000001"), fs::read(&source.binlogs().unwrap()[0]).unwrap());
    assert_eq!(fetched.len() as u64, durable);
    assert!(fetched[22..] == original[22..fetched.len()]);
    // The store refuses until it is opened again.
    relay.sql(mysql, "reader", &[], "START REPLICA").unwrap();
    relay.wait_for("failure", |relay| (relay.phase() == "failed").then_some(()));
    drop(relay);
    let mut relay = Relay::start(&folder, &[&url(&source)], &more);
    relay.has_all_of(&source);
    is_kept(&source, &folder.path("kept"));
}

#[test]
fn a_log_begins_where_it_is_told_to_and_may_be_encrypted() {
    let mysql = require_tool!(Tool::Mysql);
    let source = mysql.sandbox().compression(3).start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT); INSERT INTO d.t VALUES (1); FLUSH BINARY LOGS")
        .unwrap();
    let has = source.gtid_executed().unwrap();
    source.sql("INSERT INTO d.t VALUES (2); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (3)").unwrap();
    let listen = "[listen]\naddress = \"127.0.0.1:0\"";
    let kept = |folder: &Folder| -> Vec<String> {
        let names = fs::read_dir(folder.path("kept")).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.starts_with("binlog.0") && name.len() == "binlog.000001".len());
        names.sort();
        names
    };
    for (start, files) in [
        ("now".to_owned(), ["binlog.000003"].as_slice()),
        (has, &["binlog.000002", "binlog.000003"]),
        ("earliest".to_owned(), &["binlog.000001", "binlog.000002", "binlog.000003"]),
    ] {
        let folder = Folder::new();
        // A key of [source] goes in front of the next section.
        let servers = [url(&source)];
        let more = format!("[store]\ndir = \"kept\"\n{listen}");
        let mut relay = Relay::start_with(&folder, &[&servers[0]], &format!("start = {start:?}"), &more);
        relay.has_all_of(&source);
        assert_eq!(kept(&folder), files, "{start}");
    }

    // Files of a backup come first, also those that the source has no more; what follows is encrypted.
    let folder = Folder::new();
    let backup = folder.path("backup");
    fs::create_dir(&backup).unwrap();
    let copies = source.copy_binlogs(&backup).unwrap();
    let files = source.binlogs().unwrap();
    let first = fs::read(&files[0]).unwrap();
    source.sql("PURGE BINARY LOGS TO 'binlog.000002'; INSERT INTO d.t VALUES (4); FLUSH BINARY LOGS; INSERT INTO d.t VALUES (5)").unwrap();
    let keyring = corpus::encrypted().keyring;
    let seeds: Vec<_> = copies.iter().map(|path| path.display().to_string()).collect();
    let more = format!(
        "[store]\ndir = \"kept\"\nseed = {seeds:?}\nkeyring = {:?}\nencrypt = true\nsync_binlog = 100\n\
         sync_interval_ms = 200\n{listen}\n{}",
        keyring.display().to_string(),
        accounts(&folder, &[("reader", "")])
    );
    let mut relay = Relay::start(&folder, &[&url(&source)], &more);
    relay.has_all_of(&source);
    assert_eq!(kept(&folder).len(), 4);
    assert!(folder.read("kept/binlog.000001") == first);
    assert_eq!(folder.read("kept/binlog.000004")[..4], *b"\xfdbin");
    let mut fetch = mysql.command("mysqlbinlog");
    fetch.args([
        "--no-defaults",
        "-R",
        "--raw",
        "--to-last-log",
        "--host=127.0.0.1",
        "--user=reader",
        "binlog.000001",
    ]);
    fetch.arg(format!("--port={}", relay.port)).env("MYSQL_PWD", "secret").current_dir(folder.path(""));
    let fetched = fetch.output().unwrap();
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    for file in source.binlogs().unwrap() {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(folder.read(name)[22..] == fs::read(&file).unwrap()[22..], "{name}");
    }
    // Again with the same configuration: the log is there, and opens with the keyring.
    drop(relay);
    source.sql("INSERT INTO d.t VALUES (6)").unwrap();
    let mut relay = Relay::start(&folder, &[&url(&source)], &more);
    relay.has_all_of(&source);

    // A damaged seed, a gap between seeds, and acknowledgements that would promise too much are refused.
    let refused = |more: &str, said: &str| {
        let folder = Folder::new();
        folder.put("relay.toml", format!("[source]\nservers = [\"mysql://repl@127.0.0.1:1\"]\n{more}"));
        let ran =
            folder.binlogz(["relay", "run", "--config=relay.toml"]).env("MYSQL_PWD", "x").output().unwrap();
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code() == Some(2) && stderr.contains(said), "{stderr}");
        assert!(!folder.path("kept/binlog.index").exists());
    };
    let mut damaged = fs::read(&copies[0]).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    let damaged_path = folder.put("damaged/binlog.000001", damaged);
    refused(&format!("[store]\ndir = \"kept\"\nseed = [{damaged_path:?}]"), "checksum");
    refused(
        &format!("[store]\ndir = \"kept\"\nseed = [{:?}, {:?}]", seeds[0], seeds[2]),
        "the file behind the one before it",
    );
    refused("semi_sync = true\n[store]\ndir = \"kept\"\nsync_binlog = 0", "needs sync_binlog = 1");
}
