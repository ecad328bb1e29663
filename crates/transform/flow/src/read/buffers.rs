//! Reused buffers: new ones would cost a page fault for every 4 KiB.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;

/// Keeps buffers for the next user, on any thread.
#[derive(Debug, Clone)]
pub struct Buffers {
    kept: Arc<Mutex<Vec<Vec<u8>>>>,
    memory_max: usize,
}

/// Bytes whose buffer is given back when they are dropped.
#[derive(Debug)]
pub struct LentBuffer {
    bytes: Vec<u8>,
    buffers: Option<Buffers>,
}

impl Buffers {
    /// Keeps at most this many bytes.
    pub fn new(memory_max: usize) -> Self {
        Buffers { kept: Arc::default(), memory_max }
    }

    /// An empty buffer: the most recent one, as its memory is likeliest to be in the cache.
    pub fn take(&self) -> Vec<u8> {
        self.kept.lock().pop().unwrap_or_default()
    }

    /// Keeps a buffer, unless there are enough.
    pub fn give(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() == 0 {
            return;
        }
        let mut kept = self.kept.lock();
        let memory: usize = kept.iter().map(Vec::capacity).sum();
        if memory + buffer.capacity() <= self.memory_max {
            buffer.clear();
            kept.push(buffer);
        }
    }

    /// Bytes in a buffer that is given back.
    pub(crate) fn lend(&self, bytes: Vec<u8>) -> LentBuffer {
        LentBuffer { bytes, buffers: Some(self.clone()) }
    }
}

impl From<Vec<u8>> for LentBuffer {
    /// Bytes in a buffer that is not given back.
    fn from(bytes: Vec<u8>) -> Self {
        LentBuffer { bytes, buffers: None }
    }
}

impl Deref for LentBuffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl Drop for LentBuffer {
    fn drop(&mut self) {
        if let Some(buffers) = &self.buffers {
            buffers.give(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_as_far_as_there_is_room() {
        let buffers = Buffers::new(100);
        let lent = buffers.lend(Vec::from([1; 60]));
        assert_eq!(lent.len(), 60);
        drop(lent);
        buffers.give(Vec::with_capacity(60));
        assert_eq!((buffers.take().len(), buffers.take().capacity()), (0, 0));
        let lent = buffers.lend(Vec::with_capacity(60));
        let capacity = lent.capacity();
        drop(lent);
        assert_eq!(buffers.take().capacity(), capacity);
    }
}
