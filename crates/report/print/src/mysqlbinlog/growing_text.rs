//! Text that grows, in memory as long as there is some, then in a temporary file.

use std::io::{self, Read, Write};
use std::ops::Range;

use binlogz_flow::Spool;

use super::write::text_memory::{Chunk, TextMemory};
use crate::line_room::CHUNK;

/// Growing text: the last of it in a buffer, the rest in full buffers or, if memory was short, in a file.
#[derive(Debug, Default)]
pub(super) struct GrowingText {
    /// To be appended to.
    pub(super) text: Vec<u8>,
    full: Vec<Chunk>,
    full_size: usize,
    spilled: Option<Spool>,
    memory: Option<TextMemory>,
}

impl GrowingText {
    /// Empty text, in reused memory.
    pub(super) fn new(memory: &TextMemory) -> Self {
        let mut part = GrowingText::of(memory.take());
        part.memory = Some(memory.clone());
        part
    }

    pub(super) fn of(text: Vec<u8>) -> Self {
        GrowingText { text, full: Vec::new(), full_size: 0, spilled: None, memory: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Puts the text away if it became long.
    #[inline]
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if self.text.len() > CHUNK { self.put_away() } else { Ok(()) }
    }

    /// Puts the text away: in full buffers, if there is memory for it.
    #[cold]
    pub(super) fn put_away(&mut self) -> io::Result<()> {
        match self.memory.as_ref().and_then(|memory| memory.keep(&mut self.text)) {
            Some(chunk) => {
                self.full_size += chunk.text.len();
                self.full.push(chunk);
                Ok(())
            }
            None => self.spill(),
        }
    }

    /// Puts all text into a file.
    pub(super) fn spill(&mut self) -> io::Result<()> {
        let spool = self.spilled.get_or_insert_with(Spool::on_disk);
        for chunk in self.full.drain(..) {
            spool.append(&chunk.text)?;
        }
        self.full_size = 0;
        spool.append(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Gives back the buffer that was ready for more.
    pub(super) fn release(&mut self) {
        let text = std::mem::take(&mut self.text);
        if let Some(memory) = self.memory.take() {
            memory.give(text);
        }
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.full_size + self.text.len()
    }

    pub(super) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_range(0..u64::MAX, out)
    }

    /// Writes a part of the text.
    pub(super) fn write_range(&self, range: Range<u64>, out: &mut impl Write) -> io::Result<()> {
        let mut begin = 0;
        if let Some(spool) = &self.spilled {
            begin = spool.size();
            if range.start < begin {
                copy(spool.reader(range.start..range.end.min(begin)), out)?;
            }
        }
        for text in self.full.iter().map(|chunk| &chunk.text).chain([&self.text]) {
            let place = |offset: u64| offset.saturating_sub(begin).min(text.len() as u64) as usize;
            match text.get(place(range.start)..place(range.end)) {
                Some(asked) if !asked.is_empty() => out.write_all(asked)?,
                _ => {}
            }
            begin += text.len() as u64;
        }
        Ok(())
    }

    pub(super) fn size(&self) -> u64 {
        self.spilled.as_ref().map_or(0, Spool::size) + self.memory() as u64
    }
}

impl Drop for GrowingText {
    fn drop(&mut self) {
        self.release();
    }
}

fn copy(mut from: impl Read, out: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 256 << 10];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        out.write_all(buffer.get(..count).unwrap_or_default())?;
    }
}
