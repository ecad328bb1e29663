//! A client from its greeting to its end.
//!
//! ```text
//! bytes → ReplicaSession → ReplicaStep → what is to be done → answers in the session → bytes
//! ```
//!
//! The session reads packets and proofs, as it does for the relay's replicas, and has no socket.

use std::io;
use std::sync::Arc;

use binlogz_query_server::{DENIAL, GuardedBytes, QueryConnection};
use binlogz_wire::ServerError;
use binlogz_wire::auth::Password;
use binlogz_wire::session::{LoginAccount, ReplicaOptions, ReplicaSession, ReplicaStep};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::FrontShared;
use super::clients::ConnectedClient;
use super::prepared::PreparedQueries;
use super::transport::MysqlTransport;
use crate::errors::{INSECURE_TRANSPORT, TOO_MANY_CONNECTIONS, error};
use crate::session::{AnswerPurpose, MysqlSession};
use crate::variables::{FrontVariables, PACKET_MAX, VERSION};

/// Bytes that a client may send before it has its answer; what is more waits in the network.
const EARLY_MAX: usize = 64 << 10;

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum ConnectionEnd {
    /// The client has left, was refused, or another client ended it.
    Left,
    /// The client broke the protocol.
    Protocol,
    /// The connection failed, or the client took nothing for too long.
    Failed,
}

impl From<io::Error> for ConnectionEnd {
    fn from(_: io::Error) -> Self {
        ConnectionEnd::Failed
    }
}

impl From<binlogz_wire::Error> for ConnectionEnd {
    fn from(_: binlogz_wire::Error) -> Self {
        ConnectionEnd::Protocol
    }
}

pub(super) type ClientResult<T = ()> = Result<T, ConnectionEnd>;

/// A client's connection.
pub(super) struct MysqlConnection {
    pub(super) shared: Arc<FrontShared>,
    pub(super) session: ReplicaSession,
    transport: MysqlTransport,
    connection: Arc<QueryConnection>,
    input: Vec<u8>,
    pub(super) number: u32,
    pub(super) user: String,
    pub(super) client: Option<Arc<ConnectedClient>>,
    /// The default database; empty: none.
    pub(super) database: String,
    pub(super) variables: FrontVariables,
    pub(super) prepared: PreparedQueries,
    /// Whether the last statement asked the logs, so that their notes are its warnings.
    pub(super) has_notes: bool,
    /// The step that COM_CHANGE_USER gave without more bytes.
    pub(super) step: Option<ReplicaStep>,
    /// Bytes of the first command are compressed.
    has_begun: bool,
}

/// Random printable bytes: clients take a NUL for the end.
fn nonce() -> Option<[u8; 20]> {
    let mut nonce = [0; 20];
    getrandom::fill(&mut nonce).ok()?;
    Some(nonce.map(|byte| byte % 94 + 33))
}

impl MysqlConnection {
    pub(super) fn new(bytes: GuardedBytes, shared: Arc<FrontShared>) -> Self {
        let number = shared.clients.next_number();
        let connection = Arc::clone(bytes.connection());
        let mut session = ReplicaSession::new(ReplicaOptions {
            server_version: VERSION.to_owned(),
            connection_id: number,
            // Without random numbers no proof is right.
            nonce: nonce().unwrap_or([b'!'; 20]),
            tls: shared.tls.is_some(),
            accounts: accounts(&shared),
            native_password: true,
        });
        if shared.accounts.is_empty() {
            session.admit_everybody();
        }
        let prepared = PreparedQueries::new(shared.prepared.of_account(""));
        MysqlConnection {
            shared,
            session,
            transport: MysqlTransport::new(bytes),
            connection,
            input: Vec::new(),
            number,
            user: String::new(),
            client: None,
            database: String::new(),
            variables: FrontVariables::default(),
            prepared,
            has_notes: false,
            step: None,
            has_begun: false,
        }
    }

    /// Talks to the client until it ends.
    pub(super) async fn run(mut self) {
        let ended = self.talk().await;
        if let Err(ConnectionEnd::Left) = ended {
            // Its last answer may be a refusal.
            let _ = self.flush().await;
        }
        self.shared.clients.leave(self.number);
    }

    async fn talk(&mut self) -> ClientResult {
        loop {
            let step = match self.step.take() {
                Some(step) => step,
                None => self.poll()?,
            };
            match step {
                ReplicaStep::NeedInput => {
                    self.flush().await?;
                    self.receive().await?;
                }
                ReplicaStep::StartTls => {
                    let Some(acceptor) = self.shared.tls.clone() else { return Err(ConnectionEnd::Protocol) };
                    let read = std::mem::take(&mut self.input);
                    self.transport.start_tls(&acceptor, read).await?;
                }
                ReplicaStep::LoggedIn(user) => self.enter(user).await?,
                ReplicaStep::Denied(user) => return self.deny(&user).await,
                ReplicaStep::TooOld(_) => return Err(ConnectionEnd::Left),
                ReplicaStep::Request(request) => self.request(request).await?,
            }
        }
    }

    fn poll(&mut self) -> ClientResult<ReplicaStep> {
        let mut rest = self.input.as_slice();
        let before = rest.len();
        let step = self.session.poll(&mut rest);
        let taken = before - rest.len();
        self.input.drain(..taken);
        Ok(step?)
    }

    /// Sends what is pending. A client that takes nothing for too long is gone.
    pub(super) async fn flush(&mut self) -> ClientResult {
        let pending = self.session.pending();
        if pending.is_empty() {
            return Ok(());
        }
        let count = pending.len();
        tokio::select! {
            written = timeout(self.shared.idle, self.transport.write(pending)) => {
                written.map_err(|_| ConnectionEnd::Failed)??;
            }
            // Another client ends it while it takes nothing.
            () = ended(self.client.as_ref()) => return Err(ConnectionEnd::Failed),
        }
        self.session.sent(count);
        Ok(())
    }

    /// Waits for bytes.
    async fn receive(&mut self) -> ClientResult {
        let ended = ended(self.client.as_ref());
        let idle = self.shared.idle.min(self.variables.idle());
        tokio::select! {
            read = timeout(idle, self.transport.read(&mut self.input)) => {
                match read.map_err(|_| ConnectionEnd::Left)?? {
                    true => Ok(()),
                    false => Err(ConnectionEnd::Left),
                }
            }
            () = ended => Err(ConnectionEnd::Left),
        }
    }

    /// Waits until the client leaves while it waits for an answer; a client that sends more is read up to a bound.
    pub(super) async fn leaves(&mut self) {
        while self.input.len() < EARLY_MAX {
            match self.transport.read(&mut self.input).await {
                Ok(true) => {}
                Ok(false) | Err(_) => return,
            }
        }
        std::future::pending().await
    }

    /// Lets a client in whose proof was right, at its turn.
    async fn enter(&mut self, user: String) -> ClientResult {
        let address = self.connection.address();
        if !self.shared.accounts.is_empty() {
            let Some(turn) = self.shared.logins.turn(&user, address, Instant::now()) else {
                return self.have_come_back_later();
            };
            sleep_until(turn).await;
            self.shared.logins.accepted(&user, address, Instant::now());
        }
        if self.shared.requires_tls && !self.transport.is_encrypted() {
            let message = "Connections using insecure transport are prohibited here: use TLS";
            return self.turn_away(error(INSECURE_TRANSPORT, message));
        }
        // From here on, its account's logs tell which databases there are.
        self.user = user;
        if let Some(database) = self.session.database().map(str::to_owned) {
            match self.known_database(&database).await {
                Ok(database) => self.database = database,
                Err(refused) => return self.turn_away(refused),
            }
        }
        self.connection.is_known_now();
        self.variables = FrontVariables::of_new_session(self.shared.idle);
        self.prepared = PreparedQueries::new(self.shared.prepared.of_account(self.account()));
        self.client = Some(self.shared.clients.enter(self.number, &self.user));
        self.session.keep_commands();
        self.session.limit_commands(PACKET_MAX);
        self.session.ok();
        self.flush().await?;
        if !self.has_begun {
            self.has_begun = true;
            if let Some(compression) = self.session.begin_compression() {
                self.transport.compress_with(compression);
            }
        }
        Ok(())
    }

    fn turn_away(&mut self, refused: ServerError) -> ClientResult {
        self.session.refuse(&refused);
        Err(ConnectionEnd::Left)
    }

    /// Refuses a login for which too many wait. The answer is one for right and wrong passwords, and as fast: or it would tell
    /// of as many guesses as a client sends.
    fn have_come_back_later(&mut self) -> ClientResult {
        let refused = error(TOO_MANY_CONNECTIONS, "too many logins: try again later");
        self.session.refuse_login(&refused);
        Err(ConnectionEnd::Left)
    }

    /// Denies a login, whose refusal is pending: not faster than passwords may be guessed.
    async fn deny(&mut self, user: &str) -> ClientResult {
        let address = self.connection.address();
        let turn = self.shared.logins.turn(user, address, Instant::now());
        if let Some(turn) = turn {
            sleep_until(turn).await;
        }
        if let Some(line) = self.shared.logins.denied(address, Instant::now()) {
            (self.shared.tell)(&line);
        }
        if turn.is_none() {
            return self.have_come_back_later();
        }
        sleep(DENIAL).await;
        Err(ConnectionEnd::Left)
    }

    /// The account whose logs are asked, and by which statements take turns. Without accounts a name is nobody's.
    pub(super) fn account(&self) -> &str {
        if self.shared.accounts.is_empty() { "" } else { &self.user }
    }

    /// The session as workers are told it.
    pub(super) fn told(&self, purpose: AnswerPurpose) -> MysqlSession {
        MysqlSession {
            purpose,
            connection: self.number,
            is_encrypted: self.transport.is_encrypted(),
            rows_max: self.variables.rows_max(),
            user: self.user.clone(),
            database: self.database.clone(),
            address: self.connection.address().to_string(),
            changed: self.variables.changed().to_vec(),
        }
    }

    /// The accounts that may log in, for COM_CHANGE_USER.
    pub(super) fn accounts(&self) -> Vec<LoginAccount> {
        accounts(&self.shared)
    }
}

fn accounts(shared: &FrontShared) -> Vec<LoginAccount> {
    let account = |(user, password): (&str, &str)| LoginAccount {
        user: user.to_owned(),
        password: Password::new(password),
    };
    shared.accounts.plain().map(account).collect()
}

/// Waits until another client ends this one; for ever while it isn't logged in.
async fn ended(client: Option<&Arc<ConnectedClient>>) {
    match client {
        Some(client) => client.ended().await,
        None => std::future::pending().await,
    }
}
