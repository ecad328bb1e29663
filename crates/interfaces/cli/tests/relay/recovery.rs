//! `recover`: a dump and an archive bring a fresh server to a chosen moment, whatever is killed meanwhile.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlogz_testkit::random::Random;
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, mutate, require_tool};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::relay::{Running, name};
use crate::common::{Folder, Ran, wait_for};

pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// Settings that a recovery may change, and has to give back.
const SETTINGS: &str = "SELECT @@GLOBAL.server_id, @@GLOBAL.replica_parallel_workers, \
                        @@GLOBAL.replica_preserve_commit_order, @@GLOBAL.skip_replica_start";

/// How many transactions wait for a row.
const LOCK_WAITS: &str = "SELECT COUNT(*) FROM performance_schema.data_lock_waits";

pub(crate) type Checksums = Vec<(String, String)>;

/// A source with a dump taken in the middle of its workload, and the archive of its closed logs.
pub(crate) struct Story {
    mysql: &'static InstalledTool,
    source: MysqlSandbox,
    uuid: String,
    dump: PathBuf,
    /// Amid what follows the dump.
    pub(crate) middle: (u64, Checksums),
    /// The time between two transactions, in seconds since 1970, and the tables then.
    moment: (u64, Checksums),
    pub(crate) end: Checksums,
    pub(crate) folder: Folder,
}

impl Story {
    pub(crate) fn new(mysql: &'static InstalledTool) -> Story {
        let folder = Folder::new();
        let source = mysql.sandbox().start().unwrap();
        let uuid = source.server_uuid().unwrap();
        source.sql(TABLES).unwrap();
        work(&source, 0);
        source.sql("FLUSH BINARY LOGS").unwrap();
        work(&source, 100);
        let dump = folder.path("dump.sql");
        dump_to(mysql, &source, &dump);
        source.sql("FLUSH BINARY LOGS").unwrap();
        work(&source, 200);
        let middle = (gno(&source), checksums(&source));
        work(&source, 300);
        source.sql("FLUSH BINARY LOGS").unwrap();
        // Times in seconds have to tell before from after.
        let moment = checksums(&source);
        let at = "SELECT SLEEP(1.1); SELECT UNIX_TIMESTAMP() + SLEEP(1.1)";
        let at = source.sql(at).unwrap().lines().last().unwrap().parse::<f64>().unwrap() as u64;
        work(&source, 400);
        source.sql("DELETE FROM shop.orders WHERE id < 30; FLUSH BINARY LOGS").unwrap();
        let end = checksums(&source);
        let story = Story { mysql, source, uuid, dump, middle, moment: (at, moment), end, folder };
        let mut args = vec!["archive".as_ref(), "create".as_ref(), "--to".as_ref(), Path::new("arc")];
        let logs = story.logs();
        args.extend(logs.iter().map(PathBuf::as_path));
        story.folder.run(args).is_done();
        story
    }

    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let mut logs = self.source.binlogs().unwrap();
        logs.pop();
        logs
    }

    /// A fresh server that holds the dump.
    pub(crate) fn restored(&self) -> MysqlSandbox {
        restored(self.mysql, &self.dump)
    }

    pub(crate) fn recover(&self, server: &MysqlSandbox, args: &[&str]) -> Command {
        self.recover_from(server, &[Path::new("arc")], args)
    }

    pub(crate) fn recover_from(&self, server: &MysqlSandbox, from: &[&Path], args: &[&str]) -> Command {
        let mut command = self.folder.binlogz(["recover", "--no-defaults", "--work-dir", "."]);
        command.args(args).arg("--to").arg(format!("root@{}", server.socket().display()));
        command.arg("--from").args(from);
        command
    }

    pub(crate) fn gtid(&self, gno: u64) -> String {
        format!("{}:{gno}", self.uuid)
    }
}

/// The tables that [`work`] fills.
pub(crate) const TABLES: &str = "CREATE DATABASE shop; CREATE DATABASE other;
     CREATE TABLE shop.orders (id INT PRIMARY KEY, customer INT, note VARCHAR(200), KEY (customer));
     CREATE TABLE other.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)";

pub(crate) fn dump_to(mysql: &InstalledTool, source: &MysqlSandbox, file: &Path) {
    let dumped = mysql
        .command("mysqldump")
        .args(["--no-defaults", "--user=root", "--single-transaction", "--set-gtid-purged=ON", "--databases"])
        .args(["shop", "other"])
        .arg(format!("--socket={}", source.socket().display()))
        .output()
        .unwrap();
    assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
    fs::write(file, dumped.stdout).unwrap();
}

/// A fresh server that holds a dump.
pub(crate) fn restored(mysql: &'static InstalledTool, dump: &Path) -> MysqlSandbox {
    let server = mysql.sandbox().start().unwrap();
    // A fresh server's own transactions are no part of the backup.
    let reset = ["RESET BINARY LOGS AND GTIDS", "RESET MASTER"];
    assert!(reset.iter().any(|statement| server.sql(statement).is_ok()));
    server.sql_file(dump).unwrap();
    server
}

/// A hundred transactions, some of which depend on one another.
pub(crate) fn work(server: &MysqlSandbox, from: u32) {
    let mut statements = String::new();
    for id in from..from + 100 {
        statements += &format!(
            "INSERT INTO shop.orders VALUES ({id}, {}, 'new'); BEGIN; UPDATE shop.orders SET note = CONCAT('paid {id}') \
             WHERE id = {}; INSERT INTO other.t (body) VALUES (REPEAT('{id}', 20)); COMMIT;\n",
            id % 10,
            id / 2,
        );
    }
    server.sql(&statements).unwrap();
}

pub(crate) fn gno(server: &MysqlSandbox) -> u64 {
    server.gtid_executed().unwrap().rsplit('-').next().unwrap().parse().unwrap()
}

pub(crate) fn checksums(server: &MysqlSandbox) -> Checksums {
    let mut all = server.checksum_tables("shop").unwrap();
    all.extend(server.checksum_tables("other").unwrap());
    all
}

pub(crate) fn settings_of(server: &MysqlSandbox) -> String {
    server.sql(SETTINGS).unwrap()
}

#[track_caller]
pub(crate) fn ran(mut command: Command) -> Ran {
    command.output().unwrap().into()
}

/// It is detached, and its settings are those it had.
#[track_caller]
pub(crate) fn is_free(server: &MysqlSandbox, settings: &str) {
    let channels = "SELECT COUNT(*) FROM performance_schema.replication_connection_configuration";
    assert_eq!(server.sql(channels).unwrap(), "0\n");
    assert_eq!(server.sql(SETTINGS).unwrap(), settings);
    let persisted = server.sql("SELECT COUNT(*) FROM performance_schema.persisted_variables").unwrap();
    assert_eq!(persisted, "0\n");
}

#[test]
fn a_dump_and_an_archive_come_to_a_gtid_to_a_moment_and_to_the_end() {
    let mysql = require_tool!(Tool::Mysql);
    let story = Story::new(mysql);
    let server = story.restored();
    let settings = server.sql(SETTINGS).unwrap();
    let (middle, at_middle) = &story.middle;

    let before = (server.gtid_executed().unwrap(), checksums(&server));
    let check = ran(story.recover(&server, &["--check", "--until-gtid", &story.gtid(*middle)]));
    check.is_done();
    assert!(check.text().contains(&format!("up to {}, committed ", story.gtid(*middle))), "{check:?}");
    assert_eq!((server.gtid_executed().unwrap(), checksums(&server)), before);
    is_free(&server, &settings);

    let workers = ["--workers", "2", "--preserve-commit-order", "off"];
    let until = story.gtid(*middle);
    let done = ran(story.recover(&server, &[&workers[..], &["--until-gtid", &until]].concat()));
    done.is_done();
    assert_eq!((gno(&server), &checksums(&server)), (*middle, at_middle), "{done:?}");
    is_free(&server, &settings);

    // The same server goes on, to a moment by time, from files; and then to the end.
    let logs = story.logs();
    let from: Vec<&Path> = logs.iter().map(PathBuf::as_path).collect();
    let time = format!("@{}", story.moment.0);
    ran(story.recover_from(&server, &from, &["--until-datetime", &time])).is_done();
    assert_eq!(checksums(&server), story.moment.1);
    ran(story.recover(&server, &[])).is_done();
    assert_eq!(checksums(&server), story.end);
    is_free(&server, &settings);
    let again = ran(story.recover(&server, &[]));
    again.is_done();
    assert!(again.text().ends_with("has everything already\n"), "{again:?}");

    // Before the transaction that deletes, as one finds it in the log; the last one.
    let other = story.restored();
    let delete = story.gtid(gno(&story.source));
    ran(story.recover(&other, &["--stop-before-gtid", &delete])).is_done();
    assert_eq!(other.sql("SELECT COUNT(*) FROM shop.orders").unwrap(), "500\n");
    // One that is past it can't go back.
    let past = ran(story.recover(&server, &["--stop-before-gtid", &delete]));
    assert_eq!(past.code, Some(2));
    assert!(
        past.stderr
            .contains(&format!("is past that moment: it has 1 of the transactions after it, {delete}")),
        "{past:?}"
    );
}

#[test]
fn filters_leave_out_and_rewrite() {
    let mysql = require_tool!(Tool::Mysql);
    let story = Story::new(mysql);
    let server = story.restored();
    let settings = server.sql(SETTINGS).unwrap();
    let others = server.checksum_tables("other").unwrap();
    server
        .sql(
            "SET sql_log_bin = 0; CREATE DATABASE copy; CREATE TABLE copy.orders LIKE shop.orders; \
                INSERT INTO copy.orders SELECT * FROM shop.orders",
        )
        .unwrap();
    let shop = server.checksum_tables("shop").unwrap();
    ran(story.recover(&server, &["--replicate-do-db", "copy", "--rewrite-db", "shop->copy"])).is_done();
    let wanted = story.source.checksum_tables("shop").unwrap();
    let copied = server.checksum_tables("copy").unwrap();
    assert_eq!(copied[0].1, wanted[0].1);
    assert_eq!(
        (server.checksum_tables("shop").unwrap(), server.checksum_tables("other").unwrap()),
        (shop, others)
    );
    is_free(&server, &settings);
}

/// A server may take backslashes for ordinary characters and double quotes for those of names.
#[test]
fn texts_and_names_are_the_same_whatever_the_servers_sql_mode() {
    let mysql = require_tool!(Tool::Mysql);
    let mode = "NO_BACKSLASH_ESCAPES,ANSI_QUOTES";
    let source = mysql.sandbox().option("sql-mode", mode).start().unwrap();
    source
        .sql(
            "CREATE DATABASE shop; CREATE DATABASE other; CREATE TABLE shop.a_b (id INT PRIMARY KEY, `o''\\` TEXT); \
             CREATE TABLE shop.acb LIKE shop.a_b; CREATE TABLE shop.`q\"\\'` LIKE shop.a_b",
        )
        .unwrap();
    let folder = Folder::new();
    let dump = folder.path("dump.sql");
    dump_to(mysql, &source, &dump);
    let rows = "INSERT INTO shop.a_b VALUES (1, 'x'); INSERT INTO shop.acb VALUES (1, 'x')";
    source.sql(&format!("FLUSH BINARY LOGS; {rows}")).unwrap();
    let log = source.flush_binary_logs().unwrap();

    let server = mysql.sandbox().option("sql-mode", mode).start().unwrap();
    server.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    server.sql_file(&dump).unwrap();
    let mut command = folder.binlogz(["recover", "--no-defaults", "--work-dir", "."]);
    command.arg("--to").arg(format!("root@{}", server.socket().display())).arg("--from").arg(&log);
    // An escaped underscore, which no other character is like.
    command.args(["--replicate-wild-do-table", r"shop.a\_b"]);
    ran(command).is_done();
    let counts = "SELECT (SELECT COUNT(*) FROM shop.a_b), (SELECT COUNT(*) FROM shop.acb)";
    assert_eq!(server.sql(counts).unwrap(), "1\t0\n");

    // Definitions are compared as both servers show them in one mode.
    let place = format!("root@{}", source.socket().display());
    let mut command = folder.binlogz(["recover", "--no-defaults", "--work-dir", ".", "--verify", "--dump"]);
    command.arg(&dump).args(["--source", &place, "--from"]).arg(&log);
    let told = ran(command);
    assert_eq!(told.code, Some(0), "{}\n{told:?}", told.text());
}

/// Stops the applier in the middle of its work by a lock on a row that it needs, until this is dropped or committed.
pub(crate) struct Held {
    client: Running,
}

impl Held {
    /// The row is not there yet: nobody else may insert it.
    fn new(server: &MysqlSandbox, id: u64) -> Held {
        Held::by(server, &format!("INSERT INTO shop.orders VALUES ({id}, 0, 'held')"))
    }

    pub(crate) fn by(server: &MysqlSandbox, statement: &str) -> Held {
        let mut client = server.client();
        let sql = format!("SET sql_log_bin = 0; BEGIN; {statement}; SELECT 'held';\n");
        client.arg("--unbuffered").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = client.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(sql.as_bytes()).unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        assert_eq!(line, "held\n");
        Held { client: Running(child) }
    }

    /// The row stays.
    pub(crate) fn commit(mut self) {
        let client = &mut self.client.0;
        // It ends where its input does.
        client.stdin.take().unwrap().write_all(b"COMMIT;\n").unwrap();
        assert!(client.wait().unwrap().success());
    }
}

pub(crate) fn started(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The standard error of a run that has ended.
pub(crate) fn said(run: &mut Child) -> String {
    let mut said = String::new();
    std::io::Read::read_to_string(run.stderr.as_mut().unwrap(), &mut said).unwrap();
    said
}

#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until the applier waits for the held row.
pub(crate) fn is_stuck(server: &MysqlSandbox) {
    wait_until("the applier waits", || server.sql(LOCK_WAITS).is_ok_and(|count| count.trim() != "0"));
}

#[test]
fn what_is_killed_goes_on_and_comes_to_the_same() {
    let mysql = require_tool!(Tool::Mysql);
    let story = Story::new(mysql);
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    for (kill_run, kill_server) in [(true, false), (false, true), (true, true)] {
        let told = format!("SEED={seed}, the run: {kill_run}, the server: {kill_server}");
        let mut server = story.restored();
        let settings = server.sql(SETTINGS).unwrap();
        let held = Held::new(&server, 200 + random.below(299) as u64);
        let mut run = started(story.recover(&server, &["--workers", "4"]));
        is_stuck(&server);
        if kill_run {
            run.kill().unwrap();
            run.wait().unwrap();
        }
        if kill_server {
            server.kill();
            // Its channel starts by itself.
            server.start().unwrap();
        }
        drop(held);
        match kill_run {
            true => ran(story.recover(&server, &[])).is_done(),
            // It finds the server again, and goes on by itself.
            false => {
                let code = wait_for(&mut run, PATIENCE);
                assert_eq!(code, Some(0), "{told}: {}", said(&mut run));
            }
        }
        assert_eq!(checksums(&server), story.end, "{told}");
        is_free(&server, &settings);
    }
}

#[test]
fn an_interrupted_run_detaches_the_server() {
    let mysql = require_tool!(Tool::Mysql);
    let story = Story::new(mysql);
    let server = story.restored();
    let settings = server.sql(SETTINGS).unwrap();
    let held = Held::new(&server, 300);
    let mut run = started(story.recover(&server, &["--workers", "1", "--replicate-wild-do-table", "shop.%"]));
    is_stuck(&server);
    let second = ran(story.recover(&server, &[]));
    assert!(second.stderr.ends_with("another binlogz recover is at work on this server\n"), "{second:?}");
    kill_process(Pid::from_child(&run), Signal::INT).unwrap();
    // It waits for the transaction that is being applied.
    std::thread::sleep(Duration::from_millis(200));
    drop(held);
    wait_for(&mut run, PATIENCE);
    let said = said(&mut run);
    assert!(said.ends_with("interrupted, and detached; the same command goes on from there\n"), "{said}");
    is_free(&server, &settings);
    assert_eq!(story.folder.names(), ["arc", "dump.sql"]);
    assert_ne!(checksums(&server), story.end);
}

#[test]
fn what_does_not_fit_is_told_before_anything_is_changed() {
    let mysql = require_tool!(Tool::Mysql);
    let story = Story::new(mysql);
    let logs = story.logs();
    let server = story.restored();
    let settings = server.sql(SETTINGS).unwrap();
    let fails = |command: Command, code: i32, told: &str| {
        let ran = ran(command);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.contains(told), "{told}: {ran:?}");
    };
    // Logs that begin after what the server has.
    let late: Vec<&Path> = logs[logs.len() - 1..].iter().map(PathBuf::as_path).collect();
    let told = format!("came before {}, the first log here: {}:", name(late[0]), story.uuid);
    fails(story.recover_from(&server, &late, &[]), 2, &told);
    // A log is missing in between, which the server would need.
    let missing = [logs[0].as_path(), late[0]];
    fails(story.recover_from(&server, &missing, &[]), 2, "is missing between binlog.000001 and");
    // Logs of two servers with the same tables.
    let shard = mysql.sandbox().start().unwrap();
    shard.sql("CREATE DATABASE shop; CREATE TABLE shop.orders (id INT PRIMARY KEY); INSERT INTO shop.orders VALUES (1)").unwrap();
    shard.flush_binary_logs().unwrap();
    shard.sql("INSERT INTO shop.orders VALUES (2)").unwrap();
    let of_shard = shard.flush_binary_logs().unwrap();
    let two = [logs[0].as_path(), of_shard.as_path()];
    fails(story.recover_from(&server, &two, &[]), 2, "they are logs of two servers");
    fails(story.recover(&server, &["--until-gtid", &story.gtid(99_999)]), 1, "is in none of the logs");
    fails(story.recover(&server, &["--until-datetime", "@4000000000"]), 1, "end before that time");
    fails(
        story.recover(&server, &["--until-datetime", "some day"]),
        2,
        "invalid value 'some day' for '--until-datetime",
    );
    // An account without rights.
    server.sql("SET sql_log_bin = 0; CREATE USER weak IDENTIFIED BY 'weak'; GRANT SELECT ON performance_schema.* TO weak").unwrap();
    let weak = |password: &str| {
        let mut command =
            story.folder.binlogz(["recover", "--no-defaults", "--work-dir", ".", "--from", "arc", "--to"]);
        command.arg(format!("weak@127.0.0.1:{}", server.port())).env("MYSQL_PWD", password);
        command
    };
    fails(weak("weak"), 2, "SYSTEM_VARIABLES_ADMIN");
    server.sql("SET sql_log_bin = 0; GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO weak").unwrap();
    fails(
        weak("weak"),
        2,
        "attach it: Access denied; you need (at least one of) the SUPER or REPLICATION_SLAVE_ADMIN",
    );
    fails(weak("wrong"), 2, "1045");
    is_free(&server, &settings);
    assert_eq!(story.folder.names(), ["arc", "dump.sql"]);

    // A row that is there already: the transaction, the table and the key are named, and the server is free again. The other
    // worker, amid the next transaction, ends with an error that only says that one before it did. Which of the two is listed
    // first is the server's choice.
    for id in [250, 270] {
        let held = Held::new(&server, id);
        let next =
            Held::by(&server, &format!("DO (SELECT id FROM shop.orders WHERE id = {} FOR UPDATE)", id / 2));
        let mut run = started(story.recover(&server, &["--workers", "2"]));
        wait_until("two workers wait", || server.sql(LOCK_WAITS).unwrap().trim() == "2");
        held.commit();
        wait_until("the first has ended", || server.sql(LOCK_WAITS).unwrap().trim() == "1");
        drop(next);
        assert_eq!(wait_for(&mut run, PATIENCE), Some(2));
        let said = said(&mut run);
        for told in [&story.uuid, "shop.orders", &format!("Duplicate entry '{id}'"), "error 1062"] {
            assert!(said.contains(told), "{told}: {said}");
        }
        is_free(&server, &settings);
        server.sql(&format!("SET sql_log_bin = 0; DELETE FROM shop.orders WHERE id = {id}")).unwrap();
    }
    ran(story.recover(&server, &[])).is_done();
    assert_eq!(checksums(&server), story.end);

    let off =
        mysql.sandbox().option("gtid-mode", "OFF").option("enforce-gtid-consistency", "OFF").start().unwrap();
    fails(story.recover(&off, &[]), 2, "gtid_mode is OFF, expected ON");
}

#[test]
fn a_drill_compares_every_table_with_the_live_source() {
    let mysql = require_tool!(Tool::Mysql);
    let story = Story::new(mysql);
    let drill_as = |user: &str, format: &str| {
        let source = format!("{user}@{}", story.source.socket().display());
        let args = [
            "recover",
            "--no-defaults",
            "--work-dir",
            ".",
            "--verify",
            "--from",
            "arc",
            "--dump",
            "dump.sql",
        ];
        let mut command = story.folder.binlogz(args);
        command.args(["--source", &source, "--format", format]);
        ran(command)
    };
    let drill = |format: &str| drill_as("root", format);
    // The source is written to all the while, and the archive lacks that.
    let is_over = AtomicBool::new(false);
    let (told, written) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !is_over.load(Ordering::Relaxed) {
                story.source.sql("INSERT INTO other.t (body) VALUES ('live'), (RAND())").unwrap();
                written += 1;
            }
            written
        });
        let told = drill("json");
        is_over.store(true, Ordering::Relaxed);
        (told, writer.join().unwrap())
    });
    assert_eq!(told.code, Some(0), "{}\n{told:?}", told.text());
    let found: serde_json::Value = serde_json::from_str(told.text()).unwrap();
    assert_eq!(found["equal"], true);
    let names: Vec<_> =
        found["tables"].as_array().unwrap().iter().map(|table| table["table"].as_str().unwrap()).collect();
    assert_eq!(names, ["other.t", "shop.orders"]);
    let live = found["from_source"].as_u64().unwrap();
    assert!((1..=written).contains(&live), "{live} of {written}\n{}", told.text());

    story.source.sql("SET sql_log_bin = 0; UPDATE shop.orders SET note = 'unlogged' WHERE id = 99").unwrap();
    let told = drill("text");
    assert_eq!(told.code, Some(1), "{told:?}");
    let lines: Vec<_> = told.text().lines().collect();
    assert!(lines.iter().any(|line| line.starts_with("shop.orders: differs: source ")), "{lines:?}");
    assert_eq!(lines.last(), Some(&"1 of 2 tables are equal"));

    // An account to which the source shows nothing of events, nor says so.
    story
        .source
        .sql(
            "SET sql_log_bin = 0; CREATE USER look; GRANT RELOAD, REPLICATION SLAVE, REPLICATION CLIENT, SHOW VIEW, TRIGGER, \
             SELECT, SHOW_ROUTINE ON *.* TO look",
        )
        .unwrap();
    let told = drill_as("look", "text");
    assert_eq!(told.code, Some(1), "{told:?}");
    let unseen = "events: those of the source can't be read: the account sees all of them only with EVENT on all databases";
    let lines: Vec<_> = told.text().lines().filter(|line| line.contains("can't be read")).collect();
    assert_eq!(lines, [unseen], "{}", told.text());
    story.source.sql("SET sql_log_bin = 0; DROP USER look").unwrap();

    // What the logs and the dump lack besides rows: made at the source alone, or changed there.
    let changes = [
        ("CREATE DATABASE vacant", "database vacant: isn't in the restored server"),
        ("CREATE VIEW shop.v AS SELECT id FROM shop.orders", "view shop.v: isn't in the restored server"),
        ("CREATE PROCEDURE shop.p() SELECT 1", "procedure shop.p: isn't in the restored server"),
        (
            "CREATE FUNCTION shop.f() RETURNS INT DETERMINISTIC RETURN 1",
            "function shop.f: isn't in the restored server",
        ),
        (
            "CREATE TRIGGER shop.t BEFORE INSERT ON shop.orders FOR EACH ROW SET @x = 1",
            "trigger shop.t: isn't in the restored server",
        ),
        ("CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DO 1", "event shop.e: isn't in the restored server"),
        ("ALTER TABLE other.t ADD KEY body (body(3))", "table other.t: differs: source "),
        ("ALTER DATABASE other COLLATE utf8mb4_bin", "database other: differs: source utf8mb4, utf8mb4_bin"),
        ("CREATE USER app@'%' IDENTIFIED BY 'x'", "account 'app'@'%': isn't in the restored server"),
        ("GRANT SELECT ON shop.* TO repl@'127.0.0.1'", "account 'repl'@'127.0.0.1': differs: "),
    ];
    for (statement, _) in changes {
        story.source.sql(&format!("SET sql_log_bin = 0; {statement}")).unwrap();
    }
    let told = drill("text");
    assert_eq!(told.code, Some(1), "{told:?}");
    for (statement, line) in changes {
        assert!(told.text().lines().any(|told| told.starts_with(line)), "{statement}: {}", told.text());
    }
    let found: serde_json::Value = serde_json::from_str(drill("json").text()).unwrap();
    let objects = found["definitions"].as_array().unwrap();
    assert_eq!((found["equal"].as_bool(), objects.len()), (Some(false), 10), "{objects:#?}");
}
