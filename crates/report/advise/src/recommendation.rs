//! The recommendation in words, and its basis. `recommend.rs` makes it.

use std::fmt;

use binlogz_payload::CompressionLevel;

/// The reason to ask first who reads the log: superfluous where that was asked.
pub const READERS: &str = "find out first what reads the binlog: replicas before 8.0.20 and MariaDB stop, and some CDC clients \
                           lose rows without an error";

/// The advice on `binlog_transaction_compression`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdviceVerdict {
    /// Leave it off.
    LeaveOff,
    /// Turn it on.
    TurnOn,
    /// Turn it on first at one replica that is used only for backups.
    TryOnReplica,
    /// Compress somewhere other than in the source's commits.
    CompressOffSource,
    /// The figures support more than one answer.
    CantTell,
}

impl AdviceVerdict {
    /// A short, stable name for machines.
    pub fn name(self) -> &'static str {
        match self {
            AdviceVerdict::LeaveOff => "leave_off",
            AdviceVerdict::TurnOn => "turn_on",
            AdviceVerdict::TryOnReplica => "try_on_replica",
            AdviceVerdict::CompressOffSource => "compress_off_source",
            AdviceVerdict::CantTell => "cant_tell",
        }
    }
}

/// The kind of data that there is too little of for any advice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooLittle {
    /// Transactions in the logs.
    Log,
    /// Time for the sample.
    Budget,
}

/// The advice, and its reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Recommendation {
    /// The advice.
    pub verdict: AdviceVerdict,
    /// The level; `None` if compression is to stay off, or the figures don't decide.
    pub level: Option<CompressionLevel>,
    /// Whether servers of this generation have no other level than that.
    pub only_level: bool,
    /// Percent of the log saved, and the error of that in points (0: exact).
    pub saved: Option<(f64, f64)>,
    /// Why there is no answer at all; then the verdict is [`AdviceVerdict::CantTell`].
    pub too_little: Option<TooLittle>,
    /// The other answers that the figures allow, if they don't decide; otherwise empty.
    pub between: Vec<(AdviceVerdict, CompressionLevel)>,
    /// The reasons, the most important first.
    pub reasons: Vec<String>,
}

impl fmt::Display for Recommendation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.too_little {
            Some(TooLittle::Log) => return f.write_str("too few transactions to tell"),
            Some(TooLittle::Budget) => return f.write_str("budget too small to tell"),
            None => {}
        }
        if self.verdict == AdviceVerdict::CantTell {
            f.write_str("can't tell yet")?;
            for (place, (verdict, levels)) in self.by_verdict().into_iter().enumerate() {
                f.write_str(if place == 0 { ": " } else { ", or " })?;
                write_answer(f, verdict, &self.at_levels(&levels))?;
            }
            return Ok(());
        }
        write_answer(f, self.verdict, &self.at_levels(&[self.level.unwrap_or_default()]))?;
        match self.saved {
            Some((saved, 0.0)) if self.level.is_some() => write!(f, " (saves {saved:.1} % of the log)"),
            Some((saved, off)) if self.level.is_some() => {
                write!(f, " (saves {saved:.1} ± {off:.1} % of the log)")
            }
            _ => Ok(()),
        }
    }
}

/// People are given this many reasons first.
const MAIN_REASONS: usize = 3;

impl Recommendation {
    /// The reasons that people are given first: the weightiest, and what to find out before compression is turned on.
    pub fn main_reasons(&self) -> impl Iterator<Item = &str> {
        let readers = self.reasons.iter().filter(|reason| *reason == READERS);
        let others = self
            .reasons
            .iter()
            .filter(|reason| *reason != READERS)
            .take(MAIN_REASONS - readers.clone().count().min(MAIN_REASONS));
        others.chain(readers).map(String::as_str)
    }

    /// ` at level 1, 3 or 6`; nothing where there is no choice.
    fn at_levels(&self, levels: &[CompressionLevel]) -> String {
        if self.only_level { String::new() } else { format!(" at level {}", listed(levels)) }
    }

    /// The remaining answers, grouped by verdict, the lowest level first.
    fn by_verdict(&self) -> Vec<(AdviceVerdict, Vec<CompressionLevel>)> {
        let mut answers: Vec<(AdviceVerdict, Vec<CompressionLevel>)> = Vec::new();
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

fn write_answer(f: &mut fmt::Formatter<'_>, verdict: AdviceVerdict, at_level: &str) -> fmt::Result {
    match verdict {
        AdviceVerdict::LeaveOff => f.write_str("leave compression off"),
        AdviceVerdict::TurnOn => write!(f, "turn compression on{at_level}"),
        AdviceVerdict::TryOnReplica => match at_level.strip_prefix(" at ") {
            Some(level) => write!(f, "try {level} first on a replica that serves only backups"),
            None => f.write_str("try it first on a replica that serves only backups"),
        },
        AdviceVerdict::CompressOffSource => {
            write!(f, "compress off the source: its files at rest, or its stream on the way")?;
            f.write_str(if at_level.is_empty() { "" } else { "," })?;
            f.write_str(at_level)
        }
        AdviceVerdict::CantTell => f.write_str("can't tell"),
    }
}
