//! The rows of an event without the values that are to go.
//!
//! If a row was chosen, all rows are written anew, first as they are: if that gives the event's own bytes, so do the rows that weren't chosen. Servers set the bits of
//! NULLs that stand for no column, and write options of values only where a document changed in part, so we do as well.

use binlogz_binlog::Result;
use binlogz_binlog::event::{RowsEvent, RowsKind};
use binlogz_binlog::row::{CellContent, Row, RowDecoder, RowImage, TableSchema};

use super::aim::ErasureAim;
use super::choice::{ReferredRows, RowVerdict, choose};
use super::plan::{CellErasure, TableErasure};
use crate::pass::Error;

/// The rows that are left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RemainingRows {
    /// The rows; `None`: the event stays as it is.
    pub(super) rows: Option<Vec<u8>>,
    /// How many are left in it.
    pub(super) left: u64,
    /// How many were chosen.
    pub(super) chosen: u64,
    /// How many of them lost values, or are gone.
    pub(super) erased: u64,
    /// How many can't be decided.
    pub(super) undecided: u64,
    /// Whether the rows that weren't chosen come out as they were, byte for byte.
    pub(super) is_exact: bool,
}

/// Erases from the rows of an event.
pub(super) fn remaining(
    (aim, referred): (&ErasureAim, &mut ReferredRows),
    plan: &TableErasure,
    event: &RowsEvent<'_>,
    decoder: &mut RowDecoder,
) -> std::result::Result<RemainingRows, Error> {
    let mut remaining = RemainingRows::default();
    let mut is_chosen = Vec::new();
    let mut rows = decoder.rows(&plan.table.schema, event)?;
    while let Some(row) = rows.next_row()? {
        let verdict = choose(aim, referred, plan, &row)?;
        remaining.undecided += u64::from(verdict == RowVerdict::Undecided);
        remaining.chosen += u64::from(verdict == RowVerdict::Chosen);
        is_chosen.push(verdict == RowVerdict::Chosen);
    }
    if remaining.chosen > 0 {
        without_values((aim.rows, plan), (event, &is_chosen), decoder, &mut remaining)?;
    }
    Ok(remaining)
}

/// Writes the rows without the values of chosen ones.
fn without_values(
    (takes_rows, plan): (bool, &TableErasure),
    (event, is_chosen): (&RowsEvent<'_>, &[bool]),
    decoder: &mut RowDecoder,
    remaining: &mut RemainingRows,
) -> std::result::Result<(), Error> {
    let schema = &plan.table.schema;
    let mut as_it_was = Vec::new();
    let mut written = Vec::new();
    let mut rows = decoder.rows(schema, event)?;
    let mut is_chosen = is_chosen.iter();
    while let Some((row, is_chosen)) = rows.next_row()?.zip(is_chosen.next()) {
        let begin = as_it_was.len();
        put_row(schema, event.kind(), &row, None, &mut as_it_was)?;
        if *is_chosen && takes_rows {
            remaining.erased += 1;
            continue;
        }
        remaining.left += 1;
        let own = as_it_was.get(begin..).unwrap_or_default();
        let place = written.len();
        match *is_chosen {
            true => put_row(schema, event.kind(), &row, Some(&plan.cells), &mut written)?,
            false => written.extend_from_slice(own),
        }
        // An earlier run may have done it, or the images lack the columns.
        remaining.erased += u64::from(written.get(place..) != Some(own));
    }
    if remaining.erased > 0 {
        remaining.is_exact = as_it_was == event.rows;
        remaining.rows = Some(written);
    }
    Ok(())
}

/// Appends the images of a row, as they are or with these columns erased.
fn put_row(
    schema: &TableSchema,
    kind: RowsKind,
    row: &Row<'_, '_>,
    erasures: Option<&[Option<CellErasure>]>,
    out: &mut Vec<u8>,
) -> Result<()> {
    if let Some(before) = row.before {
        put_image(schema, before, (erasures, false), out)?;
    }
    if let Some(after) = row.after {
        put_image(schema, after, (erasures, kind == RowsKind::PartialUpdate), out)?;
    }
    Ok(())
}

fn put_image(
    schema: &TableSchema,
    image: RowImage<'_, '_>,
    (erasures, may_have_options): (Option<&[Option<CellErasure>]>, bool),
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut cells = vec![None; schema.columns().len()];
    for cell in image.cells() {
        let erasure = erasures.and_then(|erasures| erasures.get(cell.index)?.as_ref());
        if let Some(place) = cells.get_mut(cell.index) {
            *place = Some(match (erasure, cell.content) {
                (None, content) => content,
                // What was NULL tells nothing.
                (Some(_), CellContent::Null) | (Some(CellErasure::Null), _) => CellContent::Null,
                (Some(CellErasure::Blank(value)), _) => CellContent::Value(value),
            });
        }
    }
    let has_options = cells.iter().flatten().any(|content| matches!(content, CellContent::JsonDiffs(_)));
    let begin = out.len();
    if may_have_options && !has_options {
        // No option is set.
        out.push(0);
    }
    let columns = schema.put_image(&cells, has_options, out)?;
    let count: usize = columns.iter().map(|byte| byte.count_ones() as usize).sum();
    set_spare_bits(out, begin, spare_place(schema, count, (may_have_options, has_options)), count);
    Ok(())
}

/// How far from an image's begin the last byte of its bits of NULLs is; `None`: it has none.
fn spare_place(
    schema: &TableSchema,
    count: usize,
    (may_have_options, has_options): (bool, bool),
) -> Option<usize> {
    let json = schema.columns().iter().filter(|column| column.is_json()).count();
    let options = match (may_have_options, has_options) {
        (_, true) => 1 + json.div_ceil(8),
        (true, false) => 1,
        (false, false) => 0,
    };
    (options + count.div_ceil(8)).checked_sub(1).filter(|_| count > 0)
}

/// Sets the bits that stand for no column, as servers do.
fn set_spare_bits(out: &mut [u8], begin: usize, place: Option<usize>, count: usize) {
    let used = count % 8;
    let last = place.and_then(|place| out.get_mut(begin + place)).filter(|_| used > 0);
    if let Some(last) = last {
        *last |= 0xff << used;
    }
}
