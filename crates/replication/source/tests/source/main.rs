//! Connections to real servers, and to peers that lie.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod compressed;
mod mysql;
mod option_files;
mod peers;
