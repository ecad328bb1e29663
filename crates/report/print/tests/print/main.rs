//! The rows that are printed, compared with mysqlbinlog's.

#![allow(clippy::indexing_slicing, clippy::unwrap_used)] // a test may panic

mod limits;
mod old_types;
#[path = "../../examples/row_lines.rs"]
mod row_lines;
mod rows;
