//! The server under test: where it is, how to query it, its settings and its limits.

pub(crate) mod limits;
pub(crate) mod machine;
pub(crate) mod session;
pub(crate) mod tested;
