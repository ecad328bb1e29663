//! XA transactions for replicas that don't know them, or take them for others: MySQL 5.6 and MariaDB get plain transactions where XA
//! COMMIT stands, and have the source's rows, whatever comes between PREPARE and COMMIT.
//!
//! `SEED=N` repeats the statements of a random run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, Stdio};

use binlogz_testkit::random::Random;
use binlogz_testkit::{
    InstalledTool, MariadbSandbox, Mysql56Sandbox, MysqlSandbox, SandboxServer, Tool, mutate, require_tool,
    setting,
};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, reserved_port, url};
use crate::old_replicas::{follow, mariadb_follows};

const TABLES: &str = "\
CREATE DATABASE x;
CREATE TABLE x.t (id INT PRIMARY KEY, number INT, note MEDIUMTEXT, picture BLOB);
CREATE TABLE x.other (id INT PRIMARY KEY, number INT);
";
/// Every row as a line.
const ROWS: &str = "SELECT id, number, SHA2(note, 256), HEX(picture) FROM x.t ORDER BY id; SELECT * FROM x.other ORDER BY id";
/// So many names, each used again once it is decided.
const NAMES: usize = 12;

/// What a source does, as far as the rows' locks matter: nothing touches a row of a transaction that is only prepared.
#[derive(Default)]
struct Work {
    next_row: u32,
    /// Rows that are there, and free to be changed.
    free: Vec<u32>,
    /// Prepared transactions: their rows after COMMIT, and after ROLLBACK.
    prepared: BTreeMap<usize, (Vec<u32>, Vec<u32>)>,
    /// How many were plain, in one phase, and committed and rolled back in two.
    counts: [usize; 4],
}

impl Work {
    /// Changes of one transaction, and its rows after COMMIT and after ROLLBACK.
    fn changes(&mut self, random: &mut Random, sql: &mut String) -> (Vec<u32>, Vec<u32>) {
        let mut after = (Vec::new(), Vec::new());
        for _ in 0..=random.below(4) {
            let change = if self.free.is_empty() { 0 } else { random.below(5) };
            if change < 3 {
                self.next_row += 1;
                let id = self.next_row;
                // Now and then one that is large, and one that is larger than what is held in memory.
                let size = [3, 40, 3000, 90_000, 400_000][random.below(100) / 24];
                let number = random.below(1000);
                writeln!(sql, "INSERT INTO x.t VALUES ({id}, {number}, REPEAT(SHA2({id}, 256), {size} / 64), SHA2({id}, 256));")
                    .unwrap();
                writeln!(sql, "INSERT INTO x.other VALUES ({id}, {number});").unwrap();
                after.0.push(id);
                continue;
            }
            let id = self.free.swap_remove(random.below(self.free.len()));
            after.1.push(id);
            match change {
                3 => {
                    let number = random.below(1000);
                    writeln!(sql, "UPDATE x.t SET number = {number}, note = REVERSE(note) WHERE id = {id};")
                        .unwrap();
                    after.0.push(id);
                }
                _ => {
                    writeln!(sql, "DELETE FROM x.t WHERE id = {id};\nDELETE FROM x.other WHERE id = {id};")
                        .unwrap();
                }
            }
        }
        after
    }

    /// A transaction, or the end of one.
    fn step(&mut self, random: &mut Random, sql: &mut String) {
        let names: Vec<usize> = self.prepared.keys().copied().collect();
        match random.below(10) {
            0..3 => {
                sql.push_str("BEGIN;\n");
                let (after, _) = self.changes(random, sql);
                sql.push_str("COMMIT;\n");
                self.free.extend(after);
                self.counts[0] += 1;
            }
            3..6 if names.len() < NAMES => {
                let name = (0..NAMES).find(|name| !self.prepared.contains_key(name)).unwrap();
                writeln!(sql, "XA START 'x{name}', 'branch', {name};").unwrap();
                let after = self.changes(random, sql);
                writeln!(sql, "XA END 'x{name}', 'branch', {name};\nXA PREPARE 'x{name}', 'branch', {name};")
                    .unwrap();
                self.prepared.insert(name, after);
            }
            6 => {
                sql.push_str("XA START 'one';\n");
                let (after, _) = self.changes(random, sql);
                sql.push_str("XA END 'one';\nXA COMMIT 'one' ONE PHASE;\n");
                self.free.extend(after);
                self.counts[1] += 1;
            }
            7 if random.below(4) == 0 => sql.push_str("FLUSH BINARY LOGS;\n"),
            _ if names.is_empty() => {}
            _ => {
                let is_commit = random.below(3) > 0;
                self.decide(names[random.below(names.len())], is_commit, sql);
            }
        }
    }

    /// Ends a prepared transaction.
    fn decide(&mut self, name: usize, is_commit: bool, sql: &mut String) {
        let (committed, rolled_back) = self.prepared.remove(&name).unwrap();
        let word = if is_commit { "COMMIT" } else { "ROLLBACK" };
        writeln!(sql, "XA {word} 'x{name}', 'branch', {name};").unwrap();
        self.free.extend(if is_commit { committed } else { rolled_back });
        self.counts[if is_commit { 2 } else { 3 }] += 1;
    }
}

/// Waits until a replica has the source's rows, and compares them one by one.
fn has_rows_of(relay: &mut Relay, source: &MysqlSandbox, name: &str, replica: &SandboxServer) {
    let expected = source.sql(ROWS).unwrap();
    relay.wait_for(&format!("rows in {name}"), |_| {
        let status = replica.sql("SHOW SLAVE STATUS").unwrap();
        let stopped =
            status.split('\t').find(|cell| cell.contains("Error '") || cell.contains("Got fatal error"));
        assert_eq!(stopped, None, "{name}");
        (replica.sql(ROWS).ok()? == expected).then_some(())
    });
}

/// A source whose sessions write what MySQL 5.6 can read.
fn source_of(mysql: &'static InstalledTool) -> MysqlSandbox {
    let source = mysql.sandbox().compression(3).option("max-allowed-packet", "64M").start().unwrap();
    source.sql(TABLES).unwrap();
    source
}

/// Random transactions in rounds, after each of which the relay or a replica goes and comes back.
fn random_transactions(count: usize, rounds: usize) {
    let mysql = require_tool!(Tool::Mysql);
    for tool in [Tool::Mariadb, Tool::Mariadb114, Tool::Mysql56] {
        require_tool!(tool);
    }
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    let folder = Folder::new();
    let source = source_of(mysql);
    let configuration =
        Configuration::of([url(&source)]).account("reader", "").ports(reserved_port(), reserved_port());
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let by_gtid = Mysql56Sandbox::start(&[]).unwrap();
    follow(&by_gtid, &relay, "MASTER_AUTO_POSITION=1");
    let by_position = Mysql56Sandbox::start(&[]).unwrap();
    follow(&by_position, &relay, "MASTER_LOG_FILE='binlog-u.000001', MASTER_LOG_POS=4");
    let mariadbs = [Tool::Mariadb, Tool::Mariadb114].map(|version| mariadb_follows(version, &relay));
    let replicas: [(&str, &SandboxServer); 4] = [
        ("MySQL 5.6 by GTID", &by_gtid),
        ("MySQL 5.6 by position", &by_position),
        ("MariaDB 10.11", &mariadbs[0]),
        ("MariaDB 11.4", &mariadbs[1]),
    ];
    let mut work = Work::default();
    for round in 0..rounds {
        let mut sql = format!("SET SESSION binlog_transaction_compression = {};\n", random.below(2));
        (0..count / rounds).for_each(|_| work.step(&mut random, &mut sql));
        source.sql(&sql).unwrap_or_else(|error| panic!("SEED={seed} round {round}: {error}"));
        match random.below(3) {
            0 => {
                relay.kill();
                relay = configuration.start(&folder);
            }
            1 => drop(replicas[random.below(4)].1.sql("STOP SLAVE; START SLAVE").unwrap()),
            _ => {}
        }
    }
    // One stays prepared: nobody has its rows.
    let mut sql = String::new();
    let names: Vec<usize> = work.prepared.keys().copied().skip(1).collect();
    names.into_iter().for_each(|name| work.decide(name, random.below(2) == 0, &mut sql));
    source.sql(&(sql + "INSERT INTO x.other VALUES (0, 0)")).unwrap();
    for (name, replica) in replicas {
        has_rows_of(&mut relay, &source, name, replica);
    }
    let all = source.gtid_executed().unwrap();
    by_gtid.wait_for_gtids(&all).unwrap();
    let [plain, one_phase, committed, rolled_back] = work.counts;
    println!(
        "SEED={seed}: {plain} plain transactions and {one_phase} XA ones in one phase, {committed} committed, {rolled_back} rolled \
         back; {} files; {} rows equal in all four",
        source.binlogs().unwrap().len(),
        source.sql(ROWS).unwrap().lines().count()
    );
}

#[test]
fn replicas_without_xa_have_the_rows_of_what_was_committed() {
    random_transactions(setting("RELAY_XA_STEPS", 60), setting("RELAY_XA_ROUNDS", 4));
}

/// `scripts/soak/xa.sh`.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_transactions_with_xa() {
    random_transactions(setting("RELAY_XA_STEPS", 1800), setting("RELAY_XA_ROUNDS", 60));
}

/// A MariaDB that begins at a later file, with the tables that are there by then, and acknowledges what it receives.
fn begins_later(relay: &Relay, file: &str) -> MariadbSandbox {
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW")]).unwrap();
    mariadb.sql(TABLES).unwrap();
    mariadb
        .sql(&format!(
            "SET GLOBAL rpl_semi_sync_slave_enabled = ON;
             CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='reader', MASTER_PASSWORD='secret', \
             MASTER_USE_GTID=no, MASTER_LOG_FILE='{file}', MASTER_LOG_POS=4; START SLAVE",
            relay.port
        ))
        .unwrap();
    mariadb
}

/// Prepares a transaction with one row, compressed or not, and begins another file.
fn prepare(source: &MysqlSandbox, name: &str, id: u32, compressed: bool) {
    source
        .sql(&format!(
            "SET SESSION binlog_transaction_compression = {}; XA START '{name}'; INSERT INTO x.other VALUES ({id}, 7);
             XA END '{name}'; XA PREPARE '{name}'; FLUSH BINARY LOGS",
            u8::from(compressed)
        ))
        .unwrap();
}

#[test]
fn a_replica_that_comes_between_prepare_and_commit_gets_the_rows_or_the_reason() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    let folder = Folder::new();
    let source = source_of(mysql);
    // Before all that the relay is going to store.
    prepare(&source, "early", 1, false);
    source.sql("PURGE BINARY LOGS TO 'binlog.000002'").unwrap();
    let mut relay = Configuration::of([url(&source)])
        .listen("semi_sync = true")
        .account("reader", "")
        .account("older", "reads = \"mariadb-10.2\"")
        .start(&folder);
    prepare(&source, "plain", 2, false);
    prepare(&source, "packed", 3, true);
    relay.has_all_of(&source);
    let last = source.position().unwrap().0.replace("binlog.", "binlog-u.");
    let replica = begins_later(&relay, &last);
    source.sql("XA COMMIT 'plain'; XA COMMIT 'packed'").unwrap();
    has_rows_of(&mut relay, &source, "MariaDB", &replica);
    let told = relay.wait_for("an acknowledgement of the last of two translated transactions", |relay| {
        let status = relay.status();
        let replica = status["replicas"].as_array()?.first()?.clone();
        let durable = &status["log"]["durable"];
        let is_acknowledged = replica["acknowledged"]["position"] == durable["position"]
            && replica["acknowledgements"].as_u64() > Some(0);
        (replica["translated_xa_transactions"] == 2 && is_acknowledged).then_some(replica)
    });
    assert_eq!(told["prepared_xa_transactions"], 0);
    assert!(relay.said().contains("was prepared before this dump: found at"), "{}", relay.said());
    has_a_file_of_its_own(mysql, &relay, &last);

    source.sql("XA COMMIT 'early'").unwrap();
    let status = relay.wait_for("the end of the dump", |_| {
        replica.sql("SHOW SLAVE STATUS").ok().filter(|status| status.contains("1236"))
    });
    assert!(
        status.contains("the rows of the XA transaction X'6561726c79',X'',1, which is committed at"),
        "{status}"
    );
    // Nothing of it is there.
    assert_eq!(replica.sql("SELECT id FROM x.other ORDER BY id").unwrap(), "2\n3\n");
}

/// The first transaction's own file is sent from each of its events on, and from no place between.
#[track_caller]
fn has_a_file_of_its_own(mysql: &InstalledTool, relay: &Relay, log: &str) {
    let fetched = |file: &str, position: u64| {
        let mut command = relay.mysqlbinlog(mysql, "older");
        let output = command.args([&format!("--start-position={position}"), file]).output().unwrap();
        let [text, trouble] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (text, trouble)
    };
    let events = relay.sql(mysql, "older", &[], &format!("SHOW BINLOG EVENTS IN '{log}'")).unwrap();
    let gtid = events.lines().find(|line| line.contains("\tGtid\t")).unwrap();
    let (base, number) = log.rsplit_once('.').unwrap();
    let file = &format!("{base}.000000-xa{number}-{}", gtid.split('\t').nth(1).unwrap());
    // It would take that for the end of the file that it asked for.
    let (text, trouble) = fetched(log, 4);
    assert!(
        trouble.contains("are in a file of their own") && !text.contains("XA COMMIT"),
        "{text}\n{trouble}"
    );
    let ends = |text: &str| {
        let words = text
            .lines()
            .filter_map(|line| line.split_once("end_log_pos ")?.1.split(' ').next()?.parse().ok());
        words.filter(|end| *end > 65_536).collect::<Vec<u64>>()
    };
    let (whole, trouble) = fetched(file, 4);
    let all = ends(&whole);
    // GTID, BEGIN, table map, rows, the filler in the place of XA END, XID.
    assert_eq!(all.len(), 6, "{whole}\n{trouble}");
    assert!(whole.contains("COMMIT/*!*/") && !whole.contains("XA "), "{whole}");
    let mut from = 65_536;
    for (index, end) in all.iter().enumerate() {
        assert_eq!(ends(&fetched(file, from).0), all[index..], "{from}");
        let (text, trouble) = fetched(file, from + 1);
        assert!(ends(&text).is_empty() && trouble.contains("no event begins"), "{text}\n{trouble}");
        from = *end;
    }
}

/// A session that keeps others from writing a table until it is dropped.
struct TableLock(Child);

impl TableLock {
    fn of(server: &SandboxServer, table: &str) -> Self {
        let mut session =
            server.client().arg("--unbuffered").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(session.stdin.as_mut().unwrap(), "LOCK TABLES {table} READ; SELECT 'locked';").unwrap();
        let mut told = String::new();
        BufReader::new(session.stdout.as_mut().unwrap()).read_line(&mut told).unwrap();
        assert_eq!(told, "locked\n");
        TableLock(session)
    }
}

impl Drop for TableLock {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Commits a row by an XA transaction of two phases.
fn commit_by_xa(source: &MysqlSandbox, id: u32) {
    source
        .sql(&format!(
            "XA START 'w{id}'; INSERT INTO x.other VALUES ({id}, 7); XA END 'w{id}'; XA PREPARE 'w{id}'; XA COMMIT 'w{id}'"
        ))
        .unwrap();
}

/// While an XA transaction's rows wait for a lock, a replica has reached no place after its XA COMMIT, whatever the position in the
/// transaction's own file; and UNTIL leads past it.
#[test]
fn a_place_after_xa_commit_is_reached_when_the_rows_are_there() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let source = source_of(mysql);
    let mut relay = Configuration::of([url(&source)]).account("reader", "").start(&folder);
    relay.has_all_of(&source);
    let older = Mysql56Sandbox::start(&[]).unwrap();
    follow(&older, &relay, "MASTER_LOG_FILE='binlog-u.000001', MASTER_LOG_POS=4");
    let mariadb = mariadb_follows(Tool::Mariadb, &relay);
    for (name, replica, first_id) in [("MySQL 5.6", &*older, 1), ("MariaDB", &*mariadb, 1001)] {
        has_rows_of(&mut relay, &source, name, replica);
        // The applier waits for this lock, with the transaction's own file as its place.
        let lock = TableLock::of(replica, "x.other");
        commit_by_xa(&source, first_id);
        let (file, end) = end_of_log(mysql, &mut relay, &source);
        relay.wait_for("the transaction's own file", |_| {
            let status = replica.sql("SHOW SLAVE STATUS").unwrap();
            status.split('\t').nth(9).filter(|file| file.contains("-xa")).map(drop)
        });
        let wait = |seconds: u32| {
            let waited = replica.sql(&format!("SELECT MASTER_POS_WAIT('{file}', {end}, {seconds})")).unwrap();
            waited.trim().parse::<i64>().unwrap_or_else(|_| panic!("{name}: {waited}"))
        };
        assert_eq!(wait(1), -1, "{name}: its rows aren't there, so {file} {end} isn't reached");
        drop(lock);
        assert!(wait(60) >= 0, "{name}");
        let number = replica.sql(&format!("SELECT number FROM x.other WHERE id = {first_id}")).unwrap();
        assert_eq!(number, "7\n", "{name}");

        // UNTIL ends after such a transaction, with its rows.
        replica.sql("STOP SLAVE").unwrap();
        let id = first_id + 10;
        commit_by_xa(&source, id);
        let (file, end) = end_of_log(mysql, &mut relay, &source);
        source.sql(&format!("INSERT INTO x.other VALUES ({id} + 10, 9)")).unwrap();
        replica.sql(&format!("START SLAVE UNTIL MASTER_LOG_FILE='{file}', MASTER_LOG_POS={end}")).unwrap();
        relay.wait_for("the end of UNTIL", |_| {
            let status = replica.sql("SHOW SLAVE STATUS").unwrap();
            status.split('\t').nth(11).filter(|running| *running == "No").map(drop)
        });
        let there = replica.sql(&format!("SELECT id FROM x.other WHERE id >= {id} ORDER BY id")).unwrap();
        assert_eq!(there, format!("{id}\n"), "{name}");
        replica.sql("START SLAVE").unwrap();
    }
}

/// Where the log ends for a client that gets it uncompressed, once the relay has all of the source.
fn end_of_log(mysql: &InstalledTool, relay: &mut Relay, source: &MysqlSandbox) -> (String, u64) {
    relay.has_all_of(source);
    let status = relay.sql(mysql, "reader", &[], "SHOW BINARY LOG STATUS").unwrap();
    let mut cells = status.trim_end().split('\t');
    (cells.next().unwrap().to_owned(), cells.next().unwrap().parse().unwrap())
}

#[test]
fn after_a_failover_the_rows_come_from_the_log_before() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    require_tool!(Tool::Mysql56);
    let folder = Folder::new();
    let mut first = source_of(mysql);
    let second = mysql.sandbox().start().unwrap();
    second.replicate_from(&first).unwrap();
    let mut relay = Configuration::of([url(&first), url(&second)]).account("reader", "").start(&folder);
    relay.has_all_of(&first);
    let replica = Mysql56Sandbox::start(&[]).unwrap();
    follow(&replica, &relay, "MASTER_AUTO_POSITION=1");
    prepare(&first, "kept", 1, true);
    prepare(&first, "dropped", 2, false);
    relay.has_all_of(&first);
    second.wait_for_source(&first).unwrap();
    second.flush_binary_logs().unwrap();
    first.kill();
    second
        .sql("STOP REPLICA; RESET REPLICA ALL; XA COMMIT 'kept'; XA ROLLBACK 'dropped'; INSERT INTO x.other VALUES (3, 7)")
        .unwrap();
    relay.has_gtids_of(&second);
    assert_ne!(
        relay.status()["log"]["first_file"],
        "binlog.000001",
        "it begins with what the log before lacks"
    );
    has_rows_of(&mut relay, &second, "MySQL 5.6", &replica);
    assert_eq!(replica.sql("SELECT id FROM x.other ORDER BY id").unwrap(), "1\n3\n");
    replica.wait_for_gtids(&second.gtid_executed().unwrap()).unwrap();
}
