//! How a cluster divides logs among its tasks.

use std::sync::Arc;

use binlogz_archive::storage;
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::logs::Logs;
use crate::piece::Piece;

/// How a cluster divides logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Division {
    partitions: Vec<Vec<Piece>>,
}

impl Division {
    /// Divides logs into partitions of about this size.
    pub(crate) fn new(logs: &Logs, partition_size: u64) -> Result<Self, Error> {
        let mut partitions: Vec<Vec<Piece>> = Vec::new();
        let mut size = 0;
        for index in 0..logs.len() {
            let piece = piece(logs, index)?;
            match partitions.last_mut() {
                Some(partition) if size + piece.size <= partition_size => {
                    size += piece.size;
                    partition.push(piece);
                }
                _ => {
                    size = piece.size;
                    partitions.push(vec![piece]);
                }
            }
        }
        Ok(Division { partitions })
    }

    /// The pieces as rows.
    pub(crate) fn source(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = self.partitions.iter().map(|pieces| Ok(vec![Piece::rows(pieces)?]));
        let partitions = partitions.collect::<Result<Vec<_>>>()?;
        Ok(MemorySourceConfig::try_new_exec(&partitions, Piece::schema(), None)?)
    }
}

/// A log as executors find it.
fn piece(logs: &Logs, index: usize) -> Result<Piece, Error> {
    let (path, size) = logs.found(index)?;
    let shown = path.display().to_string();
    let absolute = match storage::in_object_storage(path) {
        Some(_) => path.to_owned(),
        None => std::path::absolute(path).map_err(|error| Error::Log(format!("{shown}: {error}")))?,
    };
    match absolute.into_os_string().into_string() {
        Ok(path) => Ok(Piece { path, size }),
        Err(_) => Err(Error::Log(format!("{shown}: the path is no UTF-8, so it can't be sent to executors"))),
    }
}
