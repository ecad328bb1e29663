//! A statement as text: DDL, statement-format changes, BEGIN, COMMIT, SAVEPOINT, XA.
//!
//! ```text
//! offset size field
//!      0    4 thread_id              of the session, shown by SHOW PROCESSLIST
//!      4    4 exec_time              seconds
//!      8    1 database_length
//!      9    2 error_code             of the statement on the source; 0 where it succeeded
//!     11    2 status_variables_length
//!     13    n status_variables       see status_variables.rs
//!   13+n    m database               the session's default database
//! 13+n+m    1 0
//! 14+n+m      statement              the rest
//! ```
//!
//! MySQL and MariaDB write the same body. (Facts of MySQL 9.7.4's `Query_event`.)

use super::status_variables::{StatusVariable, StatusVariables};
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::event::narrow;
use crate::frame::decode_whole;
use crate::put::PutFields;

const WHAT: &str = "query event";

/// A decoded query event. Status variables stay unread until asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryEvent<'a> {
    /// The session on the source.
    pub thread_id: u32,
    /// How long the statement took on the source, seconds.
    pub exec_time: u32,
    /// The error that the statement ended with on the source, 0 for none.
    pub error_code: u16,
    /// The session's settings that the statement depends on.
    pub status_variables: StatusVariables<'a>,
    /// The session's default database; empty for none.
    pub database: &'a [u8],
    /// The statement, in the session's `character_set_client`.
    pub statement: &'a [u8],
}

/// The fields before the variable part, which a LOAD DATA statement shares.
pub(in crate::event) struct QueryPostHeader {
    pub(in crate::event) thread_id: u32,
    pub(in crate::event) exec_time: u32,
    pub(in crate::event) database_length: u8,
    pub(in crate::event) error_code: u16,
    pub(in crate::event) status_variables_length: u16,
}

impl QueryPostHeader {
    pub(in crate::event) fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(QueryPostHeader {
            thread_id: cursor.u32("thread id")?,
            exec_time: cursor.u32("exec time")?,
            database_length: cursor.u8("database length")?,
            error_code: cursor.u16("error code")?,
            status_variables_length: cursor.u16("status variables length")?,
        })
    }

    pub(in crate::event) fn write(&self, body: &mut Vec<u8>) {
        body.put_u32(self.thread_id);
        body.put_u32(self.exec_time);
        body.put_u8(self.database_length);
        body.put_u16(self.error_code);
        body.put_u16(self.status_variables_length);
    }
}

impl<'a> QueryEvent<'a> {
    /// Whether it is the start or the rollback of an ALTER in two phases, which MariaDB logs like the ALTER that commits.
    pub fn is_alter_without_effect(&self) -> bool {
        let mut variables = self.status_variables.iter();
        variables.any(|variable| {
            matches!(variable, Ok(StatusVariable::MariaDbAlterStep(step)) if step.changes_nothing())
        })
    }

    /// Reads a body without its checksum.
    pub fn decode(body: &'a [u8]) -> Result<Self> {
        decode_whole(body, WHAT, |cursor| {
            let post_header = QueryPostHeader::read(cursor)?;
            Self::read_variable_part(cursor, &post_header)
        })
    }

    /// Reads the fields after the post-header (and after the extra fields of a LOAD DATA statement).
    pub(in crate::event) fn read_variable_part(
        cursor: &mut Cursor<'a>,
        post_header: &QueryPostHeader,
    ) -> Result<Self> {
        let status_variables =
            cursor.bytes(usize::from(post_header.status_variables_length), "status variables")?;
        let database = cursor.bytes(usize::from(post_header.database_length), "database")?;
        match cursor.u8("NUL after the database")? {
            0 => {}
            other => return Err(Error::invalid(cursor.what(), "NUL after the database", other, "0")),
        }
        Ok(QueryEvent {
            thread_id: post_header.thread_id,
            exec_time: post_header.exec_time,
            error_code: post_header.error_code,
            status_variables: StatusVariables(status_variables),
            database,
            statement: cursor.rest(),
        })
    }

    /// The transaction number of an atomic DDL statement, as an XID event would carry it.
    pub fn ddl_xid(&self) -> Option<u64> {
        self.status_variables.iter().find_map(|variable| match variable {
            // The server writes the highest number for "none".
            Ok(StatusVariable::DdlXid(xid)) if xid != u64::MAX => Some(xid),
            _ => None,
        })
    }

    /// The body as it stands in a file, without the checksum.
    ///
    /// # Errors
    ///
    /// A database above 255 bytes or status variables above 65,535: their lengths do not fit.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let mut body = Vec::with_capacity(self.statement.len() + 512);
        self.post_header(WHAT)?.write(&mut body);
        self.write_variable_part(&mut body);
        Ok(body)
    }

    pub(in crate::event) fn post_header(&self, what: &'static str) -> Result<QueryPostHeader> {
        Ok(QueryPostHeader {
            thread_id: self.thread_id,
            exec_time: self.exec_time,
            database_length: narrow(self.database.len(), what, "database length", "at most 255 bytes")?,
            error_code: self.error_code,
            status_variables_length: narrow(
                self.status_variables.0.len(),
                what,
                "status variables length",
                "at most 65535 bytes",
            )?,
        })
    }

    pub(in crate::event) fn write_variable_part(&self, body: &mut Vec<u8>) {
        body.put(self.status_variables.0);
        body.put(self.database);
        body.put_u8(0);
        body.put(self.statement);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> QueryEvent<'static> {
        QueryEvent {
            thread_id: 8,
            exec_time: 1,
            error_code: 1062,
            status_variables: StatusVariables(&[16, 1]),
            database: b"test",
            statement: b"BEGIN",
        }
    }

    #[test]
    fn both_directions_agree() {
        let body = event().encode().unwrap();
        assert_eq!(body, b"\x08\0\0\0\x01\0\0\0\x04\x26\x04\x02\0\x10\x01test\0BEGIN");
        assert_eq!(QueryEvent::decode(&body).unwrap(), event());
    }

    #[test]
    fn cut_before_the_statement_it_is_an_error() {
        let body = event().encode().unwrap();
        for length in 0..body.len() - b"BEGIN".len() {
            assert!(QueryEvent::decode(&body[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn lengths_that_lie_are_noticed() {
        let mut body = event().encode().unwrap();
        body[8] = 5;
        let error = QueryEvent::decode(&body).unwrap_err();
        assert_eq!(error.to_string(), "query event: NUL after the database is 66, expected 0");
        body[8] = 255;
        let error = QueryEvent::decode(&body).unwrap_err();
        assert_eq!(error.to_string(), "query event: database needs 255 bytes, 10 are left");
    }

    #[test]
    fn a_database_that_does_not_fit_is_refused() {
        let database = [b'a'; 256];
        let error = QueryEvent { database: &database, ..event() }.encode().unwrap_err();
        assert_eq!(error.to_string(), "query event: database length is 256, expected at most 255 bytes");
    }
}
