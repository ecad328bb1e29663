//! The events around the transactions in each file of a server's own log, as mysqld writes them.
//!
//! ```text
//! magic (4) | format description, in use | previous GTIDs | transactions … | rotate or stop
//! ```

use binlogz_binlog::event::{
    FormatDescription, POST_HEADER_LENGTHS, PreviousGtidsEvent, RotateEvent, SERVER_VERSION_SIZE,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::GtidSet;
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{ChecksumAlgorithm, EventHeader, EventType, HeaderFlags, MAGIC};

/// Makes the events around transactions.
#[derive(Debug, Clone, Copy)]
pub struct LogEvents {
    /// The id of the server that writes them.
    pub server_id: u32,
    /// The checksum after each event.
    pub checksum: ChecksumAlgorithm,
    /// Seconds since 1970.
    pub timestamp: u32,
}

impl LogEvents {
    /// The rotate event at `offset`: `next` is the name of the next file.
    pub fn rotate(&self, offset: u64, next: &str) -> Vec<u8> {
        let body = RotateEvent { position: MAGIC.len() as u64, name: next.as_bytes() }.encode();
        self.event(EventType::ROTATE, HeaderFlags::default(), offset, &body, self.checksum)
    }

    /// The stop event at `offset`: the server was shut down.
    pub fn stop(&self, offset: u64) -> Vec<u8> {
        self.event(EventType::STOP, HeaderFlags::default(), offset, &[], self.checksum)
    }

    fn event(
        &self,
        event_type: EventType,
        flags: HeaderFlags,
        offset: u64,
        body: &[u8],
        checksum: ChecksumAlgorithm,
    ) -> Vec<u8> {
        let end = offset + (HEADER_SIZE + body.len() + checksum.size()) as u64;
        let header = EventHeader {
            timestamp: self.timestamp,
            event_type,
            server_id: self.server_id,
            event_size: 0,
            // Modulo 2^32, as mysqld does it.
            end_log_pos: end as u32,
            flags,
        };
        encode_event(header, body, checksum)
    }
}

/// The head of a file.
#[derive(Debug, Clone)]
pub struct FileHead<'a> {
    /// Makes the head's events: their server id, checksums and timestamp.
    pub events: LogEvents,
    /// The version string of the format description, at most 50 bytes.
    pub server_version: &'a str,
    /// When the server started, in its first file; 0 in the others.
    pub created: u32,
    /// The GTIDs of all earlier files.
    pub previous_gtids: &'a GtidSet,
}

impl FileHead<'_> {
    /// Encodes the magic, format description and previous GTIDs.
    pub fn encode(&self) -> Vec<u8> {
        let mut server_version = [0; SERVER_VERSION_SIZE];
        for (place, byte) in server_version.iter_mut().zip(self.server_version.bytes()) {
            *place = byte;
        }
        let description = FormatDescription {
            binlog_version: 4,
            server_version,
            created: self.created,
            header_length: HEADER_SIZE as u8,
            post_header_lengths: POST_HEADER_LENGTHS.to_vec(),
            checksum_algorithm: self.events.checksum,
        };
        let previous = PreviousGtidsEvent {
            gtid_set: self.previous_gtids.clone(),
            format: self.previous_gtids.format(),
        };
        let mut head = MAGIC.to_vec();
        // The format description has a checksum even if the other events have none.
        head.extend(self.events.event(
            EventType::FORMAT_DESCRIPTION,
            HeaderFlags::IN_USE,
            MAGIC.len() as u64,
            &description.encode(),
            ChecksumAlgorithm::CRC32,
        ));
        head.extend(self.events.event(
            EventType::PREVIOUS_GTIDS,
            HeaderFlags::IGNORABLE,
            head.len() as u64,
            &previous.encode(),
            self.events.checksum,
        ));
        head
    }
}
