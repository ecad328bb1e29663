//! The command line of binlogz.

fn main() {}
