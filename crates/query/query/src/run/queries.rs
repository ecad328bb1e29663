//! Queries of many clients, planned and run on the engine's threads, for callers that wait for them asynchronously.
//! Queries share the engine's memory limit and its tables, and can change neither.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::common::DataFusionError;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use futures_util::{Stream, StreamExt};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::task::{AbortHandle, JoinHandle};

use crate::catalog::names::Names;
use crate::error::{Error, Result};
use crate::run::ending::{EndOnDrop, QueryEnd};
use crate::run::retry;
use crate::run::shared::{SharedValue, held, shared};
use crate::run::spill::runtime_env;
use crate::scan::BATCHES_WAITING;
use crate::sql::checked::strict;
use crate::sql::depth::STATEMENT_SIZE_MAX;
use crate::sql::permitted::StatementOrigin;
use crate::sql::statements::{self, ParameterValues, ReadStatement};

/// Plans and runs queries.
#[derive(Clone)]
pub struct Queries {
    context: SharedValue<SessionContext>,
    threads: Handle,
    names: SharedValue<Names>,
    memory: usize,
    temporary: PathBuf,
}

/// A query that was planned.
#[derive(Clone)]
pub struct Query {
    plan: SharedValue<LogicalPlan>,
    /// The query's columns, once the types are known that its text doesn't tell.
    schema: SchemaRef,
    parameters: Vec<(String, Option<DataType>)>,
}

/// The rows of a query as they come. Without it the query ends.
#[derive(Debug)]
pub struct QueryRows {
    schema: SchemaRef,
    /// `None`: there are no more.
    batches: Receiver<Result<Option<RecordBatch>>>,
    task: Task<()>,
    is_over: bool,
    _end: EndOnDrop,
}

impl std::fmt::Debug for Queries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queries").field("memory", &self.memory).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Query").field("plan", held::<LogicalPlan>(&self.plan)).finish_non_exhaustive()
    }
}

impl Queries {
    pub(crate) fn new(
        context: SessionContext,
        threads: Handle,
        names: Names,
        memory: usize,
        temporary: PathBuf,
    ) -> Self {
        Queries { context: shared(context), threads, names: shared(names), memory, temporary }
    }

    /// Gives queries `counted` bytes of their own for sorts, joins and groups.
    ///
    /// # Errors
    ///
    /// None that an input causes.
    pub fn within(&self, counted: usize) -> Result<Self> {
        let failed = |error: DataFusionError| Error::of(&error, self.memory);
        let runtime = runtime_env(counted, &self.temporary).map_err(failed)?;
        let state = SessionStateBuilder::new_from_existing(held(&self.context).state());
        let context = SessionContext::new_with_state(state.with_runtime_env(runtime).build());
        Ok(Queries { context: shared(context), ..self.clone() })
    }

    /// A query with values in the places of its parameters.
    ///
    /// # Errors
    ///
    /// A parameter without a value, or with one that doesn't fit.
    pub async fn bound(&self, query: Query, values: ParameterValues) -> Result<Query> {
        let context = held(&self.context).clone();
        let bound = self.threads.spawn(async move { query.with(&values, &context) });
        Task(bound).join().await?
    }

    /// The names of tables and columns.
    pub fn names(&self) -> &Names {
        held(&self.names)
    }

    /// Does something that may read logs, without keeping the caller's thread.
    ///
    /// # Errors
    ///
    /// The errors of `work`.
    pub async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Names) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let names = Arc::clone(&self.names);
        let done = self.threads.spawn_blocking(move || work(held(&names))).await;
        done.unwrap_or_else(|error| Err(Error::of_task(error)))
    }

    /// Plans the one query of a text.
    ///
    /// # Errors
    ///
    /// A text that is something else, or can't be planned.
    pub async fn plan(&self, sql: &str) -> Result<Query> {
        if sql.len() > STATEMENT_SIZE_MAX {
            return Err(statements::too_long(sql));
        }
        let sql = sql.to_owned();
        self.plan_made(move || {
            let mut all = statements::statements(&sql)?;
            let Some(statement) = all.pop() else {
                return Err(Error::Sql("there is no statement".to_owned()));
            };
            match all.is_empty() {
                true => Ok(statement),
                false => Err(Error::Sql(format!("there are {} statements, expected one", all.len() + 1))),
            }
        })
        .await
    }

    /// Plans a query that `make` reads: on a stack that has room for it.
    ///
    /// # Errors
    ///
    /// Those of `make`; a statement that is no query, or can't be planned.
    pub async fn plan_made(
        &self,
        make: impl FnOnce() -> Result<ReadStatement> + Send + 'static,
    ) -> Result<Query> {
        let context = held(&self.context).clone();
        let memory = self.memory;
        let known: Names = held(&self.names).clone();
        let planned = self.threads.spawn(async move {
            let mut statement = make()?;
            let names = statement.parameters().to_vec();
            let failed = |error: DataFusionError| Error::of(&error, memory);
            known.check(&context.state(), &statement.parsed).map_err(failed)?;
            known.spell_columns(&context.state(), &mut statement.parsed).map_err(failed)?;
            let plan = context.state().statement_to_plan(statement.parsed).await.map_err(failed)?;
            StatementOrigin::Queries.check(&plan).map_err(failed)?;
            let mut types = statements::types(&plan).map_err(failed)?;
            // In the order in which they are written; a statement may name one that its plan has no use for.
            let parameters = names
                .into_iter()
                .map(|name| {
                    let kind = types.remove(&name).flatten();
                    (name, kind)
                })
                .collect();
            Ok(Query { parameters, schema: columns(&plan, &context), plan: shared(plan) })
        });
        Task(planned).join().await?
    }

    /// Adds tables of a protocol's own, in this schema of this catalog; those that were there before are gone.
    ///
    /// # Errors
    ///
    /// None that an input causes.
    pub fn add_tables(
        &self,
        (catalog, schema): (&str, &str),
        tables: impl IntoIterator<Item = (String, RecordBatch)>,
    ) -> Result<()> {
        let failed = |error: DataFusionError| Error::of(&error, self.memory);
        let of_schema = Arc::new(MemorySchemaProvider::new());
        for (name, batch) in tables {
            let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).map_err(failed)?;
            of_schema.register_table(name, Arc::new(table)).map_err(failed)?;
        }
        let of_catalog = Arc::new(MemoryCatalogProvider::new());
        of_catalog.register_schema(schema, of_schema).map_err(failed)?;
        held(&self.context).register_catalog(catalog, of_catalog);
        Ok(())
    }

    /// Runs a query. It ends if nobody takes its rows for `patience`. `kept` is dropped when it ends, also if its last rows are never
    /// taken.
    ///
    /// # Errors
    ///
    /// A parameter without a value, a query that can't begin.
    pub async fn run(
        &self,
        query: Query,
        values: &ParameterValues,
        patience: Duration,
        kept: impl Send + 'static,
    ) -> Result<QueryRows> {
        let context = held(&self.context).clone();
        let memory = self.memory;
        let failed = move |error: DataFusionError| Error::of(&error, memory);
        let values = values.clone();
        let end = QueryEnd::default();
        let ends = EndOnDrop(end.clone());
        let started = self.threads.spawn(async move {
            let query = query.with(&values, &context)?;
            let plan = held(&query.plan).clone();
            let rows = retry::execute(&context, plan, end).await.map_err(failed)?;
            Ok::<_, Error>((query.schema(), rows))
        });
        let (schema, mut rows) = Task(started).join().await??;
        let declared = Arc::clone(&schema);
        let (sender, batches) = channel(BATCHES_WAITING);
        let task = self.threads.spawn(async move {
            let _kept = kept;
            loop {
                let batch = rows.next().await.transpose().map_err(failed);
                let batch =
                    batch.and_then(|batch| batch.map(|batch| conformed(batch, &declared)).transpose());
                let is_last = !matches!(batch, Ok(Some(_)));
                let sent = tokio::time::timeout(patience, sender.send(batch)).await;
                if is_last || !matches!(sent, Ok(Ok(()))) {
                    return;
                }
            }
        });
        Ok(QueryRows { schema, batches, task: Task(task), is_over: false, _end: ends })
    }
}

impl Query {
    /// The columns of its rows. Clients compare them with those of the rows themselves, so all may be NULL: whether one can be is
    /// known better once the plan is optimized.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// The query with values in the places of its parameters.
    fn with(self, values: &ParameterValues, context: &SessionContext) -> Result<Self> {
        if self.parameters.is_empty() {
            return Ok(self);
        }
        let plan = values.bind(held(&self.plan).clone())?;
        Ok(Query { schema: columns(&plan, context), plan: shared(plan), parameters: self.parameters })
    }

    /// A field for each parameter of the query, in their order. One whose type the statement doesn't tell is a text.
    pub fn parameters(&self) -> Schema {
        let fields = self
            .parameters
            .iter()
            .map(|(name, kind)| Field::new(name, kind.clone().unwrap_or(DataType::Utf8), true));
        Schema::new(fields.collect::<Vec<_>>())
    }
}

/// The columns of a plan's rows. Arithmetic may have a wider type than the plan says before it is analyzed; with parameters that
/// have no values yet it can't be.
fn columns(plan: &LogicalPlan, context: &SessionContext) -> SchemaRef {
    let state = context.state();
    let analyzed = state.analyzer().execute_and_check(plan.clone(), state.config_options(), |_, _| {});
    let analyzed = analyzed.as_ref().unwrap_or(plan);
    let fields = analyzed.schema().fields().iter();
    let fields: Vec<_> = fields.map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new(fields))
}

impl QueryRows {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Ends the query when it is called; its rows end with an error then.
    pub fn stopper(&self) -> AbortHandle {
        self.task.0.abort_handle()
    }
}

impl Stream for QueryRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let Poll::Ready(next) = self.batches.poll_recv(context) else { return Poll::Pending };
        // An end that the query didn't tell of is none: it was stopped, or it panicked.
        let Some(next) = next else {
            let Poll::Ready(ended) = Pin::new(&mut self.task.0).poll(context) else { return Poll::Pending };
            self.is_over = true;
            return Poll::Ready(Some(Err(ended.err().map_or(Error::Stopped, Error::of_task))));
        };
        let next = next.transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

/// Rows in the columns that the client was given before.
fn conformed(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| strict(column, field.data_type()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| Error::of(&error, 0))?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let conformed = RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options);
    conformed.map_err(|error| Error::Sql(error.to_string()))
}

/// A task that ends with its caller.
#[derive(Debug)]
struct Task<T>(JoinHandle<T>);

impl<T> Task<T> {
    async fn join(mut self) -> Result<T> {
        (&mut self.0).await.map_err(Error::of_task)
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
