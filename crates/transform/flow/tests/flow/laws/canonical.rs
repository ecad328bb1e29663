//! Law 2: our compressor produces mysqld's bytes, from libzstd 1.5.7 and everything around it.

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType, MAGIC};
use binlogz_flow::Rewrite;
use binlogz_testkit::{RealBinlog, Result, SampleCompression, Tool, corpus, mixed, real, require_tool, tool};

use super::support::{Event, compress, compression, events, expand, places, run, same};

/// Real logs whose bytes are those of libzstd 1.5.7.
fn canonical_logs() -> Vec<RealBinlog> {
    // The corpus is frozen; what a server makes today depends on its libzstd.
    match Tool::Mysql.find().ok().and_then(|mysql| mysql.libzstd_version()) {
        Some(version) if version != "1.5.7" => {
            tool::skip(&format!("only the shipped logs: the server has libzstd {version}"));
            corpus::binlogs()
        }
        _ => real::every_binlog(),
    }
}

/// Whether a log mixes engines, which it can't tell by itself: without GTIDs a statement may change both transactional and non-transactional
/// tables. The server leaves both parts of that plain; the part with rows of transactional tables looks like
/// any transaction.
fn mixes_engines(file: &RealBinlog) -> bool {
    file.name == "anonymous-level3/source/binlog.000004"
}

#[test]
fn logs_compressed_at_one_level_come_back() {
    let mut files = 0;
    for file in canonical_logs() {
        let SampleCompression::Level(level) = file.compression else { continue };
        if mixes_engines(&file) {
            continue;
        }
        let log = file.read();
        same(&file.name, "expanded and compressed", &compress(&expand(&log), level), &log);
        files += 1;
    }
    assert!(files >= 9, "only {files} files");
}

#[test]
fn every_payload_comes_back_at_its_own_level() {
    let mut payloads = 0;
    for file in canonical_logs() {
        if file.compression == SampleCompression::Mixed || mixes_engines(&file) {
            payloads += levels_of_payloads(&file).len();
        }
    }
    assert!(payloads > 80, "only {payloads} payloads");
}

#[test]
fn every_level_gives_the_servers_bytes() {
    let levels = corpus::binlogs().into_iter().find(|file| file.name == "corpus/levels.000002");
    let levels = levels.expect("a large transaction at each level");
    assert_eq!(levels_of_payloads(&levels), (1..=22).collect::<Vec<_>>());
}

#[test]
fn another_level_gives_other_bytes() {
    let file = corpus::samples().into_iter().find(|file| file.name == "samples/compressed/binlog.000001");
    let log = file.expect("compressed at level 3").read();
    assert_eq!(compress(&expand(&log), 3), log);
    assert_ne!(compress(&expand(&log), 4), log);
}

#[test]
fn where_the_log_can_not_tell_we_compress_more() -> Result<()> {
    require_tool!(Tool::Mysql);
    let files = mixed::binlogs()?;
    let file = files.iter().find(|file| mixes_engines(file)).expect("a run of the mix");
    let (plain, expanded) = run(places(&file.read()), Rewrite::Expand, 2).expect("a real log");
    let (_, compressed) = run(places(&plain), compression(3), 2).expect("a real log");
    // The mix has one transaction that changed and committed both kinds of tables.
    assert_eq!(compressed.tally.changed, expanded.tally.changed + 1);
    Ok(())
}

/// For each payload, the first level among those tried at which its transaction compresses to its very bytes.
fn levels_of_payloads(file: &RealBinlog) -> Vec<u32> {
    let log = file.read();
    let (_, compressed) = transactions(&log);
    let (head, plain) = transactions(&expand(&log));
    assert_eq!(compressed.len(), plain.len(), "{}", file.name);
    let mut found = Vec::new();
    for (compressed, plain) in compressed.iter().zip(&plain) {
        let Some(payload) = payload_of(compressed) else { continue };
        let alone = [&head, plain].into_iter().flatten().flat_map(|event| &event.bytes);
        let alone: Vec<u8> = MAGIC.iter().chain(alone).copied().collect();
        // In a log of levels the next one; else the likeliest first.
        let candidates = match file.name.contains("levels") {
            true => vec![found.len() as u32 + 1],
            false => [3, 1, 10, 19, 22].into_iter().chain(2..22).collect(),
        };
        let level = candidates.into_iter().find(|&level| {
            let (_, again) = transactions(&compress(&alone, level));
            payload_of(&again[0]).is_some_and(|again| without_place(again) == without_place(payload))
        });
        found.push(level.unwrap_or_else(|| panic!("{} at {}: no level fits", file.name, payload.offset)));
    }
    found
}

/// The events before the first GTID event, and the events from each one to the next.
fn transactions(log: &[u8]) -> (Vec<Event>, Vec<Vec<Event>>) {
    let (mut head, mut transactions) = (Vec::new(), Vec::new());
    for event in events(log) {
        if event.header.event_type.is_gtid() {
            transactions.push(vec![event]);
        } else {
            transactions.last_mut().unwrap_or(&mut head).push(event);
        }
    }
    (head, transactions)
}

fn payload_of(transaction: &[Event]) -> Option<&Event> {
    transaction.iter().find(|event| event.is(EventType::TRANSACTION_PAYLOAD))
}

/// All of an event but its position and checksum.
fn without_place(event: &Event) -> (EventHeader, &[u8]) {
    let body = HEADER_SIZE..event.bytes.len() - event.checksum_size;
    (EventHeader { end_log_pos: 0, ..event.header }, &event.bytes[body])
}
