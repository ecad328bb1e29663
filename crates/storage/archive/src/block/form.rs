//! How to walk over a column's values: where each one ends, and whether it is a number.

use binlogz_binlog::row::ColumnKind;

use crate::block::walk::ByteOrder;
use crate::error::{Error, Result};

/// How a value is walked over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueWalk {
    Number { size: usize, order: ByteOrder },
    Fixed { size: usize },
    Prefixed { prefix: usize },
}

impl ValueWalk {
    pub(crate) fn of(kind: ColumnKind) -> ValueWalk {
        let low = |size| ValueWalk::Number { size, order: ByteOrder::Low };
        let high = |size: u8| match size {
            0..=8 => ValueWalk::Number { size: usize::from(size), order: ByteOrder::High },
            size => ValueWalk::Fixed { size: usize::from(size) },
        };
        let fraction = |digits: u8| digits.div_ceil(2);
        match kind {
            ColumnKind::Null => ValueWalk::Fixed { size: 0 },
            ColumnKind::TinyInt { .. } | ColumnKind::Year => low(1),
            ColumnKind::SmallInt { .. } => low(2),
            ColumnKind::MediumInt { .. } | ColumnKind::Date | ColumnKind::OldTime => low(3),
            ColumnKind::Int { .. } | ColumnKind::Float | ColumnKind::OldTimestamp => low(4),
            ColumnKind::BigInt { .. } | ColumnKind::Double | ColumnKind::OldDateTime => low(8),
            ColumnKind::Decimal(format) => high(format.size()),
            ColumnKind::Bit { bits } => high(bits.div_ceil(8)),
            ColumnKind::Time { fraction_digits } => high(3 + fraction(fraction_digits)),
            ColumnKind::DateTime { fraction_digits } => high(5 + fraction(fraction_digits)),
            ColumnKind::Timestamp { fraction_digits } => high(4 + fraction(fraction_digits)),
            ColumnKind::Enum { size } | ColumnKind::Set { size } => low(usize::from(size)),
            ColumnKind::Char { length_max } | ColumnKind::Varchar { length_max } => {
                ValueWalk::Prefixed { prefix: if length_max > 255 { 2 } else { 1 } }
            }
            ColumnKind::Blob { length_size }
            | ColumnKind::Json { length_size }
            | ColumnKind::Geometry { length_size }
            | ColumnKind::Vector { length_size } => ValueWalk::Prefixed { prefix: usize::from(length_size) },
            ColumnKind::TypedArray => ValueWalk::Prefixed { prefix: 4 },
        }
    }

    /// A number for the form: columns of the same form resemble each other.
    pub(crate) fn number(self) -> u8 {
        match self {
            ValueWalk::Number { size, order: ByteOrder::Low } => 0x10 | size as u8,
            ValueWalk::Number { size, order: ByteOrder::High } => 0x20 | size as u8,
            ValueWalk::Fixed { size } => 0x40 | size.min(0x3f) as u8,
            ValueWalk::Prefixed { prefix } => 0x80 | prefix as u8,
        }
    }

    /// The value at the start of these bytes, if its length comes first.
    pub(crate) fn string(self, bytes: &[u8]) -> Option<&[u8]> {
        let ValueWalk::Prefixed { prefix } = self else { return None };
        bytes.get(prefix..self.end(bytes, 0).ok()?)
    }

    /// The end of the value that begins at `at`.
    pub(crate) fn end(self, bytes: &[u8], at: usize) -> Result<usize> {
        match self {
            ValueWalk::Number { size, .. } | ValueWalk::Fixed { size } => Ok(at + size),
            ValueWalk::Prefixed { prefix } => {
                let length = bytes.get(at..at + prefix).ok_or_else(value_short)?;
                let length = length.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
                Ok(at + prefix + length)
            }
        }
    }
}

fn value_short() -> Error {
    Error::damaged("row image", "its end inside a value", "whole values")
}
