//! Compresses transactions at several levels, as the server would, and says what that gives and takes.

use binlogz_payload::{CompressionLevel, Compressor, Error, Expander};

use super::clock::CpuClock;

/// A transaction's bytes from one mark to the next; see [`Meter::begin`].
pub const MARK_EVERY: u64 = 512 << 10;

/// Bytes of a large transaction's beginning whose expansion is timed.
const EXPANDED_MAX: u64 = 8 << 20;

/// What compressing a transaction at one level gives and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Bytes of the payload.
    pub payload_size: u64,
    /// Nanoseconds of processor time for compressing.
    pub compress: u64,
    /// Nanoseconds of processor time for expanding, and of how many (expanded) bytes.
    pub expand: (u64, u64),
}

/// One context a level, each used again for every transaction, as in a session of the server.
#[derive(Debug)]
pub struct Meter {
    clock: CpuClock,
    compressors: Vec<Compressor>,
    expander: Expander,
    payload: Vec<u8>,
    expanded: Vec<u8>,
    costs: Vec<Cost>,
    marks: Vec<Vec<u64>>,
}

impl Meter {
    /// A meter; one a thread.
    ///
    /// # Errors
    ///
    /// No memory for a context.
    pub fn new(levels: &[CompressionLevel]) -> Result<Self, Error> {
        Ok(Meter {
            clock: CpuClock::default(),
            compressors: levels.iter().map(|level| Compressor::new(*level)).collect::<Result<_, _>>()?,
            expander: Expander::new()?,
            payload: Vec::new(),
            expanded: Vec::new(),
            costs: Vec::new(),
            marks: Vec::new(),
        })
    }

    /// Compresses what is in memory, at every level. `time`: looks at the clock, which costs more than a tenth of
    /// compressing a small transaction. `expand`: times the way back as well.
    ///
    /// # Errors
    ///
    /// What zstd fails with.
    pub fn held(&mut self, transaction: &[u8], time: bool, expand: bool) -> Result<&[Cost], Error> {
        self.costs.clear();
        for compressor in &mut self.compressors {
            self.payload.clear();
            let payload = &mut self.payload;
            let mut compress = || compressor.compress(transaction, payload);
            let (done, compress) = if time { self.clock.time(compress) } else { (compress(), 0) };
            done?;
            let mut cost = Cost { payload_size: self.payload.len() as u64, compress, expand: (0, 0) };
            if expand {
                self.expanded.clear();
                self.expanded.reserve(transaction.len());
                let (payload, expanded) = (&self.payload, &mut self.expanded);
                let (done, time) = self.clock.time(|| self.expander.expand_whole(payload, expanded));
                done?;
                cost.expand = (time, self.expanded.len() as u64);
            }
            self.costs.push(cost);
        }
        Ok(&self.costs)
    }

    /// Compresses `size` bytes that are not in memory, at every level: `read` hands them on in pieces,
    /// once. The beginning is expanded again for the time that takes.
    ///
    /// # Errors
    ///
    /// What zstd or `read` fails with.
    pub fn read(
        &mut self,
        size: u64,
        read: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<&[Cost], Error> {
        self.begin(size, read)?;
        for (compressor, cost) in self.compressors.iter_mut().zip(&mut self.costs) {
            let (size, time) = self.clock.time(|| compressor.finish(&mut std::io::sink()));
            cost.payload_size = size?;
            cost.compress += time;
        }
        Ok(&self.costs)
    }

    /// Begins to compress `size` bytes, of which `read` need not hand on all. What comes of those it
    /// does is told with a mark at each level, every [`MARK_EVERY`] bytes: how large the payload is up
    /// to there.
    ///
    /// # Errors
    ///
    /// What zstd or `read` fails with.
    pub fn begin(
        &mut self,
        size: u64,
        read: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<(&[Cost], &[Vec<u64>]), Error> {
        self.costs.clear();
        self.costs.resize(self.compressors.len(), Cost::default());
        self.marks.resize(self.compressors.len(), Vec::new());
        self.marks.iter_mut().for_each(Vec::clear);
        for compressor in &mut self.compressors {
            compressor.begin(size)?;
        }
        let (clock, payload) = (self.clock, &mut self.payload);
        let mut expanders = Expanders::new(self.compressors.len())?;
        let (compressors, costs, marks) = (&mut self.compressors, &mut self.costs, &mut self.marks);
        let mut at = 0;
        read(&mut |mut bytes| {
            while !bytes.is_empty() {
                let room = usize::try_from(MARK_EVERY - at % MARK_EVERY).unwrap_or(usize::MAX);
                let (front, rest) = bytes.split_at(room.min(bytes.len()));
                bytes = rest;
                at += front.len() as u64;
                let levels = compressors.iter_mut().zip(costs.iter_mut()).zip(marks.iter_mut());
                for (level, ((compressor, cost), marks)) in levels.enumerate() {
                    payload.clear();
                    let (done, time) = clock.time(|| compressor.write(front, payload));
                    done?;
                    cost.compress += time;
                    if at.is_multiple_of(MARK_EVERY) {
                        marks.push(compressor.produced());
                    }
                    expanders.take(level, payload, clock, cost)?;
                }
            }
            Ok(())
        })?;
        Ok((&self.costs, &self.marks))
    }
}

/// The way back of one transaction's beginning, a frame a level.
struct Expanders(Vec<Expander>);

impl Expanders {
    fn new(levels: usize) -> Result<Self, Error> {
        let mut expanders: Vec<_> = (0..levels).map(|_| Expander::new()).collect::<Result<_, _>>()?;
        expanders.iter_mut().try_for_each(Expander::begin)?;
        Ok(Expanders(expanders))
    }

    /// Expands the next bytes of a frame, as long as they belong to the beginning.
    fn take(&mut self, level: usize, payload: &[u8], clock: CpuClock, cost: &mut Cost) -> Result<(), Error> {
        let Some(expander) = self.0.get_mut(level).filter(|_| cost.expand.1 < EXPANDED_MAX) else {
            return Ok(());
        };
        let mut size = 0;
        let (done, time) = clock.time(|| {
            expander.push(payload, |piece| {
                size += piece.len() as u64;
                Ok::<_, Error>(())
            })
        });
        done?;
        cost.expand.0 += time;
        cost.expand.1 += size;
        Ok(())
    }
}
