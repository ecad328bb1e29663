//! A table over logs, as DataFusion plans with it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use tokio::sync::OnceCell;

use crate::logs::wanted::WantedLogs;
use crate::logs::{BaseBlocks, Logs};
use crate::scan::{LogScan, ScanPlan};
use crate::tables::{MadeColumn, TableReader};

/// A table over logs.
#[derive(Debug)]
pub(crate) struct LogTable {
    logs: Arc<Logs>,
    reader: Arc<dyn TableReader>,
    /// Everything it has of them, without any condition.
    all: WantedLogs,
    workers: usize,
    /// About how many rows it has, where archives tell.
    rows: OnceCell<Option<u64>>,
}

impl LogTable {
    pub(crate) fn new(
        logs: Arc<Logs>,
        reader: Arc<dyn TableReader>,
        all: WantedLogs,
        workers: usize,
    ) -> Self {
        LogTable { logs, reader, all, workers, rows: OnceCell::new() }
    }

    /// About how many rows it has, where archives tell. Of a table with a row for each transaction that is what decides whether a join keeps
    /// it as a whole, and needn't divide the rows of the other side by their keys.
    async fn told_rows(&self) -> Option<u64> {
        if self.reader.is_of_rows() || !self.reader.is_divided() || !self.logs.are_archived() {
            return None;
        }
        let count = || async {
            let (logs, size) = (Arc::clone(&self.logs), self.reader.row_size());
            // Object storage is waited for.
            tokio::task::spawn_blocking(move || logs.transaction_count(size)).await.ok()
        };
        *self.rows.get_or_init(count).await
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
        let scan = ScanPlan {
            logs: Arc::clone(&self.logs),
            reader: Arc::clone(&self.reader),
            wanted,
            outputs: projection.into_iter().map(MadeColumn::Column).collect(),
            schema,
            limit,
            workers: self.workers,
            bytes: self.logs.size(),
            base_blocks: BaseBlocks::default(),
            filters: Vec::new(),
            latest: None,
            rows: self.told_rows().await,
        };
        Ok(Arc::new(LogScan::new(scan)))
    }
}
