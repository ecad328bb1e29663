//! The savings of compression and encryption, by workload.

use binlogz_figures::{BarRow, Card, FigureUnit, Paint, Section, TableCell};

use super::figures::{Repeats, difference_percent, optional};
use super::{ExperimentSummary, bar_row, card, percent_bars, range, share};
use crate::report::published::{Space, published};
use crate::results::Results;

const PLAIN: &str = "plain";
const COMPRESSED: &str = "compressed";
const SETTINGS: [&str; 4] = [PLAIN, COMPRESSED, "encrypted", "encrypted and compressed"];
/// The whole file by zstd, which is not a setting of the server.
const ZSTD: &str = "plain, by zstd -3";
/// A workload in a row, and in each column what a setting leaves of the plain log.
const GRID: &[&str] = &[
    "workload",
    "plain_bytes",
    "compressed_percent",
    "encrypted_percent",
    "encrypted_and_compressed_percent",
    "zstd_3_percent",
    "note",
];

pub(super) fn summary(results: &Results) -> ExperimentSummary {
    let study = &published().space;
    let mut rows = Vec::new();
    let mut plot = Vec::new();
    let mut conclusions = Vec::new();
    let mut bars = Vec::new();
    let mut left = Vec::new();
    let mut grid = Vec::new();
    for published in &study.rows {
        let repeats = |setting| Repeats::of(results, "space", setting, &published.workload);
        let plain = repeats(PLAIN).bytes();
        for (place, setting) in SETTINGS.into_iter().enumerate() {
            let repeats = repeats(setting);
            let Some(bytes) = repeats.bytes() else { continue };
            rows.push(row(
                results,
                published,
                setting,
                place,
                bytes,
                plain,
                repeats.spread_percent(|measured| Some(measured.cost.binlog_bytes as f64)),
            ));
        }
        let zstd = repeats(PLAIN).zstd(3).map(|(bytes, _)| bytes as f64);
        if let Some(bytes) = zstd {
            rows.push(row(results, published, ZSTD, SETTINGS.len(), bytes, plain, None));
        }
        grid.push(grid_row(
            &published.workload,
            SETTINGS.map(|setting| repeats(setting).bytes()),
            zstd,
            None,
        ));
        let compressed = repeats(COMPRESSED).bytes();
        plot.push(vec![
            published.workload.as_str().into(),
            optional(plain, 0),
            optional(compressed, 0),
            optional(zstd, 0),
            published.plain.into(),
            published.compressed.into(),
        ]);
        bars.push(bars_of(published, plain, compressed, zstd));
        if let (Some(plain), Some(compressed)) = (plain, compressed) {
            left.push(compressed / plain * 100.0);
            conclusions.push(conclusion(&published.workload, plain, compressed, zstd));
        }
    }
    conclusions.push(format!("Published figures: {}. {}", study.source, study.note));
    ExperimentSummary {
        tables: vec![Section {
            name: "space",
            title: "Space: bytes of binary log by workload",
            columns: &[
                "workload",
                "setting",
                "bytes",
                "of_plain_percent",
                "spread_percent",
                "published_bytes",
                "difference_percent",
                "note",
            ],
            rows,
        }],
        grids: vec![
            Section {
                name: "space",
                title: "Space: what each setting leaves of the plain log",
                columns: GRID,
                rows: grid,
            },
            Section {
                name: "space",
                title: "Space, as published",
                columns: GRID,
                rows: study.rows.iter().map(published_row).collect(),
            },
        ],
        plots: vec![Section {
            name: "space_plot",
            title: "Space",
            columns: &["workload", "plain", "compressed", "zstd", "published_plain", "published_compressed"],
            rows: plot,
        }],
        charts: vec![chart(bars)],
        headlines: range(&left)
            .map(|left| format!("Compression leaves {left} of the binary log, by workload"))
            .into_iter()
            .collect(),
        conclusions,
    }
}

fn row(
    results: &Results,
    published: &Space,
    setting: &str,
    place: usize,
    bytes: f64,
    plain: Option<f64>,
    spread: Option<f64>,
) -> Vec<TableCell> {
    let figures = [
        published.plain,
        published.compressed,
        published.encrypted,
        published.encrypted_and_compressed,
        published.zstd_file,
    ];
    let known = figures.get(place).copied().unwrap_or_default();
    // Other sizes are not comparable.
    let full = results.options.scale == 1.0;
    let slip = published.slip.as_deref().filter(|_| published.slip_of.as_deref() == Some(setting));
    vec![
        published.workload.as_str().into(),
        setting.into(),
        optional(Some(bytes), 0),
        optional(plain.map(|plain| bytes / plain * 100.0), 1),
        optional(spread, 2),
        known.into(),
        if full { TableCell::decimal(difference_percent(bytes, known as f64), 2) } else { TableCell::Null },
        slip.map_or(TableCell::Null, |slip| format!("slip: {slip}").into()),
    ]
}

/// A workload's bytes under each setting, in percent of the plain log.
fn grid_row(
    workload: &str,
    bytes: [Option<f64>; 4],
    zstd: Option<f64>,
    note: Option<String>,
) -> Vec<TableCell> {
    let [plain, settings @ ..] = bytes;
    let mut row = vec![workload.into(), optional(plain, 0)];
    let shares = settings.into_iter().chain([zstd]).map(|bytes| Some(bytes? / plain? * 100.0));
    row.extend(shares.map(|share| optional(share, 1)));
    row.push(note.into());
    row
}

fn published_row(published: &Space) -> Vec<TableCell> {
    let Space { plain, compressed, encrypted, encrypted_and_compressed, zstd_file, .. } = published;
    let bytes = [plain, compressed, encrypted, encrypted_and_compressed].map(|bytes| Some(*bytes as f64));
    let slip = published.slip_of.as_deref().zip(published.slip.as_deref());
    let note = slip.map(|(setting, slip)| format!("slip, {setting}: {slip}"));
    grid_row(&published.workload, bytes, Some(*zstd_file as f64), note)
}

fn conclusion(workload: &str, plain: f64, compressed: f64, zstd: Option<f64>) -> String {
    let left = |bytes: f64| bytes / plain * 100.0;
    let mut text = format!("{workload}: compression leaves {:.1} % of the log", left(compressed));
    if let Some(zstd) = zstd {
        text.push_str(&format!(", zstd over the whole plain file {:.1} %", left(zstd)));
    }
    text.push('.');
    text
}

fn bars_of(published: &Space, plain: Option<f64>, compressed: Option<f64>, zstd: Option<f64>) -> BarRow {
    let of = Some(published.plain as f64);
    let detail = plain.map_or_else(String::new, |plain| format!("plain: {}", FigureUnit::Bytes.text(plain)));
    bar_row(
        &published.workload,
        &detail,
        [
            share(0, compressed, plain, FigureUnit::Bytes),
            share(1, zstd, plain, FigureUnit::Bytes),
            share(2, Some(published.compressed as f64), of, FigureUnit::Bytes),
        ],
    )
}

fn chart(rows: Vec<BarRow>) -> Card {
    let series = [
        ("compressed, here", Paint::First),
        ("plain file by zstd -3, here", Paint::Third),
        ("compressed, published", Paint::Elsewhere),
    ];
    Card {
        is_wide: true,
        ..card(
            "Space by workload, in percent of the plain log",
            "Each measurement in percent of its own plain log, since the published ones are at scale 1.",
            percent_bars(&series, rows),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_workloads_stand_beside_five_settings() {
        let rows: Vec<_> = published().space.rows.iter().map(published_row).collect();
        assert_eq!((rows.len(), rows[0].len()), (5, GRID.len()));
        let filled = |row: &&Vec<TableCell>| row.iter().take(6).all(|cell| *cell != TableCell::Null);
        assert_eq!(rows.iter().filter(filled).count(), 5, "{rows:?}");
        let row = grid_row("load", [Some(200.0), Some(90.0), Some(201.0), None], Some(50.0), None);
        let percent = |figure: f64| TableCell::decimal(figure, 1);
        let expected: Vec<TableCell> = vec![
            "load".into(),
            200u64.into(),
            percent(45.0),
            percent(100.5),
            TableCell::Null,
            percent(25.0),
            TableCell::Null,
        ];
        assert_eq!(row, expected);
    }
}
