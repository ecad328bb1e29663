//! A table over logs as DataFusion reads it. One thread goes through the logs in order and decodes on all cores. Its
//! batches wait in a short queue, so memory stays bounded. A query that needs no more rows ends the thread.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

use binlogz_archive::directory::{DirectoryStep, LogDirectory};
use binlogz_flow::Error as FlowError;
use binlogz_flow::events::RunSummary;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue, Statistics};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr, Literal};
use datafusion::physical_expr::{EquivalenceProperties, ScalarFunctionExpr};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::{RecordBatchReceiverStreamBuilder, RecordBatchStreamAdapter};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc::Sender;

use crate::logs::unwanted::{ReadingEnd, wanted_input};
use crate::logs::wanted::WantedLogs;
use crate::logs::{BaseBlocks, Logs};
use crate::scan::demand::{BatchDemand, DemandedStream};
use crate::scan::properties;
use crate::tables::{MadeColumn, ReadJob, TableReader};

/// Batches that wait for the query.
pub(crate) const BATCHES_WAITING: usize = 2;

/// The rows of a scan, which nobody wants any more once those who take them are gone.
pub(crate) struct ScanRows(pub(crate) Sender<Result<RecordBatch>>);

impl ReadingEnd for ScanRows {
    fn is_over(&self) -> bool {
        self.0.is_closed()
    }
}

/// A reading of a table.
#[derive(Debug, Clone)]
pub(crate) struct ScanPlan {
    pub(crate) logs: Arc<Logs>,
    pub(crate) reader: Arc<dyn TableReader>,
    pub(crate) wanted: WantedLogs,
    pub(crate) outputs: Vec<MadeColumn>,
    pub(crate) schema: SchemaRef,
    pub(crate) limit: Option<usize>,
    pub(crate) workers: usize,
    /// Bytes of the logs, those in archives unpacked; `None`: unknown.
    pub(crate) bytes: Option<u64>,
    /// The blocks of archives that were needed before, to tell what the logs are.
    pub(crate) base_blocks: BaseBlocks,
    /// Conditions that other parts of the plan tell while it runs, which check rows themselves: what can't meet them needn't be read.
    pub(crate) filters: Vec<Arc<dyn PhysicalExpr>>,
    /// The query keeps as many rows of the latest transactions.
    pub(crate) latest: Option<usize>,
    /// About how many rows the table has, where archives tell; `None`: its bytes say.
    pub(crate) rows: Option<u64>,
}

/// The plan that reads it.
#[derive(Debug)]
pub(crate) struct LogScan {
    scan: ScanPlan,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl LogScan {
    pub(crate) fn new(scan: ScanPlan) -> Self {
        let properties = properties(scan.equivalences(), 1);
        LogScan { scan, properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    pub(crate) fn scan(&self) -> &ScanPlan {
        &self.scan
    }
}

impl DisplayAs for LogScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogScan: logs={}", self.scan.logs.len())?;
        self.scan.describe(f)
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
        take: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        // Who tells a filter looks here whether anybody reads it.
        for filter in &self.scan.filters {
            if let TreeNodeRecursion::Stop = take(filter)? {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let scan = self.scan.clone();
        let counts = Counts::new(&self.metrics, partition);
        if !scan.reads_by_parts() {
            return Ok(scan.begin(counts, None));
        }
        let schema = self.schema();
        let begin = async move {
            let demand = Arc::new(BatchDemand::default());
            let batches = scan.begin(counts, Some(Arc::clone(&demand)));
            DemandedStream { batches, demand }
        };
        // Not before it is asked for rows: a join has told its filter then.
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream::once(begin).flatten())))
    }

    /// Takes the filters that other parts of the plan tell while it runs. They stay there as well.
    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let unmet = vec![PushedDown::No; result.parent_filters.len()];
        let told = FilterPushdownPropagation::with_parent_pushdown_result(unmet);
        let filters = result.parent_filters.into_iter().map(|filter| filter.filter);
        let filters: Vec<_> = filters.filter(is_told_later).collect();
        if filters.is_empty() || !matches!(phase, FilterPushdownPhase::Post) || !self.scan.reader.is_divided()
        {
            return Ok(told);
        }
        let scan = LogScan::new(ScanPlan { filters, ..self.scan.clone() });
        Ok(told.with_updated_node(Arc::new(scan)))
    }

    /// Makes only the fields of images that the query names.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        // They name columns by their places.
        let scan = self.scan.filters.is_empty().then(|| self.scan.projected(projection)).flatten();
        Ok(scan.map(|scan| Arc::new(LogScan::new(scan)) as _))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.scan.statistics()))
    }
}

/// Whether a filter has parts that are told while the plan runs.
fn is_told_later(filter: &Arc<dyn PhysicalExpr>) -> bool {
    let mut is_later = false;
    let looked = filter.apply(|part| {
        is_later |= part.downcast_ref::<DynamicFilterPhysicalExpr>().is_some();
        Ok(if is_later { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    looked.is_ok() && is_later
}

/// The counts that EXPLAIN ANALYZE shows.
#[derive(Clone)]
pub(crate) struct Counts {
    rows: BaselineMetrics,
    bytes_read: Count,
    pub(crate) blocks_read: Count,
    pub(crate) blocks_skipped: Count,
    /// Blocks of which the columns of conditions were unpacked, to find whether they have rows that meet them.
    blocks_searched: Count,
    /// Blocks, among those read, of which only some columns were unpacked.
    blocks_picked: Count,
    /// Blocks that weren't read since their archive tells their rows.
    pub(crate) blocks_told: Count,
    logs_skipped: Count,
}

impl Counts {
    /// These blocks were needed before the logs could be read.
    fn needed_before(&self, blocks: BaseBlocks) {
        self.blocks_read.add(blocks.read);
        self.blocks_searched.add(blocks.searched);
        self.blocks_skipped.add(blocks.skipped);
    }

    /// These counts, but for the blocks that are passed over.
    pub(super) fn without_skipped(&self) -> Self {
        Counts { blocks_skipped: Count::new(), ..self.clone() }
    }

    /// Rows were passed on.
    pub(crate) fn passed_on(&self, rows: usize) {
        self.rows.record_output(rows);
    }

    /// The directory of a log tells the transactions of these blocks.
    pub(crate) fn told(&self, directory: &LogDirectory, blocks: impl Iterator<Item = (usize, u32)>) {
        for (object, number) in blocks {
            if directory.opens(object, number) {
                self.blocks_read.add(1);
                self.blocks_picked.add(1);
            } else {
                self.blocks_told.add(1);
            }
        }
    }

    pub(crate) fn new(metrics: &ExecutionPlanMetricsSet, partition: usize) -> Self {
        let count = |name: &'static str| MetricBuilder::new(metrics).counter(name, partition);
        Counts {
            rows: BaselineMetrics::new(metrics, partition),
            bytes_read: count("bytes_read"),
            blocks_read: count("blocks_read"),
            blocks_skipped: count("blocks_skipped"),
            blocks_searched: count("blocks_searched"),
            blocks_picked: count("blocks_picked"),
            blocks_told: count("blocks_told"),
            logs_skipped: count("logs_skipped"),
        }
    }
}

/// A batch was passed on, or nobody reads it: a way out of the pipeline.
fn passed(is_wanted: bool) -> std::result::Result<(), FlowError> {
    match is_wanted {
        true => Ok(()),
        false => Err(FlowError::Output(io::Error::from(io::ErrorKind::BrokenPipe).into())),
    }
}

impl ScanPlan {
    /// The table's column that an expression stands for, or the field of one.
    pub(super) fn output(&self, expression: &dyn PhysicalExpr) -> Option<MadeColumn> {
        if let Some(column) = expression.downcast_ref::<Column>() {
            return self.outputs.get(column.index()).copied();
        }
        let call =
            expression.downcast_ref::<ScalarFunctionExpr>().filter(|call| call.name() == "get_field")?;
        let [image, name] = call.args() else { return None };
        let Some(MadeColumn::Column(column)) = self.output(image.as_ref()) else { return None };
        let ScalarValue::Utf8(Some(name)) = name.downcast_ref::<Literal>()?.value() else { return None };
        let schema = self.reader.schema();
        let DataType::Struct(fields) = schema.fields().get(column)?.data_type() else { return None };
        Some(MadeColumn::Field(column, fields.iter().position(|field| field.name() == name)?))
    }

    /// About how many rows the table has. A join holds the side with fewer rows in memory: `transactions` rather than `changes`,
    /// whichever a query names first.
    pub(crate) fn statistics(&self) -> Statistics {
        let rows = self.rows.or_else(|| self.bytes.map(|bytes| bytes / self.reader.row_size()));
        let rows = rows.map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
        let num_rows = rows.map_or(Precision::Absent, Precision::Inexact);
        Statistics { num_rows, ..Statistics::new_unknown(&self.schema) }
    }

    /// Which of the columns are equal. A field that a query needs for a join and for a group is there twice, and rows
    /// divided by one of them are also divided by the other.
    pub(crate) fn equivalences(&self) -> EquivalenceProperties {
        let mut equal = EquivalenceProperties::new(Arc::clone(&self.schema));
        let column = |index: usize| Arc::new(Column::new(self.schema.field(index).name(), index)) as _;
        for (index, output) in self.outputs.iter().enumerate() {
            let first = self.outputs.iter().position(|other| other == output);
            if let Some(first) = first.filter(|first| *first < index) {
                // Only an order could contradict, and there is none.
                let _ = equal.add_equal_conditions(column(first), column(index));
            }
        }
        equal
    }

    /// This scan with the outputs of a projection; `None`: the projection computes something.
    pub(crate) fn projected(&self, projection: &ProjectionExec) -> Option<ScanPlan> {
        let outputs = projection
            .expr()
            .iter()
            .map(|named| self.output(named.expr.as_ref()))
            .collect::<Option<Vec<_>>>()?;
        Some(ScanPlan { outputs, schema: projection.schema(), ..self.clone() })
    }

    /// For EXPLAIN: all but which logs are read.
    pub(crate) fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.wanted != WantedLogs::default() {
            write!(f, ", {}", self.wanted)?;
        }
        let columns: Vec<_> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        write!(f, ", columns=[{}]", columns.join(" "))?;
        let counted = self.outputs.iter().zip(&columns);
        let counted = counted.filter(|(output, _)| matches!(output, MadeColumn::Presence(..)));
        let counted: Vec<_> = counted.map(|(_, name)| *name).collect();
        if !counted.is_empty() {
            write!(f, ", counted=[{}]", counted.join(" "))?;
        }
        if let Some(latest) = self.latest {
            write!(f, ", latest={latest}")?;
        }
        if !self.filters.is_empty() {
            let filters: Vec<_> = self.filters.iter().map(ToString::to_string).collect();
            write!(f, ", filters=[{}]", filters.join(" "))?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }

    /// Begins to read the logs. `demand` is told of what is given.
    fn begin(self, counts: Counts, demand: Option<Arc<BatchDemand>>) -> SendableRecordBatchStream {
        let mut stream = RecordBatchReceiverStreamBuilder::new(Arc::clone(&self.schema), BATCHES_WAITING);
        let rows = stream.tx();
        stream.spawn_blocking(move || self.run(&rows, &counts, demand.as_deref()));
        stream.build()
    }

    /// Reads the logs, one after the other, until they end or nobody wants more.
    fn run(
        &self,
        rows: &Sender<Result<RecordBatch>>,
        counts: &Counts,
        demand: Option<&BatchDemand>,
    ) -> Result<()> {
        let end: Arc<dyn ReadingEnd> = Arc::new(ScanRows(rows.clone()));
        counts.needed_before(self.base_blocks);
        let _pass = self.logs.pass(|index| self.wanted.has_log(self.logs.name(index)));
        let mut left = self.limit.unwrap_or(usize::MAX);
        let mut send = |batch: RecordBatch| {
            let batch = if batch.num_rows() > left { batch.slice(0, left) } else { batch };
            left -= batch.num_rows();
            counts.rows.record_output(batch.num_rows());
            if let Some(demand) = demand {
                demand.gave();
            }
            rows.blocking_send(Ok(batch)).is_ok() && left > 0
        };
        if let Some(demand) = demand {
            return self.read_by_parts(counts, (&end, demand), &mut send);
        }
        for index in self.wanted_logs(counts) {
            if !self.read_log(index, counts, &end, &mut send)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads a log; `send` says whether more is wanted, and so does this.
    pub(crate) fn read_log(
        &self,
        index: usize,
        counts: &Counts,
        end: &Arc<dyn ReadingEnd>,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool> {
        self.read_wanted((index, &self.wanted), counts, end, send)
    }

    /// Reads what is wanted of a log; says whether more is wanted.
    pub(super) fn read_wanted(
        &self,
        (index, of_log): (usize, &WantedLogs),
        counts: &Counts,
        end: &Arc<dyn ReadingEnd>,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool> {
        let mut is_over = false;
        let mut pass = |batch: RecordBatch| {
            is_over = !send(batch);
            !is_over
        };
        let wanted = self.wanted_of((index, of_log), counts, end)?;
        let job = self.job(index, &wanted, end);
        if let Some(part) = self.reader.open_picked((&self.logs, index), &wanted, &self.outputs)? {
            let _reading = self.logs.reading(index);
            counts.blocks_read.add(part.blocks_read);
            counts.blocks_skipped.add(part.blocks_skipped);
            counts.blocks_picked.add(part.blocks_read);
            let read = self.reader.read_picked(&part, &job, &mut pass);
            if is_over || end.is_over() {
                return Ok(false);
            }
            let read = read.map_err(|error| DataFusionError::from(self.logs.archive_error(index, &error)))?;
            counts.bytes_read.add(usize::try_from(read).unwrap_or(usize::MAX));
            return Ok(true);
        }
        if let Some(directory) = self.directory((index, &wanted), counts)? {
            return self.read_directory(&directory, &job, counts, &mut pass);
        }
        let is_of_rows = self.reader.is_of_rows();
        let input = self.logs.open(index, &mut |run| {
            let may_be = wanted.may_be_in(run, is_of_rows, &self.logs);
            let count = if may_be { &counts.blocks_read } else { &counts.blocks_skipped };
            count.add(run.block_count());
            may_be
        })?;
        let input = wanted_input(input, Arc::clone(end));
        let ran = self.reader.read(job, input, &mut |batch| passed(pass(batch)));
        if is_over || end.is_over() {
            return Ok(false);
        }
        let ran = ran.map_err(|error| DataFusionError::from(self.logs.error(index, &error)))?;
        self.ended(index, &ran, counts)?;
        Ok(true)
    }

    fn job<'a>(&'a self, index: usize, wanted: &'a WantedLogs, end: &'a Arc<dyn ReadingEnd>) -> ReadJob<'a> {
        ReadJob {
            logs: &self.logs,
            index,
            log: self.logs.name(index),
            wanted,
            outputs: &self.outputs,
            schema: &self.schema,
            workers: self.workers,
            end,
        }
    }

    /// What is wanted of a log: where conditions name values, only the parts that have them.
    fn wanted_of<'w>(
        &self,
        (index, wanted): (usize, &'w WantedLogs),
        counts: &Counts,
        end: &Arc<dyn ReadingEnd>,
    ) -> Result<Cow<'w, WantedLogs>> {
        let conditions = wanted.narrow_conditions();
        if conditions.is_empty() {
            return Ok(Cow::Borrowed(wanted));
        }
        match self.reader.meeting_runs(&self.job(index, wanted, end), &conditions) {
            Ok(Some(found)) => {
                counts.blocks_searched.add(found.blocks_looked_into);
                counts.bytes_read.add(usize::try_from(found.bytes_read).unwrap_or(usize::MAX));
                Ok(Cow::Owned(wanted.within(found.starts)))
            }
            Ok(None) => Ok(Cow::Borrowed(wanted)),
            // Nobody wants the rest, which is said where it is read.
            Err(_) if end.is_over() => Ok(Cow::Borrowed(wanted)),
            Err(error) => Err(error),
        }
    }

    /// The directory of an archived log's transactions, where that is enough; blocks that aren't wanted are counted.
    fn directory(
        &self,
        (index, wanted): (usize, &WantedLogs),
        counts: &Counts,
    ) -> Result<Option<LogDirectory>> {
        let Some(needed) = self.reader.needed_directory(&self.outputs) else { return Ok(None) };
        let is_of_rows = self.reader.is_of_rows();
        let mut skipped = 0;
        let directory = self.logs.directory(index, needed, &mut |run| {
            let may_be = wanted.may_be_in(run, is_of_rows, &self.logs);
            skipped += if may_be { 0 } else { run.block_count() };
            may_be
        })?;
        counts.blocks_skipped.add(if directory.is_some() { skipped } else { 0 });
        Ok(directory)
    }

    /// Reads what the directory tells, and between it the runs that it doesn't; says whether more is wanted.
    fn read_directory(
        &self,
        directory: &LogDirectory,
        job: &ReadJob<'_>,
        counts: &Counts,
        send: &mut dyn FnMut(RecordBatch) -> bool,
    ) -> Result<bool> {
        let is_of_rows = self.reader.is_of_rows();
        let reading = self.logs.reading(job.index);
        for step in directory.steps() {
            let mut is_over = false;
            let mut sink = |batch: RecordBatch| {
                is_over = !send(batch);
                passed(!is_over)
            };
            let ran = match step {
                DirectoryStep::Told(blocks) => {
                    counts.told(directory, blocks.iter().copied());
                    self.reader.read_directory(directory, blocks, job, &mut sink).map(|()| None)
                }
                DirectoryStep::Read(range) => {
                    let (input, _) = self.logs.open_within(job.index, reading.as_ref(), &mut |run| {
                        let is_read =
                            range.contains(&run.start()) && job.wanted.may_be_in(run, is_of_rows, &self.logs);
                        counts.blocks_read.add(if is_read { run.block_count() } else { 0 });
                        is_read
                    })?;
                    self.reader.read(*job, wanted_input(input, Arc::clone(job.end)), &mut sink).map(Some)
                }
            };
            if is_over || job.end.is_over() {
                return Ok(false);
            }
            let ran = ran.map_err(|error| DataFusionError::from(self.logs.error(job.index, &error)))?;
            ran.map_or(Ok(()), |ran| self.ended(job.index, &ran, counts))?;
        }
        Ok(true)
    }

    /// The indexes of the logs that are wanted. Those passed over are counted.
    pub(crate) fn wanted_logs(&self, counts: &Counts) -> impl Iterator<Item = usize> {
        (0..self.logs.len()).filter(|&index| {
            let is_wanted = self.wanted.has_log(self.logs.name(index));
            counts.logs_skipped.add(usize::from(!is_wanted));
            is_wanted
        })
    }

    /// A log was read.
    pub(crate) fn ended(&self, index: usize, ran: &RunSummary, counts: &Counts) -> Result<()> {
        counts.bytes_read.add(usize::try_from(ran.read.bytes_read).unwrap_or(usize::MAX));
        Ok(self.logs.ended(index, ran)?)
    }
}
