//! Applies changes to a server. It has the session for that, the journal that says how far it came, and a search of the
//! server's own binary log for the transactions that a killed run committed.

mod committed;
pub(crate) mod journal;
pub(crate) mod referrers;
pub(crate) mod replica;
mod server_logs;
pub(crate) mod session;
mod split;
pub(crate) mod tables;

use std::io;

use binlogz_source::Error as ServerError;

pub(crate) use committed::committed;
pub use server_logs::{LogBytes, ServerLogs};
pub use split::{SplitRows, SplitTables};

/// Why changes are not applied, or no further.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A temporary file, or the report.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server, or the way to it.
    #[error("{doing}: {source}; {state}")]
    Server {
        /// The action that failed.
        doing: String,
        /// The server's error.
        source: Box<ServerError>,
        /// The state that it leaves.
        state: &'static str,
    },
    /// The server's tables don't take the changes.
    #[error("{0}; nothing is applied")]
    Unfit(String),
    /// Rows would be left without those that their foreign keys refer to.
    #[error(
        "{0} of tables with foreign keys would be left without the rows that they refer to; the batch is rolled back, those \
         before it stay"
    )]
    Orphans(String),
    /// A row was deleted that was to come back with other values of its key or of unique keys, and these are taken.
    #[error(
        "{0}; it may be a row that this run has deleted with its later values, so the run ends: its batch is rolled back, those \
         before it stay; expected these values to be free, or --table without its table"
    )]
    Split(String),
    /// The journal.
    #[error("journal: {0}")]
    Journal(String),
    /// The server's binary log can't be read.
    #[error("reading the server's binary log: {0}")]
    Log(#[from] crate::pass::Error),
}

/// The state after an error before anything was tried.
pub(crate) const NOTHING_YET: &str = "nothing is applied";
/// The state after an error within a batch.
pub(crate) const BATCH_TAKEN_BACK: &str = "its batch is rolled back, those before it stay";
/// The state after an error of COMMIT.
pub(crate) const BATCH_UNKNOWN: &str = "whether its batch was committed is not known; the same command with the same --journal finds out and goes on";

impl ApplyError {
    pub(crate) fn server(doing: impl Into<String>, source: ServerError, state: &'static str) -> Self {
        ApplyError::Server { doing: doing.into(), source: Box::new(source), state }
    }
}
