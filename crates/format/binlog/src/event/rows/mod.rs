//! Row changes: the table map, the rows, and the columns they belong to.

mod bitmap;
mod column_definition;
mod column_type;
mod left_out;
mod rows_event;
mod rows_query;
mod table_id;
mod table_map;
pub mod table_map_metadata;

pub use bitmap::Bitmap;
pub use column_definition::{ColumnDefinition, PrimaryKeyPart};
pub use column_type::ColumnType;
pub use left_out::{LeftOutStatement, LeftOutTable};
pub use rows_event::{ExtraRowInfo, RowsEvent, RowsFlags, RowsKind};
pub use rows_query::RowsQueryEvent;
pub use table_id::TableId;
pub use table_map::{Column, TableMapEvent, TableMapFlags};
pub use table_map_metadata::{MetadataField, OptionalMetadata};
