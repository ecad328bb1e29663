//! Finds where the values of a row image are, which of them are NULL, and which values tell its row from other rows.

use std::ops::Range;

use binlogz_binlog::event::{ServerFamily, TableMapEvent};

/// Where the values of an image are.
#[derive(Debug, Default)]
pub(crate) struct CellRanges {
    places: Vec<Option<Range<usize>>>,
}

impl CellRanges {
    pub(crate) fn clear(&mut self, count: usize) {
        self.places.clear();
        self.places.resize(count, None);
    }

    pub(crate) fn set(&mut self, column: usize, place: Range<usize>) {
        if let Some(cell) = self.places.get_mut(column) {
            *cell = Some(place);
        }
    }

    pub(crate) fn get(&self, column: usize) -> Option<Range<usize>> {
        self.places.get(column).cloned().flatten()
    }
}

pub(crate) fn bit(bits: &[u8], index: usize) -> bool {
    bits.get(index / 8).is_some_and(|byte| byte >> (index % 8) & 1 == 1)
}

pub(crate) fn is_set(walked: &[u8], bits: &Range<usize>, index: usize) -> bool {
    bit(walked.get(bits.clone()).unwrap_or_default(), index)
}

/// The columns of a table's key; the first column, if the log doesn't tell.
pub(crate) fn key_columns(map: &TableMapEvent<'_>) -> Vec<usize> {
    // Where keys stand is the same in all families.
    let columns = map.column_definitions(ServerFamily::Unknown).unwrap_or_default();
    let of_key = columns.iter().enumerate().filter(|(_, column)| column.primary_key.is_some());
    let key: Vec<usize> = of_key.map(|(index, _)| index).collect();
    if key.is_empty() { vec![0] } else { key }
}
