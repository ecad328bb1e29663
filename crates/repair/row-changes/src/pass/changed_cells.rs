//! Single columns of a row's images, before and after its change.

use binlogz_binlog::row::{CellContent, Row, RowImage};

use crate::table::WrittenTable;

/// The places of the columns of these names; `None`: not all of them are known.
pub(super) fn places_of<'n>(
    table: &WrittenTable,
    names: impl IntoIterator<Item = &'n str>,
) -> Option<Vec<usize>> {
    let place = |column: &str| {
        let is_it = |name: &Vec<u8>| String::from_utf8_lossy(name).eq_ignore_ascii_case(column);
        let mut columns = table.columns.iter();
        columns.find(|own| own.name.as_ref().is_some_and(is_it)).map(|column| column.index)
    };
    names.into_iter().map(place).collect()
}

/// Whether an UPDATE changed the column at a place, or may have.
pub(super) fn differs(row: &Row<'_, '_>, index: usize) -> bool {
    match (content(row.before, index), content(row.after, index)) {
        (Some(before), Some(after)) => before != after,
        // It was given a value, and the log doesn't have the old one.
        (None, Some(_)) => true,
        // An UPDATE logs every column that it changes.
        (_, None) => false,
    }
}

/// The value of a column in an image; `None`: there is no image, or it lacks the column.
pub(crate) fn content<'a>(image: Option<RowImage<'_, 'a>>, index: usize) -> Option<CellContent<'a>> {
    Some(image?.cell(index)?.content)
}
