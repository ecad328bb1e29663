//! What a sample says of all transactions.
//!
//! Of each class of size h the transactions' bytes X are known, from the log; a sample of n of its N
//! transactions gives the ratio R of what they become to what they are, and R·X stands for all of them.
//! Of large transactions, in the place of their bytes stands what a fast level makes of them, which is
//! known of all; what such a one becomes is itself an estimate where only its beginning was compressed.
//!
//! The half-width is [`SIGMAS`] standard errors of the ratio estimator, and of the part of large
//! transactions behind their beginnings [`BEHIND_ERROR`] on top.

use super::figures::{ClassFigures, ClassLevel, Figures, LevelFigures};
use super::quantiles::Quantiles;
use super::sample::LARGE;
use super::tables::Tables;
use crate::stats::TableName;
use crate::stats::size_class::{CLASSES, SizeClass};

/// Half-widths in standard errors: 99 % of a normal distribution.
const SIGMAS: f64 = 2.6;

/// What may be wrong with taking the beginning of a transaction for the rest, as a part of the rest.
const BEHIND_ERROR: f64 = 0.02;

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

/// The sample's figures.
#[derive(Debug)]
pub(super) struct Estimator {
    classes: [ClassSample; CLASSES],
    tables: Tables,
    levels: usize,
    pub(super) units: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Clone, Default)]
struct ClassSample {
    units: f64,
    /// Sums over the units: what they are, its square, bytes that the compressor got.
    x: f64,
    xx: f64,
    inner: f64,
    levels: Vec<LevelSample>,
}

#[derive(Debug, Clone, Default)]
struct LevelSample {
    /// Sums over the units: what they become, its square, its product with what they are.
    y: f64,
    yy: f64,
    xy: f64,
    payload: f64,
    behind: f64,
    compress: f64,
    expand: (u64, u64),
    times: Quantiles,
}

/// Of a class at a level.
struct Estimate {
    size: f64,
    variance: f64,
    /// What is added to the half-width as it is.
    systematic: f64,
}

impl Estimator {
    pub(super) fn new(levels: usize) -> Self {
        let class = ClassSample { levels: vec![LevelSample::default(); levels], ..ClassSample::default() };
        Estimator {
            classes: std::array::from_fn(|_| class.clone()),
            tables: Tables::default(),
            levels,
            units: 0,
            bytes: 0,
        }
    }

    /// Adds a unit: `x` is what it is, `inner` the bytes that the compressor got.
    pub(super) fn add(
        &mut self,
        class_number: usize,
        x: u64,
        inner: u64,
        levels: &[Measured],
        tables: &[(std::sync::Arc<TableName>, u64)],
    ) {
        self.units += 1;
        self.bytes += inner;
        let Some(class) = self.classes.get_mut(class_number) else { return };
        let x = x as f64;
        class.units += 1.0;
        class.x += x;
        class.xx += x * x;
        class.inner += inner as f64;
        for (sums, level) in class.levels.iter_mut().zip(levels) {
            let y = level.size as f64;
            sums.y += y;
            sums.yy += y * y;
            sums.xy += x * y;
            sums.payload += level.payload as f64;
            sums.behind += level.behind as f64;
            sums.compress += level.compress as f64;
            sums.expand.0 += level.expand.0;
            sums.expand.1 += level.expand.1;
            sums.times.count(level.compress, 1.0);
        }
        for (name, bytes) in tables {
            let payloads = levels.iter().map(|level| level.payload);
            self.tables.count(name, *bytes, class_number, inner, payloads);
        }
    }

    /// Units that were added of a class.
    pub(super) fn units_of(&self, class: usize) -> f64 {
        self.classes.get(class).map_or(0.0, |class| class.units)
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
            let nothing = Estimate { size: 0.0, variance: 0.0, systematic: 0.0 };
            let class = figures.classes.get(number).filter(|class| class.transactions > 0);
            let sample = self.classes.get(number);
            match class
                .zip(sample)
                .and_then(|(class, sample)| Some((class, sample, sample.levels.get(level)?)))
            {
                None => nothing,
                Some((class, sample, sums)) if sample.units > 0.0 && sample.x > 0.0 => {
                    estimate(class, sample, sums)
                }
                Some((class, ..)) => {
                    let size = class.plain as f64 * self.ratio(level);
                    Estimate { size, variance: 0.0, systematic: UNKNOWN_ERROR * size }
                }
            }
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
                level.compress += compress;
                level.payload += size;
                if let Some(known) = estimated.get_mut(place).and_then(|class| class.get_mut(number)) {
                    *known = ClassLevel { size, compress };
                }
                let Some(sums) = sample.levels.get(number) else { continue };
                if sample.units > 0.0 {
                    level.times.add_scaled(&sums.times, class.transactions as f64 / sample.units);
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

fn estimate(class: &ClassFigures, sample: &ClassSample, sums: &LevelSample) -> Estimate {
    let known = if class.fast > 0 { class.fast } else { class.plain } as f64;
    let population = class.transactions as f64;
    let n = sample.units;
    let ratio = sums.y / sample.x;
    let size = ratio * known;
    let systematic = BEHIND_ERROR * size * sums.behind / sums.y;
    if n >= population {
        return Estimate { size, variance: 0.0, systematic };
    }
    // One unit tells nothing of how they differ: as if it might be off by a tenth.
    let residual = match n >= 2.0 {
        true => ((sums.yy - 2.0 * ratio * sums.xy + ratio * ratio * sample.xx).max(0.0)) / (n - 1.0),
        false => (0.1 * sums.y).powi(2),
    };
    // Few units may by chance be alike.
    let few = 1.0 + 4.0 / n;
    let mean = sample.x / n;
    let variance = (known / mean).powi(2) * (1.0 - n / population) * residual / n * few;
    Estimate { size, variance, systematic }
}

// A class of large transactions has no others.
const _: () = {
    let mut class = 0;
    while SizeClass::numbered(class).from < LARGE {
        class += 1;
    }
    assert!(SizeClass::numbered(class).from == LARGE);
};
