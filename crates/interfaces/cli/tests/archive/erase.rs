//! `archive erase` on real servers' logs: what was erased is nowhere, everything else is as it was, and servers take what is left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use binlogz_archive::format::Manifest;
use binlogz_archive::storage::{ArchiveFolder, ArchiveStorage};
use binlogz_binlog::event::FormatDescription;
use binlogz_binlog::{EventType, Framing};
use binlogz_testkit::{InstalledTool, MariadbSandbox, MysqlSandbox, Result, Tool, require_tool};

use crate::common::{Folder, Ran};

/// Values of the person, each nowhere else.
const PLANTED: [&str; 6] = [
    "Ermintrude-Planted",
    "planted.one@example.org",
    "planted.two@example.org",
    "note-planted-long-text",
    "document-planted",
    "partial-planted",
];

/// What the servers log of this.
const TABLES: &str = "CREATE DATABASE shop; USE shop;
    CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, email VARCHAR(60), note TEXT, doc JSON, born DATE NOT NULL,
        balance DECIMAL(9,2) NOT NULL, seen DATETIME(3) NOT NULL, size ENUM('s','m') NOT NULL);
    CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, text VARCHAR(100));";
/// The part of these statements with texts in quotes: without it no definition may hold a value.
const SIZE_COLUMN: &str = ", size ENUM('s','m') NOT NULL";

/// The changes of the log of this number.
fn changes(number: usize) -> String {
    let row = |id: usize, name: &str, email: &str| {
        format!(
            "({id}, '{name}', '{email}', 'note of {id}', '{{\"a\": {id}}}', '1970-01-02', 12.34, '2020-01-02 03:04:05.678')"
        )
    };
    let all: Vec<_> = (0..60)
        .map(|index| number * 1000 + index)
        .map(|id| row(id, &format!("customer {id}"), &format!("c{id}@example.org")))
        .collect();
    let mut sql = format!("USE shop; INSERT INTO customers VALUES {};", all.join(","));
    sql += match number {
        1 => {
            "INSERT INTO customers VALUES (43, 'other', 'o@example.org', 'x', NULL, '1980-01-01', 1, '2021-01-01'),
                (42, 'Ermintrude-Planted', 'planted.one@example.org', 'note-planted-long-text',
                 '{\"k\": \"document-planted\", \"l\": 1}', '1977-07-07', 77.77, '2022-02-02 02:02:02.222'),
                (44, 'other', 'p@example.org', 'y', NULL, '1980-01-01', 1, '2021-01-01');
             INSERT INTO orders (customer, text) VALUES (42, 'an order');
             UPDATE customers SET email = 'planted.two@example.org' WHERE id = 42;"
        }
        2 => {
            "UPDATE customers SET doc = JSON_SET(doc, '$.l', 'partial-planted') WHERE id = 42;
             UPDATE customers SET balance = balance + 1 WHERE id IN (42, 43, 44);
             UPDATE orders SET text = 'another';"
        }
        _ => "DELETE FROM customers WHERE id = 42; DELETE FROM customers WHERE id = 43;",
    };
    sql
}

/// A server with the given settings, whose logs are archived, each by a run of its own or all by one.
struct ErasedArchive {
    server: MysqlSandbox,
    folder: Folder,
    logs: Vec<PathBuf>,
}

impl ErasedArchive {
    fn new(mysql: &'static InstalledTool, settings: &str, is_one_run: bool) -> Result<Self> {
        let server = mysql.sandbox().start()?;
        server.sql(settings)?;
        server.sql(&TABLES.replace(SIZE_COLUMN, ""))?;
        let folder = Folder::new();
        let mut logs = Vec::new();
        for number in 1..=4 {
            server.sql(&changes(number))?;
            let log = server.flush_binary_logs()?;
            let name = log.file_name().unwrap().to_str().unwrap().to_owned();
            fs::copy(&log, folder.path(&name)).unwrap();
            logs.push(folder.path(&name));
        }
        let archived = ErasedArchive { server, folder, logs };
        let runs: Vec<&[PathBuf]> =
            if is_one_run { vec![&archived.logs] } else { archived.logs.chunks(1).collect() };
        for run in runs {
            let create = ["archive", "create", "--to", "arc"].map(PathBuf::from);
            archived.folder.run(create.iter().chain(run)).is_done();
        }
        Ok(archived)
    }

    fn erase(&self, options: &[&str]) -> Ran {
        let front = ["archive", "erase", "arc", "--texts", "--table", "shop.customers", "--where", "id = 42"];
        self.folder.run(front.iter().chain(options))
    }

    fn manifest(&self) -> Manifest {
        Manifest::read(&ArchiveFolder::new(self.folder.path("arc"))).unwrap().unwrap()
    }

    /// The logs of the archive, restored, by name; and their bytes without payloads.
    fn restored(&self, to: &str) -> Vec<(PathBuf, Vec<u8>)> {
        self.folder.run(["archive", "restore", "--to", to, "arc"]).has_worked();
        let of = |file: &binlogz_archive::format::FileEntry| {
            let path = self.folder.path(to).join(&file.name);
            let expanded = self.folder.run(["expand", "-o", "-", path.to_str().unwrap()]);
            assert_eq!(expanded.code, Some(0), "{}", expanded.stderr);
            (path, expanded.stdout)
        };
        self.manifest().files.iter().map(of).collect()
    }

    /// The objects that are stored: those of the manifest, its copy, and no other.
    fn has_no_other_objects(&self) {
        let named: std::collections::BTreeSet<String> = self
            .manifest()
            .files
            .iter()
            .flat_map(|file| &file.objects)
            .map(|object| object.to_string())
            .collect();
        let stored = ArchiveFolder::new(self.folder.path("arc")).stored().unwrap();
        let segments =
            stored.iter().map(|object| object.name.clone()).filter(|name| name.ends_with(".binlogz"));
        assert_eq!(segments.collect::<std::collections::BTreeSet<_>>(), named);
    }
}

/// Whether a command that may have notes succeeded.
trait HasWorked {
    fn has_worked(&self);
}

impl HasWorked for Ran {
    #[track_caller]
    fn has_worked(&self) {
        assert_eq!(self.code, Some(0), "{}{}", self.text(), self.stderr);
    }
}

/// How often values of the person are in some bytes.
fn planted_in(bytes: &[u8]) -> usize {
    let count =
        |planted: &str| bytes.windows(planted.len()).filter(|window| *window == planted.as_bytes()).count();
    PLANTED.iter().map(|planted| count(planted)).sum()
}

/// The events of a log without payloads: type, size, bytes without position and checksum.
fn events(log: &[u8]) -> Vec<(EventType, Vec<u8>)> {
    let first = Framing::new().next_frame(&log[4..]).unwrap().unwrap().verify().unwrap();
    let framing = Framing::of(&FormatDescription::decode_frame(&first).unwrap());
    let mut rest = &log[4 + first.bytes().len()..];
    let mut offset = 4 + first.bytes().len();
    let mut all = vec![(EventType::FORMAT_DESCRIPTION, first.bytes().to_vec())];
    while !rest.is_empty() {
        let frame = framing.next_frame(rest).unwrap().unwrap().verify().unwrap();
        offset += frame.bytes().len();
        assert_eq!(frame.header().end_log_pos as usize, offset, "{}", frame.event_type());
        let mut bytes = frame.without_checksum().to_vec();
        // Its position.
        bytes[13..17].fill(0);
        all.push((frame.event_type(), bytes));
        rest = &rest[frame.bytes().len()..];
    }
    all
}

/// Whether events of a type may be others, or gone.
fn may_differ(event_type: EventType) -> bool {
    event_type.is_gtid()
        || [
            EventType::WRITE_ROWS,
            EventType::UPDATE_ROWS,
            EventType::DELETE_ROWS,
            EventType::PARTIAL_UPDATE_ROWS,
        ]
        .contains(&event_type)
}

/// How many events differ; those that do are of rows, or GTIDs whose transaction has another length.
#[track_caller]
fn differences(before: &[u8], after: &[u8]) -> usize {
    let is_text = |(event_type, _): &(EventType, Vec<u8>)| *event_type == EventType::ROWS_QUERY;
    let (mut before, mut after) = (events(before), events(after));
    before.retain(|event| !is_text(event));
    after.retain(|event| !is_text(event));
    assert_eq!(before.len(), after.len());
    let differing: Vec<_> = before.iter().zip(&after).filter(|(one, other)| one != other).collect();
    assert!(differing.iter().all(|((one, _), (other, _))| one == other && may_differ(*one)), "{differing:?}");
    differing.iter().filter(|((event_type, _), _)| !event_type.is_gtid()).count()
}

fn through_mysqlbinlog(target: &MysqlSandbox, log: &Path) -> Result<()> {
    let options = ["--no-defaults", "--verify-binlog-checksum"].map(AsRef::as_ref);
    let printed = target.installed().run("mysqlbinlog", options.into_iter().chain([log.as_os_str()]))?;
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let script = log.with_extension("sql");
    fs::write(&script, printed.stdout).unwrap();
    let ran = target.client().stdin(File::open(script).unwrap()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(())
}

const SETTINGS: [(&str, bool); 3] = [
    ("SELECT 1", false),
    ("SET GLOBAL binlog_transaction_compression = ON, GLOBAL binlog_rows_query_log_events = ON", true),
    (
        "SET GLOBAL binlog_row_image = MINIMAL, GLOBAL binlog_row_value_options = PARTIAL_JSON, \
         GLOBAL binlog_transaction_compression = ON",
        false,
    ),
];

#[test]
fn erased_columns_are_nowhere_and_servers_take_what_is_left() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (settings, is_one_run) in SETTINGS {
        println!("{settings}");
        let archived = ErasedArchive::new(mysql, settings, is_one_run)?;
        let before = archived.restored("before");
        assert!(before.iter().map(|(_, log)| planted_in(log)).sum::<usize>() > 5);
        let columns = ["--null", "email,note,doc", "--blank", "name,born,balance,seen"];
        let text = archived.manifest();
        let dry = archived.erase(&columns);
        assert_eq!(dry.code, Some(0), "{}{}", dry.text(), dry.stderr);
        assert!(dry.text().contains("nothing was changed"), "{}", dry.text());
        assert_eq!(archived.manifest(), text);
        let done = archived.erase(&[&columns[..], &["--execute", "--grace", "0"]].concat());
        assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.text());
        archived.has_no_other_objects();
        let after = archived.restored("after");
        assert_eq!(after.iter().map(|(_, log)| planted_in(log)).sum::<usize>(), 0, "{}", done.text());
        // INSERT and UPDATE, two UPDATEs, DELETE, and a log without such a row.
        let differing: Vec<_> =
            before.iter().zip(&after).map(|((_, before), (_, after))| differences(before, after)).collect();
        let expected = if settings.contains("MINIMAL") { [2, 2, 0, 0] } else { [2, 2, 1, 0] };
        assert_eq!(differing, expected);
        // Its texts name the table.
        if !settings.contains("rows_query") {
            assert!(fs::read(&after[3].0).unwrap() == fs::read(&archived.logs[3]).unwrap());
        }
        archived.folder.run(["archive", "check", "arc"]).has_worked();
        let target = mysql.sandbox().start()?;
        for (number, (log, _)) in after.iter().enumerate() {
            if number == 2 {
                let row = "SELECT name, email, note, doc, born, balance FROM shop.customers WHERE id = 42";
                assert_eq!(target.sql(row)?.trim_end_matches('\n'), "\tNULL\tNULL\tNULL\t0000-00-00\t0.00");
            }
            through_mysqlbinlog(&target, log)?;
        }
        assert_eq!(target.checksum_tables("shop")?, archived.server.checksum_tables("shop")?);
        // Nothing is left to erase, and the server's own log doesn't bring it back.
        let again = archived.erase(&[&columns[..], &["--execute"]].concat());
        assert_eq!(again.code, Some(1), "{}", again.text());
        assert!(again.text().starts_with("shop.customers: nothing to erase; "), "{}", again.text());
        let create = ["archive", "create", "--to", "arc"].map(PathBuf::from);
        archived.folder.run(create.iter().chain(&archived.logs)).is_done();
        assert_eq!(archived.restored("again").iter().map(|(_, log)| planted_in(log)).sum::<usize>(), 0);
    }
    Ok(())
}

#[test]
fn row_changes_are_taken_out_and_the_transactions_stay() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for (settings, is_one_run) in SETTINGS {
        println!("{settings}");
        let archived = ErasedArchive::new(mysql, settings, is_one_run)?;
        let done = archived.erase(&["--rows", "--execute", "--grace", "0"]);
        assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.text());
        archived.has_no_other_objects();
        let after = archived.restored("after");
        assert_eq!(after.iter().map(|(_, log)| planted_in(log)).sum::<usize>(), 0);
        let target = mysql.sandbox().start()?;
        for (number, (log, _)) in after.iter().enumerate() {
            through_mysqlbinlog(&target, log)?;
            if number == 1 {
                assert_eq!(
                    target.sql("SELECT COUNT(*) FROM shop.customers WHERE id IN (42, 43, 44)")?.trim(),
                    "2"
                );
            }
        }
        assert_eq!(target.checksum_tables("shop")?, archived.server.checksum_tables("shop")?);
        let gone = "SELECT GTID_SUBTRACT(@@GLOBAL.gtid_executed, '')";
        let (own, source) = (target.sql(gone)?, archived.server.sql(gone)?);
        let counts = |set: &str| set.trim().rsplit([':', '-']).next().unwrap().to_owned();
        assert_eq!(counts(&own), counts(&source));
        let rows = archived.folder.run(["rows", "shop.customers", "--where", "@1 = 42", "arc"]);
        assert_eq!(rows.code, Some(1), "{}", rows.text());
    }
    Ok(())
}

#[test]
fn logs_of_mariadb_lose_the_values_and_statements_are_named() -> Result<()> {
    let mariadb = require_tool!(Tool::Mariadb);
    let server = MariadbSandbox::start(&[
        ("binlog-format", "ROW"),
        ("log-bin", "binlog"),
        ("log-bin-compress", "ON"),
        ("log-bin-compress-min-len", "10"),
        ("binlog-annotate-row-events", "ON"),
    ])?;
    let folder = Folder::new();
    let archived = |name: &str, sql: &str| -> Result<PathBuf> {
        server.sql(sql)?;
        let log = server.flush_binary_logs()?;
        let path = folder.path(log.file_name().unwrap().to_str().unwrap());
        fs::copy(&log, &path).unwrap();
        let create = ["archive", "create", "--to", name].map(PathBuf::from);
        folder.run(create.iter().chain([&path])).is_done();
        Ok(path)
    };
    let first = archived(
        "arc",
        "CREATE DATABASE shop; USE shop; CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, email VARCHAR(60));
         INSERT INTO customers VALUES (41, 'other', 'o@example.org'), (42, 'Ermintrude-Planted', 'planted.one@example.org');
         UPDATE customers SET email = 'planted.two@example.org' WHERE id = 42;",
    )?;
    let erase = |options: &[&str]| {
        let front = [
            "archive",
            "erase",
            "arc",
            "--table",
            "shop.customers",
            "--where",
            "id = 42",
            "--execute",
            "--grace",
            "0",
        ];
        folder.run(front.iter().chain(options))
    };
    let shown = |log: &Path| {
        let dump = ["dump", "--no-defaults", "-v", "--base64-output=decode-rows", log.to_str().unwrap()];
        let ran = folder.run(dump);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    assert!(planted_in(&fs::read(&first).unwrap()) > 1, "texts of statements");
    assert!(planted_in(&shown(&first)) > 5, "{}", String::from_utf8_lossy(&shown(&first)));
    let done = erase(&["--null", "email", "--blank", "name"]);
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.text());
    folder.run(["archive", "restore", "--to", "back", "arc"]).has_worked();
    let restored = folder.path("back").join(first.file_name().unwrap());
    assert_eq!(planted_in(&shown(&restored)), 0);
    assert_eq!(planted_in(&fs::read(&restored).unwrap()), 0);
    let read = mariadb.run("mariadb-binlog", ["--verify-binlog-checksum".as_ref(), restored.as_os_str()])?;
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    let second = archived(
        "arc",
        "USE shop; SET binlog_format = STATEMENT; INSERT INTO customers VALUES (43, 'in a statement', NULL);
         ALTER TABLE customers ADD COLUMN lang VARCHAR(9) DEFAULT 'none';",
    )?;
    let named = erase(&["--rows"]);
    assert_eq!(named.code, Some(1), "{}{}", named.text(), named.stderr);
    let name = second.file_name().unwrap().to_str().unwrap();
    let lines: Vec<_> = named.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{}", named.stderr);
    assert!(
        lines[0].contains(&format!("{name} at ")) && lines[0].contains(": statement: may hold"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains(": definition: may hold"), "{}", lines[1]);
    Ok(())
}

/// A log that its server still writes is archived in part: the rest comes with all values.
#[test]
fn a_part_of_a_log_in_use_stays_and_is_named() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(&TABLES.replace(SIZE_COLUMN, ""))?;
    server.sql(&changes(1))?;
    let folder = Folder::new();
    let log = server.binlogs()?.pop().unwrap();
    let create = ["archive", "create", "--include-active", "--to", "arc"].map(PathBuf::from);
    let ran = folder.run(create.iter().chain([&log]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let erase =
        ["archive", "erase", "arc", "--table", "shop.customers", "--where", "id = 42", "--rows", "--execute"];
    let ran = folder.run(erase);
    assert_eq!(ran.code, Some(1), "{}", ran.text());
    assert!(ran.stderr.contains("has such rows, and its server still writes it"), "{}", ran.stderr);
    assert!(ran.text().starts_with("shop.customers: nothing to erase; "), "{}", ran.text());
    Ok(())
}

/// Requests that can't be carried out are refused before anything changes.
#[test]
fn columns_that_cannot_lose_their_values_are_refused() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let archived = ErasedArchive::new(mysql, "SELECT 1", true)?;
    let before = archived.manifest();
    let refused = |columns: &[&str], words: &str| {
        let ran = archived.erase(&[columns, &["--execute", "--grace", "0"]].concat());
        assert_eq!(ran.code, Some(2), "{}", ran.text());
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    };
    refused(
        &["--null", "id"],
        "shop.customers, column id: it is in a key, by which rows are found and told apart",
    );
    refused(&["--null", "name"], "shop.customers, column name: it is NOT NULL, expected --blank, or --rows");
    refused(&["--null", "emial"], "shop.customers: has no column emial in these logs");
    refused(&["--null", "email", "--rows"], "cannot be used with");
    let where_clause =
        ["archive", "erase", "arc", "--table", "shop.customers", "--where", "nmae = 'x'", "--null", "email"];
    let ran = archived.folder.run(where_clause);
    assert_eq!(ran.code, Some(2), "{}", ran.text());
    assert!(ran.stderr.contains("shop.customers has no column nmae"), "{}", ran.stderr);
    assert_eq!(archived.manifest(), before);
    Ok(())
}

/// The report has a SHA-256 of its own, and not the condition.
#[test]
fn the_report_is_a_line_of_json_with_its_digest() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let archived = ErasedArchive::new(mysql, "SELECT 1", false)?;
    let schema = "CREATE DATABASE shop; USE shop; CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, email VARCHAR(60), note TEXT, doc JSON,
        born DATE NOT NULL, balance DECIMAL(9,2) NOT NULL, seen DATETIME(3) NOT NULL);
        CREATE TABLE orders (id INT PRIMARY KEY AUTO_INCREMENT, customer INT, text VARCHAR(100), FOREIGN KEY (customer) REFERENCES customers (id));";
    archived.folder.put("schema.sql", schema);
    let ran = archived.erase(&["--rows", "--execute", "--format", "json", "--schema", "schema.sql"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.text(), ran.stderr);
    assert!(
        ran.stderr.contains(
            "shop.orders refers to shop.customers: its rows are not touched, --children erases them too"
        ),
        "{}",
        ran.stderr
    );
    let (report, digest) = ran.text().split_once('\n').unwrap();
    archived.folder.put("report", format!("{report}\n"));
    let sum =
        std::process::Command::new("sha256sum").arg(archived.folder.path("report")).output().unwrap().stdout;
    let sum = String::from_utf8(sum).unwrap();
    assert_eq!(digest.trim_end(), format!("{{\"sha256\":\"{}\"}}", sum.split(' ').next().unwrap()));
    assert!(!report.contains("id = 42"));
    let report: serde_json::Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["row_changes"], 5, "{report}");
    assert_eq!((&report["executed"], report["logs"].as_array().unwrap().len()), (&true.into(), 3));
    let logs = archived.manifest();
    let after = report["logs"].as_array().unwrap().iter().map(|log| log["sha256_after"].as_str().unwrap());
    assert_eq!(
        after.collect::<Vec<_>>(),
        logs.files[..3].iter().map(|file| &*file.sha256).collect::<Vec<_>>()
    );
    // The former objects are still there, for readers; notes say what these logs are.
    assert_eq!(logs.retired.len(), 3);
    let list = archived.folder.run(["archive", "list", "arc"]);
    assert!(list.text().contains(" (erased)"), "{}", list.text());
    assert!(
        list.text().contains(
            "3 logs are not byte for byte their server's: values of 5 row changes of shop.customers"
        ),
        "{}",
        list.text()
    );
    let rows = archived.folder.run(["rows", "shop.customers", "--where", "@1 = 43", "arc"]);
    assert!(
        rows.stderr.contains("values of 5 row changes of shop.customers were erased since"),
        "{}",
        rows.stderr
    );
    let listed = archived.folder.run(["archive", "list", "--format", "json", "arc"]);
    let listed: serde_json::Value = serde_json::from_str(listed.text()).unwrap();
    assert_eq!(listed["logs"][0]["erasures"][0]["table"], "shop.customers");
    Ok(())
}

/// Customers, their orders, and the items of these; a customer has an order that is the best, so the keys are a circle.
const FAMILY: &str = "CREATE DATABASE shop; USE shop;
    CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR(40), best INT);
    CREATE TABLE orders (id INT PRIMARY KEY, customer INT, address VARCHAR(60) NOT NULL,
        FOREIGN KEY (customer) REFERENCES customers (id) ON DELETE CASCADE);
    CREATE TABLE items (id INT PRIMARY KEY, of_order INT, what VARCHAR(60) NOT NULL);
    ALTER TABLE items ADD FOREIGN KEY (of_order) REFERENCES orders;
    ALTER TABLE customers ADD FOREIGN KEY (best) REFERENCES orders (id);
    CREATE TABLE others (id INT PRIMARY KEY, customer INT, what VARCHAR(60));";

/// Logs of three persons with two orders each and two items of each; one item comes before its order, one order goes to another customer.
fn family_logs(server: &MysqlSandbox, folder: &Folder) -> Result<Vec<PathBuf>> {
    let mut sql = FAMILY.replace("REFERENCES orders;", "REFERENCES orders (id);");
    sql += "SET foreign_key_checks = 0; INSERT INTO items VALUES (30, 3, 'planted item 30.'); SET foreign_key_checks = 1;";
    for customer in 41..=43 {
        sql += &format!("INSERT INTO customers VALUES ({customer}, 'planted name {customer}.', NULL);");
        for order in [2 * (customer - 41) + 1, 2 * (customer - 41) + 2] {
            sql += &format!("INSERT INTO orders VALUES ({order}, {customer}, 'planted address {order}.');");
            for item in [10 * order, 10 * order + 1].into_iter().filter(|item| *item != 30) {
                sql += &format!("INSERT INTO items VALUES ({item}, {order}, 'planted item {item}.');");
            }
        }
    }
    sql += "INSERT INTO others VALUES (42, 42, 'planted other 42.'); FLUSH BINARY LOGS;
        UPDATE customers SET best = 2 * (id - 41) + 1; UPDATE items SET what = CONCAT(what, '!') WHERE id % 10 = 1;
        UPDATE orders SET customer = 43 WHERE id = 4; UPDATE items SET what = CONCAT(what, '?') WHERE of_order = 4; FLUSH BINARY LOGS;
        UPDATE customers SET best = NULL WHERE id = 42; DELETE FROM items WHERE of_order = 3; DELETE FROM orders WHERE id = 3; DELETE FROM customers WHERE id = 42;";
    server.sql(&sql)?;
    server.flush_binary_logs()?;
    let mut logs = server.binlogs()?;
    logs.pop();
    let copied = logs.iter().map(|log| {
        let copy = folder.path(log.file_name().unwrap().to_str().unwrap());
        fs::copy(log, &copy).unwrap();
        copy
    });
    Ok(copied.collect())
}

/// The planted words that some logs have, as the numbers after each kind.
fn planted_words(logs: &[PathBuf], kind: &str) -> std::collections::BTreeSet<String> {
    let word = format!("planted {kind} ");
    let mut found = std::collections::BTreeSet::new();
    for log in logs {
        let bytes = fs::read(log).unwrap();
        for at in (0..bytes.len()).filter(|at| bytes[*at..].starts_with(word.as_bytes())) {
            let rest = &bytes[at + word.len()..];
            let end = rest.iter().position(|byte| *byte == b'.').unwrap();
            found.insert(String::from_utf8_lossy(&rest[..end]).into_owned());
        }
    }
    found
}

/// Rows that refer to a person's by foreign keys lose their values too, levels deep, whatever the images have.
#[test]
fn rows_of_children_go_with_their_parents() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    for image in ["FULL", "MINIMAL"] {
        let server = mysql.sandbox().start()?;
        server.sql(&format!("SET GLOBAL binlog_row_image = {image}"))?;
        let folder = Folder::new();
        let logs = family_logs(&server, &folder)?;
        let create = ["archive", "create", "--to", "arc"].map(PathBuf::from);
        folder.run(create.iter().chain(&logs)).is_done();
        let socket = server.socket().display().to_string();
        let erase = |options: &[&str]| {
            folder.run(["archive", "erase", "--no-defaults", "arc", "--format", "json"].iter().chain(options))
        };
        let report = |ran: &Ran| -> serde_json::Value {
            serde_json::from_str(ran.text().lines().next().unwrap()).unwrap()
        };
        let tables = |report: &serde_json::Value| -> Vec<(String, u64, u64)> {
            let tables = report["tables"].as_array().unwrap().iter();
            let number = |table: &serde_json::Value, field: &str| table[field].as_u64().unwrap();
            tables
                .map(|table| {
                    let name = table["table"].as_str().unwrap().to_owned();
                    (name, number(table, "chosen"), number(table, "row_changes"))
                })
                .collect()
        };
        let shop = |table: &str, chosen: u64, erased: u64| (format!("shop.{table}"), chosen, erased);
        let person = ["--table", "shop.customers", "--where", "id = 42", "--children"];
        // A column of each child has to be named, or its rows stay and are named.
        let ran = erase(&[&person[..], &["--null", "name", "--schema", &socket, "-u", "root"]].concat());
        assert_eq!(ran.code, Some(1), "{image}: {}{}", ran.text(), ran.stderr);
        assert!(
            ran.stderr.contains("row changes of shop.items refer to chosen rows of shop.orders and stay"),
            "{}",
            ran.stderr
        );
        let columns = ["--null", "name", "--blank", "orders.address,shop.items.what"];
        let dry = erase(&[&person[..], &columns].concat());
        // CREATE TABLE of all of them is in the logs; of others it may not be.
        assert_eq!(dry.code, Some(1), "{image}: {}{}", dry.text(), dry.stderr);
        assert_eq!(dry.stderr.lines().count(), 1, "{}", dry.stderr);
        assert!(
            dry.stderr.contains(
                "which tables refer to these is known only as far as the logs have their CREATE TABLE"
            ),
            "{}",
            dry.stderr
        );
        // The customer: inserted, two updates, deleted. Orders 3 and 4: inserted, one updated, one deleted. Items 30, 31, 40, 41: inserted, two with !,
        // two with ?, two deleted.
        let erased = |full: u64, minimal: u64| if image == "FULL" { full } else { minimal };
        let expected = [
            shop("customers", 4, erased(4, 1)),
            shop("orders", 4, erased(4, 2)),
            shop("items", 10, erased(10, 8)),
        ];
        assert_eq!(tables(&report(&dry)), expected, "{image}");
        let done = erase(
            &[&person[..], &columns, &["--schema", &socket, "-u", "root", "--execute", "--grace", "0"]]
                .concat(),
        );
        assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{image}: {}", done.text());
        assert_eq!(tables(&report(&done)), expected, "{image}");
        assert_eq!(report(&done)["tables"][2]["refers_to"][0], "shop.orders");
        folder.run(["archive", "restore", "--to", "back", "arc"]).has_worked();
        let restored: Vec<_> =
            logs.iter().map(|log| folder.path("back").join(log.file_name().unwrap())).collect();
        for (kind, gone) in [
            ("name", &["42"][..]),
            ("address", &["3", "4"]),
            ("item", &["30", "31", "40", "41"]),
            ("other", &[]),
        ] {
            let mut expected = planted_words(&logs, kind);
            assert!(gone.iter().all(|word| expected.remove(*word)), "{kind}");
            assert_eq!(planted_words(&restored, kind), expected, "{image}: {kind}");
        }
        let target = mysql.sandbox().start()?;
        restored.iter().try_for_each(|log| through_mysqlbinlog(&target, log))?;
        let rows = "SELECT COUNT(*), SUM(what = '' OR what IN ('!', '?', '!?')) FROM shop.items";
        assert_eq!(target.sql(rows)?.trim(), "10\t2");
    }
    Ok(())
}

/// Several persons in one run, whole rows with their children.
#[test]
fn persons_of_a_file_go_in_one_run() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    let folder = Folder::new();
    let logs = family_logs(&server, &folder)?;
    let create = ["archive", "create", "--to", "arc"].map(PathBuf::from);
    folder.run(create.iter().chain(&logs)).is_done();
    let socket = server.socket().display().to_string();
    folder.put(
        "persons",
        "# two of them\nshop.customers id = 42\nshop.customers id = 41\n\nshop.others what = 'nothing'\n",
    );
    let erase =
        ["archive", "erase", "--no-defaults", "arc", "--where-file", "persons", "--children", "--rows"];
    let schema = ["--schema", &socket, "-u", "root", "--execute", "--grace", "0"];
    let done = folder.run(erase.iter().chain(&schema));
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.text());
    assert!(done.text().contains("shop.items, which refers to shop.orders: "), "{}", done.text());
    folder.run(["archive", "restore", "--to", "back", "arc"]).has_worked();
    let restored: Vec<_> =
        logs.iter().map(|log| folder.path("back").join(log.file_name().unwrap())).collect();
    for (kind, left) in [
        ("name", &["43"][..]),
        ("address", &["5", "6"]),
        ("item", &["50", "51", "60", "61"]),
        ("other", &["42"]),
    ] {
        let left = left.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(planted_words(&restored, kind), left, "{kind}");
    }
    let target = mysql.sandbox().start()?;
    restored.iter().try_for_each(|log| through_mysqlbinlog(&target, log))?;
    for table in ["customers", "orders", "items"] {
        let all = format!("SELECT * FROM shop.{table} ORDER BY id");
        let own: Vec<String> = server.sql(&all)?.lines().map(str::to_owned).collect();
        let left: Vec<String> = target.sql(&all)?.lines().map(str::to_owned).collect();
        assert!(!left.is_empty() && left.iter().all(|row| own.contains(row)), "{table}: {left:?}");
    }
    Ok(())
}

fn openssl(folder: &Folder, arguments: &str) -> std::process::Output {
    let mut command = std::process::Command::new("openssl");
    command.args(arguments.split(' ')).current_dir(folder.path("")).output().unwrap()
}

/// A stranger with OpenSSL and the public key can tell whether the report is the signer's.
#[test]
fn a_report_is_signed_with_an_owners_key_and_openssl_verifies_it() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let archived = ErasedArchive::new(mysql, "SELECT 1", true)?;
    let folder = &archived.folder;
    for made in [
        "genpkey -algorithm ed25519 -out key.pem",
        "pkey -in key.pem -pubout -out public.pem",
        "genpkey -algorithm ed25519 -out other.pem",
        "genpkey -algorithm X25519 -out unfit.pem",
        "genpkey -algorithm ed25519 -aes256 -pass pass:x -out locked.pem",
    ] {
        assert!(openssl(folder, made).status.success(), "{made}");
    }
    let manifest = archived.manifest();
    let sign = |key: &str, report: &str| {
        archived.erase(&["--rows", "--execute", "--format", "json", "--report", report, "--sign", key])
    };
    for (key, words) in [
        ("public.pem", "so others may use it, expected 0600"),
        ("unfit.pem", "unfit.pem: is a key of another kind, expected an Ed25519 key"),
        ("locked.pem", "locked.pem: is a key behind a passphrase"),
        ("none.pem", "none.pem: "),
    ] {
        let ran = sign(key, "report");
        assert!(ran.code == Some(2) && ran.stderr.contains(words), "{key}: {}", ran.stderr);
    }
    folder.put("there", "");
    let ran = sign("key.pem", "there");
    assert!(
        ran.code == Some(2) && ran.stderr.contains("there: is there, expected a new file"),
        "{}",
        ran.stderr
    );
    assert_eq!(archived.manifest(), manifest);
    let done = sign("key.pem", "report");
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.text());
    assert_eq!(
        String::from_utf8(folder.read("report")).unwrap().trim_end(),
        done.text().lines().next().unwrap()
    );
    let verify = "pkeyutl -verify -pubin -inkey public.pem -rawin -in report -sigfile report.sig";
    let verified = openssl(folder, verify);
    assert!(verified.status.success(), "{verified:?}");
    folder.put("report", [folder.read("report"), b" ".to_vec()].concat());
    assert!(!openssl(folder, verify).status.success());
    let report = folder.read("report");
    folder.put("report", &report[..report.len() - 1]);
    assert!(openssl(folder, verify).status.success());
    openssl(folder, "pkey -in other.pem -pubout -out public.pem");
    assert!(!openssl(folder, verify).status.success());
    Ok(())
}

/// Each command that reads logs from which values were erased says so once.
#[test]
fn each_reader_of_an_erased_archive_says_so_once() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let archived = ErasedArchive::new(mysql, "SELECT 1", false)?;
    let done = archived.erase(&["--blank", "name", "--execute"]);
    assert_eq!((done.code, &*done.stderr), (Some(0), ""), "{}", done.text());
    let target = mysql.sandbox().start()?;
    let socket = target.socket().display().to_string();
    let note = "3 logs are not byte for byte their server's: values of 5 row changes of shop.customers were erased since";
    let says = |arguments: &[&str]| {
        let ran = archived.folder.run(arguments);
        assert_eq!(ran.stderr.matches(note).count(), 1, "{arguments:?}: {}{}", ran.text(), ran.stderr);
    };
    let gtid = archived.manifest().files[2].gtids.clone();
    says(&["dump", "--no-defaults", "arc"]);
    says(&["dump", "--no-defaults", "--format=jsonl", "arc"]);
    says(&["events", "arc"]);
    says(&["stats", "arc"]);
    says(&["rows", "shop.orders", "--where", "@1 = 1", "arc"]);
    says(&["undo", "--gtids", &gtid, "arc"]);
    says(&["fold", "--to", "folded", "arc"]);
    let (uuid, numbers) = gtid.split_once(':').unwrap();
    let first = format!("{uuid}:{}", numbers.split('-').next().unwrap());
    let root = format!("root@{socket}");
    says(&["table-at", "--no-defaults", "shop.customers", "--at", &first, "--server", &root, "arc"]);
    says(&["archive", "restore", "--to", "back", "arc"]);
    says(&["archive", "cat", "arc"]);
    says(&["archive", "check", "arc"]);
    says(&["verify", "arc"]);
    says(&["recover", "--no-defaults", "--check", "--from", "arc", "--to", &root]);
    // Logs of the same archive that have everything.
    let whole = archived.folder.run(["stats", "arc/binlog.000004"]);
    assert!(whole.code == Some(0) && !whole.stderr.contains("erased"), "{}", whole.stderr);
    Ok(())
}

/// A table with a column of every type, and a row of it.
const KINDS: &str = "CREATE DATABASE shop; USE shop; CREATE TABLE kinds (id INT PRIMARY KEY, a TINYINT NOT NULL, b SMALLINT UNSIGNED NOT NULL,
        c MEDIUMINT NOT NULL, d BIGINT NOT NULL, e FLOAT NOT NULL, f DOUBLE NOT NULL, g DECIMAL(20,5) NOT NULL, h BIT(12) NOT NULL, i YEAR NOT NULL,
        j DATE NOT NULL, k TIME(3) NOT NULL, l DATETIME(6) NOT NULL, m TIMESTAMP(2) NOT NULL, n CHAR(5) NOT NULL, o VARBINARY(10) NOT NULL,
        p TEXT NOT NULL, q BLOB NOT NULL, r ENUM('x','y') NOT NULL, s SET('p','q') NOT NULL, t JSON NOT NULL, u POINT, v VECTOR(3));
    INSERT INTO kinds VALUES (42, -1, 2, 3, 4, 5.5, 6.5, -7.25, 0x0fff, 2001, '2001-02-03', '-01:02:03.456', '2001-02-03 04:05:06.789012',
        '2001-02-03 04:05:06.78', 'five', 'bytes', 'text', 'blob', 'y', 'q', '{\"a\": 1}', POINT(1, 2), TO_VECTOR('[1,2,3]'));";

#[test]
fn a_column_of_every_type_gets_its_empty_value() -> Result<()> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(KINDS)?;
    let log = server.flush_binary_logs()?;
    let folder = Folder::new();
    let create = ["archive", "create", "--to", "arc"].map(PathBuf::from);
    folder.run(create.iter().chain([&log])).is_done();
    let erase = |columns: &[&str]| {
        let front = ["archive", "erase", "arc", "--table", "shop.kinds", "--where", "id = 42", "--execute"];
        folder.run(front.iter().chain(columns))
    };
    let refused = erase(&["--blank", "u"]);
    assert_eq!(refused.code, Some(2), "{}", refused.text());
    assert!(
        refused.stderr.contains("which has no empty value, expected --null, or --rows"),
        "{}",
        refused.stderr
    );
    let done = erase(&["--blank", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t", "--null", "u,v"]);
    // The members of the ENUM stand in quotes.
    assert_eq!(done.code, Some(1), "{}{}", done.text(), done.stderr);
    assert!(done.stderr.contains(": definition of ") && done.stderr.lines().count() == 1, "{}", done.stderr);
    folder.run(["archive", "restore", "--to", "back", "arc"]).has_worked();
    let target = mysql.sandbox().start()?;
    through_mysqlbinlog(&target, &folder.path("back").join(log.file_name().unwrap()))?;
    let row = target
        .sql("SELECT a, b, c, d, e, f, g, h + 0, i, j, k, l, m, n, o, p, q, r, s, t, u, v FROM shop.kinds")?;
    let expected = "0\t0\t0\t0\t0\t0\t0.00000\t0\t0000\t0000-00-00\t00:00:00.000\t0000-00-00 00:00:00.000000\t\
                    0000-00-00 00:00:00.00\t\t\t\t\tx\t\tnull\tNULL\tNULL";
    assert_eq!(row.trim_end_matches('\n'), expected);
    Ok(())
}
