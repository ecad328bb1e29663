//! A row's change as it is applied.
//!
//! ```text
//! size field
//!    2+n table        `database.table`, see named.rs
//!    2+n name         the row, as messages name it
//!    4 table_size
//!    n quoted table
//!    4 key_size
//!    n key            the condition that finds the row by its key; empty without one
//!    4 where_offset   where the statement's condition begins; of an INSERT, its size
//!      statement      the rest
//! ```

use std::borrow::Cow;

use binlogz_binlog::put::PutFields;
use binlogz_binlog::row::Row;

use super::named::NamedTransactions;
use super::push_name;
use crate::choose::{Direction, Operation};
use crate::pass::shortened;
use crate::sql::statement::{RowOutcome, push_key_of, push_statement};
use crate::table::WrittenTable;

/// A row's change as it is applied, read from its bytes.
pub(super) struct ScriptChange<'b> {
    pub(super) table: Cow<'b, str>,
    pub(super) name: Cow<'b, str>,
    quoted_table: &'b [u8],
    key: &'b [u8],
    where_offset: usize,
    pub(super) statement: &'b [u8],
}

impl<'b> ScriptChange<'b> {
    pub(super) fn read(bytes: &'b [u8]) -> Option<Self> {
        let NamedTransactions { name: table, content } = NamedTransactions::read(bytes)?;
        let NamedTransactions { name, content } = NamedTransactions::read(content)?;
        let (quoted_table, content) = sized(content)?;
        let (key, content) = sized(content)?;
        let (where_offset, statement) = content.split_first_chunk()?;
        let where_offset = u32::from_le_bytes(*where_offset) as usize;
        (where_offset <= statement.len()).then_some(ScriptChange {
            table,
            name,
            quoted_table,
            key,
            where_offset,
            statement,
        })
    }

    /// Appends the change of a row.
    pub(super) fn push(
        out: &mut Vec<u8>,
        table: &WrittenTable,
        (operation, row): (Operation, &Row<'_, '_>),
        direction: Direction,
    ) -> RowOutcome {
        let mut statement = Vec::new();
        let outcome = push_statement(&mut statement, table, row, direction);
        if !matches!(outcome, RowOutcome::Statement { .. }) {
            return outcome;
        }
        let mut key = Vec::new();
        let where_offset = push_key_of(&mut key, table, row, direction, &statement);
        NamedTransactions::push(out, |out| out.extend_from_slice(table.shown().as_bytes()));
        NamedTransactions::push(out, |out| push_name(out, table, operation, row));
        for part in [&table.name, &key] {
            out.put_u32(part.len() as u32);
            out.put(part);
        }
        out.put_u32(where_offset as u32);
        out.put(&statement);
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

fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (size, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*size) as usize)
}
