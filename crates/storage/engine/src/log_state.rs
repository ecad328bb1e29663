//! The log as the flush stage writes it: GTIDs, logical clock, positions, checksums, files, statistics.
//!
//! Held by one leader at a time. A group goes into one buffer and out in one write.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use binlogz_binlog::checksum::{CHECKSUM_SIZE, crc32};
use binlogz_binlog::event::{
    CommitTimestamps, CompressionType, GtidEvent, GtidFlags, GtidTaggedEvent, LogicalClock, ServerVersions,
    rewrite_transaction_length,
};
use binlogz_binlog::frame::encode_event;
use binlogz_binlog::gtid::{Gtid, ServerUuid};
use binlogz_binlog::header::{END_LOG_POS_OFFSET, EVENT_SIZE_OFFSET, HEADER_SIZE};
use binlogz_binlog::{ChecksumAlgorithm, EventFrame, EventHeader, EventType, HeaderFlags, VerifiedChecksum};
use binlogz_encryption::Keyring;
use binlogz_payload::statistics::{CompressionTable, LogType, TransactionFigures};
use binlogz_store::{BinlogStore, FileHead, LogEvents, Position, StoreWriter};

use crate::error::Result;
use crate::gtids::Gtids;
use crate::prepared::{PreparedTransaction, TransactionForm};
use crate::ticket::{CommittedTransaction, Slot};

/// A group is written in parts, each of whole transactions, when it is larger than this.
const BUFFER_SIZE: usize = 16 << 20;

/// The server that writes the log.
#[derive(Debug, Clone)]
pub(crate) struct LogIdentity {
    pub(crate) uuid: ServerUuid,
    pub(crate) server_id: u32,
    pub(crate) version: String,
    /// The version as events have it: 90704 is 9.7.4.
    pub(crate) version_number: u32,
}

/// The settings that a file begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileSettings {
    pub(crate) checksum: ChecksumAlgorithm,
    pub(crate) encrypted: bool,
}

#[derive(Debug)]
pub(crate) struct LogState {
    identity: LogIdentity,
    keyring: Option<Arc<Keyring>>,
    pub(crate) gtids: Gtids,
    pub(crate) statistics: CompressionTable,
    settings: FileSettings,
    /// Transactions so far, and those in files before this one.
    sequence: i64,
    sequence_before_file: i64,
    /// Bytes not written yet, and where they will begin.
    buffer: Vec<u8>,
    base: Position,
    scratch: Vec<u8>,
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

pub(crate) fn now_seconds() -> u32 {
    (now_micros() / 1_000_000) as u32
}

impl LogState {
    /// Begins the first file since the start.
    pub(crate) fn start(
        store: &BinlogStore,
        identity: LogIdentity,
        keyring: Option<Arc<Keyring>>,
        gtids: Gtids,
        settings: FileSettings,
    ) -> Result<Self> {
        let mut writer = store.writer()?;
        let base = Position { file: writer.next_number(), offset: 0 };
        let mut state = LogState {
            identity,
            keyring,
            gtids,
            statistics: CompressionTable::default(),
            settings,
            sequence: 0,
            sequence_before_file: 0,
            buffer: Vec::new(),
            base,
            scratch: Vec::new(),
        };
        state.begin_file(&mut writer, settings, now_seconds())?;
        Ok(state)
    }

    fn begin_file(
        &mut self,
        writer: &mut StoreWriter<'_>,
        settings: FileSettings,
        created: u32,
    ) -> Result<()> {
        let key = self.key(settings)?;
        self.settings = settings;
        let head = FileHead {
            events: self.events(),
            server_version: &self.identity.version,
            created,
            previous_gtids: self.gtids.executed(),
        };
        self.base = writer.begin_file(writer.next_number(), &head.encode(), key.as_ref())?;
        self.sequence_before_file = self.sequence;
        Ok(())
    }

    fn key(&self, settings: FileSettings) -> Result<Option<binlogz_encryption::MasterKey>> {
        if !settings.encrypted {
            return Ok(None);
        }
        let uuid = self.identity.uuid.to_string();
        let key = self.keyring.as_ref().and_then(|keyring| keyring.current_key(Some(&uuid)).ok());
        key.map(Some).ok_or_else(|| binlogz_variables::VariableError::no_master_key().into())
    }

    fn events(&self) -> LogEvents {
        LogEvents {
            server_id: self.identity.server_id,
            checksum: self.settings.checksum,
            timestamp: now_seconds(),
        }
    }

    /// Where the log ends, including bytes that are not written yet.
    pub(crate) fn end(&self) -> Position {
        Position { file: self.base.file, offset: self.base.offset + self.buffer.len() as u64 }
    }

    pub(crate) fn settings(&self) -> FileSettings {
        self.settings
    }

    /// Writes all that is not written yet, in one write.
    pub(crate) fn write(&mut self, writer: &mut StoreWriter<'_>) -> Result<()> {
        if !self.buffer.is_empty() {
            self.base = writer.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Whether so much waits that it must be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.buffer.len() >= BUFFER_SIZE
    }

    /// Ends the file with a rotate event, and begins the next.
    pub(crate) fn rotate(
        &mut self,
        store: &BinlogStore,
        writer: &mut StoreWriter<'_>,
        settings: FileSettings,
    ) -> Result<()> {
        // Anything that can be refused is refused before anything is written.
        self.key(settings)?;
        let next = store.names().log(writer.next_number());
        let rotate = self.events().rotate(self.end().offset, &next);
        self.buffer.extend_from_slice(&rotate);
        self.write(writer)?;
        self.begin_file(writer, settings, 0)
    }

    /// Ends the log with a stop event, and closes its file.
    pub(crate) fn stop(&mut self, writer: &mut StoreWriter<'_>) -> Result<()> {
        let stop = self.events().stop(self.end().offset);
        self.buffer.extend_from_slice(&stop);
        self.write(writer)?;
        Ok(writer.seal()?)
    }

    /// Places a transaction after all others.
    pub(crate) fn put(&mut self, slot: &mut Slot, now: u64) -> Result<()> {
        let prepared = &slot.prepared;
        let gtid = self.gtids.take(prepared.gtid_next)?;
        self.sequence += 1;
        let following = prepared.events.len() as u64 + prepared.count * self.settings.checksum.size() as u64;
        self.put_gtid(prepared, gtid, following, now)?;
        let mut events = prepared.events.as_slice();
        while let Some(size) = event_size(events) {
            let (event, rest) = events.split_at_checked(size).unwrap_or((events, &[]));
            let start = self.buffer.len();
            self.buffer.extend_from_slice(event);
            self.buffer.extend_from_slice(
                [0; CHECKSUM_SIZE].get(..self.settings.checksum.size()).unwrap_or_default(),
            );
            self.place_event(start);
            events = rest;
        }
        self.count(prepared, gtid, now);
        slot.sequence = self.sequence;
        slot.outcome =
            Some(Ok(CommittedTransaction { gtid, outcome: prepared.outcome, end: Some(self.end()) }));
        Ok(())
    }

    fn put_gtid(
        &mut self,
        prepared: &PreparedTransaction,
        gtid: Option<Gtid>,
        following: u64,
        now: u64,
    ) -> Result<()> {
        let flags = GtidFlags(u8::from(prepared.may_have_sbr));
        let logical_clock = LogicalClock {
            last_committed: (prepared.last_committed - self.sequence_before_file).max(0),
            sequence_number: self.sequence - self.sequence_before_file,
        };
        let commit_timestamps = CommitTimestamps {
            immediate: now,
            original: prepared.original_commit_timestamp.filter(|original| *original != now),
        };
        let own = self.identity.version_number;
        let server_versions = ServerVersions {
            immediate: own,
            original: prepared.original_server_version.filter(|original| *original != own),
        };
        let tagged = gtid.filter(|gtid| gtid.tsid().tag.is_some());
        let (event_type, body) = if let Some(gtid) = tagged {
            let event = GtidTaggedEvent {
                last_non_ignorable_field: 0,
                flags,
                gtid,
                logical_clock,
                commit_timestamps,
                transaction_length: 0,
                server_versions,
                commit_group_ticket: None,
                unknown_fields: &[],
            };
            (EventType::GTID_TAGGED, event.encode())
        } else {
            let event = GtidEvent {
                flags,
                uuid: gtid.map_or(ServerUuid([0; 16]), |gtid| gtid.tsid().uuid),
                gno: gtid.map_or(0, |gtid| gtid.gno()),
                logical_clock: Some(logical_clock),
                commit_timestamps: Some(commit_timestamps),
                transaction_length: Some(0),
                server_versions: Some(server_versions),
                commit_group_ticket: None,
                trailing: &[],
            };
            let event_type = if gtid.is_some() { EventType::GTID } else { EventType::ANONYMOUS_GTID };
            (event_type, event.encode()?)
        };
        let header = EventHeader {
            timestamp: prepared.timestamp,
            event_type,
            server_id: prepared.server_id,
            event_size: 0,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        let checksum = self.settings.checksum;
        let event = encode_event(header, &body, checksum);
        self.scratch.clear();
        rewrite_transaction_length(
            &EventFrame::from_bytes(&event, checksum.size())?.proven(VerifiedChecksum::made_here()),
            following,
            &mut self.scratch,
        )?;
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&self.scratch);
        self.place_event(start);
        Ok(())
    }

    /// Fills in size, position and checksum of the event that begins at `start` and ends the buffer.
    fn place_event(&mut self, start: usize) {
        let end = self.base.offset + self.buffer.len() as u64;
        let Some(event) = self.buffer.get_mut(start..) else { return };
        let size = event.len() as u32;
        // Positions are modulo 2^32, as mysqld has them.
        for (offset, value) in [(EVENT_SIZE_OFFSET, size), (END_LOG_POS_OFFSET, end as u32)] {
            if let Some(place) = event.get_mut(offset..offset + 4) {
                place.copy_from_slice(&value.to_le_bytes());
            }
        }
        if self.settings.checksum.size() > 0
            && let Some((covered, place)) = event.split_last_chunk_mut::<CHECKSUM_SIZE>()
        {
            *place = crc32(covered).to_le_bytes();
        }
    }

    fn count(&mut self, prepared: &PreparedTransaction, id: Option<Gtid>, now: u64) {
        let (compression, uncompressed_bytes, compressed_bytes) = match prepared.outcome {
            TransactionForm::Compressed { uncompressed_bytes, compressed_bytes } => {
                (CompressionType::ZSTD, uncompressed_bytes, compressed_bytes)
            }
            TransactionForm::Plain { bytes, .. } => (CompressionType::NONE, bytes, bytes),
            TransactionForm::Empty => return,
        };
        let figures = TransactionFigures { id, compressed_bytes, uncompressed_bytes, timestamp: Some(now) };
        self.statistics.count(LogType::Binary, compression, figures);
    }
}

/// The size of the event at the front; `None` after the last.
fn event_size(events: &[u8]) -> Option<usize> {
    let size = events.get(EVENT_SIZE_OFFSET..EVENT_SIZE_OFFSET + 4)?.first_chunk::<4>()?;
    // The cache made the header: it is not below a header's size.
    Some((u32::from_le_bytes(*size) as usize).max(HEADER_SIZE))
}
