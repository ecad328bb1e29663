//! Columns of a table, picked out of blocks without putting their events together, equal those of its rows; so do their
//! transactions and event headers.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use binlogz_archive::Level;
use binlogz_archive::block::picked::{Pick, PickedChanges};
use binlogz_archive::create::{CreateOutcome, Creator};
use binlogz_archive::format::Manifest;
use binlogz_archive::part::{ObjectContents, PickedLog};
use binlogz_archive::restore::{self, LastObject};
use binlogz_archive::storage::{ArchiveFolder, ObjectName};
use binlogz_binlog::EventType;
use binlogz_binlog::event::{
    Bitmap, ColumnType, OptionalMetadata, RowsEvent, RowsFlags, RowsKind, TableId, TableMapEvent,
    TableMapFlags, XidEvent,
};
use binlogz_binlog::row::{Cell, CellContent, TableSchema};
use binlogz_flow::{Input, RowChanges};
use binlogz_testkit::builder::{self, LogBuilder, Release};
use binlogz_testkit::corpus;

type Rows = BTreeMap<(Vec<u8>, Vec<u8>), Vec<String>>;

/// What is picked of rows: whether with the images of those that are deleted, and with the values of all columns or of every other one.
#[derive(Clone, Copy)]
struct PickedParts {
    with_deleted: bool,
    with_all_values: bool,
}

impl PickedParts {
    fn has_values(self, index: usize) -> bool {
        self.with_all_values || index.is_multiple_of(2)
    }

    fn has_before(self, kind: RowsKind) -> bool {
        self.with_deleted || kind != RowsKind::Delete
    }
}

fn shown(index: usize, parts: PickedParts, content: Option<CellContent<'_>>) -> String {
    let (kind, bytes) = match content {
        None => return String::new(),
        Some(CellContent::Null) => return format!(" {index}=NULL"),
        Some(CellContent::Value(bytes)) => ("", bytes),
        Some(CellContent::JsonDiffs(bytes)) => ("differs: ", bytes),
    };
    let bytes = if parts.has_values(index) { bytes } else { &[] };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(" {index}={kind}{hex}")
}

/// The rows of a log, by table.
fn expected(log: &[u8], parts: PickedParts) -> Rows {
    let mut rows = Rows::new();
    for change in RowChanges::new(Input::Stream(Box::new(std::io::Cursor::new(log.to_vec())))) {
        let change = change.unwrap();
        let table = change.table();
        let row = change.row();
        let images = [row.before.filter(|_| parts.has_before(change.kind)), row.after].map(|image| {
            image.map(|image| {
                let cells = (0..table.columns().len())
                    .map(|index| shown(index, parts, image.cell(index).map(|cell: Cell<'_>| cell.content)));
                cells.collect::<String>()
            })
        });
        let name = (table.database.to_vec(), table.table.to_vec());
        let around = (change.gtid.as_ref().map(ToString::to_string), change.timestamp, change.position.row);
        rows.entry(name).or_default().push(format!("{around:?} {:?} {images:?}", change.kind.operation()));
    }
    rows
}

/// The rows that were picked.
fn shown_rows(picked: &PickedChanges, parts: PickedParts) -> Vec<String> {
    let mut all = Vec::new();
    for run in &picked.runs {
        let table = &picked.tables[run.table];
        let around = run.around.as_ref().unwrap();
        let gtid = around.transaction.as_ref().and_then(|of| of.gtid.as_ref());
        for (row, number) in run.rows.clone().zip(run.first..) {
            let around = (gtid.map(ToString::to_string), around.timestamp, number);
            let images = [false, true].map(|is_after| {
                let shown = |(place, index): (usize, &usize)| {
                    assert_eq!(table.is_bare(place), !parts.has_values(*index));
                    shown(*index, parts, table.values(row..row + 1, is_after, place).next().unwrap())
                };
                let is_told = table.has_image(row, is_after) && (is_after || parts.has_before(run.kind));
                is_told.then(|| table.columns.iter().enumerate().map(shown).collect::<String>())
            });
            all.push(format!("{around:?} {:?} {images:?}", run.kind.operation()));
        }
    }
    all
}

/// The rows of these tables, picked table by table out of an archive.
fn picked(
    folder: &ArchiveFolder,
    names: impl Iterator<Item = (Vec<u8>, Vec<u8>)>,
    parts: PickedParts,
) -> Rows {
    let manifest = Manifest::read(folder).unwrap().unwrap();
    let file = &manifest.files[0];
    let last = LastObject::default();
    let mut rows = Rows::new();
    for name in names {
        let choose = |schema: &TableSchema| Some((0..schema.columns().len()).collect());
        let pick = Pick {
            database: &name.0,
            table: &name.1,
            columns: &choose,
            with_around: true,
            with_values: &|_, index| parts.has_values(index),
            with_deleted: parts.with_deleted,
            with_numbers: true,
            with_positions: false,
        };
        let open = |object: &ObjectName| ObjectContents::open(folder, &last, object).map(Arc::new);
        let objects = file.objects.iter().map(open).collect::<Result<_, _>>().unwrap();
        let log = PickedLog::choose(file, objects, false, &mut |_| Some(true)).unwrap().unwrap();
        let mut all = Vec::new();
        let mut bytes = 0;
        log.each(&pick, 2, &|picked| Ok(shown_rows(picked, parts)), &mut |of_block, rows| {
            bytes += of_block;
            all.extend(rows);
            Ok(())
        })
        .unwrap();
        assert!(bytes <= file.packed_size, "{bytes} of {}", file.packed_size);
        rows.insert(name, all);
    }
    rows
}

fn archived(log: &[u8], [block_size, segment_size]: [usize; 2], level: Level, folder: &ArchiveFolder) {
    let mut told = |_: &CreateOutcome| {};
    let mut creator = Creator::new(folder, 2, &mut told).unwrap();
    creator.block_size(block_size);
    creator.segment_size(segment_size as u64);
    creator.level(level);
    creator.add("binlog.000001", Arc::new(log.to_vec())).unwrap();
    creator.finish().unwrap();
}

/// A log of an archive that is a fixture.
fn of_fixture(version: u32, log: usize) -> Vec<u8> {
    let fixture =
        ArchiveFolder::new(format!("{}/tests/fixtures/version-{version}", env!("CARGO_MANIFEST_DIR")));
    let manifest = Manifest::read(&fixture).unwrap().unwrap();
    let mut back = Vec::new();
    restore::whole(&fixture, &manifest.files[log], &mut back, 2).unwrap();
    back
}

/// Transactions in which rows of very many columns are inserted, changed and deleted; of most images few columns are logged.
/// Their values take many times the log's bytes.
fn wide() -> Vec<u8> {
    const WIDTH: usize = 400;
    let all = [0xff; WIDTH / 8];
    let only = |columns: &[usize]| {
        let mut bits = [0; WIDTH / 8];
        columns.iter().for_each(|column| bits[column / 8] |= 1 << (column % 8));
        bits
    };
    let table_id = TableId(7);
    let map = TableMapEvent {
        table_id,
        flags: TableMapFlags::BIT_LEN_EXACT,
        database: b"shop",
        table: b"wide",
        column_types: &[ColumnType::LONG.0; WIDTH],
        column_metadata: &[],
        null_bitmap: Bitmap(&all),
        optional_metadata: OptionalMetadata(&[]),
    };
    let event = |event_type, columns: &[u8], columns_after: Option<&[u8]>, rows: &[u8]| {
        let event = RowsEvent {
            event_type,
            table_id,
            flags: RowsFlags::default(),
            extra_data: &[],
            width: WIDTH as u64,
            columns: Bitmap(columns),
            columns_after: columns_after.map(Bitmap),
            rows,
        };
        (event_type, event.encode(10).unwrap())
    };
    // Whole rows, that have one value besides their key.
    let whole = |id: u32| {
        let mut nulls = all;
        nulls[0] = 0xfc;
        [&nulls[..], &id.to_le_bytes(), &(id * 3).to_le_bytes()].concat()
    };
    let rows = |ids: Range<u32>| ids.flat_map(whole).collect::<Vec<u8>>();
    let mut first = vec![event(EventType::WRITE_ROWS, &all, None, &rows(0..100))];
    first.extend((1..60).map(|column| {
        let change = |id: u32| {
            let null = u8::from(id.is_multiple_of(7));
            let value = (null == 0).then_some((id ^ column as u32).to_le_bytes());
            [&[0][..], &id.to_le_bytes(), &[null], value.as_ref().map_or(&[][..], |value| value)].concat()
        };
        let rows: Vec<u8> = (0..100).flat_map(change).collect();
        event(EventType::UPDATE_ROWS, &only(&[0]), Some(&only(&[column * 6])), &rows)
    }));
    // Not so many values; those of the first block again.
    let second = vec![
        event(EventType::WRITE_ROWS, &all, None, &rows(1000..1200)),
        event(EventType::DELETE_ROWS, &all, None, &rows(0..100)),
    ];
    let mut log = LogBuilder::new(Release::MYSQL_9_7);
    for changes in [first, second] {
        let mut events =
            vec![(EventType::QUERY, builder::query("BEGIN")), (EventType::TABLE_MAP, map.encode(8).unwrap())];
        events.extend(changes);
        events.push((EventType::XID, XidEvent { xid: 1 }.encode()));
        log.transaction_of(&events);
    }
    log.take()
}

#[test]
fn columns_of_a_table_are_those_of_its_rows() {
    let mut logs: Vec<(String, Vec<u8>)> = ["binlog.000006", "binlog.000001", "levels.000001"]
        .into_iter()
        .map(|name| (name.to_owned(), std::fs::read(corpus::path(name)).unwrap()))
        .collect();
    // 50 tables, whose columns are pooled; documents changed in part.
    logs.push(("tables".to_owned(), of_fixture(5, 3)));
    logs.push(("partial-json".to_owned(), of_fixture(5, 4)));
    logs.push(("wide".to_owned(), wide()));
    for name in ["binlog.000001", "binlog.000002", "binlog.000003"] {
        let path = format!("{}/../../../samples/plain/{name}", env!("CARGO_MANIFEST_DIR"));
        logs.push((path.clone(), std::fs::read(path).unwrap()));
    }
    let mut rows_seen = 0;
    for (name, log) in logs {
        let whole = PickedParts { with_deleted: true, with_all_values: true };
        let some = PickedParts { with_deleted: false, with_all_values: false };
        let both = [whole, some].map(|parts| (parts, expected(&log, parts)));
        let [whole, some] = &both;
        rows_seen += whole.1.values().map(Vec::len).sum::<usize>();
        // Few rows to a block, so that most of what changes is in another; and all in one. Transactions over several objects.
        for (sizes, level, (parts, expected)) in [
            ([16 << 10, 8 << 20], Level::Fast, whole),
            ([32 << 10, 64 << 10], Level::Default, some),
            ([8 << 20, 8 << 20], Level::Fast, whole),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let folder = ArchiveFolder::new(dir.path());
            archived(&log, sizes, level, &folder);
            let found = picked(&folder, expected.keys().cloned(), *parts);
            for (table, rows) in expected {
                let found = &found[table];
                let same = found.iter().zip(rows).take_while(|(found, row)| found == row).count();
                assert!(
                    found == rows,
                    "{name}, blocks of {sizes:?}, {table:?}: row {same} of {} and {}: {:?} {:?}",
                    found.len(),
                    rows.len(),
                    found.get(same),
                    rows.get(same)
                );
            }
        }
    }
    assert!(rows_seen > 10_000, "{rows_seen}");
}
