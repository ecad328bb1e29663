//! Reads a log: bytes come in from a file, a stream or a pipe; pieces of whole events go out.
//!
//! ```text
//! input       bytes, at any offset or in order
//! growing     a file that a server still writes
//! decrypted   the same of an encrypted log, as plaintext
//! seek        passes over what lies before a position or a GTID (find_gtid)
//! sequence    whether logs follow one another
//! meter       counts what was read of many logs, for those who wait
//! batcher     pieces (piece.rs): batches of whole transactions or events, in buffers that are reused
//! ```

pub mod batcher;
pub mod buffers;
mod decrypted;
mod find_gtid;
pub mod growing;
mod header_walk;
pub mod input;
pub mod meter;
mod piece;
mod seek;
pub mod sequence;

pub use piece::{Batch, BatchSize, BatchUnit, CutEvent, LargeUnit, LogPiece, LogStart};

/// Receives a pass's progress: bytes read so far.
pub type ReadProgress<'a> = &'a mut dyn FnMut(u64);
