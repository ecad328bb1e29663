//! Receives a server's binary log.

use binlogz_binlog::{EVENT_SIZE_MAX, EventHeader, Framing, UnverifiedFrame};
use binlogz_wire::compressed::ConnectionCompression;
use binlogz_wire::session::{
    ClientProfile, DumpStart, EventPiece, ReceiveOptions, SourceIdentity, SourceSession, SourceStep,
};

use crate::connect_options::ConnectOptions;
use crate::error::Result;
use crate::link::{Link, ReceiveResult};
use crate::socket::HangUp;

/// The logs to receive, and how.
#[derive(Debug, Clone)]
pub struct DumpOptions {
    /// The server id (and the like) that the source sees.
    pub profile: ClientProfile,
    /// The server id of the reader; with 0 the server does not wait at the end of the log.
    pub server_id: u32,
    /// Where to begin.
    pub start: DumpStart,
    /// Whether to end at the end of the log instead of waiting for more.
    pub non_blocking: bool,
    /// Whether the checksum of every event is compared.
    pub verify_checksums: bool,
}

impl DumpOptions {
    /// A file from an offset to the end of the log, as `mysqlbinlog --read-from-remote-server` reads it.
    pub fn to_the_end(name: &str, position: u64) -> Self {
        DumpOptions {
            profile: ClientProfile::Mysqlbinlog,
            server_id: 0,
            start: DumpStart::Position { name: name.to_owned(), position },
            non_blocking: true,
            verify_checksums: false,
        }
    }
}

/// An event as it was received, whole.
#[derive(Debug, Clone, Copy)]
pub struct RemoteEvent<'a> {
    /// The source's file, without directory.
    pub name: &'a [u8],
    /// The event's offset in that file or, for an event that is in no file, the stream's offset.
    pub offset: u64,
    /// Whether it is in the source's file; otherwise the sender made it (rotates before each file,
    /// heartbeats).
    pub is_stored: bool,
    /// The event's header.
    pub header: EventHeader,
    /// The whole event: header, body, checksum.
    pub bytes: &'a [u8],
    framing: Framing,
}

impl<'a> RemoteEvent<'a> {
    /// How the event is framed.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// The event as a frame, its checksum not checked.
    pub fn frame(&self) -> binlogz_binlog::Result<UnverifiedFrame<'a>> {
        self.framing.next_frame(self.bytes)?.ok_or(binlogz_binlog::Error::Truncated {
            needed: u64::from(self.header.event_size),
            left: self.bytes.len() as u64,
        })
    }
}

/// A binary log that a server sends.
#[derive(Debug)]
pub struct RemoteLog {
    link: Link,
    session: SourceSession,
    options: ConnectOptions,
    /// Bytes of input that the last poll took.
    taken: usize,
    /// An event that arrived in pieces.
    event: Vec<u8>,
}

impl RemoteLog {
    /// Connects; the first event asked for also logs in and requests the dump.
    pub fn open(connect: &ConnectOptions, dump: DumpOptions) -> Result<Self> {
        let options = ReceiveOptions {
            login: connect.login()?,
            profile: dump.profile,
            server_id: dump.server_id,
            start: dump.start,
            non_blocking: dump.non_blocking,
            verify_checksums: dump.verify_checksums,
            timeouts: connect.timeouts,
        };
        let link = Link::connect(connect)?;
        let session = SourceSession::new(options, link.now());
        Ok(RemoteLog { link, session, options: connect.clone(), taken: 0, event: Vec::new() })
    }

    /// A handle to end this connection from another thread.
    pub fn hang_up(&self) -> std::io::Result<HangUp> {
        self.link.hang_up()
    }

    /// The source's own account of itself; complete once there was an event.
    pub fn identity(&self) -> Option<&SourceIdentity> {
        self.session.identity()
    }

    /// The stream's current file on the source, and where its next event begins.
    pub fn position(&self) -> Option<(&[u8], u64)> {
        self.session.position()
    }

    /// The next event, whole; `None` at the end of the log. It is held in memory as it arrives.
    pub fn next_event(&mut self) -> Result<Option<RemoteEvent<'_>>> {
        self.event.clear();
        while self.advance()? {
            let Some(piece) = self.session.event(self.link.taken(self.taken)) else { continue };
            if piece.begins && piece.ends {
                break;
            }
            if piece.begins {
                // Events arrive at hundreds of megabytes a second: growing step by step would copy them
                // again.
                let size = piece.header.event_size.min(EVENT_SIZE_MAX) as usize;
                self.event.reserve(size.min(RESERVE_MAX));
            }
            self.event.extend_from_slice(piece.bytes);
            if piece.ends {
                break;
            }
        }
        let Some(piece) = self.session.event(self.link.taken(self.taken)) else { return Ok(None) };
        let bytes = if self.event.is_empty() { piece.bytes } else { &self.event };
        Ok(Some(RemoteEvent {
            name: piece.name,
            offset: piece.offset,
            is_stored: piece.is_stored(),
            header: piece.header,
            bytes,
            framing: piece.framing,
        }))
    }

    /// The next bytes of an event, as they arrive; `None` at the end of the log. Nothing is held, however
    /// large the event.
    pub fn next_piece(&mut self) -> Result<Option<EventPiece<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        Ok(self.piece())
    }

    /// The last result of [`RemoteLog::next_piece`].
    pub fn piece(&self) -> Option<EventPiece<'_>> {
        self.session.event(self.link.taken(self.taken))
    }

    /// Whether everything received was passed on: the next read waits.
    pub fn is_drained(&self) -> bool {
        self.link.input().is_empty()
    }

    /// Whether more was received than passed on: the next piece may be available without waiting.
    pub fn has_input(&self) -> bool {
        !self.link.input().is_empty()
    }

    /// Tells the source that everything up to a position is safe here (semi-synchronous replication).
    pub fn acknowledge(&mut self, name: &[u8], position: u64) -> Result<()> {
        self.session.acknowledge(name, position);
        let pending = self.session.pending();
        let count = pending.len();
        self.link.send_beside(pending, "acknowledging")?;
        self.session.sent(count);
        Ok(())
    }

    /// The connection's compression, once it has any.
    pub fn compression(&self) -> Option<ConnectionCompression> {
        self.link.compression()
    }

    /// Continues until there are bytes of an event; `false` at the end of the log.
    fn advance(&mut self) -> Result<bool> {
        loop {
            let input = self.link.input();
            let mut rest = input;
            let step = self.session.poll(&mut rest, self.link.now());
            self.taken = input.len() - rest.len();
            self.link.take(self.taken);
            let step = step.map_err(|error| self.link.wire_error(error))?;
            // The login's last message comes from the server, so ours follow it.
            self.link.compress_with(self.session.compression());
            self.send()?;
            match step {
                SourceStep::Event => {
                    // After an event that the source wants acknowledged, it restarts its numbering: its
                    // packets from 1, as the session does, compressed ones from 0.
                    if self.link.compression().is_some()
                        && self.piece().is_some_and(|piece| piece.ends && piece.wants_ack)
                    {
                        self.link.expect_sequence(0);
                    }
                    return Ok(true);
                }
                SourceStep::End => return Ok(false),
                SourceStep::NeedInput => {
                    if self.link.receive(self.session.deadline(), "receiving the binary log")?
                        == ReceiveResult::End
                    {
                        return Err(self.link.wire_error(self.session.closed()));
                    }
                }
                SourceStep::StartTls => {
                    self.link.start_tls(&self.options, self.session.deadline())?;
                    self.session.tls_started().map_err(|error| self.link.wire_error(error))?;
                }
            }
        }
    }

    fn send(&mut self) -> Result<()> {
        let pending = self.session.pending().len();
        if pending > 0 {
            self.link.send(self.session.pending(), "asking for the binary log")?;
            self.session.sent(pending);
        }
        Ok(())
    }
}

/// Bytes allocated because of an event's declared size alone.
const RESERVE_MAX: usize = 16 << 20;
