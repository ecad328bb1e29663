//! The columns of a row as the fields of a JSON object, for Debezium's events and Maxwell's lines. How a value is spelled is
//! each format's own; see `value/`.

use binlogz_binlog::Result;
use binlogz_binlog::row::{CellContent, Row, RowImage};
use binlogz_print::BufferedLines;

use crate::table::ChangeTable;
use crate::value::{self, FieldValues};

/// Writes columns of one row.
pub(crate) struct FieldPen<'w, 'i, 'a, V> {
    pub(crate) row: &'w Row<'i, 'a>,
    pub(crate) table: &'w ChangeTable,
    pub(crate) values: V,
    /// Memory for a value that is written apart from the lines.
    pub(crate) apart: &'w mut Vec<u8>,
}

impl<V: FieldValues> FieldPen<'_, '_, '_, V> {
    /// Writes an object of these columns, with their values in the image.
    pub(crate) fn put_object<'l>(
        &mut self,
        mut lines: BufferedLines<'l>,
        image: &RowImage<'_, '_>,
        indexes: impl Iterator<Item = usize>,
    ) -> Result<BufferedLines<'l>> {
        let mut between = b'{';
        for index in indexes {
            let Some(column) = self.table.columns.get(index) else { continue };
            lines.step();
            lines.put(&[std::mem::replace(&mut between, b',')], 1);
            lines.put_text(&column.field);
            lines = self.put_value(lines, image, index)?;
        }
        lines.step();
        if between == b'{' {
            lines.put(b"{", 1);
        }
        lines.put(b"}", 1);
        Ok(lines)
    }

    /// Writes the value of one column.
    pub(crate) fn put_value<'l>(
        &mut self,
        mut lines: BufferedLines<'l>,
        image: &RowImage<'_, '_>,
        index: usize,
    ) -> Result<BufferedLines<'l>> {
        let FieldPen { row, table, values, apart } = self;
        let Some(column) = table.columns.get(index) else { return Ok(lines) };
        lines.step();
        let cell = match value::cell(image, column, index) {
            Ok(cell) => cell,
            Err(error) => {
                lines.end();
                return Err(error);
            }
        };
        if let CellContent::JsonDiffs(_) = cell.content {
            let text = value::changed_document(row, index)?;
            values.push_changed_document(lines.out(), &text);
            return Ok(lines);
        }
        value::put(lines, &cell, column, apart, |out| values.push(out, &cell, column))
    }
}
