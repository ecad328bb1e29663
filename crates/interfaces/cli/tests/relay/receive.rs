//! How the relay receives, on real servers: over a network that breaks, onto a disk that is full, from any beginning.

use std::fs;
use std::sync::atomic::Ordering;

use crate::common::proxy::cutting;
use crate::common::relay::{Configuration, Relay, is_kept, url};
use crate::common::small_disk::SmallDisk;
use crate::common::{Folder, Ran};
use binlogz_testkit::faults::FaultShim;
use binlogz_testkit::{InstalledTool, Tool, corpus, mutate, require_tool, setting};

/// `scripts/soak/relay.sh` sets more.
fn cuts() -> u64 {
    setting("BINLOGZ_RELAY_CUTS", 24)
}

#[test]
fn a_network_that_breaks_anywhere_loses_nothing() {
    let mysql = require_tool!(Tool::Mysql);
    breaks_anywhere(mysql, "CRC32");
}

/// Where it goes on within a file, the source sends a format description with a stale checksum.
#[test]
fn a_network_that_breaks_anywhere_loses_nothing_of_a_source_without_checksums() {
    let mysql = require_tool!(Tool::Mysql);
    breaks_anywhere(mysql, "NONE");
}

fn breaks_anywhere(mysql: &'static InstalledTool, checksum: &str) {
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("max-binlog-size", "1M");
    let source = source.option("binlog-checksum", checksum).start().unwrap();
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
    let (port, count) = cutting(source.port(), seed, cuts());
    let broken = format!("mysql://repl@127.0.0.1:{port}");
    // Named often, it is tried again at once.
    let mut relay = Configuration::of(vec![broken; 12]).start(&folder);
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
    let configuration = Configuration::of([url(&source)]).account("reader", "admin = true");
    let mut relay = configuration.file_size_max(2048).start(&folder);
    relay.has_all_of(&source);
    source.sql(&"INSERT INTO d.t (body) VALUES (REPEAT('x', 500000));\n".repeat(8)).unwrap();
    relay.wait_for("failure", |relay| (relay.phase() == "failed").then_some(()));
    let (code, why) = relay.get("/healthz");
    assert!(code == 503 && why.contains("File too large"), "{code} {why}");
    assert_eq!(relay.get("/readyz").0, 200);
    assert!(relay.get("/metrics").1.contains("binlogz_relay_errors_total{kind=\"store\"} "));
    let shown = folder.run(["relay", "status", &format!("--http={}", relay.http)]);
    assert_eq!(shown.code, Some(1), "{}", shown.text());

    // The durable part is served, to new clients too.
    let durable = |relay: &Relay| relay.status()["log"]["durable"]["position"].as_u64().unwrap();
    let before = durable(&relay);
    relay.fetch(mysql, "reader", &folder.path("fetched"), &[], &["binlog.000001"]).unwrap();
    let (fetched, original) =
        (folder.read("fetched/binlog.000001"), fs::read(&source.binlogs().unwrap()[0]).unwrap());
    // It is tried again meanwhile.
    assert!((before..=durable(&relay)).contains(&(fetched.len() as u64)), "{} bytes", fetched.len());
    assert!(fetched[22..] == original[22..fetched.len()]);
    // Trying at once changes nothing, and health says so until something is stored again.
    relay.sql(mysql, "reader", &[], "START REPLICA").unwrap();
    relay.wait_for("failure", |relay| (relay.phase() == "failed").then_some(()));
    assert_eq!(relay.get("/healthz").0, 503);
    // The same process goes on when there is room.
    relay.may_write_any_size();
    relay.has_all_of(&source);
    relay.wait_for("health", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    assert_eq!(relay.phase(), "receiving");
    source.sql("INSERT INTO d.t (body) VALUES ('after'); FLUSH BINARY LOGS").unwrap();
    relay.has_all_of(&source);
    is_kept(&source, &folder.path("kept"));
}

#[test]
fn a_full_disk_is_forgotten_when_there_is_room() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let Some(disk) = SmallDisk::mount(&folder.path("kept"), 3 << 20) else { return };
    let source = mysql.sandbox().start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)")
        .unwrap();
    let configuration = Configuration::of([url(&source)]).account("reader", "admin = true");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    // One of them is larger than what is written at a time.
    source.sql(&"INSERT INTO d.t (body) VALUES (REPEAT('x', 900000));\n".repeat(6)).unwrap();
    relay.wait_for("failure", |relay| (relay.phase() == "failed").then_some(()));
    assert!(relay.get("/healthz").1.contains("No space left on device"), "{}", relay.get("/healthz").1);
    let durable = relay.status()["log"]["durable"]["position"].as_u64().unwrap();
    let fetched = relay.fetch(mysql, "reader", &folder.path("fetched"), &[], &["binlog.000001"]).unwrap();
    assert_eq!(fs::metadata(&fetched[0]).unwrap().len(), durable);
    source.sql("FLUSH BINARY LOGS; INSERT INTO d.t (body) VALUES ('after')").unwrap();
    disk.resize(64 << 20);
    relay.has_all_of(&source);
    relay.wait_for("health", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    is_kept(&source, &folder.path("kept"));
    drop(relay);
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
        let configuration = Configuration::of([url(&source)]).source(format!("start = {start:?}"));
        let mut relay = configuration.start(&folder);
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
    let configuration = Configuration::of([url(&source)]).account("reader", "").store(format!(
        "seed = {seeds:?}\nkeyring = {:?}\nencrypt = true\nsync_binlog = 100\nsync_interval_ms = 200",
        keyring.display().to_string()
    ));
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    assert_eq!(kept(&folder).len(), 4);
    assert!(folder.read("kept/binlog.000001") == first);
    assert_eq!(folder.read("kept/binlog.000004")[..4], *b"\xfdbin");
    let fetched = folder.path("fetched");
    relay.fetch(mysql, "reader", &fetched, &["--to-last-log"], &["binlog.000001"]).unwrap();
    is_kept(&source, &fetched);
    // Again with the same configuration: the log is there, and opens with the keyring.
    drop(relay);
    source.sql("INSERT INTO d.t VALUES (6)").unwrap();
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    drop(relay);

    // Files that are encrypted stay out of an archive that is not, and are kept.
    source.sql("FLUSH BINARY LOGS").unwrap();
    let with_archive = configuration.archive();
    let mut relay = with_archive.start(&folder);
    relay.wait_for("the refusal", |relay| {
        let said = "arc: binlog.000004 is encrypted, and the archive is not: BINLOGZ_ARCHIVE_KEY_FILE names";
        relay.said().contains(said).then_some(())
    });
    drop(relay);
    folder.run(["archive", "check", "arc"]).is(0, "3 logs are whole and follow one another\n", "");
    folder.put_secret("key", "07".repeat(32));
    let key = folder.path("key").display().to_string();
    fs::remove_dir_all(folder.path("arc")).unwrap();
    // All that the relay writes to files is kept, and searched for a row.
    let secret = "words that nobody else should read";
    source
        .sql(&format!(
            "SET binlog_transaction_compression = OFF; CREATE TABLE d.s (words TEXT); INSERT INTO d.s VALUES ('{secret}'); FLUSH BINARY LOGS"
        ))
        .unwrap();
    let written = folder.path("written");
    fs::create_dir(&written).unwrap();
    let mut environment = vec![("BINLOGZ_ARCHIVE_KEY_FILE", key.clone().into())];
    environment.extend(FaultShim::require().iter().flat_map(|shim| shim.keeping(&written)));
    let mut relay = with_archive.environment(environment).start(&folder);
    relay.wait_for("the archive", |_| {
        let mut list = folder.binlogz(["archive", "list", "arc"]);
        let list = list.env("BINLOGZ_ARCHIVE_KEY_FILE", &key).output().unwrap();
        String::from_utf8_lossy(&list.stdout).contains("binlog.000005").then_some(())
    });
    assert!(folder.read("arc/manifest.json").starts_with(b"binlogz encrypted archive 2\n"));
    drop(relay);
    let mut size = 0;
    for entry in fs::read_dir(&written).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(secret.len()).any(|bytes| bytes == secret.as_bytes()));
        size += bytes.len();
    }
    assert!(size > 1000 || FaultShim::build().is_err(), "{size}");
    let mut dump = folder.binlogz(["dump", "-v", "arc"]);
    let dump = Ran::from(dump.env("BINLOGZ_ARCHIVE_KEY_FILE", &key).output().unwrap());
    assert!(dump.text().contains(secret), "{}", dump.stderr);

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
