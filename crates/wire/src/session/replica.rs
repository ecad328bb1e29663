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
//! TLS is the caller's to offer. Compressed packets are offered: after the OK that lets a client in, the caller compresses what
//! goes out and expands what comes in ([`ReplicaSession::begin_compression`]). The caller decides what commands mean.

use binlogz_binlog::put::Put;

use crate::auth::{AUTH_MORE_DATA, AuthPlugin, AuthSwitch, Password, scramble, server};
use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::compressed::{Compression, CompressionChoice};
use crate::dump_request::DumpRequest;
use crate::error::{Error, Result, ServerError, While};
use crate::greeting::{Greeting, NONCE_SIZE};
use crate::handshake_response::{HandshakeResponse, SslRequest};
use crate::packet::{Message, MessageReader, PacketReader, PacketWriter};
use crate::response::{EofPacket, ErrPacket, OkPacket};
use crate::result_set::{ColumnDefinition, ColumnKind, Row, encode_row};

const LOGGING_IN: &str = "logging in";
const TAKING: &str = "taking a command";

/// `caching_sha2_password`: the proof was right.
const FAST_AUTH_OK: u8 = 3;
/// SERVER_STATUS_IN_TRANS: a transaction is open.
pub const STATUS_IN_TRANSACTION: u16 = 1;
/// SERVER_STATUS_AUTOCOMMIT: each statement is a transaction of its own.
pub const STATUS_AUTOCOMMIT: u16 = 2;
/// utf8mb4_general_ci: every client knows it.
const COLLATION: u8 = 45;
/// Collation of numbers: binary.
const COLLATION_BINARY: u16 = 63;
/// Bytes before the user's name in a response older than 4.1.
const OLD_RESPONSE_HEAD_SIZE: usize = 5;
/// More than any client sends before it is logged in.
const LOGIN_SIZE_MAX: usize = 64 << 10;
/// The server's default of `max_allowed_packet`: a dump request may contain a set of four million intervals.
pub const COMMAND_SIZE_MAX: usize = 64 << 20;

const CAPABILITIES: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
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
pub struct Account {
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
    pub accounts: Vec<Account>,
    /// Whether clients may authenticate with `mysql_native_password`: anyone who listened can quickly guess
    /// passwords from its SHA-1. Without it they are asked for `caching_sha2_password`.
    pub native_password: bool,
}

/// What a [`ReplicaSession`] needs or gives next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaStep {
    /// Send what is pending, then come back with more bytes.
    NeedInput,
    /// Switch to TLS: the rest of the input already belongs to it.
    StartTls,
    /// The client is authenticated: let it in with [`ReplicaSession::ok`], or refuse it and end the
    /// connection.
    LoggedIn(String),
    /// Authentication failed: send what is pending and end the connection. Holds the claimed user name.
    Denied(String),
    /// The client is too old to log in: send what is pending and end the connection. Holds what it lacks.
    TooOld(&'static str),
    /// A command to answer.
    Request(Request),
}

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
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
    /// Something else, with the command's code.
    Other(u8),
}

/// A column of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// The column's name.
    pub name: &'a str,
    /// The kind of its values.
    pub kind: ColumnKind,
}

/// The source's side of a connection.
#[derive(Debug)]
pub struct ReplicaSession {
    options: ReplicaOptions,
    state: State,
    packets: PacketReader,
    messages: MessageReader,
    out: PacketWriter,
    /// Bytes received since the last whole message.
    size: usize,
    attributes: Vec<(String, String)>,
    /// What a server would keep of the password of a client that proved it with `mysql_native_password`.
    stored_password: Option<[u8; 20]>,
    /// What the client said at login: its default database, and the number of its collation.
    database: Option<String>,
    collation: u8,
    /// What the client said at login that packets are to be compressed with.
    compression: Option<Compression>,
    /// Status flags of all answers.
    status: u16,
    /// The last command's message, if it is to be kept.
    command: Option<Vec<u8>>,
    /// A longer command is answered with an error.
    command_size_max: usize,
}

#[derive(Debug)]
enum State {
    /// The greeting was sent.
    Greeted,
    /// We asked for another proof.
    Switched {
        user: String,
        plugin: AuthPlugin,
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
            state: State::Greeted,
            packets,
            messages: MessageReader::default(),
            out,
            size: 0,
            attributes: Vec::new(),
            stored_password: None,
            database: None,
            collation: COLLATION,
            compression: None,
            status: STATUS_AUTOCOMMIT,
            command: None,
            command_size_max: COMMAND_SIZE_MAX,
        }
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

    /// What the connection is to be compressed with, once the client has its OK.
    pub fn begin_compression(&mut self) -> Option<Compression> {
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

    /// What is to be sent. After sending, call [`ReplicaSession::sent`].
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
        if let State::LoggedIn = self.state {
            return self.command(input);
        }
        let before = input.len();
        let Some(message) = self.messages.next(&mut self.packets, input).during(LOGGING_IN)? else {
            self.size += before;
            if self.size > LOGIN_SIZE_MAX {
                return Err(protocol(LOGGING_IN, &format!("{} bytes", self.size), "a shorter message"));
            }
            return Ok(ReplicaStep::NeedInput);
        };
        self.size = 0;
        match &self.state {
            State::Greeted if self.options.tls && SslRequest::decode(message).is_ok() => {
                // Only once: a request for TLS within TLS is not understood.
                self.options.tls = false;
                Ok(ReplicaStep::StartTls)
            }
            State::Greeted if is_of_before_4_1(message) => Ok(self.too_old("the protocol of 4.1")),
            State::Greeted => {
                let response = HandshakeResponse::decode(message).during(LOGGING_IN)?;
                let has = |capability| response.head.capabilities.contains(capability);
                let (by_plugin, by_4_1) =
                    (has(Capabilities::PLUGIN_AUTH), has(Capabilities::SECURE_CONNECTION));
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                let user = text(response.user);
                self.attributes =
                    response.attributes.iter().map(|(name, value)| (text(name), text(value))).collect();
                self.database = response.database.filter(|name| !name.is_empty()).map(text);
                self.collation = response.head.collation;
                // As the server: zlib before zstd.
                self.compression = match response.zstd_level {
                    _ if has(Capabilities::COMPRESS) => Some(Compression::Zlib),
                    Some(level) => Some(Compression::Zstd {
                        level: match level {
                            1..=CompressionChoice::ZSTD_LEVEL_MAX => level,
                            _ => CompressionChoice::default().zstd_level,
                        },
                    }),
                    None => None,
                };
                let named = response.plugin.and_then(AuthPlugin::from_name);
                let plugin = match named {
                    Some(AuthPlugin::NativePassword) | None if self.options.native_password => {
                        AuthPlugin::NativePassword
                    }
                    _ => AuthPlugin::CachingSha2Password,
                };
                let proof = response.proof.to_vec();
                self.out.set_sequence(self.packets.next_sequence());
                if !by_plugin {
                    // It can't switch plugins: what it sent is all we will get.
                    let may = by_4_1 && self.options.native_password;
                    if !may || !server::is_proof(AuthPlugin::NativePassword, &proof) {
                        return Ok(self.too_old("authentication by plugins"));
                    }
                    return Ok(self.judge(user, AuthPlugin::NativePassword, &proof));
                }
                if named == Some(plugin) && server::is_proof(plugin, &proof) {
                    return Ok(self.judge(user, plugin, &proof));
                }
                let mut data = self.options.nonce.to_vec();
                data.push(0);
                let switch = AuthSwitch { plugin: plugin.name().as_bytes(), data: &data };
                self.out.message(|out| switch.encode(out));
                self.packets.expect_sequence(self.out.next_sequence());
                self.state = State::Switched { user, plugin };
                Ok(ReplicaStep::NeedInput)
            }
            State::Switched { user, plugin } => {
                let (user, plugin, proof) = (user.clone(), *plugin, message.to_vec());
                self.out.set_sequence(self.packets.next_sequence());
                Ok(self.judge(user, plugin, &proof))
            }
            State::LoggedIn | State::Ended => {
                Err(protocol(LOGGING_IN, "a message", "nothing: access was denied"))
            }
        }
    }

    /// The end for a client that has no way to prove its identity.
    fn too_old(&mut self, lacks: &'static str) -> ReplicaStep {
        self.state = State::Ended;
        self.out.set_sequence(self.packets.next_sequence());
        self.refuse(&ServerError {
            code: ServerError::NOT_SUPPORTED_AUTH_MODE,
            sqlstate: Some(*b"08004"),
            message:
                "Client does not support authentication protocol requested by server; consider upgrading \
                      MySQL client"
                    .into(),
        });
        ReplicaStep::TooOld(lacks)
    }

    /// The next command. One that is too long is answered with an error, then we wait for the one after it.
    fn command(&mut self, input: &mut &[u8]) -> Result<ReplicaStep> {
        loop {
            let message = self.messages.next_within(&mut self.packets, input, self.command_size_max);
            let request = match message.during(TAKING)? {
                None => return Ok(ReplicaStep::NeedInput),
                Some(Message::Whole(message)) => {
                    if let Some(kept) = &mut self.command {
                        *kept = message.to_vec();
                    }
                    Some(Request::of(Command::decode(message).during(TAKING)?))
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

    /// Answers "done".
    pub fn ok(&mut self) {
        self.out.message(|out| OkPacket { status: self.status, ..OkPacket::default() }.encode(out));
    }

    /// Lets a client in that uses TLS with the certificate of this SHA-256. MariaDB's clients from 11.4 on trust a
    /// certificate that nobody signed if the server proves that it knows the password and has this certificate:
    ///
    /// ```text
    /// 1   length of what follows: 65
    /// 1   01
    /// 64  SHA-256(stored password, nonce, SHA-256 of the certificate), in capital hexadecimal digits
    /// ```
    ///
    /// (MDEV-31855.) The stored password is that of `mysql_native_password`. Other clients get a plain OK.
    pub fn ok_over_tls(&mut self, fingerprint: &[u8; 32]) {
        let is_mariadbs = |(name, value): &(String, String)| {
            name == "_client_name" && value.to_lowercase().contains("mariadb")
        };
        let stored = self.stored_password.filter(|_| self.attributes.iter().any(is_mariadbs));
        let Some(stored) = stored else { return self.ok() };
        let digest = scramble::certificate_proof(&stored, &self.options.nonce, fingerprint);
        let mut info = vec![65, 1];
        info.extend(digest.iter().flat_map(|byte| format!("{byte:02X}").into_bytes()));
        let packet = OkPacket { status: self.status, info: &info, ..OkPacket::default() };
        self.out.message(|out| packet.encode(out));
    }

    /// Answers "done", with warnings that the client may ask for.
    pub fn ok_with_warnings(&mut self, warnings: u16) {
        self.out.message(|out| OkPacket { status: self.status, warnings, ..OkPacket::default() }.encode(out));
    }

    /// Answers with an error.
    pub fn refuse(&mut self, error: &ServerError) {
        let packet =
            ErrPacket { code: error.code, sqlstate: error.sqlstate, message: error.message.as_bytes() };
        self.out.message(|out| packet.encode(out));
    }

    /// Answers [`Request::Statistics`] with a single line.
    pub fn line(&mut self, text: &str) {
        self.out.message(|out| out.put(text.as_bytes()));
    }

    /// Answers a query with rows.
    pub fn rows(&mut self, columns: &[Column<'_>], rows: &[Row]) {
        self.out.message(|out| out.put_lei(columns.len() as u64));
        for column in columns {
            let ColumnKind { column_type, flags, decimals } = column.kind;
            let (collation, length) = match column.kind.is_text() {
                true => (u16::from(COLLATION), 4096),
                false => (COLLATION_BINARY, 21),
            };
            let definition = ColumnDefinition {
                name: column.name.as_bytes(),
                collation,
                length,
                column_type,
                flags,
                decimals,
                ..ColumnDefinition::default()
            };
            self.out.message(|out| definition.encode(out));
        }
        let eof = EofPacket { warnings: 0, status: self.status };
        self.out.message(|out| eof.encode(out));
        for row in rows {
            self.out.message(|out| encode_row(row, out));
        }
        self.out.message(|out| eof.encode(out));
    }

    /// Lets the client in, or refuses it.
    fn judge(&mut self, user: String, plugin: AuthPlugin, proof: &[u8]) -> ReplicaStep {
        let account = self.options.accounts.iter().find(|account| account.user == user);
        let right = account
            .is_some_and(|account| server::is_right(plugin, proof, &account.password, &self.options.nonce));
        if !right {
            self.state = State::Ended;
            self.refuse(&ServerError {
                code: ServerError::ACCESS_DENIED,
                sqlstate: Some(*b"28000"),
                message: format!("Access denied for user '{user}' (using password: YES)"),
            });
            return ReplicaStep::Denied(user);
        }
        if plugin == AuthPlugin::NativePassword {
            self.stored_password =
                account.map(|account| scramble::stored_password(account.password.as_bytes()));
        }
        if plugin == AuthPlugin::CachingSha2Password {
            self.out.message(|out| out.put(&[AUTH_MORE_DATA, FAST_AUTH_OK]));
        }
        self.state = State::LoggedIn;
        self.packets.expect_sequence(0);
        ReplicaStep::LoggedIn(user)
    }
}

impl Request {
    fn of(command: Command<'_>) -> Request {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match command {
            Command::Quit => Request::Quit,
            Command::Ping => Request::Ping,
            Command::Query(statement) => Request::Statement(text(statement)),
            Command::UseDatabase(name) => Request::UseDatabase(text(name)),
            Command::Statistics => Request::Statistics,
            Command::Kill(connection) => Request::Kill(connection),
            Command::Prepare(statement) => Request::Prepare(text(statement)),
            Command::RegisterReplica(replica) => Request::Register {
                server_id: replica.server_id,
                host: text(replica.host),
                port: replica.port,
            },
            Command::Dump(request) => Request::Dump(request),
            Command::Other { code, .. } => Request::Other(code),
        }
    }
}

/// Whether a response is from 3.20 to 4.0: 2 bytes of capabilities, 3 of the largest packet, the user's name.
fn is_of_before_4_1(message: &[u8]) -> bool {
    let capabilities = message.first_chunk().map(|bytes| u32::from(u16::from_le_bytes(*bytes)));
    let is_4_1 = |capabilities| Capabilities(capabilities).contains(Capabilities::PROTOCOL_41);
    message.len() > OLD_RESPONSE_HEAD_SIZE && capabilities.is_some_and(|capabilities| !is_4_1(capabilities))
}

fn protocol(doing: &str, found: &str, expected: &'static str) -> Error {
    Error::Protocol { doing: doing.into(), found: found.into(), expected }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::auth::Credentials;
    use crate::compressed::CompressionChoice;
    use crate::result_set::Answer;
    use crate::session::{ClientSession, ClientStep, LoginOptions, Timeouts, TlsPolicy};

    fn client(password: &str, default_auth: Option<AuthPlugin>) -> ClientSession {
        let credentials = Credentials {
            user: "repl".into(),
            password: Password::new(password),
            server_public_key: None,
            get_server_public_key: false,
            seed: [7; 20],
        };
        let login = LoginOptions {
            credentials,
            default_auth,
            tls: TlsPolicy::Preferred,
            local_socket: false,
            compression: CompressionChoice::default(),
            attributes: Vec::new(),
            database: None,
            collation: None,
        };
        ClientSession::new(login, Timeouts::default(), Duration::ZERO)
    }

    fn source() -> ReplicaSession {
        let account = Account { user: "repl".into(), password: Password::new("secret") };
        ReplicaSession::new(ReplicaOptions {
            server_version: "9.7.4".into(),
            connection_id: 5,
            nonce: *b"abcdefghijklmnopqrst",
            tls: false,
            accounts: vec![account],
            native_password: true,
        })
    }

    /// Carries bytes both ways, one at a time, until one side reports something.
    fn talk(client: &mut ClientSession, source: &mut ReplicaSession) -> (Result<ClientStep>, ReplicaStep) {
        let mut told = ReplicaStep::NeedInput;
        loop {
            let sent = client.pending().to_vec();
            client.sent(sent.len());
            for byte in sent {
                let step = source.poll(&mut [byte].as_slice()).unwrap();
                if let ReplicaStep::LoggedIn(_) = step {
                    source.ok();
                }
                if step != ReplicaStep::NeedInput {
                    told = step;
                }
            }
            if matches!(told, ReplicaStep::Request(_)) && source.pending().is_empty() {
                return (Ok(ClientStep::NeedInput), told);
            }
            let sent = source.pending().to_vec();
            source.sent(sent.len());
            for byte in &sent {
                match client.poll(&mut [*byte].as_slice(), Duration::ZERO) {
                    Ok(ClientStep::NeedInput) => {}
                    step => return (step, told),
                }
            }
            assert!(!sent.is_empty() || !client.pending().is_empty(), "both wait");
        }
    }

    #[test]
    fn clients_of_both_plugins_log_in_and_ask() {
        for plugin in [None, Some(AuthPlugin::NativePassword), Some(AuthPlugin::CachingSha2Password)] {
            let (mut client, mut source) = (client("secret", plugin), source());
            let (step, told) = talk(&mut client, &mut source);
            assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{plugin:?}: {step:?}");
            assert_eq!(told, ReplicaStep::LoggedIn("repl".into()));
            client.ask(&Command::Query(b"SELECT 1"), "asking", Duration::ZERO).unwrap();
            let (_, told) = talk(&mut client, &mut source);
            assert_eq!(told, ReplicaStep::Request(Request::Statement("SELECT 1".into())));
            let row: Row = vec![Some(b"1".to_vec()), None];
            let columns = [
                Column { name: "1", kind: ColumnKind::INTEGER },
                Column { name: "nothing", kind: ColumnKind::TEXT },
            ];
            source.rows(&columns, std::slice::from_ref(&row));
            let (step, _) = talk(&mut client, &mut source);
            assert_eq!(step.unwrap(), ClientStep::Answer(Answer::Rows(vec![row])));
        }
    }

    // The digest was computed independently, with Python's hashlib.
    #[test]
    fn only_mariadbs_clients_are_shown_that_the_certificate_is_the_servers() {
        let proof = b"6FB0B1160A82264D576E921366694675D302414F89A0A39A0DB1641CD9AC75BA";
        let stored = scramble::stored_password(b"secret");
        for (name, stored, is_shown) in [
            ("libmariadb", Some(stored), true),
            ("MariaDB Connector/J", Some(stored), true),
            ("libmariadb", None, false),
            ("libmysql", Some(stored), false),
        ] {
            let mut source = source();
            source.sent(source.pending().len());
            source.stored_password = stored;
            source.attributes = vec![("_client_name".into(), name.into())];
            source.ok_over_tls(&[7; 32]);
            let packet = OkPacket::decode(&source.pending()[4..]).unwrap();
            let expected = [&[65, 1][..], proof].concat();
            assert_eq!(packet.info, if is_shown { expected.as_slice() } else { b"" }, "{name}");
        }
    }

    #[test]
    fn native_passwords_can_be_switched_off() {
        for plugin in [None, Some(AuthPlugin::NativePassword), Some(AuthPlugin::CachingSha2Password)] {
            let (mut client, mut source) = (client("secret", plugin), source());
            source.options.native_password = false;
            let (step, told) = talk(&mut client, &mut source);
            assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{plugin:?}: {step:?}");
            assert_eq!(told, ReplicaStep::LoggedIn("repl".into()));
        }
        // A client that answers the switch with the other plugin's proof is not let in.
        let mut source = source();
        source.options.native_password = false;
        let nonce = source.options.nonce;
        let proof = crate::auth::scramble::native_password(b"secret", &nonce);
        let response = HandshakeResponse {
            head: SslRequest {
                capabilities: CAPABILITIES,
                packet_size_max: 1 << 24,
                collation: COLLATION,
                filler: [0; 23],
            },
            user: b"repl",
            proof: &proof,
            database: None,
            plugin: Some(b"mysql_native_password"),
            attributes: Vec::new(),
            zstd_level: None,
        };
        let mut writer = PacketWriter::default();
        writer.set_sequence(1);
        writer.message(|out| response.encode(out));
        assert_eq!(source.poll(&mut writer.pending()).unwrap(), ReplicaStep::NeedInput);
        assert!(source.pending().windows(21).any(|part| part == b"caching_sha2_password"));
        let mut again = PacketWriter::default();
        again.set_sequence(3);
        again.message(|out| out.put(&proof));
        assert_eq!(source.poll(&mut again.pending()).unwrap(), ReplicaStep::Denied("repl".into()));
    }

    /// Answers the greeting with this response; returns the step and the answer's message.
    fn respond(source: &mut ReplicaSession, message: &[u8]) -> (ReplicaStep, Vec<u8>) {
        source.sent(source.pending().len());
        let mut writer = PacketWriter::default();
        writer.set_sequence(1);
        writer.message(|out| out.put(message));
        let step = source.poll(&mut writer.pending()).unwrap();
        (step, source.pending().get(4..).unwrap_or_default().to_vec())
    }

    fn response_of(capabilities: Capabilities, proof: &[u8]) -> Vec<u8> {
        let response = HandshakeResponse {
            head: SslRequest { capabilities, packet_size_max: 1 << 24, collation: 45, filler: [0; 23] },
            user: b"repl",
            proof,
            database: None,
            plugin: None,
            attributes: Vec::new(),
            zstd_level: None,
        };
        let mut bytes = Vec::new();
        response.encode(&mut bytes);
        bytes
    }

    #[test]
    fn a_client_that_names_no_plugin_is_asked_for_another_proof() {
        let capabilities =
            Capabilities::PROTOCOL_41 | Capabilities::PLUGIN_AUTH | Capabilities::SECURE_CONNECTION;
        let mut source = source();
        let proof = crate::auth::scramble::native_password(b"secret", &source.options.nonce);
        let mut response = response_of(capabilities, &proof);
        assert_eq!(response.pop(), Some(0), "the end of the plugin's name");
        let (step, answer) = respond(&mut source, &response);
        assert_eq!(step, ReplicaStep::NeedInput);
        assert!(answer.starts_with(b"\xfemysql_native_password\0"), "{answer:?}");
        let mut again = PacketWriter::default();
        again.set_sequence(3);
        again.message(|out| out.put(&proof));
        let step = source.poll(&mut again.pending()).unwrap();
        assert_eq!(step, ReplicaStep::LoggedIn("repl".into()));
    }

    #[test]
    fn clients_without_plugins_log_in_by_the_method_of_4_1_or_are_told_that_they_are_too_old() {
        let by_4_1 = Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
        let new = source;
        let proof = crate::auth::scramble::native_password(b"secret", &new().options.nonce);
        let (step, _) = respond(&mut new(), &response_of(by_4_1, &proof));
        assert_eq!(step, ReplicaStep::LoggedIn("repl".into()));
        let (step, _) = respond(&mut new(), &response_of(by_4_1, &[1; 20]));
        assert_eq!(step, ReplicaStep::Denied("repl".into()));

        let mut without_native = new();
        without_native.options.native_password = false;
        let plugins = "authentication by plugins";
        let too_old: [(ReplicaSession, Vec<u8>, &str); 4] = [
            (without_native, response_of(by_4_1, &proof), plugins),
            (new(), response_of(Capabilities::PROTOCOL_41, &proof), plugins),
            (new(), response_of(by_4_1, b"password"), plugins),
            // 4.0: capabilities, largest packet, user, proof of 8 bytes.
            (new(), b"\x85\x24\0\0\0repl\0abcdefgh".to_vec(), "the protocol of 4.1"),
        ];
        for (mut source, response, lacks) in too_old {
            let (step, answer) = respond(&mut source, &response);
            assert_eq!(step, ReplicaStep::TooOld(lacks));
            let error = ServerError::from(ErrPacket::decode(&answer).unwrap());
            assert_eq!((error.code, error.sqlstate), (1251, Some(*b"08004")));
        }
    }

    #[test]
    fn a_client_goes_over_to_tls_once() {
        let (mut client, mut source) = (client("secret", None), source());
        source = ReplicaSession::new(ReplicaOptions { tls: true, ..source.options });
        let greeting = source.pending().to_vec();
        source.sent(greeting.len());
        assert_eq!(client.poll(&mut greeting.as_slice(), Duration::ZERO).unwrap(), ClientStep::StartTls);
        let asked = [client.pending(), b"hello"].concat();
        client.sent(asked.len());
        let mut input = asked.as_slice();
        assert_eq!(source.poll(&mut input).unwrap(), ReplicaStep::StartTls);
        assert_eq!(input, b"hello", "what belongs to TLS is left");
        client.tls_started().unwrap();
        let (step, told) = talk(&mut client, &mut source);
        assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{step:?}");
        assert_eq!(told, ReplicaStep::LoggedIn("repl".into()));
    }

    #[test]
    fn a_wrong_password_is_refused_and_that_is_the_end() {
        for plugin in [None, Some(AuthPlugin::NativePassword)] {
            for password in ["Secret", ""] {
                let (mut client, mut source) = (client(password, plugin), source());
                let (step, told) = talk(&mut client, &mut source);
                assert_eq!(told, ReplicaStep::Denied("repl".into()), "{plugin:?} {password:?}");
                let error = step.unwrap_err().to_string();
                assert!(error.contains("1045"), "{error}");
                assert!(source.poll(&mut b"\x01\0\0\x04\x01".as_slice()).is_err());
            }
        }
    }

    fn logged_in() -> ReplicaSession {
        let mut source = source();
        let (step, _) = talk(&mut client("secret", None), &mut source);
        assert!(matches!(step, Ok(ClientStep::LoggedIn)), "{step:?}");
        source
    }

    /// Gives a session a message in packets, 1 MiB at a time.
    fn send(source: &mut ReplicaSession, command: &Command<'_>) -> ReplicaStep {
        let mut writer = PacketWriter::default();
        writer.message(|out| command.encode(out));
        let mut step = ReplicaStep::NeedInput;
        for mut piece in writer.pending().chunks(1 << 20) {
            assert_eq!(step, ReplicaStep::NeedInput);
            step = source.poll(&mut piece).unwrap();
            assert!(piece.is_empty());
        }
        step
    }

    #[test]
    fn a_dump_may_name_a_set_of_many_megabytes_and_a_longer_command_is_answered() {
        let mut text = "1410447f-e54d-11f1-848d-02fc00000001".to_owned();
        // 16 bytes each: more than the 4 MiB at which connections were once cut, and more than fits in a
        // packet.
        (1..1_200_000).for_each(|n| text.push_str(&format!(":{}", 2 * n)));
        let request = DumpRequest::ByGtidSet {
            flags: crate::dump_request::DumpFlags(0),
            server_id: 7,
            name: Vec::new(),
            position: 4,
            gtid_set: text.parse().unwrap(),
            format: binlogz_binlog::gtid::GtidSetFormat::Untagged,
        };
        let mut source = logged_in();
        assert!(
            send(&mut source, &Command::Dump(request.clone()))
                == ReplicaStep::Request(Request::Dump(request))
        );
        assert!(source.pending().is_empty());
        assert_eq!(source.next_sequence(), 2, "the answer to two packets");

        let statement = vec![b' '; COMMAND_SIZE_MAX];
        assert_eq!(send(&mut source, &Command::Query(&statement)), ReplicaStep::NeedInput);
        let (header, message) = source.pending().split_at(4);
        assert_eq!(header.last(), Some(&5), "after packets 0 to 4");
        let error = ServerError::from(ErrPacket::decode(message).unwrap());
        assert_eq!(error.to_string(), "1153 (08S01): Got a packet bigger than 'max_allowed_packet' bytes");
        source.sent(source.pending().len());
        // The longest statement that is accepted, and one after it.
        let step = send(&mut source, &Command::Query(statement.get(1..).unwrap()));
        assert!(
            matches!(step, ReplicaStep::Request(Request::Statement(text)) if text.len() == COMMAND_SIZE_MAX - 1)
        );
        assert_eq!(send(&mut source, &Command::Ping), ReplicaStep::Request(Request::Ping));
    }

    #[test]
    fn what_drivers_ask_beside_statements_is_understood() {
        let mut source = logged_in();
        for (command, request) in [
            (Command::UseDatabase(b"shop"), Request::UseDatabase("shop".into())),
            (Command::Statistics, Request::Statistics),
            (Command::Kill(7), Request::Kill(7)),
            (Command::Prepare(b"SELECT ?"), Request::Prepare("SELECT ?".into())),
        ] {
            assert_eq!(send(&mut source, &command), ReplicaStep::Request(request));
        }
        source.sent(source.pending().len());
        source.line("Uptime: 1");
        assert_eq!(source.pending(), b"\x09\0\0\x01Uptime: 1");
    }

    #[test]
    fn a_command_that_is_coming_in_can_be_refused() {
        let mut source = logged_in();
        let mut writer = PacketWriter::default();
        writer.message(|out| Command::Query(&[b' '; 1000]).encode(out));
        let (mut front, mut back) = writer.pending().split_at(600);
        assert_eq!(source.poll(&mut front).unwrap(), ReplicaStep::NeedInput);
        assert_eq!(source.held(), 596);
        source.limit_commands(500);
        assert_eq!(source.poll(&mut back).unwrap(), ReplicaStep::NeedInput);
        assert_eq!(source.held(), 0);
        assert!(source.pending().windows(5).any(|part| part == b"08S01"));
        source.sent(source.pending().len());
        assert_eq!(send(&mut source, &Command::Ping), ReplicaStep::Request(Request::Ping));
    }

    #[test]
    fn whoever_is_not_logged_in_can_send_little() {
        let mut source = source();
        let mut many: Vec<u8> = vec![0xff, 0xff, 0x0f, 1];
        many.resize(LOGIN_SIZE_MAX + 5, 0);
        let error = source.poll(&mut many.as_slice()).unwrap_err().to_string();
        assert_eq!(error, "protocol broken while logging in: found 65541 bytes, expected a shorter message");
        let mut garbage: &[u8] = b"\x05\0\0\x01GET /";
        assert!(super::tests::source().poll(&mut garbage).is_err());
    }
}
