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
    Ok(rows.read(|rows| rows.iter().map(log_statistics).collect()))
}

fn log_statistics(row: &TextRow) -> Result<LogStatistics, String> {
    Ok(LogStatistics {
        log: row.text(0),
        compression: row.text(1),
        transactions: row.counter(2, "TRANSACTION_COUNTER")?,
        compressed_bytes: row.counter(3, "COMPRESSED_BYTES_COUNTER")?,
        uncompressed_bytes: row.counter(4, "UNCOMPRESSED_BYTES_COUNTER")?,
        last_transaction: row.text(5),
        last_timestamp: row.text(6),
    })
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
    Ok(rows.read(|rows| rows.iter().map(compression_stage).collect()))
}

fn compression_stage(row: &TextRow) -> Result<CompressionStage, String> {
    Ok(CompressionStage {
        name: row.text(0),
        is_timed: row.get(1) == Some("1"),
        count: row.counter(2, "COUNT_STAR")?,
        picoseconds: row.counter(3, "SUM_TIMER_WAIT")?,
    })
}

pub(super) fn binlog_io(asker: &mut ServerAsker<'_>) -> Result<Fact<BinlogIo>, Error> {
    let rows = asker.rows(
        "SELECT i.ENABLED = 'YES' AND i.TIMED = 'YES', s.SUM_TIMER_WRITE + s.SUM_TIMER_MISC \
         FROM performance_schema.setup_instruments i \
         JOIN performance_schema.file_summary_by_event_name s ON s.EVENT_NAME = i.NAME \
         WHERE i.NAME = 'wait/io/file/sql/binlog'",
        "SELECT ON performance_schema.*",
    )?;
    Ok(match rows.read(|rows| rows.first().map(file_io).transpose()) {
        Fact::Known(Some(io)) => Fact::Known(io),
        Fact::Known(None) | Fact::Absent => Fact::Absent,
        Fact::NotGranted(grant) => Fact::NotGranted(grant),
        Fact::Refused(why) => Fact::Refused(why),
    })
}

fn file_io(row: &TextRow) -> Result<BinlogIo, String> {
    Ok(BinlogIo {
        is_timed: row.get(0) == Some("1"),
        picoseconds: row.counter(1, "SUM_TIMER_WRITE + SUM_TIMER_MISC")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_is_no_number_is_told() {
        let texts = ["BINARY", "ZSTD", "7", "70", "700", "uuid:7", "now"].map(Some);
        let known = log_statistics(&TextRow::of(&texts)).unwrap();
        assert_eq!((known.transactions, known.compressed_bytes, known.uncompressed_bytes), (7, 70, 700));
        let mut unreadable = texts;
        unreadable[3] = Some("-70");
        let fact = Fact::Known(vec![TextRow::of(&texts), TextRow::of(&unreadable)]);
        let read: Fact<Vec<_>> = fact.read(|rows| rows.iter().map(log_statistics).collect());
        let why = "COMPRESSED_BYTES_COUNTER is '-70', expected a number";
        assert_eq!(read, Fact::Refused(why.to_owned()));
        let stage = compression_stage(&TextRow::of(&[Some("stage"), Some("1"), None, Some("1")]));
        assert_eq!(stage, Err("COUNT_STAR is NULL, expected a number".to_owned()));
        let io = file_io(&TextRow::of(&[Some("1"), Some("")]));
        assert_eq!(io, Err("SUM_TIMER_WRITE + SUM_TIMER_MISC is '', expected a number".to_owned()));
    }
}
