//! A table as it was at a moment, as DataFusion plans with it.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::catalog::base_tables::{BaseTables, MomentRows};
use crate::error::LogError;
use crate::logs::wanted::WantedLogs;
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

    async fn rows(&self) -> Result<Arc<MomentRows>> {
        let tables = match &self.rows {
            RowsOfMoment::Read(rows) => return Ok(Arc::clone(rows)),
            RowsOfMoment::AtEnd(tables) => Arc::clone(tables),
        };
        let (database, table) = self.name.clone();
        let read = tokio::task::spawn_blocking(move || tables.rows((&database, &table), None)).await;
        let read = read.map_err(|error| DataFusionError::External(Box::new(error)))??;
        let (database, table) = &self.name;
        let lost = |why: &str| LogError(format!("{database}.{table}: {why}"));
        let rows = read.ok_or_else(|| lost("was dropped while the statement was planned"))?;
        if rows.schema != self.schema {
            let why = "had other columns at the end of the logs than the server tells of: it was altered; AS OF with a moment finds those of then";
            return Err(lost(why).into());
        }
        Ok(rows)
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

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = self.rows().await?;
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
        };
        Ok(Arc::new(LogScan::new(scan)))
    }
}
