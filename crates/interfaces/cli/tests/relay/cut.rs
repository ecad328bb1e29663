//! A stored file that expands beyond 1 GiB (here 16 KiB) is several files in the uncompressed form, whose names and bytes
//! stay as they are.

use std::fs;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, url};
use binlogz_testkit::{InstalledTool, MariadbSandbox, MysqlSandbox, Tool, require_tool};

const PLAIN: [&str; 1] = ["--ssl-mode=DISABLED"];

/// `count` transactions of about a kilobyte, which compress well.
fn inserts(count: usize, tag: &str) -> String {
    let insert = |number: usize| {
        let table = number % 4;
        format!("{tag}INSERT INTO d.t{table} (body) VALUES (REPEAT('part {number} ', 100));\n")
    };
    (0..count).map(insert).collect()
}

fn lines(relay: &Relay, mysql: &InstalledTool, statement: &str) -> Vec<Vec<String>> {
    let answer = relay.sql(mysql, "boss", &PLAIN, statement).unwrap();
    answer.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// Names and sizes.
fn logs(relay: &Relay, mysql: &InstalledTool) -> Vec<(String, String)> {
    let rows = lines(relay, mysql, "SHOW BINARY LOGS");
    rows.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect()
}

/// The files that `mysqlbinlog --raw` writes.
fn fetch(relay: &Relay, mysql: &InstalledTool, folder: &Folder, names: &[String]) -> Vec<Vec<u8>> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let options = ["--ssl-mode=DISABLED", "--get-server-public-key"];
    let fetched = relay.fetch(mysql, "boss", &folder.path("fetched"), &options, &names).unwrap();
    fetched.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// A file stands on its own: checksums, positions, clock, and the next one's name.
fn check_file(relay: &Relay, mysql: &InstalledTool, folder: &Folder, name: &str, next: &str) {
    let mut print = mysql.command("mysqlbinlog");
    print.args(["--no-defaults", "--verify-binlog-checksum", "--base64-output=decode-rows"]);
    let output = print.arg(folder.path("fetched").join(name)).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let verified = folder.run(["verify", &format!("fetched/{name}")]);
    assert_eq!(verified.code, Some(0), "{name}: {}{}", verified.text(), verified.stderr);
    let clocks: Vec<_> = text.lines().filter(|line| line.contains("last_committed=")).collect();
    assert!(clocks[0].contains("last_committed=0\tsequence_number=1\t"), "{name}: {}", clocks[0]);
    for (number, clock) in (1..).zip(&clocks) {
        assert!(clock.contains(&format!("sequence_number={number}\t")), "{name}: {clock}");
    }
    let events = lines(relay, mysql, &format!("SHOW BINLOG EVENTS IN '{name}'"));
    assert_eq!((events[0][1].as_str(), events[0][2].as_str()), ("4", "Format_desc"), "{name}");
    assert_eq!(events[1][2], "Previous_gtids", "{name}");
    for pair in events.windows(2) {
        assert_eq!(pair[0][4], pair[1][1], "{name}: {pair:?}");
    }
    let last = events.last().unwrap();
    assert_eq!((last[2].as_str(), last[5].as_str()), ("Rotate", format!("{next};pos=4").as_str()), "{name}");
    let size = fs::metadata(folder.path("fetched").join(name)).unwrap().len();
    assert_eq!(last[4], size.to_string(), "{name}");
}

fn follow(relay: &Relay, replica: &MysqlSandbox, start: &str) {
    relay.replicates_to(replica, "boss", &format!("SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1{start}"));
}

#[test]
fn uncompressed_files_are_cut_and_stay_as_they_were() {
    let mysql = require_tool!(Tool::Mysql);
    require_tool!(Tool::Mariadb);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).readable_by_mariadb().start().unwrap();
    let tables: String = (0..4)
        .map(|n| format!("CREATE TABLE d.t{n} (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT);\n"))
        .collect();
    let both = [inserts(60, ""), "FLUSH BINARY LOGS;\n".into(), inserts(60, "")].concat();
    source.sql(&format!("CREATE DATABASE d;\n{tables}{both}")).unwrap();
    let configuration = |size: &str| {
        Configuration::of([url(&source)])
            .store(format!("uncompressed_file_size = \"{size}\""))
            .listen("form = \"uncompressed\"")
            .account("boss", "admin = true")
    };
    let mut relay = configuration("16K").start(&folder);
    relay.has_all_of(&source);

    let listed = logs(&relay, mysql);
    assert!(listed.len() >= 6, "{listed:?}");
    for (number, (name, _)) in (1..).zip(&listed) {
        assert_eq!(*name, format!("binlog-u.{number:06}"));
    }
    let names: Vec<_> = listed.iter().map(|(name, _)| name.clone()).collect();
    let closed = &names[..names.len() - 1];
    let fetched = fetch(&relay, mysql, &folder, closed);
    for (at, name) in closed.iter().enumerate() {
        check_file(&relay, mysql, &folder, name, &names[at + 1]);
        assert_eq!(listed[at].1, fetched[at].len().to_string(), "{name}");
    }
    let status = &lines(&relay, mysql, "SHOW BINARY LOG STATUS")[0];
    assert_eq!((&status[0], &status[1]), (&listed.last().unwrap().0, &listed.last().unwrap().1));

    // Replicas of both kinds, by position and by GTID, from the beginning and in the midst.
    let workers = || mysql.sandbox().option("replica-parallel-workers", "4").start().unwrap();
    let (by_position, by_gtid) = (workers(), workers());
    follow(&relay, &by_position, ", SOURCE_LOG_FILE='binlog-u.000001', SOURCE_LOG_POS=4");
    follow(&relay, &by_gtid, ", SOURCE_AUTO_POSITION=1");
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW")]).unwrap();
    mariadb
        .sql(&format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={}, MASTER_USER='boss', MASTER_PASSWORD='secret', \
             MASTER_SSL=0, MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=no, MASTER_LOG_FILE='binlog-u.000001', \
             MASTER_LOG_POS=4; START SLAVE",
            relay.port
        ))
        .unwrap();
    mariadb.wait_for_position(&status[0], status[1].parse().unwrap()).unwrap();
    assert_eq!(mariadb.checksum_tables("d").unwrap(), source.checksum_tables("d").unwrap());
    mariadb.sql("STOP SLAVE").unwrap();
    let equal = |relay: &Relay| {
        for replica in [&by_position, &by_gtid] {
            relay.brings(&source, replica, &["d"]);
        }
    };
    equal(&relay);
    let at = by_position.sql("SHOW REPLICA STATUS").unwrap();
    assert!(at.contains(&status[0]), "{at}");

    // They come again, to a relay that lost what it can lose, and go on; tags change the size of an event.
    by_position.sql("STOP REPLICA").unwrap();
    by_gtid.sql("STOP REPLICA").unwrap();
    drop(relay);
    for entry in fs::read_dir(folder.path("kept")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name == "relay.cuts" || name.ends_with(".places") {
            fs::remove_file(path).unwrap();
        }
    }
    source.sql(&(inserts(60, "SET gtid_next = 'AUTOMATIC:tag';") + "FLUSH BINARY LOGS")).unwrap();
    // Another size in the configuration changes nothing of a log that has begun.
    relay = configuration("1G").start(&folder);
    relay.has_all_of(&source);
    for (replica, begins) in [(&by_position, ""), (&by_gtid, ", SOURCE_AUTO_POSITION=1")] {
        let place = replica.sql("SHOW REPLICA STATUS").unwrap();
        let place: Vec<_> = place.split('\t').collect();
        let begins = match begins {
            "" => format!(", SOURCE_LOG_FILE='{}', SOURCE_LOG_POS={}", place[9], place[21]),
            by_gtid => by_gtid.to_owned(),
        };
        follow(&relay, replica, &begins);
    }
    equal(&relay);
    assert!(
        fetch(&relay, mysql, &folder, closed) == fetched,
        "other bytes after a restart without the index"
    );
    let now: Vec<_> = logs(&relay, mysql).into_iter().map(|(name, _)| name).collect();
    assert!(now.len() > names.len() + 2, "{now:?}");
    fetch(&relay, mysql, &folder, &now[closed.len()..now.len() - 1]);
    for pair in now[closed.len()..].windows(2) {
        check_file(&relay, mysql, &folder, &pair[0], &pair[1]);
    }

    // Purging leaves whole stored files, and the others their names.
    let of_second = lines(&relay, mysql, "SHOW BINLOG EVENTS IN 'binlog.000002' LIMIT 2");
    let previous = &of_second[1][5];
    let second = closed.iter().position(|name| {
        &lines(&relay, mysql, &format!("SHOW BINLOG EVENTS IN '{name}' LIMIT 2"))[1][5] == previous
    });
    let second = second.unwrap();
    assert!(second >= 2, "the first stored file is cut");
    by_position.sql("STOP REPLICA").unwrap();
    by_gtid.sql("STOP REPLICA").unwrap();
    let purge = format!("SET @binlogz_force = 1; PURGE BINARY LOGS TO '{}'", names[second + 1]);
    relay.sql(mysql, "boss", &PLAIN, &purge).unwrap();
    for lost in [false, true] {
        if lost {
            drop(relay);
            fs::remove_file(folder.path("kept/relay.cuts")).unwrap();
            relay = configuration("16K").start(&folder);
        }
        let now = logs(&relay, mysql);
        assert_eq!(now[..closed.len() - second], listed[second..closed.len()], "{now:?}");
        let left = &closed[second..];
        assert!(fetch(&relay, mysql, &folder, left) == fetched[second..], "other bytes after a purge");
    }
    let gone = relay.sql(mysql, "boss", &PLAIN, &format!("SHOW BINLOG EVENTS IN '{}'", names[second - 1]));
    assert!(gone.unwrap_err().contains("Could not find target log"));
}
