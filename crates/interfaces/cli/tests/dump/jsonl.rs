//! `dump --format jsonl`: every line is JSON, no row is missing, and values are those that mysqlbinlog shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;

use crate::common::{Folder, sample};
use binlogz_testkit::RealBinlog;
use binlogz_testkit::{Tool, corpus, mixed, require_tool};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// The lines of a log.
fn lines(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let ran =
        folder.run(["dump", "--no-defaults", "--no-login-paths", "--format=jsonl"].iter().chain(arguments));
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    parsed(ran.text())
}

fn parsed(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'));
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(line).collect()
}

fn is_row(line: &Value) -> bool {
    matches!(line["type"].as_str(), Some("insert" | "update" | "delete"))
}

/// A row as mysqlbinlog shows it: `INSERT INTO`, the table, the columns' texts of each image.
#[derive(Debug)]
struct ShownRow {
    table: String,
    images: Vec<Vec<ShownValue>>,
}

#[derive(Debug)]
struct ShownValue {
    text: String,
    /// The beginning of the comment: the type.
    kind: String,
}

/// The rows that `mysqlbinlog -vv` shows, and the tables in which it got stuck.
fn shown_rows(text: &str) -> (Vec<ShownRow>, BTreeSet<String>) {
    let mut rows: Vec<ShownRow> = Vec::new();
    let mut stuck = BTreeSet::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("### ") else { continue };
        let heads = ["INSERT INTO ", "UPDATE ", "DELETE FROM "];
        if let Some(table) = heads.iter().find_map(|head| line.strip_prefix(head)) {
            rows.push(ShownRow {
                table: table.trim_end_matches(" VALUES ()").to_owned(),
                images: Vec::new(),
            });
            continue;
        }
        let Some(row) = rows.last_mut() else { continue };
        if line == "SET" || line == "WHERE" {
            row.images.push(Vec::new());
        } else if let Some(value) = line.strip_prefix("  @") {
            if value.contains("!! Don't know how to handle column type") {
                stuck.insert(row.table.clone());
            }
            let text = value.split_once('=').map_or("", |(_, text)| text);
            let (text, kind) = text.rsplit_once(" /* ").unwrap_or((text, ""));
            let value = ShownValue { text: text.to_owned(), kind: kind.to_owned() };
            row.images.last_mut().expect("an image was begun").push(value);
        }
    }
    (rows, stuck)
}

/// Bytes as characters of the same numbers: what is shown is no UTF-8.
fn by_bytes(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// The text between quotes, escapes undone.
fn unquoted(text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut bytes = Vec::new();
    let mut rest = inner.chars().map(|character| character as u8);
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next()? {
            b'n' => b'\n',
            b'b' => 8,
            b't' => b'\t',
            b'f' => 12,
            b'r' => b'\r',
            b'x' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    Some(bytes)
}

/// Whether a value is the one that mysqlbinlog shows.
fn is_same(json: &Value, shown: &ShownValue) -> bool {
    let ShownValue { text, kind } = shown;
    if text == "NULL" {
        return json.is_null();
    }
    if json.get("json_diffs").is_some() {
        return text.starts_with("JSON_");
    }
    let bits = |text: &str| u64::from_str_radix(text.trim_start_matches("b'").trim_end_matches('\''), 2);
    let type_name = kind.split(['(', ' ']).next().unwrap_or_default();
    match type_name {
        "TINYINT" | "SHORTINT" | "MEDIUMINT" | "INT" | "LONGINT" | "YEAR" => {
            let (signed, unsigned) = text.split_once(" (").unwrap_or((text, text));
            let json = json.to_string();
            // mysqlbinlog takes the year 0000 for 1900.
            let is_year_0 = type_name == "YEAR" && (json.as_str(), text.as_str()) == ("0", "1900");
            json == signed || json == unsigned.trim_end_matches(')') || is_year_0
        }
        "FLOAT" | "DOUBLE" => {
            let (Some(json), Ok(shown)) = (json.as_f64(), text.trim().parse::<f64>()) else { return false };
            // FLOAT is shown with 6 digits.
            let tolerance = if type_name == "FLOAT" { 1e-5 } else { 0.0 };
            (json - shown).abs() <= tolerance * shown.abs()
        }
        "DECIMAL" | "TIMESTAMP" => json.as_str() == Some(text.trim_matches('\'')),
        "TIME" | "DATETIME" => json.as_str() == Some(text.trim_matches('\'')),
        "DATE" => json.as_str() == Some(&*text.trim_matches('\'').replace(':', "-")),
        "BIT" => json.as_u64() == bits(text).ok(),
        // The bytes as they are stored, the lowest first.
        "SET" => {
            let digits = text.trim_start_matches("b'").trim_end_matches('\'').as_bytes();
            let bytes: Vec<&[u8]> = digits.chunks(8).rev().collect();
            let Ok(shown) = bits(&String::from_utf8_lossy(&bytes.concat())) else { return false };
            match json.as_array() {
                Some(members) => shown.count_ones() as usize == members.len(),
                None => json.as_u64() == Some(shown),
            }
        }
        // A name in place of the number, where the log has names.
        "ENUM" => json.is_string() || json.as_u64() == text.parse().ok(),
        "JSON" => {
            let Some(bytes) = unquoted(text) else { return false };
            let document = json.as_str().unwrap_or_default();
            // mysqlbinlog shows a document that is a string without its quotes.
            let unquoted: Result<String, _> = serde_json::from_str(document);
            bytes == document.as_bytes() || unquoted.is_ok_and(|text| text.as_bytes() == bytes)
        }
        _ => {
            let Some(bytes) = unquoted(text) else { return false };
            // mysqlbinlog shows a BINARY(n) as the log has it, without the zeros at its end.
            let is_as_shown = |value: &[u8]| {
                let zeros = value.strip_prefix(&*bytes);
                zeros.is_some_and(|zeros| {
                    zeros.is_empty() || type_name == "STRING" && zeros.iter().all(|&zero| zero == 0)
                })
            };
            match (json.as_str(), json.get("base64")) {
                // Text in another character set has other bytes.
                (Some(text), None) => {
                    is_as_shown(text.as_bytes())
                        || !text.is_ascii()
                        || !bytes.is_ascii()
                        || bytes.contains(&0)
                }
                (None, Some(base64)) => {
                    base64.as_str().and_then(decoded).is_some_and(|value| is_as_shown(&value))
                }
                _ => false,
            }
        }
    }
}

fn decoded(base64: &str) -> Option<Vec<u8>> {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for byte in base64.bytes().filter(|&byte| byte != b'=') {
        bits = bits << 6 | alphabet.iter().position(|&letter| letter == byte)? as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(bytes)
}

/// A line about a row.
#[derive(Debug, Deserialize)]
struct RowLine {
    #[serde(rename = "type")]
    kind: String,
    database: Option<String>,
    table: Option<String>,
    before: Option<Columns>,
    after: Option<Columns>,
}

impl RowLine {
    fn of(line: &str) -> RowLine {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    fn is_row(&self) -> bool {
        matches!(self.kind.as_str(), "insert" | "update" | "delete")
    }

    /// As mysqlbinlog writes it, byte by byte.
    fn table_name(&self) -> String {
        let [database, table] = [&self.database, &self.table]
            .map(|name| by_bytes(name.as_deref().unwrap_or_default().replace('`', "``").as_bytes()));
        format!("`{database}`.`{table}`")
    }
}

/// The columns of an image, in their order.
#[derive(Debug)]
struct Columns(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Columns;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("columns")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Columns, A::Error> {
                let mut columns = Vec::new();
                while let Some(column) = map.next_entry()? {
                    columns.push(column);
                }
                Ok(Columns(columns))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Larger logs hold more of the same.
const SIZE_MAX: u64 = 300_000;

/// Logs that mysqlbinlog reads.
fn logs() -> Vec<RealBinlog> {
    // Compressed samples hold the rows of the plain ones.
    let is_small = |log: &RealBinlog| fs::metadata(&log.path).unwrap().len() < SIZE_MAX;
    let wanted = |log: &RealBinlog| is_small(log) && !log.name.starts_with("samples/compressed");
    let mut logs: Vec<_> = corpus::binlogs().into_iter().filter(wanted).collect();
    let settings = ["full-metadata-level3/source/"];
    let made = mixed::binlogs().unwrap_or_else(|error| panic!("make binlogs: {error}"));
    logs.extend(made.into_iter().filter(|log| settings.iter().any(|setting| log.name.starts_with(setting))));
    logs
}

#[test]
fn rows_are_those_that_mysqlbinlog_shows() {
    let mysql = require_tool!(Tool::Mysql);
    let folder = Folder::new();
    let (mut compared, mut tables_left_out) = (0, BTreeSet::new());
    for log in logs() {
        let path = log.path.to_str().unwrap();
        let theirs = mysql.mysqlbinlog(["-vv", "--base64-output=decode-rows", path]).unwrap();
        if !theirs.status.success() {
            continue;
        }
        let ran = folder.run(["dump", "--no-defaults", "--no-login-paths", "--format=jsonl", path]);
        assert_eq!(ran.code, Some(0), "{}: {}", log.name, ran.stderr);
        let lines: Vec<RowLine> = ran.text().lines().map(RowLine::of).collect();
        let (shown, stuck) = shown_rows(&by_bytes(&theirs.stdout));
        let ours = lines.iter().filter(|line| line.is_row() && !stuck.contains(&line.table_name()));
        let theirs = shown.iter().filter(|row| !stuck.contains(&row.table));
        assert_eq!(ours.clone().count(), theirs.clone().count(), "{}: rows", log.name);
        for (line, row) in ours.zip(theirs) {
            assert_eq!(line.table_name(), row.table, "{}", log.name);
            let images = [&line.before, &line.after].into_iter().flatten();
            for (Columns(image), shown) in images.zip(&row.images) {
                assert_eq!(image.len(), shown.len(), "{}: {line:?}", log.name);
                for ((_, json), shown) in image.iter().zip(shown) {
                    assert!(is_same(json, shown), "{}: {json} is {shown:?}\n{line:?}", log.name);
                    compared += 1;
                }
            }
        }
        tables_left_out.extend(stuck);
    }
    assert!(compared > 10_000, "{compared} values");
    println!("{compared} values compared; mysqlbinlog can't show {tables_left_out:?}");
}

#[test]
fn plain_and_compressed_logs_have_the_same_rows() {
    let folder = Folder::new();
    let rows = |kind: &str| -> Vec<Value> {
        folder.put("binlog.000001", sample(kind, "binlog.000001"));
        let of_row = |line: Value| {
            let kept = ["type", "database", "table", "row", "before", "after", "server_id"];
            Value::from_iter(kept.map(|name| (name, line[name].clone())))
        };
        lines(&folder, &["binlog.000001"]).into_iter().filter(is_row).map(of_row).collect()
    };
    folder.put("plain", sample("compressed", "binlog.000009"));
    folder.run(["expand", "-o", "expanded", "plain"]);
    let of = |name: &str| -> usize { lines(&folder, &[name]).iter().filter(|line| is_row(line)).count() };
    assert_eq!(of("plain"), of("expanded"));
    assert!(rows("plain").len() > 10);
}

#[test]
fn each_line_knows_its_transaction() {
    let folder = Folder::with_sample("compressed", "binlog.000009");
    let lines = lines(&folder, &["binlog.000009"]);
    let mut gtids = BTreeSet::new();
    for line in &lines {
        assert_eq!(line["log"], "binlog.000009");
        assert!(line["position"].is_u64() && line["end_log_pos"].is_u64() && line["timestamp"].is_u64());
        let transaction = &line["transaction"];
        match line["type"].as_str().unwrap() {
            "format_description" | "previous_gtids" | "rotate" | "stop" => {
                assert!(transaction.is_null(), "{line}")
            }
            kind => {
                assert!(
                    transaction["gtid"].is_string() && transaction["transaction_length"].is_u64(),
                    "{line}"
                );
                assert!(line["position"].as_u64() >= transaction["position"].as_u64(), "{line}");
                gtids.insert(transaction["gtid"].to_string());
                if line["in_payload"].is_object() {
                    assert!(transaction["payload_size"].as_u64() > Some(0), "{line}");
                    assert!(transaction["uncompressed_size"].as_u64() > Some(0), "{line}");
                }
                if kind != "gtid" && kind != "transaction_payload" {
                    assert!(transaction["thread_id"].is_u64(), "{line}");
                }
            }
        }
    }
    let begun = lines.iter().filter(|line| line["type"] == "gtid").count();
    assert_eq!(gtids.len(), begun);
}

#[test]
fn what_is_asked_for_is_shown() {
    let folder = Folder::with_sample("compressed", "binlog.000009");
    let all = lines(&folder, &["binlog.000009"]);
    let gtid_of = |line: &Value| line["transaction"]["gtid"].as_str().map(str::to_owned);
    let gtids: Vec<_> = all.iter().filter(|line| line["type"] == "gtid").filter_map(gtid_of).collect();
    let third = &gtids[2];
    let of_gtid = |lines: &[Value]| -> BTreeSet<String> { lines.iter().filter_map(gtid_of).collect() };

    let only = lines(&folder, &[&format!("--include-gtids={third}"), "binlog.000009"]);
    assert_eq!(of_gtid(&only), BTreeSet::from([third.clone()]));
    let but = lines(&folder, &[&format!("--exclude-gtids={third}"), "binlog.000009"]);
    assert_eq!(of_gtid(&but).len() + 1, gtids.len());
    let before = lines(&folder, &[&format!("--stop-before-gtid={third}"), "binlog.000009"]);
    assert_eq!(of_gtid(&before), gtids[..2].iter().cloned().collect());

    let position =
        all.iter().find(|line| gtid_of(line).as_ref() == Some(third)).unwrap()["position"].to_string();
    let stopped = lines(&folder, &[&format!("--stop-position={position}"), "binlog.000009"]);
    assert_eq!(stopped.len(), before.len());
    let started = lines(&folder, &[&format!("--start-position={position}"), "binlog.000009"]);
    assert_eq!(stopped.len() + started.len(), all.len());

    let row = all.iter().find(|line| is_row(line)).unwrap();
    let table = format!("--table={}.{}", row["database"].as_str().unwrap(), row["table"].as_str().unwrap());
    let of_table = lines(&folder, &[&table, "binlog.000009"]);
    let rows: Vec<_> = of_table.iter().filter(|line| is_row(line)).collect();
    assert!(!rows.is_empty() && rows.iter().all(|line| line["table"] == row["table"]));
    assert!(of_table == with_rows_of(&all, &row["database"], &row["table"]));
    for nothing in
        ["--stop-datetime=2001-01-01 0:0:0", "--start-datetime=2101-01-01 0:0:0", "--server-id=4711"]
    {
        let ran = folder.run(["dump", "--no-defaults", "--format=jsonl", nothing, "binlog.000009"]);
        // The format description alone.
        assert_eq!((ran.code, parsed(ran.text()).len()), (Some(1), 1), "{}", ran.stderr);
    }
}

/// The lines of transactions with rows of a table, without those of other tables and statements.
fn with_rows_of(all: &[Value], database: &Value, table: &Value) -> Vec<Value> {
    let is_its = |line: &Value| line["database"] == *database && line["table"] == *table;
    let has_rows = |gtid: &Value| {
        all.iter().any(|line| is_row(line) && is_its(line) && line["transaction"]["gtid"] == *gtid)
    };
    let is_shown = |(place, line): (usize, &Value)| {
        let is_with = |other: &&Value| other["transaction"]["gtid"] == line["transaction"]["gtid"];
        let statement = all[place..].iter().skip(1).take_while(|after| after["type"] != "rows_query");
        let mut before = all[..place].iter().rev().take_while(is_with);
        line["transaction"].is_null()
            || has_rows(&line["transaction"]["gtid"])
                && match line["type"].as_str().unwrap() {
                    "gtid" | "xid" | "transaction_payload" | "xa_prepare" => true,
                    "query" => {
                        let statement = line["statement"].as_str().unwrap();
                        let is = |control: &[&str]| control.iter().any(|word| statement.starts_with(word));
                        is(&["BEGIN", "COMMIT", "XA "])
                            || is(&["SAVEPOINT", "ROLLBACK TO"])
                                && before.any(|before| is_row(before) && is_its(before))
                    }
                    "rows_query" => statement.take_while(is_with).any(|after| is_row(after) && is_its(after)),
                    _ => is_its(line),
                }
    };
    let places = all.iter().enumerate().filter(|(place, line)| is_shown((*place, line)));
    places.map(|(_, line)| line.clone()).collect()
}

#[test]
fn transactions_without_rows_of_the_table_have_no_lines() {
    let folder = Folder::new();
    for log in ["binlog.000002", "binlog.000004"].map(corpus::path) {
        let log = log.to_str().unwrap();
        let all = lines(&folder, &[log]);
        let tables: BTreeSet<_> = all
            .iter()
            .filter(|line| is_row(line))
            .map(|line| (line["database"].to_string(), line["table"].to_string()))
            .collect();
        assert!(!tables.is_empty(), "{log}");
        for (database, table) in tables.iter().take(3) {
            let [database, table] = [database, table].map(|name| serde_json::from_str(name).unwrap());
            let (Value::String(a), Value::String(b)) = (&database, &table) else { panic!("names") };
            let option = format!("--table={a}.{b}");
            assert!(
                lines(&folder, &[&option, log]) == with_rows_of(&all, &database, &table),
                "{log} {option}"
            );
        }
        let none = folder.run(["dump", "--no-defaults", "--format=jsonl", "--table=no.table", log]);
        assert_eq!(none.code, Some(1));
        assert!(parsed(none.text()).iter().all(|line| line["transaction"].is_null()), "{log}");
    }
}

fn table_of(lines: &[Value]) -> String {
    let row = lines.iter().rfind(|line| is_row(line)).unwrap();
    format!("{}.{}", row["database"].as_str().unwrap(), row["table"].as_str().unwrap())
}

/// Law 7: batches are decoded side by side, and one transaction may span many.
#[test]
fn lines_are_the_same_with_any_number_of_threads() {
    let folder = Folder::new();
    let jsonl = |arguments: &[&str], jobs: &str| {
        let common = ["dump", "--no-defaults", "--no-login-paths", "--format=jsonl", jobs];
        let ran = folder.run(common.iter().chain(arguments));
        (ran.code, ran.stderr, ran.stdout)
    };
    let mut several = Vec::new();
    // A payload of the second one is larger than a batch.
    for log in ["binlog.000003", "levels.000002"].map(corpus::path) {
        let all = lines(&folder, &[log.to_str().unwrap()]);
        let gtids: Vec<&str> = all.iter().filter_map(|line| line["transaction"]["gtid"].as_str()).collect();
        let middle = &all[all.len() / 2];
        let set = gtids[gtids.len() / 2];
        for option in [
            String::new(),
            format!("--start-position={}", middle["position"]),
            format!("--stop-position={}", middle["position"]),
            format!("--exclude-gtids={set}"),
            format!("--stop-before-gtid={set}"),
            format!("--table={}", table_of(&all)),
            "--database=no".to_owned(),
        ] {
            let path = log.to_str().unwrap().to_owned();
            several.push([vec![option], vec![path]].concat());
        }
    }
    let bytes = fs::read(corpus::path("levels.000002")).unwrap();
    let cut = folder.put("cut", &bytes[..bytes.len() - 1000]);
    several.push(vec![cut.to_str().unwrap().to_owned()]);
    for arguments in several {
        let arguments: Vec<&str> =
            arguments.iter().map(String::as_str).filter(|option| !option.is_empty()).collect();
        let one = jsonl(&arguments, "--jobs=1");
        assert!(!one.2.is_empty(), "{arguments:?}");
        for jobs in ["--jobs=2", "--jobs=3", "--jobs=5"] {
            assert!(jsonl(&arguments, jobs) == one, "{jobs} {arguments:?}");
        }
    }
}

/// Lines whose columns have the names of these table maps: what statements before a position told isn't known from there on.
fn named(lines: Vec<Value>, maps: &BTreeMap<String, Vec<Value>>) -> Vec<Value> {
    let name = |line: &Value, at: &str| {
        let index = at.strip_prefix('@').and_then(|number| number.parse::<usize>().ok());
        let table = format!("{}.{}", line["database"], line["table"]);
        index.map_or_else(|| at.to_owned(), |index| maps[&table][index - 1].as_str().unwrap().to_owned())
    };
    let mut lines = lines;
    for line in &mut lines {
        let of = line.clone();
        for image in ["before", "after"] {
            if let Some(image) = line.get_mut(image).and_then(Value::as_object_mut) {
                *image =
                    std::mem::take(image).into_iter().map(|(at, value)| (name(&of, &at), value)).collect();
            }
        }
        for column in line.get_mut("columns").and_then(Value::as_array_mut).into_iter().flatten() {
            column["name"] = name(&of, column["name"].as_str().unwrap()).into();
        }
    }
    lines
}

/// Events before the transaction are not read, and each line still knows its own.
#[test]
fn lines_from_a_position_on_are_those_of_the_whole_log() {
    let folder = Folder::with_sample("plain", "binlog.000007");
    let all = lines(&folder, &["binlog.000007"]);
    let maps = all.iter().filter_map(|line| {
        let columns = line["columns"].as_array()?.iter().map(|column| column["name"].clone());
        Some((format!("{}.{}", line["database"], line["table"]), columns.collect()))
    });
    let maps: BTreeMap<String, Vec<Value>> = maps.collect();
    let positions: BTreeSet<u64> = all.iter().filter_map(|line| line["position"].as_u64()).collect();
    for start in positions.iter().copied().step_by(7) {
        let expected = all.iter().filter(|line| line["position"].as_u64() >= Some(start));
        let found = lines(&folder, &[&format!("--start-position={start}"), "binlog.000007"]);
        assert!(named(found, &maps).iter().eq(expected), "{start}");
    }
    // Damage before it does not matter.
    let mut bytes = sample("plain", "binlog.000007");
    let gtids: Vec<&Value> = all.iter().filter(|line| line["type"] == "gtid").collect();
    let damaged = gtids[1]["position"].as_u64().unwrap() as usize;
    bytes[damaged + 30] ^= 0x55;
    folder.put("damaged", &bytes);
    let inside = all.iter().rfind(|line| is_row(line) && line["row"] == 0).unwrap();
    let start = format!("--start-position={}", inside["position"]);
    let found = lines(&folder, &["--verify-binlog-checksum", &start, "damaged"]);
    let first =
        Value::from_iter(inside.as_object().unwrap().clone().into_iter().map(|(name, value)| match &*name {
            "log" => (name, Value::from("damaged")),
            _ => (name, value),
        }));
    assert_eq!(named(found, &maps)[0], first);
}

#[test]
fn damage_ends_behind_a_whole_line() {
    let folder = Folder::new();
    let mut bytes = sample("compressed", "binlog.000009");
    let length = bytes.len();
    folder.put("cut", &bytes[..length - 100]);
    bytes[length / 2] ^= 0x55;
    folder.put("damaged", &bytes);
    for (arguments, said) in [
        (["--verify-binlog-checksum", "damaged"].as_slice(), "ERROR: damaged at "),
        (&["cut"], "ERROR: cut at "),
        (&["missing"], "ERROR: missing: "),
        (&["--offset=3", "cut"], "ERROR: --offset can't be used with --format=jsonl"),
        (&["--rewrite-db=a->b", "cut"], "ERROR: --rewrite-db can't be used with --format=jsonl"),
        (&["-r", "no-such-folder/x", "cut"], "ERROR: Could not create log file 'no-such-folder/x': "),
    ] {
        let common = ["dump", "--no-defaults", "--no-login-paths", "--format=jsonl"];
        let ran = folder.run(common.iter().chain(arguments));
        assert_eq!(ran.code, Some(1), "{arguments:?}");
        assert!(ran.stderr.starts_with(said), "{arguments:?}: {}", ran.stderr);
        assert_eq!(ran.stderr.lines().count(), 1, "{arguments:?}: {}", ran.stderr);
        parsed(ran.text());
    }
    // Nobody reads any more: a quiet success.
    let mut child = folder.spawn(["dump", "--format=jsonl", "binlog.000009"]);
    drop(child.stdout.take());
    let ran: crate::common::Ran = child.wait_with_output().unwrap().into();
    assert!(ran.stderr.lines().count() <= 1, "{}", ran.stderr);
}
