//! The stored logs of the servers that a relay followed, the indexes into their files, and logs at rest.
//!
//! The relay's receiver puts whole transactions into `binlogz_store`. Readers get files, their numbers in each form, and positions to
//! start from. Converting transactions into a form is left to `binlogz-relay-forms`, and removing files to the relay. This crate says
//! nothing itself: its callers log.
//!
//! * `lineages` holds one log (`lineage_log`) for each server we followed, and one for each time that a server's log was reset;
//! * `stored_format` is the format description of a stored file; `groups` finds its transactions;
//! * `parts` maps a stored file to its files in a form; `cuts` ends the uncompressed ones, `numbers` numbers them;
//! * `checkpoints` is the index of positions in a file;
//! * `syncing` decides when written bytes are made durable;
//! * `ended` records a log that was purged completely, `archived` how far a log is archived;
//! * `brought_back` holds purged files that were temporarily restored;
//! * `form` names the forms and their files; `closed` are logs at rest, in an archive or as files, served without a source;
//! * `disk` is the directory for all of it; `small_files` reads the relay's own files.

mod archived;
mod brought_back;
mod brought_back_names;
mod checkpoints;
mod closed;
mod cuts;
mod disk;
mod ended;
mod error;
mod form;
mod groups;
mod lineage_log;
mod lineages;
mod numbers;
mod parts;
mod small_files;
mod stored_format;
mod syncing;

pub use archived::ArchivedFiles;
pub use brought_back::{BringBack, BroughtBack, FileLease, PurgedFile};
pub use checkpoints::{Checkpoints, GtidCollector, Indexes, SeenTransaction, StartOffsets, in_part};
pub use closed::{ClosedLog, ClosedLogs, EndedLogs, LastTransaction, StopAt};
pub use cuts::Cuts;
pub use disk::{Directory, Disk};
pub use error::{Error, Result};
pub use form::{Form, FormNames};
pub use groups::{EventGroup, GroupWalker};
pub use lineage_log::LineageLog;
pub use lineages::Lineages;
pub use parts::{FilePart, FormFile, FoundFile, verified};
pub use small_files::{LinesFile, is_member, small_file};
pub use stored_format::StoredHead;
pub use syncing::{SyncPolicy, UnsyncedRange};
