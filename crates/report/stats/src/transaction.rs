//! A transaction, put together from its events; a batch may hold only some of them.

use std::sync::Arc;

use binlogz_binlog::event::{AnyGtidEvent, CompressionType, TransactionPayloadHeader};
use binlogz_binlog::gtid::Gtid;
use binlogz_binlog::transaction::TransactionContent;
use binlogz_binlog::{Error as BinlogError, EventType};
use binlogz_flow::events::Event;
use binlogz_payload::transaction::eligibility;
use binlogz_payload::{Ineligible, PayloadSizes, ServerGeneration};

use crate::by_table::{ByTable, TableName, TableTotals};
use crate::counts::{RowCounts, Totals};
use crate::largest::LargeTransaction;
use crate::reason::Reason;
use binlogz_payload::statistics::{LogType, TransactionFigures};

const MICROSECONDS: u64 = 1_000_000;

/// A transaction, or the part of it in one batch.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountedTransaction {
    /// Where it begins; `None` if that is in an earlier batch.
    begin: Option<Begin>,
    /// Its events, those inside payloads included.
    pub(crate) events: u64,
    /// Bytes of the events after the GTID event, without checksums.
    event_bytes: u64,
    /// Bytes of all events as they are stored, including headers and checksums.
    stored_bytes: u64,
    payload: Option<Payload>,
    pub(crate) rows: RowCounts,
    pub(crate) tables: ByTable,
}

#[derive(Debug, Clone, Copy)]
struct Begin {
    offset: u64,
    id: Option<Gtid>,
    /// Bytes of the GTID event without its checksum; 0 if there is none.
    gtid_size: u64,
    /// Microseconds since 1970.
    commit_timestamp: Option<u64>,
    /// Seconds since 1970, of the first statement.
    header_timestamp: u32,
    /// Bytes of the transaction, as its GTID event says.
    transaction_length: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Payload {
    compression_type: CompressionType,
    /// The sizes the payload event claims for the payload and its events.
    payload_size: u64,
    uncompressed_size: Option<u64>,
    /// The sizes that were found.
    found: Option<PayloadSizes>,
}

/// How a transaction ended.
#[derive(Debug, Clone, Copy)]
pub enum TransactionEnd {
    /// With an event of this type.
    Whole(TransactionContent, EventType),
    /// The log ends, or another transaction begins, before its end.
    CutOff,
}

impl CountedTransaction {
    /// Takes its first event.
    ///
    /// # Errors
    ///
    /// A GTID event that can't be read.
    pub(crate) fn begin(event: &Event<'_>) -> Result<Self, BinlogError> {
        let gtid = match &event.frame {
            Some(frame) => AnyGtidEvent::decode_frame(frame)?,
            None => None,
        };
        let size = size_without_checksum(event);
        let begin = Begin {
            offset: event.position.offset,
            id: gtid.as_ref().and_then(AnyGtidEvent::gtid),
            gtid_size: if gtid.is_some() { size } else { 0 },
            commit_timestamp: gtid.as_ref().and_then(|gtid| Some(gtid.commit_timestamps()?.immediate)),
            header_timestamp: event.header.timestamp,
            transaction_length: gtid.as_ref().and_then(AnyGtidEvent::transaction_length),
        };
        Ok(CountedTransaction {
            begin: Some(begin),
            event_bytes: if gtid.is_some() { 0 } else { size },
            stored_bytes: u64::from(event.header.event_size),
            ..CountedTransaction::default()
        })
    }

    /// Takes another event of the log.
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        self.event_bytes += size_without_checksum(event);
        self.stored_bytes += u64::from(event.header.event_size);
    }

    /// Takes the last event as a payload.
    pub(crate) fn payload(&mut self, event: &Event<'_>) {
        let size = u64::from(event.header.event_size);
        if let Ok(Some((fields, _))) = TransactionPayloadHeader::decode_front(event.body, size) {
            self.payload = Some(Payload {
                compression_type: fields.compression_type(),
                payload_size: fields.payload_size(),
                uncompressed_size: fields.uncompressed_size(),
                found: None,
            });
        }
    }

    /// Ends the payload.
    pub(crate) fn payload_end(&mut self, sizes: PayloadSizes) {
        let unknown = Payload {
            compression_type: CompressionType::ZSTD,
            payload_size: sizes.compressed,
            uncompressed_size: None,
            found: None,
        };
        self.payload.get_or_insert(unknown).found = Some(sizes);
    }

    /// The figures of a table.
    pub(crate) fn table(&mut self, name: &Arc<TableName>) -> &mut TableTotals {
        self.tables.of(name)
    }

    /// Adds the part of it in a later batch.
    pub(crate) fn join(&mut self, later: CountedTransaction) {
        self.events += later.events;
        self.event_bytes += later.event_bytes;
        self.stored_bytes += later.stored_bytes;
        self.rows.add(&later.rows);
        self.tables.add(&later.tables);
        self.payload = match (self.payload, later.payload) {
            // The end of a payload that began earlier: its fields are known.
            (Some(payload), Some(Payload { found, .. })) => Some(Payload { found, ..payload }),
            (payload, other) => payload.or(other),
        };
    }

    /// The figures as a server of this generation counts them: the type of compression, and the sizes.
    pub(crate) fn figures(
        &self,
        log: LogType,
        generation: ServerGeneration,
    ) -> (CompressionType, TransactionFigures) {
        let begin = self.begin;
        let totals = self.totals();
        let mut bytes = (totals.compressed_bytes, totals.uncompressed_bytes);
        let mut timestamp = begin.and_then(|begin| begin.commit_timestamp);
        let compression = self.payload.map_or(CompressionType::NONE, |payload| payload.compression_type);
        if self.payload.is_some() && generation.counts_payload_event() {
            bytes.0 = self.event_bytes;
        }
        if log == LogType::Relay {
            timestamp = None;
            let length = begin
                .and_then(|begin| begin.transaction_length)
                .unwrap_or(self.stored_bytes)
                .saturating_sub(begin.map_or(0, |begin| begin.gtid_size));
            bytes = match self.payload {
                Some(payload) => (payload.payload_size, payload.uncompressed_size.unwrap_or(bytes.1)),
                None => (length, length),
            };
        }
        let (compressed_bytes, uncompressed_bytes) = bytes;
        let id = begin.and_then(|begin| begin.id);
        (compression, TransactionFigures { id, compressed_bytes, uncompressed_bytes, timestamp })
    }

    /// The figures of this transaction alone.
    pub(crate) fn totals(&self) -> Totals {
        let sizes = self.payload.and_then(|payload| payload.found);
        Totals {
            transactions: 1,
            compressed_transactions: u64::from(self.payload.is_some()),
            rows: self.rows,
            uncompressed_bytes: sizes.map_or(self.event_bytes, |sizes| sizes.uncompressed),
            compressed_bytes: sizes.map_or(self.event_bytes, |sizes| sizes.compressed),
        }
    }

    /// The transaction as one of the largest of its file.
    pub(crate) fn large(&self) -> LargeTransaction {
        LargeTransaction {
            file: 0,
            offset: self.begin.map_or(0, |begin| begin.offset),
            id: self.begin.and_then(|begin| begin.id),
            commit_timestamp: self.begin.and_then(|begin| begin.commit_timestamp),
            totals: self.totals(),
            tables: self.tables.len() as u64,
        }
    }

    /// Its GTID; `None`: it has none, or its beginning is not known.
    pub(crate) fn id(&self) -> Option<Gtid> {
        self.begin?.id
    }

    /// When it was committed, or begun if the log doesn't say: microseconds since 1970.
    pub(crate) fn timestamp(&self) -> Option<u64> {
        let begin = self.begin?;
        Some(begin.commit_timestamp.unwrap_or(u64::from(begin.header_timestamp) * MICROSECONDS))
    }

    /// Bytes as they are stored, including GTID event, headers and checksums.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }
}

impl TransactionEnd {
    /// Why the transaction is not compressed; `None` if it is.
    pub(crate) fn reason(&self) -> Option<Reason> {
        let TransactionEnd::Whole(content, end) = self else {
            return Some(Reason::Ineligible(Ineligible::Incomplete));
        };
        match eligibility::check(content, *end) {
            Ok(()) => Some(Reason::CompressionOff),
            Err(Ineligible::AlreadyCompressed) => None,
            Err(reason) => Some(Reason::Ineligible(reason)),
        }
    }
}

/// Bytes of an event as it would stand in a payload.
pub(crate) fn size_without_checksum(event: &Event<'_>) -> u64 {
    let checksum_size = match event.position.inside {
        None => event.log.context.framing.checksum().size(),
        Some(_) => 0,
    };
    u64::from(event.header.event_size).saturating_sub(checksum_size as u64)
}
