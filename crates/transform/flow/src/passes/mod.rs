//! Passes over a whole log: an input comes in; a log, figures or a verdict goes out.

pub mod measure;
pub mod rewrite;
pub mod row_changes;
pub mod salvage;
pub mod same;
pub mod verify;
pub mod walk;
