//! A log as JSON lines: one for each event, except that row events have one for each row.
//!
//! ```text
//! EventBatch → Printer ── state.rs  what carries over from batch to batch
//!                      ├─ frame.rs  what is known of the transaction, in each of its lines
//!                      ├─ held.rs   what waits until its transaction has rows that were asked for
//!                      ├─ table_text.rs  the rows of a table
//!                      ├─ value.rs  the columns of a row
//!                      ├─ large.rs  values that are written in pieces
//!                      └─ text.rs   strings and numbers
//! ```
//!
//! Lines are written straight into a buffer; no intermediate values are built. `docs/reference/jsonl.md`
//! describes each field; fields are only ever added.

mod frame;
mod held;
mod large;
mod printer;
mod state;
mod table_text;
mod text;
mod value;

pub use frame::statement_text;
pub use large::{LargeValue, LargeValueError};
pub use printer::JsonPrinter;
pub use state::JsonState;
pub use text::push_string;
pub use value::push_value;
