//! Picks columns of one table out of a block, without putting its events together: only the streams of those columns are
//! unpacked, and those that say which rows and images there are. As the layout does ([`crate::block::rows`]), an image is found
//! where it was before, and a value from the older one that it differs from; but columns that aren't picked are never
//! looked at.
//!
//! In two steps, as unpacking: [`prepare()`] takes the streams, for several blocks at once, and `gather` goes through
//! the events in order.
//!
//! - `prepare`: the streams of a block, and the rows events in it; `maps`: its table maps; `streams`: what is taken of a table
//! - `gather`: goes through the events; `whole`: the same for a block that was unpacked as a whole
//! - `values`: the values of a column, by image

mod gather;
mod maps;
mod prepare;
mod streams;
mod values;
mod whole;

use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::event::RowsKind;
use binlogz_binlog::row::{CellContent, TableSchema};

use crate::block::cells::is_set;
use crate::block::form::Form;
use crate::error::{Error, Result};

pub(crate) use prepare::{Prepared, prepare};
use values::{Cells, Content, State};

/// Chooses columns of a table, by their places; `None`: they can't be picked.
pub type Choose<'a> = dyn Fn(&TableSchema) -> Option<Vec<usize>> + Sync + 'a;

/// What is picked.
pub struct Pick<'a> {
    /// The table's database.
    pub database: &'a [u8],
    /// Its name.
    pub table: &'a [u8],
    /// Its columns. No documents: of those that were changed in part the rest would be missing.
    pub columns: &'a Choose<'a>,
}

impl std::fmt::Debug for Pick<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pick").finish_non_exhaustive()
    }
}

/// What was picked out of a block.
#[derive(Debug, Default)]
pub struct Picked {
    /// The table, once for each of its definitions.
    pub tables: Vec<PickedTable>,
    /// Rows that follow each other: the table's number, their kind, and which of its rows they are.
    pub runs: Vec<(usize, RowsKind, Range<usize>)>,
    /// The table's maps in force where the block ends.
    pub(crate) maps: Vec<Vec<u8>>,
}

/// Rows of a table.
#[derive(Debug)]
pub struct PickedTable {
    /// The table.
    pub schema: Arc<TableSchema>,
    /// The columns that were picked.
    pub columns: Vec<usize>,
    /// Its table map without the table's id.
    name: Vec<u8>,
    cells: Vec<Cells>,
    /// The images of each row before and after the change, by their numbers in `cells`.
    rows: Vec<[Option<u32>; 2]>,
    /// The images that later blocks may refer to.
    images: Vec<u32>,
    /// Images so far: there may be no columns.
    image_count: usize,
}

impl PickedTable {
    fn new(name: &[u8], schema: TableSchema, columns: Vec<usize>) -> Self {
        let form = |&column: &usize| schema.columns().get(column).map(|column| Form::of(column.kind));
        let cells = columns.iter().filter_map(form).map(Cells::new).collect();
        PickedTable {
            schema: Arc::new(schema),
            columns,
            name: name.to_vec(),
            cells,
            rows: Vec::new(),
            images: Vec::new(),
            image_count: 0,
        }
    }

    /// Whether a row has an image before, or after the change.
    pub fn has_image(&self, row: usize, is_after: bool) -> bool {
        self.image(row, is_after).is_some()
    }

    /// The value of one of the picked columns, before or after the change; `None`: it isn't there.
    #[inline]
    pub fn cell(&self, row: usize, is_after: bool, picked: usize) -> Option<CellContent<'_>> {
        match self.cells.get(picked)?.get(self.image(row, is_after)? as usize) {
            Content::None(State::Null) => Some(CellContent::Null),
            Content::None(_) => None,
            Content::Value(bytes) => Some(CellContent::Value(bytes)),
        }
    }

    /// Takes a whole image, to which later blocks may refer.
    fn leave(&mut self, bytes: &[u8]) -> Result<()> {
        let schema = Arc::clone(&self.schema);
        let nulls = 0..schema.columns().len().div_ceil(8);
        let mut at = nulls.end;
        let mut values = vec![Content::None(State::Null); self.columns.len()];
        for (index, column) in schema.columns().iter().enumerate() {
            if is_set(bytes, &nulls, index) {
                continue;
            }
            let form = Form::of(column.kind);
            let end = form.end(bytes, at)?;
            let start = at + if let Form::Prefixed { prefix } = form { prefix } else { 0 };
            if let Some(place) = self.columns.iter().position(|&picked| picked == index)
                && let Some(value) = values.get_mut(place)
            {
                *value = Content::Value(bytes.get(start..end).ok_or_else(no_row)?);
            }
            at = end;
        }
        self.new_image(true)?;
        self.cells.iter_mut().zip(values).try_for_each(|(cells, value)| cells.push(value))
    }

    #[inline]
    fn image(&self, row: usize, is_after: bool) -> Option<u32> {
        *self.rows.get(row)?.get(usize::from(is_after))?
    }

    /// The number of a new image, whose values follow.
    fn new_image(&mut self, leaves: bool) -> Result<u32> {
        let number = u32::try_from(self.image_count).map_err(|_| too_many())?;
        self.image_count += 1;
        if leaves {
            self.images.push(number);
        }
        Ok(number)
    }
}

impl Picked {
    fn add_run(&mut self, table: usize, kind: RowsKind, rows: Range<usize>) {
        match self.runs.last_mut() {
            Some((last, last_kind, run)) if *last == table && *last_kind == kind => run.end = rows.end,
            _ => self.runs.push((table, kind, rows)),
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let of = |table: &PickedTable| {
            let cells: usize = table.cells.iter().map(Cells::memory).sum();
            cells + table.rows.len() * 16 + table.images.len() * 4 + table.name.len()
        };
        self.tables.iter().map(of).sum::<usize>() + self.runs.len() * 40
    }
}

fn too_many() -> Error {
    Error::damaged("block", "more values than its bytes can hold", "as many as its size allows")
}

fn no_row() -> Error {
    Error::damaged("block", "a reference to a missing row", "a row of the block that it refers to")
}
