//! Sends events to a client, cut into packets: those of a file as they come, and those that are in no file.
//!
//! Follows the byte stream by the events' headers, so it knows each event's position in the file as the client sees
//! it. Leaves out events before the position that the client asked for. `fitting` decides what a client that can't read
//! all gets in an event's place.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventClass, EventHeader};
use binlogz_relay_forms::FormSink;
use binlogz_wire::event_packets::EventPackets;
use binlogz_wire::packet;

use crate::replicas::dumps::DumpProgress;
use crate::serve::connections::transport::DumpConnection;
use crate::serve::events::fitting::{EventCare, EventFitting, EventPlace, FittedEvent, QueuedEvent, filler};
use crate::serve::events::profiles::FillerKind;
use crate::serve::events::xa::XaRendering;

/// Bytes collected for each write.
const WRITE_SIZE: usize = 64 << 10;

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
    /// The header of the current event, and of its body what has to be known before it is sent.
    head: Vec<u8>,
    head_size: usize,
    /// Remaining bytes of the current event, not counting the head.
    left: u64,
    event_size: u64,
    sending: bool,
    refusal: Option<String>,
    /// The checksum algorithm of the current file.
    checksum: ChecksumAlgorithm,
    /// Set for a client that does not get every event as it is.
    fitting: Option<EventFitting>,
    care: EventCare,
    /// The current event, if it is held.
    held: Vec<u8>,
    /// The last event, which begins a transaction, and its position: held until the next one tells whether that may be sent.
    front: Vec<u8>,
    front_at: u64,
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
            head: Vec::with_capacity(HEADER_SIZE),
            head_size: HEADER_SIZE,
            left: 0,
            event_size: 0,
            sending: false,
            refusal: None,
            checksum: ChecksumAlgorithm::NONE,
            fitting: None,
            care: EventCare::Send,
            held: Vec::new(),
            front: Vec::new(),
            front_at: 0,
            sent: Instant::now(),
            progress: None,
        }
    }

    /// From now on events can be acknowledged.
    pub(crate) fn begin_semi_sync(&mut self) {
        self.packets.begin_semi_sync();
    }

    /// From now on, events are made to fit the client.
    pub(crate) fn fit(&mut self, fitting: Option<EventFitting>) {
        self.fitting = fitting;
    }

    /// Continues at `position` of a file whose events have this checksum, written by a server of this version as a number.
    /// The client wants events that begin at `from` or later.
    pub(crate) fn begin_file(
        &mut self,
        position: u64,
        from: u64,
        checksum: ChecksumAlgorithm,
        server_version: u32,
    ) {
        (self.position, self.from, self.checksum) = (position, from, checksum);
        if let Some(fitting) = &mut self.fitting {
            fitting.begin_file(checksum, server_version);
        }
    }

    /// The checksum algorithm of the current file.
    pub(crate) fn checksum(&self) -> ChecksumAlgorithm {
        self.checksum
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

    /// Sends an event that is in no file, and asks that the client acknowledge all before it.
    pub(crate) fn ask(&mut self, event: &[u8]) -> io::Result<()> {
        self.packets.begin(event.len() as u32, true, &mut self.out);
        self.packets.body(event, &mut self.out);
        self.flush()?;
        self.connection.restart_numbering();
        Ok(())
    }

    /// Whether the client gets XA transactions as plain ones.
    pub(crate) fn translates_xa(&self) -> bool {
        self.fitting.as_ref().is_some_and(EventFitting::translates_xa)
    }

    /// The next transaction is one of XA, to be made plain like this; `None`: it isn't one.
    pub(crate) fn render_xa(&mut self, rendering: Option<XaRendering>) {
        if let Some(fitting) = &mut self.fitting {
            fitting.render_xa(rendering);
        }
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

    /// The header is there: how much of the body has to be known as well.
    fn begin_head(&mut self) -> io::Result<EventHeader> {
        let header = EventHeader::decode(&self.head).map_err(io::Error::other)?;
        let more = self.fitting.as_ref().map_or(0, |fitting| fitting.head_size(&header));
        self.head_size = (HEADER_SIZE + more).min((header.event_size as usize).max(HEADER_SIZE));
        Ok(header)
    }

    fn begin_event(&mut self, header: &EventHeader) -> io::Result<()> {
        self.event_size = u64::from(header.event_size);
        self.left = self.event_size.saturating_sub(self.head.len() as u64);
        let is_inside = self.position < self.from && self.from < self.position + self.event_size;
        // Between two events that the client was sent in the place of this one.
        let may_go_on =
            is_inside && self.fitting.as_ref().is_some_and(|fitting| fitting.may_be_several(header));
        if is_inside && !may_go_on {
            return Err(self.refuse(NOT_A_BOUNDARY.into()));
        }
        self.sending = !self.leave_out && (self.position >= self.from || may_go_on);
        self.care = EventCare::Send;
        let place = self.place();
        if let Some(fitting) = &mut self.fitting {
            let body = self.head.get(HEADER_SIZE..).unwrap_or_default();
            match fitting.care(header, body, place) {
                Ok(care) => self.care = care,
                Err(why) => return Err(self.refuse(why)),
            }
            self.send_ready()?;
        }
        match self.care {
            EventCare::Look | EventCare::Front | EventCare::Queue => self.held.clone_from(&self.head),
            EventCare::Send if self.sending => {
                self.send_front();
                self.packets.begin(header.event_size, self.wants_ack(), &mut self.out);
                self.packets.body(&self.head, &mut self.out);
            }
            EventCare::Send | EventCare::Fill | EventCare::Blank | EventCare::Skip => {}
        }
        Ok(())
    }

    /// Where the current event stands.
    fn place(&self) -> EventPlace {
        let transaction = (!self.front.is_empty()).then_some(self.front_at);
        EventPlace { offset: self.position, transaction, is_sent: self.sending }
    }

    /// Sends the event that begins a transaction, if it is held.
    fn send_front(&mut self) {
        if self.front.is_empty() {
            return;
        }
        self.packets.begin(self.front.len() as u32, false, &mut self.out);
        self.packets.body(&self.front, &mut self.out);
        self.front.clear();
    }

    /// Sends what waited for the current event.
    fn send_ready(&mut self) -> io::Result<()> {
        let ready = self.fitting.as_mut().map(EventFitting::take_ready).unwrap_or_default();
        for event in ready {
            match event {
                QueuedEvent::TableMap(event) | QueuedEvent::Rows(event) => self.send_whole(&event, false)?,
                QueuedEvent::LeftOut(header) => self.send_filler(&header, false)?,
            }
        }
        Ok(())
    }

    /// Sends an event that is in memory.
    fn send_whole(&mut self, event: &[u8], wants_ack: bool) -> io::Result<()> {
        self.send_front();
        self.packets.begin(event.len() as u32, wants_ack, &mut self.out);
        for piece in event.chunks(WRITE_SIZE) {
            self.packets.body(piece, &mut self.out);
            self.flush_if_full()?;
        }
        Ok(())
    }

    /// Sends an event without content in the place of one that is left out.
    fn send_filler(&mut self, replaced: &EventHeader, wants_ack: bool) -> io::Result<()> {
        self.send_front();
        let is_for_good = !self.fitting.as_ref().is_some_and(EventFitting::withholds_rows);
        if let Some(progress) = self.progress.as_ref().filter(|_| is_for_good && is_rows(replaced)) {
            progress.left_out_rows();
        }
        self.packets.begin(replaced.event_size, wants_ack, &mut self.out);
        let kind =
            self.fitting.as_ref().map_or(FillerKind::Ignorable, |fitting| fitting.filler_for(replaced));
        let checksum = self.checksum;
        filler::write(replaced, kind, checksum, |bytes| {
            self.packets.body(bytes, &mut self.out);
            self.flush_if_full()
        })
    }

    /// Sends a rows event without rows in the place of the current one.
    fn send_blank_rows(&mut self) -> io::Result<()> {
        let replaced = EventHeader::decode(&self.head).map_err(io::Error::other)?;
        self.progress.iter().for_each(|progress| progress.left_out_rows());
        self.packets.begin(replaced.event_size, false, &mut self.out);
        let head = self.head.get(HEADER_SIZE..).unwrap_or_default().to_vec();
        let checksum = self.checksum;
        filler::write_blank_rows(&replaced, &head, checksum, |bytes| {
            self.packets.body(bytes, &mut self.out);
            self.flush_if_full()
        })
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.out.len() >= WRITE_SIZE { self.flush() } else { Ok(()) }
    }

    fn wants_ack(&self) -> bool {
        self.wants_ack_at == Some(self.position + self.event_size)
    }

    fn body(&mut self, bytes: &[u8]) {
        match self.care {
            EventCare::Look | EventCare::Front | EventCare::Queue => self.held.extend_from_slice(bytes),
            EventCare::Send if self.sending => self.packets.body(bytes, &mut self.out),
            EventCare::Send | EventCare::Fill | EventCare::Blank | EventCare::Skip => {}
        }
    }

    fn end_event(&mut self) -> io::Result<()> {
        let is_last = self.sending && self.wants_ack();
        match self.care {
            EventCare::Send | EventCare::Skip => {}
            EventCare::Fill => {
                let header = EventHeader::decode(&self.head).map_err(io::Error::other)?;
                self.send_filler(&header, self.wants_ack())?;
            }
            EventCare::Blank => self.send_blank_rows()?,
            EventCare::Queue => {
                let event = std::mem::take(&mut self.held);
                if let Some(fitting) = &mut self.fitting {
                    fitting.queue(event);
                }
            }
            EventCare::Front => {
                // One that nothing followed.
                self.send_front();
                let event = std::mem::take(&mut self.held);
                self.front = match self.fitted(&event)? {
                    FittedEvent::Other(other) => other,
                    FittedEvent::AsIs
                    | FittedEvent::EmptyTransaction(_)
                    | FittedEvent::XaRollback(_)
                    | FittedEvent::Filler
                    | FittedEvent::Later => event,
                };
                self.front_at = self.position;
            }
            EventCare::Look => {
                let event = std::mem::take(&mut self.held);
                self.send_fitted(&event)?;
            }
        }
        self.head.clear();
        self.head_size = HEADER_SIZE;
        self.position += self.event_size;
        if is_last {
            self.flush()?;
            self.connection.restart_numbering();
        }
        Ok(())
    }

    fn fitted(&mut self, event: &[u8]) -> io::Result<FittedEvent> {
        let place = self.place();
        let fitted = self.fitting.as_mut().map_or(Ok(FittedEvent::AsIs), |fitting| fitting.fit(event, place));
        fitted.map_err(|why| self.refuse(why))
    }

    /// Sends what a client gets of an event that was held.
    fn send_fitted(&mut self, event: &[u8]) -> io::Result<()> {
        let fitted = self.fitted(event)?;
        let wants_ack = self.wants_ack();
        self.send_ready()?;
        let is_several = matches!(fitted, FittedEvent::EmptyTransaction(_) | FittedEvent::XaRollback(_));
        if self.sending && self.position < self.from && !is_several {
            return Err(self.refuse(NOT_A_BOUNDARY.into()));
        }
        match fitted {
            FittedEvent::AsIs if self.sending => self.send_whole(event, wants_ack),
            FittedEvent::AsIs | FittedEvent::Later => Ok(()),
            FittedEvent::Other(other) => self.send_whole(&other, wants_ack),
            FittedEvent::Filler => {
                let header = EventHeader::decode(event).map_err(io::Error::other)?;
                self.send_filler(&header, wants_ack)
            }
            FittedEvent::EmptyTransaction(events) => {
                self.progress.iter().for_each(|progress| progress.left_out_account_statement());
                self.send_all(&events, wants_ack)
            }
            FittedEvent::XaRollback(events) => self.send_all(&events, wants_ack),
        }
    }

    /// Sends events in the place of the current one, those that the client lacks; `wants_ack`: the last of them.
    fn send_all(&mut self, events: &[Vec<u8>], wants_ack: bool) -> io::Result<()> {
        let mut at = self.position;
        let count = events.len();
        for (index, event) in events.iter().enumerate() {
            if at >= self.from {
                self.send_whole(event, wants_ack && index + 1 == count)?;
            }
            at += event.len() as u64;
            if at > self.from && self.from > at - event.len() as u64 {
                return Err(self.refuse(NOT_A_BOUNDARY.into()));
            }
        }
        Ok(())
    }
}

fn is_rows(header: &EventHeader) -> bool {
    header.event_type.class() == EventClass::Rows
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
            if self.head.len() < self.head_size {
                let room = self.head_size - self.head.len();
                let (now, behind) = rest.split_at_checked(room).unwrap_or((rest, &[]));
                self.head.extend_from_slice(now);
                rest = behind;
                if self.head.len() < self.head_size {
                    continue;
                }
                let header = self.begin_head()?;
                if self.head.len() == self.head_size {
                    self.begin_event(&header)?;
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
            self.flush_if_full()?;
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

    use binlogz_binlog::event::QueryEvent;
    use binlogz_binlog::{EventFrame, EventType, HeaderFlags};
    use binlogz_testkit::builder::{EndPositions, LogBuilder, Release, query};
    use binlogz_wire::packet::{MessageReader, PacketReader};

    use super::*;
    use crate::serve::events::profiles::ReaderProfile;
    use crate::serve::events::table_choice::TableChoice;

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
    fn sent(events: &[u8], profile: &str, size: usize) -> (Vec<u8>, Option<String>) {
        fitted(events, profile, &TableChoice::default(), size)
    }

    fn fitted(events: &[u8], profile: &str, tables: &TableChoice, size: usize) -> (Vec<u8>, Option<String>) {
        let taken = Taken::default();
        let mut sink = EventSink::new(taken.clone(), 1);
        sink.fit(EventFitting::new(ReaderProfile::of_name(profile).unwrap(), tables));
        sink.begin_file(4, 4, ChecksumAlgorithm::CRC32, 90_704);
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
            let all = sent(&before, "other", size);
            assert_eq!(all.1, None);
            assert!(sent(&before, "mariadb-11.4", size) == all, "in order and as they are");
            for statement in
                ["XA START X'7131',X'',1", "XA ROLLBACK X'7131',X'',1", "xa commit X'7131',X'',1"]
            {
                let log = xa(statement);
                let (bytes, refusal) = sent(&log, "mariadb-11.4", size);
                let refusal = refusal.unwrap();
                assert!(bytes == all.0, "{statement}: {} and {} bytes", bytes.len(), all.0.len());
                // The place of the event that begins the transaction.
                let place = format!("the transaction at {} is an XA transaction", 4 + before.len());
                assert!(refusal.starts_with(&place), "{refusal}");
                assert_eq!(sent(&log, "other", size).1, None, "others get it");
            }
        }
        // One that is only prepared there, its beginning elsewhere.
        let prepared = events(|log| {
            log.event(EventType::XA_PREPARE, &[0; 13]);
        });
        assert_eq!(sent(&prepared, "mariadb-11.4", 7).0, b"");
    }

    /// The events that a client is sent: their types and statements. Together they have the size of `log`.
    fn shown(log: &[u8], profile: &str, tables: &TableChoice, size: usize) -> Vec<String> {
        let (bytes, refusal) = fitted(log, profile, tables, size);
        assert_eq!(refusal, None);
        let mut packets = PacketReader::default();
        let mut reader = MessageReader::default();
        packets.expect_sequence(1);
        let first = EventHeader::decode(log).unwrap();
        let begin = (first.end_log_pos - first.event_size) as usize;
        let mut shown = Vec::new();
        let mut input = bytes.as_slice();
        let mut at = begin;
        while let Some(message) = reader.next(&mut packets, &mut input).unwrap() {
            let frame = EventFrame::from_bytes(&message[1..], 4).unwrap();
            assert_eq!(frame.stored_checksum(), Some(frame.computed_checksum()), "{}", frame.event_type());
            at += frame.bytes().len();
            assert_eq!(frame.header().end_log_pos as usize, at, "{}", frame.event_type());
            shown.push(match QueryEvent::decode(frame.body()) {
                Ok(query) if frame.event_type() == EventType::QUERY => {
                    String::from_utf8(query.statement.to_vec()).unwrap()
                }
                _ => frame.event_type().to_string(),
            });
        }
        assert_eq!(at, begin + log.len());
        shown
    }

    #[test]
    fn statements_about_accounts_are_empty_transactions_for_those_that_can_not_run_them() {
        let log = events(|log| {
            log.transaction_of(&[(
                EventType::QUERY,
                query("CREATE USER a IDENTIFIED WITH 'caching_sha2_password' AS 'x'"),
            )]);
            log.transaction_of(&[(EventType::QUERY, query("CREATE TABLE user (a INT)"))]);
        });
        let all = TableChoice::default();
        for size in [1, 30, 1 << 20] {
            for profile in ["mysql-5.6", "mysql-5.7", "mariadb-10.2", "mariadb-11.4"] {
                let shown = shown(&log, profile, &all, size);
                assert_eq!(shown[1], "BEGIN", "{profile}: {shown:?}");
                assert!(shown.contains(&"CREATE TABLE user (a INT)".to_owned()), "{profile}: {shown:?}");
                assert!(!shown.iter().any(|event| event.contains("CREATE USER")), "{profile}: {shown:?}");
            }
            for profile in ["mysql-8.0.19", "mysql-8.3", "other", "binlogz"] {
                assert!(
                    fitted(&log, profile, &all, size).0 == fitted(&log, "other", &all, size).0,
                    "{profile}"
                );
            }
        }
        // A source whose statements they know.
        let taken = Taken::default();
        let mut sink = EventSink::new(taken.clone(), 1);
        sink.fit(EventFitting::new(ReaderProfile::of_name("mysql-5.6").unwrap(), &all));
        sink.begin_file(4, 4, ChecksumAlgorithm::CRC32, 50_744);
        sink.write_all(&log).unwrap();
        sink.flush().unwrap();
        assert!(*taken.0.lock() == fitted(&log, "other", &all, 7).0);
    }

    #[test]
    fn a_client_goes_on_between_the_events_that_took_the_place_of_one() {
        let log = events(|log| {
            log.transaction_of(&[(
                EventType::QUERY,
                query("DROP USER a /* long enough for three events, of which one is a filler */"),
            )]);
        });
        let all = TableChoice::default();
        let first = EventHeader::decode(&log).unwrap();
        let begin = u64::from(first.end_log_pos - first.event_size);
        let sent_from = |from: u64| {
            let taken = Taken::default();
            let mut sink = EventSink::new(taken.clone(), 1);
            sink.fit(EventFitting::new(ReaderProfile::of_name("mysql-5.6").unwrap(), &all));
            sink.begin_file(begin, from, ChecksumAlgorithm::CRC32, 90_704);
            let ended = sink.write_all(&log);
            sink.flush().unwrap();
            let mut packets = PacketReader::default();
            packets.expect_sequence(1);
            let mut reader = MessageReader::default();
            let bytes = taken.0.lock().clone();
            let mut input = bytes.as_slice();
            let mut sent = Vec::new();
            while let Some(message) = reader.next(&mut packets, &mut input).unwrap() {
                sent.push(message[1..].to_vec());
            }
            ended.map(|()| sent)
        };
        let whole = sent_from(begin).unwrap();
        assert_eq!(whole.len(), 4);
        let mut boundaries = vec![begin];
        whole.iter().for_each(|event| boundaries.push(boundaries[boundaries.len() - 1] + event.len() as u64));
        for from in begin..=begin + log.len() as u64 {
            match boundaries.iter().position(|boundary| *boundary == from) {
                Some(index) => assert_eq!(sent_from(from).unwrap(), whole[index..], "{from}"),
                None => assert_eq!(sent_from(from).unwrap_err().to_string(), NOT_A_BOUNDARY, "{from}"),
            }
        }
    }

    /// What is shown of each event that a client without XA is sent of a transaction, and where it ends.
    fn rendered(log: &[u8], profile: &str, rendering: XaRendering, size: usize) -> Vec<(String, u32)> {
        let taken = Taken::default();
        let mut sink = EventSink::new(taken.clone(), 1);
        sink.fit(EventFitting::new(ReaderProfile::of_name(profile).unwrap(), &TableChoice::default()));
        sink.begin_file(4, 4, ChecksumAlgorithm::CRC32, 90_704);
        sink.render_xa(Some(rendering));
        log.chunks(size).for_each(|piece| sink.write_all(piece).unwrap());
        sink.flush().unwrap();
        let mut packets = PacketReader::default();
        packets.expect_sequence(1);
        let mut reader = MessageReader::default();
        let bytes = taken.0.lock().clone();
        let mut input = bytes.as_slice();
        let mut sent = Vec::new();
        let first = EventHeader::decode(log).unwrap();
        let mut at = first.end_log_pos - first.event_size;
        while let Some(message) = reader.next(&mut packets, &mut input).unwrap() {
            let frame = EventFrame::from_bytes(&message[1..], 4).unwrap();
            assert_eq!(frame.stored_checksum(), Some(frame.computed_checksum()), "{}", frame.event_type());
            at += frame.bytes().len() as u32;
            assert_eq!(frame.header().end_log_pos, at, "{}", frame.event_type());
            let shown = match QueryEvent::decode(frame.body()) {
                Ok(query) if frame.event_type() == EventType::QUERY => {
                    String::from_utf8(query.statement.to_vec()).unwrap()
                }
                _ => frame.event_type().to_string(),
            };
            sent.push((shown, frame.header().end_log_pos));
        }
        sent
    }

    #[test]
    fn xa_transactions_are_made_plain_event_by_event() {
        let prepared = events(|log| {
            log.transaction_of(&[
                (EventType::QUERY, query("XA START X'7131',X'',1")),
                (EventType::TABLE_MAP, vec![9; 40]),
                (EventType::WRITE_ROWS, vec![9; 70_000]),
                (EventType::QUERY, query("SAVEPOINT a")),
                (EventType::QUERY, query("XA END X'7131',X'',1")),
                (EventType::XA_PREPARE, b"\x00\x01\0\0\0\x02\0\0\0\0\0\0\0q1".to_vec()),
            ]);
        });
        let mut ends = Vec::new();
        let mut rest = prepared.as_slice();
        while !rest.is_empty() {
            let header = EventHeader::decode(rest).unwrap();
            ends.push(header.end_log_pos);
            rest = &rest[header.event_size as usize..];
        }
        let (empty, plain) = (XaRendering::Empty, XaRendering::Plain);
        let comment = "# left out";
        for (profile, rendering, expected) in [
            (
                "mariadb-10.2",
                empty,
                ["Gtid", "BEGIN", "Ignorable", "Ignorable", "Ignorable", "COMMIT", "Ignorable"],
            ),
            (
                "mariadb-10.2",
                plain,
                ["Gtid", "BEGIN", "TableMap", "WriteRows", "SAVEPOINT a", "Ignorable", "Xid"],
            ),
            // It keeps each event; the last one has room for the begin of a comment.
            ("mariadb-10.1", empty, [comment, "BEGIN", comment, comment, comment, "COMMIT", "#"]),
            (
                "mariadb-10.1",
                plain,
                [comment, "BEGIN", "TableMap", "WriteRows", "SAVEPOINT a", comment, "Xid"],
            ),
        ] {
            for size in [1, 30, 1 << 20] {
                let sent = rendered(&prepared, profile, rendering, size);
                let sent = sent.into_iter().map(|(shown, end)| (shown.trim_end().to_owned(), end));
                let (shown, ended): (Vec<_>, Vec<_>) = sent.unzip();
                assert_eq!(shown, expected);
                assert_eq!(ended, ends, "every event ends where the original does");
            }
        }
        let rolled_back = events(|log| {
            log.transaction_of(&[(
                EventType::QUERY,
                query("XA ROLLBACK X'7131',X'',1 /* as long as with a session's settings */"),
            )]);
        });
        let sent = rendered(&rolled_back, "mariadb-10.2", empty, 7);
        let shown: Vec<_> = sent.iter().map(|(shown, _)| shown.as_str()).collect();
        assert_eq!(
            (shown.first(), shown.get(1), shown.last()),
            (Some(&"Gtid"), Some(&"BEGIN"), Some(&"COMMIT"))
        );
    }

    #[test]
    fn rows_of_other_tables_are_fillers_and_their_transactions_stay() {
        let log = events(|log| {
            log.transaction(&[b"one", &[7; 70_000]]);
        });
        let ignoring = TableChoice::new(&[], &["shop.i*".to_owned()]).unwrap();
        let choosing = TableChoice::new(&["shop.item".to_owned()], &[]).unwrap();
        for size in [1, 30, 1 << 20] {
            let all = shown(&log, "other", &TableChoice::default(), size);
            let without = shown(&log, "other", &ignoring, size);
            let is_of_rows = |name: &&String| ["TableMap", "WriteRows"].contains(&name.as_str());
            assert!(all.iter().any(|name| is_of_rows(&name)), "{all:?}");
            let expected: Vec<_> = all
                .iter()
                .map(|name| if is_of_rows(&name) { "Ignorable".to_owned() } else { name.clone() })
                .collect();
            assert_eq!(without, expected);
            assert!(
                fitted(&log, "other", &choosing, size)
                    == fitted(&log, "other", &TableChoice::default(), size)
            );
        }
    }

    #[test]
    fn a_client_with_tables_of_its_own_goes_on_after_any_event() {
        let log = events(|log| {
            log.transaction(&[b"one", &[7; 70_000]]);
            log.transaction(&[b"two"]);
        });
        let mut boundaries = vec![0];
        while let Some(rest) = log.get(boundaries[boundaries.len() - 1]..).filter(|rest| !rest.is_empty()) {
            let header = EventHeader::decode(rest).unwrap();
            boundaries.push(boundaries[boundaries.len() - 1] + header.event_size as usize);
        }
        for profile in ["maxwell-1", "mysql-5.6", "mariadb-10.1"] {
            for ignored in ["shop.other", "shop.item"] {
                let tables = TableChoice::new(&[], &[ignored.to_owned()]).unwrap();
                for from in &boundaries {
                    let taken = Taken::default();
                    let mut sink = EventSink::new(taken.clone(), 1);
                    sink.fit(EventFitting::new(ReaderProfile::of_name(profile).unwrap(), &tables));
                    sink.begin_file(0, *from as u64, ChecksumAlgorithm::CRC32, 90_704);
                    sink.write_all(&log)
                        .unwrap_or_else(|error| panic!("{profile} {ignored} {from}: {error}"));
                    sink.flush().unwrap();
                    let mut packets = PacketReader::default();
                    packets.expect_sequence(1);
                    let mut reader = MessageReader::default();
                    let bytes = taken.0.lock().clone();
                    let (mut input, mut sent) = (bytes.as_slice(), 0);
                    while let Some(message) = reader.next(&mut packets, &mut input).unwrap() {
                        sent += message.len() - 1;
                    }
                    assert_eq!(sent, log.len() - from, "{profile} {ignored} {from}");
                }
            }
        }
    }

    #[test]
    fn what_a_profile_does_not_know_ends_the_dump_before_it() {
        let one = |event_type: EventType, body: &[u8]| {
            events(|log| {
                log.event(event_type, body);
            })
        };
        let all = TableChoice::default();
        for (event_type, passed, refused) in [
            (
                EventType::GTID_TAGGED,
                &["mysql-8.3", "other", "binlogz"][..],
                &["mysql-5.6", "mysql-8.0.20"][..],
            ),
            (EventType::PREVIOUS_GTIDS, &["mysql-5.6", "mariadb-10.2"], &["mysql-5.5"]),
            (EventType::GTID, &["mysql-5.7", "mysql-8.0.19"], &["mysql-5.5"]),
            (EventType::WRITE_ROWS, &["mysql-5.6", "mariadb-11.4"], &["mysql-5.5"]),
            (EventType::WRITE_ROWS_V1, &["mysql-5.5"], &[]),
            (EventType::PARTIAL_UPDATE_ROWS, &["mysql-8.0.19", "other"], &["mysql-5.7", "mariadb-11.4"]),
            (EventType::TRANSACTION_PAYLOAD, &["mysql-8.0.20", "other"], &["mysql-8.0.19", "mariadb-11.4"]),
            (EventType::XA_PREPARE, &["mysql-5.7", "other"], &["mysql-5.6", "mariadb-10.2"]),
            (EventType(200), &["mysql-8.3", "other"], &["mysql-5.6", "mysql-8.0.20", "mariadb-11.4"]),
        ] {
            let log = one(event_type, &[0; 40]);
            for profile in passed {
                assert_eq!(fitted(&log, profile, &all, 7).1, None, "{event_type} {profile}");
            }
            for profile in refused {
                let (bytes, refusal) = fitted(&log, profile, &all, 7);
                assert!(bytes.is_empty() && refusal.is_some(), "{event_type} {profile}: {refusal:?}");
            }
        }
        // MariaDB takes it for one that it ignores; members of a group alone need the others.
        let tagged = one(EventType::GTID_TAGGED, &[0; 40]);
        assert_eq!(shown(&tagged, "other", &all, 7), ["GtidTagged"]);
        let followed = events(|log| {
            log.event(EventType::GTID_TAGGED, &[0; 40]);
            log.event(EventType::QUERY, &query("BEGIN"));
        });
        assert_eq!(shown(&followed, "mariadb-11.4", &all, 7), ["Gtid", "BEGIN"]);
        let view = one(EventType::VIEW_CHANGE, &[0; 60]);
        assert_eq!(shown(&view, "mysql-5.6", &all, 7), ["Ignorable"]);
        assert_eq!(shown(&view, "mysql-5.7", &all, 7), ["ViewChange"]);
    }
}
