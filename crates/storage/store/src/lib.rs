//! Keeps binary logs durably: a directory of ordinary binlog files with mysqld's file names and index, to
//! which whole transactions are appended.
//!
//! ```text
//! bytes of transactions → StoreWriter::append → written → BinlogStore::sync → durable → LogReader
//! ```
//!
//! ```text
//! storage/   what a store needs from a disk
//! files/     the files of a log and beside it
//! recovery/  what opening a log does
//! state/     the state of an open store, shared by threads
//! open/      the open store: writer, readers, repair
//! ```
//!
//! Each imports only from those above it.
//!
//! [`BinlogStore`] knows two positions, *written* and *durable*, and readers see nothing after the durable one. After a
//! failed write or sync it refuses writes, and serves the durable bytes, until it is reopened. Opening it runs recovery
//! ([`RecoveryReport`]). [`Storage`] has the operations that the store needs from a disk.
//! `crates/storage/store/PROMISES.md` lists the store's promises, and the test that keeps each of them. The transactions'
//! origin and content are the caller's business: `binlogz-engine` writes its own, a relay writes those it receives.

mod error;
mod files;
mod open;
mod recovery;
mod state;
pub mod storage;

pub use error::{Error, Result, is_transient};
pub use files::Position;
pub use files::head::{FileHead, LogEvents};
pub use files::meta::Lineage;
pub use files::names::{FileNumber, LogNames};
pub use open::reader::LogReader;
pub use open::repair::RepairSummary;
pub use open::store::{BinlogStore, StoreOptions, StoredLog};
pub use open::writer::StoreWriter;
pub use recovery::damage::{Damage, Hole};
pub use recovery::recover::{CutTail, RecoveryReport};
pub use state::ends::LogEnds;
pub use storage::{FileStorage, MemoryStorage, Storage, StorageFile};
