//! The dump of a semi-synchronous replica: which events it must acknowledge, and which it has acknowledged.
//!
//! ```text
//! transaction at the end of what is durable   sent, to be acknowledged: asked
//! acknowledgement, a message of 0xef …        of one that was asked for, and of all before it
//! ```
//!
//! We ask only for the last durable transaction, since its acknowledgement covers all earlier ones. Those of a replica that gets masked rows, or not
//! all of them, are shown and not waited for: nobody could restore the source from it. A replica sends
//! nothing else during its dump. If it does, or acknowledges more than we asked for, we end the dump.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use binlogz_store::Position;
use binlogz_wire::Error as WireError;
use binlogz_wire::packet::{MessageReader, PacketReader};
use binlogz_wire::semi_sync::SemiSyncAck;

use crate::error::{Error, Result};
use crate::replicas::acknowledgements::Acknowledgements;
use crate::replicas::dumps::DumpProgress;
use crate::serve::connections::transport::DumpConnection;

/// Larger than any acknowledgement.
const MESSAGE_SIZE_MAX: usize = 1024;
const READ_SIZE: usize = 4096;
/// How often we check for an acknowledgement: at first, and at most while none comes.
const LOOK_FIRST: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(100);

/// A requested acknowledgement.
#[derive(Debug)]
struct AskedAcknowledgement {
    /// The file's name and the end of the transaction, as the client counts.
    name: String,
    position: u64,
    /// The end of the stored transaction.
    stored: Position,
    at: Instant,
}

#[derive(Debug)]
pub(crate) struct SemiSync {
    connection: u32,
    lineage: u64,
    /// Where others wait for them; `None`: the client is no copy, and nobody does.
    acknowledgements: Option<Arc<Acknowledgements>>,
    progress: Arc<DumpProgress>,
    packets: PacketReader,
    messages: MessageReader,
    /// Bytes since the last whole message.
    size: usize,
    asked: VecDeque<AskedAcknowledgement>,
    /// Whether we sent something for which no acknowledgement has arrived or been requested.
    sent_more: bool,
}

impl SemiSync {
    pub(crate) fn new(
        connection: u32,
        lineage: u64,
        acknowledgements: Option<Arc<Acknowledgements>>,
        progress: Arc<DumpProgress>,
    ) -> Self {
        SemiSync {
            connection,
            lineage,
            acknowledgements,
            progress,
            packets: PacketReader::default(),
            messages: MessageReader::default(),
            size: 0,
            asked: VecDeque::new(),
            sent_more: false,
        }
    }

    /// Records that the transaction ending here was sent. `asked`: its name and end in the client's form, if we
    /// requested an acknowledgement.
    pub(crate) fn sent(&mut self, stored: Position, asked: Option<(String, u64)>) {
        self.sent_more = asked.is_none();
        if let Some((name, position)) = asked {
            self.asked.push_back(AskedAcknowledgement { name, position, stored, at: Instant::now() });
        }
    }

    /// Records that the client has everything up to here without being sent it.
    pub(crate) fn had(&mut self, stored: Position) {
        if self.asked.is_empty() && !self.sent_more {
            self.note(stored);
        }
    }

    /// How long to wait if nothing else happens.
    pub(crate) fn patience(&self) -> Option<Duration> {
        let first = self.asked.front()?;
        Some((first.at.elapsed() / 4).clamp(LOOK_FIRST, LOOK_MAX))
    }

    /// Reads the client's messages so far. Returns `false` if it has left.
    pub(crate) fn listen(&mut self, connection: &mut dyn DumpConnection) -> Result<bool> {
        let mut bytes = [0; READ_SIZE];
        loop {
            let count = match connection.read_at_hand(&mut bytes) {
                Ok(None) => return Ok(true),
                Ok(Some(0)) => return Ok(false),
                Ok(Some(count)) => count,
                Err(error) => return Err(Error::of_client("hear a replica", error)),
            };
            self.take(bytes.get(..count).unwrap_or_default())?;
        }
    }

    fn take(&mut self, mut input: &[u8]) -> Result<()> {
        loop {
            let before = input.len();
            // Each acknowledgement is a separate exchange.
            if self.packets.is_between_messages() {
                self.packets.expect_sequence(0);
            }
            let Some(message) = self.messages.next(&mut self.packets, &mut input).map_err(malformed)? else {
                self.size += before;
                if self.size > MESSAGE_SIZE_MAX {
                    return Err(unasked(format!("{} bytes", self.size)));
                }
                return Ok(());
            };
            self.size = 0;
            let SemiSyncAck { position, name } = SemiSyncAck::decode(message).map_err(malformed)?;
            let name = String::from_utf8_lossy(name).into_owned();
            let is_its = |asked: &AskedAcknowledgement| asked.position == position && asked.name == name;
            let Some(place) = self.asked.iter().position(is_its) else {
                return Err(unasked(format!("an acknowledgement of {name:?} at {position}")));
            };
            let stored = self.asked.drain(..=place).next_back().map(|asked| asked.stored);
            stored.into_iter().for_each(|stored| self.note(stored));
            self.progress.count_acknowledgement();
        }
    }

    fn note(&mut self, stored: Position) {
        self.progress.acknowledged(stored);
        if let Some(acknowledgements) = &self.acknowledgements {
            acknowledgements.note(self.connection, self.lineage, stored);
        }
    }
}

const DOING: &str = "serving a semi-synchronous replica";

fn unasked(found: String) -> Error {
    let expected = "acknowledgements that were asked for";
    WireError::Protocol { doing: DOING.into(), found, expected }.into()
}

fn malformed(source: binlogz_binlog::Error) -> Error {
    WireError::Malformed { doing: DOING.into(), source }.into()
}

#[cfg(test)]
mod tests {
    use binlogz_relay_log::Form;
    use binlogz_store::FileNumber;
    use binlogz_wire::packet::PacketWriter;

    use super::*;
    use crate::replicas::acknowledgements::{WaitForReplicas, WaitResult};
    use crate::replicas::dumps::{DumpClient, Dumps};

    fn at(offset: u64) -> Position {
        Position { file: FileNumber(7), offset }
    }

    fn acknowledgement(name: &str, position: u64) -> Vec<u8> {
        let mut out = PacketWriter::default();
        out.message(|out| SemiSyncAck { position, name: name.as_bytes() }.encode(out));
        out.pending().to_vec()
    }

    fn semi_sync() -> SemiSync {
        semi_sync_of(Some(Arc::new(Acknowledgements::default())))
    }

    fn semi_sync_of(acknowledgements: Option<Arc<Acknowledgements>>) -> SemiSync {
        let reader = DumpClient {
            user: "repl".into(),
            peer: ([127, 0, 0, 1], 1).into(),
            server_id: 1,
            uuid: String::new(),
            form: Form::Uncompressed,
            is_masked: acknowledgements.is_none(),
            is_copy: acknowledgements.is_some(),
            lineage: 1,
            semi_sync: true,
            profile: "mysql-8.3",
            knows_payloads: true,
        };
        SemiSync::new(1, 1, acknowledgements, Dumps::default().begin(1, reader, FileNumber(7)))
    }

    #[test]
    fn an_acknowledgement_is_of_what_was_asked_for_and_of_all_before() {
        let mut dump = semi_sync();
        dump.had(at(100));
        assert_eq!(dump.progress.last_acknowledged(), Some(at(100)));
        dump.sent(at(200), None);
        dump.had(at(300));
        assert_eq!(dump.progress.last_acknowledged(), Some(at(100)), "what was sent is not acknowledged yet");
        for (stored, end) in [(400, 1400), (500, 1500), (600, 1600)] {
            dump.sent(at(stored), Some(("binlog-u.000007".into(), end)));
        }
        for byte in acknowledgement("binlog-u.000007", 1500) {
            dump.take(&[byte]).unwrap();
        }
        assert_eq!(dump.progress.last_acknowledged(), Some(at(500)));
        let all =
            [acknowledgement("binlog-u.000007", 1600), acknowledgement("binlog-u.000007", 1600)].concat();
        let error = dump.take(&all).unwrap_err().to_string();
        assert_eq!(dump.progress.last_acknowledged(), Some(at(600)));
        assert!(error.contains("\"binlog-u.000007\" at 1600, expected acknowledgements"), "{error}");
    }

    #[test]
    fn only_a_copy_is_waited_for() {
        let acknowledgements = Arc::new(Acknowledgements::default());
        let wait = WaitForReplicas { count: 1, timeout: Duration::from_millis(1) };
        for (waited_for, expected) in
            [(None, WaitResult::InVain), (Some(Arc::clone(&acknowledgements)), WaitResult::Enough)]
        {
            let mut dump = semi_sync_of(waited_for);
            dump.sent(at(200), Some(("binlog-u.000007".into(), 1200)));
            dump.take(&acknowledgement("binlog-u.000007", 1200)).unwrap();
            assert_eq!(dump.progress.last_acknowledged(), Some(at(200)));
            assert_eq!(acknowledgements.wait(wait, 1, at(200), || true), expected);
        }
    }

    #[test]
    fn whatever_else_it_says_is_an_error() {
        let long = [&[0, 8, 0, 0][..], &[0xef; 2048]].concat();
        for said in [&b"\x01\0\0\0\x01"[..], b"\x09\0\0\0\xef12345678", b"\x01\0\0\x05\xef", &long] {
            let mut dump = semi_sync();
            dump.sent(at(200), Some(("binlog.000007".into(), 200)));
            assert!(dump.take(said).is_err(), "{said:?}");
        }
        assert!(semi_sync().take(&acknowledgement("binlog.000007", 200)).is_err(), "nothing was asked for");
    }
}
