//! Counts rows of logs by table and operation, without making rows. An archive knows how many rows its blocks have, so
//! those aren't even read; in other logs, rows are skipped.
//!
//! It passes on counts of a first step: a group may come several times, once for each log and table.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};

use crate::scan::{BATCHES_WAITING, Counts, ScanPlan, properties};
use crate::tables::{CountedColumn, RowCount, TableRowCounts};

/// A step between the rows of a scan and their groups.
#[derive(Debug, Clone)]
pub(crate) enum CountStep {
    /// Leaves out rows, and then columns.
    Filter(Arc<dyn PhysicalExpr>, Option<Vec<usize>>),
    Project(Vec<Arc<dyn PhysicalExpr>>, SchemaRef),
}

impl CountStep {
    /// Whether it gives something else each time.
    pub(crate) fn is_volatile(&self) -> bool {
        match self {
            CountStep::Filter(predicate, _) => is_volatile(predicate),
            CountStep::Project(expressions, _) => expressions.iter().any(is_volatile),
        }
    }
}

/// The rows that are counted: their scan, the steps they pass, and the groups.
#[derive(Debug, Clone)]
pub(crate) struct CountedRows {
    scan: ScanPlan,
    columns: Vec<CountedColumn>,
    steps: Vec<CountStep>,
    group_by: Vec<Arc<dyn PhysicalExpr>>,
    /// For each count, what must not be NULL.
    arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    schema: SchemaRef,
}

impl CountedRows {
    /// Counts of a scan's rows; `None`: it has columns, or conditions, that are not the same for all rows of an operation.
    pub(crate) fn new(
        scan: &ScanPlan,
        steps: Vec<CountStep>,
        group_by: Vec<Arc<dyn PhysicalExpr>>,
        arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
        schema: SchemaRef,
    ) -> Option<Self> {
        if scan.limit.is_some() || !scan.wanted.is_of_tables() {
            return None;
        }
        let columns =
            scan.outputs.iter().map(|output| scan.reader.counted(*output)).collect::<Option<_>>()?;
        let counts = schema.fields().iter().skip(group_by.len());
        let are_counts = counts.clone().all(|field| *field.data_type() == DataType::Int64);
        let is_known = scan.reader.is_of_rows() && are_counts && counts.count() == arguments.len();
        is_known.then(|| CountedRows { scan: scan.clone(), columns, steps, group_by, arguments, schema })
    }

    /// The counts of a log as the next step takes them.
    fn batch(&self, log: &str, counts: &[RowCount]) -> Result<RecordBatch> {
        let of = |column: &CountedColumn| -> ArrayRef {
            let values = counts.iter().map(|count| match column {
                CountedColumn::Log => log,
                CountedColumn::Schema => &count.database,
                CountedColumn::Table => &count.table,
                CountedColumn::Operation => count.operation,
            });
            Arc::new(values.map(Some).collect::<StringArray>())
        };
        let columns = self.columns.iter().map(of).collect();
        let rows = counts.iter().map(|count| i64::try_from(count.rows));
        let rows = rows
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let mut rows = Int64Array::from(rows);
        let mut batch = batch_of(&self.scan.schema, columns, counts.len())?;
        for step in &self.steps {
            (batch, rows) = step.take(batch, rows)?;
        }
        let length = batch.num_rows();
        let evaluated = |expression: &Arc<dyn PhysicalExpr>| expression.evaluate(&batch)?.into_array(length);
        let mut columns = self.group_by.iter().map(&evaluated).collect::<Result<Vec<_>>>()?;
        for arguments in &self.arguments {
            let arguments = arguments.iter().map(&evaluated).collect::<Result<Vec<_>>>()?;
            let is_counted = |row: usize| arguments.iter().all(|argument| argument.is_valid(row));
            let counts =
                rows.values().iter().enumerate().map(|(row, count)| if is_counted(row) { *count } else { 0 });
            columns.push(Arc::new(counts.collect::<Int64Array>()));
        }
        batch_of(&self.schema, columns, length)
    }

    /// Counts the rows of a log.
    fn log(
        &self,
        index: usize,
        counts: &Counts,
        counted: &datafusion::physical_plan::metrics::Count,
    ) -> Result<TableRowCounts> {
        let ScanPlan { logs, wanted, workers, .. } = &self.scan;
        let mut told = TableRowCounts::default();
        let mut blocks_told = 0;
        let mut blocks_read = 0;
        let mut blocks_skipped = 0;
        let (input, is_whole) = logs.open_parts(index, &mut |run| {
            let blocks = run.block_count();
            if !wanted.may_be_in(run, true, logs) {
                blocks_skipped += blocks;
                return false;
            }
            if told.add_told(run) {
                blocks_told += blocks;
                return false;
            }
            blocks_read += blocks;
            true
        })?;
        if is_whole {
            // It couldn't be given in parts, so everything in it is read.
            blocks_read += std::mem::take(&mut blocks_told) + std::mem::take(&mut blocks_skipped);
            told = TableRowCounts::default();
        }
        counted.add(blocks_told);
        counts.blocks_read.add(blocks_read);
        counts.blocks_skipped.add(blocks_skipped);
        let mut ran =
            told.read(input, *workers).map_err(|error| DataFusionError::from(logs.error(index, &error)))?;
        ran.unread.retain(|unread| {
            let has_name =
                |(database, table): (&str, &str)| wanted.has_name(database.as_bytes(), table.as_bytes());
            unread.table.is_none_or(has_name)
        });
        self.scan.ended(index, &ran, counts)?;
        Ok(told)
    }
}

impl CountStep {
    fn take(&self, batch: RecordBatch, rows: Int64Array) -> Result<(RecordBatch, Int64Array)> {
        match self {
            CountStep::Filter(predicate, columns) => {
                let is_met = predicate.evaluate(&batch)?.into_array(batch.num_rows())?;
                let Some(is_met) = is_met.as_boolean_opt() else {
                    return exec_err!("a condition that is no boolean");
                };
                let batch = filter_record_batch(&batch, is_met)?;
                let rows = datafusion::arrow::compute::filter(&rows, is_met)?;
                let batch = match columns {
                    Some(columns) => batch.project(columns)?,
                    None => batch,
                };
                Ok((batch, rows.as_primitive().clone()))
            }
            CountStep::Project(expressions, schema) => {
                let length = batch.num_rows();
                let columns =
                    expressions.iter().map(|expression| expression.evaluate(&batch)?.into_array(length));
                Ok((batch_of(schema, columns.collect::<Result<_>>()?, length)?, rows))
            }
        }
    }
}

fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    // A literal may be of a field that can be NULL elsewhere, and has other metadata.
    let fields = schema.fields().iter().zip(&columns);
    let fields = fields
        .map(|(field, column)| Field::new(field.name(), column.data_type().clone(), field.is_nullable()));
    let is_same =
        schema.fields().iter().zip(&columns).all(|(field, column)| field.data_type() == column.data_type());
    let schema = if is_same { Arc::clone(schema) } else { Arc::new(Schema::new(fields.collect::<Vec<_>>())) };
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// The plan.
#[derive(Debug)]
pub(crate) struct CountScan {
    counted: CountedRows,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CountScan {
    pub(crate) fn new(counted: CountedRows) -> Self {
        let properties = properties(EquivalenceProperties::new(Arc::clone(&counted.schema)), 1);
        CountScan { counted, properties, metrics: ExecutionPlanMetricsSet::new() }
    }
}

impl DisplayAs for CountScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CountScan: logs={}", self.counted.scan.logs.len())?;
        self.counted.scan.describe(f)?;
        for step in &self.counted.steps {
            if let CountStep::Filter(predicate, _) = step {
                write!(f, ", where={predicate}")?;
            }
        }
        let groups: Vec<_> = self.counted.group_by.iter().map(ToString::to_string).collect();
        write!(f, ", by=[{}]", groups.join(" "))
    }
}

impl ExecutionPlan for CountScan {
    fn name(&self) -> &str {
        "CountScan"
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
        let counted = self.counted.clone();
        let rows = stream.tx();
        let counts = Counts::new(&self.metrics, partition);
        let told = MetricBuilder::new(&self.metrics).counter("blocks_told", partition);
        stream.spawn_blocking(move || {
            let ScanPlan { logs, wanted, .. } = &counted.scan;
            let _pass = logs.pass(|index| wanted.has_log(logs.name(index)));
            for index in counted.scan.wanted_logs(&counts) {
                let found = counted.log(index, &counts, &told)?.wanted(wanted);
                let batch = counted.batch(logs.name(index), &found)?;
                counts.passed_on(batch.num_rows());
                if rows.blocking_send(Ok(batch)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(stream.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
