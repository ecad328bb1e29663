//! Writes a row image from its columns: the way back of `rows.rs`, which has the table of its parts.

use super::image::CellContent;
use super::rows::PARTIAL_JSON_UPDATES;
use super::schema::TableSchema;
use crate::error::{Error, Result};
use crate::put::PutFields;

const WHAT: &str = "row image";

impl TableSchema {
    /// Appends an image with these columns; `None`: it doesn't have the column. `has_options`: it is the after-image of a
    /// partial update, which alone may hold differences. Returns the bitmap of the columns that it has.
    ///
    /// # Errors
    ///
    /// A value that its column can't have, differences without `has_options`.
    pub fn put_image(
        &self,
        cells: &[Option<CellContent<'_>>],
        has_options: bool,
        out: &mut Vec<u8>,
    ) -> Result<Vec<u8>> {
        if cells.len() != self.columns().len() {
            return Err(Error::invalid(WHAT, "number of columns", cells.len(), "that of the table map"));
        }
        if has_options {
            out.put_lei(PARTIAL_JSON_UPDATES);
            let columns = self.columns().iter().zip(cells).filter(|(column, _)| column.is_json());
            out.put(&bits(columns.map(|(_, cell)| matches!(cell, Some(CellContent::JsonDiffs(_))))));
        }
        out.put(&bits(cells.iter().flatten().map(|cell| matches!(cell, CellContent::Null))));
        for (index, (size, cell)) in self.sizes().iter().zip(cells).enumerate() {
            match cell {
                None | Some(CellContent::Null) => {}
                Some(CellContent::JsonDiffs(_)) if !has_options => {
                    return Err(
                        Error::invalid(WHAT, "JSON column", "differences", "a document").in_column(index)
                    );
                }
                Some(CellContent::Value(value) | CellContent::JsonDiffs(value)) => {
                    size.put(value, out).map_err(|error| error.in_column(index))?;
                }
            }
        }
        Ok(bits(cells.iter().map(Option::is_some)))
    }
}

/// Packs booleans into bytes, the lowest bit first.
fn bits(set: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, is_set) in set.enumerate() {
        if index % 8 == 0 {
            bytes.push(0);
        }
        if let Some(byte) = bytes.last_mut() {
            *byte |= u8::from(is_set) << (index % 8);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{
        Bitmap, OptionalMetadata, RowsEvent, RowsFlags, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };
    use crate::event_type::EventType;
    use crate::row::RowDecoder;

    #[test]
    fn images_are_read_back_as_they_were_written() {
        use CellContent::{JsonDiffs, Null, Value};
        // INT, VARCHAR(300), JSON, JSON.
        let map = TableMapEvent {
            table_id: TableId(90),
            flags: TableMapFlags::default(),
            database: b"test",
            table: b"t",
            column_types: &[3, 15, 245, 245],
            column_metadata: &[0x2c, 1, 4, 4],
            null_bitmap: Bitmap(&[0b1110]),
            optional_metadata: OptionalMetadata(b""),
        };
        let schema = TableSchema::new(&map, ServerFamily::Unknown).unwrap();
        let number = &[1, 2, 3, 4][..];
        let text = &[b'x'; 280][..];
        let json = b"\x04\x01".as_slice();
        let before = [Some(Value(number)), Some(Value(text)), Some(Null), Some(Value(json))];
        let after = [None, Some(Null), Some(Value(json)), Some(JsonDiffs(b"\0\x01$"))];
        let mut rows = Vec::new();
        let columns = schema.put_image(&before, false, &mut rows).unwrap();
        let columns_after = schema.put_image(&after, true, &mut rows).unwrap();
        let event = RowsEvent {
            event_type: EventType::PARTIAL_UPDATE_ROWS,
            table_id: TableId(90),
            flags: RowsFlags::STMT_END,
            extra_data: b"",
            width: 4,
            columns: Bitmap(&columns),
            columns_after: Some(Bitmap(&columns_after)),
            rows: &rows,
        };
        let mut decoder = RowDecoder::new();
        let mut decoded = decoder.rows(&schema, &event).unwrap();
        let row = decoded.next_row().unwrap().unwrap();
        for (image, cells) in [(row.before, before), (row.after, after)] {
            let read = (0..4).map(|index| image.unwrap().cell(index).map(|cell| cell.content));
            assert_eq!(read.collect::<Vec<_>>(), cells);
        }
        assert!(decoded.next_row().unwrap().is_none());
        for bad in [Some(Value(b"123")), None] {
            let cells = [bad, Some(Null), Some(Null), Some(JsonDiffs(b""))];
            assert!(schema.put_image(&cells, false, &mut Vec::new()).is_err());
        }
    }
}
