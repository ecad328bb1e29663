//! The text of mysqlbinlog 9.7, byte for byte.
//!
//! ```text
//! events::run_in_turns → Printer, on all cores → Text → Assembler, in order → output
//! ```
//!
//! [`TextRun`] does that with whole logs. [`RowsPrinter`] writes the `###` lines that `--verbose` adds for
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
mod text_run;
mod write;

pub use around::warnings_at_end;
pub use options::{Base64Output, PrintOptions};
pub use rename::Renamer;
pub use rows::row_event::{RowsPrinter, Verbosity};
pub use state::{MysqlbinlogState, PrintStop};
pub use text_run::{LogAsText, TextRun, TextRunError, TextRunSettings};
pub use write::quote::{push_identifier, push_quoted};
pub(crate) use write::text_memory::{Chunk, TextMemory};

/// The end of each statement.
const DELIMITER: &[u8] = b"/*!*/;";
