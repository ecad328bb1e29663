//! Which events make a transaction, and whether it may be compressed.
//!
//! The input is events of a log; [`context`] says how to read them. [`scan`] finds the transactions, [`candidate`] has
//! the facts that decide about one, and [`eligibility`] the reasons to leave one as it is.

pub(crate) mod candidate;
pub mod context;
pub mod eligibility;
pub(crate) mod scan;
