//! The bytes that a reader of the binary log receives while a large table is updated.

use binlogz_figures::{Bar, BarRow, Card, FigureUnit, Paint, Section, TableCell};

use super::figures::{Repeats, optional};
use super::{ExperimentSummary, bar_row, card, percent_bars, share};
use crate::load::work::text_rows;
use crate::report::published::published;
use crate::results::Results;

const SETTINGS: [(&str, &str, &str); 4] = [
    ("1 core, off", "1", "off"),
    ("1 core, on", "1", "on"),
    ("all cores, off", "all", "off"),
    ("all cores, on", "all", "on"),
];
const STEP: &str = "update loop";
/// The server's default of max_binlog_size.
const FILE_BYTES: f64 = 1_073_741_824.0;

/// A setting's figures by row change.
struct Figures {
    wire_bytes: Option<f64>,
    log_bytes: f64,
    cpu_us: Option<f64>,
    rate: f64,
}

pub(super) fn summary(results: &Results) -> ExperimentSummary {
    let study = &published().network;
    let mut rows = Vec::new();
    let mut plot = Vec::new();
    for (setting, cores, compression) in SETTINGS {
        let Some(figures) = figures(results, setting) else { continue };
        let known = study.rows.iter().find(|row| row.compression == compression);
        let changes_per_file = FILE_BYTES / figures.log_bytes;
        rows.push(vec![
            cores.into(),
            compression.into(),
            optional(Some(changes_per_file), 0),
            optional(Some(changes_per_file / text_rows(results.options.scale) as f64), 2),
            optional(figures.wire_bytes, 1),
            optional(figures.cpu_us, 2),
            optional(Some(figures.rate), 0),
            known.map_or(TableCell::Null, |known| known.row_changes_per_file.into()),
        ]);
        plot.push(vec![
            cores.into(),
            compression.into(),
            optional(figures.wire_bytes, 1),
            optional(figures.cpu_us, 2),
        ]);
    }
    let mut conclusions: Vec<String> =
        ["1", "all"].into_iter().filter_map(|cores| conclusion(results, cores)).collect();
    conclusions.push(format!("Published figures: {}. {}", study.source, study.note));
    ExperimentSummary {
        tables: vec![Section {
            name: "network",
            title: "A large table's updates, with a reader of the binary log",
            columns: &[
                "cores",
                "compression",
                "row_changes_per_gib",
                "transactions_per_gib",
                "wire_bytes_per_row_change",
                "server_cpu_us_per_row_change",
                "row_changes_per_second",
                "published_row_changes_per_file",
            ],
            rows,
        }],
        grids: Vec::new(),
        plots: vec![Section {
            name: "network_plot",
            title: "Network",
            columns: &["cores", "compression", "wire_bytes_per_row_change", "server_cpu_us_per_row_change"],
            rows: plot,
        }],
        charts: vec![chart(results)],
        headlines: ["all", "1"].into_iter().find_map(|cores| headline(results, cores)).into_iter().collect(),
        conclusions,
    }
}

fn figures(results: &Results, setting: &str) -> Option<Figures> {
    let repeats = Repeats::of(results, "network", setting, STEP);
    let changes =
        |transactions: Option<u64>| Some(transactions? as f64 * text_rows(results.options.scale) as f64);
    Some(Figures {
        wire_bytes: repeats
            .median(|measured| Some(measured.wire_bytes? as f64 / changes(measured.seen.transactions)?)),
        log_bytes: repeats.median(|measured| {
            Some(measured.cost.binlog_bytes as f64 / changes(measured.seen.transactions)?)
        })?,
        cpu_us: repeats.median(|measured| {
            Some(measured.cost.server_cpu_s? * 1e6 / changes(measured.seen.transactions)?)
        }),
        rate: repeats
            .median(|measured| Some(changes(measured.seen.transactions)? / measured.seen.elapsed_s))?,
    })
}

/// Compression's effect on the network.
fn headline(results: &Results, cores: &str) -> Option<String> {
    let [off, on] = both(results, cores);
    let left = on?.wire_bytes? / off?.wire_bytes? * 100.0;
    Some(format!("Compression leaves {left:.0} % of the bytes on the wire, by row change"))
}

/// Without compression, and with it.
fn both(results: &Results, cores: &str) -> [Option<Figures>; 2] {
    ["off", "on"].map(|compression| {
        let known = SETTINGS.iter().find(|(_, known, is)| *known == cores && *is == compression);
        known.and_then(|(setting, ..)| figures(results, setting))
    })
}

fn chart(results: &Results) -> Card {
    let mut rows: Vec<BarRow> = Vec::new();
    for (cores, label) in [("1", "1 core"), ("all", "all cores")] {
        let [Some(off), Some(on)] = both(results, cores) else { continue };
        let microseconds = |time: Option<f64>| time.map(|time| time / 1e6);
        rows.push(bar_row(
            label,
            "",
            [
                share(0, on.wire_bytes, off.wire_bytes, FigureUnit::Bytes),
                share(1, microseconds(on.cpu_us), microseconds(off.cpu_us), FigureUnit::Seconds),
            ],
        ));
    }
    let per_file = |compression: &str| {
        let row = published().network.rows.iter().find(|row| row.compression == compression);
        row.map(|row| FILE_BYTES / row.row_changes_per_file as f64)
    };
    let known = share(2, per_file("on"), per_file("off"), FigureUnit::Bytes);
    rows.push(bar_row("published", "of the log", [known.map(|bar| Bar { series: 2, ..bar })]));
    let series = [
        ("bytes on the wire, here", Paint::First),
        ("processor time, here", Paint::Second),
        ("bytes of the log, published", Paint::Elsewhere),
    ];
    Card {
        is_wide: true,
        ..card(
            "A row change, in percent of one without compression",
            "What a reader of the log receives, and what it costs the server, by processors that the server may use.",
            percent_bars(&series, rows),
        )
    }
}

fn conclusion(results: &Results, cores: &str) -> Option<String> {
    let [off, on] = both(results, cores);
    let off = off?;
    let on = on?;
    let wire = on.wire_bytes? / off.wire_bytes? * 100.0;
    let cpu = on.cpu_us.zip(off.cpu_us).map_or_else(String::new, |(on, off)| {
        format!(" and takes {:.1} % of the server's processor time", on / off * 100.0)
    });
    let (plural, processors) = if cores == "1" { ("", "1") } else { ("s", "all") };
    Some(format!(
        "Network, {processors} core{plural}: compression leaves {wire:.1} % of the bytes on the wire by row change{cpu}; there are {:.1} % \
         of the row changes a second.",
        on.rate / off.rate * 100.0
    ))
}
