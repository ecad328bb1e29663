//! Rows of logs of MySQL 9.7.4 (`sample/`) as Arrow's arrays, compared with the file beside this one. It needs no server.
//!
//! `images.txt` has for each table its columns with their types, then the images of its first row changes, as far as they
//! are short. Run with `UPDATE_GOLDEN=1` to write it anew.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::fmt::Write;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_cast::display::array_value_to_string;
use binlogz_arrow::{ChangeSide, ImageColumn, TableFields, ValueColumn};
use binlogz_binlog::event::{FormatDescription, PostHeaderLengths, RowsEvent, RowsFlags};
use binlogz_binlog::row::{Cell, CellContent, Row, RowDecoder, TableSchema, TableSchemas};
use binlogz_binlog::{EventReader, EventType};
use binlogz_testkit::assert_golden;

/// Row changes of a table that are shown.
const SHOWN_MAX: usize = 24;
/// Characters of an image that are shown.
const LENGTH_MAX: usize = 700;

#[test]
fn images_are_what_they_were() {
    let mut tables = Tables::default();
    each_row(|schema, _| tables.add_fields(schema));
    tables.begin();
    each_row(|schema, row| tables.push(schema, row));
    assert_golden(&root().join("tests/golden/images.txt"), &tables.shown());
}

#[test]
fn values_taken_many_at_once_are_those_taken_one_by_one() {
    let (mut columns, mut fixed_columns) = (0, 0);
    each_event(|schema, rows| {
        for (index, column) in schema.columns().iter().enumerate() {
            let kind = binlogz_arrow::of(column);
            let (mut one_by_one, mut at_once) = (ValueColumn::new(&kind), ValueColumn::new(&kind));
            let mut decoder = RowDecoder::new();
            let cells = cells_of(&mut decoder, schema, rows, index);
            cells.iter().for_each(|cell| one_by_one.push(cell.as_ref(), None, &mut Vec::new()).unwrap());
            at_once.extend(column.kind, cells.iter().copied(), &mut Vec::new()).unwrap();
            let expected = one_by_one.finish();
            assert_eq!(&at_once.finish(), &expected, "column {index} of {}", name(schema));
            columns += 1;
            let Some(bytes) = fixed_bytes(&cells) else { continue };
            if at_once.extend_fixed(column.kind, &bytes).unwrap() {
                assert_eq!(&at_once.finish(), &expected, "column {index} of {}", name(schema));
                fixed_columns += 1;
            }
        }
    });
    assert!(columns > 100 && fixed_columns > 20, "{columns} {fixed_columns}");
}

/// The tables of the logs, in the order in which they first have rows.
#[derive(Default)]
struct Tables {
    names: Vec<String>,
    fields: Vec<TableFields>,
    /// The rows before, and the rows after.
    images: Vec<[ImageColumn; 2]>,
}

impl Tables {
    fn add_fields(&mut self, schema: &TableSchema) {
        let place = self.place(schema).unwrap_or_else(|| {
            self.names.push(name(schema));
            self.fields.push(TableFields::default());
            self.names.len() - 1
        });
        for (column, name) in schema.columns().iter().zip(column_names(schema)) {
            self.fields[place].add(name, binlogz_arrow::of(column));
        }
    }

    fn begin(&mut self) {
        let fields = self.fields.iter().map(TableFields::fields);
        self.images = fields.map(|fields| [(); 2].map(|()| ImageColumn::new(&fields))).collect();
    }

    fn place(&self, schema: &TableSchema) -> Option<usize> {
        self.names.iter().position(|known| *known == name(schema))
    }

    fn push(&mut self, schema: &TableSchema, row: &Row<'_, '_>) {
        let place = self.place(schema).unwrap();
        let columns = column_names(schema);
        let fields = self.fields[place].fields();
        let places: Vec<_> =
            fields.iter().map(|field| columns.iter().position(|column| column == field.name())).collect();
        for (image, is_after) in self.images[place].iter_mut().zip([false, true]) {
            image.push(&ChangeSide { row, is_after }, &places, &mut Vec::new()).unwrap();
        }
    }

    fn shown(mut self) -> String {
        let mut text = String::new();
        for (place, name) in self.names.iter().enumerate() {
            writeln!(text, "{name}").unwrap();
            for field in &self.fields[place].fields() {
                writeln!(text, "  {} {}", field.name(), field.data_type()).unwrap();
            }
            let [before, after]: [ArrayRef; 2] =
                self.images[place].each_mut().map(|image| image.finish().unwrap());
            for row in 0..before.len().min(SHOWN_MAX) {
                writeln!(text, "{} → {}", image(&before, row), image(&after, row)).unwrap();
            }
            writeln!(text, "  {} row changes", before.len()).unwrap();
        }
        text
    }
}

fn image(images: &ArrayRef, row: usize) -> String {
    if images.is_null(row) {
        return "none".to_owned();
    }
    let text = array_value_to_string(images, row).unwrap();
    text.chars().take(LENGTH_MAX).map(|c| if c.is_control() { '␀' } else { c }).collect()
}

/// Calls `take` with each event of rows, and its table.
fn each_event(mut take: impl FnMut(&Arc<TableSchema>, &RowsEvent<'_>)) {
    for log in ["binlog.000006", "binlog.000009"] {
        each_event_of(&root().join("sample").join(log), &mut take);
    }
}

fn each_event_of(log: &Path, take: &mut impl FnMut(&Arc<TableSchema>, &RowsEvent<'_>)) {
    let mut log = EventReader::new(File::open(log).unwrap());
    let mut lengths = PostHeaderLengths::default();
    let mut schemas = TableSchemas::new();
    while let Some((_, frame)) = log.next_event().unwrap() {
        let (event_type, body) = (frame.event_type(), frame.body());
        if event_type == EventType::FORMAT_DESCRIPTION {
            lengths = PostHeaderLengths::from(&FormatDescription::decode_frame(&frame).unwrap());
        } else if event_type == EventType::TABLE_MAP {
            schemas.note(body, &lengths).unwrap();
        } else if event_type.is_rows() {
            let rows = RowsEvent::decode(event_type, body, lengths.of(event_type)).unwrap();
            take(schemas.get(rows.table_id).unwrap(), &rows);
            if rows.flags.contains(RowsFlags::STMT_END) {
                schemas.end_statement();
            }
        }
    }
}

/// Calls `take` with each row change, and its table.
fn each_row(mut take: impl FnMut(&TableSchema, &Row<'_, '_>)) {
    each_event(|schema, event| {
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(schema, event).unwrap();
        while let Some(row) = rows.next_row().unwrap() {
            take(schema, &row);
        }
    });
}

/// What the rows of an event have in a column: after the change, else before.
fn cells_of<'a>(
    decoder: &'a mut RowDecoder,
    schema: &'a TableSchema,
    event: &RowsEvent<'a>,
    index: usize,
) -> Vec<Option<Cell<'a>>> {
    let mut rows = decoder.rows(schema, event).unwrap();
    let mut cells = Vec::new();
    while let Some(row) = rows.next_row().unwrap() {
        cells.push(row.after.or(row.before).and_then(|image| image.cell(index)));
    }
    cells
}

/// The bytes of cells of which none is NULL or absent, one after the other.
fn fixed_bytes(cells: &[Option<Cell<'_>>]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for cell in cells {
        let CellContent::Value(value) = cell.as_ref()?.content else { return None };
        bytes.extend_from_slice(value);
    }
    Some(bytes)
}

fn name(schema: &TableSchema) -> String {
    format!("{}.{}", String::from_utf8_lossy(&schema.database), String::from_utf8_lossy(&schema.table))
}

fn column_names(schema: &TableSchema) -> Vec<String> {
    let name = |(index, name): (usize, Option<&[u8]>)| {
        name.map_or_else(|| format!("@{}", index + 1), |name| String::from_utf8_lossy(name).into_owned())
    };
    let columns = schema.columns().iter().map(|column| column.name.as_deref());
    columns.enumerate().map(name).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
