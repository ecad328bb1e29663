//! The source's side of a connection: greets a client, checks its identity, takes commands, answers them.
//!
//! ```text
//! we      greeting
//! client  [request for TLS, and everything after it within TLS]
//! client  response with a proof ─ of the wrong kind → we switch the plugin, the client proves itself again
//! we      [caching_sha2_password: 01 03] OK, or error 1045 and the end; error 1251 for clients older than 5.5.7,
//!         unless they prove themselves by the 4.1 method and are allowed to
//! client  command … we answer with ok, refuse or rows; a dump takes over the connection
//! ```
//!
//! A client that is logged in may become another account (COM_CHANGE_USER), by the same exchange from the response on.
//!
//! The caller offers TLS. Compressed packets are offered: after the OK that ends the login, the caller compresses
//! outgoing bytes and expands incoming ones ([`ReplicaSession::begin_compression`]). The caller decides what commands
//! mean.

mod answers;
mod commands;
mod login;
use crate::auth::{AuthPlugin, Password};
use crate::capabilities::Capabilities;
use crate::compressed::ConnectionCompression;
use crate::error::Result;
use crate::greeting::{Greeting, NONCE_SIZE};
use crate::packet::{MessageReader, PacketReader, PacketWriter};

pub use answers::ReplyColumn;
pub use commands::ReplicaRequest;
pub use login::NewUser;

/// SERVER_STATUS_IN_TRANS: a transaction is open.
pub const STATUS_IN_TRANSACTION: u16 = 1;
/// SERVER_STATUS_AUTOCOMMIT: each statement is a transaction of its own.
pub const STATUS_AUTOCOMMIT: u16 = 2;
/// utf8mb4_general_ci: every client knows it.
const COLLATION: u8 = 45;
/// The server's default of `max_allowed_packet`: a dump request may contain a set of four million intervals.
pub const COMMAND_SIZE_MAX: usize = 64 << 20;

const CAPABILITIES: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
        | Capabilities::LONG_FLAG.0
        | Capabilities::CONNECT_WITH_DB.0
        | Capabilities::COMPRESS.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::CONNECT_ATTRS.0
        | Capabilities::PLUGIN_AUTH_LENENC_DATA.0
        | Capabilities::ZSTD_COMPRESSION.0,
);

/// An account that may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginAccount {
    /// The account's name.
    pub user: String,
    /// The account's password; if empty, nobody can log in.
    pub password: Password,
}

/// How a client is received.
#[derive(Debug, Clone)]
pub struct ReplicaOptions {
    /// For example `9.7.4`.
    pub server_version: String,
    /// The connection's number.
    pub connection_id: u32,
    /// Random bytes, none of them 0; different ones for each connection.
    pub nonce: [u8; NONCE_SIZE],
    /// Whether the connection may switch to TLS.
    pub tls: bool,
    /// The accounts that may log in.
    pub accounts: Vec<LoginAccount>,
    /// Whether clients may authenticate with `mysql_native_password`: anyone who listened can quickly guess
    /// passwords from its SHA-1. Without it they are asked for `caching_sha2_password`.
    pub native_password: bool,
}

/// The next need or result of a [`ReplicaSession`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaStep {
    /// Send the pending bytes, then come back with more bytes.
    NeedInput,
    /// Switch to TLS: the rest of the input already belongs to it.
    StartTls,
    /// The client is authenticated: let it in with [`ReplicaSession::ok`], or refuse it and end the
    /// connection.
    LoggedIn(String),
    /// Authentication failed: send the pending bytes and end the connection. Holds the claimed user name.
    Denied(String),
    /// The client is too old to log in: send the pending bytes and end the connection. Holds the ability that it lacks.
    TooOld(&'static str),
    /// A command to answer.
    Request(ReplicaRequest),
}

/// The source's side of a connection.
#[derive(Debug)]
pub struct ReplicaSession {
    options: ReplicaOptions,
    state: ReplicaState,
    packets: PacketReader,
    messages: MessageReader,
    out: PacketWriter,
    /// Bytes received since the last whole message.
    size: usize,
    attributes: Vec<(String, String)>,
    /// The form in which a server would keep the password of a client that proved it with `mysql_native_password`.
    stored_password: Option<[u8; 20]>,
    /// The client's abilities.
    capabilities: Capabilities,
    /// The client's words at login: its default database, and the number of its collation.
    database: Option<String>,
    collation: u8,
    /// The compression of packets that the client asked for at login.
    compression: Option<ConnectionCompression>,
    /// Status flags of all answers.
    status: u16,
    /// The last command's message, if it is to be kept.
    command: Option<Vec<u8>>,
    /// A longer command is answered with an error.
    command_size_max: usize,
    /// Whether everybody may log in, by any name, with any password or none.
    is_open: bool,
}

#[derive(Debug)]
enum ReplicaState {
    /// The greeting was sent.
    Greeted,
    /// We asked for another proof.
    Switched {
        user: String,
        plugin: AuthPlugin,
        /// Whether the client was logged in as another account before.
        is_change: bool,
    },
    LoggedIn,
    Ended,
}

impl ReplicaSession {
    /// A session on a newly accepted connection.
    pub fn new(options: ReplicaOptions) -> Self {
        let mut out = PacketWriter::default();
        let greeting = Greeting {
            server_version: options.server_version.as_bytes(),
            connection_id: options.connection_id,
            nonce: options.nonce,
            capabilities: if options.tls { CAPABILITIES | Capabilities::SSL } else { CAPABILITIES },
            collation: COLLATION,
            status: STATUS_AUTOCOMMIT,
            reserved: [0; 10],
            plugin: AuthPlugin::CachingSha2Password.name().as_bytes(),
        };
        out.message(|out| greeting.encode(out));
        let mut packets = PacketReader::default();
        packets.expect_sequence(1);
        ReplicaSession {
            options,
            state: ReplicaState::Greeted,
            packets,
            messages: MessageReader::default(),
            out,
            size: 0,
            attributes: Vec::new(),
            stored_password: None,
            capabilities: Capabilities(0),
            database: None,
            collation: COLLATION,
            compression: None,
            status: STATUS_AUTOCOMMIT,
            command: None,
            command_size_max: COMMAND_SIZE_MAX,
            is_open: false,
        }
    }

    /// Lets everybody log in, by any name, with any password or none.
    pub fn admit_everybody(&mut self) {
        self.is_open = true;
    }

    /// Bytes held of a command that is not whole yet.
    pub fn held(&self) -> usize {
        self.messages.held()
    }

    /// Refuses longer commands from now on, including the one that is arriving.
    pub fn limit_commands(&mut self, size_max: usize) {
        self.command_size_max = size_max;
    }

    /// The attributes the client sent at login: names and values, such as `program_name` and `mysqld`.
    pub fn attributes(&self) -> &[(String, String)] {
        &self.attributes
    }

    /// The default database that the client named at login.
    pub fn database(&self) -> Option<&str> {
        self.database.as_deref()
    }

    /// The number of the collation that the client named at login.
    pub fn collation(&self) -> u8 {
        self.collation
    }

    /// The compression of the connection, once the client has its OK.
    pub fn begin_compression(&mut self) -> Option<ConnectionCompression> {
        let compression = self.compression?;
        self.packets.ignore_sequence();
        Some(compression)
    }

    /// Keeps each command's message from now on, for [`ReplicaSession::take_command`].
    pub fn keep_commands(&mut self) {
        self.command = Some(Vec::new());
    }

    /// The last command's message; empty unless it is kept.
    pub fn take_command(&mut self) -> Vec<u8> {
        self.command.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Sets the status flags of the answers that follow, such as [`STATUS_AUTOCOMMIT`].
    pub fn set_status(&mut self, status: u16) {
        self.status = status;
    }

    /// Bytes to be sent. After sending, call [`ReplicaSession::sent`].
    pub fn pending(&self) -> &[u8] {
        self.out.pending()
    }

    /// Drops the first `count` pending bytes, which were sent.
    pub fn sent(&mut self, count: usize) {
        self.out.sent(count);
    }

    /// The number of the next packet: a dump's events continue from it.
    pub fn next_sequence(&self) -> u8 {
        self.out.next_sequence()
    }

    /// Takes bytes from the start of `input`, all of them if it returns [`ReplicaStep::NeedInput`].
    ///
    /// # Errors
    ///
    /// Every error ends the session.
    pub fn poll(&mut self, input: &mut &[u8]) -> Result<ReplicaStep> {
        if let ReplicaState::LoggedIn = self.state {
            return self.command(input);
        }
        self.log_in(input)
    }
}

#[cfg(test)]
mod tests;
