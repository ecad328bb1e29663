//! The login, from the greeting to OK: capabilities, the switch to TLS, authentication.

use crate::auth::{
    AUTH_MORE_DATA, AUTH_NEXT_FACTOR, AUTH_SWITCH, AuthPlugin, AuthSwitch, ClientAuth, Credentials,
    LoginChannel,
};
use crate::capabilities::Capabilities;
use crate::compressed::{CompressionChoice, ConnectionCompression};
use crate::error::{DecodeContext, Error, Result};
use crate::greeting::{Greeting, NONCE_SIZE};
use crate::handshake_response::{HandshakeResponse, SslRequest};
use crate::packet::PacketWriter;
use crate::response::{ERR, ErrPacket, OK};

pub(super) const LOGGING_IN: &str = "logging in";
/// utf8mb4_general_ci: known to every server since 5.5.3 and to MariaDB.
const COLLATION: u8 = 45;
/// The largest packet that replicas and mysqlbinlog announce: events can be this large.
const PACKET_SIZE_MAX: u32 = 1 << 30;

/// Nothing here works without these; servers have them since 5.6, MariaDB since 10.0.
const REQUIRED: Capabilities = Capabilities(
    Capabilities::PROTOCOL_41.0
        | Capabilities::SECURE_CONNECTION.0
        | Capabilities::PLUGIN_AUTH.0
        | Capabilities::PLUGIN_AUTH_LENENC_DATA.0,
);
/// Used if the server has them.
const WANTED: Capabilities = Capabilities(
    Capabilities::LONG_PASSWORD.0 | Capabilities::TRANSACTIONS.0 | Capabilities::CONNECT_ATTRS.0,
);

/// Whether the connection switches to TLS. The caller decides which certificates to trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsPolicy {
    /// Never.
    Disabled,
    /// TLS is used if the server supports it, except over a Unix socket.
    Preferred,
    /// Always; without TLS there is no login.
    Required,
}

/// How to log in.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    /// The account and its password.
    pub credentials: Credentials,
    /// The plugin to begin with; by default the server's, if binlogz speaks it.
    pub default_auth: Option<AuthPlugin>,
    /// Whether the connection switches to TLS.
    pub tls: TlsPolicy,
    /// Whether the connection is a Unix socket, on which nobody can listen.
    pub local_socket: bool,
    /// How the connection may be compressed once logged in.
    pub compression: CompressionChoice,
    /// Names and values with which the client describes itself, such as `_client_name`.
    pub attributes: Vec<(String, String)>,
    /// The default database, which the account must be allowed to use.
    pub database: Option<String>,
    /// The number of the session's collation; by default utf8mb4_general_ci.
    pub collation: Option<u8>,
}

/// A server's greeting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerGreeting {
    /// For example `9.7.4`; MariaDB writes `5.5.5-10.11.6-MariaDB`.
    pub server_version: String,
    /// The connection's number at the server, low 32 bits.
    pub connection_id: u32,
    /// The server's capabilities.
    pub capabilities: Capabilities,
}

/// The next need of the login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoginStep {
    Wait,
    StartTls,
    Done,
}

#[derive(Debug)]
pub(super) struct Login {
    options: LoginOptions,
    channel: LoginChannel,
    greeting: Option<ServerGreeting>,
    compression: Option<ConnectionCompression>,
    state: LoginState,
}

#[derive(Debug)]
enum LoginState {
    Greeting,
    Tls { nonce: [u8; NONCE_SIZE], plugin: AuthPlugin, head: SslRequest },
    Authenticating { auth: ClientAuth, switched: bool },
}

impl Login {
    pub(super) fn new(options: LoginOptions) -> Self {
        let channel = if options.local_socket { LoginChannel::LocalSocket } else { LoginChannel::Plain };
        Login { options, channel, greeting: None, compression: None, state: LoginState::Greeting }
    }

    /// The compression for everything after the login.
    pub(super) fn compression(&self) -> Option<ConnectionCompression> {
        self.compression
    }

    pub(super) fn greeting(&self) -> Option<&ServerGreeting> {
        self.greeting.as_ref()
    }

    /// Takes the server's next message.
    pub(super) fn message(&mut self, message: &[u8], out: &mut PacketWriter) -> Result<LoginStep> {
        if message.first() == Some(&ERR) {
            let error = ErrPacket::decode(message).during(LOGGING_IN)?.into();
            return Err(Error::Server { doing: LOGGING_IN.into(), error });
        }
        match &mut self.state {
            LoginState::Greeting => self.greet(message, out),
            LoginState::Tls { .. } => Err(unexpected(message, "TLS, which this client asked for")),
            LoginState::Authenticating { auth, switched } => match message {
                [OK, ..] => Ok(LoginStep::Done),
                [AUTH_MORE_DATA, data @ ..] => {
                    if let Some(answer) = auth.more_data(data, &self.options.credentials, self.channel)? {
                        out.message(|payload| payload.extend_from_slice(&answer));
                    }
                    Ok(LoginStep::Wait)
                }
                [AUTH_SWITCH, ..] if !*switched => {
                    let switch = AuthSwitch::decode(message).during(LOGGING_IN)?;
                    let plugin = known_plugin(switch.plugin)?;
                    let nonce = switch.nonce().during(LOGGING_IN)?;
                    let (auth, proof) =
                        ClientAuth::begin(plugin, nonce, &self.options.credentials, self.channel)?;
                    out.message(|payload| payload.extend_from_slice(&proof));
                    self.state = LoginState::Authenticating { auth, switched: true };
                    Ok(LoginStep::Wait)
                }
                [AUTH_NEXT_FACTOR, ..] => Err(Error::Unsupported(
                    "the account has a second factor of authentication, which binlogz can't give".into(),
                )),
                _ => Err(unexpected(message, "OK, an error or a step of authentication")),
            },
        }
    }

    /// TLS is established: everything that follows goes through it.
    pub(super) fn tls_started(&mut self, out: &mut PacketWriter) -> Result<()> {
        let LoginState::Tls { nonce, plugin, head } = self.state else {
            return Err(Error::Usage("TLS was started without being asked for".into()));
        };
        self.channel = LoginChannel::Tls;
        self.authenticate(nonce, plugin, head, out)
    }

    fn greet(&mut self, message: &[u8], out: &mut PacketWriter) -> Result<LoginStep> {
        let greeting = Greeting::decode(message).during(LOGGING_IN)?;
        let version = String::from_utf8_lossy(greeting.server_version).into_owned();
        if !greeting.capabilities.contains(REQUIRED) {
            let message =
                format!("server {version} is too old: it has capabilities {:?}", greeting.capabilities);
            return Err(Error::Unsupported(message));
        }
        let offers_tls = greeting.capabilities.contains(Capabilities::SSL);
        let use_tls = match self.options.tls {
            TlsPolicy::Disabled => false,
            TlsPolicy::Preferred => offers_tls && !self.options.local_socket,
            TlsPolicy::Required if offers_tls => true,
            TlsPolicy::Required => {
                return Err(Error::Unsupported("TLS is required, and the server offers none".into()));
            }
        };
        let tls = if use_tls { Capabilities::SSL } else { Capabilities::default() };
        let Some(compression) = self.options.compression.with(greeting.capabilities) else {
            let said = "no way of compressing the connection that the client allows is one of the server's";
            return Err(Error::Unsupported(said.into()));
        };
        self.compression = compression;
        let compressed = compression.map(ConnectionCompression::capability).unwrap_or_default();
        let with_database = match self.options.database {
            Some(_) => Capabilities::CONNECT_WITH_DB,
            None => Capabilities::default(),
        };
        let head = SslRequest {
            capabilities: REQUIRED | (WANTED & greeting.capabilities) | tls | compressed | with_database,
            packet_size_max: PACKET_SIZE_MAX,
            collation: self.options.collation.unwrap_or(COLLATION),
            filler: [0; 23],
        };
        let plugin = self
            .options
            .default_auth
            .or_else(|| AuthPlugin::from_name(greeting.plugin))
            .unwrap_or(AuthPlugin::CachingSha2Password);
        self.greeting = Some(ServerGreeting {
            server_version: version,
            connection_id: greeting.connection_id,
            capabilities: greeting.capabilities,
        });
        if use_tls {
            out.message(|payload| head.encode(payload));
            self.state = LoginState::Tls { nonce: greeting.nonce, plugin, head };
            return Ok(LoginStep::StartTls);
        }
        self.authenticate(greeting.nonce, plugin, head, out)?;
        Ok(LoginStep::Wait)
    }

    fn authenticate(
        &mut self,
        nonce: [u8; NONCE_SIZE],
        plugin: AuthPlugin,
        head: SslRequest,
        out: &mut PacketWriter,
    ) -> Result<()> {
        let credentials = &self.options.credentials;
        if credentials.user.contains('\0') {
            return Err(Error::Usage("user name holds a NUL".into()));
        }
        let (auth, proof) = ClientAuth::begin(plugin, nonce, credentials, self.channel)?;
        let attributes = &self.options.attributes;
        let response = HandshakeResponse {
            head,
            user: credentials.user.as_bytes(),
            proof: &proof,
            database: self.options.database.as_deref().map(str::as_bytes),
            plugin: Some(plugin.name().as_bytes()),
            attributes: attributes.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect(),
            zstd_level: match self.compression {
                Some(ConnectionCompression::Zstd { level }) => Some(level),
                Some(ConnectionCompression::Zlib) | None => None,
            },
        };
        out.message(|payload| response.encode(payload));
        self.state = LoginState::Authenticating { auth, switched: false };
        Ok(())
    }
}

fn known_plugin(name: &[u8]) -> Result<AuthPlugin> {
    AuthPlugin::from_name(name).ok_or_else(|| {
        Error::Unsupported(format!(
            "authentication plugin {} is not one of caching_sha2_password, sha256_password and \
             mysql_native_password",
            name.escape_ascii()
        ))
    })
}

fn unexpected(message: &[u8], expected: &'static str) -> Error {
    let found = match message.first() {
        Some(first) => format!("a message of {} bytes that begins with {first:02x}", message.len()),
        None => "an empty message".into(),
    };
    Error::Protocol { doing: LOGGING_IN.into(), found, expected }
}
