//! Large statements: their events are kept as they are until the statement ends, then turned into text on all
//! cores.
//!
//! The text at the end of a statement is many times as long as its events, and comes after the headers of all
//! of them.

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_flow::events::{KeptEvents, SpilledEvents};
use binlogz_flow::ordered;

use super::growing_text::GrowingText;
use super::options::PrintOptions;
use super::rows_pen::{RowsPen, UnprintedRows};
use super::write::text_memory::TextMemory;

/// From this many bytes of a statement's events, the events are kept instead of their text.
pub(super) const KEEP_FROM: u64 = 1 << 20;

/// Bytes of kept events in memory; the others go to a file. Events that are in a file already are read again
/// from there: that is cheaper than touching new memory.
const KEPT_MEMORY: usize = 8 << 20;

/// Larger events are not turned into text in parallel.
const EVENT_SIZE_MAX: usize = 2 << 20;

/// Events of a statement from one batch.
#[derive(Debug)]
pub(super) struct KeptChunk {
    events: KeptEvents,
    /// For each event, whether the table map of its rows was shown.
    known: Vec<bool>,
}

/// The kept part of the open statement.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptStatement {
    pub(super) chunks: Vec<Arc<KeptChunk>>,
    memory: usize,
    file: Option<SpilledEvents>,
}

/// Which text to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Base64.
    Body,
    /// `###` lines.
    Footer,
}

impl KeptStatement {
    /// Keeps events.
    ///
    /// # Errors
    ///
    /// A temporary file that can't be written.
    pub(super) fn push(&mut self, mut events: KeptEvents, known: Vec<bool>) -> io::Result<()> {
        if events.can_be_read_again() || self.memory + events.memory() > KEPT_MEMORY {
            events.spill(self.file.get_or_insert_with(SpilledEvents::default))?;
        }
        self.memory += events.memory();
        self.chunks.push(Arc::new(KeptChunk { events, known }));
        Ok(())
    }
}

/// Writes the text of kept events.
///
/// # Errors
///
/// Rows that can't be read: the text before them is written. Files that can't be written.
pub(super) fn write_kept(
    chunks: &[Arc<KeptChunk>],
    kind: TextKind,
    options: &PrintOptions,
    workers: usize,
    memory: &TextMemory,
    out: &mut impl Write,
) -> Result<(), UnprintedRows> {
    let is_large = |chunk: &Arc<KeptChunk>| chunk.events.event_size_max() > EVENT_SIZE_MAX;
    let workers = if chunks.iter().any(is_large) { 1 } else { workers.min(chunks.len()) };
    let mut next = chunks.iter();
    ordered::run(
        workers,
        || next.next().map(Ok::<_, UnprintedRows>),
        (),
        || Ok((RowsPen::new(workers), Vec::new())),
        |(pen, buffer), chunk| {
            let mut text = GrowingText::new(memory);
            let printed = print_chunk(pen, chunk, kind, options, buffer, &mut text);
            Ok((text, printed))
        },
        |(text, printed)| {
            text.write_to(out)?;
            printed
        },
    )
}

fn print_chunk(
    pen: &mut RowsPen,
    chunk: &KeptChunk,
    kind: TextKind,
    options: &PrintOptions,
    buffer: &mut Vec<u8>,
    text: &mut GrowingText,
) -> Result<(), UnprintedRows> {
    let damaged = |error: binlogz_flow::Error| UnprintedRows::Damaged(error.to_string());
    pen.tables.begin_kept(&chunk.events).map_err(damaged)?;
    for (event, known) in chunk.events.read(buffer)?.zip(&chunk.known) {
        match kind {
            TextKind::Body => pen.base64(options, &event, text)?,
            TextKind::Footer if event.header.event_type.is_rows() => {
                pen.row_lines(options, &event, *known, text)?;
            }
            TextKind::Footer => pen.table_map(&event),
        }
    }
    Ok(())
}
