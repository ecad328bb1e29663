//! libbinlogz: binary logs for C, and for languages that call C.
//!
//! ```text
//! status   what a call comes to; the message of the last that failed
//! handles  those that are open; others are refused
//! payload  a Transaction_payload event as the events in it
//! changes  the row changes of a log, one after the other
//! known_tables  what a schema and the statements of the log tell of tables
//! value    the values of columns as C's
//! files    compresses and expands whole logs
//! ```
//!
//! `include/binlogz.h` is written from these sources by a test. A panic ends a call with a status and never crosses into the
//! caller.

// Names are C's.
#![allow(non_camel_case_types)]
// The interface to C is pointers. Each function, and the header, says which rules its callers must keep.
#![allow(unsafe_code)]

pub mod changes;
pub mod files;
mod handles;
mod known_tables;
pub mod payload;
pub mod status;
pub mod value;
