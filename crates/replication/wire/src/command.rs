//! A client's requests once it is logged in: one byte of command and its parameters.
//!
//! ```text
//! COM_QUIT            01
//! COM_INIT_DB         02 · database, the rest
//! COM_QUERY           03 · statement, the rest
//! COM_STATISTICS      09
//! COM_PROCESS_KILL    0c · connection id (4)
//! COM_PING            0e
//! COM_BINLOG_DUMP     12 · see dump_request.rs
//! COM_REGISTER_SLAVE  15 · see register_replica.rs
//! COM_STMT_PREPARE    16 · statement, the rest
//! COM_REFRESH 07 · COM_PROCESS_INFO 0a · COM_FIELD_LIST 04 · COM_STMT_EXECUTE 17 · COM_STMT_SEND_LONG_DATA 18 · COM_STMT_CLOSE 19 · COM_STMT_RESET 1a ·
//! COM_STMT_FETCH 1c · COM_RESET_CONNECTION 1f: forwarded or answered without a look at their parameters
//! COM_CHANGE_USER     11 · see change_user.rs
//! COM_SET_OPTION      1b · option 2
//! COM_BINLOG_DUMP_GTID 1e · see dump_request.rs
//! ```

use binlogz_binlog::Result;
use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::PutFields;

use crate::dump_request::{DUMP_BY_GTID_SET, DUMP_BY_POSITION, DumpRequest};
use crate::register_replica::{REGISTER_REPLICA, RegisterReplica};

pub(crate) const QUIT: u8 = 0x01;
pub(crate) const USE_DATABASE: u8 = 0x02;
pub(crate) const QUERY: u8 = 0x03;
pub(crate) const STATISTICS: u8 = 0x09;
/// COM_PROCESS_KILL. Deprecated in 5.7, but drivers still send it.
pub(crate) const KILL: u8 = 0x0c;
pub(crate) const PING: u8 = 0x0e;
pub(crate) const PREPARE: u8 = 0x16;
/// COM_REFRESH: FLUSH, as mysqldump of 8.0 says it.
pub const REFRESH: u8 = 0x07;
/// COM_PROCESS_INFO: SHOW PROCESSLIST.
pub const PROCESS_INFO: u8 = 0x0a;
/// COM_FIELD_LIST: asks for a table's columns.
pub const FIELD_LIST: u8 = 0x04;
/// COM_STMT_EXECUTE: runs a prepared statement.
pub const STATEMENT_EXECUTE: u8 = 0x17;
/// COM_STMT_SEND_LONG_DATA: a part of a parameter. It has no answer.
pub const STATEMENT_LONG_DATA: u8 = 0x18;
/// COM_STMT_CLOSE: forgets a prepared statement. It has no answer.
pub const STATEMENT_CLOSE: u8 = 0x19;
/// COM_STMT_RESET: forgets a prepared statement's parameters and rows.
pub const STATEMENT_RESET: u8 = 0x1a;
/// COM_STMT_FETCH: asks for more rows of a prepared statement.
pub const STATEMENT_FETCH: u8 = 0x1c;
/// COM_SET_OPTION: 0 lets several statements come at once, 1 does not. Answered by EOF.
pub const SET_OPTION: u8 = 0x1b;
/// COM_DEBUG: has the server write to its log. Answered by EOF.
pub const DEBUG: u8 = 0x0d;
/// COM_RESET_CONNECTION: puts the session back into its state after login.
pub const RESET_CONNECTION: u8 = 0x1f;

/// A client's message outside login. Commands that binlogz has no use for are kept as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// End the connection.
    Quit,
    /// Run a statement.
    Query(&'a [u8]),
    /// Set the default database for later statements.
    UseDatabase(&'a [u8]),
    /// Describe the server's state, in a line.
    Statistics,
    /// End the connection with this number.
    Kill(u32),
    /// Prepare a statement to be run later.
    Prepare(&'a [u8]),
    /// Check that the server is there.
    Ping,
    /// Register the client as a replica.
    RegisterReplica(RegisterReplica<'a>),
    /// Send the binary log.
    Dump(DumpRequest),
    /// Anything else.
    Other {
        /// The command's code.
        code: u8,
        /// The bytes after the code.
        parameters: &'a [u8],
    },
}

impl<'a> Command<'a> {
    /// Reads the message.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, "command");
        Ok(match cursor.u8("code")? {
            // What follows the last field is ignored, as by the server.
            QUIT => Command::Quit,
            QUERY => Command::Query(cursor.rest()),
            USE_DATABASE => Command::UseDatabase(cursor.rest()),
            STATISTICS => Command::Statistics,
            KILL if cursor.peek().len() >= 4 => Command::Kill(cursor.u32("connection id")?),
            PREPARE => Command::Prepare(cursor.rest()),
            PING => Command::Ping,
            REGISTER_REPLICA => Command::RegisterReplica(RegisterReplica::decode(message)?),
            DUMP_BY_POSITION | DUMP_BY_GTID_SET => Command::Dump(DumpRequest::decode(message)?),
            code => Command::Other { code, parameters: cursor.rest() },
        })
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Command::Quit => out.put_u8(QUIT),
            Command::Query(statement) => {
                out.put_u8(QUERY);
                out.put(statement);
            }
            Command::UseDatabase(name) => {
                out.put_u8(USE_DATABASE);
                out.put(name);
            }
            Command::Statistics => out.put_u8(STATISTICS),
            Command::Kill(connection) => {
                out.put_u8(KILL);
                out.put_u32(*connection);
            }
            Command::Prepare(statement) => {
                out.put_u8(PREPARE);
                out.put(statement);
            }
            Command::Ping => out.put_u8(PING),
            Command::RegisterReplica(replica) => replica.encode(out),
            Command::Dump(request) => request.encode(out),
            Command::Other { code, parameters } => {
                out.put_u8(*code);
                out.put(parameters);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree() {
        let commands: [(&[u8], Command<'_>); 9] = [
            (b"\x02shop", Command::UseDatabase(b"shop")),
            (b"\x09", Command::Statistics),
            (b"\x0c\x07\x01\0\0", Command::Kill(263)),
            // One byte short.
            (b"\x0c\x07\x01\0", Command::Other { code: 0x0c, parameters: b"\x07\x01\0" }),
            (b"\x16SELECT ?", Command::Prepare(b"SELECT ?")),
            (b"\x01", Command::Quit),
            (b"\x03SELECT 1", Command::Query(b"SELECT 1")),
            (b"\x0e", Command::Ping),
            (b"\x19\x01\0", Command::Other { code: 0x19, parameters: b"\x01\0" }),
        ];
        for (bytes, command) in commands {
            let mut encoded = Vec::new();
            command.encode(&mut encoded);
            assert_eq!(encoded, bytes);
            assert_eq!(Command::decode(bytes).unwrap(), command);
        }
        assert!(Command::decode(b"").is_err());
        // More than the last field, as a server takes it.
        for (bytes, command) in [
            (b"\x09\0".as_slice(), Command::Statistics),
            (b"\x0e\0\0", Command::Ping),
            (b"\x01\0", Command::Quit),
            (b"\x0c\x07\x01\0\0\0", Command::Kill(263)),
        ] {
            assert_eq!(Command::decode(bytes).unwrap(), command);
        }
    }

    #[test]
    fn commands_with_a_form_of_their_own_are_recognised() {
        let register = RegisterReplica { server_id: 7, ..RegisterReplica::default() };
        let mut encoded = Vec::new();
        Command::RegisterReplica(register).encode(&mut encoded);
        assert_eq!(Command::decode(&encoded).unwrap(), Command::RegisterReplica(register));
        assert!(Command::decode(&encoded[..9]).is_err());
        assert!(Command::decode(b"\x12\x04\0\0").is_err());
    }
}
