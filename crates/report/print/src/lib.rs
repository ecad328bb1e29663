//! Prints the events of a binary log: as mysqlbinlog's text, as JSON lines, as messages of change data capture.
//!
//! Printers are library types that append to a buffer; they open no files and know no options. The caller
//! reads the log and writes the buffer.

pub mod changes;
pub mod jsonl;
pub mod line_printer;
mod line_room;
pub mod met;
pub mod mysqlbinlog;
mod number;
mod plain;
mod selection;
