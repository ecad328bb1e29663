//! MariaDB's compressed statements and rows (`log_bin_compress`). Expanding them gives the events that the server would
//! have logged without compression.
//!
//! ```text
//! size field
//!      front      as in the plain event: of a statement up to its text, of rows up to the first row
//!    1 method     bit 7 set; bits 4 to 6: 0 is zlib; bits 0 to 2: bytes of the size
//!    n size       of the text or the rows, big-endian
//!      compressed a zlib stream
//! ```
//!
//! | compressed | expanded |
//! |---|---|
//! | 165 | query |
//! | 166 to 168 | write, update, delete rows v1 |
//! | 169 to 171 | write, update, delete rows |
//!
//! (Facts of MariaDB 10.11's `binlog_buf_uncompress`, `query_event_uncompress` and `row_log_event_uncompress`.)

use super::rows::RowsEvent;
use super::{PostHeaderLengths, QueryEvent};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event_type::EventType;
use crate::zlib::{self, Wrap};

const WHAT: &str = "compressed event";
/// Set in the method byte of every compressed body.
const COMPRESSED: u8 = 0x80;
/// The method, of which there is one: zlib is 0.
const METHOD: u8 = 0x70;
/// Bytes of the size.
const SIZE_OF_SIZE: u8 = 0x07;
/// Bytes at the start of a statement that decide its effect on its transaction.
const KEYWORDS: usize = 32;

/// A compressed event whose body was not expanded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedEvent<'a> {
    /// The type that it has when it is expanded.
    pub expanded_type: EventType,
    /// The bytes of the body before the compressed part. They stay as they are.
    front: &'a [u8],
    /// Size of the rest, expanded, as the event has it.
    rest_size: u32,
    /// The zlib stream.
    compressed: &'a [u8],
}

impl<'a> CompressedEvent<'a> {
    /// Reads a body without its checksum; of a statement, its first bytes are enough for
    /// [`CompressedEvent::statement_start`]. `lengths` are those of the last format description.
    ///
    /// # Errors
    ///
    /// A type that isn't compressed, a field that is cut, a method that no server has.
    pub fn decode(event_type: EventType, body: &'a [u8], lengths: &PostHeaderLengths) -> Result<Self> {
        let Some(expanded_type) = event_type.mariadb_expanded() else {
            return Err(Error::invalid(WHAT, "event type", event_type, "165 to 171"));
        };
        let rest = if expanded_type == EventType::QUERY {
            QueryEvent::decode(body)?.statement
        } else {
            RowsEvent::decode(expanded_type, body, lengths.of(expanded_type))?.rows
        };
        let front = body.get(..body.len() - rest.len()).unwrap_or_default();
        let mut cursor = Cursor::new(rest, WHAT);
        let method = cursor.u8("method")?;
        let size_of_size = usize::from(method & SIZE_OF_SIZE);
        if method & COMPRESSED == 0 || method & METHOD != 0 || !(1..=4).contains(&size_of_size) {
            return Err(Error::invalid(WHAT, "method", method, "zlib (0x81 to 0x84)"));
        }
        let size = cursor.bytes(size_of_size, "size")?;
        let rest_size = size.iter().fold(0u32, |size, &byte| size << 8 | u32::from(byte));
        Ok(CompressedEvent { expanded_type, front, rest_size, compressed: cursor.rest() })
    }

    /// Bytes of the expanded body, as the event says; not more than its bytes can expand to.
    pub fn body_size_max(&self) -> u64 {
        self.front.len() as u64
            + u64::from(self.rest_size).min(zlib::expanded_size_max(self.compressed.len()))
    }

    /// Appends the body of the expanded event.
    ///
    /// # Errors
    ///
    /// Bytes that are no zlib stream, or one of another size; nothing is appended then.
    pub fn expand(&self, out: &mut Vec<u8>) -> Result<()> {
        let begin = out.len();
        out.extend_from_slice(self.front);
        let expanded = zlib::expand(self.compressed, self.rest_size as usize, Wrap::Zlib, out);
        if expanded.is_err() {
            out.truncate(begin);
        }
        expanded
    }

    /// The first bytes of a statement, enough to classify it. `None`: there is none, or they can't be expanded.
    pub(crate) fn statement_start(&self) -> Option<Vec<u8>> {
        let mut start = vec![0; KEYWORDS];
        let length = zlib::expand_start(self.compressed, &mut start)?;
        start.truncate(length.min(self.rest_size as usize));
        (!start.is_empty()).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miniz_oxide::deflate::compress_to_vec_zlib;

    const FRONT: &[u8] = b"\x38\0\0\0\0\0\x01\0\x02\x03";

    fn body(method: &[u8], rows: &[u8]) -> Vec<u8> {
        [FRONT, method, &compress_to_vec_zlib(rows, 6)].concat()
    }

    fn expand(event_type: EventType, body: &[u8]) -> Result<Vec<u8>> {
        let mut out = b"kept".to_vec();
        let event = CompressedEvent::decode(event_type, body, &PostHeaderLengths::default())?;
        let expanded = event.expand(&mut out);
        assert!(out.starts_with(b"kept"));
        expanded.inspect_err(|_| assert_eq!(out, b"kept"))?;
        assert!(event.body_size_max() >= out.len() as u64 - 4);
        Ok(out.split_off(4))
    }

    #[test]
    fn rows_are_expanded_after_their_columns() {
        let rows = [7; 600];
        let plain = [FRONT, &rows].concat();
        assert_eq!(expand(EventType(166), &body(&[0x82, 2, 88], &rows)).unwrap(), plain);
        // An update has two bitmaps.
        let update = [FRONT, b"\x03", &[0x82, 2, 88], &compress_to_vec_zlib(&rows, 6)[..]].concat();
        assert_eq!(expand(EventType(167), &update).unwrap(), [FRONT, b"\x03", &rows].concat());
    }

    #[test]
    fn damaged_ones_are_refused_and_leave_nothing() {
        let rows = [7; 600];
        let good = body(&[0x82, 2, 88], &rows);
        for bad in [
            body(&[0x82, 2, 87], &rows),
            body(&[0x82, 2, 89], &rows),
            body(&[0x92, 2, 88], &rows),
            body(&[0x02, 2, 88], &rows),
            body(&[0x80], &rows),
            body(&[0x85, 0, 0, 0, 2, 88], &rows),
            body(&[0x84, 0xff, 0xff, 0xff, 0xff], &rows),
        ] {
            assert!(expand(EventType(166), &bad).is_err(), "{bad:x?}");
        }
        for cut in 0..good.len() {
            assert!(expand(EventType(166), &good[..cut]).is_err(), "{cut}");
        }
        assert!(expand(EventType::WRITE_ROWS_V1, &good).is_err());
    }

    #[test]
    fn the_first_bytes_of_a_statement_are_expanded_alone() {
        let front = b"\0\0\0\0\0\0\0\0\x01\0\0\0\0d\0";
        let long = b"BEGIN /* a statement that is longer than the start */";
        for statement in [&b"COMMIT"[..], b"XA END X'61',X'',1", long] {
            let body =
                [&front[..], &[0x81, statement.len() as u8], &compress_to_vec_zlib(statement, 6)].concat();
            let lengths = PostHeaderLengths::default();
            let event = CompressedEvent::decode(EventType(165), &body, &lengths).unwrap();
            assert_eq!(event.statement_start().unwrap(), statement[..statement.len().min(KEYWORDS)]);
            assert_eq!(expand(EventType(165), &body).unwrap(), [&front[..], statement].concat());
        }
    }
}
