//! A table over logs as DataFusion reads it. One thread goes through the logs in order and decodes on all cores; what it has
//! waits in a short queue, so memory stays bounded, and a query that wants no more ends it.

use std::fmt;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use binlogz_flow::Error as FlowError;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_expr::{EquivalenceProperties, ScalarFunctionExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use tokio::sync::mpsc::Sender;

use crate::logs::Logs;
use crate::tables::{Job, Output, Reader};
use crate::wanted::Wanted;

/// Batches that wait for the query.
const BATCHES_WAITING: usize = 2;

/// A table over logs.
#[derive(Debug)]
pub(crate) struct LogTable {
    logs: Arc<Logs>,
    reader: Arc<dyn Reader>,
    /// Everything it has of them, without any condition.
    all: Wanted,
    workers: usize,
}

impl LogTable {
    pub(crate) fn new(logs: Arc<Logs>, reader: Arc<dyn Reader>, all: Wanted, workers: usize) -> Self {
        LogTable { logs, reader, all, workers }
    }
}

#[async_trait]
impl TableProvider for LogTable {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = filters.iter().map(|filter| match self.all.clone().narrow(filter) {
            // Rows are checked again: a block may have others too.
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        });
        Ok(supported.collect())
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut wanted = self.all.clone();
        for filter in filters {
            wanted.narrow(filter);
        }
        let schema = self.reader.schema();
        let projection = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        let schema = Arc::new(schema.project(&projection)?);
        Ok(Arc::new(LogScan::new(Scan {
            logs: Arc::clone(&self.logs),
            reader: Arc::clone(&self.reader),
            wanted,
            outputs: projection.into_iter().map(Output::Column).collect(),
            schema,
            limit,
            workers: self.workers,
        })))
    }
}

/// A reading of a table.
#[derive(Debug, Clone)]
struct Scan {
    logs: Arc<Logs>,
    reader: Arc<dyn Reader>,
    wanted: Wanted,
    outputs: Vec<Output>,
    schema: SchemaRef,
    limit: Option<usize>,
    workers: usize,
}

/// The plan that reads it.
#[derive(Debug)]
struct LogScan {
    scan: Scan,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LogScan {
    fn new(scan: Scan) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&scan.schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        LogScan { scan, properties: Arc::new(properties), metrics: ExecutionPlanMetricsSet::new() }
    }

    /// The table's column that an expression stands for, or the field of one.
    fn output(&self, expression: &dyn PhysicalExpr) -> Option<Output> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            return self.scan.outputs.get(column.index()).copied();
        }
        let call =
            expression.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.name() == "get_field")?;
        let [image, name] = call.args() else { return None };
        let Some(Output::Column(column)) = self.output(image.as_ref()) else { return None };
        let ScalarValue::Utf8(Some(name)) = name.downcast_ref::<Literal>()?.value() else { return None };
        let schema = self.scan.reader.schema();
        let DataType::Struct(fields) = schema.fields().get(column)?.data_type() else { return None };
        Some(Output::Field(column, fields.iter().position(|field| field.name() == name)?))
    }
}

impl DisplayAs for LogScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogScan: logs={}", self.scan.logs.len())?;
        if self.scan.wanted != Wanted::default() {
            write!(f, ", {}", self.scan.wanted)?;
        }
        let columns: Vec<_> = self.scan.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, ", columns=[{}]", columns.join(" "))?;
        match self.scan.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for LogScan {
    fn name(&self) -> &str {
        "LogScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut stream = RecordBatchReceiverStreamBuilder::new(self.schema(), BATCHES_WAITING);
        let (scan, rows) = (self.scan.clone(), stream.tx());
        let counts = Counts::new(&self.metrics, partition);
        stream.spawn_blocking(move || scan.run(&rows, &counts));
        Ok(stream.build())
    }

    /// Makes only the fields of images that the query names.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let outputs = projection.expr().iter().map(|named| self.output(named.expr.as_ref()));
        let Some(outputs) = outputs.collect::<Option<Vec<_>>>() else { return Ok(None) };
        let scan = Scan { outputs, schema: projection.schema(), ..self.scan.clone() };
        Ok(Some(Arc::new(LogScan::new(scan))))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// The counts that EXPLAIN ANALYZE shows.
struct Counts {
    rows: BaselineMetrics,
    bytes_read: datafusion::physical_plan::metrics::Count,
    blocks_read: datafusion::physical_plan::metrics::Count,
    blocks_skipped: datafusion::physical_plan::metrics::Count,
    logs_skipped: datafusion::physical_plan::metrics::Count,
}

impl Counts {
    fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Counts {
            rows: BaselineMetrics::new(metrics, partition),
            bytes_read: count("bytes_read"),
            blocks_read: count("blocks_read"),
            blocks_skipped: count("blocks_skipped"),
            logs_skipped: count("logs_skipped"),
        }
    }
}

impl Scan {
    /// Reads the logs, one after the other, until they end or nobody wants more.
    fn run(&self, rows: &Sender<Result<RecordBatch>>, counts: &Counts) -> Result<()> {
        let mut left = self.limit.unwrap_or(usize::MAX);
        for index in 0..self.logs.len() {
            if !self.wanted.has_log(self.logs.name(index)) {
                counts.logs_skipped.add(1);
                continue;
            }
            let is_of_rows = self.reader.is_of_rows();
            let input = self.logs.open(index, &mut |run| {
                let may_be = self.wanted.may_be_in(run, is_of_rows, &self.logs);
                let count = if may_be { &counts.blocks_read } else { &counts.blocks_skipped };
                count.add(run.block_count());
                may_be
            })?;
            let mut is_over = false;
            let mut sink = |batch: RecordBatch| {
                let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
                left -= batch.num_rows();
                counts.rows.record_output(batch.num_rows());
                is_over = rows.blocking_send(Ok(batch)).is_err() || left == 0;
                match is_over {
                    // A way out of the pipeline.
                    true => Err(FlowError::Output(io::Error::from(io::ErrorKind::BrokenPipe).into())),
                    false => Ok(()),
                }
            };
            let job = Job {
                input,
                logs: &self.logs,
                log: self.logs.name(index),
                wanted: &self.wanted,
                outputs: &self.outputs,
                schema: &self.schema,
                workers: self.workers,
            };
            let summary = self.reader.read(job, &mut sink);
            if is_over {
                return Ok(());
            }
            let summary = summary.map_err(|error| DataFusionError::from(self.logs.error(index, &error)))?;
            counts.bytes_read.add(usize::try_from(summary.bytes_read).unwrap_or(usize::MAX));
            self.logs.ended(index, &summary);
        }
        Ok(())
    }
}
