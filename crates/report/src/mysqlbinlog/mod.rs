//! The text of mysqlbinlog 9.7, byte for byte.
//!
//! ```text
//! events::run_in_turns → Printer, on all cores → Text → Assembler, in order → output
//! ```
//!
//! [`Printer`] prints the events of batches, [`Assembler`] puts their text together, [`push_begin`] and
//! [`push_end`] give what stands around it. [`RowsPrinter`] writes what `--verbose` adds for each row
//! event, the `###` lines, and is of use alone.

mod around;
mod assembler;
mod base64_lines;
mod hexdump;
mod json_diff;
mod kept;
mod line_room;
mod local_time;
mod number;
mod options;
mod printer;
mod query;
mod quote;
mod rename;
mod renamer;
mod row_format;
mod rows;
mod rows_pen;
mod shown;
mod state;
mod table_columns;
mod text;
mod text_memory;
mod value;

pub use around::{push_begin, push_end, warnings_at_end};
pub use assembler::Assembler;
pub use options::{Base64Output, Positions, PrintOptions, Selection};
pub use printer::{Printed, Printer, end_log, made_up_event};
pub use quote::{push_identifier, push_quoted};
pub use renamer::Renamer;
pub use rows::{RowsPrinter, Verbosity};
pub use state::{State, Stop};
pub use text::Text;
pub use text_memory::{Chunk, TextMemory};

/// What stands behind each statement.
const DELIMITER: &[u8] = b"/*!*/;";
