//! Runs statements over logs: plans them, bounds their memory, passes their batches on.

use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use crate::catalog::names::Names;
use crate::catalog::table_changes::{TABLE_CHANGES, TableChangesFunction};
use crate::catalog::{AskTables, CATALOG, Catalog, LOG_SCHEMA};
use crate::error::{Error, Result};
use crate::logs::Logs;
use crate::run::memory::counted;
use crate::run::queries::Queries;
use crate::run::retry;
use crate::run::spill::runtime_env;
use crate::scan::count_rule::CountRule;
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
    stop: Arc<Notify>,
}

/// Stops the statement that an engine runs.
#[derive(Debug, Clone)]
pub struct StatementStopper(Arc<Notify>);

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
                .build();
            let context = SessionContext::new_with_state(state);
            let catalog = Arc::new(Catalog::new(&Arc::new(logs), options.jobs, asked)?);
            context.register_catalog(CATALOG, Arc::clone(&catalog) as _);
            if catalog.has_base() {
                context.register_udtf(TABLE_CHANGES, Arc::new(TableChangesFunction(Arc::clone(&catalog))));
            }
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
        Ok(QueryEngine { runtime, context, names, memory: options.memory, temporary, stop: Arc::default() })
    }

    /// The names that statements may have.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Stops the statement that runs meanwhile.
    pub fn stopper(&self) -> StatementStopper {
        StatementStopper(Arc::clone(&self.stop))
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
    pub fn run(&self, mut statement: ReadStatement, output: &mut dyn BatchOutput) -> Result<()> {
        let failed = |error: DataFusionError| Error::of(&error, self.memory);
        let ran = AssertUnwindSafe(async {
            let stop = std::pin::pin!(self.stop.notified());
            let mut stop = stop;
            stop.as_mut().enable();
            // Planning may read logs, and not look up from that: it is left alone when it is to stop.
            let context = self.context.clone();
            let names = self.names.clone();
            let planned = self.runtime.spawn(async move {
                names.check(&context.state(), &statement.parsed)?;
                names.spell_columns(&context.state(), &mut statement.parsed)?;
                let plan = context.state().statement_to_plan(statement.parsed).await?;
                StatementOrigin::Own.check(&plan)?;
                Ok((plan, statement.values))
            });
            let planned = match select(planned, stop.as_mut()).await {
                Either::Left((planned, _)) => planned,
                Either::Right(_) => return Err(Error::Stopped),
            };
            let (plan, values) = planned.map_err(Error::of_task)?.map_err(failed)?;
            let plan = values.bind(plan)?;
            let mut rows = retry::execute(&self.context, plan).await.map_err(failed)?;
            let mut has_begun = false;
            loop {
                let next = match select(stop.as_mut(), rows.next()).await {
                    Either::Left(_) => return Err(Error::Stopped),
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
        });
        // What panics is a fault of DataFusion's, or ours; it ends the statement and not the prompt.
        self.runtime.block_on(ran.catch_unwind()).unwrap_or_else(|panic| Err(Error::of_panic(panic.as_ref())))
    }

    /// Ends without waiting for threads that still read.
    pub fn close(self) {
        self.runtime.shutdown_background();
    }
}

impl StatementStopper {
    /// Stops it; without a statement nothing happens.
    pub fn stop(&self) {
        self.0.notify_waiters();
    }
}
