//! The log of a MariaDB source.
//!
//! * `log` says to whom and how it is served, and to whom it is not;
//! * `start` finds where a dump by MariaDB's GTIDs begins.

pub(crate) mod log;
pub(crate) mod start;
