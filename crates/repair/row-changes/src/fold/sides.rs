//! The two sides of a row's change as bytes: the key, the whole image, and a digest of what unique keys have.

use binlogz_binlog::Result;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::row::{CellContent, ColumnKind, Row, RowImage};

use super::tables::TableToFold;
use crate::digest::Digests;
use crate::record::{FoldSide, FoldSides, put_sized};

/// The digest where only columns of the key are in unique keys.
const OF_KEY_ALONE: u128 = 1;
/// Stands for the size of a key's column that is NULL.
const NULL_SIZE: u32 = u32::MAX;

/// The bytes of both sides of a change.
#[derive(Debug, Default)]
pub(super) struct SideBytes {
    before: OneSide,
    after: OneSide,
}

#[derive(Debug, Default)]
struct OneSide {
    is_there: bool,
    digest: u128,
    key: Vec<u8>,
    image: Vec<u8>,
}

impl SideBytes {
    /// Takes the sides of a row, whose images have all columns.
    ///
    /// # Errors
    ///
    /// A value that its column can't have.
    pub(super) fn take(&mut self, row: &Row<'_, '_>, table: &TableToFold, digests: &Digests) -> Result<()> {
        self.before.take(row.before, table, digests)?;
        self.after.take(row.after, table, digests)
    }

    pub(super) fn sides(&self) -> FoldSides<'_> {
        [&self.before, &self.after].map(|side| {
            let OneSide { is_there, digest, key, image } = side;
            is_there.then_some(FoldSide { digest: *digest, key, image })
        })
    }
}

impl OneSide {
    fn take(
        &mut self,
        image: Option<RowImage<'_, '_>>,
        table: &TableToFold,
        digests: &Digests,
    ) -> Result<()> {
        self.is_there = image.is_some();
        self.digest = 0;
        self.key.clear();
        self.image.clear();
        let Some(image) = image else { return Ok(()) };
        let schema = &table.written.schema;
        let cells: Vec<_> =
            (0..schema.columns().len()).map(|index| image.cell(index).map(|cell| cell.content)).collect();
        schema.put_image(&cells, false, &mut self.image)?;
        for index in table.key.iter().flatten() {
            match cells.get(*index).copied().flatten() {
                Some(CellContent::Null) => self.key.put_u32(NULL_SIZE),
                Some(CellContent::Value(bytes) | CellContent::JsonDiffs(bytes)) => {
                    let kind = schema.columns().get(*index).map(|column| column.kind);
                    put_key_value(&mut self.key, bytes, kind);
                }
                None => {}
            }
        }
        let key = table.key.as_deref().unwrap_or_default();
        if !table.in_unique_keys.is_empty() && table.in_unique_keys.iter().all(|index| key.contains(index)) {
            // Rows of one key have the same values of them.
            self.digest = OF_KEY_ALONE;
        } else if !table.in_unique_keys.is_empty() {
            let unique =
                table.in_unique_keys.iter().map(|index| match cells.get(*index).copied().flatten() {
                    Some(CellContent::Value(bytes) | CellContent::JsonDiffs(bytes)) => Some(bytes),
                    Some(CellContent::Null) | None => None,
                });
            self.digest = digests.of(unique.collect::<Vec<_>>());
        }
        Ok(())
    }
}

/// Appends a value of a key. Whole numbers get the order of their bytes: rows are inserted in the order of their keys, which is cheaper, and
/// the only one that a server takes of a column FTS_DOC_ID.
fn put_key_value(key: &mut Vec<u8>, bytes: &[u8], kind: Option<ColumnKind>) {
    put_sized(key, bytes);
    let Some(
        ColumnKind::TinyInt { unsigned }
        | ColumnKind::SmallInt { unsigned }
        | ColumnKind::MediumInt { unsigned }
        | ColumnKind::Int { unsigned }
        | ColumnKind::BigInt { unsigned },
    ) = kind
    else {
        return;
    };
    let start = key.len().saturating_sub(bytes.len());
    let Some(number) = key.get_mut(start..) else { return };
    number.reverse();
    if let (Some(first), false) = (number.first_mut(), unsigned) {
        *first ^= 0x80;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_order_of_their_bytes() {
        let key = |number: i32, unsigned| {
            let mut key = Vec::new();
            put_key_value(&mut key, &number.to_le_bytes(), Some(ColumnKind::Int { unsigned }));
            key
        };
        let signed = [i32::MIN, -256, -1, 0, 1, 255, 256, i32::MAX].map(|number| key(number, false));
        assert!(signed.is_sorted());
        let unsigned = [0, 1, 255, 256, i32::MAX, i32::MIN, -1].map(|number| key(number, true));
        assert!(unsigned.is_sorted());
    }
}
