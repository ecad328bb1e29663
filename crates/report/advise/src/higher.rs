//! Levels that are measured after those that decide: on the same logs, beside them, and put after them.

use binlogz_payload::CompressionLevel;
use binlogz_stats::size_class::CLASSES;

use crate::Advice;
use crate::figures::{AdviceFigures, ClassLevel};
use crate::sampled::SampleResult;

impl Advice {
    /// The same logs, with nothing measured at these levels yet.
    pub fn of_levels(&self, levels: &[CompressionLevel]) -> Advice {
        Advice {
            levels: levels.to_vec(),
            figures: self.figures.clone(),
            slowdowns: Vec::new(),
            sampled: None,
            whole_files: Vec::new(),
            ..*self
        }
    }

    /// Puts the figures of higher levels of the same logs after these; nothing if none was measured.
    pub fn append(&mut self, higher: Advice) {
        let Some(sampled) = higher.sampled.filter(|sampled| sampled.units > 0) else { return };
        let known = self.levels.len();
        self.slowdowns.resize(known, [1.0; CLASSES]);
        self.slowdowns.extend(higher.levels.iter().map(|_| [1.0; CLASSES]));
        self.levels.extend(higher.levels);
        self.figures.append_levels(higher.figures, known);
        let mut half_widths =
            self.sampled.take().map_or_else(|| vec![0.0; known], |sampled| sampled.half_widths);
        half_widths.extend(&sampled.half_widths);
        self.sampled = Some(SampleResult { half_widths, ..sampled });
    }

    /// Takes the figures of all transactions, compressed at these very levels, in place of those of a sample.
    pub fn take_exact(&mut self, exact: &Advice) {
        self.figures = exact.figures.clone();
        self.sampled = None;
    }

    /// Whether each transaction was compressed at each level.
    pub fn is_exact(&self) -> bool {
        self.sampled.as_ref().is_none_or(|sampled| sampled.half_widths.iter().all(|off| *off == 0.0))
    }

    /// Whether these are the figures of the same transactions, compressed at the same levels.
    pub fn is_of_same_logs(&self, other: &Advice) -> bool {
        self.bytes_read == other.bytes_read
            && self.levels == other.levels
            && self.figures.eligible() == other.figures.eligible()
            && self.figures.inner() == other.figures.inner()
    }

    /// About how long this many workers need to compress all transactions at all levels, in seconds, while the machine is as busy as it
    /// was when the sample was compressed. They compress one transaction after the other, which takes less time than commits do.
    pub fn exact_seconds(&self, workers: usize) -> f64 {
        let classes = self.figures.classes.iter().flat_map(|class| &class.levels);
        let all: f64 = classes.map(|level| level.compress as f64).sum();
        let waiting = self.sampled.as_ref().map_or(1.0, |sampled| sampled.spent.waiting());
        all * waiting / 1e9 / workers.max(1) as f64
    }
}

impl AdviceFigures {
    /// Puts the levels of other figures of the same transactions after these, which have `known` levels.
    fn append_levels(&mut self, higher: AdviceFigures, known: usize) {
        self.levels.resize_with(known, Default::default);
        self.levels.extend(higher.levels);
        for (class, higher) in self.classes.iter_mut().zip(higher.classes) {
            class.levels.resize_with(known, ClassLevel::default);
            class.levels.extend(higher.levels);
        }
        for (hour, figures) in &mut self.hours {
            figures.levels.resize(known, 0);
            if let Some(higher) = higher.hours.get(hour) {
                figures.levels.extend(&higher.levels);
            }
        }
        for (name, table) in self.tables.iter_mut() {
            table.shares.resize(known, 0);
            if let Some(higher) = higher.tables.get(name) {
                table.shares.extend(&higher.shares);
            }
        }
    }
}
