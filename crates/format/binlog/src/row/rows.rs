//! Walks the rows of an event: finds where each column of each image begins and ends.
//!
//! ```text
//! rows     one or two images a row: write after, delete before, update before and after
//! image    [value options LEI · if bit 0: a bit for each JSON column of the table] · null bits · values
//! ```
//!
//! The part in brackets only occurs in the after-images of type 39; its bits say which JSON columns hold
//! differences. There is a null bit for each column in the event's bitmap, and a value for each of those that
//! isn't NULL. (`Rows_log_event`, `unpack_row` in the server.)
//!
//! The rows of the 5.1 betas (types 20 to 22) have another layout, which can't be read without the table's
//! definition: they are refused.

use super::image::{CellSpan, Row, RowImage};
use super::kind::ColumnSize;
use super::schema::TableSchema;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::{Bitmap, RowsEvent, RowsKind};
use crate::event_type::EventType;

const WHAT: &str = "row image";
/// Bytes of memory for expanded rows that a decoder keeps from event to event.
const EXPANDED_KEPT_MAX: usize = 1 << 20;
/// The value option that says: JSON columns may hold differences.
pub(super) const PARTIAL_JSON_UPDATES: u64 = 1;

/// Reads the rows of one event after another, reusing its memory.
#[derive(Debug, Default)]
pub struct RowDecoder {
    before: Vec<CellSpan>,
    after: Vec<CellSpan>,
    /// The rows of an event with compressed values, expanded.
    expanded: Vec<u8>,
}

/// The rows of one event.
#[derive(Debug)]
pub struct Rows<'d, 'a> {
    spans_before: &'d mut Vec<CellSpan>,
    spans_after: &'d mut Vec<CellSpan>,
    schema: &'a TableSchema,
    /// How the values in `rows` are stored.
    sizes: &'a [ColumnSize],
    before: Option<ImageLayout<'a>>,
    after: Option<ImageLayout<'a>>,
    rows: &'a [u8],
    /// Where the next row begins.
    position: usize,
    /// Whether no row was read yet.
    first: bool,
}

/// The common parts of the images of one side.
#[derive(Debug, Clone, Copy)]
struct ImageLayout<'a> {
    /// Columns in the image, and whether these are all.
    present: Bitmap<'a>,
    is_whole: bool,
    /// Bytes of the null bits.
    null_bytes: usize,
    /// The bits of the last of them that stand for columns: servers set the others.
    null_bits_last: u8,
    /// Whether value options come first.
    has_options: bool,
}

impl RowDecoder {
    /// A decoder that has not allocated memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The rows of an event, once all of them are known to fit: each ends in the event, the last where the
    /// event does. `schema` is that of the event's table, see [`super::TableSchemas::get`].
    ///
    /// # Errors
    ///
    /// An event of the 5.1 betas; another number of columns than the table map had; a value that reaches
    /// beyond the event, bytes after the last row; a compressed value that can't be expanded; rows above
    /// 4 GiB, which no log holds.
    pub fn rows<'d: 'a, 'a>(
        &'d mut self,
        schema: &'a TableSchema,
        event: &RowsEvent<'a>,
    ) -> Result<Rows<'d, 'a>> {
        let [before, after] = layouts(schema, event)?;
        let RowDecoder { before: spans_before, after: spans_after, expanded } = self;
        for spans in [&mut *spans_before, &mut *spans_after] {
            spans.clear();
            spans.resize(schema.columns().len(), CellSpan::Absent);
        }
        let (rows, sizes) = match schema.expanded_sizes() {
            None => {
                pass_all(schema, [&before, &after], event.rows)?;
                (event.rows, schema.sizes())
            }
            Some(sizes) => {
                expand_all(schema, [&before, &after], event.rows, expanded)?;
                (expanded.as_slice(), sizes)
            }
        };
        let mut rows =
            Rows { spans_before, spans_after, schema, sizes, before, after, rows, position: 0, first: true };
        if schema.has_old_temporals() {
            rows.check_old_temporals()?;
        }
        Ok(rows)
    }

    /// How many rows an event has; all of them are checked as [`RowDecoder::rows`] does, in one pass where that is enough.
    ///
    /// # Errors
    ///
    /// As [`RowDecoder::rows`].
    pub fn count(&mut self, schema: &TableSchema, event: &RowsEvent<'_>) -> Result<u64> {
        if schema.expanded_sizes().is_none() && !schema.has_old_temporals() {
            return count_rows(schema, event);
        }
        let mut rows = self.rows(schema, event)?;
        let mut count = 0;
        while rows.next_row()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// How many rows an event has. Their values are passed over, not looked at.
///
/// # Errors
///
/// As [`RowDecoder::rows`] and [`Rows::next_row`].
pub fn count_rows(schema: &TableSchema, event: &RowsEvent<'_>) -> Result<u64> {
    let [before, after] = layouts(schema, event)?;
    pass_all(schema, [&before, &after], event.rows)
}

/// Passes over all rows; their number.
fn pass_all(schema: &TableSchema, images: [&Option<ImageLayout<'_>>; 2], rows: &[u8]) -> Result<u64> {
    let mut cursor = Cursor::new(rows, WHAT);
    each_row(images, &mut cursor, |layout, cursor| layout.pass(schema, cursor))
}

/// Takes the images of each row, the last at the end of the bytes; the number of rows.
fn each_row<'l, 'a>(
    images: [&'l Option<ImageLayout<'a>>; 2],
    cursor: &mut Cursor<'_>,
    mut take: impl FnMut(&'l ImageLayout<'a>, &mut Cursor<'_>) -> Result<()>,
) -> Result<u64> {
    let [before, _] = images;
    let mut count = 0;
    // An event without bytes still has one row: an insert of nothing but defaults, in minimal images.
    while !cursor.is_empty() || (count == 0 && before.is_none()) {
        let left = cursor.remaining();
        for layout in images.into_iter().flatten() {
            take(layout, cursor)?;
        }
        if cursor.remaining() == left && count > 0 {
            return Err(Error::LeftOver { what: "rows event", count: left as u64 });
        }
        count += 1;
    }
    Ok(count)
}

/// Replaces `out` with the rows, their compressed values expanded.
fn expand_all(
    schema: &TableSchema,
    images: [&Option<ImageLayout<'_>>; 2],
    rows: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    out.clear();
    out.shrink_to(EXPANDED_KEPT_MAX);
    let mut cursor = Cursor::new(rows, WHAT);
    each_row(images, &mut cursor, |layout, cursor| layout.expand(schema, cursor, out))?;
    if u32::try_from(out.len()).is_err() {
        return Err(Error::invalid("rows event", "size of the expanded rows", out.len(), "below 4 GiB"));
    }
    Ok(())
}

/// The images of each row of an event: before and after.
fn layouts<'a>(schema: &TableSchema, event: &RowsEvent<'a>) -> Result<[Option<ImageLayout<'a>>; 2]> {
    if (EventType::PRE_GA_WRITE_ROWS..=EventType::PRE_GA_DELETE_ROWS).contains(&event.event_type) {
        return Err(Error::invalid("rows event", "event type", event.event_type, "one of 5.1.18 or later"));
    }
    let width = schema.columns().len();
    if event.width != width as u64 {
        return Err(Error::invalid("rows event", "width", event.width, "the table map's column count"));
    }
    if u32::try_from(event.rows.len()).is_err() {
        return Err(Error::invalid("rows event", "size of the rows", event.rows.len(), "below 4 GiB"));
    }
    let layout = |present: Bitmap<'a>, has_options| {
        let count = present.count(width);
        let is_whole = count == width;
        let null_bits_last = u8::MAX >> (count.next_multiple_of(8) - count);
        Some(ImageLayout { present, is_whole, null_bytes: count.div_ceil(8), null_bits_last, has_options })
    };
    let kind = event.kind();
    let after = event.columns_after.unwrap_or(event.columns);
    let before = if kind == RowsKind::Write { None } else { layout(event.columns, false) };
    let after = match kind {
        RowsKind::Delete => None,
        RowsKind::Write | RowsKind::Update => layout(after, false),
        RowsKind::PartialUpdate => layout(after, true),
    };
    Ok([before, after])
}

impl<'a> Rows<'_, 'a> {
    /// Old temporal values with a fraction of a second, which only MariaDB has, may fill as many bytes as others do.
    /// They are no dates and times then.
    fn check_old_temporals(&mut self) -> Result<()> {
        while let Some(row) = self.next_row()? {
            for cell in row.before.iter().chain(&row.after).flat_map(|image| image.cells()) {
                if cell.column.kind.is_old_temporal() {
                    cell.value()?;
                }
            }
        }
        (self.position, self.first) = (0, true);
        Ok(())
    }

    /// The next row; `None` after the last.
    ///
    /// # Errors
    ///
    /// A value that reaches beyond the event; value options that are not known.
    #[inline]
    pub fn next_row(&mut self) -> Result<Option<Row<'_, 'a>>> {
        let mut cursor = Cursor::new(self.rows.get(self.position..).unwrap_or_default(), WHAT);
        // An event without bytes still has one row: an insert of nothing but defaults, in minimal images.
        if cursor.is_empty() && !(self.first && self.before.is_none()) {
            return Ok(None);
        }
        let schema = self.schema;
        let sizes = self.sizes;
        let rows = self.rows;
        let mut read = |layout: &Option<ImageLayout<'a>>, spans| match layout {
            Some(layout) => layout.read((schema, sizes), rows, &mut cursor, spans),
            None => Ok(()),
        };
        read(&self.before, self.spans_before)?;
        read(&self.after, self.spans_after)?;

        let position = rows.len() - cursor.remaining();
        if position == self.position && !self.first {
            return Err(Error::LeftOver { what: "rows event", count: cursor.remaining() as u64 });
        }
        (self.position, self.first) = (position, false);
        let columns = schema.columns();
        let image = |spans| RowImage { columns, spans, rows };
        Ok(Some(Row {
            before: self.before.map(|_| image(&*self.spans_before)),
            after: self.after.map(|_| image(&*self.spans_after)),
        }))
    }
}

impl<'a> ImageLayout<'a> {
    /// Walks one image and records where each column's content is.
    #[inline]
    fn read(
        &self,
        (schema, sizes): (&TableSchema, &[ColumnSize]),
        rows: &[u8],
        cursor: &mut Cursor<'a>,
        spans: &mut [CellSpan],
    ) -> Result<()> {
        let diffs = if self.has_options { diff_bits(schema, cursor)? } else { None };
        let nulls = cursor.bytes(self.null_bytes, "null bits")?;
        let has_nulls = self.has_nulls(nulls);
        let mut nulls = Bitmap(nulls).bits();
        let mut present = self.present.bits();
        for (index, (size, span)) in sizes.iter().zip(spans.iter_mut()).enumerate() {
            if !self.is_whole && !present.next_is_set() {
                *span = CellSpan::Absent;
                continue;
            }
            if has_nulls && nulls.next_is_set() {
                *span = CellSpan::Null;
                continue;
            }
            match size.take(cursor) {
                // Rows are below 4 GiB.
                Ok(bytes) => {
                    let end = rows.len() - cursor.remaining();
                    *span = CellSpan::Value((end - bytes.len()) as u32, end as u32);
                }
                Err(error) => return Err(error.in_column(index)),
            }
        }
        if let Some(diffs) = diffs {
            mark_diffs(schema, diffs, spans);
        }
        Ok(())
    }

    /// Walks one image.
    #[inline]
    fn pass(&self, schema: &TableSchema, cursor: &mut Cursor<'_>) -> Result<()> {
        if self.has_options {
            diff_bits(schema, cursor)?;
        }
        let nulls = cursor.bytes(self.null_bytes, "null bits")?;
        if self.is_whole && !self.has_nulls(nulls) {
            let mut fast = cursor.peek();
            if schema.leaps().iter().all(|leap| leap.pass(&mut fast)) {
                cursor.bytes(cursor.remaining() - fast.len(), "values")?;
                return Ok(());
            }
        }
        // With NULLs, or cut: this says in which column.
        let mut nulls = Bitmap(nulls).bits();
        let mut present = self.present.bits();
        for (index, size) in schema.sizes().iter().enumerate() {
            if (self.is_whole || present.next_is_set()) && !nulls.next_is_set() {
                size.take(cursor).map_err(|error| error.in_column(index))?;
            }
        }
        Ok(())
    }

    /// Copies one image, compressed values expanded.
    fn expand(&self, schema: &TableSchema, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<()> {
        let before = cursor.peek();
        if self.has_options {
            diff_bits(schema, cursor)?;
        }
        let nulls = cursor.bytes(self.null_bytes, "null bits")?;
        out.extend_from_slice(before.get(..before.len() - cursor.remaining()).unwrap_or_default());
        let mut nulls = Bitmap(nulls).bits();
        let mut present = self.present.bits();
        for (index, size) in schema.sizes().iter().enumerate() {
            if (self.is_whole || present.next_is_set()) && !nulls.next_is_set() {
                size.copy_expanded(cursor, out).map_err(|error| error.in_column(index))?;
            }
        }
        Ok(())
    }

    #[inline]
    fn has_nulls(&self, nulls: &[u8]) -> bool {
        nulls.split_last().is_some_and(|(last, others)| {
            last & self.null_bits_last != 0 || others.iter().any(|&bits| bits != 0)
        })
    }
}

/// Reads the value options; the bits after them say which JSON columns hold differences.
fn diff_bits<'a>(schema: &TableSchema, cursor: &mut Cursor<'a>) -> Result<Option<Bitmap<'a>>> {
    match cursor.lei("value options")? {
        0 => Ok(None),
        PARTIAL_JSON_UPDATES => {
            let size = schema.json_columns().div_ceil(8);
            Ok(Some(Bitmap(cursor.bytes(size, "bits of partial columns")?)))
        }
        other => Err(Error::invalid(WHAT, "value options", other, "0 or 1 (partial JSON updates)")),
    }
}

fn mark_diffs(schema: &TableSchema, diffs: Bitmap<'_>, spans: &mut [CellSpan]) {
    let columns = schema.columns().iter().zip(spans).filter(|(column, _)| column.is_json());
    for (json_index, (_, span)) in columns.enumerate() {
        if let CellSpan::Value(start, end) = *span
            && diffs.is_set(json_index)
        {
            *span = CellSpan::JsonDiffs(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{OptionalMetadata, RowsFlags, ServerFamily, TableId, TableMapEvent, TableMapFlags};
    use crate::row::Value;

    /// INT, VARCHAR(10), JSON.
    fn schema() -> TableSchema {
        let event = TableMapEvent {
            table_id: TableId(90),
            flags: TableMapFlags::default(),
            database: b"test",
            table: b"t",
            column_types: &[3, 15, 245],
            column_metadata: &[10, 0, 4],
            null_bitmap: Bitmap(&[0b110]),
            optional_metadata: OptionalMetadata(b"\x02\x01\x08"),
        };
        TableSchema::new(&event, ServerFamily::Unknown).unwrap()
    }

    fn event(event_type: EventType, columns: &'static [u8], rows: &'static [u8]) -> RowsEvent<'static> {
        RowsEvent {
            event_type,
            table_id: TableId(90),
            flags: RowsFlags::STMT_END,
            extra_data: b"",
            width: 3,
            columns: Bitmap(columns),
            columns_after: None,
            rows,
        }
    }

    /// Each row as `before -> after`, each column as `index=value`. They are as many as are counted.
    fn read(event: &RowsEvent<'_>) -> Result<Vec<String>> {
        let rows = rows_of(event);
        let text = |error: &Error| error.to_string();
        let counted = count_rows(&schema(), event);
        assert_eq!(
            counted.as_ref().map_err(text),
            rows.as_ref().map(|rows| rows.len() as u64).as_ref().map_err(|error| text(error))
        );
        rows
    }

    fn rows_of(event: &RowsEvent<'_>) -> Result<Vec<String>> {
        let schema = schema();
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(&schema, event)?;
        let mut shown = Vec::new();
        while let Some(row) = rows.next_row()? {
            shown.push(format!("{} -> {}", show(row.before)?, show(row.after)?));
        }
        Ok(shown)
    }

    fn show(image: Option<RowImage<'_, '_>>) -> Result<String> {
        let Some(image) = image else { return Ok("none".to_owned()) };
        let cells = image.cells().map(|cell| {
            Ok(match (cell.text(), cell.value()?) {
                (Some(text), _) => format!("{}={text}", cell.index),
                (None, Value::Int(number)) => format!("{}={number}", cell.index),
                (None, value) => format!("{}={value:?}", cell.index),
            })
        });
        Ok(cells.collect::<Result<Vec<_>>>()?.join(" "))
    }

    const TWO: &[u8] = b"\x04\x07\0\0\0\x02ab\x06\xff\xff\xff\xff";

    #[test]
    fn rows_are_read_one_behind_the_other() {
        let write = event(EventType::WRITE_ROWS, &[0b111], TWO);
        assert_eq!(read(&write).unwrap(), ["none -> 0=7 1=ab 2=Null", "none -> 0=-1 1=Null 2=Null"]);
        let delete = event(EventType::DELETE_ROWS_V1, &[0b111], TWO);
        assert_eq!(read(&delete).unwrap(), ["0=7 1=ab 2=Null -> none", "0=-1 1=Null 2=Null -> none"]);
        for length in 1..TWO.len() {
            let cut = RowsEvent { rows: &TWO[..length], ..write };
            assert_eq!(read(&cut).is_ok(), length == 8, "{length}");
        }
        let long = event(EventType::WRITE_ROWS, &[0b111], b"\x04\x07\0\0\0\xffab");
        let error = read(&long).unwrap_err().to_string();
        assert_eq!(error, "column 2: row image: value needs 255 bytes, 2 are left");
    }

    #[test]
    fn bits_after_the_last_column_say_nothing() {
        // Servers set them.
        const NULLS: &[u8] = b"\xfc\x07\0\0\0\x02ab\xfe\xff\xff\xff\xff";
        let write = event(EventType::WRITE_ROWS, &[0b111], NULLS);
        assert_eq!(read(&write).unwrap(), ["none -> 0=7 1=ab 2=Null", "none -> 0=-1 1=Null 2=Null"]);
    }

    #[test]
    fn null_bits_stand_for_the_columns_that_are_there() {
        // Before: column 0. After: column 1, NULL.
        let update = RowsEvent {
            columns_after: Some(Bitmap(&[0b010])),
            ..event(EventType::UPDATE_ROWS, &[0b001], b"\0\x07\0\0\0\x01")
        };
        assert_eq!(read(&update).unwrap(), ["0=7 -> 1=Null"]);
    }

    #[test]
    fn an_insert_of_nothing_is_one_row() {
        assert_eq!(read(&event(EventType::WRITE_ROWS, &[0], b"")).unwrap(), ["none -> "]);
        assert_eq!(read(&event(EventType::DELETE_ROWS, &[0b111], b"")).unwrap(), [""; 0]);
        // Bytes that no column claims would be read forever.
        assert!(read(&event(EventType::WRITE_ROWS, &[0], b"x")).is_err());
        assert!(read(&event(EventType::DELETE_ROWS, &[0], b"x")).is_err());
    }

    /// 7, NULL, [1] -> 7, NULL, with `$[0]` replaced by "X".
    const PARTIAL: &[u8] = b"\x02\x07\0\0\0\x08\0\0\0\x02\x01\0\x07\0\x05\x01\0\
        \x01\x01\x02\x07\0\0\0\x0a\0\0\0\0\x04$[0]\x03\x0c\x01X";

    fn partial(rows: &'static [u8]) -> RowsEvent<'static> {
        let columns_after = Some(Bitmap(&[0b111]));
        RowsEvent { columns_after, ..event(EventType::PARTIAL_UPDATE_ROWS, &[0b111], rows) }
    }

    #[test]
    fn differences_are_applied_to_the_before_image() {
        let schema = schema();
        let event = partial(PARTIAL);
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(&schema, &event).unwrap();
        let row = rows.next_row().unwrap().unwrap();
        let after = row.after.unwrap();
        let Value::JsonDiffs(diffs) = after.cell(2).unwrap().value().unwrap() else { panic!("no diffs") };
        assert_eq!(diffs.iter().next().unwrap().unwrap().path, b"$[0]");
        let mut text = Vec::new();
        row.json_after(2).unwrap().unwrap().write_text(&mut text).unwrap();
        assert_eq!(text, b"[\"X\"]");
        assert!(row.json_after(0).unwrap().is_none() && row.json_after(9).unwrap().is_none());
        assert!(rows.next_row().unwrap().is_none());
        for length in 1..PARTIAL.len() {
            assert!(read(&partial(&PARTIAL[..length])).is_err(), "{length}");
        }
    }

    #[test]
    fn without_a_document_before_it_a_difference_stays_one() {
        let rows: &[u8] = b"\0\x07\0\0\0\x01\x01\x02\x07\0\0\0\x0a\0\0\0\0\x04$[0]\x03\x0c\x01X";
        let event = RowsEvent { columns: Bitmap(&[1]), ..partial(rows) };
        let schema = schema();
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(&schema, &event).unwrap();
        let row = rows.next_row().unwrap().unwrap();
        let error = row.json_after(2).unwrap_err().to_string();
        assert_eq!(
            error,
            "column 3: row image: document of the before-image is absent, expected the one to change"
        );
    }

    #[test]
    fn value_options() {
        // None set: no bits follow, and documents are stored whole.
        let whole: &[u8] = b"\x06\x07\0\0\0\0\x06\x07\0\0\0";
        assert_eq!(read(&partial(whole)).unwrap(), ["0=7 1=Null 2=Null -> 0=7 1=Null 2=Null"]);
        let unknown: &[u8] = b"\x06\x07\0\0\0\x02\x06\x07\0\0\0";
        assert!(read(&partial(unknown)).unwrap_err().to_string().contains("value options is 2"));
    }

    #[test]
    fn events_that_do_not_fit_their_table_are_refused() {
        let wide = RowsEvent { width: 4, ..event(EventType::WRITE_ROWS, &[0b1111], TWO) };
        assert!(read(&wide).is_err());
        assert!(read(&event(EventType::PRE_GA_WRITE_ROWS, &[0b111], TWO)).is_err());
    }
}
