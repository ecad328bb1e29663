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
//! left open where the first of each kind was flushed. What grows beyond some megabytes goes to
//! temporary files without names.

use std::io::{self, Read, Write};
use std::sync::Arc;

use binlogz_flow::{Buffers, Spool};

use super::kept::Chunk;
use super::state::State;

/// Bytes of one part that are kept in memory.
pub(super) const PART_MEMORY: usize = 4 << 20;

/// Bytes of buffers for text that are worth keeping.
pub const BUFFERS_MEMORY: usize = 12 << 20;

/// Text that is appended to: the last in memory, and what came before, if much, in a file.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// To be appended to.
    pub(super) text: Vec<u8>,
    spilled: Option<Spool>,
}

impl Part {
    /// Nothing, in a buffer that was used before.
    pub(super) fn new(buffers: &Buffers) -> Self {
        Part { text: buffers.take(), spilled: None }
    }

    pub(super) fn of(text: Vec<u8>) -> Self {
        Part { text, spilled: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.spilled.is_none()
    }

    /// Puts the text away if it became long.
    #[inline]
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if self.text.len() > PART_MEMORY { self.spill() } else { Ok(()) }
    }

    /// Puts the text away.
    #[cold]
    pub(super) fn spill(&mut self) -> io::Result<()> {
        let spool = self.spilled.get_or_insert_with(Spool::on_disk);
        spool.append(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.text.len()
    }

    pub(super) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_range(0..u64::MAX, out)
    }

    /// Writes a part of the text.
    pub(super) fn write_range(&self, range: std::ops::Range<u64>, out: &mut impl Write) -> io::Result<()> {
        let spilled = self.spilled.as_ref().map_or(0, Spool::size);
        if let Some(spool) = &self.spilled
            && range.start < spilled
        {
            copy(spool.reader(range.start..range.end.min(spilled)), out)?;
        }
        let place = |offset: u64| {
            usize::try_from(offset.saturating_sub(spilled)).unwrap_or(usize::MAX).min(self.text.len())
        };
        out.write_all(self.text.get(place(range.start)..place(range.end)).unwrap_or_default())
    }

    pub(super) fn size(&self) -> u64 {
        self.spilled.as_ref().map_or(0, Spool::size) + self.text.len() as u64
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
    pub(super) kept: Vec<Arc<Chunk>>,
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
    /// No text, in a buffer that was used before.
    pub(super) fn new(buffers: &Buffers) -> Self {
        Text { out: Part::new(buffers), ..Text::default() }
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
