//! Sends events to a client, cut into packets: those of a file as they come, and those that are in no file.
//!
//! Follows the byte stream by the events' headers, so it knows each event's position in the file as the client sees
//! it. Leaves out events before the position that the client asked for.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader};
use binlogz_relay_forms::FormSink;
use binlogz_wire::event_packets::EventPackets;
use binlogz_wire::packet;

use crate::replicas::dumps::DumpProgress;
use crate::serve::older_collations::{OlderServer, for_older, may_be_unknown};
use crate::serve::transport::DumpConnection;
use crate::serve::xa;

/// Bytes collected for each write.
const WRITE_SIZE: usize = 64 << 10;

/// An event that names collations is held whole for a replica older than 8.0: a statement of at most the server's own
/// default `max_allowed_packet`.
const HELD_SIZE_MAX: u32 = 64 << 20;

/// Events for a replica that does not know all that the source writes.
#[derive(Default)]
struct WithheldEvents {
    /// Set for a replica older than 8.0, whose collations are replaced.
    older: Option<OlderServer>,
    /// Set for a replica that would not apply XA transactions as the source did: its kind.
    without_xa: Option<&'static str>,
    /// Whether the current event is held, and until when.
    current: WithheldState,
    event: Vec<u8>,
    /// The last event, which begins a transaction, and its position: held until the next one tells whether that may be sent.
    front: Vec<u8>,
    front_at: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum WithheldState {
    /// It is not held.
    #[default]
    Nothing,
    /// To be sent before the next event.
    Front,
    /// To be looked at when it is whole.
    Event,
}

impl WithheldEvents {
    fn holding(&self, header: &EventHeader) -> WithheldState {
        let is_xa = self.without_xa.is_some();
        if is_xa && header.event_type.is_gtid() {
            return WithheldState::Front;
        }
        let may_be_unknown = self.older.is_some_and(|older| may_be_unknown(header.event_type, older));
        match may_be_unknown || is_xa && xa::may_be(header) {
            true => WithheldState::Event,
            false => WithheldState::Nothing,
        }
    }
}

pub(crate) struct EventSink {
    connection: Box<dyn DumpConnection>,
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
    /// Set for a replica that does not know all that the source writes.
    held: Option<WithheldEvents>,
    /// When something was last sent.
    pub(crate) sent: Instant,
    /// Counts the bytes sent.
    pub(crate) progress: Option<Arc<DumpProgress>>,
}

impl EventSink {
    /// Packets are numbered starting at `sequence`.
    pub(crate) fn new(connection: impl DumpConnection + 'static, sequence: u8) -> Self {
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
    pub(crate) fn replace_collations(&mut self, of: OlderServer) {
        self.held.get_or_insert_default().older = Some(of);
    }

    /// From now on, a dump to such a replica ends before an XA transaction.
    pub(crate) fn end_before_xa(&mut self, kind: &'static str) {
        self.held.get_or_insert_default().without_xa = Some(kind);
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

    pub(crate) fn connection(&mut self) -> &mut dyn DumpConnection {
        self.connection.as_mut()
    }

    /// Why an event was not written: the client can't have it.
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
        let holding = match &self.held {
            Some(held) if self.sending => held.holding(&header),
            Some(_) | None => WithheldState::Nothing,
        };
        if holding == WithheldState::Event && header.event_size > HELD_SIZE_MAX {
            return Err(self.untranslatable(&format!("{} bytes are too many to look at", header.event_size)));
        }
        if let Some(held) = &mut self.held {
            held.current = holding;
            if holding == WithheldState::Event {
                held.event.clone_from(&self.header);
            }
        }
        if holding == WithheldState::Event {
            return Ok(());
        }
        if self.sending {
            self.send_front();
        }
        match (&mut self.held, holding) {
            (Some(held), WithheldState::Front) => {
                held.front.clone_from(&self.header);
                held.front_at = self.position;
            }
            _ if self.sending => {
                self.packets.begin(header.event_size, self.wants_ack(), &mut self.out);
                self.packets.body(&self.header, &mut self.out);
            }
            _ => {}
        }
        Ok(())
    }

    /// Sends the event that begins a transaction, if it is held.
    fn send_front(&mut self) {
        let Some(held) = self.held.as_mut().filter(|held| !held.front.is_empty()) else { return };
        self.packets.begin(held.front.len() as u32, false, &mut self.out);
        self.packets.body(&held.front, &mut self.out);
        held.front.clear();
    }

    fn wants_ack(&self) -> bool {
        self.wants_ack_at == Some(self.position + self.event_size)
    }

    fn body(&mut self, bytes: &[u8]) {
        match &mut self.held {
            Some(WithheldEvents { current: WithheldState::Event, event, .. }) => {
                event.extend_from_slice(bytes)
            }
            Some(WithheldEvents { current: WithheldState::Front, front, .. }) => {
                front.extend_from_slice(bytes)
            }
            _ if self.sending => self.packets.body(bytes, &mut self.out),
            _ => {}
        }
    }

    fn end_event(&mut self) -> io::Result<()> {
        let is_last = self.sending && self.wants_ack();
        let held = self.held.as_mut();
        if let Some(held) = held.filter(|held| held.current == WithheldState::Event) {
            held.current = WithheldState::Nothing;
            let (older, event) = (held.older, std::mem::take(&mut held.event));
            let kind = held.without_xa.filter(|_| xa::is(&event, self.checksum));
            let place = if held.front.is_empty() { self.position } else { held.front_at };
            if let Some(kind) = kind {
                return Err(self.refuse(xa::refusal(kind, place)));
            }
            let replaced = match older {
                Some(older) => {
                    for_older(&event, self.checksum, older).map_err(|why| self.untranslatable(&why))?
                }
                None => None,
            };
            self.send_front();
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

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use binlogz_binlog::{EventType, HeaderFlags};
    use binlogz_testkit::builder::{EndPositions, LogBuilder, Release, query};

    use super::*;

    #[derive(Clone, Default)]
    struct Taken(Arc<Mutex<Vec<u8>>>);

    impl DumpConnection for Taken {
        fn read_at_hand(&mut self, _: &mut [u8]) -> io::Result<Option<usize>> {
            Ok(None)
        }

        fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.0.lock().extend_from_slice(bytes);
            Ok(())
        }
    }

    /// The bytes that a client is sent of these events, and the reason why no more.
    fn sent(events: &[u8], kind: Option<&'static str>, size: usize) -> (Vec<u8>, Option<String>) {
        let taken = Taken::default();
        let mut sink = EventSink::new(taken.clone(), 1);
        sink.begin_file(4, 4, ChecksumAlgorithm::CRC32);
        kind.into_iter().for_each(|kind| sink.end_before_xa(kind));
        let ended = events.chunks(size).try_for_each(|piece| sink.write_all(piece));
        let refusal = sink.refusal();
        assert_eq!(ended.is_err(), refusal.is_some());
        assert!(!sink.is_inside_event());
        sink.flush().unwrap();
        let bytes = taken.0.lock().clone();
        (bytes, refusal)
    }

    fn events(fill: impl FnOnce(&mut LogBuilder)) -> Vec<u8> {
        let mut log = LogBuilder::with(Release::MYSQL_9_7, ChecksumAlgorithm::CRC32, HeaderFlags::default());
        log.take();
        log.positions(EndPositions::Own);
        fill(&mut log);
        log.take()
    }

    #[test]
    fn a_replica_that_can_not_follow_xa_gets_all_before_it_and_nothing_of_it() {
        let plain = |log: &mut LogBuilder| {
            log.transaction(&[b"one", &[7; 70_000]]);
            log.transaction_of(&[(EventType::QUERY, query("CREATE TABLE t (xa INT)"))]);
        };
        let before = events(plain);
        let xa = |statement: &str| {
            events(|log| {
                plain(log);
                log.transaction_of(&[
                    (EventType::QUERY, query(statement)),
                    (EventType::XA_PREPARE, vec![0; 13]),
                ]);
            })
        };
        for size in [1, 30, 1 << 20] {
            let all = sent(&before, None, size);
            assert_eq!(all.1, None);
            assert!(sent(&before, Some("MariaDB"), size) == all, "in order and as they are");
            for statement in
                ["XA START X'7131',X'',1", "XA ROLLBACK X'7131',X'',1", "xa commit X'7131',X'',1"]
            {
                let log = xa(statement);
                let (bytes, refusal) = sent(&log, Some("MariaDB"), size);
                let refusal = refusal.unwrap();
                assert!(bytes == all.0, "{statement}: {} and {} bytes", bytes.len(), all.0.len());
                // The place of the event that begins the transaction.
                let place = format!("the transaction at {} is an XA transaction", 4 + before.len());
                assert!(refusal.starts_with(&place), "{refusal}");
                assert_eq!(sent(&log, None, size).1, None, "others get it");
            }
        }
        // One that is only prepared there, its beginning elsewhere.
        let prepared = events(|log| {
            log.event(EventType::XA_PREPARE, &[0; 13]);
        });
        assert_eq!(sent(&prepared, Some("MariaDB"), 7).0, b"");
    }
}
