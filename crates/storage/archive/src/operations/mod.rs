//! The operations that users run on an archive.
//!
//! Each takes logs or a request for some, and gives a manifest that names them, their bytes, or the problems with them.
//!
//! - `create`: puts logs into an archive
//! - `restore`: gives back whole logs or chosen transactions; `selection`: which are chosen
//! - `part`: gives a log back without the parts in which nothing is looked for
//! - `directory`: the transactions of a log, without its blocks
//! - `remove`: takes logs out of an archive; deletes objects that hold no log
//! - `prune`: takes the oldest logs out of it
//! - `digest`: hashes and size, by which a log is compared
//! - `copy`: copies an archive into another storage
//! - `merge`: packs the logs of many small segments into few large ones
//! - `erase`: puts what is left of logs in their place, once values were erased from them; `plain_logs`: gives logs for it; `written_logs`: writes
//!   what is left of one while another is packed; `former_blocks`: what needs no coding then
//! - `check`: reads everything, and looks for gaps; `last_check`: when that was done, and the result
//! - `presence`: whether the objects of logs are there, before anything relies on them
//! - `existing`: opens an archive that has to be there
//! - `coverage`: from when to when an archive reaches, and where it has gaps

pub mod check;
pub mod copy;
pub mod coverage;
pub mod create;
mod digest;
pub mod directory;
pub mod erase;
pub mod existing;
mod former_blocks;
pub mod last_check;
pub mod merge;
pub mod part;
mod plain_logs;
pub mod presence;
pub mod prune;
pub mod remove;
pub mod restore;
pub mod selection;
mod written_logs;
