//! `binlogz dump` compared with the real mysqlbinlog, and its lines: JSON, row changes as other programs write them.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod changes;
#[path = "../common/mod.rs"]
mod common;
mod exits;
mod exits_search;
mod jsonl;
mod matrix;
mod options;
#[path = "../common/planted.rs"]
mod planted;
mod positions;
mod real;
mod remote;
mod remote_mariadb;
mod tables_then;
