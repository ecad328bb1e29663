//! Picks columns of one table out of a block, without putting its events together. Only the streams of those columns are
//! unpacked, and those that say which rows and images there are. An image that occurred before, or a value that differs
//! from an older one, is found as in unpacking ([`crate::block::rows`]); but columns that aren't picked are never looked
//! at.
//!
//! [`prepare()`] takes the streams, `gather` goes through the events in order and finds the images, and `fill` takes the
//! values of each column. It is fast because each step loops over one kind of thing.
//!
//! - `prepare`: the streams of a block, and the rows events in it; `maps`: its table maps; `streams`: the streams of a
//!   table
//! - `around`: the transactions of a block, and the headers of its events
//! - `gather`: goes through the events; `fill`: takes the values; `images`: what the first tells the second
//! - `whole`: the same for a block that was unpacked as a whole; its rows are given in parts, if they are too many
//! - `values`: the values of a column, by image

mod around;
mod fill;
mod gather;
mod images;
mod maps;
mod prepare;
mod streams;
mod values;
mod whole;

use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{CellContent, ColumnSchema, TableSchema};

use crate::block::cells::is_set;
use crate::block::form::ValueWalk;
use crate::error::{Error, Result};

pub use around::{PickedTransaction, RowContext};
pub(crate) use around::{TransactionTracker, gtid_events};
pub(crate) use prepare::{PreparedBlock, prepare};
use values::{CellState, ColumnCells, ValueContent};
pub(crate) use whole::WholeBlock;

/// Chooses columns of a table, by their places; `None`: they can't be picked.
pub type Choose<'a> = dyn Fn(&TableSchema) -> Option<Vec<usize>> + Sync + 'a;

/// Says of a picked column, by its place, whether its values are taken.
pub type ChooseValues<'a> = dyn Fn(&TableSchema, usize) -> bool + Sync + 'a;

/// A request: which table and columns to pick, and how much about each row.
pub struct Pick<'a> {
    /// The table's database.
    pub database: &'a [u8],
    /// Name of the table.
    pub table: &'a [u8],
    /// The columns to pick. A document (JSON) that was changed in part comes as its differences
    /// ([`CellContent::JsonDiffs`]); then the one before the change is picked, too, if the row has it.
    pub columns: &'a Choose<'a>,
    /// Whether the values of a picked column are taken. Otherwise each is empty, and only whether it is there, or NULL, is told.
    pub with_values: &'a ChooseValues<'a>,
    /// Whether transaction and event header of each row are picked, too.
    pub with_around: bool,
    /// Whether values before the change are asked for of rows that are deleted. If not, these may have them or not.
    pub with_deleted: bool,
    /// Whether the rows of each event are a run of their own, so that their numbers in it are known.
    pub with_numbers: bool,
    /// Whether it is told where transactions begin in the log, with the transactions.
    pub with_positions: bool,
}

impl Pick<'_> {
    /// The request for blocks that other blocks refer to: only their values count.
    pub(crate) fn of_references(&self) -> Pick<'_> {
        Pick { with_around: false, with_numbers: false, with_positions: false, ..*self }
    }
}

impl std::fmt::Debug for Pick<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pick").finish_non_exhaustive()
    }
}

/// The rows picked out of a block, or out of a part of it.
#[derive(Debug, Default)]
pub struct PickedChanges {
    /// The table, once for each of its definitions.
    pub tables: Vec<PickedTable>,
    /// The rows, in the log's order.
    pub runs: Vec<RowRun>,
    /// The state where the block ends, which the next block begins with.
    pub(crate) end: BlockBound,
}

/// Rows of one table and kind that follow each other, with the same around them.
#[derive(Debug)]
pub struct RowRun {
    /// Which of the tables.
    pub table: usize,
    /// The rows' kind.
    pub kind: RowsKind,
    /// Which rows of the table.
    pub rows: Range<usize>,
    /// The number of the first of them in its event, from 0.
    pub first: u64,
    /// Transaction and event header of the rows, if they are picked.
    pub around: Option<RowContext>,
}

/// The state between two blocks, where a transaction may go on; empty where a log begins.
#[derive(Debug, Clone, Default)]
pub struct BlockBound {
    /// The table's maps in force.
    pub(crate) maps: Vec<Vec<u8>>,
    /// The transaction.
    pub(crate) transactions: TransactionTracker,
}

impl BlockBound {
    /// A block begins that has these table maps; none: it doesn't say.
    pub(crate) fn begin(&mut self, maps: Vec<Vec<u8>>) {
        if !maps.is_empty() {
            self.maps = maps;
        }
    }
}

/// Rows of a table.
#[derive(Debug)]
pub struct PickedTable {
    /// The table.
    pub schema: Arc<TableSchema>,
    /// The columns that were picked.
    pub columns: Vec<usize>,
    /// The table map without the table's id.
    name: Vec<u8>,
    cells: Vec<ColumnCells>,
    /// The images of each row before and after the change.
    rows: Vec<[RowImage; 2]>,
    /// The images that later blocks may refer to.
    images: Vec<u32>,
    /// Images so far: there may be no columns.
    image_count: usize,
}

/// A row's image, by its number in `cells`; there may be none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct RowImage(u32);

impl RowImage {
    const NONE: RowImage = RowImage(u32::MAX);

    #[inline]
    fn number(self) -> Option<u32> {
        (self != RowImage::NONE).then_some(self.0)
    }
}

/// Memory of a row besides its images.
const ROW_MEMORY: usize = size_of::<[RowImage; 2]>();

/// Memory that the values of a block may take for each of its plain bytes, and that the values of a small block may take
/// in addition. A row of many columns that are NULL, or of which few were logged, takes more: it has less than a bit for
/// each column.
const MEMORY_FACTOR: usize = 32;
const MEMORY_SMALL: usize = 1 << 20;

/// Memory that the values of a block of this many plain bytes may take all at once.
pub(crate) fn memory_max(size: usize) -> usize {
    size.saturating_mul(MEMORY_FACTOR).saturating_add(MEMORY_SMALL)
}

impl PickedTable {
    fn new(name: &[u8], schema: TableSchema, columns: Vec<usize>, with_values: &ChooseValues<'_>) -> Self {
        let cells = |&column: &usize| match with_values(&schema, column) {
            true => Some(ColumnCells::new(ValueWalk::of(schema.columns().get(column)?.kind))),
            false => Some(ColumnCells::bare()),
        };
        let cells = columns.iter().filter_map(cells).collect();
        PickedTable::of(name, Arc::new(schema), columns, cells)
    }

    /// This table without its rows.
    fn anew(&self) -> Self {
        let cells = self.cells.iter().map(ColumnCells::anew).collect();
        PickedTable::of(&self.name, Arc::clone(&self.schema), self.columns.clone(), cells)
    }

    fn of(name: &[u8], schema: Arc<TableSchema>, columns: Vec<usize>, cells: Vec<ColumnCells>) -> Self {
        PickedTable {
            schema,
            columns,
            name: name.to_vec(),
            cells,
            rows: Vec::new(),
            images: Vec::new(),
            image_count: 0,
        }
    }

    /// How many rows there are.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Whether a row has an image before, or after the change.
    pub fn has_image(&self, row: usize, is_after: bool) -> bool {
        self.image(row, is_after).is_some()
    }

    /// The values of one of the picked columns in these rows, before or after the change; `None`: it isn't there.
    pub fn values(
        &self,
        rows: Range<usize>,
        is_after: bool,
        picked: usize,
    ) -> impl Iterator<Item = Option<CellContent<'_>>> {
        let cells = self.cells.get(picked);
        self.rows.get(rows).unwrap_or_default().iter().map(move |&[before, after]| {
            let image = if is_after { after } else { before };
            match cells?.get(image.number()? as usize) {
                ValueContent::None(CellState::Null) => Some(CellContent::Null),
                ValueContent::None(_) => None,
                ValueContent::Value(bytes) => Some(CellContent::Value(bytes)),
                ValueContent::Differences(bytes) => Some(CellContent::JsonDiffs(bytes)),
            }
        })
    }

    /// Whether only that values of a picked column are there is known, and not what they are.
    pub fn is_bare(&self, picked: usize) -> bool {
        self.cells.get(picked).is_some_and(|cells| cells.is_bare)
    }

    /// The values of a picked column in these rows, one after the other; `None` unless they are of one size and each row
    /// has one. Those that stand apart are put together in `room`.
    pub fn fixed_values<'v>(
        &'v self,
        rows: Range<usize>,
        is_after: bool,
        picked: usize,
        room: &'v mut Vec<u8>,
    ) -> Option<&'v [u8]> {
        let cells = self.cells.get(picked).filter(|cells| !cells.is_bare)?;
        let stride = cells.stride()?;
        if let Some(images) = self.images_of(rows.clone(), is_after) {
            return cells
                .has_all(images.clone())
                .then(|| cells.bytes.get(images.start * stride..images.end * stride))?;
        }
        let rows = self.rows.get(rows)?;
        room.clear();
        room.reserve(rows.len() * stride);
        for &[before, after] in rows {
            let image = if is_after { after } else { before }.number()? as usize;
            room.extend_from_slice(cells.bytes.get(cells.value_range(image)?)?);
        }
        Some(room)
    }

    /// The texts of a picked column in these rows, one after the other: the bytes of all, and where each ends in them. `None` unless they are
    /// of any size, each row has one, and they stand so.
    pub fn texts(
        &self,
        rows: Range<usize>,
        is_after: bool,
        picked: usize,
    ) -> Option<(&[u8], impl Iterator<Item = usize>)> {
        let cells = self.cells.get(picked).filter(|cells| cells.stride().is_none())?;
        let images = self.images_of(rows, is_after).filter(|images| cells.has_all(images.clone()))?;
        let start = images.start.checked_sub(1).map_or(Some(0), |before| cells.ends.get(before).copied())?;
        let ends = cells.ends.get(images)?;
        let bytes = cells.bytes.get(start as usize..*ends.last()? as usize)?;
        Some((bytes, ends.iter().map(move |end| (end - start) as usize)))
    }

    /// The images of rows, by their numbers, if each row has one and they follow each other.
    fn images_of(&self, rows: Range<usize>, is_after: bool) -> Option<Range<usize>> {
        let rows = self.rows.get(rows)?;
        let image_of = |&[before, after]: &[RowImage; 2]| if is_after { after } else { before };
        let first = image_of(rows.first()?).number()?;
        let follow = rows.iter().zip(first..).all(|(row, image)| image_of(row) == RowImage(image));
        follow.then(|| first as usize..first as usize + rows.len())
    }

    /// Whether documents (JSON) are among the picked columns.
    fn has_documents(&self) -> bool {
        let columns = self.schema.columns();
        self.columns.iter().any(|&column| columns.get(column).is_some_and(ColumnSchema::is_json))
    }

    /// Whether the length of a row's values depends on the row.
    pub fn has_lengths(&self) -> bool {
        self.cells.iter().any(|cells| cells.stride().is_none())
    }

    /// Memory of an image, besides its texts: their bytes are in the block, too.
    fn memory_of_image(&self) -> usize {
        self.cells.iter().map(|cells| 1 + cells.stride().unwrap_or(size_of::<u32>())).sum()
    }

    /// Bytes of the values of rows, before and after the change, if the images after it follow each other, and there are no others.
    pub fn size_after(&self, rows: Range<usize>) -> Option<usize> {
        let images = self.images_of(rows.clone(), true)?;
        let has_no_other = self.rows.get(rows)?.iter().all(|&[before, _]| before == RowImage::NONE);
        has_no_other.then(|| self.cells.iter().map(|cells| cells.size(images.clone())).sum())
    }

    /// Bytes of a row's values, before and after the change.
    pub fn size(&self, row: usize) -> usize {
        let images = [false, true].into_iter().filter_map(|is_after| self.image(row, is_after));
        let of_image = |image: u32| -> usize {
            self.cells.iter().map(|cells| cells.range(image as usize).map_or(0, |range| range.len())).sum()
        };
        images.map(of_image).sum()
    }

    /// Takes a whole image, to which later blocks may refer.
    fn leave(&mut self, bytes: &[u8]) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        let nulls = 0..schema.columns().len().div_ceil(8);
        let mut at = nulls.end;
        let mut values = vec![ValueContent::None(CellState::Null); self.columns.len()];
        for (index, column) in schema.columns().iter().enumerate() {
            if is_set(bytes, &nulls, index) {
                continue;
            }
            let form = ValueWalk::of(column.kind);
            let end = form.end(bytes, at)?;
            let start = at + if let ValueWalk::Prefixed { prefix } = form { prefix } else { 0 };
            if let Some(place) = self.columns.iter().position(|&picked| picked == index)
                && let Some(value) = values.get_mut(place)
            {
                *value = ValueContent::Value(bytes.get(start..end).ok_or_else(no_row)?);
            }
            at = end;
        }
        self.new_image(true)?;
        self.cells.iter_mut().zip(values).try_for_each(|(cells, value)| cells.push(value))
    }

    #[inline]
    fn image(&self, row: usize, is_after: bool) -> Option<u32> {
        self.rows.get(row)?.get(usize::from(is_after))?.number()
    }

    /// The number of a new image, whose values follow.
    fn new_image(&mut self, leaves: bool) -> Result<u32> {
        self.new_images(1, leaves)
    }

    /// The number of the first of this many new images.
    fn new_images(&mut self, count: usize, leaves: bool) -> Result<u32> {
        let first = u32::try_from(self.image_count).map_err(|_| too_many())?;
        self.image_count += count;
        // The last number is that of no image.
        let end = u32::try_from(self.image_count).map_err(|_| too_many())?;
        if leaves {
            self.images.extend(first..end);
        }
        Ok(first)
    }
}

impl PickedChanges {
    /// Adds rows of an event, to the run before it unless they stay apart.
    fn add_run(&mut self, run: RowRun, is_apart: bool) {
        match self.runs.last_mut() {
            Some(last)
                if !is_apart
                    && (last.table, last.kind) == (run.table, run.kind)
                    && last.around == run.around =>
            {
                last.rows.end = run.rows.end;
            }
            _ => self.runs.push(run),
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let of = |table: &PickedTable| {
            let cells: usize = table.cells.iter().map(ColumnCells::memory).sum();
            cells + table.rows.len() * ROW_MEMORY + table.images.len() * 4 + table.name.len()
        };
        self.tables.iter().map(of).sum::<usize>() + self.runs.len() * size_of::<RowRun>()
    }
}

fn too_many() -> Error {
    Error::damaged("block", "more values than its bytes can hold", "as many as its size allows")
}

fn no_row() -> Error {
    Error::damaged("block", "a reference to a missing row", "a row of the block that it refers to")
}
