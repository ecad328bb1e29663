//! Events about a log file and the connection it comes through, not about a transaction.

mod format_description;
mod heartbeat;
mod incident;
mod mariadb_gtid;
mod post_header_lengths;
mod previous_gtids;
mod rotate;
mod server_family;

pub use format_description::{FormatDescription, POST_HEADER_LENGTHS, SERVER_VERSION_SIZE, version_number};
pub use heartbeat::{HeartbeatEvent, HeartbeatV2Event};
pub use incident::{Incident, IncidentEvent};
pub use mariadb_gtid::{MariadbGtid, MariadbGtidList};
pub use post_header_lengths::PostHeaderLengths;
pub use previous_gtids::PreviousGtidsEvent;
pub use rotate::RotateEvent;
pub use server_family::ServerFamily;
