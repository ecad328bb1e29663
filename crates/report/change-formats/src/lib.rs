//! Row changes in the formats of other programs: Debezium's, Maxwell's and canal's.
//!
//! ```text
//! EventBatch → Printer ── state.rs        what carries over from batch to batch
//!                      ├─ table.rs        a table as rows are written: names, key, what the log lacks
//!                      ├─ value/          the columns of a row, in each format
//!                      ├─ debezium.rs     a row's event, its key, what follows a delete
//!                      ├─ maxwell.rs      a row's line
//!                      ├─ fields.rs       columns as fields of an object, for both of these
//!                      ├─ canal.rs        one message for the rows of an event; statements: statement.rs
//!                      └─ java.rs         numbers, strings and documents as Java's libraries write them
//! resolver/              what no worker knows alone: Maxwell's xid and commit, Debezium's order in a transaction
//! ```
//!
//! Lines depend on nothing but the log: where those programs write the time at which they run, we write the time of the
//! commit. `docs/reference/formats.md` describes each format, and the versions and settings of the programs.

mod canal;
mod debezium;
mod fields;
mod java;
mod maxwell;
mod printer;
mod resolver;
mod settings;
mod state;
mod statement;
mod table;
mod value;

pub use printer::ChangePrinter;
pub use resolver::Resolver;
pub use settings::{BigintUnsigned, ChangeFormat, ChangeSettings, Decimals};
pub use state::ChangeState;
