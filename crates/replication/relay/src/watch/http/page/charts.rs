//! Charts of the last hour: the lag, the traffic, and each replica's lag.

use binlogz_figures::{
    Card, Chart, ChartLine, FigureUnit, LineChart, Paint, Section, Series, SparkRow, Sparks, TableCell,
};

use super::{duration, size, state};
use crate::watch::http::history::{Sample, Traffic};
use crate::watch::status::{ReplicaStatus, SourceReport};

/// Lag below this is drawn on the same scale, so that a second does not look like an hour.
pub(super) const LAG_SECONDS_MIN: f64 = 10.0;

pub(super) fn charts(status: &SourceReport, samples: &[Sample]) -> Vec<Card> {
    let card = |title: &str, note: &str, is_wide, chart| Card {
        title: title.to_owned(),
        note: note.to_owned(),
        is_wide,
        chart,
    };
    vec![
        card(
            "Lag behind the source",
            "The age of the newest stored transaction, during the last hour. A gap: it was not known.",
            false,
            Chart::Lines(lag(samples)),
        ),
        card(
            "Throughput",
            "Bytes a second during the last hour: received from the source, stored, served to all replicas.",
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

fn lag(samples: &[Sample]) -> LineChart {
    let values = samples.iter().map(|sample| sample.lag_seconds.map(|lag| lag as f64));
    LineChart {
        unit: FigureUnit::Seconds,
        at: samples.iter().map(|sample| time_of_day(sample.time)).collect(),
        lines: vec![ChartLine { series: Series::new("lag", Paint::First), values: values.collect() }],
        is_filled: true,
        has_dots: false,
        full: LAG_SECONDS_MIN,
    }
}

fn throughput(samples: &[Sample]) -> LineChart {
    let line = |label: &str, paint, of: fn(&Traffic) -> f64| ChartLine {
        series: Series::new(label, paint),
        values: samples.iter().map(|sample| sample.traffic.as_ref().map(of)).collect(),
    };
    LineChart {
        unit: FigureUnit::BytesPerSecond,
        at: samples.iter().map(|sample| time_of_day(sample.time)).collect(),
        lines: vec![
            line("received", Paint::First, |traffic| traffic.received),
            line("stored", Paint::Second, |traffic| traffic.stored),
            line("served", Paint::Third, |traffic| traffic.served),
        ],
        is_filled: false,
        has_dots: false,
        full: 1024.0,
    }
}

fn sparks(status: &SourceReport, samples: &[Sample]) -> Sparks {
    let row = |replica: &ReplicaStatus| {
        let (tone, word) = state::of_replica(status, replica);
        let known = |sample: &Sample| {
            let of = |(connection, _): &&(u32, Option<u64>)| *connection == replica.connection;
            sample.replicas.iter().find(of).and_then(|(_, lag)| lag.map(|lag| lag as f64))
        };
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
            values: samples.iter().map(known).collect(),
        }
    };
    Sparks {
        of: "lag".to_owned(),
        none: "No replica reads the log at present.".to_owned(),
        full: LAG_SECONDS_MIN,
        rows: status.replicas.iter().map(row).collect(),
    }
}

/// The traffic of the last hour as a table.
pub(super) fn traffic(samples: &[Sample]) -> Section {
    let row = |sample: &Sample| -> Vec<TableCell> {
        let rate = |of: fn(&Traffic) -> f64| -> TableCell {
            sample
                .traffic
                .as_ref()
                .map_or(TableCell::Null, |traffic| TableCell::Number(of(traffic).round() as i128))
        };
        vec![
            sample.time.into(),
            sample.lag_seconds.into(),
            rate(|traffic| traffic.received),
            rate(|traffic| traffic.stored),
            rate(|traffic| traffic.served),
        ]
    };
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
        rows: samples.iter().map(row).collect(),
    }
}

/// To the minute: on an axis there is no room for more.
fn time_of_day(time: u64) -> String {
    let of_day = time % 86_400;
    format!("{:02}:{:02}", of_day / 3600, of_day / 60 % 60)
}
