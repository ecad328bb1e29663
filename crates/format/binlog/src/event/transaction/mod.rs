//! Events that begin, hold or end a transaction.

mod any_gtid;
mod gtid;
mod gtid_tagged;
mod length_field;
mod transaction_context;
mod transaction_length;
pub mod transaction_payload;
mod view_change;
mod xa_prepare;
mod xid;

pub use any_gtid::AnyGtidEvent;
pub use gtid::{CommitTimestamps, GtidEvent, GtidFlags, LogicalClock, ServerVersions};
pub use gtid_tagged::GtidTaggedEvent;
pub use transaction_context::{DataSet, TransactionContextEvent};
pub use transaction_length::{rewrite_transaction_length, transaction_length};
pub use transaction_payload::{CompressionType, TransactionPayloadEvent, TransactionPayloadHeader};
pub use view_change::ViewChangeEvent;
pub use xa_prepare::{XaId, XaPrepareEvent};
pub use xid::XidEvent;
