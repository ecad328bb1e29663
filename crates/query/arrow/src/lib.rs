//! Rows of binary logs as Arrow's arrays. Rows come in as `binlogz-binlog` decodes them; arrays of values and of row images go out, and
//! make record batches, whose other columns are the caller's.
//!
//! ```text
//! types    the type of a column, one that has the values of two, and how values are built
//! fields   the columns of a table over all its definitions
//! image    one side of row changes, as a column of structs
//! ```
//!
//! It reads no logs and starts no threads. It needs Arrow's arrays alone: no kernels, no query engine.

mod fields;
mod image;
mod types;

pub use fields::TableFields;
pub use image::{Image, Side};
pub use types::{Values, merged, moment, of};
