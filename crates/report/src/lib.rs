//! Shows what a binary log holds: as mysqlbinlog's text, as JSON lines, as statistics, as advice on compressing it.
//!
//! Printers are library types that append to a buffer; they open no file and know no option. Reading
//! the log and writing the buffer are the caller's.

#![deny(clippy::indexing_slicing, clippy::unwrap_used)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

pub mod advice;
pub mod html;
pub mod jsonl;
pub mod met;
pub mod mysqlbinlog;
pub mod quantiles;
pub mod stats;
pub mod zone;
