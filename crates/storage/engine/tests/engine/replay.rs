//! Puts the transactions of a server's log through an engine, and compares the two logs.
//!
//! These may differ, and nothing else:
//!
//! * when: commit timestamps, and the timestamps of events between transactions;
//! * the order of commits: `last_committed` (the server looks at what transactions change);
//! * in GTID events with a tag both are numbers of variable length: after one, positions may differ, and so
//!   may its transaction length;
//! * `created` of a first file, the in-use flag, the number in the next file's name;
//! * the previous GTIDs of a first file, where the server had some before.

use std::collections::BTreeSet;
use std::sync::Arc;

use binlogz_binlog::event::{
    AnyGtidEvent, CompressionType, FormatDescription, TransactionPayloadEvent, TransactionPayloadHeader,
};
use binlogz_binlog::gtid::ServerUuid;
use binlogz_binlog::{Boundary, EventReader, EventType, StatementKind, TransactionBoundaryParser};
use binlogz_engine::{Engine, EngineOptions, GtidNext, NewEvent, VariableValue};
use binlogz_payload::statistics::{CompressionStats, CompressionTable, LogType, TransactionFigures};
use binlogz_store::{MemoryStorage, Storage};

/// The files of one log, put through an engine.
pub(crate) struct Replayed {
    pub(crate) files: Vec<Vec<u8>>,
    /// Compression statistics of the log, without timestamps.
    pub(crate) statistics: CompressionTable,
    /// Rows of the statistics table as the server shows them, without timestamps.
    pub(crate) rows: Vec<String>,
}

struct Settings {
    version: String,
    checksum: i64,
    server_id: u32,
    gtids: bool,
}

fn settings(files: &[Vec<u8>]) -> Settings {
    let mut found = Settings { version: String::new(), checksum: 0, server_id: 0, gtids: true };
    for file in files {
        let mut events = EventReader::new(&file[..]);
        while let Some((_, frame)) = events.next_event().unwrap() {
            match frame.event_type() {
                EventType::FORMAT_DESCRIPTION => {
                    let description = FormatDescription::decode_frame(&frame).unwrap();
                    found.version = description.server_version();
                    found.checksum = i64::from(description.checksum_algorithm.0);
                    found.server_id = frame.header().server_id;
                }
                EventType::ANONYMOUS_GTID => found.gtids = false,
                _ => {}
            }
        }
    }
    found
}

/// Commits all transactions of these files with compression as given, payloads opened first. They are the files
/// of `server`, or were made from them.
pub(crate) fn replay(server: &[Vec<u8>], files: &[Vec<u8>], level: Option<u32>) -> Replayed {
    let Settings { version, checksum, server_id, gtids } = settings(files);
    let storage = MemoryStorage::new();
    let variables = [
        ("binlog_checksum", VariableValue::Integer(checksum)),
        ("binlog_transaction_compression", VariableValue::Integer(i64::from(level.is_some()))),
        ("binlog_transaction_compression_level_zstd", VariableValue::Integer(i64::from(level.unwrap_or(3)))),
        ("flush_log_at_commit", VariableValue::Integer(2)),
    ];
    let uuid = ServerUuid(*b"nobody's own id.");
    let options = EngineOptions {
        gtid_mode: gtids,
        server_version: &version,
        variables: &variables,
        ..EngineOptions::new(uuid, server_id)
    };
    let (engine, _) = Engine::open(Arc::new(storage.clone()), options).unwrap();
    let count = files.len();
    for (file, place) in files.iter().zip(1..) {
        put_through(&engine, file, &mixed_kinds(&server[place - 1]));
        if place < count || ends_with_rotate(file) {
            engine.rotate().unwrap();
        }
    }
    let mut statistics = CompressionTable::default();
    // The rows of an engine hold sums; one figure each is enough to compare them.
    for (log, compression, row) in engine.compression_statistics() {
        statistics.count(log, compression, timeless(row.first_transaction));
        statistics.count(log, compression, timeless(row.last_transaction));
        let counter = TransactionFigures {
            uncompressed_bytes: row.uncompressed_bytes_counter,
            compressed_bytes: row.compressed_bytes_counter,
            id: None,
            timestamp: Some(row.transaction_counter),
        };
        statistics.count(log, compression, counter);
    }
    let rows = engine.compression_statistics().iter().map(row_text).collect();
    engine.close().unwrap();
    let logs = storage.list().unwrap();
    let logs = logs.iter().filter(|name| name.starts_with("binlog.0"));
    let files = logs.map(|name| {
        let file = storage.open(name, false).unwrap();
        let mut bytes = vec![0; file.size().unwrap() as usize];
        file.read_at(0, &mut bytes).unwrap();
        bytes
    });
    Replayed { files: files.collect(), statistics, rows }
}

/// A row as the client prints it: log, type, counter, compressed, uncompressed, percentage, first and last id.
fn row_text((log, compression, row): &(LogType, CompressionType, CompressionStats)) -> String {
    let kind = if *compression == CompressionType::ZSTD { "ZSTD" } else { "NONE" };
    let id = |figures: &TransactionFigures| figures.id.map_or("ANONYMOUS".into(), |gtid| gtid.to_string());
    format!(
        "{log}\t{kind}\t{}\t{}\t{}\t{}\t{}\t{}",
        row.transaction_counter,
        row.compressed_bytes_counter,
        row.uncompressed_bytes_counter,
        row.compression_percentage(),
        id(&row.first_transaction),
        id(&row.last_transaction)
    )
}

fn ends_with_rotate(file: &[u8]) -> bool {
    let mut events = EventReader::new(file);
    let mut last = None;
    while let Some((_, frame)) = events.next_event().unwrap() {
        last = Some(frame.event_type());
    }
    last == Some(EventType::ROTATE)
}

fn timeless(figures: TransactionFigures) -> TransactionFigures {
    TransactionFigures { timestamp: None, ..figures }
}

/// The transactions of a server's file that changed tables of both kinds, by sequence number. A log does not say which
/// tables are transactional. But the server, which allows such a transaction only without GTIDs, writes it as two, the
/// second of which depends on the first.
fn mixed_kinds(file: &[u8]) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    let mut events = EventReader::new(file);
    let mut behind_commit = false;
    while let Some((_, frame)) = events.next_event().unwrap() {
        if let Some(event) = AnyGtidEvent::decode_frame(&frame).unwrap() {
            let clock = event.logical_clock().unwrap();
            let depends = clock.last_committed == clock.sequence_number - 1;
            if event.gtid().is_none() && behind_commit && depends {
                found.insert(clock.sequence_number);
            }
        }
        behind_commit = frame.event_type() == EventType::QUERY
            && StatementKind::of_query(frame.body()) == Some(StatementKind::Commit);
    }
    found
}

fn put_through(engine: &Engine, file: &[u8], mixed: &BTreeSet<i64>) {
    let mut session = engine.session();
    let mut assembler = TransactionBoundaryParser::new();
    let mut events = EventReader::new(file);
    while let Some((_, frame)) = events.next_event().unwrap() {
        let header = frame.header();
        let boundary = assembler.feed(header, frame.body()).boundary;
        if let Some(event) = AnyGtidEvent::decode_frame(&frame).unwrap() {
            if mixed.contains(&event.logical_clock().unwrap().sequence_number) {
                session.mark_non_transactional();
            }
            if let Some(gtid) = event.gtid() {
                session.set_gtid_next(GtidNext::Given(gtid)).unwrap();
            }
            let original_time = event.commit_timestamps().unwrap().original;
            let original_version = event.server_versions().unwrap().original;
            session.set_original(header.server_id, original_time, original_version).unwrap();
            continue;
        }
        match boundary {
            Boundary::Outside => continue,
            _ if header.event_type == EventType::TRANSACTION_PAYLOAD => {
                session.append_payload(&TransactionPayloadEvent::decode(frame.body()).unwrap()).unwrap();
            }
            _ => {
                let (timestamp, flags) = (header.timestamp, header.flags);
                let event = NewEvent { event_type: header.event_type, timestamp, flags, body: frame.body() };
                session.append(event).unwrap();
            }
        }
        if boundary == Boundary::End {
            session.commit().unwrap();
        }
    }
}

/// The server's statistics for these files, in the form of [`Replayed::statistics`].
pub(crate) fn statistics_of(files: &[Vec<u8>]) -> CompressionTable {
    let mut table = CompressionTable::default();
    for file in files {
        let mut assembler = TransactionBoundaryParser::new();
        let mut events = EventReader::new(&file[..]);
        let (mut id, mut bytes) = (None, 0);
        while let Some((_, frame)) = events.next_event().unwrap() {
            let boundary = assembler.feed(frame.header(), frame.body()).boundary;
            if let Some(event) = AnyGtidEvent::decode_frame(&frame).unwrap() {
                (id, bytes) = (event.gtid(), 0);
            } else if frame.event_type() == EventType::TRANSACTION_PAYLOAD {
                let (fields, _) =
                    TransactionPayloadHeader::decode_front(frame.body(), frame.body().len() as u64)
                        .unwrap()
                        .unwrap();
                let (compressed_bytes, uncompressed_bytes) =
                    (fields.payload_size(), fields.uncompressed_size().unwrap());
                let figures =
                    TransactionFigures { id, compressed_bytes, uncompressed_bytes, timestamp: None };
                table.count(LogType::Binary, CompressionType::ZSTD, figures);
            } else if boundary != Boundary::Outside {
                bytes += frame.without_checksum().len() as u64;
                if boundary == Boundary::End {
                    let figures = TransactionFigures {
                        id,
                        compressed_bytes: bytes,
                        uncompressed_bytes: bytes,
                        timestamp: None,
                    };
                    table.count(LogType::Binary, CompressionType::NONE, figures);
                }
            }
        }
    }
    let mut summed = CompressionTable::default();
    for (log, compression, row) in table.rows() {
        summed.count(log, compression, row.first_transaction);
        summed.count(log, compression, row.last_transaction);
        let counter = TransactionFigures {
            uncompressed_bytes: row.uncompressed_bytes_counter,
            compressed_bytes: row.compressed_bytes_counter,
            id: None,
            timestamp: Some(row.transaction_counter),
        };
        summed.count(log, compression, counter);
    }
    summed
}

/// Fails unless the two logs are the same except for what the module lists; returns how many events were
/// compared.
pub(crate) fn assert_same(name: &str, server: &[Vec<u8>], ours: &[Vec<u8>]) -> usize {
    // After a last file that ends with a rotate event we begin another.
    assert!(server.len() <= ours.len(), "{name}: files");
    let mut compared = 0;
    for (place, (server, ours)) in server.iter().zip(ours).enumerate() {
        let (server, ours) = (normalised(server, place == 0), normalised(ours, place == 0));
        for (number, (server, ours)) in server.iter().zip(&ours).enumerate() {
            assert!(
                server == ours,
                "{name}, file {place}, event {number}:\nserver {server:x?}\nours   {ours:x?}"
            );
        }
        // A server that was killed did not end its file.
        let ended = ours.last().is_some_and(|event| event.kind == EventType::STOP);
        assert!(
            server.len() == ours.len() || (ended && server.len() + 1 == ours.len()),
            "{name}, file {place}: {} and {} events",
            server.len(),
            ours.len()
        );
        compared += server.len();
    }
    compared
}

#[derive(Debug, PartialEq)]
struct Normalised {
    kind: EventType,
    timestamp: u32,
    server_id: u32,
    flags: u16,
    end_log_pos: u32,
    body: Vec<u8>,
}

fn normalised(file: &[u8], first: bool) -> Vec<Normalised> {
    let mut events = EventReader::new(file);
    let mut all = Vec::new();
    let (mut tagged, mut shift) = (false, 0);
    while let Some((_, frame)) = events.next_event().unwrap() {
        let header = frame.header();
        let mut event = Normalised {
            kind: header.event_type,
            timestamp: header.timestamp,
            server_id: header.server_id,
            flags: header.flags.0,
            end_log_pos: header.end_log_pos,
            body: frame.body().to_vec(),
        };
        match AnyGtidEvent::decode_frame(&frame).unwrap() {
            Some(AnyGtidEvent::Untagged(mut gtid)) => {
                if let Some(clock) = &mut gtid.logical_clock {
                    clock.last_committed = 0;
                }
                if let Some(timestamps) = &mut gtid.commit_timestamps {
                    timestamps.immediate = 0;
                }
                event.body = gtid.encode().unwrap();
            }
            Some(AnyGtidEvent::Tagged(mut gtid)) => {
                gtid.logical_clock.last_committed = 0;
                gtid.commit_timestamps.immediate = 0;
                gtid.transaction_length = 0;
                event.body = gtid.encode();
                tagged = true;
            }
            None => {}
        }
        match event.kind {
            EventType::FORMAT_DESCRIPTION => {
                let mut description = FormatDescription::decode_frame(&frame).unwrap();
                description.created = 0;
                event.body = description.encode();
                event.flags &= !1;
                event.timestamp = 0;
            }
            EventType::PREVIOUS_GTIDS => {
                event.timestamp = 0;
                if first {
                    // Everything after it is shifted by this much.
                    shift = header.event_size;
                    event.body.clear();
                }
            }
            // The number in the name: its digits, and no more.
            EventType::ROTATE => {
                event.timestamp = 0;
                let digits = event.body.len() - 6;
                event.body.truncate(digits);
            }
            EventType::STOP => event.timestamp = 0,
            _ => {}
        }
        event.end_log_pos = if tagged { 0 } else { event.end_log_pos.wrapping_sub(shift) };
        all.push(event);
    }
    all
}
