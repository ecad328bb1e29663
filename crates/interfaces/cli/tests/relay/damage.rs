//! A durable bit flips while the relay is down, or in a closed file while it runs: nothing is cut, health is red, whole
//! transactions are served, and the source or the archive is asked for the rest.

use std::fs;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, is_kept, url};
use binlogz_binlog::{EventHeader, MAGIC};
use binlogz_testkit::random::Random;
use binlogz_testkit::{MysqlSandbox, Tool, require_tool};

/// A port that leads to a server, which has another one each time it is started.
struct Door {
    port: u16,
    to: Arc<AtomicU16>,
}

impl Door {
    fn new(server: &MysqlSandbox) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let to = Arc::new(AtomicU16::new(server.port()));
        let its = Arc::clone(&to);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let client = client.unwrap();
                let Ok(server) = TcpStream::connect(("127.0.0.1", its.load(Ordering::SeqCst))) else {
                    continue;
                };
                for (mut from, mut to) in
                    [(client.try_clone().unwrap(), server.try_clone().unwrap()), (server, client)]
                {
                    std::thread::spawn(move || {
                        let _ = io::copy(&mut from, &mut to);
                        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                    });
                }
            }
        });
        Door { port, to }
    }

    fn leads_to(&self, server: &MysqlSandbox) {
        self.to.store(server.port(), Ordering::SeqCst);
    }
}

fn rows(ids: std::ops::RangeInclusive<u32>) -> String {
    ids.map(|id| format!("INSERT INTO d.t VALUES ({id}, REPEAT('row {id} ', 40));")).collect()
}

/// Where each transaction of a file begins.
fn transactions(bytes: &[u8]) -> Vec<usize> {
    let (mut at, mut begins) = (MAGIC.len(), Vec::new());
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let header = EventHeader::decode(rest).unwrap();
        if header.event_type.is_gtid() {
            begins.push(at);
        }
        at += header.event_size as usize;
    }
    begins
}

fn refusal(relay: &mut Relay, replica: &MysqlSandbox) -> String {
    relay.wait_for("refusal", |_| {
        let status = replica.replica_status().unwrap();
        (status["Last_IO_Errno"] == "13114").then(|| status["Last_IO_Error"].clone())
    })
}

/// The files that are kept beside the log's own.
fn beside(folder: &Folder) -> Vec<String> {
    let names = fs::read_dir(folder.path("kept")).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| [".cut-", ".torn-", ".damaged-"].iter().any(|kind| name.contains(kind))).collect()
}

struct Run {
    folder: Folder,
    configuration: Configuration,
    door: Door,
    source: MysqlSandbox,
    relay: Relay,
    /// Has the first ten of fifty transactions.
    ahead: MysqlSandbox,
    /// Has none.
    empty: MysqlSandbox,
}

impl Run {
    /// Fifty transactions are here, and the relay and its source are down.
    fn new(mysql: &'static binlogz_testkit::InstalledTool, store: &str) -> Run {
        let folder = Folder::new();
        let mut source = mysql.sandbox().start().unwrap();
        let (ahead, empty) = (mysql.sandbox().start().unwrap(), mysql.sandbox().start().unwrap());
        let door = Door::new(&source);
        let configuration = Configuration::of([format!("mysql://repl@127.0.0.1:{}", door.port)])
            .account("reader", "form = \"received\"")
            .account("packed", "form = \"compressed\"")
            .store(store);
        let mut relay = configuration.start(&folder);
        source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT)").unwrap();
        source.sql(&rows(1..=8)).unwrap();
        relay.has_gtids_of(&source);
        relay.replicates_to(&ahead, "reader", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
        relay.brings(&source, &ahead, &["d"]);
        ahead.sql("STOP REPLICA").unwrap();
        source.sql(&rows(9..=48)).unwrap();
        relay.has_gtids_of(&source);
        relay.kill();
        source.stop().unwrap();
        Run { folder, configuration, door, source, relay, ahead, empty }
    }

    fn log(&self) -> PathBuf {
        self.folder.path("kept/binlog.000001")
    }

    /// Flips a bit; returns the file's contents after that, and where the transaction around the bit begins and ends.
    fn flip(&self, transaction: usize, behind: usize) -> (Vec<u8>, usize, usize) {
        let mut bytes = fs::read(self.log()).unwrap();
        let begins = transactions(&bytes);
        assert_eq!(begins.len(), 50);
        let from = begins[transaction - 1];
        let to = begins.get(transaction).copied().unwrap_or(bytes.len());
        bytes[from + behind] ^= 4;
        fs::write(self.log(), &bytes).unwrap();
        (bytes, from, to)
    }

    /// Starts the relay, which finds the damage; nothing else happens to the file.
    fn restart(&mut self, damaged: &[u8], told: &str) {
        self.relay = self.configuration.start(&self.folder);
        let (code, why) = self.relay.get("/healthz");
        assert!(code == 503 && why.contains(told), "{code} {why}");
        assert!(self.relay.status()["damage"][0].as_str().unwrap().contains(told));
        let line = self.relay.said().lines().find(|line| line.contains(told)).unwrap().to_owned();
        assert!(line.contains("\"error\""), "{line}");
        self.is_untouched(damaged);
    }

    fn is_untouched(&self, damaged: &[u8]) {
        assert!(fs::read(self.log()).unwrap() == damaged);
        assert_eq!(beside(&self.folder), [""; 0]);
    }

    fn follow(&self, replica: &MysqlSandbox) {
        self.relay.replicates_to(replica, "reader", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    }

    /// The source is there again: the log is whole, and goes on.
    fn is_repaired(&mut self, damaged: &[u8], from: usize) {
        self.source.start().unwrap();
        self.door.leads_to(&self.source);
        self.relay.wait_for("repair", |relay| (relay.get("/healthz").0 == 200).then_some(()));
        assert_eq!(beside(&self.folder), [format!("binlog.000001.damaged-{from}")]);
        let copy = fs::read(self.folder.path(&format!("kept/binlog.000001.damaged-{from}"))).unwrap();
        assert!(copy == damaged);
        self.source.sql(&rows(101..=110)).unwrap();
        self.relay.has_gtids_of(&self.source);
        for replica in [&self.ahead, &self.empty] {
            self.follow(replica);
            self.relay.brings(&self.source, replica, &["d"]);
        }
        // And it stays so.
        self.relay.kill();
        self.relay = self.configuration.start(&self.folder);
        self.relay.has_gtids_of(&self.source);
        assert_eq!(self.relay.get("/healthz").0, 200);
    }
}

#[test]
fn a_flipped_bit_cuts_nothing_and_the_source_repairs_it() {
    let mysql = require_tool!(Tool::Mysql);
    let mut run = Run::new(mysql, "");
    let (damaged, from, to) = run.flip(3, 120);
    let told = format!("binlog.000001 is damaged from {from} to {to}, which held ");
    run.restart(&damaged, &told);
    // The transactions before it are served, and the later ones to a client that has the others.
    let served = run.relay.status()["log"]["gtid_executed"].as_str().unwrap().to_owned();
    assert!(served.contains(":1-2:4-50"), "{served}");
    run.follow(&run.ahead);
    run.follow(&run.empty);
    let refused = refusal(&mut run.relay, &run.empty);
    assert!(refused.contains("1236") && refused.contains(&told), "{refused}");
    run.relay.wait_for("two transactions", |_| {
        run.empty.gtid_executed().unwrap().trim().ends_with(":1-2").then_some(())
    });
    assert_eq!(run.empty.sql("SELECT COUNT(*) FROM d.t").unwrap().trim(), "0");
    run.relay.wait_for("last transaction", |_| {
        run.ahead.gtid_executed().unwrap().trim().ends_with(":1-50").then_some(())
    });
    assert_eq!(run.ahead.sql("SELECT COUNT(*) FROM d.t").unwrap().trim(), "48");
    run.is_untouched(&damaged);
    run.is_repaired(&damaged, from);
    is_kept(&run.source, &run.folder.path("kept"));
}

#[test]
fn a_compressed_log_is_repaired_byte_for_byte() {
    let mysql = require_tool!(Tool::Mysql);
    let mut run = Run::new(mysql, "store = \"compressed\"");
    let whole = fs::read(run.log()).unwrap();
    // One of those that the replica has which is ahead.
    let (damaged, from, to) = run.flip(5, 120);
    let told = format!("binlog.000001 is damaged from {from} to {to}, which held ");
    run.restart(&damaged, &told);
    run.follow(&run.empty);
    let refused = refusal(&mut run.relay, &run.empty);
    assert!(refused.contains("1236") && refused.contains(&told), "{refused}");
    // The log is larger as received: where the bytes after the damage would be in that form is unknown.
    run.follow(&run.ahead);
    let refused = refusal(&mut run.relay, &run.ahead);
    assert!(refused.contains(&told), "{refused}");
    // In the form in which it is stored it stands where it is stored.
    run.relay.replicates_to(&run.ahead, "packed", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    run.relay.wait_for("last transaction", |_| {
        run.ahead.gtid_executed().unwrap().trim().ends_with(":1-50").then_some(())
    });
    assert_eq!(run.ahead.sql("SELECT COUNT(*) FROM d.t").unwrap().trim(), "48");
    run.is_untouched(&damaged);
    run.is_repaired(&damaged, from);
    let repaired = fs::read(run.log()).unwrap();
    // But for the flag that says that the file is in use.
    assert!(repaired[4 + 19..whole.len()] == whole[4 + 19..]);
}

/// At another level a transaction may have other bytes, and as many.
#[test]
fn a_log_whose_level_is_another_one_now_is_repaired_byte_for_byte() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let compressed = Configuration::of([url(&source)]).store("store = \"compressed\"");
    let mut relay = compressed.start(&folder);
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT)").unwrap();
    let mut random = Random::new(7);
    let words = ["order", "customer", "invoice", "paid", "open", "late", "2026", "street", "number"];
    for id in 1..=60 {
        let body: Vec<_> = (0..60).map(|_| words[random.below(words.len())]).collect();
        source.sql(&format!("INSERT INTO d.t VALUES ({id}, '{}')", body.join(" "))).unwrap();
    }
    relay.has_gtids_of(&source);
    relay.kill();
    let log = folder.path("kept/binlog.000001");
    let whole = fs::read(&log).unwrap();
    let mut damaged = whole.clone();
    for begin in transactions(&whole).iter().skip(2).step_by(2) {
        damaged[begin + 200] ^= 16;
    }
    fs::write(&log, &damaged).unwrap();
    let mut relay = Configuration::of([url(&source)]).store("store = \"received\"").start(&folder);
    relay.wait_for("repair", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    // But for the flag that says that the file is in use.
    assert!(fs::read(&log).unwrap()[4 + 19..whole.len()] == whole[4 + 19..]);
}

#[test]
fn damage_at_both_ends_of_a_file_is_repaired() {
    let mysql = require_tool!(Tool::Mysql);
    let mut run = Run::new(mysql, "");
    // The head, and the last transaction's GTID event.
    let mut bytes = fs::read(run.log()).unwrap();
    let last = transactions(&bytes)[49];
    bytes[30] ^= 1;
    bytes[last + 25] ^= 1;
    fs::write(run.log(), &bytes).unwrap();
    run.restart(&bytes, "binlog.000001 is damaged from 0 to ");
    run.source.start().unwrap();
    run.door.leads_to(&run.source);
    run.relay.wait_for("repair", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    run.relay.has_all_of(&run.source);
    assert_eq!(beside(&run.folder).len(), 2);
    is_kept(&run.source, &run.folder.path("kept"));
    run.follow(&run.empty);
    run.relay.brings(&run.source, &run.empty, &["d"]);
}

#[test]
fn a_source_that_lacks_the_file_repairs_nothing() {
    let mysql = require_tool!(Tool::Mysql);
    let mut run = Run::new(mysql, "");
    let (damaged, from, to) = run.flip(30, 40);
    let told = format!("binlog.000001 is damaged from {from} to {to}");
    run.restart(&damaged, &told);
    run.source.start().unwrap();
    run.source.sql("FLUSH BINARY LOGS; PURGE BINARY LOGS TO 'binlog.000003'").unwrap();
    run.door.leads_to(&run.source);
    run.relay.wait_for("answer of the source", |relay| {
        let said = relay
            .messages()
            .into_iter()
            .any(|line| line.contains("did not repair it") && line.contains(&told));
        said.then_some(())
    });
    let (code, why) = run.relay.get("/healthz");
    assert!(code == 503 && why.contains(&told), "{code} {why}");
    run.is_untouched(&damaged);
}

/// Two closed files, and the bytes of the first.
fn closed_files(source: &MysqlSandbox, relay: &mut Relay, folder: &Folder) -> (PathBuf, Vec<u8>) {
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT)").unwrap();
    for ids in [1..=20, 21..=40] {
        source.sql(&rows(ids)).unwrap();
        source.sql("FLUSH BINARY LOGS").unwrap();
    }
    source.sql(&rows(41..=45)).unwrap();
    relay.has_gtids_of(source);
    let log = folder.path("kept/binlog.000001");
    let whole = fs::read(&log).unwrap();
    (log, whole)
}

/// Flips a bit in place: the relay has the file open.
fn flip_in_place(log: &std::path::Path, at: usize) {
    use std::os::unix::fs::FileExt;
    let byte = fs::read(log).unwrap()[at] ^ 4;
    fs::File::options().write(true).open(log).unwrap().write_all_at(&[byte], at as u64).unwrap();
}

#[test]
fn damage_of_a_closed_file_is_refused_told_and_repaired_by_the_source_while_everything_goes_on() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let replica = mysql.sandbox().start().unwrap();
    let door = Door::new(&source);
    let configuration = Configuration::of([format!("mysql://repl@127.0.0.1:{}", door.port)])
        .account("reader", "form = \"received\"");
    let mut relay = configuration.start(&folder);
    let (log, whole) = closed_files(&source, &mut relay, &folder);
    let begins = transactions(&whole);
    let (from, to) = (begins[8], begins[9]);
    // The source can't be asked at first.
    door.to.store(1, Ordering::SeqCst);
    let dumps = source
        .sql("SELECT id FROM performance_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        .unwrap();
    dumps.split_whitespace().for_each(|id| drop(source.sql(&format!("KILL {id}"))));
    flip_in_place(&log, from + 120);
    relay.replicates_to(&replica, "reader", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    let told = format!("binlog.000001 is damaged from {from} to {to}, which held ");
    let refused = refusal(&mut relay, &replica);
    // The scrub may have found it first.
    let is_named = refused.contains("binlog.000001 at ") || refused.contains(&told);
    assert!(refused.contains("1236") && is_named, "{refused}");
    relay.wait_for("red health", |relay| {
        let (code, why) = relay.get("/healthz");
        (code == 503 && why.contains(&told)).then_some(())
    });
    assert!(relay.get("/metrics").1.contains("binlogz_relay_damaged_stretches 1"));
    // What is before it was served, and is as at the source.
    assert_eq!(replica.sql("SELECT COUNT(*) FROM d.t").unwrap().trim(), "6");
    door.leads_to(&source);
    relay.wait_for("repair", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    assert!(fs::read(&log).unwrap() == whole);
    assert_eq!(beside(&folder), [format!("binlog.000001.damaged-{from}")]);
    replica.sql("STOP REPLICA; START REPLICA").unwrap();
    relay.brings(&source, &replica, &["d"]);
    assert!(relay.get("/metrics").1.contains("binlogz_relay_repaired_stretches_total 1"));
    is_kept(&source, &folder.path("kept"));
}

#[test]
fn damage_of_the_file_in_use_is_repaired_by_an_idle_source_without_anybodys_help() {
    let mysql = require_tool!(Tool::Mysql);
    for store in ["received", "compressed"] {
        let folder = Folder::new();
        let source = mysql.sandbox().start().unwrap();
        let replica = mysql.sandbox().start().unwrap();
        let mut relay = Configuration::of([url(&source)])
            .account("reader", "form = \"received\"")
            .store(format!("store = \"{store}\""))
            .start(&folder);
        source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT)").unwrap();
        source.sql(&rows(1..=20)).unwrap();
        relay.has_gtids_of(&source);
        let log = folder.path("kept/binlog.000001");
        let whole = fs::read(&log).unwrap();
        let begins = transactions(&whole);
        let (from, to) = (begins[8], begins[9]);
        flip_in_place(&log, from + 120);
        // Nothing is written at the source from here on, so that nothing is to be written here either.
        relay.replicates_to(&replica, "reader", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
        let refused = refusal(&mut relay, &replica);
        assert!(refused.contains("1236") && refused.contains("binlog.000001 at "), "{refused}");
        relay.wait_for("repair", |_| (fs::read(&log).unwrap() == whole).then_some(()));
        relay.wait_for("green health", |relay| (relay.get("/healthz").0 == 200).then_some(()));
        assert_eq!(beside(&folder), [format!("binlog.000001.damaged-{from}")]);
        let told = format!("binlog.000001 is damaged from {from} to {to}");
        let said = relay.said();
        assert!(said.lines().any(|line| line.contains("\"error\"") && line.contains(&told)), "{said}");
        source.sql(&rows(21..=25)).unwrap();
        replica.sql("STOP REPLICA; START REPLICA").unwrap();
        relay.brings(&source, &replica, &["d"]);
        if store == "received" {
            is_kept(&source, &folder.path("kept"));
        }
    }
}

#[test]
fn the_scrub_finds_damage_and_the_archive_repairs_it_also_if_the_source_has_purged_the_file() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let configuration = Configuration::of([url(&source)])
        .account("reader", "form = \"received\"")
        .store("store = \"compressed\"")
        .archive();
    let mut relay = configuration.start(&folder);
    let (log, whole) = closed_files(&source, &mut relay, &folder);
    relay.wait_for("archive", |relay| {
        (relay.status()["archive"]["last_file"].as_str() == Some("binlog.000002")).then_some(())
    });
    source.sql("PURGE BINARY LOGS TO 'binlog.000003'").unwrap();
    relay.kill();
    // Nobody reads the file but the scrub, which begins again.
    let begins = transactions(&whole);
    let mut damaged = whole.clone();
    for (transaction, behind) in [(2, 30), (9, 120)] {
        damaged[begins[transaction] + behind] ^= 1;
    }
    fs::write(&log, &damaged).unwrap();
    let _ = fs::remove_file(folder.path("kept/relay.scrub"));
    let mut relay = configuration.start(&folder);
    relay.wait_for("repair", |_| (fs::read(&log).unwrap() == whole).then_some(()));
    relay.wait_for("green health", |relay| (relay.get("/healthz").0 == 200).then_some(()));
    let said = relay.said();
    let found = said.lines().filter(|line| line.contains("; it was found by reading closed files"));
    let [line] = found.collect::<Vec<_>>()[..] else { panic!("{said}") };
    let told = format!("binlog.000001 is damaged from {} to {}", begins[2], begins[3]);
    assert!(line.contains("\"error\"") && line.contains("\"damaged\"") && line.contains(&told), "{line}");
    assert_eq!(said.matches("with what the archive has of it").count(), 2, "{said}");
    assert_eq!(relay.status()["scrub"]["repaired"], 2);
}

/// An archive's log that lost values is another one: nothing of it is put into a hole.
#[test]
fn an_archive_from_which_values_were_erased_repairs_nothing() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let configuration = Configuration::of([url(&source)]).archive();
    let mut relay = configuration.start(&folder);
    let (log, whole) = closed_files(&source, &mut relay, &folder);
    relay.wait_for("archive", |relay| {
        (relay.status()["archive"]["last_file"].as_str() == Some("binlog.000002")).then_some(())
    });
    source.sql("PURGE BINARY LOGS TO 'binlog.000003'").unwrap();
    relay.kill();
    let erase =
        ["archive", "erase", "arc", "--table", "d.t", "--where", "@1 = 3", "--blank", "@2", "--execute"];
    let ran = folder.run(erase.into_iter().chain(["--grace", "0"]));
    assert_eq!(ran.code, Some(0), "{}{}", ran.text(), ran.stderr);
    // Before the erased row: there the bytes are the same, but for where they stand.
    let mut damaged = whole.clone();
    damaged[transactions(&whole)[2] + 30] ^= 1;
    fs::write(&log, &damaged).unwrap();
    let _ = fs::remove_file(folder.path("kept/relay.scrub"));
    let mut relay = configuration.start(&folder);
    let refused = "it was not repaired: in the archive, values were erased from binlog.000001; ";
    relay.wait_for("refusal", |relay| relay.said().contains(refused).then_some(()));
    assert_eq!(relay.get("/healthz").0, 503);
    assert!(fs::read(&log).unwrap() == damaged);
}

/// Issue 42: it was archived as it was, and after its repair another log of this name was in the archive for ever.
#[test]
fn a_damaged_file_is_archived_once_it_is_repaired_and_those_before_it_at_once() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let door = Door::new(&source);
    let url = format!("mysql://repl@127.0.0.1:{}", door.port);
    let mut relay = Configuration::of([url.clone()]).start(&folder);
    closed_files(&source, &mut relay, &folder);
    relay.kill();
    let log = folder.path("kept/binlog.000002");
    let whole = fs::read(&log).unwrap();
    flip_in_place(&log, transactions(&whole)[9] + 120);
    door.to.store(1, Ordering::SeqCst);
    let mut relay = Configuration::of([url]).archive().start(&folder);
    relay.wait_for("the log before it in the archive", |relay| {
        (relay.status()["archive"]["last_file"].as_str() == Some("binlog.000001")).then_some(())
    });
    relay.wait_for("a line about the other", |relay| {
        let said = relay.said();
        said.lines()
            .any(|line| line.contains("\"archive\"") && line.contains("so it is not archived as a whole log"))
            .then_some(())
    });
    door.leads_to(&source);
    relay.wait_for("both logs in the archive", |relay| {
        (relay.status()["archive"]["last_file"].as_str() == Some("binlog.000002")).then_some(())
    });
    folder.run(["archive", "restore", "--to", "back", "arc"]).is_done();
    assert!(folder.read("back/binlog.000002") == whole);
}
