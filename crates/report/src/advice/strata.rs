//! Strata: transactions of one class of size that change mostly the same table. They compress alike, so what is
//! left to chance within a stratum is little.
//!
//! Of each stratum the transactions' bytes X are known, from the log; a sample of n of its N transactions gives
//! the ratio R of what they become to what they are, and R·X stands for all of them. Of large transactions, in the
//! place of their bytes stands what a fast level makes of them, which is known of all. Strata of which too few
//! were sampled are taken together.
//!
//! There are [`BUCKETS`] of them in a class, whatever the number of tables: names are hashed.

use std::sync::Arc;

use super::sample::mixed;
use crate::stats::TableName;

/// Strata of a class.
pub(super) const BUCKETS: usize = 16;

/// A stratum of fewer sampled units is taken together with others.
const UNITS_ALONE: f64 = 3.0;

/// What may be wrong with taking the beginning of a transaction for the rest, as a part of the rest.
const BEHIND_ERROR: f64 = 0.02;

/// Units differ by at least so much, as a part of what they become, whatever a few of them say.
const SPREAD_MIN: f64 = 0.002;

/// The stratum of a transaction in its class: that of the table with most of its bytes.
pub(super) fn bucket(tables: &[(Arc<TableName>, u64)]) -> usize {
    let most = tables.iter().max_by_key(|(_, bytes)| *bytes);
    let name = most.map_or(0, |(name, _)| {
        let bytes = name.database.iter().chain(b".").chain(name.table.iter());
        bytes.fold(0, |hash, byte| mixed(hash ^ u64::from(*byte)))
    });
    (name % BUCKETS as u64) as usize
}

/// What is known of all transactions of a stratum.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Known {
    pub(super) transactions: u64,
    /// What they are: bytes in the log, or those that the fast level makes of them.
    pub(super) x: u64,
}

impl Known {
    pub(super) fn add(&mut self, other: Known) {
        self.transactions += other.transactions;
        self.x += other.x;
    }
}

/// Sums over the units of a stratum.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    pub(super) units: f64,
    /// What they are, and its square.
    x: f64,
    xx: f64,
    levels: Vec<LevelSums>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LevelSums {
    /// What they become, its square, its product with what they are.
    y: f64,
    yy: f64,
    xy: f64,
    /// The part of what they become that is an estimate, since only the beginning was compressed.
    behind: f64,
}

impl Sums {
    pub(super) fn new(levels: usize) -> Self {
        Sums { levels: vec![LevelSums::default(); levels], ..Sums::default() }
    }

    /// Adds a unit: what it is, and what it becomes at each level, with how much of that is an estimate.
    pub(super) fn count(&mut self, x: u64, levels: impl Iterator<Item = (u64, u64)>) {
        let x = x as f64;
        self.units += 1.0;
        self.x += x;
        self.xx += x * x;
        for (sums, (y, behind)) in self.levels.iter_mut().zip(levels) {
            let y = y as f64;
            sums.y += y;
            sums.yy += y * y;
            sums.xy += x * y;
            sums.behind += behind as f64;
        }
    }

    fn add(&mut self, other: &Sums) {
        self.units += other.units;
        self.x += other.x;
        self.xx += other.xx;
        for (sums, other) in self.levels.iter_mut().zip(&other.levels) {
            sums.y += other.y;
            sums.yy += other.yy;
            sums.xy += other.xy;
            sums.behind += other.behind;
        }
    }

    fn level(&self, level: usize) -> LevelSums {
        self.levels.get(level).copied().unwrap_or_default()
    }

    /// What a unit's bytes differ from what the ratio says of it, squared, on average.
    fn residual(&self, level: usize) -> f64 {
        let LevelSums { y, yy, xy, .. } = self.level(level);
        if self.units < 2.0 {
            // One unit tells nothing of how they differ: as if it might be off by a tenth.
            return (0.1 * y).powi(2);
        }
        let ratio = y / self.x;
        let residual = (yy - 2.0 * ratio * xy + ratio * ratio * self.xx).max(0.0) / (self.units - 1.0);
        residual.max((SPREAD_MIN * y / self.units).powi(2))
    }
}

/// What all transactions of a stratum, or of several, become at a level.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Estimate {
    pub(super) size: f64,
    pub(super) variance: f64,
    /// What is added to the half-width as it is.
    pub(super) systematic: f64,
}

impl Estimate {
    fn of(known: Known, sums: &Sums, level: usize) -> Self {
        let LevelSums { y, behind, .. } = sums.level(level);
        let (x, population, n) = (known.x as f64, known.transactions as f64, sums.units);
        let size = y / sums.x * x;
        let systematic = super::per(BEHIND_ERROR * size * behind, y);
        if n >= population {
            return Estimate { size, variance: 0.0, systematic };
        }
        // Few units may by chance be alike.
        let few = 1.0 + 4.0 / n;
        let mean = sums.x / n;
        let variance = (x / mean).powi(2) * (1.0 - n / population) * sums.residual(level) / n * few;
        Estimate { size, variance, systematic }
    }

    pub(super) fn add(&mut self, other: Estimate) {
        self.size += other.size;
        self.variance += other.variance;
        self.systematic += other.systematic;
    }
}

/// The strata of a class, those together of which too few were sampled; which those are comes with them.
/// Nothing if nothing of the class was sampled.
pub(super) fn pooled(known: &[Known; BUCKETS], sums: &[Sums; BUCKETS]) -> Vec<(Vec<usize>, Known, Sums)> {
    let strata = || known.iter().zip(sums).enumerate().filter(|(_, (known, _))| known.transactions > 0);
    let is_alone = |(known, sums): (&Known, &Sums)| sums.units >= UNITS_ALONE.min(known.transactions as f64);
    let together = |alone: bool| {
        let (mut places, mut all, mut sum) = (Vec::new(), Known::default(), Sums::default());
        for (place, (known, sums)) in strata().filter(|(_, stratum)| !alone || !is_alone(*stratum)) {
            places.push(place);
            all.add(*known);
            sum.levels.resize(sums.levels.len(), LevelSums::default());
            sum.add(sums);
        }
        (places, all, sum)
    };
    let rest = together(true);
    if !rest.0.is_empty() && rest.2.units < 1.0 {
        let all = together(false);
        return if all.2.units < 1.0 { Vec::new() } else { vec![all] };
    }
    let alone = strata().filter(|(_, stratum)| is_alone(*stratum));
    let mut found: Vec<_> = alone.map(|(place, (known, sums))| (vec![place], *known, sums.clone())).collect();
    found.extend((!rest.0.is_empty()).then_some(rest));
    found
}

/// What the strata of a class become at a level; `None` if nothing of it was sampled.
pub(super) fn estimate(known: &[Known; BUCKETS], sums: &[Sums; BUCKETS], level: usize) -> Option<Estimate> {
    let mut found: Option<Estimate> = None;
    for (_, known, sums) in pooled(known, sums).iter().filter(|(.., sums)| sums.x > 0.0) {
        found.get_or_insert_default().add(Estimate::of(*known, sums, level));
    }
    found
}

/// How much a unit more of each stratum brings, beside what it costs (Neyman's allocation): its transactions
/// times how they differ, as a part of `sizes` by level, by the root of what one takes.
pub(super) fn weights(
    known: &[Known; BUCKETS],
    sums: &[Sums; BUCKETS],
    unit_bytes: f64,
    sizes: &[f64],
) -> [f64; BUCKETS] {
    let mut weights = [0.0; BUCKETS];
    for (places, all, sum) in pooled(known, sums) {
        let spread =
            sizes.iter().enumerate().map(|(level, size)| super::per(sum.residual(level).sqrt(), *size));
        let spread = spread.fold(0.0, f64::max);
        for place in places {
            let transactions = known.get(place).map_or(all.transactions, |known| known.transactions);
            if let Some(weight) = weights.get_mut(place) {
                *weight = transactions as f64 * spread / unit_bytes.max(1.0).sqrt();
            }
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strata of `count` transactions each, which become this part of what they are; `sampled` of each.
    fn strata(ratios: &[(f64, u64, u64)]) -> ([Known; BUCKETS], [Sums; BUCKETS]) {
        let mut known = [Known::default(); BUCKETS];
        let mut sums = std::array::from_fn(|_| Sums::new(1));
        for (place, (ratio, count, sampled)) in ratios.iter().enumerate() {
            for number in 0..*count {
                let x = 1000 + number % 7 * 100;
                known[place].add(Known { transactions: 1, x });
                if number < *sampled {
                    sums[place].count(x, std::iter::once(((x as f64 * ratio) as u64, 0)));
                }
            }
        }
        (known, sums)
    }

    #[test]
    fn strata_that_compress_alike_leave_little_to_chance() {
        let (known, sums) = strata(&[(0.2, 900, 8), (0.8, 100, 4)]);
        let found = estimate(&known, &sums, 0).unwrap();
        let truth = 0.2 * known[0].x as f64 + 0.8 * known[1].x as f64;
        assert!((found.size / truth - 1.0).abs() < 0.002, "{found:?} {truth}");
        assert!(found.variance.sqrt() < 0.005 * truth, "{found:?}");
        // Taken together they'd differ by far more.
        let (one, both) = (Known { transactions: 1000, x: known[0].x + known[1].x }, {
            let mut both = sums[0].clone();
            both.add(&sums[1]);
            both
        });
        assert!(Estimate::of(one, &both, 0).variance > 100.0 * found.variance);
    }

    #[test]
    fn strata_without_a_sample_go_with_the_others() {
        let (known, sums) = strata(&[(0.5, 50, 10), (0.5, 2, 0)]);
        let found = estimate(&known, &sums, 0).unwrap();
        assert!((found.size / (known[0].x + known[1].x) as f64 - 0.5).abs() < 0.001);
        assert_eq!(pooled(&known, &sums).len(), 1);
        let (known, sums) = strata(&[(0.5, 50, 0)]);
        assert!(estimate(&known, &sums, 0).is_none());
        // All of a stratum leave nothing to chance, however few they are.
        let (known, sums) = strata(&[(0.5, 2, 2)]);
        assert_eq!(estimate(&known, &sums, 0).unwrap().variance, 0.0);
    }

    #[test]
    fn more_is_drawn_where_more_differs() {
        let (known, mut sums) = strata(&[(0.5, 100, 5), (0.5, 100, 5), (0.5, 10, 5)]);
        sums[1].count(1000, std::iter::once((900, 0)));
        let weights = weights(&known, &sums, 1000.0, &[100_000.0]);
        assert!(weights[1] > 3.0 * weights[0] && weights[0] > 3.0 * weights[2], "{weights:?}");
        assert_eq!(weights[3], 0.0);
    }
}
