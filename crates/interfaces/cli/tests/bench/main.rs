//! `binlogz bench`: its plan, its presets on real servers, and where it refuses to run.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod commit;
#[path = "../common/mod.rs"]
mod common;
mod plan;
mod presets;
mod refusals;
