//! Compresses transactions at several levels, as the server would, and reports size and time.
//!
//! If exact sizes are needed and the server has another libzstd, its helper program gives them. The times are the linked
//! one's, since processor time is known of our own threads alone.

use binlogz_payload::{CompressionLevel, Compressor, Error, Expander, Library, Recipe, ServerGeneration};

use super::clock::CpuClock;

/// A transaction's bytes from one mark to the next; see [`CompressionMeter::begin`].
pub const MARK_EVERY: u64 = 512 << 10;

/// Bytes at the start of a large transaction whose expansion is timed.
const EXPANDED_MAX: u64 = 8 << 20;

/// Size and time of compressing a transaction at one level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelCost {
    /// Bytes of the payload.
    pub payload_size: u64,
    /// Nanoseconds of processor time for compressing.
    pub compress: u64,
    /// Nanoseconds of processor time for expanding, and of how many (expanded) bytes.
    pub expand: (u64, u64),
}

/// Measures compression with one context for each level, reused for every transaction, as in a session of the server.
#[derive(Debug)]
pub struct CompressionMeter {
    clock: CpuClock,
    compressors: Vec<Compressor>,
    /// Compressors that only tell sizes, one a level; none if the compressors make them.
    sizers: Vec<Compressor>,
    expander: Expander,
    payload: Vec<u8>,
    expanded: Vec<u8>,
    costs: Vec<LevelCost>,
    marks: Vec<Vec<u64>>,
}

impl CompressionMeter {
    /// A meter; one a thread.
    ///
    /// # Errors
    ///
    /// No memory for a context.
    pub fn new(levels: &[CompressionLevel], recipe: Recipe) -> Result<Self, Error> {
        Ok(CompressionMeter {
            clock: CpuClock::default(),
            compressors: compressors(levels, recipe, Library::Linked)?,
            sizers: Vec::new(),
            expander: Expander::new()?,
            payload: Vec::new(),
            expanded: Vec::new(),
            costs: Vec::new(),
            marks: Vec::new(),
        })
    }

    /// A meter whose sizes are exactly those of a server of this generation, if the libzstd of that is available.
    ///
    /// # Errors
    ///
    /// No memory for a context; a helper program that doesn't start.
    pub fn exact(levels: &[CompressionLevel], generation: ServerGeneration) -> Result<Self, Error> {
        let recipe = generation.recipe();
        let library = generation.library();
        let mut meter = CompressionMeter::new(levels, recipe)?;
        if library != Library::Linked && library.is_available() {
            meter.sizers = compressors(levels, recipe, library)?;
        }
        Ok(meter)
    }

    /// Compresses bytes in memory, at every level. `time` reads the clock, which costs more than a tenth of
    /// compressing a small transaction. `expand` also times the expansion.
    ///
    /// # Errors
    ///
    /// An error from zstd.
    pub fn held(&mut self, transaction: &[u8], time: bool, expand: bool) -> Result<&[LevelCost], Error> {
        self.costs.clear();
        for compressor in &mut self.compressors {
            self.payload.clear();
            let payload = &mut self.payload;
            let mut compress = || compressor.compress(transaction, payload);
            let (done, compress) = if time { self.clock.time(compress) } else { (compress(), 0) };
            done?;
            let mut cost = LevelCost { payload_size: self.payload.len() as u64, compress, expand: (0, 0) };
            if expand {
                self.expanded.clear();
                self.expanded.reserve(transaction.len());
                let payload = &self.payload;
                let expanded = &mut self.expanded;
                let (done, time) = self.clock.time(|| self.expander.expand_whole(payload, expanded));
                done?;
                cost.expand = (time, self.expanded.len() as u64);
            }
            self.costs.push(cost);
        }
        for (sizer, cost) in self.sizers.iter_mut().zip(&mut self.costs) {
            self.payload.clear();
            sizer.compress(transaction, &mut self.payload)?;
            cost.payload_size = self.payload.len() as u64;
        }
        Ok(&self.costs)
    }

    /// Compresses `size` bytes that are not in memory, at every level: `read` passes them on in pieces, once.
    /// The beginning is expanded again to time that.
    ///
    /// # Errors
    ///
    /// An error from zstd or from `read`.
    pub fn read(
        &mut self,
        size: u64,
        read: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<&[LevelCost], Error> {
        let mut sizers = std::mem::take(&mut self.sizers);
        sizers.iter_mut().try_for_each(|sizer| sizer.begin(size))?;
        self.begin(size, |sink| {
            read(&mut |bytes| {
                sizers.iter_mut().try_for_each(|sizer| sizer.write(bytes, &mut std::io::sink()))?;
                sink(bytes)
            })
        })?;
        for (compressor, cost) in self.compressors.iter_mut().zip(&mut self.costs) {
            let (size, time) = self.clock.time(|| compressor.finish(&mut std::io::sink()));
            cost.payload_size = size?;
            cost.compress += time;
        }
        for (sizer, cost) in sizers.iter_mut().zip(&mut self.costs) {
            cost.payload_size = sizer.finish(&mut std::io::sink())?;
        }
        self.sizers = sizers;
        Ok(&self.costs)
    }

    /// Begins to compress `size` bytes, of which `read` need not pass on all. The result is reported as marks
    /// at each level, every [`MARK_EVERY`] bytes: the payload's size up to there.
    ///
    /// # Errors
    ///
    /// An error from zstd or from `read`.
    pub fn begin(
        &mut self,
        size: u64,
        read: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error>,
    ) -> Result<(&[LevelCost], &[Vec<u64>]), Error> {
        self.costs.clear();
        self.costs.resize(self.compressors.len(), LevelCost::default());
        self.marks.resize(self.compressors.len(), Vec::new());
        self.marks.iter_mut().for_each(Vec::clear);
        for compressor in &mut self.compressors {
            compressor.begin(size)?;
        }
        let clock = self.clock;
        let payload = &mut self.payload;
        let mut expanders = Expanders::new(self.compressors.len())?;
        let compressors = &mut self.compressors;
        let costs = &mut self.costs;
        let marks = &mut self.marks;
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

/// Makes a compressor for each level.
fn compressors(
    levels: &[CompressionLevel],
    recipe: Recipe,
    library: Library,
) -> Result<Vec<Compressor>, Error> {
    let compressor = |level: &CompressionLevel| {
        let mut compressor = Compressor::new(*level)?;
        compressor.use_recipe(recipe);
        compressor.use_library(library)?;
        Ok(compressor)
    };
    levels.iter().map(compressor).collect()
}

/// Expands one transaction's beginning, with a frame for each level.
struct Expanders(Vec<Expander>);

impl Expanders {
    fn new(levels: usize) -> Result<Self, Error> {
        let mut expanders: Vec<_> = (0..levels).map(|_| Expander::new()).collect::<Result<_, _>>()?;
        expanders.iter_mut().try_for_each(Expander::begin)?;
        Ok(Expanders(expanders))
    }

    /// Expands the next bytes of a frame, as long as they belong to the beginning.
    fn take(
        &mut self,
        level: usize,
        payload: &[u8],
        clock: CpuClock,
        cost: &mut LevelCost,
    ) -> Result<(), Error> {
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
