//! Compression contexts, shared by any number of sessions: each has one only while it compresses.
//!
//! mysqld keeps one for each session; at level 3 that is a megabyte each, for 5,000 sessions five gigabytes.
//! The bytes are the same.

use std::thread;

use binlogz_payload::{CompressionLevel, Compressor};
use parking_lot::Mutex;

use crate::error::Result;

#[derive(Debug)]
pub(crate) struct Compressors {
    idle: Mutex<Vec<Compressor>>,
    /// More would rarely be in use at once.
    idle_max: usize,
}

impl Compressors {
    pub(crate) fn new() -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Compressors { idle: Mutex::new(Vec::new()), idle_max: 2 * cores }
    }

    /// Appends to `out` the frame of `transaction`.
    pub(crate) fn compress(
        &self,
        level: CompressionLevel,
        transaction: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let found = {
            let mut idle = self.idle.lock();
            // The most recently used one: its tables are still in the processor's cache.
            let place = idle.iter().rposition(|compressor| compressor.level() == level);
            place.map(|place| idle.remove(place))
        };
        let mut compressor = match found {
            Some(compressor) => compressor,
            None => Compressor::new(level)?,
        };
        compressor.compress(transaction, out)?;
        let mut idle = self.idle.lock();
        if idle.len() >= self.idle_max {
            // It may have a level that is no longer in use.
            idle.remove(0);
        }
        idle.push(compressor);
        Ok(())
    }
}
