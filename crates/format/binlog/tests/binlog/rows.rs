//! Rows of real logs: every value decodes, differences give the server's documents, and damage gives errors
//! and never more text than the bytes can hold.

use std::collections::HashMap;
use std::sync::Arc;

use binlogz_binlog::event::{
    FormatDescription, PostHeaderLengths, RowsEvent, RowsFlags, TransactionPayloadEvent,
};
use binlogz_binlog::row::{Row, RowDecoder, TableSchema, TableSchemas, Value};
use binlogz_binlog::{EventFrame, Framing};
use binlogz_binlog::{EventReader, EventType, Result};
use binlogz_testkit::{RealBinlog, Tool, mutate, real, require_tool};

/// More than any payload of these logs holds.
const PAYLOAD_SIZE_MAX: usize = 256 << 20;
/// Row events that are damaged, of each table, and damages of each.
const EVENTS_A_TABLE: usize = 3;
const DAMAGES: u64 = 200;

/// Hands every row event of a log to `look`, those inside payloads too.
fn each_rows_event(binlog: &RealBinlog, mut look: impl FnMut(&Arc<TableSchema>, &RowsEvent<'_>)) {
    let bytes = binlog.read();
    let mut reader = EventReader::new(bytes.as_slice());
    let mut lengths = PostHeaderLengths::default();
    let mut schemas = TableSchemas::new();
    let mut event = |frame: &EventFrame<'_>| {
        let event_type = frame.event_type();
        let length = lengths.of(event_type);
        if event_type == EventType::FORMAT_DESCRIPTION {
            lengths = PostHeaderLengths::from(&FormatDescription::decode_frame(frame)?);
        } else if event_type == EventType::TABLE_MAP {
            schemas.note(frame.body(), &lengths)?;
        } else if event_type.is_rows() {
            let event = RowsEvent::decode(event_type, frame.body(), length)?;
            look(schemas.get(event.table_id)?, &event);
            if event.flags.contains(RowsFlags::STMT_END) {
                schemas.end_statement();
            }
        }
        Ok(())
    };
    loop {
        let frame = match reader.next_event() {
            Ok(Some((_, frame))) => frame,
            Ok(None) => break,
            // Some of these servers were killed.
            Err(error) if error.is_truncation() => break,
            Err(error) => panic!("{}: {error}", binlog.name),
        };
        let looked = match frame.event_type() {
            EventType::TRANSACTION_PAYLOAD => each_inner_event(&frame, &mut event),
            _ => event(&frame),
        };
        looked.unwrap_or_else(|error| panic!("{}: {error}", binlog.name));
    }
}

fn each_inner_event(
    frame: &EventFrame<'_>,
    look: &mut impl FnMut(&EventFrame<'_>) -> Result<()>,
) -> Result<()> {
    let payload = TransactionPayloadEvent::decode(frame.body())?;
    let size = payload.header.uncompressed_size().expect("the server tells") as usize;
    assert!(size < PAYLOAD_SIZE_MAX, "a payload of {size} bytes");
    let mut events = vec![0; size];
    zstd_safe::decompress(events.as_mut_slice(), payload.payload).expect("real zstd");
    let mut rest = events.as_slice();
    while let Some(inner) = Framing::new().next_frame(rest)? {
        let inner = inner.verify()?;
        rest = &rest[inner.bytes().len()..];
        look(&inner)?;
    }
    Ok(())
}

/// Decodes everything a row event holds and returns how many values that were. Text may not be longer than
/// the bytes can hold.
fn decode_all(decoder: &mut RowDecoder, schema: &TableSchema, event: &RowsEvent<'_>) -> Result<usize> {
    let mut values = 0;
    let mut text = Vec::new();
    let mut rows = decoder.rows(schema, event)?;
    while let Some(row) = rows.next_row()? {
        for image in [row.before, row.after].into_iter().flatten() {
            for cell in image.cells() {
                values += 1;
                let _ = cell.text();
                text.clear();
                match cell.value() {
                    Ok(Value::Json(document)) => {
                        let _ = document.write_text(&mut text);
                        assert!(text.len() <= text_size_max(document.as_bytes().len()));
                    }
                    Ok(Value::JsonDiffs(diffs)) => {
                        diffs.iter().filter_map(Result::ok).filter_map(|diff| diff.value).for_each(
                            |document| {
                                let _ = document.write_text(&mut text);
                            },
                        );
                        assert!(text.len() <= text_size_max(diffs.as_bytes().len()));
                        text.clear();
                        if let Ok(Some(tree)) = row.json_after(cell.index) {
                            let _ = tree.write_text(&mut text);
                            assert!(text.len() <= text_size_max(event.rows.len()));
                        }
                    }
                    Ok(Value::Decimal(decimal)) => drop(decimal.to_string()),
                    Ok(Value::Date(date)) => drop(date.to_string()),
                    Ok(Value::Time(time)) => drop(time.to_string()),
                    Ok(Value::DateTime(datetime)) => drop(datetime.to_string()),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
    Ok(values)
}

/// The longest text of a document: of a two-byte number in an array, eight characters for three bytes.
fn text_size_max(bytes: usize) -> usize {
    8 * bytes + 100
}

#[test]
fn every_value_of_every_real_log_decodes() {
    let mut decoder = RowDecoder::new();
    let mut values = 0;
    for binlog in real::every_binlog() {
        each_rows_event(&binlog, |schema, event| {
            let mut rows = decoder.rows(schema, event).unwrap();
            while let Some(row) = rows.next_row().unwrap() {
                for cell in [row.before, row.after].into_iter().flatten().flat_map(|image| image.cells()) {
                    values += 1;
                    let value = cell.value().unwrap_or_else(|error| panic!("{}: {error}", binlog.name));
                    if let Value::Json(document) = value {
                        document.write_text(&mut Vec::new()).unwrap();
                    }
                }
            }
        });
    }
    assert!(values > 5_000, "only {values} values");
}

#[test]
fn damaged_rows_are_errors_or_values() {
    let seed = mutate::seed();
    let mut events_of: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut decoder = RowDecoder::new();
    let (mut whole, mut damaged) = (0, 0);
    for binlog in real::every_binlog() {
        each_rows_event(&binlog, |schema, event| {
            let count = events_of.entry([&*schema.database, b".", &schema.table].concat()).or_default();
            if *count >= EVENTS_A_TABLE || event.rows.len() > 100_000 {
                return;
            }
            *count += 1;
            decode_all(&mut decoder, schema, event).unwrap();
            for index in 0..DAMAGES {
                let (rows, _) = mutate::mutate(event.rows, seed, index);
                match decode_all(&mut decoder, schema, &RowsEvent { rows: &rows, ..*event }) {
                    Ok(_) => whole += 1,
                    Err(_) => damaged += 1,
                }
            }
        });
    }
    assert!(whole > 100 && damaged > 1000, "{whole} events decoded all the same, {damaged} did not");
}

/// Each JSON document of the after-images, differences applied, by column.
fn documents_after(row: &Row<'_, '_>) -> Vec<String> {
    let after = row.after.expect("an update");
    let documents = after.cells().filter_map(|cell| {
        let tree = row.json_after(cell.index).unwrap()?;
        let mut text = Vec::new();
        tree.write_text(&mut text).unwrap();
        Some(String::from_utf8(text).unwrap())
    });
    documents.collect()
}

const PARTIAL_UPDATES: &str = r#"
CREATE DATABASE d; USE d;
SET SESSION binlog_row_value_options = PARTIAL_JSON;
CREATE TABLE t (id INT PRIMARY KEY, j JSON, k JSON);
INSERT INTO t VALUES (1,
    CONCAT('{"a": [1, 2, 3], "o": {"x": null}, "long": "', REPEAT('l', 300), '"}'),
    CONCAT('["', REPEAT('m', 300), '", {"in": [[]]}]'));
CREATE TABLE history (n INT PRIMARY KEY AUTO_INCREMENT, j JSON, k JSON);
"#;

const CHANGES: [&str; 12] = [
    "j = JSON_SET(j, '$.a[1]', 'two')",
    r#"j = JSON_SET(j, '$.zz', 1, '$.b', 2, '$.""', 3)"#,
    "j = JSON_REMOVE(j, '$.a[0]'), k = JSON_REPLACE(k, '$[1].in', CAST('{\"k\": [1.5]}' AS JSON))",
    "j = JSON_SET(j, '$.a[9]', CAST('2024-02-29' AS DATE))",
    r#"k = JSON_SET(k, '$[1]."quo\\"te"', 1), j = JSON_REMOVE(j, '$.o.x')"#,
    r#"k = JSON_SET(k, '$[1]."quo\\"te"', 2)"#,
    "k = JSON_REMOVE(k, '$[1].in.k[0]'), j = JSON_SET(j, '$.o.deep', CAST('[{\"a\": {}}]' AS JSON))",
    "j = JSON_SET(j, '$.o.deep[0].a.b', 1.50, '$.o.deep[0].a.c', x'ff')",
    r#"j = JSON_REMOVE(j, '$.zz', '$.""', '$.o')"#,
    "id = 2",
    "j = JSON_SET(j, '$.long', 'short')",
    "k = JSON_REMOVE(k, '$[0]')",
];

#[test]
fn differences_give_the_servers_documents() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let mysql = require_tool!(Tool::Mysql);
    let server = mysql.sandbox().start()?;
    server.sql(PARTIAL_UPDATES)?;
    server.flush_binary_logs()?;
    let changes: String = CHANGES
        .iter()
        .map(|change| {
            format!(
                "SET SESSION binlog_row_value_options = PARTIAL_JSON; UPDATE d.t SET {change};
                 SET sql_log_bin = 0; INSERT INTO d.history (j, k) SELECT j, k FROM d.t; SET sql_log_bin = 1;\n"
            )
        })
        .collect();
    server.sql(&changes)?;
    let history = server.sql("SELECT HEX(j), HEX(k) FROM d.history ORDER BY n")?;
    let path = server.flush_binary_logs()?;
    let binlog = RealBinlog {
        name: "partial".into(),
        path,
        compression: binlogz_testkit::SampleCompression::Off,
        relay_log: false,
    };
    let (mut documents, mut diffs) = (Vec::new(), 0);
    each_rows_event(&binlog, |schema, event| {
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(schema, event).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            let after = row.after.unwrap();
            diffs += after.cells().filter(|cell| matches!(cell.value(), Ok(Value::JsonDiffs(_)))).count();
            documents.push(documents_after(&row));
        }
    });
    let expected: Vec<Vec<String>> = history
        .lines()
        .map(|line| line.split('\t').map(|hex| String::from_utf8(from_hex(hex)).unwrap()).collect())
        .collect();
    assert_eq!(expected.len(), CHANGES.len());
    assert_eq!(documents, expected);
    assert!(diffs > CHANGES.len(), "only {diffs} columns came as differences");
    Ok(())
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).expect("hexadecimal")).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}
