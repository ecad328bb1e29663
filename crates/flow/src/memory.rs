//! How the memory of a run is shared out, and buffers that are used again.
//!
//! Law 5 allows 64 MiB whatever a log holds. Half of it is shared out among the pieces under way;
//! what remains is for the workers' own buffers, the queue's unevenness and the program itself.

use std::sync::{Mutex, PoisonError};

use binlogz_payload::Spool;

use crate::batcher::BatchSize;
use crate::ordered::in_flight_max;

/// Bytes for all pieces under way, in all their forms.
const PIECES_MEMORY: usize = 32 << 20;

/// The largest batch, however few pieces are under way: more would not make zstd or the disk faster.
const BATCH_MAX: usize = 2 << 20;

/// The smallest one, however many: below this the hand-over between threads begins to cost.
const BATCH_MIN: usize = 256 << 10;

/// The memory plan of a run.
#[derive(Debug)]
pub struct Memory {
    /// How batches are cut.
    pub batch: BatchSize,
    spool_memory_max: usize,
    free: Mutex<Vec<Vec<u8>>>,
    free_max: usize,
}

impl Memory {
    /// The plan for a run with so many workers.
    pub fn for_workers(workers: usize) -> Self {
        let in_flight = in_flight_max(workers);
        // A piece exists as input, as output, and in part as what its worker has in hand.
        let max = (PIECES_MEMORY / in_flight / 4).clamp(BATCH_MIN, BATCH_MAX);
        Memory {
            batch: BatchSize { target: max / 2, max },
            spool_memory_max: max * 3 / 2,
            free: Mutex::default(),
            free_max: 2 * in_flight,
        }
    }

    /// A spool for the output of one piece.
    pub fn spool(&self) -> Spool {
        let memory = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Spool::with_memory(memory.unwrap_or_default(), self.spool_memory_max)
    }

    /// Keeps a buffer for the next spool.
    pub fn keep(&self, buffer: Vec<u8>) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.free_max && buffer.capacity() <= 2 * self.spool_memory_max {
            free.push(buffer);
        }
    }
}
