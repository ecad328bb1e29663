//! A table as it was at a moment, as DataFusion plans with it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::catalog::base_tables::{BaseTables, MomentRows};
use crate::error::LogError;
use crate::logs::wanted::{WantedLogs, base_condition};
use crate::logs::{BaseBlocks, BaseCondition, BaseMoment};
use crate::scan::{LogScan, ScanPlan};
use crate::tables::TableReader;

/// A table at a moment.
#[derive(Debug)]
pub(super) struct MomentTable {
    name: (String, String),
    schema: SchemaRef,
    rows: RowsOfMoment,
}

/// Where its rows are.
#[derive(Debug)]
enum RowsOfMoment {
    Read(Arc<MomentRows>),
    /// The rows at the end of the logs; they are read when a query wants them, since listings want the columns alone.
    AtEnd(Arc<BaseTables>),
    /// The rows of this moment; they are read when it is known which ones a query wants.
    Later(Arc<BaseTables>, BaseMoment, Arc<MomentRows>),
}

impl MomentTable {
    /// A table whose rows were read.
    pub(super) fn of_rows((database, table): (&str, &str), rows: Arc<MomentRows>) -> Self {
        MomentTable {
            name: (database.to_owned(), table.to_owned()),
            schema: Arc::clone(&rows.schema),
            rows: RowsOfMoment::Read(rows),
        }
    }

    /// A table at the end of the logs, if it still had the columns of now.
    pub(super) fn at_end(
        (database, table): (&str, &str),
        schema: SchemaRef,
        tables: &Arc<BaseTables>,
    ) -> Self {
        MomentTable {
            name: (database.to_owned(), table.to_owned()),
            schema,
            rows: RowsOfMoment::AtEnd(Arc::clone(tables)),
        }
    }

    /// A table of which the columns were read.
    pub(super) fn of_columns(
        (database, table): (&str, &str),
        moment: BaseMoment,
        columns: Arc<MomentRows>,
        tables: &Arc<BaseTables>,
    ) -> Self {
        MomentTable {
            name: (database.to_owned(), table.to_owned()),
            schema: Arc::clone(&columns.schema),
            rows: RowsOfMoment::Later(Arc::clone(tables), moment, columns),
        }
    }

    /// The rows that meet these conditions, and maybe others.
    async fn rows(&self, conditions: Vec<BaseCondition>) -> Result<Arc<MomentRows>> {
        let (tables, moment) = match &self.rows {
            RowsOfMoment::Read(rows) => return Ok(Arc::clone(rows)),
            RowsOfMoment::AtEnd(tables) => (Arc::clone(tables), None),
            RowsOfMoment::Later(tables, moment, _) => (Arc::clone(tables), Some(moment.clone())),
        };
        let (database, table) = self.name.clone();
        let read = tokio::task::spawn_blocking(move || {
            let moment = moment.map_or_else(|| tables.moment_of(None), Ok)?;
            tables.rows_meeting((&database, &table), &moment, conditions)
        });
        let read = read.await.map_err(|error| DataFusionError::External(Box::new(error)))??;
        let (database, table) = &self.name;
        let lost = |why: &str| LogError(format!("{database}.{table}: {why}"));
        let rows = read.ok_or_else(|| lost("was dropped while the statement was planned"))?;
        if rows.schema != self.schema {
            let why = match &self.rows {
                RowsOfMoment::AtEnd(_) => {
                    "had other columns at the end of the logs than the server tells of: it was altered; AS OF with a moment finds those of then"
                }
                RowsOfMoment::Read(_) | RowsOfMoment::Later(..) => {
                    "was altered while the statement was planned: try again"
                }
            };
            return Err(lost(why).into());
        }
        Ok(rows)
    }

    /// The blocks of archives that were needed for its columns, once.
    fn blocks_of_columns(&self) -> BaseBlocks {
        match &self.rows {
            RowsOfMoment::Read(_) | RowsOfMoment::AtEnd(_) => BaseBlocks::default(),
            RowsOfMoment::Later(_, _, columns) => columns.take_blocks(),
        }
    }
}

#[async_trait]
impl TableProvider for MomentTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let supported = filters.iter().map(|filter| match base_condition(filter) {
            // Other rows may come with those that meet it.
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
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
        let mut conditions: Vec<_> = filters.iter().filter_map(base_condition).collect();
        conditions.sort();
        let rows = self.rows(conditions).await?;
        let mut base_blocks = self.blocks_of_columns();
        base_blocks += rows.take_blocks();
        let columns = projection.cloned().unwrap_or_else(|| (0..rows.places.len()).collect());
        let schema = Arc::new(rows.schema.project(&columns)?);
        let outputs = columns.iter().filter_map(|column| rows.places.get(*column).copied()).collect();
        let scan = ScanPlan {
            logs: Arc::clone(&rows.logs),
            reader: Arc::clone(&rows.reader) as Arc<dyn TableReader>,
            wanted: WantedLogs::of_table(&self.name.0, &self.name.1),
            outputs,
            schema,
            limit,
            workers: rows.workers,
            bytes: rows.logs.size(),
            base_blocks,
            filters: Vec::new(),
            latest: None,
            rows: None,
        };
        Ok(Arc::new(LogScan::new(scan)))
    }
}
