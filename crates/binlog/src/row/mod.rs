//! The rows inside a row event: images, columns, values.
//!
//! [`TableSchema`] is compiled once from a table map; [`RowDecoder`] walks the bytes behind a row
//! event's header ([`crate::event::RowsEvent::rows`]) with it and hands out each [`Row`] with its
//! [`RowImage`]s. Walking finds where each column's bytes begin and end and no more; a [`Value`] is
//! decoded when [`Cell::value`] asks for it, and borrows from the event.
//!
//! MySQL keeps decimals, bits and the newer times with their highest byte first; they are the one
//! exception from the format's little-endian rule.

pub mod decimal;
pub mod json;
pub mod temporal;
pub mod text;

mod kind;
mod rows;
mod schema;
mod value;
mod vector;

pub use decimal::Decimal;
pub use kind::ColumnKind;
pub use rows::{Cell, CellContent, Row, RowDecoder, RowImage, Rows};
pub use schema::{COLUMNS_MAX, ColumnSchema, TableSchema, TableSchemas};
pub use temporal::{Date, DateTime, Fraction, Time, Timestamp};
pub use value::Value;
pub use vector::Vector;
