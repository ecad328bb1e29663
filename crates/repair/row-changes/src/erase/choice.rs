//! Which rows are chosen: those that meet a condition, and those that refer to chosen ones.
//!
//! What rows of children refer to is gathered from the chosen rows as they pass. A child's row may stand before its parent's, so a pass in which
//! there was more is followed by another ([`ReferredRows::has_grown`]).

use std::collections::HashSet;

use binlogz_binlog::row::{CellContent, ColumnKind, Row, RowImage};

use super::aim::ErasureAim;
use super::key_numbers::images;
use super::plan::TableErasure;
use crate::choose::{ConditionError, letter_class};
use crate::digest::Digests;
use crate::pass::Error;

/// The collation of bytes.
const BINARY: u64 = 63;

/// What is known of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowVerdict {
    Chosen,
    Left,
    /// Its images lack columns, or only a collation tells whether it refers to a chosen row.
    Undecided,
}

/// What rows refer to if they refer to chosen ones.
#[derive(Debug, Default)]
pub(super) struct ReferredRows {
    digests: Digests,
    seen: HashSet<u128>,
    has_grown: bool,
}

/// What a digest stands for.
#[derive(Hash)]
enum ReferredKind {
    /// Values to which a foreign key may refer, with its number.
    Values(usize),
    /// Such values in letters that any collation takes for equal.
    Letters(usize),
    /// The key of a row that was chosen, with the number of its table.
    Row(usize),
}

impl ReferredRows {
    /// Whether there were more since the last call.
    pub(super) fn has_grown(&mut self) -> bool {
        std::mem::take(&mut self.has_grown)
    }

    fn put(&mut self, kind: ReferredKind, values: &[Vec<u8>]) {
        self.has_grown |= self.seen.insert(self.digests.of((kind, values)));
    }

    fn has(&self, kind: ReferredKind, values: &[Vec<u8>]) -> bool {
        self.seen.contains(&self.digests.of((kind, values)))
    }
}

/// The values of columns in an image.
enum ImageValues {
    /// With the same in letters that any collation takes for equal, if some are texts.
    Known(Vec<Vec<u8>>, Option<Vec<Vec<u8>>>),
    /// One is NULL, which refers to nothing.
    Null,
    /// The image lacks one.
    Lacking,
}

/// Chooses a row; what others may refer to in it is kept.
pub(super) fn choose(
    aim: &ErasureAim,
    referred: &mut ReferredRows,
    plan: &TableErasure,
    row: &Row<'_, '_>,
) -> Result<RowVerdict, Error> {
    let by_condition = meets_condition(aim, plan, row)?;
    let verdict = match by_condition {
        RowVerdict::Chosen => RowVerdict::Chosen,
        RowVerdict::Left | RowVerdict::Undecided => match refers(referred, plan, row) {
            RowVerdict::Left => by_condition,
            verdict @ (RowVerdict::Chosen | RowVerdict::Undecided) => verdict,
        },
    };
    if verdict == RowVerdict::Chosen {
        keep_referred(referred, plan, row);
    }
    Ok(verdict)
}

fn meets_condition(aim: &ErasureAim, plan: &TableErasure, row: &Row<'_, '_>) -> Result<RowVerdict, Error> {
    let mut verdict = RowVerdict::Left;
    if !plan.keys.as_ref().is_none_or(|keys| keys.may_have(row)) {
        return Ok(verdict);
    }
    let conditions = aim.tables.get(plan.number).map(|table| &*table.conditions).unwrap_or_default();
    for condition in conditions {
        match condition.is_met(&plan.table, row) {
            Ok(true) => return Ok(RowVerdict::Chosen),
            Ok(false) => {}
            Err(ConditionError::NotLogged { .. }) => verdict = RowVerdict::Undecided,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(verdict)
}

/// Whether a row refers to a chosen one, by one of its images.
fn refers(referred: &ReferredRows, plan: &TableErasure, row: &Row<'_, '_>) -> RowVerdict {
    let mut verdict = RowVerdict::Left;
    for (reference, columns) in &plan.references {
        for image in images(row) {
            match values(image, columns) {
                ImageValues::Known(values, letters) => {
                    if referred.has(ReferredKind::Values(*reference), &values) {
                        return RowVerdict::Chosen;
                    }
                    if letters
                        .is_some_and(|letters| referred.has(ReferredKind::Letters(*reference), &letters))
                    {
                        verdict = RowVerdict::Undecided;
                    }
                }
                ImageValues::Null => {}
                // An earlier image of the row may have told.
                ImageValues::Lacking => match own_key(plan, row) {
                    Some(key) if referred.has(ReferredKind::Row(plan.number), &key) => {
                        return RowVerdict::Chosen;
                    }
                    Some(_) => {}
                    None => verdict = RowVerdict::Undecided,
                },
            }
        }
    }
    verdict
}

fn keep_referred(referred: &mut ReferredRows, plan: &TableErasure, row: &Row<'_, '_>) {
    for (reference, columns) in &plan.referred {
        for image in images(row) {
            if let ImageValues::Known(values, letters) = values(image, columns) {
                referred.put(ReferredKind::Values(*reference), &values);
                letters
                    .into_iter()
                    .for_each(|letters| referred.put(ReferredKind::Letters(*reference), &letters));
            }
        }
    }
    if !plan.references.is_empty()
        && let Some(key) = own_key(plan, row)
    {
        referred.put(ReferredKind::Row(plan.number), &key);
    }
}

/// The row's key, of the image before its change, else of the one after it.
fn own_key(plan: &TableErasure, row: &Row<'_, '_>) -> Option<Vec<Vec<u8>>> {
    let key = plan.table.key.as_deref()?;
    images(row).find_map(|image| match values(image, key) {
        ImageValues::Known(values, _) => Some(values),
        ImageValues::Null | ImageValues::Lacking => None,
    })
}

fn values(image: RowImage<'_, '_>, columns: &[usize]) -> ImageValues {
    let mut known = Vec::new();
    let mut letters = Vec::new();
    let mut has_text = false;
    for index in columns {
        let Some(cell) = image.cell(*index) else { return ImageValues::Lacking };
        let bytes = match cell.content {
            CellContent::Value(bytes) => bytes,
            CellContent::Null => return ImageValues::Null,
            CellContent::JsonDiffs(_) => return ImageValues::Lacking,
        };
        let is_text = matches!(
            cell.column.kind,
            ColumnKind::Char { .. } | ColumnKind::Varchar { .. } | ColumnKind::Blob { .. }
        ) && cell.column.collation != Some(BINARY);
        has_text |= is_text;
        letters.push(match is_text {
            true => {
                String::from_utf8_lossy(bytes).trim_end().chars().map(letter_class).collect::<String>().into()
            }
            false => bytes.to_vec(),
        });
        known.push(bytes.to_vec());
    }
    ImageValues::Known(known, has_text.then_some(letters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_told_once() {
        let mut referred = ReferredRows::default();
        referred.put(ReferredKind::Values(1), &[b"x".to_vec()]);
        assert!(referred.has_grown() && !referred.has_grown());
        referred.put(ReferredKind::Values(1), &[b"x".to_vec()]);
        assert!(!referred.has_grown());
        assert!(
            !referred.has(ReferredKind::Values(2), &[b"x".to_vec()])
                && !referred.has(ReferredKind::Row(1), &[b"x".to_vec()])
        );
    }
}
