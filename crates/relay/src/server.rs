//! Accepts clients and takes their commands: a thread for each. `dump.rs` has what ends the conversation, a dump.

mod announced;
mod dump;

use std::io::{Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_wire::ServerError;
use binlogz_wire::response::ErrPacket;
use binlogz_wire::session::{ReplicaOptions, ReplicaSession, ReplicaStep, Request};

use crate::accounts::Entered;
use crate::answers;
use crate::duties;
use crate::error::{Error, Result, UNKNOWN_ERROR};
use crate::gate::{Place, SMALL_COMMAND};
use crate::head::Head;
use crate::lineages::Kept;
use crate::registry::Replica;
use crate::relay::Relay;
use crate::sender::broken;
use crate::transport::Transport;
use crate::variables::Variables;

/// A client logs in within this time.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// One that is logged in says something within this time (`wait_timeout` is as long).
const IDLE_TIMEOUT: Duration = Duration::from_secs(28_800);
/// One that is sent to takes it within this time (`net_write_timeout`).
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Of an error in place of the greeting: its packet has a length of one byte.
const MESSAGE_SIZE_MAX: usize = 200;
/// After an accept that failed, as when file descriptors are used up.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// Accepts for ever.
pub(crate) fn accept(relay: &Arc<Relay>, listener: &TcpListener) {
    let connections = AtomicU32::new(1);
    let mut has_threads = true;
    loop {
        // The others wait in the listener's queue: a descriptor that one of them had could be the log's last.
        relay.gate.wait_for_room();
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                relay.say(&format!("accept: {error}"));
                thread::sleep(ACCEPT_RETRY);
                continue;
            }
        };
        let connection = connections.fetch_add(1, Ordering::Relaxed);
        let (its, stream) = (Arc::clone(relay), Arc::new(stream));
        let its_stream = Arc::clone(&stream);
        let open = Open::new(relay);
        let serve = move || {
            let (_open, stream) = (open, its_stream);
            serve(&its, connection, &stream, peer);
        };
        let spawned = thread::Builder::new().name(format!("client {connection}")).spawn(serve);
        if let Err(error) = spawned {
            relay.gate.turned_away();
            let code = error.raw_os_error().unwrap_or_default();
            turn_away(&stream, 1135, &format!("Can't create a new thread (errno {code})"));
            if std::mem::take(&mut has_threads) {
                let error = Error::thread(format!("client {connection}"))(error);
                relay.complain(&error, &format!("{error}; clients are turned away meanwhile"));
            }
        } else {
            has_threads = true;
        }
    }
}

/// Serves a client, from its admission to its end.
fn serve(relay: &Relay, connection: u32, stream: &Arc<TcpStream>, peer: SocketAddr) {
    let ended = duties::attempt("a client's thread", || {
        let Some(place) = relay.gate.admit(connection, stream, peer.ip()) else {
            turn_away(stream, 1040, "Too many connections");
            return Ok(());
        };
        let attributes = Vec::new();
        Client { relay, connection, peer, place, account: None, attributes }.serve(stream)
    });
    relay.registry.leave(connection);
    relay.dumps.end(connection);
    relay.acknowledgements.leave(connection);
    let _ = stream.shutdown(Shutdown::Both);
    match ended {
        Ok(()) => {}
        Err(error @ Error::Left(_)) => {
            relay.say(&format!("connection {connection} from {peer}: {error}"));
        }
        Err(error) => relay.complain(&error, &format!("connection {connection} from {peer}: {error}")),
    }
}

/// A connection that is open: counted until its descriptors are closed.
struct Open(Arc<Relay>);

impl Open {
    fn new(relay: &Arc<Relay>) -> Self {
        relay.gate.opened();
        Open(Arc::clone(relay))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.gate.closed();
    }
}

/// An error in place of the greeting.
fn turn_away(mut stream: &TcpStream, code: u16, message: &str) {
    let mut packet = vec![0; 4];
    let size_max = MESSAGE_SIZE_MAX.min(message.len());
    let message = (0..=size_max).rev().find_map(|end| message.get(..end)).unwrap_or_default();
    ErrPacket { code, sqlstate: None, message: message.as_bytes() }.encode(&mut packet);
    if let Some(size) = packet.get_mut(..1) {
        let length = message.len() + 3;
        size.fill(length as u8);
    }
    // It is told if it listens; else it sees the end of the connection.
    let _ = stream.set_write_timeout(Some(LOGIN_TIMEOUT)).and_then(|()| stream.write_all(&packet));
}

/// One client.
struct Client<'a> {
    relay: &'a Relay,
    connection: u32,
    peer: SocketAddr,
    place: Place<'a>,
    /// Once logged in.
    account: Option<Entered<'a>>,
    /// What it then told of itself.
    attributes: Vec<(String, String)>,
}

impl Client<'_> {
    fn serve(&mut self, stream: &TcpStream) -> Result<()> {
        stream.set_nodelay(true).map_err(broken)?;
        socket2::SockRef::from(stream).set_keepalive(true).map_err(broken)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT)).map_err(broken)?;
        let begun = self.relay.kept().and_then(|kept| kept.store.positions().map(|now| (kept, now)));
        let Some((kept, now)) = begun else {
            turn_away(stream, 1053, "the relay has nothing of the source's log yet");
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
        let mut session = ReplicaSession::new(ReplicaOptions {
            server_version,
            connection_id: self.connection,
            nonce: nonce()?,
            tls: self.relay.tls.is_some(),
            accounts: self.relay.accounts.at_address(self.peer.ip()),
            native_password: self.relay.options.listen_native_password,
        });
        self.converse(&kept, &mut session, stream.try_clone().map_err(broken)?)
    }

    fn converse(&mut self, kept: &Arc<Kept>, session: &mut ReplicaSession, stream: TcpStream) -> Result<()> {
        let mut transport = Transport::Plain(stream);
        let mut variables = Variables::default();
        let mut buffer = vec![0; 16 << 10];
        let login_until = Instant::now() + LOGIN_TIMEOUT;
        loop {
            let pending = session.pending().to_vec();
            transport.send(&pending).map_err(broken)?;
            session.sent(pending.len());
            // However little it says at a time, it is logged in by then.
            let patience = match self.account {
                Some(_) => IDLE_TIMEOUT,
                None => login_until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)),
            };
            transport.socket().set_read_timeout(Some(patience)).map_err(broken)?;
            let count = match transport.read(&mut buffer) {
                // A process that was stopped and goes on, or is traced: nothing happened to the connection.
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(source) => return Err(Error::of_client("wait for a client", source)),
            };
            let mut input = buffer.get(..count).unwrap_or_default();
            loop {
                match session.poll(&mut input)? {
                    ReplicaStep::NeedInput => {
                        if !self.place.may_hold(session.held()) {
                            session.limit_commands(SMALL_COMMAND);
                        }
                        break;
                    }
                    ReplicaStep::LoggedIn(user) => {
                        let over_tls = matches!(transport, Transport::Tls(_));
                        if let Err(refusal) = self.enter(&user, over_tls) {
                            session.refuse(&refusal);
                            transport.send(session.pending()).map_err(broken)?;
                            return Err(Error::Refused(format!("user '{user}': {}", refusal.message)));
                        }
                        session.ok();
                        self.attributes = session.attributes().to_vec();
                    }
                    ReplicaStep::StartTls => {
                        let tls = self.relay.tls.as_ref();
                        let tls = tls.ok_or_else(|| Error::Refused("TLS was not offered".into()))?;
                        transport = transport.start_tls(tls, input)?;
                        break;
                    }
                    ReplicaStep::Denied(user) => {
                        transport.send(session.pending()).map_err(broken)?;
                        return Err(Error::Refused(format!("access denied for user '{user}'")));
                    }
                    ReplicaStep::Request(Request::Quit) => return Ok(()),
                    ReplicaStep::Request(request) => {
                        // The source's log may have begun anew since this client came.
                        let kept = &self.relay.kept().unwrap_or_else(|| Arc::clone(kept));
                        if let Request::Dump(request) = request {
                            return self.dump(kept, &variables, &request, session.next_sequence(), transport);
                        }
                        if let Err(error) = self.request(kept, &mut variables, session, request) {
                            // What was answered so far is whole, or nothing: this is the answer.
                            session.refuse(&error.told(UNKNOWN_ERROR));
                            let Client { connection, peer, .. } = self;
                            let line = format!("connection {connection} from {peer}: {error}");
                            self.relay.complain(&error, &line);
                        }
                    }
                }
            }
        }
    }

    /// Lets in whose proof was right, if there is room.
    fn enter(&mut self, user: &str, over_tls: bool) -> Result<(), ServerError> {
        let listen = &self.relay.options.listen_tls;
        if listen.as_ref().is_some_and(|tls| tls.required) && !over_tls {
            return Err(ServerError {
                code: 3159,
                sqlstate: Some(*b"HY000"),
                message: "Connections using insecure transport are prohibited by the relay's configuration"
                    .into(),
            });
        }
        let entered = self.relay.accounts.enter(user, over_tls)?;
        if !self.place.log_in() {
            let message = "Too many connections".into();
            return Err(ServerError { code: 1040, sqlstate: Some(*b"08004"), message });
        }
        self.account = Some(entered);
        Ok(())
    }

    fn user(&self) -> &str {
        self.account.as_ref().map_or("", |entered| &entered.account().user)
    }

    fn request(
        &self,
        kept: &Kept,
        variables: &mut Variables,
        session: &mut ReplicaSession,
        request: Request,
    ) -> Result<()> {
        match request {
            Request::Ping => session.ok(),
            Request::Statement(text) => {
                let form = |variables: &Variables| self.form(variables);
                let may = self.account.as_ref().is_some_and(|entered| entered.account().admin);
                answers::answer(self.relay, kept, may, variables, session, &text, &form)?;
            }
            Request::Register { server_id, host, port } => {
                let uuid = announced::replica_uuid(variables).unwrap_or_default();
                self.relay.registry.register(self.connection, Replica { server_id, host, port, uuid });
                session.ok();
            }
            Request::Other(code) => session.refuse(&ServerError {
                code: 1047,
                sqlstate: Some(*b"08S01"),
                message: format!("Unknown command {code:#04x}"),
            }),
            Request::Quit | Request::Dump(_) => {}
        }
        Ok(())
    }
}

/// Random bytes that are printable: clients take a NUL for their end.
fn nonce() -> Result<[u8; 20]> {
    let mut nonce = [0; 20];
    getrandom::fill(&mut nonce)
        .map_err(|error| Error::Io { doing: "random numbers".into(), source: error.into() })?;
    Ok(nonce.map(|byte| byte % 94 + 33))
}
