//! The number by which row events name the table of the table map before them.

use std::fmt;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::put::PutFields;

/// A table's number, good until the end of its statement. 48 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u64);

/// Bytes of the flags that follow every table id.
const FLAGS_SIZE: u8 = 2;

impl TableId {
    /// Takes a number of `width` bytes.
    #[inline]
    pub(in crate::event) fn read(cursor: &mut Cursor<'_>, width: usize) -> Result<Self> {
        Ok(TableId(cursor.uint(width, "table id")?))
    }

    pub(in crate::event) fn write(self, body: &mut Vec<u8>, width: usize) {
        body.put_uint(self.0, width);
    }
}

/// Bytes of a table id: the post-header length minus the flags and `behind` more bytes. Six, but four in the betas of
/// 5.1. A server that no longer supports a type (v1 row events since 8.4) announces a length of 0 for it.
#[inline]
pub(in crate::event) fn table_id_width(
    what: &'static str,
    post_header_length: u8,
    behind: u8,
) -> Result<usize> {
    match post_header_length.checked_sub(FLAGS_SIZE + behind) {
        Some(width @ (4 | 6)) => Ok(usize::from(width)),
        _ if post_header_length == 0 => Ok(6),
        _ => Err(Error::invalid(
            what,
            "post-header length",
            post_header_length,
            "one that leaves 6 (or 4) bytes for the table id",
        )),
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
