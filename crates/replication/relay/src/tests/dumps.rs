//! Dumps without a server: a connection in memory, and a log on a simulated disk.

use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventHeader, EventType, HeaderFlags, MAGIC};
use binlogz_client_sql::{AskingClient, ClientVariables, StatementAnswer, answer};
use binlogz_relay_log::Form;
use binlogz_store::FileNumber;
use binlogz_testkit::disk::SimulatedDisk;
use binlogz_testkit::random::Random;
use binlogz_wire::dump_request::{DumpFlags, DumpRequest};
use binlogz_wire::packet::{MessageReader, PacketReader};
use binlogz_wire::response::{EofPacket, ErrPacket};
use binlogz_wire::statement::Statement;

use super::crashes::{Known, OneDisk, options, put_all_back, receive};
use super::open_source;
use super::simulated::{SourceLog, gtids};
use crate::error::{Error, Result};
use crate::options::SourceOptions;
use crate::serve::connections::client_form::FormPolicy;
use crate::serve::connections::transport::DumpConnection;
use crate::serve::server::dump::KnownClient;
use crate::source::RelaySource;
use crate::statements::AskedLog;

/// The statement of a replica before it asks for the log.
pub(super) const CHECKSUM: &str = "SET @source_binlog_checksum = 'CRC32'";
const REPLICA: &str = "SET @source_binlog_checksum = 'CRC32', \
                       @replica_uuid = '2410447f-e54d-11f1-848d-02fc00000001'";
/// The number of a dump's first packet.
const SEQUENCE: u8 = 1;

/// A connection whose client takes everything, and leaves when it is told to.
#[derive(Debug, Clone, Default)]
pub(super) struct InMemory {
    sent: Arc<Mutex<Vec<u8>>>,
    has_left: Arc<AtomicBool>,
}

impl DumpConnection for InMemory {
    fn read_at_hand(&mut self, _: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(self.has_left.load(Ordering::Relaxed).then_some(0))
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sent.lock().extend_from_slice(bytes);
        Ok(())
    }
}

impl InMemory {
    pub(super) fn messages(&self) -> Vec<Vec<u8>> {
        let sent = self.sent.lock();
        let mut packets = PacketReader::default();
        let mut reader = MessageReader::default();
        packets.expect_sequence(SEQUENCE);
        let mut messages = Vec::new();
        let mut input = sent.as_slice();
        while let Some(message) = reader.next(&mut packets, &mut input).unwrap() {
            messages.push(message.to_vec());
        }
        assert!(packets.is_between_messages());
        messages
    }
}

/// A relay that has received all of a source's log.
fn relay(source: &SourceLog, form: FormPolicy) -> RelaySource {
    let random = &mut Random::new(5);
    let options = SourceOptions { form, uncompressed_file_size: 1 << 30, ..options(random) };
    let relay = open_source(options, Arc::new(OneDisk(SimulatedDisk::new()))).unwrap();
    let mut known = Known::default();
    receive(&relay, source, random, &mut known, usize::MAX).unwrap();
    relay.intake.sync().unwrap();
    put_all_back(&relay, &relay.intake.lineages.served().unwrap(), &mut known);
    relay
}

/// Asks for the log, as a connection of this number that has made these settings.
pub(super) fn dump(
    relay: &RelaySource,
    number: u32,
    set: &str,
    request: &DumpRequest,
    connection: &InMemory,
) -> Result<()> {
    let lineage = relay.intake.lineages.served().unwrap();
    let mut variables = ClientVariables::default();
    if let Some(set @ Statement::Set(_)) = Statement::parse(set) {
        let log = AskedLog {
            statements: &relay.server.statements,
            kept: &lineage,
            exits: None,
            form: &|_| Ok(Form::Received),
        };
        let mut asker = AskingClient { variables: &mut variables, may_administer: false };
        let done = answer(&log, &mut asker, &set)?;
        assert!(matches!(done, StatementAnswer::Done { warnings: 0 }), "{done:?}");
    }
    let peer = "127.0.0.1:1".parse().unwrap();
    let server = Arc::clone(&relay.server);
    let account = None;
    let attributes = Vec::new();
    let socket = None;
    let client = KnownClient { server, connection: number, peer, account, attributes, socket };
    client.dump(&lineage, &variables, request, SEQUENCE, connection.clone())
}

pub(super) fn by_position(name: &str, position: u32) -> DumpRequest {
    DumpRequest::ByPosition { flags: DumpFlags::NON_BLOCK, server_id: 9, name: name.into(), position }
}

fn by_gtid_set(flags: DumpFlags, gtid_set: GtidSet) -> DumpRequest {
    let format = gtid_set.format();
    DumpRequest::ByGtidSet { flags, server_id: 9, name: Vec::new(), position: 4, gtid_set, format }
}

/// The events that a dump sent before it ended, with their headers.
pub(super) fn events(messages: &[Vec<u8>]) -> Vec<(EventHeader, &[u8])> {
    let events = messages.iter().filter(|message| message[0] == 0);
    events.map(|message| (EventHeader::decode(&message[1..]).unwrap(), &message[1..])).collect()
}

/// Whether it is one of the events that a dump begins each file with, and the source does not send again.
fn is_front((header, _): &(EventHeader, &[u8])) -> bool {
    header.flags.contains(HeaderFlags::ARTIFICIAL) || header.event_type == EventType::FORMAT_DESCRIPTION
}

#[test]
fn a_dump_by_position_is_the_sources_log_byte_for_byte() {
    for source in [SourceLog::small(), SourceLog::new(&mut Random::new(3), true)] {
        let relay = relay(&source, FormPolicy::Always(Form::Received));
        let connection = InMemory::default();
        dump(&relay, 1, CHECKSUM, &by_position("", 4), &connection).unwrap();
        let messages = connection.messages();
        let (end, messages) = messages.split_last().unwrap();
        assert!(EofPacket::is(end));
        let events = events(messages);
        let fronts = events.iter().filter(|event| is_front(event)).count();
        assert_eq!(fronts, 2 * source.files.len(), "a rotate and a format description for each file");
        let sent: Vec<u8> =
            events.iter().filter(|event| !is_front(event)).flat_map(|(_, bytes)| bytes.to_vec()).collect();
        let behind_front = |bytes: &[u8]| {
            let description = EventHeader::decode(&bytes[MAGIC.len()..]).unwrap();
            bytes[MAGIC.len() + description.event_size as usize..].to_vec()
        };
        let expected: Vec<u8> = source.files.iter().flat_map(|file| behind_front(&file.bytes)).collect();
        assert!(sent == expected, "{} bytes were sent, the source has {}", sent.len(), expected.len());
    }
}

#[test]
fn what_a_replica_has_is_left_out_and_a_heartbeat_says_how_far() {
    let source = SourceLog::small();
    for form in Form::ALL {
        let relay = relay(&source, FormPolicy::Always(form));
        let connection = InMemory::default();
        dump(&relay, 1, CHECKSUM, &by_gtid_set(DumpFlags::NON_BLOCK, gtids(3)), &connection).unwrap();
        let messages = connection.messages();
        let events = events(&messages[..messages.len() - 1]);
        let of_type = |is: fn(EventType) -> bool| events.iter().position(|(header, _)| is(header.event_type));
        let first = of_type(EventType::is_gtid).unwrap();
        let heartbeat = of_type(|event_type| event_type == EventType::HEARTBEAT).unwrap();
        assert_eq!(heartbeat + 1, first, "{form:?}");
        let begins = events[first].0.end_log_pos - events[first].0.event_size;
        assert_eq!(events[heartbeat].0.end_log_pos, begins, "{form:?}");
        let sent = events.iter().filter(|(header, _)| header.event_type.is_gtid()).count() as u64;
        assert_eq!(sent, source.last() - 3, "{form:?}");
    }
}

#[test]
fn a_request_that_can_not_be_met_is_told_why() {
    let source = SourceLog::small();
    let relay = relay(&source, FormPolicy::Always(Form::Received));
    let front = EventHeader::decode(&source.files[0].bytes[MAGIC.len()..]).unwrap().event_size + 4;
    let told = |set: &str, request: &DumpRequest, expected: &str| {
        let connection = InMemory::default();
        let error = dump(&relay, 1, set, request, &connection).unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error:?}");
        let messages = connection.messages();
        let packet = ErrPacket::decode(messages.last().unwrap()).unwrap();
        let text = String::from_utf8_lossy(packet.message);
        assert_eq!(packet.code, 1236, "{text}");
        assert!(text.contains(expected), "{text}");
    };
    told(CHECKSUM, &by_position("", 3), "position < 4");
    told(CHECKSUM, &by_position("binlog.000002", 1_000_000), "position > file size");
    told(CHECKSUM, &by_position("binlog.000001", 10), "inside the format description");
    told(CHECKSUM, &by_position("binlog.000001", front + 5), "no event begins at the requested position");
    told(CHECKSUM, &by_position("binlog.000099", 4), "Could not find first log file name");
    told("", &by_position("binlog.000001", 4), "with the checksum that source is configured to log");
    relay.intake.lineages.served().unwrap().purge_before(FileNumber(2)).unwrap();
    told(CHECKSUM, &by_position("binlog.000001", 4), "Could not find first log file name");
    told(CHECKSUM, &by_gtid_set(DumpFlags::NON_BLOCK, GtidSet::new()), "purged required binary logs");
}

#[test]
fn a_second_dump_of_a_replica_ends_the_first_and_a_client_that_leaves_its_own() {
    let source = SourceLog::small();
    let relay = relay(&source, FormPolicy::Always(Form::Received));
    let first = InMemory::default();
    let second = InMemory::default();
    let waits = by_gtid_set(DumpFlags::default(), GtidSet::new());
    let size = source.files.iter().map(|file| file.bytes.len()).sum();
    let has_all = |connection: &InMemory| connection.sent.lock().len() >= size;
    let comes_true = |condition: &dyn Fn() -> bool| {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !condition() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
        condition()
    };
    let (came_true, ended, left) = std::thread::scope(|scope| {
        let ends = scope.spawn(|| dump(&relay, 1, REPLICA, &waits, &first));
        let first_has_all = comes_true(&|| has_all(&first));
        let leaves = scope.spawn(|| dump(&relay, 2, REPLICA, &waits, &second));
        let first_is_ended = comes_true(&|| ends.is_finished());
        let second_has_all = comes_true(&|| has_all(&second));
        // Both end now whatever happened: a test that fails must not wait for its threads.
        first.has_left.store(true, Ordering::Relaxed);
        second.has_left.store(true, Ordering::Relaxed);
        ([first_has_all, first_is_ended, second_has_all], ends.join().unwrap(), leaves.join().unwrap())
    });
    assert_eq!(came_true, [true; 3], "all was sent to the first, it was ended, all was sent to the second");
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("A replica with the same server_uuid/server_id"), "{error}");
    assert!(matches!(left, Err(Error::Left(_))));
}
