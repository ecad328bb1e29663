//! Works on pieces with many threads: takes jobs, and gives their results in the same order, in bounded memory.

pub mod memory;
pub mod ordered;
