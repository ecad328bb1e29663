//! Strata: transactions of one class of size that mostly change the same table. They compress alike, so
//! little is left to chance within a stratum.
//!
//! For each stratum the log gives the transactions' bytes X. A sample of n of its N transactions gives the ratio R of
//! compressed to original size, and R·X estimates all of them. For large transactions X is instead the output of a fast
//! level, which is known for all. A stratum with too few sampled units has its own ratio, too, but its spread is taken
//! from the units of all such strata together. That is because time may have ended with one unit of a large stratum and
//! one of each small one, and together these are no random choice.
//!
//! A class has [`BUCKETS`] strata, whatever the number of tables: names are hashed.

use std::sync::Arc;

use binlogz_stats::TableName;

use crate::random::mixed;

/// The number of strata in a class.
pub(crate) const BUCKETS: usize = 16;

/// The fewest units from which we can tell how much the units of a stratum differ.
const UNITS_ALONE: f64 = 3.0;

/// The possible error of taking the beginning of a transaction for the rest, as a fraction of the rest.
const BEHIND_ERROR: f64 = 0.02;

/// The possible error for a stratum of large transactions of which nothing was measured, as a fraction of its
/// size at the fast level.
const UNKNOWN_ERROR: f64 = 0.5;

/// Units of a stratum differ by at least this much, as a fraction of their compressed size, as long as there
/// are too few to tell.
const UNKNOWN_SPREAD: f64 = 0.1;

/// Units differ by at least this much, as a fraction of their compressed size, whatever a few of them
/// suggest.
const SPREAD_MIN: f64 = 0.002;

/// The stratum of a transaction in its class: that of the table with most of its bytes.
pub(crate) fn bucket(tables: &[(Arc<TableName>, u64)]) -> usize {
    let most = tables.iter().max_by_key(|(_, bytes)| *bytes);
    let name = most.map_or(0, |(name, _)| {
        let bytes = name.database.iter().chain(b".").chain(name.table.iter());
        bytes.fold(0, |hash, byte| mixed(hash ^ u64::from(*byte)))
    });
    (name % BUCKETS as u64) as usize
}

/// Figures known for all transactions of a stratum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StratumFigures {
    pub(crate) transactions: u64,
    /// Known size of the transactions: bytes in the log, or the output of the fast level.
    pub(crate) x: u64,
}

impl StratumFigures {
    pub(crate) fn add(&mut self, other: StratumFigures) {
        self.transactions += other.transactions;
        self.x += other.x;
    }
}

/// Sums over the units of a stratum.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sums {
    pub(crate) units: f64,
    /// Known sizes, and their squares.
    x: f64,
    xx: f64,
    levels: Vec<LevelSums>,
}

#[derive(Debug, Clone, Copy, Default)]
struct LevelSums {
    /// Compressed sizes, their squares, and their products with the known sizes.
    y: f64,
    yy: f64,
    xy: f64,
    /// The part of the compressed sizes that is an estimate, since only the beginning was compressed.
    behind: f64,
}

impl Sums {
    pub(crate) fn new(levels: usize) -> Self {
        Sums { levels: vec![LevelSums::default(); levels], ..Sums::default() }
    }

    /// Adds a unit: its known size, and its compressed size at each level, with how much of that is an
    /// estimate.
    pub(crate) fn count(&mut self, x: u64, levels: impl Iterator<Item = (u64, u64)>) {
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

    /// The mean squared difference between a unit's size and what the ratio predicts.
    fn residual(&self, level: usize) -> f64 {
        let LevelSums { y, yy, xy, .. } = self.level(level);
        if self.units < 2.0 {
            return (UNKNOWN_SPREAD * y).powi(2);
        }
        let ratio = y / self.x;
        let residual = (yy - 2.0 * ratio * xy + ratio * ratio * self.xx).max(0.0) / (self.units - 1.0);
        // A few that are alike may be alike by chance.
        let spread_min = SPREAD_MIN.max(UNKNOWN_SPREAD / self.units.powi(2));
        residual.max((spread_min * y / self.units).powi(2))
    }
}

/// The estimate for all transactions of a stratum, or of several, at a level.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StratumEstimate {
    pub(crate) size: f64,
    pub(crate) variance: f64,
    /// Added to the half-width unchanged.
    pub(crate) systematic: f64,
}

impl StratumEstimate {
    fn of(known: StratumFigures, sums: &Sums, level: usize) -> Self {
        let LevelSums { y, behind, .. } = sums.level(level);
        let x = known.x as f64;
        let population = known.transactions as f64;
        let n = sums.units;
        let size = y / sums.x * x;
        let systematic = crate::per(BEHIND_ERROR * size * behind, y);
        if n >= population {
            return StratumEstimate { size, variance: 0.0, systematic };
        }
        let few = alike_by_chance(n);
        let mean = sums.x / n;
        let variance = (x / mean).powi(2) * (1.0 - n / population) * sums.residual(level) / n * few;
        StratumEstimate { size, variance, systematic }
    }

    /// The estimate for a stratum with too few units; `few` has the units of all such strata.
    fn of_few(known: StratumFigures, sums: &Sums, level: usize, few: &Sums) -> Self {
        let StratumEstimate { size, systematic, .. } = StratumEstimate::of(known, sums, level);
        let spread = spread_of_few(sums, few, level) * known.x as f64;
        let left_to_chance = 1.0 - sums.units / known.transactions as f64;
        let variance = spread.powi(2) * left_to_chance / sums.units * alike_by_chance(few.units);
        StratumEstimate { size, variance, systematic }
    }

    pub(crate) fn add(&mut self, other: StratumEstimate) {
        self.size += other.size;
        self.variance += other.variance;
        self.systematic += other.systematic;
    }
}

/// Whether enough units of a stratum were sampled for it to stand alone.
fn is_alone(known: StratumFigures, sums: &Sums) -> bool {
    sums.units >= UNITS_ALONE.min(known.transactions as f64)
}

/// The units of all strata with too few of them.
fn few_units(known: &[StratumFigures; BUCKETS], sums: &[Sums; BUCKETS]) -> Sums {
    let mut together = Sums::default();
    for (_, sums) in known.iter().zip(sums).filter(|(known, sums)| !is_alone(**known, sums)) {
        together.levels.resize(sums.levels.len(), LevelSums::default());
        together.add(sums);
    }
    together
}

/// The factor for a variance that this many units gave: a few may be alike by chance.
fn alike_by_chance(units: f64) -> f64 {
    1.0 + 4.0 / units + 20.0 / units.powi(2)
}

/// How much units differ in a stratum with too few of them, as a fraction of their known size. We take the spread of the
/// units of all such strata together, or [`UNKNOWN_SPREAD`] of this stratum's own compressed share if that is more.
fn spread_of_few(stratum: &Sums, together: &Sums, level: usize) -> f64 {
    let mean = crate::per(together.x, together.units);
    let own = UNKNOWN_SPREAD * crate::per(stratum.level(level).y, stratum.x);
    crate::per(together.residual(level).sqrt(), mean).max(own)
}

/// The kind of size that is known of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownSize {
    /// Bytes in the log: compressed it is no larger.
    Plain,
    /// Bytes after compression at a fast level.
    Fast,
}

impl KnownSize {
    /// The possible error of taking what has the known size `x` for `size` if nothing of it was measured.
    pub(crate) fn unknown_error(self, x: f64, size: f64) -> f64 {
        match self {
            KnownSize::Plain => size.max(x - size),
            KnownSize::Fast => UNKNOWN_ERROR * size,
        }
    }
}

/// The estimate for the strata of a class at a level; `None` if nothing of it was sampled.
pub(crate) fn estimate(
    known: &[StratumFigures; BUCKETS],
    sums: &[Sums; BUCKETS],
    level: usize,
    known_size: KnownSize,
) -> Option<StratumEstimate> {
    let few = few_units(known, sums);
    let mut found = StratumEstimate::default();
    let mut seen_x = 0;
    let mut unseen_x = 0;
    for (known, sums) in known.iter().zip(sums).filter(|(known, _)| known.transactions > 0) {
        if sums.x <= 0.0 {
            unseen_x += known.x;
            continue;
        }
        seen_x += known.x;
        found.add(match is_alone(*known, sums) {
            true => StratumEstimate::of(*known, sums, level),
            false => StratumEstimate::of_few(*known, sums, level, &few),
        });
    }
    if seen_x == 0 {
        return None;
    }
    // How other tables compress says little about one without sampled units.
    let size = unseen_x as f64 * crate::per(found.size, seen_x as f64);
    let systematic = known_size.unknown_error(unseen_x as f64, size);
    found.add(StratumEstimate { size, variance: 0.0, systematic });
    Some(found)
}

/// The benefit of one more unit of each stratum, relative to its cost (Neyman's allocation): its transactions
/// times how much they differ, as a fraction of `sizes` by level, divided by the root of one unit's time.
pub(crate) fn weights(
    known: &[StratumFigures; BUCKETS],
    sums: &[Sums; BUCKETS],
    unit_bytes: f64,
    sizes: &[f64],
) -> [f64; BUCKETS] {
    let few = few_units(known, sums);
    let mut weights = [0.0; BUCKETS];
    for (weight, (known, sums)) in weights.iter_mut().zip(known.iter().zip(sums)) {
        let transactions = known.transactions as f64;
        let spread_at = |level| match is_alone(*known, sums) {
            true => sums.residual(level).sqrt(),
            false => spread_of_few(sums, &few, level) * crate::per(known.x as f64, transactions),
        };
        let spread = sizes.iter().enumerate().map(|(level, size)| crate::per(spread_at(level), *size));
        *weight = transactions * spread.fold(0.0, f64::max) / unit_bytes.max(1.0).sqrt();
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strata given as ratio, number of transactions and number sampled.
    fn strata(ratios: &[(f64, u64, u64)]) -> ([StratumFigures; BUCKETS], [Sums; BUCKETS]) {
        let mut known = [StratumFigures::default(); BUCKETS];
        let mut sums = std::array::from_fn(|_| Sums::new(1));
        for (place, (ratio, count, sampled)) in ratios.iter().enumerate() {
            for number in 0..*count {
                let x = 1000 + number % 7 * 100;
                known[place].add(StratumFigures { transactions: 1, x });
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
        let found = estimate(&known, &sums, 0, KnownSize::Plain).unwrap();
        let truth = 0.2 * known[0].x as f64 + 0.8 * known[1].x as f64;
        assert!((found.size / truth - 1.0).abs() < 0.002, "{found:?} {truth}");
        assert!(found.variance.sqrt() < 0.005 * truth, "{found:?}");
        // Combined they'd differ by far more.
        let one = StratumFigures { transactions: 1000, x: known[0].x + known[1].x };
        let both = {
            let mut both = sums[0].clone();
            both.add(&sums[1]);
            both
        };
        assert!(StratumEstimate::of(one, &both, 0).variance > 100.0 * found.variance);
    }

    #[test]
    fn strata_without_a_sample_go_with_the_others() {
        let (known, sums) = strata(&[(0.5, 50, 10), (0.5, 2, 0)]);
        let found = estimate(&known, &sums, 0, KnownSize::Plain).unwrap();
        assert!((found.size / (known[0].x + known[1].x) as f64 - 0.5).abs() < 0.001);
        let (known, sums) = strata(&[(0.5, 50, 0)]);
        assert!(estimate(&known, &sums, 0, KnownSize::Plain).is_none());
        // A stratum that is sampled completely leaves nothing to chance, however small it is.
        let (known, sums) = strata(&[(0.5, 2, 2)]);
        assert_eq!(estimate(&known, &sums, 0, KnownSize::Plain).unwrap().variance, 0.0);
    }

    #[test]
    fn a_stratum_without_a_sample_may_be_unlike_the_others() {
        // When time ran out, four of one table were drawn, all alike, and none of the other.
        let (known, sums) = strata(&[(0.8, 8, 4), (0.9, 8, 0)]);
        let found = estimate(&known, &sums, 0, KnownSize::Plain).unwrap();
        let truth = 0.8 * known[0].x as f64 + 0.9 * known[1].x as f64;
        let half_width = 3.5 * found.variance.sqrt() + found.systematic;
        assert!((found.size - truth).abs() < half_width, "{found:?} {truth}");
        // That table may become anything from nothing to what it is.
        let bound = 0.8 * known[1].x as f64;
        assert!((found.systematic / bound - 1.0).abs() < 0.01, "{found:?}");
        // One unit is something.
        let (known, sums) = strata(&[(0.8, 8, 4), (0.9, 8, 1)]);
        assert_eq!(estimate(&known, &sums, 0, KnownSize::Plain).unwrap().systematic, 0.0);
    }

    #[test]
    fn a_large_stratum_with_one_unit_counts_for_what_it_is() {
        // When time ran out, there was one unit of each table, whatever its share of the transactions.
        let mut tables = vec![(0.9, 2000, 1)];
        tables.resize(BUCKETS, (0.3, 20, 1));
        let (known, sums) = strata(&tables);
        let truth: f64 = known.iter().zip(&tables).map(|(known, (ratio, ..))| ratio * known.x as f64).sum();
        let found = estimate(&known, &sums, 0, KnownSize::Plain).unwrap();
        assert!((found.size / truth - 1.0).abs() < 0.01, "{found:?} {truth}");
        // And how its units differ is not known.
        assert!(found.variance.sqrt() > UNKNOWN_SPREAD * found.size, "{found:?}");
    }

    #[test]
    fn a_few_alike_say_little_about_the_rest() {
        // Two alike by chance.
        let (known, sums) = strata(&[(0.5, 1000, 2)]);
        let found = estimate(&known, &sums, 0, KnownSize::Plain).unwrap();
        assert!(found.variance.sqrt() > 0.7 * UNKNOWN_SPREAD * found.size, "{found:?}");
        let (known, sums) = strata(&[(0.5, 1000, 3)]);
        let found = estimate(&known, &sums, 0, KnownSize::Plain).unwrap();
        assert!(found.variance.sqrt() > 0.05 * UNKNOWN_SPREAD * found.size, "{found:?}");
        assert!(found.variance.sqrt() < 0.2 * UNKNOWN_SPREAD * found.size, "{found:?}");
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
