//! MySQL's commit path for a binary log: sessions commit transactions, with compression or without, and the
//! log gets them as mysqld would have written them.
//!
//! ```text
//! Session      begin · events · commit         the committing thread, outside every lock:
//!   cache        what the transaction holds      may it be compressed? libzstd
//!   prepared     as it will stand in the log
//! pipeline     flush │ sync │ commit           by groups; the first of a group leads it
//!   log_state    GTID, logical clock, positions, checksums, statistics
//! BinlogStore  written │ durable
//! ```
//!
//! Variables have the server's names and rules ([`binlogz_variables`]). `crates/storage/engine/PROMISES.md` says what
//! `flush_log_at_commit` promises, and names the tests that keep it.

mod cache;
mod compressors;
mod engine;
mod error;
mod gtids;
mod log_state;
mod pipeline;
mod prepared;
mod session;
mod shared;
mod stored_variables;
mod ticket;
mod timer;

pub use binlogz_variables::{Rights, VariableError, VariableScope, VariableValue, Warning};
pub use cache::NewEvent;
pub use engine::{Engine, EngineOptions};
pub use error::{Error, Result};
pub use gtids::GtidNext;
pub use prepared::{PlainReason, TransactionForm};
pub use session::Session;
pub use ticket::CommittedTransaction;
pub use timer::{CommitStage, StageFigures};
