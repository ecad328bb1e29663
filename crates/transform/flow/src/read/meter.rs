//! Counts the bytes of logs that were read, so that a progress bar can show how far a run is.
//!
//! A statement may read its logs several times: to find columns, or for each side of a join. Each reading is a pass. A
//! pass that begins while another goes on adds its bytes to that one; otherwise the count begins at zero.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::read::input::{Input, ReadAt};

/// Counts the bytes that passes have read, or left out since nothing is wanted of them.
#[derive(Debug, Default)]
pub struct ReadMeter(Mutex<PassCounts>);

#[derive(Debug, Default)]
struct PassCounts {
    passes: usize,
    done: u64,
    all: u64,
    sum: u64,
}

impl ReadMeter {
    /// How many bytes the running passes have counted, and how many there are; `None`: no pass is running.
    pub fn passed(&self) -> Option<(u64, u64)> {
        self.with(|counted| (counted.passes > 0).then_some((counted.done, counted.all)))
    }

    /// Bytes of all passes since the beginning.
    pub fn sum(&self) -> u64 {
        self.with(|counted| counted.sum)
    }

    /// Begins a pass through this many bytes. It lasts as long as the returned value.
    pub fn pass(self: &Arc<Self>, bytes: u64) -> MeteredPass {
        self.with(|counted| {
            if counted.passes == 0 {
                (counted.done, counted.all) = (0, 0);
            }
            counted.passes += 1;
            counted.all += bytes;
        });
        MeteredPass(Arc::clone(self))
    }

    fn add(&self, bytes: u64) {
        self.with(|counted| {
            counted.done += bytes;
            counted.sum += bytes;
        });
    }

    fn with<R>(&self, work: impl FnOnce(&mut PassCounts) -> R) -> R {
        work(&mut self.0.lock())
    }
}

/// A running pass.
#[derive(Debug)]
pub struct MeteredPass(Arc<ReadMeter>);

impl Drop for MeteredPass {
    fn drop(&mut self) {
        self.0.with(|counted| counted.passes -= 1);
    }
}

/// A log that a pass reads. Dropping it counts the rest of the log.
#[derive(Debug)]
pub struct MeteredLog {
    meter: Arc<ReadMeter>,
    size: u64,
    reached: AtomicU64,
}

impl MeteredLog {
    /// A log of `size` bytes.
    pub fn new(meter: Arc<ReadMeter>, size: u64) -> Self {
        MeteredLog { meter, size, reached: AtomicU64::new(0) }
    }

    /// Counts the log up to this offset, unless it was read further already.
    fn reach(&self, offset: u64) {
        let offset = offset.min(self.size);
        let before = self.reached.fetch_max(offset, Ordering::Relaxed);
        if offset > before {
            self.meter.add(offset - before);
        }
    }

    /// The log, watched as it is read.
    pub fn watch(self, input: Input) -> Input {
        match input {
            Input::Places(places) => Input::Places(Arc::new(WatchedPlaces { places, reading: self })),
            Input::Stream(stream) => Input::Stream(Box::new(WatchedStream { stream, at: 0, reading: self })),
            Input::Sparse { stream, gaps } => {
                let at = gaps.iter().map(|gap| gap.end.saturating_sub(gap.start)).sum();
                self.reach(at);
                Input::Sparse { stream: Box::new(WatchedStream { stream, at, reading: self }), gaps }
            }
            input @ (Input::Seek { .. } | Input::Live(_) | Input::Pipe(_)) => input,
        }
    }
}

impl Drop for MeteredLog {
    fn drop(&mut self) {
        self.reach(self.size);
    }
}

/// A file that tells how far it was read.
struct WatchedPlaces {
    places: Arc<dyn ReadAt>,
    reading: MeteredLog,
}

impl WatchedPlaces {
    fn reached(&self, offset: u64, count: io::Result<usize>) -> io::Result<usize> {
        if let Ok(count) = count {
            self.reading.reach(offset.saturating_add(count as u64));
        }
        count
    }
}

impl ReadAt for WatchedPlaces {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reached(offset, self.places.read_at(buffer, offset))
    }

    fn append_at(&self, buffer: &mut Vec<u8>, offset: u64) -> io::Result<usize> {
        self.reached(offset, self.places.append_at(buffer, offset))
    }
}

/// A stream that does.
struct WatchedStream {
    stream: Box<dyn Read + Send>,
    /// The offset that was reached, counting the gaps.
    at: u64,
    reading: MeteredLog,
}

impl Read for WatchedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.at = self.at.saturating_add(count as u64);
        self.reading.reach(self.at);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a test may panic

    use super::*;

    #[test]
    fn a_pass_counts_what_it_read_and_what_it_left_out() {
        let meter = Arc::new(ReadMeter::default());
        assert_eq!(meter.passed(), None);
        let pass = meter.pass(150);
        let log = MeteredLog::new(Arc::clone(&meter), 100).watch(Input::Places(Arc::new(vec![7; 100])));
        let Input::Places(places) = &log else { panic!("{log:?}") };
        places.read_at(&mut [0; 30], 10).unwrap();
        places.read_at(&mut [0; 5], 0).unwrap();
        assert_eq!(meter.passed(), Some((40, 150)));
        drop(log);
        assert_eq!(meter.passed(), Some((100, 150)));
        // A second one at the same time.
        let other = meter.pass(50);
        let sparse = Input::Sparse {
            stream: Box::new(io::repeat(7).take(20)),
            gaps: std::iter::once(4..34).collect(),
        };
        let log = MeteredLog::new(Arc::clone(&meter), 50).watch(sparse);
        assert_eq!(meter.passed(), Some((130, 200)));
        let Input::Sparse { mut stream, .. } = log else { panic!("{log:?}") };
        stream.read_exact(&mut [0; 15]).unwrap();
        assert_eq!(meter.passed(), Some((145, 200)));
        drop((stream, other));
        // Nobody wanted the rest of the first; the next begins at zero.
        drop(pass);
        assert_eq!(meter.passed(), None);
        let _third = meter.pass(10);
        assert_eq!((meter.passed(), meter.sum()), (Some((0, 10)), 150));
    }
}
