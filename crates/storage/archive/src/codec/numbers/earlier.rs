//! The columns of numbers that stand before a column, of the same table: a column may be coded by one of them, as its partner or as the key
//! of its rows.

use std::cell::OnceCell;

use super::previous::PreviousRows;

/// How many of the columns are looked at as keys: a table's key is among its first columns.
const KEYS_MAX: usize = 8;
/// A column is a key if at most one row in this many brings a new value, ...
pub(super) const ROWS_OF_KEY: usize = 4;
/// ... and if more than one row in this many has another value than the row before: otherwise steps from the row before do as well.
const CHANGES: usize = 4;

/// The columns coded before one, the nearest last.
#[derive(Debug, Default)]
pub(crate) struct EarlierColumns<'a> {
    columns: Vec<EarlierColumn<'a>>,
}

#[derive(Debug)]
struct EarlierColumn<'a> {
    numbers: &'a [i64],
    /// Its rows as keys, made when a column asks for them; `None`: it is no key.
    previous: OnceCell<Option<PreviousRows>>,
}

impl<'a> EarlierColumns<'a> {
    pub(crate) fn of(columns: impl IntoIterator<Item = &'a [i64]>) -> Self {
        let mut earlier = EarlierColumns::default();
        columns.into_iter().for_each(|column| earlier.push(column));
        earlier
    }

    pub(crate) fn push(&mut self, numbers: &'a [i64]) {
        self.columns.push(EarlierColumn { numbers, previous: OnceCell::new() });
    }

    /// The columns, the nearest first.
    pub(super) fn nearest_first(&self) -> impl Iterator<Item = &'a [i64]> {
        self.columns.iter().rev().map(|column| column.numbers)
    }

    /// The column so many columns back; 0 is none.
    pub(crate) fn back(&self, back: usize) -> Option<&'a [i64]> {
        self.nearest_first().nth(back.checked_sub(1)?)
    }

    /// Those that are keys of so many rows, and how many columns back they are.
    pub(super) fn keys(&self, count: usize) -> impl Iterator<Item = (usize, &PreviousRows)> {
        let backs = (1..=self.columns.len()).rev();
        let of_rows = self.columns.iter().zip(backs).filter(move |(column, _)| column.numbers.len() == count);
        of_rows.take(KEYS_MAX).filter_map(|(column, back)| Some((back, column.as_key()?)))
    }
}

impl EarlierColumn<'_> {
    fn as_key(&self) -> Option<&PreviousRows> {
        self.previous.get_or_init(|| key_rows(self.numbers)).as_ref()
    }
}

fn key_rows(numbers: &[i64]) -> Option<PreviousRows> {
    let rows = numbers.len();
    let changes = numbers.windows(2).filter(|pair| pair.first() != pair.last()).count();
    if changes <= rows / CHANGES {
        return None;
    }
    PreviousRows::of(numbers, rows / ROWS_OF_KEY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_columns_of_few_values_in_many_orders_among_the_first() {
        let rows = 1000i64;
        let devices: Vec<i64> = (0..rows).map(|row| row * 7 % 50).collect();
        let runs: Vec<i64> = (0..rows).map(|row| row / 20).collect();
        let own: Vec<i64> = (0..rows).rev().collect();
        let others = devices.get(1..).unwrap_or_default();
        let columns = [runs.as_slice(), &own, others, &devices];
        let keys: Vec<usize> = EarlierColumns::of(columns).keys(1000).map(|(back, _)| back).collect();
        assert_eq!(keys, [1]);
        assert_eq!(EarlierColumns::of([devices.as_slice(), others]).back(2), Some(devices.as_slice()));
        let late = [own.as_slice(); KEYS_MAX].into_iter().chain([devices.as_slice()]);
        assert_eq!(EarlierColumns::of(late).keys(1000).count(), 0);
    }
}
