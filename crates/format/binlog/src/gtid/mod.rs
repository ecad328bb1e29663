//! Global transaction identifiers: the server that first committed a transaction, and its number there.
//!
//! A [`Gtid`] is a [`Tsid`] (a server's uuid and, since 8.3, perhaps a tag) and a number. A [`GtidSet`] holds
//! intervals of numbers for each [`Tsid`]. It parses and prints the server's text, and reads and writes the
//! binary form used in [`crate::event::PreviousGtidsEvent`] and `COM_BINLOG_DUMP_GTID`. The events that carry
//! one GTID are in [`crate::event`]. (Facts of MySQL 9.7.4's `libs/mysql/gtid` and `sql/rpl_gtid_set.cc`.)

mod encoding;
mod identity;
mod interval;
mod set;
mod tag;
mod text;
mod uuid;

pub use encoding::GtidSetFormat;
pub(crate) use encoding::{decode_tag, encode_tag};
pub use identity::{Gtid, Tsid};
pub use interval::GtidInterval;
pub use set::GtidSet;
pub use tag::Tag;
pub use uuid::{ServerUuid, UUID_SIZE};

/// The smallest number of a GTID.
pub(crate) const GNO_MIN: u64 = 1;

/// The first number that no GTID may have: 2^63 - 1.
pub(crate) const GNO_END: u64 = i64::MAX as u64;
