//! Reads whole logs with many threads and bounded memory, and compresses, expands, checks or measures them.
//!
//! ```text
//! read     Input → Batcher: pieces of whole transactions or events
//! work     ordered::run: workers on pieces, results in the order of the log, bounded memory
//! events   the same for work on single events, payloads opened
//! passes   what goes through a whole log: rewrite, measure, verify, walk, ...
//! ```
//!
//! Modules only import from modules above them in this list. Begin with
//!
//! - [`Rewriter`], which compresses or expands a log;
//! - [`verify()`], which checks one, and [`same()`], which compares two;
//! - [`RowChanges`], its row changes as an iterator;
//! - [`events::run`], for any other work on events; [`walk()`] does the same on one thread.
//!
//! ```
//! use binlogz_flow::{Input, RowChanges, verify};
//!
//! let path = "sample/binlog.000001".as_ref();
//! let verdict = verify(Input::open(path)?, 2, &mut |_| {})?;
//! assert_eq!(verdict.cut, None, "the log is whole");
//! let changes = RowChanges::new(Input::open(path)?).collect::<Result<Vec<_>, _>>()?;
//! assert!(!changes.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod boundary_moment;
pub mod error;
pub mod events;
pub mod passes;
mod position;
pub mod read;
mod unread;
pub mod work;

pub use binlogz_payload::{LogContext, Spool};
pub use boundary_moment::BoundaryMoment;
pub use error::Error;
pub use passes::rewrite::{MovedTransaction, Rewrite, RewriteSummary, Rewriter};
pub use passes::row_changes::{RowChange, RowChanges, RowPosition};
pub use passes::salvage::{LostRange, survey};
pub use passes::same::{Comparison, same};
pub use passes::verify::{LogVerdict, verify};
pub use passes::walk::{EventSpan, EventsWalk, WalkEnd, Walker, walk};
pub use passes::{measure, same, walk};
pub use read::batcher::Batcher;
pub use read::buffers::Buffers;
pub use read::input::{InOrder, Input, Live, ReadAt};
pub use read::meter::ReadMeter;
pub use read::sequence::{
    FactsUpTo, LogFacts, NotInSequence, Sequel, check_sequence, is_outside_transactions,
};
pub use read::{Batch, BatchSize, BatchUnit, CutEvent, LargeUnit, LogPiece, LogStart};
pub use work::memory::Memory;
pub use work::ordered;
