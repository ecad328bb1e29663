//! How the memory of a run is shared out, and buffers that are used again.
//!
//! Law 5 allows 64 MiB whatever a log holds: at most 12 for the batches under way, 32 for what they
//! become (what is more spills to temporary files); the rest is for the workers' own buffers and the
//! program itself.

use std::sync::{Mutex, PoisonError};

use binlogz_payload::{Spool, SpoolMemory};

use crate::batcher::BatchSize;
use crate::ordered::in_flight_max;

/// Bytes for all batches under way.
const BATCHES_MEMORY: usize = 12 << 20;

/// Bytes for what they become.
const SPOOLS_MEMORY: usize = 32 << 20;

/// The largest batch, however few are under way: more would not make zstd or the disk faster.
const BATCH_MAX: usize = 2 << 20;

/// The smallest one, however many: below this the hand-over between threads begins to cost.
const BATCH_MIN: usize = 128 << 10;

/// How many times as large as compressed a transaction usually is. Batches of payloads are so much
/// smaller that what they become fits into the spools' memory.
const EXPANSION: usize = 4;

/// The memory plan of a run.
#[derive(Debug)]
pub struct Memory {
    /// Threads that share it.
    pub workers: usize,
    /// How batches are cut.
    pub batch: BatchSize,
    spools: SpoolMemory,
    free: Mutex<Vec<Vec<u8>>>,
    free_max: usize,
}

impl Memory {
    /// The plan for a run with so many workers; `expanding`: pieces become larger.
    pub fn for_workers(workers: usize, expanding: bool) -> Self {
        // A worker holds what it compresses a second time, as it stands inside the payload.
        let max = (BATCHES_MEMORY / (in_flight_max(workers) + workers)).clamp(BATCH_MIN, BATCH_MAX);
        let target = if expanding { max / 2 / EXPANSION } else { max / 2 };
        Memory::new(workers, BatchSize { target, max }, SPOOLS_MEMORY)
    }

    /// A plan with batches of this size, and so many bytes for all that they become.
    pub fn new(workers: usize, batch: BatchSize, spools: usize) -> Self {
        Memory {
            workers,
            batch,
            spools: SpoolMemory::new(spools),
            free: Mutex::default(),
            free_max: in_flight_max(workers),
        }
    }

    /// A spool for the output of one piece.
    pub fn spool(&self) -> Spool {
        let buffer = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Spool::new(&self.spools, buffer.unwrap_or_default())
    }

    /// Keeps a buffer for the next spool.
    pub fn keep(&self, buffer: Vec<u8>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.free_max && buffer.capacity() <= BATCH_MAX {
            free.push(buffer);
        }
    }
}
