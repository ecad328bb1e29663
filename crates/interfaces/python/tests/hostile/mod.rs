//! Uses the package wrongly, and over hostile logs: `attack.py` in an interpreter of its own. No server.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use binlogz_binlog::EventType;
use binlogz_binlog::event::{
    Bitmap, OptionalMetadata, RowsEvent, RowsFlags, TableId, TableMapEvent, TableMapFlags, XidEvent,
};
use binlogz_testkit::builder::{LogBuilder, Release, bomb, query};
use binlogz_testkit::tool::require;
use binlogz_testkit::{Tool, corpus, mutate};

use super::package;

/// Damaged logs of a run; a soak names more.
const MUTANTS: u64 = 60;
/// Levels of a document: as many frames fit no thread's stack.
const LEVELS: usize = 100_000;
/// Levels of one whose two elements are the same one: what is in it is 2 to the power of this.
const SHARED_LEVELS: usize = 60;
/// Types of columns, and of values in documents.
const INT: u8 = 3;
const JSON: u8 = 245;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;

/// The events of a transaction that inserts these rows into a table `(id INT PRIMARY KEY, j JSON)`.
fn insert(table: &str, rows: &[u8]) -> Vec<(EventType, Vec<u8>)> {
    let map = TableMapEvent {
        table_id: TableId(7),
        flags: TableMapFlags::BIT_LEN_EXACT,
        database: b"shop",
        table: table.as_bytes(),
        column_types: &[INT, JSON],
        column_metadata: &[4],
        null_bitmap: Bitmap(&[0xff]),
        // Names, and the primary key.
        optional_metadata: OptionalMetadata(b"\x04\x05\x02id\x01j\x08\x01\x00"),
    };
    let rows = RowsEvent {
        event_type: EventType::WRITE_ROWS,
        table_id: TableId(7),
        flags: RowsFlags::STMT_END,
        extra_data: &[],
        width: 2,
        columns: Bitmap(&[3]),
        columns_after: None,
        rows,
    };
    vec![
        (EventType::QUERY, query("BEGIN")),
        (EventType::TABLE_MAP, map.encode(8).unwrap()),
        (EventType::WRITE_ROWS, rows.encode(10).unwrap()),
        (EventType::XID, XidEvent { xid: 1 }.encode()),
    ]
}

fn row(id: u32, document: &[u8]) -> Vec<u8> {
    [&[0][..], &id.to_le_bytes(), &(document.len() as u32).to_le_bytes(), document].concat()
}

fn log(transactions: &[Vec<(EventType, Vec<u8>)>]) -> Vec<u8> {
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for events in transactions {
        log.transaction_of(events);
    }
    log.take()
}

/// An array in an array in an array …
fn deep() -> Vec<u8> {
    let header = 13;
    let mut document = Vec::new();
    let size = |level: usize| (header * level + 8) as u32;
    for level in (0..LEVELS).rev() {
        document.extend(1u32.to_le_bytes());
        document.extend(size(level + 1).to_le_bytes());
        document.push(LARGE_ARRAY);
        document.extend((header as u32).to_le_bytes());
    }
    document.extend(0u32.to_le_bytes());
    document.extend(8u32.to_le_bytes());
    [&[LARGE_ARRAY][..], &document].concat()
}

/// An array whose elements are the same one, and so on.
fn shared() -> Vec<u8> {
    let header = 10u16;
    let mut document = vec![0, 0, 4, 0];
    for _ in 0..SHARED_LEVELS {
        let size = header + document.len() as u16;
        let entry = [&[SMALL_ARRAY][..], &header.to_le_bytes()].concat();
        document = [&2u16.to_le_bytes()[..], &size.to_le_bytes(), &entry, &entry, &document].concat();
    }
    [&[SMALL_ARRAY][..], &document].concat()
}

fn logs(folder: &Path) {
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let document = [4, 0];
    write("log", &fs::read(corpus::path("binlog.000005")).unwrap());
    write("deep", &log(&[insert("item", &row(1, &deep()))]));
    write("shared", &log(&[insert("item", &row(1, &shared()))]));
    // The second row of the second event is cut.
    let bad = [row(2, &document), vec![0, 3, 0]].concat();
    write("bad_row", &log(&[insert("item", &row(1, &document)), insert("item", &bad)]));
    write("bomb", &bomb(512 << 20));
    let tables: Vec<_> =
        (0..300).map(|number| insert(&format!("t{number}"), &row(number, &document))).collect();
    write("tables", &log(&tables));
    let seed = mutate::seed();
    let count = env::var("MUTANTS").ok().and_then(|count| count.parse().ok()).unwrap_or(MUTANTS);
    fs::create_dir(folder.join("mutants")).unwrap();
    let names = ["binlog.000001", "binlog.000003", "binlog.000005"];
    let originals = names.map(|name| fs::read(corpus::path(name)).unwrap());
    for (number, original) in (0..count).zip(originals.iter().cycle()) {
        write(&format!("mutants/{number}"), &mutate::mutate(original, seed, number).0);
    }
}

#[test]
fn nothing_crashes_the_interpreter_or_ends_a_log_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    package(folder.path());
    let logs = folder.path().join("logs");
    fs::create_dir(&logs).unwrap();
    self::logs(&logs);
    // One with pyarrow, if it is here.
    let mut command = match require(Tool::FlightSql) {
        Some(python) => python.command("python"),
        None => Command::new("python3"),
    };
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attack.py")).arg(&logs);
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONPATH", folder.path());
    let ran = command.output().unwrap();
    let (out, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let now = fs::read_to_string(logs.join("now")).unwrap_or_default();
    assert!(ran.status.success(), "{}: {out}{errors}; the last mutant is {now}", ran.status);
}
