//! Reads and writes MySQL's binary log format, version 4: frames, checksums, events, GTID sets.
//!
//! The crate does no I/O beyond the `Read` it is handed, keeps no clock and starts no thread. The
//! path of a byte: [`reader::EventReader`] finds whole events ([`frame::EventFrame`]), a module of
//! [`event`] reads a body into fields and writes fields back into the same bytes, [`row`] reads the
//! rows inside it as values, [`transaction::TransactionAssembler`] says where a transaction begins and ends. What is done
//! with a transaction (compress, expand) is the business of `binlogz-payload`.
//!
//! Every number on the wire is little-endian (but for some inside rows); every length is treated as a lie until it has been
//! held against the bytes that are there. Facts about the format were verified against the sources
//! and a live server of MySQL 9.7.4; each module names the part of the server's manual or source
//! tree that it follows.

#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::big_endian_bytes, clippy::host_endian_bytes)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

pub mod base64;
pub mod charset;
pub mod checksum;
pub mod cursor;
pub mod error;
pub mod event;
pub mod event_type;
pub mod frame;
pub mod gtid;
pub mod header;
pub mod parser;
mod printable;
pub mod put;
pub mod reader;
pub mod row;
pub mod show_events;
pub mod statement;
pub mod transaction;

pub use checksum::{ChecksumAlgorithm, StoredChecksum, Verified};
pub use error::{Error, Result};
pub use event_type::EventType;
pub use frame::{EventFrame, Framing, UnverifiedFrame, VerifiedFrame};
pub use header::{EventHeader, HeaderFlags};
pub use parser::{EventParser, EventVisitor};
pub use printable::printable;
pub use reader::EventReader;
pub use statement::StatementKind;
pub use transaction::{Boundary, TransactionAssembler};

/// The four bytes every plain binary log and relay log begins with.
pub const MAGIC: [u8; 4] = *b"\xfebin";

/// The four bytes an encrypted log begins with (see `binlog_encryption` in the manual).
pub const MAGIC_ENCRYPTED: [u8; 4] = *b"\xfdbin";

/// The largest event a server writes or accepts, in bytes (`max_log_event_size` in the server).
pub const EVENT_SIZE_MAX: u32 = 1 << 30;
