//! The rows as metrics that Prometheus reads: for the textfile collector of its node exporter, from a cron job, or served.

use std::fmt::Write;

use binlogz_figures::prometheus_label;

use crate::row::FleetRow;

/// A metric: its name, its help, and its value for a row.
type Metric = (&'static str, &'static str, fn(&FleetRow) -> Option<i64>);

const METRICS: [Metric; 13] = [
    ("up", "Whether the target was asked and has answered", |row| Some(i64::from(row.reached))),
    ("severity", "How bad its state is: 0 good, 1 neutral, 2 a warning, 3 bad", |row| Some(row.tone as i64)),
    ("lag_seconds", "How far a relay lags behind its source", |row| signed(row.lag_seconds)),
    ("bytes", "Bytes received since the relay's start, or of the logs in the archive", |row| {
        signed(row.bytes)
    }),
    ("saved_bytes", "How many of them were not stored", |row| row.saved_bytes),
    ("archive_waiting_files", "Closed files that are not archived yet", |row| {
        signed(row.archive_waiting_files)
    }),
    ("last_restorable_timestamp_seconds", "The last moment to which a server can be brought", |row| {
        Some(row.last_restorable.as_ref()?.time?.into())
    }),
    ("gaps", "Places in the archive where transactions are missing", |row| {
        i64::try_from(row.gaps.as_ref()?.len()).ok()
    }),
    (
        "last_check_timestamp_seconds",
        "When the archive's last check began that looked deepest; without it nobody knows whether it is whole",
        |row| signed(row.checked),
    ),
    (
        "check_problems",
        "What a check of the archive found damaged or missing and none has seen mended since",
        |row| signed(row.check_problems),
    ),
    ("replicas", "Replicas that read the log", |row| signed(row.replicas)),
    ("replicas_uncompressed", "Those that can't read compressed transactions", |row| {
        signed(row.replicas_uncompressed)
    }),
    ("findings", "Things to look at", |row| i64::try_from(row.findings.len()).ok()),
];

fn signed(value: Option<u64>) -> Option<i64> {
    i64::try_from(value?).ok()
}

/// The type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How long the last round took, and how long ago it ended: an answer of long ago looks well otherwise.
pub fn of_round(seconds: f64, age: f64) -> String {
    let mut text = String::new();
    for (name, help, value) in [
        ("round_seconds", "How long asking all targets took", seconds),
        ("round_age_seconds", "How long ago that ended", age),
    ] {
        // Writing to a String can't fail.
        let _ = writeln!(
            text,
            "# HELP binlogz_fleet_{name} {help}\n# TYPE binlogz_fleet_{name} gauge\nbinlogz_fleet_{name} {value:.3}"
        );
    }
    text
}

/// The metrics of all rows, in Prometheus' text format.
pub fn text(rows: &[FleetRow]) -> String {
    let mut text = String::new();
    for (name, help, value) in METRICS {
        // Writing to a String can't fail.
        let _ = writeln!(text, "# HELP binlogz_fleet_{name} {help}\n# TYPE binlogz_fleet_{name} gauge");
        for row in rows {
            let Some(value) = value(row) else { continue };
            let _ = writeln!(
                text,
                "binlogz_fleet_{name}{{target=\"{}\",kind=\"{}\",source=\"{}\"}} {value}",
                prometheus_label(&row.target),
                row.kind.name(),
                prometheus_label(row.source.as_deref().unwrap_or_default())
            );
        }
    }
    text
}
