//! One side of row changes as a column of structs: the row before, or the row after. A change without that side is NULL.

use std::sync::Arc;

use arrow_array::{ArrayRef, StructArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, Fields};
use binlogz_binlog::Result;
use binlogz_binlog::row::json::JsonTree;
use binlogz_binlog::row::{Cell, CellContent, Row, RowImage};

use crate::types::ValueColumn;

/// One side of a row change.
#[derive(Debug)]
pub struct ChangeSide<'r, 'a> {
    /// The change.
    pub row: &'r Row<'r, 'a>,
    /// The row after it, otherwise the one before.
    pub is_after: bool,
}

impl<'a> ChangeSide<'_, 'a> {
    fn image(&self) -> Option<&RowImage<'_, 'a>> {
        if self.is_after { self.row.after.as_ref() } else { self.row.before.as_ref() }
    }

    /// Appends the column at this place of the table; NULL if it has none. A document that was logged as differences is whole if the
    /// row before it is there.
    ///
    /// # Errors
    ///
    /// Bytes that are no value of the column's type.
    pub fn push(&self, values: &mut ValueColumn, place: Option<usize>, scratch: &mut Vec<u8>) -> Result<()> {
        let cell = place.and_then(|place| self.image()?.cell(place));
        let before = self.row.before.filter(|_| self.is_after);
        let before = cell.and_then(|cell| before?.cell(cell.index));
        values.push_changed(cell, before, scratch)
    }
}

impl ValueColumn {
    /// Appends a cell of the row after a change; one that is absent is NULL. A document that was logged as differences is whole if
    /// `before`, the cell before the change, is there.
    ///
    /// # Errors
    ///
    /// Bytes that are no value of the column's type.
    pub fn push_changed(
        &mut self,
        cell: Option<Cell<'_>>,
        before: Option<Cell<'_>>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let mut document = None;
        if let Some(cell) = cell.filter(|cell| cell.column.is_json())
            && matches!(cell.content, CellContent::JsonDiffs(_))
            && before.is_some()
        {
            document = cell.json_after(before)?.map(|tree| json_text(&tree)).transpose()?;
        }
        self.push(cell.as_ref(), document.as_deref(), scratch)
    }
}

fn json_text(tree: &JsonTree<'_>) -> Result<String> {
    let mut text = Vec::new();
    tree.write_text(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A column of images that is being built.
#[derive(Debug)]
pub struct ImageColumn {
    fields: Fields,
    /// The columns of the table.
    pub values: Vec<ValueColumn>,
    /// Whether each change so far has an image.
    pub is_there: Vec<bool>,
}

impl ImageColumn {
    /// An empty one.
    pub fn new(fields: &Fields) -> Self {
        let values = fields.iter().map(|field| ValueColumn::new(field.data_type())).collect();
        ImageColumn { fields: fields.clone(), values, is_there: Vec::new() }
    }

    /// Appends a side of a change. `places`: where the table has the column of each field.
    ///
    /// # Errors
    ///
    /// Bytes that are no value of a column's type.
    pub fn push(
        &mut self,
        side: &ChangeSide<'_, '_>,
        places: &[Option<usize>],
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        self.is_there.push(side.image().is_some());
        let mut columns = self.values.iter_mut().zip(places);
        columns.try_for_each(|(values, place)| side.push(values, *place, scratch))
    }

    /// The images so far; the column is empty after that.
    ///
    /// # Errors
    ///
    /// Fields of other types than their values: a caller's mistake.
    pub fn finish(&mut self) -> std::result::Result<ArrayRef, ArrowError> {
        let arrays = self.values.iter_mut().map(ValueColumn::finish).collect();
        let nulls = NullBuffer::from(std::mem::take(&mut self.is_there));
        Ok(Arc::new(StructArray::try_new(self.fields.clone(), arrays, Some(nulls))?))
    }
}
