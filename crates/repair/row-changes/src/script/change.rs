//! A row's change as it is applied.

use std::borrow::Cow;

use super::push_name;
use crate::choose::Direction;
use crate::pass::{TableRow, shortened};
pub(super) use crate::record::ScriptChange;
use crate::sql::statement::{RowOutcome, push_key_of, push_statement};

impl<'b> ScriptChange<'b> {
    /// Appends the change of a row.
    pub(super) fn push(out: &mut Vec<u8>, of: TableRow<'_>, direction: Direction) -> RowOutcome {
        let TableRow { table, row, .. } = of;
        let mut statement = Vec::new();
        let outcome = push_statement(&mut statement, table, row, direction);
        if !matches!(outcome, RowOutcome::Statement { .. }) {
            return outcome;
        }
        let mut key = Vec::new();
        let where_offset = push_key_of(&mut key, table, row, direction, &statement);
        let mut name = Vec::new();
        push_name(&mut name, of);
        let change = ScriptChange {
            table: table.shown().into(),
            name: String::from_utf8_lossy(&name),
            quoted_table: &table.name,
            key: &key,
            where_offset,
            statement: &statement,
        };
        change.encode(out);
        outcome
    }

    pub(super) fn quoted_table(&self) -> Cow<'b, str> {
        String::from_utf8_lossy(self.quoted_table)
    }

    /// The condition that finds the row, if its table has a key.
    pub(super) fn key(&self) -> Option<Cow<'b, str>> {
        (!self.key.is_empty()).then(|| String::from_utf8_lossy(self.key))
    }

    /// The condition that finds the row as the log left it; of an INSERT nothing.
    pub(super) fn condition(&self) -> &'b str {
        text(self.statement.get(self.where_offset..))
    }

    /// The assignments of the statement: everything before its condition.
    pub(super) fn assignments(&self) -> &'b str {
        text(self.statement.get(..self.where_offset))
    }

    pub(super) fn is_insert(&self) -> bool {
        self.statement.first() == Some(&b'I')
    }

    /// The row that the log left, for messages.
    pub(super) fn expected(&self) -> String {
        match self.statement.get(self.where_offset..) {
            _ if self.is_insert() => "the log left no such row".to_owned(),
            condition => {
                format!("the log left {}", shortened(&String::from_utf8_lossy(condition.unwrap_or_default())))
            }
        }
    }

    /// The statements that overwrite whatever row has the key.
    pub(super) fn by_key(&self) -> Option<Vec<Vec<u8>>> {
        if self.key.is_empty() {
            return None;
        }
        if self.is_insert() {
            let delete = [b"DELETE FROM ", self.quoted_table, b" WHERE ", self.key].concat();
            return Some(vec![delete, self.statement.to_vec()]);
        }
        Some(vec![[self.statement.get(..self.where_offset)?, self.key].concat()])
    }
}

#[cfg(test)]
impl<'b> ScriptChange<'b> {
    /// A change of this statement, in a table with this condition on the key or without a key.
    pub(super) fn of_parts(statement: &'b str, key: &'b str) -> Self {
        let where_offset = statement.find(" WHERE ").map_or(statement.len(), |place| place + " WHERE ".len());
        ScriptChange {
            table: "s.t".into(),
            name: "a row".into(),
            quoted_table: b"`s`.`t`",
            key: key.as_bytes(),
            where_offset,
            statement: statement.as_bytes(),
        }
    }
}

/// Statements have other bytes than UTF-8 in hexadecimal.
fn text(bytes: Option<&[u8]>) -> &str {
    bytes.and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
}
