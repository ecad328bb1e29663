//! The largest numbers that columns were given, also in rows that are gone: an AUTO_INCREMENT counter stands after them.
//!
//! Which column has a counter only the table itself tells, so all columns of whole numbers are looked at. Whether they have signs isn't in all logs:
//! each number is taken in both ways.

use std::collections::BTreeMap;

use binlogz_binlog::row::{CellContent, ColumnClass, RowImage, TableSchema};

/// The largest number that a column was given by the logs, since the last statement that may have changed its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargestNumber {
    /// The table's database.
    pub database: String,
    /// The table.
    pub table: String,
    /// The column's place in the table, from 0.
    pub column: u32,
    /// If the column has signs.
    pub signed: i64,
    /// If it has none.
    pub unsigned: u64,
}

/// Both ways to read a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NumberEitherWay {
    pub(super) signed: i64,
    pub(super) unsigned: u64,
}

impl NumberEitherWay {
    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        let mut wide = [0; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        let unused = 64 - 8 * bytes.len() as u32;
        Some(NumberEitherWay { signed: ((unsigned << unused) as i64) >> unused, unsigned })
    }

    pub(super) fn take(&mut self, other: NumberEitherWay) {
        self.signed = self.signed.max(other.signed);
        self.unsigned = self.unsigned.max(other.unsigned);
    }
}

/// The largest numbers of some rows of one table, by columns.
#[derive(Debug, Default)]
pub(super) struct NumbersOfRows {
    columns: Vec<usize>,
    largest: BTreeMap<usize, NumberEitherWay>,
}

impl NumbersOfRows {
    pub(super) fn of(schema: &TableSchema) -> Self {
        let columns = schema.columns().iter().enumerate();
        let numbers = columns.filter(|(_, column)| column.kind.class() == ColumnClass::Integer);
        NumbersOfRows { columns: numbers.map(|(index, _)| index).collect(), largest: BTreeMap::new() }
    }

    /// Takes the row after a change.
    pub(super) fn take(&mut self, after: Option<RowImage<'_, '_>>) {
        let Some(image) = after else { return };
        for index in &self.columns {
            if let Some(CellContent::Value(bytes)) = image.cell(*index).map(|cell| cell.content)
                && let Some(number) = NumberEitherWay::of(bytes)
            {
                self.largest.entry(*index).and_modify(|known| known.take(number)).or_insert(number);
            }
        }
    }

    pub(super) fn largest(&self) -> impl Iterator<Item = (u32, NumberEitherWay)> {
        self.largest.iter().map(|(index, number)| (*index as u32, *number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_each_width_are_read_with_and_without_a_sign() {
        let read = |bytes: &[u8]| NumberEitherWay::of(bytes).map(|number| (number.signed, number.unsigned));
        assert_eq!(read(&[0xff]), Some((-1, 255)));
        assert_eq!(read(&[0x00, 0x80]), Some((-32768, 32768)));
        assert_eq!(read(&[0xff, 0xff, 0x7f]), Some((8_388_607, 8_388_607)));
        assert_eq!(read(&[0xff; 8]), Some((-1, u64::MAX)));
        assert_eq!(read(&[0; 9]), None);
    }
}
