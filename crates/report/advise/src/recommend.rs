//! Makes the recommendation: whether the figures suffice, and the reasons, each with its figure. The rule is in `decide.rs`, the words
//! are in `recommendation.rs`.

use binlogz_figures::{counted, human_size};
use binlogz_payload::{Ineligible, Library};
use binlogz_stats::size_class::SizeClass;

use crate::decide::{Decision, Point, decide};
use crate::recommendation::{AdviceVerdict, READERS, Recommendation, TooLittle};
use crate::{Advice, DECIDING_MAX};

/// With fewer bytes of transactions than this, no advice is given.
const BYTES_MIN: u64 = 64 << 10;

/// Servers have many kinds of transactions, and fewer than this may be all of one kind. Of these few only a trial is advised, if they
/// have [`FEW_BYTES_MIN`].
const TRANSACTIONS_MIN: u64 = 20;

/// Bytes from which a few transactions, such as those of bulk loads, are a part of the log that counts.
const FEW_BYTES_MIN: u64 = 1 << 20;

/// If the saving may be off by more than this, in percent of the log, no advice is given.
const HALF_WIDTH_MAX: f64 = 10.0;

/// If more than this part of the logs was not read, no advice is given: nobody knows what the rest costs.
const UNREAD_MAX: f64 = 0.05;

/// A class of sizes that saves less than this, in percent, is mentioned: see [`Advice::who_pays`].
const HARDLY_SHRINKS: f64 = 20.0;

impl Advice {
    /// The recommendation, and its reasons.
    pub fn recommendation(&self) -> Recommendation {
        let decision = self.decision();
        let place = decision.as_ref().map_or(0, |decision| decision.expected.place);
        let level_at = |place: usize| self.levels.get(place).copied().unwrap_or_default();
        let level = level_at(place);
        let saved = self.saved_percent(place);
        let mut reasons = Vec::new();
        let mut verdict = AdviceVerdict::CantTell;
        let mut between = Vec::new();
        let too_little = self.too_little(place, &mut reasons);
        match decision {
            _ if too_little.is_some() => {}
            _ if self.figures.eligible() == 0 => {
                reasons.push("no transaction in these logs would be compressed".to_owned());
                verdict = AdviceVerdict::LeaveOff;
            }
            Some(decision) => match decision.advice() {
                Some(advice) => {
                    verdict = self.of_few(advice.verdict, &mut reasons);
                    reasons.extend(self.why_a_trial(&decision));
                    self.why(verdict, place, &mut reasons);
                }
                None => {
                    between = decision
                        .possible
                        .iter()
                        .map(|answer| (answer.verdict, level_at(answer.place)))
                        .collect();
                    reasons.push(self.why_not(place));
                    self.costs(place, &mut reasons);
                }
            },
            None => {}
        }
        reasons.extend(self.beginnings_read());
        self.level_of_server(&mut reasons);
        if too_little.is_none() {
            self.higher_levels(place, verdict, &mut reasons);
            self.who_pays(place, &mut reasons);
        }
        self.who_stays(&mut reasons);
        reasons.extend(self.compressed_already());
        if verdict != AdviceVerdict::LeaveOff {
            reasons.push(
                "not together with compressed connections (replica_compressed_protocol, \
                 protocol_compression_algorithms): they would compress the same bytes a second time for nothing"
                    .to_owned(),
            );
            reasons.push(READERS.to_owned());
        }
        let has_level = !matches!(verdict, AdviceVerdict::LeaveOff | AdviceVerdict::CantTell);
        Recommendation {
            verdict,
            level: has_level.then_some(level),
            only_level: self.generation.only_level().is_some(),
            saved: has_level.then(|| (saved, self.half_width_points(place))),
            too_little,
            between,
            reasons,
        }
    }

    /// That the server compresses at one level alone, and by which library the sizes were found.
    fn level_of_server(&self, reasons: &mut Vec<String>) {
        let Some(level) = self.generation.only_level() else { return };
        reasons.push(format!(
            "this server compresses at level {level}, whatever is set; MySQL 8.0.35 and later compress at the level \
             that is set"
        ));
        let library = self.generation.library();
        let is_exact = self.sampled.is_none();
        if let Some(program) = library.program().filter(|_| is_exact && !library.is_available()) {
            reasons.push(format!(
                "sizes are those of {}, which hardly differ from the server's {library}: {program} is not installed",
                Library::Linked
            ));
        }
    }

    /// How many transactions of the logs are compressed already, if any are.
    fn compressed_already(&self) -> Option<String> {
        (self.payloads > 0).then(|| {
            let transactions = counted(self.figures.transactions(), "transactions");
            format!(
                "of {transactions}, {} compressed already; they were measured as if they were not",
                self.payloads
            )
        })
    }

    /// The kind of data that there is too little of, and by how much.
    fn too_little(&self, place: usize, reasons: &mut Vec<String>) -> Option<TooLittle> {
        let count = self.figures.eligible();
        let bytes = self.figures.eligible_plain();
        if let Some(reason) = self.too_much_unread() {
            reasons.push(reason);
            return Some(TooLittle::Budget);
        }
        if count == 0 {
            return None;
        }
        let is_worth_a_trial = || {
            let advice = self.decision().and_then(|decision| decision.advice());
            bytes >= FEW_BYTES_MIN && advice.is_none_or(|advice| advice.verdict != AdviceVerdict::LeaveOff)
        };
        if bytes < BYTES_MIN || count < TRANSACTIONS_MIN && !is_worth_a_trial() {
            let transactions = if count == 1 { "transaction" } else { "transactions" };
            reasons.push(format!(
                "{count} {transactions} of {bytes} bytes together are too little to tell from, expected {TRANSACTIONS_MIN} \
                 transactions and {BYTES_MIN} bytes or more: give more logs"
            ));
            return Some(TooLittle::Log);
        }
        let longer = "a longer one, such as --budget 2m, or --exact will tell";
        if self.sampled.as_ref().is_some_and(|sampled| sampled.units == 0) {
            reasons.push(format!("no transaction was compressed within the budget: {longer}"));
            return Some(TooLittle::Budget);
        }
        let saved = self.saved_percent(place);
        let off = self.half_width_points(place);
        if off > HALF_WIDTH_MAX {
            let level = self.levels.get(place).copied().unwrap_or_default();
            reasons.push(format!(
                "within the budget, all that is known is that level {level} saves {saved:.1} ± {off:.1} % of the log: {longer}"
            ));
            return Some(TooLittle::Budget);
        }
        None
    }

    /// What is advised of a few transactions: a trial instead of turning it on.
    fn of_few(&self, verdict: AdviceVerdict, reasons: &mut Vec<String>) -> AdviceVerdict {
        let count = self.figures.eligible();
        if count >= TRANSACTIONS_MIN {
            return verdict;
        }
        let bytes = human_size(self.figures.eligible_plain());
        reasons.push(format!(
            "these are {} of {bytes} together, and others may be of another kind: give more logs, or try it",
            counted(count, "transactions")
        ));
        if verdict == AdviceVerdict::TurnOn { AdviceVerdict::TryOnReplica } else { verdict }
    }

    /// Why the logs that were read say too little about all: logs that were left out may be of another kind.
    fn too_much_unread(&self) -> Option<String> {
        let read = self.plain_bytes() as f64;
        let unread = self.unread_bytes();
        let unknown = self.unknown_bytes();
        if unknown <= UNREAD_MAX * (read + unread) {
            return None;
        }
        let read = self.bytes_read;
        let of = self.bytes_unread.map_or_else(String::new, |unread| format!(" of {}", read + unread));
        Some(format!(
            "{read}{of} bytes could be read within the budget, and the others may be of another kind: a longer one, fewer \
             logs, or --exact will tell"
        ))
    }

    /// That only the beginnings of logs were read, if more than a little is missing.
    fn beginnings_read(&self) -> Option<String> {
        let read = self.bytes_read;
        let unread = self.bytes_unread.filter(|unread| *unread > 0)?;
        Some(format!(
            "the beginnings of the logs were read, {} of {}, and the rest is taken to be like them",
            human_size(read),
            human_size(read + unread)
        ))
    }

    /// The place of the level that is shown: the one that the figures recommend.
    pub(crate) fn recommended_place(&self) -> usize {
        self.decision().map_or(0, |decision| decision.expected.place)
    }

    /// The decision from the figures; `None` without levels. Levels are in order, so those that decide come first.
    pub(crate) fn decision(&self) -> Option<Decision> {
        let deciding = self.levels.iter().take_while(|level| level.get() <= DECIDING_MAX).count();
        let deciding = if deciding > 0 { deciding } else { self.levels.len() };
        let points = self.levels.iter().take(deciding).enumerate().map(|(place, level)| {
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
        decide(&points.collect::<Vec<_>>(), self.is_of_busy_machine())
    }

    /// The error of a level's saving, in points of the plain log.
    pub(crate) fn half_width_points(&self, place: usize) -> f64 {
        let sampled = self.sampled.as_ref().and_then(|sampled| sampled.half_widths.get(place));
        let off = sampled.copied().unwrap_or(0.0) + self.unread_error();
        100.0 * crate::per(off, self.plain_bytes() as f64)
    }

    /// The figures that support an answer.
    fn why(&self, verdict: AdviceVerdict, place: usize, reasons: &mut Vec<String>) {
        let level = self.levels.get(place).copied().unwrap_or_default();
        let saved = self.saved_percent(place);
        if verdict == AdviceVerdict::LeaveOff {
            reasons.push(format!(
                "level {level} would save {saved:.1} % of the log, which is hardly worth a change"
            ));
            return;
        }
        self.costs(place, reasons);
        if verdict == AdviceVerdict::TryOnReplica && self.core_percent(place).is_none() {
            reasons.push(
                "the logs cover too little time to tell what part of a core it takes: try it".to_owned(),
            );
        }
    }

    /// Why the sizes don't decide, and how to get better ones.
    fn why_not(&self, place: usize) -> String {
        let saved = self.saved_percent(place);
        let off = self.half_width_points(place);
        let level = self.levels.get(place).copied().unwrap_or_default();
        format!(
            "level {level} saves {saved:.1} ± {off:.1} % of the log, which is not known well enough to decide: a longer \
             --budget, or --exact, will tell"
        )
    }

    /// Why the times leave several verdicts, so that a trial is advised.
    fn why_a_trial(&self, decision: &Decision) -> Option<String> {
        let is_open = !decision.is_clear() && decision.expected.verdict != AdviceVerdict::LeaveOff;
        is_open.then(|| match self.is_of_busy_machine() {
            true => "this machine was busy with something else, and processor time measured on it can be twice or half of \
                     the truth: measure again when it is idle"
                .to_owned(),
            false => "the processor time that decides differs by a quarter from run to run: begin with the lower level"
                .to_owned(),
        })
    }

    /// The time that compressing adds to the typical commit, and to the second slowest of a hundred.
    fn commit_milliseconds(&self, place: usize) -> [f64; 2] {
        let times = self.commit_times(place);
        [0.5, 0.99].map(|share| times.quantile(share) / 1e6)
    }

    /// Adds a level's costs to the reasons.
    fn costs(&self, place: usize, reasons: &mut Vec<String>) {
        let [typical, slow] = self.commit_milliseconds(place);
        if let Some(core) = self.core_percent(place) {
            reasons.push(format!("at the rate of these logs it takes {core:.1} % of a core"));
        }
        reasons.push(format!(
            "compressing adds {} to the typical commit (p99 +{})",
            time(typical),
            time(slow)
        ));
    }

    /// Adds the gain of the highest level to the reasons.
    fn higher_levels(&self, place: usize, verdict: AdviceVerdict, reasons: &mut Vec<String>) {
        let smallest = (0..self.levels.len()).min_by_key(|place| self.compressed_bytes(*place));
        let Some(smallest) = smallest.filter(|smallest| *smallest != place) else { return };
        let chosen = self.levels.get(place);
        let level = self.levels.get(smallest);
        let (Some(chosen), Some(level)) = (chosen, level) else { return };
        let more = self.saved_percent(smallest) - self.saved_percent(place);
        let [cost, known] = [smallest, place].map(|place| self.compress_seconds_per_gb(place));
        if verdict != AdviceVerdict::LeaveOff && known > 0.0 {
            reasons.push(format!(
                "level {level} would save {more:.1} % of the log more, for {:.1} times the processor time of level {chosen}",
                cost / known
            ));
        }
    }

    /// Names a class of sizes that holds most transactions and hardly shrinks.
    fn who_pays(&self, place: usize, reasons: &mut Vec<String>) {
        let classes = self.figures.classes.iter().enumerate();
        let Some((number, class)) = classes.max_by_key(|(_, class)| class.transactions) else { return };
        let Some(level) = class.levels.get(place) else { return };
        let saved = crate::saved_percent(class.plain, level.size);
        if class.transactions * 2 > self.figures.eligible() && saved < HARDLY_SHRINKS {
            let SizeClass { from, to } = SizeClass::numbered(number);
            let to = to.map_or_else(String::new, |to| format!(" to {to}"));
            reasons.push(format!(
                "most transactions have {from}{to} bytes, and those shrink by {saved:.1} %: each is compressed alone"
            ));
        }
    }

    /// Reports bytes that compression does not reach.
    fn who_stays(&self, reasons: &mut Vec<String>) {
        let left = self.figures.left.iter().zip(Ineligible::ALL);
        let Some((left, reason)) = left.max_by_key(|(left, _)| left.bytes) else { return };
        let share = 100.0 * crate::per(left.bytes as f64, self.plain_bytes() as f64);
        if share >= 1.0 {
            reasons.push(format!("{share:.1} % of the log stays as it is: {reason}"));
        }
    }
}

/// A time in readable units, given in milliseconds.
fn time(milliseconds: f64) -> String {
    match milliseconds {
        0.0..1.0 => format!("{:.0} µs", milliseconds * 1000.0),
        1.0..1000.0 => format!("{milliseconds:.1} ms"),
        _ => format!("{:.1} s", milliseconds / 1000.0),
    }
}

#[cfg(test)]
mod tests {
    use binlogz_payload::{CompressionLevel, ServerGeneration};

    use super::*;
    use crate::SampleResult;
    use crate::figures::ClassLevel;
    use crate::spent::MeasuringTime;

    /// A hundred transactions with `bytes` in total, `units` of them compressed by `percent`.
    fn advice(bytes: u64, units: u64, percent: u64) -> Advice {
        let mut advice = Advice::new(&[CompressionLevel::DEFAULT], 1, ServerGeneration::default());
        let class = &mut advice.figures.classes[3];
        (class.transactions, class.plain, class.inner) = (100, bytes, bytes);
        let size = bytes - bytes * percent / 100;
        advice.figures.levels = vec![crate::figures::LevelFigures { size, ..Default::default() }];
        let half_widths = vec![bytes as f64 / 1000.0];
        advice.sampled =
            Some(SampleResult { seed: 1, units, bytes, half_widths, spent: MeasuringTime::default() });
        advice
    }

    #[test]
    fn nothing_is_recommended_from_nothing() {
        let told = advice(1 << 20, 0, 57).recommendation();
        assert_eq!((told.verdict, told.level), (AdviceVerdict::CantTell, None));
        assert!(told.reasons[0].contains("no transaction was compressed within the budget"), "{told:?}");
        let told = advice(733, 10, 57).recommendation();
        assert_eq!((told.verdict, told.too_little), (AdviceVerdict::CantTell, Some(TooLittle::Log)));
        assert!(
            told.reasons[0].contains("100 transactions of 733 bytes together are too little"),
            "{told:?}"
        );
    }

    #[test]
    fn a_few_transactions_are_worth_a_trial_at_most() {
        let told = |transactions, bytes, percent| {
            let mut few = at_rate(bytes, percent);
            few.figures.classes[3].transactions = transactions;
            few.recommendation()
        };
        assert_eq!(told(TRANSACTIONS_MIN, 1 << 30, 57).verdict, AdviceVerdict::TurnOn);
        let bulk = told(3, 1 << 30, 57);
        assert_eq!(
            bulk.to_string(),
            "try level 3 first on a replica that serves only backups (saves 57.0 ± 0.1 % of the log)"
        );
        let expected = "these are 3 transactions of 1.0 GiB together, and others may be of another kind: give more logs, or try it";
        assert_eq!(bulk.reasons[0], expected);
        // Too small, or what a few hardly save says nothing of the others.
        for few in [told(3, FEW_BYTES_MIN - 1, 57), told(3, 1 << 30, 5)] {
            assert_eq!((few.verdict, few.level, few.saved), (AdviceVerdict::CantTell, None, None));
            assert_eq!(few.to_string(), "too few transactions to tell");
            assert!(few.reasons[0].starts_with("3 transactions of 10"), "{few:?}");
        }
    }

    /// The same over an hour, in which compressing takes next to nothing.
    fn at_rate(bytes: u64, percent: u64) -> Advice {
        let mut advice = advice(bytes, 100, percent);
        advice.figures.commits = Some((0, 3_600_000_000));
        let mut level = ClassLevel { compress: 1_000, ..ClassLevel::default() };
        level.times.count(10, 100.0);
        advice.figures.classes[3].levels = vec![level];
        advice
    }

    #[test]
    fn what_was_not_read_may_be_of_another_kind() {
        let told = |unread| {
            let mut advice = advice(1 << 20, 10, 57);
            (advice.files, advice.bytes_read) = (1, 1 << 20);
            let mut not_read = Advice::new(&[CompressionLevel::DEFAULT], 1, ServerGeneration::default());
            not_read.leave_out(unread);
            advice.add(&not_read);
            (advice.half_width_percent(0).unwrap(), advice.recommendation())
        };
        assert_eq!(told(Some(0)).1.verdict, AdviceVerdict::TryOnReplica);
        // A tenth of what was read, which may become anything from nothing to what it is.
        let (half_width, told_of_some) = told(Some((1 << 20) / 10));
        assert_eq!((told_of_some.verdict, told_of_some.level), (AdviceVerdict::CantTell, None));
        assert_eq!(told_of_some.to_string(), "budget too small to tell");
        let expected = "1048576 of 1153433 bytes could be read within the budget, and the others may be of another kind: \
            a longer one, fewer logs, or --exact will tell";
        assert_eq!(told_of_some.reasons[0], expected);
        assert!((half_width - 10.1 / 0.43).abs() < 0.01, "{half_width}");
        // Of a pipe nobody knows how much there is.
        let (half_width, of_pipe) = told(None);
        assert!(of_pipe.reasons[0].starts_with("1048576 bytes could be read"), "{of_pipe:?}");
        assert!(of_pipe.verdict == AdviceVerdict::CantTell && half_width > 100.0, "{half_width}");
        // A few bytes of much change nothing.
        assert_eq!(told(Some(1000)).1.verdict, AdviceVerdict::TryOnReplica);
    }

    #[test]
    fn the_rest_of_a_log_is_like_its_beginning() {
        let all = advice(1 << 20, 10, 57);
        let told = |unread| {
            let mut log = Advice::new(&[CompressionLevel::DEFAULT], 1, ServerGeneration::default());
            (log.bytes_read, log.figures) = (1 << 20, all.figures.clone());
            log.leave_out(Some(unread));
            let mut advice = Advice::new(&[CompressionLevel::DEFAULT], 1, ServerGeneration::default());
            advice.add(&log);
            advice.sampled.clone_from(&all.sampled);
            advice.recommendation()
        };
        let half = told(1 << 20);
        assert_eq!(half.verdict, AdviceVerdict::TryOnReplica, "{half:?}");
        // A tenth of a percent by the sample, and a twentieth of the half that was not read.
        assert!(half.saved.is_some_and(|(saved, off)| saved > 56.9 && (off - 2.6).abs() < 0.01), "{half:?}");
        let expected =
            "the beginnings of the logs were read, 1.0 MiB of 2.0 MiB, and the rest is taken to be like them";
        assert!(half.reasons.iter().any(|reason| reason == expected), "{half:?}");
        // Of a log of which next to nothing was read, nobody knows what it is like.
        assert_eq!(told(100 << 20).verdict, AdviceVerdict::CantTell);
    }

    #[test]
    fn logs_that_were_not_read_are_not_logs_without_transactions() {
        let mut advice = Advice::new(&[CompressionLevel::DEFAULT], 1, ServerGeneration::default());
        advice.sampled = Some(SampleResult {
            seed: 1,
            units: 0,
            bytes: 0,
            half_widths: vec![0.0],
            spent: MeasuringTime::default(),
        });
        assert_eq!(advice.recommendation().verdict, AdviceVerdict::LeaveOff);
        advice.leave_out(Some(700));
        advice.bytes_unknown = Some(700);
        let told = advice.recommendation();
        assert_eq!((told.verdict, told.too_little), (AdviceVerdict::CantTell, Some(TooLittle::Budget)));
        assert!(advice.half_width_percent(0).unwrap() >= 100.0);
    }

    /// Figures that decide on an idle machine don't decide on a busy one, measured exactly as well as sampled.
    #[test]
    fn times_of_a_busy_machine_decide_less() {
        let told = |busy: bool, exact: bool| {
            let mut advice = advice(1 << 20, 10, 57);
            let sampled = advice.sampled.as_mut().unwrap();
            let spent = MeasuringTime { wall: if busy { 2_000 } else { 1_100 }, cpu: 1_000 };
            (sampled.spent, sampled.half_widths) = (spent, vec![0.0]);
            if exact {
                advice.sampled = None;
                advice.figures.spent = spent;
            }
            // 6 ms a commit, where 10 are too many.
            let mut level = ClassLevel { compress: 600_000_000, ..ClassLevel::default() };
            level.times.count(6_000_000, 100.0);
            advice.figures.classes[3].levels = vec![level];
            advice.recommendation()
        };
        for exact in [false, true] {
            let idle = told(false, exact);
            assert_eq!(idle.verdict, AdviceVerdict::TryOnReplica, "{exact}");
            assert!(!idle.reasons[0].starts_with("this machine was busy"), "{idle:?}");
            let busy = told(true, exact);
            assert_eq!(busy.verdict, AdviceVerdict::TryOnReplica, "{exact}");
            assert!(busy.reasons[0].starts_with("this machine was busy with something else"), "{busy:?}");
        }
    }

    #[test]
    fn a_wide_interval_is_a_budget_that_was_too_small() {
        let with_half_width = |percent| {
            let mut advice = advice(1 << 20, 10, 57);
            advice.sampled.as_mut().unwrap().half_widths = vec![f64::from(1 << 20) * percent / 100.0];
            advice.recommendation()
        };
        let told = with_half_width(28.0);
        assert_eq!((told.verdict, told.level, told.saved), (AdviceVerdict::CantTell, None, None));
        assert_eq!(told.to_string(), "budget too small to tell");
        let expected = "within the budget, all that is known is that level 3 saves 57.0 ± 28.0 % of the log: \
            a longer one, such as --budget 2m, or --exact will tell";
        assert_eq!(told.reasons[0], expected);
        assert_eq!(with_half_width(9.9).verdict, AdviceVerdict::TryOnReplica);
    }

    #[test]
    fn a_server_without_levels_gets_a_yes_or_no() {
        let told = |percent| {
            let mut advice = advice(1 << 20, 10, percent);
            advice.generation = ServerGeneration::Flushed;
            advice.recommendation()
        };
        let expected = "try it first on a replica that serves only backups (saves 57.0 ± 0.1 % of the log)";
        assert_eq!(told(57).to_string(), expected);
        assert!(told(57).reasons.iter().any(|reason| reason.contains("whatever is set")), "{:?}", told(57));
        let expected =
            "can't tell yet: leave compression off, or try it first on a replica that serves only backups";
        assert_eq!(told(10).to_string(), expected);
    }

    #[test]
    fn the_headline_has_its_interval() {
        let told = advice(1 << 20, 10, 57).recommendation();
        let expected =
            "try level 3 first on a replica that serves only backups (saves 57.0 ± 0.1 % of the log)";
        assert_eq!(told.to_string(), expected);
        // 10 % decides whether a saving is worth a change.
        let told = advice(1 << 20, 10, 10).recommendation();
        let expected = "can't tell yet: leave compression off, or try level 3 first on a replica that serves only backups";
        assert_eq!(told.to_string(), expected);
    }
}
