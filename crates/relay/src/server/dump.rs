//! A request for the log: what it asks for, why it can't be had, and the connection's end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use binlogz_binlog::MAGIC;
use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_store::{FileNumber, storage};
use binlogz_wire::ServerError;
use binlogz_wire::dump_request::{DumpFlags, DumpRequest};
use binlogz_wire::response::{EofPacket, ErrPacket};

use super::{Client, announced};
use crate::archiving;
use crate::dumps::Reader;
use crate::error::{Error, Result};
use crate::form::{Form, FormPolicy, knows_payloads};
use crate::lineages::Kept;
use crate::parts::{FormFile, Found};
use crate::semi_sync::SemiSync;
use crate::sender::{AHEAD_MAX, Dump, Sender, TICK, broken};
use crate::served;
use crate::sink::EventSink;
use crate::translate::Opened;
use crate::transport::Transport;
use crate::variables::Variables;

impl Client<'_> {
    /// Serves a dump; the connection ends with it.
    pub(super) fn dump(
        &self,
        kept: &Arc<Kept>,
        variables: &Variables,
        request: &DumpRequest,
        sequence: u8,
        transport: Transport,
    ) -> Result<()> {
        let mut sink = EventSink::new(transport, sequence);
        let prepared = self.prepare(kept, variables, request).and_then(|(kept, dump)| {
            let opened = Opened::new(&kept, dump.form, dump.file)?;
            Ok((kept, dump, opened))
        });
        let (kept, dump, opened) = match prepared {
            Ok(prepared) => prepared,
            Err(error @ Error::Left(_)) => return Err(error),
            Err(error @ Error::Io { .. }) if !error.is_transient() => return Err(error),
            // What passes is not to stop a replica for good: it comes again.
            Err(Error::Archive(to, error)) if error.is_io() => return Err(Error::Archive(to, error)),
            Err(error) => return farewell(&mut sink, error),
        };
        sink.progress = Some(Arc::clone(&dump.progress));
        if dump.semi_sync.is_some() {
            sink.begin_semi_sync();
        }
        let mut sender = Sender::new(self.relay, &kept, dump, opened, sink);
        match sender.run() {
            Ok(()) => {
                let sink = sender.sink()?;
                let mut packet = vec![5, 0, 0, sink.sequence()];
                EofPacket::default().encode(&mut packet);
                sink.raw(&packet).map_err(broken)
            }
            // What could not be sent can't be told either.
            Err(error @ (Error::Io { .. } | Error::Left(_))) => Err(error),
            Err(Error::Archive(to, error)) if error.is_io() => Err(Error::Archive(to, error)),
            Err(Error::Payload(binlogz_payload::Error::Io(error))) if !storage::is_transient(&error) => {
                match error.kind() {
                    std::io::ErrorKind::InvalidInput => match sender.sink() {
                        Ok(sink) => farewell(sink, Error::Refused(error.to_string())),
                        Err(_) => Err(broken(error)),
                    },
                    _ => Err(broken(error)),
                }
            }
            Err(error) => match sender.sink() {
                Ok(sink) => farewell(sink, error),
                Err(_) => Err(error),
            },
        }
    }

    /// What it is served where it names no file.
    pub(super) fn form(&self, variables: &Variables) -> Result<Form> {
        match self.policy() {
            FormPolicy::Always(form) => Ok(form),
            FormPolicy::Auto => {
                let decided = Form::for_client(&self.attributes);
                self.relay.pins.form(self.user(), &self.who(variables), decided)
            }
        }
    }

    /// What decides where it names no file.
    fn policy(&self) -> FormPolicy {
        let own = self.account.as_ref().and_then(|entered| entered.account().form);
        own.unwrap_or(self.relay.options.form)
    }

    /// What it is known by: its server uuid, or its program's name.
    fn who(&self, variables: &Variables) -> String {
        let program = || self.attributes.iter().find(|(name, _)| name == "program_name");
        let who = announced::replica_uuid(variables).or_else(|| program().map(|(_, value)| value.clone()));
        who.unwrap_or_default()
    }

    /// Refuses a file of the source's own bytes, payloads among them, to a client that would lose their rows without a
    /// word: it brings a name that it was given by the source itself. An account with a form of its own may have it.
    fn check_payloads(
        &self,
        kept: &Kept,
        variables: &Variables,
        (form, file): (Form, FormFile),
    ) -> Result<()> {
        let is_unknown = || match self.relay.pins.known(self.user(), &self.who(variables)) {
            Some(pinned) => pinned == Form::Uncompressed,
            None => true,
        };
        if form != Form::Received
            || self.policy() != FormPolicy::Auto
            || knows_payloads(&self.attributes)
            || !is_unknown()
        {
            return Ok(());
        }
        let instead = kept.name_of(Form::Uncompressed, FormFile::first_of(file.file))?;
        Err(Error::Refused(format!(
            "This client is not known to read compressed transactions and would lose their rows in {}; {instead} has \
             them uncompressed, at other positions: begin it at 4, or go on by GTID. An account with form = \"received\" \
             may read the former",
            kept.name_of(form, file)?
        )))
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
        let served = &self.relay.served;
        let has_more = |number: Option<u64>| {
            let Some(number) = number else { return Ok(false) };
            let common = self.relay.lineages.in_common(kept, number)?;
            Ok::<_, Error>(common.is_some_and(|common| !of_server(gtid_set, kept.source).is_subset(&common)))
        };
        if !has_more(served.last(replica))? || !has_more(served.last_in_file(replica)?)? {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "The replica has transactions of a log that the source has reset or lost, under GTIDs that are others' now. \
             Build the replica anew; if that was done, remove {replica} from the relay's {}",
            served::NAME
        )))
    }

    /// The file of this name, which may be one that was purged and can be brought back; `None`: no file is named.
    fn named(&self, kept: &Kept, name: &str) -> Result<Option<(Form, FormFile)>> {
        if name.is_empty() {
            return Ok(None);
        }
        let lineages = &self.relay.lineages;
        if let Some(elsewhere) = lineages.ambiguity(kept, name).or_else(|| lineages.bygone(kept, name)) {
            return Err(Error::Refused(elsewhere));
        }
        let (form, number) = kept.names.parse(name).ok_or_else(no_such_file)?;
        let found = match kept.find(form, number)? {
            Found::File(file) => Some(file),
            Found::Purged(_) => archiving::find(self.relay, kept, form, number)?,
            Found::None => None,
        };
        found.map(|file| Some((form, file))).ok_or_else(no_such_file)
    }

    /// The file, of this log or an older one that it goes on from, behind which is all that a client lacks.
    fn behind(
        &self,
        kept: Arc<Kept>,
        replica: Option<ServerUuid>,
        gtid_set: &GtidSet,
    ) -> Result<(Arc<Kept>, FileNumber)> {
        let lineages = &self.relay.lineages;
        if let Some(replica) = replica {
            self.check_history(&kept, replica, gtid_set)?;
        }
        if lineages.began_anew() && !self.has_or_awaits(&kept, gtid_set)? {
            return Err(Error::Refused(MORE_GTIDS.into()));
        }
        let older = lineages.goes_on_from(&kept);
        for one in std::iter::once(kept).chain(older) {
            let mut file = last_with(&one, gtid_set)?;
            if file.is_none() {
                file = archiving::last_with(self.relay, &one, gtid_set)?;
            }
            if let Some(file) = file {
                return Ok((one, file));
            }
        }
        Err(archiving::purged())
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
        let uuid = announced::replica_uuid(variables);
        let known = uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        let named = self.named(&kept, &String::from_utf8_lossy(name))?;
        if let Some(named) = named {
            self.check_payloads(&kept, variables, named)?;
        }
        let (has, (form, file), from, lease) = match request {
            DumpRequest::ByPosition { position, .. } => {
                let place = match named {
                    Some(place) => place,
                    None => (self.form(variables)?, FormFile::first_of(first_file(&kept)?)),
                };
                (None, place, u64::from(*position), archiving::lease(self.relay, &kept, place.1.file)?)
            }
            DumpRequest::ByGtidSet { position, gtid_set, .. } => {
                let (place, from, lease) = match named {
                    Some(place) => (place, *position, archiving::lease(self.relay, &kept, place.1.file)?),
                    None => {
                        let file;
                        (kept, file) = self.behind(kept, known, gtid_set)?;
                        let form = self.form(variables)?;
                        archiving::count_parts(self.relay, &kept, form, file)?;
                        let lease = archiving::lease(self.relay, &kept, file)?;
                        ((form, kept.last_part_with(form, file, gtid_set)?), MAGIC.len() as u64, lease)
                    }
                };
                (Some(gtid_set.clone()), place, from, lease)
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
            Some(gtid_set) => format!("what is not in {}", gtid_set.brief()),
            None => format!("from {from}"),
        };
        self.relay.say(&format!(
            "connection {} of {} (server id {server_id}): {} {what}",
            self.connection,
            self.user(),
            kept.name_of(form, file)?
        ));
        let reader = Reader {
            user: self.user().to_owned(),
            peer: self.peer,
            server_id: *server_id,
            uuid: uuid.unwrap_or_default(),
            form,
            lineage: kept.number,
            semi_sync: self.relay.options.listen_semi_sync && announced::semi_sync(variables),
        };
        let semi_sync = reader.semi_sync;
        let progress = self.relay.dumps.begin(self.connection, reader, file.file);
        let semi_sync = semi_sync.then(|| {
            let acknowledgements = Arc::clone(&self.relay.acknowledgements);
            SemiSync::new(self.connection, kept.number, acknowledgements, Arc::clone(&progress))
        });
        let dump = Dump {
            progress,
            semi_sync,
            form,
            file,
            from,
            has,
            non_blocking: request.is_non_blocking(),
            heartbeat_period: announced::heartbeat_period(variables),
            heartbeat_v2: flags.contains(DumpFlags::HEARTBEAT_V2),
            checksum: announced::checksum(variables),
            lease,
            superseded: self.relay.registry.begin_dump(self.connection, key),
        };
        Ok((kept, dump))
    }
}

fn first_file(kept: &Kept) -> Result<FileNumber> {
    kept.store.logs()?.first().map(|log| log.number).ok_or_else(no_such_file)
}

/// The last file that begins with transactions of this set alone.
fn last_with(kept: &Kept, gtid_set: &GtidSet) -> Result<Option<FileNumber>> {
    let mut damaged = None;
    for log in kept.store.logs()?.iter().rev() {
        match kept.store.previous_gtids(log.number) {
            Ok(before) if before.is_subset(gtid_set) => return Ok(Some(log.number)),
            Ok(_) => {}
            // All that is in this file follows the ones before it, too.
            Err(error @ binlogz_store::Error::Damaged { .. }) => damaged = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    damaged.map_or(Ok(None), |error| Err(Error::DamagedLog(error.to_string())))
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

fn no_such_file() -> Error {
    Error::Refused("Could not find first log file name in binary log index file".into())
}

/// Tells the client why there is nothing more, if it can be told, and the log.
fn farewell(sink: &mut EventSink, error: Error) -> Result<()> {
    if !sink.is_inside_event() {
        let ServerError { code, sqlstate, message } =
            error.told(ServerError::SOURCE_FATAL_ERROR_READING_BINLOG);
        let mut body = Vec::new();
        ErrPacket { code, sqlstate, message: message.as_bytes() }.encode(&mut body);
        let [l0, l1, l2, ..] = (body.len() as u32).to_le_bytes();
        let packet = [&[l0, l1, l2, sink.sequence()], body.as_slice()].concat();
        sink.raw(&packet).map_err(broken)?;
    }
    Err(error)
}
