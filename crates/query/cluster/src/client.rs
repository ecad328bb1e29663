//! The client of a cluster: a session whose plans go to a scheduler.

use std::net::TcpStream;
use std::sync::Arc;

use ballista_core::config::BALLISTA_ADAPTIVE_PLANNER_ENABLED;
use ballista_core::extension::{SessionConfigExt, SessionStateExt};
use binlogz_query::{Error, Logs, QueryEngine, QueryOptions};
use datafusion::common::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::quoted::QuotedPlanner;

/// Bytes of logs that a task reads: some seconds of work.
pub const DEFAULT_PARTITION_SIZE: u64 = 64 << 20;
/// Partitions of joins and groups: Ballista's default.
pub const DEFAULT_SHUFFLE_PARTITIONS: usize = 16;

/// Rules that only the scheduler applies: the names that they make don't survive the way there (DataFusion 55.2).
const NOT_SENT: [&str; 2] = ["extract_leaf_expressions", "push_down_leaf_projections"];

/// Sends statements to a cluster.
#[derive(Debug, Clone)]
pub struct ClusterClient {
    /// HOST:PORT of the scheduler.
    pub scheduler: String,
    /// Bytes of logs that a task reads.
    pub partition_size: u64,
    /// Partitions of joins and groups.
    pub shuffle_partitions: usize,
}

impl ClusterClient {
    /// An engine whose statements the cluster runs.
    ///
    /// # Errors
    ///
    /// A scheduler that isn't there, logs that executors can't open.
    pub fn engine(&self, logs: Logs, options: &QueryOptions) -> binlogz_query::Result<QueryEngine> {
        let reached = TcpStream::connect(&self.scheduler);
        reached.map_err(|error| Error::Log(format!("scheduler {}: {error}", self.scheduler)))?;
        QueryEngine::distributed(logs, options, self.partition_size, &|state| self.join(state))
    }

    fn join(&self, state: SessionState) -> Result<SessionState> {
        let config = state.config().clone().with_target_partitions(self.shuffle_partitions);
        let config = config
            .with_ballista_logical_extension_codec(Arc::new(LogicalCodec::default()))
            .with_ballista_physical_extension_codec(Arc::new(PhysicalCodec::default()))
            .upgrade_for_ballista()
            // It plans a sorted union wrongly (55.0), and then the job never ends.
            .set_bool(BALLISTA_ADAPTIVE_PLANNER_ENABLED, false);
        let rules =
            state.optimizers().iter().filter(|rule| !NOT_SENT.contains(&rule.name())).cloned().collect();
        let state = SessionStateBuilder::new_from_existing(state).with_config(config);
        let state = state.with_optimizer_rules(rules).build();
        let state = state.upgrade_for_ballista(format!("http://{}", self.scheduler))?;
        let planner = Arc::new(QuotedPlanner(Arc::clone(state.query_planner())));
        Ok(SessionStateBuilder::new_from_existing(state).with_query_planner(planner).build())
    }
}
