//! Columns that a row's images lack, as its earlier images have them: MINIMAL, NOBLOB and partial JSON leave out what a change left
//! alone. What an INSERT left out is the column's default.
//!
//! ```text
//! earlier_images  the rows of a table as they are at a place of the logs, as far as their images tell
//! live_rows       columns that no image has, from the server's rows of now; live_values: their bytes
//! rebuild         follows all rows of tables in the order of the logs, and renders chosen ones with the columns that they lack
//! ```
//!
//! An image that isn't known for certain isn't taken: after DDL on the table, a change that was logged as a statement or rolled back, a
//! gap in the logs, an event that can't be read, or a foreign key's work below the log, what a row had is unknown, and says since when.

mod earlier_images;
mod live_rows;
mod live_values;
mod rebuild;

pub use live_rows::LiveRows;
pub(crate) use rebuild::{ImageRebuilder, RebuiltRow, text_of_document};
