//! Packs binary logs by column, across transactions, and restores them byte for byte.
//!
//! The path of a byte: [`create`](mod@create) reads a log. [`log`] cuts it into pieces of whole events. [`block`] packs
//! each piece: its `layout` walks over the events and deals their fields out to columns, and `codec` codes each column.
//! [`segment`] puts blocks into objects, [`format`](mod@format) has the bytes of indexes and the manifest, and
//! [`storage`] keeps the objects that the manifest names. [`restore`] goes the opposite way.
//! `crates/storage/archive/FORMAT.md` describes the bytes of an archive.
//!
//! Imports between the folders run one way: `operations` → `segment` → `format` → `block` → `log`; `codec`
//! and `storage` are at the bottom. [`chosen_tables`] stands on `log`: it makes the logs of an archive that is a selection.
//!
//! `binlogz-payload` compresses single transactions: logs arrive here expanded.
//!
//! ```
//! use std::fs::File;
//! use std::sync::Arc;
//!
//! use binlogz_archive::create::Creator;
//! use binlogz_archive::format::Manifest;
//! use binlogz_archive::{restore, storage};
//!
//! let path = "sample/binlog.000001";
//! let folder = tempfile::tempdir()?;
//! let storage = storage::at(&folder.path().join("archive"))?;
//! let mut told = |_: &_| {};
//! let mut creator = Creator::new(&storage, 2, &mut told)?;
//! creator.add("binlog.000001", Arc::new(File::open(path)?))?;
//! creator.finish()?;
//!
//! let manifest = Manifest::read(&storage)?.expect("an archive");
//! let log = manifest.files.first().expect("a log");
//! assert!(log.packed_size < log.size / 2);
//! let mut restored = Vec::new();
//! restore::whole(&storage, log, &mut restored, 2)?;
//! assert_eq!(restored, std::fs::read(path)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod block;
pub mod chosen_tables;
mod codec;
pub mod error;
pub mod format;
pub mod input;
pub mod log;
mod operations;
pub mod segment;
pub mod storage;

pub use binlogz_scratch_file::Scratch;
pub use codec::Level;
pub use error::{Error, Result};
pub use operations::{
    check, copy, coverage, create, directory, erase, existing, last_check, merge, part, presence, prune,
    remove, restore, selection,
};
