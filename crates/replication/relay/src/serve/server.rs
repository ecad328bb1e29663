//! Accepts clients and handles their commands, with one thread per client. `dump.rs` handles a dump, which ends the
//! connection.

mod announced;
pub(crate) mod dump;
mod forwarding;

use std::io::{Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_wire::command::{
    DEBUG, PROCESS_INFO, RESET_CONNECTION, STATEMENT_CLOSE, STATEMENT_EXECUTE, STATEMENT_FETCH,
    STATEMENT_LONG_DATA, STATEMENT_RESET,
};
use binlogz_wire::dump_request::DumpRequest;
use binlogz_wire::response::ErrPacket;
use binlogz_wire::result_set::{ColumnKind, Row};
use binlogz_wire::session::{Column, ReplicaOptions, ReplicaSession, ReplicaStep, Request};
use binlogz_wire::statement::Statement;
use binlogz_wire::{ServerError, packet};

use crate::error::{Error, Result, UNKNOWN_ERROR};
use crate::log::lineages::Lineage;
use crate::log::stored_format::Head;
use crate::replicas::registry::Replica;
use crate::serve::Server;
use crate::serve::admission::{Admission, SMALL_COMMAND};
use crate::serve::door::Door;
use crate::serve::listeners::Listener;
use crate::serve::routes::Wishes;
use crate::serve::sender::broken;
use crate::serve::transport::{Connection, Transport};
use crate::serve::upstream::Upstream;
use crate::statements::answers::{self, Answer, Asker, WITH_FORWARDING};
use crate::statements::variables::Variables;
use crate::statements::variables::session::ClientFacts;
use crate::telemetry::{complain, duties, say, spans};
use dump::KnownClient;
use forwarding::{Outcome, Parts};

/// A client must log in within this time.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// A logged-in client must send something within this time (`wait_timeout` is as long).
const IDLE_TIMEOUT: Duration = Duration::from_secs(28_800);
/// A client must read what it is sent within this time (`net_write_timeout`).
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// The delay after a failed accept, as when file descriptors run out.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// The error for a client that comes too early.
const NOTHING_YET: &str = "the relay has nothing of the source's log yet";

pub(crate) fn accept(door: &Arc<Door>) {
    let connections = AtomicU32::new(1);
    let mut has_threads = true;
    let begun = Instant::now();
    loop {
        // Other connections wait in the listener's queue: a descriptor for one of them could be the log's last.
        door.gate.wait_for_room();
        let (stream, peer, listener) = match door.listeners.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                say!(door.telemetry, &format!("accept: {error}"));
                thread::sleep(ACCEPT_RETRY);
                continue;
            }
        };
        let connection = connections.fetch_add(1, Ordering::Relaxed);
        let (its, stream) = (Arc::clone(door), Arc::new(stream));
        let its_stream = Arc::clone(&stream);
        let open = OpenConnection::new(door);
        let serve = move || {
            let _span = spans::client(connection, peer).entered();
            let (_open, stream) = (open, its_stream);
            serve(&its, &listener, connection, &stream, peer, begun);
        };
        let spawned = thread::Builder::new().name(format!("client {connection}")).spawn(serve);
        if let Err(error) = spawned {
            door.gate.turned_away();
            let code = error.raw_os_error().unwrap_or_default();
            turn_away(&stream, 1135, &format!("Can't create a new thread (errno {code})"));
            if std::mem::take(&mut has_threads) {
                let error = Error::thread(format!("client {connection}"))(error);
                complain!(door.telemetry, &error, &format!("{error}; clients are turned away meanwhile"));
            }
        } else {
            has_threads = true;
        }
    }
}

/// Serves a client, from admission to disconnect.
fn serve(
    door: &Door,
    listener: &Listener,
    connection: u32,
    stream: &Arc<TcpStream>,
    peer: SocketAddr,
    begun: Instant,
) {
    let mut client = None;
    let ended = duties::attempt("a client's thread", || {
        let Some(admission) = door.gate.admit(connection, stream, peer.ip()) else {
            turn_away(stream, 1040, "Too many connections");
            return Ok(());
        };
        let Some(server) = greeter(door, listener) else {
            turn_away(stream, 1053, NOTHING_YET);
            return Ok(());
        };
        let socket = Some((Arc::clone(stream), Arc::clone(&door.departures)));
        let known = KnownClient { server, connection, peer, account: None, attributes: Vec::new(), socket };
        client.insert(Client { door, listener, known, begun, admission }).serve(stream)
    });
    let telemetry = match &client {
        // Until then the source was anybody's.
        Some(client) if client.known.account.is_some() => {
            client.known.server.leave(connection);
            &client.known.server.telemetry
        }
        _ => &door.telemetry,
    };
    let _ = stream.shutdown(Shutdown::Both);
    match ended {
        Ok(()) => {}
        Err(error @ Error::Left(_)) => {
            say!(telemetry, &format!("connection {connection} from {peer}: {error}"));
        }
        Err(error) => complain!(telemetry, &error, &format!("connection {connection} from {peer}: {error}")),
    }
}

/// The source whose version a client is greeted with, before it can name the one it wants: the one with this port, or the
/// first that has a log.
fn greeter(door: &Door, listener: &Listener) -> Option<Arc<Server>> {
    let routes = door.routes.all();
    let is_its = |name: &str| listener.source.as_ref().is_none_or(|source| source == name);
    let open = routes.iter().filter(|route| is_its(&route.name)).filter_map(|route| route.to.as_ref().ok());
    let mut open =
        open.filter(|server| server.lineages.served().is_some_and(|kept| kept.store.positions().is_some()));
    open.next().map(Arc::clone)
}

impl Server {
    /// A client has gone.
    fn leave(&self, connection: u32) {
        self.registry.leave(connection);
        if let Some(replica) = self.dumps.end(connection).and_then(|reader| reader.uuid.parse().ok()) {
            self.served.left(replica);
        }
        self.acknowledgements.leave(connection);
        self.clients.leave(connection);
    }
}

/// An open connection, counted until its descriptors are closed.
struct OpenConnection(Arc<Door>);

impl OpenConnection {
    fn new(door: &Arc<Door>) -> Self {
        door.gate.opened();
        OpenConnection(Arc::clone(door))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.gate.closed();
    }
}

/// Sends an error in place of the greeting.
fn turn_away(mut stream: &TcpStream, code: u16, message: &str) {
    let error = ErrPacket { code, sqlstate: None, message: message.as_bytes() };
    let packets = packet::message_from(0, |out| error.encode(out));
    // The client reads it if it is listening; otherwise it sees the connection close.
    let _ = stream.set_write_timeout(Some(LOGIN_TIMEOUT)).and_then(|()| stream.write_all(&packets));
}

struct Client<'a> {
    door: &'a Door,
    /// Where it arrived.
    listener: &'a Listener,
    /// Until it is logged in, the source is the one that greeted it.
    known: KnownClient,
    /// When the relay started to accept clients.
    begun: Instant,
    admission: Admission<'a>,
}

/// The log that a client asks for at the end of its conversation.
struct Asked {
    kept: Arc<Lineage>,
    variables: Variables,
    request: DumpRequest,
    /// The number of the first packet of the answer.
    sequence: u8,
    transport: Transport,
}

impl Client<'_> {
    fn serve(&mut self, stream: &Arc<TcpStream>) -> Result<()> {
        stream.set_nodelay(true).map_err(broken)?;
        socket2::SockRef::from(&**stream).set_keepalive(true).map_err(broken)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(broken)?;
        let begun = self
            .known
            .server
            .lineages
            .served()
            .and_then(|kept| kept.store.positions().map(|now| (kept, now)));
        let Some((kept, now)) = begun else {
            turn_away(stream, 1053, NOTHING_YET);
            return Ok(());
        };
        let head = match Head::read(&kept.store, now.durable.file) {
            Ok(head) => head,
            Err(error) => {
                let told = error.told(UNKNOWN_ERROR);
                turn_away(stream, told.code, &told.message);
                return Err(error);
            }
        };
        let server_version = head.description.server_version();
        let session = ReplicaSession::new(ReplicaOptions {
            server_version,
            connection_id: self.known.connection,
            nonce: nonce()?,
            tls: self.door.tls.is_some(),
            accounts: self.door.accounts().at_address(self.known.peer.ip()),
            native_password: self.door.native_password,
        });
        // Whatever only a conversation needs is freed before the dump, which may last for months.
        match self.converse(kept, session, stream)? {
            None => Ok(()),
            Some(Asked { kept, variables, request, sequence, transport }) => {
                self.known.dump(&kept, &variables, &request, sequence, transport)
            }
        }
    }

    fn converse(
        &mut self,
        mut kept: Arc<Lineage>,
        mut session: ReplicaSession,
        stream: &Arc<TcpStream>,
    ) -> Result<Option<Asked>> {
        let session = &mut session;
        let mut transport = Transport::Plain(Arc::clone(stream));
        let mut variables = Variables::default();
        let mut upstream = None;
        let mut buffer = vec![0; 16 << 10];
        let mut login_until = Instant::now() + LOGIN_TIMEOUT;
        let mut next = None;
        loop {
            let pending = session.pending().to_vec();
            transport.send(&pending).map_err(broken)?;
            session.sent(pending.len());
            if self.known.account.is_none() {
                self.admission.greeted(Instant::now());
            }
            // Even a client that sends very slowly must be logged in by then.
            let patience = match self.known.account {
                Some(_) => IDLE_TIMEOUT,
                None => login_until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)),
            };
            transport.socket().set_read_timeout(Some(patience)).map_err(broken)?;
            let count = match transport.read(&mut buffer) {
                // The process was stopped and continued, or is traced: the connection is unaffected.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(0) => return Ok(None),
                Ok(count) => count,
                Err(source) => return Err(Error::of_client("wait for a client", source)),
            };
            let mut input = buffer.get(..count).unwrap_or_default();
            loop {
                let step = next.take().map_or_else(|| session.poll(&mut input), Ok)?;
                match step {
                    ReplicaStep::NeedInput => {
                        if !self.admission.may_hold(session.held() + transport.held()) {
                            session.limit_commands(SMALL_COMMAND);
                        }
                        break;
                    }
                    ReplicaStep::LoggedIn(user) => {
                        kept = match self.enter(&user, &transport, session, stream) {
                            Ok(kept) => kept,
                            Err(refusal) => {
                                session.refuse(&refusal);
                                transport.send(session.pending()).map_err(broken)?;
                                return Err(Error::Refused(format!("user '{user}': {}", refusal.message)));
                            }
                        };
                        let server = &self.known.server;
                        upstream = server.forward.map(|options| Upstream::new(Arc::clone(server), options));
                        if upstream.is_some() {
                            session.keep_commands();
                        }
                        self.known.attributes = session.attributes().to_vec();
                        let client = ClientFacts {
                            user,
                            host: self.known.peer.ip().to_canonical().to_string(),
                            connection: self.known.connection,
                            port: transport.socket().local_addr().map_err(broken)?.port(),
                            database: session.database().map(str::to_owned),
                            collation: session.collation(),
                        };
                        let source = self.known.server.statements.intake.source_variables.get();
                        variables.log_in(client, source.as_deref());
                        session.set_status(variables.status());
                        match (&transport, &self.door.tls) {
                            (Transport::Tls(_), Some(tls)) => session.ok_over_tls(&tls.fingerprint()),
                            _ => session.ok(),
                        }
                        if let Transport::Compressed(_) = transport {
                            continue;
                        }
                        if let Some(compression) = session.begin_compression() {
                            // The OK is the last that goes as it is.
                            transport.send(session.pending()).map_err(broken)?;
                            session.sent(session.pending().len());
                            transport = transport.compress_with(compression, input);
                            break;
                        }
                    }
                    ReplicaStep::StartTls => {
                        let tls = self.door.tls.as_ref();
                        let tls = tls.ok_or_else(|| Error::Refused("TLS was not offered".into()))?;
                        transport = transport.start_tls(tls, input)?;
                        break;
                    }
                    ReplicaStep::Denied(user) => {
                        transport.send(session.pending()).map_err(broken)?;
                        let why = self.door.accounts().why_denied(&user, self.known.peer.ip());
                        return Err(Error::Refused(format!("access denied for user '{user}': {why}")));
                    }
                    ReplicaStep::TooOld(lacks) => {
                        transport.send(session.pending()).map_err(broken)?;
                        return Err(Error::Refused(format!("a client without {lacks}")));
                    }
                    ReplicaStep::Request(Request::Quit) => return Ok(None),
                    ReplicaStep::Request(Request::ChangeUser(change)) => {
                        // Until the proof is right, nobody is logged in; what the other account had is gone whatever comes.
                        self.leave();
                        (upstream, variables) = (None, Variables::default());
                        login_until = Instant::now() + LOGIN_TIMEOUT;
                        let accounts = self.door.accounts().at_address(self.known.peer.ip());
                        match session.change_user(change, accounts) {
                            ReplicaStep::NeedInput => {}
                            step => next = Some(step),
                        }
                    }
                    ReplicaStep::Request(Request::Kill(connection))
                        if connection == self.known.connection =>
                    {
                        session.refuse(&ServerError {
                            code: 1317,
                            sqlstate: Some(*b"70100"),
                            message: "Query execution was interrupted".into(),
                        });
                        return transport.send(session.pending()).map(|()| None).map_err(broken);
                    }
                    ReplicaStep::Request(request) => {
                        // The source's log may have been reset since this client connected.
                        let kept = &self.known.server.lineages.served().unwrap_or_else(|| Arc::clone(&kept));
                        if let Request::Dump(request) = request {
                            let (kept, sequence) = (Arc::clone(kept), session.next_sequence());
                            return Ok(Some(Asked { kept, variables, request, sequence, transport }));
                        }
                        if let Some(upstream) = &mut upstream {
                            let (variables, transport) = (&mut variables, &mut transport);
                            let mut parts = Parts { variables, session, transport };
                            match self.forward(upstream, kept, &mut parts, &request)? {
                                Outcome::Here => {}
                                Outcome::Answered => continue,
                                Outcome::Over => {
                                    return transport.send(session.pending()).map(|()| None).map_err(broken);
                                }
                            }
                        }
                        if let Err(error) = self.request(kept, &mut variables, session, request) {
                            // The answer so far is complete or empty: the error is the answer.
                            session.refuse(&error.told(UNKNOWN_ERROR));
                            let KnownClient { connection, peer, .. } = &self.known;
                            let line = format!("connection {connection} from {peer}: {error}");
                            complain!(self.known.server.telemetry, &error, &line);
                        }
                    }
                }
            }
        }
    }

    /// Logs in a client whose proof was accepted, if there is room and it is clear which source it wants. Returns that
    /// source's log.
    fn enter(
        &mut self,
        user: &str,
        transport: &Transport,
        session: &ReplicaSession,
        stream: &Arc<TcpStream>,
    ) -> Result<Arc<Lineage>, ServerError> {
        let refused = |code, sqlstate: &[u8; 5], message: &str| ServerError {
            code,
            sqlstate: Some(*sqlstate),
            message: message.to_owned(),
        };
        let over_tls = transport.is_encrypted();
        if self.door.requires_tls && !over_tls {
            let message = "Connections using insecure transport are prohibited by the relay's configuration";
            return Err(refused(3159, b"HY000", message));
        }
        let entered = self.door.accounts().enter(user, over_tls)?;
        let server = self.door.routes.find(Wishes {
            port: self.listener.source.as_deref(),
            account: entered.account().source.as_deref(),
            tls_name: transport.server_name(),
            schema: session.database(),
        })?;
        let kept = server.lineages.served().ok_or_else(|| refused(1053, b"08S01", NOTHING_YET))?;
        if !self.admission.log_in() {
            return Err(refused(1040, b"08004", "Too many connections"));
        }
        if !server.clients.enter(self.known.connection, stream) {
            return Err(refused(1053, b"08S01", "the source was removed from the relay"));
        }
        let span = tracing::Span::current();
        span.record("user", user);
        if let Some(source) = server.telemetry.source() {
            span.record("source", source);
        }
        (self.known.server, self.known.account) = (server, Some(entered));
        Ok(kept)
    }

    /// The client is no longer the account that it was.
    fn leave(&mut self) {
        if self.known.account.take().is_some() {
            self.known.server.leave(self.known.connection);
        }
    }

    /// The relay's own answer to a statement; `None` can't be parsed.
    fn answer<'s>(
        &self,
        kept: &Lineage,
        variables: &mut Variables,
        statement: Option<&'s Statement>,
    ) -> Result<Answer<'s>> {
        let Some(statement) = statement else { return Ok(answers::unknown()) };
        let form = |variables: &Variables| self.known.form(variables);
        let may_administer = self.known.account.as_ref().is_some_and(|entered| entered.account().admin);
        let mut asker = Asker { variables, may_administer, form: &form };
        answers::answer(&self.known.server.statements, kept, &mut asker, statement)
    }

    /// Answers COM_PROCESS_INFO as for an account without the privilege PROCESS: the connections of its own.
    fn processes(&self, variables: &Variables, session: &mut ReplicaSession) {
        let KnownClient { server, connection, peer, .. } = &self.known;
        let user = self.known.user();
        let row =
            |connection: u32, peer: &SocketAddr, database: Option<&str>, command: &str, state: &str| -> Row {
                let texts = [
                    Some(connection.to_string()),
                    Some(user.to_owned()),
                    Some(peer.to_string()),
                    database.map(str::to_owned),
                    Some(command.to_owned()),
                    Some("0".to_owned()),
                    Some(state.to_owned()),
                    None,
                ];
                texts.into_iter().map(|text| text.map(String::into_bytes)).collect()
            };
        let dumps = server.dumps.seen();
        let own = dumps.iter().filter(|dump| dump.reader.user == user);
        let mut rows: Vec<Row> =
            own.map(|dump| row(dump.connection, &dump.reader.peer, None, "Binlog Dump", "")).collect();
        let database = variables.client.database.as_deref();
        rows.push(row(*connection, peer, database, "Processlist", "init"));
        session.rows(&PROCESSES, &rows);
    }

    fn request(
        &self,
        kept: &Lineage,
        variables: &mut Variables,
        session: &mut ReplicaSession,
        request: Request,
    ) -> Result<()> {
        match request {
            Request::Ping => session.ok(),
            Request::Statement(text) => {
                let statement = Statement::parse(&text);
                let answer = self.answer(kept, variables, statement.as_ref())?;
                session.set_status(variables.status());
                answer.give(session);
            }
            Request::Register { server_id, host, port } => {
                let uuid = announced::replica_uuid(variables).unwrap_or_default();
                self.known
                    .server
                    .registry
                    .register(self.known.connection, Replica { server_id, host, port, uuid });
                session.ok();
            }
            // There are no databases: any name will do.
            Request::UseDatabase(name) => {
                variables.client.database = Some(name);
                session.ok();
            }
            Request::Statistics => session.line(&format!(
                "Uptime: {}  Threads: {}  Questions: 0  Slow queries: 0  Opens: 0  Flush tables: 0  \
                 OpenConnection tables: 0  Queries per second avg: 0.000",
                self.begun.elapsed().as_secs(),
                self.door.gate.counts().logged_in
            )),
            Request::Kill(connection) => session.refuse(&ServerError {
                code: 1094,
                sqlstate: Some(*b"HY000"),
                message: format!("Unknown thread id: {connection}"),
            }),
            Request::Prepare(_) => session.refuse(&ServerError {
                code: 1295,
                sqlstate: Some(*b"HY000"),
                message: format!(
                    "This command is not supported in the prepared statement protocol yet: the relay prepares no \
                     statements{WITH_FORWARDING}"
                ),
            }),
            Request::Other(RESET_CONNECTION) => {
                let client = std::mem::take(&mut variables.client);
                *variables = Variables::default();
                let source = self.known.server.statements.intake.source_variables.get();
                let database = session.database().map(str::to_owned);
                variables.log_in(ClientFacts { database, ..client }, source.as_deref());
                session.set_status(variables.status());
                session.ok();
            }
            // Several statements never come at once: each that is sent so is refused by itself.
            Request::SetOption(Some(0 | 1)) => session.end_of_rows(),
            Request::Other(PROCESS_INFO) => self.processes(variables, session),
            Request::Other(DEBUG) => session.refuse(&ServerError {
                code: ServerError::SPECIFIC_ACCESS_DENIED,
                sqlstate: Some(*b"42000"),
                message: "Access denied; you need (at least one of) the SUPER privilege(s) for this operation".into(),
            }),
            // They have no answer: one would be taken for the next command's.
            Request::Other(STATEMENT_CLOSE | STATEMENT_LONG_DATA) => {}
            Request::Other(STATEMENT_EXECUTE | STATEMENT_FETCH | STATEMENT_RESET) => {
                session.refuse(&ServerError {
                    code: 1243,
                    sqlstate: Some(*b"HY000"),
                    message: "Unknown prepared statement handler given to the relay".into(),
                });
            }
            Request::SetOption(_) => session.refuse(&ServerError {
                code: 1047,
                sqlstate: Some(*b"08S01"),
                message: "Unknown command".into(),
            }),
            Request::Other(code) => session.refuse(&ServerError {
                code: 1047,
                sqlstate: Some(*b"08S01"),
                message: format!("Unknown command {code:#04x}"),
            }),
            Request::Quit | Request::Dump(_) | Request::ChangeUser(_) => {}
        }
        Ok(())
    }
}

/// The columns of COM_PROCESS_INFO.
const PROCESSES: [Column<'static>; 8] = [
    Column { name: "Id", kind: ColumnKind::INTEGER },
    Column { name: "User", kind: ColumnKind::TEXT },
    Column { name: "Host", kind: ColumnKind::TEXT },
    Column { name: "db", kind: ColumnKind::TEXT },
    Column { name: "Command", kind: ColumnKind::TEXT },
    Column { name: "Time", kind: ColumnKind::INTEGER },
    Column { name: "State", kind: ColumnKind::TEXT },
    Column { name: "Info", kind: ColumnKind::TEXT },
];

/// Random printable bytes: clients take a NUL for the end.
fn nonce() -> Result<[u8; 20]> {
    let mut nonce = [0; 20];
    getrandom::fill(&mut nonce)
        .map_err(|error| Error::Io { doing: "random numbers".into(), source: error.into() })?;
    Ok(nonce.map(|byte| byte % 94 + 33))
}
