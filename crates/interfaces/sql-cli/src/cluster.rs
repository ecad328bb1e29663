//! `binlogz-sql scheduler`, `binlogz-sql executor`, and `binlogz sql --cluster`.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use binlogz_cli_common::companions::sql::MEMORY;
use binlogz_cli_common::companions::sql_cluster::{ClusterArgs, PARTITIONS, TASK_SIZE, host_and_port};
use binlogz_cli_common::help::{EXAMPLES_FIRST, HELP_WIDTH};
use binlogz_cli_common::start::refuse;
use binlogz_cli_common::units::{above_zero, workers};
use binlogz_cluster::executor::{self, Executor};
use binlogz_cluster::scheduler::{self, Scheduler};
use binlogz_cluster::{ClusterClient, DEFAULT_PARTITION_SIZE, DEFAULT_SHUFFLE_PARTITIONS, tell};
use binlogz_query::engine::STACK_SIZE;
use binlogz_query::{Error, Logs, QueryEngine, QueryOptions};
use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use crate::inputs::open_keyring;
use crate::temporary::Temporary;
use crate::{MIB, Run};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
// The help says what the cluster does.
const _: () = assert!(TASK_SIZE.get() * MIB as u64 == DEFAULT_PARTITION_SIZE);
const _: () = assert!(PARTITIONS.get() == DEFAULT_SHUFFLE_PARTITIONS);

const SCHEDULER_EXAMPLES: &str = "Examples:
  binlogz-sql scheduler
  binlogz-sql scheduler --listen 10.0.0.1:50050";

const EXECUTOR_EXAMPLES: &str = "Examples:
  binlogz-sql executor --scheduler 127.0.0.1:50050
  binlogz-sql executor --scheduler 10.0.0.1:50050 --listen 10.0.0.2 --host 10.0.0.2 --work /var/lib/binlogz-sql";

/// An engine of this process, or of the cluster.
pub(crate) fn engine(args: &ClusterArgs, logs: Logs, options: &QueryOptions) -> Result<QueryEngine, Error> {
    let Some((host, port)) = &args.cluster else { return QueryEngine::new(logs, options) };
    let client = ClusterClient {
        scheduler: format!("{host}:{port}"),
        partition_size: args.task_size.get().saturating_mul(MIB as u64),
        shuffle_partitions: args.partitions.get(),
    };
    client.engine(logs, options)
}

/// Hand out the tasks of a cluster to its executors
///
/// It reads no logs and needs no credentials. Anyone who reaches its port can run queries: keep it in a private network.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql scheduler", bin_name = "binlogz-sql scheduler", version, max_term_width = HELP_WIDTH, after_help = SCHEDULER_EXAMPLES, help_template = EXAMPLES_FIRST)]
pub(crate) struct SchedulerArgs {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value_t = SocketAddr::new(LOOPBACK, scheduler::DEFAULT_PORT))]
    listen: SocketAddr,
    /// Name or address by which executors reach it [default: the address of --listen]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Tell everything that Ballista tells
    #[arg(long, short)]
    verbose: bool,
}

/// Run tasks of a cluster
///
/// Logs are read with this process's own credentials: the AWS_ variables and keys of archives in its environment, and
/// --keyring. Anyone who reaches its ports can run tasks and read results: keep it in a private network.
#[derive(Debug, Parser)]
#[command(name = "binlogz-sql executor", bin_name = "binlogz-sql executor", version, max_term_width = HELP_WIDTH, after_help = EXECUTOR_EXAMPLES, help_template = EXAMPLES_FIRST)]
pub(crate) struct ExecutorArgs {
    /// The scheduler
    #[arg(long, value_name = "HOST:PORT", value_parser = host_and_port)]
    scheduler: (String, u16),
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value_t = LOOPBACK)]
    listen: IpAddr,
    /// Name or address by which clients and other executors reach it [default: as the scheduler sees it]
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Port from which results are fetched
    #[arg(long, value_name = "PORT", default_value_t = executor::DEFAULT_PORT)]
    port: u16,
    /// Port to which the scheduler sends tasks
    #[arg(long, value_name = "PORT", default_value_t = executor::DEFAULT_TASK_PORT)]
    task_port: u16,
    /// Tasks that work at once [default: one for each core]
    #[arg(long, short, value_name = "N", value_parser = above_zero)]
    jobs: Option<NonZeroUsize>,
    /// Memory for reading, sorts, joins and groups of all tasks, in MiB; what doesn't fit goes to temporary files
    #[arg(long, value_name = "MIB", default_value_t = MEMORY, value_parser = above_zero)]
    memory: NonZeroUsize,
    /// Folder of results and temporary files [default: one of its own, which goes with the process]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// Read encrypted logs with the keys of this keyring file
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
    /// Tell everything that Ballista tells
    #[arg(long, short)]
    verbose: bool,
}

/// Runs a command of the cluster, if a whole command line, program name included, asks for one.
pub(crate) fn asked_for(mut command_line: impl Iterator<Item = OsString>) -> Option<Run> {
    let program = command_line.next()?;
    let command = command_line.next()?;
    let rest = std::iter::once(program).chain(command_line);
    if command == "scheduler" {
        let scheduler = SchedulerArgs::try_parse_from(rest).unwrap_or_else(|error| refuse(&error));
        Some(Box::new(move || scheduler.run()))
    } else if command == "executor" {
        let executor = ExecutorArgs::try_parse_from(rest).unwrap_or_else(|error| refuse(&error));
        Some(Box::new(move || executor.run()))
    } else {
        None
    }
}

impl SchedulerArgs {
    fn run(self) -> Result<(), Error> {
        tell::to_stderr(self.verbose);
        let host = match self.host {
            Some(host) => host,
            None if self.listen.ip().is_unspecified() => {
                let what =
                    "listens on all addresses, expected --host HOST: the one by which executors reach it";
                return Err(Error::Sql(format!("{}: {what}", self.listen)));
            }
            None => self.listen.ip().to_string(),
        };
        let scheduler = Scheduler { listen: self.listen, host };
        runtime()?.block_on(scheduler.run()).map_err(|error| Error::Log(error.to_string()))
    }
}

impl ExecutorArgs {
    fn run(self) -> Result<(), Error> {
        tell::to_stderr(self.verbose);
        let keyring = self.keyring.as_deref().map(open_keyring).transpose()?;
        let own = self.work.is_none().then(Temporary::new).transpose()?;
        let work = self.work.or_else(|| own.as_ref().map(|own| own.path().to_owned())).unwrap_or_default();
        let executor = Executor {
            scheduler: self.scheduler,
            listen: self.listen,
            host: self.host,
            port: self.port,
            task_port: self.task_port,
            jobs: workers(self.jobs),
            memory: (self.memory.get().saturating_mul(MIB)) as u64,
            work,
        };
        runtime()?.block_on(executor.run(keyring)).map_err(|error| Error::Log(error.to_string()))
    }
}

fn runtime() -> Result<Runtime, Error> {
    let runtime = Builder::new_multi_thread().enable_all().thread_stack_size(STACK_SIZE).build();
    runtime.map_err(|error| Error::Log(format!("start threads: {error}")))
}
