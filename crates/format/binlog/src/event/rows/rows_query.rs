//! The statement that the rows after it come from (`binlog_rows_query_log_events`).
//!
//! ```text
//! offset size field
//!      0    1 length      readers ignore it; 0 in the logs of MySQL 9.7
//!      1      statement   the rest
//! ```
//!
//! (Facts of MySQL 9.7.4's `Rows_query_event` and its logs.)

use crate::error::Result;
use crate::frame::decode_whole;
use crate::put::PutFields;

/// A decoded rows query event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowsQueryEvent<'a> {
    /// Has no meaning; kept so that the event is written back unchanged.
    pub length: u8,
    /// The statement.
    pub statement: &'a [u8],
}

impl<'a> RowsQueryEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, "rows query event", |cursor| {
            Ok(RowsQueryEvent { length: cursor.u8("length")?, statement: cursor.rest() })
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(1 + self.statement.len());
        body.put_u8(self.length);
        body.put(self.statement);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree_whatever_the_length_byte_says() {
        for (length, size) in [(0, 7), (7, 7), (255, 70_000)] {
            let statement = vec![b'x'; size];
            let event = RowsQueryEvent { length, statement: &statement };
            let body = event.encode();
            assert_eq!((body[0], body.len()), (length, size + 1));
            assert_eq!(RowsQueryEvent::decode(&body).unwrap(), event);
        }
        assert!(RowsQueryEvent::decode(&[]).is_err());
    }
}
