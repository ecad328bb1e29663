//! Text on its way out: the result of a batch's events, and where earlier and later text belongs.
//!
//! ```text
//! out      text in order
//! head     `# at` lines of events that are not shown: they go before the next one shown
//! open     of the statement still open after the batch: its BINLOG statement (body) and its
//!          ### lines (footer), which are printed when it ends
//! ```
//!
//! A worker fills a [`Text`] as if nothing came before it; the [`super::Assembler`] inserts what earlier
//! batches left open where the first of each kind was flushed. Text that does not fit in [`TextMemory`] goes to
//! unnamed temporary files.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_flow::Spool;

use super::kept::KeptChunk;
use super::options::{Base64Output, PrintOptions};
use super::state::MysqlbinlogState;
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

/// Rows that wait for the end of a statement.
#[derive(Debug, Default)]
pub(super) struct PendingRows {
    /// The `BINLOG` statement of the rows.
    pub(super) body: GrowingText,
    /// The `###` lines of the rows.
    pub(super) footer: GrowingText,
}

impl PendingRows {
    /// Empty text, in reused memory if something will come.
    pub(super) fn new(memory: &TextMemory, options: &PrintOptions) -> Self {
        let part =
            |is_asked_for| if is_asked_for { GrowingText::new(memory) } else { GrowingText::default() };
        PendingRows {
            body: part(options.base64_output != Base64Output::DecodeRows),
            footer: part(options.verbose > 0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.body.is_empty() && self.footer.is_empty()
    }
}

/// The end of a statement that was open before.
#[derive(Debug)]
pub(super) struct StatementEnd {
    /// The offset in `out`.
    pub(super) place: u64,
    /// The statement's last rows.
    pub(super) rows: PendingRows,
    /// The statement's earlier rows that were not turned into text, and the state in case they can't be.
    pub(super) kept: Vec<Arc<KeptChunk>>,
    pub(super) state: Option<Box<MysqlbinlogState>>,
}

/// The text of a batch's events.
#[derive(Debug, Default)]
pub struct Text {
    pub(super) out: GrowingText,
    pub(super) head: Vec<u8>,
    pub(super) open: PendingRows,
    /// Where in `out` the `# at` lines of earlier batches belong.
    pub(super) first_head: Option<u64>,
    /// Where in `out` what waits belongs.
    pub(super) ends: Vec<StatementEnd>,
}

impl Text {
    /// No text, in reused memory.
    pub(super) fn new(memory: &TextMemory) -> Self {
        Text { out: GrowingText::new(memory), ..Text::default() }
    }

    /// An event is shown: what waits for one goes before it.
    #[inline]
    pub(super) fn flush_head(&mut self) {
        if self.first_head.is_none() {
            self.first_head = Some(self.out.size());
        }
        if !self.head.is_empty() {
            self.out.text.append(&mut self.head);
        }
    }
}
