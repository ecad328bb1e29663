//! The source's side of a connection: greets, checks who it is, takes commands, answers them.
//!
//! ```text
//! we      greeting
//! client  [request for TLS, and all that follows within it]
//! client  response with a proof ─ of the wrong kind → we switch the plugin, client proves again
//! we      [caching_sha2_password: 01 03] OK, or error 1045 and the end
//! client  command … we answer with ok, refuse or rows; a dump takes over the connection
//! ```
//!
//! Packets that are compressed are not offered; TLS is the caller's to offer. What commands mean is the caller's business.

use binlogz_binlog::put::Put;

use crate::auth::{AUTH_MORE_DATA, AuthPlugin, AuthSwitch, Password, server};
use crate::capabilities::Capabilities;
use crate::command::Command;
use crate::dump_request::DumpRequest;
use crate::error::{Error, Result, ServerError, While};
use crate::greeting::{Greeting, NONCE_SIZE};
use crate::handshake_response::{HandshakeResponse, SslRequest};
use crate::packet::{Message, MessageReader, PacketReader, PacketWriter};
use crate::response::{EofPacket, ErrPacket, OkPacket};
use crate::result_set::{ColumnDefinition, Row, encode_row};

const LOGGING_IN: &str = "logging in";
const TAKING: &str = "taking a command";

/// `caching_sha2_password`: the proof was right.
const FAST_AUTH_OK: u8 = 3;
/// SERVER_STATUS_AUTOCOMMIT.
const STATUS: u16 = 2;
/// utf8mb4_general_ci: every client knows it.
const COLLATION: u8 = 45;
/// Collation of numbers: binary.
const COLLATION_BINARY: u16 = 63;
/// Column type of texts: VAR_STRING.
const TYPE_TEXT: u8 = 0xfd;
/// Column type of numbers: LONGLONG.
const TYPE_NUMBER: u8 = 8;
/// More than any client says before it is logged in.
const LOGIN_SIZE_MAX: usize = 64 << 10;
/// The server's default of `max_allowed_packet`: a dump request may name a set of four million intervals.
pub const COMMAND_SIZE_MAX: usize = 64 << 20;

const CAPABILITIES: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0
        | Capabilities::CONNECT_WITH_DB.0
        | Capabilities::PROTOCOL_41.0
        | Capabilities::TRANSACTIONS.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::CONNECT_ATTRS.0
        | Capabilities::PLUGIN_AUTH_LENENC_DATA.0,
);

/// Who may log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The account's name.
    pub user: String,
    /// Its password; empty lets nobody in.
    pub password: Password,
}

/// How a client is received.
#[derive(Debug, Clone)]
pub struct ReplicaOptions {
    /// As in `9.7.4`.
    pub server_version: String,
    /// The number of the connection.
    pub connection_id: u32,
    /// Random bytes, none of them 0; other ones for each connection.
    pub nonce: [u8; NONCE_SIZE],
    /// Whether the connection may go over to TLS.
    pub tls: bool,
    /// Who may log in.
    pub accounts: Vec<Account>,
    /// Whether clients may prove who they are with `mysql_native_password`: its SHA-1 is guessed at quickly by anyone who
    /// listened. Without it they are asked for `caching_sha2_password`.
    pub native_password: bool,
}

/// What a [`ReplicaSession`] needs or gives next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaStep {
    /// Send what is pending, then come back with more bytes.
    NeedInput,
    /// Go over to TLS: what is left of the input belongs to it already.
    StartTls,
    /// The client is who it says: let it in with [`ReplicaSession::ok`], or refuse it and end the connection.
    LoggedIn(String),
    /// It is not: send what is pending and end the connection. Who it said it was.
    Denied(String),
    /// A command, to be answered.
    Request(Request),
}

/// What a client wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// To leave; there is no answer.
    Quit,
    /// To know that we are there.
    Ping,
    /// An answer to a statement.
    Statement(String),
    /// To be known as a replica.
    Register {
        /// Its server id.
        server_id: u32,
        /// Where it says it can be reached.
        host: String,
        /// Where it says it can be reached.
        port: u16,
    },
    /// The binary log.
    Dump(DumpRequest),
    /// Something else: the command's code.
    Other(u8),
}

/// A column of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether its texts are numbers.
    pub is_number: bool,
}

/// The source's side of a connection.
#[derive(Debug)]
pub struct ReplicaSession {
    options: ReplicaOptions,
    state: State,
    packets: PacketReader,
    messages: MessageReader,
    out: PacketWriter,
    /// Bytes that came since the last whole message.
    size: usize,
    attributes: Vec<(String, String)>,
    /// A longer command is answered with an error.
    command_size_max: usize,
}

#[derive(Debug)]
enum State {
    /// The greeting is out.
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
    /// A session on a connection that was just accepted.
    pub fn new(options: ReplicaOptions) -> Self {
        let mut out = PacketWriter::default();
        let greeting = Greeting {
            server_version: options.server_version.as_bytes(),
            connection_id: options.connection_id,
            nonce: options.nonce,
            capabilities: if options.tls { CAPABILITIES | Capabilities::SSL } else { CAPABILITIES },
            collation: COLLATION,
            status: STATUS,
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
            command_size_max: COMMAND_SIZE_MAX,
        }
    }

    /// Bytes of a command that is not whole yet.
    pub fn held(&self) -> usize {
        self.messages.held()
    }

    /// Takes no longer command from now on, not even the one that is coming in.
    pub fn limit_commands(&mut self, size_max: usize) {
        self.command_size_max = size_max;
    }

    /// What the client told of itself when it logged in: names and values, as in `program_name` and `mysqld`.
    pub fn attributes(&self) -> &[(String, String)] {
        &self.attributes
    }

    /// What is to be sent. Whoever sends it calls [`ReplicaSession::sent`].
    pub fn pending(&self) -> &[u8] {
        self.out.pending()
    }

    /// The first `count` bytes that were pending are on their way.
    pub fn sent(&mut self, count: usize) {
        self.out.sent(count);
    }

    /// The number of the next packet: a dump's events go on from it.
    pub fn next_sequence(&self) -> u8 {
        self.out.next_sequence()
    }

    /// Takes bytes from the front of `input`, all of them where it answers [`ReplicaStep::NeedInput`].
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
                // Once: whoever asks within TLS is not understood.
                self.options.tls = false;
                Ok(ReplicaStep::StartTls)
            }
            State::Greeted => {
                let response = HandshakeResponse::decode(message).during(LOGGING_IN)?;
                if !response.head.capabilities.contains(Capabilities::PROTOCOL_41 | Capabilities::PLUGIN_AUTH)
                {
                    return Err(protocol(
                        LOGGING_IN,
                        "a client of before 5.5.7",
                        "authentication by plugins",
                    ));
                }
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                let user = text(response.user);
                self.attributes =
                    response.attributes.iter().map(|(name, value)| (text(name), text(value))).collect();
                let named = response.plugin.and_then(AuthPlugin::from_name);
                let plugin = match named {
                    Some(AuthPlugin::NativePassword) | None if self.options.native_password => {
                        AuthPlugin::NativePassword
                    }
                    _ => AuthPlugin::CachingSha2Password,
                };
                let proof = response.proof.to_vec();
                self.out.set_sequence(self.packets.next_sequence());
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

    /// The next command. One that is too long is answered with an error, and the one after it is waited for.
    fn command(&mut self, input: &mut &[u8]) -> Result<ReplicaStep> {
        loop {
            let message = self.messages.next_within(&mut self.packets, input, self.command_size_max);
            let request = match message.during(TAKING)? {
                None => return Ok(ReplicaStep::NeedInput),
                Some(Message::Whole(message)) => Some(Request::of(Command::decode(message).during(TAKING)?)),
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

    /// The answer "done".
    pub fn ok(&mut self) {
        self.out.message(|out| OkPacket { status: STATUS, ..OkPacket::default() }.encode(out));
    }

    /// The answer "done", with warnings that the client may ask for.
    pub fn ok_with_warnings(&mut self, warnings: u16) {
        self.out.message(|out| OkPacket { status: STATUS, warnings, ..OkPacket::default() }.encode(out));
    }

    /// The answer "no".
    pub fn refuse(&mut self, error: &ServerError) {
        let packet =
            ErrPacket { code: error.code, sqlstate: error.sqlstate, message: error.message.as_bytes() };
        self.out.message(|out| packet.encode(out));
    }

    /// The answer to a query.
    pub fn rows(&mut self, columns: &[Column<'_>], rows: &[Row]) {
        self.out.message(|out| out.put_lei(columns.len() as u64));
        for column in columns {
            let (collation, length, column_type) = match column.is_number {
                true => (COLLATION_BINARY, 21, TYPE_NUMBER),
                false => (u16::from(COLLATION), 4096, TYPE_TEXT),
            };
            let definition = ColumnDefinition {
                name: column.name.as_bytes(),
                collation,
                length,
                column_type,
                ..ColumnDefinition::default()
            };
            self.out.message(|out| definition.encode(out));
        }
        let eof = EofPacket { warnings: 0, status: STATUS };
        self.out.message(|out| eof.encode(out));
        for row in rows {
            self.out.message(|out| encode_row(row, out));
        }
        self.out.message(|out| eof.encode(out));
    }

    /// Lets the client in, or not.
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

    /// Carries bytes both ways, one at a time, until one of them has something to tell.
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
            let columns =
                [Column { name: "1", is_number: true }, Column { name: "nothing", is_number: false }];
            source.rows(&columns, std::slice::from_ref(&row));
            let (step, _) = talk(&mut client, &mut source);
            assert_eq!(step.unwrap(), ClientStep::Answer(Answer::Rows(vec![row])));
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
        // One that answers the switch with the other plugin's proof is not let in.
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
        // 16 bytes each: more than the 4 MiB after which connections were once cut, and than a packet has.
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
        // The longest one that is taken, and one after it.
        let step = send(&mut source, &Command::Query(statement.get(1..).unwrap()));
        assert!(
            matches!(step, ReplicaStep::Request(Request::Statement(text)) if text.len() == COMMAND_SIZE_MAX - 1)
        );
        assert_eq!(send(&mut source, &Command::Ping), ReplicaStep::Request(Request::Ping));
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
