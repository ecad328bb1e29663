//! The sizes of a transaction, as `performance_schema.binary_log_transaction_compression_stats` counts them: what was
//! stored since the relay started or the table was truncated, by the server's rules for its binary log.
//!
//! | transaction | row | compressed | uncompressed |
//! |---|---|---|---|
//! | came compressed | BINARY ZSTD | what its payload says of itself | what the payload says of its events |
//! | was compressed here | BINARY ZSTD | the payload that was made | events after the GTID event, without checksums |
//! | is stored plain | BINARY NONE | the same | the same |

use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};
use binlogz_binlog::gtid::Gtid;
use binlogz_payload::statistics::{CompressionTable, LogType, TransactionFigures};

/// Bytes of a transaction as received.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    /// Bytes of its events after the GTID event, without checksums.
    pub(crate) events: u64,
    /// If it came as a payload: its compression type, its size, and the size of the events inside.
    pub(crate) payload: Option<(CompressionType, u64, u64)>,
}

impl Sizes {
    /// Records that it came as this payload, with the size of its events.
    pub(crate) fn came_as(&mut self, header: &TransactionPayloadHeader<'_>) {
        let (size, uncompressed) = (header.payload_size(), header.uncompressed_size());
        self.payload = Some((header.compression_type(), size, uncompressed.unwrap_or(size)));
    }

    /// Counts a transaction that is being stored. `made`: the size of the payload made from it; `committed`: its
    /// commit time in microseconds since 1970, or 0.
    pub(crate) fn count(
        self,
        table: &mut CompressionTable,
        gtid: Option<Gtid>,
        committed: u64,
        made: Option<u64>,
    ) {
        let Sizes { events, payload } = self;
        let plain = (CompressionType::NONE, events, events);
        let (compression, compressed_bytes, uncompressed_bytes) =
            made.map(|made| (CompressionType::ZSTD, made, events)).or(payload).unwrap_or(plain);
        let timestamp = Some(committed).filter(|committed| *committed > 0);
        let figures = TransactionFigures { id: gtid, compressed_bytes, uncompressed_bytes, timestamp };
        table.count(LogType::Binary, compression, figures);
    }
}
