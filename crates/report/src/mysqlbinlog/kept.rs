//! Large statements: their events are kept as they are, until they end, and made text of then, on all cores.
//!
//! What is printed at the end of a statement is many times as long as its events, and comes behind the headers
//! of them all.

use std::io::{self, Write};
use std::sync::Arc;

use binlogz_flow::events::{KeptEvents, Spilled};
use binlogz_flow::ordered;

use super::options::PrintOptions;
use super::rows_pen::{RowsPen, Unprinted};
use super::text::Part;
use super::text_memory::TextMemory;

/// Bytes of a statement's events from which on they are kept instead of their text.
pub(super) const KEEP_FROM: u64 = 1 << 20;

/// Bytes of kept events in memory; the others go to a file. Those that stand in one already are read again from there
/// at once: that is cheaper than memory that was not touched before.
const KEPT_MEMORY: usize = 8 << 20;

/// Events that are larger than this are not made text of side by side.
const EVENT_SIZE_MAX: usize = 2 << 20;

/// Events of a statement that stood in one batch.
#[derive(Debug)]
pub(super) struct KeptChunk {
    events: KeptEvents,
    /// Of each event, whether the table map of its rows was shown.
    known: Vec<bool>,
}

/// What is kept of the statement that is open.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptStatement {
    pub(super) chunks: Vec<Arc<KeptChunk>>,
    memory: usize,
    file: Option<Spilled>,
}

/// Which text is to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
            events.spill(self.file.get_or_insert_with(Spilled::default))?;
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
/// Rows that can't be read: what stands before them is written. Files that can't be written.
pub(super) fn write_kept(
    chunks: &[Arc<KeptChunk>],
    kind: Kind,
    options: &PrintOptions,
    workers: usize,
    memory: &TextMemory,
    out: &mut impl Write,
) -> Result<(), Unprinted> {
    let is_large = |chunk: &Arc<KeptChunk>| chunk.events.event_size_max() > EVENT_SIZE_MAX;
    let workers = if chunks.iter().any(is_large) { 1 } else { workers.min(chunks.len()) };
    let mut next = chunks.iter();
    ordered::run(
        workers,
        || next.next().map(Ok::<_, Unprinted>),
        (),
        || Ok((RowsPen::new(), Vec::new())),
        |(pen, buffer), chunk| {
            let mut text = Part::new(memory);
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
    kind: Kind,
    options: &PrintOptions,
    buffer: &mut Vec<u8>,
    text: &mut Part,
) -> Result<(), Unprinted> {
    let damaged = |error: binlogz_flow::Error| Unprinted::Damaged(error.to_string());
    pen.tables.begin_kept(&chunk.events).map_err(damaged)?;
    for (event, known) in chunk.events.read(buffer)?.zip(&chunk.known) {
        match kind {
            Kind::Body => pen.base64(options, &event, text)?,
            Kind::Footer if event.header.event_type.is_rows() => {
                pen.row_lines(options, &event, *known, text)?;
            }
            Kind::Footer => pen.table_map(&event),
        }
    }
    Ok(())
}
