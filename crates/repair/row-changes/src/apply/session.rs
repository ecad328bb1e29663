//! The session in which changes are applied.

use std::time::Duration;

use binlogz_source::{AnswerFields, ConnectOptions, Connection, Error as ServerError};

use super::{ApplyError, NOTHING_YET};

/// A statement may wait for locks that others hold; the server says how long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3600);

/// A place in a server's binary log, and a session that writes there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerPosition {
    pub(crate) log: String,
    pub(crate) position: u64,
    pub(crate) thread: u32,
}

/// The session in which changes are applied, and its thread id.
pub(crate) struct ApplySession {
    connection: Connection,
    /// The server's name, for people.
    server: String,
    thread: u32,
    message_size_max: usize,
    takes_several: bool,
}

pub(crate) type AnswerRow = Vec<Option<Vec<u8>>>;

impl ApplySession {
    pub(crate) fn open(connect: &ConnectOptions) -> Result<Self, ApplyError> {
        let mut connect = connect.clone();
        connect.timeouts.answer = ANSWER_TIMEOUT;
        let trouble = |error| ApplyError::server("connecting", error, NOTHING_YET);
        let mut connection = Connection::open(&connect).map_err(trouble)?;
        connection.plain_sql_mode().map_err(trouble)?;
        let takes_several = match connection.allow_several_statements() {
            // A proxy need not know the command.
            Err(error) if error.server_error().is_some() => false,
            allowed => allowed.map(|()| true).map_err(trouble)?,
        };
        let own = connection.first_row("SELECT CONNECTION_ID(), @@max_allowed_packet").map_err(trouble)?;
        let thread = own.parsed(0, "a number of 32 bits").map_err(trouble)?;
        let message_size_max = own.parsed(1, "a number of bytes").map_err(trouble)?;
        Ok(ApplySession { connection, server: connect.server(), thread, message_size_max, takes_several })
    }

    /// The size of a message to which the server hangs up.
    pub(crate) fn message_size_max(&self) -> usize {
        self.message_size_max
    }

    /// Whether a message may have several statements.
    pub(crate) fn takes_several(&self) -> bool {
        self.takes_several
    }

    /// Runs a statement; returns how many rows it changed.
    pub(crate) fn run(&mut self, statement: &[u8]) -> Result<u64, ServerError> {
        self.connection.execute(statement)
    }

    /// Runs statements that semicolons divide, up to the first that fails; appends how many rows each changed.
    pub(crate) fn run_all(&mut self, statements: &[u8], changed: &mut Vec<u64>) -> Result<(), ServerError> {
        self.connection.execute_all(statements, changed)
    }

    pub(crate) fn rows(&mut self, statement: &str) -> Result<Vec<AnswerRow>, ServerError> {
        self.connection.query(statement)
    }

    /// The columns of the last rows.
    pub(crate) fn columns(&self) -> Vec<String> {
        let names = self.connection.columns().iter();
        names.map(|column| String::from_utf8_lossy(&column.name).into_owned()).collect()
    }

    /// Which server it is; `None` for one without a UUID.
    pub(crate) fn server_uuid(&mut self) -> Result<Option<String>, ServerError> {
        match self.connection.first_row("SELECT @@GLOBAL.server_uuid") {
            Ok(row) => Ok(Some(row.text(0)?.to_owned())),
            Err(error) if error.server_error().is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the server's binary log ends now; `None`: it has none, or the account may not ask.
    pub(crate) fn place(&mut self) -> Result<Option<ServerPosition>, ServerError> {
        // The second is what servers before 8.2 understand.
        for statement in ["SHOW BINARY LOG STATUS", "SHOW MASTER STATUS"] {
            let rows = match self.connection.query(statement) {
                Ok(rows) if rows.is_empty() => return Ok(None),
                Ok(rows) => rows,
                Err(error) if error.server_error().is_some() => continue,
                Err(error) => return Err(error),
            };
            let row = AnswerFields::first_of(&self.server, statement, rows)?;
            let log = row.text(0)?.to_owned();
            let position = row.parsed(1, "a position")?;
            return Ok(Some(ServerPosition { log, position, thread: self.thread }));
        }
        Ok(None)
    }

    /// Whether a session of the server is still there.
    pub(crate) fn has_thread(&mut self, thread: u32) -> Result<bool, ServerError> {
        let rows = self.rows("SHOW PROCESSLIST")?;
        let number = thread.to_string();
        Ok(rows.iter().any(|row| row.first().and_then(Option::as_deref) == Some(number.as_bytes())))
    }
}
