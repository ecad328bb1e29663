//! The bodies of events: each module reads one family of bodies into fields and writes the fields
//! back into the same bytes.

mod any_event;
mod any_gtid;
mod bitmap;
mod column_definition;
mod column_type;
mod format_description;
mod gtid;
mod gtid_tagged;
mod heartbeat;
mod incident;
mod load;
mod post_header_lengths;
mod previous_gtids;
mod query;
mod rotate;
mod rows;
mod rows_query;
mod session_variables;
mod status_variables;
mod table_id;
mod table_map;
pub mod table_map_metadata;
mod transaction_context;
mod transaction_length;
pub mod transaction_payload;
mod view_change;
mod xa_prepare;
mod xid;

pub use any_event::Event;
pub use any_gtid::AnyGtidEvent;
pub use bitmap::Bitmap;
pub use column_definition::{ColumnDefinition, PrimaryKeyPart};
pub use column_type::ColumnType;
pub use format_description::{FormatDescription, POST_HEADER_LENGTHS, SERVER_VERSION_SIZE};
pub use gtid::{CommitTimestamps, GtidEvent, GtidFlags, LogicalClock, ServerVersions};
pub use gtid_tagged::GtidTaggedEvent;
pub use heartbeat::{HeartbeatEvent, HeartbeatV2Event};
pub use incident::{Incident, IncidentEvent};
pub use load::{DeleteFileEvent, DuplicateHandling, ExecuteLoadQueryEvent, LoadBlockEvent};
pub use post_header_lengths::PostHeaderLengths;
pub use previous_gtids::PreviousGtidsEvent;
pub use query::QueryEvent;
pub use rotate::RotateEvent;
pub use rows::{ExtraRowInfo, RowsEvent, RowsFlags, RowsKind};
pub use rows_query::RowsQueryEvent;
pub use session_variables::{
    IntvarEvent, IntvarVariable, RandEvent, UserVarEvent, UserVarType, UserVarValue,
};
pub use status_variables::{Flags2, OVER_MAX_UPDATED_DBS, StatusVariable, StatusVariables, UpdatedDatabases};
pub use table_id::TableId;
pub use table_map::{Column, TableMapEvent, TableMapFlags};
pub use table_map_metadata::{MetadataField, OptionalMetadata};
pub use transaction_context::{DataSet, TransactionContextEvent};
pub use transaction_length::{rewrite_transaction_length, transaction_length};
pub use transaction_payload::{CompressionType, TransactionPayloadEvent, TransactionPayloadHeader};
pub use view_change::{VIEW_ID_SIZE, ViewChangeEvent};
pub use xa_prepare::{XaId, XaPrepareEvent};
pub use xid::XidEvent;

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
