//! The store over all its storages: positions, files, recovery, crashes.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod common;
mod crash;
mod faults;
mod files;
mod recovery;
mod sums;
mod watermark;
