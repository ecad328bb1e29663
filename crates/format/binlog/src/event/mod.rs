//! The bodies of events: each file reads one kind of body into fields and writes the fields back into the
//! same bytes.
//!
//! ```text
//! transaction/   begin, hold or end one: GTIDs, payload, XID, XA
//! rows/          table map, rows, columns
//! statement/     statements as text, and the settings and files they need
//! file/          format description, rotate and others that belong to no transaction
//! compressed.rs  MariaDB's compressed statements and rows, which become the plain ones
//! ```

mod any_event;
mod compressed;
mod file;
mod rows;
mod statement;
mod transaction;

pub use any_event::AnyEvent;
pub use compressed::CompressedEvent;
pub use file::{
    FormatDescription, HeartbeatEvent, HeartbeatV2Event, Incident, IncidentEvent, MariadbGtid,
    MariadbGtidList, POST_HEADER_LENGTHS, PostHeaderLengths, PreviousGtidsEvent, RotateEvent,
    SERVER_VERSION_SIZE, ServerFamily, version_number,
};
pub use rows::{
    Bitmap, Column, ColumnDefinition, ColumnType, ExtraRowInfo, LeftOutStatement, LeftOutTable,
    MetadataField, OptionalMetadata, PrimaryKeyPart, RowsEvent, RowsFlags, RowsKind, RowsQueryEvent, TableId,
    TableMapEvent, TableMapFlags, table_map_metadata,
};
pub use statement::{
    DeleteFileEvent, DuplicateHandling, ExecuteLoadQueryEvent, Flags2, IntvarEvent, IntvarVariable,
    LoadBlockEvent, MariaDbAlterStep, OVER_MAX_UPDATED_DBS, QueryEvent, RandEvent, StatusVariable,
    StatusVariables, UpdatedDatabases, UserVarEvent, UserVarType, UserVarValue,
};
pub use transaction::{
    AnyGtidEvent, CommitTimestamps, CompressionType, DataSet, GtidEvent, GtidFlags, GtidTaggedEvent,
    LogicalClock, ServerVersions, TransactionContextEvent, TransactionPayloadEvent, TransactionPayloadHeader,
    ViewChangeEvent, XaId, XaPrepareEvent, XidEvent, rewrite_transaction_length, transaction_length,
    transaction_payload,
};

use crate::error::{Error, Result};

/// Converts a length to the narrower type used on the wire.
fn narrow<T: TryFrom<usize>>(
    length: usize,
    what: &'static str,
    field: &'static str,
    expected: &'static str,
) -> Result<T> {
    T::try_from(length).map_err(|_| Error::invalid(what, field, length, expected))
}
