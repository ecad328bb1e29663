//! A replica's conversation with its source: logs in, sends the statements, requests the dump, receives
//! events.

use std::time::Duration;

use binlogz_binlog::gtid::{GtidSet, GtidSetFormat};

use super::client::{ClientSession, ClientStep, Timeouts};
use super::login::LoginOptions;
use super::setup::{ClientProfile, Setup, SourceIdentity};
use super::stream::{Delivery, EventPiece, FedPiece, MessageStream, StreamRules};
use crate::command::Command;
use crate::compressed::ConnectionCompression;
use crate::dump_request::{DumpFlags, DumpRequest};
use crate::error::{Error, Result};
use crate::semi_sync::SemiSyncAck;

/// Sources know tagged GTIDs since 8.3.0.
const FIRST_WITH_TAGS: (u32, u32) = (8, 3);

/// Where a dump begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpStart {
    /// At an offset of a file.
    Position {
        /// The file, without directory; empty for the first.
        name: String,
        /// Offset in bytes: where an event begins, at least 4.
        position: u64,
    },
    /// With the first transaction that is not in a GTID set.
    GtidSet {
        /// The GTIDs that are not to be sent.
        gtid_set: GtidSet,
        /// The file to begin with, as mysqlbinlog asks; empty leaves it to the source, as replicas do.
        name: String,
        /// Offset in that file; 4 without a name.
        position: u64,
    },
}

/// How to receive a source's binary log.
#[derive(Debug, Clone)]
pub struct ReceiveOptions {
    /// How to log in.
    pub login: LoginOptions,
    /// The kind of client that the source believes it is talking to.
    pub profile: ClientProfile,
    /// The replica's own server id. With 0, which mysqlbinlog uses unless it waits for more, the source never
    /// waits.
    pub server_id: u32,
    /// Where the dump begins.
    pub start: DumpStart,
    /// Whether the stream ends at the end of the log instead of waiting for more.
    pub non_blocking: bool,
    /// Whether to check every event's checksum.
    pub verify_checksums: bool,
    /// How long the session waits.
    pub timeouts: Timeouts,
}

/// The next need or result of a [`SourceSession`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceStep {
    /// Send the pending bytes, then come back with more bytes, or at the deadline.
    NeedInput,
    /// Send the pending bytes, switch to TLS, then call [`SourceSession::tls_started`].
    StartTls,
    /// The next bytes of an event: see [`SourceSession::event`].
    Event,
    /// The end of the log, in a dump that does not wait. Nothing follows.
    End,
}

/// A replica's side of a connection to its source.
#[derive(Debug)]
pub struct SourceSession {
    client: ClientSession,
    options: ReceiveOptions,
    setup: Setup,
    identity: Option<SourceIdentity>,
    /// Set once the dump was requested.
    stream: Option<MessageStream>,
    /// The last poll's result: the bytes of an event and where they end in its input.
    found: Option<(Delivery, usize)>,
    ended: bool,
}

impl SourceSession {
    /// A session on a new connection.
    pub fn new(options: ReceiveOptions, now: Duration) -> Self {
        SourceSession {
            client: ClientSession::new(options.login.clone(), options.timeouts, now),
            setup: Setup::new(&options.profile, options.server_id),
            options,
            identity: None,
            stream: None,
            found: None,
            ended: false,
        }
    }

    /// The source's account of itself, once logged in; complete once events arrive.
    pub fn identity(&self) -> Option<&SourceIdentity> {
        self.identity.as_ref()
    }

    /// The source's file that the stream is in, and where the next event begins.
    pub fn position(&self) -> Option<(&[u8], u64)> {
        let stream = self.stream.as_ref()?;
        (!stream.name().is_empty()).then(|| (stream.name(), stream.position()))
    }

    /// The compression for all bytes from now on: see [`ClientSession::compression`].
    pub fn compression(&self) -> Option<ConnectionCompression> {
        self.client.compression()
    }

    /// Bytes to be sent. After sending, call [`SourceSession::sent`].
    pub fn pending(&self) -> &[u8] {
        self.client.pending()
    }

    /// Drops the first `count` pending bytes, which were sent.
    pub fn sent(&mut self, count: usize) {
        self.client.sent(count);
    }

    /// When the session gives up unless more arrives; `None` means never.
    pub fn deadline(&self) -> Option<Duration> {
        self.client.deadline()
    }

    /// TLS is established: everything that follows goes through it.
    pub fn tls_started(&mut self) -> Result<()> {
        self.client.tls_started()
    }

    /// The error for a connection that ended at this point.
    pub fn closed(&self) -> Error {
        match &self.stream {
            Some(stream) => Error::Closed { doing: stream.doing() },
            None => self.client.closed(),
        }
    }

    /// Acknowledges all events up to a position for semi-synchronous replication: they are safe here.
    pub fn acknowledge(&mut self, name: &[u8], position: u64) {
        self.client.acknowledge(&SemiSyncAck { position, name });
    }

    /// Takes bytes from the start of `input`, all of them if it returns [`SourceStep::NeedInput`].
    ///
    /// # Errors
    ///
    /// Every error ends the session: the connection is no longer usable.
    pub fn poll(&mut self, input: &mut &[u8], now: Duration) -> Result<SourceStep> {
        self.found = None;
        if self.ended {
            return Ok(SourceStep::End);
        }
        let size = input.len();
        if self.stream.is_none() {
            match self.prepare(input, now)? {
                ClientStep::NeedInput => return Ok(SourceStep::NeedInput),
                ClientStep::StartTls => return Ok(SourceStep::StartTls),
                ClientStep::LoggedIn | ClientStep::Answer(_) => {}
            }
        }
        let Some(stream) = &mut self.stream else { return Ok(SourceStep::NeedInput) };
        while let Some(piece) = self.client.next_piece(input, now, || stream.doing())? {
            match stream.feed(piece)? {
                FedPiece::Nothing => {}
                FedPiece::End => {
                    self.ended = true;
                    return Ok(SourceStep::End);
                }
                FedPiece::Event(delivery) => {
                    if delivery.ends && stream.wants_ack() {
                        // The source restarts its packet numbers after an event that it wants acknowledged.
                        self.client.expect_sequence(1);
                    }
                    self.found = Some((delivery, size - input.len()));
                    return Ok(SourceStep::Event);
                }
            }
        }
        Ok(SourceStep::NeedInput)
    }

    /// The bytes of an event that the last poll found; `input` is the slice given to that poll. `None` if it found none.
    pub fn event<'a>(&'a self, input: &'a [u8]) -> Option<EventPiece<'a>> {
        let (delivery, end) = self.found?;
        Some(self.stream.as_ref()?.view(delivery, input.get(..end)?))
    }

    /// Everything before the dump. Returns a step other than a request for input or TLS once the dump was
    /// requested.
    fn prepare(&mut self, input: &mut &[u8], now: Duration) -> Result<ClientStep> {
        loop {
            let step = self.client.poll(input, now)?;
            match &step {
                ClientStep::NeedInput | ClientStep::StartTls => return Ok(step),
                ClientStep::LoggedIn => {
                    let greeting = self.client.greeting().cloned();
                    self.identity = greeting.map(SourceIdentity::of);
                }
                ClientStep::Answer(answer) => {
                    if let Some(identity) = &mut self.identity {
                        self.setup.answer(answer.clone(), self.client.doing(), identity)?;
                    }
                }
            }
            match self.setup.next() {
                Some((command, doing)) => self.client.ask(&command.borrow(), doing, now)?,
                None => {
                    self.request_dump(now)?;
                    return Ok(step);
                }
            }
        }
    }

    fn request_dump(&mut self, now: Duration) -> Result<()> {
        let Some(identity) = &self.identity else {
            return Err(Error::Usage("a dump was requested before login".into()));
        };
        let request = self.dump_request(identity)?;
        self.stream = Some(MessageStream::new(StreamRules {
            announced: identity.announced_checksum,
            semi_sync: identity.semi_sync,
            has_gaps: matches!(request, DumpRequest::ByGtidSet { .. }),
            is_mariadb: identity.is_mariadb,
            verify: self.options.verify_checksums,
        }));
        self.client.dump(&Command::Dump(request), "waiting for the first event".into(), now)
    }

    fn dump_request(&self, identity: &SourceIdentity) -> Result<DumpRequest> {
        let ReceiveOptions { server_id, non_blocking, .. } = self.options;
        let mut flags = DumpFlags::default();
        if non_blocking {
            flags = flags | DumpFlags::NON_BLOCK;
        }
        if identity.is_mariadb {
            flags = flags | DumpFlags::ANNOTATE_ROWS;
        } else if matches!(self.options.profile, ClientProfile::Replica(_)) {
            flags = flags | DumpFlags::HEARTBEAT_V2;
        }
        match &self.options.start {
            DumpStart::Position { name, position } => {
                let position = u32::try_from(*position).map_err(|_| {
                    Error::Usage(format!(
                        "position {position} can't be asked for: a dump by position begins below 4 GiB, \
                         one by GTID anywhere"
                    ))
                })?;
                Ok(DumpRequest::ByPosition { flags, server_id, name: name.clone().into_bytes(), position })
            }
            DumpStart::GtidSet { .. } if identity.is_mariadb => Err(Error::Unsupported(format!(
                "{} is asked for transactions by MySQL's GTIDs, which MariaDB doesn't have: ask for a log by its name",
                identity.greeting.server_version
            ))),
            DumpStart::GtidSet { gtid_set, name, position } => {
                let mut format = gtid_set.format();
                if format == GtidSetFormat::Tagged && !knows_tags(&identity.greeting.server_version) {
                    format = GtidSetFormat::Untagged;
                    flags = flags | DumpFlags::SKIP_TAGGED_GTIDS;
                }
                Ok(DumpRequest::ByGtidSet {
                    flags,
                    server_id,
                    name: name.clone().into_bytes(),
                    position: *position,
                    gtid_set: gtid_set.clone(),
                    format,
                })
            }
        }
    }
}

fn knows_tags(server_version: &str) -> bool {
    let mut parts = server_version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= FIRST_WITH_TAGS
}
