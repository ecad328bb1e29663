//! `performance_schema.binary_log_transaction_compression_stats` at the relay: what it has stored since it was started or
//! the table truncated, counted by the server's rules for its binary log.
//!
//! | transaction | row | compressed | uncompressed |
//! |---|---|---|---|
//! | came compressed | BINARY ZSTD | what its payload says of itself | what the payload says of its events |
//! | was compressed here | BINARY ZSTD | the payload that was made | events behind the GTID event, without checksums |
//! | is stored plain | BINARY NONE | the same | the same |

use binlogz_binlog::event::{CompressionType, TransactionPayloadHeader};
use binlogz_payload::statistics::{COLUMNS, CompressionTable, LogType, TransactionFigures};
use binlogz_wire::ServerError;
use binlogz_wire::result_set::Row;
use binlogz_wire::statement::{TableName, TableQuery};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::storing::Transaction;

const SCHEMA: &str = "performance_schema";
const TABLE: &str = "binary_log_transaction_compression_stats";
/// In place of a GTID.
const ANONYMOUS: &str = "ANONYMOUS";

/// Bytes of a transaction as it came.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sizes {
    /// Of its events behind the GTID event, without checksums.
    pub(crate) events: u64,
    /// If it came as a payload: how that is compressed, its size and that of the events inside.
    pub(crate) payload: Option<(CompressionType, u64, u64)>,
}

impl Sizes {
    /// It came as this payload, whose events take so many bytes of the log.
    pub(crate) fn came_as(&mut self, header: &TransactionPayloadHeader<'_>) {
        let (size, uncompressed) = (header.payload_size(), header.uncompressed_size());
        self.payload = Some((header.compression_type(), size, uncompressed.unwrap_or(size)));
    }
}

/// Counts a transaction that is stored now; `made`: the size of the payload that was made of it.
pub(crate) fn count(table: &mut CompressionTable, transaction: &Transaction, made: Option<u64>) {
    let Sizes { events, payload } = transaction.sizes;
    let plain = (CompressionType::NONE, events, events);
    let (compression, compressed_bytes, uncompressed_bytes) =
        made.map(|made| (CompressionType::ZSTD, made, events)).or(payload).unwrap_or(plain);
    let figures = TransactionFigures {
        id: transaction.gtid,
        compressed_bytes,
        uncompressed_bytes,
        timestamp: Some(transaction.committed).filter(|committed| *committed > 0),
    };
    table.count(LogType::Binary, compression, figures);
}

/// Whether this is the table.
pub(crate) fn is_named(name: &TableName) -> bool {
    (name.schema.is_empty() || name.schema == SCHEMA) && name.table == TABLE
}

/// A column of an answer: its name, and whether it is a number.
pub(crate) type Columns = Vec<(String, bool)>;

/// The answer to a query of the table, or the server's error.
pub(crate) fn select(
    table: &CompressionTable,
    query: &TableQuery,
) -> Result<(Columns, Vec<Row>), ServerError> {
    let all: Vec<Row> = rows(table);
    let chosen = match query.columns.as_slice() {
        [] => COLUMNS.iter().enumerate().map(|(at, name)| (at, (*name).to_owned())).collect(),
        columns => columns
            .iter()
            .map(|(column, name)| Ok((find(column, "field list")?, name.clone())))
            .collect::<Result<Vec<_>, ServerError>>()?,
    };
    let filter = query
        .filter
        .iter()
        .map(|(column, value)| Ok((find(column, "where clause")?, value)))
        .collect::<Result<Vec<_>, ServerError>>()?;
    let fits = |row: &&Row| {
        filter.iter().all(|(at, value)| {
            let cell = row.get(*at).and_then(Option::as_deref);
            cell.is_some_and(|cell| cell.eq_ignore_ascii_case(value.as_bytes()))
        })
    };
    let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let cells = |row: &Row| chosen.iter().map(|(at, _)| row.get(*at).cloned().flatten()).collect();
    let rows = all.iter().filter(fits).take(limit).map(cells).collect();
    let is_number = |at: usize| {
        COLUMNS.get(at).is_some_and(|name| {
            ["COUNTER", "PERCENTAGE", "BYTES"].iter().any(|ending| name.ends_with(ending))
        })
    };
    Ok((chosen.iter().map(|(at, name)| (name.clone(), is_number(*at))).collect(), rows))
}

fn find(column: &str, place: &str) -> Result<usize, ServerError> {
    COLUMNS.iter().position(|name| name.eq_ignore_ascii_case(column)).ok_or_else(|| ServerError {
        code: 1054,
        sqlstate: Some(*b"42S22"),
        message: format!("Unknown column '{column}' in '{place}'"),
    })
}

fn rows(table: &CompressionTable) -> Vec<Row> {
    let text = |value: &dyn ToString| Some(value.to_string().into_bytes());
    let row = |(log, compression, stats): (LogType, CompressionType, &_)| {
        let stats: &binlogz_payload::statistics::CompressionStats = stats;
        let mut row: Row = vec![
            text(&log),
            text(&compression),
            text(&stats.transaction_counter),
            text(&stats.compressed_bytes_counter),
            text(&stats.uncompressed_bytes_counter),
            text(&stats.compression_percentage()),
        ];
        for transaction in [&stats.first_transaction, &stats.last_transaction] {
            row.push(transaction.id.map_or_else(|| text(&ANONYMOUS), |id| text(&id)));
            row.push(text(&transaction.compressed_bytes));
            row.push(text(&transaction.uncompressed_bytes));
            row.push(transaction.timestamp.and_then(local).map(String::into_bytes));
        }
        row
    };
    table.rows().map(row).collect()
}

/// Microseconds since 1970 in this machine's time zone, as MySQL writes a TIMESTAMP(6).
fn local(microseconds: u64) -> Option<String> {
    let time = Timestamp::from_microsecond(i64::try_from(microseconds).ok()?).ok()?;
    Some(time.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S.%6f").to_string())
}
