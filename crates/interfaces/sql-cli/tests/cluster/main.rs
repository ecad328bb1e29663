//! The real program as a client of a cluster: needs the feature `cluster`, so `make soak` runs it, or
//! `cargo test --package binlogz-sql --features cluster --test cluster`.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod answers;
#[path = "../sql/common.rs"]
#[allow(dead_code)] // two test programs share it
mod common;
mod loss;
