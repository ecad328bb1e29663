//! A row's statement as a server applies it.
//!
//! ```text
//! size field
//!    2+n table        `database.table`
//!    2+n name         the row, as messages name it
//!    4+n quoted table
//!    4+n key          the condition that finds the row by its key; empty without one
//!    4 where_offset   where the statement's condition begins; of an INSERT, its size
//!      statement      the rest
//! ```

use std::borrow::Cow;
use std::io;

use binlogz_binlog::put::PutFields;

use super::fields::{RecordFields, broken, push_name, put_sized};

/// A row's change as it is applied.
pub(crate) struct ScriptChange<'b> {
    pub(crate) table: Cow<'b, str>,
    pub(crate) name: Cow<'b, str>,
    pub(crate) quoted_table: &'b [u8],
    pub(crate) key: &'b [u8],
    pub(crate) where_offset: usize,
    pub(crate) statement: &'b [u8],
}

impl<'b> ScriptChange<'b> {
    pub(crate) fn read(bytes: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(bytes);
        let table = fields.name()?;
        let name = fields.name()?;
        let quoted_table = fields.sized()?;
        let key = fields.sized()?;
        let where_offset = fields.u32()? as usize;
        let statement = fields.rest();
        if where_offset > statement.len() {
            return Err(broken());
        }
        Ok(ScriptChange { table, name, quoted_table, key, where_offset, statement })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        push_name(out, |out| out.put(self.table.as_bytes()));
        push_name(out, |out| out.put(self.name.as_bytes()));
        put_sized(out, self.quoted_table);
        put_sized(out, self.key);
        out.put_u32(self.where_offset as u32);
        out.put(self.statement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_whose_checksum_a_journal_has_stay_as_they_are() {
        let change = ScriptChange {
            table: "s.t".into(),
            name: "a row".into(),
            quoted_table: b"`s`.`t`",
            key: b"`a` = 1",
            where_offset: 3,
            statement: b"DELETE",
        };
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        let expected = b"\x03\0s.t\x05\0a row\x07\0\0\0`s`.`t`\x07\0\0\0`a` = 1\x03\0\0\0DELETE";
        assert_eq!(bytes, expected);
        let read = ScriptChange::read(&bytes).unwrap();
        assert_eq!((&*read.table, &*read.name, read.quoted_table), ("s.t", "a row", change.quoted_table));
        assert_eq!((read.key, read.where_offset, read.statement), (change.key, 3, change.statement));
        for end in 0..bytes.len() - 3 {
            assert!(ScriptChange::read(&bytes[..end]).is_err(), "{end}");
        }
    }
}
