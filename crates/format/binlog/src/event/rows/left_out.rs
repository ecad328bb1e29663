//! The mark in a filler that stands in the place of a table's rows: an ignorable event that names the table. Programs that leave tables out
//! of a log write it, and readers tell by it that rows were there. It is binlogz's own: to servers the event is one to pass over.
//!
//! ```text
//! mark       8    "left out"
//! size       1    of the database's name
//! database   size
//! size       1    of the table's name
//! table      size
//! zeros           up to the size of the event that stood there; a table map has room for all this
//! ```

use crate::cursor::Cursor;

const WHAT: &str = "filler";
const MARK: [u8; 8] = *b"left out";

/// The table whose rows were left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftOutTable<'a> {
    /// Its database.
    pub database: &'a [u8],
    /// Its name.
    pub table: &'a [u8],
}

impl<'a> LeftOutTable<'a> {
    /// Reads the body of an ignorable event, without its checksum; `None`: it has no such mark.
    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let rest = body.strip_prefix(&MARK)?;
        let mut cursor = Cursor::new(rest, WHAT);
        let [database, table] = ["database", "table"].map(|field| {
            let size = cursor.u8(field).ok()?;
            cursor.bytes(usize::from(size), field).ok()
        });
        Some(LeftOutTable { database: database?, table: table? })
    }

    /// The beginning of such a body; `None`: a name is longer than a server's may be.
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut bytes = MARK.to_vec();
        for name in [self.database, self.table] {
            bytes.push(u8::try_from(name.len()).ok()?);
            bytes.extend_from_slice(name);
        }
        Some(bytes)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_and_one_that_is_cut_is_none() {
        let mark = LeftOutTable { database: b"shop", table: b"secrets" };
        let mut bytes = mark.encode().unwrap();
        assert_eq!(bytes, b"left out\x04shop\x07secrets");
        for size in 0..bytes.len() {
            assert_eq!(LeftOutTable::decode(&bytes[..size]), None, "{size}");
        }
        assert_eq!(LeftOutTable::decode(&bytes), Some(mark));
        bytes.extend([0; 9]);
        assert_eq!(LeftOutTable::decode(&bytes), Some(mark));
        bytes[0] = b'L';
        assert_eq!(LeftOutTable::decode(&bytes), None);
        assert_eq!(LeftOutTable { database: &[7; 256], table: b"" }.encode(), None);
    }
}
