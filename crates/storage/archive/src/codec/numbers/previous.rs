//! For each row the last one before it with the same key.

use std::collections::HashMap;

/// Rows with their last predecessors of the same key.
#[derive(Debug)]
pub(super) struct PreviousRows {
    /// 1 + the row's number; 0: there is none.
    rows: Vec<u32>,
}

/// The last row of each key.
enum LastRows {
    /// By the key's distance from the smallest.
    Near {
        smallest: i64,
        rows: Vec<u32>,
    },
    Far(HashMap<i64, u32>),
}

impl PreviousRows {
    /// `None`: there are more than `keys_max` keys, or more rows than a block can have.
    pub(super) fn of(keys: &[i64], keys_max: usize) -> Option<PreviousRows> {
        let mut last = LastRows::new(keys)?;
        let mut left = keys_max;
        let mut rows = Vec::with_capacity(keys.len());
        for (&key, row) in keys.iter().zip(1u32..) {
            let before = last.replace(key, row)?;
            if before == 0 {
                left = left.checked_sub(1)?;
            }
            rows.push(before);
        }
        (rows.len() == keys.len()).then_some(PreviousRows { rows })
    }

    /// The row from which a row steps: the last one with its key, else the row before; `None`: there is neither.
    pub(super) fn before(&self, row: usize) -> Option<usize> {
        match self.rows.get(row)? {
            0 => row.checked_sub(1),
            next => Some(*next as usize - 1),
        }
    }
}

impl LastRows {
    fn new(keys: &[i64]) -> Option<LastRows> {
        let smallest = keys.iter().copied().min()?;
        let range = keys.iter().copied().max()?.wrapping_sub(smallest) as u64;
        Some(match range <= keys.len() as u64 {
            true => LastRows::Near { smallest, rows: vec![0; range as usize + 1] },
            false => LastRows::Far(HashMap::new()),
        })
    }

    /// Puts a row in the place of the key's last one; 0: there was none.
    fn replace(&mut self, key: i64, row: u32) -> Option<u32> {
        match self {
            LastRows::Near { smallest, rows } => {
                let place = rows.get_mut(key.wrapping_sub(*smallest) as usize)?;
                Some(std::mem::replace(place, row))
            }
            LastRows::Far(rows) => Some(rows.insert(key, row).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_row_of_a_key_is_found_whether_keys_are_near_or_far() {
        for factor in [1, i64::MAX / 4] {
            let keys: Vec<i64> = [7, 8, 7, 7, 9, 8].iter().map(|key| (key - 8) * factor).collect();
            let rows = PreviousRows::of(&keys, 3).unwrap();
            let before: Vec<_> = (0..keys.len()).map(|row| rows.before(row)).collect();
            // The first row of a key steps from the row before.
            assert_eq!(before, [None, Some(0), Some(0), Some(2), Some(3), Some(1)]);
            assert_eq!(rows.before(6), None);
            assert!(PreviousRows::of(&keys, 2).is_none());
        }
        assert!(PreviousRows::of(&[i64::MIN, i64::MAX], 2).is_some());
        assert!(PreviousRows::of(&[], 0).is_none());
    }
}
