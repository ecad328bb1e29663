//! LOAD DATA in statement format: the file in blocks, then the statement that loads it.
//!
//! ```text
//! BEGIN_LOAD_QUERY    size field
//! APPEND_BLOCK           4 file_id
//!                          block                    the rest
//! DELETE_FILE            4 file_id
//! EXECUTE_LOAD_QUERY    13 as a query event's       see query.rs
//!                        4 file_id
//!                        4 file_name_start          the file's name in the statement, with the
//!                        4 file_name_end            word before it: a replica replaces it
//!                        1 duplicate_handling       0 error, 1 ignore, 2 replace
//!                          status variables, database, statement, as in a query event
//! ```
//!
//! A DELETE_FILE replaces the statement if it failed on the source. (Facts of MySQL 9.7.4's
//! `Append_block_event`, `Delete_file_event`, `Execute_load_query_event`.)

use super::QueryEvent;
use super::query::QueryPostHeader;
use crate::error::{Error, Result};
use crate::frame::decode_whole;
use crate::put::PutFields;

/// A block of a file: the first (BEGIN_LOAD_QUERY) or a later one (APPEND_BLOCK).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadBlockEvent<'a> {
    /// Which of the session's files.
    pub file_id: u32,
    /// The next bytes of the file.
    pub block: &'a [u8],
}

impl<'a> LoadBlockEvent<'a> {
    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, "load block event", |cursor| {
            Ok(LoadBlockEvent { file_id: cursor.u32("file id")?, block: cursor.rest() })
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(4 + self.block.len());
        body.put_u32(self.file_id);
        body.put(self.block);
        body
    }
}

/// The file is not needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeleteFileEvent {
    /// Which of the session's files.
    pub file_id: u32,
}

impl DeleteFileEvent {
    /// Reads a body without its checksum.
    pub fn decode(body: &[u8]) -> Result<Self> {
        decode_whole(body, "delete file event", |cursor| {
            Ok(DeleteFileEvent { file_id: cursor.u32("file id")? })
        })
    }

    /// The body as it stands in a file, without the checksum.
    pub fn encode(&self) -> Vec<u8> {
        self.file_id.to_le_bytes().to_vec()
    }
}

/// The treatment of rows whose key already exists, in LOAD DATA. Unknown values survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DuplicateHandling(pub u8);

impl DuplicateHandling {
    /// The statement fails.
    pub const ERROR: Self = DuplicateHandling(0);
    /// `IGNORE`.
    pub const IGNORE: Self = DuplicateHandling(1);
    /// `REPLACE`.
    pub const REPLACE: Self = DuplicateHandling(2);
}

/// The statement that loads a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecuteLoadQueryEvent<'a> {
    /// The statement and its session.
    pub query: QueryEvent<'a>,
    /// Which of the session's files.
    pub file_id: u32,
    /// Where the part of the statement that names the file begins.
    pub file_name_start: u32,
    /// Where the file's name ends in the statement, in bytes.
    pub file_name_end: u32,
    /// The treatment of rows whose key already exists.
    pub duplicate_handling: DuplicateHandling,
}

const EXECUTE_LOAD_QUERY: &str = "execute load query event";

impl<'a> ExecuteLoadQueryEvent<'a> {
    /// Reads a body without its checksum. Offsets outside the statement are refused.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, EXECUTE_LOAD_QUERY, |cursor| {
            let post_header = QueryPostHeader::read(cursor)?;
            let file_id = cursor.u32("file id")?;
            let file_name_start = cursor.u32("file name start")?;
            let file_name_end = cursor.u32("file name end")?;
            let duplicate_handling = DuplicateHandling(cursor.u8("duplicate handling")?);
            let query = QueryEvent::read_variable_part(cursor, &post_header)?;
            let start = file_name_start as usize;
            let end = file_name_end as usize;
            if query.statement.get(start..end).is_none() {
                return Err(Error::invalid(
                    EXECUTE_LOAD_QUERY,
                    "place of the file name",
                    format!("{start}..{end}"),
                    "a place in the statement",
                ));
            }
            Ok(ExecuteLoadQueryEvent { query, file_id, file_name_start, file_name_end, duplicate_handling })
        })
    }

    /// The body as it stands in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// As [`QueryEvent::encode`].
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(self.query.statement.len() + 512);
        self.query.post_header(EXECUTE_LOAD_QUERY)?.write(&mut body);
        body.put_u32(self.file_id);
        body.put_u32(self.file_name_start);
        body.put_u32(self.file_name_end);
        body.put_u8(self.duplicate_handling.0);
        self.query.write_variable_part(&mut body);
        Ok(body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::StatusVariables;

    #[test]
    fn blocks_and_deletions_round_trip() {
        let event = LoadBlockEvent { file_id: 3, block: b"1\ta\n" };
        let body = event.encode();
        assert_eq!(body, b"\x03\0\0\x001\ta\n");
        assert_eq!(LoadBlockEvent::decode(&body).unwrap(), event);
        assert!(LoadBlockEvent::decode(&body[..3]).is_err());

        let event = DeleteFileEvent { file_id: 3 };
        let body = event.encode();
        assert_eq!(DeleteFileEvent::decode(&body).unwrap(), event);
        assert!(DeleteFileEvent::decode(&body[..3]).is_err());
        assert!(DeleteFileEvent::decode(&[0; 5]).is_err());
    }

    #[test]
    fn the_statement_round_trips_and_its_places_are_checked() {
        let query = QueryEvent {
            thread_id: 8,
            exec_time: 0,
            error_code: 0,
            status_variables: StatusVariables(&[16, 1]),
            database: b"test",
            statement: b"LOAD DATA INFILE 'x' INTO TABLE t",
        };
        let event = ExecuteLoadQueryEvent {
            query,
            file_id: 3,
            file_name_start: 9,
            file_name_end: 25,
            duplicate_handling: DuplicateHandling(7),
        };
        let body = event.encode().unwrap();
        assert_eq!(body.len(), 26 + 2 + 5 + query.statement.len());
        assert_eq!(ExecuteLoadQueryEvent::decode(&body).unwrap(), event);
        for length in 0..body.len() {
            // Up to the end of the file's name every cut is noticed.
            let whole = length >= body.len() - query.statement.len() + 25;
            assert_eq!(ExecuteLoadQueryEvent::decode(&body[..length]).is_ok(), whole, "{length}");
        }
        for (file_name_start, file_name_end) in [(9, 34), (26, 25), (u32::MAX, u32::MAX)] {
            let bad = ExecuteLoadQueryEvent { file_name_start, file_name_end, ..event };
            assert!(ExecuteLoadQueryEvent::decode(&bad.encode().unwrap()).is_err());
        }
    }
}
