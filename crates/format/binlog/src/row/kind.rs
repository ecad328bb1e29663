//! How a column's values are stored in a row image: compiled once from a table map's type and metadata, then
//! used for every value.
//!
//! ```text
//! type                          metadata                    value
//! TINY SHORT INT24 LONG LONGLONG                            1, 2, 3, 4, 8 bytes
//! FLOAT DOUBLE                  size u8                     4, 8 bytes
//! NEWDECIMAL                    precision u8, scale u8      see decimal.rs
//! BIT                           bits % 8 u8, bits / 8 u8    the bits in whole bytes, highest first
//! YEAR DATE NEWDATE TIME DATETIME TIMESTAMP                 see temporal.rs
//! TIME2 DATETIME2 TIMESTAMP2    fraction digits u8          see temporal.rs
//! STRING holding ENUM, SET      247 or 248, size u8         a number of that many bytes
//! STRING                        254, length; see below      length u8 or u16, bytes
//! VARCHAR VAR_STRING            length u16                  length u8 or u16, bytes
//! BLOB GEOMETRY JSON VECTOR     size of the length u8       length of 1 to 4 bytes, bytes
//! BLOB, VARCHAR COMPRESSED      as BLOB and VARCHAR         as those, see compressed_value.rs
//! TYPED_ARRAY                   element type and its own    length u32, binary JSON
//! ```
//!
//! Lengths take two bytes if the column may hold more than 255. A CHAR of more than 255 bytes hides the two
//! upper bits of its length, inverted, in bits 4 and 5 of its type byte, which are set in all three types
//! stored there. All numbers are little-endian except for BIT, DECIMAL and the newer temporal types.
//! (`table_def` and `calc_field_size` in the server; MySQL Bug 37426.)

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::{Column, ColumnType};
use crate::put::PutFields;
use crate::row::compressed_value;
use crate::row::decimal::DecimalFormat;
use crate::row::temporal::{FRACTION_DIGITS_MAX, fraction_size};

const WHAT: &str = "column metadata";
/// The most bits of a BIT column.
const BITS_MAX: u16 = 64;
/// Bytes that every compressed value has before it, unless it is empty.
const COMPRESSED_FRONT: u16 = 1;
/// Bits of a CHAR's type byte that are always set, and set free for its length.
const LENGTH_BITS: u8 = 0x30;

/// How a column's values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Nothing but NULL.
    Null,
    /// TINYINT, BOOL.
    TinyInt {
        /// Whether the table map marks the column unsigned; `false` if it doesn't say (before 8.0.1).
        unsigned: bool,
    },
    /// SMALLINT.
    SmallInt {
        /// Whether the column is unsigned, as the table map says; `false` if it doesn't (before 8.0.1).
        unsigned: bool,
    },
    /// MEDIUMINT.
    MediumInt {
        /// Whether the column is unsigned, as the table map says; `false` if it doesn't (before 8.0.1).
        unsigned: bool,
    },
    /// INT.
    Int {
        /// Whether the column is unsigned, as the table map says; `false` if it doesn't (before 8.0.1).
        unsigned: bool,
    },
    /// BIGINT.
    BigInt {
        /// Whether the column is unsigned, as the table map says; `false` if it doesn't (before 8.0.1).
        unsigned: bool,
    },
    /// DECIMAL.
    Decimal(DecimalFormat),
    /// FLOAT.
    Float,
    /// DOUBLE.
    Double,
    /// BIT.
    Bit {
        /// 1 to 64.
        bits: u8,
    },
    /// YEAR.
    Year,
    /// DATE.
    Date,
    /// TIME(n).
    Time {
        /// 0 to 6.
        fraction_digits: u8,
    },
    /// DATETIME(n).
    DateTime {
        /// 0 to 6.
        fraction_digits: u8,
    },
    /// TIMESTAMP(n).
    Timestamp {
        /// 0 to 6.
        fraction_digits: u8,
    },
    /// TIME before 5.6.4.
    OldTime,
    /// DATETIME before 5.6.4.
    OldDateTime,
    /// TIMESTAMP before 5.6.4.
    OldTimestamp,
    /// ENUM.
    Enum {
        /// Bytes of the member's number: 1 or 2.
        size: u8,
    },
    /// SET.
    Set {
        /// Bytes of the bits: 1, 2, 3, 4 or 8.
        size: u8,
    },
    /// CHAR, BINARY.
    Char {
        /// The most bytes it holds.
        length_max: u16,
    },
    /// VARCHAR, VARBINARY.
    Varchar {
        /// The most bytes it holds.
        length_max: u16,
    },
    /// TINYTEXT to LONGTEXT and their BLOBs.
    Blob {
        /// Bytes of the length: 1 to 4.
        length_size: u8,
    },
    /// JSON.
    Json {
        /// Bytes of the length, 4 in every version.
        length_size: u8,
    },
    /// GEOMETRY and its kinds.
    Geometry {
        /// Bytes of the length, 4 in every version.
        length_size: u8,
    },
    /// VECTOR.
    Vector {
        /// Bytes of the length, 4 in every version.
        length_size: u8,
    },
    /// The hidden column of a multi-valued index, logged by 8.0.17 alone.
    TypedArray,
}

impl ColumnKind {
    /// Compiles a column of a table map. `unsigned`: its signedness, if the map tells it.
    ///
    /// # Errors
    ///
    /// A type that no server since 5.1 writes into rows, and metadata that its type can't have.
    pub fn new(column: &Column<'_>, unsigned: Option<bool>) -> Result<Self> {
        let unsigned = unsigned.unwrap_or(false);
        let mut metadata = Cursor::new(column.metadata, WHAT);
        let kind = match column.column_type {
            ColumnType::NULL => ColumnKind::Null,
            ColumnType::TINY => ColumnKind::TinyInt { unsigned },
            ColumnType::SHORT => ColumnKind::SmallInt { unsigned },
            ColumnType::INT24 => ColumnKind::MediumInt { unsigned },
            ColumnType::LONG => ColumnKind::Int { unsigned },
            ColumnType::LONGLONG => ColumnKind::BigInt { unsigned },
            ColumnType::NEWDECIMAL => {
                ColumnKind::Decimal(DecimalFormat::new(metadata.u8("precision")?, metadata.u8("scale")?)?)
            }
            ColumnType::FLOAT => {
                one_of(metadata.u8("size of a float")?, "size of a float", &[4], "4")?;
                ColumnKind::Float
            }
            ColumnType::DOUBLE => {
                one_of(metadata.u8("size of a double")?, "size of a double", &[8], "8")?;
                ColumnKind::Double
            }
            ColumnType::BIT => {
                let odd = metadata.u8("odd bits")?;
                let whole = metadata.u8("bytes of bits")?;
                let bits = u16::from(whole) * 8 + u16::from(odd);
                if odd > 7 || !(1..=BITS_MAX).contains(&bits) {
                    return Err(Error::invalid(WHAT, "bits", bits, "1 to 64, at most 7 beside whole bytes"));
                }
                ColumnKind::Bit { bits: bits as u8 }
            }
            ColumnType::YEAR => ColumnKind::Year,
            ColumnType::DATE | ColumnType::NEWDATE => ColumnKind::Date,
            ColumnType::TIME => ColumnKind::OldTime,
            ColumnType::DATETIME => ColumnKind::OldDateTime,
            ColumnType::TIMESTAMP => ColumnKind::OldTimestamp,
            ColumnType::TIME2 => ColumnKind::Time { fraction_digits: fraction_digits(&mut metadata)? },
            ColumnType::DATETIME2 => {
                ColumnKind::DateTime { fraction_digits: fraction_digits(&mut metadata)? }
            }
            ColumnType::TIMESTAMP2 => {
                ColumnKind::Timestamp { fraction_digits: fraction_digits(&mut metadata)? }
            }
            ColumnType::STRING | ColumnType::ENUM | ColumnType::SET => string(&mut metadata)?,
            ColumnType::VARCHAR | ColumnType::VAR_STRING => {
                ColumnKind::Varchar { length_max: metadata.u16("length of a varchar")? }
            }
            // The byte before a value counts.
            ColumnType::MARIADB_VARCHAR_COMPRESSED => ColumnKind::Varchar {
                length_max: metadata.u16("length of a varchar")?.saturating_sub(COMPRESSED_FRONT),
            },
            ColumnType::BLOB
            | ColumnType::TINY_BLOB
            | ColumnType::MEDIUM_BLOB
            | ColumnType::LONG_BLOB
            | ColumnType::MARIADB_BLOB_COMPRESSED => {
                ColumnKind::Blob { length_size: length_size(&mut metadata)? }
            }
            ColumnType::JSON => ColumnKind::Json { length_size: length_size(&mut metadata)? },
            ColumnType::GEOMETRY => ColumnKind::Geometry { length_size: length_size(&mut metadata)? },
            ColumnType::VECTOR => ColumnKind::Vector { length_size: length_size(&mut metadata)? },
            ColumnType::TYPED_ARRAY => {
                metadata.rest();
                ColumnKind::TypedArray
            }
            other => {
                return Err(Error::invalid("table map event", "column type", other, "one that rows hold"));
            }
        };
        metadata.finish()?;
        Ok(kind)
    }

    /// Bits of an integer column's values; 64 for all other kinds.
    #[inline]
    pub fn integer_bits(self) -> u32 {
        if let ColumnKind::TinyInt { .. }
        | ColumnKind::SmallInt { .. }
        | ColumnKind::MediumInt { .. }
        | ColumnKind::Int { .. } = self
        {
            8 * u32::from(self.size().fixed)
        } else {
            64
        }
    }

    pub(super) fn is_old_temporal(self) -> bool {
        matches!(self, ColumnKind::OldTime | ColumnKind::OldDateTime | ColumnKind::OldTimestamp)
    }

    pub(super) fn size(self) -> ColumnSize {
        use ColumnSize as Size;
        match self {
            ColumnKind::Null => Size::fixed(0),
            ColumnKind::TinyInt { .. } | ColumnKind::Year => Size::fixed(1),
            ColumnKind::SmallInt { .. } => Size::fixed(2),
            ColumnKind::MediumInt { .. } | ColumnKind::Date | ColumnKind::OldTime => Size::fixed(3),
            ColumnKind::Int { .. } | ColumnKind::Float | ColumnKind::OldTimestamp => Size::fixed(4),
            ColumnKind::BigInt { .. } | ColumnKind::Double | ColumnKind::OldDateTime => Size::fixed(8),
            ColumnKind::Decimal(format) => Size::fixed(format.size()),
            ColumnKind::Bit { bits } => Size::fixed(bits.div_ceil(8)),
            ColumnKind::Time { fraction_digits } => Size::with_fraction(3, fraction_digits),
            ColumnKind::DateTime { fraction_digits } => Size::with_fraction(5, fraction_digits),
            ColumnKind::Timestamp { fraction_digits } => Size::with_fraction(4, fraction_digits),
            ColumnKind::Enum { size } | ColumnKind::Set { size } => Size::fixed(size),
            ColumnKind::Char { length_max } | ColumnKind::Varchar { length_max } => {
                Size::prefixed(if length_max > 255 { 2 } else { 1 })
            }
            ColumnKind::Blob { length_size }
            | ColumnKind::Json { length_size }
            | ColumnKind::Geometry { length_size }
            | ColumnKind::Vector { length_size } => Size::prefixed(length_size),
            ColumnKind::TypedArray => Size::prefixed(4),
        }
    }
}

/// How many bytes a value has: all that skipping it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnSize {
    /// Bytes of the length before the value; 0: the size is fixed.
    prefix: u8,
    fixed: u8,
    /// Whether the value is a [`super::compressed_value`].
    compressed: bool,
}

impl ColumnSize {
    const FIELD: &str = "value";
    /// A compressed value that was expanded: it may have any length.
    pub(super) const EXPANDED: Self = ColumnSize { prefix: 4, fixed: 0, compressed: false };

    fn fixed(fixed: u8) -> Self {
        ColumnSize { prefix: 0, fixed, compressed: false }
    }

    fn prefixed(prefix: u8) -> Self {
        ColumnSize { prefix, fixed: 0, compressed: false }
    }

    /// The size of a compressed value of this kind.
    pub(super) fn of_compressed(kind: ColumnKind) -> Self {
        let stored = match kind {
            ColumnKind::Varchar { length_max } => {
                ColumnKind::Varchar { length_max: length_max.saturating_add(COMPRESSED_FRONT) }
            }
            other => other,
        };
        ColumnSize { compressed: true, ..stored.size() }
    }

    pub(super) fn is_compressed(self) -> bool {
        self.compressed
    }

    fn with_fraction(whole: u8, fraction_digits: u8) -> Self {
        ColumnSize::fixed(whole + fraction_size(fraction_digits) as u8)
    }

    /// Takes a value; a length before it is not part of it.
    #[inline]
    pub(super) fn take<'a>(self, cursor: &mut Cursor<'a>) -> Result<&'a [u8]> {
        // Nearly all are of a fixed size or short. We test for them one by one: a jump table is predicted
        // less well.
        let length = if self.prefix == 0 {
            usize::from(self.fixed)
        } else if self.prefix == 1 {
            usize::from(cursor.u8(Self::FIELD)?)
        } else {
            self.long(cursor)?
        };
        cursor.bytes(length, Self::FIELD)
    }

    /// Takes a value and appends it as [`super::rows`] reads it from expanded rows: a compressed one with
    /// [`ColumnSize::EXPANDED`], any other as it is.
    pub(super) fn copy_expanded(self, cursor: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<()> {
        let before = cursor.peek();
        let value = self.take(cursor)?;
        if self.is_compressed() {
            return compressed_value::expand(value, out);
        }
        out.put(before.get(..before.len() - cursor.remaining()).unwrap_or_default());
        Ok(())
    }

    /// Appends a value, with its length before it where it has one.
    pub(super) fn put(self, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let front = compressed_value::front_of_uncompressed(value).filter(|_| self.compressed);
        let length = value.len() + front.map_or(0, <[u8]>::len);
        let fits = match self.prefix {
            0 => length == usize::from(self.fixed),
            prefix => prefix >= 8 || length as u64 >> (8 * u32::from(prefix)) == 0,
        };
        if !fits {
            return Err(Error::invalid(
                "row image",
                "size of a value",
                value.len(),
                "one that its column has",
            ));
        }
        out.put_uint(length as u64, usize::from(self.prefix));
        out.put(front.unwrap_or_default());
        out.put(value);
        Ok(())
    }

    /// The length of a value that may be longer.
    #[inline(never)]
    fn long(self, cursor: &mut Cursor<'_>) -> Result<usize> {
        Ok(match self.prefix {
            2 => usize::from(cursor.u16(Self::FIELD)?),
            3 => cursor.u24(Self::FIELD)? as usize,
            _ => cursor.u32(Self::FIELD)? as usize,
        })
    }
}

/// Values of fixed sizes, and then one with its length before it, unless it is the row's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leap {
    fixed: u32,
    prefix: u8,
}

impl Leap {
    /// The leaps over a row without NULLs.
    pub(super) fn all(sizes: &[ColumnSize]) -> Box<[Leap]> {
        let mut leaps = Vec::new();
        let mut fixed = 0;
        for size in sizes {
            fixed += u32::from(size.fixed);
            if size.prefix > 0 {
                leaps.push(Leap { fixed: std::mem::take(&mut fixed), prefix: size.prefix });
            }
        }
        if fixed > 0 {
            leaps.push(Leap { fixed, prefix: 0 });
        }
        leaps.into()
    }

    /// Takes the values; `false`: they are not all there.
    #[inline]
    pub(super) fn pass(self, bytes: &mut &[u8]) -> bool {
        let Some((_, rest)) = bytes.split_at_checked(self.fixed as usize) else { return false };
        let prefix = usize::from(self.prefix);
        let length = match (prefix, rest) {
            (0, _) => 0,
            (1, [length, ..]) => usize::from(*length),
            (2, [low, high, ..]) => usize::from(u16::from_le_bytes([*low, *high])),
            (3, [low, middle, high, ..]) => u32::from_le_bytes([*low, *middle, *high, 0]) as usize,
            (4, [a, b, c, d, ..]) => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
            _ => return false,
        };
        let Some(rest) = rest.get(prefix..).and_then(|rest| rest.get(length..)) else { return false };
        *bytes = rest;
        true
    }
}

/// ENUM, SET or CHAR: the first byte tells which.
fn string(metadata: &mut Cursor<'_>) -> Result<ColumnKind> {
    let type_byte = metadata.u8("type of a string")?;
    let low = metadata.u8("length of a string")?;
    match ColumnType(type_byte) {
        ColumnType::ENUM => Ok(ColumnKind::Enum { size: one_of(low, "size of an enum", &[1, 2], "1 or 2")? }),
        ColumnType::SET => {
            Ok(ColumnKind::Set { size: one_of(low, "size of a set", &[1, 2, 3, 4, 8], "1 to 4, or 8")? })
        }
        ColumnType(byte) if byte | LENGTH_BITS == ColumnType::STRING.0 => {
            let high = u16::from(!byte & LENGTH_BITS) << 4;
            Ok(ColumnKind::Char { length_max: high | u16::from(low) })
        }
        other => Err(Error::invalid(WHAT, "type of a string", other, "STRING, ENUM or SET")),
    }
}

fn fraction_digits(metadata: &mut Cursor<'_>) -> Result<u8> {
    match metadata.u8("fraction digits")? {
        digits @ 0..=FRACTION_DIGITS_MAX => Ok(digits),
        other => Err(Error::invalid(WHAT, "fraction digits", other, "0 to 6")),
    }
}

fn length_size(metadata: &mut Cursor<'_>) -> Result<u8> {
    one_of(metadata.u8("size of a length")?, "size of a length", &[1, 2, 3, 4], "1 to 4")
}

fn one_of(value: u8, field: &'static str, allowed: &[u8], expected: &'static str) -> Result<u8> {
    if allowed.contains(&value) { Ok(value) } else { Err(Error::invalid(WHAT, field, value, expected)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(column_type: ColumnType, metadata: &[u8]) -> Result<ColumnKind> {
        ColumnKind::new(&Column { column_type, metadata }, None)
    }

    #[test]
    fn long_chars_hide_two_bits_of_their_length_in_the_type() {
        for (metadata, length_max) in
            [([0xfe, 0x14], 20), ([0xfe, 0xff], 255), ([0xee, 0xff], 511), ([0xce, 0xfc], 1020)]
        {
            assert_eq!(kind(ColumnType::STRING, &metadata).unwrap(), ColumnKind::Char { length_max });
        }
        assert_eq!(kind(ColumnType::STRING, &[0xf7, 2]).unwrap(), ColumnKind::Enum { size: 2 });
        assert_eq!(kind(ColumnType::STRING, &[0xf8, 8]).unwrap(), ColumnKind::Set { size: 8 });
    }

    #[test]
    fn metadata_that_no_column_has_are_refused() {
        for (column_type, metadata) in [
            (ColumnType::STRING, &[0xf7, 3][..]),
            (ColumnType::STRING, &[0xf8, 5]),
            (ColumnType::STRING, &[0x0f, 5]),
            (ColumnType::STRING, &[0, 5]),
            (ColumnType::STRING, &[0xfe]),
            (ColumnType::BIT, &[0, 0]),
            (ColumnType::BIT, &[1, 8]),
            (ColumnType::BIT, &[8, 0]),
            (ColumnType::NEWDECIMAL, &[82, 0]),
            (ColumnType::FLOAT, &[8]),
            (ColumnType::DOUBLE, &[4]),
            (ColumnType::TIME2, &[7]),
            (ColumnType::BLOB, &[0]),
            (ColumnType::JSON, &[5]),
            (ColumnType::LONG, &[0]),
            (ColumnType::DECIMAL, &[]),
            (ColumnType(100), &[]),
        ] {
            assert!(kind(column_type, metadata).is_err(), "{column_type} {metadata:?}");
        }
    }

    #[test]
    fn lengths_that_lie_are_noticed() {
        let blob = kind(ColumnType::BLOB, &[4]).unwrap().size();
        let mut cursor = Cursor::new(b"\xff\xff\xff\xffabc", "row image");
        let error = blob.take(&mut cursor).unwrap_err();
        assert_eq!(error.to_string(), "row image: value needs 4294967295 bytes, 3 are left");
        let varchar = ColumnKind::Varchar { length_max: 256 }.size();
        assert_eq!(varchar.take(&mut Cursor::new(b"\x02\0abc", "row image")).unwrap(), b"ab");
    }
}
