//! A client's own connection to the source, for statements that the relay does not answer (`forward_sql`).
//!
//! ```text
//! client ─ command ─▶ relay ─ the same bytes ─▶ source
//! client ◀─ the same bytes ─ relay ◀─ answer ─ source
//! ```
//!
//! It is logged in with the client's account, so it has that account's rights. It begins with the first statement that
//! needs it; variables that the client set until then are set there too. It ends with the client, or with its dump.

mod answer_scan;

use std::collections::BTreeSet;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_client_sql::{ClientFacts, ConnectionUses};
use binlogz_relay_forms::end_of;
use binlogz_relay_log::{Form, FormFile};
use binlogz_source::{CompressionChoice, Connection, ForwardError, PassOn, PasswordOption};
use binlogz_wire::ServerError;
use binlogz_wire::passage::AnswerPassage;

use crate::error::{Error, Result, UNKNOWN_ERROR};
use crate::serve::SourceServer;
use crate::serve::connections::accounts::AccountOptions;
use crate::serve::connections::transport::{DumpConnection as _, Transport};
use crate::serve::sending::sender::{TICK, broken};
use crate::serve::upstream::answer_scan::{AnswerScan, ToldPlace};

/// How statements are forwarded to the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardOptions {
    /// How long a client waits for a position until the relay has all that it may have seen at the source.
    pub wait: Duration,
    /// Whether clients are told the source's `read_only` and `super_read_only`, since their changes go there; else both are ON, as for
    /// the log.
    pub read_only_of_source: bool,
}

impl Default for ForwardOptions {
    /// Half the patience that drivers have with an answer, usually a minute.
    fn default() -> Self {
        ForwardOptions { wait: Duration::from_secs(30), read_only_of_source: false }
    }
}

/// Limits of the settings that a client may make before its connection to the source begins: statements, and the bytes of all.
const REMEMBERED_MAX: usize = 200;
const REMEMBERED_SIZE_MAX: usize = 64 << 10;
/// ER_PARSE_ERROR: an older server does not know a statement.
const PARSE_ERROR: u16 = 1064;

/// A client's connection to the source, if it has begun.
pub(crate) struct Upstream {
    server: Arc<SourceServer>,
    options: ForwardOptions,
    connection: Option<Connection>,
    /// SET statements, each as it was sent.
    remembered: Vec<String>,
    answered_last: bool,
}

/// The outcome of a forwarded command.
pub(crate) enum ForwardedCommand {
    /// The client has its answer.
    Answered(AnswerPassage),
    /// The connection could not be begun: this is the answer.
    Refused(ServerError),
    /// The connection broke before there was an answer. The client's session there is lost.
    Lost(ServerError),
}

impl Upstream {
    pub(crate) fn new(server: Arc<SourceServer>, options: ForwardOptions) -> Self {
        Upstream { server, options, connection: None, remembered: Vec::new(), answered_last: false }
    }

    pub(crate) fn used(&self) -> ConnectionUses {
        ConnectionUses { is_open: self.connection.is_some(), answered_last: self.answered_last }
    }

    /// Whether the source tells its clients itself whether it is read-only.
    pub(crate) fn tells_read_only(&self) -> bool {
        self.options.read_only_of_source
    }

    /// The relay itself answered a statement.
    pub(crate) fn did_not_answer(&mut self) {
        self.answered_last = false;
    }

    /// Forgets everything, as COM_RESET_CONNECTION says.
    pub(crate) fn reset(&mut self) {
        *self = Upstream::new(Arc::clone(&self.server), self.options);
    }

    /// Remembers a SET statement for a connection that has not begun.
    pub(crate) fn remember(&mut self, statement: &str) -> Result<(), ServerError> {
        let size: usize = self.remembered.iter().map(String::len).sum();
        if self.remembered.len() == REMEMBERED_MAX || size + statement.len() > REMEMBERED_SIZE_MAX {
            return Err(error(1235, "too many SET statements before the first that is forwarded".into()));
        }
        self.remembered.push(statement.to_owned());
        Ok(())
    }

    /// Forwards a command, and passes the answer to the client.
    ///
    /// # Errors
    ///
    /// The client is gone, or the answer broke off in the middle.
    pub(crate) fn forward(
        &mut self,
        command: &[u8],
        client: &ClientFacts,
        account: &AccountOptions,
        transport: &mut Transport,
    ) -> Result<ForwardedCommand> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => match self.begin(client, account) {
                Ok(connection) => connection,
                Err(refusal) => return Ok(ForwardedCommand::Refused(refusal)),
            },
        };
        let base = self.server.lineages.served().map(|kept| kept.base.clone()).unwrap_or_default();
        let mut to_client = ToClient {
            transport,
            passed: 0,
            scan: AnswerScan::new(&base),
            server: &self.server,
            wait: self.options.wait,
            refusal: None,
        };
        match connection.forward(command, &mut to_client) {
            Ok(answer) => {
                self.connection = Some(connection);
                self.answered_last = true;
                Ok(ForwardedCommand::Answered(answer))
            }
            Err(ForwardError::Client(error)) => match to_client.refusal.take() {
                // The rest of the answer is still to come: that connection is of no use any more.
                Some(refusal) if to_client.passed == 0 => Ok(ForwardedCommand::Lost(refusal)),
                Some(refusal) => Err(Error::Refused(refusal.message)),
                None => Err(broken(error)),
            },
            Err(ForwardError::Server(error)) if to_client.passed == 0 => {
                Ok(ForwardedCommand::Lost(lost(&error)))
            }
            Err(ForwardError::Server(error)) => Err(error.into()),
        }
    }

    /// Logs in to the source, and sets there the variables that the client has set here.
    fn begin(&self, client: &ClientFacts, account: &AccountOptions) -> Result<Connection, ServerError> {
        let source = self.server.statements.intake.servers.current();
        let mut options = source.map_err(|error| error.told(UNKNOWN_ERROR))?.clone();
        let (user, password) = account.source_login();
        options.user = Some(user.to_owned());
        options.password = PasswordOption::Given(password.clone());
        // The answer's packets keep their numbers, which mean nothing inside compressed ones.
        options.compression = CompressionChoice::default();
        options.database.clone_from(&client.database);
        options.collation = Some(client.collation);
        let mut connection = Connection::open(&options).map_err(|error| at_source(user, &error))?;
        for statement in &self.remembered {
            connection.query(statement).map_err(|error| at_source(user, &error))?;
        }
        Ok(connection)
    }

    /// Waits until the relay has everything that the source has executed, so that a position told now does not lie before
    /// changes that the client has seen there.
    pub(crate) fn join(&mut self) -> Result<(), ServerError> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let at_source = match self.server.statements.intake.has_gtids() {
            true => executed(connection).map(End::Gtids),
            false => position(connection),
        };
        let end = match at_source {
            Ok(end) => end,
            Err(error) => return Err(lost(&error)),
        };
        let wait = self.options.wait;
        end.await_at(&self.server, Instant::now() + wait).map_err(|missing| match missing {
            MissingPart::Of(missing) => error(
                UNKNOWN_ERROR,
                format!(
                    "the relay does not have {missing} of its source after {wait:?}: a position that it told now would lie \
                     before what this connection may have read there"
                ),
            ),
            MissingPart::Unknown(error) => error,
        })
    }
}

/// How far the source was.
enum End {
    Gtids(GtidSet),
    Position(String, u64),
}

/// A thing that the relay lacks.
enum MissingPart {
    Of(String),
    /// It isn't known.
    Unknown(ServerError),
}

impl End {
    /// Waits until the relay has all up to there.
    fn await_at(&self, server: &SourceServer, until: Instant) -> Result<(), MissingPart> {
        loop {
            let missing =
                self.missing(server).map_err(|error| MissingPart::Unknown(error.told(UNKNOWN_ERROR)))?;
            let Some(missing) = missing else { return Ok(()) };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(MissingPart::Of(missing));
            }
            match server.lineages.served() {
                Some(kept) => {
                    let durable = kept.store.positions().map(|now| now.durable);
                    kept.store.wait_durable_beyond(durable, TICK.min(left));
                }
                None => std::thread::sleep(TICK.min(left)),
            }
        }
    }

    /// The transactions of it that the relay does not have yet.
    fn missing(&self, server: &SourceServer) -> Result<Option<String>> {
        let Some(kept) = server.lineages.served() else { return Ok(Some("anything".into())) };
        match self {
            End::Gtids(executed) => {
                let mut missing = executed.clone();
                missing.subtract(&kept.durable_gtids());
                Ok((!missing.is_empty()).then(|| missing.brief().to_string()))
            }
            End::Position(name, position) => {
                let missing = || Some(format!("{name} up to {position}"));
                let Some(now) = kept.store.positions() else { return Ok(missing()) };
                let file = FormFile::first_of(now.durable.file);
                let own = kept.name_of(Form::Received, file)?;
                let number = |name: &str| kept.names.parse(name).map(|(_, number)| number);
                let end = end_of(server.conversions.of(&kept), Form::Received, file)?;
                let has = number(&own) > number(name) || (own == *name && end >= *position);
                Ok(if has { None } else { missing() })
            }
        }
    }
}

/// The transactions that the source has executed.
fn executed(connection: &mut Connection) -> binlogz_source::Result<GtidSet> {
    connection.first_row("SELECT @@GLOBAL.gtid_executed")?.gtid_set(0)
}

/// Where the log of a source without GTIDs ends. The account needs REPLICATION CLIENT there.
fn position(connection: &mut Connection) -> binlogz_source::Result<End> {
    let row = match connection.first_row("SHOW BINARY LOG STATUS") {
        Err(error) if error.server_error().is_some_and(|error| error.code == PARSE_ERROR) => {
            connection.first_row("SHOW MASTER STATUS")?
        }
        row => row?,
    };
    Ok(End::Position(row.text(0)?.to_owned(), row.parsed(1, "a position")?))
}

/// The error of a login or statement at the source, which says that it happened there.
fn at_source(user: &str, failed: &binlogz_source::Error) -> ServerError {
    match failed.server_error() {
        Some(refused) => ServerError {
            message: format!("{} (forwarded to the source as {user})", refused.message),
            ..refused.clone()
        },
        None => error(UNKNOWN_ERROR, format!("can't forward this to the source: {failed}")),
    }
}

/// The error after a connection broke: clients take its code for the end of theirs.
fn lost(failed: &binlogz_source::Error) -> ServerError {
    let message =
        format!("the connection to the source, and with it what was begun there, is lost: {failed}");
    ServerError { code: 1053, sqlstate: Some(*b"08S01"), message }
}

fn error(code: u16, message: String) -> ServerError {
    ServerError { code, sqlstate: Some(*b"HY000"), message }
}

/// The client, as an answer's destination.
struct ToClient<'t> {
    transport: &'t mut Transport,
    passed: usize,
    scan: AnswerScan,
    server: &'t SourceServer,
    wait: Duration,
    /// Why the answer was not passed on.
    refusal: Option<ServerError>,
}

impl PassOn for ToClient<'_> {
    fn pass(&mut self, bytes: &[u8]) -> io::Result<()> {
        let told = self.scan.look(bytes);
        if !told.is_empty()
            && let Err(refusal) = self.hold(&told)
        {
            self.refusal = Some(refusal);
            return Err(io::Error::other("the answer tells of what the relay lacks"));
        }
        self.passed += bytes.len();
        if bytes.is_empty() { Ok(()) } else { self.transport.send(bytes) }
    }

    fn is_awaited(&mut self) -> bool {
        is_connected(self.transport.socket())
    }
}

impl ToClient<'_> {
    /// Waits until the relay has all that an answer tells of the source's log. A place that the source does not have
    /// either is no place in its log. The source is asked anew each time: an answer can take long.
    fn hold(&self, told: &BTreeSet<ToldPlace>) -> Result<(), ServerError> {
        let until = Instant::now() + self.wait;
        let Some(kept) = self.server.lineages.served() else { return Ok(()) };
        let intake = &self.server.statements.intake;
        let unknown = |why: String| {
            let message =
                format!("the answer may tell of what the relay lacks, and the source can't be asked: {why}");
            error(UNKNOWN_ERROR, message)
        };
        let ask = || intake.gtids_of_source(until).map_err(unknown);
        let durable = kept.store.positions().map(|now| now.durable.file.0);
        let mut gtids = GtidSet::new();
        let mut ends = Vec::new();
        for place in told {
            match place {
                // Anything may be written like a GTID.
                ToldPlace::Gtid(gtid) => gtid.parse().into_iter().for_each(|gtid| gtids.add(gtid)),
                ToldPlace::File(number) if durable.is_some_and(|durable| *number < durable) => {}
                ToldPlace::File(_) if !ends.is_empty() => {}
                ToldPlace::File(_) => ends.push(match intake.has_gtids() {
                    true => End::Gtids(ask()?.gtids),
                    false => {
                        let server = intake.servers.current().map_err(|error| unknown(error.to_string()))?;
                        let mut connection =
                            Connection::open(server).map_err(|error| unknown(error.to_string()))?;
                        position(&mut connection).map_err(|error| unknown(error.to_string()))?
                    }
                }),
            }
        }
        gtids.subtract(&kept.durable_gtids());
        if !gtids.is_empty() {
            gtids.intersect(&ask()?.gtids);
            ends.push(End::Gtids(gtids));
        }
        ends.iter().try_for_each(|end| end.await_at(self.server, until).map_err(|missing| {
            let wait = self.wait;
            let message = match missing {
                MissingPart::Of(missing) => format!(
                    "the answer tells of {missing}, which the relay does not have of its source after {wait:?}: a client that went \
                     by it would be past the relay"
                ),
                MissingPart::Unknown(error) => return error,
            };
            error(UNKNOWN_ERROR, message)
        }))
    }
}

/// Whether the peer has not closed a connection.
fn is_connected(socket: &TcpStream) -> bool {
    let peeked = socket.set_nonblocking(true).and_then(|()| socket.peek(&mut [0]));
    let restored = socket.set_nonblocking(false);
    match peeked {
        Ok(count) => count > 0 && restored.is_ok(),
        Err(error) => error.kind() == io::ErrorKind::WouldBlock && restored.is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_closed_is_seen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        assert!(is_connected(&socket));
        drop(peer);
        let until = Instant::now() + Duration::from_secs(60);
        while is_connected(&socket) {
            assert!(Instant::now() < until);
            std::thread::yield_now();
        }
    }
}
