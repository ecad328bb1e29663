//! Marks in fillers that stand in the place of a table's rows, or of a statement about tables: ignorable events that name the tables.
//! Programs that leave tables out of a log write them, and readers tell by them what was there. They are binlogz's own: to servers
//! the event is one to pass over.
//!
//! ```text
//! rows
//! mark       8    "left out"
//! size       1    of the database's name
//! database   size
//! size       1    of the table's name
//! table      size
//! zeros           up to the size of the event that stood there; a table map has room for all this
//!
//! statement: nothing is larger than it must be, since short statements have little room
//! database        then 0xFE and the table, neither of which is in UTF-8; after 0xFD the next
//! zeros           up to the size of the event
//! 0xFE alone      there was no room for the names
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

/// The tables of a statement that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOutStatement<'a> {
    /// The tables that it was about; none: they aren't known.
    pub tables: Vec<LeftOutTable<'a>>,
}

/// Between a database and its table.
const AFTER_DATABASE: u8 = 0xfe;
/// Between two tables.
const AFTER_TABLE: u8 = 0xfd;

impl<'a> LeftOutStatement<'a> {
    /// A mark without names.
    pub const UNNAMED: [u8; 1] = [AFTER_DATABASE];

    /// Reads the body of an ignorable event, without its checksum; `None`: it has no such mark.
    pub fn decode(body: &'a [u8]) -> Option<Self> {
        let size = body.iter().rposition(|byte| *byte != 0)? + 1;
        let (mark, _) = body.split_at_checked(size)?;
        if LeftOutTable::decode(body).is_some() || !mark.contains(&AFTER_DATABASE) {
            return None;
        }
        if mark == Self::UNNAMED {
            return Some(LeftOutStatement::default());
        }
        let named = |names: &'a [u8]| {
            let mut parts = names.split(|byte| *byte == AFTER_DATABASE);
            let (database, table) = (parts.next()?, parts.next()?);
            (parts.next().is_none() && !table.is_empty()).then_some(LeftOutTable { database, table })
        };
        let tables = mark.split(|byte| *byte == AFTER_TABLE).map(named).collect::<Option<_>>()?;
        Some(LeftOutStatement { tables })
    }

    /// The beginning of such a body.
    pub fn encode(&self) -> Vec<u8> {
        if self.tables.is_empty() {
            return Self::UNNAMED.to_vec();
        }
        let named = |LeftOutTable { database, table }: &LeftOutTable<'_>| {
            [database, &[AFTER_DATABASE][..], table].concat()
        };
        self.tables.iter().map(named).collect::<Vec<_>>().join(&AFTER_TABLE)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn a_statements_tables_come_back() {
        let table = |database: &'static str, table: &'static str| LeftOutTable {
            database: database.as_bytes(),
            table: table.as_bytes(),
        };
        for tables in [
            vec![],
            vec![table("shop", "lines")],
            vec![table("shop", "lines"), table("é", "x"), table("left out", "y")],
        ] {
            let statement = LeftOutStatement { tables };
            let mut bytes = statement.encode();
            assert_eq!(LeftOutStatement::decode(&bytes).unwrap(), statement);
            assert_eq!(LeftOutTable::decode(&bytes), None);
            bytes.extend([0; 9]);
            assert_eq!(LeftOutStatement::decode(&bytes).unwrap(), statement);
        }
        let rows = table("shop", "lines").encode().unwrap();
        for other in [&b""[..], b"\0\0", b"shop.lines", b"shop\xfe", b"a\xfeb\xfec", b"a\xfeb\xfdc", &rows] {
            assert_eq!(LeftOutStatement::decode(other), None, "{other:?}");
        }
    }

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
