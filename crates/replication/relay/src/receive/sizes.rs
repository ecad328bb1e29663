//! Counts the sizes of transactions as `performance_schema.binary_log_transaction_compression_stats` does, by the
//! server's rules for its binary log. It counts everything stored since the relay started or the table was truncated.
//!
//! | transaction | row | compressed | uncompressed |
//! |---|---|---|---|
//! | came compressed | BINARY ZSTD | what its payload says of itself | what the payload says of its events |
//! | was compressed here | BINARY ZSTD | the payload that was made | events after the GTID event, without checksums |
//! | is stored plain | BINARY NONE | the same | the same |
//!
//! If the server counts the payload event instead of the payload, so does the relay
//! ([`ServerGeneration::counts_payload_event`]).

use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};
use binlogz_binlog::gtid::Gtid;
use binlogz_payload::statistics::{CompressionTable, LogType, TransactionFigures};
use binlogz_payload::{PayloadMark, ServerGeneration};

/// Bytes of a transaction as received.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    /// Bytes of its events after the GTID event, without checksums.
    pub(crate) events: u64,
    /// The payload it came as.
    pub(crate) payload: Option<PayloadAccount>,
}

/// A payload's own account of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PayloadAccount {
    compression: CompressionType,
    size: u64,
    /// Bytes of the events inside.
    uncompressed: u64,
}

impl Sizes {
    /// Records that it came as this payload, with the size of its events.
    pub(crate) fn came_as(&mut self, header: &TransactionPayloadHeader<'_>) {
        let compression = header.compression_type();
        let size = header.payload_size();
        let uncompressed = header.uncompressed_size().unwrap_or(size);
        self.payload = Some(PayloadAccount { compression, size, uncompressed });
    }

    /// Counts a transaction that is being stored, in the log of a server of this generation. `made`: the payload made
    /// from it; `committed`: its commit time in microseconds since 1970, or 0.
    pub(crate) fn count(
        self,
        table: &mut CompressionTable,
        generation: ServerGeneration,
        gtid: Option<Gtid>,
        committed: u64,
        made: Option<PayloadMark>,
    ) {
        let Sizes { events, payload } = self;
        let with_event = generation.counts_payload_event();
        let counted = |size: u64, event: u64| if with_event { event } else { size };
        let (compression, compressed_bytes, uncompressed_bytes) = match (made, payload) {
            (Some(made), _) => (CompressionType::ZSTD, counted(made.payload_size, made.event_size), events),
            // Its event is all that follows the GTID event.
            (None, Some(came)) => (came.compression, counted(came.size, events), came.uncompressed),
            (None, None) => (CompressionType::NONE, events, events),
        };
        let timestamp = Some(committed).filter(|committed| *committed > 0);
        let figures = TransactionFigures { id: gtid, compressed_bytes, uncompressed_bytes, timestamp };
        table.count(LogType::Binary, compression, figures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_count_as_at_the_source() {
        let payload = TransactionPayloadHeader::new(CompressionType::ZSTD, 1000, Some(5000));
        let mut came = Sizes { events: 1033, payload: None };
        came.came_as(&payload);
        let plain = Sizes { events: 700, payload: None };
        let made = PayloadMark { payload_size: 300, event_size: 331 };
        let counted = |generation, sizes: Sizes, made| {
            let mut table = CompressionTable::default();
            sizes.count(&mut table, generation, None, 0, made);
            let (_, kind, stats) = table.rows().next().unwrap();
            (kind, stats.compressed_bytes_counter, stats.uncompressed_bytes_counter)
        };
        for (generation, came_bytes, made_bytes) in [
            (ServerGeneration::Flushed, 1033, 331),
            (ServerGeneration::FirstSized, 1000, 300),
            (ServerGeneration::Sized, 1000, 300),
        ] {
            assert_eq!(counted(generation, came, None), (CompressionType::ZSTD, came_bytes, 5000));
            assert_eq!(counted(generation, plain, Some(made)), (CompressionType::ZSTD, made_bytes, 700));
            assert_eq!(counted(generation, plain, None), (CompressionType::NONE, 700, 700));
        }
    }
}
