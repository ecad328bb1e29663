//! What `script` keeps until it is written, from the first or from the last.
//!
//! ```text
//! kind         content
//! 1 header     number u64, time u64 (microseconds since 1970), text: a transaction, read before its other records
//! 2 row        table u32, epoch u32, table map u32, number of the change u32, flags u8, what the renderer wrote
//! 3 missing    text: a row without a statement
//! 4 statement  text: the original statement of the rows read after it
//! 5 border     text: a statement without rows
//! ```
//!
//! A journal of changes that were applied has a checksum of these bytes: a run with other bytes doesn't continue it.

use std::borrow::Cow;
use std::io;

use binlogz_payload::Spool;

use super::batch::RowFlags;
use super::fields::{RecordFields, broken};
use super::frame::{EitherEndReader, put_for_both_ends};

/// A record of a script.
pub(crate) enum ScriptRecord<'b> {
    /// A transaction: its number, its time in microseconds since 1970, its description.
    Header(u64, u64, &'b [u8]),
    Row(ScriptRow<'b>),
    Missing(&'b [u8]),
    Statement(&'b [u8]),
    Border(&'b [u8]),
}

/// A row of a script.
pub(crate) struct ScriptRow<'b> {
    /// The number of its table.
    pub(crate) table: u32,
    /// The number of statements that had changed its table before; `u32::MAX`: they don't matter.
    pub(crate) epoch: u32,
    /// The number of its table map.
    pub(crate) map: u32,
    /// The number of the change, in a table without a key.
    pub(crate) change: u32,
    pub(crate) flags: RowFlags,
    /// The renderer's text.
    pub(crate) text: Cow<'b, [u8]>,
}

impl<'b> ScriptRow<'b> {
    pub(crate) fn into_owned(self) -> ScriptRow<'static> {
        let ScriptRow { table, epoch, map, change, flags, text } = self;
        ScriptRow { table, epoch, map, change, flags, text: Cow::Owned(text.into_owned()) }
    }

    fn read(content: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(content);
        let table = fields.u32()?;
        let epoch = fields.u32()?;
        let map = fields.u32()?;
        let change = fields.u32()?;
        let flags = RowFlags(fields.u8()?);
        Ok(ScriptRow { table, epoch, map, change, flags, text: fields.rest().into() })
    }
}

impl<'b> ScriptRecord<'b> {
    fn read(kind: u8, content: &'b [u8]) -> io::Result<Self> {
        Ok(match kind {
            1 => {
                let mut fields = RecordFields::of(content);
                ScriptRecord::Header(fields.u64()?, fields.u64()?, fields.rest())
            }
            2 => ScriptRecord::Row(ScriptRow::read(content)?),
            3 => ScriptRecord::Missing(content),
            4 => ScriptRecord::Statement(content),
            5 => ScriptRecord::Border(content),
            _ => return Err(broken()),
        })
    }

    pub(crate) fn put(&self, spool: &mut Spool) -> io::Result<()> {
        match self {
            ScriptRecord::Header(number, time, text) => {
                put_for_both_ends(spool, 1, &[&number.to_le_bytes(), &time.to_le_bytes(), text])
            }
            ScriptRecord::Row(ScriptRow { table, epoch, map, change, flags, text }) => {
                let numbers = [table, epoch, map, change].map(|number| number.to_le_bytes());
                put_for_both_ends(spool, 2, &[numbers.as_flattened(), &[flags.0], text])
            }
            ScriptRecord::Missing(text) => put_for_both_ends(spool, 3, &[text]),
            ScriptRecord::Statement(text) => put_for_both_ends(spool, 4, &[text]),
            ScriptRecord::Border(text) => put_for_both_ends(spool, 5, &[text]),
        }
    }
}

/// Reads the records of a script, from the first or from the last.
pub(crate) struct ScriptReader<'s>(EitherEndReader<'s>);

impl<'s> ScriptReader<'s> {
    pub(crate) fn new(spool: &'s Spool, backwards: bool) -> Self {
        ScriptReader(EitherEndReader::new(spool, backwards))
    }

    pub(crate) fn next(&mut self) -> io::Result<Option<ScriptRecord<'_>>> {
        self.0.next()?.map(|(kind, content)| ScriptRecord::read(kind, content)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use binlogz_payload::SpoolMemory;

    use super::*;

    #[test]
    fn bytes_whose_checksum_a_journal_has_stay_as_they_are() {
        let mut spool = Spool::new(&SpoolMemory::new(1 << 10), Vec::new());
        let epoch = u32::MAX;
        let flags = RowFlags(RowFlags::UPDATE);
        let row = ScriptRow { table: 1, epoch, map: 2, change: 3, flags, text: b"x"[..].into() };
        let records = [
            ScriptRecord::Header(7, 9, b"h"),
            ScriptRecord::Row(row),
            ScriptRecord::Missing(b"m"),
            ScriptRecord::Statement(b""),
            ScriptRecord::Border(b"b"),
        ];
        records.iter().for_each(|record| record.put(&mut spool).unwrap());
        let mut bytes = Vec::new();
        spool.reader(0..spool.size()).read_to_end(&mut bytes).unwrap();
        let expected: [&[u8]; 5] = [
            b"\x01\x11\0\0\0\x07\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0h\x11\0\0\0",
            b"\x02\x12\0\0\0\x01\0\0\0\xff\xff\xff\xff\x02\0\0\0\x03\0\0\0\x20x\x12\0\0\0",
            b"\x03\x01\0\0\0m\x01\0\0\0",
            b"\x04\0\0\0\0\0\0\0\0",
            b"\x05\x01\0\0\0b\x01\0\0\0",
        ];
        assert_eq!(bytes, expected.concat());
        let mut reader = ScriptReader::new(&spool, true);
        assert!(matches!(reader.next().unwrap(), Some(ScriptRecord::Border(b"b"))));
        assert!(matches!(reader.next().unwrap(), Some(ScriptRecord::Statement(b""))));
        assert!(matches!(reader.next().unwrap(), Some(ScriptRecord::Missing(b"m"))));
        let Some(ScriptRecord::Row(row)) = reader.next().unwrap() else { panic!("no row") };
        let numbers = [row.table, row.epoch, row.map, row.change];
        assert_eq!((numbers, row.flags, &*row.text), ([1, u32::MAX, 2, 3], flags, &b"x"[..]));
        assert!(matches!(reader.next().unwrap(), Some(ScriptRecord::Header(7, 9, b"h"))));
        assert!(reader.next().unwrap().is_none());
    }
}
