//! The statement behind the rows that follow (`binlog_rows_query_log_events`).
//!
//! ```text
//! offset size field
//!      0    1 length      of the statement, 255 where it is longer; readers ignore it
//!      1      statement   the rest
//! ```
//!
//! (Facts of MySQL 9.7.4's `Rows_query_event`.)

use crate::error::Result;
use crate::frame::decode_whole;
use crate::put::Put;

/// A decoded rows query event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsQueryEvent<'a> {
    /// The statement.
    pub statement: &'a [u8],
}

impl<'a> RowsQueryEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, "rows query event", |cursor| {
            cursor.u8("length")?;
            Ok(RowsQueryEvent { statement: cursor.rest() })
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(1 + self.statement.len());
        body.put_u8(u8::try_from(self.statement.len()).unwrap_or(u8::MAX));
        body.put(self.statement);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree_also_beyond_255_bytes() {
        for (length, first) in [(0, 0), (7, 7), (255, 255), (256, 255), (70_000, 255)] {
            let statement = vec![b'x'; length];
            let event = RowsQueryEvent { statement: &statement };
            let body = event.encode();
            assert_eq!((body[0], body.len()), (first, length + 1));
            assert_eq!(RowsQueryEvent::decode(&body).unwrap(), event);
        }
        assert!(RowsQueryEvent::decode(&[]).is_err());
    }
}
