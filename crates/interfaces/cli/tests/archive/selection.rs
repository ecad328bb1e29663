//! `archive create --table`: an archive that is a selection of tables, beside real servers: what of a log stays, where it stands, what
//! isn't certain, and who says that it is a selection.

use std::fs;
use std::process::{Command, Stdio};

use binlogz_binlog::EventType;
use binlogz_binlog::reader::EventReader;
use binlogz_testkit::{InstalledTool, MariadbSandbox, MysqlSandbox, SandboxServer, Tool, require_tool};
use serde_json::Value;

use crate::common::{Folder, Ran};

/// Tables that are chosen and others, changed by statements of their own and by common ones: multi-table UPDATE and DELETE, a
/// trigger, XA, LOAD DATA, statements about tables of another database than the session's. Transactions of the others alone, and one
/// larger than what is held in memory at once. What only other tables have is SECRET.
const WORK: &str = "\
CREATE DATABASE shop; CREATE DATABASE other;
CREATE TABLE shop.orders (id INT PRIMARY KEY, note VARCHAR(2000));
CREATE TABLE shop.log_orders (id INT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(2000) DEFAULT 'SECRET');
CREATE TABLE other.private (id INT PRIMARY KEY, note MEDIUMTEXT, kind VARCHAR(30) DEFAULT 'SECRET');
CREATE TRIGGER shop.logged AFTER INSERT ON shop.orders FOR EACH ROW INSERT INTO shop.log_orders (note) VALUES (CONCAT('SECRET ', NEW.note));
INSERT INTO shop.orders VALUES (1, 'one'), (2, 'two');
INSERT INTO other.private (id, note) VALUES (1, 'SECRET'), (2, REPEAT('SECRET ', 200000));
UPDATE shop.orders JOIN other.private USING (id) SET orders.note = CONCAT(orders.note, '!'), private.note = 'SECRET';
BEGIN; INSERT INTO other.private (id, note) VALUES (3, 'SECRET'); INSERT INTO shop.orders VALUES (3, 'three'); DELETE FROM other.private WHERE id = 1; COMMIT;
INSERT INTO other.private (id, note) VALUES (5, 'SECRET');
DELETE shop.orders, other.private FROM shop.orders JOIN other.private USING (id) WHERE id = 3;
XA START 'a'; INSERT INTO shop.orders VALUES (5, 'five'); INSERT INTO other.private (id) VALUES (6); XA END 'a'; XA PREPARE 'a'; XA COMMIT 'a';
USE other; CREATE TABLE shop.items (id INT PRIMARY KEY, body TEXT); INSERT INTO shop.items VALUES (1, 'an item'); ALTER TABLE shop.items ADD more INT DEFAULT 3;
CREATE TABLE shop.gone (id INT); CREATE TABLE hidden (id INT); DROP TABLE shop.gone, hidden;
USE shop; CREATE TABLE other.hidden (id INT COMMENT 'SECRET'); INSERT INTO other.hidden VALUES (1); CREATE TABLE other.unused (id INT); DROP TABLE IF EXISTS other.unused; CREATE TABLE other.unused (id INT); ALTER TABLE other.hidden ADD `SECRET` INT;
RENAME TABLE other.hidden TO other.hidden2; CREATE INDEX by_secret ON other.hidden2 (`SECRET`);
CREATE TABLE old (id INT PRIMARY KEY); INSERT INTO old VALUES (1), (2); RENAME TABLE old TO new; TRUNCATE new; INSERT INTO new VALUES (7); INSERT INTO new VALUES (8);
CREATE TABLE gone (id INT); INSERT INTO gone VALUES (1); DROP TABLE gone, other.hidden2;
INSERT INTO orders VALUES (4, 'four');
";
/// Prepared transactions of other tables alone.
const OTHERS_XA: &str = "\
XA START 'b'; INSERT INTO other.private (id) VALUES (7); XA END 'b'; XA PREPARE 'b'; XA ROLLBACK 'b';
XA START 'c'; INSERT INTO other.private (id) VALUES (9); XA END 'c'; XA PREPARE 'c'; XA COMMIT 'c';
XA START 'd'; INSERT INTO other.private (id) VALUES (12); XA END 'd'; XA COMMIT 'd' ONE PHASE;
";
/// One that ends in the next log.
const OPEN_XA: &str = "XA START 'e'; INSERT INTO other.private (id) VALUES (13); XA END 'e'; XA PREPARE 'e'";
/// Rows of a chosen table by a query, and of another one.
const COPIES: &str = "CREATE TABLE shop.copied (id INT PRIMARY KEY) SELECT id FROM other.private; CREATE TABLE other.copied SELECT *, 'SECRET' FROM shop.orders;
CREATE VIEW other.seen AS SELECT 'SECRET'; CREATE USER 'secret_user'@'localhost'; GRANT SELECT ON other.* TO 'secret_user'@'localhost';";
const CHOICE: [&str; 2] = ["--table=shop.*", "--ignore-table=shop.log_*"];
/// The line that commands have.
const SELECTION: &str = "a selection of tables (shop.*, without shop.log_*): others were left out, so no log may be purged for it\n";
/// The tables of the work that are chosen.
const TABLES: [&str; 4] = ["orders", "items", "new", "copied"];

fn create(folder: &Folder, to: &str, more: &[&str], log: &str) -> Ran {
    folder.run(["archive", "create", "--to", to].iter().chain(more).chain(&[log]))
}

/// A server's closed log of that work, in a folder.
fn worked(mysql: &'static InstalledTool) -> (Folder, MysqlSandbox) {
    let folder = Folder::new();
    let source = mysql.sandbox().compression(3).option("binlog-row-metadata", "FULL");
    let source = source.option("secure-file-priv", "").start().unwrap();
    source.flush_binary_logs().unwrap();
    let loaded = folder.put("loaded.csv", "10\tloaded\n11\tloaded, too\n");
    let load = |table: &str| format!("LOAD DATA INFILE '{}' INTO TABLE {table};", loaded.display());
    let (own, others) = (load("shop.orders"), load("other.private (id, note)"));
    // A part with the statements beside rows, and without payloads.
    let plain = "SET SESSION binlog_rows_query_log_events = ON; INSERT INTO other.private (id, note) VALUES (4, 'SECRET of a statement');
                 SET SESSION binlog_transaction_compression = OFF; INSERT INTO other.private (id, note) VALUES (8, 'SECRET');";
    source.sql(&[WORK, OTHERS_XA, COPIES, &own, &others, plain].concat()).unwrap();
    source.flush_binary_logs().unwrap();
    fs::copy(source.datadir().join("binlog.000002"), folder.path("binlog.000002")).unwrap();
    (folder, source)
}

/// The events of a log: where each begins and its type.
fn events(log: &[u8]) -> Vec<(u64, EventType)> {
    let mut reader = EventReader::new(log);
    let mut events = Vec::new();
    while let Some((offset, frame)) = reader.next_event().unwrap() {
        events.push((offset, frame.event_type()));
    }
    events
}

fn has(log: &[u8], text: &str) -> bool {
    log.windows(text.len()).any(|bytes| bytes == text.as_bytes())
}

/// Applies a log to a server, as `mysqlbinlog LOG | mysql`.
fn apply(tool: &InstalledTool, program: &str, folder: &Folder, log: &str, mut client: Command) {
    let mut binlog = tool.command(program);
    let mut text = binlog.arg("--no-defaults").arg(folder.path(log)).stdout(Stdio::piped()).spawn().unwrap();
    let applied = client.stdin(text.stdout.take().unwrap()).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    assert!(text.wait().unwrap().success());
}

/// All rows and the definition of a table.
fn contents(server: &SandboxServer, table: &str) -> String {
    server.sql(&format!("SHOW CREATE TABLE shop.{table}; SELECT * FROM shop.{table} ORDER BY 1")).unwrap()
}

#[test]
fn a_selection_has_its_tables_and_all_transactions_where_they_stand_expanded() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = worked(mysql);
    let ran = create(&folder, "sel", &CHOICE, "binlog.000002");
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.text());
    let said = ran.text();
    assert!(said.starts_with("binlog.000002: as binlog-selected.000002, without "), "{said}");
    assert!(said.ends_with(&format!("sel: {SELECTION}")) && !said.contains("PURGE"), "{said}");

    // Every event stands where `expand` puts it; only a statement's place may have several.
    folder.run(["archive", "restore", "--to", "back", "sel"]).is_done();
    fs::create_dir(folder.path("plain")).unwrap();
    folder.run(["expand", "--output", "plain/", "binlog.000002"]);
    let (expanded, selected) =
        (folder.read("plain/binlog.000002"), folder.read("back/binlog-selected.000002"));
    assert_eq!(expanded.len(), selected.len());
    let of_selected = events(&selected);
    let mut rows = 0;
    for (offset, before) in events(&expanded) {
        let Some((_, after)) = of_selected.iter().find(|(at, _)| *at == offset) else {
            assert_eq!(before, EventType::XA_PREPARE, "{offset}: no event begins there");
            continue;
        };
        rows += usize::from(*after == EventType::IGNORABLE && before != EventType::QUERY);
        assert!(before == *after || *after == EventType::IGNORABLE, "{offset}: {before} became {after}");
    }
    assert!(rows > 15 && said.contains(&format!("without {rows} events of rows and ")), "{rows}: {said}");
    assert!(has(&expanded, "SECRET") && !has(&selected, "SECRET") && !has(&selected, "secret"));
    assert!(has(&selected, "left out\x05other\x07private"));
    folder.run(["verify", "back/binlog-selected.000002"]).is_done();

    // A server takes it: the chosen tables are the source's, there are no others, and every GTID is there.
    let target = mysql.sandbox().start().unwrap();
    target.sql("RESET BINARY LOGS AND GTIDS").unwrap();
    apply(mysql, "mysqlbinlog", &folder, "back/binlog-selected.000002", target.client());
    for table in TABLES {
        let rows = contents(&source, table);
        assert!(rows.lines().count() > 1, "{table}: {rows}");
        assert_eq!(contents(&target, table), rows, "{table}");
    }
    let tables = "SELECT COUNT(*), COUNT(DISTINCT table_schema) FROM information_schema.tables WHERE table_schema IN ('shop', 'other')";
    assert_eq!(target.sql(tables).unwrap(), format!("{}\t1\n", TABLES.len()));
    let executed = target.gtid_executed().unwrap().replace('\n', "");
    let archived: Value =
        serde_json::from_str(folder.run(["archive", "list", "--format=json", "sel"]).text()).unwrap();
    assert_eq!(archived["logs"][0]["gtids"], executed, "every transaction, empty ones too");

    // Whoever reads a restored log is told of rows that aren't there.
    let read = |more: &[&str]| folder.run(more.iter().chain(&["back/binlog-selected.000002"]));
    let ran = read(&["rows", "other.private"]);
    assert!(
        ran.code != Some(0) && ran.stderr.contains("event of other.private: rows were left out"),
        "{}",
        ran.stderr
    );
    let ran = read(&["rows", "other.unused"]);
    assert!(
        ran.code != Some(0)
            && ran.stderr.contains("event of other.unused: a statement about it was left out")
            && ran.stderr.contains("(and 2 more like it)"),
        "{}",
        ran.stderr
    );
    let ran = read(&["rows", "shop.orders"]);
    assert_eq!((ran.code, ran.stderr.contains("left out")), (Some(0), false), "{}", ran.stderr);
    for command in [
        &["dump", "--format=json"][..],
        &["undo"],
        &["redo"],
        &["fold", "--to=-"],
        &["undo", "--table=other.private"],
    ] {
        let ran = read(command);
        assert!(
            ran.code.is_some_and(|code| code > 0)
                && ran.stderr.contains("event of other.private: rows were left out"),
            "{command:?}: {:?} {}",
            ran.code,
            ran.stderr
        );
    }
}

#[test]
fn statements_that_can_not_be_told_stay_and_are_named() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let source = mysql.sandbox().start().unwrap();
    source.sql("CREATE DATABASE shop; CREATE DATABASE other; CREATE TABLE other.a (id INT); INSERT INTO other.a VALUES (1)").unwrap();
    let mut number = 1;
    let mut log = |statements: &str| {
        source.flush_binary_logs().unwrap();
        source.sql(statements).unwrap();
        source.flush_binary_logs().unwrap();
        number += 2;
        let name = format!("binlog.{:06}", number - 1);
        fs::copy(source.datadir().join(&name), folder.path(&name)).unwrap();
        name
    };
    for (to, statements, expected) in [
        ("a", "RENAME TABLE other.a TO shop.a", "1 statement, the first at "),
        (
            "b",
            "CREATE TABLE other.b LIKE shop.a; CREATE TABLE shop.b LIKE other.b",
            "name chosen tables and others",
        ),
        (
            "p",
            "CREATE TABLE other.p (id INT PRIMARY KEY); USE other; CREATE TABLE shop.c (id INT, FOREIGN KEY (id) REFERENCES other.p (id))",
            "give chosen tables foreign keys to others",
        ),
        (
            "c",
            "SET SESSION binlog_format = STATEMENT; INSERT INTO other.b VALUES (3)",
            "may change rows of any tables",
        ),
        (
            "d",
            "CREATE TABLE shop.`Order` (id INT); INSERT INTO shop.`Order` VALUES (1)",
            "rows of shop.Order were left out",
        ),
    ] {
        let name = log(statements);
        let tables = if to == "d" { "--table=shop.order" } else { "--table=shop.*" };
        let ran = create(&folder, to, &[tables], &name);
        assert!(ran.code == Some(1) && ran.stderr.contains(expected), "{to} {:?}: {}", ran.code, ran.stderr);
        assert!(ran.stderr.starts_with(&format!("binlogz: {name}: ")), "{}", ran.stderr);
        folder.run(["archive", "check", to]).is_done();
    }
    // MySQL's shortest statements leave no room for names: that there was one is told.
    let name = log(
        "CREATE TABLE shop.whole (id INT PRIMARY KEY); INSERT INTO shop.whole VALUES (1); CREATE TABLE other.b2345678 (id INT); TRUNCATE other.b2345678",
    );
    create(&folder, "g", &["--table=shop.*"], &name).is_done();
    folder.run(["archive", "restore", "--to", "back", "g"]).is_done();
    let ran = folder.run(["rows", "shop.whole", &format!("back/{}", name.replace('.', "-selected."))]);
    let told =
        "Ignorable event: a statement about tables that were not chosen was left out when the log was made";
    assert!(ran.code == Some(1) && ran.stderr.contains(told), "{:?} {}", ran.code, ran.stderr);
    // A name that no table has is told.
    let name = log("CREATE TABLE shop.there (id INT); INSERT INTO shop.there VALUES (1)");
    let ran = create(&folder, "f", &["--table=shop.there", "--table=shop.their"], &name);
    assert!(
        ran.code == Some(0) && ran.text().contains("\nshop.their: has no rows in these logs\n"),
        "{}",
        ran.text()
    );
    assert!(!ran.text().contains("shop.there: has no rows"), "{}", ran.text());
    // Names that differ in case alone are other tables here, and their statements stay.
    let name = log("CREATE TABLE shop.kept (id INT); CREATE TABLE shop.Kept (id INT); DROP TABLE shop.Kept");
    let ran = create(&folder, "e", &["--table=shop.kept"], &name);
    assert!(ran.code == Some(0) && ran.text().contains("and 0 statements"), "{}", ran.text());
}

#[test]
fn who_reads_a_selection_is_told_or_refused() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, source) = worked(mysql);
    create(&folder, "sel", &CHOICE, "binlog.000002").is_done();
    let manifest: Value = serde_json::from_slice(&folder.read("sel/manifest.json")).unwrap();
    // Readers before know versions up to 14, and say so.
    assert_eq!(manifest["version"], 15);
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
    let ran = folder.run(["archive", "list", "--archives", "."]);
    assert!(ran.text().contains("sel (a selection of tables)"), "{}", ran.text());
    let ran = folder.run(["archive", "list", "--format=prometheus", "sel"]);
    assert!(ran.text().contains("binlogz_archive_is_selection{archive=\"sel\"} 1\n"), "{}", ran.text());
    assert!(!ran.text().contains("last_restorable_timestamp_seconds{"), "{}", ran.text());
    let ran = folder.run(["archive", "cat", "sel"]);
    assert!(ran.code == Some(0) && ran.stderr.contains(SELECTION), "{}", ran.stderr);
    folder.put("fleet.toml", "[[archive]]\nto = \"sel\"\n");
    let ran = folder.run(["fleet", "--targets=fleet.toml"]);
    assert!(
        ran.text().contains("Selection") && ran.text().contains("no log may be purged"),
        "{}",
        ran.text()
    );

    // Programs that would take it for all there was don't read it.
    let refused = "sel: is a selection of tables (shop.*, without shop.log_*), expected whole logs: others were left out, which would \
                   go unnoticed here; `archive restore` gives its logs\n";
    for command in [
        &["undo", "sel"][..],
        &["rows", "shop.orders", "sel"],
        &["rows", "other.private", "sel"],
        &["stats", "sel"],
        &["dump", "sel"],
        &["incident", "sel"],
    ] {
        let ran = folder.run(command);
        // As mysqlbinlog, which ends so.
        let code = if command[0] == "dump" { 1 } else { 2 };
        assert!(ran.code == Some(code) && ran.stderr.contains(refused), "{command:?}: {}", ran.stderr);
    }
    let ran = folder.run(["stats", "sel/binlog-selected.000002"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("is a selection of tables"), "{}", ran.stderr);
    folder.run(["archive", "restore", "--to", "named", "sel"]).is_done();
    let server = format!("127.0.0.1:{}", source.port());
    for (command, password) in [
        (&["archive", "serve", "--user=repl", "--listen=127.0.0.1:0", "sel"][..], "secret"),
        (
            &["archive", "serve", "--user=repl", "--listen=127.0.0.1:0", "named/binlog-selected.000002"],
            "secret",
        ),
        (&["recover", "--check", "--from=sel", "--no-defaults", "--user=root", "--to", &server], ""),
        (
            &[
                "table-at",
                "--no-defaults",
                "--user=root",
                "--server",
                &server,
                "--at=2026-01-01 00:00:00",
                "shop.orders",
                "sel",
            ],
            "",
        ),
    ] {
        let mut command = folder.binlogz(command);
        let ran: Ran = command.env("MYSQL_PWD", password).output().unwrap().into();
        let is_told = ran.stderr.contains("is a selection of tables")
            || ran.stderr.contains("is named binlog-selected.000002 as a selection of tables");
        assert!(ran.code == Some(2) && is_told, "{}", ran.stderr);
    }
}

#[test]
fn an_archive_is_one_selection_or_none() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, _source) = worked(mysql);
    create(&folder, "whole", &[], "binlog.000002").is_done();
    create(&folder, "sel", &CHOICE, "binlog.000002").is_done();
    let again = create(&folder, "sel", &CHOICE, "binlog.000002");
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
        let ran = create(&folder, to, more, "binlog.000002");
        assert!(ran.code == Some(2) && ran.stderr.contains(found), "{more:?}: {}", ran.stderr);
    }
    for more in
        [&["--table=shop"][..], &["--table=shop.*", "--include-active"], &["--ignore-table=a.b", "--salvage"]]
    {
        assert_eq!(create(&folder, "new", more, "binlog.000002").code, Some(2), "{more:?}");
    }
    assert!(!folder.path("new").exists());
    // A copy is one too, and takes no others.
    let ran = folder.run(["archive", "copy", "sel", "copied"]);
    assert!(ran.code == Some(0) && ran.text().ends_with(&format!("copied: {SELECTION}")), "{}", ran.text());
    assert!(folder.run(["archive", "list", "copied"]).text().contains(SELECTION));
    let ran = folder.run(["archive", "copy", "whole", "copied"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("expected whole logs"), "{}", ran.stderr);
    // So is what is packed anew.
    folder.run(["archive", "merge", "--grace", "0", "sel"]).is_done();
    folder.run(["archive", "check", "sel"]).is_done();
    assert!(folder.run(["archive", "list", "sel"]).text().contains(SELECTION));
    // The manifest's checksum has the selection in it.
    let manifest = String::from_utf8(folder.read("sel/manifest.json")).unwrap();
    folder.put("sel/manifest.json", manifest.replace("shop.log_*", "shop.lag_*"));
    let ran = folder.run(["archive", "check", "sel"]);
    assert!(ran.code != Some(0), "{}", ran.text());
    let object = folder.segment("copied");
    let mut bytes = fs::read(&object).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&object, bytes).unwrap();
    let ran = folder.run(["archive", "check", "copied"]);
    assert!(ran.code == Some(1) && ran.text().contains("binlog-selected.000002"), "{}", ran.text());
}

#[test]
fn an_encrypted_selection_and_one_of_all_tables() {
    let mysql = require_tool!(Tool::Mysql);
    let (folder, _source) = worked(mysql);
    folder.put_secret("key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    let run = |arguments: &[&str]| {
        let mut command = folder.binlogz(arguments);
        let ran: Ran = command.env("BINLOGZ_ARCHIVE_KEY_FILE", folder.path("key")).output().unwrap().into();
        assert_eq!(ran.code, Some(0), "{arguments:?}: {}", ran.stderr);
        ran
    };
    run(&["archive", "create", "--to", "sel", CHOICE[0], CHOICE[1], "binlog.000002"]);
    assert!(run(&["archive", "list", "sel"]).text().contains(SELECTION));
    run(&["archive", "restore", "--to", "back", "sel"]);
    create(&folder, "plain", &CHOICE, "binlog.000002").is_done();
    folder.run(["archive", "restore", "--to", "plain-back", "plain"]).is_done();
    let selected = folder.read("back/binlog-selected.000002");
    assert!(selected == folder.read("plain-back/binlog-selected.000002"), "the same log");

    // If all is chosen, payloads are expanded, and what has no tables is left out.
    create(&folder, "all", &["--ignore-table=none.*"], "binlog.000002").is_done();
    folder.run(["archive", "restore", "--to", "all-back", "all"]).is_done();
    let all = folder.read("all-back/binlog-selected.000002");
    let count = |wanted| events(&all).iter().filter(|(_, event_type)| *event_type == wanted).count();
    assert_eq!((count(EventType::ROWS_QUERY), count(EventType::TRANSACTION_PAYLOAD)), (0, 0));
    assert!(has(&all, "SECRET") && !has(&all, "secret_user"));
}

#[test]
fn logs_of_mariadb_are_selected_too_and_torn_ones_are_refused() {
    let mariadb = require_tool!(Tool::Mariadb);
    for (case, names) in [("0", "Shop"), ("1", "shop")] {
        let folder = Folder::new();
        let options =
            [("binlog-format", "ROW"), ("log-bin-compress", "ON"), ("lower-case-table-names", case)];
        let source = MariadbSandbox::start(&options).unwrap();
        source.flush_binary_logs().unwrap();
        source.sql(&[WORK, OTHERS_XA].concat().replace("shop", "Shop")).unwrap();
        source.sql("CREATE TABLE Shop.copied (id INT PRIMARY KEY) SELECT id FROM other.private; CREATE SEQUENCE other.numbers; DROP SEQUENCE other.numbers").unwrap();
        source.flush_binary_logs().unwrap();
        let log = source.binlogs().unwrap().into_iter().rev().nth(1).unwrap();
        let name = log.file_name().unwrap().to_str().unwrap();
        fs::copy(&log, folder.path(name)).unwrap();
        let choice = [format!("--table={names}.*"), format!("--ignore-table={names}.log_*")];
        let choice: Vec<&str> = choice.iter().map(String::as_str).collect();
        let ran = create(&folder, "sel", &choice, name);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{case}: {}", ran.text());
        folder.run(["archive", "restore", "--to", "back", "sel"]).is_done();
        let selected = format!("back/{}", name.replace('.', "-selected."));
        let bytes = folder.read(&selected);
        assert!(!has(&bytes, "SECRET") && has(&bytes, "left out\x05other\x07private"), "{case}");

        let target = MariadbSandbox::start(&[("lower-case-table-names", case)]).unwrap();
        apply(mariadb, "mariadb-binlog", &folder, &selected, target.client());
        let contents = |server: &SandboxServer, table: &str| {
            server
                .sql(&format!("SHOW CREATE TABLE {names}.{table}; SELECT * FROM {names}.{table} ORDER BY 1"))
                .unwrap()
        };
        for table in TABLES {
            let rows = contents(&source, table);
            assert!(rows.lines().count() > 1, "{case} {table}: {rows}");
            assert_eq!(contents(&target, table), rows, "{case} {table}");
        }
        let tables = "SELECT COUNT(*), COUNT(DISTINCT table_schema) FROM information_schema.tables WHERE table_schema IN ('shop', 'other')";
        assert_eq!(target.sql(tables).unwrap(), format!("{}\t1\n", TABLES.len()), "{case}");
        // A client's empty transactions have no GTIDs there; those of the log are all of the source's.
        let gtids = |log: &[u8]| {
            events(log)
                .into_iter()
                .filter(|(_, event_type)| *event_type == EventType::MARIADB_GTID)
                .collect::<Vec<_>>()
        };
        assert_eq!(gtids(&bytes), gtids(&folder.read(name)), "{case}: every transaction, where it stood");
        source.sql(OPEN_XA).unwrap();
        source.flush_binary_logs().unwrap();
        source.sql("XA ROLLBACK 'e'").unwrap();
        source.flush_binary_logs().unwrap();
        let log = source.binlogs().unwrap().into_iter().rev().nth(2).unwrap();
        fs::copy(&log, folder.path("prepared.000001")).unwrap();
        let ran = create(&folder, "prepared", &choice, "prepared.000001");
        assert!(ran.code == Some(1) && ran.stderr.contains("1 statement, the first at "), "{}", ran.stderr);
        assert!(ran.stderr.contains("prepare XA transactions of which no rows stay"), "{}", ran.stderr);
        if case == "1" {
            // Names as they were typed fit no name as it is stored.
            let ran = create(&folder, "typed", &["--table=Shop.*"], name);
            assert!(
                ran.code == Some(1) && ran.stderr.contains("rows of shop.orders were left out"),
                "{}",
                ran.stderr
            );
        }
    }
    let folder = Folder::new();
    folder.sample("plain", "binlog.000009");
    let whole = folder.read("binlog.000009");
    folder.put("binlog.000001", &whole[..whole.len() - 9]);
    let ran = create(&folder, "sel", &["--table=d.*"], "binlog.000001");
    assert!(ran.code == Some(2) && ran.stderr.contains("it was cut, or is damaged"), "{}", ran.stderr);
}
