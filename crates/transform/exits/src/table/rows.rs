//! The rows of an event, masked.
//!
//! Differences of a JSON column that is masked are applied first: the whole document is known, or the column is missing in what
//! leaves, which is counted. Rows whose images then have other columns than those before them go into an event of their own.

use binlogz_binlog::event::{Bitmap, RowsEvent, RowsKind};
use binlogz_binlog::row::{Cell, CellContent, Row, RowDecoder, RowImage};
use binlogz_binlog::{Error as BinlogError, Result};

use super::plan::{ColumnPlan, TablePlan};
use crate::secret::MaskKey;

/// Bytes of rows after which an event ends, unless its first row has more.
const ROWS_SIZE_MAX: usize = 8 << 20;

/// A part of an event's rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MaskedRows {
    columns: Vec<u8>,
    columns_after: Option<Vec<u8>>,
    rows: Vec<u8>,
}

impl MaskedRows {
    /// The event with these rows in the place of its own. What a storage engine put beside them is left out.
    pub(crate) fn event<'a>(&'a self, event: &RowsEvent<'_>) -> RowsEvent<'a> {
        RowsEvent {
            event_type: event.event_type,
            table_id: event.table_id,
            flags: event.flags,
            extra_data: b"",
            width: event.width,
            columns: Bitmap(&self.columns),
            columns_after: self.columns_after.as_deref().map(Bitmap),
            rows: &self.rows,
        }
    }
}

/// What became of the rows of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct MaskedEvent {
    pub(crate) parts: Vec<MaskedRows>,
    pub(crate) masked: u64,
    /// Rows of which nothing may leave.
    pub(crate) left_out: u64,
    /// JSON columns of rows whose documents aren't known.
    pub(crate) unknown_documents: u64,
}

/// A column of an image that leaves.
enum MaskedCell<'a> {
    Absent,
    Null,
    Kept(CellContent<'a>),
    Made(Vec<u8>),
}

impl MaskedCell<'_> {
    fn content(&self) -> Option<CellContent<'_>> {
        match self {
            MaskedCell::Absent => None,
            MaskedCell::Null => Some(CellContent::Null),
            MaskedCell::Kept(content) => Some(*content),
            MaskedCell::Made(bytes) => Some(CellContent::Value(bytes)),
        }
    }
}

/// Masks rows by a plan.
pub(crate) struct RowMasker<'p> {
    pub(crate) plan: &'p TablePlan,
    pub(crate) key: Option<&'p MaskKey>,
}

impl RowMasker<'_> {
    /// Masks the rows of an event.
    ///
    /// # Errors
    ///
    /// Rows that can't be read, values that their columns can't have.
    pub(crate) fn event(&self, event: &RowsEvent<'_>, decoder: &mut RowDecoder) -> Result<MaskedEvent> {
        let mut masked = MaskedEvent::default();
        let mut rows = decoder.rows(&self.plan.schema, event)?;
        while let Some(row) = rows.next_row()? {
            self.row((event, &row), &mut masked)?;
        }
        Ok(masked)
    }

    fn row(&self, (event, row): (&RowsEvent<'_>, &Row<'_, '_>), masked: &mut MaskedEvent) -> Result<()> {
        let before = row.before.map(|image| self.image(image, row, &mut 0)).transpose()?;
        let mut unknown = 0;
        let after = row.after.map(|image| self.image(image, row, &mut unknown)).transpose()?;
        masked.unknown_documents += unknown;
        // A row without any column left can't be found, and doesn't change.
        let is_empty = |image: &Option<Vec<MaskedCell<'_>>>| {
            image.as_ref().is_some_and(|cells| cells.iter().all(|cell| cell.content().is_none()))
        };
        if is_empty(&before) || is_empty(&after) {
            masked.left_out += 1;
            return Ok(());
        }
        let is_partial = event.kind() == RowsKind::PartialUpdate;
        let mut bytes = Vec::new();
        let mut bitmaps = [before, after].into_iter().enumerate().map(|(side, image)| {
            let Some(cells) = image else { return Ok(None) };
            let cells: Vec<_> = cells.iter().map(MaskedCell::content).collect();
            self.plan.schema.put_image(&cells, is_partial && side == 1, &mut bytes).map(Some)
        });
        let [before, after] = [bitmaps.next(), bitmaps.next()];
        drop(bitmaps);
        let (before, after) = (before.transpose()?.flatten(), after.transpose()?.flatten());
        let (columns, columns_after) = match (before, after) {
            (Some(before), after) => (before, after),
            (None, Some(after)) => (after, None),
            (None, None) => return Ok(()),
        };
        masked.masked += 1;
        match masked.parts.last_mut() {
            Some(part)
                if part.columns == columns
                    && part.columns_after == columns_after
                    && part.rows.len() + bytes.len() <= ROWS_SIZE_MAX =>
            {
                part.rows.extend_from_slice(&bytes);
            }
            _ => masked.parts.push(MaskedRows { columns, columns_after, rows: bytes }),
        }
        Ok(())
    }

    /// The columns of an image. Counts those whose document isn't known.
    fn image<'a>(
        &self,
        image: RowImage<'_, 'a>,
        row: &Row<'_, 'a>,
        unknown: &mut u64,
    ) -> Result<Vec<MaskedCell<'a>>> {
        let cells = self.plan.columns.iter().enumerate().map(|(index, plan)| {
            let Some(cell) = image.cell(index) else { return Ok(MaskedCell::Absent) };
            let mask = match plan {
                ColumnPlan::Keep => return Ok(MaskedCell::Kept(cell.content)),
                ColumnPlan::LeaveOut => return Ok(MaskedCell::Absent),
                ColumnPlan::Mask(mask) => mask,
            };
            let document = match cell.content {
                CellContent::Null => return Ok(MaskedCell::Null),
                CellContent::Value(_) => None,
                CellContent::JsonDiffs(_) => match document_after(row, index)? {
                    Some(document) => Some(document),
                    None => {
                        *unknown += 1;
                        return Ok(MaskedCell::Absent);
                    }
                },
            };
            let content = document.as_deref().map_or(cell.content, CellContent::Value);
            let masked = mask.masked(self.key, &Cell { content, ..cell });
            match masked.map_err(|error| in_column(error, index))? {
                Some(bytes) => Ok(MaskedCell::Made(bytes)),
                None => Ok(MaskedCell::Null),
            }
        });
        cells.collect::<std::result::Result<_, BinlogError>>()
    }
}

/// The document that differences make; `None`: the one before isn't known.
fn document_after(row: &Row<'_, '_>, index: usize) -> Result<Option<Vec<u8>>> {
    let is_known = row
        .before
        .and_then(|before| before.cell(index))
        .is_some_and(|cell| matches!(cell.content, CellContent::Value(_)));
    if !is_known {
        return Ok(None);
    }
    let Some(tree) = row.json_after(index)? else { return Ok(None) };
    let mut document = Vec::new();
    tree.put_document(&mut document)?;
    Ok(Some(document))
}

fn in_column(error: BinlogError, index: usize) -> BinlogError {
    BinlogError::Column { number: index + 1, source: Box::new(error) }
}
