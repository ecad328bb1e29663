//! The optional fields after a table map, which a reader needs to show rows as SQL would.
//!
//! ```text
//! size field
//!    1 type
//!  LEI length
//!    n value
//!
//! type field                          value
//!    1 signedness                     one bit a numeric column, highest first; 1: unsigned
//!    2 default_charset                default LEI, then pairs: index LEI, collation LEI
//!    3 column_charset                 collation LEI, each character column
//!    4 column_name                    length LEI, bytes, each column
//!    5 set_str_value                  count LEI, then length LEI, bytes; each SET column
//!    6 enum_str_value                 the same, each ENUM column
//!    7 geometry_type                  LEI, each geometry column
//!    8 simple_primary_key             column LEI, each key part
//!    9 primary_key_with_prefix        column LEI, prefix LEI (0: whole), each key part
//!   10 enum_and_set_default_charset   as 2, over ENUM and SET columns
//!   11 enum_and_set_column_charset    as 3, over ENUM and SET columns
//!   12 column_visibility              one bit a column, highest first; 1: visible   (8.0.23)
//!   13 vector_dimensionality          LEI, each VECTOR column                       (9.0)
//! ```
//!
//! `binlog_row_metadata=MINIMAL` writes signedness, charsets and geometry types, FULL all of them. An index
//! in a default charset counts only the character (or ENUM and SET) columns.
//! [`super::TableMapEvent::column_definitions`] assigns the fields to the columns. (Facts of MySQL 9.7.4's
//! `Table_map_event::Optional_metadata_fields`.)

use std::fmt;

use crate::cursor::Cursor;
use crate::error::Result;
use crate::put::PutFields;

const WHAT: &str = "optional metadata";

/// The bytes of all optional fields of a table map; read by [`OptionalMetadata::iter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptionalMetadata<'a>(pub &'a [u8]);

/// An optional field of the metadata. Values stay unread until iterated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataField<'a> {
    /// Which numeric columns are unsigned.
    Signedness(HighFirstBits<'a>),
    /// Collations of the character columns: a default and the exceptions.
    DefaultCharset(DefaultCharset<'a>),
    /// Collations of the character columns, one each.
    ColumnCharset(MetadataNumbers<'a>),
    /// Names of all columns.
    ColumnName(MetadataStrings<'a>),
    /// Members of each SET column.
    SetStrValue(StringLists<'a>),
    /// Members of each ENUM column.
    EnumStrValue(StringLists<'a>),
    /// Type of each geometry column: 0 geometry, 1 point, 2 linestring, … 7 collection.
    GeometryType(MetadataNumbers<'a>),
    /// Columns of the primary key, counted from 0.
    SimplePrimaryKey(MetadataNumbers<'a>),
    /// Columns of the primary key and how many characters of each; 0 for the whole column.
    PrimaryKeyWithPrefix(NumberPairs<'a>),
    /// Collations of the ENUM and SET columns: a default and the exceptions.
    EnumAndSetDefaultCharset(DefaultCharset<'a>),
    /// Collations of the ENUM and SET columns, one each.
    EnumAndSetColumnCharset(MetadataNumbers<'a>),
    /// Which columns are visible.
    ColumnVisibility(HighFirstBits<'a>),
    /// Dimensions of each VECTOR column.
    VectorDimensionality(MetadataNumbers<'a>),
    /// A type that is not known here.
    Unknown {
        /// The type byte.
        field_type: u8,
        /// The value.
        value: &'a [u8],
    },
}

impl<'a> OptionalMetadata<'a> {
    /// The fields in stored order. An error ends the iteration.
    pub fn iter(&self) -> impl Iterator<Item = Result<MetadataField<'a>>> + use<'a> {
        items(self.0, MetadataField::read)
    }
}

impl<'a> MetadataField<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Result<Self> {
        let field_type = cursor.u8("field type")?;
        let length = cursor.lei("field length")?;
        let value = cursor.bytes_u64(length, "field value")?;
        Ok(match field_type {
            1 => Self::Signedness(HighFirstBits(value)),
            2 => Self::DefaultCharset(DefaultCharset(value)),
            3 => Self::ColumnCharset(MetadataNumbers(value)),
            4 => Self::ColumnName(MetadataStrings(value)),
            5 => Self::SetStrValue(StringLists(value)),
            6 => Self::EnumStrValue(StringLists(value)),
            7 => Self::GeometryType(MetadataNumbers(value)),
            8 => Self::SimplePrimaryKey(MetadataNumbers(value)),
            9 => Self::PrimaryKeyWithPrefix(NumberPairs(value)),
            10 => Self::EnumAndSetDefaultCharset(DefaultCharset(value)),
            11 => Self::EnumAndSetColumnCharset(MetadataNumbers(value)),
            12 => Self::ColumnVisibility(HighFirstBits(value)),
            13 => Self::VectorDimensionality(MetadataNumbers(value)),
            _ => Self::Unknown { field_type, value },
        })
    }

    /// Appends the field as it is stored in an event.
    pub fn encode(&self, metadata: &mut Vec<u8>) {
        let (field_type, value) = match *self {
            Self::Signedness(HighFirstBits(value)) => (1, value),
            Self::DefaultCharset(DefaultCharset(value)) => (2, value),
            Self::ColumnCharset(MetadataNumbers(value)) => (3, value),
            Self::ColumnName(MetadataStrings(value)) => (4, value),
            Self::SetStrValue(StringLists(value)) => (5, value),
            Self::EnumStrValue(StringLists(value)) => (6, value),
            Self::GeometryType(MetadataNumbers(value)) => (7, value),
            Self::SimplePrimaryKey(MetadataNumbers(value)) => (8, value),
            Self::PrimaryKeyWithPrefix(NumberPairs(value)) => (9, value),
            Self::EnumAndSetDefaultCharset(DefaultCharset(value)) => (10, value),
            Self::EnumAndSetColumnCharset(MetadataNumbers(value)) => (11, value),
            Self::ColumnVisibility(HighFirstBits(value)) => (12, value),
            Self::VectorDimensionality(MetadataNumbers(value)) => (13, value),
            Self::Unknown { field_type, value } => (field_type, value),
        };
        metadata.put_u8(field_type);
        metadata.put_lei(value.len() as u64);
        metadata.put(value);
    }
}

/// Bits, with the first one in the highest bit of the first byte.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct HighFirstBits<'a>(pub &'a [u8]);

impl HighFirstBits<'_> {
    /// Whether a bit, counted from 0, is set; `None` beyond the end.
    pub fn get(&self, index: usize) -> Option<bool> {
        self.0.get(index / 8).map(|byte| byte & (0x80 >> (index % 8)) != 0)
    }

    /// Appends bits, padded with zeros to a whole byte.
    pub fn encode(bits: impl IntoIterator<Item = bool>, value: &mut Vec<u8>) {
        let mut bits = bits.into_iter().peekable();
        while bits.peek().is_some() {
            let byte = (0..8).fold(0, |byte, _| byte << 1 | u8::from(bits.next() == Some(true)));
            value.put_u8(byte);
        }
    }
}

impl fmt::Debug for HighFirstBits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bits ")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:08b}"))
    }
}

/// Length-encoded integers, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetadataNumbers<'a>(pub &'a [u8]);

impl<'a> MetadataNumbers<'a> {
    /// The numbers. An error ends the iteration.
    pub fn iter(&self) -> impl Iterator<Item = Result<u64>> + use<'a> {
        items(self.0, |cursor| cursor.lei("number"))
    }

    /// Appends numbers.
    pub fn encode(numbers: impl IntoIterator<Item = u64>, value: &mut Vec<u8>) {
        numbers.into_iter().for_each(|number| value.put_lei(number));
    }
}

/// Pairs of length-encoded integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NumberPairs<'a>(pub &'a [u8]);

impl<'a> NumberPairs<'a> {
    /// The pairs. An error ends the iteration.
    pub fn iter(&self) -> impl Iterator<Item = Result<(u64, u64)>> + use<'a> {
        items(self.0, |cursor| Ok((cursor.lei("first of a pair")?, cursor.lei("second of a pair")?)))
    }

    /// Appends pairs.
    pub fn encode(pairs: impl IntoIterator<Item = (u64, u64)>, value: &mut Vec<u8>) {
        for (first, second) in pairs {
            value.put_lei(first);
            value.put_lei(second);
        }
    }
}

/// A collation for all columns of a kind, and the exceptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DefaultCharset<'a>(pub &'a [u8]);

impl<'a> DefaultCharset<'a> {
    /// The default, and the exceptions: the column's index among its kind, its collation.
    pub fn decode(&self) -> Result<(u64, NumberPairs<'a>)> {
        let mut cursor = Cursor::new(self.0, WHAT);
        Ok((cursor.lei("default collation")?, NumberPairs(cursor.rest())))
    }

    /// Appends a default and its exceptions.
    pub fn encode(default: u64, exceptions: impl IntoIterator<Item = (u64, u64)>, value: &mut Vec<u8>) {
        value.put_lei(default);
        NumberPairs::encode(exceptions, value);
    }
}

/// Strings, each after its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MetadataStrings<'a>(pub &'a [u8]);

impl<'a> MetadataStrings<'a> {
    /// The strings. An error ends the iteration.
    pub fn iter(&self) -> impl Iterator<Item = Result<&'a [u8]>> + use<'a> {
        items(self.0, read_string)
    }

    /// Appends strings.
    pub fn encode<'s>(strings: impl IntoIterator<Item = &'s [u8]>, value: &mut Vec<u8>) {
        for string in strings {
            value.put_lei(string.len() as u64);
            value.put(string);
        }
    }
}

/// Lists of strings, each after its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StringLists<'a>(pub &'a [u8]);

impl<'a> StringLists<'a> {
    /// The lists. An error ends the iteration.
    pub fn iter(&self) -> impl Iterator<Item = Result<MetadataStrings<'a>>> + use<'a> {
        items(self.0, |cursor| {
            let count = cursor.lei("number of strings")?;
            let start = cursor.peek();
            for _ in 0..count {
                read_string(cursor)?;
            }
            let size = start.len() - cursor.remaining();
            Ok(MetadataStrings(start.get(..size).unwrap_or_default()))
        })
    }

    /// Appends one list.
    pub fn encode_list(strings: &[&[u8]], value: &mut Vec<u8>) {
        value.put_lei(strings.len() as u64);
        MetadataStrings::encode(strings.iter().copied(), value);
    }
}

fn read_string<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
    let length = cursor.lei("length of a string")?;
    cursor.bytes_u64(length, "string")
}

/// Items taken one after the other until nothing is left; an error is the last item.
fn items<'a, T>(
    bytes: &'a [u8],
    read: impl Fn(&mut Cursor<'a>) -> Result<T>,
) -> impl Iterator<Item = Result<T>> {
    let mut cursor = Cursor::new(bytes, WHAT);
    std::iter::from_fn(move || {
        if cursor.is_empty() {
            return None;
        }
        let item = read(&mut cursor);
        if item.is_err() {
            cursor.rest();
        }
        Some(item)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all<T>(items: impl Iterator<Item = Result<T>>) -> Vec<T> {
        items.collect::<Result<_>>().unwrap()
    }

    /// Every field with a value, in the order of their types, and one of an unknown type.
    fn every_field() -> Vec<u8> {
        let mut values: Vec<Vec<u8>> = vec![Vec::new(); 13];
        HighFirstBits::encode([true, false, false, false, false, false, false, false, true], &mut values[0]);
        DefaultCharset::encode(255, [(1, 63), (300, 8)], &mut values[1]);
        MetadataNumbers::encode([255, 63], &mut values[2]);
        MetadataStrings::encode([b"id".as_slice(), b"", b"name"], &mut values[3]);
        StringLists::encode_list(&[b"a", b"b"], &mut values[4]);
        StringLists::encode_list(&[b"x"], &mut values[5]);
        StringLists::encode_list(&[], &mut values[5]);
        MetadataNumbers::encode([1, 7], &mut values[6]);
        MetadataNumbers::encode([0, 300], &mut values[7]);
        NumberPairs::encode([(0, 0), (2, 10)], &mut values[8]);
        DefaultCharset::encode(255, [], &mut values[9]);
        MetadataNumbers::encode([255], &mut values[10]);
        HighFirstBits::encode([true, true, false], &mut values[11]);
        MetadataNumbers::encode([2048], &mut values[12]);
        let mut bytes = Vec::new();
        for (field_type, value) in (1..).zip(&values) {
            MetadataField::Unknown { field_type, value }.encode(&mut bytes);
        }
        MetadataField::Unknown { field_type: 200, value: b"tomorrow" }.encode(&mut bytes);
        bytes
    }

    #[test]
    fn every_field_round_trips() {
        let bytes = every_field();
        let fields = all(OptionalMetadata(&bytes).iter());
        assert_eq!(fields.len(), 14);
        let mut again = Vec::new();
        for field in &fields {
            field.encode(&mut again);
            match *field {
                MetadataField::Signedness(bits) => {
                    assert_eq!(
                        [0, 1, 8, 16].map(|index| bits.get(index)),
                        [Some(true), Some(false), Some(true), None]
                    );
                }
                MetadataField::DefaultCharset(charset) => {
                    let (default, exceptions) = charset.decode().unwrap();
                    assert_eq!((default, all(exceptions.iter())), (255, vec![(1, 63), (300, 8)]));
                }
                MetadataField::ColumnCharset(numbers) => assert_eq!(all(numbers.iter()), [255, 63]),
                MetadataField::ColumnName(names) => {
                    assert_eq!(all(names.iter()), [b"id".as_slice(), b"", b"name"]);
                }
                MetadataField::SetStrValue(lists) => {
                    assert_eq!(all(all(lists.iter())[0].iter()), [b"a", b"b"]);
                }
                MetadataField::EnumStrValue(lists) => {
                    let lists = all(lists.iter());
                    assert_eq!((lists.len(), all(lists[0].iter()).len(), lists[1].0.len()), (2, 1, 0));
                }
                MetadataField::GeometryType(numbers) => assert_eq!(all(numbers.iter()), [1, 7]),
                MetadataField::SimplePrimaryKey(numbers) => assert_eq!(all(numbers.iter()), [0, 300]),
                MetadataField::PrimaryKeyWithPrefix(pairs) => {
                    assert_eq!(all(pairs.iter()), [(0, 0), (2, 10)]);
                }
                MetadataField::EnumAndSetDefaultCharset(charset) => {
                    assert_eq!(charset.decode().unwrap().0, 255);
                }
                MetadataField::EnumAndSetColumnCharset(numbers) => assert_eq!(all(numbers.iter()), [255]),
                MetadataField::ColumnVisibility(bits) => assert_eq!(bits.0, [0b1100_0000]),
                MetadataField::VectorDimensionality(numbers) => assert_eq!(all(numbers.iter()), [2048]),
                MetadataField::Unknown { field_type, value } => {
                    assert_eq!((field_type, value), (200, b"tomorrow".as_slice()));
                }
            }
        }
        assert_eq!(again, bytes);
    }

    #[test]
    fn cut_inside_a_field_it_is_an_error_and_the_last_item() {
        let bytes = every_field();
        let mut ends = vec![0];
        let mut again = Vec::new();
        for field in all(OptionalMetadata(&bytes).iter()) {
            field.encode(&mut again);
            ends.push(again.len());
        }
        for length in 0..bytes.len() {
            let fields: Vec<_> = OptionalMetadata(&bytes[..length]).iter().collect();
            assert_eq!(fields.iter().all(Result::is_ok), ends.contains(&length), "{length}");
            assert!(fields.iter().rev().skip(1).all(Result::is_ok), "{length}");
        }
    }

    #[test]
    fn values_that_lie_are_errors() {
        assert!(MetadataNumbers(&[1, 252, 1]).iter().any(|number| number.is_err()));
        assert!(NumberPairs(&[1]).iter().any(|pair| pair.is_err()));
        assert!(MetadataStrings(&[3, b'a']).iter().any(|string| string.is_err()));
        let huge = [254, 255, 255, 255, 255, 255, 255, 255, 255, 1, b'a'];
        assert!(StringLists(&huge).iter().any(|list| list.is_err()));
        assert!(DefaultCharset(&[]).decode().is_err());
    }
}
