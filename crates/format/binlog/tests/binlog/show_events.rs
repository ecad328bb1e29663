//! SHOW BINLOG EVENTS, row by row, compared with MySQL 9.7.4: with its recorded output for two logs, and with a live
//! server's for logs of everything it writes.
//!
//! `show_events/written.*`: statements of every kind. `crafted.*`: events that a server seldom or
//! never writes (unknown flags and variables, incidents, doubles of every shape), accepted by it
//! as its own log.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use binlogz_binlog::event::{AnyEvent, CompressionType, FormatDescription, PostHeaderLengths};
use binlogz_binlog::show_events::{event_type_name, write_info};
use binlogz_binlog::{EventFrame, Framing};
use binlogz_binlog::{EventReader, EventType};
use binlogz_testkit::{Tool, mixed, require_tool};

#[test]
fn recorded_logs_print_as_the_server_printed_them() {
    for name in ["written", "crafted"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/show_events");
        let log = fs::read(folder.join(name).with_extension("binlog")).unwrap();
        let expected = fs::read(folder.join(name).with_extension("tsv")).unwrap();
        compare(name, &show(&log), &expected);
    }
}

#[test]
fn live_logs_print_as_the_server_prints_them() {
    let mysql = require_tool!(Tool::Mysql);
    // Their names must not meet in the server's data directory.
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for log in mixed::binlogs().unwrap().iter().filter(|log| !log.relay_log) {
        let file = folder.path().join(format!("binlog.{:06}", files.len() + 1));
        fs::copy(&log.path, &file).unwrap();
        files.push(file);
    }
    assert!(!files.is_empty());
    let server = mysql.sandbox().binlogs(&files).start().unwrap();
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        let mut client = server.client();
        client.args(["--batch", "--skip-column-names"]);
        let output = client.arg(format!("--execute=SHOW BINLOG EVENTS IN '{name}'")).output().unwrap();
        let printed = output.stdout.split_inclusive(|&byte| byte == b'\n');
        let expected: Vec<u8> = printed.flat_map(without_first_column).copied().collect();
        compare(name, &show(&fs::read(file).unwrap()), &expected);
    }
}

fn without_first_column(row: &[u8]) -> &[u8] {
    row.splitn(2, |&byte| byte == b'\t').nth(1).expect("more than one column")
}

/// The rows without `Log_name`, in the escapes of `mysql --batch`.
fn show(log: &[u8]) -> Vec<u8> {
    let mut rows = Vec::new();
    let mut reader = EventReader::new(log);
    let mut lengths = PostHeaderLengths::default();
    let mut framing = reader.framing();
    while let Some((offset, frame)) = reader.next_event().unwrap() {
        if frame.event_type() == EventType::FORMAT_DESCRIPTION {
            let description = FormatDescription::decode_frame(&frame).unwrap();
            lengths = PostHeaderLengths::from(&description);
            framing = Framing::of(&description);
        }
        let end = offset + frame.bytes().len() as u64;
        let event = AnyEvent::decode(&frame, &lengths).unwrap();
        show_event(&event, &frame, offset, end, &mut rows);
        if let AnyEvent::TransactionPayload(payload) = event {
            let inside = match payload.header.compression_type() {
                CompressionType::NONE => payload.payload.to_vec(),
                _ => {
                    let mut inside = vec![0; payload.header.uncompressed_size().unwrap() as usize];
                    zstd_safe::decompress(inside.as_mut_slice(), payload.payload).unwrap();
                    inside
                }
            };
            let mut rest = inside.as_slice();
            while !rest.is_empty() {
                let inner = framing.inside_payload().next_frame(rest).unwrap().unwrap().verify().unwrap();
                show_event(&AnyEvent::decode(&inner, &lengths).unwrap(), &inner, end, end, &mut rows);
                rest = &rest[inner.bytes().len()..];
            }
        }
    }
    rows
}

fn show_event(event: &AnyEvent<'_>, frame: &EventFrame<'_>, start: u64, end: u64, rows: &mut Vec<u8>) {
    let header = frame.header();
    let mut info = Vec::new();
    write_info(event, header.flags, &mut info);
    let mut columns = String::new();
    let kind = event_type_name(header.event_type);
    write!(columns, "{start}\t{kind}\t{}\t{end}\t", header.server_id).unwrap();
    rows.extend_from_slice(columns.as_bytes());
    for byte in info {
        match byte {
            0 => rows.extend_from_slice(b"\\0"),
            b'\n' => rows.extend_from_slice(b"\\n"),
            b'\t' => rows.extend_from_slice(b"\\t"),
            b'\\' => rows.extend_from_slice(b"\\\\"),
            other => rows.push(other),
        }
    }
    rows.push(b'\n');
}

#[track_caller]
fn compare(name: &str, found: &[u8], expected: &[u8]) {
    let rows = |text: &[u8]| -> Vec<String> {
        text.split(|&byte| byte == b'\n').map(|row| String::from_utf8_lossy(row).into_owned()).collect()
    };
    for (found, expected) in rows(found).iter().zip(&rows(expected)) {
        assert_eq!(found, expected, "{name}");
    }
    assert_eq!(found, expected, "{name}");
}
