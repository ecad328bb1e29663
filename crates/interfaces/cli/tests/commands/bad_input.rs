//! Bad input is the normal case: one clear line with file and offset, exit code 2, no files left.

use std::fs;

use crate::common::{Folder, sample};
use binlogz_binlog::header::{EVENT_SIZE_OFFSET, HEADER_SIZE};
use binlogz_testkit::builder::{self, LogBuilder, PayloadBody, Release};
use binlogz_testkit::corpus;

/// Every command that reads a log, with its log last.
const COMMANDS: [&[&str]; 4] = [
    &["compress", "--output", "out"],
    &["expand", "--output", "out"],
    &["verify"],
    &["events", "--limit", "9999"],
];

/// All commands refuse the log `bad` with the same line and write nothing.
#[track_caller]
fn refused(folder: &Folder, line: &str) {
    let before = folder.names();
    for command in COMMANDS {
        let ran = folder.run(command.iter().chain(&["bad"]));
        assert_eq!(
            (ran.stderr.as_str(), ran.code),
            (format!("binlogz: {line}\n").as_str(), Some(2)),
            "{command:?}"
        );
        // Events before the damage are listed, below a heading that never stands alone.
        let is_listing = command[0] == "events" && ran.text().lines().count() > 1;
        assert!(ran.stdout.is_empty() || is_listing, "{}", ran.text());
    }
    assert_eq!(folder.names(), before);
}

#[test]
fn what_is_no_log() {
    let folder = Folder::new();
    refused(&folder, "bad: No such file or directory (os error 2)");
    for (bytes, line) in [
        (&b""[..], "bad: is empty, expected a binary log"),
        (b"\xfebi", "bad at 0: the log ends inside an event: 4 bytes expected, 3 are there"),
        (b"-- SQL\n", "bad: not a binary log: it begins with 2d 2d 20 53, expected fe 62 69 6e"),
        (
            b"\x1f\x8b\x08\0\0",
            "bad: not a binary log: it begins with 1f 8b 08 00, expected fe 62 69 6e; this is gzip: zcat FILE | \
             binlogz … -",
        ),
        (
            b"\x28\xb5\x2f\xfd\0",
            "bad: not a binary log: it begins with 28 b5 2f fd, expected fe 62 69 6e; this is a zstd file: zstdcat \
             FILE | binlogz … -",
        ),
        (
            b"\xfdbin\x01",
            "bad: the binary log is encrypted: a keyring is needed to read it; --keyring FILE names it",
        ),
        (
            b"\xfe\xfe\x0d\x01\x0e\0\0\0\x01\0\0\0",
            "bad: is a file of MariaDB's InnoDB-based binary log (binlog_storage_engine=innodb, since 12.3), expected a binary log in a \
             file: mariadb-binlog of 12.3 prints it; a replica with log_slave_updates and without that setting writes a log that can be \
             read here",
        ),
    ] {
        folder.put("bad", bytes);
        refused(&folder, line);
    }
    fs::remove_file(folder.path("bad")).unwrap();
    fs::create_dir(folder.path("bad")).unwrap();
    refused(&folder, "bad: is a directory, expected a binary log; name the logs in it: bad/binlog.0*");
}

#[test]
fn an_encrypted_log() {
    let folder = Folder::new();
    folder.put("bad", fs::read(corpus::encrypted().encrypted).unwrap());
    refused(
        &folder,
        "bad: the binary log is encrypted: a keyring is needed to read it; --keyring FILE names it",
    );
}

#[test]
fn a_wrong_checksum() {
    let folder = Folder::new();
    let mut log = sample("plain", "binlog.000009");
    log[990] ^= 1;
    folder.put("bad", &log);
    refused(&folder, "bad at 988: Query event: checksum is 0x58687275, the bytes give 0x0fad3a6c");
}

#[test]
fn lengths_that_lie() {
    let folder = Folder::new();
    let log = sample("plain", "binlog.000009");
    for (size, line) in [
        (
            18u32,
            "bad at 198: event header: event size is 18, expected at least the 23 bytes of a header and a checksum",
        ),
        (u32::MAX, "bad at 198: event header: event size is 4294967295, expected at most 1 GiB"),
        (
            1 << 30,
            "bad at 198: Gtid event: the log ends inside an event: 1073741824 bytes expected, 7163 are there",
        ),
    ] {
        let mut bad = log.clone();
        bad[198 + EVENT_SIZE_OFFSET..198 + HEADER_SIZE - 6].copy_from_slice(&size.to_le_bytes());
        folder.put("bad", &bad);
        refused(&folder, line);
    }
}

/// A log with one transaction, in this payload.
fn log_with(payload: &PayloadBody) -> Vec<u8> {
    LogBuilder::new(Release::MYSQL_9_7).payload(payload).bytes().to_vec()
}

#[test]
fn damaged_payloads() {
    let folder = Folder::new();
    let events = builder::inner_transaction(&[b"value"]);
    let honest = PayloadBody::zstd(&events);
    let mut cut_frame = honest.clone();
    cut_frame.payload.truncate(20);
    cut_frame.payload_size = Some(20);
    let mut cut_event = events.clone();
    cut_event.pop();
    let nested = builder::inner_event(binlogz_binlog::EventType::TRANSACTION_PAYLOAD, &honest.encode());
    let unknown = PayloadBody { compression_type: Some(7), ..honest.clone() };
    let too_large = PayloadBody { payload_size: Some(1 << 40), ..honest.clone() };
    let no_frame =
        PayloadBody { payload: b"no zstd frame at all".to_vec(), payload_size: Some(20), ..honest.clone() };
    for (payload, line) in [
        (
            unknown,
            "bad at 204: TransactionPayload event: transaction payload: compression type is 0x7, expected 0 (ZSTD) or \
             255 (NONE)",
        ),
        (
            too_large,
            "bad at 204: TransactionPayload event: transaction payload event: payload needs 1099511627776 bytes, 113 \
             are left",
        ),
        (
            cut_frame,
            "bad at 204: TransactionPayload event: the payload is damaged: zstd: the payload ends inside a zstd frame",
        ),
        (
            PayloadBody::zstd(&cut_event),
            "bad at 204: TransactionPayload event: the payload is damaged: Xid event 127 bytes into it: the log ends \
             inside an event: 27 bytes expected, 26 are there",
        ),
        (
            PayloadBody::none(&cut_event),
            "bad at 206: TransactionPayload event: the payload is damaged: Xid event 127 bytes into it: the log ends \
             inside an event: 27 bytes expected, 26 are there",
        ),
        (
            PayloadBody::zstd(&nested),
            "bad at 206: TransactionPayload event: the payload is damaged: 0 bytes into it: transaction payload: event \
             inside is TransactionPayload, expected no nested payload",
        ),
        (
            PayloadBody::zstd(b""),
            "bad at 204: TransactionPayload event: the payload is damaged: transaction payload: number of events is 0, \
             expected at least one",
        ),
        (
            no_frame,
            "bad at 204: TransactionPayload event: the payload is damaged: zstd: Unknown frame descriptor",
        ),
    ] {
        folder.put("bad", log_with(&payload));
        // Compress doesn't look into compressed transactions unless it has to.
        for command in
            [&["compress", "--recompress", "--output", "out"][..], COMMANDS[1], COMMANDS[2], COMMANDS[3]]
        {
            let ran = folder.run(command.iter().chain(&["bad"]));
            assert_eq!(
                (ran.stderr.as_str(), ran.code),
                (format!("binlogz: {line}\n").as_str(), Some(2)),
                "{command:?}"
            );
        }
        assert_eq!(folder.names(), ["bad"]);
    }
}

#[test]
fn a_bad_file_among_good_ones() {
    let folder = Folder::with_sample("plain", "binlog.000005");
    folder.put("bad", b"not a log");
    folder.sample("plain", "binlog.000009");
    fs::create_dir(folder.path("out")).unwrap();
    let ran = folder.run([
        "compress",
        "--positions",
        "map",
        "--output",
        "out",
        "binlog.000005",
        "bad",
        "binlog.000009",
    ]);
    let complaint = "binlogz: bad: not a binary log: it begins with 6e 6f 74 20, expected fe 62 69 6e\n";
    assert_eq!((ran.stderr.as_str(), ran.code), (complaint, Some(2)));
    assert_eq!(ran.text().lines().count(), 10, "{}", ran.text());
    let mut names: Vec<_> =
        fs::read_dir(folder.path("out")).unwrap().map(|name| name.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["binlog.000005", "binlog.000009"]);
    assert_eq!(String::from_utf8(folder.read("map")).unwrap().lines().count(), 1 + 300 + 22);
}

#[test]
fn the_positions_of_a_log_that_fails_are_taken_back() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let mut log = sample("plain", "binlog.000005");
    let end = log.len();
    log[end - 10] ^= 1;
    folder.put("bad", &log);
    fs::create_dir(folder.path("out")).unwrap();
    let ran =
        folder.run(["compress", "--jobs=1", "--positions", "map", "--output", "out", "bad", "binlog.000009"]);
    assert_eq!(ran.code, Some(2));
    let map = String::from_utf8(folder.read("map")).unwrap();
    assert_eq!(map.lines().count(), 1 + 22);
    assert!(!map.contains("bad"), "{map}");
}

#[test]
fn bad_usage() {
    let folder = Folder::with_sample("plain", "binlog.000009");
    let before = folder.names();
    for (args, line) in [
        (&["compress", "binlog.000009"][..], "binlogz: the following required arguments were not provided:"),
        (&["compress", "--output", "x"], "binlogz: the following required arguments were not provided:"),
        (
            &["compress", "--level", "23", "--output", "x", "binlog.000009"],
            "binlogz: invalid value '23' for '--level <1..22>': compression level is \"23\", expected 1 to 22",
        ),
        (
            &["compress", "--jobs", "0", "--output", "x", "binlog.000009"],
            "binlogz: invalid value '0' for '--jobs <N>': expected a number above 0\n",
        ),
        (
            &["verify", "--same", "binlog.000009"],
            "binlogz: the following required arguments were not provided:",
        ),
        (&["verify", "binlog.000009", "--", "binlog.000009"], "binlogz: the following required arguments"),
        (&["dance"], "binlogz: unrecognized subcommand 'dance'"),
        (&[], "Makes MySQL's binary log small"),
    ] {
        let ran = folder.run(args);
        assert_eq!(ran.code, Some(2), "{args:?}");
        assert!(ran.stderr.starts_with(line), "{args:?}: {}", ran.stderr);
        assert_eq!(ran.text(), "");
    }
    folder.run(["expand", "--output", "x", "-", "-"]).fails("standard input: named 2 times, expected once");
    folder.run(["verify", "--same", "-", "--", "-"]).fails("standard input: named 2 times, expected once");
    folder
        .run(["expand", "--salvage", "--output", "x", "-"])
        .fails("standard input: can't be read twice, expected a file for --salvage");
    folder.run(["events", "--from", "5", "binlog.000009"]).is(
        2,
        "",
        "binlogz: binlog.000009: no event begins at position 5, the next one begins at 127\n",
    );
    assert_eq!(folder.names(), before);
}

#[test]
fn what_no_server_writes_is_a_negative_answer() {
    let folder = Folder::new();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    // 5 bytes more than follow.
    let events = builder::transaction_events(&[b"value"]);
    let size: usize = events.iter().map(|(_, body)| 19 + body.len() + 4).sum();
    log.gtid(size as u64 + 5);
    for (event_type, body) in &events {
        log.event(*event_type, body);
    }
    folder.put("odd", log.bytes());
    folder.run(["verify", "odd"]).is(
        1,
        "\
odd at 127: Gtid event: transaction length is 254, expected 249
Verified
  file  answer  bytes  events  rows  transactions  compressed
  odd   bad     376 B       6     1             1           0
",
        "",
    );
}
