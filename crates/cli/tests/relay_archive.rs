//! The relay's `[archive]`: closed files go there, none is purged before it is there, and replicas are served from there.

mod common;

use std::fs;
use std::process::Stdio;

use binlogz_testkit::random::Random;
use binlogz_testkit::{Tool, mutate, require_tool};
use common::Folder;
use common::configured::{Relay, accounts, url};

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
    let more = format!(
        "[store]\ndir = \"kept\"\nmax_bytes = \"1\"\n[archive]\nto = \"arc\"\n[listen]\naddress = \"127.0.0.1:0\"\n{}",
        accounts(&folder, &[("boss", "admin = true")])
    );
    let mut relay = Relay::start(&folder, &[&url(&source)], &more);
    relay.has_all_of(&source);
    let files = |relay: &Relay| {
        relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], "SHOW BINARY LOGS").unwrap_or_default()
    };
    relay.wait_for("complaint", |relay| {
        let log = fs::read_to_string(&relay.log).unwrap();
        log.contains("files that are not archived are not purged").then_some(())
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
    let port = relay.port;
    let follow = format!(
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='boss', \
         SOURCE_PASSWORD='secret', SOURCE_AUTO_POSITION=1, SOURCE_CONNECT_RETRY=1, SOURCE_SSL=0, GET_SOURCE_PUBLIC_KEY=1; START REPLICA"
    );
    replica.sql(&follow).unwrap();
    replica
        .wait_for_source(&source)
        .unwrap_or_else(|error| panic!("{error}\n{}", relay.messages().join("\n")));
    source.sql("INSERT INTO d.t (body) VALUES ('live')").unwrap();
    replica.wait_for_source(&source).unwrap();
    assert_eq!(replica.checksum_tables("d").unwrap(), source.checksum_tables("d").unwrap());
    assert_eq!(replica.gtid_executed().unwrap(), source.gtid_executed().unwrap());
    let messages = relay.messages();
    for name in ["binlog.000002", "binlog.000001"] {
        assert!(
            messages.iter().any(|line| line.starts_with(&format!("brought {name} back"))),
            "{messages:?}"
        );
    }
}

/// `scripts/soak/relay.sh` sets more.
fn kills() -> u32 {
    std::env::var("BINLOGZ_RELAY_KILLS").map_or(2, |kills| kills.parse().unwrap())
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
    let more = format!(
        "[store]\ndir = \"kept\"\nmax_bytes = \"1\"\n[archive]\nto = \"arc\"\n[listen]\naddress = \"127.0.0.1:0\"\n{}",
        accounts(&folder, &[("boss", "admin = true")])
    );
    let fetch = |relay: &Relay, names: &[&str]| {
        let mut fetch = mysql.command("mysqlbinlog");
        fetch.args(["--no-defaults", "-R", "--raw", "--host=127.0.0.1", "--user=boss"]).args(names);
        fetch.args([
            format!("--port={}", relay.port),
            format!("--result-file={}/", folder.path("fetched").display()),
        ]);
        fetch.env("MYSQL_PWD", "secret");
        fetch
    };
    fs::create_dir(folder.path("fetched")).unwrap();
    let files = source.binlogs().unwrap();
    let closed = &files[..files.len() - 1];
    let seed = mutate::seed();
    let mut random = Random::new(seed);
    let (mut between, mut relay) = (0, Relay::start(&folder, &[&url(&source)], &more));
    let names: Vec<&str> = closed.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    for kill in 0..kills() {
        relay.has_all_of(&source);
        relay.wait_for("purge", |relay| {
            // Retention would do it, later.
            let purge = "PURGE BINARY LOGS TO 'binlog.000009'; SHOW BINARY LOGS";
            let listed = relay.sql(mysql, "boss", &["--ssl-mode=DISABLED"], purge).ok()?;
            (listed.lines().count() == 1).then_some(())
        });
        let mut client = fetch(&relay, &["binlog.000001"]).stderr(Stdio::null()).spawn().unwrap();
        // Behind the first files, before the last.
        let stop = 1 + random.below(closed.len() - 1);
        relay.wait_for("file", |relay| {
            let came = relay.messages().iter().filter(|line| line.starts_with("brought ")).count();
            (came >= stop).then_some(())
        });
        relay.child.kill().unwrap();
        relay.child.wait().unwrap();
        let came = relay.messages().iter().filter(|line| line.starts_with("brought ")).count();
        between += u32::from(came < closed.len());
        let _ = client.wait();
        relay = Relay::start(&folder, &[&url(&source)], &more);
        let fetched = fetch(&relay, &names).output().unwrap();
        assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
        for (name, file) in names.iter().zip(closed) {
            let same = folder.read(&format!("fetched/{name}")) == fs::read(file).unwrap();
            assert!(same, "SEED={seed} kill {kill}: {name}");
        }
        // What came back stays for minutes, for whom it came; one that begins anew may purge it.
        drop(relay);
        relay = Relay::start(&folder, &[&url(&source)], &more);
    }
    println!("{} kills, {between} of them before the last file was back", kills());
    // In another form too; what was never there is refused.
    for (name, is_there) in [("binlog-u.000002", true), ("binlog.000000", false), ("binlog.000099", false)] {
        let done = fetch(&relay, &[name]).output().unwrap();
        assert_eq!(done.status.success(), is_there, "{name}: {}", String::from_utf8_lossy(&done.stderr));
    }
}
