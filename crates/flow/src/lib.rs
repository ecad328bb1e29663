//! The one bounded pipeline: framing reader, workers on batches of events, ordered writer, spill.
//!
//! ```text
//! Input → Batcher → (ordered::run: workers) → sink, in order
//! ```
//!
//! Every command that goes through a log goes through here, so that memory stays bounded
//! whatever a log holds and every core is used.

pub mod batcher;
pub mod input;
pub mod ordered;
pub mod spool;

pub use batcher::{Batch, BatchSize, Batcher, Large, LogContext, Piece, Start, Unit};
pub use input::{Input, ReadAt};
pub use spool::Spool;
