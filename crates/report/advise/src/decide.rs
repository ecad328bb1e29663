//! Decides which answer the figures support: one rule, tried at both ends of each figure's margin of error.
//!
//! ```text
//! levels that cost little enough ── the lowest that no other beats for its cost ── saves enough? ── Answer
//! ```
//!
//! If the ends of the sizes' margins lead to different verdicts, the figures don't decide; if those of the times do, a trial on a
//! replica is advised. `recommend.rs` names the answers and
//! gives the reasons. docs/reference/advise.md has the same rule in words.

use binlogz_payload::CompressionLevel;

use crate::recommendation::AdviceVerdict;

/// Below this, in percent of the log, a saving is not worth a change.
const WORTH_IT: f64 = 10.0;

/// A higher level must save at least this much more of the log, in percent, each time it doubles the
/// processor time.
const WORTH_A_DOUBLING: f64 = 2.0;

/// The error of the ratio of two levels' processor times, in doublings: levels are measured in turn, on the
/// same transactions, so a busy machine slows both.
const DOUBLINGS_OFF: f64 = 0.15;

/// The most of a core that compressing may take on the source, in percent.
const CORE_MAX: f64 = 10.0;

/// Above this, in percent of a core, the source should not be the one to compress.
const CORE_FAR_TOO_MUCH: f64 = 50.0;

/// The most that compressing may add to 99 of 100 commits, in milliseconds.
const COMMIT_MAX: f64 = 10.0;

/// The most that compressing may add to the typical commit, in milliseconds.
const COMMIT_TYPICAL_MAX: f64 = 1.0;

/// Processor times differ by a quarter from run to run, and from the server's own (lab/book/advise.md).
const COST_FACTOR: f64 = 1.25;

/// On a machine that was busy with something else they differ more: caches are shared, clocks change.
const COST_FACTOR_BUSY: f64 = 2.0;

/// Savings and costs of one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) level: CompressionLevel,
    /// Percent of the log saved, and the error of that, in points.
    pub(crate) saved: f64,
    pub(crate) half_width: f64,
    /// Processor time, in any unit: only the ratio between levels counts.
    pub(crate) cost: f64,
    /// Percent of one core; `None` if the logs cover too little time to give a rate.
    pub(crate) core: Option<f64>,
    /// Time that it adds to the typical commit and to 99 of 100, in milliseconds.
    pub(crate) typical: f64,
    pub(crate) slow: f64,
}

/// The advice; a level is given by its place among the points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LevelAdvice {
    pub(crate) verdict: AdviceVerdict,
    pub(crate) place: usize,
}

impl LevelAdvice {
    /// Whether another answer advises the same. If compression stays off, the level makes no difference.
    fn is_same(self, other: LevelAdvice) -> bool {
        self.verdict == other.verdict
            && (self.place == other.place || self.verdict == AdviceVerdict::LeaveOff)
    }
}

/// The answer that the figures give, and the others they allow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decision {
    /// The answer if the figures are exact.
    pub(crate) expected: LevelAdvice,
    /// All answers within the figures' margins of error; if there are several, the figures don't decide.
    pub(crate) possible: Vec<LevelAdvice>,
    /// Whether the error of the sizes alone, with times as measured, leaves several verdicts.
    pub(crate) sizes_leave_open: bool,
}

impl Decision {
    /// Whether all answers within the margins of error have the same verdict: which level is recommended matters less.
    pub(crate) fn is_clear(&self) -> bool {
        self.possible.iter().all(|answer| answer.verdict == self.expected.verdict)
    }

    /// The advice that is right whatever the errors of times are; `None` if the sizes leave several verdicts. Where times leave
    /// several, a trial tells which.
    pub(crate) fn advice(&self) -> Option<LevelAdvice> {
        let is_settled = self.is_clear() || self.expected.verdict == AdviceVerdict::LeaveOff;
        match is_settled {
            _ if self.sizes_leave_open => None,
            true => Some(self.expected),
            false => Some(LevelAdvice { verdict: AdviceVerdict::TryOnReplica, ..self.expected }),
        }
    }
}

/// One assumption about the errors of the figures.
#[derive(Debug, Clone, Copy)]
struct Shift {
    /// Added to what each level saves, in half-widths.
    saved: f64,
    /// Added to how much more one level saves than another, in half-widths, and subtracted from what that
    /// costs.
    gain: f64,
    /// The factor for times.
    cost: f64,
}

const NO_SHIFT: Shift = Shift { saved: 0.0, gain: 0.0, cost: 1.0 };

impl Point {
    fn shifted(self, shift: Shift) -> Point {
        Point {
            saved: self.saved + shift.saved * self.half_width,
            core: self.core.map(|core| core * shift.cost),
            typical: self.typical * shift.cost,
            slow: self.slow * shift.cost,
            ..self
        }
    }

    /// Whether it saves enough more than another point for what it costs more. `off`: the error of a gain.
    fn beats(&self, other: &Point, shift: Shift, off: f64) -> bool {
        let gain = self.saved - other.saved + shift.gain * off;
        gain >= worth(self.cost, other.cost, -shift.gain * DOUBLINGS_OFF)
    }

    fn is_affordable(&self) -> bool {
        self.typical <= COMMIT_TYPICAL_MAX
            && self.slow <= COMMIT_MAX
            && self.core.is_none_or(|core| core <= CORE_MAX)
    }

    fn verdict(&self) -> AdviceVerdict {
        match self.core {
            _ if self.saved < WORTH_IT => AdviceVerdict::LeaveOff,
            Some(core) if core > CORE_FAR_TOO_MUCH => AdviceVerdict::CompressOffSource,
            _ if self.typical > COMMIT_MAX => AdviceVerdict::CompressOffSource,
            Some(_) if self.is_affordable() => AdviceVerdict::TurnOn,
            Some(_) | None => AdviceVerdict::TryOnReplica,
        }
    }
}

/// The decision for these levels, in any order. `busy`: the machine was doing something else during the
/// measurement.
pub(crate) fn decide(points: &[Point], busy: bool) -> Option<Decision> {
    let expected = answer(points, NO_SHIFT)?;
    let factor = if busy { COST_FACTOR_BUSY } else { COST_FACTOR };
    Some(Decision {
        expected,
        possible: possible_answers(points, expected, &[1.0 / factor, 1.0, factor]),
        sizes_leave_open: points.iter().any(|point| point.half_width > 0.0)
            && possible_answers(points, expected, &[1.0])
                .iter()
                .any(|answer| answer.verdict != expected.verdict),
    })
}

/// The different answers, the expected one first, if sizes are off by as much as they may be, and costs by these factors.
fn possible_answers(points: &[Point], expected: LevelAdvice, costs: &[f64]) -> Vec<LevelAdvice> {
    let mut possible = vec![expected];
    for (cost, saved) in costs.iter().flat_map(|cost| [-1.0, 0.0, 1.0].map(|saved| (*cost, saved))) {
        for gain in [-1.0, 0.0, 1.0] {
            if let Some(answer) = answer(points, Shift { saved, gain, cost })
                && !possible.iter().any(|known| known.is_same(answer))
            {
                possible.push(answer);
            }
        }
    }
    possible
}

/// The rule: of the levels that cost little enough, the lowest that no other one of them beats, by
/// [`WORTH_A_DOUBLING`] for each doubling of processor time. If none costs little enough, compress elsewhere,
/// at the server's default level.
fn answer(points: &[Point], shift: Shift) -> Option<LevelAdvice> {
    let shifted: Vec<Point> = points.iter().map(|point| point.shifted(shift)).collect();
    let mut places: Vec<usize> = (0..shifted.len()).collect();
    places.sort_by_key(|place| shifted.get(*place).map(|point| point.level));
    let affordable: Vec<(usize, &Point)> = places
        .iter()
        .filter_map(|place| Some((*place, shifted.get(*place)?)))
        .filter(|(_, point)| point.is_affordable())
        .collect();
    // Levels compress the same transactions: the error of one's gain over another is at most that of the
    // least certain of all.
    let off = points.iter().map(|point| point.half_width).fold(0.0, f64::max);
    let chosen = affordable.iter().find(|(_, one)| {
        !affordable.iter().any(|(_, other)| other.level > one.level && other.beats(one, shift, off))
    });
    let place = chosen.map(|(place, _)| *place).or_else(|| {
        let default = shifted.iter().position(|point| point.level == CompressionLevel::DEFAULT);
        default.or(places.first().copied())
    })?;
    Some(LevelAdvice { verdict: shifted.get(place)?.verdict(), place })
}

/// How much more a level of this cost must save than one of that cost, in points.
fn worth(cost: f64, than: f64, doublings_off: f64) -> f64 {
    let doublings = if cost > 0.0 && than > 0.0 { (cost / than).log2() } else { 0.0 };
    WORTH_A_DOUBLING * (doublings + doublings_off).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: [i64; 7] = [1, 3, 6, 9, 15, 19, 22];

    /// A curve: what each level saves, and its share of a core; commits take a tenth of a millisecond.
    fn curve(saved: [f64; 7], core: [f64; 7]) -> Vec<Point> {
        let point = |((level, saved), core): ((i64, f64), f64)| Point {
            level: CompressionLevel::clamped(level),
            saved,
            half_width: 0.0,
            cost: core,
            core: Some(core),
            typical: 0.1,
            slow: 1.0,
        };
        LEVELS.into_iter().zip(saved).zip(core).map(point).collect()
    }

    const CHEAP: [f64; 7] = [0.1, 0.1, 0.2, 0.3, 1.0, 2.0, 4.0];

    fn level_of(points: &[Point]) -> u8 {
        points[decide(points, false).unwrap().expected.place].level.get()
    }

    /// The rule exactly as documented.
    fn as_documented(points: &[Point]) -> Option<u8> {
        let within: Vec<&Point> = points.iter().filter(|point| point.is_affordable()).collect();
        let doublings = |one: &Point, other: &Point| (other.cost / one.cost).log2().max(1.0);
        let beaten = |one: &Point| {
            within.iter().any(|other| {
                other.level > one.level && other.saved >= one.saved + 2.0 * doublings(one, other)
            })
        };
        within.iter().filter(|one| !beaten(one)).map(|one| one.level.get()).min()
    }

    #[test]
    fn the_lowest_level_that_no_other_beats_for_its_cost() {
        // 15 beats 1 by more than two points and 3 by 1.1, for ten times the time.
        assert_eq!(level_of(&curve([60.0, 61.5, 61.9, 62.0, 62.6, 62.6, 62.6], CHEAP)), 1);
        assert_eq!(level_of(&curve([50.0, 53.0, 54.0, 55.0, 56.0, 58.0, 58.0], CHEAP)), 3);
        // Twice the time for two points, thirty times for ten.
        assert_eq!(level_of(&curve([50.0, 52.0, 54.0, 54.5, 55.0, 55.0, 55.0], CHEAP)), 6);
        assert_eq!(level_of(&curve([50.0, 52.0, 54.0, 54.5, 58.0, 64.0, 64.0], CHEAP)), 19);
        // A higher level that saves less.
        assert_eq!(level_of(&curve([50.0, 49.0, 53.0, 53.5, 54.0, 54.5, 54.9], CHEAP)), 6);
    }

    #[test]
    fn every_curve_of_a_grid_gets_what_the_documentation_says() {
        // Steps between levels of -1 to 3 points, in halves; times that grow up to eightfold; and costs that
        // pass the bound anywhere or nowhere.
        let mut seed = 1_u64;
        let mut draw = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..20_000 {
            let mut saved = [20.0; 7];
            let mut cost = [1.0; 7];
            for place in 1..7 {
                saved[place] = saved[place - 1] + (draw(9) as f64 / 2.0) - 1.0;
                cost[place] = cost[place - 1] * (1.0 + draw(15) as f64 / 2.0);
            }
            let too_dear_from = draw(8) as usize;
            let core = std::array::from_fn(|place| if place >= too_dear_from { 30.0 } else { 1.0 });
            let mut points = curve(saved, core);
            points.iter_mut().zip(cost).for_each(|(point, cost)| point.cost = cost);
            match as_documented(&points) {
                Some(level) => assert_eq!(level_of(&points), level, "{points:?}"),
                None => assert_eq!(level_of(&points), 3, "{points:?}"),
            }
        }
    }

    #[test]
    fn the_order_of_the_levels_makes_no_difference() {
        let mut points = curve([50.0, 51.0, 52.0, 53.0, 54.0, 55.0, 56.0], CHEAP);
        points.reverse();
        assert_eq!(level_of(&points), level_of(&curve([50.0, 51.0, 52.0, 53.0, 54.0, 55.0, 56.0], CHEAP)));
    }

    #[test]
    fn sizes_that_are_hardly_known_decide_nothing() {
        let mut points = curve([12.0, 12.5, 12.6, 12.7, 12.8, 12.8, 12.8], CHEAP);
        assert!(decide(&points, false).unwrap().is_clear());
        points.iter_mut().for_each(|point| point.half_width = 28.0);
        let decision = decide(&points, false).unwrap();
        let verdicts: Vec<_> = decision.possible.iter().map(|answer| answer.verdict).collect();
        assert!(
            verdicts.contains(&AdviceVerdict::LeaveOff) && verdicts.contains(&AdviceVerdict::TurnOn),
            "{decision:?}"
        );
        assert!(decision.sizes_leave_open && decision.advice().is_none());
    }

    #[test]
    fn what_lies_near_a_bound_of_cost_decides_nothing() {
        let core = [1.0, 2.0, 9.0, 30.0, 90.0, 90.0, 90.0];
        let points = curve([50.0, 51.0, 59.0, 59.5, 60.0, 60.0, 60.0], core);
        let decision = decide(&points, false).unwrap();
        assert_eq!(points[decision.expected.place].level.get(), 6);
        assert!(decision.possible.len() > 1 && !decision.sizes_leave_open, "{decision:?}");
        // Far from the bound, a busy machine is good enough.
        let core = [0.1, 0.2, 0.9, 30.0, 90.0, 90.0, 90.0];
        let points = curve([50.0, 51.0, 59.0, 59.5, 60.0, 60.0, 60.0], core);
        assert!(decide(&points, true).unwrap().is_clear());
    }

    #[test]
    fn where_times_leave_several_verdicts_a_trial_tells() {
        // A tenth of a core is the bound for turning it on; with half the processor time it is, with twice as much it isn't.
        let points = curve([50.0; 7], [9.0, 9.0, 30.0, 30.0, 90.0, 90.0, 90.0]);
        let decision = decide(&points, true).unwrap();
        assert!(!decision.is_clear(), "{decision:?}");
        let advice = decision.advice().unwrap();
        assert_eq!((advice.verdict, advice.place), (AdviceVerdict::TryOnReplica, decision.expected.place));
    }

    #[test]
    fn an_interval_never_takes_away_the_expected_answer() {
        let mut points = curve([50.0, 51.0, 52.0, 53.0, 54.0, 55.0, 56.0], CHEAP);
        points.iter_mut().for_each(|point| point.half_width = 0.4);
        let decision = decide(&points, false).unwrap();
        assert!(decision.possible.contains(&decision.expected));
        assert_eq!(decide(&[], false), None);
    }
}
