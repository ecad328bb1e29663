//! The scheduler: divides plans into stages and hands out their tasks. It reads no log and needs no credentials.

use std::net::SocketAddr;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::utils::default_config_producer;
use ballista_scheduler::cluster::BallistaCluster;
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::{create_scheduler, start_grpc_service_with_listener};
use tokio::net::TcpListener;

use crate::Error;
use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::losses::{Losses, PlanScheduler, STAGE_ATTEMPTS_MAX};
use crate::session::{self, HEARTBEAT_SECONDS};

/// Where a scheduler listens by default.
pub const DEFAULT_PORT: u16 = 50050;
/// An executor that wasn't heard of for so long is dead, and the queries end.
const EXECUTOR_TIMEOUT_SECONDS: u64 = 4 * HEARTBEAT_SECONDS;

/// A scheduler.
#[derive(Debug, Clone)]
pub struct Scheduler {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The host by which executors reach it.
    pub host: String,
}

impl Scheduler {
    /// Runs it until it fails.
    ///
    /// # Errors
    ///
    /// An address that can't be used.
    pub async fn run(self) -> Result<(), Error> {
        let listener = TcpListener::bind(self.listen).await;
        let listener = listener.map_err(|error| Error::of(&self.listen.to_string(), &error))?;
        let port = listener.local_addr().map_or(self.listen.port(), |address| address.port());
        log::info!("scheduler listens on {}", self.listen);
        serve(listener, config(self.host, port, TaskSchedulingPolicy::PushStaged)).await
    }
}

/// Serves on an open socket.
pub(crate) async fn serve(listener: TcpListener, config: SchedulerConfig) -> Result<(), Error> {
    let failed = |error: ballista_core::error::BallistaError| Error::of("scheduler", &error);
    let cluster = BallistaCluster::new_from_config(&config).await.map_err(failed)?;
    let (losses, cluster) = Losses::of(&cluster);
    let server: PlanScheduler = create_scheduler(cluster, Arc::new(config)).await.map_err(failed)?;
    losses.end_jobs_by(server.clone());
    start_grpc_service_with_listener(listener, server).await.map_err(failed)
}

pub(crate) fn config(host: String, port: u16, policy: TaskSchedulingPolicy) -> SchedulerConfig {
    SchedulerConfig {
        external_host: host,
        bind_port: port,
        scheduling_policy: policy,
        // All executors work on a query.
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: EXECUTOR_TIMEOUT_SECONDS,
        expire_dead_executor_interval_seconds: HEARTBEAT_SECONDS,
        no_executors_grace_period_seconds: EXECUTOR_TIMEOUT_SECONDS,
        stage_max_failures: STAGE_ATTEMPTS_MAX,
        override_config_producer: Some(Arc::new(default_config_producer)),
        override_session_builder: Some(Arc::new(session::new)),
        override_logical_codec: Some(Arc::new(LogicalCodec::default())),
        override_physical_codec: Some(Arc::new(PhysicalCodec::default())),
        ..SchedulerConfig::default()
    }
}
