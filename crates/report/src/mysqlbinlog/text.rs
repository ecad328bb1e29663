//! Text on its way out: what the events of a batch became, and its place among that of others.
//!
//! ```text
//! out      text in order
//! head     `# at` lines of events that are not shown: they go in front of the next one shown
//! body     the BINLOG statement of the statement that is open   both are printed
//! footer   its ### lines                                        when it ends
//! ```
//!
//! A worker fills a [`Text`] as if nothing stood before it; the [`Assembler`] puts what earlier batches
//! left open where the first of each kind was flushed. What grows beyond some megabytes goes to
//! temporary files without names.

use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};

use binlogz_payload::Spool;

/// Bytes of one part that are kept in memory.
pub(super) const PART_MEMORY: usize = 4 << 20;

/// Bytes of body and footer, each, that the assembler keeps in memory.
const PENDING_MEMORY: usize = 4 << 20;

/// Text that is appended to: the last in memory, and what came before, if much, in a file.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// To be appended to.
    pub(super) text: Vec<u8>,
    spilled: Option<Spool>,
}

impl Part {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.spilled.is_none()
    }

    /// Puts the text away if it became long.
    #[inline]
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if self.text.len() > PART_MEMORY { self.spill() } else { Ok(()) }
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        let spool = self.spilled.get_or_insert_with(Spool::on_disk);
        spool.append(&self.text)?;
        self.text.clear();
        Ok(())
    }

    /// Moves another's text behind this one's; a buffer that is not needed any more.
    fn append(&mut self, mut other: Part, memory: usize) -> io::Result<Vec<u8>> {
        if self.is_empty() {
            std::mem::swap(self, &mut other);
            return Ok(other.text);
        }
        if let Some(spool) = other.spilled.take() {
            self.spill()?;
            let mine = self.spilled.get_or_insert_with(Spool::on_disk);
            io::copy(&mut spool.reader(0..spool.size()), mine)?;
        }
        self.text.extend_from_slice(&other.text);
        if self.text.len() > memory {
            self.spill()?;
        }
        Ok(other.text)
    }

    fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_range(0..u64::MAX, out)
    }

    /// Writes a part of the text.
    fn write_range(&self, range: std::ops::Range<u64>, out: &mut impl Write) -> io::Result<()> {
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

    fn size(&self) -> u64 {
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

/// Bytes of all buffers together that are kept to be used again.
const BUFFERS_MEMORY: usize = 8 << 20;

/// Buffers of texts that were written: new ones would cost a page fault for every 4 KiB.
#[derive(Debug, Default)]
pub struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer.
    pub(super) fn take(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Keeps a buffer, if there are not enough.
    fn give(&self, mut buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let size: usize = kept.iter().map(Vec::capacity).sum();
        if buffer.capacity() > 0 && size + buffer.capacity() <= BUFFERS_MEMORY {
            buffer.clear();
            kept.push(buffer);
        }
    }
}

/// What the events of a batch became.
#[derive(Debug, Default)]
pub struct Text {
    pub(super) out: Part,
    pub(super) head: Vec<u8>,
    pub(super) body: Part,
    pub(super) footer: Part,
    /// Where in `out` the `# at` lines of batches before belong.
    first_head: Option<u64>,
    /// Where in `out` what batches before left open belongs, with what this one added to it.
    first_rows: Option<(u64, Part, Part)>,
}

impl Text {
    /// No text, in buffers that were used before.
    pub(super) fn new(buffers: &Buffers) -> Self {
        let part = || Part { text: buffers.take(), spilled: None };
        Text { out: part(), footer: part(), body: part(), ..Text::default() }
    }

    /// Text of the open statement may be waiting from before.
    #[inline]
    pub(super) fn flush_head(&mut self) {
        if self.first_head.is_none() {
            self.first_head = Some(self.out.size());
        }
        if !self.head.is_empty() {
            self.out.text.append(&mut self.head);
        }
    }

    /// Flushes all three, in their order. `waiting`: whether batches before may have left something.
    pub(super) fn flush_rows(&mut self, waiting: bool) -> io::Result<()> {
        self.flush_head();
        if waiting && self.first_rows.is_none() {
            let (body, footer) = (std::mem::take(&mut self.body), std::mem::take(&mut self.footer));
            self.first_rows = Some((self.out.size(), body, footer));
            return Ok(());
        }
        for part in [&mut self.body, &mut self.footer] {
            if part.spilled.is_some() {
                self.out.append(std::mem::take(part), PART_MEMORY)?;
            } else {
                self.out.text.append(&mut part.text);
            }
        }
        self.out.settle()
    }
}

/// Puts the texts of batches together.
#[derive(Debug, Default)]
pub struct Assembler {
    head: Part,
    body: Part,
    footer: Part,
}

impl Assembler {
    /// Nothing is open.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes the text of the next batch.
    ///
    /// # Errors
    ///
    /// `out` or a temporary file can't be written.
    pub fn write(&mut self, text: Text, buffers: &Buffers, out: &mut impl Write) -> io::Result<()> {
        let mut written = 0;
        if let Some(place) = text.first_head {
            text.out.write_range(written..place, out)?;
            written = place;
            self.head.write_to(out)?;
            self.head = Part { text: text.head, spilled: None };
        } else {
            self.head.append(Part { text: text.head, spilled: None }, PENDING_MEMORY)?;
        }
        if let Some((place, body, footer)) = text.first_rows {
            text.out.write_range(written..place, out)?;
            written = place;
            for (open, more) in [(&mut self.body, body), (&mut self.footer, footer)] {
                let open = std::mem::take(open);
                open.write_to(out)?;
                more.write_to(out)?;
                buffers.give(open.text);
                buffers.give(more.text);
            }
        }
        buffers.give(self.body.append(text.body, PENDING_MEMORY)?);
        buffers.give(self.footer.append(text.footer, PENDING_MEMORY)?);
        text.out.write_range(written..u64::MAX, out)?;
        buffers.give(text.out.text);
        Ok(())
    }
}
