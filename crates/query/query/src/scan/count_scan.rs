//! Counts rows of logs by table and operation, perhaps by transaction, without making rows. An archive knows how many rows its blocks have, so
//! those aren't even read; in other logs, rows are skipped.
//!
//! It passes on counts of a first step: a group may come several times, once for each log and table.

use std::fmt;
use std::sync::Arc;

use binlogz_archive::directory::{LogDirectory, NeededDirectory};
use binlogz_archive::format::directory::DirectoryGroups;
use binlogz_arrow::moment;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::filter_record_batch;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, exec_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use tokio::sync::mpsc::Sender;

use crate::logs::unwanted::{ReadingEnd, wanted_input};
use crate::scan::{BATCHES_WAITING, Counts, ScanPlan, ScanRows, properties};
use crate::tables::{CountedColumn, CountedTables, OpenCounts, TableRowCounts};

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
    /// What an archive's directory has to tell of transactions; `None`: no column is one of theirs.
    of_transactions: Option<NeededDirectory>,
    steps: Vec<CountStep>,
    group_by: Vec<Arc<dyn PhysicalExpr>>,
    /// For each count, what must not be NULL.
    arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
    schema: SchemaRef,
}

impl CountedRows {
    /// Counts of a scan's rows; `None`: it has columns, or conditions, that are not the same for all rows of an operation in a
    /// transaction.
    pub(crate) fn new(
        scan: &ScanPlan,
        steps: Vec<CountStep>,
        group_by: Vec<Arc<dyn PhysicalExpr>>,
        arguments: Vec<Vec<Arc<dyn PhysicalExpr>>>,
        schema: SchemaRef,
    ) -> Option<Self> {
        let columns = scan.outputs.iter().map(|output| scan.reader.counted(*output));
        let columns = columns.collect::<Option<Vec<_>>>()?;
        let groups = columns.iter().filter_map(|column| column.group()).reduce(DirectoryGroups::with);
        let of_transactions = groups.map(|groups| NeededDirectory { groups, as_logged: false });
        // Conditions on transactions have columns, and are looked at for each.
        let is_fit = match of_transactions {
            None => scan.wanted.is_of_tables(),
            // Of other logs a row is made anyway.
            Some(_) => scan.logs.are_archived(),
        };
        if scan.limit.is_some() || !is_fit {
            return None;
        }
        let counts = schema.fields().iter().skip(group_by.len());
        let are_counts = counts.clone().all(|field| *field.data_type() == DataType::Int64);
        let is_known = scan.reader.is_of_rows() && are_counts && counts.count() == arguments.len();
        let scan = scan.clone();
        is_known.then_some(CountedRows { scan, columns, of_transactions, steps, group_by, arguments, schema })
    }

    /// The counts of a log, or of its transactions, as the next step takes them.
    fn batch(&self, log: &str, counted: &CountedTables) -> Result<RecordBatch> {
        let counts = &counted.counts;
        let columns = self.columns.iter().map(|column| column_of(*column, log, counted)).collect();
        let rows = counts.iter().map(|count| i64::try_from(count.rows));
        let rows = rows
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        self.counted(batch_of(&self.scan.schema, columns, counts.len())?, Int64Array::from(rows))
    }

    /// The groups of rows of the scan, each of which counts for so many.
    fn counted(&self, mut batch: RecordBatch, mut rows: Int64Array) -> Result<RecordBatch> {
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

    /// Counts the rows of a log and passes the counts on; says whether more is wanted.
    fn pass_on(&self, index: usize, counts: &Counts, rows: &Sender<Result<RecordBatch>>) -> Result<bool> {
        let send = |batch: RecordBatch| {
            counts.passed_on(batch.num_rows());
            rows.blocking_send(Ok(batch)).is_ok()
        };
        let end: Arc<dyn ReadingEnd> = Arc::new(ScanRows(rows.clone()));
        let name = self.scan.logs.name(index);
        let Some(needed) = self.of_transactions else {
            let found = self.log(index, counts, &end)?.wanted(&self.scan.wanted);
            return Ok(send(self.batch(name, &found)?));
        };
        if let Some(directory) = self.directory(index, needed, counts)? {
            let _reading = self.scan.logs.reading(index);
            let mut open = OpenCounts::default();
            for (object, number) in directory.told() {
                let block = directory.block(object, number);
                let block = block.map_err(|error| self.scan.logs.archive_error(index, &error))?;
                if !send(self.batch(name, &open.take(&block, &self.scan.wanted))?) {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let mut failed = None;
        let is_wanted = self.scan.read_log(index, counts, &end, &mut |batch| {
            let ones = Int64Array::from(vec![1; batch.num_rows()]);
            match self.counted(batch, ones) {
                Ok(batch) => send(batch),
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        });
        failed.map_or(is_wanted, Err)
    }

    /// The directory of a log's transactions; `None`: it doesn't tell all that are wanted.
    fn directory(
        &self,
        index: usize,
        needed: NeededDirectory,
        counts: &Counts,
    ) -> Result<Option<LogDirectory>> {
        let ScanPlan { logs, wanted, .. } = &self.scan;
        let mut skipped = 0;
        let directory = logs.directory(index, needed, &mut |run| {
            let may_be = wanted.may_be_in(run, true, logs);
            skipped += if may_be { 0 } else { run.block_count() };
            may_be
        })?;
        let Some(directory) = directory else { return Ok(None) };
        if !directory.tells_all() {
            return Ok(None);
        }
        counts.blocks_skipped.add(skipped);
        counts.told(&directory, directory.told());
        Ok(Some(directory))
    }

    /// Counts the rows of a log.
    fn log(&self, index: usize, counts: &Counts, end: &Arc<dyn ReadingEnd>) -> Result<TableRowCounts> {
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
        counts.blocks_told.add(blocks_told);
        counts.blocks_read.add(blocks_read);
        counts.blocks_skipped.add(blocks_skipped);
        let mut ran = told
            .read(wanted_input(input, Arc::clone(end)), *workers)
            .map_err(|error| DataFusionError::from(logs.error(index, &error)))?;
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

/// The values of a column, one for each count.
fn column_of(column: CountedColumn, log: &str, CountedTables { tables, counts }: &CountedTables) -> ArrayRef {
    let names = counts.iter().map(|count| tables.get(count.table));
    match column {
        CountedColumn::Log => texts(counts.iter().map(|_| Some(log))),
        CountedColumn::Schema => texts(names.map(|names| names.map(|[schema, _]| schema.as_str()))),
        CountedColumn::Table => texts(names.map(|names| names.map(|[_, table]| table.as_str()))),
        CountedColumn::Operation => texts(counts.iter().map(|count| Some(count.operation))),
        CountedColumn::Gtid => {
            let gtids = counts.iter().map(|count| count.transaction.gtid);
            Arc::new(gtids.map(|gtid| gtid.map(|gtid| gtid.to_string())).collect::<StringArray>())
        }
        CountedColumn::CommittedAt => moments(counts.iter().map(|count| count.transaction.committed_at)),
        CountedColumn::AppliedAt => moments(counts.iter().map(|count| count.transaction.applied_at)),
    }
}

fn texts<'a>(texts: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(texts.collect::<StringArray>())
}

/// Moments in microseconds since 1970.
fn moments(moments: impl Iterator<Item = Option<i64>>) -> ArrayRef {
    let array: TimestampMicrosecondArray = moments.collect();
    Arc::new(array.with_data_type(moment()))
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
        stream.spawn_blocking(move || {
            let ScanPlan { logs, wanted, .. } = &counted.scan;
            let _pass = logs.pass(|index| wanted.has_log(logs.name(index)));
            for index in counted.scan.wanted_logs(&counts) {
                if !counted.pass_on(index, &counts, &rows)? {
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
