//! What to do, and why: rules over the figures, each reason with its figure.

use std::fmt;

use binlogz_payload::{CompressionLevel, Ineligible};

use super::Advice;
use crate::stats::size_class::SizeClass;

/// Below this, in percent of the log, a saving is not worth a change.
const WORTH_IT: f64 = 10.0;

/// A higher level has to save so much more of the log, in percent.
const WORTH_A_LEVEL: f64 = 2.0;

/// What compressing may take of a core on the source, in percent.
const CORE_MAX: f64 = 10.0;

/// Above this, in percent of a core, it should not be the source that compresses.
const CORE_FAR_TOO_MUCH: f64 = 50.0;

/// What compressing may add to 99 of 100 commits, in milliseconds.
const COMMIT_MAX: f64 = 10.0;

/// The same for the typical commit.
const COMMIT_TYPICAL_MAX: f64 = 1.0;

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
}

impl Verdict {
    /// A short name for machines, stable.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::LeaveOff => "leave_off",
            Verdict::TurnOn => "turn_on",
            Verdict::TryOnReplica => "try_on_replica",
            Verdict::CompressOffSource => "compress_off_source",
        }
    }
}

/// What to do, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// What to do.
    pub verdict: Verdict,
    /// With which level; `None` if compression is to stay off.
    pub level: Option<CompressionLevel>,
    /// Why, the weightiest first.
    pub reasons: Vec<String>,
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = self.level.map_or_else(String::new, |level| level.to_string());
        match self.verdict {
            Verdict::LeaveOff => f.write_str("leave compression off"),
            Verdict::TurnOn => write!(f, "turn compression on at level {level}"),
            Verdict::TryOnReplica => {
                write!(f, "try level {level} on a replica first that only backups are taken from")
            }
            Verdict::CompressOffSource => write!(
                f,
                "compress off the source: its files at rest, or its stream on the way, at level {level}"
            ),
        }
    }
}

impl Advice {
    /// What to do, and why.
    pub fn recommendation(&self) -> Recommendation {
        let place = self.recommended_place();
        let level = self.levels.get(place).copied().unwrap_or_default();
        let saved = self.saved_percent(place);
        let mut reasons = Vec::new();
        let verdict = if self.figures.eligible() == 0 {
            reasons.push("no transaction in these logs would be compressed".to_owned());
            Verdict::LeaveOff
        } else if saved < WORTH_IT {
            reasons.push(format!(
                "level {level} would save {saved:.1} % of the log, which is hardly worth a change"
            ));
            Verdict::LeaveOff
        } else {
            reasons.push(format!("level {level} saves {saved:.1} % of the log"));
            self.verdict_by_cost(place, &mut reasons)
        };
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
        let level = (verdict != Verdict::LeaveOff).then_some(level);
        Recommendation { verdict, level, reasons }
    }

    /// The level to recommend, by its place: the lowest one to which no affordable level adds much.
    pub(super) fn recommended_place(&self) -> usize {
        let affordable = |place: usize| {
            let [typical, slow] = self.commit_milliseconds(place);
            typical <= COMMIT_TYPICAL_MAX
                && slow <= COMMIT_MAX
                && self.core_percent(place).is_none_or(|percent| percent <= CORE_MAX)
        };
        let mut places: Vec<usize> = (0..self.levels.len()).collect();
        places.sort_by_key(|place| self.levels.get(*place).copied());
        let mut chosen = match places.first() {
            Some(lowest) => *lowest,
            None => return 0,
        };
        // Where none is affordable on the source, somebody else compresses: the server's default.
        if !affordable(chosen) {
            let default = |place: &&usize| self.levels.get(**place) == Some(&CompressionLevel::DEFAULT);
            return places.iter().find(default).copied().unwrap_or(chosen);
        }
        for place in places {
            if affordable(place) && self.saved_percent(place) >= self.saved_percent(chosen) + WORTH_A_LEVEL {
                chosen = place;
            }
        }
        chosen
    }

    /// What compressing adds to the typical commit, and to the slowest but one in a hundred.
    fn commit_milliseconds(&self, place: usize) -> [f64; 2] {
        let times = self.commit_times(place);
        [0.5, 0.99].map(|share| times.quantile(share) / 1e6)
    }

    fn verdict_by_cost(&self, place: usize, reasons: &mut Vec<String>) -> Verdict {
        let [typical, slow] = self.commit_milliseconds(place);
        let commits = format!(
            "compressing adds {} to the typical commit and at most {} to 99 of 100",
            time(typical),
            time(slow)
        );
        let core = self.core_percent(place);
        if let Some(core) = core {
            reasons.push(format!("at the rate of these logs it takes {core:.1} % of a core"));
        }
        reasons.push(commits);
        match core {
            Some(core) if core > CORE_FAR_TOO_MUCH => Verdict::CompressOffSource,
            _ if typical > COMMIT_MAX => Verdict::CompressOffSource,
            Some(core) if core <= CORE_MAX && typical <= COMMIT_TYPICAL_MAX && slow <= COMMIT_MAX => {
                Verdict::TurnOn
            }
            Some(_) => Verdict::TryOnReplica,
            None => {
                reasons.push(
                    "the logs cover too little time to tell what part of a core it takes: try it".to_owned(),
                );
                Verdict::TryOnReplica
            }
        }
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
        if class.transactions * 2 > self.figures.eligible() && saved < 2.0 * WORTH_IT {
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
