//! The rows of `performance_schema.binary_log_transaction_compression_stats`, by the server's rules.
//!
//! | log, type | uncompressed | compressed |
//! |---|---|---|
//! | BINARY ZSTD | events inside the payload | payload, without the fields before it |
//! | BINARY NONE | events after the GTID event, without checksums | the same |
//! | RELAY ZSTD | what the payload says of its events | what it says of itself |
//! | RELAY NONE | what the GTID event says of the transaction, less itself without checksum | the same |
//!
//! GTID events never count. The last row thus counts all checksums, even the GTID event's. Timestamps are the
//! commit's, except for relay logs, where the server takes the time at which it received the transaction,
//! which is in no log. (Facts of MySQL 9.7.4's `binlog::monitoring::Context`.) MySQL 8.0.20 to 8.0.33 count the whole payload
//! event, without its checksum, for BINARY ZSTD ([`ServerGeneration::counts_payload_event`]).

use std::fmt;

use binlogz_binlog::event::CompressionType;
use binlogz_binlog::gtid::Gtid;

#[cfg(doc)]
use crate::codec::server::ServerGeneration;

/// The kind of log that holds a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogType {
    /// A binary log.
    Binary,
    /// A relay log.
    Relay,
}

impl fmt::Display for LogType {
    /// Writes the kind of log as the server's LOG_TYPE has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogType::Binary => "BINARY",
            LogType::Relay => "RELAY",
        })
    }
}

/// One transaction as the server counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionFigures {
    /// GTID of the transaction; `None` if it is anonymous.
    pub id: Option<Gtid>,
    /// Bytes that the server counts as compressed: which ones depends on the kind of log and its compression.
    pub compressed_bytes: u64,
    /// Bytes that the server counts as uncompressed: which ones depends on the kind of log and its compression.
    pub uncompressed_bytes: u64,
    /// Microseconds since 1970; `None` where the log doesn't say.
    pub timestamp: Option<u64>,
}

/// A row of the server's table, with the names of its columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressionStats {
    /// Transactions.
    pub transaction_counter: u64,
    /// Sum over all of them.
    pub compressed_bytes_counter: u64,
    /// Sum over all of them.
    pub uncompressed_bytes_counter: u64,
    /// The first.
    pub first_transaction: TransactionFigures,
    /// The last.
    pub last_transaction: TransactionFigures,
}

impl CompressionStats {
    fn of(transaction: TransactionFigures) -> Self {
        CompressionStats {
            transaction_counter: 1,
            compressed_bytes_counter: transaction.compressed_bytes,
            uncompressed_bytes_counter: transaction.uncompressed_bytes,
            first_transaction: transaction,
            last_transaction: transaction,
        }
    }

    /// Adds the figures of later parts of the log. The sizes in relay logs may be nonsense.
    fn add(&mut self, other: &CompressionStats) {
        let add = |sum: &mut u64, other: u64| *sum = sum.saturating_add(other);
        add(&mut self.transaction_counter, other.transaction_counter);
        add(&mut self.compressed_bytes_counter, other.compressed_bytes_counter);
        add(&mut self.uncompressed_bytes_counter, other.uncompressed_bytes_counter);
        self.last_transaction = other.last_transaction;
    }

    /// The server's COMPRESSION_PERCENTAGE: negative where payloads are larger than their contents.
    pub fn compression_percentage(&self) -> i64 {
        compression_percentage(self.compressed_bytes_counter, self.uncompressed_bytes_counter)
    }
}

/// The share saved, in percent, rounded half away from zero.
pub fn compression_percentage(compressed: u64, uncompressed: u64) -> i64 {
    if uncompressed == 0 {
        return 0;
    }
    ((1.0 - compressed as f64 / uncompressed as f64) * 100.0).round() as i64
}

/// The columns of the server's table.
pub const COLUMNS: [&str; 14] = [
    "LOG_TYPE",
    "COMPRESSION_TYPE",
    "TRANSACTION_COUNTER",
    "COMPRESSED_BYTES_COUNTER",
    "UNCOMPRESSED_BYTES_COUNTER",
    "COMPRESSION_PERCENTAGE",
    "FIRST_TRANSACTION_ID",
    "FIRST_TRANSACTION_COMPRESSED_BYTES",
    "FIRST_TRANSACTION_UNCOMPRESSED_BYTES",
    "FIRST_TRANSACTION_TIMESTAMP",
    "LAST_TRANSACTION_ID",
    "LAST_TRANSACTION_COMPRESSED_BYTES",
    "LAST_TRANSACTION_UNCOMPRESSED_BYTES",
    "LAST_TRANSACTION_TIMESTAMP",
];

/// The server's table: up to four rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CompressionTable {
    /// BINARY and RELAY, each ZSTD and NONE.
    rows: [Option<CompressionStats>; 4],
}

impl CompressionTable {
    /// The rows' keys, in the server's order.
    const KEYS: [(LogType, CompressionType); 4] = [
        (LogType::Binary, CompressionType::ZSTD),
        (LogType::Binary, CompressionType::NONE),
        (LogType::Relay, CompressionType::ZSTD),
        (LogType::Relay, CompressionType::NONE),
    ];

    /// Counts a transaction after all others.
    pub fn count(&mut self, log: LogType, compression: CompressionType, figures: TransactionFigures) {
        let row = Self::KEYS.iter().zip(&mut self.rows).find(|(key, _)| **key == (log, compression));
        if let Some((_, row)) = row {
            add(row, &CompressionStats::of(figures));
        }
    }

    /// Adds the figures of later parts of the log.
    pub fn add(&mut self, other: &CompressionTable) {
        for (row, other) in self.rows.iter_mut().zip(&other.rows) {
            if let Some(other) = other {
                add(row, other);
            }
        }
    }

    /// The rows there are.
    pub fn rows(&self) -> impl Iterator<Item = (LogType, CompressionType, &CompressionStats)> {
        let rows = Self::KEYS.iter().zip(&self.rows);
        rows.filter_map(|((log, compression), row)| Some((*log, *compression, row.as_ref()?)))
    }
}

fn add(row: &mut Option<CompressionStats>, other: &CompressionStats) {
    match row {
        Some(row) => row.add(other),
        None => *row = Some(*other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_rounded_as_by_the_server() {
        for (compressed, uncompressed, expected) in [
            (140, 188, 26),
            (4, 1000, 100),
            (6, 1000, 99),
            (1000, 1000, 0),
            (1006, 1000, -1),
            (1004, 1000, 0),
            (240, 188, -28),
            (125, 1000, 88),
            (0, 0, 0),
        ] {
            let percentage = compression_percentage(compressed, uncompressed);
            assert_eq!(percentage, expected, "{compressed} of {uncompressed}");
        }
    }

    #[test]
    fn first_and_last_follow_the_order() {
        let figures = |bytes| TransactionFigures {
            id: None,
            compressed_bytes: bytes,
            uncompressed_bytes: 2 * bytes,
            timestamp: Some(bytes),
        };
        let mut table = CompressionTable::default();
        table.count(LogType::Binary, CompressionType::ZSTD, figures(1));
        let mut behind = CompressionTable::default();
        behind.count(LogType::Binary, CompressionType::ZSTD, figures(2));
        behind.count(LogType::Binary, CompressionType::ZSTD, figures(3));
        behind.count(LogType::Relay, CompressionType::NONE, figures(4));
        table.add(&behind);
        let rows: Vec<_> = table.rows().collect();
        assert_eq!(rows.len(), 2);
        let (log, compression, row) = rows[0];
        assert_eq!((log, compression), (LogType::Binary, CompressionType::ZSTD));
        assert_eq!((row.transaction_counter, row.compressed_bytes_counter), (3, 6));
        assert_eq!((row.first_transaction, row.last_transaction), (figures(1), figures(3)));
        assert_eq!(row.compression_percentage(), 50);
        assert_eq!(rows[1].2.transaction_counter, 1);
    }
}
