//! The reasons why transactions are not compressed.

use std::fmt;

use binlogz_payload::Ineligible;

/// Why a transaction in a log is not compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Compression was off when it was written; otherwise it would have been compressed.
    CompressionOff,
    /// A server would not compress it.
    Ineligible(Ineligible),
}

impl Reason {
    /// A short, stable name for machines.
    pub fn name(self) -> &'static str {
        match self {
            Reason::CompressionOff => "compression_off",
            Reason::Ineligible(reason) => reason.name(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::CompressionOff => f.write_str("compression was off"),
            Reason::Ineligible(reason) => reason.fmt(f),
        }
    }
}

/// Transactions with one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReasonTotals {
    pub(crate) transactions: u64,
    /// Bytes of their events, without GTID events and checksums.
    pub(crate) bytes: u64,
}

/// Transactions by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByReason {
    compression_off: ReasonTotals,
    ineligible: [ReasonTotals; Ineligible::ALL.len()],
}

impl ByReason {
    pub(crate) fn count(&mut self, reason: Reason, bytes: u64) {
        let totals = match reason {
            Reason::CompressionOff => Some(&mut self.compression_off),
            Reason::Ineligible(reason) => self.ineligible.get_mut(reason as usize),
        };
        if let Some(totals) = totals {
            totals.transactions += 1;
            totals.bytes += bytes;
        }
    }

    pub(crate) fn add(&mut self, other: &ByReason) {
        let others = std::iter::once(&other.compression_off).chain(&other.ineligible);
        for (totals, other) in
            std::iter::once(&mut self.compression_off).chain(&mut self.ineligible).zip(others)
        {
            totals.transactions += other.transactions;
            totals.bytes += other.bytes;
        }
    }

    /// The reasons that occurred.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Reason, ReasonTotals)> {
        let off = std::iter::once((Reason::CompressionOff, self.compression_off));
        let others = Ineligible::ALL.into_iter().map(Reason::Ineligible).zip(self.ineligible);
        off.chain(others).filter(|(_, totals)| totals.transactions > 0)
    }
}
