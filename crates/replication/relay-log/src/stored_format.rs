//! The format description at the beginning of a stored file.

use std::io::Read;

use binlogz_binlog::event::{FormatDescription, PostHeaderLengths};
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, Framing, MAGIC};
use binlogz_payload::{LogContext, ServerGeneration};
use binlogz_store::{BinlogStore, FileNumber};

use crate::error::{Error, Result};

/// Larger than any format description: 255 types.
const HEAD_SIZE_MAX: u64 = 4 << 10;

/// How to read a stored file.
#[derive(Debug, Clone)]
pub struct StoredHead {
    /// Its header.
    pub header: EventHeader,
    /// Its contents.
    pub description: FormatDescription,
    /// The event as it is in the file.
    pub event: Vec<u8>,
}

impl StoredHead {
    /// Reads the format description of a stored file.
    ///
    /// # Errors
    ///
    /// The file can't be read, or does not begin with one.
    pub fn read(store: &BinlogStore, number: FileNumber) -> Result<StoredHead> {
        StoredHead::read_from(store, number).map_err(|error| error.in_stored(|| store.names().log(number)))
    }

    fn read_from(store: &BinlogStore, number: FileNumber) -> Result<StoredHead> {
        let mut event = Vec::new();
        let reader = store.reader(number, MAGIC.len() as u64)?;
        if let Err(error) = reader.take(HEAD_SIZE_MAX).read_to_end(&mut event) {
            match Error::of_stored(error) {
                // Later bytes may be damaged: what was read before them is enough.
                Error::DamagedLog(_) if !event.is_empty() => {}
                // Half an event is not damage, but a failing disk.
                error => return Err(error),
            }
        }
        let mut head = StoredHead::decode(&event)?;
        event.truncate(head.event.len());
        head.event = event;
        Ok(head)
    }

    /// Reads the event at the front of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<StoredHead> {
        let at = |error: binlogz_binlog::Error| error.at(MAGIC.len() as u64, None);
        let cut = binlogz_binlog::Error::Truncated { needed: HEAD_SIZE_MAX, left: bytes.len() as u64 };
        let frame = Framing::new().next_frame(bytes).map_err(at)?.ok_or(at(cut))?;
        if frame.header().event_type != EventType::FORMAT_DESCRIPTION {
            let found = frame.header().event_type;
            let error = binlogz_binlog::Error::invalid("log", "first event", found, "a format description");
            return Err(at(error).into());
        }
        let frame = frame.verify().map_err(at)?;
        let description = FormatDescription::decode_frame(&frame).map_err(at)?;
        Ok(StoredHead { header: *frame.header(), description, event: frame.bytes().to_vec() })
    }

    /// The offset of the first event after it.
    pub fn end(&self) -> u64 {
        (MAGIC.len() + self.event.len()) as u64
    }

    /// How to find the events of the file.
    pub fn framing(&self) -> Framing {
        Framing::of(&self.description)
    }

    /// The checksum of the file's events.
    pub fn checksum(&self) -> ChecksumAlgorithm {
        self.description.checksum_algorithm
    }

    /// The generation of servers of its version, which tells how they compress.
    pub fn generation(&self) -> ServerGeneration {
        ServerGeneration::of_version_number(self.description.server_version_number())
    }

    /// Whether payloads may follow.
    pub fn announces_payloads(&self) -> bool {
        self.description.post_header_lengths.len() >= usize::from(EventType::TRANSACTION_PAYLOAD.0)
    }

    /// What transactions of the file are compressed or expanded with.
    pub fn context(&self) -> LogContext {
        LogContext {
            framing: self.framing(),
            post_header_lengths: PostHeaderLengths::from(&self.description),
            relay_log: false,
        }
    }

    /// Whether both describe the same file, ignoring the fields that a sender changes.
    pub fn is_of_the_same_file(&self, other: &StoredHead) -> bool {
        self.header.timestamp == other.header.timestamp
            && self.header.server_id == other.header.server_id
            && self.description.server_version == other.description.server_version
            && self.description.post_header_lengths == other.description.post_header_lengths
            && self.checksum() == other.checksum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use binlogz_binlog::ChecksumAlgorithm;
    use binlogz_binlog::gtid::GtidSet;
    use binlogz_store::{FileHead, LogEvents, StoreOptions};
    use binlogz_testkit::disk::{DiskFault, SimulatedDisk};

    use super::*;

    #[test]
    fn a_read_that_fails_is_told_as_that() {
        let disk = SimulatedDisk::new();
        let (store, _) = BinlogStore::open(Arc::new(disk.clone()), StoreOptions::default()).unwrap();
        let events = LogEvents { server_id: 1, checksum: ChecksumAlgorithm::CRC32, timestamp: 1 };
        let bytes = FileHead { events, server_version: "9.7.4", created: 0, previous_gtids: &GtidSet::new() }
            .encode();
        store.writer().unwrap().begin_file(FileNumber(1), &bytes, None).unwrap();
        assert!(StoredHead::read(&store, FileNumber(1)).is_ok());
        let mut failed = 0;
        for call in 0..8 {
            disk.trouble_at(disk.calls() + call, DiskFault::Eio, false);
            match StoredHead::read(&store, FileNumber(1)) {
                Ok(_) => {}
                // A client asking in the meantime should retry, not be told that the log is truncated.
                Err(error) => {
                    assert!(error.is_local(), "{error}");
                    failed += 1;
                }
            }
            disk.cure();
        }
        assert!(failed > 1, "{failed}");
    }
}
