//! The stored logs of the servers we followed, and the indexes into their files.
//!
//! `receive` puts whole transactions into `binlogz_store`. Readers get files, their numbers in each form, and positions
//! to start from. `forms` converts transactions; `housekeeping` decides which files to remove.
//!
//! * `lineages` holds one log (`lineage_log`) for each server we followed, and one for each time that a server's log was reset;
//! * `stored_format` is the format description of a stored file; `groups` finds its transactions;
//! * `parts` maps a stored file to its files in a form; `cuts` ends the uncompressed ones, `numbers` numbers them;
//! * `checkpoints` is the index of positions in a file;
//! * `syncing` decides when written bytes are made durable;
//! * `ended` records a log that was purged completely, `archived` how far a log is archived;
//! * `brought_back` holds purged files that were temporarily restored;
//! * `disk` is the directory for all of it; `small_files` reads the relay's own files.

pub(crate) mod archived;
pub(crate) mod brought_back;
mod brought_back_names;
pub(crate) mod checkpoints;
pub(crate) mod cuts;
pub(crate) mod disk;
pub(crate) mod ended;
pub(crate) mod groups;
pub(crate) mod lineage_log;
pub(crate) mod lineages;
pub(crate) mod numbers;
pub(crate) mod parts;
pub(crate) mod small_files;
pub(crate) mod stored_format;
pub(crate) mod syncing;
