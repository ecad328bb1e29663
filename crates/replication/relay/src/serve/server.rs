//! Accepts clients, with one thread per client.
//!
//! ```text
//! accept → Client: admission, greeting, login → conversation: commands, answered by `commands` or `forwarding` → dump
//! ```

mod announced;
mod coming_file;
mod commands;
mod conversation;
pub(crate) mod dump;
mod forwarding;

use std::io::Write as _;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_relay_log::{LineageLog, StoredHead};
use binlogz_wire::response::ErrPacket;
use binlogz_wire::session::{ReplicaOptions, ReplicaSession};
use binlogz_wire::{ServerError, packet};

use crate::error::{Error, Result, UNKNOWN_ERROR};
use crate::serve::SourceServer;
use crate::serve::connections::admission::Admission;
use crate::serve::connections::door::Door;
use crate::serve::connections::listeners::ClientListener;
use crate::serve::connections::routes::Wishes;
use crate::serve::connections::transport::Transport;
use crate::serve::sending::sender::broken;
use crate::telemetry::{complain, duties, say, spans};
use conversation::{Conversation, DumpRequested, LOGIN_TIMEOUT};
use dump::KnownClient;

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
        let its = Arc::clone(door);
        let stream = Arc::new(stream);
        let its_stream = Arc::clone(&stream);
        let open = OpenConnection::new(door);
        let serve = move || {
            let _span = spans::client(connection, peer).entered();
            let _open = open;
            let stream = its_stream;
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
    listener: &ClientListener,
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
fn greeter(door: &Door, listener: &ClientListener) -> Option<Arc<SourceServer>> {
    let routes = door.routes.all();
    let is_its = |name: &str| listener.source.as_ref().is_none_or(|source| source == name);
    let open = routes.iter().filter(|route| is_its(&route.name)).filter_map(|route| route.to.as_ref().ok());
    let mut open =
        open.filter(|server| server.lineages.served().is_some_and(|kept| kept.store.positions().is_some()));
    open.next().map(Arc::clone)
}

impl SourceServer {
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
    listener: &'a ClientListener,
    /// Until it is logged in, the source is the one that greeted it.
    known: KnownClient,
    /// When the relay started to accept clients.
    begun: Instant,
    admission: Admission<'a>,
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
        let head = match StoredHead::read(&kept.store, now.durable.file).map_err(Error::from) {
            Ok(head) => head,
            Err(error) => {
                let told = error.told(UNKNOWN_ERROR);
                turn_away(stream, told.code, &told.message);
                return Err(error);
            }
        };
        let server_version = announced::greeted_version(&head.description);
        let session = ReplicaSession::new(ReplicaOptions {
            server_version,
            connection_id: self.known.connection,
            nonce: nonce()?,
            tls: self.door.tls.is_some(),
            accounts: self.door.accounts().at_address(self.known.peer.ip()),
            native_password: self.door.native_password,
        });
        // Whatever only a conversation needs is freed before the dump, which may last for months.
        match Conversation::new(self, kept, session, stream).run()? {
            None => Ok(()),
            Some(DumpRequested { kept, variables, request, sequence, transport }) => {
                self.known.dump(&kept, &variables, &request, sequence, transport)
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
    ) -> Result<Arc<LineageLog>, ServerError> {
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
}

/// Random printable bytes: clients take a NUL for the end.
fn nonce() -> Result<[u8; 20]> {
    let mut nonce = [0; 20];
    getrandom::fill(&mut nonce)
        .map_err(|error| Error::Io { doing: "random numbers".into(), source: error.into() })?;
    Ok(nonce.map(|byte| byte % 94 + 33))
}
