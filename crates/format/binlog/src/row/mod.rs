//! The rows inside a row event: images, columns, values.
//!
//! [`TableSchema`] is compiled once from a table map. [`RowDecoder`] uses it to walk the bytes after a row
//! event's header ([`crate::event::RowsEvent::rows`]) and returns each [`Row`] with its [`RowImage`]s.
//! Walking only finds where each column's bytes begin and end. A [`Value`] is decoded when [`Cell::value`] is
//! called, and borrows from the event.
//!
//! ```
//! use binlogz_binlog::event::{FormatDescription, PostHeaderLengths, RowsEvent, RowsFlags};
//! use binlogz_binlog::row::{RowDecoder, TableSchemas, Value};
//! use binlogz_binlog::{EventReader, EventType};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../lab/testkit/corpus/mysql-9.7.4/binlog.000001");
//! let mut reader = EventReader::new(std::fs::File::open(path)?);
//! let mut lengths = PostHeaderLengths::default();
//! let (mut schemas, mut decoder) = (TableSchemas::new(), RowDecoder::new());
//! # let mut rows_inserted = 0;
//! while let Some((_, frame)) = reader.next_event()? {
//!     let (event_type, body) = (frame.event_type(), frame.body());
//!     if event_type == EventType::FORMAT_DESCRIPTION {
//!         lengths = PostHeaderLengths::from(&FormatDescription::decode_frame(&frame)?);
//!     } else if event_type == EventType::TABLE_MAP {
//!         schemas.note(body, &lengths)?;
//!     } else if event_type.is_rows() {
//!         let event = RowsEvent::decode(event_type, body, lengths.of(event_type))?;
//!         let mut rows = decoder.rows(schemas.get(event.table_id)?, &event)?;
//!         while let Some(row) = rows.next_row()? {
//!             for cell in row.after.iter().flat_map(|image| image.cells()) {
//!                 if let Value::Int(number) = cell.value()? {
//!                     println!("@{} = {number}", cell.index + 1);
//!                 }
//!             }
//! #           rows_inserted += usize::from(row.before.is_none());
//!         }
//!         if event.flags.contains(RowsFlags::STMT_END) {
//!             schemas.end_statement();
//!         }
//!     }
//! }
//! # assert!(rows_inserted > 0);
//! # Ok(())
//! # }
//! ```
//!
//! The rows of a compressed transaction are read the same way, once `binlogz-payload` has expanded it.
//!
//! MySQL stores decimals, bits and the newer temporal types big-endian; they are the only exception to the
//! format's little-endian rule.

pub mod decimal;
pub mod json;
pub mod temporal;
pub mod text;

mod class;
mod compressed_value;
mod image;
mod kind;
mod owned;
mod put_image;
mod rows;
mod schema;
mod value;
mod vector;

pub use class::ColumnClass;
pub use decimal::{Decimal, DecimalFormat};
pub use image::{Cell, CellContent, Row, RowImage};
pub use kind::ColumnKind;
pub use owned::OwnedRow;
pub use rows::{RowDecoder, Rows, count_rows};
pub use schema::{ColumnSchema, TableSchema, TableSchemas};
pub use temporal::{Date, DateTime, Fraction, Time, Timestamp};
pub use value::Value;
pub use vector::Vector;
