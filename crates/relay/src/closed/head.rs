//! The beginning of a plain log file: when it was begun, and what came before it.

use std::io::BufReader;
use std::path::Path;

use binlogz_binlog::event::PreviousGtidsEvent;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::{EventReader, EventType};
use binlogz_encryption::Keyring;
use binlogz_flow::InOrder;

use super::decrypted;
use crate::error::{Error, Result};

/// The facts in the first events of a log.
#[derive(Debug, Clone)]
pub(super) struct PlainHead {
    /// When its server began it, in seconds since 1970.
    pub(super) created: u32,
    /// All transactions before it.
    pub(super) previous: GtidSet,
}

impl PlainHead {
    pub(super) fn read(path: &Path, keyring: Option<&Keyring>) -> Result<PlainHead> {
        let bad = |error: binlogz_binlog::Error| match error.offset() {
            Some(_) => Error::Refused(format!("{} {error}", path.display())),
            None => Error::Refused(format!("{}: {error}", path.display())),
        };
        let mut events = EventReader::new(BufReader::new(open(path, keyring)?));
        let mut created = 0;
        // A format description, then what came before; other events before any transaction tell nothing.
        while let Some((_, frame)) = events.next_event().map_err(bad)? {
            match frame.header().event_type {
                EventType::FORMAT_DESCRIPTION => created = frame.header().timestamp,
                EventType::PREVIOUS_GTIDS => {
                    let previous = PreviousGtidsEvent::decode_frame(&frame).map_err(bad)?.gtid_set;
                    return Ok(PlainHead { created, previous });
                }
                _ => break,
            }
        }
        match created {
            0 => Err(Error::Refused(format!(
                "{}: has no format description, expected a binary log",
                path.display()
            ))),
            created => Ok(PlainHead { created, previous: GtidSet::new() }),
        }
    }
}

/// A plain file's bytes in order, decrypted.
pub(super) fn open(path: &Path, keyring: Option<&Keyring>) -> Result<InOrder> {
    Ok(InOrder::new(decrypted(path, keyring)?))
}
