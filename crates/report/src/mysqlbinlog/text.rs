//! Text on its way out: what the events of a batch became, and its place among that of others.
//!
//! ```text
//! out      text in order
//! head     `# at` lines of events that are not shown: they go in front of the next one shown
//! open     of the statement that is open behind the batch: its BINLOG statement (body) and its
//!          ### lines (footer), which are printed when it ends
//! ```
//!
//! A worker fills a [`Text`] as if nothing stood before it; the [`super::Assembler`] puts what earlier batches
//! left open where the first of each kind was flushed. What finds no room in [`TextMemory`] goes to temporary
//! files without names.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use binlogz_flow::Spool;

use super::kept::KeptChunk;
use super::options::{Base64Output, PrintOptions};
use super::state::State;
use super::text_memory::{CHUNK, Chunk, TextMemory};

/// Text that is appended to: the last of it in a buffer, what came before in full ones or, where memory was short, in
/// a file.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// To be appended to.
    pub(super) text: Vec<u8>,
    full: Vec<Chunk>,
    full_size: usize,
    spilled: Option<Spool>,
    memory: Option<TextMemory>,
}

impl Part {
    /// Nothing, in memory that was used before.
    pub(super) fn new(memory: &TextMemory) -> Self {
        let mut part = Part::of(memory.take());
        part.memory = Some(memory.clone());
        part
    }

    pub(super) fn of(text: Vec<u8>) -> Self {
        Part { text, full: Vec::new(), full_size: 0, spilled: None, memory: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.size() == 0
    }

    /// Puts the text away if it became long.
    #[inline]
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if self.text.len() > CHUNK { self.put_away() } else { Ok(()) }
    }

    /// Puts the text away: where there is memory for it, in full buffers.
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

    /// Gives the buffer back that stood ready for more.
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

impl Drop for Part {
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

/// What waits for the end of a statement.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Its `BINLOG` statement.
    pub(super) body: Part,
    /// Its `###` lines.
    pub(super) footer: Part,
}

impl Rows {
    /// Nothing, in memory that was used before as far as something will come.
    pub(super) fn new(memory: &TextMemory, options: &PrintOptions) -> Self {
        let part = |is_asked_for| if is_asked_for { Part::new(memory) } else { Part::default() };
        Rows {
            body: part(options.base64_output != Base64Output::DecodeRows),
            footer: part(options.verbose > 0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.body.is_empty() && self.footer.is_empty()
    }
}

/// Where a statement ends that was open before.
#[derive(Debug)]
pub(super) struct StatementEnd {
    /// Where in `out`.
    pub(super) place: u64,
    /// Its last rows.
    pub(super) rows: Rows,
    /// Those of its rows before that were not made text of, and the state in case they can't be.
    pub(super) kept: Vec<Arc<KeptChunk>>,
    pub(super) state: Option<Box<State>>,
}

/// What the events of a batch became.
#[derive(Debug, Default)]
pub struct Text {
    pub(super) out: Part,
    pub(super) head: Vec<u8>,
    pub(super) open: Rows,
    /// Where in `out` the `# at` lines of batches before belong.
    pub(super) first_head: Option<u64>,
    /// Where in `out` belongs what waits.
    pub(super) ends: Vec<StatementEnd>,
}

impl Text {
    /// No text, in memory that was used before.
    pub(super) fn new(memory: &TextMemory) -> Self {
        Text { out: Part::new(memory), ..Text::default() }
    }

    /// An event is shown: what waits for one goes in front of it.
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
