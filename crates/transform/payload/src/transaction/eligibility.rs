//! Which transactions are compressed: those that a server with `binlog_transaction_compression = ON` would
//! have compressed, and that come back byte for byte.
//!
//! The server compresses a transaction that changed no non-transactional table, holds at least one row event
//! and nothing in statement format (`Binlog_cache_compressor::shall_compress`); neither size nor gain
//! matters. A log does not say which tables are transactional, but a transaction that changed others ends
//! with `COMMIT` as a statement instead of an XID event.

use std::fmt;

use binlogz_binlog::EventType;
use binlogz_binlog::transaction::TransactionContent;

/// Why a transaction stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Ineligible {
    /// The transaction is compressed already.
    AlreadyCompressed,
    /// Changes are logged as statements: DDL, `binlog_format` STATEMENT or MIXED, LOAD DATA.
    NotRowFormat,
    /// The transaction has no row event: it is empty, or the second phase of XA.
    NoRows,
    /// The transaction changed a non-transactional table.
    NonTransactional,
    /// The transaction holds an incident.
    Incident,
    /// The transaction has no GTID event, as before 5.7 without GTIDs and in MariaDB.
    NoGtid,
    /// The log ends before the transaction does.
    Incomplete,
    /// The transaction holds events that no server puts there, or of unknown types.
    UnknownEvents,
    /// The payload would exceed the 1 GiB that an event may have.
    TooLarge,
    /// The format description can't be changed reversibly to announce payloads.
    FormatDescription,
    /// The events' positions would not come back: they are neither their own nor their source's in one sequence.
    Positions,
    /// The GTID event would not come back: its transaction length field is wrong.
    TransactionLength,
}

impl Ineligible {
    /// Every reason, in the order of reports.
    pub const ALL: [Self; 12] = [
        Self::AlreadyCompressed,
        Self::NotRowFormat,
        Self::NoRows,
        Self::NonTransactional,
        Self::Incident,
        Self::NoGtid,
        Self::Incomplete,
        Self::UnknownEvents,
        Self::TooLarge,
        Self::FormatDescription,
        Self::Positions,
        Self::TransactionLength,
    ];

    /// A short name for machines, stable.
    pub fn name(self) -> &'static str {
        match self {
            Self::AlreadyCompressed => "already_compressed",
            Self::NotRowFormat => "not_row_format",
            Self::NoRows => "no_rows",
            Self::NonTransactional => "non_transactional",
            Self::Incident => "incident",
            Self::NoGtid => "no_gtid",
            Self::Incomplete => "incomplete",
            Self::UnknownEvents => "unknown_events",
            Self::TooLarge => "too_large",
            Self::FormatDescription => "format_description",
            Self::Positions => "positions",
            Self::TransactionLength => "transaction_length",
        }
    }
}

impl fmt::Display for Ineligible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyCompressed => "already compressed",
            Self::NotRowFormat => "statements, not rows",
            Self::NoRows => "no row event",
            Self::NonTransactional => "non-transactional tables",
            Self::Incident => "an incident",
            Self::NoGtid => "no GTID event",
            Self::Incomplete => "cut off at the end of the log",
            Self::UnknownEvents => "events of unknown kind",
            Self::TooLarge => "payload above 1 GiB",
            Self::FormatDescription => "format description of an unknown server",
            Self::Positions => "positions that would not come back",
            Self::TransactionLength => "a transaction length that would not come back",
        })
    }
}

/// The server's rules for a whole transaction; `end` is the type of its last event.
pub fn check(content: &TransactionContent, end: EventType) -> Result<(), Ineligible> {
    match content {
        TransactionContent { gtid: None, .. } => Err(Ineligible::NoGtid),
        TransactionContent { with_payload: true, .. } => Err(Ineligible::AlreadyCompressed),
        TransactionContent { with_incident: true, .. } => Err(Ineligible::Incident),
        TransactionContent { with_sbr: true, .. } => Err(Ineligible::NotRowFormat),
        TransactionContent { with_rbr: false, .. } => Err(Ineligible::NoRows),
        TransactionContent { malformed: Some(_), .. } | TransactionContent { with_foreign: true, .. } => {
            Err(Ineligible::UnknownEvents)
        }
        _ if !end.is_commit() => Err(Ineligible::NonTransactional),
        _ => Ok(()),
    }
}

/// How many transactions were compressed, how many stayed as they are, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions compressed (by compress) or expanded (by expand).
    pub changed: u64,
    /// Bytes of their events inside the payloads, without checksums, summed.
    pub uncompressed_bytes: u64,
    /// Bytes of their payloads, summed.
    pub compressed_bytes: u64,
    /// Transactions that needed nothing done (for expand: not compressed).
    pub untouched: u64,
    /// Transactions that stayed as they are, by reason.
    left: [u64; Ineligible::ALL.len()],
}

impl Tally {
    /// Counts a transaction that was compressed or expanded.
    pub(crate) fn count_changed(&mut self, uncompressed_bytes: u64, compressed_bytes: u64) {
        self.changed += 1;
        self.uncompressed_bytes += uncompressed_bytes;
        self.compressed_bytes += compressed_bytes;
    }

    /// Counts a transaction that stayed as it is.
    pub fn count_left(&mut self, reason: Ineligible) {
        if let Some(count) = self.left.get_mut(reason as usize) {
            *count += 1;
        }
    }

    /// Adds the counts of another part of the log.
    pub fn add(&mut self, other: &Tally) {
        self.changed += other.changed;
        self.untouched += other.untouched;
        self.uncompressed_bytes += other.uncompressed_bytes;
        self.compressed_bytes += other.compressed_bytes;
        for (count, other) in self.left.iter_mut().zip(other.left) {
            *count += other;
        }
    }

    /// The reasons that occurred, with their counts.
    pub fn left(&self) -> impl Iterator<Item = (Ineligible, u64)> + '_ {
        Ineligible::ALL.into_iter().zip(self.left).filter(|(_, count)| *count > 0)
    }

    /// All transactions.
    pub fn transactions(&self) -> u64 {
        self.changed + self.untouched + self.left.iter().sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_place_in_the_tally() {
        let mut tally = Tally::default();
        for (place, reason) in Ineligible::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place);
            tally.count_left(reason);
        }
        assert_eq!(tally.left().count(), Ineligible::ALL.len());
        assert_eq!(tally.transactions(), 12);
    }
}
