//! The server's own figures of compression: its statistics table, its stages, the time spent on the log's file.

use binlogz_source::Error;

use crate::ask::{Fact, ServerAsker, TextRow};

/// A row of binary_log_transaction_compression_stats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogStatistics {
    /// BINARY or RELAY.
    pub(crate) log: String,
    /// ZSTD or NONE.
    pub(crate) compression: String,
    pub(crate) transactions: u64,
    pub(crate) compressed_bytes: u64,
    pub(crate) uncompressed_bytes: u64,
    pub(crate) last_transaction: String,
    pub(crate) last_timestamp: String,
}

/// A stage of compression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompressionStage {
    pub(crate) name: String,
    pub(crate) is_timed: bool,
    pub(crate) count: u64,
    pub(crate) picoseconds: u64,
}

/// Time spent on the binary log's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BinlogIo {
    pub(crate) is_timed: bool,
    /// Writing and syncing; reading is mostly the dump threads' business.
    pub(crate) picoseconds: u64,
}

pub(super) fn statistics(asker: &mut ServerAsker<'_>) -> Result<Fact<Vec<LogStatistics>>, Error> {
    let rows = asker.rows(
        "SELECT LOG_TYPE, COMPRESSION_TYPE, TRANSACTION_COUNTER, COMPRESSED_BYTES_COUNTER, \
         UNCOMPRESSED_BYTES_COUNTER, LAST_TRANSACTION_ID, LAST_TRANSACTION_TIMESTAMP \
         FROM performance_schema.binary_log_transaction_compression_stats",
        "SELECT ON performance_schema.binary_log_transaction_compression_stats",
    )?;
    Ok(rows.map(|rows| {
        let statistics = |row: &TextRow| LogStatistics {
            log: row.text(0),
            compression: row.text(1),
            transactions: row.number(2).unwrap_or_default(),
            compressed_bytes: row.number(3).unwrap_or_default(),
            uncompressed_bytes: row.number(4).unwrap_or_default(),
            last_transaction: row.text(5),
            last_timestamp: row.text(6),
        };
        rows.iter().map(statistics).collect()
    }))
}

pub(super) fn stages(asker: &mut ServerAsker<'_>) -> Result<Fact<Vec<CompressionStage>>, Error> {
    // The text after "changes" differs between releases.
    let rows = asker.rows(
        "SELECT i.NAME, i.ENABLED = 'YES' AND i.TIMED = 'YES', s.COUNT_STAR, s.SUM_TIMER_WAIT \
         FROM performance_schema.setup_instruments i \
         LEFT JOIN performance_schema.events_stages_summary_global_by_event_name s ON s.EVENT_NAME = i.NAME \
         WHERE i.NAME LIKE 'stage/sql/Compressing transaction changes%' \
         OR i.NAME LIKE 'stage/sql/Decompressing transaction changes%' ORDER BY i.NAME",
        "SELECT ON performance_schema.*",
    )?;
    Ok(rows.map(|rows| {
        let stage = |row: &TextRow| CompressionStage {
            name: row.text(0),
            is_timed: row.get(1) == Some("1"),
            count: row.number(2).unwrap_or_default(),
            picoseconds: row.number(3).unwrap_or_default(),
        };
        rows.iter().map(stage).collect()
    }))
}

pub(super) fn binlog_io(asker: &mut ServerAsker<'_>) -> Result<Fact<BinlogIo>, Error> {
    let rows = asker.rows(
        "SELECT i.ENABLED = 'YES' AND i.TIMED = 'YES', s.SUM_TIMER_WRITE + s.SUM_TIMER_MISC \
         FROM performance_schema.setup_instruments i \
         JOIN performance_schema.file_summary_by_event_name s ON s.EVENT_NAME = i.NAME \
         WHERE i.NAME = 'wait/io/file/sql/binlog'",
        "SELECT ON performance_schema.*",
    )?;
    Ok(match rows.map(|rows| rows.into_iter().next()) {
        Fact::Known(None) => Fact::Absent,
        fact => fact.map(|row| BinlogIo {
            is_timed: row.as_ref().is_some_and(|row| row.get(0) == Some("1")),
            picoseconds: row.and_then(|row| row.number(1)).unwrap_or_default(),
        }),
    })
}
