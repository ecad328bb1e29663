//! Which events make a transaction, and whether it may be compressed.
//!
//! In come events of a log, whose [`context`] says how to read them. [`scan`] finds the transactions, [`candidate`] has what must be known
//! of one, and [`eligibility`] the reasons to leave one as it is.

pub(crate) mod candidate;
pub mod context;
pub mod eligibility;
pub(crate) mod scan;
