//! The coverage of archives as metrics for Prometheus: for the textfile collector of its node exporter, from a cron job.

use std::fmt::Write;

use binlogz_archive::coverage::{ArchiveEdge, Coverage};
use binlogz_archive::last_check::LastChecks;
use binlogz_figures::prometheus_label;

use super::coverage::ListedArchive;

/// A metric: its name, its help, and its value for an archive.
type Metric = (&'static str, &'static str, fn(&Coverage) -> Option<u64>);
/// A metric of an archive's last checks: its name, its help, and its value.
type CheckMetric = (&'static str, &'static str, fn(&LastChecks) -> Option<u64>);

const CHECK_METRICS: [CheckMetric; 3] = [
    (
        "last_check_timestamp_seconds",
        "When the last check began that looked deepest; without it nobody knows whether the archive is whole",
        |checks| checks.deepest().map(|check| check.time),
    ),
    ("last_check_depth", "How much it looked at: 0 presence, 1 hash, 2 content", |checks| {
        checks.deepest().map(|check| check.depth as u64)
    }),
    ("check_problems", "What a check found damaged or missing and none has seen mended since", |checks| {
        checks.deepest().map(|_| checks.damage().map_or(0, |check| check.problems))
    }),
];

const METRICS: [Metric; 8] = [
    (
        "is_selection",
        "Whether it has some tables only, or masked logs, so that no log may be purged for it",
        |covered| Some((!covered.has_servers_logs()).into()),
    ),
    ("logs", "Logs in the archive", |covered| Some(covered.logs as u64)),
    ("bytes", "Bytes of the logs", |covered| Some(covered.size)),
    ("packed_bytes", "Bytes that they take in the archive", |covered| Some(covered.packed_size)),
    ("gaps", "Places where transactions are missing between logs", |covered| Some(covered.gaps.len() as u64)),
    ("first_timestamp_seconds", "Time of the first event", |covered| seconds(covered.first.as_ref())),
    ("last_restorable_timestamp_seconds", "The last moment to which a server can be brought", |covered| {
        // No server is brought anywhere by some of its tables.
        seconds(covered.last.as_ref().filter(|_| covered.has_servers_logs()))
    }),
    (
        "unbroken_since_timestamp_seconds",
        "Time of the first event after the last gap, or of the first",
        |covered| seconds(covered.unbroken_since.as_ref()),
    ),
];

fn seconds(moment: Option<&ArchiveEdge>) -> Option<u64> {
    moment?.time.map(u64::from)
}

/// The metrics of these archives, in Prometheus' text format.
pub(super) fn text(archives: &[ListedArchive]) -> String {
    let mut text = String::new();
    for (name, help, value) in METRICS {
        add(&mut text, archives, name, help, |listed| value(&listed.coverage));
    }
    for (name, help, value) in CHECK_METRICS {
        add(&mut text, archives, name, help, |listed| value(&listed.checks));
    }
    text
}

fn add(
    text: &mut String,
    archives: &[ListedArchive],
    name: &str,
    help: &str,
    value: impl Fn(&ListedArchive) -> Option<u64>,
) {
    // Writing to a String can't fail.
    let _ = writeln!(text, "# HELP binlogz_archive_{name} {help}\n# TYPE binlogz_archive_{name} gauge");
    for listed in archives {
        if let Some(value) = value(listed) {
            let archive = prometheus_label(&listed.place.display().to_string());
            let _ = writeln!(text, "binlogz_archive_{name}{{archive=\"{archive}\"}} {value}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_what_is_unknown_is_left_out() {
        let text = text(&[ListedArchive {
            place: "a\"b\\c\nd".into(),
            coverage: Coverage::default(),
            checks: LastChecks::default(),
        }]);
        assert!(text.contains("binlogz_archive_logs{archive=\"a\\\"b\\\\c\\nd\"} 0\n"), "{text}");
        assert!(!text.contains("timestamp_seconds{"), "{text}");
    }
}
