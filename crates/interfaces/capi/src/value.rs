//! The values of columns as C's.
//!
//! ```text
//! integers                        INTEGER; unsigned: NATURAL
//! YEAR, BIT                       NATURAL
//! FLOAT, DOUBLE                   REAL
//! TIMESTAMP                       TIMESTAMP, microseconds since 1970 in UTC
//! DECIMAL, DATE, TIME, DATETIME   TEXT, as SQL writes them
//! CHAR, VARCHAR, TEXT             TEXT in UTF-8; BYTES if they aren't valid in their character set
//! BINARY, BLOB, GEOMETRY          BYTES; geometry: the SRID in four bytes, then WKB
//! ENUM, SET                       TEXT; NATURAL where neither the log nor a schema names the members
//! JSON                            TEXT
//! VECTOR                          BYTES: little-endian floats
//! ```

use std::collections::HashMap;
use std::ptr;

use binlogz_binlog::row::{Cell, ColumnSchema, Row, Value};

use crate::status::{CallTrouble, Result};

/// The kind of a value.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum binlogz_kind {
    /// The image doesn't have the column: binlog_row_image isn't FULL, or there is no such image.
    BINLOGZ_ABSENT = 0,
    /// NULL.
    BINLOGZ_NULL = 1,
    /// A signed integer: integer. Before 8.0.1 logs don't say which integers are unsigned.
    BINLOGZ_INTEGER = 2,
    /// An unsigned integer, BIT, YEAR, or an ENUM or SET whose members neither the log nor a schema names: natural.
    BINLOGZ_NATURAL = 3,
    /// FLOAT or DOUBLE: real.
    BINLOGZ_REAL = 4,
    /// TIMESTAMP: integer, microseconds since 1970-01-01 00:00:00 UTC; 0 is the zero date.
    BINLOGZ_TIMESTAMP = 5,
    /// bytes and length, in UTF-8, without a NUL at the end: character strings, DECIMAL, DATE, TIME, DATETIME, ENUM, SET, JSON.
    BINLOGZ_TEXT = 6,
    /// bytes and length: BINARY, BLOB, GEOMETRY (SRID and WKB), VECTOR (little-endian floats), and strings that aren't valid in
    /// their character set.
    BINLOGZ_BYTES = 7,
}

/// A value. kind says which of the others it has; they are 0 and NULL otherwise.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct binlogz_value {
    /// The kind of the value.
    pub kind: binlogz_kind,
    /// The value of BINLOGZ_INTEGER and BINLOGZ_TIMESTAMP.
    pub integer: i64,
    /// The value of BINLOGZ_NATURAL.
    pub natural: u64,
    /// The value of BINLOGZ_REAL.
    pub real: f64,
    /// The value of BINLOGZ_TEXT and BINLOGZ_BYTES; it holds until the next change.
    pub bytes: *const u8,
    /// How many bytes.
    pub length: usize,
}

impl binlogz_value {
    /// The value of a column that isn't there.
    pub(crate) const ABSENT: Self = Self::of(binlogz_kind::BINLOGZ_ABSENT);

    const fn of(kind: binlogz_kind) -> Self {
        binlogz_value { kind, integer: 0, natural: 0, real: 0.0, bytes: ptr::null(), length: 0 }
    }
}

/// The texts and bytes of the values of one change: they stay where they are until the next one. A value that is asked for again
/// is the same one.
#[derive(Default)]
pub(crate) struct ValueTexts(HashMap<(ImageSide, usize), KeptBytes>);

/// The image that a value is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ImageSide {
    Before,
    After,
}

/// The text or the bytes of a value.
pub(crate) struct KeptBytes {
    kind: binlogz_kind,
    bytes: Box<[u8]>,
}

/// A value before it has its place.
pub(crate) enum UnplacedValue {
    /// One that points to nothing.
    Whole(binlogz_value),
    /// One that points to these.
    Bytes(KeptBytes),
}

impl ValueTexts {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The value of a column, which is made if it wasn't asked for before.
    pub(crate) fn value(
        &mut self,
        place: (ImageSide, usize),
        make: impl FnOnce() -> Result<UnplacedValue>,
    ) -> Result<binlogz_value> {
        if let Some(kept) = self.0.get(&place) {
            return Ok(kept.value());
        }
        Ok(match make()? {
            UnplacedValue::Whole(value) => value,
            UnplacedValue::Bytes(bytes) => self.0.entry(place).or_insert(bytes).value(),
        })
    }
}

impl KeptBytes {
    fn value(&self) -> binlogz_value {
        let (bytes, length) = (self.bytes.as_ptr(), self.bytes.len());
        binlogz_value { bytes, length, ..binlogz_value::of(self.kind) }
    }
}

impl From<binlogz_value> for UnplacedValue {
    fn from(value: binlogz_value) -> Self {
        UnplacedValue::Whole(value)
    }
}

fn keep(kind: binlogz_kind, bytes: impl Into<Box<[u8]>>) -> UnplacedValue {
    UnplacedValue::Bytes(KeptBytes { kind, bytes: bytes.into() })
}

/// A column of an image that may not have it.
pub(crate) fn value(row: &Row<'_, '_>, cell: Option<Cell<'_>>) -> Result<UnplacedValue> {
    use binlogz_kind::{
        BINLOGZ_BYTES, BINLOGZ_INTEGER, BINLOGZ_NATURAL, BINLOGZ_NULL, BINLOGZ_REAL, BINLOGZ_TEXT,
        BINLOGZ_TIMESTAMP,
    };
    let Some(cell) = cell else { return Ok(binlogz_value::ABSENT.into()) };
    let integer = |kind, integer| UnplacedValue::from(binlogz_value { integer, ..binlogz_value::of(kind) });
    let natural =
        |natural| UnplacedValue::from(binlogz_value { natural, ..binlogz_value::of(BINLOGZ_NATURAL) });
    let real = |real| UnplacedValue::from(binlogz_value { real, ..binlogz_value::of(BINLOGZ_REAL) });
    Ok(match cell.value().map_err(CallTrouble::input)? {
        Value::Int(number) => integer(BINLOGZ_INTEGER, number),
        Value::Uint(number) | Value::Bit(number) => natural(number),
        Value::Year(year) => natural(year.into()),
        Value::Float(number) => real(number.into()),
        Value::Double(number) => real(number),
        Value::Timestamp(time) => {
            let micros = i64::from(time.seconds()) * 1_000_000 + i64::from(time.fraction().microseconds());
            integer(BINLOGZ_TIMESTAMP, micros)
        }
        Value::Decimal(number) => keep(BINLOGZ_TEXT, number.text().as_bytes()),
        Value::Date(date) => keep(BINLOGZ_TEXT, date.text().as_bytes()),
        Value::Time(time) => keep(BINLOGZ_TEXT, time.text().as_bytes()),
        Value::DateTime(time) => keep(BINLOGZ_TEXT, time.text().as_bytes()),
        Value::Enum(number) => match cell.column.member(number) {
            Some(name) => keep(BINLOGZ_TEXT, member(cell.column, name).into_bytes()),
            // The empty value, which an invalid one became.
            None if number == 0 && cell.column.members.is_some() => keep(BINLOGZ_TEXT, []),
            None => natural(number.into()),
        },
        Value::Set(bits) => match names(cell.column, bits) {
            Some(names) => keep(BINLOGZ_TEXT, names.into_bytes()),
            None => natural(bits),
        },
        Value::Bytes(bytes) => match cell.text() {
            Some(text) => keep(BINLOGZ_TEXT, text.as_bytes()),
            // Before 8.0.1 logs name no character sets.
            None if cell.column.collation.is_none() && std::str::from_utf8(bytes).is_ok() => {
                keep(BINLOGZ_TEXT, bytes)
            }
            None => keep(BINLOGZ_BYTES, cell.column.padded(bytes)),
        },
        Value::Geometry(bytes) => keep(BINLOGZ_BYTES, bytes),
        Value::Vector(vector) => keep(BINLOGZ_BYTES, vector.as_bytes()),
        Value::Json(document) => {
            let mut text = Vec::new();
            document.write_text(&mut text).map_err(CallTrouble::input)?;
            keep(BINLOGZ_TEXT, text)
        }
        Value::JsonDiffs(_) => {
            let tree = row
                .json_after(cell.index)
                .map_err(CallTrouble::input)?
                .ok_or_else(|| CallTrouble::input("a JSON difference without its document"))?;
            let mut text = Vec::new();
            tree.write_text(&mut text).map_err(CallTrouble::input)?;
            keep(BINLOGZ_TEXT, text)
        }
        Value::Null => binlogz_value::of(BINLOGZ_NULL).into(),
    })
}

/// The name of a member as UTF-8; bytes that aren't valid are replaced.
fn member(column: &ColumnSchema, name: &[u8]) -> String {
    match column.charset().and_then(|charset| charset.decode(name)) {
        Some(name) => name.into_owned(),
        None => String::from_utf8_lossy(name).into_owned(),
    }
}

/// The members of a SET, with commas. `None`: a bit has no name.
fn names(column: &ColumnSchema, bits: u64) -> Option<String> {
    let known = column.members.as_ref()?.len();
    let nameless = bits.checked_shr(u32::try_from(known).ok()?).unwrap_or(0);
    let names = column.set_members(bits).map(|name| member(column, name));
    (nameless == 0).then(|| names.collect::<Vec<_>>().join(","))
}
