//! The text of mysqlbinlog 9.7, byte for byte.
//!
//! [`RowsPrinter`] writes what `--verbose` adds for each row event: the `###` lines.

mod json_diff;
mod number;
mod quote;
mod rows;
mod value;

pub use quote::{push_identifier, push_quoted};
pub use rows::{RowsPrinter, Verbosity};
