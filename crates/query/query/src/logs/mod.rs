//! The logs that a query reads: paths in, inputs for `flow` out.
//!
//! ```text
//! unwanted  ends the reading of a log
//! readings  which readings are ended with a statement
//! inputs    the logs, opened as often as a query reads them          Logs → flow::Input
//! decisions what became of prepared transactions (XA)
//! told      names and members that logs lack, by a schema and the statements of the logs
//! base      what a base is asked for: tables as they were; `base_parts` gives it parts of archived logs, of which `known_keys` knows keys
//! wanted    what a query's conditions leave of them                  conditions → blocks of an archive, tables
//! ```

mod base;
mod base_parts;
mod decisions;
mod inputs;
mod known_keys;
mod readings;
mod told;
pub(crate) mod unwanted;
pub(crate) mod wanted;

pub use base::{
    BaseBlocks, BaseCondition, BaseMoment, BaseRows, BaseTable, BaseValue, BaseWish, KeyedRows, TableBase,
    WholeLogs,
};
pub use inputs::{Logs, SchemaTime};
pub(crate) use inputs::{ReceivedParts, apart};
pub(crate) use readings::WantedOutput;
pub(crate) use told::ToldTable;
