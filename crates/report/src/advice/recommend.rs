//! What to do, and why: the decision in words, each reason with its figure. The rule is in `decide.rs`.

use std::fmt;

use binlogz_payload::{CompressionLevel, Ineligible};

use super::Advice;
use super::decide::{Decision, Point, decide};
use crate::stats::size_class::SizeClass;

/// From less than so many bytes of transactions nothing follows.
const BYTES_MIN: u64 = 64 << 10;

/// A class of sizes that saves less than this, in percent, is named: see [`Advice::who_pays`].
const HARDLY_SHRINKS: f64 = 20.0;

/// What to do with `binlog_transaction_compression`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Leave it off.
    LeaveOff,
    /// Turn it on.
    TurnOn,
    /// Turn it on at one replica first that only backups are taken from.
    TryOnReplica,
    /// Let something else compress than the source's commits.
    CompressOffSource,
    /// The figures support more than one answer.
    CantTell,
}

impl Verdict {
    /// A short name for machines, stable.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::LeaveOff => "leave_off",
            Verdict::TurnOn => "turn_on",
            Verdict::TryOnReplica => "try_on_replica",
            Verdict::CompressOffSource => "compress_off_source",
            Verdict::CantTell => "cant_tell",
        }
    }
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// What to do.
    pub verdict: Verdict,
    /// With which level; `None` if compression is to stay off, or nobody can tell.
    pub level: Option<CompressionLevel>,
    /// What that saves of the log in percent, and what it may be off by in points (0: nothing).
    pub saved: Option<(f64, f64)>,
    /// What else the figures may mean: the answers between which they don't tell, else empty.
    pub between: Vec<(Verdict, CompressionLevel)>,
    /// Why, the weightiest first.
    pub reasons: Vec<String>,
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.verdict == Verdict::CantTell {
            f.write_str("can't tell yet")?;
            for (place, (verdict, levels)) in self.by_verdict().into_iter().enumerate() {
                f.write_str(if place == 0 { ": " } else { ", or " })?;
                write_answer(f, verdict, &listed(&levels))?;
            }
            return Ok(());
        }
        write_answer(f, self.verdict, &self.level.unwrap_or_default().to_string())?;
        match self.saved {
            Some((saved, 0.0)) if self.level.is_some() => write!(f, " (saves {saved:.1} % of the log)"),
            Some((saved, off)) if self.level.is_some() => {
                write!(f, " (saves {saved:.1} ± {off:.1} % of the log)")
            }
            _ => Ok(()),
        }
    }
}

impl Recommendation {
    /// The answers that are left, those with the same verdict together, the lowest level first.
    fn by_verdict(&self) -> Vec<(Verdict, Vec<CompressionLevel>)> {
        let mut answers: Vec<(Verdict, Vec<CompressionLevel>)> = Vec::new();
        for (verdict, level) in &self.between {
            match answers.iter_mut().find(|(known, _)| known == verdict) {
                Some((_, levels)) => levels.push(*level),
                None => answers.push((*verdict, vec![*level])),
            }
        }
        answers.iter_mut().for_each(|(_, levels)| levels.sort());
        answers
    }
}

/// `1, 3 or 6`.
fn listed(levels: &[CompressionLevel]) -> String {
    let mut text = String::new();
    for (place, level) in levels.iter().enumerate() {
        text += match place {
            0 => "",
            _ if place + 1 == levels.len() => " or ",
            _ => ", ",
        };
        text += &level.to_string();
    }
    text
}

fn write_answer(f: &mut fmt::Formatter<'_>, verdict: Verdict, level: &str) -> fmt::Result {
    match verdict {
        Verdict::LeaveOff => f.write_str("leave compression off"),
        Verdict::TurnOn => write!(f, "turn compression on at level {level}"),
        Verdict::TryOnReplica => {
            write!(f, "try level {level} on a replica first that only backups are taken from")
        }
        Verdict::CompressOffSource => {
            write!(
                f,
                "compress off the source: its files at rest, or its stream on the way, at level {level}"
            )
        }
        Verdict::CantTell => f.write_str("can't tell"),
    }
}

impl Advice {
    /// What to do, and why.
    pub fn recommendation(&self) -> Recommendation {
        let decision = self.decision();
        let place = decision.as_ref().map_or(0, |decision| decision.expected.place);
        let level_at = |place: usize| self.levels.get(place).copied().unwrap_or_default();
        let (level, saved) = (level_at(place), self.saved_percent(place));
        let mut reasons = Vec::new();
        let (mut verdict, mut between) = (Verdict::CantTell, Vec::new());
        match decision {
            _ if self.figures.eligible() == 0 => {
                reasons.push("no transaction in these logs would be compressed".to_owned());
                verdict = Verdict::LeaveOff;
            }
            _ if self.figures.eligible_plain() < BYTES_MIN => reasons.push(format!(
                "{} transactions of {} bytes together are too little to tell from, expected {BYTES_MIN} bytes or more",
                self.figures.eligible(),
                self.figures.eligible_plain()
            )),
            _ if self.sampled.as_ref().is_some_and(|sampled| sampled.units == 0) => reasons.push(
                "no transaction was compressed within the budget: a longer one, such as --budget 30s, or --exact will tell"
                    .to_owned(),
            ),
            Some(decision) if decision.is_clear() => {
                verdict = decision.expected.verdict;
                self.why(verdict, place, &mut reasons);
            }
            Some(decision) => {
                between = decision.possible.iter().map(|answer| (answer.verdict, level_at(answer.place))).collect();
                reasons.push(self.why_not(&decision));
                self.costs(place, &mut reasons);
            }
            None => {}
        }
        self.higher_levels(place, verdict, &mut reasons);
        self.who_pays(place, &mut reasons);
        self.who_stays(&mut reasons);
        if self.payloads > 0 {
            let transactions = self.figures.transactions();
            reasons.push(format!(
                "{} of {transactions} transactions are compressed already; they were measured as if they were not",
                self.payloads
            ));
        }
        if verdict != Verdict::LeaveOff {
            reasons.push(
                "not together with compressed connections (replica_compressed_protocol, \
                 protocol_compression_algorithms): they would compress the same bytes a second time for nothing"
                    .to_owned(),
            );
            reasons.push(
                "find out first what reads the binlog: replicas before 8.0.20 and MariaDB stop, and some CDC \
                 clients lose rows without an error"
                    .to_owned(),
            );
        }
        let has_level = !matches!(verdict, Verdict::LeaveOff | Verdict::CantTell);
        Recommendation {
            verdict,
            level: has_level.then_some(level),
            saved: has_level.then(|| (saved, self.half_width_points(place))),
            between,
            reasons,
        }
    }

    /// The level that the figures speak for, by its place: the one that is shown.
    pub(super) fn recommended_place(&self) -> usize {
        self.decision().map_or(0, |decision| decision.expected.place)
    }

    /// What the figures lead to; `None` without levels.
    pub(super) fn decision(&self) -> Option<Decision> {
        let points = self.levels.iter().enumerate().map(|(place, level)| {
            let [typical, slow] = self.commit_milliseconds(place);
            Point {
                level: *level,
                saved: self.saved_percent(place),
                half_width: self.half_width_points(place),
                cost: self.compress_seconds_per_gb(place),
                core: self.core_percent(place),
                typical,
                slow,
            }
        });
        decide(&points.collect::<Vec<_>>(), self.sampled.as_ref().is_some_and(|sampled| sampled.busy))
    }

    /// What a level's saving may be off by, in points of the plain log.
    fn half_width_points(&self, place: usize) -> f64 {
        let half_width = self.sampled.as_ref().and_then(|sampled| sampled.half_widths.get(place));
        100.0 * super::per(half_width.copied().unwrap_or(0.0), self.plain_bytes() as f64)
    }

    /// The figures behind an answer.
    fn why(&self, verdict: Verdict, place: usize, reasons: &mut Vec<String>) {
        let (level, saved) = (self.levels.get(place).copied().unwrap_or_default(), self.saved_percent(place));
        if verdict == Verdict::LeaveOff {
            reasons.push(format!(
                "level {level} would save {saved:.1} % of the log, which is hardly worth a change"
            ));
            return;
        }
        reasons.push(format!("level {level} saves {saved:.1} % of the log"));
        self.costs(place, reasons);
        if verdict == Verdict::TryOnReplica && self.core_percent(place).is_none() {
            reasons.push(
                "the logs cover too little time to tell what part of a core it takes: try it".to_owned(),
            );
        }
    }

    /// What keeps the figures from telling, and what would help.
    fn why_not(&self, decision: &Decision) -> String {
        let place = decision.expected.place;
        let (saved, off) = (self.saved_percent(place), self.half_width_points(place));
        let level = self.levels.get(place).copied().unwrap_or_default();
        if decision.sizes_decide {
            return format!(
                "level {level} saves {saved:.1} ± {off:.1} % of the log, which is not known well enough to decide: a longer \
                 --budget, or --exact, will tell"
            );
        }
        match self.sampled.as_ref().is_some_and(|sampled| sampled.busy) {
            true => "this machine was busy with something else, and processor time measured on it can be twice or half of \
                     the truth: measure again when it is idle"
                .to_owned(),
            false => "the processor time that decides differs by a quarter from run to run: begin with the lower level"
                .to_owned(),
        }
    }

    /// What compressing adds to the typical commit, and to the slowest but one in a hundred.
    fn commit_milliseconds(&self, place: usize) -> [f64; 2] {
        let times = self.commit_times(place);
        [0.5, 0.99].map(|share| times.quantile(share) / 1e6)
    }

    /// What a level costs.
    fn costs(&self, place: usize, reasons: &mut Vec<String>) {
        let [typical, slow] = self.commit_milliseconds(place);
        if let Some(core) = self.core_percent(place) {
            reasons.push(format!("at the rate of these logs it takes {core:.1} % of a core"));
        }
        reasons.push(format!(
            "compressing adds {} to the typical commit and at most {} to 99 of 100",
            time(typical),
            time(slow)
        ));
    }

    /// What the highest level would add.
    fn higher_levels(&self, place: usize, verdict: Verdict, reasons: &mut Vec<String>) {
        let smallest = (0..self.levels.len()).min_by_key(|place| self.compressed_bytes(*place));
        let Some(smallest) = smallest.filter(|smallest| *smallest != place) else { return };
        let (chosen, level) = (self.levels.get(place), self.levels.get(smallest));
        let (Some(chosen), Some(level)) = (chosen, level) else { return };
        let more = self.saved_percent(smallest) - self.saved_percent(place);
        let [cost, known] = [smallest, place].map(|place| self.compress_seconds_per_gb(place));
        if verdict != Verdict::LeaveOff && known > 0.0 {
            reasons.push(format!(
                "level {level} would save {more:.1} % of the log more, for {:.1} times the processor time of level {chosen}",
                cost / known
            ));
        }
    }

    /// A class of sizes that most transactions are in, and that hardly shrinks.
    fn who_pays(&self, place: usize, reasons: &mut Vec<String>) {
        let classes = self.figures.classes.iter().enumerate();
        let Some((number, class)) = classes.max_by_key(|(_, class)| class.transactions) else { return };
        let Some(level) = class.levels.get(place) else { return };
        let saved = super::saved_percent(class.plain, level.size);
        if class.transactions * 2 > self.figures.eligible() && saved < HARDLY_SHRINKS {
            let SizeClass { from, to } = SizeClass::numbered(number);
            let to = to.map_or_else(String::new, |to| format!(" to {to}"));
            reasons.push(format!(
                "most transactions have {from}{to} bytes, and those shrink by {saved:.1} %: each is compressed alone"
            ));
        }
    }

    /// Bytes that compression does not reach.
    fn who_stays(&self, reasons: &mut Vec<String>) {
        let left = self.figures.left.iter().zip(Ineligible::ALL);
        let Some((left, reason)) = left.max_by_key(|(left, _)| left.bytes) else { return };
        let share = 100.0 * super::per(left.bytes as f64, self.plain_bytes() as f64);
        if share >= 1.0 {
            reasons.push(format!("{share:.1} % of the log stays as it is: {reason}"));
        }
    }
}

/// A time for people, given in milliseconds.
fn time(milliseconds: f64) -> String {
    match milliseconds {
        0.0..1.0 => format!("{:.0} µs", milliseconds * 1000.0),
        1.0..1000.0 => format!("{milliseconds:.1} ms"),
        _ => format!("{:.1} s", milliseconds / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sampled;
    use super::*;

    /// Ten transactions of so many bytes together, of which so many were compressed, by `percent`.
    fn advice(bytes: u64, units: u64, percent: u64) -> Advice {
        let mut advice = Advice::new(&[CompressionLevel::DEFAULT], 1);
        let class = &mut advice.figures.classes[3];
        (class.transactions, class.plain, class.inner) = (10, bytes, bytes);
        let size = bytes - bytes * percent / 100;
        advice.figures.levels = vec![super::super::figures::LevelFigures { size, ..Default::default() }];
        let half_widths = vec![bytes as f64 / 1000.0];
        advice.sampled = Some(Sampled { seed: 1, units, bytes, half_widths, busy: false });
        advice
    }

    #[test]
    fn nothing_is_recommended_from_nothing() {
        let told = advice(1 << 20, 0, 57).recommendation();
        assert_eq!((told.verdict, told.level), (Verdict::CantTell, None));
        assert!(told.reasons[0].contains("no transaction was compressed within the budget"), "{told:?}");
        let told = advice(733, 10, 57).recommendation();
        assert_eq!(told.verdict, Verdict::CantTell);
        assert!(told.reasons[0].contains("10 transactions of 733 bytes together are too little"), "{told:?}");
    }

    #[test]
    fn the_headline_has_its_interval() {
        let told = advice(1 << 20, 10, 57).recommendation();
        let expected =
            "try level 3 on a replica first that only backups are taken from (saves 57.0 ± 0.1 % of the log)";
        assert_eq!(told.to_string(), expected);
        // 10 % decides whether a saving is worth a change.
        let told = advice(1 << 20, 10, 10).recommendation();
        let expected = "can't tell yet: leave compression off, or try level 3 on a replica first that only backups are taken from";
        assert_eq!(told.to_string(), expected);
    }
}
