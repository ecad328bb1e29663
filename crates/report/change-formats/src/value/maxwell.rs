//! Values as Maxwell prints them: numbers and exact numbers as numbers, times as the server
//! writes them, binary strings in base64, SET as an array, JSON as a part of the line, GEOMETRY as well-known text.

use std::io::Write as _;

use binlogz_binlog::row::{Cell, Value};
use binlogz_binlog::{Error, Result};
use binlogz_print::{push_signed, push_unsigned};

use super::canal::push_local;
use super::{FieldValues, JACKSON, WHAT, enum_member, push_vector, text, unknown, without_spaces};
use crate::java::{push_base64, push_decimal, push_document, push_float, push_string};
use crate::table::ChangeColumn;

/// Levels of collections in a geometry.
const DEPTH_MAX: usize = 32;

/// Maxwell's values.
pub(crate) struct MaxwellValues;

impl FieldValues for MaxwellValues {
    fn push(&self, out: &mut Vec<u8>, cell: &Cell<'_>, column: &ChangeColumn) -> Result<()> {
        push(out, cell, column)
    }

    fn push_changed_document(&self, out: &mut Vec<u8>, text: &[u8]) {
        out.extend_from_slice(&without_spaces(text));
    }
}

fn push(out: &mut Vec<u8>, cell: &Cell<'_>, column: &ChangeColumn) -> Result<()> {
    let value = cell.value()?;
    match &value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Int(number) => push_signed(out, *number),
        Value::Uint(number) | Value::Bit(number) => push_unsigned(out, *number),
        Value::Year(year) => push_unsigned(out, u64::from(*year)),
        Value::Float(number) => push_float(out, *number),
        Value::Double(number) => push_float(out, *number),
        Value::Decimal(decimal) => push_decimal(out, decimal.text().as_bytes()),
        Value::Date(date) => quoted(out, date.text().as_bytes()),
        Value::Time(time) => quoted(out, time.text().as_bytes()),
        Value::DateTime(datetime) => quoted(out, datetime.text().as_bytes()),
        Value::Timestamp(timestamp) => push_local(out, *timestamp),
        // What the column couldn't take.
        Value::Enum(0) => out.extend_from_slice(b"null"),
        Value::Enum(number) => push_string(out, &enum_member(column, *number)?, JACKSON),
        Value::Set(bits) => {
            out.push(b'[');
            for (index, member) in column.schema.set_members(*bits).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                push_string(out, &text(column, member), JACKSON);
            }
            out.push(b']');
        }
        Value::Bytes(bytes) if column.is_binary => push_base64(out, &column.schema.padded(bytes)),
        Value::Bytes(bytes) => push_string(out, &text(column, bytes), JACKSON),
        Value::Json(document) => push_document(out, document)?,
        Value::Geometry(bytes) => {
            out.push(b'"');
            let mut shape = Shape { bytes: bytes.get(4..).unwrap_or_default(), depth: 0 };
            shape.push(out)?;
            out.push(b'"');
        }
        Value::Vector(vector) => push_vector(out, vector),
        Value::JsonDiffs(_) => return Err(unknown(&value)),
    }
    Ok(())
}

fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    out.extend_from_slice(text);
    out.push(b'"');
}

/// A shape in well-known binary.
struct Shape<'a> {
    bytes: &'a [u8],
    depth: usize,
}

impl Shape<'_> {
    fn damaged(&self) -> Error {
        Error::invalid(
            WHAT,
            "geometry",
            format!("{} bytes left", self.bytes.len()),
            "a shape in well-known binary",
        )
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((taken, rest)) = self.bytes.split_first_chunk() else { return Err(self.damaged()) };
        self.bytes = rest;
        Ok(*taken)
    }

    /// The type of the shape that follows.
    fn kind(&mut self) -> Result<u32> {
        match self.take()? {
            [1] => Ok(u32::from_le_bytes(self.take()?)),
            _ => Err(self.damaged()),
        }
    }

    /// As JTS writes it: `NAME (…)`.
    fn push(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let kind = self.kind()?;
        let name = match kind {
            1 => "POINT",
            2 => "LINESTRING",
            3 => "POLYGON",
            4 => "MULTIPOINT",
            5 => "MULTILINESTRING",
            6 => "MULTIPOLYGON",
            7 => "GEOMETRYCOLLECTION",
            _ => return Err(self.damaged()),
        };
        out.extend_from_slice(name.as_bytes());
        out.push(b' ');
        match kind {
            7 => self.each(out, Self::push),
            kind => self.coordinates(out, kind),
        }
    }

    fn coordinates(&mut self, out: &mut Vec<u8>, kind: u32) -> Result<()> {
        match kind {
            1 => {
                out.push(b'(');
                self.pair(out)?;
                out.push(b')');
                Ok(())
            }
            2 => self.each(out, Self::pair),
            3 => self.each(out, |shape, out| shape.each(out, Self::pair)),
            kind => self.each(out, |shape, out| {
                let inner = shape.kind()?;
                if inner + 3 != kind {
                    return Err(shape.damaged());
                }
                shape.coordinates(out, inner)
            }),
        }
    }

    fn each(
        &mut self,
        out: &mut Vec<u8>,
        mut push: impl FnMut(&mut Self, &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let count = u32::from_le_bytes(self.take()?);
        if count == 0 {
            out.extend_from_slice(b"EMPTY");
            return Ok(());
        }
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::invalid(WHAT, "nesting of a geometry", self.depth, "at most 32 levels"));
        }
        for index in 0..count {
            out.extend_from_slice(if index == 0 { b"(" } else { b", " });
            push(self, out)?;
        }
        out.push(b')');
        self.depth -= 1;
        Ok(())
    }

    fn pair(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let x = f64::from_le_bytes(self.take()?);
        let y = f64::from_le_bytes(self.take()?);
        // Whole numbers without a point.
        let _ = write!(out, "{x} {y}");
        Ok(())
    }
}
