//! Rows as text: the `###` lines of row events, values, and the columns of a table.

mod json_diff;
pub(super) mod row_event;
pub(super) mod table_columns;
mod value;
