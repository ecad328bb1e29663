//! Law 5: memory does not grow with what a log holds. A log of a few kB that holds hundreds of MiB goes through every command,
//! and its expanded form goes through them as a pipe, in at most 64 MiB.
//!
//! This is a binary of its own: these are the largest processes of all tests, so those of no other are as large.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod common;

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{
    Bitmap, ColumnType, CompressionType, OptionalMetadata, RowsEvent, RowsFlags, TableId, TableMapEvent,
    TableMapFlags,
};
use binlogz_payload::{CompressionLevel, Compressor};
use binlogz_testkit::builder::{
    LogBuilder, PayloadBody, Release, change_events, inner_event, transaction_events,
};
use binlogz_testkit::memory::peak_memory;
use binlogz_testkit::random::Random;
use common::Folder;

/// Bytes that the bomb holds, several times what a command may take; 512 MiB in `scripts/soak/memory.sh`.
fn inside() -> u64 {
    if std::env::var_os("BINLOGZ_SOAK").is_some() { 512 << 20 } else { 192 << 20 }
}

/// Memory that a command may take, in KiB as the kernel counts.
const MEMORY_MAX: u64 = 64 << 10;

/// The window of the bombs' frames, which comes on top: 2 MiB at level 3.
const WINDOW: u64 = 2 << 10;

/// How often the memory of a process is looked at; the kernel keeps the highest.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A log with one payload that holds [`inside`] bytes of rows, in row events of `value_size` bytes.
fn bomb(value_size: usize) -> Vec<u8> {
    let payload = payload(CompressionLevel::DEFAULT, inside(), value_size);
    LogBuilder::new(Release::MYSQL_9_7).payload(&payload).bytes().to_vec()
}

/// A transaction that holds `inside` bytes of rows, in row events of `value_size` bytes, as the server compresses it.
fn payload(level: CompressionLevel, inside: u64, value_size: usize) -> PayloadBody {
    let value = vec![0; value_size];
    let events: Vec<_> = transaction_events(&[&value])
        .into_iter()
        .map(|(event_type, body)| (event_type, inner_event(event_type, &body)))
        .collect();
    let count = |event_type| if event_type == EventType::WRITE_ROWS { inside / value_size as u64 } else { 1 };
    let size = events.iter().map(|(event_type, event)| count(*event_type) * event.len() as u64).sum();
    let mut compressor = Compressor::new(level).unwrap();
    let mut frame = Vec::new();
    compressor.begin(size).unwrap();
    for (event_type, event) in &events {
        for _ in 0..count(*event_type) {
            compressor.write(event, &mut frame).unwrap();
        }
    }
    compressor.finish(&mut frame).unwrap();
    PayloadBody::of(CompressionType::ZSTD, Some(size), frame)
}

/// Waits for a process; the most memory that it took, in KiB.
#[track_caller]
fn memory_of(mut child: Child) -> u64 {
    let mut most = 0;
    loop {
        most = most.max(peak_memory(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            let output = child.wait_with_output().unwrap();
            assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&output.stderr));
            return most;
        }
        thread::sleep(LOOK_EVERY);
    }
}

#[track_caller]
fn within_bounds(what: &str, command: Command) {
    within(what, MEMORY_MAX + WINDOW, command);
}

/// Runs a command that may take this many KiB.
#[track_caller]
fn within(what: &str, memory_max: u64, mut command: Command) {
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let memory = memory_of(child);
    println!("{what}: {} MiB", memory >> 10);
    assert!(memory > 1 << 10, "{what}: no memory was measured");
    assert!(memory <= memory_max, "{what} took {memory} KiB, expected at most {memory_max}");
}

fn goes_through(folder: &Folder) {
    within_bounds("expand", folder.binlogz(["expand", "--force", "--output", "/dev/null", "bomb"]));
    within_bounds("verify", folder.binlogz(["verify", "bomb"]));
    within_bounds("verify --same", folder.binlogz(["verify", "--same", "bomb", "--", "bomb"]));
    within_bounds("events", folder.binlogz(["events", "bomb"]));
    within_bounds(
        "recompress",
        folder.binlogz(["compress", "--recompress", "--output", "/dev/null", "bomb"]),
    );
    // It goes through a log twice, for a sample and for all transactions.
    within_bounds("advise", folder.binlogz(["advise", "--levels=3", "--budget=10m", "bomb"]));
    for command in [&["compress", "--output", "/dev/null", "-"][..], &["verify", "-"], &["events", "-"]] {
        let mut expand = folder.binlogz(["expand", "--output", "-", "bomb"]);
        let mut expand = expand.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut reader = folder.binlogz(command);
        reader.stdin(expand.stdout.take().unwrap());
        within_bounds(&format!("{} of what it holds", command[0]), reader);
        assert!(expand.wait().unwrap().success());
    }
}

#[test]
fn many_events_in_a_few_kilobytes() {
    let folder = Folder::new();
    let bomb = bomb(8000);
    assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
    folder.put("bomb", bomb);
    goes_through(&folder);
    // Decodes values: of one large event it may hold the whole.
    within_bounds("stats", folder.binlogz(["stats", "--jobs=16", "bomb"]));
}

#[test]
fn one_large_event_in_a_few_kilobytes() {
    let folder = Folder::new();
    let bomb = bomb(inside() as usize);
    assert!(bomb.len() < 100_000, "{} bytes", bomb.len());
    folder.put("bomb", bomb);
    goes_through(&folder);
    // The event that is decoded to values is held once: the largest one.
    let with_event = MEMORY_MAX + WINDOW + (inside() >> 10);
    within("stats", with_event, folder.binlogz(["stats", "--jobs=16", "bomb"]));
    within("stats --values", with_event, folder.binlogz(["stats", "--jobs=16", "--values", "bomb"]));
    for command in [&["rows", "shop.item", "bomb"][..], &["undo", "bomb"]] {
        let mut command = folder.binlogz(command);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let memory = peak_of(child);
        println!("{command:?}: {} MiB", memory >> 10);
        assert!(
            memory > 1 << 10 && memory <= with_event,
            "{command:?} took {memory} KiB, expected at most {with_event}"
        );
    }
}

/// A value of a row whose text is longer than itself, as base64 and as digits.
const VALUE: usize = 24 << 20;

/// The text of a large value is written piece by piece: the event that holds the value is all that is held.
#[test]
fn lines_of_one_large_value() {
    let folder = Folder::new();
    let payload = payload(CompressionLevel::DEFAULT, VALUE as u64, VALUE);
    folder.put("value", LogBuilder::new(Release::MYSQL_9_7).payload(&payload).bytes());
    let with_event = MEMORY_MAX + WINDOW + (VALUE as u64 >> 10);
    // It has no names of columns, so its statements are asked for them and it is read once more: the allocator keeps the room of before.
    let with_event_again = with_event + (VALUE as u64 >> 10);
    for format in ["text", "json", "csv"] {
        within(format, with_event_again, folder.binlogz(["rows", "--format", format, "shop.item", "value"]));
    }
    within("jsonl", with_event, folder.binlogz(["dump", "--no-defaults", "--format=jsonl", "value"]));
}

/// The most memory that a process took, in KiB, whatever it answers.
fn peak_of(mut child: Child) -> u64 {
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        most = most.max(peak_memory(child.id()).unwrap_or(0));
        thread::sleep(LOOK_EVERY);
    }
    most
}

/// Bytes of the rows of one large statement: their text is longer still.
const STATEMENT: usize = 160 << 20;

/// Where the flags of a row event stand in its body.
const ROWS_FLAGS_OFFSET: usize = 6;

/// The events of one statement of [`STATEMENT`] bytes.
fn large_statement() -> Vec<(EventType, Vec<u8>)> {
    let value = [b'x'; 8000];
    let mut events = transaction_events(&[&value]);
    let row = events.iter().position(|(event_type, _)| *event_type == EventType::WRITE_ROWS).unwrap();
    let mut first = events[row].clone();
    // All but the last one leave the statement open.
    first.1[ROWS_FLAGS_OFFSET] = 0;
    events.splice(row..row, vec![first; STATEMENT / value.len()]);
    events
}

#[test]
fn dump_of_one_large_statement() {
    let folder = Folder::new();
    let events = large_statement();
    let inside: Vec<u8> = events.iter().flat_map(|(kind, body)| inner_event(*kind, body)).collect();
    let mut compressor = Compressor::new(CompressionLevel::DEFAULT).unwrap();
    let mut frame = Vec::new();
    compressor.begin(inside.len() as u64).unwrap();
    compressor.write(&inside, &mut frame).unwrap();
    compressor.finish(&mut frame).unwrap();
    let payload = PayloadBody::of(CompressionType::ZSTD, Some(inside.len() as u64), frame);
    folder.put("compressed", LogBuilder::new(Release::MYSQL_9_7).payload(&payload).bytes());
    let mut plain = folder.binlogz(["expand", "--output", "plain", "compressed"]);
    assert!(plain.output().unwrap().status.success());
    for log in ["compressed", "plain"] {
        for options in [&["-v", "--base64-output=decode-rows"][..], &["-v"], &[]] {
            let command = folder.binlogz([&["dump", "--no-defaults", "--jobs=2"], options, &[log]].concat());
            within_bounds(&format!("dump {options:?} {log}"), command);
        }
    }
}

/// Rounds over all tables: what is remembered of one is asked for again.
const ROUNDS: usize = 3;
/// Columns of each: half are integers, half are strings, all with long names.
const COLUMNS: usize = 16;

/// A log in which this many tables change in turn, each with its columns' names.
fn many_tables(count: usize) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let (mut types, mut metadata, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for column in 0..COLUMNS {
        let name = format!("a_column_of_this_name_{column:02}");
        names.extend([&[name.len() as u8][..], name.as_bytes()].concat());
        if column % 2 == 0 {
            types.push(ColumnType::LONG.0);
        } else {
            types.push(ColumnType::VARCHAR.0);
            metadata.extend([100, 0]);
        }
    }
    // A field of the optional metadata: column names, a length of two bytes, the names.
    let optional = [&[4, 252][..], &(names.len() as u16).to_le_bytes(), &names].concat();
    for number in (0..count).cycle().take(count * ROUNDS) {
        let table_id = TableId(1000 + number as u64);
        let map = TableMapEvent {
            table_id,
            flags: TableMapFlags::BIT_LEN_EXACT,
            database: format!("schema_{}", number % 50).as_bytes(),
            table: format!("table_number_{number}").as_bytes(),
            column_types: &types,
            column_metadata: &metadata,
            null_bitmap: Bitmap(&[0; COLUMNS / 8]),
            optional_metadata: OptionalMetadata(&optional),
        }
        .encode(8)
        .unwrap();
        let mut row = vec![0; COLUMNS / 8];
        for column in 0..COLUMNS {
            match column % 2 {
                0 => row.extend((number as u32).to_le_bytes()),
                _ => row.extend(b"\x0fsome short text"),
            }
        }
        let rows = RowsEvent {
            event_type: EventType::WRITE_ROWS,
            table_id,
            flags: RowsFlags::STMT_END,
            extra_data: &[],
            width: COLUMNS as u64,
            columns: Bitmap(&[0xff; COLUMNS / 8]),
            columns_after: None,
            rows: &row.repeat(2),
        }
        .encode(10)
        .unwrap();
        let mut events = transaction_events(&[]);
        events.splice(1..2, [(EventType::TABLE_MAP, map), (EventType::WRITE_ROWS, rows)]);
        log.transaction_of(&events);
    }
    log.take()
}

/// The memory for tables is bounded for all tables and workers together.
#[test]
fn thousands_of_tables() {
    let folder = Folder::new();
    for (count, all_jobs) in [(2_000, &["--jobs=2"][..]), (10_000, &["--jobs=2", "--jobs=16"])] {
        folder.put("tables", many_tables(count));
        for &jobs in all_jobs {
            let dumps = [&["-v"][..], &["-vv", "--base64-output=decode-rows"], &[], &["--format=jsonl"]];
            for options in dumps {
                let command =
                    folder.binlogz([&["dump", "--no-defaults", jobs], options, &["tables"]].concat());
                within(&format!("dump {options:?} {jobs} of {count} tables"), MEMORY_MAX, command);
            }
            for options in [&[][..], &["--values"]] {
                let command = folder.binlogz([&["stats", jobs], options, &["tables"]].concat());
                within(&format!("stats {options:?} {jobs} of {count} tables"), MEMORY_MAX, command);
            }
        }
    }
}

/// Memory that `archive` may take of this, in KiB, however many threads there are. It may take 512 MiB of any log; with a
/// context of zstd's for each thread these logs would take more than that.
const ARCHIVE_MEMORY_MAX: u64 = 320 << 10;

/// Into an archive and out of it.
#[track_caller]
fn archived(folder: &Folder, log: &str) {
    archived_and_read(folder, log, &[&["check"], &["cat"], RESTORE]);
}

const RESTORE: &[&str] = &["restore", "--force", "--to", "back"];

/// Archives a log and reads it with these commands, each within its memory; restore is among them.
#[track_caller]
fn archived_and_read(folder: &Folder, log: &str, readers: &[&[&str]]) {
    let archive = format!("{log}-archive");
    let create = folder.binlogz(["archive", "create", "--jobs=16", "--to", &archive, log]);
    within(&format!("archive create of {log}"), ARCHIVE_MEMORY_MAX, create);
    for arguments in readers {
        let command = folder.binlogz([&["archive"], *arguments, &[&archive]].concat());
        within(&format!("archive {} of {log}", arguments[0]), ARCHIVE_MEMORY_MAX, command);
    }
    assert!(fs::read(folder.path(&format!("back/{log}"))).unwrap() == fs::read(folder.path(log)).unwrap());
}

#[test]
fn archive_of_one_large_transaction() {
    let folder = Folder::new();
    let payload = payload(CompressionLevel::DEFAULT, 200 << 20, 60_000);
    folder.put("large", LogBuilder::new(Release::MYSQL_9_7).payload(&payload).bytes());
    archived(&folder, "large");
}

/// Blocks that take long to pack: without a limit for those under way there would be one for each thread.
#[test]
#[ignore = "minutes in a debug build: scripts/soak/archive.sh runs it optimised"]
fn archive_of_one_large_transaction_of_text() {
    let folder = Folder::new();
    let mut random = Random::new(3);
    let mut events = transaction_events(&[]);
    for _ in 0..(TEXT / TEXT_VALUE) {
        let mut value = Vec::with_capacity(TEXT_VALUE + 8);
        while value.len() < TEXT_VALUE {
            value.extend_from_slice(format!("{:x} ", random.below(1 << 14)).as_bytes());
        }
        let [_, _, row, _] = change_events(EventType::WRITE_ROWS, &[&value]).try_into().unwrap();
        events.insert(events.len() - 1, row);
    }
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    folder.put("text", log.transaction_of(&events).bytes());
    // All of them unpack the same way, which takes minutes in a debug build.
    archived_and_read(&folder, "text", &[RESTORE]);
}

/// Bytes of its rows, and of each.
const TEXT: usize = 64 << 20;
const TEXT_VALUE: usize = 60_000;

/// zstd takes 81 MiB for each thread that compresses such transactions at level 19.
#[test]
fn archive_of_level_19() {
    let folder = Folder::new();
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    let payload = payload(CompressionLevel::new(19).unwrap(), 9 << 20, 8000);
    for _ in 0..6 {
        log.payload(&payload);
    }
    folder.put("level19", log.bytes());
    archived(&folder, "level19");
}
