//! The status as a page, on the shell that all reports have.

use binlogz_figures::{Cell, Chart, Page, Section, Series};

use super::history::Sample;
use crate::receive::control::Phase;
use crate::watch::status::Status;

/// Errors shown; the JSON document has more.
const ERRORS_SHOWN: usize = 10;

pub(super) fn html(status: &Status, samples: &[Sample]) -> String {
    let (lead, reasons) = lead(status);
    let traffic = traffic(samples);
    let charts = [chart()];
    let page = Page {
        title: "binlogz relay",
        subtitle: &subtitle(status),
        lead: &lead,
        reasons: &reasons,
        tiles: &tiles(status),
        charts: if samples.is_empty() { &[] } else { &charts },
        tables: &[replicas(status), log(status), errors(status)],
        figures: &[traffic],
    };
    let mut out = Vec::new();
    // Writing to memory can't fail.
    let _ = page.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn subtitle(status: &Status) -> String {
    let version = status.version;
    let uptime = duration(status.uptime_seconds);
    format!("version {version}, running for {uptime}; this page asks again every 10 seconds")
}

fn lead(status: &Status) -> (String, Vec<String>) {
    let (source, since) = (&status.source, duration(status.source.phase_seconds));
    let server = &source.server;
    let lead = match source.phase {
        Phase::Connecting => format!("Connecting to {server}"),
        Phase::Receiving => format!("Following {server}"),
        Phase::Waiting => format!("{server} can't be followed; it will be tried again"),
        Phase::Stopped => "Receiving was stopped".to_owned(),
        Phase::Failed => "Receiving has failed: somebody must decide or repair something".to_owned(),
    };
    let mut reasons = vec![format!("{} for {since}", source.phase.name())];
    reasons.extend(status.troubles.iter().cloned());
    match &status.log {
        Some(log) => reasons.push(format!(
            "durable up to {} at {}; that and nothing beyond it is served",
            log.durable.file, log.durable.position
        )),
        None => reasons.push("nothing of the source's log is here yet".to_owned()),
    }
    if let Some(last) = status.replicas.iter().max_by_key(|replica| replica.lag_bytes) {
        reasons.push(match last.lag_bytes {
            0 => "every replica was sent all of it".to_owned(),
            bytes => format!("replica {} lacks {} of it", last.server_id, size(bytes)),
        });
    }
    (lead, reasons)
}

fn tiles(status: &Status) -> Vec<(String, String)> {
    let bytes = status.bytes;
    let saved = match status.ratio() {
        Some(ratio) => format!("{:.0} %", (1.0 - ratio) * 100.0),
        None => "–".to_owned(),
    };
    let lag = status.source.lag_seconds.map_or("–".to_owned(), |lag| format!("{lag} s"));
    let most = status.replicas.iter().filter_map(|replica| replica.lag_seconds).max();
    let on_disk = status.log.as_ref().map_or(0, |log| log.bytes);
    [
        (lag, "behind the source"),
        (status.replicas.len().to_string(), "replicas"),
        (most.map_or("–".to_owned(), |lag| format!("{lag} s")), "lag of the last replica"),
        (size(on_disk), "log on disk"),
        (saved, "saved by storing it"),
        (size(bytes.received), "received since the start"),
        (size(bytes.served), "served since the start"),
        (status.errors.values().sum::<u64>().to_string(), "errors since the start"),
    ]
    .map(|(figure, what)| (figure, what.to_owned()))
    .into()
}

fn replicas(status: &Status) -> Section {
    let columns = &[
        "server_id",
        "account",
        "address",
        "form",
        "lineage",
        "file",
        "position",
        "acknowledged",
        "lag",
        "bytes_behind",
        "sent",
        "connected",
    ];
    let row = |replica: &crate::watch::status::ReplicaStatus| -> Vec<Cell> {
        vec![
            u64::from(replica.server_id).into(),
            replica.user.as_str().into(),
            replica.address.as_str().into(),
            replica.form.into(),
            replica.lineage.into(),
            replica.place.file.as_str().into(),
            replica.place.position.into(),
            replica.acknowledged.as_ref().map(|at| format!("{} at {}", at.file, at.position)).into(),
            replica.lag_seconds.map(|lag| format!("{lag} s")).into(),
            replica.lag_bytes.into(),
            size(replica.bytes).into(),
            duration(replica.connected_seconds).into(),
        ]
    };
    Section { name: "replicas", title: "Replicas", columns, rows: status.replicas.iter().map(row).collect() }
}

fn log(status: &Status) -> Section {
    let mut rows = Vec::new();
    let mut row = |what: &str, value: String| rows.push(vec![what.into(), value.into()]);
    if let Some(log) = &status.log {
        row("source", log.source_uuid.clone());
        row("files", format!("{}, the first is {}", log.files, log.first_file));
        row("received up to", format!("{} at {}", log.written.file, log.written.position));
        row("durable up to", format!("{} at {}", log.durable.file, log.durable.position));
        row("GTIDs", log.gtid_executed.replace(",\n", ", "));
    }
    let clients = status.clients;
    row(
        "clients",
        format!(
            "{} logged in, {} logging in, {} turned away",
            clients.logged_in, clients.logging_in, clients.turned_away
        ),
    );
    Section { name: "log", title: "The log", columns: &["what", "value"], rows }
}

fn errors(status: &Status) -> Section {
    let ago = |time: u64| format!("{} ago", duration(crate::time::now().saturating_sub(time)));
    let row = |error: &crate::telemetry::meters::RememberedError| -> Vec<Cell> {
        vec![ago(error.time).into(), error.kind.into(), error.text.as_str().into()]
    };
    let rows = status.last_errors.iter().take(ERRORS_SHOWN).map(row).collect();
    Section { name: "errors", title: "The last errors", columns: &["when", "kind", "what"], rows }
}

/// Minute by minute.
fn traffic(samples: &[Sample]) -> Section {
    let row = |sample: &Sample| -> Vec<Cell> {
        let of_day = sample.time % 86_400;
        let time = format!("{:02}:{:02}", of_day / 3600, of_day / 60 % 60);
        vec![time.into(), sample.received.into(), sample.stored.into(), sample.served.into()]
    };
    Section {
        name: "traffic",
        title: "Traffic",
        columns: &["time", "received", "stored", "served"],
        rows: samples.iter().map(row).collect(),
    }
}

fn chart() -> Chart {
    Chart {
        title: "The last hour",
        note: "Bytes in each minute: received from the source, stored, served to all replicas.".to_owned(),
        section: "traffic",
        level: None,
        x: &["time"],
        x_unit: None,
        axis: "bytes a minute",
        series: ["received", "stored", "served"].map(|column| Series::bytes(column, column)).into(),
        top: 60,
    }
}

/// A size for people.
fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if value < 1000.0 {
            let places = usize::from(unit != "B" && value < 100.0);
            return format!("{value:.places$} {unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1} PB")
}

/// A duration for people.
fn duration(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_for_people() {
        let sizes =
            [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (123_456, "123 kB"), (5_000_000_000, "5.0 GB")];
        for (bytes, shown) in sizes {
            assert_eq!(size(bytes), shown);
        }
        for (seconds, shown) in
            [(5, "5 s"), (119, "119 s"), (180, "3 min"), (7200, "2 h"), (200_000, "2 days")]
        {
            assert_eq!(duration(seconds), shown);
        }
    }
}
