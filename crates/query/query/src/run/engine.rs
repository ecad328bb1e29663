//! Runs statements over logs: plans them, bounds their memory, passes their batches on.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::JoinHandle;

use crate::catalog::names::Names;
use crate::catalog::table_changes::{TABLE_CHANGES, TableChangesFunction};
use crate::catalog::table_diff::{TABLE_DIFF, TableDiffFunction};
use crate::catalog::{AskTables, CATALOG, Catalog, LOG_SCHEMA};
use crate::error::{Error, Result};
use crate::logs::Logs;
use crate::run::ending::{EndOnDrop, QueryEnd};
use crate::run::memory::counted;
use crate::run::queries::Queries;
use crate::run::retry;
use crate::run::spill::runtime_env;
use crate::scan::count_rule::CountRule;
use crate::scan::latest_rule::LatestRule;
use crate::scan::presence_rule::PresenceRule;
use crate::sql::checked;
use crate::sql::functions;
use crate::sql::permitted::StatementOrigin;
use crate::sql::planner::MysqlPlanner;
use crate::sql::statements::ReadStatement;
use crate::tables::ROWS_MAX;

pub use crate::sql::statements::statements;

/// Stack of each thread: an expression is a tree as deep as [`crate::sql::depth`] lets it be.
pub const STACK_SIZE: usize = 256 << 20;

/// Sorts that can merge within the limit of memory at once.
const SORTS_MAX: usize = 16;

/// How long a stopped statement is waited for that is still being planned, and how often it is told.
const PLANNING_END_MAX: Duration = Duration::from_secs(1);
const PLANNING_END_PAUSE: Duration = Duration::from_millis(10);

/// Limits of a query, and where it puts temporary files.
#[derive(Debug, Clone)]
pub struct QueryOptions {
    /// Bytes of memory. If there are more than 512 MiB, up to 448 of them are for reading. Data that the rest has no room
    /// for goes to temporary files.
    pub memory: usize,
    /// Threads that work at once.
    pub jobs: usize,
    /// The folder of temporary files.
    pub temporary: PathBuf,
}

/// Runs statements.
pub struct QueryEngine {
    runtime: Runtime,
    context: SessionContext,
    names: Names,
    memory: usize,
    temporary: PathBuf,
    running: StatementStopper,
}

/// Stops the statement that an engine runs.
#[derive(Debug, Clone, Default)]
pub struct StatementStopper(Arc<RunningStatement>);

/// The statement that runs, for one who stops it.
#[derive(Debug, Default)]
struct RunningStatement {
    stopped: Notify,
    end: Mutex<QueryEnd>,
}

/// Takes the batches of a statement.
pub trait BatchOutput {
    /// Begins with the schema of the batches. A statement without rows has no columns.
    fn begin(&mut self, schema: &SchemaRef) -> Result<()>;

    /// The next rows.
    fn batch(&mut self, batch: &RecordBatch) -> Result<()>;

    /// There are no more rows.
    fn end(&mut self) -> Result<()>;
}

impl std::fmt::Debug for QueryEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl QueryEngine {
    /// Makes the tables of the logs known.
    ///
    /// # Errors
    ///
    /// A folder for temporary files that can't be used.
    pub fn new(logs: Logs, options: &QueryOptions) -> Result<Self> {
        Self::with(logs, options, None)
    }

    /// An engine that asks `ask` which user tables there are, instead of reading the logs for them.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn asking(logs: Logs, options: &QueryOptions, ask: AskTables) -> Result<Self> {
        Self::with(logs, options, Some(ask))
    }

    fn with(logs: Logs, options: &QueryOptions, asked: Option<AskTables>) -> Result<Self> {
        let make = move || -> std::result::Result<(SessionContext, Arc<Catalog>), DataFusionError> {
            let memory = counted(options.memory);
            let runtime = runtime_env(memory, &options.temporary)?;
            // Each sort of each partition holds it, also where memory is small.
            let merging =
                (memory / SORTS_MAX).min(ConfigOptions::new().execution.sort_spill_reservation_bytes);
            let config = SessionConfig::new()
                .with_sort_spill_reservation_bytes(merging)
                .with_target_partitions(options.jobs)
                .with_batch_size(ROWS_MAX)
                .with_information_schema(true)
                // MySQL's order: NULLs are below everything.
                .set_str("datafusion.sql_parser.default_null_ordering", "nulls_min")
                .with_create_default_catalog_and_schema(false)
                .with_default_catalog_and_schema(CATALOG, LOG_SCHEMA);
            let state = SessionStateBuilder::new()
                .with_config(config)
                .with_runtime_env(runtime)
                // Before DataFusion's own.
                .with_expr_planners(vec![Arc::new(MysqlPlanner)])
                .with_default_features()
                .with_analyzer_rules(checked::rules())
                .with_physical_optimizer_rule(Arc::new(CountRule))
                .with_physical_optimizer_rule(Arc::new(LatestRule))
                .with_physical_optimizer_rule(Arc::new(PresenceRule))
                .build();
            let context = SessionContext::new_with_state(state);
            let catalog = Arc::new(Catalog::new(&Arc::new(logs), options.jobs, asked)?);
            context.register_catalog(CATALOG, Arc::clone(&catalog) as _);
            if catalog.has_base() {
                context.register_udtf(TABLE_CHANGES, Arc::new(TableChangesFunction(Arc::clone(&catalog))));
            }
            // Without a base it says so.
            context.register_udtf(TABLE_DIFF, Arc::new(TableDiffFunction(Arc::clone(&catalog))));
            functions::all().into_iter().for_each(|function| context.register_udf(function));
            checked::aggregates().into_iter().for_each(|function| context.register_udaf(function));
            Ok((context, catalog))
        };
        let (context, catalog) = make().map_err(|error| Error::of(&error, options.memory))?;
        let state = context.state();
        let scalar = state.scalar_functions();
        let aggregate = state.aggregate_functions();
        let window = state.window_functions();
        let functions = scalar.keys().chain(aggregate.keys()).chain(window.keys()).cloned();
        let names = Names::new(catalog, functions.collect());
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.jobs)
            .thread_stack_size(STACK_SIZE)
            .enable_all()
            .build()
            .map_err(|error| Error::Log(format!("start threads: {error}")))?;
        let temporary = options.temporary.clone();
        let running = StatementStopper::default();
        Ok(QueryEngine { runtime, context, names, memory: options.memory, temporary, running })
    }

    /// The names that statements may have.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Stops the statement that runs meanwhile.
    pub fn stopper(&self) -> StatementStopper {
        self.running.clone()
    }

    /// For many clients: they can only ask.
    pub fn queries(&self) -> Queries {
        let context = self.context.clone();
        let threads = self.runtime.handle().clone();
        Queries::new(context, threads, self.names.clone(), self.memory, self.temporary.clone())
    }

    /// Runs a statement and passes on its rows as they come.
    ///
    /// # Errors
    ///
    /// A statement that is wrong, or does more than read; logs that can't be read, an output that fails; a stop. Rows before
    /// that were passed on.
    pub fn run(&self, statement: ReadStatement, output: &mut dyn BatchOutput) -> Result<()> {
        // What panics is a fault of DataFusion's, or ours; it ends the statement and not the prompt.
        let ran = AssertUnwindSafe(self.rows(statement, output)).catch_unwind();
        self.runtime.block_on(ran).unwrap_or_else(|panic| Err(Error::of_panic(panic.as_ref())))
    }

    async fn rows(&self, mut statement: ReadStatement, output: &mut dyn BatchOutput) -> Result<()> {
        let mut stop = std::pin::pin!(self.running.0.stopped.notified());
        stop.as_mut().enable();
        let end = QueryEnd::default();
        *self.running.0.end.lock() = end.clone();
        // It also ends when the output takes no more rows.
        let _ends = EndOnDrop(end.clone());
        let failed = |error: DataFusionError| match end.is_reached() {
            true => Error::Stopped,
            false => Error::of(&error, self.memory),
        };
        let context = self.context.clone();
        let names = self.names.clone();
        let planned = self.runtime.spawn(async move {
            names.check(&context.state(), &statement.parsed)?;
            names.spell_columns(&context.state(), &mut statement.parsed)?;
            let plan = context.state().statement_to_plan(statement.parsed).await?;
            StatementOrigin::Own.check(&plan)?;
            Ok((plan, statement.values))
        });
        let planned = self.unless_stopped(planned, stop.as_mut()).await?;
        let (plan, values) = planned.map_err(failed)?;
        let plan = values.bind(plan)?;
        let context = self.context.clone();
        let of_rows = end.clone();
        let begun = self.runtime.spawn(async move { retry::execute(&context, plan, of_rows).await });
        let mut rows = self.unless_stopped(begun, stop.as_mut()).await?.map_err(failed)?;
        let mut has_begun = false;
        loop {
            let next = match select(stop.as_mut(), rows.next()).await {
                Either::Left(_) => {
                    self.names.stop_readings();
                    return Err(Error::Stopped);
                }
                Either::Right((next, _)) => next.transpose().map_err(failed)?,
            };
            // The heading comes with the first rows, so that an error stands alone.
            if !has_begun {
                output.begin(&rows.schema())?;
                has_begun = true;
            }
            match next {
                Some(batch) => output.batch(&batch)?,
                None => return output.end(),
            }
        }
    }

    /// Waits for what comes before the rows, unless the statement is stopped. It may read logs, and doesn't look up from that: when it is
    /// to stop, its readings end. Anything else that takes long is left alone.
    async fn unless_stopped<T>(&self, task: JoinHandle<T>, stop: Pin<&mut Notified<'_>>) -> Result<T> {
        let task = match select(task, stop).await {
            Either::Left((done, _)) => return done.map_err(Error::of_task),
            Either::Right((_, task)) => task,
        };
        let mut waited = Duration::ZERO;
        while !task.is_finished() && waited < PLANNING_END_MAX {
            self.names.stop_readings();
            tokio::time::sleep(PLANNING_END_PAUSE).await;
            waited += PLANNING_END_PAUSE;
        }
        task.abort();
        Err(Error::Stopped)
    }

    /// Ends without waiting for threads that still read.
    pub fn close(self) {
        self.runtime.shutdown_background();
    }
}

impl StatementStopper {
    /// Stops it; without a statement nothing happens.
    pub fn stop(&self) {
        self.0.end.lock().reach();
        self.0.stopped.notify_waiters();
    }
}
