//! `archive create --table`: an archive that is a selection of tables, beside a real server: what of its log stays, where it stands, and
//! who says that it is one.

use std::fs;
use std::process::{Command, Stdio};

use binlogz_binlog::EventType;
use binlogz_binlog::reader::EventReader;
use binlogz_testkit::{InstalledTool, MariadbSandbox, MysqlSandbox, Tool, require_tool};
use serde_json::Value;

use crate::common::{Folder, Ran};

/// Tables that are chosen and others, changed by statements of their own and by common ones: a multi-table UPDATE and DELETE, a
/// trigger, a cascade. Transactions of the others alone, and one larger than what is held in memory at once.
const WORK: &str = "\
CREATE DATABASE shop; CREATE DATABASE other;
CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(2000));
CREATE TABLE shop.log_orders (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(2000));
CREATE TABLE other.secrets (id INT PRIMARY KEY, note MEDIUMTEXT);
CREATE TRIGGER shop.logged AFTER INSERT ON shop.orders FOR EACH ROW INSERT INTO shop.log_orders (note) VALUES (CONCAT('logged ', NEW.note));
INSERT INTO shop.orders VALUES (1, 'one'), (2, 'two');
INSERT INTO other.secrets VALUES (1, 'a secret'), (2, REPEAT('secret ', 200000));
UPDATE shop.orders JOIN other.secrets USING (id) SET orders.note = CONCAT(orders.note, '!'), secrets.note = 'changed secret';
BEGIN; INSERT INTO other.secrets VALUES (3, 'secret'); INSERT INTO shop.orders VALUES (3, 'three'); DELETE FROM other.secrets WHERE id = 1; COMMIT;
SET SESSION binlog_rows_query_log_events = ON;
INSERT INTO other.secrets VALUES (4, 'secret of a statement');
SET SESSION binlog_transaction_compression = OFF;
INSERT INTO other.secrets VALUES (5, 'plain secret');
DELETE shop.orders, other.secrets FROM shop.orders JOIN other.secrets USING (id) WHERE id = 3;
INSERT INTO shop.orders VALUES (4, 'four');
";
const CREATE: [&str; 7] =
    ["archive", "create", "--to", "sel", "--table=shop.*", "--ignore-table=shop.log_*", "binlog.000002"];
/// The line that commands have.
const SELECTION: &str = "a selection of tables (shop.*, without shop.log_*): the rows of others were left out, so it takes no log's place\n";

/// A server's closed log of that work, in a folder.
fn worked(mysql: &'static InstalledTool) -> (Folder, MysqlSandbox) {
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-row-metadata", "FULL").start().unwrap();
    source.flush_binary_logs().unwrap();
    source.sql(WORK).unwrap();
    source.flush_binary_logs().unwrap();
    fs::copy(source.datadir().join("binlog.000002"), folder.path("binlog.000002")).unwrap();
    (folder, source)
}

/// The events of a log: where each begins, its size and its type.
fn events(log: &[u8]) -> Vec<(u64, u32, EventType)> {
    let mut reader = EventReader::new(log);
    let mut events = Vec::new();
    while let Some((offset, frame)) = reader.next_event().unwrap() {
        events.push((offset, frame.header().event_size, frame.event_type()));
    }
    events
}

/// Applies a log to a server, as `mysqlbinlog LOG | mysql`.
fn apply(mysql: &InstalledTool, folder: &Folder, log: &str, server: &MysqlSandbox) {
    let mut binlog = mysql.command("mysqlbinlog");
    let mut text = binlog.arg("--no-defaults").arg(folder.path(log)).stdout(Stdio::piped()).spawn().unwrap();
    let mut client: Command = server.client();
    let applied = client.stdin(text.stdout.take().unwrap()).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    assert!(text.wait().unwrap().success());
}

#[test]
fn a_selection_has_the_rows_of_its_tables_and_all_transactions_where_they_stand_expanded() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = worked(mysql);
    let ran = folder.run(CREATE);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.text());
    let said = ran.text();
    assert!(said.starts_with("binlog.000002: as binlog-selected.000002, without "), "{said}");
    assert!(said.ends_with(&format!("sel: {SELECTION}")) && !said.contains("PURGE"), "{said}");

    // Every event stands where `expand` puts it.
    folder.run(["archive", "restore", "--to", "back", "sel"]).is_done();
    fs::create_dir(folder.path("plain")).unwrap();
    folder.run(["expand", "--output", "plain/", "binlog.000002"]);
    let (expanded, selected) =
        (folder.read("plain/binlog.000002"), folder.read("back/binlog-selected.000002"));
    let of_expanded = events(&expanded);
    let of_selected = events(&selected);
    assert_eq!(of_expanded.len(), of_selected.len());
    let mut fillers = 0;
    for (before, after) in of_expanded.iter().zip(&of_selected) {
        assert_eq!((before.0, before.1), (after.0, after.1));
        if before.2 == after.2 {
            continue;
        }
        assert_eq!(after.2, EventType::IGNORABLE);
        fillers += 1;
    }
    assert!(fillers > 15 && said.contains(&format!("without {fillers} events")), "{fillers}: {said}");
    let texts: Vec<_> = ["a secret", "changed secret", "plain secret", "secret of a statement", "logged "]
        .into_iter()
        .filter(|text| selected.windows(text.len()).any(|bytes| bytes == text.as_bytes()))
        .collect();
    // DDL stays: the trigger has this word in it.
    assert_eq!(texts, ["logged "], "rows of other tables");
    folder.run(["verify", "back/binlog-selected.000002"]).is_done();

    // A server takes it: the chosen table is the source's, the others are empty, and every GTID is there.
    let target = mysql.sandbox().start().unwrap();
    target.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    apply(mysql, &folder, "back/binlog-selected.000002", &target);
    let orders = "SELECT * FROM shop.orders ORDER BY id";
    assert_eq!(target.sql(orders).unwrap(), source.sql(orders).unwrap());
    assert_eq!(source.sql("SELECT COUNT(*) FROM other.secrets").unwrap(), "3\n");
    assert_eq!(
        target.sql("SELECT COUNT(*) FROM other.secrets; SELECT COUNT(*) FROM shop.log_orders").unwrap(),
        "0\n0\n"
    );
    let gtids = |server: &MysqlSandbox| server.gtid_executed().unwrap().trim().to_owned();
    let executed = gtids(&target);
    let archived: Value =
        serde_json::from_str(folder.run(["archive", "list", "--format=json", "sel"]).text()).unwrap();
    assert_eq!(archived["logs"][0]["gtids"], executed.replace('\n', ""), "every transaction, empty ones too");

    // Without a choice of what there is, nothing is changed but payloads.
    let all = ["archive", "create", "--to", "all", "--ignore-table=none.*", "binlog.000002"];
    folder.run(all).is_done();
    folder.run(["archive", "restore", "--to", "all-back", "all"]).is_done();
    let of_all = events(&folder.read("all-back/binlog-selected.000002"));
    let rows_query = |events: &[(u64, u32, EventType)]| {
        events.iter().filter(|(_, _, event_type)| *event_type == EventType::ROWS_QUERY).count()
    };
    assert_eq!((of_all.len(), rows_query(&of_all)), (of_expanded.len(), 0));
}

#[test]
fn who_reads_a_selection_is_told_or_refused() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = worked(mysql);
    folder.run(CREATE).is_done();
    let manifest: Value = serde_json::from_slice(&folder.read("sel/manifest.json")).unwrap();
    // Readers before know versions up to 10, and say so.
    assert_eq!(manifest["version"], 11);
    let selection = serde_json::json!({"tables": ["shop.*"], "ignore_tables": ["shop.log_*"]});
    assert_eq!(manifest["selection"], selection);

    for command in [&["list"][..], &["check"], &["restore", "--to", "back"]] {
        let ran = folder.run(["archive"].iter().chain(command).chain(&["sel"]));
        assert_eq!(
            (ran.code, ran.text().contains(SELECTION)),
            (Some(0), true),
            "{command:?}: {}",
            ran.text()
        );
    }
    for command in [&["list"][..], &["restore", "--force", "--to", "back"]] {
        let ran = folder.run(["archive"].iter().chain(command).chain(&["--format=json", "sel"]));
        let told: Value = serde_json::from_str(ran.text()).unwrap();
        assert_eq!(told["selection"], selection, "{command:?}");
    }
    let told: Value =
        serde_json::from_str(folder.run(["archive", "check", "--format=json", "sel"]).text()).unwrap();
    assert_eq!(told["archives"][0]["selection"], selection);
    let ran = folder.run(["archive", "cat", "sel"]);
    assert!(ran.code == Some(0) && ran.stderr.contains(SELECTION), "{}", ran.stderr);

    // Of programs that would take it for all there was none reads it.
    let refused = "sel: is a selection of tables (shop.*, without shop.log_*): the rows of others were left out, which would go \
                   unnoticed here; `archive restore` gives its logs\n";
    for command in [
        &["undo", "sel"][..],
        &["rows", "shop.orders", "sel"],
        &["stats", "sel"],
        &["dump", "sel"],
        &["incident", "sel"],
    ] {
        let ran = folder.run(command);
        assert!(ran.code == Some(2) && ran.stderr.ends_with(refused), "{command:?}: {}", ran.stderr);
    }
    let ran = folder.run(["stats", "sel/binlog-selected.000002"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is a selection of tables"), "{}", ran.stderr);
    let server = format!("127.0.0.1:{}", source.port());
    for (command, password) in [
        (&["archive", "serve", "--user=repl", "--listen=127.0.0.1:0", "sel"][..], "secret"),
        (&["recover", "--check", "--from=sel", "--no-defaults", "--user=root", "--to", &server], ""),
    ] {
        let mut command = folder.binlogz(command);
        let ran: Ran = command.env("MYSQL_PWD", password).output().unwrap().into();
        assert!(ran.code == Some(2) && ran.stderr.contains("is a selection of tables"), "{}", ran.stderr);
    }
}

#[test]
fn an_archive_is_one_selection_or_none() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, _source) = worked(mysql);
    folder.run(["archive", "create", "--to", "whole", "binlog.000002"]).is_done();
    folder.run(CREATE).is_done();
    let create = |to: &str, more: &[&str]| {
        folder.run(
            ["archive", "create", "--to", to]
                .iter()
                .copied()
                .chain(more.iter().copied())
                .chain(["binlog.000002"]),
        )
    };
    let again = create("sel", &["--table=shop.*", "--ignore-table=shop.log_*"]);
    assert!(
        again.code == Some(0) && again.text().contains("binlog-selected.000002: is in the archive already"),
        "{}",
        again.text()
    );
    for (to, more, found) in [
        ("whole", &["--table=shop.*"][..], "archive is whole logs, expected a selection of tables (shop.*)"),
        ("sel", &[], "archive is a selection of tables (shop.*, without shop.log_*), expected whole logs"),
        (
            "sel",
            &["--table=shop.*"],
            "archive is a selection of tables (shop.*, without shop.log_*), expected a selection",
        ),
    ] {
        let ran = create(to, more);
        assert!(ran.code == Some(2) && ran.stderr.contains(found), "{more:?}: {}", ran.stderr);
    }
    for more in
        [&["--table=shop"][..], &["--table=shop.*", "--include-active"], &["--ignore-table=a.b", "--salvage"]]
    {
        assert_eq!(create("new", more).code, Some(2), "{more:?}");
    }
    assert!(!folder.path("new").exists());
    // A copy is one too, and takes no others.
    folder.run(["archive", "copy", "sel", "copied"]).is_done();
    assert!(folder.run(["archive", "list", "copied"]).text().contains(SELECTION));
    let ran = folder.run(["archive", "copy", "whole", "copied"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("expected whole logs"), "{}", ran.stderr);
    // So is what is packed anew.
    folder.run(["archive", "merge", "--grace", "0", "sel"]).is_done();
    folder.run(["archive", "check", "sel"]).is_done();
    assert!(folder.run(["archive", "list", "sel"]).text().contains(SELECTION));
}

#[test]
fn tables_of_mariadb_and_of_torn_logs_are_refused() {
    require_tool!(Tool::Mariadb);
    let folder = Folder::new();
    let mariadb = MariadbSandbox::start(&[("binlog-format", "ROW")]).unwrap();
    mariadb.sql("CREATE DATABASE d; CREATE TABLE d.t (id INT); INSERT INTO d.t VALUES (1)").unwrap();
    mariadb.flush_binary_logs().unwrap();
    let log = mariadb.binlogs().unwrap().remove(0);
    let bytes = fs::read(log).unwrap();
    folder.put("binlog.000001", &bytes);
    let create = || folder.run(["archive", "create", "--to", "sel", "--table=d.*", "binlog.000001"]);
    let ran = create();
    assert!(ran.code == Some(2) && ran.stderr.contains("log is MariaDB's (10.11"), "{}", ran.stderr);
    folder.sample("plain", "binlog.000009");
    let whole = folder.read("binlog.000009");
    folder.put("binlog.000001", &whole[..whole.len() - 9]);
    let ran = create();
    assert!(ran.code == Some(2) && ran.stderr.contains("it was cut, or is damaged"), "{}", ran.stderr);
}
