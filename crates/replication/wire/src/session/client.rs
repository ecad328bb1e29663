//! A client's conversation: logs in, then sends statements and reads their answers, one at a time.
//!
//! Times are a `Duration` since any moment the caller likes, the same for all calls.

use std::time::Duration;

use super::login::{LOGGING_IN, Login, LoginOptions, LoginStep, ServerGreeting};
use crate::command::Command;
use crate::compressed::ConnectionCompression;
use crate::error::{DecodeContext, Error, Result};
use crate::packet::{MessagePiece, MessageReader, PacketReader, PacketWriter};
use crate::passage::AnswerPassage;
use crate::result_set::{AnswerColumn, AnswerReader, ResultRow, ServerAnswer};
use crate::semi_sync::SemiSyncAck;

/// How long a session waits before it gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// The time from the start until the login is done.
    pub login: Duration,
    /// The time from a statement until its answer is whole.
    pub answer: Duration,
    /// The longest time without a byte while events may come. `None` means no limit.
    pub silence: Option<Duration>,
}

impl Default for Timeouts {
    /// The server's own defaults: `connect_timeout` is 10 s, `net_write_timeout` and
    /// `replica_net_timeout` are 60 s.
    fn default() -> Self {
        Timeouts {
            login: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            silence: Some(Duration::from_secs(60)),
        }
    }
}

/// The next need or result of a [`ClientSession`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientStep {
    /// Send the pending bytes, then come back with more bytes, or at the deadline.
    NeedInput,
    /// Send the pending bytes, switch to TLS, then call [`ClientSession::tls_started`].
    StartTls,
    /// Logged in: statements may be sent.
    LoggedIn,
    /// The answer to the last statement.
    Answer(ServerAnswer),
}

/// A client's side of a connection.
#[derive(Debug)]
pub struct ClientSession {
    login: Login,
    state: ClientState,
    packets: PacketReader,
    messages: MessageReader,
    out: PacketWriter,
    timeouts: Timeouts,
    /// When waiting began; `deadline` counts from it.
    waiting_since: Duration,
    doing: String,
    compression: Option<ConnectionCompression>,
    /// Columns of the last answer.
    columns: Vec<AnswerColumn>,
    affected_rows: u64,
}

#[derive(Debug)]
enum ClientState {
    LoggingIn,
    StartingTls,
    Idle,
    Asking(AnswerReader),
    /// A command of somebody else's was forwarded: its answer passes through.
    Forwarding(AnswerPassage),
    /// A dump was requested: messages are now events.
    Streaming,
}

impl ClientSession {
    /// A session on a new connection.
    pub fn new(options: LoginOptions, timeouts: Timeouts, now: Duration) -> Self {
        ClientSession {
            login: Login::new(options),
            state: ClientState::LoggingIn,
            packets: PacketReader::default(),
            messages: MessageReader::default(),
            out: PacketWriter::default(),
            timeouts,
            waiting_since: now,
            doing: LOGGING_IN.into(),
            compression: None,
            columns: Vec::new(),
            affected_rows: 0,
        }
    }

    /// The columns of the last answer; none if it had no rows.
    pub fn columns(&self) -> &[AnswerColumn] {
        &self.columns
    }

    /// How many rows the last statement changed.
    pub fn affected_rows(&self) -> u64 {
        self.affected_rows
    }

    /// Whether answers of further statements follow the last one: [`ClientSession::poll`] returns each.
    pub fn has_more_answers(&self) -> bool {
        matches!(self.state, ClientState::Asking(_))
    }

    /// Takes the rows of the answer that have come so far, at `now`: the answer's deadline starts again.
    pub fn take_rows(&mut self, now: Duration) -> Vec<ResultRow> {
        let ClientState::Asking(answer) = &mut self.state else { return Vec::new() };
        self.waiting_since = now;
        answer.take_rows()
    }

    /// The server's greeting, once it has arrived.
    pub fn greeting(&self) -> Option<&ServerGreeting> {
        self.login.greeting()
    }

    /// The compression for all bytes from now on, in both directions; `None` until logged in. The caller does
    /// the compressing ([`CompressedPackets`](crate::compressed::CompressedPackets)): the session takes and
    /// gives plain packets.
    pub fn compression(&self) -> Option<ConnectionCompression> {
        self.compression
    }

    /// Bytes to be sent. After sending, call [`ClientSession::sent`].
    pub fn pending(&self) -> &[u8] {
        self.out.pending()
    }

    /// Drops the first `count` pending bytes, which were sent.
    pub fn sent(&mut self, count: usize) {
        self.out.sent(count);
    }

    /// When the session gives up unless more arrives; `None` means never.
    pub fn deadline(&self) -> Option<Duration> {
        self.patience().map(|patience| self.waiting_since.saturating_add(patience))
    }

    /// Takes bytes from the start of `input`, all of them if it returns [`ClientStep::NeedInput`].
    ///
    /// # Errors
    ///
    /// Every error ends the session: the connection is no longer usable.
    pub fn poll(&mut self, input: &mut &[u8], now: Duration) -> Result<ClientStep> {
        loop {
            let message = self.messages.next(&mut self.packets, input).during(&self.doing)?;
            let Some(message) = message else {
                self.check_deadline(now, || self.doing.clone())?;
                return Ok(ClientStep::NeedInput);
            };
            self.out.set_sequence(self.packets.next_sequence());
            match &mut self.state {
                ClientState::LoggingIn => {
                    let step = self.login.message(message, &mut self.out)?;
                    self.packets.expect_sequence(self.out.next_sequence());
                    match step {
                        LoginStep::Wait => {}
                        LoginStep::StartTls => {
                            // Plain bytes after the greeting are not trusted to be the server's.
                            if !input.is_empty() {
                                return Err(
                                    self.broken("bytes after the greeting", "silence until TLS is set up")
                                );
                            }
                            self.state = ClientState::StartingTls;
                            return Ok(ClientStep::StartTls);
                        }
                        LoginStep::Done => {
                            self.state = ClientState::Idle;
                            self.compression = self.login.compression();
                            if self.compression.is_some() {
                                self.packets.ignore_sequence();
                            }
                            return Ok(ClientStep::LoggedIn);
                        }
                    }
                }
                ClientState::Asking(answer) => {
                    if let Some(whole) = answer.message(message).during(&self.doing)? {
                        self.affected_rows = answer.affected_rows();
                        let has_more = answer.has_more();
                        self.columns = std::mem::take(answer).into_columns();
                        if !has_more {
                            self.state = ClientState::Idle;
                        }
                        return Ok(ClientStep::Answer(whole));
                    }
                }
                ClientState::Idle if message.first() == Some(&crate::response::ERR) => {
                    let error = crate::response::ErrPacket::decode(message).during(&self.doing)?.into();
                    return Err(Error::Server { doing: self.doing.clone(), error });
                }
                ClientState::StartingTls
                | ClientState::Idle
                | ClientState::Streaming
                | ClientState::Forwarding(_) => {
                    return Err(self.broken("a message nobody asked for", "silence"));
                }
            }
        }
    }

    /// TLS is established: everything that follows goes through it.
    pub fn tls_started(&mut self) -> Result<()> {
        self.login.tls_started(&mut self.out)?;
        self.packets.expect_sequence(self.out.next_sequence());
        self.state = ClientState::LoggingIn;
        Ok(())
    }

    /// Sends a command whose answer is OK, an error or rows; the session must be logged in and idle. `doing`
    /// gives the command's purpose for error messages.
    pub fn ask(&mut self, command: &Command<'_>, doing: impl Into<String>, now: Duration) -> Result<()> {
        self.command(command, doing, now)?;
        self.state = ClientState::Asking(AnswerReader::of(command));
        Ok(())
    }

    /// Forwards another client's command, a whole message; its answer passes through [`ClientSession::pass`].
    pub fn forward(&mut self, command: &[u8], doing: impl Into<String>, now: Duration) -> Result<()> {
        let (code, parameters) = command.split_first().map_or((0, command), |(code, rest)| (*code, rest));
        self.command(&Command::Other { code, parameters }, doing, now)?;
        self.state = ClientState::Forwarding(AnswerPassage::of(code));
        Ok(())
    }

    /// Looks at the bytes of a forwarded command's answer. Returns how many of them belong to it, and the answer once
    /// it is over; there may be no bytes of it at all.
    pub fn pass(&mut self, input: &[u8]) -> Result<(usize, Option<AnswerPassage>)> {
        let ClientState::Forwarding(passage) = &mut self.state else {
            return Err(Error::Usage("an answer was to pass, but nothing was forwarded".into()));
        };
        let count = passage.take(input).during(&self.doing)?;
        if !passage.is_over() {
            return Ok((count, None));
        }
        match std::mem::replace(&mut self.state, ClientState::Idle) {
            ClientState::Forwarding(passage) => Ok((count, Some(passage))),
            _ => Ok((count, None)),
        }
    }

    /// Says goodbye; nothing answers it.
    pub fn quit(&mut self, now: Duration) -> Result<()> {
        self.command(&Command::Quit, "leaving", now)
    }

    /// Requests a dump: events follow.
    pub(super) fn dump(&mut self, command: &Command<'_>, doing: String, now: Duration) -> Result<()> {
        self.command(command, doing, now)?;
        self.state = ClientState::Streaming;
        Ok(())
    }

    /// The next bytes of an event's message; `doing` tells errors where the stream is.
    pub(super) fn next_piece<'a>(
        &mut self,
        input: &mut &'a [u8],
        now: Duration,
        doing: impl Fn() -> String,
    ) -> Result<Option<MessagePiece<'a>>> {
        if !input.is_empty() {
            self.waiting_since = now;
        }
        match self.packets.next(input) {
            Ok(Some(piece)) => Ok(Some(piece)),
            Ok(None) => self.check_deadline(now, doing).map(|()| None),
            Err(source) => Err(Error::Malformed { doing: doing(), source }),
        }
    }

    pub(super) fn acknowledge(&mut self, ack: &SemiSyncAck<'_>) {
        self.out.set_sequence(0);
        self.out.message(|payload| ack.encode(payload));
    }

    pub(super) fn expect_sequence(&mut self, sequence: u8) {
        self.packets.expect_sequence(sequence);
    }

    /// The error for a connection that ended at this point.
    pub fn closed(&self) -> Error {
        Error::Closed { doing: self.doing.clone() }
    }

    /// The session's activity, for errors.
    pub fn doing(&self) -> &str {
        &self.doing
    }

    fn command(&mut self, command: &Command<'_>, doing: impl Into<String>, now: Duration) -> Result<()> {
        if !matches!(self.state, ClientState::Idle) {
            return Err(Error::Usage(format!("a command was given while {}", self.doing)));
        }
        self.out.set_sequence(0);
        self.out.message(|payload| command.encode(payload));
        self.packets.expect_sequence(self.out.next_sequence());
        self.doing = doing.into();
        self.waiting_since = now;
        Ok(())
    }

    fn patience(&self) -> Option<Duration> {
        match self.state {
            ClientState::LoggingIn | ClientState::StartingTls => Some(self.timeouts.login),
            ClientState::Asking(_) => Some(self.timeouts.answer),
            ClientState::Streaming => self.timeouts.silence,
            ClientState::Idle | ClientState::Forwarding(_) => None,
        }
    }

    fn check_deadline(&self, now: Duration, doing: impl Fn() -> String) -> Result<()> {
        match (self.deadline(), self.patience()) {
            (Some(deadline), Some(after)) if now >= deadline => Err(Error::Timeout { doing: doing(), after }),
            _ => Ok(()),
        }
    }

    fn broken(&self, found: &str, expected: &'static str) -> Error {
        Error::Protocol { doing: self.doing.clone(), found: found.into(), expected }
    }
}
