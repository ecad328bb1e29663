//! The whole numbers that a key has in rows that can meet a condition: others are passed over without asking any.

use binlogz_binlog::row::{Row, RowImage, Value};

/// The images of a row.
pub(super) fn images<'r, 'a>(row: &Row<'r, 'a>) -> impl Iterator<Item = RowImage<'r, 'a>> {
    [row.before, row.after].into_iter().flatten()
}

/// The values of a column of whole numbers without which a row meets no condition.
#[derive(Debug)]
pub(super) struct KeyNumbers {
    column: usize,
    /// From the first to the second, in order and apart.
    spans: Vec<(i128, i128)>,
}

impl KeyNumbers {
    pub(super) fn new(column: usize, mut spans: Vec<(i128, i128)>) -> Self {
        spans.retain(|(first, last)| first <= last);
        spans.sort_unstable();
        let mut joined: Vec<(i128, i128)> = Vec::new();
        for (first, last) in spans {
            match joined.last_mut() {
                Some(before) if before.1 >= first => before.1 = before.1.max(last),
                Some(_) | None => joined.push((first, last)),
            }
        }
        KeyNumbers { column, spans: joined }
    }

    /// Whether an image of the row may have one of them.
    pub(super) fn may_have(&self, row: &Row<'_, '_>) -> bool {
        images(row).any(|image| {
            let Some(cell) = image.cell(self.column) else { return true };
            match cell.value() {
                Ok(Value::Null) => false,
                // Of 5.7, it may be a large number without a sign.
                Ok(Value::Int(number)) if number < 0 && cell.column.unsigned.is_none() => true,
                Ok(Value::Int(number)) => self.has(number.into()),
                Ok(Value::Uint(number)) => self.has(number.into()),
                Ok(_) | Err(_) => true,
            }
        })
    }

    fn has(&self, number: i128) -> bool {
        let after = self.spans.partition_point(|(first, _)| *first <= number);
        after.checked_sub(1).and_then(|place| self.spans.get(place)).is_some_and(|(_, last)| number <= *last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_spans() {
        let keys = KeyNumbers::new(0, vec![(5, 7), (1, 0), (42, 42), (6, 9), (i128::MIN, -3)]);
        let found: Vec<i128> = (-5..50).filter(|number| keys.has(*number)).collect();
        assert_eq!(found, [-5, -4, -3, 5, 6, 7, 8, 9, 42]);
    }
}
