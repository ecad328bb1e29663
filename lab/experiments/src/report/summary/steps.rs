//! Every step of every cell, a row each: the same rows as the CSV.

use binlogz_figures::{Section, TableCell};

use crate::results::{Results, StepResult};

pub(crate) fn section(results: &Results) -> Section {
    let rows = results.cells.iter().flat_map(|cell| {
        cell.steps.iter().map(|measured| {
            let mut row = vec![
                cell.experiment.as_str().into(),
                cell.setting.as_str().into(),
                measured.step.as_str().into(),
                u64::from(cell.repeat).into(),
            ];
            row.extend(figures(measured));
            row
        })
    });
    Section { name: "steps", title: "All measurements", columns: COLUMNS, rows: rows.collect() }
}

const COLUMNS: &[&str] = &[
    "experiment",
    "setting",
    "step",
    "repeat",
    "elapsed_s",
    "tps",
    "qps",
    "p50_ms",
    "p95_ms",
    "p99_ms",
    "errors",
    "server_cpu_s",
    "server_memory_bytes",
    "disk_bytes",
    "sent_bytes",
    "received_bytes",
    "binlog_bytes",
    "binlog_files",
    "zstd_transactions",
    "zstd_compressed_bytes",
    "zstd_uncompressed_bytes",
    "other_transactions",
    "compressing_s",
    "expanding_s",
    "binlog_io_count",
    "binlog_io_s",
    "binlog_io_bytes",
    "other_sessions",
];

fn figures(measured: &StepResult) -> [TableCell; 24] {
    let seen = &measured.seen;
    let cost = &measured.cost;
    let decimal = |figure: Option<f64>, places| {
        figure.map_or(TableCell::Null, |figure| TableCell::decimal(figure, places))
    };
    let binary = |kind: &str| {
        cost.compression.iter().find(|row| row.log_type == "BINARY" && row.compression_type == kind)
    };
    let compressed = binary("ZSTD");
    let plain = binary("NONE");
    [
        TableCell::decimal(seen.elapsed_s, 3),
        decimal(seen.tps, 1),
        decimal(seen.qps, 1),
        decimal(seen.p50_ms, 3),
        decimal(seen.p95_ms, 3),
        decimal(seen.p99_ms, 3),
        seen.errors.into(),
        decimal(cost.server_cpu_s, 2),
        cost.server_memory_bytes.into(),
        cost.disk_bytes.into(),
        cost.sent_bytes.into(),
        cost.received_bytes.into(),
        cost.binlog_bytes.into(),
        cost.binlog_files.into(),
        compressed.map(|row| row.transactions).into(),
        compressed.map(|row| row.compressed_bytes).into(),
        compressed.map(|row| row.uncompressed_bytes).into(),
        plain.map(|row| row.transactions).into(),
        decimal(cost.compressing_s, 6),
        decimal(cost.expanding_s, 6),
        cost.binlog_io_count.into(),
        decimal(cost.binlog_io_s, 6),
        cost.binlog_io_bytes.into(),
        measured.other_sessions.into(),
    ]
}
