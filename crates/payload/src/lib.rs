//! Compresses and expands the transactions of a MySQL binary log.
//!
//! `compress` puts all events of a transaction behind its GTID event into one
//! `Transaction_payload` event; `expand` takes them out again. Both rewrite what depends on the
//! change: event sizes, positions, the transaction length in the GTID event, checksums. They are
//! inverses: what would not come back byte for byte is left as it is, with the reason
//! ([`Ineligible`](eligibility::Ineligible)). And they are canonical: our bytes are mysqld's.
//!
//! Works on slices, readers and writers; files, threads and temporary files are `binlogz-flow`'s.

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

pub mod compressor;
pub mod error;
pub mod expander;
pub mod level;

pub use compressor::Compressor;
pub use error::{Error, Result};
pub use expander::Expander;
pub use level::CompressionLevel;
