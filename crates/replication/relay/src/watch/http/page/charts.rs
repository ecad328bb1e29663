//! Charts of the last hour: the lag, the traffic, and each replica's lag.

use binlogz_figures::{
    Card, Chart, ChartAxis, ChartLine, FigureUnit, LineChart, Paint, Section, Series, SparkRow, Sparks,
    TableCell,
};

use super::{duration, size, state};
use crate::watch::http::history::{Sample, Traffic};
use crate::watch::status::{ReplicaStatus, SourceReport};

/// Lag below this is drawn on the same scale, so that a second does not look like an hour.
pub(super) const LAG_SECONDS_MIN: f64 = 10.0;

pub(super) fn charts(status: &SourceReport, samples: &[Sample]) -> Vec<Card> {
    vec![
        card(
            "Lag behind the source",
            "The age of the newest stored transaction, during the last hour. A gap: it was not known.",
            false,
            Chart::Lines(lag(samples)),
        ),
        card(
            "Throughput",
            "Bytes a second during the last hour: received from the source, stored, served to all replicas; beside the names the last.",
            false,
            Chart::Lines(throughput(samples)),
        ),
        card(
            "Replicas now, and their lag during the last hour",
            "",
            true,
            Chart::Sparks(sparks(status, samples)),
        ),
    ]
}

fn card(title: &str, note: &str, is_wide: bool, chart: Chart) -> Card {
    Card { title: title.to_owned(), note: note.to_owned(), is_wide, chart }
}

fn lag(samples: &[Sample]) -> LineChart {
    let values = samples.iter().map(|sample| sample.lag_seconds.map(|lag| lag as f64));
    LineChart {
        unit: FigureUnit::Seconds,
        at: ChartAxis::Times(samples.iter().map(|sample| sample.time).collect()),
        lines: vec![ChartLine { series: Series::new("lag", Paint::First), values: values.collect() }],
        is_filled: true,
        has_dots: false,
        full: LAG_SECONDS_MIN,
    }
}

fn throughput(samples: &[Sample]) -> LineChart {
    LineChart {
        unit: FigureUnit::BytesPerSecond,
        at: ChartAxis::Times(samples.iter().map(|sample| sample.time).collect()),
        lines: vec![
            traffic_line("received", Paint::First, samples, |traffic| traffic.received),
            traffic_line("stored", Paint::Second, samples, |traffic| traffic.stored),
            traffic_line("served", Paint::Third, samples, |traffic| traffic.served),
        ],
        is_filled: false,
        has_dots: false,
        full: 1024.0,
    }
}

fn traffic_line(label: &str, paint: Paint, samples: &[Sample], of: fn(&Traffic) -> f64) -> ChartLine {
    ChartLine {
        series: Series::new(label, paint),
        values: samples.iter().map(|sample| sample.traffic.as_ref().map(of)).collect(),
    }
}

fn sparks(status: &SourceReport, samples: &[Sample]) -> Sparks {
    Sparks {
        of: "lag".to_owned(),
        none: "No replica reads the log at present.".to_owned(),
        full: LAG_SECONDS_MIN,
        rows: status.replicas.iter().map(|replica| spark_row(status, replica, samples)).collect(),
    }
}

fn spark_row(status: &SourceReport, replica: &ReplicaStatus, samples: &[Sample]) -> SparkRow {
    let (tone, word) = state::of_replica(status, replica);
    SparkRow {
        label: format!("server {}", replica.server_id),
        detail: format!("{} from {}, {}", replica.user, replica.address, replica.form),
        tone,
        word: word.to_owned(),
        now: replica.lag_seconds.map_or("–".to_owned(), duration),
        more: match replica.lag_bytes {
            0 => "has all".to_owned(),
            bytes => format!("lacks {}", size(bytes)),
        },
        values: samples.iter().map(|sample| lag_of(replica, sample)).collect(),
    }
}

/// A replica's lag at the time of a sample.
fn lag_of(replica: &ReplicaStatus, sample: &Sample) -> Option<f64> {
    let (_, lag) = sample.replicas.iter().find(|(connection, _)| *connection == replica.connection)?;
    lag.map(|lag| lag as f64)
}

/// The traffic of the last hour as a table.
pub(super) fn traffic(samples: &[Sample]) -> Section {
    Section {
        name: "traffic",
        title: "Traffic",
        columns: &[
            "unix_time",
            "lag_seconds",
            "received_bytes_per_second",
            "stored_bytes_per_second",
            "served_bytes_per_second",
        ],
        rows: samples.iter().map(traffic_row).collect(),
    }
}

fn traffic_row(sample: &Sample) -> Vec<TableCell> {
    let traffic = sample.traffic.as_ref();
    vec![
        sample.time.into(),
        sample.lag_seconds.into(),
        rate(traffic.map(|traffic| traffic.received)),
        rate(traffic.map(|traffic| traffic.stored)),
        rate(traffic.map(|traffic| traffic.served)),
    ]
}

fn rate(bytes: Option<f64>) -> TableCell {
    bytes.map_or(TableCell::Null, |bytes| TableCell::Number(bytes.round() as i128))
}
