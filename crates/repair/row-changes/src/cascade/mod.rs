//! Rows that foreign keys deleted or set NULL without a trace in the log: InnoDB does so on servers before 9.6.
//!
//! ```text
//! family     the foreign keys that do so, and the tables on both sides of them
//! rows       the rows of children as they are, by their keys and by what they refer to
//! effects    what a change of a parent did to its children, in the order of the log
//! find       a pass over the logs that makes the effects
//! ```
//!
//! Modules only import from modules above them in this list. A row of a child is known by its last image in the logs. If
//! a parent's row event lacks both flags (`NO_FOREIGN_KEY_CHECKS`, `USE_SQL_FOREIGN_KEY`), InnoDB did its cascades. We
//! then look up the rows that refer to it, change them the same way, and render them as if the log had their change just
//! before it.

mod effects;
mod family;
mod find;
mod rows;

pub(crate) use effects::{Cascades, row_place};
pub use family::FamilyError;
pub(crate) use find::EffectFinder;
