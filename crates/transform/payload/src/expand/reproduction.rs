//! Compares our compressor's output for a transaction with the payload it came in, while both are streamed.
//!
//! Memory stays bounded however large the payload is: bytes are held only until their counterparts arrive,
//! which libzstd delays by a block at most.

use crate::codec::compressor::{Compressor, ONE_BLOCK_SIZE};
use crate::compress::transaction_compressor::CompressOptions;
use crate::error::Result;

/// Compares one payload after the other, with one compression context.
#[derive(Debug)]
pub(crate) struct Reproduction {
    compressor: Compressor,
    /// The first events of the transaction, until there are more than a block's worth.
    events: Vec<u8>,
    /// Whether the compressor has begun a frame of several blocks.
    streaming: bool,
    size: Option<u64>,
    /// Bytes of the payload that our compressor has not made yet.
    wanted: Vec<u8>,
    /// Bytes that our compressor has made and that did not come in the payload yet.
    made: Vec<u8>,
    differs: bool,
}

impl Reproduction {
    pub(crate) fn new(options: CompressOptions) -> Result<Self> {
        Ok(Reproduction {
            compressor: options.compressor()?,
            events: Vec::new(),
            streaming: false,
            size: None,
            wanted: Vec::new(),
            made: Vec::new(),
            differs: false,
        })
    }

    /// A payload begins that declares this many bytes of events.
    pub(crate) fn begin(&mut self, size: Option<u64>) {
        self.events.clear();
        self.wanted.clear();
        self.made.clear();
        (self.streaming, self.size, self.differs) = (false, size, false);
    }

    /// The next bytes of the payload; `None` if the payload is not compressed.
    pub(crate) fn payload(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            _ if self.differs => {}
            Some(bytes) => {
                self.wanted.extend_from_slice(bytes);
                self.compare();
            }
            None => self.differs = true,
        }
    }

    /// The next bytes of the events in it, as they would be compressed.
    pub(crate) fn events(&mut self, bytes: &[u8]) -> Result<()> {
        if self.differs {
            return Ok(());
        }
        if !self.streaming {
            if self.events.len() + bytes.len() <= ONE_BLOCK_SIZE {
                self.events.extend_from_slice(bytes);
                return Ok(());
            }
            let Some(size) = self.size else {
                self.differs = true;
                return Ok(());
            };
            self.compressor.begin(size)?;
            self.streaming = true;
            let events = std::mem::take(&mut self.events);
            self.write(&events);
            self.events = events;
        }
        self.write(bytes);
        Ok(())
    }

    /// Whether the complete payload is what our compressor makes of its events.
    pub(crate) fn end(&mut self) -> Result<bool> {
        if self.differs {
            return Ok(false);
        }
        if self.streaming {
            // A frame of another size than declared can't be ended: the payload's size was wrong.
            self.differs |= self.compressor.finish(&mut self.made).is_err();
        } else {
            self.compressor.compress(&self.events, &mut self.made)?;
        }
        self.compare();
        Ok(!self.differs && self.made.is_empty() && self.wanted.is_empty())
    }

    fn write(&mut self, bytes: &[u8]) {
        self.differs |= self.compressor.write(bytes, &mut self.made).is_err();
        self.compare();
    }

    /// Drops the bytes that are equal on both sides.
    fn compare(&mut self) {
        let both = self.made.len().min(self.wanted.len());
        self.differs |= self.made.get(..both) != self.wanted.get(..both);
        self.made.drain(..both);
        self.wanted.drain(..both);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::recipe::Recipe;

    /// Words of a small vocabulary, so that blocks refer to one another.
    fn events(size: usize) -> Vec<u8> {
        (0u32..)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes().map(|byte| byte % 23))
            .take(size)
            .collect()
    }

    fn reproduced(reproduction: &mut Reproduction, size: Option<u64>, events: &[u8], payload: &[u8]) -> bool {
        reproduction.begin(size);
        // The payload comes first, as when it is expanded.
        let pieces = payload.chunks(payload.len().div_ceil(7).max(1));
        let mut events = events.chunks(events.len().div_ceil(7).max(1));
        for piece in pieces {
            reproduction.payload(Some(piece));
            for events in events.by_ref().take(1) {
                reproduction.events(events).unwrap();
            }
        }
        for events in events {
            reproduction.events(events).unwrap();
        }
        reproduction.end().unwrap()
    }

    #[test]
    fn only_the_very_bytes_are_a_reproduction() {
        for recipe in Recipe::ALL {
            let options = CompressOptions { recipe, ..CompressOptions::default() };
            let mut reproduction = Reproduction::new(options).unwrap();
            // No multiples of a block: at a multiple, the last block is empty without a flush too.
            for size in [1, 100, ONE_BLOCK_SIZE - 1, ONE_BLOCK_SIZE + 1, 5 * ONE_BLOCK_SIZE + 1] {
                let events = events(size);
                let told = Some(size as u64);
                for made_by in Recipe::ALL {
                    let mut compressor = CompressOptions { recipe: made_by, ..options }.compressor().unwrap();
                    let mut payload = Vec::new();
                    compressor.compress(&events, &mut payload).unwrap();
                    let same = reproduced(&mut reproduction, told, &events, &payload);
                    assert_eq!(same, made_by == recipe, "{size} by {made_by} as {recipe}");
                    *payload.last_mut().unwrap() ^= 1;
                    assert!(!reproduced(&mut reproduction, told, &events, &payload));
                    payload.pop();
                    assert!(!reproduced(&mut reproduction, told, &events, &payload));
                }
            }
        }
    }

    #[test]
    fn a_size_that_is_no_truth_is_no_reproduction() {
        let events = events(3 * ONE_BLOCK_SIZE);
        let mut reproduction = Reproduction::new(CompressOptions::default()).unwrap();
        let mut payload = Vec::new();
        CompressOptions::default().compressor().unwrap().compress(&events, &mut payload).unwrap();
        let mut told = |size| reproduced(&mut reproduction, size, &events, &payload);
        let size = events.len() as u64;
        assert_eq!(
            [told(Some(size)), told(Some(size - 1)), told(Some(size + 1)), told(None)],
            [true, false, false, false]
        );
    }
}
