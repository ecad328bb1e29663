//! What may leave a log: a policy leaves tables and columns out and masks values, and the masked log is one that servers apply.
//!
//! ```text
//! exits.toml → policy: rules of tables and columns
//!                │
//! log → log::walker: one event after the other, payloads opened ── statement: DDL that may pass ──┐
//!                └─ table: a plan for each table map → value: bytes of a column, masked ──────────┴→ log::transaction → masked log
//! ```
//!
//! [`MaskedLogs`] is the one gate: whatever reads a log through it, a printer or a compressor, can't see what may not leave. It stands where
//! logs are opened (`Logs` of queries, `RecoverLog` of row changes, the inputs of `dump` and `compress`), so that no pass can get around it. Events
//! that can't be masked for certain are left out and counted in [`ExitCounts`], so nothing unmasked passes by being unknown.

mod counts;
mod error;
mod log;
mod policy;
mod secret;
mod statement;
mod table;
mod value;

pub use counts::{ExitCounts, LeftOut};
pub use error::{ExitError, PolicyError};
pub use log::part::{TransactionMasker, note_statement};
pub use log::reader::MaskedLogs;
pub use policy::ExitPolicy;
