//! Damage of the file in use while the source is idle.

use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, Framing, HeaderFlags};
use binlogz_source::{ConnectionCompression, Result};
use binlogz_wire::session::EventPiece;

use super::damage::{flip, received};
use super::simulated::SourceLog;
use crate::error::Error;
use crate::receive::receiver::receiving::ReceivedBytes;
use crate::receive::receiver::{IncomingLog, LogEnd, receive_all};
use crate::receive::storing;
use crate::source::RelaySource;
use binlogz_testkit::builder::UUID;

/// A source that sends so many heartbeats, and then ends.
struct Idle(usize);

impl IncomingLog for Idle {
    fn next_piece(&mut self) -> Result<Option<EventPiece<'_>>> {
        self.0 = self.0.saturating_sub(1);
        let header = EventHeader {
            timestamp: 0,
            event_type: EventType::HEARTBEAT,
            server_id: 1,
            event_size: 19,
            end_log_pos: 0,
            flags: HeaderFlags(0),
        };
        let framing = Framing::with_checksum(ChecksumAlgorithm::CRC32);
        let name = &b"binlog.000001"[..];
        let bytes = &[][..];
        let piece = EventPiece {
            header,
            framing,
            name,
            offset: 0,
            wants_ack: false,
            bytes,
            begins: true,
            ends: true,
        };
        Ok((self.0 > 0).then_some(piece))
    }

    fn has_input(&self) -> bool {
        false
    }

    fn compression(&self) -> Option<ConnectionCompression> {
        None
    }

    fn acknowledge(&mut self, _: &[u8], _: u64) -> Result<()> {
        Ok(())
    }
}

/// Receives heartbeats; returns how the connection ended.
fn hear(relay: &RelaySource) -> Result<(), Error> {
    let kept = relay.intake.lineages.served().unwrap();
    let end = LogEnd::of(&relay.intake, &kept)?;
    storing::run(&relay.intake, &kept, |batches| {
        receive_all(ReceivedBytes::new(&relay.intake, &kept, batches, end)?, Idle(9), UUID, None)
    })
}

#[test]
fn a_connection_ends_once_the_file_in_use_is_known_to_be_damaged_though_nothing_comes() {
    let source = SourceLog::small();
    let (disk, relay, kept) = received(&source);
    hear(&relay).unwrap();
    let last = kept.store.logs().unwrap().pop().unwrap();
    let end = kept.store.positions().unwrap().durable.offset;
    flip(&disk, &last.name, end - 1, 3);
    let (_, damage) = kept.store.examine(last.number, &mut |_| Ok(())).unwrap();
    let damage = damage.unwrap().to_string();
    // The next connection repairs it.
    let error = storing::run(&relay.intake, &kept, |batches| {
        receive_all(ReceivedBytes::new(&relay.intake, &kept, batches, None)?, Idle(9), UUID, None)
    })
    .unwrap_err();
    assert_eq!(error.to_string(), damage);
    assert!(!error.is_final() && !error.is_local(), "{error:?}");
}
