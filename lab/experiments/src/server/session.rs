//! Asks a server, and reads its answers as text.

use binlogz_source::{ConnectOptions, Connection, Error as SourceError};

use crate::error::{Error, Result};

/// The server's names for its stages, including their full stops.
pub(crate) const STAGES: [&str; 2] =
    ["stage/sql/Compressing transaction changes.", "stage/sql/Decompressing transaction changes."];

/// Error codes for a missing right.
const DENIED: [u16; 6] = [1044, 1045, 1142, 1143, 1227, 3879];

/// A row's columns; NULL is `None`.
pub(crate) type SessionRow = Vec<Option<String>>;

/// A connection that is logged in.
pub(crate) struct ServerSession {
    connection: Connection,
}

impl ServerSession {
    pub(crate) fn open(connect: &ConnectOptions) -> Result<ServerSession> {
        Ok(ServerSession { connection: Connection::open(connect)? })
    }

    pub(crate) fn run(&mut self, statement: &str) -> Result<()> {
        self.connection.query(statement)?;
        Ok(())
    }

    pub(crate) fn rows(&mut self, statement: &str) -> Result<Vec<SessionRow>> {
        let text = |column: Vec<u8>| String::from_utf8_lossy(&column).into_owned();
        let rows = self.connection.query(statement)?;
        Ok(rows.into_iter().map(|row| row.into_iter().map(|column| column.map(text)).collect()).collect())
    }

    /// The first column of the first row.
    pub(crate) fn text(&mut self, statement: &str) -> Result<Option<String>> {
        let first = self.rows(statement)?.into_iter().next();
        Ok(first.and_then(|row| row.into_iter().next().flatten()))
    }

    pub(crate) fn number(&mut self, statement: &str) -> Result<Option<u64>> {
        Ok(self.text(statement)?.and_then(|text| text.parse().ok()))
    }
}

/// A column of a row as text; empty where it is NULL or missing.
pub(crate) fn column(row: &SessionRow, place: usize) -> &str {
    row.get(place).and_then(Option::as_deref).unwrap_or_default()
}

/// A column of a row as a number; 0 where it is none.
pub(crate) fn number(row: &SessionRow, place: usize) -> u64 {
    column(row, place).parse().unwrap_or(0)
}

/// Whether the server refused since the account lacks a right.
pub(crate) fn is_denied(error: &Error) -> bool {
    matches!(error, Error::Server(error) if server_code(error).is_some_and(|code| DENIED.contains(&code)))
}

fn server_code(error: &SourceError) -> Option<u16> {
    error.server_error().map(|refusal| refusal.code)
}
