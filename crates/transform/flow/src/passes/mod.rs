//! Passes over a whole log. Each takes an input and gives a log, figures or a verdict.

pub mod measure;
pub mod rewrite;
pub mod row_changes;
pub mod salvage;
pub mod same;
pub mod statements;
pub mod verify;
pub mod walk;
pub mod xa;
