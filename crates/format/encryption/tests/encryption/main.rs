//! Encrypted logs, as real servers write and read them.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod server;
mod std_data;
