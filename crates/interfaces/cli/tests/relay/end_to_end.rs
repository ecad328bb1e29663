//! The relay between real servers: every form reaches its replicas, no byte is lost.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::Folder;
use crate::common::relay::{Relay, client, sql};
use binlogz_binlog::gtid::GtidSet;
use binlogz_store::{BinlogStore, FileStorage, StoreOptions};
use binlogz_testkit::random::Random;
use binlogz_testkit::workload::sysbench;
use binlogz_testkit::{MariadbSandbox, MysqlSandbox, Tool, mutate, require_tool, setting};

/// Statements that MySQL, 5.6 included, and MariaDB can apply, from compressed transactions.
pub(crate) const COMMON: &str = "\
CREATE DATABASE shop;
CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer VARCHAR(50), note TEXT) ENGINE=InnoDB;
INSERT INTO shop.orders (customer, note) VALUES ('ada', REPEAT('apples ', 40)), ('bob', REPEAT('pears ', 90));
INSERT INTO shop.orders (customer, note) SELECT customer, CONCAT(note, id) FROM shop.orders;
BEGIN;
INSERT INTO shop.orders (customer, note) SELECT CONCAT(customer, id), note FROM shop.orders;
UPDATE shop.orders SET customer = UPPER(customer) WHERE id % 3 = 0;
DELETE FROM shop.orders WHERE id = 2;
COMMIT;
ALTER TABLE shop.orders ADD COLUMN paid DATETIME NULL;
UPDATE shop.orders SET paid = '2026-11-22 01:02:03' WHERE id > 4;
";

/// Statements that only MySQL can apply.
const MYSQL_ONLY: &str = "\
USE shop;
XA START 'one'; INSERT INTO shop.orders (customer) VALUES ('xa'); XA END 'one'; XA PREPARE 'one';
INSERT INTO shop.orders (customer) VALUES ('between');
XA COMMIT 'one';
SET GTID_NEXT = 'AUTOMATIC:nightly';
INSERT INTO shop.orders (customer, note) VALUES ('tagged', REPEAT('x', 3000));
SET GTID_NEXT = 'AUTOMATIC';
SET SESSION binlog_transaction_compression = OFF;
INSERT INTO shop.orders (customer) VALUES ('plain');
SET SESSION binlog_transaction_compression = ON;
FLUSH BINARY LOGS;
CREATE TABLE shop.big (id INT PRIMARY KEY, body LONGTEXT);
INSERT INTO shop.big VALUES (1, REPEAT('all the same ', 2000000)), (2, 'small');
DROP TABLE IF EXISTS shop.nothing;
INSERT INTO shop.big VALUES (3, 'the last');
";

const ORDERS: &str = "SELECT id, customer, SHA2(note, 256), paid FROM shop.orders ORDER BY id";

#[test]
fn every_form_reaches_its_replicas() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).readable_by_mariadb().start().unwrap();
    source.sql(COMMON).unwrap();
    let pem = |name: &str| source.datadir().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = (pem("server-cert.pem"), pem("server-key.pem"));
    let tls = ["--form", "uncompressed", "--listen-ssl-cert", &certificate, "--listen-ssl-key", &key];
    let mut relay = Relay::start(&folder, &source, &tls);

    // MariaDB can't read the source, and reads the relay.
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW")]).unwrap();
    mariadb.replicate_from_port(source.port(), "binlog.000001", 4).unwrap();
    let (file, offset) = source.position().unwrap();
    let stopped = mariadb.wait_for_position(&file, offset).unwrap_err().to_string();
    assert!(stopped.contains("parse relay log event"), "{stopped}");
    mariadb.sql("STOP SLAVE; RESET SLAVE ALL; DROP DATABASE IF EXISTS shop").unwrap();
    relay.keeps_files_of(&folder, &source);
    mariadb.replicate_from_port(relay.port, "binlog-u.000001", 4).unwrap();
    let expected = source.sql(ORDERS).unwrap();
    relay.wait_for("row in MariaDB", |_| {
        let applied = mariadb.sql(ORDERS).is_ok_and(|rows| rows == expected);
        applied.then_some(())
    });
    mariadb.sql("STOP SLAVE").unwrap();

    // MySQL reads both forms; the one by GTID gets what the relay was told to serve.
    source.sql(MYSQL_ONLY).unwrap();
    let by_gtid = mysql.sandbox().option("replica-parallel-workers", "4").start().unwrap();
    let by_position = mysql.sandbox().start().unwrap();
    relay.replicates_to(&by_gtid, "repl", "SOURCE_SSL=1, SOURCE_AUTO_POSITION=1");
    relay.replicates_to(
        &by_position,
        "repl",
        "SOURCE_SSL=0, SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4",
    );
    for replica in [&by_gtid, &by_position] {
        relay.brings(&source, replica, &["shop"]);
    }
    // A replica goes on where it was, by GTID.
    by_gtid.sql("STOP REPLICA").unwrap();
    source.sql("DELETE FROM shop.orders WHERE id = 1").unwrap();
    by_gtid.sql("START REPLICA").unwrap();
    relay.brings(&source, &by_gtid, &["shop"]);

    // The stored bytes are the source's, on disk and over the wire.
    relay.keeps_files_of(&folder, &source);
    let names = relay.sends_files_of(mysql, &folder, &source);
    let files = source.binlogs().unwrap();

    // The other form holds no compressed transaction, means the same, and begins anywhere.
    let others: Vec<_> = names.iter().map(|name| name.replace("binlog.", "binlog-u.")).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    let expanded = relay.fetched(mysql, &folder, &[], &others);
    let events = mean_the_same(&folder, &names, &others);
    assert!(!events.contains("Transaction_payload") && events.contains("Xid"));
    let (first, whole) = (others[0], &expanded[0]);
    for position in event_offsets(whole).into_iter().skip(2).step_by(7) {
        let option = format!("--start-position={position}");
        let tail = relay.fetched(mysql, &folder, &[&option], &[first]).remove(0);
        assert!(tail.ends_with(&whole[position..]), "from {position}");
        assert_eq!(tail.len() - (whole.len() - position), event_offsets(&tail)[1], "from {position}");
    }

    // Clients of other kinds.
    let stranger = client(mysql, "mysql", relay.port, "repl", "wrong");
    assert!(sql(stranger, "SELECT 1").unwrap_err().contains("Access denied"));
    let listed = relay.sql(mysql, "repl", &[], "SHOW BINARY LOGS").unwrap();
    assert_eq!(listed.lines().count(), files.len(), "{listed}");
    assert!(listed.starts_with(&format!("binlog-u.000001\t{}\tNo\n", expanded[0].len())), "{listed}");
    let unknown = relay.sql(mysql, "repl", &[], "DROP TABLE shop.orders").unwrap_err();
    assert!(unknown.contains("does not know this statement"), "{unknown}");
    let replicas = relay.sql(mysql, "repl", &[], "SHOW REPLICAS").unwrap();
    assert!(replicas.contains(&by_gtid.server_uuid().unwrap()), "{replicas}");
    let mut garbage = TcpStream::connect(("127.0.0.1", relay.port)).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\nlisten: \x1b[31m\r\n\r\n").unwrap();
    let mut greeting = Vec::new();
    // Reset or ended: either way it is over.
    let _ = garbage.read_to_end(&mut greeting);
    assert!(!relay.said().contains('\x1b'));
    assert!(!relay.said().contains("repl\n"), "no password in the log");
}

#[test]
fn what_is_stored_compressed_comes_back_as_it_was() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    // Plain, but for what sessions turn on; several places of the index.
    let source = mysql.sandbox().start().unwrap();
    source
        .sql("CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)")
        .unwrap();
    let some = "USE shop;\n\
         INSERT INTO shop.t (body) VALUES (REPEAT(UUID(), 3000)), (REPEAT(SHA2(RAND(), 256), 20));\n\
         SET binlog_transaction_compression = ON; UPDATE shop.t SET body = CONCAT(body, 'on') ORDER BY id DESC LIMIT 2;\n\
         SET binlog_transaction_compression = OFF; DELETE FROM shop.t WHERE id % 5 = 0;\n";
    source.sql(&some.repeat(30)).unwrap();
    source
        .sql("CREATE TABLE shop.orders (id INT PRIMARY KEY AUTO_INCREMENT, customer VARCHAR(50), note TEXT)")
        .unwrap();
    source.sql(MYSQL_ONLY).unwrap();
    let options = ["--form", "compressed", "--store", "compressed", "--level", "5"];
    let mut relay = Relay::start(&folder, &source, &options);
    let replica = mysql.sandbox().option("replica-parallel-workers", "4").start().unwrap();
    relay.replicates_to(&replica, "repl", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    source.sql(&some.repeat(20)).unwrap();
    relay.brings(&source, &replica, &["shop"]);
    // It was given everything compressed.
    let status = replica.replica_status().unwrap();
    assert!(status["Source_Log_File"].starts_with("binlog-z."), "{status:?}");

    let check = |relay: &mut Relay| {
        let names = relay.sends_files_of(mysql, &folder, &source);
        let whole = folder.read(&format!("fetched/{}", names[0]));
        let kept = fs::metadata(folder.path("kept").join(&names[0])).unwrap().len();
        assert!(kept * 2 < whole.len() as u64, "{kept} bytes kept of {}", whole.len());
        for position in event_offsets(&whole).into_iter().skip(2).step_by(29) {
            let option = format!("--start-position={position}");
            let tail = relay.fetched(mysql, &folder, &[&option], &[&names[0]]).remove(0);
            assert!(tail.ends_with(&whole[position..]), "from {position}");
        }
        names.len()
    };
    check(&mut relay);
    // The index is deleted, then damaged; the relay is restarted, and told to keep what comes as it is.
    let index = folder.path("kept/binlog.000001.places");
    assert!(index.exists());
    relay.kill();
    fs::remove_file(&index).unwrap();
    drop(relay);
    source.sql(some).unwrap();
    let mut relay = Relay::start(&folder, &source, &["--form", "auto"]);
    check(&mut relay);
    drop(relay);
    fs::write(&index, b"binlogz\x01 and nothing more").unwrap();
    let mut relay = Relay::start(&folder, &source, &options);
    let count = check(&mut relay);

    // All three forms mean the same, and no more and no fewer are compressed than should be.
    let name = |form: &str, number: usize| format!("binlog{form}.{number:06}");
    relay.sends_files_of(mysql, &folder, &source);
    let received: Vec<_> = (1..=count).map(|number| name("", number)).collect();
    for form in ["-z", "-u"] {
        let names: Vec<_> = (1..=count).map(|number| name(form, number)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        relay.fetched(mysql, &folder, &[], &names);
        let events = mean_the_same(&folder, &received, &names);
        assert_eq!(events.contains("Transaction_payload"), form == "-z");
    }
    let compressed = format!("fetched/{}", name("-z", 1));
    let plain = folder.run(["compress", "--level", "5", &compressed, "--output", "again"]);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    assert!(
        fs::read(folder.path("again")).unwrap() == fs::read(folder.path(&compressed)).unwrap(),
        "{}",
        plain.stderr
    );

    // Pointed back and forth by file and position, while the source is written to.
    let wanderer = mysql.sandbox().start().unwrap();
    wanderer.sql("SET GLOBAL binlog_transaction_compression = ON").unwrap();
    let ports = [relay.port, source.port()];
    for turn in 0..10 {
        source.sql(some).unwrap();
        let (file, offset) = match turn {
            0 => (name("", 1), "4".to_owned()),
            _ => {
                wanderer.sql("STOP REPLICA").unwrap();
                let status = wanderer.replica_status().unwrap();
                (status["Relay_Source_Log_File"].clone(), status["Exec_Source_Log_Pos"].clone())
            }
        };
        wanderer
            .sql(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={}, SOURCE_USER='repl', \
                 SOURCE_PASSWORD='repl', SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, \
                 SOURCE_LOG_FILE='{file}', SOURCE_LOG_POS={offset}; START REPLICA",
                ports[turn % 2]
            ))
            .unwrap();
        // It is turned in the middle, half of the times.
        if turn % 2 == 0 {
            wanderer
                .wait_for_source(&source)
                .unwrap_or_else(|error| panic!("{turn}: {error}\n{}", relay.said()));
        }
    }
    relay.brings(&source, &wanderer, &["shop"]);
}

/// Compares fetched files in another form with those that were received; gives the other ones' events.
#[track_caller]
fn mean_the_same(folder: &Folder, received: &[String], others: &[&str]) -> String {
    let place = |name: &str| format!("fetched/{name}");
    let others: Vec<_> = others.iter().map(|name| place(name)).collect();
    let received = received.iter().map(|name| place(name));
    let arguments = ["verify", "--same"].map(str::to_owned).into_iter().chain(received);
    let same = folder.run(arguments.chain(["--".to_owned()]).chain(others.clone()));
    assert_eq!(same.code, Some(0), "{} {}", same.text(), same.stderr);
    let events = folder.run(["events", "--format", "json"].map(str::to_owned).into_iter().chain(others));
    assert_eq!(events.code, Some(0), "{}", events.stderr);
    events.text().to_owned()
}

/// Where the events of a log begin.
fn event_offsets(log: &[u8]) -> Vec<usize> {
    let mut offsets = vec![4];
    while let Some(size) = log.get(offsets.last().unwrap() + 9..).and_then(|size| size.first_chunk()) {
        offsets.push(offsets.last().unwrap() + u32::from_le_bytes(*size) as usize);
    }
    offsets.pop();
    offsets
}

/// The GTIDs that a relay that was killed has on disk, as recovery finds them; it itself will find the same.
fn kept_gtids(folder: &Folder) -> GtidSet {
    let copy = folder.path("copy");
    let _ = fs::remove_dir_all(&copy);
    fs::create_dir_all(&copy).unwrap();
    let entries = fs::read_dir(folder.path("kept")).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let is_log =
        |path: &&PathBuf| path.extension().is_some_and(|number| number.len() == 6 && number != "places");
    // Recovery writes to the last file alone, which is one of these two.
    let last: Vec<_> = paths.iter().rev().filter(is_log).take(2).cloned().collect();
    for path in paths {
        let to = copy.join(path.file_name().unwrap());
        match is_log(&&path) && !last.contains(&path) {
            true => fs::hard_link(path, to).unwrap(),
            false => assert!(fs::copy(path, to).is_ok()),
        }
    }
    let storage = FileStorage::open(&copy).unwrap();
    let (base_name, lineage) = BinlogStore::find(&storage).unwrap().unwrap();
    let options = StoreOptions { base_name, lineage, ..StoreOptions::default() };
    BinlogStore::open(Arc::new(storage), options).unwrap().1.gtids
}

/// Ends the load also when the test fails.
struct StopWhenDropped<'a>(&'a AtomicBool, &'a MysqlSandbox);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if std::thread::panicking() {
            // Commits wait for a relay that is gone.
            let _ = self.1.sql("SET GLOBAL rpl_semi_sync_source_enabled = OFF");
        }
    }
}

#[test]
fn kills_lose_nothing() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Sysbench);
    let folder = Folder::new();
    let mut source = mysql.sandbox().compression(3).option("max-binlog-size", "256K").start().unwrap();
    source
        .sql("CREATE DATABASE sbtest; CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)")
        .unwrap();
    sysbench(&source, &["oltp_write_only", "--tables=2", "--table-size=1000", "prepare"]).unwrap();
    // From here on nothing is committed before the relay has acknowledged it.
    source
        .sql(
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so';
             SET GLOBAL rpl_semi_sync_source_timeout = 600000, GLOBAL rpl_semi_sync_source_enabled = ON",
        )
        .unwrap();
    let batch = "INSERT INTO d.t (body) VALUES (REPEAT(UUID(), 1 + RAND() * 30));\n".repeat(40);
    // `scripts/soak/relay.sh` sets more.
    let kills = setting("BINLOGZ_RELAY_KILLS", 20);
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    let mut relay = Relay::start(&folder, &source, &["--semi-sync"]);
    // Earlier commits were not acknowledged.
    relay.keeps_files_of(&folder, &source);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let load =
                ["oltp_write_only", "--tables=2", "--table-size=1000", "--threads=4", "--time=2", "run"];
            while !stop.load(Ordering::Relaxed) {
                sysbench(&source, &load).unwrap();
            }
        });
        // A panic must end the load too.
        let _stop = StopWhenDropped(&stop, &source);
        for kill in 1..=kills {
            std::thread::sleep(Duration::from_millis(random.below(600) as u64));
            relay.kill();
            // The relay told the client of each commit: it must have them.
            let committed: GtidSet = source.gtid_executed().unwrap().parse().unwrap();
            let kept = kept_gtids(&folder);
            assert!(committed.is_subset(&kept), "SEED={seed} kill {kill}: {committed} of {kept}");
            let (store, on) = (["received", "compressed"][random.below(2)], random.below(2));
            relay = Relay::start(&folder, &source, &["--semi-sync", "--store", store]);
            source.sql(&format!("SET GLOBAL binlog_transaction_compression = {on}")).unwrap();
        }
    });
    source
        .sql("SET binlog_transaction_compression = OFF; INSERT INTO d.t (body) VALUES (REPEAT('large ', 3000000))")
        .unwrap();
    // All of it once, in the source's order.
    assert!(relay.sends_files_of(mysql, &folder, &source).len() > 1, "files were rotated");
    let status = |name: &str| source.sql(&format!("SHOW STATUS LIKE 'Rpl_semi_sync_source_{name}'")).unwrap();
    let number = |name: &str| status(name).split_whitespace().last().unwrap().parse::<u64>().unwrap();
    assert_eq!(number("no_tx"), 0, "committed without an acknowledgement");
    println!("{kills} kills, {} transactions acknowledged", number("yes_tx"));
    assert!(number("yes_tx") > kills as u64 / 2, "a load that was hardly there proves little");

    // The source shuts down, with a stop event, and comes back elsewhere.
    source.stop().unwrap();
    relay.kill();
    source.start().unwrap();
    source.sql(&batch).unwrap();
    relay = Relay::start(&folder, &source, &["--semi-sync"]);
    relay.sends_files_of(mysql, &folder, &source);
    let executed = relay.sql(mysql, "repl", &[], "SELECT @@GLOBAL.gtid_executed").unwrap();
    assert_eq!(executed.trim().replace("\\n", ""), source.gtid_executed().unwrap());
    let replica = mysql.sandbox().start().unwrap();
    relay.replicates_to(&replica, "repl", "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1");
    relay.brings(&source, &replica, &["d", "sbtest"]);
}
