//! Takes the commands of a client that is logged in.

use super::login::{LOGIN_SIZE_MAX, NewUser};
use super::{ReplicaSession, ReplicaStep};
use crate::change_user::{CHANGE_USER, ChangeUser};
use crate::command::{Command, SET_OPTION};
use crate::dump_request::DumpRequest;
use crate::error::{DecodeContext, Result, ServerError};
use crate::packet::Message;

const TAKING: &str = "taking a command";

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaRequest {
    /// End the connection; there is no answer.
    Quit,
    /// Check that we are there.
    Ping,
    /// Answer a statement.
    Statement(String),
    /// Set the default database.
    UseDatabase(String),
    /// Send a line about our state: [`ReplicaSession::line`].
    Statistics,
    /// End the connection with this number.
    Kill(u32),
    /// Prepare a statement.
    Prepare(String),
    /// Register a replica.
    Register {
        /// The replica's server id.
        server_id: u32,
        /// The host at which it says it can be reached.
        host: String,
        /// The port at which it says it can be reached.
        port: u16,
    },
    /// Send the binary log.
    Dump(DumpRequest),
    /// Become another account: see [`ReplicaSession::change_user`].
    ChangeUser(NewUser),
    /// Let several statements come at once, or not; or another option that nobody knows.
    SetOption(Option<u16>),
    /// Something else, with the command's code.
    Other(u8),
}

impl ReplicaRequest {
    fn of(command: Command<'_>) -> ReplicaRequest {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match command {
            Command::Quit => ReplicaRequest::Quit,
            Command::Ping => ReplicaRequest::Ping,
            Command::Query(statement) => ReplicaRequest::Statement(text(statement)),
            Command::UseDatabase(name) => ReplicaRequest::UseDatabase(text(name)),
            Command::Statistics => ReplicaRequest::Statistics,
            Command::Kill(connection) => ReplicaRequest::Kill(connection),
            Command::Prepare(statement) => ReplicaRequest::Prepare(text(statement)),
            Command::RegisterReplica(replica) => ReplicaRequest::Register {
                server_id: replica.server_id,
                host: text(replica.host),
                port: replica.port,
            },
            Command::Dump(request) => ReplicaRequest::Dump(request),
            Command::Other { code: SET_OPTION, parameters } => {
                ReplicaRequest::SetOption(parameters.first_chunk().map(|option| u16::from_le_bytes(*option)))
            }
            Command::Other { code, .. } => ReplicaRequest::Other(code),
        }
    }
}

impl ReplicaSession {
    /// The next command. One that is too long is answered with an error, then we wait for the one after it.
    pub(super) fn command(&mut self, input: &mut &[u8]) -> Result<ReplicaStep> {
        loop {
            let message = self.messages.next_within(&mut self.packets, input, self.command_size_max);
            let request = match message.during(TAKING)? {
                None => return Ok(ReplicaStep::NeedInput),
                Some(Message::Whole(message)) => {
                    if let Some(kept) = &mut self.command {
                        *kept = message.to_vec();
                    }
                    match message.first() {
                        // A server takes it for a command that it doesn't know.
                        Some(&CHANGE_USER) if message.len() > LOGIN_SIZE_MAX => {
                            Some(ReplicaRequest::Other(CHANGE_USER))
                        }
                        Some(&CHANGE_USER) => Some(match ChangeUser::decode(message, self.capabilities) {
                            Ok(change) => ReplicaRequest::ChangeUser(NewUser::of(&change)),
                            Err(_) => ReplicaRequest::Other(CHANGE_USER),
                        }),
                        Some(_) | None => Some(ReplicaRequest::of(Command::decode(message).during(TAKING)?)),
                    }
                }
                Some(Message::TooLong) => None,
            };
            self.messages.release();
            self.out.set_sequence(self.packets.next_sequence());
            self.packets.expect_sequence(0);
            match request {
                Some(request) => return Ok(ReplicaStep::Request(request)),
                None => self.refuse(&ServerError {
                    code: ServerError::PACKET_TOO_LARGE,
                    sqlstate: Some(*b"08S01"),
                    message: "Got a packet bigger than 'max_allowed_packet' bytes".into(),
                }),
            }
        }
    }
}
