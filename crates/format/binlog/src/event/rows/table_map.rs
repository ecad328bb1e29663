//! Number, name and columns of a table: required to read the row events after it.
//!
//! ```text
//! size field
//!    6 table_id           4 bytes where the post-header has only 6 (5.1 betas)
//!    2 flags
//!  LEI database_length    then the name and a NUL
//!  LEI table_length       then the name and a NUL
//!  LEI column_count
//!    n column_types       one byte a column, see column_type.rs
//!  LEI metadata_size
//!    m column_metadata    0 to 4 bytes a column, as its type has it
//!    k null_bitmap        one bit a column: may it be NULL?
//!      optional_metadata  the rest, see table_map_metadata.rs (since 8.0.1; MariaDB 10.5)
//! ```
//!
//! (Facts of MySQL 9.7.4's `Table_map_event`.)

use super::table_id::{TableId, table_id_width};
use super::{Bitmap, ColumnType, OptionalMetadata};
use crate::cursor::Cursor;
use crate::error::Result;
use crate::frame::decode_whole;
use crate::put::PutFields;

const WHAT: &str = "table map event";

/// Flags of a table map. Unknown bits survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TableMapFlags(pub u16);

impl TableMapFlags {
    /// Lengths of BIT columns are exact; every server sets it.
    pub const BIT_LEN_EXACT: Self = TableMapFlags(0x01);
    /// The statement may have met tables of other databases by foreign keys, so a replica that applies databases side by side applies
    /// its transaction alone.
    pub const REFERRED_FK_DB: Self = TableMapFlags(0x02);
    /// The table has a primary key that the server generated.
    pub const GENERATED_INVISIBLE_PRIMARY_KEY: Self = TableMapFlags(0x04);

    /// Whether all bits of `other` are set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// A decoded table map. Columns and optional metadata stay unread until asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableMapEvent<'a> {
    /// The number by which row events name the table.
    pub table_id: TableId,
    /// Flags of the table map.
    pub flags: TableMapFlags,
    /// Name of the database.
    pub database: &'a [u8],
    /// Name of the table.
    pub table: &'a [u8],
    /// A [`ColumnType`] byte for each column.
    pub column_types: &'a [u8],
    /// Extra information that the types need, read by [`TableMapEvent::columns`].
    pub column_metadata: &'a [u8],
    /// Which columns may be NULL.
    pub null_bitmap: Bitmap<'a>,
    /// Optional fields; empty before 8.0.1.
    pub optional_metadata: OptionalMetadata<'a>,
}

/// A column's type and the metadata that belong to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The type byte.
    pub column_type: ColumnType,
    /// The column's part of the metadata block, at most 4 bytes, in the type's own order.
    pub metadata: &'a [u8],
}

impl Column<'_> {
    /// The type, with ENUM and SET distinguished from CHAR; a table map writes them all as STRING.
    pub(crate) fn real_type(&self) -> ColumnType {
        match (self.column_type, self.metadata) {
            (ColumnType::STRING, [real_type @ (247 | 248), _]) => ColumnType(*real_type),
            (column_type, _) => column_type,
        }
    }
}

impl<'a> TableMapEvent<'a> {
    /// Reads a body without its checksum. `post_header_length` is the format description's for
    /// this type.
    pub fn decode(body: &'a [u8], post_header_length: u8) -> Result<Self> {
        let id_width = table_id_width(WHAT, post_header_length, 0)?;
        decode_whole(body, WHAT, |cursor| {
            let table_id = TableId::read(cursor, id_width)?;
            let flags = TableMapFlags(cursor.u16("flags")?);
            let database = cursor.name_nul("database")?;
            let table = cursor.name_nul("table")?;
            let column_count = cursor.lei("column count")?;
            let column_types = cursor.bytes_u64(column_count, "column types")?;
            let metadata_size = cursor.lei("metadata size")?;
            let column_metadata = cursor.bytes_u64(metadata_size, "column metadata")?;
            let null_bitmap = Bitmap(cursor.bytes_u64(Bitmap::size(column_count), "null bitmap")?);
            let optional_metadata = OptionalMetadata(cursor.rest());
            Ok(TableMapEvent {
                table_id,
                flags,
                database,
                table,
                column_types,
                column_metadata,
                null_bitmap,
                optional_metadata,
            })
        })
    }

    /// Only the table's number, for readers that know the table already.
    #[inline]
    pub fn decode_table_id(body: &[u8], post_header_length: u8) -> Result<TableId> {
        TableId::read(&mut Cursor::new(body, WHAT), table_id_width(WHAT, post_header_length, 0)?)
    }

    /// The body as it stands in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// A post-header length too short for the table id.
    pub fn encode(&self, post_header_length: u8) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(64 + self.column_types.len() * 4 + self.optional_metadata.0.len());
        self.table_id.write(&mut body, table_id_width(WHAT, post_header_length, 0)?);
        body.put_u16(self.flags.0);
        body.put_name_nul(self.database);
        body.put_name_nul(self.table);
        body.put_lei(self.column_types.len() as u64);
        body.put(self.column_types);
        body.put_lei(self.column_metadata.len() as u64);
        body.put(self.column_metadata);
        body.put(self.null_bitmap.0);
        body.put(self.optional_metadata.0);
        Ok(body)
    }

    /// How many columns the table has.
    pub fn column_count(&self) -> usize {
        self.column_types.len()
    }

    /// The columns in their order. An error (metadata cut short) ends the iteration; metadata left over after
    /// the last column is ignored.
    pub fn columns(&self) -> impl Iterator<Item = Result<Column<'a>>> + use<'a> {
        let mut metadata = Cursor::new(self.column_metadata, "column metadata");
        let mut failed = false;
        self.column_types.iter().map_while(move |&column_type| {
            if failed {
                return None;
            }
            let column = Column::read(ColumnType(column_type), &mut metadata);
            failed = column.is_err();
            Some(column)
        })
    }
}

impl<'a> Column<'a> {
    fn read(column_type: ColumnType, metadata: &mut Cursor<'a>) -> Result<Self> {
        let size = match column_type {
            ColumnType::TYPED_ARRAY => match metadata.peek().first().copied().map(ColumnType) {
                // The length of a string inside an array has three bytes.
                Some(ColumnType::VARCHAR) => 1 + 3,
                element => 1 + element.map_or(0, ColumnType::metadata_size),
            },
            column_type => column_type.metadata_size(),
        };
        Ok(Column { column_type, metadata: metadata.bytes(size, "metadata of a column")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = b"\x5a\0\0\0\0\0\x01\0\x04test\0\x01t\0\x04\x03\xfe\x14\x0f\x07\
        \xf7\x01\x0f\x05\0\0\x50\x0e\x01\x01\x80";

    fn event() -> TableMapEvent<'static> {
        TableMapEvent {
            table_id: TableId(90),
            flags: TableMapFlags::BIT_LEN_EXACT,
            database: b"test",
            table: b"t",
            column_types: &[3, 254, 20, 15],
            column_metadata: &[247, 1, 15, 5, 0, 0, 80],
            null_bitmap: Bitmap(&[0b1110]),
            optional_metadata: OptionalMetadata(&[1, 1, 0x80]),
        }
    }

    #[test]
    fn both_directions_agree() {
        assert_eq!(TableMapEvent::decode(BODY, 8).unwrap(), event());
        assert_eq!(event().encode(8).unwrap(), BODY);
        assert_eq!(TableMapEvent::decode_table_id(BODY, 8).unwrap(), TableId(90));
        let short_id = [&BODY[..4], &BODY[6..]].concat();
        assert_eq!(TableMapEvent::decode(&short_id, 6).unwrap(), event());
        assert_eq!(event().encode(6).unwrap(), short_id);
    }

    #[test]
    fn cut_before_the_optional_metadata_it_is_an_error() {
        for length in 0..BODY.len() - 3 {
            assert!(TableMapEvent::decode(&BODY[..length], 8).is_err(), "{length}");
        }
    }

    #[test]
    fn metadata_are_dealt_out_to_the_columns() {
        // One byte of the VARCHAR is missing.
        let columns: Vec<_> = event().columns().collect();
        assert_eq!(columns.len(), 4);
        assert_eq!(columns[0].as_ref().unwrap().metadata, b"");
        assert_eq!(columns[1].as_ref().unwrap().real_type(), ColumnType::ENUM);
        assert_eq!(columns[2].as_ref().unwrap().metadata, [15, 5, 0, 0]);
        assert!(columns[3].is_err());
    }

    #[test]
    fn a_column_count_that_lies_is_noticed() {
        let mut body = BODY.to_vec();
        body[17] = 250;
        let error = TableMapEvent::decode(&body, 8).unwrap_err();
        assert_eq!(error.to_string(), "table map event: column types needs 250 bytes, 16 are left");
        assert!(TableMapEvent::decode(BODY, 7).is_err(), "post-header length");
    }
}
