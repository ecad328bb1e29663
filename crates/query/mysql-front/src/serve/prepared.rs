//! The prepared statements of a connection, and COM_STMT_EXECUTE.
//!
//! ```text
//! COM_STMT_PREPARE's answer   00 · statement 4 · columns 2 · parameters 2 · 00 · warnings 2
//! COM_STMT_EXECUTE            17 · statement 4 · flags 1 · times 4 (1)
//!                             with parameters: NULLs, a bit for each · are types given 1 · types, 2 for each · values
//! COM_STMT_SEND_LONG_DATA     18 · statement 4 · parameter 2 · bytes, the rest
//! COM_STMT_CLOSE, _RESET      19, 1a · statement 4
//! ```

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;
use binlogz_query_server::{ChargedBytes, PreparedBytes};
use binlogz_wire::ServerError;
use bytes::Bytes;

use crate::errors::{TOO_MANY_STATEMENTS, UNKNOWN_STATEMENT_HANDLER, WRONG_ARGUMENTS, error, of_refusal};
use crate::values::GivenValues;

/// Statements that a connection has prepared and not closed.
const STATEMENTS_MAX: usize = 1000;
const WHAT: &str = "EXECUTE";

/// A prepared statement.
pub(super) struct PreparedQuery {
    text: Arc<str>,
    parameters: u16,
    /// Types of the values that were given last.
    types: Vec<u8>,
    /// Values that came in parts, before the others.
    long: BTreeMap<u16, Vec<u8>>,
    long_charged: Vec<Arc<ChargedBytes>>,
    /// Why values that came in parts are not all here.
    long_refused: Option<ServerError>,
    _charged: Arc<ChargedBytes>,
}

/// The prepared statements of a connection.
pub(super) struct PreparedQueries {
    room: Arc<PreparedBytes>,
    all: HashMap<u32, PreparedQuery>,
    last: u32,
}

fn unknown(number: u32, command: &str) -> ServerError {
    let message = format!("Unknown prepared statement handler ({number}) given to {command}");
    error(UNKNOWN_STATEMENT_HANDLER, message)
}

fn wrong(found: &binlogz_binlog::Error) -> ServerError {
    error(WRONG_ARGUMENTS, format!("Incorrect arguments to EXECUTE: {found}"))
}

impl PreparedQueries {
    pub(super) fn new(room: Arc<PreparedBytes>) -> Self {
        PreparedQueries { room, all: HashMap::new(), last: 0 }
    }

    /// Keeps a statement; its number.
    pub(super) fn keep(&mut self, text: &str, parameters: u16) -> Result<u32, ServerError> {
        if self.all.len() >= STATEMENTS_MAX {
            let message = format!(
                "Can't create more than max_prepared_stmt_count statements (current value: {STATEMENTS_MAX})"
            );
            return Err(error(TOO_MANY_STATEMENTS, message));
        }
        let charged = self.room.charged(text.len()).map_err(of_refusal)?;
        self.last = self.last.wrapping_add(1).max(1);
        let query = PreparedQuery {
            text: text.into(),
            parameters,
            types: Vec::new(),
            long: BTreeMap::new(),
            long_charged: Vec::new(),
            long_refused: None,
            _charged: charged,
        };
        self.all.insert(self.last, query);
        Ok(self.last)
    }

    pub(super) fn clear(&mut self) {
        self.all.clear();
    }

    /// A part of a value. It has no answer: what is wrong with it is told when the statement runs.
    pub(super) fn add_long(&mut self, message: &[u8]) {
        let mut cursor = Cursor::new(message, WHAT);
        let parts = (cursor.u8("command"), cursor.u32("statement"), cursor.u16("parameter"));
        let (Ok(_), Ok(number), Ok(parameter)) = parts else { return };
        let Some(query) = self.all.get_mut(&number).filter(|query| parameter < query.parameters) else {
            return;
        };
        match self.room.charged(cursor.remaining()) {
            Ok(charged) => {
                query.long_charged.push(charged);
                query.long.entry(parameter).or_default().extend_from_slice(cursor.rest());
            }
            Err(refusal) => query.long_refused = Some(of_refusal(refusal)),
        }
    }

    /// Forgets a statement. It has no answer.
    pub(super) fn close(&mut self, message: &[u8]) {
        if let Some(number) = number_of(message) {
            self.all.remove(&number);
        }
    }

    /// Forgets values that came in parts.
    pub(super) fn reset(&mut self, message: &[u8]) -> Result<(), ServerError> {
        let number = number_of(message).unwrap_or_default();
        let query = self.all.get_mut(&number).ok_or_else(|| unknown(number, "mysqld_stmt_reset"))?;
        query.forget_long();
        Ok(())
    }

    /// The text of a statement that is to run, and the values of its parameters.
    pub(super) fn execute(&mut self, message: &[u8]) -> Result<(String, Bytes), ServerError> {
        let number = number_of(message).unwrap_or_default();
        let query = self.all.get_mut(&number).ok_or_else(|| unknown(number, "mysqld_stmt_execute"))?;
        if let Some(refused) = query.long_refused.take() {
            query.forget_long();
            return Err(refused);
        }
        let values = query.values(message).map_err(|error| wrong(&error));
        query.forget_long();
        Ok((query.text.to_string(), values?))
    }
}

impl PreparedQuery {
    fn forget_long(&mut self) {
        self.long.clear();
        self.long_charged.clear();
        self.long_refused = None;
    }

    fn values(&mut self, message: &[u8]) -> binlogz_binlog::Result<Bytes> {
        let count = usize::from(self.parameters);
        if count == 0 {
            return Ok(Bytes::new());
        }
        let mut cursor = Cursor::new(message, WHAT);
        cursor.bytes(10, "head")?;
        let nulls = cursor.bytes(count.div_ceil(8), "NULLs")?;
        if cursor.u8("are types given")? == 1 {
            self.types = cursor.bytes(2 * count, "types")?.to_vec();
        }
        if self.types.len() != 2 * count {
            return Err(binlogz_binlog::Error::invalid(WHAT, "types", "none", "one for each parameter"));
        }
        Ok(GivenValues { nulls, types: &self.types, long: &self.long, rest: cursor.rest() }.encode())
    }
}

fn number_of(message: &[u8]) -> Option<u32> {
    let number = message.get(1..)?.first_chunk()?;
    Some(u32::from_le_bytes(*number))
}

/// The first message of the answer to COM_STMT_PREPARE.
pub(super) fn prepared_ok(number: u32, columns: u16, parameters: u16) -> Vec<u8> {
    let mut message = Vec::new();
    message.put_u8(0);
    message.put_u32(number);
    message.put_u16(columns);
    message.put_u16(parameters);
    message.put_u8(0);
    message.put_u16(0);
    message
}
