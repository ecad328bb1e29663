//! The record that a worker writes for each key that a row change touches. It tells what is known of the key's row, before or
//! after the change: `touched.rs` asks for the row before, `forward.rs` for the row after.
//!
//! ```text
//! size field
//!    1 state       see KeyState
//!    4 key_size
//!    n key         its values, as the reader of the record compares keys
//!    4 text_size
//!    n text        the row's values as SQL, or why it can't be told
//! ```

use binlogz_binlog::put::PutFields;

/// What is known of a key's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyState {
    /// There is none of this key.
    Absent = 0,
    /// This is it.
    There = 1,
    /// There is one, and the text says why it can't be told.
    Unknown = 2,
    /// Not even the key can be told.
    NoKey = 3,
}

/// A key, and what is known of its row.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct KeyRecord<'b> {
    pub(super) state: KeyState,
    pub(super) key: &'b [u8],
    pub(super) text: &'b [u8],
}

impl<'b> KeyRecord<'b> {
    /// Takes the first record of these bytes, and returns the bytes after it; `None`: they don't begin with a record.
    pub(super) fn decode(bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (code, rest) = bytes.split_first()?;
        let states = [KeyState::Absent, KeyState::There, KeyState::Unknown, KeyState::NoKey];
        let state = states.into_iter().find(|state| *state as u8 == *code)?;
        let (key, rest) = sized(rest)?;
        let (text, rest) = sized(rest)?;
        Some((KeyRecord { state, key, text }, rest))
    }

    /// Appends the record.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(self.state as u8);
        put_sized(out, self.key);
        put_sized(out, self.text);
    }
}

/// Appends the record of a key that can't be told: the text says why.
pub(super) fn put_no_key(out: &mut Vec<u8>, why: &str) {
    KeyRecord { state: KeyState::NoKey, key: b"", text: why.as_bytes() }.encode(out);
}

/// Appends bytes after their size.
pub(super) fn put_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_u32(bytes.len() as u32);
    out.put(bytes);
}

fn sized(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (size, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*size) as usize)
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
        let (first, rest) = KeyRecord::decode(&bytes).unwrap();
        assert_eq!((first, rest.len()), (row, bytes.len() - size));
        let (second, rest) = KeyRecord::decode(rest).unwrap();
        assert_eq!(second, KeyRecord { state: KeyState::NoKey, key: b"", text: b"why" });
        assert!(rest.is_empty());
        for cut in 0..size {
            assert_eq!(KeyRecord::decode(&bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn a_state_that_no_version_writes_is_no_record() {
        assert_eq!(KeyRecord::decode(&[4, 0, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
