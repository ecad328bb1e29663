//! `archive serve`: an archive's logs, and files, served to replicas without their server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

use crate::common::relay::{client, name, sql};
use crate::common::{Folder, Ran};

const PATIENCE: Duration = Duration::from_secs(120);

/// `archive serve` at work; killed when dropped.
struct Serving {
    child: Child,
    log: PathBuf,
    port: u16,
}

impl Serving {
    fn start(folder: &Folder, args: &[&str]) -> Serving {
        let log = folder.path("serve.log");
        let stderr = fs::File::create(&log).unwrap();
        let mut command = folder.binlogz(["archive", "serve", "--user", "repl", "--listen", "127.0.0.1:0"]);
        command.args(args).env("MYSQL_PWD", "secret").stdout(Stdio::null()).stderr(stderr);
        let mut serving = Serving { child: command.spawn().unwrap(), log, port: 0 };
        let port = serving.wait_for("port", |said| {
            let (_, port) = said.lines().find_map(|line| line.split_once("listening on 127.0.0.1:"))?;
            port.parse().ok()
        });
        serving.port = port;
        serving
    }

    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    #[track_caller]
    fn wait_for<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = found(&self.said()) {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "no {what}: {ended:?}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn attach(&self, replica: &MysqlSandbox, options: &str) {
        replica
            .sql(&format!(
                "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={}, SOURCE_USER='repl', \
                 SOURCE_PASSWORD='secret', SOURCE_CONNECT_RETRY=1, {options}; START REPLICA",
                self.port
            ))
            .unwrap();
    }

    /// A closed log as mysqlbinlog fetches it.
    fn fetched(&self, mysql: &InstalledTool, folder: &Folder, log: &str) -> Vec<u8> {
        let mut command = client(mysql, "mysqlbinlog", self.port, "repl", "secret");
        let into = format!("--result-file={}/fetched-", folder.path("").display());
        command.args(["--read-from-remote-server", "--raw", &into, log]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder.read(&format!("fetched-{log}"))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Five closed logs: some compressed, one with many rows, and an open one.
fn source(mysql: &'static InstalledTool) -> MysqlSandbox {
    let source = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)").unwrap();
    for round in 0..5 {
        let compression = if round % 2 == 0 { "ON" } else { "OFF" };
        source
            .sql(&format!(
                "SET binlog_transaction_compression = {compression};
                 INSERT INTO d.t (body) VALUES (REPEAT('one ', 300)), ('two');
                 INSERT INTO d.t (body) SELECT SHA2(RAND(), 512) FROM d.t a JOIN d.t b LIMIT 500;
                 UPDATE d.t SET body = CONCAT('new ', body) WHERE id % 7 = {round};
                 FLUSH BINARY LOGS"
            ))
            .unwrap();
    }
    source
}

fn closed(source: &MysqlSandbox) -> Vec<PathBuf> {
    let mut logs = source.binlogs().unwrap();
    logs.pop();
    logs
}

fn archive(folder: &Folder, logs: &[PathBuf]) {
    let mut args = vec!["archive".as_ref(), "create".as_ref(), "--to".as_ref(), Path::new("arc")];
    args.extend(logs.iter().map(PathBuf::as_path));
    folder.run(args).is_done();
}

fn has_all(replica: &MysqlSandbox, source: &MysqlSandbox, serving: &Serving) {
    replica.wait_for_source(source).unwrap_or_else(|error| panic!("{error}\n{}", serving.said()));
    assert_eq!(replica.checksum_tables("d").unwrap(), source.checksum_tables("d").unwrap());
}

/// The error of a replica's receiver that has ended.
fn receivers_error(replica: &MysqlSandbox) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let error = replica.replica_status().unwrap().remove("Last_IO_Error").unwrap_or_default();
        if !error.is_empty() || Instant::now() > deadline {
            return error;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_archive_and_files_are_served_by_gtid_and_by_position() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = (Folder::new(), source(mysql));
    let logs = closed(&source);
    archive(&folder, &logs);
    let files: Vec<&str> = logs.iter().map(|log| log.to_str().unwrap()).collect();
    let last = name(logs.last().unwrap());
    // Room for one log at a time: each is larger than a third of this.
    let largest = logs.iter().map(|log| fs::metadata(log).unwrap().len()).max().unwrap().to_string();
    let by_archive = ["--disk-max", &largest, "--work-dir", ".", "arc"];
    let by_files: Vec<&str> = ["--no-listen-tls"].into_iter().chain(files.iter().rev().copied()).collect();
    for (args, options) in [
        (&by_archive[..], "SOURCE_SSL=1, SOURCE_AUTO_POSITION=1"),
        (&by_files[..], "SOURCE_SSL=0, SOURCE_LOG_FILE='binlog.000001', SOURCE_LOG_POS=4"),
    ] {
        let serving = Serving::start(&folder, args);
        assert!(serving.said().contains(&format!("binlog.000001 to {last}, up to ")), "{}", serving.said());
        let replica = mysql.sandbox().start().unwrap();
        serving.attach(&replica, options);
        has_all(&replica, &source, &serving);
        // A closed log that is not the last one comes byte for byte.
        let log = &logs[2];
        assert!(serving.fetched(mysql, &folder, name(log)) == fs::read(log).unwrap(), "{args:?}");
        let denied = sql(client(mysql, "mysql", serving.port, "repl", "wrong"), "SHOW BINARY LOGS");
        assert!(denied.unwrap_err().contains("1045"), "{}", serving.said());
    }
}

#[test]
fn it_ends_where_it_was_told_to_and_leaves_nothing_on_disk() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = (Folder::new(), source(mysql));
    archive(&folder, &closed(&source));
    let uuid = source.server_uuid().unwrap();
    let gtid = format!("{uuid}:7");
    let mut serving = Serving::start(&folder, &["--until-gtid", &gtid, "--work-dir", ".", "arc"]);
    let replica = mysql.sandbox().start().unwrap();
    serving.attach(&replica, "SOURCE_SSL=1, SOURCE_AUTO_POSITION=1, SOURCE_HEARTBEAT_PERIOD=1");
    // Several heartbeats later it still waits there.
    replica.sql(&format!("SELECT WAIT_FOR_EXECUTED_GTID_SET('{uuid}:1-7', 120)")).unwrap();
    replica.sql("SELECT SLEEP(3)").unwrap();
    let status = replica.replica_status().unwrap();
    let told = (&status["Replica_IO_Running"], &status["Last_IO_Error"], &status["Executed_Gtid_Set"]);
    assert_eq!(told, (&"Yes".to_owned(), &String::new(), &format!("{uuid}:1-7")), "{}", serving.said());
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&serving.child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    serving.child.wait().unwrap();
    assert_eq!(folder.names(), ["arc", "serve.log"]);

    let none = format!("{uuid}:999");
    let mut none = folder.binlogz(["archive", "serve", "--user", "u", "--until-gtid", &none, "arc"]);
    let none: Ran = none.env("MYSQL_PWD", "secret").output().unwrap().into();
    let line = format!("binlogz: arc: {uuid}:999 is in none of the logs binlog.000001 to binlog.000005\n");
    none.is(1, "", &line);
}

#[test]
fn a_missing_object_and_a_damaged_block_are_told_to_the_replica() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = (Folder::new(), source(mysql));
    let logs = closed(&source);
    // Two runs, two objects: the last log has its own.
    archive(&folder, &logs[..logs.len() - 1]);
    let object = folder.segment("arc");
    archive(&folder, &logs[logs.len() - 1..]);
    let whole = fs::read(&object).unwrap();
    for damage in ["block", "object"] {
        match damage {
            "block" => {
                let mut bytes = whole.clone();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 0x40;
                fs::write(&object, bytes).unwrap();
            }
            _ => fs::remove_file(&object).unwrap(),
        }
        let mut serving = Serving::start(&folder, &["arc"]);
        let replica = mysql.sandbox().start().unwrap();
        serving.attach(&replica, "SOURCE_SSL=1, SOURCE_AUTO_POSITION=1");
        let error = receivers_error(&replica);
        assert!(error.contains("1236") && error.contains("archive arc/binlog.00000"), "{damage}: {error}");
        serving.wait_for("complaint", |said| said.contains("archive arc/binlog.00000").then_some(()));
    }
}

#[test]
fn logs_that_do_not_follow_one_another_are_refused_or_left_out() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = (Folder::new(), source(mysql));
    let logs = closed(&source);
    let [one, two, three, ..] = &logs[..] else { panic!("too few logs") };
    let served = |args: &[&Path]| -> Ran {
        let mut command = folder.binlogz(["archive", "serve", "--user", "u", "--until-gtid"]);
        // No run gets as far as serving.
        command.arg(format!("{}:99999", source.server_uuid().unwrap())).args(args);
        command.env("MYSQL_PWD", "secret").output().unwrap().into()
    };
    let gap = served(&[one, three]);
    assert_eq!(gap.code, Some(2));
    assert!(
        gap.stderr.contains("binlog.000002 is missing between binlog.000001 and binlog.000003\n"),
        "{gap:?}"
    );
    // The second under the third one's name, and the other way round.
    fs::create_dir(folder.path("swapped")).unwrap();
    let swapped = ["swapped/binlog.000002", "swapped/binlog.000003"].map(|name| folder.path(name));
    fs::copy(three, &swapped[0]).unwrap();
    fs::copy(two, &swapped[1]).unwrap();
    let swapped = served(&[one, &swapped[0], &swapped[1]]);
    assert_eq!(swapped.code, Some(2));
    assert!(swapped.stderr.contains("swapped/binlog.000002 does not continue "), "{swapped:?}");
    folder.put("binlog.000009", "no log");
    let bad = served(&[&folder.path("binlog.000009")]);
    assert!(bad.code == Some(2) && bad.stderr.contains("binlog.000009"), "{bad:?}");
    let nowhere = folder.path("nowhere.000001");
    served(&[&nowhere]).fails(&format!("read {}: No such file or directory (os error 2)", nowhere.display()));
}
