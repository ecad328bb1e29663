//! The images that turn a row from one into the other, as a row event has them.
//!
//! ```text
//! undo of     row event   images
//! INSERT      delete      after
//! UPDATE      update      after, before
//! DELETE      write       before
//! ```

use binlogz_binlog::EventType;
use binlogz_binlog::row::{CellContent, Row, RowImage};

use crate::choose::Direction;
use crate::record::LoggedImages;
use crate::table::{TableColumn, WrittenTable, lacks};

type Cells<'a> = Vec<Option<CellContent<'a>>>;

/// Appends the images; `false`: the row stays as it is.
///
/// # Errors
///
/// Why they can't be written.
pub(crate) fn push_images(
    out: &mut Vec<u8>,
    table: &WrittenTable,
    row: &Row<'_, '_>,
    direction: Direction,
) -> Result<bool, String> {
    if let Some(unfit) = &table.unfit {
        return Err(unfit.clone());
    }
    let [before, after] = [row.before, row.after].map(|image| image.map(|image| cells(table, image)));
    let (event_type, images) = match (direction, before, after) {
        (_, None, None) => return Ok(false),
        (Direction::Undo, Some(before), None) => {
            require(table, |index| has(&before, index))?;
            (EventType::WRITE_ROWS, vec![before])
        }
        // What it left out gets the same defaults again.
        (Direction::Redo, None, Some(after)) => (EventType::WRITE_ROWS, vec![after]),
        (Direction::Undo, None, Some(found)) | (Direction::Redo, Some(found), None) => {
            require_found(table, &found)?;
            (EventType::DELETE_ROWS, vec![found])
        }
        (Direction::Undo, Some(before), Some(after)) => {
            if before == after {
                return Ok(false);
            }
            require(table, |index| !has(&after, index) || has(&before, index))?;
            let found: Cells<'_> =
                after.iter().zip(&before).map(|(after, before)| found(after, before)).collect();
            require_found(table, &found)?;
            (EventType::UPDATE_ROWS, vec![found, before])
        }
        (Direction::Redo, Some(before), Some(after)) => {
            require_found(table, &before)?;
            let is_partial = after.iter().any(|cell| matches!(cell, Some(CellContent::JsonDiffs(_))));
            let event_type = if is_partial { EventType::PARTIAL_UPDATE_ROWS } else { EventType::UPDATE_ROWS };
            (event_type, vec![before, after])
        }
    };
    let mut bitmaps = Vec::new();
    let mut bytes = Vec::new();
    let mut before_size = 0;
    for (number, cells) in images.iter().enumerate() {
        let has_options = event_type == EventType::PARTIAL_UPDATE_ROWS && number == 1;
        let bitmap = table.schema.put_image(cells, has_options, &mut bytes);
        bitmaps.extend(bitmap.map_err(|error| error.to_string())?);
        if number == 0 && images.len() == 2 && table.key.is_none() {
            before_size = bytes.len();
        }
    }
    LoggedImages { event_type, bitmaps: &bitmaps, images: &bytes, before_size }.push(out)?;
    Ok(true)
}

fn cells<'a>(table: &WrittenTable, image: RowImage<'_, 'a>) -> Cells<'a> {
    table.columns.iter().map(|column| image.cell(column.index).map(|cell| cell.content)).collect()
}

fn has(cells: &Cells<'_>, index: usize) -> bool {
    cells.get(index).is_some_and(Option::is_some)
}

/// A column by which a changed row is found; if the change left the column alone, its value is in the image before. We
/// don't put together documents that were logged as differences: the server compares the columns that are there.
fn found<'a>(after: &Option<CellContent<'a>>, before: &Option<CellContent<'a>>) -> Option<CellContent<'a>> {
    match after {
        None => *before,
        Some(CellContent::JsonDiffs(_)) => None,
        Some(_) => *after,
    }
}

/// A row is found by all of its columns, or by its key.
fn require_found(table: &WrittenTable, cells: &Cells<'_>) -> Result<(), String> {
    match &table.key {
        Some(key) => require(table, |index| has(cells, index) || !key.contains(&index)),
        None => require(table, |index| has(cells, index)).map_err(|lacks| {
            format!("{lacks}, and the log tells no key by which to find the row (--schema tells it)")
        }),
    }
}

fn require(table: &WrittenTable, is_there: impl Fn(usize) -> bool) -> Result<(), String> {
    let absent: Vec<_> =
        table.columns.iter().filter(|column| !is_there(column.index)).map(TableColumn::shown).collect();
    if absent.is_empty() { Ok(()) } else { Err(lacks(&absent)) }
}
