//! A run as files for people: `cells.csv`, and `report.html`, one page that opens offline.

use std::path::Path;

use binlogz_figures::{Card, Chart, FigureFormat, FigureUnit, Page, Section, TableCell, Tile, Tone};
use serde_json::{Map, Value};

pub(crate) mod compare;
pub mod published;
mod summary;

use crate::error::{Error, Result};
use crate::files::write_whole;
use crate::report::summary::{ExperimentSummary, summary};
use crate::results::Results;

/// How charts and headlines are read. It stands on the page once.
const PERCENT: &str = "Percentages are of the same without compression: less is better, but for what is done in a second and for rows that arrive";

/// Whether a chart compares in percent.
fn is_in_percent(card: &Card) -> bool {
    match &card.chart {
        Chart::Bars(bars) => bars.unit == FigureUnit::Percent,
        Chart::Dots(_) | Chart::Lines(_) | Chart::Sparks(_) => false,
    }
}

/// Writes CSV and page beside the results, and the tables into `results.json`.
///
/// # Errors
///
/// A file that can't be written.
pub fn write_report(results: &Results, folder: &Path) -> Result<Vec<String>> {
    let mut summary = summary(results);
    summary.tables.push(setup(results));
    let figures: Vec<Section> = summary.tables.iter().chain(&summary.plots).cloned().collect();
    let failed = |source| Error::Io { what: "write the report".to_owned(), source };

    let mut csv = Vec::new();
    let steps = summary.tables.iter().filter(|table| table.name == "steps").cloned().collect::<Vec<_>>();
    FigureFormat::Csv.write(&steps, &mut csv).map_err(failed)?;
    write_whole(&folder.join("cells.csv"), &csv)?;

    let (lead, mut reasons) = match summary.headlines.split_first() {
        Some((first, rest)) => (first.clone(), rest.to_vec()),
        None => (
            summary.conclusions.first().cloned().unwrap_or_else(|| "Nothing was measured".to_owned()),
            Vec::new(),
        ),
    };
    if summary.charts.iter().any(is_in_percent) {
        reasons.insert(0, PERCENT.to_owned());
    }
    let tables = shown(&summary);
    let mut subtitle = format!(
        "{} · {} {} · {} repeats, scale {} · {} UTC",
        results.options.preset,
        results.server.variable("version_comment"),
        results.server.variable("version"),
        results.options.repeat,
        results.options.scale,
        results.started,
    );
    if results.partial {
        let why = results.ended_by.as_deref().unwrap_or("it has not ended");
        subtitle.push_str(&format!(" · PARTIAL: {why}"));
    }
    let mut page = Vec::new();
    Page {
        title: "Binary log transaction compression, measured",
        subtitle: &subtitle,
        as_of: None,
        state: results.partial.then_some((Tone::Warning, "Partial")),
        lead: &lead,
        reasons: &reasons,
        steps: &[],
        tiles: &tiles(results),
        charts: &summary.charts,
        tables: &tables,
        figures: &figures,
    }
    .write(&mut page)
    .map_err(failed)?;
    write_whole(&folder.join("report.html"), &page)?;
    write_tables(results, &figures, folder)?;
    Ok(summary.conclusions)
}

/// The tables for people: the conclusions in words, and no row that is half empty. Steps of different experiments have
/// different figures, so each experiment has a table of its own.
fn shown(summary: &ExperimentSummary) -> Vec<Section> {
    let ExperimentSummary { tables, grids, conclusions, .. } = summary;
    let mut shown = vec![Section {
        name: "conclusions",
        title: "What follows from the figures",
        columns: &["conclusion"],
        rows: conclusions.iter().map(|conclusion| vec![conclusion.as_str().into()]).collect(),
    }];
    for table in tables {
        match table.name {
            "steps" => shown.extend(by_filled(table, 1)),
            "insert" | "levels" => shown.extend(by_filled(table, 0)),
            name => match grids.iter().any(|grid| grid.name == name) {
                true => shown.extend(grids.iter().filter(|grid| grid.name == name).cloned()),
                false => shown.push(table.clone()),
            },
        }
    }
    shown
}

/// Tables of the rows in which the same columns are filled, and whose first `same` cells are the same.
fn by_filled(table: &Section, same: usize) -> Vec<Section> {
    let is_alike = |one: &[TableCell], other: &[TableCell]| {
        let filled = one
            .iter()
            .zip(other)
            .all(|(one, other)| (*one == TableCell::Null) == (*other == TableCell::Null));
        filled && one.iter().take(same).eq(other.iter().take(same))
    };
    let mut parts: Vec<Section> = Vec::new();
    for row in &table.rows {
        let known = parts.iter_mut().find(|part| part.rows.first().is_some_and(|first| is_alike(first, row)));
        match known {
            Some(part) => part.rows.push(row.clone()),
            None => parts.push(Section { rows: vec![row.clone()], ..table.clone() }),
        }
    }
    parts
}

/// `results.json` with the tables and conclusions that the page shows.
fn write_tables(results: &Results, figures: &[Section], folder: &Path) -> Result<()> {
    let failed = |source| Error::Io { what: "write results".to_owned(), source };
    let mut text = Vec::new();
    FigureFormat::Json.write(figures, &mut text).map_err(failed)?;
    let tables: Value = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    let document = serde_json::to_value(results).map_err(|error| failed(error.into()))?;
    let Value::Object(mut document) = document else { return Ok(()) };
    document.insert("tables".to_owned(), tables);
    results.write_with(document, folder)
}

/// The machine, the server and the options.
fn setup(results: &Results) -> Section {
    let machine = &results.machine;
    let mut rows: Vec<(String, TableCell)> = vec![
        ("binlogz".to_owned(), results.binlogz.as_str().into()),
        ("processor".to_owned(), machine.processor.as_str().into()),
        ("cores".to_owned(), (machine.cores as u64).into()),
        ("disks".to_owned(), (machine.disks as u64).into()),
        ("memory bytes".to_owned(), machine.memory_bytes.into()),
        ("kernel".to_owned(), machine.kernel.as_str().into()),
        ("load average at the start".to_owned(), TableCell::decimal(machine.load_average, 2)),
        ("server".to_owned(), results.server.name.as_str().into()),
        ("seed".to_owned(), results.options.seed.into()),
        ("seconds a timed step".to_owned(), TableCell::decimal(results.options.time_s, 2)),
    ];
    rows.extend(
        results.server.variables.iter().map(|(name, value)| (name.clone(), TableCell::from(value.as_str()))),
    );
    rows.extend(results.refused.iter().map(|refused| {
        (format!("left out: {}, {}", refused.experiment, refused.setting), refused.reason.as_str().into())
    }));
    Section {
        name: "setup",
        title: "Machine and server",
        columns: &["what", "value"],
        rows: rows.into_iter().map(|(what, value)| vec![what.into(), value]).collect(),
    }
}

fn tiles(results: &Results) -> Vec<Tile> {
    let bytes: u64 =
        results.cells.iter().flat_map(|cell| &cell.steps).map(|measured| measured.cost.binlog_bytes).sum();
    // Others had the processors as well: times say little then.
    let is_busy = results.machine.load_average > results.machine.cores as f64 / 2.0;
    vec![
        Tile::new(TableCell::from(results.cells.len() as u64).for_people(), "cells measured"),
        Tile::new(FigureUnit::Bytes.text(bytes as f64), "of binary log written"),
        Tile::new(results.machine.cores.to_string(), "cores"),
        Tile {
            tone: if is_busy { Tone::Warning } else { Tone::Neutral },
            ..Tile::new(format!("{:.1}", results.machine.load_average), "load average at the start")
        },
    ]
}

impl Results {
    fn write_with(&self, document: Map<String, Value>, folder: &Path) -> Result<()> {
        let mut text = serde_json::to_vec_pretty(&document)
            .map_err(|error| Error::Io { what: "write results".to_owned(), source: error.into() })?;
        text.push(b'\n');
        write_whole(&folder.join(crate::results::FILE), &text)
    }
}
