//! The text of mysqlbinlog 9.7, byte for byte.
//!
//! ```text
//! events::run_in_turns → Printer, on all cores → Text → Assembler, in order → output
//! ```
//!
//! [`MysqlbinlogPrinter`] prints the events of batches and [`Assembler`] puts their text together; [`push_begin`] and
//! [`push_end`] give the text around it. [`RowsPrinter`] writes the `###` lines that `--verbose` adds for
//! each row event, and can be used alone.

mod around;
mod assembler;
mod growing_text;
mod kept;
mod options;
mod printer;
mod query;
mod rename;
mod row_format;
mod rows;
mod rows_pen;
mod shown;
mod state;
mod text;
mod write;

pub use around::{push_begin, push_end, warnings_at_end};
pub use assembler::Assembler;
pub use options::{Base64Output, PrintOptions};
pub use printer::{MysqlbinlogPrinter, PrintedBatch, end_log, made_up_event};
pub use rename::Renamer;
pub use rows::row_event::{RowsPrinter, Verbosity};
pub use state::{MysqlbinlogState, PrintStop};
pub use text::Text;
pub use write::quote::{push_identifier, push_quoted};
pub use write::text_memory::{Chunk, TextMemory};

/// The end of each statement.
const DELIMITER: &[u8] = b"/*!*/;";
