//! What users do with an archive.
//!
//! In: logs, or a request for some. Out: a manifest that names them, or their bytes, or what is wrong with
//! them.
//!
//! - `create`: puts logs into an archive
//! - `restore`: gives back whole logs or chosen transactions; `selection`: which are chosen
//! - `part`: gives a log back without the parts in which nothing is looked for
//! - `remove`: takes logs out of an archive; deletes objects that hold no log
//! - `digest`: what a log is compared by
//! - `check`: reads everything, and looks for gaps

pub mod check;
pub mod create;
mod digest;
pub mod part;
pub mod remove;
pub mod restore;
pub mod selection;
