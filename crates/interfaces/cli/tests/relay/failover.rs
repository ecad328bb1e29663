//! The source dies, another server takes its place: the relay's replicas go on, and a new one is built from the relay alone.

use std::fs;

use crate::common::Folder;
use crate::common::relay::{Configuration, Relay, name, url};
use binlogz_testkit::{InstalledTool, MysqlSandbox, Tool, require_tool};

const BY_GTID: &str = "SOURCE_SSL=0, SOURCE_AUTO_POSITION=1";

#[test]
fn another_server_takes_the_sources_place() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let mut first = mysql.sandbox().compression(3).start().unwrap();
    let second = mysql.sandbox().start().unwrap();
    let replica = mysql.sandbox().start().unwrap();
    let insert = |text: &str| format!("INSERT INTO d.t (body) VALUES (REPEAT('{text} ', 100)), ('{text}');");
    first.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)").unwrap();
    second.replicate_from(&first).unwrap();
    let configuration = Configuration::of([url(&first), url(&second)]).account("reader", "");
    let mut relay = configuration.start(&folder);
    relay.has_all_of(&first);
    relay.replicates_to(&replica, "reader", BY_GTID);
    first.sql(&insert("before")).unwrap();
    relay.brings(&first, &replica, &["d"]);
    second.wait_for_source(&first).unwrap();
    second.flush_binary_logs().unwrap();

    // The source is gone for good.
    first.kill();
    second.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
    second.sql(&insert("after")).unwrap();
    second.flush_binary_logs().unwrap();
    second.sql(&insert("later")).unwrap();
    relay.brings(&second, &replica, &["d"]);
    let status = relay.status();
    assert_eq!(status["source"]["server"], format!("127.0.0.1:{}", second.port()), "{status}");
    assert_eq!(status["log"]["source_uuid"].as_str().unwrap(), second.server_uuid().unwrap());

    // A replica that has nothing gets all of it, the old log first.
    let new = mysql.sandbox().start().unwrap();
    relay.replicates_to(&new, "reader", BY_GTID);
    relay.brings(&second, &new, &["d"]);

    // A name that both servers have is served to no replica.
    let first_file = relay.status()["log"]["first_file"].as_str().unwrap().to_owned();
    assert!(relay.fetch(mysql, "reader", &folder.path("fetched"), &[], &["binlog.000001"]).is_err());
    assert_ne!(first_file, "binlog.000001", "it begins with what the old log lacks");

    // All of it survives a restart; the former source comes back lagging, and is not followed.
    drop(relay);
    first.start().unwrap();
    second.sql(&insert("at last")).unwrap();
    let mut relay = configuration.with_servers([url(&first), url(&second)]).start(&folder);
    relay.has_all_of(&second);
    let status = relay.status();
    assert_eq!(status["log"]["gtid_executed"].as_str().unwrap(), second.gtid_executed().unwrap());
    assert!(status["last_errors"][0]["text"].as_str().unwrap().contains("lacks transactions"), "{status}");
}

/// A relay of two servers that archives: the first died, and the second, its replica, took its place and wrote more.
struct FailedOver {
    configuration: Configuration,
    relay: Relay,
    second: MysqlSandbox,
    /// The GTIDs of the first.
    of_first: String,
    /// The first's last file.
    last: String,
}

impl FailedOver {
    fn new(
        mysql: &'static InstalledTool,
        folder: &Folder,
        configure: impl FnOnce(Configuration) -> Configuration,
    ) -> FailedOver {
        let mut first = mysql.sandbox().start().unwrap();
        let second = mysql.sandbox().start().unwrap();
        let insert = |text: &str| format!("INSERT INTO d.t (body) VALUES ('{text}'); FLUSH BINARY LOGS;");
        first
            .sql("CREATE DATABASE d; CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, body TEXT)")
            .unwrap();
        second.replicate_from(&first).unwrap();
        let configuration = configure(Configuration::of([url(&first), url(&second)]));
        let configuration = configuration.archive().account("boss", "admin = true");
        let mut relay = configuration.start(folder);
        first.sql(&(insert("one") + &insert("two") + "INSERT INTO d.t (body) VALUES ('last')")).unwrap();
        relay.has_all_of(&first);
        second.wait_for_source(&first).unwrap();
        let of_first = first.gtid_executed().unwrap();
        let last = name(first.binlogs().unwrap().last().unwrap()).to_owned();
        second.flush_binary_logs().unwrap();
        first.kill();
        second.sql("STOP REPLICA; RESET REPLICA ALL").unwrap();
        second.sql(&(insert("after") + &insert("later"))).unwrap();
        relay.has_gtids_of(&second);
        FailedOver { configuration, relay, second, of_first, last }
    }
}

/// The old server's last transactions are in no other archive: its log is archived to its last file.
#[test]
fn both_servers_logs_are_archived_to_the_last_transaction() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let FailedOver { mut relay, of_first, last, .. } =
        FailedOver::new(mysql, &folder, |configuration| configuration);

    let archived = |archive: &str| folder.run(["archive", "list", archive]).text().to_owned();
    relay.wait_for("archives", |_| {
        let of_second = archived("arc/lineage-2").lines().count();
        (archived("arc").contains(&last) && of_second > 2).then_some(())
    });
    let checked = folder.run(["archive", "check", "arc"]);
    checked.is_done();
    assert!(
        checked.text().contains(" logs in 2 archives are whole and follow one another"),
        "{}",
        checked.text()
    );
    folder.run(["archive", "restore", "--to", "back", "arc"]).is_done();
    let restored = folder.read(&format!("back/{last}"));
    assert!(restored == folder.read(&format!("kept/{last}")), "{last}");

    // Without that file something is missing, which neither archive alone can tell.
    let mut create: Vec<String> = ["archive", "create", "--to", "less"].map(str::to_owned).into();
    let back = fs::read_dir(folder.path("back")).unwrap();
    let others =
        back.map(|file| file.unwrap().file_name().into_string().unwrap()).filter(|name| *name != last);
    create.extend(others.map(|name| format!("back/{name}")));
    folder.run(create).is_done();
    let checked = folder.run(["archive", "check", "less"]);
    checked.is_done();
    let copied = std::process::Command::new("cp")
        .args(["-r".as_ref(), folder.path("arc/lineage-2").as_os_str(), folder.path("less").as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    let checked = folder.run(["archive", "check", "less"]);
    let (uuid, gno) = of_first.trim().rsplit_once([':', '-']).unwrap();
    let missing = format!("{}:{gno}", uuid.split(':').next().unwrap());
    let line = checked.text().lines().find(|line| line.contains("gap")).unwrap_or_default().to_owned();
    assert_eq!(checked.code, Some(1), "{}", checked.text());
    assert!(
        line.starts_with("lineage-2: binlog.") && line.contains(&format!(": gap: {missing} came before")),
        "{line}"
    );
}

/// Retention leaves the old server's log as it was; replicas get it from the archive.
#[test]
fn an_old_servers_log_is_purged_whole_and_served_from_the_archive() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let FailedOver { configuration, mut relay, second, .. } =
        FailedOver::new(mysql, &folder, |configuration| configuration.store("max_bytes = \"1\""));

    let of_first = |folder: &Folder| {
        let kept = fs::read_dir(folder.path("kept")).unwrap();
        let names = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| name.starts_with("binlog.")).collect();
        names.sort();
        names
    };
    relay.wait_for("purge of the old log", |_| of_first(&folder).is_empty().then_some(()));
    let new = mysql.sandbox().start().unwrap();
    relay.replicates_to(&new, "boss", BY_GTID);
    relay.brings(&second, &new, &["d"]);
    let lineage = relay.status()["lineages"][0].clone();
    assert_eq!((lineage["files"].as_u64(), lineage["bytes"].as_u64()), (Some(0), Some(0)), "{lineage}");

    // Nobody gets the new server's files under the old one's names; and it stays so.
    drop(relay);
    let mut relay = configuration.with_servers([url(&second)]).start(&folder);
    relay.has_gtids_of(&second);
    let refused = relay.fetch(mysql, "boss", &folder.path("fetched"), &[], &["binlog.000001"]).unwrap_err();
    assert!(refused.contains("that was kept before"), "{refused}");
    new.sql("STOP REPLICA; RESET REPLICA; DROP DATABASE d; RESET BINARY LOGS AND GTIDS").unwrap();
    relay.replicates_to(&new, "boss", BY_GTID);
    relay.brings(&second, &new, &["d"]);
    assert!(!of_first(&folder).iter().any(|name| !name.contains("brought-back") && !name.contains("places")));
    folder.run(["archive", "check", "arc"]).is_done();
}
