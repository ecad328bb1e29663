//! Rows of binary logs as Arrow's arrays. It takes rows as `binlogz-binlog` decodes them, and gives arrays of values and
//! of row images for record batches, whose other columns the caller makes.
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

pub use fields::{TableFields, column_place, is_same_column};
pub use image::{ChangeSide, ImageColumn};
pub use types::{ValueColumn, merged, moment, of};
