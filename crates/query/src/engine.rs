//! Runs statements over logs: plans them, bounds their memory, passes their batches on.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParser, Statement as Parsed};
use futures_util::StreamExt;
use tokio::runtime::{Builder, Runtime};

use crate::catalog::{CATALOG, Catalog, LOG_SCHEMA};
use crate::count_rule::CountRule;
use crate::division::Division;
use crate::error::{Error, Result};
use crate::functions;
use crate::logs::Logs;
use crate::tables::ROWS_MAX;

/// Stack of each thread. A long expression is a deep tree, and nothing else bounds how deep it is.
pub const STACK_SIZE: usize = 256 << 20;

/// Limits of a query, and where it puts temporary files.
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes for what it holds; beyond that it writes temporary files.
    pub memory: usize,
    /// Threads that work at once.
    pub jobs: usize,
    /// The folder of temporary files.
    pub temporary: PathBuf,
}

/// A statement that was read, but not planned.
#[derive(Debug)]
pub struct Statement(Parsed);

/// Runs statements.
pub struct Engine {
    runtime: Runtime,
    context: SessionContext,
    memory: usize,
}

/// Makes a session one of a cluster.
type Join<'a> = &'a dyn Fn(SessionState) -> std::result::Result<SessionState, DataFusionError>;

/// Takes the batches of a statement.
pub trait Output {
    /// Begins with the schema of the batches. A statement without rows has no columns.
    fn begin(&mut self, schema: &SchemaRef) -> Result<()>;

    /// The next rows.
    fn batch(&mut self, batch: &RecordBatch) -> Result<()>;

    /// There are no more rows.
    fn end(&mut self) -> Result<()>;
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("memory", &self.memory).finish_non_exhaustive()
    }
}

/// Reads statements; those of a text are divided by semicolons.
///
/// # Errors
///
/// A text that is no SQL, or has no statement.
pub fn statements(sql: &str) -> Result<Vec<Statement>> {
    let parsed = DFParser::parse_sql(sql).map_err(|error| Error::of(&error, 0))?;
    match parsed.is_empty() {
        true => Err(Error::Sql("there is no statement".to_owned())),
        false => Ok(parsed.into_iter().map(Statement).collect()),
    }
}

impl Engine {
    /// Makes the tables of the logs known.
    ///
    /// # Errors
    ///
    /// A folder for temporary files that can't be used.
    pub fn new(logs: Logs, options: &Options) -> Result<Self> {
        Self::with(logs, options, None)
    }

    /// The same, but a cluster reads the logs, each of its tasks about `partition_size` bytes of them. `join` makes a session
    /// one that sends its queries there.
    ///
    /// # Errors
    ///
    /// Logs that executors can't open, and as [`Self::new`].
    pub fn distributed(logs: Logs, options: &Options, partition_size: u64, join: Join<'_>) -> Result<Self> {
        let division = Arc::new(Division::new(&logs, partition_size)?);
        Self::with(logs, options, Some((division, join)))
    }

    fn with(logs: Logs, options: &Options, cluster: Option<(Arc<Division>, Join<'_>)>) -> Result<Self> {
        let make = || -> std::result::Result<SessionContext, DataFusionError> {
            let runtime = RuntimeEnvBuilder::new()
                .with_memory_pool(Arc::new(FairSpillPool::new(options.memory)))
                .with_temp_file_path(&options.temporary)
                .build_arc()?;
            let config = SessionConfig::new()
                .with_target_partitions(options.jobs)
                .with_batch_size(ROWS_MAX)
                .with_information_schema(true)
                .with_create_default_catalog_and_schema(false)
                .with_default_catalog_and_schema(CATALOG, LOG_SCHEMA);
            let state = SessionStateBuilder::new()
                .with_config(config)
                .with_runtime_env(runtime)
                .with_default_features()
                .with_physical_optimizer_rule(Arc::new(CountRule))
                .build();
            let context = SessionContext::new_with_state(state);
            let (division, join) = cluster.unzip();
            let context = match join {
                Some(join) => SessionContext::new_with_state(join(context.state())?),
                None => context,
            };
            let catalog = Catalog::new(&Arc::new(logs), options.jobs, division)?;
            context.register_catalog(CATALOG, Arc::new(catalog));
            functions::all().into_iter().for_each(|function| context.register_udf(function));
            Ok(context)
        };
        let context = make().map_err(|error| Error::of(&error, options.memory))?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.jobs)
            .thread_stack_size(STACK_SIZE)
            // Connections to a cluster.
            .enable_all()
            .build()
            .map_err(|error| Error::Log(format!("start threads: {error}")))?;
        Ok(Engine { runtime, context, memory: options.memory })
    }

    /// Runs a statement and passes on its rows as they come.
    ///
    /// # Errors
    ///
    /// A statement that is wrong, logs that can't be read, an output that fails. Rows before that were passed on.
    pub fn run(&self, statement: Statement, output: &mut dyn Output) -> Result<()> {
        let failed = |error: DataFusionError| Error::of(&error, self.memory);
        self.runtime.block_on(async {
            let plan = self.context.state().statement_to_plan(statement.0).await.map_err(failed)?;
            let frame = self.context.execute_logical_plan(plan).await.map_err(failed)?;
            let mut rows = frame.execute_stream().await.map_err(failed)?;
            // The heading comes with the first rows, so that an error stands alone.
            let mut next = rows.next().await.transpose().map_err(failed)?;
            output.begin(&rows.schema())?;
            while let Some(batch) = next {
                output.batch(&batch)?;
                next = rows.next().await.transpose().map_err(failed)?;
            }
            output.end()
        })
    }

    /// The plan of a query, as a cluster is sent it.
    ///
    /// # Errors
    ///
    /// A statement that is wrong, logs that can't be read.
    pub fn plan(&self, statement: Statement) -> Result<LogicalPlan> {
        let state = self.context.state();
        let plan = self.runtime.block_on(state.statement_to_plan(statement.0));
        plan.and_then(|plan| state.optimize(&plan)).map_err(|error| Error::of(&error, self.memory))
    }

    /// Ends without waiting for threads that still read.
    pub fn close(self) {
        self.runtime.shutdown_background();
    }
}
