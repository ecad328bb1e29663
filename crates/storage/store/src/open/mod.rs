//! An open log: opens and reopens it, appends, syncs, reads, purges, repairs, lends files to readers.

pub(crate) mod lending;
pub(crate) mod reader;
pub(crate) mod repair;
pub(crate) mod store;
pub(crate) mod writer;
