//! A row as it was walked: its columns and the content of each. Walking is done in `rows.rs`, decoding in
//! `value.rs`.

use std::borrow::Cow;
use std::ops::Range;

use super::json::{JsonDiffs, JsonDocument, JsonTree};
use super::schema::ColumnSchema;
use super::value::Value;
use crate::error::{Error, Result};

/// One changed row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r, 'a> {
    /// The row before the change; `None` for an inserted row.
    pub before: Option<RowImage<'r, 'a>>,
    /// The row after the change; `None` for a deleted row.
    pub after: Option<RowImage<'r, 'a>>,
}

/// The columns of a row, before or after the change.
#[derive(Debug, Clone, Copy)]
pub struct RowImage<'r, 'a> {
    pub(super) columns: &'a [ColumnSchema],
    pub(super) spans: &'r [CellSpan],
    /// The event's rows, which the spans point into.
    pub(super) rows: &'a [u8],
}

/// A column of an image.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    /// The column's place in the table, counted from 0.
    pub index: usize,
    /// The column.
    pub column: &'a ColumnSchema,
    /// The column's content.
    pub content: CellContent<'a>,
}

/// The content of a column in an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellContent<'a> {
    /// NULL.
    Null,
    /// A value's bytes, without the length before them.
    Value(&'a [u8]),
    /// Differences from the JSON document of the before-image.
    JsonDiffs(&'a [u8]),
}

/// A column's place in the rows: where its content begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum CellSpan {
    Absent,
    Null,
    Value(u32, u32),
    JsonDiffs(u32, u32),
}

impl CellSpan {
    /// The range of its bytes, if it has any.
    pub(super) fn range(&self) -> Option<Range<u32>> {
        match *self {
            CellSpan::Absent | CellSpan::Null => None,
            CellSpan::Value(start, end) | CellSpan::JsonDiffs(start, end) => Some(start..end),
        }
    }

    /// Shifts the span's range back by `by` bytes; a span without bytes is returned unchanged.
    pub(super) fn moved_back(self, by: u32) -> Self {
        match self {
            CellSpan::Absent | CellSpan::Null => self,
            CellSpan::Value(start, end) => CellSpan::Value(start - by, end - by),
            CellSpan::JsonDiffs(start, end) => CellSpan::JsonDiffs(start - by, end - by),
        }
    }
}

impl<'a> Row<'_, 'a> {
    /// The JSON document that a column of the after-image holds, with differences applied to the
    /// before-image. `None` if the column is absent, NULL or not JSON.
    ///
    /// # Errors
    ///
    /// A document or difference that can't be read; a difference without a document before it, as in
    /// minimal row images.
    pub fn json_after(&self, index: usize) -> Result<Option<JsonTree<'a>>> {
        let Some(cell) = self.after.and_then(|after| after.cell(index)) else { return Ok(None) };
        cell.json_after(self.before.and_then(|before| before.cell(index)))
    }
}

impl<'a> Cell<'a> {
    /// The JSON document that this column of an after-image holds, with differences applied to the one of the before-image. `None`
    /// if it is NULL or not JSON.
    ///
    /// # Errors
    ///
    /// As for [`Row::json_after`].
    pub fn json_after(&self, before: Option<Cell<'a>>) -> Result<Option<JsonTree<'a>>> {
        let tree = match (self.value()?, before) {
            (Value::Json(document), _) => JsonTree::new(document),
            (Value::JsonDiffs(diffs), Some(Cell { content: CellContent::Value(before), .. })) => {
                diffs.apply(JsonDocument::new(before))
            }
            (Value::JsonDiffs(_), _) => Err(Error::invalid(
                "row image",
                "document of the before-image",
                "absent",
                "the one to change",
            )),
            _ => return Ok(None),
        };
        tree.map(Some).map_err(|error| error.in_column(self.index))
    }
}

impl<'r, 'a> RowImage<'r, 'a> {
    /// The columns that the image has, in the table's order.
    #[inline]
    pub fn cells(&self) -> impl Iterator<Item = Cell<'a>> + use<'r, 'a> {
        let rows = self.rows;
        let columns = self.columns.iter().zip(self.spans).enumerate();
        columns.filter_map(move |(index, (column, span))| Cell::new(index, column, *span, rows))
    }

    /// A column by its place in the table, counted from 0. `None`: the image doesn't have it.
    pub fn cell(&self, index: usize) -> Option<Cell<'a>> {
        Cell::new(index, self.columns.get(index)?, *self.spans.get(index)?, self.rows)
    }
}

impl<'a> Cell<'a> {
    #[inline]
    fn new(index: usize, column: &'a ColumnSchema, span: CellSpan, rows: &'a [u8]) -> Option<Self> {
        let bytes = |start: u32, end: u32| rows.get(start as usize..end as usize).unwrap_or_default();
        // Nearly all are values. Testing for them first is a predictable branch; a jump table is not.
        if let CellSpan::Value(start, end) = span {
            return Some(Cell { index, column, content: CellContent::Value(bytes(start, end)) });
        }
        let content = match span {
            CellSpan::Absent => return None,
            CellSpan::Null => CellContent::Null,
            CellSpan::Value(start, end) => CellContent::Value(bytes(start, end)),
            CellSpan::JsonDiffs(start, end) => CellContent::JsonDiffs(bytes(start, end)),
        };
        Some(Cell { index, column, content })
    }

    /// Decodes the content.
    ///
    /// # Errors
    ///
    /// Bytes that the column's type can't have, see [`Value`].
    #[inline]
    pub fn value(&self) -> Result<Value<'a>> {
        match self.content {
            CellContent::Null => Ok(Value::Null),
            CellContent::Value(bytes) => {
                Value::decode(self.column.kind, bytes).map_err(|error| error.in_column(self.index))
            }
            CellContent::JsonDiffs(bytes) => Ok(Value::JsonDiffs(JsonDiffs::new(bytes))),
        }
    }

    /// The content of a character column as text. `None` if it is NULL, or not text as far as its collation
    /// is known; see [`crate::charset::Charset::decode`].
    pub fn text(&self) -> Option<Cow<'a, str>> {
        match self.content {
            CellContent::Value(bytes) => self.column.charset()?.decode(bytes),
            _ => None,
        }
    }
}
