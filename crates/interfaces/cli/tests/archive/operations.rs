//! `binlogz archive`: logs come back, chosen transactions come as logs, damage is named, a killed run leaves an
//! archive that is whole.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::common::{Folder, Ran};
use binlogz_binlog::EventType;
use binlogz_testkit::builder::{LogBuilder, Release, change_events};
use binlogz_testkit::random::Random;
use binlogz_testkit::{Result, Tool, corpus, mutate, require_tool};

fn text(ran: &Ran) -> String {
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

const FILES: [&str; 2] = ["binlog.000004", "binlog.000009"];

#[test]
fn logs_come_back_and_creating_goes_on_where_it_was() {
    let folder = Folder::new();
    let logs = FILES.map(|name| folder.sample("plain", name));
    let ran = folder.run(["archive", "create", "--to", "arc", FILES[0]]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(text(&ran).starts_with("binlog.000004: 77.0 KiB -> "), "{}", text(&ran));
    let ran = folder.run(["archive", "create", "--to", "arc", FILES[0], FILES[1]]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(text(&ran).starts_with("binlog.000004: is in the archive already\n"), "{}", text(&ran));
    let line = "binlog.000009: is archived, but binlog.000008 is not: no PURGE BINARY LOGS that goes so far is safe\n";
    assert!(text(&ran).ends_with(line), "{}", text(&ran));

    let ran = folder.run(["archive", "list", "arc"]);
    let rows = text(&ran).lines().filter(|line| line.starts_with("  binlog.")).count();
    assert_eq!((rows, text(&ran).matches(": gap: ").count()), (2, 1), "{}", text(&ran));
    assert_eq!(folder.run(["archive", "restore", "--to", "back", "arc"]).code, Some(0));
    for (name, log) in FILES.iter().zip(&logs) {
        assert!(folder.read(&format!("back/{name}")) == *log, "{name}");
    }
    let ran = folder.run(["archive", "restore", "--to", "back", "arc", FILES[0]]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--force replaces it"), "{}", ran.stderr);
    folder.run(["archive", "list", "nowhere"]).fails("nowhere: there is no such folder, expected an archive");
}

#[test]
fn logs_given_in_any_order_follow_one_another() {
    let folder = Folder::new();
    for (name, number) in [("binlog.000004", "999999"), ("binlog.000005", "1000000")] {
        folder.sample("plain", name);
        fs::rename(folder.path(name), folder.path(&format!("binlog.{number}"))).unwrap();
    }
    folder.put("binlog.1000001", "");
    let ran = folder.run(["archive", "create", "--to", "arc", "binlog.1000000", "binlog.999999"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(text(&ran).ends_with("PURGE BINARY LOGS TO 'binlog.1000001';\n"), "{}", text(&ran));
    let ran = folder.run(["archive", "check", "arc"]);
    assert_eq!(text(&ran), "2 logs are whole and follow one another\n");
}

/// Rows that are loaded, updated and deleted, each in a log of a server of its own.
fn load_update_and_delete() -> [Vec<u8>; 3] {
    let mut random = Random::new(11);
    let mut bytes = |count: usize| (0..count).map(|_| random.bits() as u8).collect::<Vec<u8>>();
    let before: Vec<_> = (0..1000).map(|_| bytes(100)).collect();
    // A row keeps all but its first bytes.
    let after: Vec<_> = before.iter().map(|before| [&bytes(4), &before[4..]].concat()).collect();
    let pairs: Vec<&[u8]> = before.iter().zip(&after).flat_map(|(one, other)| [&one[..], other]).collect();
    let log = |event_type, values: &[&[u8]], row: usize| {
        let mut log = LogBuilder::new(Release::MYSQL_9_7);
        for values in values.chunks(50 * row) {
            log.transaction_of(&change_events(event_type, values));
        }
        log.take()
    };
    [
        log(EventType::WRITE_ROWS, &slices(&before), 1),
        log(EventType::UPDATE_ROWS, &pairs, 2),
        log(EventType::DELETE_ROWS, &slices(&after), 1),
    ]
}

fn slices(values: &[Vec<u8>]) -> Vec<&[u8]> {
    values.iter().map(Vec::as_slice).collect()
}

/// Rows are found in the logs before: names of different bases say nothing of what came first.
#[test]
fn logs_of_different_names_are_packed_in_the_order_given_and_small_together() {
    let folder = Folder::new();
    let names = ["load.000001", "change.000001", "away.000001"];
    for (name, log) in names.iter().zip(load_update_and_delete()) {
        folder.put(name, log);
    }
    let size = |archive: &str| fs::metadata(folder.segment(archive)).unwrap().len();
    let apart = names.map(|name| {
        assert_eq!(
            folder.run(["archive", "create", "--to", name.split_once('.').unwrap().0, name]).code,
            Some(0)
        );
        size(name.split_once('.').unwrap().0)
    });
    let ran = folder.run(["archive", "create", "--to", "arc", names[0], names[1], names[2]]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let order: Vec<_> =
        text(&ran).lines().filter_map(|line| Some(line.split_once(": ")?.0.to_owned())).collect();
    assert_eq!(order[..3], names);
    // Of the update it takes the new values, which are as large as the load, of the delete next to nothing.
    let together = size("arc");
    assert!(together < 2 * apart[0] + apart[0] / 8, "{together} of {apart:?}");
    assert!(apart.iter().all(|&size| size > 100_000), "{apart:?}");

    // Within a base numbers decide.
    fs::rename(folder.path(names[1]), folder.path("load.000003")).unwrap();
    fs::rename(folder.path(names[2]), folder.path("load.000020")).unwrap();
    let ran = folder.run(["archive", "create", "--to", "one", "load.000020", "load.000003", names[0]]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(size("one").abs_diff(together) < 1000, "{} and {together}", size("one"));
    assert_eq!(folder.run(["archive", "restore", "--to", "back", "one"]).code, Some(0));
    for name in ["load.000001", "load.000003", "load.000020"] {
        assert!(folder.read(&format!("back/{name}")) == folder.read(name), "{name}");
    }
}

#[test]
fn damage_is_named_with_its_transactions() {
    let folder = Folder::with_sample("plain", FILES[0]);
    folder.run(["archive", "create", "--to", "arc", FILES[0]]);
    assert_eq!(folder.run(["archive", "check", "arc"]).code, Some(0));
    let object = folder.segment("arc");
    let mut bytes = fs::read(&object).unwrap();
    bytes[500] ^= 1;
    fs::write(&object, bytes).unwrap();
    let ran = folder.run(["archive", "check", "arc"]);
    assert_eq!(ran.code, Some(1));
    assert!(text(&ran).contains(" is damaged (checksum differs)"), "{}", text(&ran));
    assert_eq!(folder.run(["archive", "restore", "--to", "back", "arc"]).code, Some(2));
    assert!(fs::read_dir(folder.path("back")).unwrap().next().is_none(), "no half-restored log");
}

/// An archive of a log, and one of another log of the same name and size whose segment lies in the first one's place.
fn with_anothers_segment(folder: &Folder) -> [String; 2] {
    let mut log = folder.sample("plain", FILES[0]);
    folder.run(["archive", "create", "--to", "arc", FILES[0]]).is_done();
    log[300] ^= 1;
    mutate::mend_checksums(&mut log);
    folder.put(FILES[0], log);
    folder.run(["archive", "create", "--to", "other", FILES[0]]).is_done();
    fs::copy(folder.segment("other"), folder.segment("arc")).unwrap();
    ["arc", "other"].map(|archive| {
        let manifest = String::from_utf8(folder.read(&format!("{archive}/manifest.json"))).unwrap();
        manifest.split("\"sha256\": \"").nth(1).unwrap()[..64].to_owned()
    })
}

#[test]
fn another_logs_segment_under_the_right_name_is_refused() {
    let folder = Folder::new();
    let [expected, found] = with_anothers_segment(&folder);
    let line = format!("binlog.000004: SHA-256 is {found}, expected {expected}");
    folder.run(["archive", "restore", "--to", "back", "arc"]).fails(&line);
    assert!(fs::read_dir(folder.path("back")).unwrap().next().is_none(), "nothing is left of it");
    let ran = folder.run(["archive", "cat", "arc"]);
    assert_eq!((ran.code, ran.stderr), (Some(2), format!("binlogz: {line}\n")));
    // As input the log is read to its end, and then it is an error.
    for command in [&["dump", "--no-defaults"][..], &["stats"], &["verify"], &["events"]] {
        let ran = folder.run(command.iter().chain(&["arc"]));
        assert!(![Some(0), None].contains(&ran.code), "{command:?}");
        assert!(ran.stderr.contains(&format!("SHA-256 is {found}")), "{command:?}: {}", ran.stderr);
    }
    let ran = folder.run(["archive", "check", "arc"]);
    assert!(
        ran.code == Some(1) && text(&ran).contains(&expected) && text(&ran).contains(&found),
        "{}",
        text(&ran)
    );
}

#[test]
fn a_restored_log_keeps_its_mode_and_is_never_for_everybody() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    for (name, mode) in [("binlog.000001", 0o600), ("binlog.000002", 0o660), ("binlog.000003", 0o644)] {
        folder.sample("plain", name);
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let names = ["binlog.000001", "binlog.000002", "binlog.000003"];
    folder.run(["archive", "create", "--to", "arc", names[0], names[1], names[2]]).is_done();
    // The umask takes away, and gives nothing.
    for (umask, expected) in [("000", [0o600, 0o660, 0o640]), ("027", [0o600, 0o640, 0o640])] {
        let script = format!("umask {umask}; exec \"$0\" archive restore --force --to back arc");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_binlogz")]).current_dir(folder.path(""));
        assert!(shell.status().unwrap().success());
        let mode =
            |name| folder.path(&format!("back/{name}")).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(names.map(mode), expected, "umask {umask}");
    }
}

#[test]
fn a_log_that_a_servers_index_lists_is_not_replaced() {
    let folder = Folder::with_sample("plain", FILES[0]);
    folder.run(["archive", "create", "--to", "arc", FILES[0]]).is_done();
    folder.put("back/binlog.index", format!("./{}\n", FILES[0]));
    folder.put(&format!("back/{}", FILES[0]), "the server's");
    let ran = folder.run(["archive", "restore", "--to", "back", "--force", "arc"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("a server's own log is never replaced, not even with --force"),
        "{}",
        ran.stderr
    );
    assert_eq!(folder.read(&format!("back/{}", FILES[0])), b"the server's");
}

/// As a cron does that archives what it finds: the log in use grows, and is closed at last.
#[test]
fn logs_in_use_and_what_is_no_log_are_left_out() {
    let folder = Folder::new();
    let names = ["binlog.000001", "binlog.000002"];
    for name in names {
        folder.sample("plain", name);
    }
    let closed = folder.read(names[1]);
    let mut in_use = closed[..closed.len() / 2].to_vec();
    // The flags of the format description.
    in_use[4 + 17] |= 1;
    folder.put(names[1], &in_use);
    let create = || folder.run(["archive", "create", "--to", "arc", names[0], names[1]]);
    let ran = create();
    ran.is_done();
    assert!(text(&ran).contains("binlog.000002: is in use and was left out"), "{}", text(&ran));
    assert!(text(&ran).ends_with("PURGE BINARY LOGS TO 'binlog.000002';\n"), "{}", text(&ran));
    folder.put(names[1], &closed);
    let ran = create();
    ran.is_done();
    assert!(!text(&ran).contains("in use"), "{}", text(&ran));
    folder.run(["archive", "check", "arc"]).is_done();

    for (bytes, what) in [
        (&b""[..], "is empty, expected a binary log"),
        (&closed[..50], "has no whole format description"),
        (&closed[..10], "does not begin as a binary log does"),
        (b"no log at all, but a text", "does not begin as a binary log does"),
        (
            b"\xfe\xfe\x0d\x01\x0e\0\0\0\x01\0\0\0",
            "is a file of MariaDB's InnoDB-based binary log, expected a binary log in a file; a replica with log_slave_updates and without \
             binlog_storage_engine writes one",
        ),
        (b"\x1f\x8b\x08\x00\x00\x00\x00", "is gzip, expected a binary log; unpack a copy of it first"),
    ] {
        folder.put("other.000001", bytes);
        let ran = folder.run(["archive", "create", "--to", "arc", "other.000001"]);
        assert_eq!((ran.code, ran.stderr), (Some(2), format!("binlogz: other.000001: {what}\n")));
    }
}

/// Obeyed, the line deletes logs: it must never reach over one that is not archived.
#[test]
fn the_line_about_purging_does_not_reach_over_a_gap() {
    let folder = Folder::new();
    let names = ["binlog.000001", "binlog.000002", "binlog.000003"];
    for name in names {
        folder.sample("plain", name);
    }
    let ran = folder.run(["archive", "create", "--to", "arc", names[1]]);
    ran.is_done();
    assert!(
        text(&ran).ends_with("but binlog.000001 is not: no PURGE BINARY LOGS that goes so far is safe\n"),
        "{}",
        text(&ran)
    );
    let ran = folder.run(["archive", "create", "--to", "all", names[0], names[1]]);
    assert!(text(&ran).ends_with("PURGE BINARY LOGS TO 'binlog.000003';\n"), "{}", text(&ran));
    // Nor name one that is not there.
    let last = names[2];
    folder.sample("plain", last);
    let mut log = folder.read(last);
    log.truncate(log.len() - 60);
    folder.put(last, log);
    let ran = folder.run(["archive", "create", "--to", "all", names[0], names[1], last]);
    // It is torn: it is refused, and the line reaches no farther than before.
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(text(&ran).ends_with("PURGE BINARY LOGS TO 'binlog.000003';\n"), "{}", text(&ran));
}

#[test]
fn machines_are_told_in_json() {
    let folder = Folder::new();
    let log = folder.sample("plain", FILES[0]);
    folder.run(["archive", "create", "--to", "arc", FILES[0]]).is_done();
    let json = |arguments: &[&str], code: i32| -> serde_json::Value {
        let arguments = ["archive"].iter().chain(arguments).chain(&["--format", "json"]).copied();
        let ran = folder.run(arguments);
        assert_eq!(ran.code, Some(code), "{}", ran.stderr);
        serde_json::from_slice(&ran.stdout).unwrap()
    };
    let listed = json(&["list", "arc"], 0);
    let listed = &listed["logs"][0];
    assert_eq!((&listed["log"], &listed["bytes"]), (&FILES[0].into(), &log.len().into()), "{listed}");
    assert_eq!(listed["sha256"].as_str().map(str::len), Some(64), "{listed}");
    let gtids = listed["gtids"].as_str().unwrap();
    let one = format!("{}:{}", &gtids[..36], gtids[37..].split(['-', ':', ',']).next().unwrap());
    let checked = json(&["check", "arc"], 0);
    assert_eq!((&checked["whole"], &checked["archives"][0]["logs"]), (&true.into(), &1.into()), "{checked}");

    let restored = json(&["restore", "--to", "back", "arc"], 0);
    assert_eq!(restored["logs"][0]["bytes"], log.len(), "{restored}");
    let restored = json(&["restore", "--to", "one", "--gtids", &one, "arc"], 0);
    assert_eq!(restored["logs"][0]["transactions"], 1, "{restored}");
    let failed = json(&["restore", "--to", "back", "arc"], 2);
    assert!(failed["failed"][0]["error"].as_str().unwrap().contains("--force replaces it"), "{failed}");
    let absent = format!("{}:999999", &gtids[..36]);
    let unmet = json(&["restore", "--to", "two", "--gtids", &absent, "arc"], 1);
    assert!(unmet["unmet"].as_str().unwrap().contains(&absent), "{unmet}");

    let object = folder.segment("arc");
    let mut bytes = fs::read(&object).unwrap();
    bytes[500] ^= 1;
    fs::write(&object, bytes).unwrap();
    let checked = json(&["check", "arc"], 1);
    assert_eq!(
        (&checked["whole"], checked["archives"][0]["problems"].as_array().unwrap().len()),
        (&false.into(), 1)
    );
}

#[test]
fn what_is_asked_for_and_not_there_is_told_before_anything_is_written() {
    let folder = Folder::with_sample("plain", FILES[0]);
    folder.run(["archive", "create", "--to", "arc", FILES[0]]).is_done();
    let absent = "00000000-0000-0000-0000-000000000001:7-9";
    let one = "00000000-0000-0000-0000-000000000001:7";
    for what in [&["restore", "--to", "back"][..], &["cat"]] {
        let asked = [
            ("--gtids", absent, "none of these transactions is there"),
            ("--stop-before-gtid", one, "this transaction is not there"),
        ];
        for (option, value, what_is_not) in asked {
            let arguments = ["archive"].iter().chain(what).copied().chain([option, value, "arc"]);
            let line = format!("binlogz: arc: {option}={value}: {what_is_not}\n");
            folder.run(arguments).is(1, "", &line);
        }
    }
}

#[test]
fn encrypted_logs_come_back_as_their_plaintext() {
    let folder = Folder::new();
    let files = corpus::encrypted();
    let path = files.encrypted.to_str().unwrap();
    assert_eq!(
        folder.run(["archive", "create", "--to", "arc", path]).code,
        Some(0),
        "as bytes, without the key"
    );
    let keyring = files.keyring.to_str().unwrap();
    let ran = folder.run(["archive", "create", "--to", "plain", "--keyring", keyring, "--plaintext", path]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    for (archive, expected) in [("arc", &files.encrypted), ("plain", &files.plain)] {
        let back = folder.binlogz(["archive", "cat", archive]).output().unwrap();
        assert!(back.stdout == fs::read(expected).unwrap(), "{archive}");
    }
}

#[test]
fn a_killed_create_leaves_a_whole_archive() {
    let folder = Folder::new();
    let following = ["binlog.000004", "binlog.000005"];
    for name in following {
        folder.sample("plain", name);
    }
    for delay in [5, 100, 400] {
        let mut child = folder.spawn(["archive", "create", "--to", "arc", following[0], following[1]]);
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().unwrap();
        child.wait().unwrap();
        if folder.path("arc/manifest.json").exists() {
            let checked = folder.run(["archive", "check", "arc"]);
            // The manifest stands there before its copy does.
            let is_uncopied = checked.stderr.is_empty()
                && text(&checked).lines().all(|line| {
                    line.starts_with("copy of the manifest: ") && line.ends_with("; nothing is lost")
                });
            assert!(checked.code == Some(0) || is_uncopied, "after {delay} ms: {}", text(&checked));
        }
    }
    assert_eq!(folder.run(["archive", "create", "--to", "arc", following[0], following[1]]).code, Some(0));
    fs::remove_file(folder.path("arc/objects/manifest-copy.json")).unwrap();
    assert_eq!(folder.run(["archive", "check", "arc"]).code, Some(1));
    assert_eq!(folder.run(["archive", "create", "--to", "arc", following[0], following[1]]).code, Some(0));
    assert_eq!(folder.run(["archive", "check", "arc"]).code, Some(0));
}

/// `mysqlbinlog` reads several logs in one stream, and a server is taken to a transaction in the middle.
#[test]
fn a_server_is_taken_to_a_moment_in_the_middle() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(
        "CREATE DATABASE shop; USE shop;
         CREATE TABLE item (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(100), price DECIMAL(10,2), made DATETIME(3));
         INSERT INTO item (name, price, made) VALUES ('tea', 3.20, NOW(3)), ('coffee', 4.10, NULL), (NULL, -1, NOW(3));
         UPDATE item SET price = price + 1;",
    )?;
    let first = server.flush_binary_logs()?;
    server.sql("INSERT INTO shop.item (name) SELECT name FROM shop.item; UPDATE shop.item SET price = 9 WHERE id = 2")?;
    let middle = server.checksum_tables("shop")?;
    let executed = server.gtid_executed()?;
    // Ten minutes later, as far as the log knows.
    let moment = server.sql("SELECT UNIX_TIMESTAMP() + 300")?.trim().to_owned();
    server.sql("SET timestamp = UNIX_TIMESTAMP() + 600; DELETE FROM shop.item WHERE id = 1")?;
    let second = server.flush_binary_logs()?;

    let folder = Folder::new();
    let paths = [first, second].map(|path| path.to_str().expect("UTF-8").to_owned());
    let created = folder.run(["archive", "create", "--to", "arc", &paths[0], &paths[1]]);
    assert_eq!((created.code, created.stderr.as_str()), (Some(0), ""));
    assert_eq!(folder.run(["archive", "check", "arc"]).code, Some(0));

    // Everything in one stream, as mysqlbinlog prints it of the files.
    let all = folder.binlogz(["archive", "cat", "arc"]).output().expect("runs");
    let stream = folder.put("all", &all.stdout);
    let print = |command: &mut Command| {
        let output = command.args(["-v", "--base64-output=decode-rows"]).output().expect("mysqlbinlog runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let of_files = print(mysql.command("mysqlbinlog").args(&paths));
    let of_stream = print(mysql.command("mysqlbinlog").arg(&stream));
    let rows = |text: &str| {
        text.lines().filter(|line| line.starts_with("###")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(rows(&of_stream).len() > 20 && rows(&of_stream) == rows(&of_files), "{of_stream}");

    // To the transaction before the DELETE.
    let (uuid, last) = executed.trim().rsplit_once([':', '-']).expect("a GTID set");
    let uuid = uuid.split(':').next().expect("a UUID");
    let stop = format!("{uuid}:{}", last.parse::<u64>().expect("a number") + 1);
    let restored = folder.run(["archive", "restore", "--to", "back", "--stop-before-gtid", &stop, "arc"]);
    assert_eq!((restored.code, restored.stderr.as_str()), (Some(0), ""));
    let logs = ["back/binlog.000001", "back/binlog.000002"].map(|name| folder.path(name));
    let output = mysql.command("mysqlbinlog").args(&logs).output().expect("mysqlbinlog runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.sql("DROP DATABASE shop; RESET BINARY LOGS AND GTIDS")?;
    server.sql(&String::from_utf8_lossy(&output.stdout))?;
    assert_eq!(server.checksum_tables("shop")?, middle);
    assert_eq!(server.gtid_executed()?, executed);

    // To the moment between, in one stream.
    let until = ["archive", "cat", "--stop-datetime", &moment, "arc"];
    let stream = folder.put("until", &folder.binlogz(until).output().expect("runs").stdout);
    let output = mysql.command("mysqlbinlog").arg(&stream).output().expect("mysqlbinlog runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.sql("DROP DATABASE shop; RESET BINARY LOGS AND GTIDS")?;
    server.sql(&String::from_utf8_lossy(&output.stdout))?;
    assert_eq!(server.checksum_tables("shop")?, middle);
    assert_eq!(server.gtid_executed()?, executed);

    // One transaction alone.
    let one = folder.run(["archive", "restore", "--to", "one", "--gtids", &stop, "arc"]);
    assert_eq!((one.code, one.stderr.as_str()), (Some(0), ""));
    let text = print(
        mysql.command("mysqlbinlog").arg("--verify-binlog-checksum").arg(folder.path("one/binlog.000002")),
    );
    assert_eq!(text.matches("### DELETE FROM").count(), 1, "{text}");
    assert!(!folder.path("one/binlog.000001").exists());
    Ok(())
}
