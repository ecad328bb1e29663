//! The conversation of a client and the relay, from the greeting until the client leaves or asks for a log.
//!
//! ```text
//! bytes → ReplicaSession → ReplicaStep → Conversation::step → what comes next: the next step, more bytes, another layer, the end
//! ```
//!
//! The session reads packets and proofs, and has no socket; `commands` and `forwarding` have the answers; `dump` goes on with a
//! client that asked for a log.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_client_sql::{ClientFacts, ClientVariables};
use binlogz_relay_log::LineageLog;
use binlogz_wire::ServerError;
use binlogz_wire::compressed::ConnectionCompression;
use binlogz_wire::dump_request::DumpRequest;
use binlogz_wire::session::{ReplicaRequest, ReplicaSession, ReplicaStep};

use super::Client;
use super::dump::KnownClient;
use super::forwarding::{ForwardOutcome, SessionParts};
use crate::error::{Error, Result, UNKNOWN_ERROR};
use crate::serve::connections::admission::SMALL_COMMAND;
use crate::serve::connections::transport::{DumpConnection, Transport};
use crate::serve::sending::sender::broken;
use crate::serve::upstream::Upstream;
use crate::telemetry::complain;

/// A client must log in within this time.
pub(super) const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// A logged-in client must send something within this time (`wait_timeout` is as long).
const IDLE_TIMEOUT: Duration = Duration::from_secs(28_800);
/// Bytes that are read at once; a command may be longer.
const READ_SIZE: usize = 16 << 10;

/// The log that a client asks for at the end of its conversation.
pub(super) struct DumpRequested {
    pub(super) kept: Arc<LineageLog>,
    pub(super) variables: ClientVariables,
    pub(super) request: DumpRequest,
    /// The number of the first packet of the answer.
    pub(super) sequence: u8,
    pub(super) transport: Transport,
}

/// How the conversation goes on after a step.
enum AfterStep {
    /// The session may have another step in the bytes that came.
    Poll,
    /// The session needs more bytes.
    Receive,
    /// The rest of the bytes belongs to TLS.
    StartTls,
    /// Everything after the answer is compressed, in both directions.
    Compress(ConnectionCompression),
    /// The client wants this log, and says no more.
    Dump(Arc<LineageLog>, DumpRequest),
    /// The client has left, or has been told to.
    End,
}

/// A client that is connected and has not asked for a log.
pub(super) struct Conversation<'c, 'a> {
    client: &'c mut Client<'a>,
    stream: &'c Arc<TcpStream>,
    /// The log of the source that greeted the client, then of the one it chose.
    kept: Arc<LineageLog>,
    session: ReplicaSession,
    transport: Transport,
    variables: ClientVariables,
    /// The connection to the source, for an account whose statements may be forwarded.
    upstream: Option<Upstream>,
    login_until: Instant,
    /// The step that COM_CHANGE_USER gave without more bytes.
    step: Option<ReplicaStep>,
}

impl<'c, 'a> Conversation<'c, 'a> {
    pub(super) fn new(
        client: &'c mut Client<'a>,
        kept: Arc<LineageLog>,
        session: ReplicaSession,
        stream: &'c Arc<TcpStream>,
    ) -> Self {
        Conversation {
            client,
            stream,
            kept,
            session,
            transport: Transport::Plain(Arc::clone(stream)),
            variables: ClientVariables::default(),
            upstream: None,
            login_until: Instant::now() + LOGIN_TIMEOUT,
            step: None,
        }
    }

    /// Talks to the client until it leaves (`None`) or asks for a log.
    ///
    /// # Errors
    ///
    /// The client was refused, broke the protocol, or its connection failed.
    pub(super) fn run(mut self) -> Result<Option<DumpRequested>> {
        let mut buffer = vec![0; READ_SIZE];
        loop {
            self.send_pending()?;
            if self.client.known.account.is_none() {
                self.client.admission.greeted(Instant::now());
            }
            let count = self.receive(&mut buffer)?;
            if count == 0 {
                return Ok(None);
            }
            let mut input = buffer.get(..count).unwrap_or_default();
            loop {
                let step = self.step.take().map_or_else(|| self.session.poll(&mut input), Ok)?;
                match self.take(step)? {
                    AfterStep::Poll => {}
                    AfterStep::Receive => break,
                    AfterStep::StartTls => {
                        let tls = self
                            .client
                            .door
                            .tls
                            .as_ref()
                            .ok_or_else(|| Error::Refused("TLS was not offered".into()))?;
                        self.transport = self.transport.start_tls(tls, input)?;
                        break;
                    }
                    AfterStep::Compress(compression) => {
                        self.transport = self.transport.compress_with(compression, input);
                        break;
                    }
                    AfterStep::Dump(kept, request) => {
                        let sequence = self.session.next_sequence();
                        let variables = self.variables;
                        let transport = self.transport;
                        return Ok(Some(DumpRequested { kept, variables, request, sequence, transport }));
                    }
                    AfterStep::End => return Ok(None),
                }
            }
        }
    }

    fn send_pending(&mut self) -> Result<()> {
        let pending = self.session.pending().to_vec();
        self.transport.send(&pending).map_err(broken)?;
        self.session.sent(pending.len());
        Ok(())
    }

    /// Sends what is pending as the last of the conversation.
    fn send_last(&mut self) -> Result<()> {
        self.transport.send(self.session.pending()).map_err(broken)
    }

    /// Waits for bytes; how many came, none if the client has left.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<usize> {
        loop {
            // Even a client that sends very slowly must be logged in by then.
            let patience = match self.client.known.account {
                Some(_) => IDLE_TIMEOUT,
                None => {
                    self.login_until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
                }
            };
            self.transport.socket().set_read_timeout(Some(patience)).map_err(broken)?;
            match self.transport.read(buffer) {
                // The process was stopped and continued, or is traced: the connection is unaffected.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(count) => return Ok(count),
                Err(source) => return Err(Error::of_client("wait for a client", source)),
            }
        }
    }

    fn take(&mut self, step: ReplicaStep) -> Result<AfterStep> {
        match step {
            ReplicaStep::NeedInput => {
                if !self.client.admission.may_hold(self.session.held() + self.transport.held()) {
                    self.session.limit_commands(SMALL_COMMAND);
                }
                Ok(AfterStep::Receive)
            }
            ReplicaStep::LoggedIn(user) => self.log_in(user),
            ReplicaStep::StartTls => Ok(AfterStep::StartTls),
            ReplicaStep::Denied(user) => {
                self.send_last()?;
                let why = self.client.door.accounts().why_denied(&user, self.client.known.peer.ip());
                Err(Error::Refused(format!("access denied for user '{user}': {why}")))
            }
            ReplicaStep::TooOld(lacks) => {
                self.send_last()?;
                Err(Error::Refused(format!("a client without {lacks}")))
            }
            ReplicaStep::Request(request) => self.request(request),
        }
    }

    /// Lets in a client whose proof was right, or ends its connection with the reason.
    fn log_in(&mut self, user: String) -> Result<AfterStep> {
        self.kept = match self.client.enter(&user, &self.transport, &self.session, self.stream) {
            Ok(kept) => kept,
            Err(refusal) => {
                self.session.refuse(&refusal);
                self.send_last()?;
                return Err(Error::Refused(format!("user '{user}': {}", refusal.message)));
            }
        };
        let server = &self.client.known.server;
        // The source would answer with what may not leave.
        let forward = server.forward.filter(|_| self.client.known.exits().is_none());
        self.upstream = forward.map(|options| Upstream::new(Arc::clone(server), options));
        if self.upstream.is_some() {
            self.session.keep_commands();
        }
        self.client.known.attributes = self.session.attributes().to_vec();
        let facts = ClientFacts {
            user,
            host: self.client.known.peer.ip().to_canonical().to_string(),
            connection: self.client.known.connection,
            port: self.transport.socket().local_addr().map_err(broken)?.port(),
            database: self.session.database().map(str::to_owned),
            collation: self.session.collation(),
        };
        let source = self.client.known.server.statements.intake.source_variables.get();
        self.variables.log_in(facts, source.as_deref());
        self.session.set_status(self.variables.status());
        match (&self.transport, &self.client.door.tls) {
            (Transport::Tls(_), Some(tls)) => self.session.ok_over_tls(&tls.fingerprint()),
            _ => self.session.ok(),
        }
        if let Transport::Compressed(_) = self.transport {
            return Ok(AfterStep::Poll);
        }
        match self.session.begin_compression() {
            None => Ok(AfterStep::Poll),
            Some(compression) => {
                // The OK is the last that goes as it is.
                self.send_pending()?;
                Ok(AfterStep::Compress(compression))
            }
        }
    }

    fn request(&mut self, request: ReplicaRequest) -> Result<AfterStep> {
        match request {
            ReplicaRequest::Quit => Ok(AfterStep::End),
            ReplicaRequest::ChangeUser(change) => {
                // Until the proof is right, nobody is logged in; what the other account had is gone whatever comes.
                self.client.leave();
                self.upstream = None;
                self.variables = ClientVariables::default();
                self.login_until = Instant::now() + LOGIN_TIMEOUT;
                let accounts = self.client.door.accounts().at_address(self.client.known.peer.ip());
                match self.session.change_user(change, accounts) {
                    ReplicaStep::NeedInput => {}
                    step => self.step = Some(step),
                }
                Ok(AfterStep::Poll)
            }
            ReplicaRequest::Kill(connection) if connection == self.client.known.connection => {
                self.session.refuse(&ServerError {
                    code: 1317,
                    sqlstate: Some(*b"70100"),
                    message: "Query execution was interrupted".into(),
                });
                self.send_last()?;
                Ok(AfterStep::End)
            }
            ReplicaRequest::Dump(request) => Ok(AfterStep::Dump(self.served(), request)),
            request => self.answer(request),
        }
    }

    /// The log that is served now: the source's may have been reset since this client connected.
    fn served(&self) -> Arc<LineageLog> {
        self.client.known.server.lineages.served().unwrap_or_else(|| Arc::clone(&self.kept))
    }

    /// Answers a command, with the source's answer where the account may have it.
    fn answer(&mut self, request: ReplicaRequest) -> Result<AfterStep> {
        let kept = self.served();
        if let Some(upstream) = &mut self.upstream {
            let mut parts = SessionParts {
                variables: &mut self.variables,
                session: &mut self.session,
                transport: &mut self.transport,
            };
            match self.client.forward(upstream, &kept, &mut parts, &request)? {
                ForwardOutcome::Here => {}
                ForwardOutcome::Answered => return Ok(AfterStep::Poll),
                ForwardOutcome::Over => {
                    self.send_last()?;
                    return Ok(AfterStep::End);
                }
            }
        }
        if let Err(error) = self.client.request(&kept, &mut self.variables, &mut self.session, request) {
            // The answer so far is complete or empty: the error is the answer.
            self.session.refuse(&error.told(UNKNOWN_ERROR));
            let KnownClient { connection, peer, server, .. } = &self.client.known;
            let line = format!("connection {connection} from {peer}: {error}");
            complain!(server.telemetry, &error, &line);
        }
        Ok(AfterStep::Poll)
    }
}
