//! An executor: runs tasks and keeps their results until they are fetched.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::utils::default_config_producer;
use ballista_executor::executor_process::{ExecutorProcessConfig, start_executor_process};
use binlogz_encryption::Keyring;
use binlogz_query::Site;

use crate::Error;
use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::session::{self, HEARTBEAT_SECONDS};

/// Where an executor gives out results by default.
pub const DEFAULT_PORT: u16 = 50051;
/// Where it takes tasks by default.
pub const DEFAULT_TASK_PORT: u16 = 50052;
/// How long it looks for the scheduler when it starts.
const CONNECT_TIMEOUT_SECONDS: u16 = 60;

/// An executor.
#[derive(Debug)]
pub struct Executor {
    /// Host and port of the scheduler.
    pub scheduler: (String, u16),
    /// The address on which it listens.
    pub listen: IpAddr,
    /// The host by which clients and other executors reach it; `None`: as the scheduler sees it.
    pub host: Option<String>,
    /// Where it gives out results.
    pub port: u16,
    /// Where it takes tasks.
    pub task_port: u16,
    /// Tasks at once.
    pub jobs: usize,
    /// Bytes for what its tasks hold; beyond that they write temporary files.
    pub memory: u64,
    /// The folder of results and temporary files.
    pub work: PathBuf,
}

impl Executor {
    /// Runs it until a signal ends it. Logs are read with this process's credentials and this keyring.
    ///
    /// # Errors
    ///
    /// A scheduler that can't be reached, an address that can't be used.
    pub async fn run(self, keyring: Option<Keyring>) -> Result<(), Error> {
        let Some(work) = self.work.to_str() else {
            return Err(Error(format!("{}: the path is no UTF-8", self.work.display())));
        };
        let site = Arc::new(Site::new(keyring, |line| log::info!("{line}")));
        let config = ExecutorProcessConfig {
            bind_host: self.listen.to_string(),
            external_host: self.host,
            port: self.port,
            grpc_port: self.task_port,
            scheduler_host: self.scheduler.0,
            scheduler_port: self.scheduler.1,
            scheduler_connect_timeout_seconds: CONNECT_TIMEOUT_SECONDS,
            vcores: self.jobs,
            task_scheduling_policy: TaskSchedulingPolicy::PushStaged,
            work_dir: Some(work.to_owned()),
            executor_heartbeat_interval_seconds: HEARTBEAT_SECONDS,
            memory_pool_size: Some(self.memory),
            override_function_registry: Some(Arc::new(session::registry()?)),
            override_config_producer: Some(Arc::new(default_config_producer)),
            override_logical_codec: Some(Arc::new(LogicalCodec::default())),
            override_physical_codec: Some(Arc::new(PhysicalCodec::new(site))),
            ..ExecutorProcessConfig::default()
        };
        start_executor_process(Arc::new(config)).await.map_err(|error| Error::of("executor", &error))
    }
}
