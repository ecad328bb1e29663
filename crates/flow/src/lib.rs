//! The one bounded pipeline: framing reader, workers on batches of events, ordered writer, spill.
//!
//! ```text
//! Input → Batcher → (ordered::run: workers) → sink, in order
//! ```
//!
//! Every command that goes through a log goes through here, so that memory stays bounded
//! whatever a log holds and every core is used. [`rewrite()`] is the pipeline of compress and
//! expand, [`measure`] that of advise, [`verify()`] that of verify, [`events`] that of everything
//! else that looks at events; [`RowChanges`] are its row changes as an iterator;
//! [`walk()`] goes through a log on one thread, [`same()`] through two at once.

pub mod batcher;
pub mod buffers;
mod decrypted;
pub mod error;
pub mod events;
mod find_gtid;
pub mod input;
pub mod measure;
pub mod memory;
pub mod ordered;
pub mod rewrite;
pub mod row_changes;
pub mod salvage;
pub mod same;
mod seek;
pub mod verify;
pub mod walk;

pub use batcher::{Batch, BatchSize, Batcher, Large, Piece, Start, Unit};
pub use binlogz_payload::{LogContext, Spool};
pub use buffers::Buffers;
pub use error::Error;
pub use input::{Input, Live, ReadAt};
pub use memory::Memory;
pub use rewrite::{Cut, Moved, Rewrite, Summary, rewrite, rewrite_within, rewrite_without};
pub use row_changes::{RowChange, RowChanges, RowPosition};
pub use salvage::{Lost, survey};
pub use same::{Comparison, same};
pub use verify::{Verdict, verify};
pub use walk::{Place, Walked, Walker, walk};
