//! What a client asks for once it is logged in: one byte of command and its parameters.
//!
//! ```text
//! COM_QUIT            01
//! COM_QUERY           03 · statement, the rest
//! COM_PING            0e
//! COM_BINLOG_DUMP     12 · see dump_request.rs
//! COM_REGISTER_SLAVE  15 · see register_replica.rs
//! COM_BINLOG_DUMP_GTID 1e · see dump_request.rs
//! ```

use binlogz_binlog::Result;
use binlogz_binlog::cursor::Cursor;
use binlogz_binlog::put::Put;

use crate::dump_request::DumpRequest;
use crate::register_replica::RegisterReplica;

pub(crate) const QUIT: u8 = 0x01;
pub(crate) const QUERY: u8 = 0x03;
pub(crate) const PING: u8 = 0x0e;
/// COM_BINLOG_DUMP.
pub(crate) const DUMP_BY_POSITION: u8 = 0x12;
/// COM_REGISTER_SLAVE.
pub(crate) const REGISTER_REPLICA: u8 = 0x15;
/// COM_BINLOG_DUMP_GTID.
pub(crate) const DUMP_BY_GTID_SET: u8 = 0x1e;

/// A client's message outside login. Commands that binlogz has no use for survive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// The client leaves.
    Quit,
    /// A statement.
    Query(&'a [u8]),
    /// Are you there?
    Ping,
    /// The client says that it is a replica.
    RegisterReplica(RegisterReplica<'a>),
    /// The client wants the binary log.
    Dump(DumpRequest),
    /// Anything else.
    Other {
        /// The command.
        code: u8,
        /// What follows it.
        parameters: &'a [u8],
    },
}

impl<'a> Command<'a> {
    /// Reads the message.
    pub fn decode(message: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(message, "command");
        Ok(match cursor.u8("code")? {
            QUIT if cursor.is_empty() => Command::Quit,
            QUERY => Command::Query(cursor.rest()),
            PING if cursor.is_empty() => Command::Ping,
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
        let commands: [(&[u8], Command<'_>); 4] = [
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
