//! The forms of text that messages have and events don't.

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::Put;
use binlogz_binlog::{Error, Result};

/// Takes text up to a NUL, which must come.
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

/// Takes text behind its length-encoded length.
pub(crate) fn take_lei_text<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8]> {
    let length = cursor.lei(field)?;
    cursor.bytes_u64(length, field)
}

/// Appends text behind its length-encoded length.
pub(crate) fn put_lei_text(out: &mut Vec<u8>, text: &[u8]) {
    out.put_lei(text.len() as u64);
    out.put(text);
}

/// Takes text behind one byte of length.
pub(crate) fn take_short_text<'a>(cursor: &mut Cursor<'a>, field: &'static str) -> Result<&'a [u8]> {
    let length = cursor.u8(field)?;
    cursor.bytes(usize::from(length), field)
}

/// Appends text behind one byte of length; what does not fit is left out.
pub(crate) fn put_short_text(out: &mut Vec<u8>, text: &[u8]) {
    let text = text.get(..usize::from(u8::MAX)).unwrap_or(text);
    out.put_u8(text.len() as u8);
    out.put(text);
}
