//! Text formats that occur in messages of the protocol, and not in events.

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_binlog::{Error, Result};

/// Takes text up to a NUL, which must be there.
pub(crate) fn take_nul_text<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8]> {
    let Some(length) = cursor.peek().iter().position(|&byte| byte == 0) else {
        return Err(Error::invalid(cursor.what(), field, "without an end", "a closing NUL"));
    };
    let text = cursor.bytes(length, field)?;
    cursor.u8(field)?;
    Ok(text)
}

/// Appends text and a NUL.
pub(crate) fn put_nul_text(out: &mut Vec<u8>, text: &[u8]) {
    out.put(text);
    out.put_u8(0);
}

/// Takes text after its length-encoded length.
pub(crate) fn take_lei_text<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8]> {
    let length = cursor.lei(field)?;
    cursor.bytes_u64(length, field)
}

/// Appends a length-encoded length and the text.
pub(crate) fn put_lei_text(out: &mut Vec<u8>, text: &[u8]) {
    out.put_lei(text.len() as u64);
    out.put(text);
}

/// Takes text after one byte of length.
pub(crate) fn take_short_text<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8]> {
    let length = cursor.u8(field)?;
    cursor.bytes(usize::from(length), field)
}

/// Appends one byte of length and the text, cut to fit.
pub(crate) fn put_short_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = text.get(..usize::from(u8::MAX)).unwrap_or(text);
    out.put_u8(text.len() as u8);
    out.put(text);
}
