//! The bodies of events: each module reads one family of bodies into fields and writes the fields
//! back into the same bytes.

mod format_description;

pub use format_description::{FormatDescription, POST_HEADER_LENGTHS, SERVER_VERSION_SIZE};
