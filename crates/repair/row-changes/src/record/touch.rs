//! What a worker writes of a row change for `past`: which keys of which tables it touches, and what is known of the rows of these keys.
//! `touched.rs` there asks for the row before the change, `forward.rs` for the row after it.
//!
//! ```text
//! size field
//!      of several tables, for each that it touches:
//!    1 kind        0 its own row, 1 a row of a table from which foreign keys carry changes on to it
//!    4 table       which of the tables
//!    4 size
//!    n keys        as below; of another table's row the change in words
//!
//!      for each key:
//!    1 state       see KeyState
//!    4 key_size
//!    n key         its values, as the reader of the record compares keys
//!    4 text_size
//!    n text        the row's values as SQL, or why it can't be told
//! ```

use std::io;

use binlogz_binlog::put::PutFields;

use super::fields::{RecordFields, broken, put_sized};

/// The knowledge of a key's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyState {
    /// No row has this key.
    Absent = 0,
    /// The row is there, and its values follow.
    There = 1,
    /// A row has this key, and its values aren't known; the text says why.
    Unknown = 2,
    /// Not even the key can be told.
    NoKey = 3,
}

/// A key, and what is known of its row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeyRecord<'b> {
    pub(crate) state: KeyState,
    pub(crate) key: &'b [u8],
    pub(crate) text: &'b [u8],
}

impl<'b> KeyRecord<'b> {
    /// Takes the next record.
    pub(crate) fn take(fields: &mut RecordFields<'b>) -> io::Result<Self> {
        let code = fields.u8()?;
        let states = [KeyState::Absent, KeyState::There, KeyState::Unknown, KeyState::NoKey];
        let state = states.into_iter().find(|state| *state as u8 == code).ok_or_else(broken)?;
        Ok(KeyRecord { state, key: fields.sized()?, text: fields.sized()? })
    }

    /// Appends the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.state as u8);
        put_sized(out, self.key);
        put_sized(out, self.text);
    }
}

/// Appends the record of a key that can't be told: the text says why.
pub(crate) fn put_no_key(out: &mut Vec<u8>, why: &str) {
    KeyRecord { state: KeyState::NoKey, key: b"", text: why.as_bytes() }.encode(out);
}

/// The part of a row change that concerns one of several tables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TouchOfTable<'b> {
    /// A change of a row of the table: the table's number, and the records of keys.
    Own(usize, &'b [u8]),
    /// A change of a parent's row that may have been carried on to the table: the table's number, and the change in words.
    Parent(usize, &'b [u8]),
}

impl<'b> TouchOfTable<'b> {
    /// Takes the next record.
    pub(crate) fn take(fields: &mut RecordFields<'b>) -> io::Result<Self> {
        let kind = fields.u8()?;
        let number = fields.u32()? as usize;
        let content = fields.sized()?;
        match kind {
            0 => Ok(TouchOfTable::Own(number, content)),
            1 => Ok(TouchOfTable::Parent(number, content)),
            _ => Err(broken()),
        }
    }

    /// Appends the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (kind, number, content) = match self {
            TouchOfTable::Own(number, content) => (0, number, content),
            TouchOfTable::Parent(number, content) => (1, number, content),
        };
        out.put_u8(kind);
        out.put_u32(*number as u32);
        put_sized(out, content);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_one_after_the_other_and_cut_ones_do_not() {
        let mut bytes = Vec::new();
        let row = KeyRecord { state: KeyState::There, key: b"(1)", text: b"(1, 'a')" };
        row.encode(&mut bytes);
        let size = bytes.len();
        put_no_key(&mut bytes, "why");
        let mut fields = RecordFields::of(&bytes);
        assert_eq!(KeyRecord::take(&mut fields).unwrap(), row);
        let second = KeyRecord { state: KeyState::NoKey, key: b"", text: b"why" };
        assert_eq!(KeyRecord::take(&mut fields).unwrap(), second);
        assert!(fields.is_empty());
        for cut in 0..size {
            KeyRecord::take(&mut RecordFields::of(&bytes[..cut])).unwrap_err();
        }
        let mut touches = Vec::new();
        let both = [TouchOfTable::Own(3, &bytes), TouchOfTable::Parent(1, b"DELETE")];
        both.iter().for_each(|touch| touch.encode(&mut touches));
        let mut fields = RecordFields::of(&touches);
        for touch in both {
            assert_eq!(TouchOfTable::take(&mut fields).unwrap(), touch);
        }
        assert!(fields.is_empty());
    }

    #[test]
    fn a_state_that_no_version_writes_is_no_record() {
        KeyRecord::take(&mut RecordFields::of(&[4, 0, 0, 0, 0, 0, 0, 0, 0])).unwrap_err();
        TouchOfTable::take(&mut RecordFields::of(&[2, 0, 0, 0, 0, 0, 0, 0, 0])).unwrap_err();
    }
}
