//! The real program over real logs: plain, compressed and archived.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

#[cfg(feature = "cluster")]
mod cluster;
mod common;
mod docs;
mod export;
mod export_to;
mod hostile;
mod input;
mod pushdown;
mod queries;
mod types;
