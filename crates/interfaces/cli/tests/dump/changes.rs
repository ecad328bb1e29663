//! `dump --format debezium|maxwell|canal` prints what the real programs printed for the same log (changes/, made by
//! scripts/make-changes.sh and make-maxwell.sh), and loses nothing when a run is killed and begun again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, Ran};
use binlogz_testkit::{MysqlSandbox, SandboxServer, Tool, corpus, require_tool};
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Generous: a busy machine is no failure.
const PATIENCE: Duration = Duration::from_secs(60);

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dump/changes").join(name)
}

fn recorded(name: &str) -> String {
    fs::read_to_string(fixture(name)).unwrap()
}

fn command(folder: &Folder, arguments: &[&str]) -> Command {
    let mut command = folder.binlogz(["dump", "--no-defaults", "--no-login-paths"].iter().chain(arguments));
    command.env("TZ", "UTC");
    command
}

fn dump(folder: &Folder, arguments: &[&str]) -> String {
    let ran: Ran = command(folder, arguments).output().unwrap().into();
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    ran.text().to_owned()
}

/// The changes, in this format.
fn changes(folder: &Folder, format: &str, arguments: &[&str]) -> String {
    let log = fixture("changes.binlog");
    fs::copy(log, folder.path("binlog.000001")).unwrap();
    let format = format!("--format={format}");
    let front = [format.as_str(), "--topic-prefix=shop1", "binlog.000001"];
    dump(folder, &[&front, arguments].concat())
}

/// A line without the fields that only a running Debezium knows: its version, and when it processed an event.
fn comparable(line: &str) -> String {
    let ours = concat!("\"version\":\"binlogz-", env!("CARGO_PKG_VERSION"), "\"");
    let line = line.replace(ours, "\"version\":\"3.6.1.Final\"");
    // "false" is a default, which was recorded without defaults for NULL.
    let line = line.replace("\"snapshot\":\"false\"", "\"snapshot\":null");
    match line.rfind(",\"ts_ms\":") {
        Some(end) => line[..end].to_owned(),
        None => line,
    }
}

/// Compares lines, each with its key, and tells of the first that differs.
fn compare(ours: &str, theirs: &str) {
    // Debezium passes over updates of a JSON document in part. We don't.
    let is_partial = |line: &&str| line.contains("\\\"a\\\":3,");
    assert_eq!(ours.lines().filter(is_partial).count(), 1);
    let ours: Vec<_> = ours.lines().filter(|line| !is_partial(line)).map(comparable).collect();
    let without_topic = |line: &str| line.split_once('\t').unwrap().1.to_owned();
    let theirs: Vec<_> = theirs.lines().map(without_topic).map(|line| comparable(&line)).collect();
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "line {number}");
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn debezium_is_what_debezium_prints() {
    let folder = Folder::new();
    let ours = changes(&folder, "debezium", &["--with-key"]);
    compare(&ours, &recorded("debezium.txt"));
}

#[test]
fn debezium_has_its_handling_modes() {
    let folder = Folder::new();
    let modes = ["--decimal-handling-mode=string", "--bigint-unsigned-handling-mode=precise"];
    let ours = changes(&folder, "debezium", &[&modes[..], &["--with-key"]].concat());
    // Recorded without tombstones.
    let ours: String =
        ours.lines().filter(|line| !line.ends_with("\tnull")).map(|line| format!("{line}\n")).collect();
    compare(&ours, &recorded("debezium-modes.txt"));
}

/// With what depends on a hash table's history in the order of names.
fn comparable_metadata(line: &str) -> String {
    let line = comparable(line);
    let Some((front, back)) = line.split_once("\"data_collections\":[") else { return line };
    let mut tables: Vec<_> =
        back.trim_end_matches(']').split("},").map(|table| table.trim_end_matches('}')).collect();
    tables.sort_unstable();
    format!("{front}\"data_collections\":{tables:?}")
}

#[test]
fn debezium_numbers_the_rows_of_transactions() {
    let folder = Folder::new();
    let ours = changes(&folder, "debezium", &["--with-key", "--provide-transaction-metadata"]);
    // Of the update in part, which Debezium passes over, it has messages of a transaction without rows.
    let partial = ours.lines().find(|line| line.contains("\\\"a\\\":3,")).unwrap();
    let value: Value = serde_json::from_str(partial.split_once('\t').unwrap().1).unwrap();
    let id = value["transaction"]["id"].as_str().unwrap();
    let of_partial = |line: &str| line.contains(id);
    assert_eq!(ours.lines().filter(|line| of_partial(line)).count(), 3);
    let lines = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !of_partial(line)).map(comparable_metadata).collect()
    };
    let theirs: Vec<_> = recorded("debezium-transactions.txt")
        .lines()
        .map(|line| line.split_once('\t').unwrap().1.to_owned())
        .collect();
    let (ours, theirs) = (lines(&ours), lines(&theirs.join("\n")));
    for (number, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
        assert_eq!(ours, theirs, "line {number}");
    }
    // The recording ends with the last row.
    assert_eq!(ours.len(), theirs.len() + 1);
    assert!(ours.iter().filter(|line| line.contains("\"status\":\"END\"")).count() > 20);
}

#[test]
fn without_metadata_of_transactions_the_rows_are_the_same() {
    let folder = Folder::new();
    let plain = changes(&folder, "debezium", &[]);
    for jobs in ["--jobs=1", "--jobs=4"] {
        let numbered = changes(&folder, "debezium", &["--provide-transaction-metadata", jobs]);
        let rows: Vec<Value> = numbered
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter(|line| line["status"].is_null())
            .map(|mut line| {
                line["transaction"] = Value::Null;
                line
            })
            .collect();
        let plain: Vec<Value> = plain.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows, plain);
    }
    // Rows that aren't asked for have no numbers, and their transactions no messages.
    let one = changes(&folder, "debezium", &["--provide-transaction-metadata", "--table=shop.orders"]);
    let ends: Vec<Value> = one
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["status"] == "END")
        .map(|line| line["data_collections"].clone())
        .collect();
    let orders = |rows: u64| json!([{"data_collection": "shop.orders", "event_count": rows}]);
    assert_eq!(ends, [orders(5), orders(3)]);
}

/// A schema of another day, after an ALTER in the middle of the log: what the log names, it names better.
#[test]
fn a_log_that_names_its_columns_needs_no_schema_that_fits() {
    let folder = Folder::new();
    folder.put("log", fs::read(corpus::case("ddlmid.binlog")).unwrap());
    folder.put("schema.sql", fs::read(corpus::case("ddlmid.schema.sql")).unwrap());
    for format in ["debezium", "maxwell", "canal"] {
        let format = format!("--format={format}");
        let alone = dump(&folder, &[&format, "log"]);
        let with_schema = dump(&folder, &[&format, "--schema=schema.sql", "log"]);
        assert!(alone.lines().count() > 5, "{alone}");
        assert_eq!(with_schema, alone);
    }
}

#[test]
fn without_keys_there_are_no_tombstones() {
    let folder = Folder::new();
    let with_key = changes(&folder, "debezium", &["--with-key"]);
    let without = changes(&folder, "debezium", &[]);
    let values =
        with_key.lines().map(|line| line.split_once('\t').unwrap().1).filter(|value| *value != "null");
    assert_eq!(values.collect::<Vec<_>>(), without.lines().collect::<Vec<_>>());
}

/// A line without the fields that only a running canal knows, which are in no log.
fn comparable_message(line: &str) -> Value {
    let mut message: Value = serde_json::from_str(line).unwrap();
    // When it was processed and in which batch; it has no GTIDs unless it asks for its stream by GTID.
    for name in ["id", "ts", "gtid"] {
        message[name] = Value::Null;
    }
    // Display widths and digits.
    for (column, name) in [("t1", "tinyint"), ("d2", "double")] {
        if message["mysqlType"].get(column).is_some_and(|found| found.as_str().unwrap().starts_with(name)) {
            message["mysqlType"][column] = json!(name);
        }
    }
    // Statements that its SQL parser doesn't know, and takes for any other.
    if message["sql"].as_str().is_some_and(|sql| sql.contains("INVISIBLE") || sql.contains("SRID")) {
        for name in ["table", "type", "database"] {
            message[name] = Value::Null;
        }
    }
    // The server calls a unique key primary where there is none.
    if message["table"] == "unique_only" {
        message["pkNames"] = Value::Null;
    }
    if message["table"] == "texts" && message["isDdl"] == false {
        for row in message["data"].as_array_mut().unwrap() {
            // It takes text of all character sets for UTF-8, and prints BINARY without the zeros at its end.
            for column in ["l1", "u16", "gb", "sj", "tl", "b"] {
                row[column] = Value::Null;
            }
            // Documents with large numbers, values of SQL, and escapes in keys: it writes others, not all of them JSON.
            if ["11", "14", "15"].iter().any(|id| row["id"] == *id) {
                row["j"] = Value::Null;
            }
        }
    }
    message
}

#[test]
fn canal_is_what_canal_prints() {
    let folder = Folder::new();
    let ours = changes(&folder, "canal", &[]);
    // It reads no further.
    let is_last = |message: &Value| message["table"] == "canal_end" && message["type"] == "INSERT";
    let mut ours: Vec<_> = ours.lines().map(comparable_message).collect();
    let end = ours.iter().position(is_last).unwrap();
    assert!(ours.len() > end + 1);
    ours.truncate(end + 1);
    // Heartbeats have neither table nor statement.
    let recorded = recorded("canal.jsonl");
    let theirs = recorded.lines().map(comparable_message);
    let theirs: Vec<_> = theirs.filter(|message| message["table"] != "" || message["sql"] != "").collect();
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
}

/// Columns that Maxwell 1.22.6 prints otherwise than the server has them, of a row with this id.
fn wrong_in_maxwell(table: &str, id: u64) -> &'static [&'static str] {
    match (table, id) {
        // BIT of more than 31 bits overflows, and the year 0 is 1900.
        ("numbers", _) => &["bit33", "bit64", "y"],
        // Times are those of a clock, dates those of one calendar, and dates with a part of zero are nothing but zeros.
        ("times", 4) => &["t", "t1", "t3", "t6"],
        ("times", 5) => &["t", "t1", "t3", "t6", "dt1"],
        ("times", 6) => &["d", "dn", "t", "t1", "t3", "t6", "dt", "dt1", "dt3", "dt4", "dt6", "dtn", "dtn6"],
        // BINARY without the zeros at its end.
        ("texts", _) => &["b"],
        _ => &[],
    }
}

/// A line without the values that Maxwell prints wrong, and without the keys of tables that have no primary key, which
/// the log knows otherwise.
fn comparable_line(line: &str) -> String {
    let (key, line) = line.split_once('\t').unwrap();
    let row: Value = serde_json::from_str(line).unwrap();
    let (table, id) = (row["table"].as_str().unwrap(), row["data"]["id"].as_u64().unwrap_or(0));
    let has_key = !["loose", "loose2", "unique_only"].contains(&table);
    let mut line = format!("{}\t{line}", if has_key { key } else { "" });
    for column in wrong_in_maxwell(table, id) {
        let name = format!("\"{column}\":");
        // In `data` and in `old`.
        let mut from = 0;
        while let Some(at) = line[from..].find(&name).map(|at| from + at + name.len()) {
            let size = line[at..].find([',', '}']).unwrap();
            line.replace_range(at..at + size, "?");
            from = at;
        }
    }
    line
}

#[test]
fn maxwell_is_what_maxwell_prints() {
    let folder = Folder::new();
    fs::copy(fixture("maxwell.binlog"), folder.path("binlog.000001")).unwrap();
    let ours = dump(&folder, &["--format=maxwell", "--with-key", "binlog.000001"]);
    let theirs = recorded("maxwell.txt");
    for (number, (ours, theirs)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(comparable_line(ours), comparable_line(theirs), "line {number}");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
    assert_eq!(theirs.lines().count(), 66);
}

#[test]
fn maxwell_marks_the_last_row_of_a_transaction() {
    let folder = Folder::new();
    let text = changes(&folder, "maxwell", &["--table=shop.orders", "--table=shop.loose"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let brief: Vec<_> = lines
        .iter()
        .map(|line| (line["type"].as_str().unwrap(), line["commit"] == true, &line["data"], &line["old"]))
        .collect();
    let none = &Value::Null;
    assert_eq!(brief[0], ("insert", false, &json!({"region": "eu", "n": 1, "note": "one"}), none));
    assert_eq!(brief[5].0, "update");
    assert_eq!(brief[5].3, &json!({"note": "one"}));
    assert_eq!(brief[6].2["n"], json!(18_446_744_073_709_551_615_u64));
    let commits: Vec<_> =
        brief.iter().enumerate().filter(|(_, line)| line.1).map(|(number, _)| number).collect();
    assert_eq!(commits, [9, 14, 16, 17], "{text}");
    // All rows of a transaction have its number, and no two transactions the same.
    let mut begin = 0;
    let mut numbers = Vec::new();
    for commit in commits {
        let xid = &lines[begin]["xid"];
        assert!(xid.is_u64() && lines[begin..=commit].iter().all(|line| &line["xid"] == xid), "{text}");
        numbers.push(xid.as_u64().unwrap());
        begin = commit + 1;
    }
    assert!(numbers.is_sorted_by(|a, b| a < b));
    // Fields in the order of its documentation.
    let first = text.lines().next().unwrap();
    let names = ["\"database\"", "\"table\"", "\"type\"", "\"ts\"", "\"xid\"", "\"data\""];
    assert!(names.map(|name| first.find(name).unwrap()).is_sorted(), "{first}");
}

#[test]
fn maxwell_has_each_type_as_documented() {
    let folder = Folder::new();
    let text = changes(&folder, "maxwell", &["--with-key"]);
    let mut by_table: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in text.lines() {
        let (key, line) = line.split_once('\t').unwrap();
        let (key, line): (Value, Value) =
            (serde_json::from_str(key).unwrap(), serde_json::from_str(line).unwrap());
        assert_eq!(key["table"], line["table"]);
        if let Some(id) = line["data"].get("id") {
            assert_eq!(&key["pk.id"], id, "{line}");
        }
        by_table.entry(line["table"].as_str().unwrap().to_owned()).or_default().push(line["data"].clone());
    }
    let has = |table: &str, row: usize, expected: Value| {
        let found = &by_table[table][row];
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&found[name], value, "{table} {row} {name}");
        }
    };
    has(
        "numbers",
        0,
        json!({"t": -128, "lu": 18_446_744_073_709_551_615_u64, "f2": 12345.67, "n5": 123.45,
        "bit64": 18_446_744_073_709_551_615_u64, "bit1": 1, "y": 2024}),
    );
    assert!(text.contains("\"n38\":1234567890123456789012345678.0123456789,"));
    has(
        "times",
        0,
        json!({"d": "2024-02-29", "t6": "12:34:56.789012", "dt4": "2024-02-29 12:34:56.7890",
        "ts6": "2024-02-29 12:34:56.789012"}),
    );
    has("times", 1, json!({"dt": "0000-00-00 00:00:00", "d": "0000-00-00"}));
    has(
        "texts",
        0,
        json!({"gb": "中文", "bl": "AgM=", "b": "YWIAAAAAAAA=", "e": "green", "st": ["a", "c d"],
        "j": {"a": 1, "b": [1.5, true, null, "x\"y"], "c": {"d": "é"}}, "p": "POINT (1.5 -2.25)",
        "ls": "LINESTRING (0 0, 1 1)", "pg": "POLYGON ((0 0, 1 0, 1 1, 0 0))", "mp": "MULTIPOINT ((0 0), (1 1))",
        "gc": "GEOMETRYCOLLECTION (POINT (0 0))"}),
    );
}

/// Positions are others in a compressed log.
fn without_positions(text: &str) -> Vec<String> {
    let without = |line: &str| {
        // canal's comes before this field.
        let front = line.find(",\"isDdl\":").unwrap_or(line.len());
        let name = if front < line.len() { ",\"id\":" } else { ",\"pos\":" };
        let Some(begin) = line[..front].rfind(name).map(|begin| begin + name.len()) else {
            return line.to_owned();
        };
        let size = line[begin..].find(',').unwrap();
        format!("{}{}", &line[..begin], &line[begin + size..])
    };
    text.lines().map(without).collect()
}

#[test]
fn compressed_twins_archives_and_pipes_have_the_same_changes() {
    let folder = Folder::new();
    for format in ["debezium", "maxwell", "canal"] {
        let expected = changes(&folder, format, &[]);
        let format = format!("--format={format}");
        let same =
            |arguments: &[&str]| dump(&folder, &[&[&format, "--topic-prefix=shop1"], arguments].concat());
        if !folder.path("z").exists() {
            fs::create_dir(folder.path("z")).unwrap();
            folder.run(["compress", "--output", "z/binlog.000001", "binlog.000001"]);
            folder.run(["archive", "create", "--to", "archive", "binlog.000001"]);
        }
        assert_ne!(folder.read("z/binlog.000001"), folder.read("binlog.000001"));
        for (ours, expected) in
            without_positions(&same(&["z/binlog.000001"])).iter().zip(without_positions(&expected))
        {
            assert_eq!(*ours, expected);
        }
        assert_eq!(same(&["archive/binlog.000001"]), expected);
        for jobs in ["--jobs=1", "--jobs=4"] {
            assert_eq!(same(&[jobs, "binlog.000001"]), expected);
        }
        let mut piped = command(&folder, &[&format, "--topic-prefix=shop1", "-"]);
        piped.stdin(fs::File::open(folder.path("z/binlog.000001")).unwrap());
        let piped: Ran = piped.output().unwrap().into();
        assert!(piped.text().lines().count() == expected.lines().count());
    }
}

#[test]
fn a_table_without_names_is_an_error() {
    let folder = Folder::new();
    fs::copy(corpus::path("binlog.000001"), folder.path("b.000001")).unwrap();
    // The statements that make its tables stand before it.
    let lines = dump(&folder, &["--format=jsonl", "b.000001"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_ddl = |line: &Value| {
        line["statement"].as_str().is_some_and(|text| text.to_lowercase().starts_with("create table"))
    };
    let last = lines.iter().rposition(is_ddl).unwrap();
    let start = format!("--start-position={}", lines[last]["end_log_pos"]);
    for format in ["debezium", "maxwell", "canal"] {
        let ran: Ran =
            command(&folder, &[&format!("--format={format}"), &start, "b.000001"]).output().unwrap().into();
        assert_eq!(ran.code, Some(1), "{format}");
        assert!(!ran.text().contains("@1"));
        for word in ["name unknown", "binlog_row_metadata=FULL", "--schema"] {
            assert!(ran.stderr.contains(word), "{format}: {}", ran.stderr);
        }
    }
}

#[test]
fn options_of_row_changes_need_them() {
    let folder = Folder::new();
    for (arguments, told) in [
        (["--with-key", "x"].as_slice(), "--with-key needs --format=debezium, maxwell or canal"),
        (&["--format=jsonl", "--offsets=o", "x"], "--offsets needs --format=debezium, maxwell or canal"),
        (&["--format=canal", "--with-key", "x"], "its messages have no keys"),
        (&["--follow", "x"], "--follow needs --format=jsonl, debezium, maxwell or canal"),
        (
            &["--format=maxwell", "--provide-transaction-metadata", "x"],
            "--provide-transaction-metadata needs --format=debezium",
        ),
        (&["--format=canal", "--offsets-delay=3", "x"], "--offsets-delay needs --offsets"),
    ] {
        let ran: Ran = command(&folder, arguments).output().unwrap().into();
        assert_eq!(ran.code, Some(1), "{arguments:?}");
        assert!(ran.stderr.contains(told), "{arguments:?}: {}", ran.stderr);
    }
    folder.put("offsets", "nonsense");
    let ran: Ran = command(&folder, &["--format=canal", "--offsets=offsets", "x"]).output().unwrap().into();
    assert!(ran.code == Some(1) && ran.stderr.contains("offsets: not an offsets file"), "{}", ran.stderr);
}

#[test]
fn a_file_is_gone_on_with() {
    let folder = Folder::new();
    let all = changes(&folder, "debezium", &[]);
    let gtid = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap();
        value["source"]["gtid"].as_str().unwrap().to_owned()
    };
    let begun = gtid(all.lines().nth(20).unwrap());
    let (uuid, number) = begun.split_once(':').unwrap();
    folder.put("offsets", format!("{{\"gtid_set\":\"{uuid}:1-{number}\"}}"));
    let number: u64 = number.parse().unwrap();
    let later = |line: &&str| gtid(line).rsplit_once(':').unwrap().1.parse::<u64>().unwrap() > number;
    let rest = changes(&folder, "debezium", &["--offsets=offsets"]);
    assert_eq!(rest.lines().collect::<Vec<_>>(), all.lines().filter(later).collect::<Vec<_>>());
    assert_eq!(changes(&folder, "debezium", &["--offsets=offsets"]), "");
    let kept: Value = serde_json::from_slice(&folder.read("offsets")).unwrap();
    assert!(kept["gtid_set"].as_str().unwrap().starts_with(&format!("{uuid}:1-")), "{kept}");
}

/// A server whose logs have names.
fn server() -> Result<MysqlSandbox, Box<dyn std::error::Error>> {
    let installed = Tool::Mysql.find()?;
    let server = installed.sandbox().option("binlog-row-metadata", "FULL").start()?;
    server.sql("CREATE DATABASE shop; CREATE TABLE shop.t (id BIGINT PRIMARY KEY, v VARCHAR(100))")?;
    Ok(server)
}

/// Follows it, from the beginning or by the offsets file.
fn follow(folder: &Folder, server: &SandboxServer, arguments: &[&str]) -> Child {
    let mut command =
        command(folder, &["-R", "-h127.0.0.1", "-urepl", "--format=debezium", "--table=shop.t"]);
    command.arg(format!("-P{}", server.port())).args(arguments).env("MYSQL_PWD", "repl");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn id_of(line: &str) -> u64 {
    let value: Value = serde_json::from_str(line).unwrap();
    value["after"]["id"].as_u64().unwrap()
}

#[test]
fn a_server_is_followed_and_nothing_is_lost_by_kills() -> Outcome {
    require_tool!(Tool::Mysql);
    let server = server()?;
    let folder = Folder::new();
    let rows = |from: u64, to: u64| -> Outcome {
        let statements: Vec<_> =
            (from..to).map(|id| format!("INSERT INTO shop.t VALUES ({id}, 'row {id}')")).collect();
        server.sql(&statements.join(";"))?;
        Ok(())
    };
    rows(1, 100)?;
    // Killed again and again, after some lines were read: the pipe has more, which are lost with it.
    let mut seen: Vec<u64> = Vec::new();
    for round in 0..6_u64 {
        let mut child = follow(&folder, &server, &["--follow", "--offsets=offsets"]);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let until = 100 * (round + 1);
        let stop_at = until - 37 * (round % 2) - 1;
        rows(until, until + 100).unwrap();
        for line in lines.by_ref() {
            seen.push(id_of(&line.unwrap()));
            if *seen.last().unwrap() == stop_at {
                break;
            }
        }
        if round == 3 {
            // The offsets follow without more lines.
            std::thread::sleep(Duration::from_millis(600));
        }
        if round % 3 == 2 {
            // The reader dies: the program ends at its next line.
            drop(lines);
            rows(10_000 + round, 10_001 + round).unwrap();
            let until = Instant::now() + PATIENCE;
            while child.try_wait().unwrap().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    // The rest, to the end of what is there.
    let rest = follow(&folder, &server, &["--to-last-log", "--offsets=offsets"]).wait_with_output()?;
    assert!(rest.status.success(), "{}", String::from_utf8_lossy(&rest.stderr));
    seen.extend(String::from_utf8(rest.stdout)?.lines().map(id_of));
    // Each came, and after its last repetition in order.
    let mut last: BTreeMap<u64, usize> = BTreeMap::new();
    for (place, id) in seen.iter().enumerate() {
        last.insert(*id, place);
    }
    let small: Vec<_> = last.iter().filter(|(id, _)| **id < 10_000).collect();
    assert_eq!(small.len(), 699, "rows are missing");
    assert!(small.is_sorted_by_key(|(_, place)| **place));
    assert_eq!(last.len(), 701);
    // Everything was noted in the end.
    let again = follow(&folder, &server, &["--to-last-log", "--offsets=offsets"]).wait_with_output()?;
    assert_eq!(String::from_utf8(again.stdout)?, "");
    Ok(())
}

#[test]
fn a_large_transaction_has_its_number_in_all_lines_and_logs_are_followed_as_files() -> Outcome {
    require_tool!(Tool::Mysql);
    let server = server()?;
    let folder = Folder::new();
    server.sql("SET SESSION cte_max_recursion_depth = 1000000; INSERT INTO shop.t WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 120000) SELECT i, REPEAT('x', 90) FROM n")?;
    server.sql("INSERT INTO shop.t VALUES (1000000, 'after')")?;
    let first = server.datadir().join("binlog.000001");
    let first = first.to_str().unwrap();
    let whole = dump(&folder, &["--format=maxwell", "--table=shop.t", "--jobs=4", first]);
    let lines: Vec<_> = whole.lines().collect();
    assert_eq!(lines.len(), 120_001);
    let number = |line: &str| line.split_once("\"xid\":").unwrap().1.split(',').next().unwrap().to_owned();
    let xid = number(lines[0]);
    assert!(lines[..120_000].iter().all(|line| number(line) == xid));
    let commits: Vec<_> =
        (0..lines.len()).filter(|&place| lines[place].contains("\"commit\":true")).collect();
    assert_eq!(commits, [119_999, 120_000]);
    assert!(dump(&folder, &["--format=maxwell", "--table=shop.t", "--jobs=1", first]) == whole);

    // Its rows are counted, whichever worker wrote them.
    for jobs in ["--jobs=4", "--jobs=1"] {
        let arguments =
            ["--format=debezium", "--provide-transaction-metadata", "--table=shop.t", jobs, first];
        let numbered = dump(&folder, &arguments);
        let lines: Vec<_> = numbered.lines().collect();
        assert_eq!(lines.len(), 120_001 + 4);
        let last: Value = serde_json::from_str(lines[120_000])?;
        assert_eq!(last["transaction"]["total_order"], 120_000);
        let end: Value = serde_json::from_str(lines[120_001])?;
        assert_eq!(end["status"], "END");
        assert_eq!(end["data_collections"], json!([{"data_collection": "shop.t", "event_count": 120_000}]));
    }

    // The file grows, and another follows.
    let mut child =
        command(&folder, &["--format=debezium", "--table=shop.t", "--follow", "--offsets=offsets", first])
            .stdout(Stdio::piped())
            .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = |count: usize| -> u64 {
        lines.by_ref().take(count).map(|line| id_of(&line.unwrap())).last().unwrap()
    };
    assert_eq!(next(120_001), 1_000_000);
    server.sql("INSERT INTO shop.t VALUES (1000001, 'grown'); FLUSH BINARY LOGS; INSERT INTO shop.t VALUES (1000002, 'next')")?;
    assert_eq!(next(1), 1_000_001);
    assert_eq!(next(1), 1_000_002);
    server.sql("FLUSH BINARY LOGS; FLUSH BINARY LOGS; INSERT INTO shop.t VALUES (1000003, 'later')")?;
    assert_eq!(next(1), 1_000_003);
    child.kill()?;
    child.wait()?;
    Ok(())
}

#[test]
fn names_come_from_a_server_where_the_log_has_none() -> Outcome {
    require_tool!(Tool::Mysql);
    let installed = Tool::Mysql.find()?;
    let server = installed.sandbox().start()?;
    server.sql("GRANT SELECT ON *.* TO repl@'127.0.0.1'; CREATE DATABASE shop; CREATE TABLE shop.t (id INT UNSIGNED, e ENUM('a','b'), s SET('x','y'), b BLOB, PRIMARY KEY (id)); INSERT INTO shop.t VALUES (4000000000, 'b', 'x,y', 'z')")?;
    let folder = Folder::new();
    let schema = format!("--schema=127.0.0.1:{}", server.port());
    let mut child = follow(&folder, &server, &["--with-key", &schema, "--to-last-log", "binlog.000001"]);
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    child.wait()?;
    assert!(text.starts_with("{\"id\":4000000000}\t{\"before\":null,\"after\":{\"id\":4000000000,\"e\":\"b\",\"s\":\"x,y\",\"b\":\"eg==\"}"), "{text}");
    Ok(())
}
