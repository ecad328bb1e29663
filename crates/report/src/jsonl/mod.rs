//! A log as JSON, one object a line: a line for each event, but for each row of a row event.
//!
//! ```text
//! EventBatch → Printer ── state.rs  what goes from batch to batch
//!                      ├─ frame.rs  what is known of the transaction, in each of its lines
//!                      ├─ value.rs  the columns of a row
//!                      └─ text.rs   strings and numbers
//! ```
//!
//! Lines are written by hand into a buffer: nothing is built up for them. What each field says is described in
//! `docs/jsonl.md`; fields are only ever added.

mod frame;
mod printer;
mod state;
mod text;
mod value;

pub use printer::{Flow, Printer};
pub use state::State;
