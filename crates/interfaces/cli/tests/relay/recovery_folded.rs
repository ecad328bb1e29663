//! `recover --fold`: a server comes to the same tables, counters and GTIDs as the source had, whatever is killed meanwhile; and nothing takes a server for
//! one of a moment before it is.

use std::path::PathBuf;
use std::process::Command;

use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

use crate::common::{Folder, Ran, wait_for};
use crate::recovery::{Held, PATIENCE, is_free, is_stuck, ran, restored, said, settings_of, started};

/// AUTO_INCREMENT counters, which a dump has too.
const COUNTERS: &str = "SET SESSION information_schema_stats_expiry = 0; SELECT TABLE_NAME, AUTO_INCREMENT FROM information_schema.TABLES \
                        WHERE TABLE_SCHEMA = 'shop' ORDER BY TABLE_NAME";
const TABLES: &str = "CREATE DATABASE shop; USE shop;
CREATE TABLE jobs (id BIGINT AUTO_INCREMENT PRIMARY KEY, payload VARCHAR(40) UNIQUE, state VARCHAR(10) DEFAULT 'new');
CREATE TABLE counters (id INT PRIMARY KEY, n BIGINT NOT NULL DEFAULT 0);
CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20) UNIQUE, size INT AS (CHAR_LENGTH(name)) STORED,
    twice INT AS (CHAR_LENGTH(name) * 2) VIRTUAL, KEY (twice));
CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer INT, note VARCHAR(50),
    FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE audit (id SMALLINT UNSIGNED AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20));
CREATE TRIGGER noted AFTER INSERT ON orders FOR EACH ROW INSERT INTO audit (what) VALUES (NEW.note);
CREATE TABLE bag (a INT, b VARCHAR(10));
CREATE TABLE plain (id INT AUTO_INCREMENT PRIMARY KEY, v INT) ENGINE = MyISAM;
INSERT INTO counters (id) VALUES (1), (2), (3);
";

/// Sixty rounds of changes: most rows are gone in the end, and so are the largest numbers of some counters.
fn work(from: u32) -> String {
    let mut sql = String::from("USE shop;\n");
    for id in from..from + 60 {
        let (job, customer) = (format!("job-{id}"), format!("c-{id}"));
        sql += &format!(
            "INSERT INTO jobs (payload) VALUES ('{job}'); UPDATE jobs SET state = 'taken' WHERE payload = '{job}';
             UPDATE counters SET n = n + 1 WHERE id = {}; DELETE FROM jobs WHERE payload = '{job}';
             BEGIN; INSERT INTO customers (name) VALUES ('{customer}'); SET @id = LAST_INSERT_ID();
             INSERT INTO orders (customer, note) VALUES (@id, 'first'), (@id, 'second'); COMMIT;
             INSERT INTO bag VALUES ({}, 'x'); UPDATE bag SET b = 'y' WHERE a = {} LIMIT 1; DELETE FROM audit WHERE id % 3 = 0;\n",
            1 + id % 3,
            id % 4,
            (id + 1) % 4,
        );
        if id % 2 == 0 {
            sql += "DELETE FROM customers WHERE id = @id; UPDATE orders SET note = CONCAT(note, '!') ORDER BY id DESC LIMIT 2;\n";
        }
        if id % 20 == 0 {
            sql += "INSERT INTO plain (v) VALUES (1); UPDATE plain SET v = v + 1; UPDATE customers SET id = id + 1000 ORDER BY id DESC LIMIT 1;\n";
        }
    }
    sql
}

const DDL: &str = "USE shop; ALTER TABLE orders ADD COLUMN paid INT DEFAULT 7 AFTER id; UPDATE orders SET paid = id; UPDATE orders SET paid = paid + 1;
    CREATE TABLE late (id INT AUTO_INCREMENT PRIMARY KEY, v INT); INSERT INTO late (v) VALUES (1), (2), (3); DELETE FROM late WHERE id = 3;
    INSERT INTO late (v) VALUES (9); DELETE FROM late WHERE v = 9; RENAME TABLE bag TO sack, sack TO bag;
    SET binlog_format = STATEMENT; UPDATE counters SET n = n * 2; SET binlog_format = ROW;
    XA START 'x'; UPDATE counters SET n = n + 5 WHERE id = 1; XA END 'x'; XA PREPARE 'x';
    INSERT INTO bag VALUES (77, 'xa'); XA COMMIT 'x';";

/// All that has to be as it was at the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourceState {
    tables: Vec<(String, String)>,
    counters: String,
    executed: String,
}

impl SourceState {
    pub(crate) fn of(server: &MysqlSandbox) -> Self {
        SourceState {
            tables: server.checksum_tables("shop").unwrap(),
            counters: server.sql(COUNTERS).unwrap(),
            executed: server.gtid_executed().unwrap(),
        }
    }
}

/// A source with a dump, and its logs after that.
pub(crate) struct FoldStory {
    mysql: &'static InstalledTool,
    source: MysqlSandbox,
    pub(crate) folder: Folder,
    logs: Vec<PathBuf>,
    middle: SourceState,
    pub(crate) end: SourceState,
}

impl FoldStory {
    pub(crate) fn new(mysql: &'static InstalledTool) -> FoldStory {
        let folder = Folder::new();
        let source = mysql.sandbox().start().unwrap();
        source.sql(TABLES).unwrap();
        source.sql(&work(1000)).unwrap();
        let dumped = mysql
            .command("mysqldump")
            .args([
                "--no-defaults",
                "--user=root",
                "--single-transaction",
                "--set-gtid-purged=ON",
                "--databases",
                "shop",
            ])
            .arg(format!("--socket={}", source.socket().display()))
            .output()
            .unwrap();
        assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
        folder.put("dump.sql", dumped.stdout);
        source.sql(&work(2000)).unwrap();
        let middle = SourceState::of(&source);
        source.sql("FLUSH BINARY LOGS").unwrap();
        source.sql(&work(3000)).unwrap();
        source.sql(DDL).unwrap();
        source.sql(&work(4000)).unwrap();
        source.sql("FLUSH BINARY LOGS").unwrap();
        let end = SourceState::of(&source);
        let mut logs = source.binlogs().unwrap();
        logs.pop();
        FoldStory { mysql, source, folder, logs, middle, end }
    }

    pub(crate) fn restored(&self) -> MysqlSandbox {
        restored(self.mysql, &self.folder.path("dump.sql"))
    }

    pub(crate) fn recover(&self, server: &MysqlSandbox, args: &[&str]) -> Command {
        let mut command = self.folder.binlogz(["recover", "--no-defaults", "--work-dir", "."]);
        command.args(args).arg("--to").arg(format!("root@{}", server.socket().display()));
        command.arg("--from").args(&self.logs);
        command
    }

    /// The option that stops where [`FoldStory::middle`] was.
    fn until_middle(&self) -> String {
        let (uuid, numbers) = self.middle.executed.trim().split_once(':').unwrap();
        format!("--until-gtid={uuid}:{}", numbers.rsplit('-').next().unwrap())
    }

    /// A statement that locks a row which both ways insert.
    pub(crate) fn holding(&self) -> String {
        let customer = self.source.sql("SELECT MAX(id) FROM shop.customers").unwrap();
        format!("INSERT INTO shop.customers (id, name) VALUES ({}, 'held')", customer.trim())
    }

    fn schema(&self) -> String {
        let dumped = self
            .mysql
            .command("mysqldump")
            .args(["--no-defaults", "--user=root", "--no-data", "--databases", "shop"])
            .arg(format!("--socket={}", self.source.socket().display()))
            .output()
            .unwrap();
        format!("--schema={}", self.folder.put("schema.sql", dumped.stdout).display())
    }
}

#[track_caller]
fn is_refused(ran: &Ran, words: &str) {
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains(words), "{words}: {ran:?}");
}

#[test]
fn a_folded_range_comes_to_the_tables_counters_and_gtids_of_the_source() {
    let mysql = require_tool!(Tool::Mysql);
    let story = FoldStory::new(mysql);
    let schema = story.schema();
    let until = story.until_middle();
    // What --explain says, and what --check does, changes nothing.
    let server = story.restored();
    let settings = settings_of(&server);
    let before = SourceState::of(&server);
    let explained = ran(story.recover(&server, &["--explain", &schema]));
    explained.is_done();
    assert!(explained.text().contains("--fold=auto would fold: fold takes about "), "{explained:?}");
    ran(story.recover(&server, &["--fold", "--check"])).is_done();
    assert_eq!(SourceState::of(&server), before);
    is_free(&server, &settings);

    // To a moment, and from there to the end; then there is nothing left to do.
    let options: [&[&str]; 2] =
        [&["--fold", &schema, "--workers", "4"], &["--fold", "--transaction-rows", "7", "--workers", "4"]];
    for options in options {
        let server = story.restored();
        let settings = settings_of(&server);
        let done = ran(story.recover(&server, &[options, &[until.as_str()]].concat()));
        println!("{}", done.text());
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(SourceState::of(&server), story.middle, "{options:?}");
        is_free(&server, &settings);
        let done = ran(story.recover(&server, options));
        println!("{}", done.text());
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(SourceState::of(&server), story.end, "{options:?}");
        is_free(&server, &settings);
        let again = ran(story.recover(&server, options));
        assert!(again.text().ends_with("has everything already\n"), "{again:?}");
    }

    // One that has a part already, by replay; the rest is folded at once.
    ran(story.recover(&server, &[until.as_str()])).is_done();
    assert_eq!(SourceState::of(&server), story.middle);
    ran(story.recover(&server, &["--fold", &schema])).is_done();
    assert_eq!(SourceState::of(&server), story.end);
    // A replica of the source goes on from there.
    story.source.sql("INSERT INTO shop.jobs (payload) VALUES ('next')").unwrap();
    story.source.sql("FLUSH BINARY LOGS").unwrap();
    let next = story.source.binlogs().unwrap();
    let mut command = story.folder.binlogz(["recover", "--no-defaults", "--work-dir", "."]);
    command
        .arg("--to")
        .arg(format!("root@{}", server.socket().display()))
        .arg("--from")
        .args(&next[..next.len() - 1]);
    ran(command).is_done();
    assert_eq!(SourceState::of(&server), SourceState::of(&story.source));
}

/// What the source doesn't log doesn't come back: where it tells its tables, that is said.
#[test]
fn a_source_that_logs_only_some_databases_is_named() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().option("binlog-ignore-db", "other").start().unwrap();
    source
        .sql(
            "RESET BINARY LOGS AND GTIDS; CREATE DATABASE shop; CREATE TABLE shop.t (id INT PRIMARY KEY, v INT); INSERT INTO shop.t VALUES (1, 1);
             UPDATE shop.t SET v = 2; FLUSH BINARY LOGS",
        )
        .unwrap();
    let mut logs = source.binlogs().unwrap();
    logs.pop();
    let server = mysql.sandbox().start().unwrap();
    server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    let mut command =
        folder.binlogz(["recover", "--no-defaults", "--user=root", "--work-dir", ".", "--fold"]);
    command.arg("--schema").arg(source.socket());
    command.arg("--to").arg(format!("root@{}", server.socket().display())).arg("--from").args(&logs);
    let done = ran(command);
    assert_eq!(done.code, Some(1), "{done:?}");
    for line in [
        "it doesn't log all databases: changes in the others aren't in its logs",
        "binlog-ignore-db is other: statements such as ALTER TABLE",
    ] {
        assert!(done.stderr.contains(line), "{line}: {done:?}");
    }
    assert_eq!(server.sql("SELECT v FROM shop.t").unwrap(), "2\n");
}

#[test]
#[allow(clippy::zombie_processes)] // where the test fails, its processes end with the server
fn a_killed_fold_goes_on_with_the_same_command_alone() {
    let mysql = require_tool!(Tool::Mysql);
    let story = FoldStory::new(mysql);
    for (kill_run, kill_server) in [(true, false), (false, true), (true, true)] {
        let told = format!("the run: {kill_run}, the server: {kill_server}");
        let fold = if kill_run && kill_server { "--fold=auto" } else { "--fold" };
        let options = [fold, "--transaction-rows", "9", "--workers", "4"];
        let mut server = story.restored();
        let settings = settings_of(&server);
        let held = Held::by(&server, &story.holding());
        let mut run = started(story.recover(&server, &options));
        is_stuck(&server);
        if kill_run {
            run.kill().unwrap();
            run.wait().unwrap();
        }
        if kill_server {
            server.kill();
            server.start().unwrap();
        }
        drop(held);
        if kill_run {
            let until = story.until_middle();
            let differently: [(&[&str], &str); 4] = [
                (&[], "an interrupted run with --fold was bringing it from "),
                (&["--check"], "an interrupted run with --fold was bringing it from "),
                (&["--fold", "--transaction-rows", "8"], "the folded log is not the one of the earlier run"),
                (
                    &["--fold", "--transaction-rows", "9", &until],
                    "an earlier run with --fold is bringing it from ",
                ),
            ];
            for (args, words) in differently {
                is_refused(&ran(story.recover(&server, args)), words);
            }
            let check = ran(story.recover(&server, &[&options[..], &["--check"]].concat()));
            check.is_done();
            assert!(check.text().contains("an earlier run with --fold is not done"), "{check:?}");
            assert_ne!(SourceState::of(&server), story.end);
            let done = ran(story.recover(&server, &options));
            assert_eq!(done.code, Some(0), "{told}: {done:?}");
        } else {
            let code = wait_for(&mut run, PATIENCE);
            assert_eq!(code, Some(0), "{told}: {}", said(&mut run));
        }
        assert_eq!(SourceState::of(&server), story.end, "{told}");
        is_free(&server, &settings);
    }
}

#[test]
fn a_server_without_its_mark_and_one_with_readers_are_refused() {
    let mysql = require_tool!(Tool::Mysql);
    let story = FoldStory::new(mysql);
    let options = ["--fold", "--transaction-rows", "9"];
    let server = story.restored();
    let settings = settings_of(&server);
    let customer = story.source.sql("SELECT MAX(id) FROM shop.customers").unwrap();
    let held = Held::by(
        &server,
        &format!("INSERT INTO shop.customers (id, name) VALUES ({}, 'held')", customer.trim()),
    );
    let mut run = started(story.recover(&server, &options));
    is_stuck(&server);
    // A row that is there: the server's error, and nothing is claimed.
    held.commit();
    assert_eq!(wait_for(&mut run, PATIENCE), Some(2));
    let said = said(&mut run);
    assert!(said.contains("error 1062") && said.contains("shop.customers"), "{said}");
    let executed = server.gtid_executed().unwrap();
    assert_ne!(executed, story.end.executed);
    server
        .sql("STOP REPLICA FOR CHANNEL 'binlogz_fold'; RESET REPLICA ALL FOR CHANNEL 'binlogz_fold'")
        .unwrap();
    is_free(&server, &settings);
    is_refused(
        &ran(story.recover(&server, &options)),
        "expected one that has everything up to a transaction and nothing later",
    );
    assert_eq!(server.gtid_executed().unwrap(), executed);
    // Without --fold neither, nor a server that was restored from its dump.
    let dumped = mysql
        .command("mysqldump")
        .args(["--no-defaults", "--user=root", "--set-gtid-purged=ON", "--databases", "shop"])
        .arg(format!("--socket={}", server.socket().display()))
        .output()
        .unwrap();
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    let copy = restored(mysql, &story.folder.put("half.sql", dumped.stdout));
    for half in [&server, &copy] {
        for args in [&[][..], &["--check"]] {
            is_refused(
                &ran(story.recover(half, args)),
                "which came before it in the logs, expected one that has",
            );
        }
        assert_eq!(half.gtid_executed().unwrap(), executed);
        let allowed = ran(story.recover(half, &["--over-gaps", "--check"]));
        allowed.is_done();
    }
    is_free(&server, &settings);

    // An account that can't see or set all counters.
    let server = story.restored();
    server
        .sql(
            "SET sql_log_bin = 0; CREATE USER weak; GRANT REPLICATION_SLAVE_ADMIN, SYSTEM_VARIABLES_ADMIN ON *.* TO weak; \
             GRANT SELECT, CREATE, INSERT ON *.* TO weak; GRANT ALL ON shop.* TO weak",
        )
        .unwrap();
    let (before, settings) = (SourceState::of(&server), settings_of(&server));
    for more in [&[][..], &["--check"]] {
        let mut weak = story.folder.binlogz(["recover", "--no-defaults", "--work-dir", ".", "--fold"]);
        weak.args(more).arg("--to").arg(format!("weak@{}", server.socket().display()));
        weak.arg("--from").args(&story.logs);
        is_refused(&ran(weak), "the account has no ALTER on *.*, expected SELECT, INSERT, CREATE, ALTER");
    }
    assert_eq!(SourceState::of(&server), before);
    is_free(&server, &settings);

    // A reader of its binary log, which can't follow.
    let server = story.restored();
    let before = SourceState::of(&server);
    let mut reader = mysql.command("mysqlbinlog");
    reader.args([
        "--no-defaults",
        "--user=root",
        "--read-from-remote-server",
        "--stop-never",
        "--raw",
        "--result-file",
    ]);
    reader.arg(story.folder.path("copy-")).arg(format!("--socket={}", server.socket().display()));
    let log = server.binlogs().unwrap().pop().unwrap();
    reader.arg(log.file_name().unwrap());
    let reader = crate::common::relay::Running(started(reader));
    let readers =
        "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_COMMAND LIKE 'Binlog Dump%'";
    while server.sql(readers).unwrap() == "0\n" {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    is_refused(&ran(story.recover(&server, &options)), "1 replicas or other readers get its binary log");
    assert_eq!(SourceState::of(&server), before);
    drop(reader);
}

/// The first server that can be given GTIDs at the end.
#[test]
#[ignore = "takes MySQL 8.0.33: scripts/soak/recover.sh"]
fn a_folded_range_on_mysql_8_0_comes_to_the_same() {
    let mysql = require_tool!(Tool::Mysql80);
    let story = FoldStory::new(mysql);
    let schema = story.schema();
    for options in [&["--fold", &schema][..], &["--fold", "--transaction-rows", "7"]] {
        let server = story.restored();
        let settings = settings_of(&server);
        let done = ran(story.recover(&server, options));
        println!("{}", done.text());
        assert_eq!(done.code, Some(0), "{done:?}");
        assert_eq!(SourceState::of(&server), story.end, "{options:?}");
        is_free(&server, &settings);
    }
}
