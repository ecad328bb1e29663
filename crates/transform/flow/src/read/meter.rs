//! Counts the bytes of logs that were read, so that a progress bar can show how far a run is.
//!
//! A statement may read its logs several times: to find columns, or for each side of a join. Each reading is a pass. A
//! pass that begins while another goes on adds its bytes to that one; otherwise the count begins at zero.

use std::io::{self, Read};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::vec;

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

/// A log that a pass reads, perhaps part by part: each byte counts once. Dropping it counts the rest of the log.
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
    pub fn watch(self: &Arc<Self>, input: Input) -> Input {
        match input {
            Input::Places(places) => {
                Input::Places(Arc::new(WatchedPlaces { places, reading: Arc::clone(self) }))
            }
            Input::Stream(stream) => {
                Input::Stream(Box::new(WatchedStream::new(stream, Vec::new(), Arc::clone(self))))
            }
            Input::Sparse { stream, gaps } => {
                let watched = WatchedStream::new(stream, gaps.clone(), Arc::clone(self));
                Input::Sparse { stream: Box::new(watched), gaps }
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
    reading: Arc<MeteredLog>,
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
    /// The offset in the log that was reached.
    at: u64,
    /// The parts of the log after that which the stream lacks.
    gaps: Peekable<vec::IntoIter<Range<u64>>>,
    reading: Arc<MeteredLog>,
}

impl WatchedStream {
    fn new(stream: Box<dyn Read + Send>, gaps: Vec<Range<u64>>, reading: Arc<MeteredLog>) -> Self {
        WatchedStream { stream, at: 0, gaps: gaps.into_iter().peekable(), reading }
    }

    /// Counts bytes of the stream, and the gaps between them.
    fn advance(&mut self, mut count: u64) {
        while let Some(gap) = self.gaps.next_if(|gap| count > gap.start.saturating_sub(self.at)) {
            count -= gap.start.saturating_sub(self.at);
            self.at = gap.end;
        }
        self.at = self.at.saturating_add(count);
        self.reading.reach(self.at);
    }
}

impl Read for WatchedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        self.advance(count as u64);
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
        let log =
            Arc::new(MeteredLog::new(Arc::clone(&meter), 100)).watch(Input::Places(Arc::new(vec![7; 100])));
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
        let log = Arc::new(MeteredLog::new(Arc::clone(&meter), 50)).watch(sparse);
        assert_eq!(meter.passed(), Some((100, 200)));
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

    /// Reads bytes of a log, between these gaps.
    fn read_part(reading: &Arc<MeteredLog>, gaps: &[Range<u64>], bytes: &mut [u8]) -> Input {
        let stream = Box::new(io::repeat(7).take(bytes.len() as u64));
        let mut input = reading.watch(Input::Sparse { stream, gaps: gaps.to_vec() });
        let Input::Sparse { stream, .. } = &mut input else { panic!("{input:?}") };
        stream.read_exact(bytes).unwrap();
        input
    }

    #[test]
    fn a_log_in_parts_counts_once() {
        let meter = Arc::new(ReadMeter::default());
        let _pass = meter.pass(100);
        let reading = Arc::new(MeteredLog::new(Arc::clone(&meter), 100));
        // Its head, and then 20 to 50.
        drop(read_part(&reading, &[4..20, 50..100], &mut [0; 34]));
        assert_eq!(meter.passed(), Some((50, 100)));
        // The head again, and half of 70 to 80.
        drop(read_part(&reading, &[4..70, 80..100], &mut [0; 4]));
        assert_eq!(meter.passed(), Some((50, 100)));
        drop(read_part(&reading, &[4..70, 80..100], &mut [0; 9]));
        assert_eq!(meter.passed(), Some((75, 100)));
        drop(reading);
        assert_eq!(meter.passed(), Some((100, 100)));
    }
}
