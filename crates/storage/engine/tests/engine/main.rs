//! The engine: sessions, groups, variables, and its log compared with the server's.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod common;
mod faults;
mod groups;
mod kill;
mod live;
mod replay;
mod same_bytes;
mod sessions;
