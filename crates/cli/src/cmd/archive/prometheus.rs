//! The coverage of archives as metrics that Prometheus reads: for the textfile collector of its node exporter, from a cron job.

use std::fmt::Write;
use std::path::PathBuf;

use binlogz_archive::coverage::{Coverage, Moment};

/// A metric: its name, its help, and its value for an archive.
type Metric = (&'static str, &'static str, fn(&Coverage) -> Option<u64>);

const METRICS: [Metric; 7] = [
    ("logs", "Logs in the archive", |covered| Some(covered.logs as u64)),
    ("bytes", "Bytes of the logs", |covered| Some(covered.size)),
    ("packed_bytes", "Bytes that they take in the archive", |covered| Some(covered.packed_size)),
    ("gaps", "Places where transactions are missing between logs", |covered| Some(covered.gaps.len() as u64)),
    ("first_timestamp_seconds", "Time of the first event", |covered| seconds(covered.first.as_ref())),
    ("last_restorable_timestamp_seconds", "The last moment to which a server can be brought", |covered| {
        seconds(covered.last.as_ref())
    }),
    (
        "unbroken_since_timestamp_seconds",
        "Time of the first event after the last gap, or of the first",
        |covered| seconds(covered.unbroken_since.as_ref()),
    ),
];

fn seconds(moment: Option<&Moment>) -> Option<u64> {
    moment?.time.map(u64::from)
}

/// The metrics of these archives, in Prometheus' text format.
pub(super) fn text(archives: &[(PathBuf, Coverage)]) -> String {
    let mut text = String::new();
    for (name, help, value) in METRICS {
        // Writing to a String can't fail.
        let _ = writeln!(text, "# HELP binlogz_archive_{name} {help}\n# TYPE binlogz_archive_{name} gauge");
        for (place, covered) in archives {
            if let Some(value) = value(covered) {
                let _ = writeln!(
                    text,
                    "binlogz_archive_{name}{{archive=\"{}\"}} {value}",
                    label(&place.display().to_string())
                );
            }
        }
    }
    text
}

/// A label's value, as it stands between double quotes.
pub(in crate::cmd) fn label(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_what_is_unknown_is_left_out() {
        let text = text(&[(PathBuf::from("a\"b\\c\nd"), Coverage::default())]);
        assert!(text.contains("binlogz_archive_logs{archive=\"a\\\"b\\\\c\\nd\"} 0\n"), "{text}");
        assert!(!text.contains("timestamp_seconds{"), "{text}");
    }
}
