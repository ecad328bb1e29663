//! Lets a client in: its response to the greeting, another proof if that was of the wrong kind, and the refusals.

use binlogz_binlog::put::PutFields;

use super::{LoginAccount, ReplicaOptions, ReplicaSession, ReplicaState, ReplicaStep};
use crate::auth::{AUTH_MORE_DATA, AuthPlugin, AuthSwitch, Password, scramble, server};
use crate::capabilities::Capabilities;
use crate::change_user::ChangeUser;
use crate::compressed::{CompressionChoice, ConnectionCompression};
use crate::error::{DecodeContext, Error, Result, ServerError};
use crate::handshake_response::{HandshakeResponse, SslRequest};
use crate::response::OkPacket;

const LOGGING_IN: &str = "logging in";
/// `caching_sha2_password`: the proof was right.
const FAST_AUTH_OK: u8 = 3;
/// Bytes before the user's name in a response older than 4.1.
const OLD_RESPONSE_HEAD_SIZE: usize = 5;
/// More than any client sends before it is logged in.
pub(super) const LOGIN_SIZE_MAX: usize = 64 << 10;

/// The account that a client wants to be from now on, with its proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUser {
    /// The account's name.
    pub user: String,
    proof: Password,
    plugin: Vec<u8>,
    database: Option<String>,
    collation: Option<u8>,
    attributes: Option<Vec<(String, String)>>,
}

impl NewUser {
    pub(super) fn of(change: &ChangeUser<'_>) -> NewUser {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pairs = |pairs: &Vec<(&[u8], &[u8])>| {
            pairs.iter().map(|(name, value)| (text(name), text(value))).collect()
        };
        NewUser {
            user: text(change.user),
            proof: Password::new(change.proof),
            plugin: change.plugin.to_vec(),
            database: Some(text(change.database)).filter(|name| !name.is_empty()),
            collation: change.collation.map(|number| number as u8),
            attributes: change.attributes.as_ref().map(pairs),
        }
    }
}

impl ReplicaOptions {
    /// The plugin by which a client proves itself that named this one.
    fn plugin_for(&self, named: Option<AuthPlugin>) -> AuthPlugin {
        match named {
            Some(AuthPlugin::NativePassword) | None if self.native_password => AuthPlugin::NativePassword,
            Some(_) | None => AuthPlugin::CachingSha2Password,
        }
    }
}

impl ReplicaSession {
    /// Takes messages until the client is let in or refused.
    pub(super) fn log_in(&mut self, input: &mut &[u8]) -> Result<ReplicaStep> {
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
            ReplicaState::Greeted if self.options.tls && SslRequest::asks_for_tls(message) => {
                // Only once: a request for TLS within TLS is not understood.
                self.options.tls = false;
                Ok(ReplicaStep::StartTls)
            }
            ReplicaState::Greeted if is_of_before_4_1(message) => Ok(self.too_old("the protocol of 4.1")),
            ReplicaState::Greeted => {
                let response = HandshakeResponse::decode(message).during(LOGGING_IN)?;
                let has = |capability| response.head.capabilities.contains(capability);
                let by_plugin = has(Capabilities::PLUGIN_AUTH);
                let by_4_1 = has(Capabilities::SECURE_CONNECTION);
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                let user = text(response.user);
                self.capabilities = response.head.capabilities;
                self.attributes =
                    response.attributes.iter().map(|(name, value)| (text(name), text(value))).collect();
                self.database = response.database.filter(|name| !name.is_empty()).map(text);
                self.collation = response.head.collation;
                // As the server: zlib before zstd.
                self.compression = match response.zstd_level {
                    _ if has(Capabilities::COMPRESS) => Some(ConnectionCompression::Zlib),
                    Some(level) => Some(ConnectionCompression::Zstd {
                        level: match level {
                            1..=CompressionChoice::ZSTD_LEVEL_MAX => level,
                            _ => CompressionChoice::default().zstd_level,
                        },
                    }),
                    None => None,
                };
                let named = response.plugin.and_then(AuthPlugin::from_name);
                let plugin = self.options.plugin_for(named);
                let proof = response.proof.to_vec();
                self.out.set_sequence(self.packets.next_sequence());
                if self.is_open && proof.is_empty() {
                    return Ok(self.let_in(user));
                }
                if !by_plugin {
                    // It can't switch plugins: what it sent is all we will get.
                    let may = by_4_1 && self.options.native_password;
                    if !may || !server::is_proof(AuthPlugin::NativePassword, &proof) {
                        return Ok(self.too_old("authentication by plugins"));
                    }
                    return Ok(self.judge(user, AuthPlugin::NativePassword, &proof, false));
                }
                if named == Some(plugin) && server::is_proof(plugin, &proof) {
                    return Ok(self.judge(user, plugin, &proof, false));
                }
                self.switch(user, plugin, false);
                Ok(ReplicaStep::NeedInput)
            }
            ReplicaState::Switched { user, plugin, is_change } => {
                let user = user.clone();
                let plugin = *plugin;
                let is_change = *is_change;
                let proof = message.to_vec();
                self.out.set_sequence(self.packets.next_sequence());
                Ok(self.judge(user, plugin, &proof, is_change))
            }
            ReplicaState::LoggedIn | ReplicaState::Ended => {
                Err(protocol(LOGGING_IN, "a message", "nothing: access was denied"))
            }
        }
    }

    /// Asks for another proof.
    fn switch(&mut self, user: String, plugin: AuthPlugin, is_change: bool) {
        let mut data = self.options.nonce.to_vec();
        data.push(0);
        let switch = AuthSwitch { plugin: plugin.name().as_bytes(), data: &data };
        self.out.message(|out| switch.encode(out));
        self.packets.expect_sequence(self.out.next_sequence());
        self.state = ReplicaState::Switched { user, plugin, is_change };
    }

    /// Answers [`Request::ChangeUser`](super::ReplicaRequest::ChangeUser): from here on nobody is logged in, until the proof is right.
    /// These are the accounts that there are now. The step is to be handled as [`ReplicaSession::poll`]'s.
    pub fn change_user(&mut self, change: NewUser, accounts: Vec<LoginAccount>) -> ReplicaStep {
        let NewUser { user, proof, plugin: named, database, collation, attributes } = change;
        self.options.accounts = accounts;
        self.stored_password = None;
        self.database = database;
        self.collation = collation.unwrap_or(self.collation);
        if let Some(attributes) = attributes {
            self.attributes = attributes;
        }
        let by_plugin = self.capabilities.contains(Capabilities::PLUGIN_AUTH);
        let named = AuthPlugin::from_name(&named);
        let plugin = self.options.plugin_for(named);
        // As the server: the proof of this plugin alone may be made with the nonce of the greeting.
        let is_native = plugin == AuthPlugin::NativePassword && (named == Some(plugin) || !by_plugin);
        if !by_plugin && !self.options.native_password {
            return self.too_old("authentication by plugins");
        }
        if !by_plugin || is_native && server::is_proof(plugin, proof.as_bytes()) {
            return self.judge(user, plugin, proof.as_bytes(), true);
        }
        self.switch(user, plugin, true);
        ReplicaStep::NeedInput
    }

    /// The end for a client that has no way to prove its identity.
    fn too_old(&mut self, lacks: &'static str) -> ReplicaStep {
        self.state = ReplicaState::Ended;
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

    /// Lets the client in, or refuses it.
    fn judge(&mut self, user: String, plugin: AuthPlugin, proof: &[u8], is_change: bool) -> ReplicaStep {
        if self.is_open {
            // A client that sent a proof waits for what is said of it.
            if plugin == AuthPlugin::CachingSha2Password && server::is_proof(plugin, proof) {
                self.out.message(|out| out.put(&[AUTH_MORE_DATA, FAST_AUTH_OK]));
            }
            return self.let_in(user);
        }
        let account = self.options.accounts.iter().find(|account| account.user == user);
        let right = account
            .is_some_and(|account| server::is_right(plugin, proof, &account.password, &self.options.nonce));
        if !right {
            self.state = ReplicaState::Ended;
            let denied = match is_change {
                false => ServerError {
                    code: ServerError::ACCESS_DENIED,
                    sqlstate: Some(*b"28000"),
                    message: format!("Access denied for user '{user}' (using password: YES)"),
                },
                true => ServerError {
                    code: ServerError::ACCESS_DENIED_CHANGE_USER,
                    sqlstate: Some(*b"28000"),
                    message: format!(
                        "Access denied trying to change to user '{user}' (using password: YES). Disconnecting."
                    ),
                },
            };
            self.refuse(&denied);
            return ReplicaStep::Denied(user);
        }
        if plugin == AuthPlugin::NativePassword {
            self.stored_password =
                account.map(|account| scramble::stored_password(account.password.as_bytes()));
        }
        if plugin == AuthPlugin::CachingSha2Password {
            self.out.message(|out| out.put(&[AUTH_MORE_DATA, FAST_AUTH_OK]));
        }
        self.let_in(user)
    }

    fn let_in(&mut self, user: String) -> ReplicaStep {
        self.state = ReplicaState::LoggedIn;
        self.packets.expect_sequence(0);
        ReplicaStep::LoggedIn(user)
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
