//! Binary JSON, read in place.
//!
//! ```text
//! document   type u8, value;  no bytes at all: null
//! type       0, 1 object   2, 3 array   4 literal   5 int16   6 uint16   7 int32   8 uint32
//!            9 int64   a uint64   b double   c string   f opaque
//! container  count, size, [key entry of each member], value entry of each element, keys, values
//! key entry  offset, length u16
//! value entry  type u8, offset or the value itself: literal, int16, uint16; int32, uint32 in large ones
//! string     length, bytes (utf8mb4)
//! opaque     column type u8, length, bytes: decimal (precision u8, scale u8, digits), time or date
//!            (u64, see temporal.rs), anything else
//! literal    0 null   1 true   2 false
//! ```
//!
//! Counts, sizes and offsets have two bytes in small containers (0, 2) and four in large ones (1, 3);
//! an offset counts from the container's first byte after its type. Lengths have seven bits a byte,
//! low ones first, and at most five bytes. Members stand sorted by the length of their keys, then by
//! their bytes. (`json_binary.h` in the server.)
//!
//! Every offset is checked against its container before it is followed. Containers that overlap are not
//! noticed here, only by a walk over the whole document.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::ColumnType;
use crate::put::PutFields;
use crate::row::decimal::{Decimal, DecimalFormat};
use crate::row::temporal::{Date, DateTime, Time};

const WHAT: &str = "json document";

const SMALL_OBJECT: u8 = 0x0;
const LARGE_OBJECT: u8 = 0x1;
const SMALL_ARRAY: u8 = 0x2;
const LARGE_ARRAY: u8 = 0x3;
const LITERAL: u8 = 0x4;
const INT16: u8 = 0x5;
const UINT16: u8 = 0x6;
const INT32: u8 = 0x7;
const UINT32: u8 = 0x8;
const INT64: u8 = 0x9;
const UINT64: u8 = 0xa;
const DOUBLE: u8 = 0xb;
const STRING: u8 = 0xc;
const OPAQUE: u8 = 0xf;

/// The bytes of a JSON column, unread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonDocument<'a>(&'a [u8]);

/// One value of a document.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum JsonValue<'a> {
    /// null.
    Null,
    /// true or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer from 0 up.
    Uint(u64),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// An exact number, from SQL.
    Decimal(Decimal<'a>),
    /// A string, in UTF-8.
    String(&'a [u8]),
    /// A DATE, from SQL.
    Date(Date),
    /// A TIME, from SQL.
    Time(Time),
    /// A DATETIME or TIMESTAMP, from SQL.
    DateTime(DateTime),
    /// Any other value of SQL, as bytes.
    Opaque {
        /// The value's type in SQL.
        column_type: ColumnType,
        /// The value's bytes.
        bytes: &'a [u8],
    },
    /// An array.
    Array(JsonArray<'a>),
    /// An object.
    Object(JsonObject<'a>),
}

/// The elements of an array, read one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonArray<'a>(Container<'a>);

/// The members of an object, read one by one, in the order of the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonObject<'a>(Container<'a>);

impl<'a> JsonDocument<'a> {
    /// Takes the bytes of a column.
    pub fn new(bytes: &'a [u8]) -> Self {
        JsonDocument(bytes)
    }

    /// The bytes, as they are in the row.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The outermost value.
    pub fn value(&self) -> Result<JsonValue<'a>> {
        match self.0.split_first() {
            // A NULL becomes this in a NOT NULL column outside of strict mode.
            None => Ok(JsonValue::Null),
            Some((&value_type, bytes)) => JsonValue::read(value_type, bytes),
        }
    }
}

/// A value as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredValue<'a> {
    value_type: u8,
    /// The value is at the front; more may follow.
    bytes: &'a [u8],
}

impl<'a> StoredValue<'a> {
    /// The outermost value of a document.
    pub(super) fn of(document: JsonDocument<'a>) -> Self {
        let (value_type, bytes) =
            document.0.split_first().map_or((LITERAL, &[0][..]), |(first, rest)| (*first, rest));
        StoredValue { value_type, bytes }
    }

    pub(super) fn value(self) -> Result<JsonValue<'a>> {
        JsonValue::read(self.value_type, self.bytes)
    }

    /// The type of the value and the bytes that belong to it; the document may go on after them.
    pub(super) fn bytes(self) -> Result<(u8, &'a [u8])> {
        let mut cursor = Cursor::new(self.bytes, WHAT);
        let bytes = match self.value_type {
            SMALL_OBJECT | SMALL_ARRAY | LARGE_OBJECT | LARGE_ARRAY => {
                let is_large = matches!(self.value_type, LARGE_OBJECT | LARGE_ARRAY);
                let is_keyed = matches!(self.value_type, SMALL_OBJECT | LARGE_OBJECT);
                Container::read(self.bytes, is_large, is_keyed)?.bytes
            }
            LITERAL => cursor.bytes(1, "literal")?,
            INT16 | UINT16 => cursor.bytes(2, "number")?,
            INT32 | UINT32 => cursor.bytes(4, "number")?,
            INT64 | UINT64 | DOUBLE => cursor.bytes(8, "number")?,
            STRING | OPAQUE => {
                if self.value_type == OPAQUE {
                    cursor.u8("opaque type")?;
                }
                take_string(&mut cursor)?;
                let size = self.bytes.len() - cursor.rest().len();
                self.bytes.get(..size).unwrap_or_default()
            }
            other => return Err(Error::invalid(WHAT, "type", format!("{other:#04x}"), "0 to c, or f")),
        };
        Ok((self.value_type, bytes))
    }
}

/// Members or elements as they are stored: the key, if there is one, the type and the bytes of each.
pub(super) type StoredMembers<'m> = [(Option<&'m [u8]>, u8, Vec<u8>)];

/// Appends a container of these members. Returns its type: a small one, if there is room, as the server does.
pub(super) fn put_container(out: &mut Vec<u8>, keyed: bool, members: &StoredMembers<'_>) -> Result<u8> {
    let size = |large: bool| {
        let width = number_width(large);
        let entries = members.len() * (1 + width + if keyed { width + 2 } else { 0 });
        let of = |(key, value_type, bytes): &(Option<&[u8]>, u8, Vec<u8>)| {
            key.map_or(0, <[u8]>::len) + if is_inlined(*value_type, large) { 0 } else { bytes.len() }
        };
        2 * width + entries + members.iter().map(of).sum::<usize>()
    };
    let large = size(false) > usize::from(u16::MAX);
    let width = number_width(large);
    let size = size(large);
    if u32::try_from(size).is_err() {
        return Err(Error::invalid(WHAT, "container size", size, "less than 4 GiB"));
    }
    let header = 2 * width + members.len() * (1 + width + if keyed { width + 2 } else { 0 });
    out.put_uint(members.len() as u64, width);
    out.put_uint(size as u64, width);
    let mut offset = header;
    for key in members.iter().filter_map(|(key, ..)| *key) {
        let length = u16::try_from(key.len());
        out.put_uint(offset as u64, width);
        out.put_u16(length.map_err(|_| Error::invalid(WHAT, "key length", key.len(), "at most 65535"))?);
        offset += key.len();
    }
    for (_, value_type, bytes) in members {
        out.put_u8(*value_type);
        if is_inlined(*value_type, large) {
            let mut value = bytes.clone();
            value.resize(width, if is_negative(*value_type, bytes) { 0xff } else { 0 });
            out.put(&value);
        } else {
            out.put_uint(offset as u64, width);
            offset += bytes.len();
        }
    }
    members.iter().filter_map(|(key, ..)| *key).for_each(|key| out.put(key));
    let values = members.iter().filter(|(_, value_type, _)| !is_inlined(*value_type, large));
    values.for_each(|(_, _, bytes)| out.put(bytes));
    Ok(match (keyed, large) {
        (true, false) => SMALL_OBJECT,
        (true, true) => LARGE_OBJECT,
        (false, false) => SMALL_ARRAY,
        (false, true) => LARGE_ARRAY,
    })
}

/// The type and the bytes of a value from a text, which is no container and not of a type that only SQL gives.
pub(super) fn put_scalar(value: &JsonValue<'_>) -> Option<(u8, Vec<u8>)> {
    let mut bytes = Vec::new();
    let value_type = match *value {
        JsonValue::Null => put_literal(&mut bytes, 0),
        JsonValue::Bool(true) => put_literal(&mut bytes, 1),
        JsonValue::Bool(false) => put_literal(&mut bytes, 2),
        JsonValue::Int(number) => put_int(&mut bytes, number),
        JsonValue::Uint(number) => put_uint(&mut bytes, number),
        JsonValue::Double(number) => {
            bytes.put_u64(number.to_bits());
            DOUBLE
        }
        JsonValue::String(text) => {
            put_string(&mut bytes, text);
            STRING
        }
        JsonValue::Decimal(_)
        | JsonValue::Date(_)
        | JsonValue::Time(_)
        | JsonValue::DateTime(_)
        | JsonValue::Opaque { .. }
        | JsonValue::Array(_)
        | JsonValue::Object(_) => return None,
    };
    Some((value_type, bytes))
}

fn put_literal(out: &mut Vec<u8>, literal: u8) -> u8 {
    out.put_u8(literal);
    LITERAL
}

/// In the smallest type that holds it.
fn put_int(out: &mut Vec<u8>, number: i64) -> u8 {
    let (value_type, width) = match number {
        -0x8000..0x8000 => (INT16, 2),
        -0x8000_0000..0x8000_0000 => (INT32, 4),
        _ => (INT64, 8),
    };
    out.put_uint(number.cast_unsigned(), width);
    value_type
}

fn put_uint(out: &mut Vec<u8>, number: u64) -> u8 {
    let (value_type, width) = match number {
        0..0x1_0000 => (UINT16, 2),
        0x1_0000..0x1_0000_0000 => (UINT32, 4),
        _ => (UINT64, 8),
    };
    out.put_uint(number, width);
    value_type
}

/// A string after its length, which has seven bits a byte.
fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    let mut length = text.len();
    while length > 0x7f {
        out.put_u8(length as u8 | 0x80);
        length >>= 7;
    }
    out.put_u8(length as u8);
    out.put(text);
}

/// Whether the container's entry holds the value itself, not the offset of it.
fn is_inlined(value_type: u8, large: bool) -> bool {
    match value_type {
        LITERAL | INT16 | UINT16 => true,
        INT32 | UINT32 => large,
        _ => false,
    }
}

/// Whether a signed number is below zero: it fills its entry with its sign.
fn is_negative(value_type: u8, bytes: &[u8]) -> bool {
    matches!(value_type, INT16 | INT32) && bytes.last().is_some_and(|byte| byte & 0x80 != 0)
}

impl<'a> JsonValue<'a> {
    /// Reads a value at the front of `bytes`, which may hold more.
    fn read(value_type: u8, bytes: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, WHAT);
        Ok(match value_type {
            SMALL_OBJECT => JsonValue::Object(JsonObject(Container::read(bytes, false, true)?)),
            LARGE_OBJECT => JsonValue::Object(JsonObject(Container::read(bytes, true, true)?)),
            SMALL_ARRAY => JsonValue::Array(JsonArray(Container::read(bytes, false, false)?)),
            LARGE_ARRAY => JsonValue::Array(JsonArray(Container::read(bytes, true, false)?)),
            LITERAL => match cursor.u8("literal")? {
                0 => JsonValue::Null,
                1 => JsonValue::Bool(true),
                2 => JsonValue::Bool(false),
                other => {
                    return Err(Error::invalid(WHAT, "literal", other, "0 (null), 1 (true) or 2 (false)"));
                }
            },
            INT16 => JsonValue::Int(i64::from(cursor.u16("int16")? as i16)),
            UINT16 => JsonValue::Uint(u64::from(cursor.u16("uint16")?)),
            INT32 => JsonValue::Int(i64::from(cursor.u32("int32")? as i32)),
            UINT32 => JsonValue::Uint(u64::from(cursor.u32("uint32")?)),
            INT64 => JsonValue::Int(cursor.i64("int64")?),
            UINT64 => JsonValue::Uint(cursor.u64("uint64")?),
            DOUBLE => match f64::from_bits(cursor.u64("double")?) {
                number if number.is_finite() => JsonValue::Double(number),
                other => return Err(Error::invalid(WHAT, "double", other, "a finite number")),
            },
            STRING => JsonValue::String(take_string(&mut cursor)?),
            OPAQUE => {
                let column_type = ColumnType(cursor.u8("opaque type")?);
                opaque(column_type, take_string(&mut cursor)?)?
            }
            other => return Err(Error::invalid(WHAT, "type", format!("{other:#04x}"), "0 to c, or f")),
        })
    }
}

impl<'a> JsonArray<'a> {
    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.0.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// The elements in order, as they are stored.
    pub(super) fn stored(&self) -> impl Iterator<Item = Result<StoredValue<'a>>> + use<'a> {
        let container = self.0;
        (0..container.count).map(move |index| container.stored(index))
    }

    /// The elements in order.
    pub fn iter(&self) -> impl Iterator<Item = Result<JsonValue<'a>>> + use<'a> {
        let container = self.0;
        (0..container.count).map(move |index| container.value(index))
    }

    pub(super) fn container(&self) -> &Container<'a> {
        &self.0
    }
}

impl<'a> JsonObject<'a> {
    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.count
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.count == 0
    }

    /// The members of the object: each key with its value as the document stores it.
    pub(super) fn stored(&self) -> impl Iterator<Item = Result<(&'a [u8], StoredValue<'a>)>> + use<'a> {
        let container = self.0;
        (0..container.count).map(move |index| Ok((container.key(index)?, container.stored(index)?)))
    }

    /// Keys (UTF-8) and values, in the document's order.
    pub fn iter(&self) -> impl Iterator<Item = Result<(&'a [u8], JsonValue<'a>)>> + use<'a> {
        let container = self.0;
        (0..container.count).map(move |index| Ok((container.key(index)?, container.value(index)?)))
    }

    pub(super) fn container(&self) -> &Container<'a> {
        &self.0
    }
}

/// The common parts of arrays and objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Container<'a> {
    /// The array's or object's bytes, from its count to its end.
    bytes: &'a [u8],
    count: usize,
    large: bool,
    keyed: bool,
}

impl<'a> Container<'a> {
    fn read(bytes: &'a [u8], large: bool, keyed: bool) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, WHAT);
        let width = number_width(large);
        let count = cursor.uint(width, "element count")?;
        let size = cursor.uint(width, "container size")?;
        let bytes = Cursor::new(bytes, WHAT).bytes_u64(size, "container")?;
        // A count larger than the bytes allow is refused here, before anything allocates by it.
        let container = Container { bytes, count: count as usize, large, keyed };
        if container.header_size() > bytes.len() as u64 {
            return Err(Error::invalid(WHAT, "element count", count, "no more than fit the container"));
        }
        Ok(container)
    }

    fn key_entry_size(&self) -> usize {
        if self.keyed { number_width(self.large) + 2 } else { 0 }
    }

    fn value_entry_size(&self) -> usize {
        1 + number_width(self.large)
    }

    /// Bytes of the count, the size and all entries.
    pub(super) fn header_size(&self) -> u64 {
        let entries = self.count as u64 * (self.key_entry_size() + self.value_entry_size()) as u64;
        2 * number_width(self.large) as u64 + entries
    }

    /// A cursor at one entry. The header lies inside the container, so the sum can't overflow.
    fn entry(&self, index: usize, first: usize, size: usize) -> Cursor<'a> {
        let at = 2 * number_width(self.large) + first + index * size;
        Cursor::new(self.bytes.get(at..).unwrap_or_default(), WHAT)
    }

    pub(super) fn key(&self, index: usize) -> Result<&'a [u8]> {
        let mut entry = self.entry(index, 0, self.key_entry_size());
        let offset = entry.uint(number_width(self.large), "key offset")?;
        let length = entry.u16("key length")?;
        Cursor::new(self.behind_header(offset, "key offset")?, WHAT).bytes(usize::from(length), "key")
    }

    pub(super) fn value(&self, index: usize) -> Result<JsonValue<'a>> {
        self.stored(index)?.value()
    }

    fn stored(&self, index: usize) -> Result<StoredValue<'a>> {
        let first = self.count * self.key_entry_size();
        let mut entry = self.entry(index, first, self.value_entry_size());
        let value_type = entry.u8("value type")?;
        if is_inlined(value_type, self.large) {
            return Ok(StoredValue { value_type, bytes: entry.peek() });
        }
        let offset = entry.uint(number_width(self.large), "value offset")?;
        Ok(StoredValue { value_type, bytes: self.behind_header(offset, "value offset")? })
    }

    /// The container's bytes from an offset on. One into the header would allow a container inside
    /// itself.
    fn behind_header(&self, offset: u64, field: &'static str) -> Result<&'a [u8]> {
        match self.bytes.get(offset as usize..) {
            Some(bytes) if offset >= self.header_size() => Ok(bytes),
            _ => Err(Error::invalid(WHAT, field, offset, "one after the entries and inside the container")),
        }
    }
}

fn number_width(large: bool) -> usize {
    if large { 4 } else { 2 }
}

/// Takes a length and as many bytes.
fn take_string<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let mut length = 0u64;
    for shift in [0, 7, 14, 21, 28] {
        let byte = cursor.u8("length")?;
        length |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return cursor.bytes_u64(length, "string");
        }
    }
    Err(Error::invalid(WHAT, "length", "longer than five bytes", "at most five"))
}

fn opaque(column_type: ColumnType, bytes: &[u8]) -> Result<JsonValue<'_>> {
    let mut cursor = Cursor::new(bytes, "opaque json value");
    let value = match column_type {
        ColumnType::NEWDECIMAL => {
            let format = DecimalFormat::new(cursor.u8("precision")?, cursor.u8("scale")?)?;
            JsonValue::Decimal(Decimal::new(cursor.rest(), format)?)
        }
        ColumnType::DATE => JsonValue::Date(DateTime::decode_packed(cursor.i64("date")?)?.date()),
        ColumnType::TIME => JsonValue::Time(Time::decode_packed(cursor.i64("time")?)?),
        ColumnType::DATETIME | ColumnType::TIMESTAMP => {
            JsonValue::DateTime(DateTime::decode_packed(cursor.i64("datetime")?)?)
        }
        // Strings that the server wrapped on the way count as strings.
        ColumnType::VAR_STRING => JsonValue::String(cursor.rest()),
        column_type => JsonValue::Opaque { column_type, bytes: cursor.rest() },
    };
    cursor.finish()?;
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8]) -> Result<JsonValue<'_>> {
        JsonDocument::new(bytes).value()
    }

    #[test]
    fn scalars() {
        assert_eq!(value(b"").unwrap(), JsonValue::Null);
        assert_eq!(value(b"\x04\x00").unwrap(), JsonValue::Null);
        assert_eq!(value(b"\x04\x01").unwrap(), JsonValue::Bool(true));
        assert_eq!(value(b"\x05\x00\x80").unwrap(), JsonValue::Int(-32768));
        assert_eq!(value(b"\x06\xff\xff").unwrap(), JsonValue::Uint(65535));
        assert_eq!(value(b"\x07\xff\xff\xff\xff").unwrap(), JsonValue::Int(-1));
        assert_eq!(value(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff").unwrap(), JsonValue::Uint(u64::MAX));
        assert_eq!(value(b"\x0b\0\0\0\0\0\0\xf8\x3f").unwrap(), JsonValue::Double(1.5));
        assert_eq!(value(b"\x0c\x03abc").unwrap(), JsonValue::String(b"abc"));
        assert_eq!(value(b"\x0f\xfd\x01a").unwrap(), JsonValue::String(b"a"));
        let opaque = JsonValue::Opaque { column_type: ColumnType::BIT, bytes: b"\x05" };
        assert_eq!(value(b"\x0f\x10\x01\x05").unwrap(), opaque);
        let JsonValue::Decimal(decimal) = value(b"\x0f\xf6\x04\x03\x02\x81\x32").unwrap() else {
            panic!("no decimal")
        };
        assert_eq!(decimal.to_string(), "1.50");
    }

    #[test]
    fn lengths_have_up_to_five_bytes() {
        let mut bytes = b"\x0c\x80\x01".to_vec();
        bytes.resize(3 + 128, b'x');
        assert_eq!(value(&bytes).unwrap(), JsonValue::String(&[b'x'; 128]));
        // 4 GiB in ten bytes.
        let error = value(b"\x0c\xff\xff\xff\xff\x0fabcd").unwrap_err();
        assert_eq!(error.to_string(), "json document: string needs 4294967295 bytes, 4 are left");
        assert!(value(b"\x0c\x80\x80\x80\x80\x80\x01a").is_err());
    }

    /// `{"a": 1, "b": [true, "x"]}` as the server stores it.
    const OBJECT: &[u8] = b"\x00\x02\x00\x20\x00\x12\x00\x01\x00\x13\x00\x01\x00\x05\x01\x00\x02\x14\x00ab\
        \x02\x00\x0c\x00\x04\x01\x00\x0c\x0a\x00\x01x";

    #[test]
    fn containers_are_walked_in_place() {
        let JsonValue::Object(object) = value(OBJECT).unwrap() else { panic!("no object") };
        let members = object.iter().collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(members[0], (&b"a"[..], JsonValue::Int(1)));
        assert_eq!(members[1].0, b"b");
        let JsonValue::Array(array) = members[1].1 else { panic!("no array") };
        let elements = array.iter().collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(elements, [JsonValue::Bool(true), JsonValue::String(b"x")]);
    }

    #[test]
    fn every_cut_is_noticed() {
        for length in 1..OBJECT.len() {
            assert!(value(&OBJECT[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn offsets_and_counts_that_lie_are_noticed() {
        let first = |bytes: &[u8]| match value(bytes).unwrap() {
            JsonValue::Object(object) => object.iter().next().unwrap().map(|_| ()),
            other => panic!("{other:?}"),
        };
        assert!(first(OBJECT).is_ok());
        for (at, byte) in [(5, 0x11), (5, 0x20), (7, 0xff), (13, 0x0d)] {
            let mut bytes = OBJECT.to_vec();
            bytes[at] = byte;
            assert!(first(&bytes).is_err(), "{at}");
        }
        // More elements than bytes, in both widths.
        assert!(value(b"\x02\xff\xff\x04\x00").is_err());
        assert!(value(b"\x03\xff\xff\xff\xff\x08\x00\x00\x00").is_err());
        // An array whose element is the array itself.
        let JsonValue::Array(array) = value(b"\x02\x01\x00\x07\x00\x02\x00\x00").unwrap() else { panic!() };
        assert!(array.iter().next().unwrap().is_err());
        assert!(value(b"\x0b\0\0\0\0\0\0\xf0\x7f").is_err(), "infinity");
        assert!(value(b"\x04\x03").is_err() && value(b"\x0d\x00").is_err());
    }
}
