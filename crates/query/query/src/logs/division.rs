//! Divides logs among the tasks of a cluster. A log of an archive is itself divided by its blocks: a block belongs to the
//! part of the log in which it begins, so the client need not know where that is.

use std::sync::Arc;

use binlogz_archive::{input, storage};
use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::ExecutionPlan;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::logs::Logs;
use crate::logs::piece::{ArchivedPart, ReadPiece};

/// A smaller part of a log costs more to hand out than to read.
const PART_SIZE_MIN: u64 = 32 << 10;

/// How a cluster divides the logs for its tables.
#[derive(Debug, Clone)]
pub(crate) struct Divisions {
    /// For rows of transactions.
    pub(crate) by_block: Arc<Division>,
    /// For a table that also has rows of events between transactions, which every part of a log repeats.
    pub(crate) by_log: Arc<Division>,
}

impl Divisions {
    /// Divides logs into partitions of about this size.
    pub(crate) fn new(logs: &Logs, partition_size: u64) -> Result<Self, Error> {
        let mut parts = Vec::new();
        let mut whole = Vec::new();
        for index in 0..logs.len() {
            let log = whole_log(logs, index)?;
            divide(&log, partition_size.max(PART_SIZE_MIN), &mut parts)?;
            whole.push(log);
        }
        let of = |pieces| Arc::new(Division { partitions: fill(pieces, partition_size) });
        Ok(Divisions { by_block: of(parts), by_log: of(whole) })
    }
}

/// How a cluster divides logs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Division {
    partitions: Vec<Vec<ReadPiece>>,
}

impl Division {
    /// Bytes of all logs.
    pub(crate) fn bytes(&self) -> u64 {
        self.partitions.iter().flatten().map(ReadPiece::bytes).fold(0, u64::saturating_add)
    }

    /// The pieces as rows.
    pub(crate) fn source(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = self
            .partitions
            .iter()
            .map(|pieces| Ok(vec![ReadPiece::rows(pieces)?]))
            .collect::<Result<Vec<_>>>()?;
        Ok(MemorySourceConfig::try_new_exec(&partitions, ReadPiece::schema(), None)?)
    }
}

/// Puts pieces into partitions of about this size.
fn fill(pieces: Vec<ReadPiece>, partition_size: u64) -> Vec<Vec<ReadPiece>> {
    let mut partitions: Vec<Vec<ReadPiece>> = Vec::new();
    let mut filled = 0;
    for piece in pieces {
        let bytes = piece.bytes();
        match partitions.last_mut() {
            Some(partition) if bytes <= partition_size.saturating_sub(filled) => {
                filled += bytes;
                partition.push(piece);
            }
            _ => {
                filled = bytes;
                partitions.push(vec![piece]);
            }
        }
    }
    partitions
}

/// A log as executors find it.
fn whole_log(logs: &Logs, index: usize) -> Result<ReadPiece, Error> {
    let (path, size) = logs.found(index)?;
    let shown = path.display().to_string();
    let absolute = match storage::in_object_storage(path) {
        Some(_) => path.to_owned(),
        None => std::path::absolute(path).map_err(|error| Error::Log(format!("{shown}: {error}")))?,
    };
    match absolute.into_os_string().into_string() {
        Ok(path) => Ok(ReadPiece { path, size, part: None }),
        Err(_) => Err(Error::Log(format!("{shown}: the path is no UTF-8, so it can't be sent to executors"))),
    }
}

/// Adds the parts of a log.
fn divide(log: &ReadPiece, part_size: u64, parts: &mut Vec<ReadPiece>) -> Result<(), Error> {
    let archived = match log.size > part_size {
        true => input::find(log.path()).map_err(|error| Error::Log(format!("{}: {error}", log.path)))?,
        false => None,
    };
    let Some(archived) = archived else {
        parts.push(log.clone());
        return Ok(());
    };
    let packing = archived.packing();
    // A remainder of less than half a part joins the last one.
    let count = ((log.size + part_size / 2) / part_size).max(1);
    for number in 0..count {
        let start = number * part_size;
        // The log may be longer as it is packed, without payloads.
        let end = if number + 1 == count { u64::MAX } else { start + part_size };
        let part = Some(ArchivedPart { bytes: start..end, packing });
        parts.push(ReadPiece { part, ..log.clone() });
    }
    Ok(())
}
