//! Prints the events of a binary log: as mysqlbinlog's text, as JSON lines.
//!
//! ```text
//! mysqlbinlog/     the text
//! jsonl/           JSON lines
//! line_printer.rs  what printers of lines have in common: those of JSON lines, and of change data capture
//! line_run/        goes through logs with such a printer, and writes the lines in order
//! selection.rs     which events are shown; met.rs: whether there were any
//! line_room.rs     memory in which lines of values are written; number.rs, plain.rs: numbers and strings
//! ```
//!
//! Printers are library types that append to a buffer; they open no files and know no options. Runs read logs and write to
//! files that the caller opened.

pub mod jsonl;
pub mod line_printer;
mod line_room;
pub mod line_run;
pub mod met;
pub mod mysqlbinlog;
mod number;
mod plain;
mod selection;

pub use line_room::{BufferedLines, LineRoom};
pub use number::{push_signed, push_unsigned};
pub use selection::{EventSelection, LogBounds};
