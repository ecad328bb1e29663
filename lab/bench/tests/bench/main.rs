//! `binlogz bench` and `binlogz demo`: plans, presets on real servers, where they refuse to run; their help, and the demo to its end.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod commit;
mod common;
mod demo;
mod help;
#[path = "../../../../crates/interfaces/cli/tests/docs/help_blocks.rs"]
mod help_blocks;
mod plan;
mod presets;
mod refusals;
mod servers;
