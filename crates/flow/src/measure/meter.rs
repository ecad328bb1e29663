//! Compresses transactions at several levels, as the server would, and says what that gives and takes.

use binlogz_payload::{CompressionLevel, Compressor, Error, Expander, Extracted};

use super::clock::CpuClock;

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
        })
    }

    /// Compresses what is in memory, at every level. `expand`: times the way back as well.
    ///
    /// # Errors
    ///
    /// What zstd fails with.
    pub fn held(&mut self, transaction: &[u8], expand: bool) -> Result<&[Cost], Error> {
        self.costs.clear();
        for compressor in &mut self.compressors {
            self.payload.clear();
            let payload = &mut self.payload;
            let (done, compress) = self.clock.time(|| compressor.compress(transaction, payload));
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

    /// Compresses a transaction that is not in memory, at every level: it is read once, and `see` is
    /// shown its bytes. The beginning is expanded again for the time that takes.
    ///
    /// # Errors
    ///
    /// What zstd fails with; a log that can't be read.
    pub fn read(
        &mut self,
        transaction: &mut Extracted<'_>,
        mut see: impl FnMut(&[u8]),
    ) -> Result<&[Cost], Error> {
        self.costs.clear();
        self.costs.resize(self.compressors.len(), Cost::default());
        for compressor in &mut self.compressors {
            compressor.begin(transaction.inner_size())?;
        }

        let (clock, payload) = (self.clock, &mut self.payload);
        let mut expanders = Expanders::new(self.compressors.len())?;
        let (compressors, costs) = (&mut self.compressors, &mut self.costs);
        transaction.read(&mut |bytes| {
            see(bytes);
            for (level, (compressor, cost)) in compressors.iter_mut().zip(costs.iter_mut()).enumerate() {
                payload.clear();
                let (done, time) = clock.time(|| compressor.write(bytes, payload));
                done?;
                cost.compress += time;
                expanders.take(level, payload, clock, cost)?;
            }
            Ok(())
        })?;
        for (compressor, cost) in self.compressors.iter_mut().zip(&mut self.costs) {
            let (size, time) = clock.time(|| compressor.finish(&mut std::io::sink()));
            cost.payload_size = size?;
            cost.compress += time;
        }
        Ok(&self.costs)
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
