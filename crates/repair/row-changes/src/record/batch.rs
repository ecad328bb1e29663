//! What a worker tells of the events of a batch, in their order: memory is bounded, whatever a batch expands to.
//!
//! ```text
//! kind                content
//!  1 begin            offset u64, timestamp u32, event type u8, body
//!  2 query            as begin
//!  3 LOAD DATA        as begin
//!  4 XA PREPARE       as begin
//!  5 rows query       the text
//!  6 table            structure, `database`, NUL, `table`
//!  7 row              offset u64, index in the payload u64 (u64::MAX: in none), row u64, next event u64 (u64::MAX: see RowAt), timestamp u32,
//!                     flags u8, whether a REPLACE may have deleted it u8 (0, 1), whether one may have inserted it u8 (0, 1), digest of its keys u128,
//!                     what the renderer wrote
//!  8 end              nothing
//!  9 table map        see map.rs
//! 10 previous GTIDs   the body
//! 11 rotate           the name
//! 12 keys             whether the row is chosen u8 (0, 1), how many digests u8, each u128, `database`, NUL, `table`
//! 13 row part         what the renderer wrote of the row after it, so far
//! 14 lacking          nothing
//! 15 images' table    offset u64, table map
//! 16 image            see change.rs
//! 17 lost images      `database`, NUL, `table`, NUL, why
//! 18 keys below       nothing
//! 19 carried          the foreign key's number u32, offset u64, index in the payload u64 as above
//! 20 together         how many rows u64 (u64::MAX: they can't be counted), offset u64, index in the payload u64 as above, `database`, NUL,
//!                     `table`
//! 21 statement end    nothing
//! 22 undecided        why, as text
//! 23 annotation       the statement
//! 24 references       see reference.rs
//! 25 parent changed   see reference.rs
//! ```

use std::io;

use binlogz_binlog::EventType;
use binlogz_payload::Spool;

use super::change::RowImages;
use super::fields::{RecordFields, broken, or_none};
use super::frame::put;
use super::reference::{CarriedParent, RowReference};
use crate::table::Structure;

/// A record that a worker writes of an event or of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BatchRecord<'b> {
    /// The first event of a transaction.
    Begin(EventAt<'b>),
    Query(EventAt<'b>),
    /// A `LOAD DATA` that is logged as a statement.
    LoadQuery(EventAt<'b>),
    XaPrepare(EventAt<'b>),
    RowsQuery(&'b [u8]),
    /// The table of the rows after it.
    Table(Structure, RecordTable<'b>),
    Row(RowAt<'b>),
    /// A transaction's last event has passed.
    End,
    /// The table map of the rows after it.
    TableMap(&'b [u8]),
    /// The transactions before the log, as its event of previous GTIDs has them.
    PreviousGtids(&'b [u8]),
    /// The next log.
    Rotate(&'b [u8]),
    /// A row's keys, before the row if that is chosen.
    Keys(RowKeys<'b>),
    /// The front of a long text, before its row.
    RowPart(&'b [u8]),
    /// The row after it lacks columns that it would need.
    Lacking,
    /// The offset and the map of the table of the images after it.
    ImagesTable(u64, &'b [u8]),
    /// The images of a row, chosen or not, before the row if that is chosen.
    Image(RowImages<'b>),
    /// Images of a table can't be read, and why.
    LostImages(RecordTable<'b>, &'b [u8]),
    /// A change on account of which foreign keys may have changed rows that aren't in the log.
    KeysBelow,
    /// A changed row of a parent, which a foreign key carried on below the log: the key's number, and where the row is.
    Carried(u32, u64, Option<u64>),
    /// Rows of a table that isn't chosen, of a statement that may have chosen ones: how many, if they can be counted, and where they are.
    Together(Option<u64>, u64, Option<u64>, RecordTable<'b>),
    /// The last rows of a statement that may have chosen ones have passed.
    StatementEnd,
    /// Whether the row after it is chosen can't be told by its own images, and why.
    Undecided(&'b [u8]),
    /// The statement of the rows after it, as MariaDB notes it; empty after its last rows.
    Annotation(&'b [u8]),
    /// The rows that the row after it refers to, before its keys.
    References(Vec<RowReference>),
    /// A changed row of a parent, which foreign keys carried on below the log as far as chosen tables.
    ParentChanged(CarriedParent),
}

/// A table, by database and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordTable<'b> {
    pub(crate) database: &'b [u8],
    pub(crate) table: &'b [u8],
}

impl RecordTable<'_> {
    pub(crate) fn names(&self) -> (String, String) {
        let [database, table] =
            [self.database, self.table].map(|name| String::from_utf8_lossy(name).into_owned());
        (database, table)
    }

    /// `database.table`, for messages.
    pub(crate) fn shown(&self) -> String {
        let (database, table) = self.names();
        format!("{database}.{table}")
    }
}

/// An event that was passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventAt<'b> {
    pub(crate) offset: u64,
    pub(crate) timestamp: u32,
    pub(crate) event_type: EventType,
    pub(crate) body: &'b [u8],
}

/// A chosen row, and the text or bytes made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowAt<'b> {
    /// Offset in the log, in bytes, of the row's event or of the payload that holds it.
    pub(crate) offset: u64,
    /// The event's index in the payload; `None`: it is in none.
    pub(crate) inside: Option<u64>,
    /// The row's index in its event.
    pub(crate) row: u64,
    /// If the row was deleted and is the last of its event: offset of the next event, or its index in the payload.
    pub(crate) next_event: Option<u64>,
    /// The time at which the statement began, in seconds since 1970.
    pub(crate) timestamp: u32,
    pub(crate) flags: RowFlags,
    /// Whether its statement deleted it and goes on, so that a REPLACE may have deleted it.
    pub(crate) may_be_replaced: bool,
    /// Whether a REPLACE may have inserted it, if a row that it deleted is the last one before.
    pub(crate) may_replace: bool,
    /// The digest of its values in all keys; 0: it isn't known, or nothing asks for it.
    pub(crate) keys: u128,
    /// The renderer's text.
    pub(crate) text: &'b [u8],
}

/// The keys of a row, before and after its change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowKeys<'b> {
    /// Whether the row is one that was asked for, if its transaction is.
    pub(crate) is_chosen: bool,
    pub(crate) digests: Vec<u128>,
    pub(crate) table: RecordTable<'b>,
}

/// How a row's statement is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RowFlags(pub(crate) u8);

impl RowFlags {
    /// Foreign keys are not checked.
    pub(crate) const NO_FOREIGN_KEYS: u8 = 1;
    /// The session must not be strict.
    pub(crate) const LENIENT: u8 = 2;
    /// The row has no statement; its text says why.
    pub(crate) const MISSING: u8 = 4;
    /// The SQL layer kept the foreign keys, as since 9.6: rows that they changed are in the log themselves.
    pub(crate) const SQL_FOREIGN_KEYS: u8 = 8;
    /// The row's event is the last of its statement.
    pub(crate) const ENDS_STATEMENT: u8 = 16;
    /// The row was changed by an UPDATE.
    pub(crate) const UPDATE: u8 = 32;
    /// Statements that changed its table later are taken into account.
    pub(crate) const SETTLED: u8 = 64;
    /// The row stands directly after the kept row before it, which the same statement deleted.
    pub(crate) const FOLLOWS_DELETED: u8 = 128;

    pub(crate) fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    /// Foreign keys weren't checked for it, either because its session had switched that off or because a foreign key
    /// itself changed it: since 9.6 the log doesn't tell which.
    pub(crate) fn may_be_cascaded(self) -> bool {
        self.has(Self::NO_FOREIGN_KEYS) && self.has(Self::SQL_FOREIGN_KEYS)
    }

    /// A foreign key changed it on account of the row that comes after it in the same statement.
    pub(crate) fn is_cascaded(self) -> bool {
        self.may_be_cascaded() && !self.has(Self::ENDS_STATEMENT)
    }
}

impl BatchRecord<'_> {
    pub(crate) fn put(&self, spool: &mut Spool) -> io::Result<()> {
        match self {
            BatchRecord::Begin(event) => event.put(spool, 1),
            BatchRecord::Query(event) => event.put(spool, 2),
            BatchRecord::LoadQuery(event) => event.put(spool, 3),
            BatchRecord::XaPrepare(event) => event.put(spool, 4),
            BatchRecord::RowsQuery(text) => put(spool, 5, &[text]),
            BatchRecord::Table(structure, RecordTable { database, table }) => {
                put(spool, 6, &[&structure.to_bytes(), database, &[0], table])
            }
            BatchRecord::Row(row) => {
                let numbers = [or_none(row.inside), row.row.to_le_bytes(), or_none(row.next_event)];
                let front = (row.offset.to_le_bytes(), row.timestamp.to_le_bytes());
                let flags = [row.flags.0, u8::from(row.may_be_replaced), u8::from(row.may_replace)];
                let keys = row.keys.to_le_bytes();
                put(spool, 7, &[&front.0, numbers.as_flattened(), &front.1, &flags, &keys, row.text])
            }
            BatchRecord::End => put(spool, 8, &[]),
            BatchRecord::TableMap(map) => put(spool, 9, &[map]),
            BatchRecord::PreviousGtids(body) => put(spool, 10, &[body]),
            BatchRecord::Rotate(name) => put(spool, 11, &[name]),
            BatchRecord::Keys(RowKeys { is_chosen, digests, table }) => {
                let front = [u8::from(*is_chosen), digests.len() as u8];
                let bytes: Vec<_> = digests.iter().map(|digest| digest.to_le_bytes()).collect();
                put(spool, 12, &[&front, bytes.as_flattened(), table.database, &[0], table.table])
            }
            BatchRecord::RowPart(text) => put(spool, 13, &[text]),
            BatchRecord::Lacking => put(spool, 14, &[]),
            BatchRecord::ImagesTable(offset, map) => put(spool, 15, &[&offset.to_le_bytes(), map]),
            BatchRecord::Image(images) => {
                let mut bytes = Vec::new();
                images.push(&mut bytes);
                put(spool, 16, &[&bytes])
            }
            BatchRecord::LostImages(RecordTable { database, table }, why) => {
                put(spool, 17, &[database, &[0], table, &[0], why])
            }
            BatchRecord::KeysBelow => put(spool, 18, &[]),
            BatchRecord::Carried(key, offset, inside) => {
                put(spool, 19, &[&key.to_le_bytes(), &offset.to_le_bytes(), &or_none(*inside)])
            }
            BatchRecord::Together(count, offset, inside, RecordTable { database, table }) => {
                let numbers = [or_none(*count), offset.to_le_bytes(), or_none(*inside)];
                put(spool, 20, &[numbers.as_flattened(), database, &[0], table])
            }
            BatchRecord::StatementEnd => put(spool, 21, &[]),
            BatchRecord::Undecided(why) => put(spool, 22, &[why]),
            BatchRecord::Annotation(statement) => put(spool, 23, &[statement]),
            BatchRecord::References(references) => {
                let mut bytes = Vec::new();
                references.iter().for_each(|reference| reference.encode(&mut bytes));
                put(spool, 24, &[&bytes])
            }
            BatchRecord::ParentChanged(change) => {
                let mut bytes = Vec::new();
                change.encode(&mut bytes);
                put(spool, 25, &[&bytes])
            }
        }
    }
}

impl<'b> BatchRecord<'b> {
    pub(crate) fn read(kind: u8, content: &'b [u8]) -> io::Result<Self> {
        let mut fields = RecordFields::of(content);
        Ok(match kind {
            1 => BatchRecord::Begin(EventAt::read(fields)?),
            2 => BatchRecord::Query(EventAt::read(fields)?),
            3 => BatchRecord::LoadQuery(EventAt::read(fields)?),
            4 => BatchRecord::XaPrepare(EventAt::read(fields)?),
            5 => BatchRecord::RowsQuery(content),
            6 => BatchRecord::Table(Structure::from_bytes(&fields.array()?), RecordTable::read(fields)?),
            7 => BatchRecord::Row(RowAt {
                offset: fields.u64()?,
                inside: fields.number()?,
                row: fields.u64()?,
                next_event: fields.number()?,
                timestamp: fields.u32()?,
                flags: RowFlags(fields.u8()?),
                may_be_replaced: fields.u8()? == 1,
                may_replace: fields.u8()? == 1,
                keys: fields.u128()?,
                text: fields.rest(),
            }),
            8 => BatchRecord::End,
            9 => BatchRecord::TableMap(content),
            10 => BatchRecord::PreviousGtids(content),
            11 => BatchRecord::Rotate(content),
            12 => {
                let is_chosen = fields.u8()? == 1;
                let count = fields.u8()?;
                let digests = (0..count).map(|_| fields.u128()).collect::<io::Result<_>>()?;
                BatchRecord::Keys(RowKeys { is_chosen, digests, table: RecordTable::read(fields)? })
            }
            13 => BatchRecord::RowPart(content),
            14 => BatchRecord::Lacking,
            15 => BatchRecord::ImagesTable(fields.u64()?, fields.rest()),
            16 => BatchRecord::Image(RowImages::read(content)?),
            17 => {
                let table = RecordTable { database: fields.until_nul()?, table: fields.until_nul()? };
                BatchRecord::LostImages(table, fields.rest())
            }
            18 => BatchRecord::KeysBelow,
            19 => BatchRecord::Carried(fields.u32()?, fields.u64()?, fields.number()?),
            20 => {
                let count = fields.number()?;
                let offset = fields.u64()?;
                let inside = fields.number()?;
                BatchRecord::Together(count, offset, inside, RecordTable::read(fields)?)
            }
            21 => BatchRecord::StatementEnd,
            22 => BatchRecord::Undecided(content),
            23 => BatchRecord::Annotation(content),
            24 => BatchRecord::References(RowReference::take_all(fields)?),
            25 => BatchRecord::ParentChanged(CarriedParent::take(fields)?),
            _ => return Err(broken()),
        })
    }
}

impl<'b> EventAt<'b> {
    fn put(&self, spool: &mut Spool, kind: u8) -> io::Result<()> {
        let front = (self.offset.to_le_bytes(), self.timestamp.to_le_bytes());
        put(spool, kind, &[&front.0, &front.1, &[self.event_type.0], self.body])
    }

    fn read(mut fields: RecordFields<'b>) -> io::Result<Self> {
        let offset = fields.u64()?;
        let timestamp = fields.u32()?;
        let event_type = EventType(fields.u8()?);
        Ok(EventAt { offset, timestamp, event_type, body: fields.rest() })
    }
}

impl<'b> RecordTable<'b> {
    /// The names that end a record.
    fn read(mut fields: RecordFields<'b>) -> io::Result<Self> {
        Ok(RecordTable { database: fields.until_nul()?, table: fields.rest() })
    }
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::row::CellContent;
    use binlogz_payload::SpoolMemory;

    use super::super::frame::RecordReader;
    use super::*;
    use crate::choose::Operation;

    #[test]
    fn records_come_back() {
        let event = EventAt { offset: 1 << 40, timestamp: 7, event_type: EventType::QUERY, body: b"body" };
        let table = RecordTable { database: b"s", table: b"t" };
        let row = RowAt {
            offset: 4,
            inside: Some(0),
            row: 2,
            next_event: None,
            timestamp: 9,
            flags: RowFlags(RowFlags::UPDATE),
            may_be_replaced: false,
            may_replace: true,
            keys: 1 << 98,
            text: b"text",
        };
        let image = RowImages {
            operation: Operation::Delete,
            before: Some(vec![Some(CellContent::Value(b"1"))]),
            after: None,
        };
        let records = [
            BatchRecord::Begin(event),
            BatchRecord::Query(event),
            BatchRecord::LoadQuery(event),
            BatchRecord::XaPrepare(event),
            BatchRecord::RowsQuery(b"SELECT"),
            BatchRecord::Table(Structure::from_bytes(&[3; 17]), table),
            BatchRecord::Row(row),
            BatchRecord::Row(RowAt {
                inside: None,
                next_event: Some(8),
                may_be_replaced: true,
                may_replace: false,
                text: b"",
                ..row
            }),
            BatchRecord::End,
            BatchRecord::TableMap(b"map"),
            BatchRecord::PreviousGtids(b"gtids"),
            BatchRecord::Rotate(b"log.2"),
            BatchRecord::Keys(RowKeys { is_chosen: true, digests: vec![1 << 100, 2], table }),
            BatchRecord::RowPart(b"part"),
            BatchRecord::Lacking,
            BatchRecord::ImagesTable(5, b"map"),
            BatchRecord::Image(image),
            BatchRecord::LostImages(table, b"why"),
            BatchRecord::KeysBelow,
            BatchRecord::Carried(1, 2, None),
            BatchRecord::Together(None, 3, Some(4), table),
            BatchRecord::StatementEnd,
            BatchRecord::Undecided(b"why"),
            BatchRecord::Annotation(b"DELETE"),
            BatchRecord::References(vec![
                RowReference { is_after: false, key: 1, digest: Some(1 << 99) },
                RowReference { is_after: true, key: 7, digest: None },
            ]),
            BatchRecord::ParentChanged(CarriedParent {
                key: 7,
                operation: Operation::Delete,
                digest: Some(3),
            }),
        ];
        let mut spool = Spool::new(&SpoolMemory::new(1 << 10), Vec::new());
        records.iter().for_each(|record| record.put(&mut spool).unwrap());
        let mut reader = RecordReader::new(spool.reader(0..spool.size()));
        for record in &records {
            let (kind, content) = reader.next().unwrap().unwrap();
            assert_eq!(BatchRecord::read(kind, content).unwrap(), *record);
        }
        assert!(reader.is_at_end().unwrap());
        assert_eq!((table.shown(), table.names()), ("s.t".to_owned(), ("s".to_owned(), "t".to_owned())));
        BatchRecord::read(0, b"").unwrap_err();
        BatchRecord::read(1, &[0; 12]).unwrap_err();
    }
}
