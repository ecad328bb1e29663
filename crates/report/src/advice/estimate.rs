//! What a sample says of all transactions.
//!
//! Sizes are estimated by stratum ([`super::strata`]); times, tables and hours by class of size.
//!
//! The half-width is [`SIGMAS`] standard errors of the ratio estimator, and a part of what lies behind the
//! beginnings of large transactions on top.

use std::sync::Arc;

use super::figures::{ClassLevel, Figures, LevelFigures};
use super::strata::{self, BUCKETS, Estimate, Sums};
use super::tables::Tables;
use crate::quantiles::Quantiles;
use crate::stats::TableName;
use crate::stats::size_class::CLASSES;

/// Half-widths in standard errors: 99 % of a normal distribution.
const SIGMAS: f64 = 2.6;

/// A class of which nothing could be measured may be off by so much.
const UNKNOWN_ERROR: f64 = 0.5;

/// A table of which fewer transactions were sampled gets the ratio of all tables.
const TABLE_UNITS_MIN: u64 = 5;

/// One unit of the sample at one level.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// Bytes that it becomes in the log.
    pub(super) size: u64,
    /// Those of them that are an estimate, since only the beginning was compressed.
    pub(super) behind: u64,
    pub(super) payload: u64,
    pub(super) compress: u64,
    pub(super) expand: (u64, u64),
}

/// One unit of the sample.
#[derive(Debug)]
pub(super) struct MeasuredUnit {
    pub(super) stratum: usize,
    /// What it is.
    pub(super) x: u64,
    /// Bytes that the compressor got.
    pub(super) inner: u64,
    pub(super) levels: Vec<Measured>,
    pub(super) tables: Vec<(Arc<TableName>, u64)>,
}

/// The sample's figures.
#[derive(Debug)]
pub(super) struct Estimator {
    classes: [ClassSample; CLASSES],
    tables: Tables,
    levels: usize,
    pub(super) units: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone)]
struct ClassSample {
    strata: [Sums; BUCKETS],
    units: f64,
    /// Bytes that the compressor got.
    inner: f64,
    levels: Vec<LevelSample>,
}

#[derive(Debug, Clone, Default)]
struct LevelSample {
    payload: f64,
    compress: f64,
    expand: (u64, u64),
    times: Quantiles,
}

impl Estimator {
    pub(super) fn new(levels: usize) -> Self {
        let class = ClassSample {
            strata: std::array::from_fn(|_| Sums::new(levels)),
            units: 0.0,
            inner: 0.0,
            levels: vec![LevelSample::default(); levels],
        };
        Estimator {
            classes: std::array::from_fn(|_| class.clone()),
            tables: Tables::default(),
            levels,
            units: 0,
            bytes: 0,
        }
    }

    /// Adds a unit of a class: `x` is what it is, `inner` the bytes that the compressor got.
    pub(super) fn add(&mut self, class_number: usize, unit: &MeasuredUnit) {
        let MeasuredUnit { stratum, x, inner, levels, tables } = unit;
        self.units += 1;
        self.bytes += inner;
        let Some(class) = self.classes.get_mut(class_number) else { return };
        class.units += 1.0;
        class.inner += *inner as f64;
        if let Some(sums) = class.strata.get_mut(*stratum) {
            sums.count(*x, levels.iter().map(|level| (level.size, level.behind)));
        }
        for (sums, level) in class.levels.iter_mut().zip(levels) {
            sums.payload += level.payload as f64;
            sums.compress += level.compress as f64;
            sums.expand.0 += level.expand.0;
            sums.expand.1 += level.expand.1;
            sums.times.count(level.compress, 1.0);
        }
        for (name, bytes) in tables {
            let payloads = levels.iter().map(|level| level.payload);
            self.tables.count(name, *bytes, class_number, *inner, payloads);
        }
    }

    /// Units that were added of a class.
    pub(super) fn units_of(&self, class: usize) -> f64 {
        self.classes.get(class).map_or(0.0, |class| class.units)
    }

    /// How much a unit more of each class and stratum brings beside what it costs.
    pub(super) fn weights(&self, figures: &Figures) -> [[f64; BUCKETS]; CLASSES] {
        let sizes = self.sizes(figures);
        std::array::from_fn(|number| match figures.classes.get(number).zip(self.classes.get(number)) {
            Some((class, sample)) if class.transactions > 0 => {
                let unit_bytes = class.inner as f64 / class.transactions as f64;
                strata::weights(&class.strata, &sample.strata, unit_bytes, &sizes)
            }
            _ => [0.0; BUCKETS],
        })
    }

    /// The half-width at each level, in bytes.
    pub(super) fn half_widths(&self, figures: &Figures) -> Vec<f64> {
        let of_level = |level| {
            let estimates = self.estimates(figures, level);
            let (mut variance, mut systematic) = (0.0, 0.0);
            for estimate in estimates {
                variance += estimate.variance;
                systematic += estimate.systematic;
            }
            SIGMAS * variance.sqrt() + systematic
        };
        (0..self.levels).map(of_level).collect()
    }

    /// The estimate at each level, in bytes.
    pub(super) fn sizes(&self, figures: &Figures) -> Vec<f64> {
        let of_level = |level| self.estimates(figures, level).iter().map(|estimate| estimate.size).sum();
        (0..self.levels).map(of_level).collect()
    }

    fn estimates(&self, figures: &Figures, level: usize) -> [Estimate; CLASSES] {
        std::array::from_fn(|number| {
            let class = figures.classes.get(number).filter(|class| class.transactions > 0);
            let Some((class, sample)) = class.zip(self.classes.get(number)) else {
                return Estimate::default();
            };
            strata::estimate(&class.strata, &sample.strata, level).unwrap_or_else(|| {
                let size = class.plain as f64 * self.ratio(level);
                Estimate { size, variance: 0.0, systematic: UNKNOWN_ERROR * size }
            })
        })
    }

    /// What all units together become, as a part of what they are.
    fn ratio(&self, level: usize) -> f64 {
        let sums = |of: fn(&ClassSample, usize) -> f64| {
            self.classes.iter().map(|class| of(class, level)).sum::<f64>()
        };
        let payload = sums(|class, level| class.levels.get(level).map_or(0.0, |level| level.payload));
        let inner = sums(|class, _| class.inner);
        if inner > 0.0 { payload / inner } else { 1.0 }
    }

    /// Puts what was estimated where the figures have none.
    pub(super) fn fill(&self, figures: &mut Figures) {
        let mut levels = vec![LevelFigures::default(); self.levels];
        for (number, figures) in levels.iter_mut().enumerate() {
            for sums in self.classes.iter().filter_map(|class| class.levels.get(number)) {
                figures.expand.0 += sums.expand.0;
                figures.expand.1 += sums.expand.1;
            }
        }
        let mut estimated = vec![vec![ClassLevel::default(); self.levels]; CLASSES];
        for (number, level) in levels.iter_mut().enumerate() {
            let estimates = self.estimates(figures, number);
            for (place, ((class, sample), estimate)) in
                figures.classes.iter().zip(&self.classes).zip(estimates).enumerate()
            {
                let size = estimate.size.round() as u64;
                let per_byte = self.compress_per_byte(sample, number);
                let compress = (per_byte * class.inner as f64) as u64;
                level.size += size;
                level.payload += size;
                let mut times = Quantiles::default();
                if let Some(sums) = sample.levels.get(number).filter(|_| sample.units > 0.0) {
                    times.add_scaled(&sums.times, class.transactions as f64 / sample.units);
                }
                if let Some(known) = estimated.get_mut(place).and_then(|class| class.get_mut(number)) {
                    *known = ClassLevel { size, compress, times };
                }
            }
        }
        figures.levels = levels;
        for (class, levels) in figures.classes.iter_mut().zip(estimated) {
            class.levels = levels;
        }
        let ratios: Vec<[f64; CLASSES]> = (0..self.levels)
            .map(|level| {
                std::array::from_fn(|class| {
                    let class = figures.classes.get(class);
                    class.map_or(0.0, |class| {
                        let size = class.levels.get(level).map_or(0, |level| level.size);
                        super::per(size as f64, class.plain as f64)
                    })
                })
            })
            .collect();
        let weighted = |bytes: &[u64; CLASSES], ratios: &[f64; CLASSES]| -> f64 {
            bytes.iter().zip(ratios).map(|(bytes, ratio)| *bytes as f64 * ratio).sum()
        };
        for hour in figures.hours.values_mut() {
            hour.levels = ratios.iter().map(|ratios| weighted(&hour.plain, ratios).round() as u64).collect();
        }
        for (name, table) in figures.tables.iter_mut() {
            let sampled = self.tables.get(name).filter(|table| table.transactions >= TABLE_UNITS_MIN);
            let total = table.total() as f64;
            let share = |(level, ratios): (usize, &[f64; CLASSES])| {
                let size = match sampled {
                    Some(sampled) => {
                        let share = sampled.shares.get(level).copied().unwrap_or(0) as f64 / 65_536.0;
                        total * super::per(share, sampled.total() as f64)
                    }
                    None => weighted(&table.bytes, ratios),
                };
                (size * 65_536.0) as u64
            };
            table.shares = ratios.iter().enumerate().map(share).collect();
        }
    }

    /// Nanoseconds for a byte that the compressor gets; of all classes, where this one has none.
    fn compress_per_byte(&self, sample: &ClassSample, level: usize) -> f64 {
        if sample.inner > 0.0 {
            return sample.levels.get(level).map_or(0.0, |level| level.compress / sample.inner);
        }
        let inner: f64 = self.classes.iter().map(|class| class.inner).sum();
        let compress: f64 =
            self.classes.iter().filter_map(|class| class.levels.get(level)).map(|level| level.compress).sum();
        super::per(compress, inner)
    }
}
