//! Keeps binary logs durably: a directory of ordinary binlog files under mysqld's names, with mysqld's
//! index, to which whole transactions are appended.
//!
//! ```text
//! bytes of transactions → StoreWriter::append → written → BinlogStore::sync → durable → LogReader
//! ```
//!
//! [`BinlogStore`] knows two positions, *written* and *durable*, and readers see nothing beyond the second.
//! After a failed write or sync it refuses writes, and serves what is durable, until it is reopened; opening it is
//! recovery ([`RecoveryReport`]). What it asks of a disk is [`Storage`]; what it promises, and which test keeps each
//! promise, is in `docs/store.md`. Whose transactions these are, and what they look like, is the caller's
//! business: `binlogz-engine` writes its own, a relay what it receives.

#![deny(clippy::indexing_slicing, clippy::unwrap_used, clippy::big_endian_bytes, clippy::host_endian_bytes)]
#![cfg_attr(test, allow(clippy::indexing_slicing, clippy::unwrap_used))]

mod aside;
mod damage;
mod error;
mod file;
mod head;
mod index;
mod latch;
mod lending;
mod log_name;
mod meta;
mod positions;
mod reader;
mod recover;
mod repair;
mod scan;
pub mod storage;
mod store;
mod watermark;
mod writer;

pub use damage::{Damage, Hole};
pub use error::{Error, Result};
pub use head::{FileHead, LogEvents};
pub use log_name::{FileNumber, LogNames};
pub use meta::{FORMAT_VERSION, Lineage};
pub use positions::{Position, Positions};
pub use reader::LogReader;
pub use recover::{Cut, RecoveryReport};
pub use repair::Repaired;
pub use storage::{FileStorage, MemoryStorage, Storage, StorageFile};
pub use store::{BinlogStore, StoreOptions, StoredLog};
pub use writer::StoreWriter;
