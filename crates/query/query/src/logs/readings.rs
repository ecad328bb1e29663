//! Readings of logs that can be ended: those that were begun for a statement which is to stop.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::logs::unwanted::ReadingEnd;

/// Counts how often readings were ended.
#[derive(Debug, Clone, Default)]
pub(super) struct LogReadings(Arc<AtomicU64>);

/// A reading.
#[derive(Debug, Clone)]
pub(crate) struct LogReading {
    begun: u64,
    ended: Arc<AtomicU64>,
}

impl LogReadings {
    /// A reading begins.
    pub(super) fn begin(&self) -> LogReading {
        LogReading { begun: self.0.load(Ordering::Acquire), ended: Arc::clone(&self.0) }
    }

    /// Ends those that were begun.
    pub(super) fn end_all(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl ReadingEnd for LogReading {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Acquire) != self.begun
    }
}

/// Takes bytes as long as the reading isn't over.
#[derive(Debug)]
pub(crate) struct WantedOutput<W> {
    pub(crate) out: W,
    pub(crate) reading: LogReading,
}

impl<W: Write> Write for WantedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.reading.is_over() {
            true => Err(io::Error::other("nobody wants the rest")),
            false => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
