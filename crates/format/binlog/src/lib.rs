//! Reads and writes MySQL's binary log format, version 4: frames, checksums, events, GTID sets.
//!
//! - [`EventReader`] finds whole events ([`EventFrame`]) and checks their checksums;
//! - [`event`] reads the body of an event into fields, and writes the fields back into the same bytes;
//! - [`row`] reads the rows inside as values;
//! - [`TransactionBoundaryParser`] says where a transaction begins and ends;
//! - [`gtid`] has GTIDs and sets of them.
//!
//! `binlogz-payload` compresses and expands transactions.
//!
//! ```
//! use binlogz_binlog::{Boundary, EventReader, TransactionBoundaryParser};
//!
//! let mut log = EventReader::new(std::fs::File::open("sample/binlog.000001")?);
//! let (mut parser, mut transactions) = (TransactionBoundaryParser::new(), 0);
//! while let Some((offset, event)) = log.next_event()? {
//!     let placement = parser.feed(event.header(), event.body());
//!     if matches!(placement.boundary, Boundary::End | Boundary::Single) {
//!         println!("transaction {transactions} ends with the {} event at {offset}", event.event_type());
//!         transactions += 1;
//!     }
//! }
//! assert!(transactions > 0 && !parser.is_open());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate does no I/O beyond the `Read` it is given, reads no clock and starts no thread. Numbers are
//! little-endian, except for some inside rows. No length is trusted before it is compared with the bytes
//! available. Facts about the format were verified against the sources and a live server of MySQL 9.7.4; each
//! module names the part of the server's manual or source tree that it follows.

pub mod base64;
pub mod charset;
pub mod checksum;
pub mod cursor;
pub mod error;
pub mod event;
pub mod event_type;
pub mod frame;
mod framing;
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
mod zlib;

pub use checksum::{ChecksumAlgorithm, StoredChecksum, VerifiedChecksum};
pub use error::{Error, Result};
pub use event_type::{ChangeContent, EventClass, EventType};
pub use frame::{EventFrame, VerifiedFrame};
pub use framing::{Framing, UnverifiedFrame};
pub use header::{EventHeader, HeaderFlags};
pub use parser::{EventParser, EventVisitor};
pub use printable::printable;
pub use reader::EventReader;
pub use statement::StatementKind;
pub use transaction::{Boundary, TransactionBoundaryParser};

/// The four bytes every plain binary log and relay log begins with.
pub const MAGIC: [u8; 4] = *b"\xfebin";

/// The four bytes an encrypted log begins with (see `binlog_encryption` in the manual).
pub const MAGIC_ENCRYPTED: [u8; 4] = *b"\xfdbin";

/// The four bytes that a file of MariaDB's InnoDB-based binary log begins with (`.ibb`, since 12.3): 0x010dfefe in little-endian
/// order, then the shift of the page size and the version, 4 bytes each (MariaDB's `fsp_binlog.h`).
pub const MAGIC_INNODB: [u8; 4] = *b"\xfe\xfe\x0d\x01";

/// The largest event a server writes or accepts, in bytes (`max_log_event_size` in the server).
pub const EVENT_SIZE_MAX: u32 = 1 << 30;
