//! Buffers that are used again: new ones would cost a page fault for every 4 KiB.

use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps buffers for whoever needs one next, on whatever thread.
#[derive(Debug, Clone)]
pub struct Buffers {
    kept: Arc<Mutex<Vec<Vec<u8>>>>,
    memory_max: usize,
}

/// Bytes whose buffer goes back when nobody needs them any more.
#[derive(Debug)]
pub struct Lent {
    bytes: Vec<u8>,
    buffers: Option<Buffers>,
}

impl Buffers {
    /// Keeps at most so many bytes.
    pub fn new(memory_max: usize) -> Self {
        Buffers { kept: Arc::default(), memory_max }
    }

    /// An empty buffer: the one that came last, as its memory is the likeliest to be at hand.
    pub fn take(&self) -> Vec<u8> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps a buffer, if there are not enough.
    pub fn give(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() == 0 {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let memory: usize = kept.iter().map(Vec::capacity).sum();
        if memory + buffer.capacity() <= self.memory_max {
            buffer.clear();
            kept.push(buffer);
        }
    }

    /// Bytes in a buffer that goes back.
    pub(crate) fn lend(&self, bytes: Vec<u8>) -> Lent {
        Lent { bytes, buffers: Some(self.clone()) }
    }
}

impl From<Vec<u8>> for Lent {
    /// Bytes in a buffer that goes nowhere.
    fn from(bytes: Vec<u8>) -> Self {
        Lent { bytes, buffers: None }
    }
}

impl Deref for Lent {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl Drop for Lent {
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
