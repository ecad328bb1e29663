//! What a client is sent: events of a file as they come, cut into packets, and events that are in no file.
//!
//! Follows the stream of bytes by the events' headers, so that it knows where each event stands in the file as the
//! client sees it, and leaves out those in front of where the client wants to begin.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use binlogz_binlog::EventHeader;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_wire::event_packets::EventPackets;

use crate::dumps::Progress;
use crate::translate::FormSink;
use crate::transport::Transport;

/// Bytes collected for one write.
const WRITE_SIZE: usize = 64 << 10;

/// Sends events.
pub(crate) struct EventSink {
    transport: Transport,
    packets: EventPackets,
    out: Vec<u8>,
    /// Where the next event begins in the file, or the current one began.
    position: u64,
    /// Events in front of this place are left out.
    from: u64,
    /// The event that ends here is to be acknowledged.
    pub(crate) wants_ack_at: Option<u64>,
    /// All are left out.
    pub(crate) leave_out: bool,
    header: Vec<u8>,
    /// Bytes of the current event still to come, its header not counted.
    left: u64,
    event_size: u64,
    sending: bool,
    /// When something was sent last.
    pub(crate) sent: Instant,
    /// Who counts what is sent.
    pub(crate) progress: Option<Arc<Progress>>,
}

impl EventSink {
    /// Packets are numbered from `sequence` on.
    pub(crate) fn new(transport: Transport, sequence: u8) -> Self {
        EventSink {
            transport,
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
            sent: Instant::now(),
            progress: None,
        }
    }

    /// From now on events can be acknowledged.
    pub(crate) fn begin_semi_sync(&mut self) {
        self.packets.begin_semi_sync();
    }

    /// Goes on at `position` of a file; the client wants what begins at `from` or later.
    pub(crate) fn begin_file(&mut self, position: u64, from: u64) {
        (self.position, self.from) = (position, from);
    }

    /// Gives memory back: nothing is to come for a while.
    pub(crate) fn release(&mut self) {
        if self.out.is_empty() {
            self.out = Vec::new();
        }
    }

    /// Where the next event begins in the file.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Where the client wants to begin.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Whether the client is in the middle of an event: nothing else can be said then.
    pub(crate) fn is_inside_event(&self) -> bool {
        self.packets.is_open()
    }

    /// The number of the next packet.
    pub(crate) fn sequence(&self) -> u8 {
        self.packets.sequence()
    }

    /// Sends an event that is in no file.
    pub(crate) fn say(&mut self, event: &[u8]) -> io::Result<()> {
        self.packets.begin(event.len() as u32, false, &mut self.out);
        self.packets.body(event, &mut self.out);
        self.flush()
    }

    /// Sends bytes that are no event.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        self.flush()
    }

    /// The connection.
    pub(crate) fn transport(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// The header is whole.
    fn begin_event(&mut self) -> io::Result<()> {
        let header = EventHeader::decode(&self.header).map_err(io::Error::other)?;
        self.event_size = u64::from(header.event_size);
        self.left = self.event_size.saturating_sub(HEADER_SIZE as u64);
        if self.position < self.from && self.from < self.position + self.event_size {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, NOT_A_BOUNDARY));
        }
        self.sending = !self.leave_out && self.position >= self.from;
        if self.sending {
            let wants_ack = self.wants_ack_at == Some(self.position + self.event_size);
            self.packets.begin(header.event_size, wants_ack, &mut self.out);
            self.packets.body(&self.header, &mut self.out);
        }
        Ok(())
    }

    fn end_event(&mut self) {
        self.header.clear();
        self.position += self.event_size;
    }
}

/// What a client is told that begins inside an event.
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
                        self.end_event();
                    }
                }
                continue;
            }
            // A large event goes out piece by piece, as it is handed in whole.
            let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(WRITE_SIZE);
            let (now, behind) = rest.split_at_checked(room).unwrap_or((rest, &[]));
            if self.sending {
                self.packets.body(now, &mut self.out);
            }
            self.left -= now.len() as u64;
            rest = behind;
            if self.left == 0 {
                self.end_event();
            }
            if self.out.len() >= WRITE_SIZE {
                self.flush()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.out.is_empty() {
            self.transport.send(&self.out)?;
            if let Some(progress) = &self.progress {
                progress.sent(self.out.len());
            }
            self.out.clear();
            self.sent = Instant::now();
        }
        Ok(())
    }
}
