//! A whole cluster in this process: a scheduler and executors that talk over the loopback interface. For tests.
//!
//! Executors ask for tasks often. In Ballista's own standalone mode they do so every 50 ms, and each stage of a query waits
//! for that.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::ids::new_instance_id;
use ballista_core::serde::BallistaCodec;
use ballista_core::serde::protobuf::ExecutorRegistration;
use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use ballista_core::serde::scheduler::{ExecutorOperatingSystemSpecification, ExecutorSpecification};
use ballista_core::utils::{GrpcServerConfig, create_grpc_server, default_config_producer};
use ballista_core::{BALLISTA_PROTOCOL_VERSION, RuntimeProducer};
use ballista_executor::execution_loop::poll_loop;
use ballista_executor::executor::Executor;
use ballista_executor::flight_service::BallistaFlightService;
use ballista_executor::health::ExecutorHealth;
use ballista_executor::metrics::LoggingMetricsCollector;
use binlogz_query::Site;
use binlogz_query::engine::STACK_SIZE;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tonic::transport::server::TcpIncoming;

use crate::codec::{LogicalCodec, PhysicalCodec};
use crate::{Error, scheduler, session};

/// How often an executor asks for tasks.
const ASK_INTERVAL: Duration = Duration::from_millis(5);

/// A cluster in this process; it ends with this value.
#[derive(Debug)]
pub struct Standalone {
    address: SocketAddr,
    _runtime: Runtime,
    _work: Vec<TempDir>,
}

impl Standalone {
    /// Starts an executor for each of these, with this many tasks at once.
    ///
    /// # Errors
    ///
    /// Threads, sockets or folders that can't be made.
    pub fn start(sites: impl IntoIterator<Item = Site>, jobs: u32) -> Result<Self, Error> {
        let runtime = Builder::new_multi_thread().enable_all().thread_stack_size(STACK_SIZE).build();
        let runtime = runtime.map_err(|error| Error::of("start threads", &error))?;
        let (address, work) = runtime.block_on(async {
            let (listener, address) = listen().await?;
            let (host, port) = (address.ip().to_string(), address.port());
            let config = scheduler::config(host, port, TaskSchedulingPolicy::PullStaged);
            tokio::spawn(scheduler::serve(listener, config));
            let mut work = Vec::new();
            for site in sites {
                let folder = tempfile::tempdir().map_err(|error| Error::of("make a folder", &error))?;
                start_executor(address, Arc::new(site), jobs, folder.path().display().to_string()).await?;
                work.push(folder);
            }
            Ok((address, work))
        })?;
        Ok(Standalone { address, _runtime: runtime, _work: work })
    }

    /// HOST:PORT of the scheduler.
    pub fn scheduler(&self) -> String {
        self.address.to_string()
    }
}

/// A socket on a port of the system's choice.
async fn listen() -> Result<(TcpListener, SocketAddr), Error> {
    let open = async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    open.await.map_err(|error: std::io::Error| Error::of("listen", &error))
}

async fn start_executor(
    scheduler: SocketAddr,
    site: Arc<Site>,
    jobs: u32,
    work: String,
) -> Result<(), Error> {
    let (listener, address) = listen().await?;
    let flight = FlightServiceServer::new(BallistaFlightService::new(work.clone()));
    let server = create_grpc_server(&GrpcServerConfig::default()).add_service(flight);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    let about = ExecutorRegistration {
        id: new_instance_id(),
        host: Some(address.ip().to_string()),
        port: address.port().into(),
        // It asks for its tasks.
        grpc_port: 0,
        specification: Some(ExecutorSpecification::default().with_vcores(jobs).into()),
        os_info: Some(ExecutorOperatingSystemSpecification::default().into()),
        ballista_protocol_version: BALLISTA_PROTOCOL_VERSION,
    };
    let memory: RuntimeProducer = Arc::new(|_| Ok(Arc::new(RuntimeEnv::default())));
    let executor = Executor::with_default_execution_engine(
        about,
        &work,
        memory,
        Arc::new(default_config_producer),
        Arc::new(session::registry()?),
        Arc::new(LoggingMetricsCollector::default()),
        jobs as usize,
    );
    let client = SchedulerGrpcClient::connect(format!("http://{scheduler}")).await;
    let client = client.map_err(|error| Error::of("connect", &error))?;
    let codec = BallistaCodec::<LogicalPlanNode, PhysicalPlanNode>::new(
        Arc::new(LogicalCodec::default()),
        Arc::new(PhysicalCodec::new(site)),
    );
    let wake = Arc::new(Notify::new());
    let asks =
        poll_loop(client, Arc::new(executor), codec, Some(Arc::clone(&wake)), None, ExecutorHealth::new());
    tokio::spawn(asks);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(ASK_INTERVAL).await;
            wake.notify_one();
        }
    });
    Ok(())
}
