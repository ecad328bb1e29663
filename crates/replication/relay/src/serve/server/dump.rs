//! A request for the log: resolves it or refuses it, and serves the dump, which ends the connection.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use binlogz_binlog::MAGIC;
use binlogz_binlog::event::MariadbGtid;
use binlogz_binlog::gtid::{GtidSet, ServerUuid};
use binlogz_client_sql::ClientVariables;
use binlogz_relay_forms::{Forms, MaskedForm, OpenedFile};
use binlogz_relay_log::{Error as LogError, FileLease, Form, FormFile, FoundFile, LineageLog};
use binlogz_store::{FileNumber, is_transient};
use binlogz_wire::ServerError;
use binlogz_wire::dump_request::{DumpFlags, DumpRequest};
use binlogz_wire::response::{EofPacket, ErrPacket};

use super::announced;
use crate::error::{Error, Result};
use crate::housekeeping::archiving;
use crate::receive::mariadb;
use crate::replicas::dumps::{DumpClient, DumpProgress};
use crate::serve::SourceServer;
use crate::serve::connections::accounts::LoggedInClient;
use crate::serve::connections::client_form::FormPolicy;
use crate::serve::connections::departures::Departures;
use crate::serve::connections::transport::DumpConnection;
use crate::serve::events::fitting::EventFitting;
use crate::serve::events::profiles::{ClientSigns, ReaderProfile};
use crate::serve::events::table_choice::TableChoice;
use crate::serve::events::xa::XaFileName;
use crate::serve::mariadb_source;
use crate::serve::mariadb_source::start::PendingDomains;
use crate::serve::remembered::last_served;
use crate::serve::sending::semi_sync::SemiSync;
use crate::serve::sending::sender::{AHEAD_MAX, DumpStream, Sender, TICK, XaFilePosition, broken};
use crate::serve::sending::sink::EventSink;
use crate::telemetry::{say, spans};

/// The facts that a dump needs about its client.
pub(crate) struct KnownClient {
    pub(crate) server: Arc<SourceServer>,
    pub(crate) connection: u32,
    pub(crate) peer: SocketAddr,
    /// Set once logged in.
    pub(crate) account: Option<LoggedInClient>,
    /// The attributes that it then sent.
    pub(crate) attributes: Vec<(String, String)>,
    /// The client's socket, and the watcher that notices when the client closes it; `None`: nobody notices.
    pub(crate) socket: Option<(Arc<TcpStream>, Arc<Departures>)>,
}

/// The name by which a replica's dumps are known, so that a new one takes the place of an earlier one. `None`: the client has none.
fn replica_key(uuid: Option<&str>, server_id: u32) -> Option<String> {
    match (uuid, server_id) {
        (Some(uuid), _) => Some(uuid.to_owned()),
        (None, 0) => None,
        (None, id) => Some(format!("server id {id}")),
    }
}

impl KnownClient {
    pub(crate) fn user(&self) -> &str {
        self.account.as_ref().map_or("", |entered| &entered.account().user)
    }

    /// The form that leaves by the account's policy, if it has one.
    pub(super) fn exits(&self) -> Option<&MaskedForm> {
        self.account.as_ref()?.account().exits.as_deref()
    }

    /// Whether it gets every row as the source has it.
    fn is_copy(&self) -> bool {
        let account = self.account.as_ref().map(|entered| entered.account());
        account.is_none_or(|account| account.exits.is_none() && account.tables.is_all())
    }

    /// A log in the forms that the account may read.
    pub(super) fn forms<'a>(&'a self, kept: &'a LineageLog) -> Forms<'a> {
        self.server.conversions.of(kept).leaving(self.exits())
    }

    /// Serves a dump, which ends the connection.
    pub(crate) fn dump(
        &self,
        kept: &Arc<LineageLog>,
        variables: &ClientVariables,
        request: &DumpRequest,
        sequence: u8,
        connection: impl DumpConnection + 'static,
    ) -> Result<()> {
        let mut sink = EventSink::new(connection, sequence);
        let prepared = self.prepare(kept, variables, request).and_then(|(kept, dump)| {
            let opened = OpenedFile::new(&kept, dump.form, dump.file)?;
            Ok((kept, dump, opened))
        });
        if let Some(error) = prepared.as_ref().err().and_then(Error::of_log) {
            kept.suspect(error);
        }
        let (kept, dump, opened) = match prepared {
            Ok(prepared) => prepared,
            Err(error @ (Error::Left(_) | Error::Connection { .. } | Error::Slow { .. })) => {
                return Err(error);
            }
            Err(error) if error.is_io() && !error.is_transient() => return Err(error),
            // A temporary failure must not stop a replica for good: it reconnects.
            Err(Error::Log(LogError::Archive(to, error))) if error.may_pass() => {
                return Err(Error::Log(LogError::Archive(to, error)));
            }
            Err(error) => return farewell(&mut sink, error),
        };
        sink.progress = Some(Arc::clone(&dump.progress));
        if dump.semi_sync.is_some() {
            sink.begin_semi_sync();
        }
        if !mariadb::is_mariadb(kept.source) {
            sink.fit(self.fitting(variables));
        }
        let telemetry = &self.server.telemetry;
        let _session = spans::session(telemetry, dump.form, self.connection, self.user()).entered();
        let mut sender = Sender::new(&self.server, self.forms(&kept), dump, opened, sink);
        let ran = sender.run();
        if let Some(error) = ran.as_ref().err().and_then(Error::of_log) {
            kept.suspect(error);
        }
        match ran {
            Ok(()) => sender.sink()?.message(|out| EofPacket::default().encode(out)).map_err(broken),
            // If it could not be sent to, it can't be sent an error either.
            Err(error @ (Error::Left(_) | Error::Connection { .. } | Error::Slow { .. })) => Err(error),
            Err(error) if error.is_io() => Err(error),
            Err(Error::Log(LogError::Archive(to, error))) if error.may_pass() => {
                Err(Error::Log(LogError::Archive(to, error)))
            }
            Err(Error::Log(LogError::Payload(binlogz_payload::Error::Io(error))))
                if !is_transient(&error) =>
            {
                let Ok(sink) = sender.sink() else { return Err(broken(error)) };
                match sink.refusal() {
                    Some(why) => farewell(sink, Error::Refused(why)),
                    None => Err(broken(error)),
                }
            }
            Err(error) => match sender.sink() {
                Ok(sink) => farewell(sink, error),
                Err(_) => Err(error),
            },
        }
    }

    /// The client's profile: its account's, or the one that what it said so far tells.
    fn profile(&self, variables: &ClientVariables) -> &'static ReaderProfile {
        let given = self.account.as_ref().and_then(|entered| entered.account().reads);
        given.unwrap_or_else(|| {
            let signs = ClientSigns {
                attributes: &self.attributes,
                is_mariadb: announced::is_mariadb(variables),
                has_uuid: announced::replica_uuid(variables).is_some(),
                has_heartbeat: announced::heartbeat_period(variables).is_some(),
                has_checksum: announced::checksum(variables).is_some(),
                is_registered: self.server.registry.is_registered(self.connection),
            };
            signs.profile()
        })
    }

    /// The fitting of events for the client; `None`: it gets all as they are.
    fn fitting(&self, variables: &ClientVariables) -> Option<EventFitting> {
        let profile = self.profile(variables);
        let Some(entered) = &self.account else { return EventFitting::new(profile, &TableChoice::default()) };
        let account = entered.account();
        let mut own = *profile;
        if account.older_collations {
            own = own.with_older_collations();
        }
        if let Some(metadata) = account.row_metadata {
            own = own.with_row_metadata(metadata.treatment());
        }
        EventFitting::new(&own, &account.tables)
    }

    /// The form it is served if it names no file.
    pub(super) fn form(&self, kept: &LineageLog, variables: &ClientVariables) -> Result<Form> {
        if mariadb::is_mariadb(kept.source) {
            mariadb_source::log::check_account(self.account.as_ref().map(|entered| entered.account()))?;
            return Ok(Form::Received);
        }
        match self.policy() {
            FormPolicy::Always(form) => Ok(form),
            FormPolicy::Auto => {
                self.server.pins.form(self.user(), &self.who(variables), self.profile(variables).form)
            }
        }
    }

    /// The policy that decides if it names no file.
    fn policy(&self) -> FormPolicy {
        let own = self.account.as_ref().and_then(|entered| entered.account().form);
        own.unwrap_or(self.server.form)
    }

    /// The client's identity: its server uuid, or its program's name.
    fn who(&self, variables: &ClientVariables) -> String {
        let program = || self.attributes.iter().find(|(name, _)| name == "program_name");
        let who = announced::replica_uuid(variables).or_else(|| program().map(|(_, value)| value.clone()));
        who.unwrap_or_default()
    }

    /// Refuses a file with the source's own bytes, including payloads, to a client that would silently lose the rows
    /// in them. Such a client brings a file name that it got from the source itself. An account with a form of its
    /// own may read the file.
    fn check_payloads(
        &self,
        kept: &LineageLog,
        variables: &ClientVariables,
        (form, file): (Form, FormFile),
    ) -> Result<()> {
        let is_unknown = || match self.server.pins.known(self.user(), &self.who(variables)) {
            Some(pinned) => pinned == Form::Uncompressed,
            None => true,
        };
        if form != Form::Received
            || self.policy() != FormPolicy::Auto
            || self.profile(variables).reads_payloads()
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

    /// Waits until everything a client has of the source is stored here, or the source says that it has it too: then
    /// it will be. As at the source, only GTIDs with the source's own uuid count.
    ///
    /// # Errors
    ///
    /// The source lacks some of it. Or this could not be found out within [`AHEAD_MAX`]; the client may ask again.
    fn check_gtids(&self, kept: &LineageLog, gtid_set: &GtidSet) -> Result<()> {
        let of_source = of_server(gtid_set, kept.source);
        let until = Instant::now() + AHEAD_MAX;
        let mut why = String::new();
        loop {
            if of_source.is_subset(&kept.durable_gtids()) {
                return Ok(());
            }
            if kept.is_abandoned() {
                // When the client reconnects, it is compared with the source's new log.
                return Err(broken(std::io::Error::other("the source's log was reset")));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Ahead(format!(
                    "the replica has transactions of the source {} that are not here after {AHEAD_MAX:?}, and whether the \
                     source has them is not known: {why}",
                    kept.source
                )));
            }
            // Asked too late it would say only that there was no time.
            if why.is_empty() || left > TICK {
                why = match self.server.statements.intake.gtids_of_source(until) {
                    Ok(has) if of_source.is_subset(&has.gtids) => return Ok(()),
                    Ok(has) if has.server == kept.source && !has.is_relay => {
                        return Err(Error::Refused(MORE_GTIDS.into()));
                    }
                    Ok(has) if has.is_relay => "the relay that is followed lacks them too".to_owned(),
                    Ok(has) => format!("{} is followed at present, which lacks them", has.server),
                    // Transactions that can't be read here are missing too, and the client may have them from here.
                    Err(_) if !kept.store.damages().is_empty() => return Ok(()),
                    Err(why) => format!("the source can't be asked: {why}"),
                };
            }
            kept.store.wait_durable_beyond(kept.store.positions().map(|now| now.durable), TICK.min(left));
        }
    }

    /// Refuses a replica that has transactions of a log that was replaced when the source's log was reset.
    fn check_history(&self, kept: &LineageLog, replica: ServerUuid, gtid_set: &GtidSet) -> Result<()> {
        let served = &self.server.served;
        let has_more = |number: Option<u64>| {
            let Some(number) = number else { return Ok(false) };
            let common = self.server.lineages.in_common(kept, number)?;
            Ok::<_, Error>(common.is_some_and(|common| !of_server(gtid_set, kept.source).is_subset(&common)))
        };
        if !has_more(served.last(replica))? || !has_more(served.last_in_file(replica)?)? {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "The replica has transactions of a log that the source has reset or lost, under GTIDs that are others' now. \
             Build the replica anew; if that was done, remove {replica} from the relay's {}",
            last_served::NAME
        )))
    }

    /// The file of this name, which may be a purged one that can be brought back; `None` if no file is named.
    fn named(&self, kept: &LineageLog, name: &str, non_blocking: bool) -> Result<Option<(Form, FormFile)>> {
        if name.is_empty() {
            return Ok(None);
        }
        let lineages = &self.server.lineages;
        if let Some(elsewhere) = lineages.ambiguity(kept, name).or_else(|| lineages.bygone(kept, name)) {
            return Err(Error::Refused(match mariadb::is_mariadb(kept.source) {
                // It has no files of another form.
                true => format!(
                    "{name} is a file of a log that was kept before this one: begin by MariaDB's GTIDs"
                ),
                false => elsewhere,
            }));
        }
        let (form, number, found) = match self.forms(kept).find(name)? {
            Some(found) => found,
            None => return Err(self.exits().map_or_else(no_such_file, |exits| not_masked(exits, kept))),
        };
        let found = match found {
            FoundFile::None => self.coming_file(kept, (name, form, number), non_blocking)?,
            found => found,
        };
        let found = match found {
            FoundFile::File(file) => Some(file),
            FoundFile::Purged(_) => archiving::find(&self.server.housekeeping, kept, form, number)?,
            FoundFile::None => None,
        };
        found.map(|file| Some((form, file))).ok_or_else(no_such_file)
    }

    /// The file, of this log or an older one that it continues, from which on a client is sent all it lacks.
    fn behind(
        &self,
        kept: Arc<LineageLog>,
        replica: Option<ServerUuid>,
        gtid_set: &GtidSet,
    ) -> Result<(Arc<LineageLog>, FileNumber)> {
        let lineages = &self.server.lineages;
        if let Some(replica) = replica {
            self.check_history(&kept, replica, gtid_set)?;
        }
        self.check_gtids(&kept, gtid_set)?;
        let older = lineages.goes_on_from(&kept);
        for one in std::iter::once(kept).chain(older) {
            let mut file = last_with(&one, gtid_set)?;
            if file.is_none() {
                file = archiving::last_with(&self.server.housekeeping, &one, gtid_set)?;
            }
            if let Some(file) = file {
                return Ok((one, file));
            }
        }
        Err(archiving::purged())
    }

    /// Where a dump begins, or why it can't be served.
    fn start(
        &self,
        kept: &Arc<LineageLog>,
        variables: &ClientVariables,
        request: &DumpRequest,
        replica: Option<ServerUuid>,
    ) -> Result<DumpStart> {
        let is_mariadb = mariadb::is_mariadb(kept.source);
        if is_mariadb {
            let account = self.account.as_ref().map(|entered| entered.account());
            // Beside MariaDB's GTIDs a name says nothing, as for MariaDB itself: it is the last file that the client had, of any server.
            if let Some(state) = mariadb_source::log::check(variables, request, self.policy(), account)? {
                return self.start_in_domains(kept, &state);
            }
        }
        let (DumpRequest::ByPosition { name, .. } | DumpRequest::ByGtidSet { name, .. }) = request;
        let asked_name = String::from_utf8_lossy(name);
        // A file that a transaction has of its own is a place in its log. It isn't masked.
        let xa_file = XaFileName::parse(&asked_name).filter(|_| !is_mariadb && self.exits().is_none());
        let asked_file = xa_file.as_ref().map_or(&*asked_name, |file| &file.log);
        let named = self.named(kept, asked_file, request.is_non_blocking())?;
        match named {
            Some((form, _)) if is_mariadb && form != Form::Received => return Err(no_such_file()),
            Some(named) if !is_mariadb => self.check_payloads(kept, variables, named)?,
            Some(_) | None => {}
        }
        match (request, named) {
            (DumpRequest::ByPosition { position, .. }, named) => {
                let position = u64::from(*position);
                let place = match named {
                    Some(place) => place,
                    None => (self.form(kept, variables)?, FormFile::first_of(first_file(kept)?)),
                };
                let from = xa_file.as_ref().map_or(position, |file| file.offset);
                let inside = xa_file.is_some().then_some(XaFilePosition(position));
                Ok(DumpStart { inside, ..self.start_at(kept, place, from, format!("from {from}"))? })
            }
            (DumpRequest::ByGtidSet { position, gtid_set, .. }, Some(place)) => {
                // The server doesn't check a client that names a file. A dump that ends with the log may well
                // leave out what is not there; one that waits for more would miss it without a word.
                if !request.is_non_blocking() {
                    self.check_gtids(kept, gtid_set)?;
                }
                let from = xa_file.as_ref().map_or(*position, |file| file.offset);
                let start = self.start_at(kept, place, from, lacks(gtid_set))?;
                Ok(DumpStart { has: Some(gtid_set.clone()), ..start })
            }
            (DumpRequest::ByGtidSet { gtid_set, .. }, None) => {
                let (kept, file) = self.behind(Arc::clone(kept), replica, gtid_set)?;
                let form = self.form(&kept, variables)?;
                archiving::count_parts(&self.server.housekeeping, &kept, form, file)?;
                let lease = archiving::lease(&self.server.housekeeping, &kept, file)?;
                let file = kept.last_part_with(form, file, gtid_set)?;
                let (has, from) = (Some(gtid_set.clone()), MAGIC.len() as u64);
                let words = lacks(gtid_set);
                Ok(DumpStart { kept, form, file, from, inside: None, has, domains: None, lease, words })
            }
        }
    }

    /// From an offset of a file on.
    fn start_at(
        &self,
        kept: &Arc<LineageLog>,
        (form, file): (Form, FormFile),
        from: u64,
        words: String,
    ) -> Result<DumpStart> {
        let lease = archiving::lease_at(&self.server.housekeeping, kept, file.file, (form, from))?;
        let kept = Arc::clone(kept);
        Ok(DumpStart { kept, form, file, from, inside: None, has: None, domains: None, lease, words })
    }

    /// After the GTIDs of MariaDB that the client has, one a domain.
    fn start_in_domains(&self, kept: &Arc<LineageLog>, state: &[MariadbGtid]) -> Result<DumpStart> {
        let found = mariadb_source::start::find(kept, state)?;
        let place = (Form::Received, FormFile::first_of(found.file));
        let words = format!("what comes after [{}]", brief(state));
        let start = self.start_at(kept, place, MAGIC.len() as u64, words)?;
        Ok(DumpStart { domains: Some(found.pending), ..start })
    }

    /// Resolves a request, or says why it can't be served.
    fn prepare(
        &self,
        kept: &Arc<LineageLog>,
        variables: &ClientVariables,
        request: &DumpRequest,
    ) -> Result<(Arc<LineageLog>, DumpStream)> {
        let (DumpRequest::ByPosition { flags, server_id, .. }
        | DumpRequest::ByGtidSet { flags, server_id, .. }) = request;
        if let Some(only) = self.server.only_replica.filter(|only| only != server_id) {
            return Err(Error::Refused(format!(
                "these logs are served to the replica with server id {only} alone, and this one has {server_id}"
            )));
        }
        let uuid = announced::replica_uuid(variables);
        let replica = uuid.as_deref().and_then(|uuid| uuid.parse().ok());
        let DumpStart { kept, form, file, from, inside, has, domains, lease, words } =
            self.start(kept, variables, request, replica)?;
        if from < MAGIC.len() as u64 {
            return Err(Error::Refused(
                "Client requested source to start replication from position < 4".into(),
            ));
        }
        if let Some(replica) = replica {
            let connected =
                || self.server.dumps.seen().iter().filter_map(|dump| dump.reader.uuid.parse().ok()).collect();
            self.server.served.note(replica, kept.number, connected)?;
        }
        let replica_key = replica_key(uuid.as_deref(), *server_id);
        let profile = self.profile(variables);
        say!(
            self.server.telemetry,
            &format!(
                "connection {} of {} (server id {server_id}): {} {words}; profile {}",
                self.connection,
                self.user(),
                self.forms(&kept).name(form, kept.number_of(form, file)?),
                profile.name
            )
        );
        let reader = DumpClient {
            user: self.user().to_owned(),
            peer: self.peer,
            server_id: *server_id,
            uuid: uuid.unwrap_or_default(),
            form,
            is_masked: self.exits().is_some(),
            is_copy: self.is_copy(),
            lineage: kept.number,
            semi_sync: self.server.semi_sync && announced::semi_sync(variables),
            profile: profile.name,
            knows_payloads: profile.reads_payloads(),
        };
        let (progress, semi_sync) = self.begin(reader, &kept, file);
        let superseded = self.supersede(replica_key);
        let socket = self.socket.as_ref();
        let watch = socket.and_then(|(socket, departures)| departures.watch(self.connection, socket, &kept));
        let dump = DumpStream {
            progress,
            semi_sync,
            form,
            file,
            from,
            inside,
            has,
            domains,
            non_blocking: request.is_non_blocking(),
            heartbeat_period: announced::heartbeat_period(variables),
            // To MariaDB the flag means annotations.
            heartbeat_v2: !announced::is_mariadb(variables) && flags.contains(DumpFlags::HEARTBEAT_V2),
            checksum: announced::checksum(variables),
            lease,
            superseded,
            watch,
        };
        Ok((kept, dump))
    }

    /// Ends an earlier dump of the same replica. The flag is set once another dump takes the place of this one.
    fn supersede(&self, replica: Option<String>) -> Arc<AtomicBool> {
        let (superseded, supersedes) = self.server.registry.begin_dump(self.connection, replica);
        if supersedes {
            self.server.lineages.wake();
        }
        superseded
    }

    /// Enters a dump in the list of those that run.
    fn begin(
        &self,
        reader: DumpClient,
        kept: &LineageLog,
        file: FormFile,
    ) -> (Arc<DumpProgress>, Option<SemiSync>) {
        let (acknowledges, is_copy) = (reader.semi_sync, reader.is_copy);
        let progress = self.server.dumps.begin(self.connection, reader, file.file);
        let semi_sync = acknowledges.then(|| {
            let acknowledgements = is_copy.then(|| Arc::clone(&self.server.acknowledgements));
            SemiSync::new(self.connection, kept.number, acknowledgements, Arc::clone(&progress))
        });
        (progress, semi_sync)
    }
}

/// Where a dump begins.
struct DumpStart {
    kept: Arc<LineageLog>,
    form: Form,
    file: FormFile,
    /// The offset in that file, as the form counts.
    from: u64,
    inside: Option<XaFilePosition>,
    has: Option<GtidSet>,
    domains: Option<PendingDomains>,
    lease: Option<FileLease>,
    /// For the log.
    words: String,
}

/// The transactions that a client with these GTIDs lacks, in words for the log.
fn lacks(has: &GtidSet) -> String {
    format!("what is not in {}", has.brief())
}

fn brief(state: &[MariadbGtid]) -> String {
    state.iter().map(MariadbGtid::to_string).collect::<Vec<_>>().join(",")
}

fn first_file(kept: &LineageLog) -> Result<FileNumber> {
    kept.store.logs()?.first().map(|log| log.number).ok_or_else(no_such_file)
}

/// The last file whose previous GTIDs are all in this set.
fn last_with(kept: &LineageLog, gtid_set: &GtidSet) -> Result<Option<FileNumber>> {
    let mut damaged = None;
    for log in kept.store.logs()?.iter().rev() {
        match kept.store.previous_gtids(log.number) {
            Ok(before) if before.is_subset(gtid_set) => return Ok(Some(log.number)),
            Ok(_) => {}
            // Everything in this file comes after the earlier ones, too.
            Err(error @ binlogz_store::Error::Damaged { .. }) => damaged = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    damaged.map_or(Ok(None), |error| {
        let said = error.to_string();
        kept.suspect(&error.into());
        Err(Error::Log(LogError::DamagedLog(said)))
    })
}

/// The GTIDs of a set that come from one server.
fn of_server(gtid_set: &GtidSet, server: ServerUuid) -> GtidSet {
    let mut its = GtidSet::new();
    for (tsid, intervals) in gtid_set.iter().filter(|(tsid, _)| tsid.uuid == server) {
        intervals.iter().for_each(|interval| its.add_interval(*tsid, *interval));
    }
    its
}

/// MySQL 9.7's own message, with its slip.
const MORE_GTIDS: &str = "Replica has more GTIDs than the source has, using the source's SERVER_UUID. This may indicate \
                          that the the last binary log file was truncated or lost, e.g., after a power failure when \
                          sync_binlog != 1. The source may have rolled back transactions that were already replicated \
                          to the replica. Replicate any transactions that source has rolled back from replica to \
                          source, and/or commit empty transactions on source to account for transactions that have \
                          been committed on source but are not included in GTID_EXECUTED.";

/// The error for a file that an account with a policy may not read.
fn not_masked(exits: &MaskedForm, kept: &LineageLog) -> Error {
    Error::Refused(format!(
        "This account has a policy (exits), and reads masked files alone, whose names are {}.NNNNNN; their positions are others: begin one of \
         them at 4, or go on by GTID",
        exits.base(kept)
    ))
}

fn no_such_file() -> Error {
    Error::Refused("Could not find first log file name in binary log index file".into())
}

/// Tells the client why the dump ends, if possible, and logs it.
fn farewell(sink: &mut EventSink, error: Error) -> Result<()> {
    if !sink.is_inside_event() {
        let ServerError { code, sqlstate, message } =
            error.told(ServerError::SOURCE_FATAL_ERROR_READING_BINLOG);
        let packet = ErrPacket { code, sqlstate, message: message.as_bytes() };
        sink.message(|out| packet.encode(out)).map_err(broken)?;
    }
    Err(error)
}
