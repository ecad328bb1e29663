//! What a worker leaves of a batch for the fold, and the net changes of rows that wait in runs and in spools.
//!
//! ```text
//! kind record   fields
//!    1 begin    8 offset · 4 timestamp · 1 event type · n body
//!    2 event    4 timestamp · 1 event type · 2 flags · n body
//!    3 table    n the table (see FoldTableFields), to which the changes after it refer by its place among those of the batch
//!    4 change   4 table · side before · side after
//!    5 border   1 class · n words: why the transaction can't be folded
//!    6 end
//!    7 unread   changes that can't be read stand before it, or soon after it
//!    8 previous n body of the event with the GTIDs before the log
//!    9 statement's end
//!   10 number   4 table · 4 column · 8 with a sign · 8 without one
//! side          1 is there · 16 digest of the columns of unique keys, 0: not known · 4+n key · 4+n image
//! ordered row   4 table · 4+n image before · n image after
//! net row       4+n key · 8 copies · image first · image last
//! image         1 is there · 16 digest · 4+n bytes
//! ```

use std::io;

use binlogz_binlog::put::PutFields;
use binlogz_binlog::{EventType, HeaderFlags};
use binlogz_payload::Spool;

use super::fields::{RecordFields, broken, put_sized};
use super::frame::put;

const BEGIN: u8 = 1;
const EVENT: u8 = 2;
const TABLE: u8 = 3;
const CHANGE: u8 = 4;
const BORDER: u8 = 5;
const END: u8 = 6;
const UNREAD: u8 = 7;
const PREVIOUS: u8 = 8;
const STATEMENT_END: u8 = 9;
const NUMBER: u8 = 10;

/// An event that goes through as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PassedEvent<'b> {
    pub(crate) timestamp: u32,
    pub(crate) event_type: EventType,
    pub(crate) flags: HeaderFlags,
    pub(crate) body: &'b [u8],
}

/// A row on one side of its change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoldSide<'b> {
    /// Of the columns of all unique keys; 0: these aren't known.
    pub(crate) digest: u128,
    /// Empty: the table has no key that is known.
    pub(crate) key: &'b [u8],
    pub(crate) image: &'b [u8],
}

/// The two sides of a row's change.
pub(crate) type FoldSides<'b> = [Option<FoldSide<'b>>; 2];

/// What is left of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoldRecord<'b> {
    /// A transaction begins, where its log has this offset.
    Begin(u64, PassedEvent<'b>),
    Event(PassedEvent<'b>),
    Table(&'b [u8]),
    Change(u32, FoldSides<'b>),
    /// Its transaction can't be folded: the class of the reason, and words.
    Border(u8, &'b [u8]),
    End,
    /// Changes that can't be read stand before it, or soon after it.
    Unread,
    /// The body of the event with the GTIDs before the log.
    Previous(&'b [u8]),
    /// The last of a statement's rows stand before it.
    StatementEnd,
    /// The largest number that rows of a table gave one of its columns, as one with a sign and as one without.
    Number(u32, u32, i64, u64),
}

impl<'b> FoldRecord<'b> {
    pub(crate) fn put(self, spool: &mut Spool) -> io::Result<()> {
        match self {
            FoldRecord::Begin(offset, event) => {
                let front = event.front();
                put(spool, BEGIN, &[&offset.to_le_bytes(), &front, event.body])
            }
            FoldRecord::Event(event) => put(spool, EVENT, &[&event.front(), event.body]),
            FoldRecord::Table(table) => put(spool, TABLE, &[table]),
            FoldRecord::Change(table, sides) => {
                let [before, after] = sides.map(|side| {
                    let FoldSide { digest, key, image } =
                        side.unwrap_or(FoldSide { digest: 0, key: b"", image: b"" });
                    let sizes = [key, image].map(|bytes| (bytes.len() as u32).to_le_bytes());
                    ([u8::from(side.is_some())], digest.to_le_bytes(), sizes, [key, image])
                });
                let (is_before, digest_before, [key_size, size], [key, image]) = &before;
                let (is_after, digest_after, [key_size_after, size_after], [key_after, image_after]) = &after;
                let number = table.to_le_bytes();
                let fields: [&[u8]; 13] = [
                    &number,
                    is_before,
                    digest_before,
                    key_size,
                    key,
                    size,
                    image,
                    is_after,
                    digest_after,
                    key_size_after,
                    key_after,
                    size_after,
                    image_after,
                ];
                put(spool, CHANGE, &fields)
            }
            FoldRecord::Border(class, words) => put(spool, BORDER, &[&[class], words]),
            FoldRecord::End => put(spool, END, &[]),
            FoldRecord::Unread => put(spool, UNREAD, &[]),
            FoldRecord::Previous(body) => put(spool, PREVIOUS, &[body]),
            FoldRecord::StatementEnd => put(spool, STATEMENT_END, &[]),
            FoldRecord::Number(table, column, signed, unsigned) => put(
                spool,
                NUMBER,
                &[
                    &table.to_le_bytes(),
                    &column.to_le_bytes(),
                    &signed.to_le_bytes(),
                    &unsigned.to_le_bytes(),
                ],
            ),
        }
    }

    pub(crate) fn read(kind: u8, content: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(content);
        Ok(match kind {
            BEGIN => {
                let offset = fields.u64()?;
                FoldRecord::Begin(offset, PassedEvent::read(fields)?)
            }
            EVENT => FoldRecord::Event(PassedEvent::read(fields)?),
            TABLE => FoldRecord::Table(content),
            CHANGE => {
                let table = fields.u32()?;
                let sides = [side(&mut fields)?, side(&mut fields)?];
                fields.finish()?;
                FoldRecord::Change(table, sides)
            }
            BORDER => {
                let class = fields.u8()?;
                FoldRecord::Border(class, fields.rest())
            }
            END => FoldRecord::End,
            UNREAD => FoldRecord::Unread,
            PREVIOUS => FoldRecord::Previous(content),
            STATEMENT_END => FoldRecord::StatementEnd,
            NUMBER => FoldRecord::Number(fields.u32()?, fields.u32()?, fields.u64()? as i64, fields.u64()?),
            _ => return Err(broken()),
        })
    }
}

impl<'b> PassedEvent<'b> {
    fn front(&self) -> [u8; 7] {
        let [a, b, c, d] = self.timestamp.to_le_bytes();
        let [low, high] = self.flags.0.to_le_bytes();
        [a, b, c, d, self.event_type.0, low, high]
    }

    fn read(mut fields: RecordFields<'b>) -> io::Result<Self> {
        let timestamp = fields.u32()?;
        let event_type = EventType(fields.u8()?);
        let flags = HeaderFlags(fields.u16()?);
        Ok(PassedEvent { timestamp, event_type, flags, body: fields.rest() })
    }
}

fn side<'b>(fields: &mut RecordFields<'b>) -> io::Result<Option<FoldSide<'b>>> {
    let is_there = fields.u8()? != 0;
    let digest = fields.u128()?;
    let key = fields.sized()?;
    let image = fields.sized()?;
    Ok(is_there.then_some(FoldSide { digest, key, image }))
}

/// A table as its changes are folded.
///
/// ```text
/// size field
///    1 whether a key is known
///  4+n database · 4+n name
///    n map, as it was kept
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FoldTableFields<'b> {
    pub(crate) has_key: bool,
    pub(crate) database: &'b [u8],
    pub(crate) table: &'b [u8],
    pub(crate) map: &'b [u8],
}

impl<'b> FoldTableFields<'b> {
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.has_key)];
        put_sized(&mut bytes, self.database);
        put_sized(&mut bytes, self.table);
        bytes.put(self.map);
        bytes
    }

    pub(crate) fn read(bytes: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(bytes);
        let has_key = fields.u8()? != 0;
        let database = fields.sized()?;
        let table = fields.sized()?;
        Ok(FoldTableFields { has_key, database, table, map: fields.rest() })
    }
}

/// A net change that waits for its turn; an image that isn't there is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OrderedRow<'b> {
    pub(crate) table: u32,
    pub(crate) before: &'b [u8],
    pub(crate) after: &'b [u8],
}

impl<'b> OrderedRow<'b> {
    pub(crate) fn put(self, spool: &mut Spool) -> io::Result<()> {
        let size = self.before.len() as u32;
        put(spool, CHANGE, &[&self.table.to_le_bytes(), &size.to_le_bytes(), self.before, self.after])
    }

    pub(crate) fn read(content: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(content);
        let table = fields.u32()?;
        let before = fields.sized()?;
        Ok(OrderedRow { table, before, after: fields.rest() })
    }
}

/// An image of a row that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NetImage {
    pub(crate) digest: u128,
    pub(crate) bytes: Box<[u8]>,
}

/// The net change of the row with a key, so far: as it was before the first change, and as it is after the last one. Of a row of a table
/// without a key, the image is the key, and it is counted how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct NetRow {
    pub(crate) first: Option<NetImage>,
    pub(crate) last: Option<NetImage>,
    pub(crate) copies: i64,
}

impl NetRow {
    pub(crate) fn put(&self, key: &[u8], spool: &mut Spool) -> io::Result<()> {
        let mut fields = Vec::new();
        put_sized(&mut fields, key);
        fields.put(&self.copies.to_le_bytes());
        for image in [&self.first, &self.last] {
            fields.put_u8(u8::from(image.is_some()));
            fields.put(&image.as_ref().map_or(0, |image| image.digest).to_le_bytes());
            put_sized(&mut fields, image.as_ref().map_or(b"", |image| &image.bytes));
        }
        put(spool, CHANGE, &[&fields])
    }

    /// The key and the row.
    pub(crate) fn read(content: &[u8]) -> io::Result<(Box<[u8]>, Self)> {
        let mut fields = RecordFields::of(content);
        let key = fields.sized()?.into();
        let copies = fields.u64()?.cast_signed();
        let first = image(&mut fields)?;
        let last = image(&mut fields)?;
        fields.finish()?;
        Ok((key, NetRow { first, last, copies }))
    }
}

fn image(fields: &mut RecordFields<'_>) -> io::Result<Option<NetImage>> {
    let is_there = fields.u8()? != 0;
    let digest = fields.u128()?;
    let bytes = fields.sized()?;
    Ok(is_there.then(|| NetImage { digest, bytes: bytes.into() }))
}

#[cfg(test)]
mod tests {
    use binlogz_payload::SpoolMemory;

    use super::super::frame::{RecordReader, each_record};
    use super::*;

    #[test]
    fn records_come_back() {
        let body = &b"body"[..];
        let event =
            PassedEvent { timestamp: 7, event_type: EventType::QUERY, flags: HeaderFlags(0x104), body };
        let side = FoldSide { digest: 1 << 90, key: b"k", image: b"image" };
        let records = [
            FoldRecord::Begin(1 << 40, event),
            FoldRecord::Event(event),
            FoldRecord::Table(b"table"),
            FoldRecord::Change(3, [Some(side), None]),
            FoldRecord::Change(4, [None, Some(side)]),
            FoldRecord::Border(2, b"why"),
            FoldRecord::End,
            FoldRecord::Unread,
            FoldRecord::Previous(body),
            FoldRecord::StatementEnd,
        ];
        let mut spool = Spool::new(&SpoolMemory::new(1 << 20), Vec::new());
        records.iter().for_each(|record| record.put(&mut spool).unwrap());
        let mut reader = RecordReader::new(spool.reader(0..spool.size()));
        for record in records {
            let (kind, content) = reader.next().unwrap().unwrap();
            assert_eq!(FoldRecord::read(kind, content).unwrap(), record);
        }
        assert!(reader.next().unwrap().is_none());
        for memory in [0, 64 << 10] {
            let mut spool = Spool::new(&SpoolMemory::new(memory), Vec::new());
            records.iter().for_each(|record| record.put(&mut spool).unwrap());
            let mut rest = records.iter();
            let read = each_record(&spool, |kind, content| {
                assert_eq!(Some(&FoldRecord::read(kind, content)?), rest.next());
                Ok::<_, io::Error>(())
            });
            assert!(read.is_ok() && rest.next().is_none(), "{memory}");
        }
        FoldRecord::read(10, b"").unwrap_err();
        FoldRecord::read(CHANGE, b"\x01\0\0").unwrap_err();
    }

    #[test]
    fn net_rows_come_back() {
        let first = Some(NetImage { digest: 5, bytes: (*b"one").into() });
        let row = NetRow { first, last: None, copies: -3 };
        let mut spool = Spool::new(&SpoolMemory::new(1 << 20), Vec::new());
        row.put(b"key", &mut spool).unwrap();
        let mut reader = RecordReader::new(spool.reader(0..spool.size()));
        let (_, content) = reader.next().unwrap().unwrap();
        assert_eq!(NetRow::read(content).unwrap(), ((*b"key").into(), row));
    }

    #[test]
    fn ordered_rows_come_back() {
        let row = OrderedRow { table: 3, before: b"one", after: b"other" };
        let mut spool = Spool::new(&SpoolMemory::new(1 << 20), Vec::new());
        row.put(&mut spool).unwrap();
        let mut reader = RecordReader::new(spool.reader(0..spool.size()));
        let (_, content) = reader.next().unwrap().unwrap();
        assert_eq!(OrderedRow::read(content).unwrap(), row);
    }

    #[test]
    fn tables_come_back() {
        let table = FoldTableFields { has_key: true, database: b"d", table: b"t", map: b"map" };
        assert_eq!(FoldTableFields::read(&table.to_bytes()).unwrap(), table);
        FoldTableFields::read(b"\x01\xff").unwrap_err();
    }
}
