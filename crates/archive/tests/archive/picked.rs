//! Columns of a table, picked out of blocks without putting their events together, are those of its rows, and so is what is
//! around them.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlogz_archive::Level;
use binlogz_archive::block::picked::Pick;
use binlogz_archive::create::{Created, Creator};
use binlogz_archive::format::Manifest;
use binlogz_archive::restore;
use binlogz_archive::storage::Folder;
use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{Cell, CellContent, TableSchema};
use binlogz_flow::{Input, RowChanges};
use binlogz_testkit::corpus;

type Rows = BTreeMap<(Vec<u8>, Vec<u8>), Vec<String>>;

/// The columns that can be picked: documents may be there in part.
fn columns(schema: &TableSchema) -> Vec<usize> {
    let columns = schema.columns().iter().enumerate();
    columns.filter(|(_, column)| !column.is_json()).map(|(index, _)| index).collect()
}

fn shown(index: usize, content: Option<CellContent<'_>>) -> String {
    match content {
        None => String::new(),
        Some(CellContent::Null) => format!(" {index}=NULL"),
        Some(CellContent::Value(bytes) | CellContent::JsonDiffs(bytes)) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!(" {index}={hex}")
        }
    }
}

/// The rows of a log, by table.
fn expected(log: &[u8]) -> Rows {
    let mut rows = Rows::new();
    for change in RowChanges::new(Input::Stream(Box::new(std::io::Cursor::new(log.to_vec())))) {
        let change = change.unwrap();
        let table = change.table();
        let row = change.row();
        let images = [row.before, row.after].map(|image| {
            image.map(|image| {
                let cells = columns(table)
                    .into_iter()
                    .map(|index| shown(index, image.cell(index).map(|cell: Cell<'_>| cell.content)));
                cells.collect::<String>()
            })
        });
        let name = (table.database.to_vec(), table.table.to_vec());
        let around = (change.gtid.as_ref().map(ToString::to_string), change.timestamp);
        rows.entry(name).or_default().push(format!("{around:?} {:?} {images:?}", kind(change.kind)));
    }
    rows
}

fn kind(kind: RowsKind) -> &'static str {
    match kind {
        RowsKind::Write => "insert",
        RowsKind::Update | RowsKind::PartialUpdate => "update",
        RowsKind::Delete => "delete",
    }
}

/// The same, picked table by table out of an archive.
fn picked(folder: &Folder, names: impl Iterator<Item = (Vec<u8>, Vec<u8>)>) -> Rows {
    let manifest = Manifest::read(folder).unwrap().unwrap();
    let file = &manifest.files[0];
    let mut rows = Rows::new();
    for name in names {
        let choose = |schema: &TableSchema| Some(columns(schema));
        let pick = Pick { database: &name.0, table: &name.1, columns: &choose, with_around: true };
        let mut all = Vec::new();
        for object in &file.objects {
            let object = restore::open(folder, object).unwrap();
            let (_, numbers) = object.log(&file.name).unwrap();
            object
                .pick(
                    &numbers,
                    &pick,
                    2,
                    &|picked| {
                        let mut all = Vec::new();
                        for run in &picked.runs {
                            let table = &picked.tables[run.table];
                            let around = run.around.as_ref().unwrap();
                            let gtid = around.transaction.as_ref().and_then(|of| of.gtid.as_ref());
                            let around = (gtid.map(ToString::to_string), around.timestamp);
                            for row in run.rows.clone() {
                                let images = [false, true].map(|is_after| {
                                    table.has_image(row, is_after).then(|| {
                                        let cells = table.columns.iter().enumerate();
                                        let cells = cells.map(|(place, index)| {
                                            shown(
                                                *index,
                                                table.values(row..row + 1, is_after, place).next().unwrap(),
                                            )
                                        });
                                        cells.collect::<String>()
                                    })
                                });
                                all.push(format!("{around:?} {:?} {images:?}", kind(run.kind)));
                            }
                        }
                        Ok(all)
                    },
                    &mut |_, rows| {
                        all.extend(rows);
                        Ok(())
                    },
                )
                .unwrap();
        }
        rows.insert(name, all);
    }
    rows
}

fn archived(log: &[u8], block_size: usize, level: Level, folder: &Folder) {
    let mut told = |_: &Created| {};
    let mut creator = Creator::new(folder, 2, &mut told).unwrap();
    creator.block_size(block_size);
    creator.level(level);
    creator.add("binlog.000001", Arc::new(log.to_vec())).unwrap();
    creator.finish().unwrap();
}

/// A log of an archive that is a fixture.
fn of_fixture(version: u32, log: usize) -> Vec<u8> {
    let fixture = Folder::new(format!("{}/tests/fixtures/version-{version}", env!("CARGO_MANIFEST_DIR")));
    let manifest = Manifest::read(&fixture).unwrap().unwrap();
    let mut back = Vec::new();
    restore::whole(&fixture, &manifest.files[log], &mut back, 2).unwrap();
    back
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
    for name in ["binlog.000001", "binlog.000002", "binlog.000003"] {
        let path = format!("{}/../../samples/plain/{name}", env!("CARGO_MANIFEST_DIR"));
        logs.push((path.clone(), std::fs::read(path).unwrap()));
    }
    let mut rows_seen = 0;
    for (name, log) in logs {
        let expected = expected(&log);
        rows_seen += expected.values().map(Vec::len).sum::<usize>();
        // Few rows to a block, so that most of what changes is in another; and all in one.
        for (block_size, level) in
            [(16 << 10, Level::Fast), (64 << 10, Level::Default), (8 << 20, Level::Fast)]
        {
            let dir = tempfile::tempdir().unwrap();
            let folder = Folder::new(dir.path());
            archived(&log, block_size, level, &folder);
            let found = picked(&folder, expected.keys().cloned());
            for (table, rows) in &expected {
                let found = &found[table];
                let same = found.iter().zip(rows).take_while(|(found, row)| found == row).count();
                assert!(
                    found == rows,
                    "{name}, blocks of {block_size}, {table:?}: row {same} of {} and {}: {:?} {:?}",
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
