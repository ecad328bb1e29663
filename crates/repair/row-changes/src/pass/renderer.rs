//! The maker of text from rows: what a worker asks of it, and what it gets.

use std::collections::BTreeSet;
use std::io;

use binlogz_binlog::row::{Cell, CellContent, Row, RowImage, TableSchema};

use crate::choose::Operation;
use crate::digest::Digests;
use crate::record::RowFlags;
use crate::table::WrittenTable;

/// A row's change, and the table that it is in.
#[derive(Clone, Copy)]
pub(crate) struct TableRow<'r> {
    pub(crate) table: &'r WrittenTable,
    pub(crate) operation: Operation,
    pub(crate) row: &'r Row<'r, 'r>,
}

/// The maker of text from rows.
pub(crate) trait Renderer {
    /// Appends it.
    fn render(&self, row: TableRow<'_>, out: &mut Vec<u8>) -> RowRendering;

    /// Appends it as [`Renderer::render`] does. Of a long text, parts may be passed on before, which empties `out`; then the text
    /// stands.
    fn render_in_parts(
        &self,
        row: TableRow<'_>,
        out: &mut Vec<u8>,
        _pass_on: &mut PassOnText<'_>,
    ) -> io::Result<RowRendering> {
        Ok(self.render(row, out))
    }

    /// Appends a row with columns that its images in the log lack.
    fn render_rebuilt(
        &self,
        row: TableRow<'_>,
        columns: &RebuiltColumns<'_>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        match self.render(row, out) {
            RowRendering::Lacking(flags) => {
                out.extend_from_slice(b"; ");
                out.extend_from_slice(columns.why.as_bytes());
                RowRendering::Text(flags | RowFlags::MISSING)
            }
            other => other,
        }
    }

    /// Appends an update of which it isn't known whether it left alone what its image lacks, with `columns` where its earlier images were
    /// looked for.
    fn render_unsure(
        &self,
        row: TableRow<'_>,
        columns: Option<&RebuiltColumns<'_>>,
        out: &mut Vec<u8>,
    ) -> RowRendering {
        match columns {
            Some(columns) => self.render_rebuilt(row, columns, out),
            None => match self.render(row, out) {
                RowRendering::Text(flags) | RowRendering::Lacking(flags) => RowRendering::Lacking(flags),
                RowRendering::Nothing => RowRendering::Nothing,
            },
        }
    }

    /// Whether a condition that a row's own images can't decide is left to the listener, which may know more of the row.
    fn defers_conditions(&self) -> bool {
        false
    }

    /// Makes digests of all rows' keys, where it needs them: also of rows and transactions that aren't chosen.
    fn digests(&self) -> Option<&Digests> {
        None
    }

    /// The digests of a row, where digests are made.
    fn digests_of_row(&self, digests: &Digests, table: &WrittenTable, row: &Row<'_, '_>) -> Vec<u128> {
        digests_of(digests, table, row)
    }

    /// The digest of a row's values in all keys, where it matters whether a REPLACE deleted and inserted it; 0: it isn't known.
    fn digest_of_keys(&self, _table: &WrittenTable, _row: &Row<'_, '_>) -> u128 {
        0
    }

    /// Whether rows are told of that a REPLACE may have deleted.
    fn follows_replaced(&self) -> bool {
        false
    }

    /// Whether it matters what chosen rows refer to, and which of that was changed later.
    fn follows_references(&self) -> bool {
        false
    }

    /// The tables of which the images of all rows are passed on, chosen or not; the selection has them too.
    fn followed(&self) -> Option<&FollowedTables> {
        None
    }

    /// Whether rows of tables that aren't chosen are to be counted, in statements on tables that are.
    fn counts_others(&self) -> bool {
        false
    }

    /// Whether the renderer is to be told of table maps.
    fn needs_table_maps(&self) -> bool {
        false
    }
}

/// A renderer for passes that need no rows.
pub(crate) struct NoRows;

impl Renderer for NoRows {
    fn render(&self, _: TableRow<'_>, _: &mut Vec<u8>) -> RowRendering {
        RowRendering::Nothing
    }
}

/// Takes what there is of a text.
pub(crate) type PassOnText<'p> = dyn FnMut(&mut Vec<u8>) -> io::Result<()> + 'p;

/// Tables of which all rows are followed, by database and name.
pub(crate) type FollowedTables = BTreeSet<(String, String)>;

/// The origin of a row's columns where its images in the log lack some.
pub(crate) struct RebuiltColumns<'r> {
    /// Whether each column of the image before the change was logged as a whole.
    pub(crate) logged_before: &'r [bool],
    /// Whether each column of the image after it was.
    pub(crate) logged_after: &'r [bool],
    /// The reason, in words, for which columns that are still missing aren't known.
    pub(crate) why: &'r str,
}

/// How a row was rendered.
pub(crate) enum RowRendering {
    /// The text stands.
    Text(u8),
    /// The text stands, of a row whose images lack columns that it would need.
    Lacking(u8),
    /// The row needs no statement.
    Nothing,
}

/// Whether an image of a row lacks columns, or has only the differences of a document.
pub(crate) fn lacks_columns(table: &WrittenTable, row: &Row<'_, '_>) -> bool {
    [row.before, row.after].into_iter().flatten().any(|image| {
        let is_whole = |cell: Option<Cell<'_>>| {
            cell.is_some_and(|cell| !matches!(cell.content, CellContent::JsonDiffs(_)))
        };
        !table.columns.iter().all(|column| is_whole(image.cell(column.index)))
    })
}

/// Digests of a row's key before and after its change; of all columns where its table has none. What the image after a change
/// lacks, the change left alone; nothing is told of a row whose images lack more.
pub(crate) fn digests_of(digests: &Digests, table: &WrittenTable, row: &Row<'_, '_>) -> Vec<u128> {
    let all: Vec<usize> = (0..table.columns.len()).collect();
    let key = table.key.as_ref().unwrap_or(&all);
    let digest = |images: [Option<RowImage<'_, '_>>; 2]| {
        images.first().is_some_and(Option::is_some).then_some(())?;
        let cell = |index: &usize| images.iter().flatten().find_map(|image| image.cell(*index));
        let cells: Option<Vec<_>> = key
            .iter()
            .map(|index| match cell(index)?.content {
                CellContent::Null => Some(None),
                CellContent::Value(bytes) => Some(Some(bytes)),
                CellContent::JsonDiffs(_) => None,
            })
            .collect();
        Some(row_digest(digests, &table.schema, &cells?))
    };
    let mut both: Vec<u128> =
        [digest([row.before, None]), digest([row.after, row.before])].into_iter().flatten().collect();
    both.dedup();
    both
}

/// The digest of a row by these columns; `None` is NULL.
pub(crate) fn row_digest(digests: &Digests, table: &TableSchema, columns: &[Option<&[u8]>]) -> u128 {
    digests.of((&table.database, &table.table, columns))
}
