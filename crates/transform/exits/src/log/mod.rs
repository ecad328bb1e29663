//! A log that is masked while it is read.
//!
//! ```text
//! reader       the gate: gives an input that reads as the masked log; a thread does the work
//! part         the same for single transactions, from any place of a log on
//! run          what the logs of a run have in common
//! walker       which event leaves in which form
//! open_tables  the table maps of a statement, and its rows, of which the last keeps the end of the statement
//! transaction  the events of a transaction, kept until its length is known
//! sink         positions and checksums
//! ```

mod open_tables;
pub(crate) mod part;
pub(crate) mod reader;
mod run;
mod sink;
#[cfg(test)]
mod tests;
mod transaction;
mod walker;
