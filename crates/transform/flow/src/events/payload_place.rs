//! A payload event that is too large for a worker: where it is, and where its bytes can be read.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use binlogz_binlog::{Error as BinlogError, EventHeader};

use crate::read::LargeUnit;
use crate::read::buffers::LentBuffer;

/// A payload event in its log.
#[derive(Debug)]
pub(super) struct PayloadPlace {
    pub(super) offset: u64,
    pub(super) header: EventHeader,
    /// The event up to its payload.
    pub(super) front: Box<[u8]>,
    /// The payload event's stored checksum, where the log has checksums.
    pub(super) checksum: Option<u32>,
    /// The whole payload event.
    pub(super) source: Arc<PayloadBytes>,
}

/// Where the bytes of a payload event are.
#[derive(Debug)]
pub(super) enum PayloadBytes {
    Memory { bytes: Arc<LentBuffer>, range: Range<usize> },
    Large(LargeUnit),
}

impl PayloadBytes {
    /// Appends a range of the event's bytes to `out`.
    pub(super) fn read(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), BinlogError> {
        match self {
            PayloadBytes::Memory { bytes, range: event } => {
                let event = bytes.get(event.clone()).unwrap_or_default();
                out.extend_from_slice(
                    event.get(range.start as usize..range.end as usize).unwrap_or_default(),
                );
            }
            PayloadBytes::Large(large) => {
                large.reader(range.clone()).read_to_end(out)?;
            }
        }
        Ok(())
    }
}
