//! Large values: their text is not built in memory, but passed on piece by piece.
//!
//! This holds for text that is UTF-8 already, and for bytes. Text of other character sets and JSON documents are converted
//! whole first.

use std::borrow::Cow;

use binlogz_binlog::Result;
use binlogz_binlog::row::{Cell, CellContent, Row, Value};

use super::text::{BASE64_BEGIN, BASE64_END, push_base64_digits, push_escaped};
use super::value::{push_value, text};

/// Values of more bytes than this are written in pieces.
pub(super) const LARGE_VALUE_SIZE: usize = 1 << 20;

/// Bytes of a value whose text is passed on together. Base64 has no padding between pieces of this size.
const PIECE_SIZE: usize = 192 << 10;
const _: () = assert!(PIECE_SIZE.is_multiple_of(3));

/// A value that is written in pieces.
#[derive(Debug)]
pub struct LargeValue<'a>(LargeContent<'a>);

#[derive(Debug)]
enum LargeContent<'a> {
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// Why a row with large values could not be written.
#[derive(Debug)]
pub enum LargeValueError<E> {
    /// Bytes that the column's type can't have.
    Value(binlogz_binlog::Error),
    /// The output failed.
    Output(E),
}

/// Whether a cell's value is so large that it is written in pieces.
#[inline]
fn is_large(cell: &Cell<'_>) -> bool {
    matches!(cell.content, CellContent::Value(bytes) if bytes.len() > LARGE_VALUE_SIZE)
}

impl<'a> LargeValue<'a> {
    /// The value of a cell, if it is large.
    ///
    /// # Errors
    ///
    /// Bytes that the column's type can't have.
    pub fn of(cell: &Cell<'a>) -> Result<Option<Self>> {
        if !is_large(cell) {
            return Ok(None);
        }
        Ok(match cell.value()? {
            Value::Bytes(bytes) => Some(LargeValue(match text(cell.column, bytes) {
                Some(text) => LargeContent::Text(text),
                None => LargeContent::Bytes(cell.column.padded(bytes)),
            })),
            Value::Geometry(bytes) => Some(LargeValue(LargeContent::Bytes(Cow::Borrowed(bytes)))),
            Value::Json(document) => {
                let mut text = Vec::new();
                document.write_text(&mut text)?;
                let text = String::from_utf8(text)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                Some(LargeValue(LargeContent::Text(Cow::Owned(text))))
            }
            _ => None,
        })
    }

    /// Appends it as [`push_value`] does, and calls `pass_on` after each piece, which may take what is there.
    ///
    /// # Errors
    ///
    /// The errors of `pass_on`.
    pub fn push<E>(
        &self,
        out: &mut Vec<u8>,
        mut pass_on: impl FnMut(&mut Vec<u8>) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match &self.0 {
            LargeContent::Text(text) => {
                out.push(b'"');
                let mut rest = &**text;
                while !rest.is_empty() {
                    let (piece, others) = rest.split_at(piece_end(rest));
                    push_escaped(out, piece);
                    pass_on(out)?;
                    rest = others;
                }
                out.push(b'"');
            }
            LargeContent::Bytes(bytes) => {
                out.extend_from_slice(BASE64_BEGIN);
                for piece in bytes.chunks(PIECE_SIZE) {
                    push_base64_digits(out, piece);
                    pass_on(out)?;
                }
                out.extend_from_slice(BASE64_END);
            }
        }
        Ok(())
    }
}

/// Where the first piece of a text ends: no character is cut.
fn piece_end(text: &str) -> usize {
    (0..=PIECE_SIZE.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(text.len())
}

/// Finds what can't be written of a row that has a large value, before a piece of it is passed on.
///
/// # Errors
///
/// Bytes that a column's type can't have.
pub(super) fn check(row: &Row<'_, '_>) -> Result<()> {
    let cells = || [row.before, row.after].into_iter().flatten().flat_map(|image| image.cells());
    if !cells().any(|cell| is_large(&cell)) {
        return Ok(());
    }
    let mut out = Vec::new();
    let mut scratch = Vec::new();
    for cell in cells() {
        if LargeValue::of(&cell)?.is_none() {
            out.clear();
            push_value(&mut out, &cell, &mut scratch)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::text::{push_base64, push_string};
    use super::*;

    fn in_pieces(value: LargeContent<'_>) -> (Vec<u8>, usize) {
        let mut text = Vec::new();
        let mut longest = 0;
        let mut out = Vec::new();
        let mut take = |out: &mut Vec<u8>| {
            longest = longest.max(out.len());
            text.append(out);
            Ok::<_, ()>(())
        };
        LargeValue(value).push(&mut out, &mut take).unwrap();
        take(&mut out).unwrap();
        (text, longest)
    }

    #[test]
    fn pieces_are_the_whole_text() {
        let string = "a\"é\n日本🦀".repeat(100_000);
        for length in [0, 1, PIECE_SIZE, PIECE_SIZE + 1, PIECE_SIZE + 2, string.len()] {
            let front = string.get(..length).unwrap_or_else(|| &string[..length - 1]);
            let mut whole = Vec::new();
            push_string(&mut whole, front);
            let (pieces, longest) = in_pieces(LargeContent::Text(front.into()));
            assert!(pieces == whole && longest < 2 * PIECE_SIZE, "{length}");
            whole.clear();
            let bytes = &string.as_bytes()[..length];
            push_base64(&mut whole, bytes);
            let (pieces, longest) = in_pieces(LargeContent::Bytes(bytes.into()));
            assert!(pieces == whole && longest < 2 * PIECE_SIZE, "{length}");
        }
    }
}
