//! Rows of one table that are applied by one statement: INSERTs of the same columns, or DELETEs that are found by a key.
//!
//! ```text
//! INSERT INTO t (a, b) VALUES (…), (…)        all of them, or an error that leaves none
//! DELETE FROM t WHERE (…) OR (…)              each condition has a key and all columns: it is true for one row or none
//! ```
//!
//! If such a statement doesn't change as many rows as it is for, it is taken back, and its rows are applied one by one: that tells
//! which of them are in conflict.

use super::change::ScriptChange;

/// The most rows of a statement.
const ROWS_MAX: usize = 200;
/// The bytes of a statement to which no further row comes, and the most of a row in it.
const SIZE_MAX: usize = 256 << 10;

/// Rows that wait for their statement.
#[derive(Debug, Default)]
pub(super) struct RowGroup {
    /// The changes, one after the other, as they were read.
    rows: Vec<Vec<u8>>,
    statement: Vec<u8>,
    /// The part of the statement that all its rows have in common.
    common: Vec<u8>,
}

impl RowGroup {
    /// Takes a row, if it fits the others; `None`: it can't be in a group.
    pub(super) fn push(&mut self, content: &[u8], change: &ScriptChange<'_>) -> Option<()> {
        let (common, own) = parts(change)?;
        if self.rows.is_empty() {
            self.common = common.to_vec();
            self.statement = common.to_vec();
        } else if self.common != common || self.rows.len() >= ROWS_MAX || self.statement.len() >= SIZE_MAX {
            return None;
        } else {
            self.statement.extend_from_slice(if change.is_insert() { b", " } else { b" OR " });
        }
        match change.is_insert() {
            true => self.statement.extend_from_slice(own),
            false => self.statement.extend([b"(", own, b")"].concat()),
        }
        self.rows.push(content.to_vec());
        Some(())
    }

    /// Whether a group takes this change at all.
    pub(super) fn takes(change: &ScriptChange<'_>) -> bool {
        parts(change).is_some()
    }

    /// The statement, and the rows that it is for.
    pub(super) fn take(&mut self) -> (Vec<u8>, Vec<Vec<u8>>) {
        (std::mem::take(&mut self.statement), std::mem::take(&mut self.rows))
    }
}

/// What a change's statement has in common with others, and what is its own.
fn parts<'c>(change: &ScriptChange<'c>) -> Option<(&'c [u8], &'c [u8])> {
    if change.statement.len() > SIZE_MAX {
        return None;
    }
    match change.statement.first() {
        Some(b'I') => change.statement.split_at_checked(values_offset(change.statement)?),
        Some(b'D') if change.key().is_some() => {
            let condition = change.condition();
            let offset = change.statement.len().checked_sub(condition.len())?;
            (!condition.is_empty()).then(|| change.statement.split_at_checked(offset))?
        }
        _ => None,
    }
}

/// Where the values of an INSERT begin. Before them it has no text but names in backticks.
fn values_offset(statement: &[u8]) -> Option<usize> {
    const VALUES: &[u8] = b" VALUES (";
    let mut is_name = false;
    for (offset, byte) in statement.iter().enumerate() {
        is_name ^= *byte == b'`';
        if !is_name && statement.get(offset..)?.starts_with(VALUES) {
            return Some(offset + VALUES.len() - 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_begin_after_the_names() {
        for (statement, values) in [
            ("INSERT INTO `s`.`t` (`a`) VALUES (1)", "(1)"),
            ("INSERT INTO `s`.`t` () VALUES ()", "()"),
            ("INSERT INTO `s`.`x`` VALUES (` (`a VALUES (`) VALUES (' VALUES (')", "(' VALUES (')"),
        ] {
            assert_eq!(
                values_offset(statement.as_bytes()).and_then(|offset| statement.get(offset..)),
                Some(values)
            );
        }
    }
}
