//! Inputs of the targets: parts of real logs, and mutations of them.

use std::sync::Arc;

use binlogz_archive::format::{BlockEntry, HEAD_SIZE, VERSION};
use binlogz_archive::log::Cutter;
use binlogz_archive::segment::{Object, Segment};
use binlogz_binlog::event::{RowsEvent, RowsFlags};
use binlogz_binlog::row::CellContent;
use binlogz_binlog::{EventReader, EventType};
use binlogz_flow::{Input, Rewrite, Rewriter, RowChanges};
use binlogz_testkit::{corpus, mutate};

use super::{Target, pair, wire};

/// Larger seeds would be most of the time.
const SEED_SIZE_MAX: usize = 20_000;

/// Feeds a target with this many mutations of what these logs hold for it; gives the number of seeds.
///
/// # Panics
///
/// If the target does; the failed input is printed.
pub fn feed((name, target): Target, logs: &[Vec<u8>], seed: u64, runs: u64) -> usize {
    let mut seeds: Vec<_> = logs.iter().flat_map(|log| seeds(name, log)).collect();
    seeds.extend(wire::seeds(name));
    seeds.retain(|seed| seed.len() <= SEED_SIZE_MAX);
    seeds.sort();
    seeds.dedup();
    assert!(!seeds.is_empty(), "the corpus has nothing for {name}");
    for index in 0..runs {
        let original = &seeds[index as usize % seeds.len()];
        let (bytes, what) = mutate::mutate(original, seed, index);
        if let Err(panic) = std::panic::catch_unwind(|| target(&bytes)) {
            eprintln!("{name}: {what} of seed {}", index as usize % seeds.len());
            std::panic::resume_unwind(panic);
        }
    }
    seeds.len()
}

/// The parts of a log that are inputs of this target.
fn seeds(target: &str, log: &[u8]) -> Vec<Vec<u8>> {
    match target {
        "frame" => return vec![log.to_vec()],
        "rows" => return rows(&expanded(log)),
        "json" => return json(log),
        "keyring" => return vec![encrypted()],
        "archive_manifest" => return super::manifest::seeds(),
        "archive_block" | "archive_index" | "archive_header" | "archive_object" | "archive_contents" => {
            return archived(&expanded(log), target);
        }
        _ => {}
    }
    let mut seeds = Vec::new();
    let mut reader = EventReader::new(log);
    while let Ok(Some((_, frame))) = reader.next_event() {
        let event_type = frame.event_type();
        match target {
            "event" => seeds.push([&[event_type.0], frame.body()].concat()),
            "gtid_set" if event_type == EventType::PREVIOUS_GTIDS => {
                seeds.push(frame.body().to_vec());
                let set = binlogz_binlog::gtid::GtidSet::decode(frame.body()).expect("a real set").0;
                seeds.push(set.to_string().into_bytes());
            }
            "table_map" if event_type == EventType::TABLE_MAP => seeds.push(frame.body().to_vec()),
            "payload" if event_type == EventType::TRANSACTION_PAYLOAD => seeds.push(frame.body().to_vec()),
            _ => {}
        }
    }
    seeds
}

/// The log without payloads, so that its rows can be reached.
fn expanded(log: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let input = Input::Places(Arc::new(log.to_vec()));
    Rewriter::new(Rewrite::Expand).workers(1).run(input, &mut out).expect("a real log");
    out
}

/// The blocks of a log's segment, or their headers; or its index, or all of it.
fn archived(log: &[u8], target: &str) -> Vec<Vec<u8>> {
    let mut segment = Segment::new(binlogz_archive::Level::default()).expect("a temporary file");
    let mut cutter = Cutter::with_size(log, 6_000);
    let number = segment.begin("binlog.000001", b"head");
    segment.pack(number, &mut || cutter.next_piece(), 1).expect("a log that packs");
    let (file, size, index) = segment.finish().expect("a temporary file");
    let read = |begin: u64, end: u64| {
        let mut bytes = vec![0; (end - begin) as usize];
        file.read_exact_at(&mut bytes, begin).expect("it was just written");
        bytes
    };
    let end = |entry: &BlockEntry| entry.at + entry.packed_size;
    let block =
        |entry: &BlockEntry| [&(entry.size as u32).to_le_bytes()[..3], &read(entry.at, end(entry))].concat();
    match target {
        "archive_index" => vec![index.encode()],
        "archive_object" => vec![read(0, size)],
        "archive_contents" => {
            let object = Object::open("object", Box::new(super::Part { at: 0, bytes: read(0, size) }));
            let contents = object
                .expect("it was just written")
                .contents()
                .expect("they were just written")
                .expect("its version has them");
            let front = [VERSION as u8, contents.blocks.len() as u8];
            vec![[&front[..], &contents.encode_plain()].concat()]
        }
        "archive_header" => {
            let begins = std::iter::once(HEAD_SIZE).chain(index.blocks.iter().map(end));
            let headers = begins.zip(&index.blocks);
            headers
                .map(|(begin, entry)| [&(begin as u32).to_le_bytes()[..], &read(begin, entry.at)].concat())
                .collect()
        }
        _ => index.blocks.iter().map(block).collect(),
    }
}

/// Row events, each with its table map.
fn rows(log: &[u8]) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut maps: Vec<Vec<u8>> = Vec::new();
    let mut reader = EventReader::new(log);
    while let Ok(Some((_, frame))) = reader.next_event() {
        let event_type = frame.event_type();
        let body = frame.body();
        if event_type == EventType::TABLE_MAP {
            maps.push(body.to_vec());
        } else if event_type.is_rows() {
            // Both begin with the table id, in six bytes.
            let map = maps.iter().rev().find(|map| map.get(..6) == body.get(..6)).expect("a real log");
            seeds.push(pair(map, &[&[event_type.0], body].concat()));
            let length = if event_type >= EventType::WRITE_ROWS { 10 } else { 8 };
            let event = RowsEvent::decode(event_type, body, length).expect("a real log");
            if event.flags.contains(RowsFlags::STMT_END) {
                maps.clear();
            }
        }
    }
    seeds
}

/// Documents, with the differences that a partial update has.
fn json(log: &[u8]) -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for change in RowChanges::new(Input::Places(Arc::new(log.to_vec()))) {
        let change = change.expect("a real log");
        let row = change.row();
        for cell in row.before.iter().chain(&row.after).flat_map(|image| image.cells()) {
            match cell.content {
                CellContent::Value(document) if cell.column.is_json() => seeds.push(pair(document, b"")),
                CellContent::JsonDiffs(diffs) => {
                    let before = row.before.and_then(|before| before.cell(cell.index));
                    if let Some(CellContent::Value(document)) = before.map(|cell| cell.content) {
                        seeds.push(pair(document, diffs));
                    }
                }
                _ => {}
            }
        }
    }
    seeds
}

/// A keyring and the start of a log that it opens.
fn encrypted() -> Vec<u8> {
    let files = corpus::encrypted();
    let read = |path| std::fs::read(path).expect("the corpus");
    let log = read(files.encrypted);
    pair(&read(files.keyring), log.get(..600).unwrap_or(&log))
}
