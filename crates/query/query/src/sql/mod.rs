//! Statements, before anything is read from logs: text in, statements and rules for their plans out.
//!
//! ```text
//! depth       how deep and how large a statement may be, before it is parsed
//! as_of       moments of tables, which go into their names
//! statements  text as statements, and values of their parameters
//! permitted   which statements are run: those that read
//! column_case columns of tables at moments in any case
//! planner     names of columns in any case
//! division    what / and DIV mean
//! checked     whole numbers that don't wrap
//! functions   our functions beside DataFusion's
//! ```

pub(crate) mod as_of;
pub(crate) mod checked;
pub(crate) mod column_case;
pub(crate) mod depth;
mod division;
pub(crate) mod functions;
pub(crate) mod permitted;
pub(crate) mod planner;
pub mod statements;
