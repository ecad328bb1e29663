//! Statements, before anything is read from logs: text in, statements and rules for their plans out.
//!
//! ```text
//! depth       how deep and how large a statement may be, before it is parsed
//! statements  text as statements, and values of their parameters
//! permitted   which statements are run: those that read
//! planner     names of columns in any case
//! division    what / and DIV mean
//! checked     whole numbers that don't wrap
//! functions   our functions beside DataFusion's
//! ```

pub(crate) mod checked;
pub(crate) mod depth;
mod division;
pub(crate) mod functions;
pub(crate) mod permitted;
pub(crate) mod planner;
pub mod statements;
