//! Works on pieces with many threads: jobs come in, their results go out in the same order; memory is bounded.

pub mod memory;
pub mod ordered;
