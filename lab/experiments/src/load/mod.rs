//! Puts load on the server: our own statements, and sysbench. The result is the client's view of a step.

pub(crate) mod sysbench;
pub(crate) mod work;
