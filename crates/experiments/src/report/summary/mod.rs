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

use binlogz_figures::{Chart, Section};

use crate::results::Results;

/// One experiment's part of a report.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Tables for people.
    pub(crate) tables: Vec<Section>,
    /// Data of the charts.
    pub(crate) plots: Vec<Section>,
    pub(crate) charts: Vec<Chart>,
    /// Sentences, computed from the figures.
    pub(crate) conclusions: Vec<String>,
}

impl Summary {
    fn add(&mut self, other: Summary) {
        self.tables.extend(other.tables);
        self.plots.extend(other.plots);
        self.charts.extend(other.charts);
        self.conclusions.extend(other.conclusions);
    }
}

/// All experiments that have results.
pub(crate) fn summary(results: &Results) -> Summary {
    let mut summary = Summary::default();
    for (name, make) in [
        ("space", space::summary as fn(&Results) -> Summary),
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
