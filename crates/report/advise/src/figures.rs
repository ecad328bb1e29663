//! Counts transactions that would be compressed, and the others.
//!
//! Transaction sizes are those in the log, with GTID event, headers and checksums. A worker collects figures
//! of a piece of the log; their sums are those of the log, however it was cut.

use std::collections::BTreeMap;
use std::sync::Arc;

use binlogz_figures::Quantiles;
use binlogz_payload::{Error, ExtractedTransaction, Ineligible};
use binlogz_stats::TableName;
use binlogz_stats::size_class::{CLASSES, class_of};

use crate::spent::MeasuringTime;
use crate::strata::{BUCKETS, StratumFigures};
use crate::tables::FiguresByTable;

const MICROSECONDS_PER_HOUR: u64 = 3_600_000_000;

/// Two years of hours; later hours are left out of the table by hour.
const HOURS_MAX: usize = 17_600;

/// The figures.
#[derive(Debug, Clone, Default)]
pub(crate) struct AdviceFigures {
    /// Number and bytes of transactions that stay as they are, by reason.
    pub(crate) left: [StayingTransactions; Ineligible::ALL.len()],
    /// Transactions that would be compressed, by class of size.
    pub(crate) classes: [ClassFigures; CLASSES],
    /// By the hour of commit, counted from 1970 in UTC.
    pub(crate) hours: BTreeMap<u64, HourFigures>,
    pub(crate) tables: FiguresByTable,
    /// The first and last commit, in microseconds since 1970.
    pub(crate) commits: Option<(u64, u64)>,
    /// By level.
    pub(crate) levels: Vec<LevelFigures>,
    /// The time of compressing everything; for a sample nothing.
    pub(crate) spent: MeasuringTime,
}

/// Transactions that stay as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StayingTransactions {
    pub(crate) transactions: u64,
    pub(crate) bytes: u64,
}

/// Transactions of a class of size.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassFigures {
    pub(crate) transactions: u64,
    /// Bytes in the log without compression.
    pub(crate) plain: u64,
    /// Bytes that the compressor gets.
    pub(crate) inner: u64,
    /// For a sample: the known figures of its strata.
    pub(crate) strata: [StratumFigures; BUCKETS],
    /// By level.
    pub(crate) levels: Vec<ClassLevel>,
}

/// One level of a class.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClassLevel {
    /// Bytes in the log.
    pub(crate) size: u64,
    /// Nanoseconds of processor time: the sum, and the distribution.
    pub(crate) compress: u64,
    pub(crate) times: Quantiles,
}

/// Transactions of an hour.
#[derive(Debug, Clone, Default)]
pub(crate) struct HourFigures {
    pub(crate) transactions: u64,
    /// Bytes of transactions that stay as they are.
    pub(crate) left: u64,
    /// Bytes of the others without compression, by class of size.
    pub(crate) plain: [u64; CLASSES],
    /// Bytes of the others by level.
    pub(crate) levels: Vec<u64>,
}

/// All transactions at a level.
#[derive(Debug, Clone, Default)]
pub(crate) struct LevelFigures {
    /// Bytes in the log of compressed transactions.
    pub(crate) size: u64,
    /// Bytes of their payloads.
    pub(crate) payload: u64,
    /// Nanoseconds of processor time for expanding some of them, and their expanded bytes.
    pub(crate) expand: (u64, u64),
}

/// The size and time of a transaction at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompressedFigures {
    pub(crate) size: u64,
    pub(crate) payload: u64,
    /// Nanoseconds of processor time, and the number of transactions they represent: none if it was not
    /// timed.
    pub(crate) compress: u64,
    pub(crate) stands_for: u64,
    pub(crate) expand: (u64, u64),
}

impl AdviceFigures {
    /// Counts a transaction that stays as it is.
    pub(crate) fn count_left(&mut self, reason: Ineligible, bytes: u64) {
        if let Some(left) = self.left.get_mut(reason as usize) {
            left.transactions += 1;
            left.bytes += bytes;
        }
    }

    /// Counts a transaction, except for what depends on the level. Returns whether it would be compressed.
    pub(crate) fn count(&mut self, transaction: &ExtractedTransaction<'_>) -> Result<bool, Error> {
        let plain = transaction.plain_size();
        let timestamp = transaction.timestamp()?;
        let (first, last) = self.commits.unwrap_or((timestamp, timestamp));
        self.commits = Some((first.min(timestamp), last.max(timestamp)));
        let class = class_of(transaction.inner_size());
        if let Some(hour) = self.hour(timestamp / MICROSECONDS_PER_HOUR) {
            hour.transactions += 1;
            match hour.plain.get_mut(class) {
                Some(bytes) if transaction.left().is_none() => *bytes += plain,
                _ => hour.left += plain,
            }
        }
        if let Some(reason) = transaction.left() {
            self.count_left(reason, plain);
            return Ok(false);
        }
        if let Some(class) = self.classes.get_mut(class) {
            class.transactions += 1;
            class.plain += plain;
            class.inner += transaction.inner_size();
        }
        Ok(true)
    }

    /// Counts a transaction in its stratum.
    pub(crate) fn count_stratum(&mut self, class: usize, stratum: usize, x: u64) {
        let class = self.classes.get_mut(class);
        if let Some(known) = class.and_then(|class| class.strata.get_mut(stratum)) {
            known.add(StratumFigures { transactions: 1, x });
        }
    }

    /// Counts the size and time of the same transaction at each level.
    pub(crate) fn count_levels(
        &mut self,
        transaction: &ExtractedTransaction<'_>,
        levels: &[CompressedFigures],
        tables: &[(Arc<TableName>, u64)],
    ) -> Result<(), Error> {
        let hour = transaction.timestamp()? / MICROSECONDS_PER_HOUR;
        let inner = transaction.inner_size();
        let class_number = class_of(inner);
        self.levels.resize_with(levels.len(), LevelFigures::default);
        for (figures, level) in self.levels.iter_mut().zip(levels) {
            figures.size += level.size;
            figures.payload += level.payload;
            figures.expand.0 += level.expand.0;
            figures.expand.1 += level.expand.1;
        }
        if let Some(class) = self.classes.get_mut(class_number) {
            class.levels.resize_with(levels.len(), ClassLevel::default);
            for (known, level) in class.levels.iter_mut().zip(levels) {
                known.size += level.size;
                known.compress += level.compress * level.stands_for;
                if level.stands_for > 0 {
                    known.times.count(level.compress, level.stands_for as f64);
                }
            }
        }
        if let Some(hour) = self.hour(hour) {
            hour.levels.resize(levels.len(), 0);
            for (size, level) in hour.levels.iter_mut().zip(levels) {
                *size += level.size;
            }
        }
        for (name, bytes) in tables {
            let payloads = levels.iter().map(|level| level.payload);
            self.tables.count(name, *bytes, class_number, inner, payloads);
        }
        Ok(())
    }

    fn hour(&mut self, hour: u64) -> Option<&mut HourFigures> {
        let room = self.hours.len() < HOURS_MAX || self.hours.contains_key(&hour);
        room.then(|| self.hours.entry(hour).or_default())
    }

    /// Adds the figures of a later piece.
    pub(crate) fn add(&mut self, other: &AdviceFigures) {
        self.spent.add(other.spent);
        for (left, other) in self.left.iter_mut().zip(other.left) {
            left.transactions += other.transactions;
            left.bytes += other.bytes;
        }
        for (class, other) in self.classes.iter_mut().zip(&other.classes) {
            class.transactions += other.transactions;
            class.plain += other.plain;
            class.inner += other.inner;
            for (known, other) in class.strata.iter_mut().zip(other.strata) {
                known.add(other);
            }
            class.levels.resize_with(class.levels.len().max(other.levels.len()), ClassLevel::default);
            for (level, other) in class.levels.iter_mut().zip(&other.levels) {
                level.size += other.size;
                level.compress += other.compress;
                level.times.add(&other.times);
            }
        }
        for (hour, other) in &other.hours {
            let Some(hour) = self.hour(*hour) else { continue };
            hour.transactions += other.transactions;
            hour.left += other.left;
            for (bytes, other) in hour.plain.iter_mut().zip(other.plain) {
                *bytes += other;
            }
            hour.levels.resize(hour.levels.len().max(other.levels.len()), 0);
            for (size, other) in hour.levels.iter_mut().zip(&other.levels) {
                *size += other;
            }
        }
        self.tables.add(&other.tables);
        if let Some((first, last)) = other.commits {
            let (known_first, known_last) = self.commits.unwrap_or((first, last));
            self.commits = Some((known_first.min(first), known_last.max(last)));
        }
        self.levels.resize_with(self.levels.len().max(other.levels.len()), LevelFigures::default);
        for (level, other) in self.levels.iter_mut().zip(&other.levels) {
            level.size += other.size;
            level.payload += other.payload;
            level.expand.0 += other.expand.0;
            level.expand.1 += other.expand.1;
        }
    }

    /// The number of transactions that would be compressed.
    pub(crate) fn eligible(&self) -> u64 {
        self.classes.iter().map(|class| class.transactions).sum()
    }

    /// Bytes in the log of the transactions that would be compressed, without compression.
    pub(crate) fn eligible_plain(&self) -> u64 {
        self.classes.iter().map(|class| class.plain).sum()
    }

    /// Bytes that the compressor gets.
    pub(crate) fn inner(&self) -> u64 {
        self.classes.iter().map(|class| class.inner).sum()
    }

    /// Bytes of transactions that stay as they are.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.left.iter().map(|left| left.bytes).sum()
    }

    /// The number of all transactions.
    pub(crate) fn transactions(&self) -> u64 {
        self.eligible() + self.left.iter().map(|left| left.transactions).sum::<u64>()
    }
}
