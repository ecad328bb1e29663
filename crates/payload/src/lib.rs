//! Compresses and expands the transactions of a MySQL binary log.
//!
//! `compress` puts all events of a transaction behind its GTID event into one
//! `Transaction_payload` event; `expand` takes them out again. Both rewrite what depends on the
//! change: event sizes, positions, the transaction length in the GTID event, checksums. They are
//! inverses: what would not come back byte for byte is left as it is, with the reason
//! ([`Ineligible`]). And they are canonical: our bytes are mysqld's.
//!
//! Works on slices, readers and writers; files, threads and temporary files are `binlogz-flow`'s.

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

mod candidate;
pub mod compress;
pub mod compressor;
pub mod eligibility;
pub mod error;
pub mod expand;
pub mod expander;
pub mod extract;
mod feed;
pub mod format_description;
pub mod level;
mod payload_event;
pub mod payload_stream;
pub mod position_writer;
mod provenance;
pub mod rewritten;
mod scan;
pub mod spool;
pub mod statistics;
pub mod verify;

pub use compress::{CompressOptions, TransactionCompressor};
pub use compressor::Compressor;
pub use eligibility::{Ineligible, Tally};
pub use error::{Error, Result};
pub use expand::TransactionExpander;
pub use expander::{Expander, expanded_size_max};
pub use extract::{Extracted, Extraction, TransactionExtractor, TransactionSize};
pub use level::CompressionLevel;
pub use payload_stream::{PayloadSizes, PayloadStream, check_inside};
pub use position_writer::{PieceBytes, PositionWriter};
pub use provenance::{Provenance, provenance};
pub use rewritten::{LogContext, Place, Rewritten};
pub use spool::{Spool, SpoolMemory};
