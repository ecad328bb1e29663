//! `binlogz dump` beside the real mysqlbinlog, and its JSON lines.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

#[path = "../common/mod.rs"]
mod common;
mod jsonl;
mod matrix;
mod options;
mod positions;
mod remote;
