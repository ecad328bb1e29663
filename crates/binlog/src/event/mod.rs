//! The bodies of events: each module reads one family of bodies into fields and writes the fields
//! back into the same bytes.

mod bitmap;
mod column_type;
mod format_description;
mod query;
mod rows;
mod status_variables;
mod table_id;
mod table_map;
pub mod transaction_payload;

pub use bitmap::Bitmap;
pub use column_type::ColumnType;
pub use format_description::{FormatDescription, POST_HEADER_LENGTHS, SERVER_VERSION_SIZE};
pub use query::QueryEvent;
pub use rows::{ExtraRowInfo, RowsEvent, RowsFlags, RowsKind};
pub use status_variables::{Flags2, OVER_MAX_UPDATED_DBS, StatusVariable, StatusVariables, UpdatedDatabases};
pub use table_id::TableId;
pub use table_map::{Column, TableMapEvent, TableMapFlags};
pub use transaction_payload::{CompressionType, TransactionPayloadEvent, TransactionPayloadHeader};

use crate::error::{Error, Result};

/// A length in the narrower type that the wire has for it.
fn narrow<T: TryFrom<usize>>(
    length: usize,
    what: &'static str,
    field: &'static str,
    expected: &'static str,
) -> Result<T> {
    T::try_from(length).map_err(|_| Error::invalid(what, field, length, expected))
}
