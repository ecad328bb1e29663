//! The relay's `[archive]`: closed files go there, none is purged before it is there, and replicas are served from there.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, Running, name, url};
use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::{EventType, Framing};
use binlogz_testkit::random::Random;
use binlogz_testkit::{MysqlSandbox, Tool, mutate, require_tool, setting};

/// Keeps what is being received alone; all else is archived, and purged then.
fn configuration(source: &MysqlSandbox) -> Configuration {
    Configuration::of([url(source)])
        .store("max_bytes = \"1\"")
        .archive()
        .account("boss", "admin = true\nform = \"received\"")
}

#[test]
fn files_are_purged_once_they_are_archived_and_come_back_for_replicas() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT); FLUSH BINARY LOGS;
             INSERT INTO d.t (body) VALUES (REPEAT('one ', 300)); FLUSH BINARY LOGS; DELETE FROM d.t",
        )
        .unwrap();
    // No folder can be made where a file is.
    folder.put("arc", "in the way");
    let mut relay = configuration(&source).start(&folder);
    relay.has_all_of(&source);
    let files = |relay: &Relay| {
        relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], "SHOW BINARY LOGS").unwrap_or_default()
    };
    relay.wait_for("complaint", |relay| {
        relay.said().contains("files that are not archived are not purged").then_some(())
    });
    let purge = "SET @binlogz_force = 1; PURGE BINARY LOGS TO 'binlog.000003'";
    relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], purge).unwrap();
    assert!(files(&relay).starts_with("binlog.000001"), "{}", files(&relay));

    fs::remove_file(folder.path("arc")).unwrap();
    relay.wait_for("purge", |relay| files(relay).starts_with("binlog.000003").then_some(()));
    folder.run(["archive", "check", "arc"]).is_done();
    folder.run(["archive", "restore", "--to", "back", "arc"]).is_done();
    for name in ["binlog.000001", "binlog.000002"] {
        let of_source = fs::read(source.datadir().join(name)).unwrap();
        assert!(folder.read(&format!("back/{name}")) == of_source, "{name}");
    }
    assert!(!folder.path("back/binlog.000003").exists());

    // A replica whose transactions begin in the archive is served from there, then from disk, then live.
    let replica = mysql.sandbox().start().unwrap();
    let by_gtid = "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1";
    relay.replicates_to(&replica, "boss", by_gtid);
    relay.brings(&source, &replica, &["d"]);
    source.sql("INSERT INTO d.t (body) VALUES ('live')").unwrap();
    relay.brings(&source, &replica, &["d"]);
    let messages = relay.messages();
    for name in ["binlog.000002", "binlog.000001"] {
        assert!(
            messages.iter().any(|line| line.starts_with(&format!("brought {name} back"))),
            "{messages:?}"
        );
    }
}

/// An event of a log: where it begins, and its type.
fn places(log: &Path) -> Vec<(u64, EventType)> {
    let bytes = fs::read(log).unwrap();
    let first = Framing::new().next_frame(&bytes[4..]).unwrap().unwrap().verify().unwrap();
    let framing = Framing::of(&FormatDescription::decode_frame(&first).unwrap());
    let mut places = Vec::new();
    let mut offset = 4;
    while let Some(read) = framing.next_frame(&bytes[offset..]).unwrap() {
        let frame = read.verify().unwrap();
        places.push((offset as u64, frame.event_type()));
        offset += frame.bytes().len();
    }
    places
}

/// Purged files of which an archive lacks values since: served by GTID, and by those positions that are still theirs.
#[test]
fn files_that_come_from_an_erased_archive_have_their_own_positions_or_are_refused() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    let row = |id: u32| format!("INSERT INTO d.t VALUES ({id}, REPEAT('person {id} ', 9));");
    let rows: String = (40..=44).map(row).collect();
    source.sql(&format!("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT); FLUSH BINARY LOGS; {rows} FLUSH BINARY LOGS; INSERT INTO d.t VALUES (99, '')")).unwrap();
    let mut relay = configuration(&source).start(&folder);
    relay.has_all_of(&source);
    relay.wait_for("purge", |relay| {
        let listed =
            relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], "SHOW BINARY LOGS").unwrap_or_default();
        listed.starts_with("binlog.000003").then_some(())
    });
    let fetched = |relay: &Relay, from: u64, name: &str| {
        let into = folder.path("fetched");
        let _ = fs::remove_dir_all(&into);
        let start = format!("--start-position={from}");
        let done = relay.fetch(mysql, "boss", &into, &[&start], &[name]);
        done.map(|paths| fs::read(&paths[0]).unwrap())
    };
    let has = |log: &[u8], text: &str| log.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    // Where the transactions begin, as the server and the relay have it.
    let own = source.datadir().join("binlog.000002");
    let begins: Vec<u64> =
        places(&own).into_iter().filter(|(_, event)| event.is_gtid()).map(|(offset, _)| offset).collect();
    assert_eq!(begins.len(), 5);
    assert!(has(&fetched(&relay, begins[4], "binlog.000002").unwrap(), "person 44"));
    let erase = [
        "archive",
        "erase",
        "arc",
        "--table",
        "d.t",
        "--where",
        "@1 = 42",
        "--blank",
        "@2",
        "--execute",
        "--grace",
        "0",
    ];
    let ran = folder.run(erase);
    assert_eq!(ran.code, Some(0), "{}{}", ran.text(), ran.stderr);
    // Nobody reads the file as it was.
    let whole = fetched(&relay, 4, "binlog.000002").unwrap();
    assert!(has(&whole, "person 41") && has(&whole, "person 43") && !has(&whole, "person 42"));
    assert!(whole.len() < fs::metadata(&own).unwrap().len() as usize);
    for begin in &begins[..3] {
        let log = fetched(&relay, *begin, "binlog.000002").unwrap();
        assert!(has(&log, "person 44") && !has(&log, "person 42"), "{begin}");
    }
    for begin in &begins[3..] {
        let refused = fetched(&relay, *begin, "binlog.000002").unwrap_err();
        let expected = format!(
            "Values were erased from binlog.000002 in the archive: positions after {} are others since",
            begins[2]
        );
        assert!(refused.contains(&expected), "{begin}: {refused}");
    }
    assert!(!has(&fetched(&relay, 4, "binlog-u.000002").unwrap(), "person 42"));
    let refused = fetched(&relay, begins[1], "binlog-u.000002").unwrap_err();
    assert!(refused.contains("positions after 4 are others since"), "{refused}");
    let note = "binlog.000002 back from ";
    let said = relay.messages();
    let lines: Vec<_> = said.iter().filter(|line| line.contains(note)).collect();
    assert!(
        lines.len() == 2 && lines[1].contains("values of 1 row change of d.t were erased since"),
        "{lines:?}"
    );
    // By GTID: all but the values.
    let replica = mysql.sandbox().start().unwrap();
    relay.replicates_to(&replica, "boss", "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1");
    replica.wait_for_source(&source).unwrap_or_else(|error| panic!("{error}\n{}", relay.said()));
    let bodies = replica.sql("SELECT id, body = '' FROM d.t ORDER BY id").unwrap();
    assert_eq!(bodies.split_whitespace().collect::<Vec<_>>().join(" "), "40 0 41 0 42 1 43 0 44 0 99 1");
    // By a position of before, the replica stops.
    let replica = mysql.sandbox().start().unwrap();
    let by_position = format!(
        "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_LOG_FILE='binlog.000002', SOURCE_LOG_POS={}",
        begins[4]
    );
    relay.replicates_to(&replica, "boss", &by_position);
    relay.wait_for("refusal", |_| {
        let status = replica.replica_status().unwrap();
        (status["Last_IO_Errno"] == "13114" && status["Last_IO_Error"].contains("go on by GTID"))
            .then_some(())
    });
}

/// Of an archive that is a selection no file takes a purged one's place; one whose selection isn't certain stays.
#[test]
fn an_archive_of_some_tables_has_their_rows_and_brings_no_file_back() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).start().unwrap();
    source
        .sql(
            "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY, body TEXT); CREATE TABLE d.hidden (id INT PRIMARY KEY, body TEXT);
             INSERT INTO d.t VALUES (1, 'chosen words'); INSERT INTO d.hidden VALUES (1, 'hidden words'); FLUSH BINARY LOGS;
             UPDATE d.t JOIN d.hidden USING (id) SET t.body = 'new chosen words', hidden.body = 'new hidden words'; FLUSH BINARY LOGS",
        )
        .unwrap();
    let configuration = configuration(&source)
        .archive_keys("tables = [\"d.*\", \"d.misspelt\"]\nignore_tables = [\"d.hidden\"]");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&source);
    let files = |relay: &Relay| {
        relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], "SHOW BINARY LOGS").unwrap_or_default()
    };
    relay.wait_for("purge", |relay| files(relay).starts_with("binlog.000003").then_some(()));
    let ran = folder.run(["archive", "restore", "--to", "back", "arc"]);
    assert!(
        ran.code == Some(0)
            && ran.text().contains("a selection of tables (d.*, d.misspelt, without d.hidden)"),
        "{}",
        ran.text()
    );
    let all: Vec<u8> =
        ["1", "2"].iter().flat_map(|n| folder.read(&format!("back/binlog-selected.00000{n}"))).collect();
    let has = |text: &str| all.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("chosen words") && has("new chosen words") && !has("hidden words"));
    let status = relay.status();
    assert_eq!(status["archive"]["selection"], "d.*, d.misspelt, without d.hidden");
    relay.wait_for("table", |relay| relay.said().contains("d.misspelt: has no rows in the ").then_some(()));
    assert_eq!(status["archive"]["last_file"], "binlog-selected.000002");
    // Started again it goes on with the same archive.
    drop(relay);
    let mut relay = configuration.start(&folder);
    source.sql("INSERT INTO d.hidden VALUES (2, 'more hidden words'); FLUSH BINARY LOGS").unwrap();
    relay.wait_for("purge", |relay| files(relay).starts_with("binlog.000004").then_some(()));
    folder.run(["archive", "check", "arc"]).is_done();
    let list = folder.run(["archive", "list", "arc"]);
    assert!(list.text().contains("binlog-selected.000003"), "{}", list.text());
    source.sql("CREATE DATABASE other; RENAME TABLE d.t TO other.t; FLUSH BINARY LOGS").unwrap();
    relay.wait_for("doubt", |relay| {
        let is_told = relay.said().contains("binlog.000004: stays here, and so do later files");
        (is_told && relay.status()["archive"]["last_file"] == "binlog-selected.000004").then_some(())
    });
    let purge = "PURGE BINARY LOGS TO 'binlog.000005'; SHOW BINARY LOGS";
    let left = relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], purge).unwrap();
    assert!(left.starts_with("binlog.000004"), "{left}");
    let by_force = format!("SET @binlogz_force = 1; {purge}");
    let left = relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], &by_force).unwrap();
    assert!(left.starts_with("binlog.000005"), "{left}");
    let refused = relay.fetch(mysql, "boss", &folder.path("fetched"), &[], &["binlog.000001"]).unwrap_err();
    assert!(refused.contains("Could not find first log file name"), "{refused}");
    let replica = mysql.sandbox().start().unwrap();
    relay.replicates_to(&replica, "boss", "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1");
    relay.wait_for("refusal", |_| {
        let status = replica.replica_status().unwrap();
        status["Last_IO_Error"].contains("purged required binary logs").then_some(())
    });
}

#[test]
fn a_kill_while_files_come_back_leaves_a_log_and_files_are_served_by_name() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source
        .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)")
        .unwrap();
    source
        .sql(
            &"INSERT INTO d.t (body) VALUES (REPEAT(SHA2(RAND(), 512), 32000)); FLUSH BINARY LOGS;\n"
                .repeat(8),
        )
        .unwrap();
    let configuration = configuration(&source);
    let fetched = folder.path("fetched");
    let fetch = |relay: &Relay, names: &[&str]| relay.fetch(mysql, "boss", &fetched, &[], names);
    let files = source.binlogs().unwrap();
    let closed = &files[..files.len() - 1];
    // `scripts/soak/relay.sh` sets more.
    let kills = setting("BINLOGZ_RELAY_KILLS", 2);
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    let (mut between, mut relay) = (0, configuration.start(&folder));
    let names: Vec<&str> = closed.iter().map(|path| name(path)).collect();
    let brought = |relay: &Relay| relay.messages().iter().filter(|line| line.starts_with("brought ")).count();
    for kill in 0..kills {
        relay.has_all_of(&source);
        relay.wait_for("purge", |relay| {
            // Retention would do it, later.
            let purge = "PURGE BINARY LOGS TO 'binlog.000009'; SHOW BINARY LOGS";
            let listed = relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], purge).ok()?;
            (listed.lines().count() == 1).then_some(())
        });
        let mut client = relay.mysqlbinlog(mysql, "boss");
        let into = format!("--result-file={}/", fetched.display());
        fs::create_dir_all(&fetched).unwrap();
        client.args(["--raw", "--to-last-log", &into, "binlog.000001"]).stderr(Stdio::null());
        let client = Running(client.spawn().unwrap());
        // Behind the first files, before the last.
        let stop = 1 + random.below(closed.len() - 1);
        relay.wait_for("file", |relay| (brought(relay) >= stop).then_some(()));
        relay.kill();
        between += u32::from(brought(&relay) < closed.len());
        drop(client);
        relay = configuration.start(&folder);
        let fetched = fetch(&relay, &names).unwrap();
        for ((name, file), fetched) in names.iter().zip(closed).zip(fetched) {
            let same = fs::read(fetched).unwrap() == fs::read(file).unwrap();
            assert!(same, "SEED={seed} kill {kill}: {name}");
        }
        // A log that came back stays for minutes, for the replica that needed it; a restarted relay may purge
        // it.
        drop(relay);
        relay = configuration.start(&folder);
    }
    println!("{kills} kills, {between} of them before the last file was back");
    // In another form too; what was never there is refused.
    for (name, is_there) in [("binlog-u.000002", true), ("binlog.000000", false), ("binlog.000099", false)] {
        let done = fetch(&relay, &[name]);
        assert_eq!(done.is_ok(), is_there, "{name}: {done:?}");
    }
}

/// Bytes of all files in a folder and below.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let size = |path: &Path| match path.is_dir() {
        true => size_of(path),
        // One that goes meanwhile takes nothing.
        false => path.metadata().map_or(0, |file| file.len()),
    };
    entries.map(|entry| size(&entry.unwrap().path())).sum()
}

/// Makes files of 4 MB each; all but the last are archived and purged. Returns how many.
fn archived_and_purged(
    mysql: &binlogz_testkit::InstalledTool,
    source: &MysqlSandbox,
    relay: &mut Relay,
) -> usize {
    relay.has_all_of(source);
    relay.wait_for("purge", |relay| {
        let listed = relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], "SHOW BINARY LOGS").ok()?;
        (listed.lines().count() == 1).then_some(())
    });
    source.binlogs().unwrap().len() - 1
}

const FILE: &str = "INSERT INTO d.t (body) VALUES (REPEAT(SHA2(RAND(), 512), 32000)); FLUSH BINARY LOGS;\n";
const TABLE: &str = "CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body LONGTEXT)";
/// Room for two files, and some.
const BUDGET: u64 = 10 << 20;

/// A replica that asks for everything gets all of it, and the disk never holds more than the budget.
#[test]
fn a_dump_of_everything_takes_no_more_disk_than_the_budget() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source.sql(TABLE).unwrap();
    source.sql(&FILE.repeat(12)).unwrap();
    let budget = format!("bring_back_max_bytes = \"{}M\"", BUDGET >> 20);
    let mut relay = configuration(&source).archive_keys(&budget).start(&folder);
    let purged = archived_and_purged(mysql, &source, &mut relay);
    let files = source.binlogs().unwrap();
    let all: u64 = files.iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(purged == 12 && all > 4 * BUDGET, "{all} bytes in {purged} files");
    let before = size_of(&folder.path("kept"));

    let (peak, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                peak.fetch_max(size_of(&folder.path("kept")), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        // Ends the thread above also where something here panics.
        let end = End(&done);
        let replica = mysql.sandbox().start().unwrap();
        relay.replicates_to(
            &replica,
            "boss",
            "SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1, SOURCE_AUTO_POSITION=1",
        );
        relay.brings(&source, &replica, &["d"]);
        // By name, and in a form whose names depend on how files are cut.
        let names: Vec<&str> = files[..purged].iter().map(|path| name(path)).collect();
        let fetched = relay.fetch(mysql, "boss", &folder.path("fetched"), &[], &names).unwrap();
        for (fetched, file) in fetched.iter().zip(&files) {
            assert!(fs::read(fetched).unwrap() == fs::read(file).unwrap(), "{}", file.display());
        }
        relay.fetch(mysql, "boss", &folder.path("fetched"), &[], &["binlog-u.000003"]).unwrap();
        drop(end);
    });
    let peak = peak.load(Ordering::Relaxed);
    println!("{all} bytes in {purged} files, of which at most {} were there at a time", peak - before);
    assert!(peak > before + files[1].metadata().unwrap().len(), "some came back");
    // Indexes of positions, and what is written of a file that was purged from the log just then.
    assert!(
        peak <= before + BUDGET + (1 << 20),
        "{peak} bytes of {all}, {before} before: the budget is {BUDGET}"
    );
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn another_logs_segment_under_the_right_name_is_not_served() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source.sql(TABLE).unwrap();
    source.sql(&FILE.repeat(2)).unwrap();
    let mut relay = configuration(&source).start(&folder);
    let purged = archived_and_purged(mysql, &source, &mut relay);
    // The same names and sizes, other bytes.
    let files = source.binlogs().unwrap();
    let mut create = vec!["archive", "create", "--to", "wrong"];
    for file in &files[..purged] {
        let mut bytes = fs::read(file).unwrap();
        bytes[300] ^= 1;
        mutate::mend_checksums(&mut bytes);
        folder.put(name(file), bytes);
        create.push(name(file));
    }
    folder.run(create).is_done();
    for object in fs::read_dir(folder.path("arc/objects")).unwrap() {
        let path = object.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "binlogz") {
            fs::copy(folder.segment("wrong"), path).unwrap();
        }
    }
    let refused = relay.fetch(mysql, "boss", &folder.path("fetched"), &[], &["binlog.000001"]).unwrap_err();
    assert!(refused.contains("binlog.000001: SHA-256 is "), "{refused}");
    let kept = fs::read_dir(folder.path("kept")).unwrap();
    let left: Vec<_> = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.contains("brought-back")), "{left:?}");
}
