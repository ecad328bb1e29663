//! The summary of results: medians and spreads as tables, charts of them, and conclusions in words.

pub(crate) mod figures;
mod insert;
mod levels;
mod network;
mod point_select;
mod replicas;
mod space;
mod steps;
mod updates;

use binlogz_figures::{Bar, BarRow, Bars, Card, Chart, FigureUnit, Paint, Section, Series};

use crate::results::Results;

/// One experiment's part of a report.
#[derive(Debug, Default)]
pub(crate) struct ExperimentSummary {
    /// Tables with a row for each figure, as programs read them.
    pub(crate) tables: Vec<Section>,
    /// The same figures side by side, for people: in place of the table of this name.
    pub(crate) grids: Vec<Section>,
    /// Data of the charts.
    pub(crate) plots: Vec<Section>,
    pub(crate) charts: Vec<Card>,
    /// The conclusion from the figures, in a sentence.
    pub(crate) headlines: Vec<String>,
    /// Sentences, computed from the figures.
    pub(crate) conclusions: Vec<String>,
}

impl ExperimentSummary {
    fn add(&mut self, other: ExperimentSummary) {
        self.tables.extend(other.tables);
        self.grids.extend(other.grids);
        self.plots.extend(other.plots);
        self.charts.extend(other.charts);
        self.headlines.extend(other.headlines);
        self.conclusions.extend(other.conclusions);
    }
}

/// All experiments that have results.
pub(crate) fn summary(results: &Results) -> ExperimentSummary {
    let mut summary = ExperimentSummary::default();
    for (name, make) in [
        ("space", space::summary as fn(&Results) -> ExperimentSummary),
        ("levels", levels::summary),
        ("updates", updates::summary),
        ("point-select", point_select::summary),
        ("insert", insert::summary),
        ("network", network::summary),
    ] {
        if results.cells.iter().any(|cell| cell.experiment == name) {
            summary.add(make(results));
        }
    }
    if !results.replicas.is_empty() {
        summary.add(replicas::summary(results));
    }
    summary.tables.push(steps::section(results));
    summary
}

fn card(title: &str, note: &str, chart: Chart) -> Card {
    Card { title: title.to_owned(), note: note.to_owned(), is_wide: false, chart }
}

/// Bars in percent of a value that is the same on every machine: so that ours and published ones have one scale.
fn percent_bars(series: &[(&str, Paint)], rows: Vec<BarRow>) -> Chart {
    let series = series.iter().map(|(label, paint)| Series::new(*label, *paint)).collect();
    Chart::Bars(Bars { unit: FigureUnit::Percent, series, rows, full: 100.0 })
}

fn bar_row(label: &str, detail: &str, bars: impl IntoIterator<Item = Option<Bar>>) -> BarRow {
    BarRow {
        label: label.to_owned(),
        detail: detail.to_owned(),
        is_chosen: false,
        bars: bars.into_iter().flatten().collect(),
    }
}

/// A bar of one figure in percent of another, with the figure beside it.
fn share(series: usize, figure: Option<f64>, of: Option<f64>, unit: FigureUnit) -> Option<Bar> {
    let figure = figure?;
    let of = of.filter(|of| *of > 0.0)?;
    Some(Bar { more: unit.text(figure), ..Bar::new(series, 100.0 * figure / of) })
}

/// A range of percentages, or the only one.
fn range(values: &[f64]) -> Option<String> {
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some(match (low.round(), high.round()) {
        (low, high) if low == high => format!("{low:.0} %"),
        (low, high) => format!("{low:.0} to {high:.0} %"),
    })
}
