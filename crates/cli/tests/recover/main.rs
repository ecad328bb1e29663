//! `undo`, `redo`, `rows` and `table-at`, on real servers.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod apply;
mod cascades;
#[path = "../common/mod.rs"]
mod common;
mod from_server;
mod options;
mod round_trip;
mod rows;
mod table_at;
mod table_at_dump;
mod trouble;
mod workload;
