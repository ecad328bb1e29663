//! How the memory of a run is divided, and reused buffers.
//!
//! Law 5 allows 64 MiB whatever a log holds: at most 12 for the batches under way and 32 for their results
//! (the excess spills to temporary files). The rest is for the workers' own buffers and the program itself. What is only measured has no
//! results that wait for their turn to be written, and half of that for the transactions that workers look at; so a run may measure a
//! log twice, although the allocator keeps some of what the first pass freed.

use binlogz_payload::{Spool, SpoolMemory};
use parking_lot::Mutex;

use crate::read::BatchSize;
use crate::work::ordered::in_flight_max;

/// Bytes for all batches under way.
const BATCHES_MEMORY: usize = 12 << 20;

/// Bytes for their results.
const SPOOLS_MEMORY: usize = 32 << 20;

/// Bytes for expanded transactions that are only measured.
const MEASURED_MEMORY: usize = 16 << 20;

/// The largest batch, however few are under way: larger ones would not make zstd or the disk faster.
const BATCH_MAX: usize = 2 << 20;

/// The smallest batch, however many are under way: below this, passing batches between threads becomes a
/// noticeable cost.
const BATCH_MIN: usize = 128 << 10;

/// How many times larger than its payload a transaction usually is. Batches of payloads are smaller by this
/// factor, so that their results fit into the spools' memory.
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
    /// The plan for a run with this many workers; `expanding` if pieces grow.
    pub(crate) fn for_workers(workers: usize, expanding: bool) -> Self {
        Memory::new(workers, Self::batch_size(workers, expanding), SPOOLS_MEMORY)
    }

    /// The plan for a run with this many workers that only measures transactions.
    pub(crate) fn for_measuring(workers: usize) -> Self {
        Memory::new(workers, Self::batch_size(workers, true), MEASURED_MEMORY)
    }

    fn batch_size(workers: usize, expanding: bool) -> BatchSize {
        // A worker holds a second copy of what it compresses, in the form it has inside the payload.
        let max = (BATCHES_MEMORY / (in_flight_max(workers) + workers)).clamp(BATCH_MIN, BATCH_MAX);
        let target = if expanding { max / 2 / EXPANSION } else { max / 2 };
        BatchSize { target, max }
    }

    /// A plan with batches of this size, and this many bytes for all their results.
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
        let buffer = self.free.lock().pop();
        Spool::new(&self.spools, buffer.unwrap_or_default())
    }

    /// Keeps a buffer for the next spool.
    pub fn keep(&self, buffer: Vec<u8>) {
        let mut free = self.free.lock();
        if free.len() < self.free_max && buffer.capacity() <= BATCH_MAX {
            free.push(buffer);
        }
    }
}
