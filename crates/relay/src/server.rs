//! Accepts clients and takes their commands: a thread for each.

use std::io::{Read, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_binlog::{ChecksumAlgorithm, MAGIC};
use binlogz_store::FileNumber;
use binlogz_wire::ServerError;
use binlogz_wire::dump_request::{DumpFlags, DumpRequest};
use binlogz_wire::response::{EofPacket, ErrPacket};
use binlogz_wire::session::{ReplicaOptions, ReplicaSession, ReplicaStep, Request};

use crate::accounts::Entered;
use crate::answers::{self, Variables};
use crate::archiving::{self, Needed};
use crate::dumps::Reader;
use crate::error::{Error, Result};
use crate::form::{Form, FormPolicy};
use crate::gate::Place;
use crate::head::Head;
use crate::lineages::Kept;
use crate::registry::Replica;
use crate::relay::Relay;
use crate::sender::{AHEAD_MAX, Dump, Sender, TICK, broken};
use crate::served;
use crate::sink::EventSink;
use crate::transport::Transport;

/// A client logs in within this time.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10);
/// One that is logged in says something within this time (`wait_timeout` is as long).
const IDLE_TIMEOUT: Duration = Duration::from_secs(28_800);
/// One that is sent to takes it within this time (`net_write_timeout`).
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// After an accept that failed, as when file descriptors are used up.
const ACCEPT_RETRY: Duration = Duration::from_millis(200);

/// Accepts for ever.
pub(crate) fn accept(relay: &Arc<Relay>, listener: &TcpListener) {
    let connections = AtomicU32::new(1);
    loop {
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) => {
                relay.say(&format!("accept: {error}"));
                thread::sleep(ACCEPT_RETRY);
                continue;
            }
        };
        let connection = connections.fetch_add(1, Ordering::Relaxed);
        let its = Arc::clone(relay);
        let serve = move || {
            let Some(place) = its.gate.admit(connection, &stream, peer.ip()) else {
                return turn_away(stream, 1040, "Too many connections");
            };
            let attributes = Vec::new();
            let mut client = Client { relay: &its, connection, peer, place, account: None, attributes };
            let ended = client.serve(&stream);
            drop(client);
            its.registry.leave(connection);
            its.dumps.end(connection);
            let _ = stream.shutdown(Shutdown::Both);
            if let Err(error) = ended {
                its.complain(&error, &format!("connection {connection} from {peer}: {error}"));
            }
        };
        let spawned = thread::Builder::new().name(format!("client {connection}")).spawn(serve);
        if let Err(error) = spawned {
            relay.say(&format!("start a thread: {error}"));
        }
    }
}

/// An error in place of the greeting.
fn turn_away(mut stream: TcpStream, code: u16, message: &str) {
    let mut packet = vec![0; 4];
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
            let clone = stream.try_clone().map_err(broken)?;
            turn_away(clone, 1053, "the relay has nothing of the source's log yet");
            return Ok(());
        };
        let server_version = Head::read(&kept.store, now.durable.file)?.description.server_version();
        let mut session = ReplicaSession::new(ReplicaOptions {
            server_version,
            connection_id: self.connection,
            nonce: nonce()?,
            tls: self.relay.tls.is_some(),
            accounts: self.relay.accounts.at_address(self.peer.ip()),
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
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(source) => return Err(Error::Io { doing: "wait for a client".into(), source }),
            };
            let mut input = buffer.get(..count).unwrap_or_default();
            loop {
                match session.poll(&mut input)? {
                    ReplicaStep::NeedInput => break,
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
                        self.request(kept, &mut variables, session, request)?;
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
                let uuid = replica_uuid(variables).unwrap_or_default();
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

    /// Serves a dump; the connection ends with it.
    fn dump(
        &self,
        kept: &Arc<Kept>,
        variables: &Variables,
        request: &DumpRequest,
        sequence: u8,
        transport: Transport,
    ) -> Result<()> {
        let mut sink = EventSink::new(transport, sequence);
        let (kept, dump) = match self.prepare(kept, variables, request) {
            Ok(prepared) => prepared,
            Err(error @ Error::Io { .. }) => return Err(error),
            Err(error) => return farewell(&mut sink, error),
        };
        sink.progress = Some(Arc::clone(&dump.progress));
        let mut sender = Sender::new(&kept, dump, sink)?;
        match sender.run() {
            Ok(()) => {
                let sink = sender.sink()?;
                let mut packet = vec![5, 0, 0, sink.sequence()];
                EofPacket::default().encode(&mut packet);
                sink.raw(&packet).map_err(broken)
            }
            // What could not be sent can't be told either.
            Err(error @ (Error::Io { .. } | Error::Store(_))) => Err(error),
            Err(Error::Payload(binlogz_payload::Error::Io(error))) => match error.kind() {
                std::io::ErrorKind::InvalidInput => match sender.sink() {
                    Ok(sink) => farewell(sink, Error::Refused(error.to_string())),
                    Err(_) => Err(broken(error)),
                },
                _ => Err(broken(error)),
            },
            Err(error) => match sender.sink() {
                Ok(sink) => farewell(sink, error),
                Err(_) => Err(error),
            },
        }
    }

    /// What it is served where it names no file.
    fn form(&self, variables: &Variables) -> Result<Form> {
        let own = self.account.as_ref().and_then(|entered| entered.account().form);
        match own.unwrap_or(self.relay.options.form) {
            FormPolicy::Always(form) => Ok(form),
            FormPolicy::Auto => {
                let program = || self.attributes.iter().find(|(name, _)| name == "program_name");
                let who = replica_uuid(variables).or_else(|| program().map(|(_, value)| value.clone()));
                self.relay.pins.form(
                    self.user(),
                    &who.unwrap_or_default(),
                    Form::for_client(&self.attributes),
                )
            }
        }
    }

    /// Whether all that a client has of the source is of this log, or will be when the log is here: the source's may have
    /// begun anew without it.
    fn has_or_awaits(&self, kept: &Kept, gtid_set: &GtidSet) -> Result<bool> {
        let of_source = of_server(gtid_set, kept.source);
        let until = Instant::now() + AHEAD_MAX;
        loop {
            if of_source.is_subset(&kept.durable_gtids()) {
                return Ok(true);
            }
            if Instant::now() > until {
                if !self.relay.meters.drained.load(Ordering::Relaxed) {
                    // Nobody can say yet: the end of the connection makes it come again.
                    return Err(broken(std::io::Error::other("the source's log is not here yet")));
                }
                return Ok(false);
            }
            kept.store.wait_durable_beyond(kept.store.positions().map(|now| now.durable), TICK);
        }
    }

    /// Refuses a replica that has transactions of a log in whose place the source's began anew.
    fn check_history(&self, kept: &Kept, replica: ServerUuid, gtid_set: &GtidSet) -> Result<()> {
        let Some(number) = self.relay.served.last(replica)? else { return Ok(()) };
        let Some(common) = self.relay.lineages.in_common(kept, number)? else { return Ok(()) };
        if of_server(gtid_set, kept.source).is_subset(&common) {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "The replica has transactions of a log that the source has reset or lost, under GTIDs that are others' now. \
             Build the replica anew; if that was done, remove {replica} from the relay's {}",
            served::NAME
        )))
    }

    /// What a request asks for, or why it can't be had.
    fn prepare(
        &self,
        kept: &Arc<Kept>,
        variables: &Variables,
        request: &DumpRequest,
    ) -> Result<(Arc<Kept>, Dump)> {
        let mut kept = Arc::clone(kept);
        let (DumpRequest::ByPosition { flags, server_id, name, .. }
        | DumpRequest::ByGtidSet { flags, server_id, name, .. }) = request;
        let files: Vec<FileNumber> = kept.store.logs()?.into_iter().map(|log| log.number).collect();
        let lineages = &self.relay.lineages;
        let uuid = replica_uuid(variables);
        let known = uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        let unknown = || Error::Refused("Could not find first log file name in binary log index file".into());
        let name = String::from_utf8_lossy(name);
        let named = match name.as_ref() {
            "" => None,
            name => {
                let elsewhere = lineages.ambiguity(&kept, name).or_else(|| lineages.bygone(&kept, name));
                if let Some(elsewhere) = elsewhere {
                    return Err(Error::Refused(elsewhere));
                }
                let (form, file) = kept.names.parse(name).ok_or_else(unknown)?;
                let was_purged = files.first().is_some_and(|first| file < *first);
                let is_there = match was_purged {
                    true => archiving::bring_back(self.relay, &kept, Needed::File(file))?,
                    false => files.contains(&file),
                };
                if !is_there {
                    return Err(unknown());
                }
                Some((form, file))
            }
        };
        let first = || Ok((self.form(variables)?, *files.first().ok_or_else(unknown)?));
        let (has, (form, file), from) = match request {
            DumpRequest::ByPosition { position, .. } => {
                (None, named.map_or_else(first, Ok::<_, Error>)?, u64::from(*position))
            }
            DumpRequest::ByGtidSet { position, gtid_set, .. } => {
                let (place, from) = match named {
                    Some(place) => (place, *position),
                    None => {
                        if let Some(replica) = known {
                            self.check_history(&kept, replica, gtid_set)?;
                        }
                        if lineages.began_anew() && !self.has_or_awaits(&kept, gtid_set)? {
                            return Err(Error::Refused(MORE_GTIDS.into()));
                        }
                        let older = lineages.goes_on_from(&kept);
                        let mut file = None;
                        for one in std::iter::once(Arc::clone(&kept)).chain(older) {
                            file = last_with(&one, gtid_set)?;
                            if file.is_none()
                                && archiving::bring_back(self.relay, &one, Needed::Behind(gtid_set))?
                            {
                                file = last_with(&one, gtid_set)?;
                            }
                            if file.is_some() {
                                kept = one;
                                break;
                            }
                        }
                        let file = file.ok_or_else(purged)?;
                        ((self.form(variables)?, file), MAGIC.len() as u64)
                    }
                };
                (Some(gtid_set.clone()), place, from)
            }
        };
        if let Some(replica) = known {
            self.relay.served.note(replica, kept.number)?;
        }
        if from < MAGIC.len() as u64 {
            return Err(Error::Refused(
                "Client requested source to start replication from position < 4".into(),
            ));
        }
        let key = match (&uuid, *server_id) {
            (Some(uuid), _) => Some(uuid.clone()),
            (None, 0) => None,
            (None, id) => Some(format!("server id {id}")),
        };
        let what = match &has {
            Some(gtid_set) => format!("what is not in {gtid_set}"),
            None => format!("from {from}"),
        };
        self.relay.say(&format!(
            "connection {} of {} (server id {server_id}): {} {what}",
            self.connection,
            self.user(),
            kept.names.name(form, file)
        ));
        let reader = Reader {
            user: self.user().to_owned(),
            peer: self.peer,
            server_id: *server_id,
            uuid: uuid.unwrap_or_default(),
            form,
            lineage: kept.number,
        };
        let dump = Dump {
            progress: self.relay.dumps.begin(self.connection, reader, file),
            form,
            file,
            from,
            has,
            non_blocking: request.is_non_blocking(),
            heartbeat_period: heartbeat_period(variables),
            heartbeat_v2: flags.contains(DumpFlags::HEARTBEAT_V2),
            checksum: announced(variables),
            superseded: self.relay.registry.begin_dump(self.connection, key),
        };
        Ok((kept, dump))
    }
}

/// The last file that begins with transactions of this set alone.
fn last_with(kept: &Kept, gtid_set: &GtidSet) -> Result<Option<FileNumber>> {
    for log in kept.store.logs()?.iter().rev() {
        if kept.store.previous_gtids(log.number)?.is_subset(gtid_set) {
            return Ok(Some(log.number));
        }
    }
    Ok(None)
}

/// Those of a set that a server gave.
fn of_server(gtid_set: &GtidSet, server: ServerUuid) -> GtidSet {
    let mut its = GtidSet::new();
    for (tsid, intervals) in gtid_set.iter().filter(|(tsid, _)| tsid.uuid == server) {
        intervals.iter().for_each(|interval| its.add_interval(*tsid, *interval));
    }
    its
}

/// The server's words.
const MORE_GTIDS: &str = "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate \
                          that the end of the binary log was truncated or that the last binary log file was lost, e.g., \
                          after a power or disk failure when sync_binlog != 1. The source may or may not have rolled \
                          back transactions that were already replicated to the replica. Suggest to replicate any \
                          transactions that source has rolled back from replica to source, and/or commit empty \
                          transactions on source to account for transactions that have been committed on source but \
                          are not included in GTID_EXECUTED.";

fn purged() -> Error {
    Error::Refused(
        "Cannot replicate because the source purged required binary logs: the relay's log begins later"
            .into(),
    )
}

/// Tells the client why there is nothing more, if it can be told, and the log.
fn farewell(sink: &mut EventSink, error: Error) -> Result<()> {
    if !sink.is_inside_event() {
        let message = error.to_string();
        let code = ServerError::SOURCE_FATAL_ERROR_READING_BINLOG;
        let mut body = Vec::new();
        ErrPacket { code, sqlstate: Some(*b"HY000"), message: message.as_bytes() }.encode(&mut body);
        let [l0, l1, l2, ..] = (body.len() as u32).to_le_bytes();
        let packet = [&[l0, l1, l2, sink.sequence()], body.as_slice()].concat();
        sink.raw(&packet).map_err(broken)?;
    }
    Err(error)
}

/// The first of two names of a variable that a client set.
fn variable<'a>(variables: &'a Variables, name: &str, older: &str) -> Option<&'a str> {
    let set = |name| variables.get(name)?.as_deref();
    set(name).or_else(|| set(older))
}

fn replica_uuid(variables: &Variables) -> Option<String> {
    variable(variables, "replica_uuid", "slave_uuid").filter(|uuid| !uuid.is_empty()).map(str::to_owned)
}

fn announced(variables: &Variables) -> Option<ChecksumAlgorithm> {
    let name = variable(variables, "source_binlog_checksum", "master_binlog_checksum")?;
    match name.to_ascii_uppercase().as_str() {
        "CRC32" | "1" => Some(ChecksumAlgorithm::CRC32),
        _ => Some(ChecksumAlgorithm::NONE),
    }
}

/// In nanoseconds, as the client said it.
fn heartbeat_period(variables: &Variables) -> Option<Duration> {
    let text = variable(variables, "source_heartbeat_period", "master_heartbeat_period")?;
    let period = text.parse::<u64>().ok().or_else(|| text.parse::<f64>().ok().map(|period| period as u64))?;
    (period > 0).then(|| Duration::from_nanos(period))
}

/// Random bytes that are printable: clients take a NUL for their end.
fn nonce() -> Result<[u8; 20]> {
    let mut nonce = [0; 20];
    getrandom::fill(&mut nonce)
        .map_err(|error| Error::Io { doing: "random numbers".into(), source: error.into() })?;
    Ok(nonce.map(|byte| byte % 94 + 33))
}
