//! The row changes of a log: all of them, in order, from any position on, whatever the log's form.

use std::sync::Arc;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::row::RowImage;
use binlogz_binlog::{EventHeader, MAGIC};
use binlogz_flow::{Error, Input, Rewrite, Rewriter, RowChange, RowChanges, RowPosition};
use binlogz_payload::CompressOptions;
use binlogz_testkit::{corpus, mutate};

fn memory(bytes: &[u8]) -> Input {
    Input::Places(Arc::new(bytes.to_vec()))
}

/// Whether two changes differ in nothing but their positions.
fn same(a: &RowChange, b: &RowChange) -> bool {
    let (row_a, row_b) = (a.row(), b.row());
    let about = |change: &RowChange| (change.gtid, change.kind, change.timestamp, change.table_name());
    about(a) == about(b) && same_image(row_a.before, row_b.before) && same_image(row_a.after, row_b.after)
}

fn same_image(a: Option<RowImage<'_, '_>>, b: Option<RowImage<'_, '_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a
            .cells()
            .map(|cell| (cell.index, cell.content))
            .eq(b.cells().map(|cell| (cell.index, cell.content))),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn all_same(a: &[RowChange], b: &[RowChange]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn all(changes: RowChanges) -> (Vec<RowChange>, Option<Error>) {
    let mut read = Vec::new();
    for change in changes {
        match change {
            Ok(change) => read.push(change),
            Err(error) => return (read, Some(error)),
        }
    }
    (read, None)
}

fn rewritten(bytes: &[u8], how: Rewrite) -> Vec<u8> {
    let mut out = Vec::new();
    Rewriter::new(how).workers(1).run(memory(bytes), &mut out).unwrap();
    out
}

#[test]
fn plain_and_compressed_twins_have_the_same_changes() {
    for file in corpus::binlogs() {
        let bytes = file.read();
        let plain = rewritten(&bytes, Rewrite::Expand);
        let compressed = rewritten(&plain, Rewrite::Compress(CompressOptions::default()));
        let [expected, from_compressed, original] = [&plain, &compressed, &bytes].map(|log| {
            let (changes, error) = all(RowChanges::new(memory(log)));
            assert!(error.is_none(), "{}: {error:?}", file.name);
            assert!(changes.is_sorted_by_key(|change| change.position), "{}", file.name);
            changes
        });
        assert!(all_same(&from_compressed, &expected) && all_same(&original, &expected), "{}", file.name);
    }
}

#[test]
fn a_run_goes_on_behind_any_change() {
    for name in ["binlog.000001", "binlog.000002", "levels.000003"] {
        let bytes = std::fs::read(corpus::path(name)).unwrap();
        // A second log after the first: positions continue, offsets restart.
        let bytes = [&bytes[..], &bytes].concat();
        let (changes, _) = all(RowChanges::new(memory(&bytes)));
        assert!(changes.len() > 1, "{name}");
        let step = (changes.len() / 12).max(1);
        for index in (0..changes.len()).step_by(step).chain([changes.len() - 1]) {
            let position: RowPosition = changes[index].position.to_string().parse().unwrap();
            let (rest, error) = all(RowChanges::after(memory(&bytes), position));
            assert!(error.is_none(), "{name}: {error:?}");
            assert!(all_same(&rest, &changes[index + 1..]), "{name} behind {position}");
            assert!(rest.first().is_none_or(|change| change.position == changes[index + 1].position));
        }
    }
}

#[test]
fn a_pipe_gives_what_a_file_gives() {
    let bytes = std::fs::read(corpus::path("binlog.000002")).unwrap();
    let (expected, _) = all(RowChanges::new(memory(&bytes)));
    let (piped, error) = all(RowChanges::new(Input::Stream(Box::new(std::io::Cursor::new(bytes)))));
    assert!(error.is_none());
    assert!(all_same(&piped, &expected));
}

/// Where the transactions of a log begin.
fn transactions(log: &[u8]) -> Vec<usize> {
    let (mut begins, mut at) = (Vec::new(), MAGIC.len());
    while let Some(head) = log.get(at..).and_then(|rest| rest.first_chunk::<HEADER_SIZE>()) {
        let header = EventHeader::decode(head).unwrap();
        if header.event_type.is_gtid() {
            begins.push(at);
        }
        at += header.event_size as usize;
    }
    begins
}

#[test]
fn gaps_in_any_of_several_logs_move_no_position() {
    let log = std::fs::read(corpus::path("binlog.000002")).unwrap();
    let begins = transactions(&log);
    let bytes = [&log[..], &log].concat();
    let (whole, _) = all(RowChanges::new(memory(&bytes)));
    for log_index in [0, 1] {
        for (first, last) in [(1, 2), (begins.len() / 2, begins.len() - 1)] {
            let gap = begins[first]..begins[last];
            let begin = log_index * log.len();
            let mut given = bytes.clone();
            given.drain(begin + gap.start..begin + gap.end);
            let left_out = (begin + gap.start) as u64..(begin + gap.end) as u64;
            let gaps = std::iter::once(left_out).collect();
            let input = Input::Sparse { stream: Box::new(std::io::Cursor::new(given)), gaps };
            let (changes, error) = all(RowChanges::new(input));
            assert!(error.is_none(), "{error:?}");
            let is_given = |position: &RowPosition| {
                position.log != log_index as u64 || !gap.contains(&(position.offset as usize))
            };
            let expected: Vec<_> = whole.iter().map(|change| change.position).filter(is_given).collect();
            let found: Vec<_> = changes.iter().map(|change| change.position).collect();
            assert!(found.len() < whole.len(), "{gap:?}");
            assert_eq!(found, expected, "log {log_index}, {gap:?}");
        }
    }
}

#[test]
fn damage_ends_the_changes_with_its_offset() {
    let bytes = std::fs::read(corpus::path("binlog.000002")).unwrap();
    let (whole, _) = all(RowChanges::new(memory(&bytes)));
    let (cut, error) = all(RowChanges::new(memory(&bytes[..bytes.len() - 300])));
    assert!(cut.len() < whole.len());
    assert!(all_same(&cut, &whole[..cut.len()]));
    assert!(error.unwrap().to_string().starts_with("at "));
    let seed = mutate::seed();
    for index in 0..200 {
        let (damaged, _) = mutate::mutate(&bytes, seed, index);
        // Whatever it says, it ends.
        let (changes, _) = all(RowChanges::new(memory(&damaged)));
        assert!(changes.is_sorted_by_key(|change| change.position));
    }
}

#[test]
fn whoever_stops_iterating_stops_the_run() {
    let bytes = std::fs::read(corpus::path("binlog.000002")).unwrap();
    let (expected, _) = all(RowChanges::new(memory(&bytes)));
    let first: Vec<_> = RowChanges::new(memory(&bytes)).take(3).map(Result::unwrap).collect();
    assert!(all_same(&first, &expected[..3]));
}
