//! Runs statements: they come in as text or plans, batches go out, and memory has a limit.
//!
//! ```text
//! engine   statements of this process's user, one after the other
//! queries  queries of many clients at once
//! shared   what those hold, of types that compile fast
//! retry    a query once more, with a plan that spills
//! ending   the end of a query that nobody wants any more
//! memory   what a process may hold, and what it holds
//! spill    what is beyond that, in encrypted temporary files         Arrow's bytes ↔ scratch files
//! ```

mod ending;
pub mod engine;
pub mod memory;
pub(crate) mod queries;
mod retry;
mod shared;
mod spill;
