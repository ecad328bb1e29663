//! A table over logs that several machines read. The logs are divided into pieces, and each partition has pieces of about
//! equal size. The pieces are rows of a source below the scan: a cluster gives each task some partitions of that source,
//! and a scan reads the pieces in its partition.
//!
//! ```text
//! PieceScan      opens the logs of the pieces and reads them    rows of the table
//!   DataSource   path, size, part: a row for each piece               partitions as planned
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStreamBuilder;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties};
use futures_util::TryStreamExt;

use crate::logs::piece::ReadPiece;
use crate::logs::{Logs, Site};
use crate::scan::{BATCHES_WAITING, Counts, ScanPlan, properties};

/// The plan that reads pieces.
#[derive(Debug)]
pub(crate) struct PieceScan {
    scan: ScanPlan,
    pieces: Arc<dyn ExecutionPlan>,
    site: Arc<Site>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl PieceScan {
    pub(crate) fn new(scan: ScanPlan, pieces: Arc<dyn ExecutionPlan>, site: Arc<Site>) -> Self {
        let partitions = pieces.properties().output_partitioning().partition_count();
        let properties = properties(scan.equivalences(), partitions);
        let metrics = ExecutionPlanMetricsSet::new();
        PieceScan { scan, pieces, site, properties, metrics }
    }

    pub(crate) fn scan(&self) -> &ScanPlan {
        &self.scan
    }
}

impl DisplayAs for PieceScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PieceScan: partitions={}", self.properties.output_partitioning().partition_count())?;
        self.scan.describe(f)
    }
}

impl ExecutionPlan for PieceScan {
    fn name(&self) -> &str {
        "PieceScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.pieces]
    }

    /// Pieces stay as they were divided.
    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([pieces]) = <[_; 1]>::try_from(children) else {
            return internal_err!("PieceScan has one child");
        };
        Ok(Arc::new(PieceScan::new(self.scan.clone(), pieces, Arc::clone(&self.site))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut stream = RecordBatchReceiverStreamBuilder::new(self.schema(), BATCHES_WAITING);
        let pieces = self.pieces.execute(partition, context)?;
        let scan = self.scan.clone();
        let site = Arc::clone(&self.site);
        let rows = stream.tx();
        let counts = Counts::new(&self.metrics, partition);
        stream.spawn(async move {
            let batches: Vec<_> = pieces.try_collect().await?;
            let pieces = batches.iter().map(ReadPiece::of_rows).collect::<Result<Vec<_>>>()?.concat();
            let read = move || {
                let began = Instant::now();
                let logs = Arc::new(Logs::of_pieces(&pieces, Arc::clone(&site), scan.logs.schema())?);
                let read = ScanPlan { logs, ..scan }.run(&rows, &counts);
                if read.is_err() {
                    // What was read of an archive before may be out of date: another attempt reads it again.
                    pieces.iter().for_each(ReadPiece::forget);
                }
                let shown: Vec<_> = pieces.iter().map(ReadPiece::shown).collect();
                let count = counts.rows();
                let seconds = began.elapsed().as_secs_f64();
                site.tell(&format!("read {count} rows in {seconds:.3} s from {}", shown.join(", ")));
                read
            };
            let read = tokio::task::spawn_blocking(read).await;
            read.map_err(|error| DataFusionError::External(Box::new(error)))?
        });
        Ok(stream.build())
    }

    /// Makes only the fields of images that the query names.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let scan = self.scan.projected(projection);
        let pieces = &self.pieces;
        let site = &self.site;
        Ok(scan.map(|scan| Arc::new(PieceScan::new(scan, Arc::clone(pieces), Arc::clone(site))) as _))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.scan.statistics()))
    }
}
