//! Sends events to a client, cut into packets: those of a file as they come, and those that are in no file.
//!
//! Follows the byte stream by the events' headers, so it knows each event's position in the file as the client sees
//! it. Leaves out events before the position that the client asked for.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader};
use binlogz_wire::event_packets::EventPackets;
use binlogz_wire::packet;

use crate::forms::translate::FormSink;
use crate::replicas::dumps::DumpProgress;
use crate::serve::older_collations::{Older, for_older, may_be_unknown};
use crate::serve::transport::Connection;

/// Bytes collected for each write.
const WRITE_SIZE: usize = 64 << 10;

/// An event that names collations is held whole for a replica older than 8.0: a statement of at most the server's own
/// default `max_allowed_packet`.
const HELD_SIZE_MAX: u32 = 64 << 20;

/// An event for a replica older than 8.0.
struct Held {
    of: Older,
    /// Whether the current event is held.
    is_current: bool,
    event: Vec<u8>,
}

pub(crate) struct EventSink {
    connection: Box<dyn Connection>,
    packets: EventPackets,
    out: Vec<u8>,
    /// The position of the next event in the file, or of the current one.
    position: u64,
    /// Events before this position are left out.
    from: u64,
    /// The event that ends here must be acknowledged.
    pub(crate) wants_ack_at: Option<u64>,
    /// All events are left out.
    pub(crate) leave_out: bool,
    header: Vec<u8>,
    /// Remaining bytes of the current event, not counting its header.
    left: u64,
    event_size: u64,
    sending: bool,
    refusal: Option<String>,
    /// The checksum algorithm of the current file.
    checksum: ChecksumAlgorithm,
    /// Set for a replica older than 8.0, whose collations are replaced.
    held: Option<Held>,
    /// When something was last sent.
    pub(crate) sent: Instant,
    /// Counts what is sent.
    pub(crate) progress: Option<Arc<DumpProgress>>,
}

impl EventSink {
    /// Packets are numbered starting at `sequence`.
    pub(crate) fn new(connection: impl Connection + 'static, sequence: u8) -> Self {
        EventSink {
            connection: Box::new(connection),
            packets: EventPackets::new(sequence),
            out: Vec::new(),
            position: 0,
            from: 0,
            wants_ack_at: None,
            leave_out: false,
            header: Vec::with_capacity(HEADER_SIZE),
            left: 0,
            event_size: 0,
            sending: false,
            refusal: None,
            checksum: ChecksumAlgorithm::NONE,
            held: None,
            sent: Instant::now(),
            progress: None,
        }
    }

    /// From now on events can be acknowledged.
    pub(crate) fn begin_semi_sync(&mut self) {
        self.packets.begin_semi_sync();
    }

    /// From now on, collations that replicas older than 8.0 don't know are replaced.
    pub(crate) fn replace_collations(&mut self, of: Older) {
        self.held = Some(Held { of, event: Vec::new(), is_current: false });
    }

    /// Continues at `position` of a file whose events have this checksum. The client wants events that begin at
    /// `from` or later.
    pub(crate) fn begin_file(&mut self, position: u64, from: u64, checksum: ChecksumAlgorithm) {
        (self.position, self.from, self.checksum) = (position, from, checksum);
    }

    /// Frees memory, before a pause.
    pub(crate) fn release(&mut self) {
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }

    /// The position of the next event in the file.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The position at which the client wants to begin.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Whether the client was sent only part of an event: nothing else can be sent then.
    pub(crate) fn is_inside_event(&self) -> bool {
        self.packets.is_open()
    }

    /// Sends an event that is in no file.
    pub(crate) fn say(&mut self, event: &[u8]) -> io::Result<()> {
        self.packets.begin(event.len() as u32, false, &mut self.out);
        self.packets.body(event, &mut self.out);
        self.flush()
    }

    /// Sends a message that isn't an event: the last of this dump.
    pub(crate) fn message(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        self.out.extend(packet::message_from(self.packets.sequence(), write));
        self.flush()
    }

    pub(crate) fn connection(&mut self) -> &mut dyn Connection {
        self.connection.as_mut()
    }

    /// Why an event was not written: the client can't have what it asked for.
    pub(crate) fn refusal(&mut self) -> Option<String> {
        self.refusal.take()
    }

    fn refuse(&mut self, why: String) -> io::Error {
        io::Error::other(self.refusal.insert(why).clone())
    }

    fn begin_event(&mut self) -> io::Result<()> {
        let header = EventHeader::decode(&self.header).map_err(io::Error::other)?;
        self.event_size = u64::from(header.event_size);
        self.left = self.event_size.saturating_sub(HEADER_SIZE as u64);
        if self.position < self.from && self.from < self.position + self.event_size {
            return Err(self.refuse(NOT_A_BOUNDARY.into()));
        }
        self.sending = !self.leave_out && self.position >= self.from;
        let may_be = |held: &Held| may_be_unknown(header.event_type, held.of);
        let is_held = self.sending && self.held.as_ref().is_some_and(may_be);
        if is_held && header.event_size > HELD_SIZE_MAX {
            return Err(self.untranslatable(&format!("{} bytes are too many to look at", header.event_size)));
        }
        if let Some(held) = self.held.as_mut().filter(|_| is_held) {
            held.is_current = true;
            held.event.clone_from(&self.header);
        } else if self.sending {
            self.packets.begin(header.event_size, self.wants_ack(), &mut self.out);
            self.packets.body(&self.header, &mut self.out);
        }
        Ok(())
    }

    fn wants_ack(&self) -> bool {
        self.wants_ack_at == Some(self.position + self.event_size)
    }

    fn body(&mut self, bytes: &[u8]) {
        match &mut self.held {
            Some(held) if held.is_current => held.event.extend_from_slice(bytes),
            _ if self.sending => self.packets.body(bytes, &mut self.out),
            _ => {}
        }
    }

    fn end_event(&mut self) -> io::Result<()> {
        let is_last = self.sending && self.wants_ack();
        if let Some(held) = self.held.as_mut().filter(|held| held.is_current) {
            held.is_current = false;
            let of = held.of;
            let event = std::mem::take(&mut held.event);
            let replaced = for_older(&event, self.checksum, of).map_err(|why| self.untranslatable(&why))?;
            self.packets.begin(event.len() as u32, self.wants_ack(), &mut self.out);
            self.packets.body(replaced.as_deref().unwrap_or(&event), &mut self.out);
        }
        self.header.clear();
        self.position += self.event_size;
        if is_last {
            self.flush()?;
            self.connection.restart_numbering();
        }
        Ok(())
    }

    /// Ends a dump to a replica older than 8.0, before this event.
    fn untranslatable(&mut self, why: &str) -> io::Error {
        let place = self.position;
        let message = format!("the event at {place} can't be made readable for servers before 8.0: {why}");
        self.refuse(message)
    }
}

/// The error for a client that begins inside an event.
const NOT_A_BOUNDARY: &str = "bogus data in log event: no event begins at the requested position";

impl FormSink for EventSink {
    fn skip_to(&mut self, position: u64) {
        self.position = position;
    }
}

impl Write for EventSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.header.len() < HEADER_SIZE {
                let room = HEADER_SIZE - self.header.len();
                let (now, behind) = rest.split_at_checked(room).unwrap_or((rest, &[]));
                self.header.extend_from_slice(now);
                rest = behind;
                if self.header.len() == HEADER_SIZE {
                    self.begin_event()?;
                    if self.left == 0 {
                        self.end_event()?;
                    }
                }
                continue;
            }
            // A large event goes out in pieces, although it arrives whole.
            let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(WRITE_SIZE);
            let (now, behind) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            self.body(now);
            self.left -= now.len() as u64;
            rest = behind;
            if self.left == 0 {
                self.end_event()?;
            }
            if self.out.len() >= WRITE_SIZE {
                self.flush()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.connection.send(&self.out)?;
            if let Some(progress) = &self.progress {
                progress.sent(self.out.len());
            }
            self.out.clear();
            self.sent = Instant::now();
        }
        Ok(())
    }
}
