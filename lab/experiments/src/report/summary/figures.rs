//! Figures of one step under one setting, over its repeats.

use binlogz_figures::TableCell;

use crate::results::{Results, StepResult};

/// The repeats of a step.
pub(crate) struct Repeats<'a>(Vec<&'a StepResult>);

impl<'a> Repeats<'a> {
    pub(crate) fn of(results: &'a Results, experiment: &str, setting: &str, step: &str) -> Repeats<'a> {
        let cells =
            results.cells.iter().filter(|cell| cell.experiment == experiment && cell.setting == setting);
        Repeats(cells.flat_map(|cell| &cell.steps).filter(|measured| measured.step == step).collect())
    }

    /// The median of a figure; `None`: no repeat has it.
    pub(crate) fn median(&self, figure: impl Fn(&StepResult) -> Option<f64>) -> Option<f64> {
        median(self.values(figure))
    }

    /// The middle 100 % around the median: largest less smallest, in percent of it.
    pub(crate) fn spread_percent(&self, figure: impl Fn(&StepResult) -> Option<f64>) -> Option<f64> {
        let values = self.values(&figure);
        let low = values.first()?;
        let high = values.last()?;
        let middle = self.median(&figure)?;
        (middle > 0.0 && values.len() > 1).then(|| (high - low) / middle * 100.0)
    }

    pub(crate) fn any(&self, is: impl Fn(&StepResult) -> bool) -> bool {
        self.0.iter().any(|measured| is(measured))
    }

    pub(crate) fn bytes(&self) -> Option<f64> {
        self.median(|measured| Some(measured.cost.binlog_bytes as f64))
    }

    pub(crate) fn seconds(&self) -> Option<f64> {
        self.median(|measured| Some(measured.seen.elapsed_s))
    }

    pub(crate) fn cpu(&self) -> Option<f64> {
        self.median(|measured| measured.cost.server_cpu_s)
    }

    /// The step's binary log files, each compressed by zstd at a level as a whole: bytes, seconds.
    pub(crate) fn zstd(&self, level: u8) -> Option<(u64, f64)> {
        let mut all = self.0.iter().flat_map(|measured| &measured.zstd);
        all.find(|whole| whole.level == level).map(|whole| (whole.bytes, whole.seconds))
    }

    fn values(&self, figure: impl Fn(&StepResult) -> Option<f64>) -> Vec<f64> {
        let mut values: Vec<f64> = self.0.iter().filter_map(|measured| figure(measured)).collect();
        values.sort_by(f64::total_cmp);
        values
    }
}

fn median(values: Vec<f64>) -> Option<f64> {
    let high = *values.get(values.len() / 2)?;
    match values.len() % 2 {
        1 => Some(high),
        _ => Some((values.get(values.len() / 2 - 1)? + high) / 2.0),
    }
}

/// A cell with this many decimal places; empty if the figure is unknown.
pub(crate) fn optional(figure: Option<f64>, places: u8) -> TableCell {
    match (figure, places) {
        (Some(figure), 0) => TableCell::Number(figure.round() as i128),
        (Some(figure), places) => TableCell::decimal(figure, places),
        (None, _) => TableCell::Null,
    }
}

/// As in `+1.2 %`: how far a figure is from another.
pub(crate) fn difference_percent(figure: f64, other: f64) -> f64 {
    (figure / other - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn medians() {
        for (values, middle) in [
            (vec![], None),
            (vec![3.0], Some(3.0)),
            (vec![1.0, 2.0], Some(1.5)),
            (vec![1.0, 2.0, 9.0], Some(2.0)),
        ] {
            assert_eq!(median(values), middle);
        }
    }
}
