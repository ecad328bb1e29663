//! The pipeline over every real log there is: the laws, and each pass for itself.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod laws;
mod row_changes;
mod salvage;
mod same;
mod unread;
mod verify;
