//! Queries of `performance_schema.binary_log_transaction_compression_stats`, which `receive::sizes` counts.

use binlogz_binlog::event::CompressionType;
use binlogz_payload::statistics::{COLUMNS, CompressionStats, CompressionTable, LogType};
use binlogz_wire::result_set::ResultRow;
use binlogz_wire::session::ReplyColumn;
use binlogz_wire::statement::{StatementTable, TableQuery};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::statement_answer::{Refusal, StatementAnswer, cell, kind};

/// ER_BAD_FIELD_ERROR.
const UNKNOWN_COLUMN: (u16, [u8; 5]) = (1054, *b"42S22");
const SCHEMA: &str = "performance_schema";
const TABLE: &str = "binary_log_transaction_compression_stats";
/// In place of a GTID.
const ANONYMOUS: &str = "ANONYMOUS";

/// Whether this is the table.
pub(crate) fn is_named(name: &StatementTable) -> bool {
    (name.schema.is_empty() || name.schema == SCHEMA) && name.table == TABLE
}

/// The answer to a query of the table.
pub(crate) fn select<'a>(table: &CompressionTable, query: &'a TableQuery) -> StatementAnswer<'a> {
    chosen(table, query).unwrap_or_else(StatementAnswer::refused)
}

fn chosen<'a>(table: &CompressionTable, query: &'a TableQuery) -> Result<StatementAnswer<'a>, Refusal> {
    let all: Vec<ResultRow> = rows(table);
    let chosen: Vec<(usize, &str)> = match query.columns.as_slice() {
        [] => COLUMNS.iter().copied().enumerate().collect(),
        columns => columns
            .iter()
            .map(|(column, name)| Ok((find(column, "field list")?, name.as_str())))
            .collect::<Result<_, Refusal>>()?,
    };
    let filter = query
        .filter
        .iter()
        .map(|(column, value)| Ok((find(column, "where clause")?, value)))
        .collect::<Result<Vec<_>, Refusal>>()?;
    let fits = |row: &&ResultRow| {
        filter.iter().all(|(at, value)| {
            let cell = row.get(*at).and_then(Option::as_deref);
            cell.is_some_and(|cell| cell.eq_ignore_ascii_case(value.as_bytes()))
        })
    };
    let limit = query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    let cells = |row: &ResultRow| chosen.iter().map(|(at, _)| row.get(*at).cloned().flatten()).collect();
    let rows = all.iter().filter(fits).take(limit).map(cells).collect();
    let is_number = |at: usize| {
        COLUMNS.get(at).is_some_and(|name| {
            ["COUNTER", "PERCENTAGE", "BYTES"].iter().any(|ending| name.ends_with(ending))
        })
    };
    let columns = chosen.iter().map(|(at, name)| ReplyColumn { name, kind: kind(is_number(*at)) }).collect();
    Ok(StatementAnswer::Rows(columns, rows))
}

fn find(column: &str, clause: &str) -> Result<usize, Refusal> {
    let at = COLUMNS.iter().position(|name| name.eq_ignore_ascii_case(column));
    at.ok_or_else(|| (UNKNOWN_COLUMN, format!("Unknown column '{column}' in '{clause}'")))
}

fn rows(table: &CompressionTable) -> Vec<ResultRow> {
    let row = |(log, compression, stats): (LogType, CompressionType, &CompressionStats)| {
        let mut row: ResultRow = vec![
            cell(log),
            cell(compression),
            cell(stats.transaction_counter),
            cell(stats.compressed_bytes_counter),
            cell(stats.uncompressed_bytes_counter),
            cell(stats.compression_percentage()),
        ];
        for transaction in [&stats.first_transaction, &stats.last_transaction] {
            row.push(transaction.id.map_or_else(|| cell(ANONYMOUS), cell));
            row.push(cell(transaction.compressed_bytes));
            row.push(cell(transaction.uncompressed_bytes));
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
