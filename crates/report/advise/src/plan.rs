//! How the levels of a large transaction share workers and time: all get about as far, whatever the machine's
//! speed.

use std::time::Instant;

use binlogz_payload::CompressionLevel;

/// The levels of a large unit, shared among workers.
pub(crate) struct LevelPlan {
    /// Each worker's levels, by their places, and for each level the fraction of the unit's time that has
    /// passed when it ends.
    pub(crate) workers: Vec<Vec<(usize, f64)>>,
}

impl LevelPlan {
    /// Assigns levels from the highest down, each to the least loaded worker.
    pub(crate) fn new(levels: &[CompressionLevel], workers: usize) -> Self {
        let mut loads: Vec<(f64, Vec<(usize, f64)>)> =
            vec![(0.0, Vec::new()); workers.clamp(1, levels.len().max(1))];
        for (place, level) in levels.iter().enumerate().rev() {
            let least = loads.iter_mut().min_by(|(a, _), (b, _)| a.total_cmp(b));
            if let Some((load, levels)) = least {
                *load += cost(*level);
                levels.push((place, *load));
            }
        }
        let workers = loads.into_iter().map(|(all, levels)| {
            levels.into_iter().map(|(place, load)| (place, crate::per(load, all).min(1.0))).collect()
        });
        LevelPlan { workers: workers.collect() }
    }
}

/// When a large unit is measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    start: Instant,
    end: Instant,
}

impl Span {
    pub(crate) fn at(&self, part: f64) -> Instant {
        self.start + self.end.saturating_duration_since(self.start).mul_f64(part)
    }
}

/// The times of large units, one after the other: each has its share of the remaining time.
pub(crate) struct Spans {
    deadline: Instant,
    units: u32,
    last_end: Instant,
}

impl Spans {
    pub(crate) fn new(deadline: Instant, units: usize) -> Self {
        Spans { deadline, units: u32::try_from(units).unwrap_or(u32::MAX), last_end: Instant::now() }
    }

    /// The span of the next unit.
    pub(crate) fn next(&mut self) -> Span {
        let start = self.last_end.max(Instant::now());
        let end = start + self.deadline.saturating_duration_since(start) / self.units.max(1);
        self.units = self.units.saturating_sub(1);
        self.last_end = end;
        Span { start, end }
    }
}

/// Roughly, the seconds that a gigabyte takes at a level.
fn cost(level: CompressionLevel) -> f64 {
    match level.get() {
        0..=2 => 3.0,
        3..=5 => 6.0,
        6..=8 => 15.0,
        9..=12 => 25.0,
        13..=15 => 100.0,
        16..=18 => 200.0,
        _ => 400.0,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_level_has_its_part_of_the_time() {
        let levels = crate::LEVELS.map(|level| CompressionLevel::clamped(level.into()));
        for workers in [1, 2, 3, 8] {
            let plan = LevelPlan::new(&levels, workers);
            assert_eq!(plan.workers.len(), workers.min(levels.len()));
            let mut places: Vec<_> = plan.workers.iter().flatten().map(|(place, _)| *place).collect();
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3, 4, 5, 6]);
            for levels in &plan.workers {
                assert!(levels.is_sorted_by(|(_, a), (_, b)| a < b) && levels[0].1 > 0.0, "{levels:?}");
                assert_eq!(levels.last().unwrap().1, 1.0);
            }
        }
        // The two highest run side by side.
        let first = LevelPlan::new(&levels, 2).workers.into_iter().map(|levels| levels[0].0);
        assert_eq!(first.collect::<Vec<_>>(), [6, 5]);
    }

    #[test]
    fn units_share_what_is_left() {
        let deadline = Instant::now() + Duration::from_secs(100);
        let mut spans = Spans::new(deadline, 2);
        let [first, second] = [spans.next(), spans.next()];
        let size = (first.end - first.start).as_secs_f64();
        assert!((49.0..51.0).contains(&size), "{size}");
        assert!(second.start == first.end && deadline - second.at(1.0) < Duration::from_millis(1));
        assert!(first.at(0.5) - first.start < Duration::from_secs(26));
    }
}
