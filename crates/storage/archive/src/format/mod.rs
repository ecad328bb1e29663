//! The bytes of an archive other than its blocks.
//!
//! Encodes and decodes the manifest, indexes and block headers, and checks them as they are read.
//!
//! - `manifest`: the logs and objects of an archive, as JSON; `file_entry`: a log in it; `erasure_note`: what was erased from it, `erased_logs` tells it; `parts`: its older entries, if
//!   there are many
//! - `index`: where each block of an object is, its transactions and times
//! - `contents`: which tables, rows and keys each block holds; `keys`: the filter of keys; `column_keys`: such a filter of a column that was
//!   unpacked, in memory
//! - `directory`: the transactions of each block, by column
//! - `ends`: the start and the end of an object; `version`: the versions of objects
//! - `block_header`: an index entry before each block; rebuilds an index from these

pub(crate) mod block_header;
mod column_keys;
pub mod contents;
pub mod directory;
pub(crate) mod ends;
mod erased_logs;
mod erasure_note;
mod file_entry;
pub(crate) mod index;
mod keys;
mod manifest;
mod parts;
pub(crate) mod version;

pub use block_header::{BlockHeader, index_anew};
pub use column_keys::{ColumnKeys, ColumnKeysBuilder};
pub use contents::Contents;
pub use ends::{HEAD_SIZE, MAGIC};
pub use erased_logs::ErasedLogs;
pub use erasure_note::ErasureNote;
pub(crate) use erasure_note::log_begin;
pub use file_entry::FileEntry;
pub(crate) use file_entry::objects;
pub use index::{BlockEntry, ContentsEntry, Index, LogEntry};
pub use keys::Key;
pub(crate) use manifest::NO_MANIFEST;
pub use manifest::{Manifest, RetiredObject, masked_in_words};
pub use version::VERSION;
