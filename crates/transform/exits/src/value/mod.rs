//! Masks the bytes of one value, by its column's type. What comes out fits the column, and is the same for the same value and key.
//!
//! | mask | types |
//! |---|---|
//! | hash | numbers, dates, ENUM, SET, BIT: a keyed permutation of the type's values, so that different values stay different; text and bytes: a keyed hash, as long as the column allows |
//! | partial | text |
//! | year | dates and times |
//! | fixed | all but GEOMETRY and VECTOR |
//! | json | JSON |
//!
//! NULL, 0, an empty text and a zero date stay as they are: they stand for "none", and are what columns are filled with by default.

mod calendar;
mod fixed;
mod json;
mod number;
mod permutation;
mod temporal;
mod text;

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::row::{Cell, CellContent, ColumnClass, ColumnKind, ColumnSchema, Value};

use crate::policy::ColumnMask;
use crate::secret::MaskKey;

/// A mask made for one column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueMask {
    Hash {
        ignores_case: bool,
    },
    Null,
    /// The bytes of every value.
    Fixed(Vec<u8>),
    Partial {
        first: usize,
        last: usize,
    },
    Year,
    Json(crate::policy::JsonRule),
}

impl ValueMask {
    /// The mask for a column.
    ///
    /// # Errors
    ///
    /// Why its values can't be masked so.
    pub(crate) fn of(mask: &ColumnMask, column: &ColumnSchema) -> Result<Self, String> {
        match mask {
            ColumnMask::Null if column.nullable => Ok(ValueMask::Null),
            ColumnMask::Null => Err("it is NOT NULL, expected another mask than null".to_owned()),
            ColumnMask::Hash { ignores_case } => {
                hash_fits(column)?;
                Ok(ValueMask::Hash { ignores_case: *ignores_case })
            }
            ColumnMask::Fixed(text) => fixed::bytes(column, text).map(ValueMask::Fixed),
            ColumnMask::Partial { first, last } if is_text(column) => {
                Ok(ValueMask::Partial { first: *first, last: *last })
            }
            ColumnMask::Partial { .. } => Err(format!("it is {}, and partial is for text", shown(column))),
            ColumnMask::Year if temporal::has_year(column.kind) => Ok(ValueMask::Year),
            ColumnMask::Year => Err(format!("it is {}, and year is for dates", shown(column))),
            ColumnMask::Json(rule) if column.is_json() => Ok(ValueMask::Json(rule.clone())),
            ColumnMask::Json(_) => Err(format!("it is {}, and json is for JSON columns", shown(column))),
        }
    }

    /// Masks a value that isn't NULL; `None`: it becomes NULL.
    ///
    /// # Errors
    ///
    /// Bytes that the column's type can't have.
    pub(crate) fn masked(
        &self,
        key: Option<&MaskKey>,
        cell: &Cell<'_>,
    ) -> Result<Option<Vec<u8>>, BinlogError> {
        let CellContent::Value(bytes) = cell.content else { return Ok(None) };
        let column = cell.column;
        match self {
            ValueMask::Null => Ok(None),
            ValueMask::Fixed(fixed) => Ok(Some(fixed.clone())),
            ValueMask::Partial { first, last } => Ok(Some(text::partial(column, bytes, (*first, *last)))),
            ValueMask::Year => temporal::year(cell.value()?, column.kind).map(Some),
            ValueMask::Json(rule) => json::by_rule(key, rule, bytes).map(Some),
            ValueMask::Hash { ignores_case } => match key {
                Some(key) => hashed(key, column, (cell.value()?, bytes), *ignores_case).map(Some),
                // A policy with hashes has a key.
                None => Ok(None),
            },
        }
    }
}

/// Whether a column's values can be replaced by hashes.
fn hash_fits(column: &ColumnSchema) -> Result<(), String> {
    match column.kind.class() {
        ColumnClass::Geometry => Err("it is GEOMETRY, expected null or leave-out".to_owned()),
        ColumnClass::Bit if column.kind == (ColumnKind::Bit { bits: 1 }) => {
            Err("it is BIT(1), of which a hash hides nothing, expected fixed or leave-out".to_owned())
        }
        ColumnClass::Member if column.members.is_none() => {
            Err("its members aren't known: binlog_row_metadata=FULL or --schema tells them".to_owned())
        }
        ColumnClass::Integer | ColumnClass::Decimal | ColumnClass::Float | ColumnClass::Bit => Ok(()),
        ColumnClass::Year | ColumnClass::Date | ColumnClass::Time(_) => Ok(()),
        ColumnClass::DateTime(_) | ColumnClass::Timestamp(_) => Ok(()),
        ColumnClass::Member | ColumnClass::String | ColumnClass::Json => Ok(()),
        ColumnClass::Vector | ColumnClass::Hidden => Ok(()),
    }
}

/// Whether different values of a column may get one hash: short texts and bytes, and texts that differ only in case. Values of other
/// types don't.
pub(crate) fn may_share_hash(column: &ColumnSchema, ignores_case: bool) -> bool {
    is_string(column) && (text::has_short_hash(column) || ignores_case && text::may_tell_case(column))
}

fn is_string(column: &ColumnSchema) -> bool {
    column.kind.class() == ColumnClass::String
}

fn is_text(column: &ColumnSchema) -> bool {
    is_string(column) && !text::is_binary(column)
}

/// A column's type for people.
fn shown(column: &ColumnSchema) -> String {
    column.column_type.to_string()
}

/// The hash of a value, as the column stores it.
fn hashed(
    key: &MaskKey,
    column: &ColumnSchema,
    (value, bytes): (Value<'_>, &[u8]),
    ignores_case: bool,
) -> Result<Vec<u8>, BinlogError> {
    Ok(match value {
        Value::Null => Vec::new(),
        Value::Int(_) | Value::Uint(_) => number::hashed_integer(key, bytes),
        Value::Float(number) => number::hashed_float(key, number)?,
        Value::Double(number) => number::hashed_double(key, number)?,
        Value::Decimal(decimal) => number::hashed_decimal(key, decimal),
        Value::Bit(bits) => number::hashed_bits(key, column.kind, bits),
        Value::Enum(number) => number::hashed_member(key, column, number, bytes.len()),
        Value::Set(bits) => number::hashed_members(key, column, bits, bytes.len()),
        Value::Year(_) => number::hashed_year(key, bytes),
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) | Value::Timestamp(_) => {
            temporal::hashed(key, value, column.kind)?
        }
        Value::Bytes(_) => text::hashed(key, column, bytes, ignores_case),
        Value::Json(document) => json::hashed(key, document)?,
        // Differences are applied before a value comes here.
        Value::JsonDiffs(_) | Value::Geometry(_) => Vec::new(),
        Value::Vector(_) => number::hashed_vector(key, bytes),
    })
}

#[cfg(test)]
mod tests {
    use binlogz_binlog::EventType;
    use binlogz_binlog::event::{
        Bitmap, OptionalMetadata, RowsEvent, RowsFlags, ServerFamily, TableId, TableMapEvent, TableMapFlags,
    };
    use binlogz_binlog::row::{RowDecoder, TableSchema};

    use super::*;

    fn table(column_type: u8, metadata: &[u8], optional: &[u8]) -> TableSchema {
        let map = TableMapEvent {
            table_id: TableId(1),
            flags: TableMapFlags::default(),
            database: b"test",
            table: b"t",
            column_types: &[column_type],
            column_metadata: metadata,
            null_bitmap: Bitmap(&[1]),
            optional_metadata: OptionalMetadata(optional),
        };
        TableSchema::new(&map, ServerFamily::Mysql).unwrap()
    }

    /// A column of a table that has no other.
    pub(super) fn column(column_type: u8, metadata: &[u8], optional: &[u8]) -> ColumnSchema {
        table(column_type, metadata, optional).columns()[0].clone()
    }

    const HASH: ColumnMask = ColumnMask::Hash { ignores_case: false };

    /// Values of each type, as rows hold them; their hashes can be read and written as values of the same type.
    #[test]
    fn hashes_of_every_type_are_values_of_it() {
        let key = MaskKey::new(b"a key of sixteen");
        for (column_type, metadata, optional, stored) in [
            (1, &[][..], &[][..], &b"\x05"[..]),
            (2, &[], &[], b"\x05\x01"),
            (9, &[], &[], b"\x05\x01\x02"),
            (3, &[], &[], b"\x05\x01\x02\x03"),
            (8, &[], &[], b"\x05\x01\x02\x03\x04\x05\x06\x07"),
            (4, &[4], &[], &1.5_f32.to_le_bytes()),
            (5, &[8], &[], &1.5_f64.to_le_bytes()),
            (246, &[4, 2], &[], &[0x8c, 0x22]),
            (16, &[4, 1], &[], &[0x0a, 0xaa]),
            (13, &[], &[], &[120]),
            (10, &[], &[], &[0x5d, 0xc8, 0x0f]),
            (18, &[3], &[], &[0x99, 0xa5, 0xba, 0xd1, 0x9d, 0x11, 0x30]),
            (17, &[6], &[], &[0x5e, 0x5a, 0, 1, 1, 2, 3]),
            (19, &[0], &[], &[0x80, 0xb1, 0x9d]),
            (12, &[], &[], &20_261_129_130_509_u64.to_le_bytes()),
            (7, &[], &[], &[1, 0, 0x5a, 0x5e]),
            (11, &[], &[], &[0x40, 0xe2, 0x01]),
            (254, &[247, 1], &[6, 7, 3, 1, b'a', 1, b'b', 1, b'c'], &[2]),
            (254, &[248, 1], &[5, 7, 3, 1, b'a', 1, b'b', 1, b'c'], &[5]),
            (254, &[254, 40], &[2, 1, 45], b"\x03abc"),
            (15, &[40, 0], &[2, 1, 45], b"\x03abc"),
            (252, &[2], &[2, 1, 8], b"\x03\0abc"),
            (245, &[4], &[], b"\x02\0\0\0\x04\x01"),
            (242, &[4], &[13, 1, 2], b"\x08\0\0\0\0\0\x80\x3f\0\0\x80\x3f"),
        ] {
            let table = table(column_type, metadata, optional);
            let mask = ValueMask::of(&HASH, &table.columns()[0]).unwrap();
            let rows = [b"\0", stored].concat();
            let masked = masked(&table, &mask, &key, &rows).unwrap();
            let mut again = Vec::new();
            table.put_image(&[Some(CellContent::Value(&masked))], false, &mut again).unwrap();
            let own = in_rows(&table, &rows, |cell| cell.content == CellContent::Value(&masked));
            assert!(!own, "{column_type}: {masked:?}");
            let value = in_rows(&table, &again, |cell| format!("{:?}", cell.value().unwrap()));
            println!("{column_type}: {value}");
        }
    }

    fn in_rows<T>(table: &TableSchema, rows: &[u8], look: impl FnOnce(&Cell<'_>) -> T) -> T {
        let event = RowsEvent {
            event_type: EventType::WRITE_ROWS,
            table_id: TableId(1),
            flags: RowsFlags::STMT_END,
            extra_data: b"",
            width: 1,
            columns: Bitmap(&[1]),
            columns_after: None,
            rows,
        };
        let mut decoder = RowDecoder::new();
        let mut decoded = decoder.rows(table, &event).unwrap();
        let row = decoded.next_row().unwrap().unwrap();
        look(&row.after.unwrap().cell(0).unwrap())
    }

    fn masked(
        table: &TableSchema,
        mask: &ValueMask,
        key: &MaskKey,
        rows: &[u8],
    ) -> Result<Vec<u8>, BinlogError> {
        in_rows(table, rows, |cell| Ok(mask.masked(Some(key), cell)?.unwrap()))
    }

    #[test]
    fn masks_that_a_type_cannot_have_are_refused() {
        let year = ColumnMask::Year;
        let partial = ColumnMask::Partial { first: 0, last: 2 };
        for (mask, column_type, metadata, optional) in [
            (&HASH, 255, &[4][..], &[][..]),
            (&HASH, 16, &[1, 0], &[]),
            (&HASH, 254, &[247, 1], &[]),
            (&year, 3, &[], &[]),
            (&partial, 3, &[], &[]),
            (&partial, 15, &[40, 0], &[2, 1, 63]),
            (&ColumnMask::Json(Default::default()), 3, &[], &[]),
        ] {
            assert!(ValueMask::of(mask, &column(column_type, metadata, optional)).is_err());
        }
        let mut column = column(3, &[], &[]);
        assert!(ValueMask::of(&ColumnMask::Null, &column).is_ok());
        column.nullable = false;
        assert!(ValueMask::of(&ColumnMask::Null, &column).unwrap_err().contains("NOT NULL"));
    }
}
