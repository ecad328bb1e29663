//! Memory for text: buffers of one size, which all batches of a run reuse, and a limit on the bytes that may
//! be filled at once.
//!
//! Touching a page for the first time costs more than writing text to it. So text never grows in a buffer of
//! its own: full buffers are chained, and go back once they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use binlogz_flow::Buffers;

use crate::line_room::CHUNK;

/// Room for what is written beyond that before the next check: a row, an event's base64. More makes the
/// buffer grow.
const CHUNK_ROOM: usize = 32 << 10;

/// Bytes of text in full buffers.
const MEMORY_MAX: usize = 20 << 20;

/// The memory for the text of a run.
#[derive(Debug, Clone)]
pub(crate) struct TextMemory {
    buffers: Buffers,
    filled: Arc<AtomicUsize>,
}

/// A full buffer. It goes back when it is dropped.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// The text in it.
    pub(crate) text: Vec<u8>,
    memory: TextMemory,
}

impl Default for TextMemory {
    fn default() -> Self {
        TextMemory { buffers: Buffers::new(MEMORY_MAX), filled: Arc::default() }
    }
}

impl TextMemory {
    /// An empty buffer.
    pub(crate) fn take(&self) -> Vec<u8> {
        let mut buffer = self.buffers.take();
        // A reused buffer already has room for that.
        buffer.reserve(CHUNK + CHUNK_ROOM);
        buffer
    }

    /// Takes a buffer back.
    pub(crate) fn give(&self, buffer: Vec<u8>) {
        // Buffers that had to grow are not worth their memory.
        if buffer.capacity() <= 2 * CHUNK {
            self.buffers.give(buffer);
        }
    }

    /// Whether this many more bytes may be kept in full buffers. If so, they count until their [`Chunk`] is
    /// dropped.
    fn fill(&self, bytes: usize) -> bool {
        let more = |filled: usize| Some(filled + bytes).filter(|&filled| filled <= MEMORY_MAX);
        // The counter publishes no other memory.
        self.filled.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Keeps text, if there is memory for it: returns it as a chunk and leaves an empty buffer in its place.
    pub(crate) fn keep(&self, text: &mut Vec<u8>) -> Option<Chunk> {
        self.fill(text.len())
            .then(|| Chunk { text: std::mem::replace(text, self.take()), memory: self.clone() })
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.memory.filled.fetch_sub(self.text.len(), Relaxed);
        self.memory.give(std::mem::take(&mut self.text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_is_bounded_until_it_is_dropped() {
        let memory = TextMemory::default();
        let keep = || memory.keep(&mut vec![0; CHUNK]);
        let mut kept: Vec<_> = std::iter::from_fn(keep).collect();
        assert_eq!(kept.len(), MEMORY_MAX / CHUNK);
        kept.pop();
        kept.push(keep().unwrap());
        assert!(keep().is_none());
    }

    #[test]
    fn buffers_come_back_unless_they_grew() {
        let memory = TextMemory::default();
        let mut text = memory.take();
        let place = text.as_ptr();
        let capacity = text.capacity();
        text.push(1);
        drop(memory.keep(&mut text).unwrap());
        let again = memory.take();
        assert_eq!((again.as_ptr(), again.capacity(), again.len()), (place, capacity, 0));
        memory.give(Vec::with_capacity(3 * CHUNK));
        assert!(memory.take().capacity() < 2 * CHUNK);
    }
}
