//! Rows that are applied together: statements that go to the server in one message.
//!
//! ```text
//! INSERT INTO t (a, b) VALUES (…), (…)        rows of one table that follow each other: all of them, or an error that leaves none
//! DELETE FROM t WHERE (…) OR (…)              each condition has a key and all columns: it is true for one row or none
//! any other statement                         its own row
//! ```
//!
//! Their order is that of the rows. A statement that changes another number of rows than it is for has a row that is in conflict.

use std::rc::Rc;

use super::change::ScriptChange;
use crate::record::RowFlags;

/// The most rows that wait.
const ROWS_MAX: usize = 250;
/// The bytes of statements to which no further row comes, and the most of a row among others, if the server takes such messages.
const SIZE_MAX: usize = 256 << 10;
/// More than a message has besides its rows' statements: SAVEPOINT.
const OTHER_SIZE: usize = 64;

/// A row that waits to be applied.
#[derive(Debug, Clone)]
pub(super) struct WaitingRow {
    /// The change as it was read.
    pub(super) content: Vec<u8>,
    pub(super) flags: RowFlags,
    /// The transaction's description.
    pub(super) transaction: Rc<str>,
}

/// Rows that wait to be applied together, by a session of one setting.
#[derive(Debug)]
pub(super) struct RowGroup {
    rows: Vec<WaitingRow>,
    size: usize,
    size_max: usize,
}

impl RowGroup {
    /// Makes an empty group, for messages smaller than this, in bytes.
    pub(super) fn within(message_size_max: usize) -> Self {
        // The last row comes to one byte less.
        let size_max = SIZE_MAX.min(message_size_max.saturating_sub(OTHER_SIZE) / 2);
        RowGroup { rows: Vec::new(), size: 0, size_max }
    }

    pub(super) fn push(&mut self, row: WaitingRow) {
        self.size += row.content.len();
        self.rows.push(row);
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= ROWS_MAX || self.size >= self.size_max
    }

    /// Whether a group takes this change at all.
    pub(super) fn takes(&self, change: &ScriptChange<'_>) -> bool {
        change.statement.len() <= self.size_max
    }

    /// The rows that wait: none does any more.
    pub(super) fn take(&mut self) -> Vec<WaitingRow> {
        self.size = 0;
        std::mem::take(&mut self.rows)
    }
}

/// The statements for some changes in their order, divided by semicolons.
#[derive(Debug, Default)]
pub(super) struct GroupStatements {
    pub(super) text: Vec<u8>,
    /// The number of rows of each statement.
    pub(super) counts: Vec<usize>,
}

impl GroupStatements {
    pub(super) fn of<'c, 'b: 'c>(changes: impl IntoIterator<Item = &'c ScriptChange<'b>>) -> Self {
        let mut statements = GroupStatements::default();
        // The part that the rows of the last statement have in common.
        let mut last: &[u8] = &[];
        for change in changes {
            let parts = parts(change);
            let joined = parts.filter(|(common, _)| *common == last).zip(statements.counts.last_mut());
            last = parts.map_or(&[], |(common, _)| common);
            if let Some(((_, own), count)) = joined {
                *count += 1;
                statements.text.extend_from_slice(if change.is_insert() { b", " } else { b" OR " });
                push_own(&mut statements.text, change, own);
                continue;
            }
            if !statements.counts.is_empty() {
                statements.text.extend_from_slice(b"; ");
            }
            statements.counts.push(1);
            match parts {
                Some((common, own)) => {
                    statements.text.extend_from_slice(common);
                    push_own(&mut statements.text, change, own);
                }
                None => statements.text.extend_from_slice(change.statement),
            }
        }
        statements
    }
}

fn push_own(out: &mut Vec<u8>, change: &ScriptChange<'_>, own: &[u8]) {
    match change.is_insert() {
        true => out.extend_from_slice(own),
        false => {
            out.push(b'(');
            out.extend_from_slice(own);
            out.push(b')');
        }
    }
}

/// The beginning of a change's statement, which others share, and its own end; `None` if no other row joins the statement.
fn parts<'b>(change: &ScriptChange<'b>) -> Option<(&'b [u8], &'b [u8])> {
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

    #[test]
    fn rows_of_one_table_that_follow_each_other_share_a_statement() {
        let statement = |statement: &'static str, key: &'static str| ScriptChange::of_parts(statement, key);
        let changes = [
            statement("INSERT INTO `a` (`x`) VALUES (1)", "`x` = 1"),
            statement("INSERT INTO `a` (`x`) VALUES (2)", "`x` = 2"),
            statement("INSERT INTO `a` (`y`) VALUES (3)", ""),
            statement("DELETE FROM `a` WHERE `x` = 4 AND `y` = 4", "`x` = 4"),
            statement("DELETE FROM `a` WHERE `x` = 5 AND `y` = 5", "`x` = 5"),
            // Of equal rows one alone is meant.
            statement("DELETE FROM `b` WHERE `x` = 6 LIMIT 1", ""),
            statement("DELETE FROM `b` WHERE `x` = 6 LIMIT 1", ""),
            statement("UPDATE `a` SET `y` = 8 WHERE `x` = 7", "`x` = 7"),
            statement("INSERT INTO `a` (`x`) VALUES (1)", "`x` = 1"),
        ];
        let statements = GroupStatements::of(&changes);
        assert_eq!(statements.counts, [2, 1, 2, 1, 1, 1, 1]);
        assert_eq!(
            String::from_utf8(statements.text).unwrap(),
            "INSERT INTO `a` (`x`) VALUES (1), (2); INSERT INTO `a` (`y`) VALUES (3); \
             DELETE FROM `a` WHERE (`x` = 4 AND `y` = 4) OR (`x` = 5 AND `y` = 5); DELETE FROM `b` WHERE `x` = 6 LIMIT 1; \
             DELETE FROM `b` WHERE `x` = 6 LIMIT 1; UPDATE `a` SET `y` = 8 WHERE `x` = 7; INSERT INTO `a` (`x`) VALUES (1)"
        );
    }
}
