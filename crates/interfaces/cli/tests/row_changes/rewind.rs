//! `undo --all --until`: all tables, those of a database or some are as they were at a moment, each row changed once.
//!
//! `BINLOGZ_REWIND_SEEDS` says how many seeds of the random workload; `SEED=N` begins at N. The model's check `rewind` has tables with all sorts
//! of keys, and DDL in between.

use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use binlogz_testkit::{MysqlSandbox, Result, Tool, require_tool, setting};

use crate::common::{Folder, Ran};
use crate::round_trip::{place_of, through_mysqlbinlog};
use crate::table_at::{TABLES, last_gtid};
use crate::workload::Workload;

const SEEDS: u64 = 2;
const MOMENTS: usize = 3;
const TRANSACTIONS: usize = 40;

/// A run that goes back to a moment.
pub(crate) fn rewound(folder: &Folder, server: &MysqlSandbox, until: &str, more: &[&str]) -> Ran {
    let place = place_of(server);
    let front = ["undo", "--no-defaults", "--user=root", "--all", "--until", until, "--server", &place];
    folder.run(front.iter().chain(more))
}

/// A run that goes back to a moment in place.
pub(crate) fn rewound_in_place(folder: &Folder, server: &MysqlSandbox, until: &str, more: &[&str]) -> Ran {
    let place = place_of(server);
    rewound(folder, server, until, &[&["--apply", &place, "--execute"], more].concat())
}

/// The server's time, as an option takes it.
pub(crate) fn now(server: &MysqlSandbox) -> Result<String> {
    let time = server.sql("SET time_zone = '+00:00'; SELECT NOW(6)")?;
    Ok(format!("{}Z", time.trim().replace(' ', "T")))
}

/// Runs statements; those that the server refuses are left out.
fn run(server: &MysqlSandbox, folder: &Folder, sql: &str) {
    let path = folder.put("statements.sql", sql);
    server.client().arg("--force").stdin(File::open(path).unwrap()).output().unwrap();
}

#[test]
fn everything_goes_back_to_any_moment() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    // Its sessions log nothing: init_connect isn't run for root.
    server.sql(
        "CREATE USER unlogged; GRANT SELECT, CREATE, INSERT, DELETE, ALTER, DROP, CREATE TEMPORARY TABLES, TRIGGER, REPLICATION SLAVE, \
         REPLICATION CLIENT, SESSION_VARIABLES_ADMIN ON *.* TO unlogged; SET GLOBAL init_connect = 'SET sql_log_bin = 0'",
    )?;
    let (first, count) = (setting("SEED", 1), setting("BINLOGZ_REWIND_SEEDS", SEEDS));
    for seed in first..first + count {
        println!("SEED={seed}");
        goes_back(&server, seed)?;
    }
    Ok(())
}

fn goes_back(server: &MysqlSandbox, seed: u64) -> Result<()> {
    let folder = Folder::new();
    let database = format!("d{seed}");
    let mut workload = Workload::new(seed);
    server.sql(
        ["SET GLOBAL binlog_row_metadata = FULL", "SET GLOBAL binlog_row_metadata = MINIMAL"]
            [seed as usize % 2],
    )?;
    run(server, &folder, &workload.begin(&database));
    let mut moments = Vec::new();
    for _ in 0..MOMENTS {
        moments.push((last_gtid(server)?, server.checksum_tables(&database)?));
        run(server, &folder, &workload.run_committed(&database, TRANSACTIONS));
        server.flush_binary_logs()?;
    }
    let (last, is_now) = (last_gtid(server)?, server.checksum_tables(&database)?);
    for (number, (gtid, were)) in moments.iter().enumerate() {
        let what = format!("SEED={seed}: moment {number}");
        let at = tables_at(server, &folder, (&database, gtid))?;
        let of_database = format!("--table={database}.*");
        let option = if number % 2 == 0 { "--batch=7" } else { &of_database };
        let ran = rewound_in_place(&folder, server, gtid, &[option]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{what}: {}", ran.text());
        println!("{what}: {}", ran.text().lines().next().unwrap_or_default());
        assert_eq!(&server.checksum_tables(&database)?, were, "{what}");
        assert_eq!(at, only_keyed(&database, were), "{what}: as table-at has them");
        // A rewind is a change as well, and another rewind takes it back.
        let ran = rewound_in_place(&folder, server, &last, &[]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{what}: {}", ran.text());
        assert_eq!(server.checksum_tables(&database)?, is_now, "{what}");
    }
    // As a log and as a script.
    let (gtid, were) = &moments[1];
    let log = rewound(&folder, server, gtid, &["--format=binlog", "--output=log", "--force"]);
    assert_eq!((log.code, &*log.stderr), (Some(0), ""), "SEED={seed}");
    through_mysqlbinlog(server, &folder.path("log"))?;
    assert_eq!(&server.checksum_tables(&database)?, were, "SEED={seed}: as a log");
    let ran = rewound_in_place(&folder, server, &last, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "SEED={seed}: {}", ran.text());
    let script = rewound(&folder, server, gtid, &[]);
    assert_eq!((script.code, &*script.stderr), (Some(0), ""), "SEED={seed}");
    let path = folder.put("undo.sql", &script.stdout);
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    assert!(ran.status.success(), "SEED={seed}: {}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(&server.checksum_tables(&database)?, were, "SEED={seed}: as a script");
    server.sql(&format!("DROP DATABASE {database}")).map(drop)
}

/// The checksums of the tables with keys, by their names alone.
fn only_keyed(database: &str, checksums: &[(String, String)]) -> Vec<(String, String)> {
    let prefix = format!("{database}.");
    let tables =
        checksums.iter().filter_map(|(name, checksum)| Some((name.strip_prefix(&prefix)?, checksum)));
    let keyed = tables.filter(|(name, _)| TABLES.contains(name));
    keyed.map(|(name, checksum)| (name.to_owned(), checksum.clone())).collect()
}

/// The checksums of the tables with keys as table-at makes them, beside those that the server has and without a trace in its log.
fn tables_at(
    server: &MysqlSandbox,
    folder: &Folder,
    (database, gtid): (&str, &str),
) -> Result<Vec<(String, String)>> {
    let names = TABLES.map(|table| format!("{database}.{table}"));
    server.sql("SET sql_log_bin = 0; CREATE DATABASE past")?;
    let place = place_of(server);
    let options = ["--at", gtid, "--no-defaults", "--user=unlogged", "--server", &place, "--into", "past"];
    let ran = folder.run(["table-at"].into_iter().chain(names.iter().map(String::as_str)).chain(options));
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{database} at {gtid}");
    let at = only_keyed("past", &server.checksum_tables("past")?);
    server.sql("SET sql_log_bin = 0; DROP DATABASE past")?;
    assert_eq!(at.len(), TABLES.len());
    Ok(at)
}

pub(crate) const SHOP: &str = "CREATE DATABASE shop; USE shop;
CREATE TABLE jobs (id INT AUTO_INCREMENT PRIMARY KEY, state VARCHAR(20), tries INT NOT NULL DEFAULT 0, UNIQUE KEY (state, id));
CREATE TABLE parent (id INT PRIMARY KEY, name VARCHAR(10));
CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id) ON DELETE CASCADE);
CREATE TABLE bag (what VARCHAR(20));
INSERT INTO jobs (state) VALUES ('new'), ('new'), ('new'), ('new');
INSERT INTO parent VALUES (1, 'a'), (2, 'b'); INSERT INTO child VALUES (10, 1), (20, 2); INSERT INTO bag VALUES ('x'), ('x');
";

const SHOP_CHANGES: &str = "USE shop;
UPDATE jobs SET tries = 1; UPDATE jobs SET tries = 2; UPDATE jobs SET state = 'run' WHERE id = 1; DELETE FROM jobs WHERE id = 2;
INSERT INTO jobs (id, state) VALUES (7, 'new'); UPDATE jobs SET state = 'run' WHERE id = 7; INSERT INTO jobs (id, state) VALUES (8, 'new'); DELETE FROM jobs WHERE id = 8;
DELETE FROM parent WHERE id = 1; INSERT INTO parent VALUES (3, 'c'); INSERT INTO child VALUES (30, 3); DELETE FROM bag LIMIT 1; INSERT INTO bag VALUES ('y');
";

#[test]
fn each_row_changes_once_and_those_of_others_stay() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(SHOP)?;
    let (moment, were) = (last_gtid(&server)?, server.checksum_tables("shop")?);
    let first = server.flush_binary_logs()?;
    server.sql(SHOP_CHANGES)?;
    let log = server.flush_binary_logs()?;
    let logs = [first.to_str().unwrap(), log.to_str().unwrap()];
    let place = place_of(&server);
    let files = ["undo", "--no-defaults", "--user=root", "--all", "--until", &moment, "--apply", &place];
    let dry = folder.run(files.iter().chain(&logs));
    assert_eq!((dry.code, &*dry.stderr), (Some(0), ""), "{}", dry.text());
    let expected = "13 transactions with 20 row changes since then, 12 net changes
shop.bag: rows that would be 1 inserted, 0 updated, 1 deleted; 0 of them overwritten; 0 conflicts
shop.child: rows that would be 1 inserted, 0 updated, 1 deleted; 0 of them overwritten; 0 conflicts
shop.jobs: rows that would be 2 inserted, 2 updated, 2 deleted; 0 of them overwritten; 0 conflicts
shop.parent: rows that would be 1 inserted, 0 updated, 1 deleted; 0 of them overwritten; 0 conflicts
dry run: nothing is undone; --execute does it
";
    assert_eq!(dry.text(), expected);
    // Others go on: a row that was changed, one that was inserted with the key of a deleted one, a new one.
    server.sql("USE shop; UPDATE jobs SET tries = 9 WHERE id = 3; INSERT INTO jobs (id, state) VALUES (2, 'mine'), (50, 'mine')")?;
    let journal = ["--execute", "--journal=journal", logs[0], logs[1]];
    let ran = folder.run(files.iter().chain(&journal));
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.stderr.contains("2 transactions came after the logs were read, and stay"), "{}", ran.stderr);
    assert!(ran.stderr.contains("2 rows in conflict"), "{}", ran.stderr);
    assert_eq!(
        server.sql("SELECT * FROM shop.jobs ORDER BY id")?,
        "1\tnew\t0\n2\tmine\t0\n3\tnew\t9\n4\tnew\t0\n50\tmine\t0\n"
    );
    // A journal knows what the run with it did.
    let ran = folder.run(files.iter().chain(&journal));
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.text().contains("12 rows were done by earlier runs with this journal"), "{}", ran.text());
    // With the server's own logs, those go back as well; what the first run did is a change like any other.
    let ran = rewound_in_place(&folder, &server, &moment, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    assert_eq!(server.checksum_tables("shop")?, were);
    Ok(())
}

#[test]
fn what_cannot_go_back_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(SHOP)?;
    let moment = last_gtid(&server)?;
    server.sql(SHOP_CHANGES)?;
    let (changed, now) = (last_gtid(&server)?, server.checksum_tables("shop")?);
    // A parent without the rows that its foreign key deleted with it.
    let ran = rewound(&folder, &server, &moment, &["--table", "shop.parent"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("rows of other tables together with those chosen"), "{}", ran.stderr);
    assert!(ran.stderr.contains("shop.child (1 row)"), "{}", ran.stderr);
    // Others refer to a row that is to go.
    let log = server.flush_binary_logs()?;
    server.sql("INSERT INTO shop.child VALUES (31, 3)")?;
    let place = place_of(&server);
    let files =
        ["undo", "--no-defaults", "--user=root", "--all", "--until", &moment, "--apply", &place, "--execute"];
    let ran = folder.run(files.iter().chain(&[log.to_str().unwrap()]));
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    assert!(ran.stderr.contains("would be left without the rows that they refer to"), "{}", ran.stderr);
    server.sql("DELETE FROM shop.child WHERE id = 31")?;
    // A row that came and went is no change.
    let ran = rewound_in_place(&folder, &server, &changed, &[]);
    assert_eq!(
        (ran.code, &*ran.stderr),
        (Some(0), "binlogz: warning: nothing is undone: each row is as it was then\n"),
        "{}",
        ran.text()
    );
    assert_eq!(server.checksum_tables("shop")?, now);
    // DDL in between.
    server.sql("ALTER TABLE shop.bag ADD COLUMN n INT; CREATE TABLE shop.late (id INT PRIMARY KEY); INSERT INTO shop.late VALUES (1)")?;
    let ran = rewound_in_place(&folder, &server, &moment, &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(
        ran.text().contains("not undone, a statement: ALTER TABLE shop.bag ADD COLUMN n INT"),
        "{}",
        ran.text()
    );
    assert!(ran.text().contains("INSERT of a row in shop.bag: --schema doesn't fit"), "{}", ran.text());
    let ran = rewound_in_place(
        &folder,
        &server,
        &changed,
        &["--table", "shop.jobs", "--table", "shop.parent", "--table", "shop.child"],
    );
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    assert_eq!(without_altered(server.checksum_tables("shop")?), without_altered(now));
    Ok(())
}

fn without_altered(tables: Vec<(String, String)>) -> Vec<(String, String)> {
    let is_other = |(name, _): &(String, String)| !name.ends_with("bag") && !name.ends_with("late");
    tables.into_iter().filter(is_other).collect()
}

#[test]
fn moments_that_the_logs_lack_are_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(SHOP)?;
    let first = last_gtid(&server)?;
    server.sql("XA START 'x'; INSERT INTO shop.bag VALUES ('xa'); XA END 'x'; XA PREPARE 'x'")?;
    let prepared = last_gtid(&server)?;
    server.sql("XA COMMIT 'x'")?;
    let log = server.flush_binary_logs()?;
    let before_late = last_gtid(&server)?;
    server.sql("INSERT INTO shop.bag VALUES ('late')")?;
    let later = server.flush_binary_logs()?;
    let ran = rewound_in_place(&folder, &server, &prepared, &[]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("prepared before the moment and committed after it"), "{}", ran.stderr);
    let ran = rewound_in_place(&folder, &server, &first, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    assert_eq!(server.sql("SELECT COUNT(*) FROM shop.bag")?, "2\n");
    // The log begins later: what came between the moment and it isn't known.
    let args = ["undo", "--all", "--until", &first, later.to_str().unwrap()];
    folder.run(args).is(
        1,
        "",
        &format!("binlogz: --until {first}: this transaction stands before the logs\n"),
    );
    let unknown = "aaaaaaaa-71ca-11e1-9e33-c80aa9429562:7";
    let args = ["undo", "--all", "--until", unknown, log.to_str().unwrap()];
    folder.run(args).is(1, "", &format!("binlogz: --until {unknown}: this transaction is not in the logs\n"));
    let ran = folder.run(["undo", "--table", "shop.*", log.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("only undo --all takes all tables of a database"), "{}", ran.stderr);
    // A table of another name is no table without changes.
    let ran = rewound_in_place(&folder, &server, &first, &["--table", "shop.bgg", "--table", "shpo.*"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    for name in ["shop.bgg", "shpo.*"] {
        assert!(
            ran.stderr.contains(&format!("--table {name}: the schema has no such table")),
            "{}",
            ran.stderr
        );
    }
    // A transaction that the log has in part.
    let bytes = std::fs::read(&later).unwrap();
    // Its last two events are the transaction's end and ROTATE, which has the name of the next log.
    let tail = 31 + 31 + later.file_name().unwrap().len();
    let cut = folder.put(later.file_name().unwrap().to_str().unwrap(), &bytes[..bytes.len() - tail]);
    let args = ["undo", "--all", "--until", &before_late, log.to_str().unwrap(), cut.to_str().unwrap()];
    let ran = folder.run(args);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("the logs end within this transaction; it is left out"), "{}", ran.stderr);
    // A time before the logs.
    server.sql(&format!(
        "PURGE BINARY LOGS TO '{}'",
        server.binlogs()?.last().unwrap().file_name().unwrap().display()
    ))?;
    let ran = rewound(&folder, &server, "2020-01-01 00:00", &[]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("--until 2020-01-01 00:00: the logs begin later"), "{}", ran.stderr);
    Ok(())
}

fn says_that_logs_lack_some(ran: &Ran) {
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("changes that came between may be in an earlier log"), "{}", ran.stderr);
}

/// The head of a log has the time at which the statement began that made the server change logs. Others commit meanwhile.
#[test]
fn a_change_after_the_time_of_a_log_but_before_its_begin_goes_back() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(&format!("{SHOP} DO SLEEP(1.2)"))?;
    let (moment, were) = (now(&server)?, server.checksum_tables("shop")?);
    server.sql(
        "INSERT INTO shop.bag VALUES ('a'); SET timestamp = UNIX_TIMESTAMP() - 5; FLUSH BINARY LOGS; SET timestamp = DEFAULT; \
         INSERT INTO shop.bag VALUES ('b')",
    )?;
    // A log that begins in the middle is not enough, whether it is a file or all that the server has left.
    let last = server.binlogs()?.pop().unwrap();
    says_that_logs_lack_some(&folder.run(["undo", "--all", "--until", &moment, last.to_str().unwrap()]));
    let ran = rewound_in_place(&folder, &server, &moment, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    assert_eq!(server.checksum_tables("shop")?, were);
    server.sql(&format!("PURGE BINARY LOGS TO '{}'", last.file_name().unwrap().display()))?;
    says_that_logs_lack_some(&rewound_in_place(&folder, &server, &moment, &[]));
    Ok(())
}

/// A statement that ran for long is of the time of its commit, whatever its events say.
#[test]
#[allow(clippy::zombie_processes)] // where the test fails, its processes end with the server
fn what_began_before_the_moment_and_was_committed_after_it_goes_back() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(SHOP)?;
    let were = server.checksum_tables("shop")?;
    let mut holder = server
        .client()
        .args(["-e", "DO GET_LOCK('go', 0); DO SLEEP(1000)"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let session = answer(&server, "SELECT IS_USED_LOCK('go')")?;
    let statement = "INSERT INTO shop.bag SELECT 'slow' FROM (SELECT GET_LOCK('go', 1000)) AS waits";
    let mut slow = server.client().args(["-e", statement]).spawn().unwrap();
    answer(&server, "SELECT MIN(id) FROM performance_schema.processlist WHERE state = 'User lock'")?;
    sleep(Duration::from_millis(1200));
    server.flush_binary_logs()?;
    let moment = now(&server)?;
    server.sql(&format!("KILL {session}"))?;
    holder.wait().unwrap();
    assert!(slow.wait().unwrap().success());
    assert_ne!(server.checksum_tables("shop")?, were);
    let ran = rewound_in_place(&folder, &server, &moment, &[]);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{}", ran.text());
    assert_eq!(server.checksum_tables("shop")?, were);
    Ok(())
}

/// The answer to a question, once it is not NULL.
fn answer(server: &MysqlSandbox, question: &str) -> Result<String> {
    loop {
        let answer = server.sql(question)?;
        if answer.trim() != "NULL" {
            return Ok(answer.trim().to_owned());
        }
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_moment_before_the_first_log_is_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(SHOP)?;
    let moment = now(&server)?;
    server.sql("DO SLEEP(1.2); RESET BINARY LOGS AND GTIDS; INSERT INTO shop.bag VALUES ('late')")?;
    let ran = rewound_in_place(&Folder::new(), &server, &moment, &[]);
    assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("the first log begins later, at "), "{}", ran.stderr);
    Ok(())
}

#[test]
fn xa_of_earlier_logs_is_not_taken_back_in_silence() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(SHOP)?;
    server.sql("XA START 'x'; INSERT INTO shop.bag VALUES ('xa'); XA END 'x'; XA PREPARE 'x'")?;
    server.flush_binary_logs()?;
    server.sql("INSERT INTO shop.bag VALUES ('between')")?;
    let moment = last_gtid(&server)?;
    server.sql("XA COMMIT 'x'; INSERT INTO shop.bag VALUES ('late')")?;
    let ran = rewound_in_place(&folder, &server, &moment, &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    assert!(ran.stderr.contains("prepared before the moment and committed after it"), "{}", ran.stderr);
    Ok(())
}

#[test]
fn without_gtids_nothing_is_certain() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(SHOP)?;
    let moment = last_gtid(&server)?;
    server.sql("INSERT INTO shop.bag VALUES ('late')")?;
    server.sql("SET GLOBAL gtid_mode = ON_PERMISSIVE")?;
    let ran = rewound_in_place(&folder, &server, &moment, &[]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("gtid_mode is ON_PERMISSIVE, expected ON"), "{}", ran.stderr);
    let server =
        mysql.sandbox().option("gtid_mode", "OFF").option("enforce_gtid_consistency", "OFF").start()?;
    server.sql(SHOP)?;
    let log = server.flush_binary_logs()?;
    let ran = folder.run(["undo", "--all", "--until", "2020-01-01 00:00", log.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("the first log begins later, at "), "{}", ran.stderr);
    Ok(())
}

#[test]
fn a_run_that_is_killed_is_continued_by_another_one() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(&format!("{SHOP} SET SESSION cte_max_recursion_depth = 10000;
        INSERT INTO bag WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i FROM n;
        INSERT INTO jobs (tries) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT i FROM n"))?;
    let (moment, were) = (last_gtid(&server)?, server.checksum_tables("shop")?);
    server.sql("UPDATE shop.jobs SET tries = tries + 1; UPDATE shop.jobs SET tries = tries * 2; DELETE FROM shop.bag; DELETE FROM shop.parent")?;
    let place = place_of(&server);
    let mut kills = 0;
    let mut done = last_gtid(&server)?;
    for _ in 0..6 {
        let args = [
            "undo",
            "--no-defaults",
            "--user=root",
            "--all",
            "--until",
            &moment,
            "--server",
            &place,
            "--apply",
            &place,
            "--execute",
            "--batch=3",
        ];
        let mut run = folder.binlogz(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Batches were committed.
        let begun = done.clone();
        while run.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(20));
            done = last_gtid(&server)?;
            if number(&done) > number(&begun) + 100 {
                run.kill().unwrap();
                kills += 1;
                break;
            }
        }
        run.wait().unwrap();
    }
    // Where asking the server takes long, most runs end before they are seen.
    assert!(kills > 0, "no run was killed");
    let ran = rewound_in_place(&folder, &server, &moment, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(server.checksum_tables("shop")?, were);
    Ok(())
}

/// A transaction's number in its GTID.
pub(crate) fn number(gtid: &str) -> u64 {
    gtid.rsplit(':').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// What the server says against a script.
fn refusal(server: &MysqlSandbox, path: &Path) -> String {
    let ran = server.client().stdin(File::open(path).unwrap()).output().unwrap();
    String::from_utf8_lossy(&ran.stderr).into_owned()
}

/// A table of a server whose logs are read as files has no foreign keys that are known: all of it goes back as one.
#[test]
fn a_script_of_files_goes_back_whole() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    server.sql(&format!("SET GLOBAL binlog_row_metadata = FULL; {SHOP}"))?;
    let (moment, were) = (last_gtid(&server)?, server.checksum_tables("shop")?);
    server.sql(SHOP_CHANGES)?;
    let log = server.flush_binary_logs()?;
    let script = folder.run(["undo", "--all", "--until", &moment, log.to_str().unwrap()]);
    assert_eq!((script.code, &*script.stderr), (Some(0), ""));
    assert_eq!(script.text().matches("\nCOMMIT;").count(), 1, "{}", script.text());
    let path = folder.put("undo.sql", &script.stdout);
    // Somebody's row refers to one that is to go.
    server.sql("INSERT INTO shop.child VALUES (31, 3)")?;
    let said = refusal(&server, &path);
    assert!(said.contains("rows came back without the rows that their foreign keys refer to"), "{said}");
    server.sql("DELETE FROM shop.child WHERE id = 31")?;
    assert_eq!(refusal(&server, &path), "");
    assert_eq!(server.checksum_tables("shop")?, were);
    Ok(())
}
