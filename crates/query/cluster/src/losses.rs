//! Ends the queries that run when an executor is lost. Ballista itself would go on. It repeats the stage whose inputs are
//! gone, but keeps the rows that the stage's tasks have already passed on to the next one, so these rows are counted
//! twice (55.0, `ExecutionGraph::rollback_running_stage`). The client starts such a query again (`query::retry`).
//!
//! Whenever the scheduler loses an executor it calls [`ClusterState::remove_executor`], and begins to repeat only after
//! that, so our message comes first in its queue. A result that can't be fetched leads to the same repetition; a setting
//! prevents it ([`STAGE_ATTEMPTS_MAX`]).

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::protobuf::job_status::Status;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::{
    BallistaCluster, BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot, JobState,
};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::scheduler_server::SchedulerServer;
use ballista_scheduler::state::task_manager::JobInfoCache;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};

/// How often a stage may begin: a second attempt counts rows twice.
pub(crate) const STAGE_ATTEMPTS_MAX: usize = 1;

/// A scheduler of plans as DataFusion sends them.
pub(crate) type PlanScheduler = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// The executors of a cluster. When one is lost, it ends the jobs.
pub(crate) struct Losses {
    executors: Arc<dyn ClusterState>,
    jobs: Arc<dyn JobState>,
    /// The scheduler that ends jobs; it is made after this.
    server: OnceLock<PlanScheduler>,
}

impl Losses {
    /// Watches the executors of a cluster. Returns the watcher, and the cluster that reports to it.
    pub(crate) fn of(cluster: &BallistaCluster) -> (Arc<Self>, BallistaCluster) {
        let (executors, jobs) = (cluster.cluster_state(), cluster.job_state());
        let losses = Arc::new(Losses { executors, jobs: Arc::clone(&jobs), server: OnceLock::new() });
        (Arc::clone(&losses), BallistaCluster::new(losses, jobs))
    }

    pub(crate) fn end_jobs_by(&self, server: PlanScheduler) {
        // There is one scheduler for each cluster.
        let _ = self.server.set(server);
    }
}

#[async_trait]
impl ClusterState for Losses {
    async fn remove_executor(&self, executor_id: &str) -> Result<()> {
        let removed = self.executors.remove_executor(executor_id).await;
        if let Some(server) = self.server.get() {
            // `get_jobs` has those that are over.
            for job in self.jobs.get_all_jobs().await? {
                let status = self.jobs.get_job_status(&job).await?.and_then(|status| status.status);
                if matches!(status, Some(Status::Running(_))) {
                    log::warn!("an executor is lost, the query {job} ends");
                    server.cancel_job(job).await?;
                }
            }
        }
        removed
    }

    async fn init(&self) -> Result<()> {
        self.executors.init().await
    }

    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        active_jobs: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        self.executors.bind_schedulable_tasks(distribution, active_jobs, executors).await
    }

    async fn unbind_tasks(&self, executor_slots: Vec<ExecutorSlot>) -> Result<()> {
        self.executors.unbind_tasks(executor_slots).await
    }

    async fn register_executor(&self, metadata: ExecutorMetadata, spec: ExecutorData) -> Result<()> {
        self.executors.register_executor(metadata, spec).await
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.executors.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, executor_id: &str) -> Result<ExecutorMetadata> {
        self.executors.get_executor_metadata(executor_id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.executors.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.executors.save_executor_heartbeat(heartbeat).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.executors.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor_id: &str) -> Option<ExecutorHeartbeat> {
        self.executors.get_executor_heartbeat(executor_id)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.executors.cluster_state_events().await
    }
}
