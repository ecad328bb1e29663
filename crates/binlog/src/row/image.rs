//! A row as it was walked: which columns it has and what stands there for each. Walking is done in
//! `rows.rs`, decoding in `value.rs`.

use std::borrow::Cow;
use std::ops::Range;

use super::json::{JsonDiffs, JsonDocument, JsonTree};
use super::schema::ColumnSchema;
use super::value::Value;
use crate::error::{Error, Result};

/// One changed row.
#[derive(Debug, Clone, Copy)]
pub struct Row<'r, 'a> {
    /// What it was; `None` for an inserted row.
    pub before: Option<RowImage<'r, 'a>>,
    /// What it became; `None` for a deleted row.
    pub after: Option<RowImage<'r, 'a>>,
}

/// The columns of a row, before or after the change.
#[derive(Debug, Clone, Copy)]
pub struct RowImage<'r, 'a> {
    pub(super) columns: &'a [ColumnSchema],
    pub(super) spans: &'r [Span],
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
    /// What stands there for it.
    pub content: CellContent<'a>,
}

/// What stands in an image for a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellContent<'a> {
    /// NULL.
    Null,
    /// A value's bytes, without the length in front of them.
    Value(&'a [u8]),
    /// Differences from the JSON document of the before-image.
    JsonDiffs(&'a [u8]),
}

/// A column's place in the rows: where its content begins and ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum Span {
    Absent,
    Null,
    Value(u32, u32),
    JsonDiffs(u32, u32),
}

impl Span {
    /// Where its bytes are, if it has some.
    pub(super) fn range(&self) -> Option<Range<u32>> {
        match *self {
            Span::Absent | Span::Null => None,
            Span::Value(start, end) | Span::JsonDiffs(start, end) => Some(start..end),
        }
    }

    /// The same in bytes that begin `by` later.
    pub(super) fn moved_back(self, by: u32) -> Self {
        match self {
            Span::Absent | Span::Null => self,
            Span::Value(start, end) => Span::Value(start - by, end - by),
            Span::JsonDiffs(start, end) => Span::JsonDiffs(start - by, end - by),
        }
    }
}

impl<'a> Row<'_, 'a> {
    /// The JSON document that a column of the after-image holds, differences applied to the
    /// before-image. `None`: the column is absent, NULL or no JSON.
    ///
    /// # Errors
    ///
    /// A document or difference that can't be read; a difference without a document before it, as in
    /// minimal row images.
    pub fn json_after(&self, index: usize) -> Result<Option<JsonTree<'a>>> {
        let Some(cell) = self.after.and_then(|after| after.cell(index)) else { return Ok(None) };
        let tree = match (cell.value()?, self.before.and_then(|before| before.cell(index))) {
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
        tree.map(Some).map_err(|error| error.in_column(index))
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
    fn new(index: usize, column: &'a ColumnSchema, span: Span, rows: &'a [u8]) -> Option<Self> {
        let bytes = |start: u32, end: u32| rows.get(start as usize..end as usize).unwrap_or_default();
        // Nearly all are values: asked for first, that is a branch which is foreseen; a jump by table is not.
        if let Span::Value(start, end) = span {
            return Some(Cell { index, column, content: CellContent::Value(bytes(start, end)) });
        }
        let content = match span {
            Span::Absent => return None,
            Span::Null => CellContent::Null,
            Span::Value(start, end) => CellContent::Value(bytes(start, end)),
            Span::JsonDiffs(start, end) => CellContent::JsonDiffs(bytes(start, end)),
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

    /// The content of a character column as text. `None`: it is NULL, or no text as far as its
    /// collation is known; see [`crate::charset::Charset::decode`].
    pub fn text(&self) -> Option<Cow<'a, str>> {
        match self.content {
            CellContent::Value(bytes) => self.column.charset()?.decode(bytes),
            _ => None,
        }
    }
}
