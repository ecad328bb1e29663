//! Brings a server forward with logs that are served without their server: the server applies them itself, in parallel, and ends
//! exactly at the moment that was asked for.
//!
//! ```text
//! logs ─ where they end ─ embedded source ── channel binlogz_recover ── the server's own applier
//!        (last log cut)                       attach, follow, detach
//! ```
//!
//! In the order of their work:
//!
//! * `logs` are an archive's or files, up to where they end; `archive serve` serves them to replicas;
//! * `target` is the server: the transactions it has and its settings; `version_words` what its version calls things;
//! * `continuation` decides by GTIDs whether logs continue what the server has, `fitness` whether it can apply them;
//! * `incidents` finds where the logs themselves lack changes;
//! * `embedded` is the source inside this process, which ends where recovery is to end;
//! * `channel` attaches the server to it, with `filters`, and detaches it again with its settings as they were;
//! * `fold_range` is a folded log that is applied in place of the logs, `fold_mark` what the server has meanwhile to tell,
//!   `fold_counters` sets AUTO_INCREMENT counters after it;
//! * `recovery` leads through these steps, and watches until the server has everything; `thread_errors` are those that ended the
//!   server's threads;
//! * `drill` compares a private server that was restored with the live source: all tables and `definitions`.
//!
//! Nothing here prints or ends the process: steps return values, and a [`ReplayListener`] hears what must be known at once.
//! The caller opens the logs that are searched for incidents.

mod channel;
mod continuation;
mod definitions;
mod drill;
mod embedded;
mod error;
mod filters;
mod fitness;
mod fold_counters;
mod fold_mark;
mod fold_range;
mod incidents;
mod listener;
mod logs;
mod quoting;
mod recovery;
mod target;
#[cfg(test)]
mod tests;
mod thread_errors;
mod version_words;

pub use channel::ApplierThreads;
pub use definitions::DifferentDefinition;
pub use drill::{ComparedTable, RestoreDrill, RestoredServer};
pub use embedded::EmbeddedSourceOptions;
pub use error::ReplayError;
pub use filters::ReplicationFilters;
pub use fold_counters::GivenNumber;
pub use fold_mark::FoldMark;
pub use fold_range::FoldedRange;
pub use incidents::{CrossedIncidents, IncidentLog, IncidentWalk, RecoveredLogs};
pub use listener::ReplayListener;
pub use logs::{ReplayedLogs, check_paths};
pub use recovery::{Recovery, RecoveryDetacher, RunningRecovery};
pub use target::{FOLD_CHANNEL, RECOVERY_CHANNEL, TargetServer};
