//! A transaction ready for the log: plain, or as a payload event. Made in its session, outside every lock.

use binlogz_binlog::event::transaction_payload::{HEADER_SIZE_MAX, PAYLOAD_SIZE_MAX};
use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};
use binlogz_binlog::header::HEADER_SIZE;
use binlogz_binlog::{EventHeader, EventType, HeaderFlags};
use binlogz_payload::transaction::eligibility;
use binlogz_payload::{CompressionLevel, Ineligible};

use crate::cache::Cache;
use crate::compressors::Compressors;
use crate::error::Result;
use crate::gtids::GtidNext;

/// The form of a transaction in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionForm {
    /// The transaction is one payload event.
    Compressed {
        /// Bytes of its events, without checksums.
        uncompressed_bytes: u64,
        /// Bytes of the payload.
        compressed_bytes: u64,
    },
    /// Plain.
    Plain {
        /// Bytes of its events, without checksums.
        bytes: u64,
        /// The reason.
        reason: PlainReason,
    },
    /// Not at all: it changed nothing.
    Empty,
}

/// Why a transaction is not compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainReason {
    /// `binlog_transaction_compression` is OFF in its session.
    Off,
    /// The server's rules.
    Ineligible(Ineligible),
}

/// A transaction as a session passes it to the pipeline. The buffer is passed back and forth.
#[derive(Debug)]
pub(crate) struct PreparedTransaction {
    /// Whole events without checksums, at position 0.
    pub(crate) events: Vec<u8>,
    /// How many they are.
    pub(crate) count: u64,
    pub(crate) outcome: TransactionForm,
    pub(crate) may_have_sbr: bool,
    pub(crate) timestamp: u32,
    pub(crate) server_id: u32,
    pub(crate) gtid_next: GtidNext,
    /// The last transaction that had committed when this one began to.
    pub(crate) last_committed: i64,
    /// Microseconds since 1970, on the server that committed first, if that was another.
    pub(crate) original_commit_timestamp: Option<u64>,
    pub(crate) original_server_version: Option<u32>,
}

impl Default for PreparedTransaction {
    fn default() -> Self {
        PreparedTransaction {
            events: Vec::new(),
            count: 0,
            outcome: TransactionForm::Empty,
            may_have_sbr: false,
            timestamp: 0,
            server_id: 0,
            gtid_next: GtidNext::Automatic(None),
            last_committed: 0,
            original_commit_timestamp: None,
            original_server_version: None,
        }
    }
}

impl PreparedTransaction {
    /// Takes a whole transaction, and compresses it if it is to be.
    pub(crate) fn take(
        &mut self,
        cache: &Cache,
        level: Option<CompressionLevel>,
        compressors: &Compressors,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let content = cache.content();
        self.may_have_sbr = content.with_sbr || !content.with_rbr;
        let last = cache.last().copied();
        self.timestamp = last.map_or(0, |last| last.timestamp);
        self.server_id = last.map_or(0, |last| last.server_id);
        self.events.clear();
        let reason = match (level, last.map(|last| eligible(cache, last.event_type))) {
            (None, _) | (_, None) => PlainReason::Off,
            (_, Some(Err(reason))) => PlainReason::Ineligible(reason),
            (Some(level), Some(Ok(()))) => {
                scratch.clear();
                // As in the server, any failure to compress leaves it plain.
                let compressed = compressors.compress(level, cache.bytes(), scratch);
                if compressed.is_ok() && scratch.len() as u64 <= PAYLOAD_SIZE_MAX {
                    self.put_payload(cache, scratch);
                    return Ok(());
                }
                PlainReason::Ineligible(Ineligible::TooLarge)
            }
        };
        self.events.extend_from_slice(cache.bytes());
        self.count = cache.events();
        self.outcome = TransactionForm::Plain { bytes: cache.bytes().len() as u64, reason };
        Ok(())
    }

    fn put_payload(&mut self, cache: &Cache, payload: &[u8]) {
        let compressed_bytes = payload.len() as u64;
        let uncompressed_bytes = cache.bytes().len() as u64;
        let fields =
            TransactionPayloadHeader::new(CompressionType::ZSTD, compressed_bytes, Some(uncompressed_bytes));
        self.events.reserve(HEADER_SIZE + HEADER_SIZE_MAX + payload.len());
        self.events.resize(HEADER_SIZE, 0);
        fields.encode(&mut self.events);
        self.events.extend_from_slice(payload);
        let header = EventHeader {
            timestamp: self.timestamp,
            event_type: EventType::TRANSACTION_PAYLOAD,
            server_id: self.server_id,
            // PAYLOAD_SIZE_MAX leaves room for the headers below 1 GiB.
            event_size: self.events.len() as u32,
            end_log_pos: 0,
            flags: HeaderFlags::default(),
        };
        if let Some(place) = self.events.get_mut(..HEADER_SIZE) {
            place.copy_from_slice(&header.encode());
        }
        self.count = 1;
        self.outcome = TransactionForm::Compressed { uncompressed_bytes, compressed_bytes };
    }
}

/// The server's rules in its order; it knows about non-transactional changes that a log does not show.
fn eligible(cache: &Cache, end: EventType) -> Result<(), Ineligible> {
    match eligibility::check(cache.content(), end) {
        Err(Ineligible::Incident) => Err(Ineligible::Incident),
        _ if cache.is_non_transactional() => Err(Ineligible::NonTransactional),
        other => other,
    }
}
