//! A row that outlives its event: a copy of the images' bytes, with the table needed to read them.

use std::ops::Range;
use std::sync::Arc;

use super::image::{CellSpan, Row, RowImage};
use super::schema::{ColumnSchema, TableSchema};

/// An owned row change, to be kept or sent to another thread. [`OwnedRow::row`] reads it.
#[derive(Debug, Clone)]
pub struct OwnedRow {
    schema: Arc<TableSchema>,
    before: Option<OwnedImage>,
    after: Option<OwnedImage>,
}

#[derive(Debug, Clone)]
struct OwnedImage {
    spans: Box<[CellSpan]>,
    bytes: Box<[u8]>,
}

impl OwnedRow {
    /// Copies a row of `schema`'s table.
    pub fn new(schema: Arc<TableSchema>, row: &Row<'_, '_>) -> Self {
        let copy = |image: Option<RowImage<'_, '_>>| image.map(|image| OwnedImage::new(&image));
        OwnedRow { before: copy(row.before), after: copy(row.after), schema }
    }

    /// The table.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The row as it was in its event.
    pub fn row(&self) -> Row<'_, '_> {
        let columns = self.schema.columns();
        let [before, after] = [&self.before, &self.after].map(|image| Some(image.as_ref()?.read(columns)));
        Row { before, after }
    }
}

impl OwnedImage {
    /// Copies the bytes from the first value to the last; offsets count from there.
    fn new(image: &RowImage<'_, '_>) -> Self {
        let used: Range<u32> = image
            .spans
            .iter()
            .filter_map(CellSpan::range)
            .reduce(|all, next| all.start.min(next.start)..all.end.max(next.end))
            .unwrap_or_default();
        OwnedImage {
            spans: image.spans.iter().map(|span| span.moved_back(used.start)).collect(),
            bytes: image.rows.get(used.start as usize..used.end as usize).unwrap_or_default().into(),
        }
    }

    fn read<'a>(&'a self, columns: &'a [ColumnSchema]) -> RowImage<'a, 'a> {
        RowImage { columns, spans: &self.spans, rows: &self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{
        Bitmap, OptionalMetadata, RowsEvent, RowsFlags, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };
    use crate::event_type::EventType;
    use crate::row::{RowDecoder, Value};

    #[test]
    fn a_row_reads_the_same_without_its_event() {
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"test",
            table: b"t",
            column_types: &[3, 15],
            column_metadata: &[10, 0],
            null_bitmap: Bitmap(&[0b10]),
            optional_metadata: OptionalMetadata(b""),
        };
        let schema = Arc::new(TableSchema::new(&map, ServerFamily::Unknown).unwrap());
        let event = RowsEvent {
            event_type: EventType::UPDATE_ROWS,
            table_id: TableId(1),
            flags: RowsFlags::STMT_END,
            extra_data: b"",
            width: 2,
            columns: Bitmap(&[0b11]),
            columns_after: Some(Bitmap(&[0b10])),
            rows: b"\0\x01\0\0\0\x01a\0\x01b\x02\x02\0\0\0\x01",
        };
        let mut decoder = RowDecoder::new();
        let mut rows = decoder.rows(&schema, &event).unwrap();
        let mut kept = Vec::new();
        while let Some(row) = rows.next_row().unwrap() {
            kept.push(OwnedRow::new(Arc::clone(&schema), &row));
        }
        let values = |image: Option<RowImage<'_, '_>>| -> Vec<(usize, String)> {
            let cells =
                image.unwrap().cells().map(|cell| (cell.index, format!("{:?}", cell.value().unwrap())));
            cells.collect()
        };
        let shown = |value: Value<'_>| format!("{value:?}");
        let [first, second] = [kept[0].row(), kept[1].row()];
        assert_eq!(values(first.before), [(0, shown(Value::Int(1))), (1, shown(Value::Bytes(b"a")))]);
        assert_eq!(values(first.after), [(1, shown(Value::Bytes(b"b")))]);
        assert_eq!(values(second.before), [(0, shown(Value::Int(2))), (1, shown(Value::Null))]);
        assert_eq!(values(second.after), [(1, shown(Value::Null))]);
    }
}
