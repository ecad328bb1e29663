//! The trait by which answers to statements ask the relay for facts about its logs.

use parking_lot::Mutex;
use std::sync::Arc;

use binlogz_payload::statistics::CompressionTable;
use binlogz_variables::CompressionVariables;
use binlogz_wire::result_set::ResultRow;
use binlogz_wire::statement::EventsWanted;

use crate::listings::{ListedLog, LogStatusRow, RegisteredReplica};
use crate::replica_status::ReplicaStatusFacts;
use crate::variables::session::ClientVariables;
use crate::variables::source::SourceVariables;
use crate::variables::system::OwnVariables;

/// A stored log, and the relay that has it, as the statements of one client see them. A client's variables may name the form of the
/// files that are listed for it.
pub trait AskedRelay {
    /// Why there is no answer: a disk that fails, a damaged log.
    type Error;

    /// The source's variables, if it was ever reached.
    fn source_variables(&self) -> Option<Arc<SourceVariables>>;

    /// The relay's own variables; `None` as long as nothing is stored.
    ///
    /// # Errors
    ///
    /// The stored log can't be read.
    fn own_variables(&self) -> Result<Option<OwnVariables>, Self::Error>;

    /// The variables that steer the compression of what is stored.
    fn compression(&self) -> &Mutex<CompressionVariables>;

    /// The statistics of compression since the start.
    fn compression_stats(&self) -> &Mutex<CompressionTable>;

    /// The files of the log, the oldest first.
    ///
    /// # Errors
    ///
    /// The stored log can't be read.
    fn logs(&self, client: &ClientVariables) -> Result<Vec<ListedLog>, Self::Error>;

    /// The end of the log; `None` as long as nothing is stored.
    ///
    /// # Errors
    ///
    /// The stored log can't be read.
    fn log_status(&self, client: &ClientVariables) -> Result<Option<LogStatusRow>, Self::Error>;

    /// The events of a file, as rows of SHOW BINLOG EVENTS. The inner error is for the client: there is no such file, or no event
    /// begins at that position.
    ///
    /// # Errors
    ///
    /// The stored log can't be read.
    fn events(
        &self,
        client: &ClientVariables,
        wanted: &EventsWanted,
    ) -> Result<Result<Vec<ResultRow>, String>, Self::Error>;

    /// The replicas that have registered.
    fn replicas(&self) -> Vec<RegisteredReplica>;

    /// How receiving is.
    ///
    /// # Errors
    ///
    /// The stored log can't be read.
    fn replica_status(&self) -> Result<ReplicaStatusFacts, Self::Error>;

    /// Starts receiving.
    fn start_replica(&self);

    /// Stops receiving.
    fn stop_replica(&self);

    /// Removes the files before this one; with `force` also those that connected replicas still read.
    ///
    /// # Errors
    ///
    /// Why not, for the client.
    fn purge_to(&self, file: &str, force: bool) -> Result<(), String>;

    /// Removes the files that were closed before this time, in seconds since 1970; with `force` also those that connected replicas
    /// still read.
    ///
    /// # Errors
    ///
    /// Why not, for the client.
    fn purge_before(&self, time: u64, force: bool) -> Result<(), String>;
}
